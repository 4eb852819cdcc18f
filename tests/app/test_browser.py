"""The app as a person sees it, in Chromium: maps that show something, clicks, both themes, and nothing that leaves the address."""

import re

import pytest

from dpviz.samples.points import SAMPLES
from tests.app.browse import background, choose, click_until, colours, draw, pixels, until, visit

pytestmark = pytest.mark.browser

DOMAIN = SAMPLES["la_residents"].domain


def partitions(page, number):
    page.get_by_test_id("stMetric").filter(has_text="Partitions shown").filter(has_text=re.compile(rf"\D{number}$")).wait_for()


def choose_partition(page, right, up):
    """Click beside the middle of the map until the box of the query follows."""
    before = typed_box(page)
    click_until(page, [(right, up)], lambda: typed_box(page) != before)


def typed_box(page):
    return [float(page.get_by_label(side, exact=True).input_value()) for side in ("West", "South", "East", "North")]


def drawn(page):
    """From the start page to the first release; the map's pixels."""
    page.get_by_role("button", name="Open the map").click()
    until(lambda: colours(page) > 20, "the truth on the map before the first draw")
    assert background(page) > 600
    draw(page)
    partitions(page, "16,384")
    until(lambda: colours(page) > 100, "released partitions on the map")
    return pixels(page)


def test_teach_from_the_start_page_to_a_map(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        drawn(page)


@pytest.mark.slow
def test_teach_from_the_start_page_to_a_clicked_range_query(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        released = drawn(page)
        slider = page.locator(".st-key-zoom").get_by_role("slider")
        slider.focus()
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        partitions(page, "64")
        until(lambda: (pixels(page) != released).any(), "larger partitions")

        page.get_by_role("tab", name="Range query").click()
        page.get_by_text("Released answer").wait_for()
        choose_partition(page, -30, 30)
        west, south, east, north = DOMAIN.bounds
        x, y, width, height = (west + east) / 2, (south + north) / 2, (east - west) / 8, (north - south) / 8
        until(lambda: typed_box(page) == pytest.approx([x - width, y, x, y + height], abs=1e-3), "the box of the clicked partition")
        choose_partition(page, 30, -30)
        both = pytest.approx([x - width, y - height, x + width, y + height], abs=1e-3)
        until(lambda: typed_box(page) == both, "the box that spans both partitions")
        page.get_by_text("True answer").wait_for()

        squares = pixels(page)
        choose(page, "shown", "False positives")
        page.get_by_text("wrong about whether records are there").wait_for()
        until(lambda: (pixels(page) != squares).any(), "another map")
        page.get_by_role("link", name="Start").click()
        page.get_by_role("button", name="Open the map").click()
        partitions(page, "64")
        page.get_by_text("wrong about whether records are there").wait_for()


@pytest.mark.slow
def test_curate_in_the_dark_shows_the_truth_behind_its_switch_only(chromium, address, tmp_path):
    link = 'points?mode=Curate&settings={"height":5}&epsilon=0.1'
    with visit(chromium, address, link, scheme="dark", tmp_path=tmp_path) as (page, _):
        page.get_by_text("Nothing has been spent on these data yet").wait_for()
        assert background(page) < 200
        assert page.locator("canvas").count() == 0
        draw(page)
        partitions(page, "1,024")
        until(lambda: colours(page) > 50, "released partitions on the map")
        assert page.get_by_text("False positives").count() == 0
        page.get_by_text("Show curator-only truth").click()
        page.get_by_text("CURATOR ONLY.").wait_for()
        choose(page, "shown", "True")
        until(lambda: colours(page) > 20, "the truth on the map")
