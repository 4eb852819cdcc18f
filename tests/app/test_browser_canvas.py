"""Two maps in one canvas as a person uses them: by pointer and by keyboard, and where it cannot be drawn."""

import io
import json
import re
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image

from tests.app.browse import background, live_map, map_colours, open_drawer, pane_colours, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LINK = 'points?mechanism=quadtree&settings={"height":5}'
PARTS = """() => {
  const parts = [...dpvizParts.values()], named = parts.flatMap(each => each.parts ?? []);
  return parts.length === named.length + 1 && named.every(key => parts.some(each => each.key === key));
}"""
"""Whether the browser keeps the parts of one scene and nothing else."""
BROKEN = Path(__file__).with_name("broken_canvas_app.py")


@pytest.fixture
def at(chromium, address, tmp_path):
    """`at(link)` visits a page until both maps are drawn."""

    @contextmanager
    def visited(link=LINK, scheme="light"):
        with visit(chromium, address, link, scheme=scheme, tmp_path=tmp_path) as (page, _):
            until_drawn(page)
            yield page

    return visited


def until_drawn(page):
    live_map(page)
    until(lambda: min(pane_colours(page)) > 50, "both maps")
    assert told(page, "error") is None


def told(page, name):
    """What the canvas tells about itself."""
    return page.locator(".canvas").get_attribute(f"data-{name}")


def camera(page):
    found = json.loads(told(page, "camera"))
    return [found[name] for name in ("longitude", "latitude", "zoom")]


def height(place):
    """Height in pixels, 0 while the place is not on the page."""
    return (place.bounding_box() or {"height": 0})["height"]


def in_address(page, name):
    """A parameter of the address, None without it."""
    found = parse_qs(urlsplit(page.evaluate("location.href")).query).get(name)
    return json.loads(found[0]) if found else None


def until_in_address(page):
    """Wait until the camera is in the address; return it."""
    until(lambda: in_address(page, "camera") == pytest.approx(camera(page), abs=0.01), "the camera in the address")
    return camera(page)


def place(page, pane, right=0.0, up=0.0):
    """A place of the left (0) or right (1) map in the window, in pixels from the map's middle."""
    box = live_map(page).bounding_box()
    return box["x"] + box["width"] * (1 + 2 * pane) / 4 + right, box["y"] + box["height"] / 2 - up


def hovered(page, pane, right, up):
    """What each map says about a place under the pointer."""
    page.mouse.move(*place(page, pane, right + 1, up))
    page.mouse.move(*place(page, pane, right, up))
    text = until(lambda: told(page, "hover"), "words about a partition")
    return text.split(" | ")


def drag(page, start, end):
    page.mouse.move(*start)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(*(a + (b - a) * step / 5 for a, b in zip(start, end, strict=True)))
    page.mouse.up()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_maps_without_a_press_both_say_what_is_true_and_released_at_a_place(at, scheme):
    with at(scheme=scheme) as page:
        assert (background(page) < 200) == (scheme == "dark")
        for right, up in ((0, 0), (60, 40)):
            left, other = hovered(page, 0, right, up)
            assert all(re.match(r"true [\d,]+, released ", words) for words in (left, other)), "of the square, and of the partition"
            assert "95 %: " in other
            until(lambda right=right, up=up, words=[left, other]: hovered(page, 1, right, up) == words, "the same from the other map")
        assert page.locator(".canvas .tip:visible").all_inner_texts() == [left, other]


