"""The Compare page in Chromium: a study is started, stopped, resumed and loaded anew, a point is clicked, workers end after their page."""

import io
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dpviz.app.jobs.keeper import SECONDS_WITHOUT_PAGE
from dpviz.app.pages.compare.state import CompareConfig, study_of
from dpviz.app.session.widgets import read_link
from dpviz.evaluation.compare import compare
from dpviz.evaluation.tables import read_rows, tidy
from dpviz.samples.points import POINT_SAMPLES, load_point_sample
from tests.app.browse import live_map, pane_colours, until, visit

pytestmark = pytest.mark.browser

SHORT = 'compare?sample=gaussian_cluster&order=5&mechanisms=["quadtree","identity"]&steps=2&repeats=3'
LONG = 'compare?sample=gaussian_cluster&order=7&mechanisms=["htf","kdtree"]&steps=3&repeats=40'
MARKS = '[data-testid="stVegaLiteChart"] path[aria-roledescription="point"]'


def unmade(link):
    """The link with a seed of its own: a test that is tried again finds nothing of its first try."""
    return f"{link}&seed={time.time_ns() % 10**9}"


def made(page):
    """How many releases are there, of how many, as the bar says."""
    found = re.search(r"([\d,]+) of ([\d,]+) releases", page.get_by_test_id("stProgress").inner_text())
    return tuple(int(part.replace(",", "")) for part in found.groups())


def titles(page):
    """Title of each map."""
    return page.locator(".canvas .head .title").all_inner_texts()


def workers(address):
    """Worker processes of the server at an address."""
    port = address.rpartition(":")[2]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text()
            parent = re.search(r"PPid:\t(\d+)", (folder / "status").read_text())[1]
            server = Path(f"/proc/{parent}/cmdline").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if "dpviz.evaluation.workers" in words and f"--server.port={port}" in server:
            found.append(int(folder.name))
    return found


