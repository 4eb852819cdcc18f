"""The strip in a browser: dragged by mouse, moved by keys, chosen by click, on narrow screens and in both themes."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpviz.privacy.shares import redistribute
from tests.app.browse import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
APP = Path(__file__).with_name("strip_app.py")
SHARES = [0.2, 0.1, 0.3, 0.4]
ONE = 0.003  # shares are dragged in whole pixels


@pytest.fixture(scope="module")
def address(serve):
    return serve(APP)


@pytest.fixture
def visit(chromium, address):
    """`visit(query, width, scheme)` opens the page; nothing may go wrong in it."""
    pages, wrong = [], []

    def start(query="", width=900, scheme="light", **options):
        page = chromium.new_context(viewport={"width": width, "height": 500}, color_scheme=scheme, **options).new_page()
        pages.append(page)
        page.set_default_timeout(40_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{address}/?{query}")
        page.get_by_text("drags 0; runs").wait_for()
        page.locator(".level").nth(2).wait_for()
        return page

    yield start
    for page in pages:
        page.context.close()
    assert wrong == []


def knob(page, name):
    return page.get_by_role("slider", name=f"Budget of {name}", exact=True)


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
    return [float(handle.get_attribute("aria-valuenow")) for handle in page.get_by_role("slider").all()]


def stored(page):
    text = page.get_by_text("shares").inner_text()
    return [float(share) for share in re.search(r"shares ([\d. ]+),", text).group(1).split()]


def calls(page):
    return re.search(r"calls (.*)\.", page.get_by_text("shares").inner_text()).group(1).split()


def drags(page):
    return int(re.search(r"drags (\d+);", page.get_by_text("drags").inner_text()).group(1))


def numbers(page):
    return [text.replace("\u00a0", " ") for text in page.locator(".number").all_inner_texts()]


def test_a_drag_scales_the_other_shares_and_is_sent_once(visit):
    page = visit()
    take(page, "level 1", 9)
    shown = now(page)
    assert 30 < shown[2] < 60
    assert shown == pytest.approx([100 * share for share in redistribute(SHARES, [False] * 4, 2, shown[2] / 100)], abs=0.06)
    assert stored(page) == SHARES, "nothing is stored before the handle is let go"
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page) == pytest.approx([share / 100 for share in shown], abs=ONE)
    assert now(page) == shown
    assert page.get_by_role("status").filter(has_text="Budget of level 1").count() == 1


def test_expected_errors_follow_a_drag_and_give_way_to_the_next_run(visit):
    page = visit()
    take(page, "level 1", 9)
    share = now(page)[2] / 100
    until(lambda: numbers(page)[1].startswith("\u2248"), "an answer")
    until(lambda: numbers(page)[1] == f"\u2248{100 * 1000 * share / 2500:.0f} %", "the answer to the newest place")
    page.mouse.up()
    until(lambda: numbers(page) == ["0.3 %", "0.8 %", "2.4 %"], "the next run")
    assert page.locator(".strip.tried").count() == 0


def test_where_no_error_is_known_before_a_run_a_drag_says_so(visit):
    page = visit("unknown")
    take(page, "level 1", 9)
    page.locator(".tip", has_text="its error is known after the new run").wait_for()
    assert numbers(page) == ["0.3 %", "0.8 %", "2.4 %"], "those of the run that is shown"


def test_places_on_the_way_are_not_queued(visit):
    page = visit("wait=0.4")
    x, y = take(page, "level 2", 1)
    for step in range(100):
        page.mouse.move(x, y + step % 30)
        page.wait_for_timeout(10)
    page.mouse.move(x, y - 20)
    last = now(page)[3] / 100
    until(lambda: numbers(page)[2] == f"\u2248{100 * 1000 * last / 625:.0f} %", "the answer to the newest place")
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")
    assert drags(page) < 60, "of a hundred places, those between two answers are passed over"


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


def test_a_handle_can_be_drawn_to_the_ends(visit):
    page = visit()
    x, _ = take(page, "level 2", -200)
    assert now(page) == pytest.approx([33.3, 16.7, 50, 0], abs=0.06)
    page.mouse.move(x, 0)
    assert now(page)[3] > 90
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")


def test_escape_takes_a_drag_back(visit):
    page = visit()
    take(page, "level 1", 9)
    until(lambda: numbers(page)[1].startswith("\u2248"), "an answer")
    page.keyboard.press("Escape")
    assert now(page) == [20, 10, 30, 40]
    assert numbers(page) == ["0.3 %", "0.8 %", "2.4 %"]
    page.mouse.up()
    page.wait_for_timeout(400)
    assert (stored(page), calls(page)) == (SHARES, [])


def test_an_answer_to_a_drag_that_was_taken_back_is_ignored(visit):
    page = visit("wait=0.6")
    take(page, "level 1", 9)
    page.wait_for_timeout(200)
    page.keyboard.press("Escape")
    page.mouse.up()
    until(lambda: drags(page) > 0, "the page has answered")
    page.wait_for_timeout(300)
    assert numbers(page) == ["0.3 %", "0.8 %", "2.4 %"]
    assert now(page) == [20, 10, 30, 40]


def test_keys_move_by_one_and_five_percent_and_are_sent_once(visit):
    page = visit()
    knob(page, "level 0").focus()
    for press in ("ArrowUp", "ArrowRight", "Shift+ArrowUp", "ArrowDown"):
        page.keyboard.press(press)
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page) == pytest.approx(redistribute(SHARES, [False] * 4, 1, 0.16), abs=0.001)
    assert knob(page, "level 0").get_attribute("aria-valuetext") == "16\u00a0% of the budget"
    page.keyboard.press("Home")
    until(lambda: stored(page)[1] == 0, "no share")
    page.keyboard.press("End")
    until(lambda: stored(page) == [0, 1, 0, 0], "all of it")
    page.keyboard.press("Shift+ArrowDown")
    until(lambda: stored(page) == pytest.approx([0.017, 0.95, 0.017, 0.017]), "the others get even parts of nothing")


def test_a_locked_share_stays(visit):
    page = visit("lock")
    assert knob(page, "level 0").get_attribute("aria-disabled") == "true"
    take(page, "level 0", 20)
    page.mouse.up()
    take(page, "level 1", 9)
    page.mouse.up()
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page)[1] == 0.1
    assert stored(page) == pytest.approx(redistribute(SHARES, [False, True, False, False], 2, stored(page)[2]), abs=ONE)


def test_levels_are_chosen_by_click_and_by_arrow_keys(visit):
    page = visit()
    level = lambda name: page.get_by_role("radio", name=f"Level {name}", exact=True)  # noqa: E731
    assert [level(name).get_attribute("aria-checked") for name in (0, 1, 2)] == ["false", "true", "false"]
    level(2).click()
    page.get_by_text("level 2, percent").wait_for()
    page.keyboard.press("ArrowRight")
    page.get_by_text("level 0, percent").wait_for()
    assert level(0).get_attribute("aria-checked") == "true"
    assert level(0).evaluate("button => button.getRootNode().activeElement === button")
    assert calls(page) == ["shown", "shown"]


def test_changes_one_upon_the_other_all_arrive(visit):
    page = visit("slow=0.7")
    page.get_by_role("radio", name="Level 2", exact=True).click()
    page.wait_for_timeout(100)
    page.get_by_role("button", name="Errors in people").click()
    page.wait_for_timeout(100)
    take(page, "level 1", 9)
    page.mouse.up()
    page.wait_for_timeout(50)
    page.get_by_role("radio", name="Level 0", exact=True).click()
    shown = now(page)
    page.get_by_text("level 0, percent False").wait_for()
    until(lambda: stored(page) == pytest.approx([share / 100 for share in shown], abs=ONE), "the shares")
    assert now(page) == shown
    assert sorted(set(calls(page))) == ["relative", "shares", "shown"]
    assert calls(page).count("shares") == calls(page).count("relative") == 1


def test_errors_are_shown_in_people_too(visit):
    page = visit()
    assert numbers(page) == ["0.3 %", "0.8 %", "2.4 %"]
    page.get_by_role("button", name="Errors in people").click()
    assert numbers(page) == ["25", "20", "15"]
    page.get_by_text("percent False").wait_for()
    sentence = page.get_by_role("img", name=re.compile("^Level 1 .4 squares.: measured error 20 people"))
    assert sentence.get_attribute("title") == "Level 1 (4 squares): measured error 20 people, expected from noise 15, in the run before 40."


def test_errors_that_say_only_that_all_is_noise_are_not_written_out(visit):
    page = visit("noise")
    assert numbers(page) == ["250 %", "800 %", "> 999 %"]
    finest = page.get_by_role("img", name=re.compile("^Level 2 .16 squares.: measured error >.999.% of the average"))
    assert finest.count() == 1


def test_names_of_levels_have_two_lines_and_are_not_cut(visit):
    page = visit("named")
    page.set_viewport_size({"width": 390, "height": 800})
    names = page.locator(".level span")
    assert names.all_inner_texts() == [f"state to county {level}" for level in range(3)]
    assert names.evaluate_all("spans => spans.every((span) => span.scrollHeight <= span.clientHeight + 1 && span.clientHeight > 20)")


def test_texts_are_not_read_as_markup(visit):
    page = visit()
    page.get_by_role("radio", name="Level 0", exact=True).hover()
    assert "the <i>whole</i>" in page.locator(".tip").inner_text()
    assert page.locator(".tip i").count() == 0


def test_false_positives_are_shown_where_the_truth_is(visit):
    page = visit()
    values = [text.replace("\u00a0", " ").split("\n") for text in page.locator(".value").all_inner_texts()]
    assert values[:3] == [["\u2013", "none"], ["13 %", "of 8"], ["25 %", "of 1,000"]]
    assert values[3:] == [["0 %", "of 1"], ["50 %", "of 8"], ["10 %", "of 3,000"]]
    assert page.locator(".wrong.few").count() == 3, "a share of 8 squares says little"
    assert page.get_by_role("img", name="Level 2: 10\u00a0%, 300 of 3,000 occupied squares, are released as empty.").count() == 1
    named = page.get_by_role("img", name="Level 2: 25\u00a0%, 250 of 1,000 empty squares, are released as occupied.")
    assert named.count() == 1
    page = visit("curate")
    assert page.get_by_text("False positives").count() == 0
    assert numbers(page) == ["0.2 %", "0.6 %", "1.6 %"], "the expected errors"
    assert page.locator(".mark.measured:visible").count() == 0


def test_a_single_part_has_no_handle(visit):
    page = visit("whole")
    page.get_by_text("One set of counts takes all of ε.").wait_for()
    assert page.get_by_role("slider").count() == 0


def test_handles_are_large_enough_for_fingers_and_names_stay_in_view(visit):
    page = visit(width=360, has_touch=True)
    sizes = [handle.bounding_box() for handle in page.get_by_role("slider").all()]
    assert all(min(box["width"], box["height"]) >= 44 for box in sizes)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    name, scroll = page.locator(".label").first, page.locator(".scroll")
    left = name.bounding_box()["x"]
    scroll.evaluate("element => { element.style.width = '200px'; element.scrollLeft = 60; }")
    assert scroll.evaluate("element => element.scrollLeft") > 30, "whole columns: numbers are not cut"
    assert name.bounding_box()["x"] == pytest.approx(left, abs=1)


def test_a_finger_drags_up_and_down(visit):
    page = visit(width=360, has_touch=True, is_mobile=True)
    box = knob(page, "level 0").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = page.context.new_cdp_session(page)
    for kind, up in (("touchStart", 0), ("touchMove", 4), ("touchMove", 12), ("touchEnd", None)):
        touches = [] if up is None else [{"x": x, "y": y - up}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
    until(lambda: calls(page) == ["shares"], "one call")
    assert stored(page)[1] > 0.15


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_takes_the_colours_of_the_theme(visit, scheme):
    page = visit(scheme=scheme)
    image = np.asarray(Image.open(io.BytesIO(page.locator(".strip").screenshot())).convert("RGB"), int)
    bright = image.mean(axis=2)
    assert (np.median(bright) > 200) == (scheme == "light")
    assert (np.abs(bright - np.median(bright)) > 120).sum() > 300, "texts and lines stand out"
    assert (np.abs(image - [0xD5, 0x5E, 0x00]).max(axis=2) < 6).sum() > 20, "false positives in vermilion"
