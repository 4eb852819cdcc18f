"""The Python half of the rail: what it sends to a browser, what it takes from one, and what it calls."""

import json
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from dpviz.app.components.rail import KINDS, RailCalls, RailLevel, RailPart, check_shares, message, new_memory, read_epsilon, receive
from dpviz.errors import BudgetError, SettingError
from dpviz.evaluation.level_worth import LevelWorth
from dpviz.publishing.errors_over_epsilon import ErrorsOverEpsilon


def level(name, error, *, base=0, wrong=0, **parts):
    worth = LevelWorth(average=800 / 4 ** int(name), error=error, base=base, wrong=wrong, there=9, missed=1)
    return RailLevel(name=name, subject=f"A square {name}", about=f"{4 ** int(name)} squares", worth=worth, **parts)


CURVE = ErrorsOverEpsilon(epsilon=np.array([0.1, 1]), error=np.array([0.3, 0.03]), false_share=np.array([0.5, np.nan]))
LEVELS = [level("0", 0.01), level("1", 0.03, base=3, wrong=1, curve=CURVE), level("2", 0.12, finer=True)]
PARTS = [
    RailPart(label="medians", share=3, structure=True),
    RailPart(label="zoom 0", share=2, level=0, locked=True),
    RailPart(label="zoom 1", share=5, level=1),
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
    made.listeners = RailCalls(
        on_epsilon=note("epsilon"), on_level=note("level"), on_false=note("false"), on_shares=note("moved"), on_drag=drag
    )
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
        "name": "1", "subject": "A square 1", "about": "4 squares", "finer": False, "closed": "", "average": 200, "error": 0.03,
        "base": 3, "wrong": 1, "there": 9, "missed": 1, "curve": {"at": [0.1, 1], "error": [0.3, 0.03], "false": [0.5, None]},
    }  # fmt: skip
    assert (data["editable"], data["live"], data["answer"]) == (True, True, None)


def test_without_callbacks_nothing_can_be_dragged_or_tried(page):
    calls = RailCalls(on_epsilon=print, on_level=print)
    data = message(LEVELS, PARTS, page.memory, calls)
    assert (data["editable"], data["live"], data["maps"]) == (False, False, False)
    receive({"moved": change([1, 2, 7]), "drag": change([1, 2, 7], 2), "false": change(value=True)}, page.memory, LEVELS, PARTS, calls)
    assert page.memory["answer"] == {"serial": 2, "expected": None}


def test_numbers_that_are_not_finite_are_not_sent(page):
    data = message([level("0", math.nan), level("1", math.inf)], [], page.memory, page.listeners)
    assert [each["error"] for each in data["levels"]] == [None, None]
    assert data["parts"] == []


def test_parts_whose_level_has_no_column_get_one_of_their_own(page):
    parts = [RailPart(label=str(level), share=1, level=level) for level in (1, 1, 3, -1)]
    assert [part["level"] for part in message(LEVELS, parts, page.memory, page.listeners)["parts"]] == [1, None, None, None]


@pytest.mark.parametrize("shares", [[0, 0, 0], [1, -1, 1], [1, math.nan, 1], [1, math.inf, 1]])
def test_bad_shares_of_the_page_are_refused(page, shares):
    with pytest.raises(BudgetError):
        message(LEVELS, [RailPart(label="", share=share) for share in shares], page.memory, page.listeners)


def test_changes_are_passed_on_once(page):
    event = {"level": change(1), "false": change(value=True, serial=2), "moved": change([4, 2, 4], 3), "epsilon": change("0.2", 4)}
    page.send(event)
    assert page.calls == [("level", 1), ("false", True), ("epsilon", Fraction(1, 5)), ("moved", pytest.approx([0.4, 0.2, 0.4]))]
    assert page.data()["serials"] == {"level": 1, "false": 2, "epsilon": 4, "moved": 3, "drag": 0}
    page.send(event)
    page.send({"level": change(0, 1)})
    assert len(page.calls) == 4, "what was seen already is not new"


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


@pytest.mark.parametrize("index", [-1, 2, 3, 0.0, 1.5, math.nan, "0", None, True, [0], {}, 10**30])
def test_hostile_levels_reach_no_callback(page, index):
    page.send({"level": change(index)})
    assert page.calls == []


@pytest.mark.parametrize("value", [0, 1, "true", None, [], {}])
def test_hostile_answers_on_false_positives_reach_no_callback(page, value):
    page.send({"false": change(value)})
    assert page.calls == []


HOSTILE_EPSILONS = [0.1, 1, None, True, [], {}, "", "0", "0.0", "-1", "1e-1", "0.123", "0.0101", "11", "99", "0.009", "1/3", " 0.1", "0,1"]
HOSTILE_EPSILONS += ["nan", "inf", "0" * 9, "00.1", "1.", "\u0661", "0.1\n"]


@pytest.mark.parametrize("text", HOSTILE_EPSILONS, ids=repr)
def test_hostile_epsilons_reach_no_callback(page, text):
    assert read_epsilon(text) is None
    page.send({"epsilon": change(text)})
    assert page.calls == []


@pytest.mark.parametrize(("text", "epsilon"), [("0.01", "1/100"), ("0.1", "1/10"), ("0.63", "63/100"), ("2.5", "5/2"), ("10", "10")])
def test_epsilons_of_two_digits_are_taken_exactly(page, text, epsilon):
    page.send({"epsilon": change(text)})
    assert page.calls == [("epsilon", Fraction(epsilon))]


@pytest.mark.parametrize("serial", [None, "2", 1.0, True, -1, 0, math.inf, 2**53, [], {}])
def test_hostile_serial_numbers_change_nothing(page, serial):
    before = page.data()
    page.send({kind: change(value, serial) for kind, value in zip(KINDS, (1, True, "0.1", [1, 2, 7], [1, 2, 7]), strict=True)})
    assert page.calls == []
    assert page.data() == before


@pytest.mark.parametrize("event", [None, "level", 1, [], [["level", 1]], {}, {"level": 1}, {"level": [1, 1]}, {1: 2}, {"other": change(1)}])
def test_hostile_messages_change_nothing(page, event):
    before = page.data()
    page.send(event)
    assert page.calls == []
    assert page.data() == before
