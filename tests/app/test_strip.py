"""The Python half of the strip: what it sends to a browser, what it takes from one, and what it calls."""

import json
import math
from types import SimpleNamespace

import pytest

from dpviz.app.components.strip import KINDS, StripCalls, StripLevel, StripPart, check_shares, message, new_memory, receive
from dpviz.errors import BudgetError, SettingError

LEVELS = [
    StripLevel(name="0", about="the whole", mean=800.0, expected=2.0, measured=3.0, before=4.0),
    StripLevel(name="1", about="4 squares", mean=200.0, expected=5.0, measured=6.0, base=3, wrong=1),
    StripLevel(name="2", about="16 squares", mean=50.0, expected=6.0, finer=True),
]
PARTS = [
    StripPart(label="medians", share=3, structure=True),
    StripPart(label="zoom 0", share=2, level=0, locked=True),
    StripPart(label="zoom 1", share=5, level=1),
]


@pytest.fixture
def page():
    """A page that writes down what it is called with, and answers a drag with what is in `answer`."""
    made = SimpleNamespace(calls=[], answer=[1.0, 2.0, 3.0], memory=new_memory())

    def drag(shares):
        made.calls.append(("drag", pytest.approx(shares)))
        if isinstance(made.answer, Exception):
            raise made.answer
        return made.answer

    note = lambda kind: lambda value: made.calls.append((kind, value))  # noqa: E731
    made.listeners = StripCalls(on_level=note("level"), on_unit=note("unit"), on_shares=note("moved"), on_drag=drag)
    made.send = lambda event: receive(event, made.memory, LEVELS, PARTS, made.listeners)
    made.data = lambda: message(LEVELS, PARTS, made.memory, made.listeners)
    return made


def change(value, serial=1):
    return {"value": value, "serial": serial}


def test_a_message_is_plain_and_its_shares_add_up(page):
    data = json.loads(json.dumps(page.data(), allow_nan=False))
    assert [part["share"] for part in data["parts"]] == pytest.approx([0.3, 0.2, 0.5])
    assert [part["level"] for part in data["parts"]] == [None, 0, 1]
    assert data["levels"][1] == {
        "name": "1", "about": "4 squares", "mean": 200, "expected": 5, "measured": 6, "before": None, "base": 3, "wrong": 1,
        "there": None, "missed": None, "finer": False, "closed": "",
    }  # fmt: skip
    assert (data["editable"], data["live"], data["answer"]) == (True, True, None)


def test_without_callbacks_nothing_can_be_dragged_or_tried(page):
    calls = StripCalls(on_level=print, on_unit=print)
    data = message(LEVELS, PARTS, page.memory, calls)
    assert (data["editable"], data["live"]) == (False, False)
    receive({"moved": change([1, 2, 7]), "drag": change([1, 2, 7], 2)}, page.memory, LEVELS, PARTS, calls)
    assert page.memory["answer"] == {"serial": 2, "expected": None}


def test_numbers_that_are_not_finite_are_not_sent(page):
    odd = [StripLevel(name="0", mean=math.nan, expected=math.inf, measured=None)]
    data = message(odd, [], page.memory, page.listeners)
    assert [data["levels"][0][name] for name in ("mean", "expected", "measured")] == [None] * 3
    assert data["parts"] == []


def test_parts_whose_level_has_no_column_get_one_of_their_own(page):
    parts = [StripPart(label=str(level), share=1, level=level) for level in (1, 1, 3, -1)]
    assert [part["level"] for part in message(LEVELS, parts, page.memory, page.listeners)["parts"]] == [1, None, None, None]


@pytest.mark.parametrize("shares", [[0, 0, 0], [1, -1, 1], [1, math.nan, 1], [1, math.inf, 1]])
def test_bad_shares_of_the_page_are_refused(page, shares):
    with pytest.raises(BudgetError):
        message(LEVELS, [StripPart(label="", share=share) for share in shares], page.memory, page.listeners)