def test_moving_one_map_moves_the_other_and_the_next_run_keeps_the_view(at):
    with at() as page:
        at_first, first = camera(page), told(page, "shown")
        drag(page, place(page, 0), place(page, 0, 60, 40))
        until(lambda: camera(page) != at_first, "another view")
        moved = until_in_address(page)
        assert moved[0] < at_first[0], "the map follows the pointer to the right"
        words = hovered(page, 0, 20, 20)
        until(lambda: hovered(page, 1, 20, 20) == words, "the same place in both maps")
        drag(page, place(page, 1), place(page, 1, -40, 0))
        until(lambda: camera(page)[0] > moved[0], "the view follows the right map, too")
        moved = until_in_address(page)
        assert (told(page, "shown"), in_address(page, "run")) == (first, None), "a move sends nothing again"
        page.get_by_role("button", name="Again", exact=True).click()
        until(lambda: told(page, "shown") != first, "another run")
        until(lambda: in_address(page, "run") == 2, "the number of the run in the address")
        assert camera(page) == moved
        assert in_address(page, "camera") == pytest.approx(moved, abs=0.01)


def test_the_maps_before_stay_until_each_part_of_the_next_ones_is_there(at):
    with at() as page:
        before, colours = told(page, "shown"), pane_colours(page)
        page.evaluate("""() => {
          const [owner, header] = [...dpvizParts].find(([, part]) => part.parts);
          dpvizParts.set(owner, { ...header, key: "newer", parts: [...header.parts, "late"] });
          dispatchEvent(new Event("dpvizpart"));
        }""")
        assert (told(page, "shown"), pane_colours(page)) == (before, colours)
        page.evaluate("dpvizParts.set(0, { key: 'late', arrays: {} }); dispatchEvent(new Event('dpvizpart'))")
        assert told(page, "shown") == "newer"


def test_the_browser_keeps_the_parts_of_the_maps_on_the_page_alone(at):
    with at() as page:
        before = told(page, "shown")
        page.locator(".chip[aria-checked=false]").first.click()
        until(lambda: told(page, "shown") != before, "the maps of another level")
        assert page.evaluate(PARTS)
        page.get_by_role("link", name="Areas", exact=True).click()
        until(lambda: page.evaluate("[...dpvizParts.values()].some(part => part.areas)"), "the parts of the other page")
        until(lambda: page.evaluate(PARTS), "its parts alone")


def test_maps_whose_webgl_was_lost_are_drawn_again(at):
    with at() as page:
        colours = pane_colours(page)
        page.locator(".canvas .map canvas").evaluate("each => each.getContext('webgl2').getExtension('WEBGL_lose_context').loseContext()")
        until(lambda: pane_colours(page) == colours, "both maps")
        live_map(page).press("ArrowRight")
        until(lambda: pane_colours(page) != colours, "the maps in another place")


def test_a_page_that_is_loaded_anew_shows_the_maps_again(at):
    with at() as page:
        shown = told(page, "shown")
        page.reload()
        until_drawn(page)
        until(lambda: told(page, "shown") == shown, "the same maps")


def test_a_link_opens_with_its_view(at):
    with at(f"{LINK}&camera=[-118.3,34,10]&run=3") as page:
        assert camera(page) == [-118.3, 34, 10]
        page.get_by_role("button", name="Reset view").click()
        until(lambda: camera(page)[2] < 9.5, "the whole domain")
        page.get_by_text("Run 3, seeded").wait_for()


def test_a_box_by_shift_and_drag_asks_the_range_query(at):
    with at() as page:
        page.keyboard.down("Shift")
        drag(page, place(page, 0, -50, -50), place(page, 0, 50, 50))
        page.keyboard.up("Shift")
        page.get_by_text("Released answer").wait_for()
        page.get_by_text(re.compile(r"Box: released [\d,]+ records .*, true [\d,]+: [+-][\d,]+ by noise")).wait_for()
        page.get_by_role("heading", name="Ask", exact=True).wait_for()
        west, south, east, north = (float(page.get_by_label(side, exact=True).input_value()) for side in ("West", "South", "East", "North"))
        longitude, latitude, _ = camera(page)
        assert (west + east) / 2 == pytest.approx(longitude, abs=0.01)
        assert (south + north) / 2 == pytest.approx(latitude, abs=0.01)
        until(lambda: json.loads(told(page, "box")) == pytest.approx([west, south, east, north], abs=1e-6), "the box on the maps")
        assert "&box=" in page.evaluate("location.href")


