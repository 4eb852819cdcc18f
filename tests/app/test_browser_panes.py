"""The maps fill the window: how much of the screen shows the data, and where the menus over the maps lie."""

from itertools import pairwise

import pytest

from dpviz.app.pages.start import PRESETS
from tests.app.browse import live_map, open_drawer, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WIDE = {"width": 1400, "height": 900}


def menus(page):
    return [menu.bounding_box() for menu in page.locator("[class*=st-key-pane-]").all()]


def covered(page):
    """Share of the screen under the domain, which is about a square, on all maps."""
    width, height = (page.viewport_size[side] for side in ("width", "height"))
    maps = page.locator(".canvas .head").evaluate_all("all => all.map((head) => [head.offsetWidth, head.offsetHeight])")
    return sum(min(each) ** 2 for each in maps) / (width * height)


def test_a_class_of_forty_is_one_press_and_fills_the_screen(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size(WIDE)
        page.get_by_role("button", name=PRESETS[0].title).click()
        live_map(page)
        until(lambda: len(menus(page)) == 4, "four maps")
        assert covered(page) > 0.3
        places = menus(page)
        assert len({place["x"] for place in places}) == 4
        assert all(place["x"] + place["width"] <= other["x"] for place, other in pairwise(places)), "none covers another"
        assert page.get_by_role("slider", name="Budget ε", exact=True).bounding_box()["y"] < WIDE["height"]


def test_a_map_of_the_world_keeps_all_of_it_in_view_and_what_was_not_moved_is_in_no_link(chromium, address, tmp_path):
    with visit(chromium, address, "points?sample=gowalla&size=20000", scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size(WIDE)
        live_map(page)
        wide = page.locator(".canvas").get_attribute("data-camera")
        page.set_viewport_size({"width": 800, "height": 900})
        until(lambda: page.locator(".canvas").get_attribute("data-camera") != wide, "the world on smaller maps")
        page.set_viewport_size(WIDE)
        until(lambda: page.locator(".canvas").get_attribute("data-camera") == wide, "the world as before")
        page.wait_for_timeout(1000)  # a camera that came to rest would be in the address by now
        assert "camera" not in page.evaluate("location.href")


def test_an_open_drawer_narrows_the_maps_and_their_menus_stay_on_them(chromium, address, tmp_path):
    with visit(chromium, address, "points", scheme="dark", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size(WIDE)
        live_map(page)
        until(lambda: covered(page) > 0.55, "two maps that fill the window")
        open_drawer(page, "Map")
        page.locator(".st-key-maps").get_by_text("Four", exact=True).click()
        until(lambda: len(menus(page)) == 4, "four maps")
        left = page.locator(".canvas").bounding_box()["x"]
        assert left > page.locator("[class*=st-key-opened]").bounding_box()["x"] + 100
        until(lambda: all(place["x"] >= left for place in menus(page)), "menus on the maps")
