"""The split bar: what Python accepts from a browser, and what can be done with mouse and keyboard."""

import re

import pytest

from dpviz.app.components.mechanism_controls import _check_moved
from dpviz.errors import BudgetError

APP = """
import streamlit as st
from dpviz.app.components.mechanism_controls import split_bar

state = st.session_state
state.setdefault("shares", [0.3, 0.2, 0.5])
state.setdefault("runs", 0)
state.runs += 1
locked = st.checkbox("lock")
if st.button("preset"):
    state.shares = [0.25, 0.25, 0.5]
parts = ["structure", "<i>inner</i>", "leaves"]
split_bar(parts, state.shares, locked=[False, locked, False], key="bar", on_change=lambda moved: state.update(shares=moved))
st.text(f"run {state.runs}: " + " ".join(f"{share:.3f}" for share in state.shares))
state.setdefault("pair", [1.0, 0.0])
split_bar(["a", "b"], state.pair, locked=[False, False], key="second", on_change=lambda moved: state.update(pair=moved))
st.text("pair: " + " ".join(f"{share:.2f}" for share in state["pair"]))
tree = {"locked": [False, False, False, True], "structure": [True, False, False, False]}
state.setdefault("tree", [0.3, 0.2, 0.4, 0.1])
split_bar(["medians", "a", "b", "c"], state.tree, key="third", on_change=lambda moved: state.update(tree=moved), **tree)
st.text("tree: " + " ".join(f"{share:.3f}" for share in state["tree"]))
"""


def test_moves_from_the_browser_are_checked():
    assert _check_moved([1, 3], [0.5, 0.5], [False, False]) == [0.25, 0.75]
    for wrong in (None, [1], [1, "3"], [-1, 2], [float("nan"), 1], {"0": 1, "1": 1}):
        with pytest.raises(BudgetError):
            _check_moved(wrong, [0.5, 0.5], [False, False])
    with pytest.raises(BudgetError, match="locked"):
        _check_moved([0.25, 0.75], [0.5, 0.5], [True, False])


@pytest.fixture(scope="module")
def address(serve, tmp_path_factory):
    script = tmp_path_factory.mktemp("split_bar") / "bar_app.py"
    script.write_text(APP)
    return serve(script)


@pytest.fixture
def page(chromium, address):
    page = chromium.new_page(viewport={"width": 900, "height": 500})
    page.set_default_timeout(40_000)
    page.goto(address)
    page.get_by_text("pair: 1.00 0.00").wait_for()
    page.locator(".handle").nth(5).wait_for(state="attached")
    yield page
    page.close()


def drag(page, bar, start, stop, *, drop=True):
    box = page.locator(".bar").nth(bar).bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + stop) / 2 * box["width"], height)
    page.mouse.move(box["x"] + stop * box["width"], height)
    if drop:
        page.mouse.up()


def see(page, text):
    page.get_by_text(re.compile(text)).wait_for()


def now(page):
    return [float(handle.get_attribute("aria-valuenow")) for handle in page.locator(".handle").all()]


@pytest.mark.browser
@pytest.mark.slow
def test_dragging_moves_share_between_neighbours(page):
    drag(page, 0, 0.3, 0.4, drop=False)
    assert now(page)[:2] == pytest.approx([40, 10], abs=0.5)
    see(page, r"run 1: 0.300 0.200 0.500")
    page.mouse.up()
    see(page, r"run \d+: 0.(40|39)\d 0.(10|09)\d 0.500")
    drag(page, 0, 0.4, 0.9)
    see(page, r"run \d+: 0.500 0.000 0.500")


@pytest.mark.browser
@pytest.mark.slow
def test_a_boundary_of_an_empty_part_can_be_pulled_out_again(page):
    drag(page, 1, 0.999, 0.5)
    see(page, r"pair: 0.50 0.50")
    assert now(page)[2] == pytest.approx(50, abs=0.5)


@pytest.mark.browser
@pytest.mark.slow
def test_escape_takes_a_drag_back(page):
    drag(page, 0, 0.3, 0.45, drop=False)
    page.keyboard.press("Escape")
    assert now(page)[:2] == [30, 20]
    page.mouse.up()
    page.get_by_text("preset").click()
    see(page, r"run 2: 0.250 0.250 0.500")


@pytest.mark.browser
@pytest.mark.slow
def test_arrow_keys_move_by_one_and_five_percent_and_are_sent_once(page):
    page.locator(".handle").nth(0).focus()
    for press in ("ArrowRight", "ArrowRight", "Shift+ArrowRight", "ArrowLeft"):
        page.keyboard.press(press)
    see(page, r"run 2: 0.360 0.140 0.500")
    page.keyboard.press("End")
    see(page, r"run 3: 0.500 0.000 0.500")
    assert page.locator(".handle:focus").get_attribute("aria-valuetext") == "structure: 50\u00a0%; <i>inner</i>: 0\u00a0%"


@pytest.mark.browser
@pytest.mark.slow
def test_a_locked_part_is_skipped_and_a_preset_is_shown(page):
    page.get_by_text("lock").click()
    see(page, r"run 2")
    page.locator(".bar").first.locator(".part.locked").wait_for()
    page.locator(".handle").nth(1).focus()
    page.keyboard.press("Shift+ArrowLeft")
    see(page, r"run 3: 0.250 0.200 0.550")
    assert now(page)[:2] == [25, 25]
    page.get_by_text("preset").click()
    see(page, r"run 4: 0.250 0.250 0.500")
    page.locator("[title='<i>inner</i>: 25\u00a0%, locked']").wait_for()
    assert page.locator(".part i").count() == 0


@pytest.mark.browser
@pytest.mark.slow
def test_where_structure_meets_counts_all_unlocked_counts_give_and_take(page):
    assert page.locator(".part.structure").count() == 1
    drag(page, 2, 0.298, 0.598)
    see(page, r"tree: 0.(60|59)\d 0.10\d 0.20\d 0.100")
    handle = page.locator(".bar").nth(2).locator(".handle").first
    assert handle.get_attribute("aria-label") == "Boundary between medians and counts"
    handle.focus()
    page.keyboard.press("End")
    see(page, r"tree: 0.900 0.000 0.000 0.100")
    page.keyboard.press("Shift+ArrowLeft")
    see(page, r"tree: 0.850 0.025 0.025 0.100")