@pytest.mark.long
def test_a_study_is_stopped_and_resumed_goes_on_while_another_page_is_open_and_a_point_of_it_is_clicked(chromium, address, tmp_path):
    with visit(chromium, address, unmade(LONG), scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        until(lambda: page.locator(MARKS).count(), "points of the chart while the study runs")
        page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()
        page.get_by_text("Stopped:").wait_for()
        stopped, total = made(page)
        assert 0 < stopped < total == 240
        page.wait_for_timeout(1500)
        assert made(page) == (stopped, total)

        page.get_by_role("button", name="Resume the study").click()
        until(lambda: made(page)[0] > stopped, "more releases than before")
        page.get_by_role("link", name="Points").click()
        page.get_by_role("button", name="Again").wait_for()
        page.get_by_role("link", name="Compare").click()
        page.get_by_text("Done:").wait_for(timeout=600_000)  # a busy machine takes minutes
        assert made(page) == (240, 240)

        page.get_by_text("repeated from their seeds").last.wait_for()
        until(lambda: min(pane_colours(page)) > 10, "the truth and the best releases at the middle ε")
        usual = ["True records", "HTF, ε 0.45", "kd-tree, ε 0.45"]
        assert titles(page) == usual
        page.locator(MARKS).nth(0).click(force=True)
        until(lambda: titles(page) == [*usual, "HTF, ε 0.1"], "the release of the point that was clicked beside them")
        assert "picked=" in page.url
        page.locator(MARKS).nth(2).click(force=True)
        until(lambda: titles(page) == [usual[0], usual[2], "HTF, ε 0.1", "HTF, ε 2"], "the last three, and the truth")
        assert page.locator(".st-key-multiples").get_by_role("slider").count() == 1


@pytest.mark.slow
def test_after_a_reload_the_study_is_there_and_a_table_of_it_can_be_loaded(chromium, address, tmp_path):
    with visit(chromium, address, SHORT, scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        page.get_by_text("Done:").wait_for()
        until(lambda: "study=" in page.url, "the address names the study")
        page.reload()
        page.get_by_text("Done:").wait_for()
        assert made(page) == (12, 12)
        page.get_by_role("tab", name="Table").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download every run (CSV)").click()
        table = tmp_path / "study.csv"
        download.value.save_as(table)
    with visit(chromium, address, "compare", scheme="dark", tmp_path=tmp_path) as (page, _):
        page.get_by_text("Load a study", exact=True).click()
        page.locator("input[type=file]").set_input_files(table)
        page.get_by_role("button", name="Choose what the table has").click()
        page.get_by_text("Done:").wait_for()
        assert made(page) == (12, 12)
        until(lambda: "order=5" in page.url, "the address has the choices of the table")


@pytest.mark.long
def test_a_study_goes_on_while_its_page_is_loaded_anew_and_has_the_rows_of_one_that_is_not_interrupted(chromium, address, tmp_path):
    link = unmade(LONG.replace("repeats=40", "repeats=60"))
    with visit(chromium, address, link, scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        until(lambda: made(page)[0] > 2, "the first releases")
        until(lambda: "study=" in page.url, "the address names the study")
        before = made(page)[0]
        page.reload()
        page.get_by_text("Running:").first.wait_for()
        assert before <= made(page)[0] < 360
        page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).wait_for()
        until(lambda: page.locator(MARKS).count(), "points of the chart")
        assert page.get_by_role("button", name="Start the study").is_disabled()
        page.get_by_text("Done:").wait_for(timeout=600_000)  # a busy machine takes minutes
        assert made(page) == (360, 360)
        page.get_by_role("tab", name="Table").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download every run (CSV)").click()
        download.value.save_as(tmp_path / "study.csv")
    found = read_rows(tmp_path / "study.csv")
    config = read_link(CompareConfig, dict(parse_qsl(link.partition("?")[2])))
    points = load_point_sample("gaussian_cluster", domain=replace(POINT_SAMPLES["gaussian_cluster"].domain, order=7))
    study = study_of(SimpleNamespace(data=points), replace(config, repeats=3))
    whole = tidy(study, compare(study, workers=2))
    figures = ["run", "workload", "repeat", "n3", "mae", "mean20", "median20"]
    pd.testing.assert_frame_equal(found[figures].head(len(whole)), whole[figures])
    assert len(found.drop_duplicates(["run", "workload"])) == len(found) == 20 * len(whole)


@pytest.mark.parametrize("link", [SHORT, "compare?kind=Trips&sample=us_flights&steps=1&repeats=1"], ids=["points", "trips"])
@pytest.mark.slow
def test_the_picture_of_several_maps_fills_a_slide(chromium, address, tmp_path, link):
    with visit(chromium, address, link, scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        page.get_by_text("Done:").wait_for()
        live_map(page)
        camera = page.locator(".canvas").get_attribute("data-camera")
        with page.expect_download() as download:
            page.locator(".canvas .tools").get_by_text("PNG").click()
        download.value.save_as(tmp_path / "slide.png")
        assert page.locator(".canvas").get_attribute("data-camera") == camera
        assert page.locator("canvas").count() >= 1
    slide = np.asarray(Image.open(tmp_path / "slide.png").convert("RGB"))
    assert slide.shape == (900, 1600, 3)
    white = (slide == 255).all(axis=2).mean(axis=1)
    assert max(np.diff(np.flatnonzero(white < 1), prepend=0, append=900)) < 45, "no stripe of the slide is empty"
    for half in (slide[200:500], slide[500:800]):
        assert len(np.unique(half.reshape(-1, 3), axis=0)) > 50


@pytest.mark.slow
def test_the_camera_of_the_maps_is_in_the_address_and_stays_while_another_tab_is_open(chromium, address, tmp_path):
    def zoom():
        return json.loads(page.locator(".canvas").get_attribute("data-camera"))["zoom"]

    link = 'compare?order=5&mechanisms=["quadtree"]&steps=1&repeats=1&picked=[["Quadtree",0.1]]&camera=[-118.2,34,10]'
    with visit(chromium, address, link, scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        live_map(page)
        assert zoom() == 10
        page.get_by_role("button", name="+", exact=True).click()
        until(lambda: "10.5%5D" in page.evaluate("location.href"), "the camera in the address")
        page.get_by_role("tab", name="By level").click()
        until(lambda: not page.locator(".canvas").count(), "no maps on another tab")
        page.get_by_role("tab", name="On the map").click()
        live_map(page)
        assert zoom() == 10.5
        page.get_by_role("radio", name="Error", exact=True).click()
        until(lambda: "shown=Error" in page.evaluate("location.href"), "what the maps show in the address")
        page.evaluate("navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }")
        page.get_by_role("button", name="Copy link").click()
        copied = page.evaluate("globalThis.copied")
        page.goto(copied)
        live_map(page)
        assert (zoom(), page.locator(".canvas .about").last.inner_text()) == (10.5, "Error: released minus true")
        page.reload()
        live_map(page)
        assert zoom() == 10.5


def colourfulness(page):
    """The largest difference between red, green and blue of a pixel of the study: of its sentences, chart, tabs and maps."""
    image = np.asarray(Image.open(io.BytesIO(page.locator(".st-key-results").screenshot())).convert("RGB")).astype(int)
    return int(np.ptp(image, axis=2).max())


@pytest.mark.slow
def test_maps_come_back_from_other_tabs_as_they_were_and_are_grey_with_all_of_the_study_once_other_data_are_chosen(
    chromium, address, tmp_path
):
    with visit(chromium, address, SHORT, scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        page.get_by_text("Done:").wait_for()
        live_map(page)
        camera = page.locator(".canvas").get_attribute("data-camera")
        for name, pause in (("By level", 0), ("Time", 100), ("Table", 1500)):
            tab = page.get_by_role("tab", name=name)
            tab.evaluate("tab => tab.scrollIntoView()")
            place = tab.bounding_box()["y"]
            tab.click()
            page.wait_for_timeout(pause)
            assert tab.bounding_box()["y"] == pytest.approx(place, abs=2), "a tab that was pressed stays where it is"
            page.get_by_role("tab", name="On the map").click()
            live_map(page)
        page.wait_for_timeout(1000)  # a camera that came to rest would be in the address by now
        assert page.locator(".canvas").get_attribute("data-camera") == camera
        assert "camera" not in page.evaluate("location.href")
        assert min(pane_colours(page)) > 10
        assert colourfulness(page) > 100

        page.get_by_label("Sample", exact=True).click()
        page.get_by_role("option", name="σ = 20").click()
        page.get_by_text("In grey: this study has other data, One Gaussian cluster, σ = 50.").wait_for()
        until(lambda: colourfulness(page) < 40, "the study is grey as a whole")
        assert min(pane_colours(page)) > 10


@pytest.mark.slow
def test_the_target_is_dragged_moved_by_keys_and_typed(chromium, address, tmp_path):
    def reading():
        return page.get_by_text(re.compile("^At most [\\d.]+ %: ")).inner_text()

    def target():
        return float(re.search("target=([^&]*)", page.evaluate("location.href"))[1])

    with visit(chromium, address, f"{SHORT}&target=1", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        page.get_by_text("Done:").wait_for()
        line = page.get_by_role("slider", name="Target")
        until(lambda: line.get_attribute("aria-valuetext") == "1 %", "the target of the link")
        assert reading().startswith("At most 1 %: ")
        line.scroll_into_view_if_needed()
        box = line.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 30, steps=5)
        assert float(line.get_attribute("aria-valuenow")) > 1, "the line moves with the pointer"
        page.mouse.up()
        dragged = line.get_attribute("aria-valuenow")
        until(lambda: target() == float(dragged), "the target in the address")
        until(lambda: reading().startswith(f"At most {dragged} %: "), "what takes the new target")
        assert page.get_by_role("spinbutton", name="Target: at most (%)").input_value() == dragged

        line.press("PageDown")
        until(lambda: not reading().startswith(f"At most {dragged} %: "), "a smaller target by a key")
        page.wait_for_timeout(500)  # the chart is drawn anew
        assert line.evaluate("line => line.matches(':focus')"), "the line keeps the keyboard"
        assert target() < float(dragged)
        page.get_by_role("spinbutton", name="Target: at most (%)").fill("2")
        page.keyboard.press("Enter")
        until(lambda: line.get_attribute("aria-valuetext") == "2 %", "the line where it was typed")
        rule = page.locator('[data-testid="stVegaLiteChart"] .mark-rule.role-mark line')
        middles = [box["y"] + box["height"] / 2 for box in (line.bounding_box(), rule.bounding_box())]
        assert middles[0] == pytest.approx(middles[1], abs=3), "the line lies over that of the chart"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")  # noqa: PTH112
@pytest.mark.slow
def test_workers_end_some_time_after_the_page_that_started_them(chromium, address, tmp_path):
    with visit(chromium, address, unmade(LONG.replace("repeats=40", "repeats=200")), scheme="dark", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Start the study").click()
        until(lambda: workers(address), "workers of the study")
    until(lambda: not workers(address), "no worker some time after the browser is gone", SECONDS_WITHOUT_PAGE + 40)