def test_on_a_phone_each_legend_stands_on_its_own_map(at):
    with at() as page:
        page.set_viewport_size({"width": 390, "height": 1200})
        until(lambda: page.locator(".head").first.bounding_box()["width"] > 300, "maps below each other")
        whole, heads = live_map(page).bounding_box(), [head.bounding_box() for head in page.locator(".head").all()]
        assert [head["y"] for head in heads] == pytest.approx([whole["y"], whole["y"] + whole["height"] / 2], abs=2)
        assert all(head["width"] == pytest.approx(whole["width"], abs=2) for head in heads)


def test_for_a_projector_the_sentence_and_epsilon_are_in_view_and_the_rail_is_larger(at):
    with at() as page:
        page.set_viewport_size({"width": 1280, "height": 720})
        level = page.locator(".chip").first
        before = height(level)
        page.get_by_role("button", name="Present", exact=True).click()
        until(lambda: height(level) > 1.3 * before, "larger type in the rail")
        for seen in (page.get_by_text("km square is off by"), page.get_by_role("slider", name="Budget ε", exact=True)):
            until(lambda seen=seen: (box := seen.bounding_box()) and box["y"] + box["height"] < 720, "sentence and ε")
        page.get_by_role("button", name="Back to the controls").click()
        until(lambda: height(level) == pytest.approx(before, abs=1), "the usual type")


def test_a_drawer_narrows_the_maps_and_escape_closes_it_and_gives_the_focus_back(at):
    with at() as page:
        wide, home = live_map(page).bounding_box()["width"], camera(page)
        open_drawer(page, "Method")
        until(lambda: live_map(page).bounding_box()["width"] < wide - 200, "narrower maps")
        page.get_by_role("combobox", name="Mechanism").click()
        page.keyboard.press("Escape")
        page.get_by_role("heading", name="Method").wait_for()
        page.keyboard.press("Escape")
        until(lambda: live_map(page).bounding_box()["width"] == wide, "all of the width again")
        assert page.evaluate("document.activeElement.innerText").endswith("Method")
        until(lambda: camera(page) == pytest.approx(home, abs=1e-6), "the whole domain")
        assert in_address(page, "camera") is None, "that maps were fitted is no move"


def test_two_links_come_first_and_lead_to_the_map_and_to_epsilon(at):
    with at() as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert live_map(page).evaluate("map => map.getRootNode().activeElement === map")
        page.get_by_role("link", name="To ε").focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.closest('.st-key-rail') !== null")


def test_the_keyboard_moves_the_map_and_hears_the_numbers_at_its_middle(at):
    with at() as page:
        first = camera(page)
        live_map(page).focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("+")
        until(lambda: camera(page)[2] == first[2] + 0.5, "a closer view")
        assert camera(page)[0] > first[0]
        assert camera(page)[1] > first[1]
        until(lambda: "95 %: " in page.locator(".canvas .live").text_content(), "numbers for a screen reader")
        assert page.locator(".canvas .cross").is_visible()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
        until(lambda: page.locator(".canvas .live").text_content().startswith("Outside the domain"), "words outside the domain")
        page.keyboard.press("0")
        until(lambda: camera(page) == pytest.approx(first, abs=1e-6), "the whole domain again")
        page.keyboard.press("Enter")
        page.get_by_text("Released answer").wait_for()


