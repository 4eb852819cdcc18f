"""The app as a person sees it, in Chromium: maps that show something, clicks, both themes, and nothing that leaves the address."""

import re

import pytest

import dpviz as dv
from dpviz.samples.points import POINT_SAMPLES
from tests.app.browse import background, choose, click_pane, draw, live_map, map_colours, open_drawer, pane_colours, until, visit

pytestmark = pytest.mark.browser

DOMAIN = POINT_SAMPLES["la_residents"].domain


def partitions(page, number):
    page.get_by_test_id("stMetric").filter(has_text="Partitions shown").filter(has_text=re.compile(rf"\D{number}$")).wait_for()


def until_partitions(page, number):
    page.get_by_role("application", name=re.compile(f" {number} partitions")).wait_for()


def typed_box(page):
    return [float(page.get_by_label(side, exact=True).input_value()) for side in ("West", "South", "East", "North")]


@pytest.mark.slow
def test_teach_from_the_start_page_to_two_maps_without_a_press(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Open the map").click()
        until(lambda: min(pane_colours(page)) > 50, "the truth and a release, side by side")
        assert background(page) > 600
        page.get_by_text("km square is off by").wait_for()


@pytest.mark.slow
def test_partitions_that_are_clicked_set_the_box_of_the_range_query(chromium, address, tmp_path):
    with visit(chromium, address, "points?mechanism=quadtree&zoom=3", scheme="light", tmp_path=tmp_path) as (page, _):
        until_partitions(page, "64")
        open_drawer(page, "Ask")
        page.get_by_text("Released answer").wait_for()
        west, south, east, north = DOMAIN.bounds
        x, y, width, height = (west + east) / 2, (south + north) / 2, (east - west) / 8, (north - south) / 8
        click_pane(page, 0, -20, 20)
        until(lambda: typed_box(page) == pytest.approx([x - width, y, x, y + height], abs=1e-3), "the box of the clicked partition")
        click_pane(page, 1, 20, -20)
        both = pytest.approx([x - width, y - height, x + width, y + height], abs=1e-3)
        until(lambda: typed_box(page) == both, "the box that spans both partitions")
        page.get_by_text("True answer").wait_for()
        page.locator(".rail").get_by_role("radio").nth(4).click()
        until_partitions(page, "256")
        page.get_by_role("link", name="Start").click()
        page.get_by_role("button", name="Open the map").click()
        until_partitions(page, "256")
        until(lambda: min(pane_colours(page)) > 20, "both maps again")


RELEASED = ".st-key-map .canvas .map"


@pytest.mark.slow
def test_curate_in_the_dark_shows_the_truth_behind_its_switch_only(chromium, address, tmp_path):
    link = 'points?mode=Curate&mechanism=quadtree&settings={"height":5}&epsilon=0.1'
    with visit(chromium, address, link, scheme="dark", tmp_path=tmp_path) as (page, _):
        page.get_by_text("Nothing has been spent on these data yet").wait_for()
        assert background(page) < 200
        live_map(page)
        draw(page)
        partitions(page, "1,024")
        until(lambda: map_colours(page, RELEASED) > 50, "released partitions on the map")
        assert page.get_by_text("False positives").count() == 0
        page.get_by_text("Show curator-only truth").click()
        page.get_by_text("CURATOR ONLY.").wait_for()
        choose(page, "shown", "True")
        until(lambda: map_colours(page, RELEASED) > 20, "the truth on the map")
        assert page.locator("button.tool", has_text="PNG").count() == 1, "the declared map alone can be saved"


@pytest.mark.slow
def test_a_map_of_explore_is_drawn_from_its_file_alone(chromium, tmp_path):
    release = dv.RegionTree().release(dv.load_sample("made_up_city"), dv.PureBudget(1), dv.Entropy.seeded(1))
    path, asked, faults = release.explore("tract").save(tmp_path / "map.html"), [], []
    page = chromium.new_page(viewport={"width": 800, "height": 500})
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("#live canvas")
    page.mouse.move(400, 180)
    until(lambda: page.mouse.move(402, 182) or page.locator("#live .tip:visible").count(), "words about a region")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert faults == []
    page.close()
