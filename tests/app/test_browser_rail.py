"""The rail in a browser: ε and shares moved by mouse, finger and keys, levels chosen, on narrow screens and in both themes."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpviz.privacy.shares import redistribute
from tests.app.browse import until

pytestmark = pytest.mark.browser
APP = Path(__file__).with_name("rail_app.py")
SHARES = [0.2, 0.1, 0.3, 0.4]
ONE = 0.003  # shares are dragged in whole pixels


@pytest.fixture(scope="module")
def address(serve):
    return serve(APP)


@pytest.fixture
def visit(chromium, address):
    """`visit(query, width, scheme)` opens the page, with its split if it is wanted; nothing may go wrong in it."""
    pages, wrong = [], []

    def start(query="", width=900, scheme="light", split=True, **options):
        page = chromium.new_context(viewport={"width": width, "height": 500}, color_scheme=scheme, **options).new_page()
        pages.append(page)
        page.set_default_timeout(40_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{address}/?{query}")
        page.get_by_text("drags 0; runs").wait_for()
        page.locator(".chip").nth(1).wait_for()
        if split and page.locator(".split").count():
            page.locator(".split").click()
        return page

    yield start
    for page in pages:
        page.context.close()
    assert wrong == []


def knob(page, name):
    return page.get_by_role("slider", name=f"Budget of {name}", exact=True)


def thumb(page):
    return page.get_by_role("slider", name="Budget ε", exact=True)


def dimmed(page):
    return page.locator(".st-key-map.dimmed").count() == 1


def pull(page, share, *, drop=True):
    """Drag ε to a share of the rail's length."""
    box = page.locator(".slider > .track").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, box["y"], steps=4)
    if drop:
        page.mouse.up()


def take(page, name, up):
    """Press on a handle and move it so many pixels up, without letting go."""
    box = knob(page, name).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 3, y - up / 2)
    page.mouse.move(x, y - up)
    return x, y


def now(page):
    return [float(handle.get_attribute("aria-valuenow")) for handle in page.locator(".knob").all()]


def stored(page):
    text = page.get_by_text("shares 0").inner_text()
    return [float(share) for share in re.search(r"shares ([\d. ]+),", text).group(1).split()]


def calls(page):
    return re.search(r"calls (.*)\.", page.get_by_text("shares 0").inner_text()).group(1).split()


def drags(page):
    return int(re.search(r"drags (\d+);", page.get_by_text("drags").inner_text()).group(1))


def numbers(page):
    return [text.replace("\u00a0", " ") for text in page.locator(".chip .off").all_inner_texts()]


def said(page):
    return page.locator(".said").inner_text().replace("\u00a0", " ")


def test_a_drag_of_epsilon_changes_all_numbers_in_the_browser_and_is_sent_once_when_it_ends(visit):
    page = visit(split=False)
    assert said(page) == "A 4 km square is off by 0.8 %; 1 of 8 empty ones look inhabited."
    pull(page, 2 / 3, drop=False)
    assert said(page) == "A 4 km square is off by ~0.08 %; ~4 of 8 empty ones look inhabited."
    assert numbers(page) == ["~0.025 %", "~0.08 %", "~0.24 %"]
    assert dimmed(page)
    assert thumb(page).get_attribute("aria-valuenow") == "1"
    assert calls(page) == [], "nothing is sent before the thumb is let go"
    page.mouse.up()
    page.get_by_text("ε 1, level 1").wait_for()
    until(lambda: not dimmed(page), "the map of the new run")
    assert said(page) == "A 4 km square is off by 0.08 %; 1 of 8 empty ones look inhabited."
    assert calls(page) == ["epsilon"]


def test_keys_move_epsilon_by_usual_values_and_by_two_digits_and_are_sent_once(visit):
    page = visit(split=False)
    thumb(page).focus()
    for press in ("ArrowRight", "ArrowUp", "ArrowLeft", "Shift+ArrowRight"):
        page.keyboard.press(press)
    assert thumb(page).get_attribute("aria-valuetext").replace("\u00a0", " ") == "0.21: A 4 km square is off by about 0.38 %"
    page.get_by_text("ε 21/100, level 1").wait_for()
    assert calls(page) == ["epsilon"]
    page.keyboard.press("Home")
    page.get_by_text("ε 1/100, level 1").wait_for()
    page.keyboard.press("End")
    page.get_by_text("ε 10, level 1").wait_for()
    assert thumb(page).evaluate("slider => slider.getRootNode().activeElement === slider")


