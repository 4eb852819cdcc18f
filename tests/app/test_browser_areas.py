"""The Areas page as a person sees it, in Chromium: two maps of regions, what they say, clicks that add regions up, and the rail."""

import re

import pytest

from tests.app.browse import background, click_pane, draw, live_map, open_drawer, open_good, pane_colours, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def told(page, name):
    """What the canvas tells about itself."""
    return page.locator(".canvas").get_attribute(f"data-{name}")


def until_drawn(page, figure):
    page.get_by_text(f"A region ({figure}").first.wait_for()
    live_map(page)
    until(lambda: min(pane_colours(page)) > 20, "both maps")
    assert told(page, "error") is None


def test_teach_shows_false_positives_and_another_level_by_choice(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("link", name="Areas", exact=True).click()
        until_drawn(page, "block")
        assert page.locator(".canvas .head .title").all_inner_texts() == ["True visits", "Released visits"]
        page.get_by_role("combobox", name="Right map").click()
        page.get_by_role("option", name="False positives", exact=True).click()
        page.get_by_text("empty, released as occupied:").first.wait_for()
        page.get_by_role("radio", name=re.compile("^tract")).click()
        page.locator(".said", has_text="A region (tract) is off by").wait_for()
        until(lambda: "level=2" in page.evaluate("location.href"), "the level in the address")


def test_a_click_on_a_county_asks_for_it_and_both_maps_say_the_same(chromium, address, tmp_path):
    with visit(chromium, address, "areas?sample=us_residents&epsilon=0.01", scheme="dark", tmp_path=tmp_path) as (page, _):
        until_drawn(page, "county")
        assert background(page) < 200
        click_pane(page, 0, -20, 20)
        page.get_by_role("heading", name="Ask", exact=True).wait_for()
        until(lambda: "asked=" in page.evaluate("location.href"), "the region in the address")
        left, right = told(page, "hover").split(" | ")
        assert left == right
        assert "released " in left
        assert "true " in left
        click_pane(page, 1, 60, 20)
        page.get_by_text("2 regions together: released").wait_for()
        page.get_by_role("button", name="No region").click()
        page.get_by_text("Click regions on a map to add them up.").first.wait_for()


def test_the_points_page_leads_to_points_in_regions_and_curate_makes_a_bundle_there(chromium, address, tmp_path):
    with visit(chromium, address, "points", scheme="light", tmp_path=tmp_path) as (page, _):
        open_drawer(page, "Data")
        page.get_by_role("button", name="Points in regions").click()
        until_drawn(page, "block")
        page.get_by_role("radio", name="Curate").click()
        open_good(page)
        for label, text in (("Name of the dataset", "Visits"), ("Cap, ε", "5")):
            page.get_by_label(label, exact=True).fill(text)
            page.get_by_label(label, exact=True).press("Tab")
            page.wait_for_timeout(1500)
        draw(page, records="8000")
        page.get_by_text("Released visits").first.wait_for()
        page.get_by_test_id("stMetric").filter(has_text="Released total").wait_for()
        page.get_by_role("heading", name="Publish it").wait_for()


def test_hexagons_are_drawn_by_their_indexes_and_say_what_they_are_on_both_maps(chromium, address, tmp_path):
    pytest.importorskip("h3")
    with visit(chromium, address, "areas?sample=la_hexagons&epsilon=1", scheme="light", tmp_path=tmp_path) as (page, _):
        until_drawn(page, "resolution")
        click_pane(page, 0, 0, 0)
        page.get_by_role("heading", name="Ask", exact=True).wait_for()
        left, right = told(page, "hover").split(" | ")
        assert left == right
        assert left.startswith("resolution ")
        until(lambda: "asked=" in page.evaluate("location.href"), "the hexagon in the address")


def strip_of(page):
    """The strip of slots, and a function that gives the middle of an hour on the page."""
    chart = page.get_by_role("slider", name="Shown by hour")
    chart.wait_for()

    def at(hour):
        box = chart.bounding_box()
        return box["x"] + box["width"] * (hour + 0.5) / 24, box["y"] + 30

    return chart, at


def titles(page):
    return page.locator(".canvas .head .title").all_inner_texts()


def test_a_drag_on_the_day_is_what_the_maps_show_and_a_click_on_a_region_shows_its_day(chromium, address, tmp_path):
    with visit(chromium, address, "areas?sample=city_by_hour&level=1", scheme="light", tmp_path=tmp_path) as (page, seen):
        until_drawn(page, "district")
        chart, at = strip_of(page)
        page.mouse.move(*at(7))
        page.mouse.down()
        page.mouse.move(*at(9), steps=4)
        page.get_by_text("07 to 09: ~").wait_for()
        page.mouse.up()
        until(lambda: titles(page) == ["True visits, 07 to 09", "Released visits, 07 to 09"], "the hours in the titles")
        page.get_by_text("07 to 09 in the whole: ").wait_for()
        assert page.get_by_role("combobox", name="Right map").input_value() == "Released, 07 to 09"
        chart.press("Shift+ArrowRight")
        until(lambda: titles(page)[1] == "Released visits, 07 to 10", "a wider range")
        chart.press("ArrowLeft")
        until(lambda: titles(page)[1] == "Released visits, 06 to 09", "an earlier range")
        assert chart.get_attribute("aria-valuetext") == "06 to 09"
        sizes = len(seen.sizes)
        click_pane(page, 1, -60, -120)
        page.get_by_text("06 to 09 in district ").first.wait_for()
        until(lambda: "asked=" in page.evaluate("location.href"), "the region in the address")
        assert sum(seen.sizes[sizes:]) < 400_000
        page.get_by_role("heading", name="Ask", exact=True).wait_for()
        page.get_by_role("button", name="evening", include_hidden=True).click()
        until(lambda: titles(page)[1] == "Released visits, evening", "a part of the day")
        page.get_by_role("button", name="All day").click()
        until(lambda: titles(page)[1] == "Released visits", "all hours")
        page.get_by_text("District ").first.wait_for()
        page.reload()
        chart, at = strip_of(page)
        page.mouse.click(*at(20))
        until(lambda: titles(page)[1:] == ["Released visits, 20"], "one hour")
        chart.press("Escape")
        until(lambda: titles(page)[1:] == ["Released visits"], "all hours again")


def test_a_click_on_a_small_map_takes_its_region_and_its_part_of_the_day(chromium, address, tmp_path):
    with visit(chromium, address, "areas?sample=city_by_hour&level=1&by_slot=True", scheme="dark", tmp_path=tmp_path) as (page, _):
        until_drawn(page, "district")
        assert [title.split(",")[0] for title in titles(page)] == ["night", "morning", "afternoon", "evening"]
        map_box = live_map(page).bounding_box()
        places = page.locator(".canvas .head").evaluate_all("heads => heads.map((head) => head.getBoundingClientRect().toJSON())")
        assert {round(place["bottom"] - map_box["y"] - map_box["height"]) for place in places[-1:]} == {0}
        last = places[-1]
        page.mouse.click(last["x"] + last["width"] / 2 - 30, last["y"] + last["height"] / 2 + 60)
        page.get_by_text("Evening in district ").wait_for()
        until(lambda: "slots=%5B18%2C23%5D" in page.evaluate("location.href"), "its hours in the address")