def test_the_swipe_bar_moves_by_keyboard_and_by_pointer(at):
    with at() as page:
        page.get_by_role("button", name="Swipe").click()
        bar = page.get_by_role("slider", name="Swipe between the maps")
        assert (told(page, "layout"), bar.get_attribute("aria-valuenow")) == ("swipe", "50")
        before = bar.bounding_box()["x"]
        bar.focus()
        page.keyboard.press("ArrowRight")
        assert (bar.get_attribute("aria-valuenow"), bar.get_attribute("aria-valuetext")) == ("52", "52 % True records")
        assert bar.bounding_box()["x"] > before
        page.keyboard.press("Home")
        assert bar.get_attribute("aria-valuenow") == "3"
        page.keyboard.press("End")
        assert bar.get_attribute("aria-valuenow") == "97"
        box = bar.bounding_box()
        start = box["x"] + box["width"] / 2, box["y"] + 2 * box["height"] / 3  # below the tools, which lie over the edge
        drag(page, start, (place(page, 0)[0], start[1]))
        assert bar.get_attribute("aria-valuenow") == "25"
        view = camera(page)
        words = hovered(page, 0, -60, 30)
        assert words[0] == words[1]
        page.get_by_role("button", name="Side by side").click()
        assert (told(page, "layout"), camera(page)) == ("side", view)


def test_the_layout_and_the_swipe_bar_are_in_the_address_and_a_link_opens_with_them(at):
    with at(f"{LINK}&swipe=0.35") as page:
        bar = page.get_by_role("slider", name="Swipe between the maps")
        assert (told(page, "layout"), bar.get_attribute("aria-valuenow")) == ("swipe", "35")
        shown = told(page, "shown")
        bar.focus()
        page.keyboard.press("ArrowRight")
        page.evaluate("navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }")
        page.get_by_role("button", name="Copy link").click()
        assert "swipe=0.37" in page.evaluate("globalThis.copied"), "the link has it at once"
        until(lambda: in_address(page, "swipe") == 0.37, "the bar in the address")
        page.get_by_role("button", name="Side by side").click()
        until(lambda: in_address(page, "swipe") is None, "no bar in the address")
        page.get_by_role("button", name="Copy link").click()
        assert "swipe" not in page.evaluate("globalThis.copied")
        assert (told(page, "layout"), told(page, "shown")) == ("side", shown), "nothing is sent again"


def test_both_maps_are_saved_as_svg(at, tmp_path):
    with at(f"{LINK}&run=3") as page:
        open_drawer(page, "Map")
        with page.expect_download() as download:
            page.get_by_role("button", name="SVG", exact=True).click()
        download.value.save_as(tmp_path / "maps.svg")
        text = (tmp_path / "maps.svg").read_text("utf-8")
        assert [f">{title}</text>" in text for title in ("True records", "Released records")] == [True, True]
        assert ">Run 3, seeded: a simulation, not private." in text


def test_a_street_map_is_asked_for_only_where_it_is_switched_on(chromium, address, tmp_path):
    with visit(chromium, address, LINK, scheme="light", tmp_path=tmp_path) as (page, seen):
        tile = io.BytesIO()
        Image.new("RGB", (256, 256), "green").save(tile, "PNG")
        answer = {"body": tile.getvalue(), "content_type": "image/png", "headers": {"Access-Control-Allow-Origin": "*"}}
        page.route(re.compile("openstreetmap"), lambda route: route.fulfill(**answer))
        until_drawn(page)
        assert (told(page, "tiles"), [each for each in seen.addresses if "openstreetmap" in each]) == ("0", [])
        open_drawer(page, "Map")
        page.get_by_text("Street map.").click()
        until(lambda: int(told(page, "tiles")) > 3, "tiles under the maps")
        page.get_by_text("© OpenStreetMap contributors").wait_for()
        asked = {each for each in seen.addresses if not each.startswith((address, address.replace("http", "ws")))}
        outside = {each for each in asked if not each.startswith(("data:", "blob:"))}
        assert len(outside) < 80
        assert all(re.fullmatch(r"https://tile\.openstreetmap\.org/\d+/\d+/\d+\.png", each) for each in outside)
        page.get_by_text("Street map.").click()
        until(lambda: told(page, "tiles") == "0", "no tiles")
        page.keyboard.press("Escape")
        before = len(seen.addresses)
        page.get_by_role("button", name="+", exact=True).click()
        until_in_address(page)
        assert not [each for each in seen.addresses[before:] if "openstreetmap" in each]
        seen.addresses[:] = [each for each in seen.addresses if each not in outside]  # the others are checked at the end


