"""The Learn page in Chromium: all stops in a walk, each operated, one picture taken away, on a narrow screen too."""

import re

import pytest

from dpviz.app.pages.learn.path import BY_KEY, PATHS, SHORT, path_of
from tests.app.browse import background, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def phone(chromium, address):
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(40_000)
    yield page
    page.close()


SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"


def where(page):
    """The address bar, read in the page itself: Playwright's own copy is only renewed while it is waiting for something."""
    return page.evaluate("location.href")


def arrive(page, key, path=None):
    """Wait for a stop, with its question if that is open, and skip to the whole figure."""
    page.get_by_role("heading", name=f"{PATHS[path or path_of(key)].index(key) + 1}. {BY_KEY[key].title}").wait_for()
    until(lambda: f"stop={key}" in where(page), "the address of the stop")
    shown, skip = BY_KEY[key]().show(), page.get_by_role("button", name="Skip to the answer")
    settled(page)
    if not page.get_by_role("button", name="Reset", exact=True).is_visible():
        charts_are_drawn(page, shown.asked or shown.rows)
        skip.click()
        page.get_by_role("button", name="Reset", exact=True).wait_for()
    charts_are_drawn(page, shown.rows)
    settled(page)


def charts_are_drawn(page, rows):
    for chart in range(sum(map(len, rows))):
        page.get_by_test_id("stVegaLiteChart").nth(chart).locator("canvas, svg.marks").first.wait_for()


def settled(page):
    """Wait until the server has nothing more to say."""
    until(lambda: page.get_by_test_id("stApp").get_attribute("data-test-script-state") == "notRunning", "the end of the run")


def figures(page):
    settled(page)
    page.locator(".st-key-learn-figures").get_by_test_id("stMetricValue").last.wait_for()  # they come later than their places
    return page.locator(".st-key-learn-figures").inner_text()


def descriptions(page):
    """The alternative texts of the charts."""
    settled(page)
    return page.locator('[role="graphics-document"]').evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")


def operate(page, stop):
    """Move the first slider of the stop with the keyboard, to the left if it can be; returns figures and address before."""
    before = figures(page), where(page)
    slider = page.locator(".st-key-learn-controls").get_by_role("slider").first
    slider.focus()
    page.keyboard.press("ArrowRight" if slider.input_value() == slider.get_attribute("min") else "ArrowLeft")
    until(lambda: where(page) != before[1], f"the address of {stop} after a control was moved")
    assert f"stop={stop}" in where(page)
    return before


def operate_and_reset(page, stop):
    words = descriptions(page)
    shown, url = operate(page, stop)
    until(lambda: figures(page) != shown or descriptions(page) != words, f"another picture at {stop}")
    page.get_by_role("button", name="Reset", exact=True).click()
    until(lambda: where(page) == url, f"the address of {stop} after the reset")
    until(lambda: figures(page) == shown, f"the first figures of {stop} after the reset")


@pytest.mark.parametrize("path", PATHS)
def test_a_walk_through_all_stops_of_a_path_those_of_the_short_one_operated(chromium, address, path, tmp_path):
    stops = PATHS[path]
    with visit(chromium, address, f"learn?stop={stops[0]}&path={path}", scheme="light", tmp_path=tmp_path) as (page, _):
        for place, stop in enumerate(stops):
            arrive(page, stop, path)
            if path == SHORT:
                operate_and_reset(page, stop)
            if place + 1 < len(stops):
                page.get_by_role("button", name="Next").last.click()
                until(lambda: page.evaluate(SCROLLED) == 0, "the top of the next stop")
        for _ in range(5):  # the moved control and the reset have addresses too
            page.go_back()
            settled(page)
            if f"stop={stops[-2]}" in where(page):
                break
        arrive(page, stops[-2], path)


def test_on_a_small_screen_question_and_figure_are_seen_before_any_paragraph(chromium, address, tmp_path):
    with visit(chromium, address, "learn", scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size({"width": 1280, "height": 720})
        for key in PATHS[SHORT]:
            page.goto(f"{address}/learn?stop={key}")
            shown = BY_KEY[key]().show()
            assert_seen(page, shown.asked[0])
            page.get_by_text(BY_KEY[key].choices[0], exact=True).click()
            page.get_by_role("button", name="Reset", exact=True).wait_for()
            assert_seen(page, shown.rows[0])


def assert_seen(page, row):
    """Question, answer and the first row of charts lie inside the window, which is not scrolled."""
    charts_are_drawn(page, [row])
    settled(page)
    charts = [page.get_by_test_id("stVegaLiteChart").nth(index) for index in range(len(row))]
    boxes = [each.bounding_box() for each in [page.locator(".st-key-learn-question"), *charts]]
    assert page.evaluate(SCROLLED) == 0
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= 720 for box in boxes)