def test_changes_are_passed_on_once(page):
    event = {"level": change(1), "unit": change(value=False, serial=2), "moved": change([4, 2, 4], 3)}
    page.send(event)
    assert page.calls == [("level", 1), ("unit", False), ("moved", pytest.approx([0.4, 0.2, 0.4]))]
    assert page.data()["serials"] == {"level": 1, "unit": 2, "moved": 3, "drag": 0}
    page.send(event)
    page.send({"level": change(0, 1)})
    assert len(page.calls) == 3, "what was seen already is not new"


def test_a_drag_is_answered_with_its_serial_number(page):
    page.send({"drag": change([1, 2, 7], 4)})
    assert page.calls == [("drag", [0.1, 0.2, 0.7])]
    assert page.data()["answer"] == {"serial": 4, "expected": [1.0, 2.0, 3.0]}
    page.answer = [math.inf, None, 3.0]
    page.send({"drag": change([2, 2, 6], 5)})
    assert page.data()["answer"] == {"serial": 5, "expected": [None, None, 3.0]}
    page.send({"drag": change([1, 2, 7], 4)})
    assert page.data()["answer"]["serial"] == 5, "an older drag is stale"
    page.send({"moved": change([1, 2, 7], 6)})
    assert page.data()["answer"] is None
    page.send({"drag": change([1, 2, 7], 5)})
    assert page.data()["answer"] is None, "a drag that ended is stale"


@pytest.mark.parametrize("answer", [None, [], [1.0], [1.0] * 4, SettingError("no such split")])
def test_a_drag_without_a_usable_answer_is_answered_all_the_same(page, answer):
    page.answer = answer
    page.send({"drag": change([1, 2, 7])})
    assert page.data()["answer"] == {"serial": 1, "expected": None}


def test_a_mistake_in_the_answer_is_not_hidden(page):
    page.answer = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        page.send({"drag": change([1, 2, 7])})


HOSTILE_SHARES = [None, "1", {}, {"0": 1}, [], [1], [1, 2], [1, 2, 7, 0], [1, 2, "7"], [1, 2, None], [1, 2, [7]], [-1, 2, 7], [0, 0, 0]]
HOSTILE_SHARES += [[math.nan, 2, 7], [math.inf, 2, 7], [True, 2, 7], [1, 3, 6], [1, 0, 9], [1e308, 1e308, 1e308], [10**400, 2, 7]]


@pytest.mark.parametrize("shares", HOSTILE_SHARES, ids=lambda shares: repr(shares)[:30])
@pytest.mark.parametrize("kind", ["moved", "drag"])
def test_hostile_shares_reach_no_callback(page, shares, kind):
    with pytest.raises(BudgetError):
        check_shares(shares, PARTS)
    page.send({kind: change(shares)})
    assert page.calls == []
    assert page.memory["serials"][kind] == 1, "the browser goes back to what the page shows"


@pytest.mark.parametrize("level", [-1, 2, 3, 0.0, 1.5, math.nan, "0", None, True, [0], {}, 10**30])
def test_hostile_levels_reach_no_callback(page, level):
    page.send({"level": change(level)})
    assert page.calls == []


@pytest.mark.parametrize("unit", [0, 1, "true", None, [], {}])
def test_hostile_units_reach_no_callback(page, unit):
    page.send({"unit": change(unit)})
    assert page.calls == []


@pytest.mark.parametrize("serial", [None, "2", 1.0, True, -1, 0, math.inf, 2**53, [], {}])
def test_hostile_serial_numbers_change_nothing(page, serial):
    before = page.data()
    page.send({kind: change(value, serial) for kind, value in zip(KINDS, (1, True, [1, 2, 7], [1, 2, 7]), strict=True)})
    assert page.calls == []
    assert page.data() == before


@pytest.mark.parametrize("event", [None, "level", 1, [], [["level", 1]], {}, {"level": 1}, {"level": [1, 1]}, {1: 2}, {"other": change(1)}])
def test_hostile_messages_change_nothing(page, event):
    before = page.data()
    page.send(event)
    assert page.calls == []
    assert page.data() == before
