"""The Trips page as a person sees it, in Chromium: two maps of arcs, what they say, and a click on a region and on an arc."""

import pytest

from tests.app.browse import background, click_pane, live_map, open_drawer, pane_colours, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
STATES = "trips?mechanism=top_down&settings={}&epsilon=1&sample=northeast_commuters&level=2&top=1"


def until_drawn(page):
    live_map(page)
    until(lambda: min(pane_colours(page)) > 50, "both maps")
    assert told(page, "error") is None


def told(page, name):
    """What the canvas tells about itself."""
    return page.locator(".canvas").get_attribute(f"data-{name}")


def choose_pane(page, label, kind):
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=kind, exact=True).click()


def find_text(page, wanted):
    """Move down the left map, first through its middle, until it says something that `wanted` accepts; return where, in the window."""
    box = live_map(page).bounding_box()
    for share in (0.5, 0.4, 0.6, 0.3, 0.7):
        for up in range(int(0.3 * box["height"]), int(0.8 * box["height"]), 6):
            place = box["x"] + share * box["width"] / 2, box["y"] + up
            page.mouse.move(*place)
            page.wait_for_timeout(25)
            if (text := told(page, "hover")) and wanted(text.split(" | ")[0]):
                return place
    return pytest.fail("no such text on the map")


def test_teach_shows_truth_beside_release_and_areas_and_false_positives_by_choice(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Open the trips").click()
        until_drawn(page)
        assert page.locator(".canvas .head .title").all_inner_texts() == ["True flights", "Released flights"]
        before = told(page, "shown")
        choose_pane(page, "Right map", "False positives")
        page.get_by_text("false positive: released, no such trip").first.wait_for()
        until(lambda: told(page, "shown") != before, "another picture")
        before = told(page, "shown")
        open_drawer(page, "Map")
        page.locator(".st-key-marks").get_by_text("Areas", exact=True).click()
        page.get_by_text("false positives among a region's released pairs, %").first.wait_for()
        until(lambda: told(page, "shown") != before, "coloured regions")
        open_drawer(page, "Numbers")
        page.get_by_role("tab", name="Consistency").click()
        page.get_by_text("Every level adds up to the one above it").wait_for()


def test_a_click_on_a_state_shows_what_leaves_arrives_and_stays_and_survives_another_tab(chromium, address, tmp_path):
    """New York and Pennsylvania lie about the middle of the map."""
    with visit(chromium, address, STATES, scheme="dark", tmp_path=tmp_path) as (page, _):
        until_drawn(page)
        assert background(page) < 200
        click_pane(page, 0, -20, 20)
        page.get_by_role("tab", name="Region", exact=True, selected=True).wait_for()
        page.get_by_text("Only commuters from and to").first.wait_for()
        page.get_by_text("for sums over many regions, it is that of the best single level").wait_for()
        until(lambda: "region=" in page.evaluate("location.href"), "the region in the address")
        page.get_by_role("tab", name="Pair of regions").click()
        page.get_by_role("tab", name="Region", exact=True).click()
        page.get_by_text("for sums over many regions, it is that of the best single level").wait_for()
        click_pane(page, 0, -20, 20)
        page.get_by_text("Click a region on the map").wait_for()


def test_both_maps_say_the_same_of_an_arc_and_a_click_on_it_asks_for_its_pair(chromium, address, tmp_path):
    with visit(chromium, address, STATES.replace("top=1", "top=9"), scheme="light", tmp_path=tmp_path) as (page, _):
        until_drawn(page)
        x, y = find_text(page, lambda text: " to " in text.split("\n")[0])
        left, right = told(page, "hover").split(" | ")
        assert left == right
        assert "true " in left
        origin, _, destination = left.split("\n")[0].partition(" to ")
        page.mouse.click(x, y)
        page.get_by_role("tab", name="Pair of regions", selected=True).wait_for()
        page.get_by_text("95 % interval, this pair alone").first.wait_for()
        for side, name in (("From", origin), ("To", destination)):
            until(lambda side=side: page.get_by_role("combobox", name=f"{side}: region").input_value(), "a region")
            assert page.get_by_role("combobox", name=f"{side}: region").input_value() == name
