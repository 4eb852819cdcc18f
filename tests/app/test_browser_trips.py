"""The Trips page as a person sees it, in Chromium: arcs, tabs, and a click on a region."""

import pytest

from tests.app.browse import background, choose, click_until, colours, pixels, until, visit

pytestmark = pytest.mark.browser


def figures(page):
    page.get_by_test_id("stMetric").filter(has_text="Pairs released").first.wait_for()


@pytest.mark.slow
def test_teach_from_the_start_page_to_a_clicked_region(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Open the trips").click()
        figures(page)
        until(lambda: colours(page) > 100, "arcs on the map")
        arcs = pixels(page)
        choose(page, "trips-shown", "False positives")
        until(lambda: (pixels(page) != arcs).any(), "false positives in their own colours")
        page.get_by_text("false positive: released, no such trip").wait_for()
        choose(page, "trips-shown", "Released")
        page.get_by_role("tab", name="Consistency").click()
        page.get_by_text("Every stage adds up to the one above it").wait_for()


@pytest.mark.slow
def test_a_click_on_a_state_shows_what_leaves_arrives_and_stays(chromium, address, tmp_path):
    """New York and Pennsylvania lie about the middle of the map; one arc, since software rendering is slow to tell what was hit."""
    link = "trips?sample=northeast_commuters&level=2&top=1"
    with visit(chromium, address, link, scheme="dark", tmp_path=tmp_path) as (page, _):
        figures(page)
        assert background(page) < 200
        until(lambda: colours(page) > 100, "states and an arc on the map")
        page.get_by_role("tab", name="Region", exact=True).click()
        page.get_by_text("Click a region on the map").wait_for()
        click_until(page, [(-20, 20), (-60, -60)], lambda: page.get_by_text("Only those from or to").count() > 0)
        page.get_by_text("for sums over many regions, of the best single stage").wait_for()
