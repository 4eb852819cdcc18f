"""Controls of the two maps in a browser: runs follow them, few of them, and what is left on screen is what a link opens."""

import re
import time

import pytest

from tests.app.browse import live_map, open_drawer, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
KEYS = """() => {
  const host = [...document.querySelectorAll('*')].find(each => each.shadowRoot?.querySelector('.canvas'));
  const canvas = host.shadowRoot.querySelector('.canvas');
  window.seen = [canvas.dataset.shown];
  new MutationObserver(() => { if (window.seen.at(-1) !== canvas.dataset.shown) window.seen.push(canvas.dataset.shown); })
    .observe(canvas, { attributes: true, attributeFilter: ['data-shown'] });
}"""


def test_twenty_moves_of_a_slider_make_at_most_three_pictures_and_the_last_is_that_of_a_fresh_visit(chromium, address, tmp_path):
    link = "points?mechanism=quadtree&epsilon=0.02"
    with visit(chromium, address, link, scheme="light", tmp_path=tmp_path) as (page, _):
        live_map(page)
        page.wait_for_timeout(3000)  # the first picture is drawn, and the page is at rest
        page.evaluate(KEYS)
        open_drawer(page, "Method")
        slider = page.get_by_role("slider", name="Privacy budget ε")
        slider.focus()
        started = time.monotonic()
        for step in range(20):
            slider.press("ArrowRight" if step < 13 else "ArrowLeft")
            page.wait_for_timeout(100)
        seconds = time.monotonic() - started
        until(lambda: "epsilon=0.2" in page.evaluate("location.href"), "the last value in the address")
        page.get_by_text("Quadtree, ε 0.2, run 1").first.wait_for()
        page.wait_for_timeout(3000)
        seen, url = page.evaluate("window.seen"), page.evaluate("location.href")
    assert 1 <= len(seen) - 1 <= max(3, int(seconds) + 2)  # one run may start per second, and one more for the last value
    with visit(chromium, address, f"points{url.partition('/points')[2]}", scheme="light", tmp_path=tmp_path) as (page, _):
        live_map(page)
        until(lambda: page.locator(".canvas").get_attribute("data-shown") == seen[-1], "the same picture")


def test_after_quick_presses_the_slider_its_text_the_address_and_the_map_agree(chromium, address, tmp_path):
    """The text beside the slider is shown anew with each press: a browser that sends back an older one has not typed it."""
    with visit(chromium, address, "points", scheme="light", tmp_path=tmp_path) as (page, _):
        live_map(page)
        page.wait_for_timeout(3000)
        open_drawer(page, "Method")
        slider = page.get_by_role("slider", name="Privacy budget ε")
        slider.focus()
        for _ in range(12):
            page.keyboard.press("ArrowLeft")
            page.wait_for_timeout(60)
        page.get_by_text("Path-budget tree, ε 0.01, run 1").first.wait_for()
        page.wait_for_timeout(2000)
        assert "epsilon=0.01" in page.evaluate("location.href")
        assert slider.get_attribute("aria-valuetext") == "0.01"
        assert page.get_by_label("ε exactly").input_value() == "0.01"


def test_undo_takes_a_change_back_to_the_same_picture_and_play_goes_on_to_other_runs(chromium, address, tmp_path):
    with visit(chromium, address, "points?mechanism=quadtree", scheme="dark", tmp_path=tmp_path) as (page, _):
        live_map(page)

        def shown():
            return page.locator(".canvas").get_attribute("data-shown")

        first = shown()
        page.get_by_role("button", name="Again").click()
        until(lambda: shown() != first, "another run")
        page.get_by_role("button", name="Undo").click()
        until(lambda: shown() == first, "the first run again")
        page.get_by_role("button", name="Play").click()
        page.get_by_text(re.compile(r"Quadtree, ε 0\.1, run ([3-9]|1\d)$")).first.wait_for()
        page.get_by_role("button", name="Stop (").click()
        page.get_by_role("button", name="Play").wait_for()
