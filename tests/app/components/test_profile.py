"""The Python half of the strip of slots: what it takes from a browser."""

import pytest

from dpviz.app.components.profile import Bar, receive

PLACES = (("a", 0, 1), ("b", 2, 2), ("c", 3, 5))
BARS = [
    Bar(name=name, first=first, last=last, count=1.0, low=0.0, high=2.0) for name, first, last in (("a", 0, 1), ("b", 2, 2), ("c", 3, 5))
]


def taken(*events):
    """What the strip is asked for by some messages."""
    memory, slots = {"serial": 0}, []
    for event in events:
        receive(event, memory, BARS, slots.append)
    return slots


def test_a_message_is_taken_once_and_an_older_one_never():
    first, second = {"serial": 1, "slots": [0, 2]}, {"serial": 2, "slots": None}
    assert taken(first, first, second, first) == [(0, 2), None]


def test_all_slots_are_no_choice():
    assert taken({"serial": 1, "slots": [0, 5]}, {"serial": 2, "slots": [2, 5]}) == [None, (2, 5)]


@pytest.mark.parametrize("serial", ["1", True, 0, 2**53, None])
def test_a_message_needs_a_serial_number(serial):
    assert taken({"serial": serial, "slots": None}) == []


@pytest.mark.parametrize(
    "slots",
    [[1, 2], [0, 0], [2, 1], [0], [0, 1, 2], [0.0, 1.0], ["0", "1"], [True, 5], {"a": 1}, 3, [-1, 9]],
)
def test_slots_are_the_first_and_the_last_one_of_bars(slots):
    assert taken({"serial": 1, "slots": slots}, None, "x", {}) == []