def test_levels_are_chosen_by_click_and_by_arrow_keys_and_the_sentence_opens_the_map_of_false_positives(visit):
    page = visit(split=False)
    level = lambda name: page.get_by_role("radio", name=re.compile(f"^{name}"))  # noqa: E731
    assert [level(name).get_attribute("aria-checked") for name in ("8 km", "4 km", "2 km")] == ["false", "true", "false"]
    level("2 km").click()
    page.get_by_text("level 2, false").wait_for()
    page.keyboard.press("ArrowRight")
    page.get_by_text("level 0, false").wait_for()
    assert level("8 km").evaluate("button => button.getRootNode().activeElement === button")
    level("4 km").click()
    page.get_by_text("level 1, false").wait_for()
    count = page.get_by_role("button", name="1 of 8")
    count.click()
    page.get_by_text("false True").wait_for()
    until(lambda: count.get_attribute("aria-pressed") == "true", "pressed")
    assert calls(page) == ["shown", "shown", "shown", "false"]
    stops = page.locator(".rail").evaluate("root => [...root.querySelectorAll('*')].filter((each) => each.tabIndex >= 0).length")
    assert stops == 4, "the number, ε, the chips, the split"


@pytest.mark.slow
def test_escape_takes_a_drag_of_epsilon_back(visit):
    page = visit(split=False)
    pull(page, 0.8, drop=False)
    page.keyboard.press("Escape")
    assert said(page).startswith("A 4 km square is off by 0.8 %")
    page.mouse.up()
    page.wait_for_timeout(500)
    assert calls(page) == []
    assert not dimmed(page)


@pytest.mark.slow
def test_before_the_errors_over_epsilon_are_known_a_drag_shows_dots(visit):
    page = visit("late", split=False)
    pull(page, 0.8, drop=False)
    assert said(page) == "A 4 km square is off by \u2026; \u2026 empty ones look inhabited."
    page.mouse.up()
    until(lambda: calls(page) == ["epsilon"], "one call")
    until(lambda: "\u2026" not in said(page), "the numbers of the new run")


@pytest.mark.slow
def test_a_drag_scales_the_other_shares_and_is_sent_once(visit):
    page = visit()
    take(page, "4 km", 9)
    shown = now(page)
    assert 30 < shown[2] < 60
    assert shown == pytest.approx([100 * share for share in redistribute(SHARES, [False] * 4, 2, shown[2] / 100)], abs=0.06)
    assert stored(page) == SHARES, "nothing is stored before the handle is let go"
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page) == pytest.approx([share / 100 for share in shown], abs=ONE)
    assert now(page) == shown
    assert page.get_by_role("status").filter(has_text="Budget of 4 km").count() == 1


@pytest.mark.slow
def test_expected_errors_follow_a_drag_and_give_way_to_the_next_run(visit):
    page = visit()
    take(page, "4 km", 9)
    share = now(page)[2] / 100
    until(lambda: numbers(page)[1] == f"~{100 * 1000 * share / 2500:.0f} %", "the answer to the newest place")
    page.mouse.up()
    until(lambda: numbers(page) == ["0.25 %", "0.8 %", "2.4 %"], "the next run")


@pytest.mark.slow
def test_where_no_error_is_known_before_a_run_a_drag_says_so(visit):
    page = visit("unknown")
    take(page, "4 km", 9)
    page.locator(".note", has_text="its error is known after the new run").wait_for()
    assert numbers(page) == ["0.25 %", "0.8 %", "2.4 %"], "those of the run that is shown"


@pytest.mark.slow
def test_places_on_the_way_are_not_queued(visit):
    page = visit("wait=0.4")
    x, y = take(page, "2 km", 1)
    for step in range(100):
        page.mouse.move(x, y + step % 30)
        page.wait_for_timeout(10)
    page.mouse.move(x, y - 20)
    last = now(page)[3] / 100
    until(lambda: numbers(page)[2] == f"~{100 * 1000 * last / 625:.0f} %", "the answer to the newest place")
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")
    assert drags(page) < 60, "of a hundred places, those between two answers are passed over"


@pytest.mark.slow
def test_updates_while_a_handle_is_held_do_not_take_it_away(visit):
    page = visit("restless")
    x, y = take(page, "medians", 6)
    before, runs = now(page), page.get_by_text("runs").inner_text()
    until(lambda: page.get_by_text("runs").inner_text() != runs, "another run")
    page.wait_for_timeout(700)
    assert now(page) == before
    page.mouse.move(x, y - 12)
    assert now(page)[0] > before[0]
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")


@pytest.mark.slow
def test_escape_takes_a_drag_back_and_a_late_answer_to_it_is_ignored(visit):
    page = visit("wait=0.6")
    take(page, "4 km", 9)
    page.wait_for_timeout(200)
    page.keyboard.press("Escape")
    page.mouse.up()
    until(lambda: drags(page) > 0, "the page has answered")
    page.wait_for_timeout(300)
    assert numbers(page) == ["0.25 %", "0.8 %", "2.4 %"]
    assert now(page) == [20, 10, 30, 40]
    assert (stored(page), calls(page)) == (SHARES, [])