def go(page, name):
    page.get_by_role("link", name=name, exact=True).click()


@pytest.mark.parametrize("name", ["points", "trips"])
def test_level_budget_error_and_false_positives_are_seen_without_scrolling(chromium, address, tmp_path, name):
    with visit(chromium, address, name, scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size({"width": 1400, "height": 900})
        until_drawn(page)
        rail = page.locator(".rail")
        rail.wait_for()
        until(lambda: (box := rail.bounding_box()) and box["y"] + box["height"] < 900, "all of the rail")
        heights = "all => all.filter((each) => each.checkVisibility()).map((each) => Math.round(each.getBoundingClientRect().y))"
        row = page.locator(".st-key-first-row button")
        until(lambda: len(set(row.evaluate_all(heights))) == 1, "the controls of the maps in one row")
        open_drawer(page, "Numbers")
        page.get_by_role("button", name="Code").click()
        shown = page.get_by_test_id("stCode").filter(has_text="import dpviz as dv")
        shown.wait_for()
        assert "dv.Entropy.seeded(1)" in shown.inner_text()


def test_the_button_back_goes_from_page_to_page_and_not_through_every_setting(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Open the map").click()
        until_drawn(page)
        for number in (2, 3):
            page.get_by_role("button", name="Again", exact=True).click()
            until(lambda number=number: f"run={number}" in page.evaluate("location.href"), "the run in the address")
        go(page, "Trips")
        until(lambda: "/trips" in page.evaluate("location.href"), "the other page")
        page.get_by_text("True flights").first.wait_for()
        page.go_back()
        page.get_by_text("Run 3, seeded").first.wait_for()
        page.go_back()
        page.get_by_role("heading", name="What would you publish?").wait_for()


def check_still(page):
    """Both maps are one picture of many colours, which the next run changes."""
    page.get_by_text("cannot draw maps that move").wait_for()
    still = page.locator("img.dpviz-still")
    still.wait_for()
    until(lambda: map_colours(page, "img.dpviz-still") > 50, "both maps in the picture")
    page.get_by_text("km square is off by").wait_for()
    assert page.locator(".canvas").count() == 0
    before = still.get_attribute("src")
    page.get_by_role("button", name="Again", exact=True).click()
    page.get_by_text("Run 2, seeded").first.wait_for()
    until(lambda: still.get_attribute("src") != before, "another picture")


def test_where_the_library_of_maps_fails_the_maps_are_a_picture(chromium, serve, tmp_path):
    with visit(chromium, serve(BROKEN), LINK, scheme="light", tmp_path=tmp_path) as (page, _):
        check_still(page)


def test_a_browser_without_webgl_gets_a_picture(chromium, address, tmp_path):
    blind = """const real = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return /webgl/.test(kind) ? null : real.call(this, kind, ...rest);
    };"""
    with visit(chromium, address, "help", scheme="light", tmp_path=tmp_path) as (page, _):
        page.add_init_script(blind)
        page.goto(f"{address}/{LINK}")
        check_still(page)


def test_a_wheel_over_a_map_that_was_not_pressed_moves_the_page_and_says_how_to_zoom(at):
    with at() as page:
        hint, before = page.locator(".hint.shown"), camera(page)
        height = page.locator(".canvas").bounding_box()["height"]
        page.mouse.move(*place(page, 0, 0.5, 0.5))
        page.mouse.wheel(60, 0)
        assert hint.count() == 0
        page.mouse.wheel(0, 5)
        hint.wait_for()
        assert hint.inner_text() == "Click the map, then zoom by wheel"
        assert page.locator(".canvas").bounding_box()["height"] == height
        until(lambda: hint.count() == 0, "the end of the hint")
        assert camera(page) == before
        page.mouse.click(*place(page, 0, 0.5, 0.5))
        page.mouse.wheel(0, -60)
        until(lambda: camera(page) != before, "a zoom by wheel")
        assert hint.count() == 0