def test_a_choice_shows_the_answer_and_the_whole_figure_and_a_slide_has_the_question(chromium, address, tmp_path):
    with visit(chromium, address, "learn?stop=sums", scheme="light", tmp_path=tmp_path) as (page, _):
        stop = BY_KEY["sums"]
        page.get_by_text(stop.choices[0], exact=True).click()
        page.get_by_text("Not yet").wait_for()
        page.get_by_text(stop.choices[stop.right], exact=True).click()
        page.get_by_text("Yes: ").wait_for()
        charts_are_drawn(page, stop().show().rows)
        with page.expect_download() as taken:
            page.get_by_role("button", name="Slide (PNG)").click()
        path = tmp_path / taken.value.suggested_filename
        taken.value.save_as(path)
        assert path.name == "dpviz-slide-sums.png"
        assert int.from_bytes(path.read_bytes()[16:20]) == 1920


def test_a_shared_link_in_the_dark_and_a_picture_of_it(chromium, address, tmp_path):
    with visit(chromium, address, "learn?stop=leak&person=9&epsilon=5.0", scheme="dark", tmp_path=tmp_path) as (page, _):
        arrive(page, "leak")
        assert background(page) < 200
        assert page.get_by_role("slider", name="Attacked person").input_value() == "9"
        with page.expect_download() as taken:
            page.get_by_role("button", name="Picture (SVG)").click()
        path = tmp_path / taken.value.suggested_filename
        taken.value.save_as(path)
        assert path.name == "dpviz-learn-leak.svg"
        text = path.read_text("utf-8")
        assert "Attacked person: 9" in text
        assert "made-up data" in text


def test_dragging_the_split_by_keyboard_moves_the_curve(chromium, address, tmp_path):
    with visit(chromium, address, "learn?stop=split", scheme="light", tmp_path=tmp_path) as (page, _):
        arrive(page, "split")
        shown, url = figures(page), where(page)
        handle = page.get_by_role("group", name="Split of the privacy budget").get_by_role("slider").last
        handle.focus()  # of the finest level, which gives to the one above
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        until(lambda: where(page) != url and "levels=" in where(page), "shares in the address")
        until(lambda: figures(page) != shown, "other errors")


def test_the_worksheet_is_printed_without_the_left_side_and_buttons_in_black_on_white(chromium, address, tmp_path):
    with visit(chromium, address, "help?page=worksheet", scheme="dark", tmp_path=tmp_path) as (page, _):
        title = page.get_by_role("heading", name="For the teacher")
        title.wait_for()
        page.get_by_test_id("stSidebar").wait_for()
        page.emulate_media(media="print")
        for part in ("stSidebar", "stHeader", "stButton"):
            page.get_by_test_id(part).first.wait_for(state="hidden")
        assert title.evaluate("e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]") == [
            "rgb(0, 0, 0)",
            "rgb(255, 255, 255)",
        ]


LEGENDS_CUT = """[...document.querySelectorAll("svg.marks")].flatMap(chart =>
  [...chart.querySelectorAll(".role-legend text, .role-title text")]
  .filter(text => text.getBoundingClientRect().right > chart.getBoundingClientRect().right + 1 || text.textContent.endsWith("…"))
  .map(text => text.textContent))"""


@pytest.mark.parametrize("key", ["sums", "structure", "homogeneity", "topdown", "interval"])
def test_on_a_phone_legends_and_titles_are_whole(phone, address, key):
    phone.goto(f"{address}/learn?stop={key}")
    arrive(phone, key)
    assert phone.evaluate(LEGENDS_CUT) == []


def test_on_a_phone_nothing_is_wider_than_the_screen(phone, address):
    phone.goto(f"{address}/learn?stop=topdown")
    arrive(phone, "topdown")
    assert phone.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    before, after = (phone.get_by_role("button", name=re.compile(name)).first.bounding_box() for name in ("Previous", "Next"))
    assert abs(before["y"] - after["y"]) < 10