@pytest.mark.slow
def test_keys_move_shares_by_one_and_five_percent_and_are_sent_once(visit):
    page = visit()
    knob(page, "8 km").focus()
    for press in ("ArrowUp", "ArrowRight", "Shift+ArrowUp", "ArrowDown"):
        page.keyboard.press(press)
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page) == pytest.approx(redistribute(SHARES, [False] * 4, 1, 0.16), abs=0.001)
    assert knob(page, "8 km").get_attribute("aria-valuetext") == "16\u00a0% of the budget"
    page.keyboard.press("Home")
    until(lambda: stored(page)[1] == 0, "no share")
    page.keyboard.press("End")
    until(lambda: stored(page) == [0, 1, 0, 0], "all of it")
    page.keyboard.press("Shift+ArrowDown")
    until(lambda: stored(page) == pytest.approx([0.017, 0.95, 0.017, 0.017]), "the others get even parts of nothing")


@pytest.mark.slow
def test_a_locked_share_stays(visit):
    page = visit("lock")
    assert knob(page, "8 km").get_attribute("aria-disabled") == "true"
    take(page, "8 km", 20)
    page.mouse.up()
    take(page, "4 km", 9)
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page)[1] == 0.1
    assert stored(page) == pytest.approx(redistribute(SHARES, [False, True, False, False], 2, stored(page)[2]), abs=ONE)


@pytest.mark.slow
def test_changes_one_upon_the_other_all_arrive(visit):
    page = visit("slow=0.7")
    page.get_by_role("radio", name=re.compile("^2 km")).click()
    page.wait_for_timeout(100)
    take(page, "4 km", 9)
    page.mouse.up()
    shown = now(page)
    page.wait_for_timeout(100)
    pull(page, 2 / 3)
    page.wait_for_timeout(50)
    page.get_by_role("radio", name=re.compile("^8 km")).click()
    page.get_by_text("ε 1, level 0").wait_for()
    until(lambda: stored(page) == pytest.approx([share / 100 for share in shown], abs=ONE), "the shares")
    assert now(page) == shown
    assert sorted(set(calls(page))) == ["epsilon", "shares", "shown"]
    assert calls(page).count("shares") == calls(page).count("epsilon") == 1


@pytest.mark.slow
def test_levels_that_are_too_fine_are_one_chip_that_cannot_be_pressed(visit):
    page = visit("fine", split=False)
    page.locator(".chip.fine", has_text="too fine").wait_for()
    assert page.get_by_role("radio").count() == 2
    page.locator(".split").click()
    assert page.get_by_role("radio", name=re.compile("^2 km")).get_attribute("aria-disabled") == "true"


@pytest.mark.slow
def test_texts_are_not_read_as_markup(visit):
    page = visit()
    title = page.get_by_role("radio", name=re.compile("^8 km")).get_attribute("title")
    assert title.startswith("the <i>whole</i>. A 8 km square is off by 0.25\u00a0%, usable. That is ±\u00a025 of 10000 on average.")
    assert page.locator(".rail i").count() == 0


@pytest.mark.slow
def test_a_single_part_has_no_split(visit):
    page = visit("whole")
    assert page.locator(".split, .knob").count() == 0


@pytest.mark.slow
def test_on_a_phone_chips_scroll_in_their_row_and_handles_are_large_enough_for_fingers(visit):
    page = visit(width=360, has_touch=True)
    sizes = [handle.bounding_box() for handle in page.get_by_role("slider").all()]
    assert all(min(box["width"], box["height"]) >= 44 for box in sizes)
    assert all(chip.bounding_box()["height"] >= 44 for chip in page.locator(".chip").all())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".scroll").evaluate("element => element.scrollWidth > element.clientWidth")


@pytest.mark.slow
def test_a_finger_drags_epsilon_and_shares(visit):
    page = visit(width=360, has_touch=True, is_mobile=True)
    finger = page.context.new_cdp_session(page)

    def swipe(box, way):
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind, by in (("touchStart", 0), ("touchMove", 4), ("touchMove", 12), ("touchEnd", None)):
            touches = [] if by is None else [{"x": x + by * way[0], "y": y + by * way[1]}]
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    swipe(knob(page, "8 km").bounding_box(), (0, -1))
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page)[1] > 0.15
    swipe(thumb(page).bounding_box(), (1, 0))
    until(lambda: calls(page) == ["shares", "epsilon"], "another call")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_takes_the_colours_of_the_theme_and_grades_have_words_and_numbers(visit, scheme):
    page = visit(scheme=scheme)
    image = np.asarray(Image.open(io.BytesIO(page.locator(".rail").screenshot())).convert("RGB"), int)
    bright = image.mean(axis=2)
    assert (np.median(bright) > 200) == (scheme == "light")
    assert (np.abs(bright - np.median(bright)) > 120).sum() > 300, "texts and lines stand out"
    assert page.locator(".chip.good").count() == 3
    assert all("usable" in chip.get_attribute("title") for chip in page.locator(".chip").all())
