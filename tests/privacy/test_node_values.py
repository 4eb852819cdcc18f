"""The values of many nodes in one call: what is refused, what is added up, and batches that lose nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import InputError, SettingError
from dpviz.privacy import node_values
from dpviz.privacy.node_values import LARGEST_VALUE, NodeValues, move_inside
from tests.nodes import packed

FITTING = {"value": [3, 3, 5, 0, 6], "count": [1, 2, 1, 4, 1], "start": [0, 3, 3, 5], "low": [2, 0, 0], "high": [6, 2, 7]}
WORDS = {
    "value and count need one length, and start one entry more than low and high.",
    "start must rise from 0 to the number of values.",
    "A node needs at least two possible values, from 0 to 2**48.",
    "The values of a node must be in order and inside it.",
}
"""None of them tells a private number."""
several = settings(max_examples=30, deadline=None, derandomize=True)
histograms = st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=6).map(tuple), max_size=6)


def made(**changes) -> NodeValues:
    return NodeValues(**{name: np.array(values) for name, values in (FITTING | changes).items()})


def test_a_node_may_be_empty_or_hold_a_value_twice_and_no_value_is_in_its_repr():
    found = made()
    assert (found.records.tolist(), found.middle.tolist(), found.first_entries().tolist()) == ([4, 0, 5], [4, 1, 3], [0, 2, 3, 4])
    assert repr(found) == "NodeValues(3 nodes)"


MISFITS = {
    "value": [[3, 3, 5, 0], [3, 2, 5, 0, 6], [3, 3, 5, 6, 0], [3, 3, 5, 0, 7]],
    "count": [[1]],
    "start": [[0, 3, 5], [1, 3, 3, 5], [0, 3, 3, 4], [0, 3, 2, 5]],
    "low": [[2, 0], [-1, 0, 0], [2, 1, 0], [4, 0, 0], [2, 0, 1]],
    "high": [[6, 2], [6, 2, LARGEST_VALUE + 1], [5, 2, 7]],
}


@pytest.mark.parametrize("changes", [{name: values} for name, wrong in MISFITS.items() for values in wrong], ids=str)
def test_arrays_that_do_not_fit_values_out_of_order_or_outside_and_nodes_without_a_line_are_refused(changes):
    with pytest.raises(InputError) as refusal:
        made(**changes)
    assert str(refusal.value) in WORDS


def test_a_fall_hidden_among_falls_between_nodes_is_found():
    """Falls are counted, not looked at one by one: as many between nodes, none of them inside."""
    with pytest.raises(InputError, match="in order"):
        made(value=[3, 3, 5, 6, 5])
    assert made(value=[3, 3, 3, 5, 6]).first_entries().tolist() == [0, 3, 4]


def test_the_largest_values_and_32_bits_are_taken():
    wide = made(value=[LARGEST_VALUE - 1], count=[2**53], start=[0, 1], low=[0], high=[LARGEST_VALUE])
    assert wide.records.tolist() == [2**53]
    assert wide.middle.tolist() == [2**47]
    narrow = packed([(1, 0, 1)], low=2**31 - 4, dtype=np.int32)
    assert (narrow.value.dtype, narrow.high.dtype) == (np.int32, np.int32)
    assert narrow.middle.tolist() == [(2**32 - 5) // 2]


def test_one_node_may_be_made_of_values_in_any_order_or_none():
    found = NodeValues.of_one([5, 2, 5, 3, 5], 2, 9)
    assert (found.value.tolist(), found.count.tolist(), found.start.tolist()) == ([2, 3, 5], [1, 1, 3], [0, 3])
    assert NodeValues.of_one([], 0, 2).records.tolist() == [0]
    with pytest.raises(InputError, match="inside it"):
        NodeValues.of_one([9], 2, 9)


@several
@given(histograms, st.integers(0, 9))
def test_records_and_heads_are_those_of_each_node_alone(found, low):
    together = packed(found, low)
    assert together.records.tolist() == [sum(histogram) for histogram in found]
    assert together.first_entries().tolist() == list(range(sum(count > 0 for histogram in found for count in histogram)))
    assert together.middle.tolist() == [(2 * low + len(histogram)) // 2 for histogram in found]


@several
@given(histograms, st.integers(1, 12))
def test_batches_are_the_nodes_in_order_with_no_more_values_than_requested_unless_one_node_has_more(found, most):
    whole = packed(found)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(node_values, "_VALUES_AT_ONCE", most)
        parts = list(whole.batches())
    assert sum(map(len, parts)) == len(found)
    assert all(len(part.value) <= most or len(part) == 1 for part in parts)
    for name in ("value", "count", "low", "high"):
        joined = np.concatenate([np.zeros(0, int), *(getattr(part, name) for part in parts)])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    sizes = np.concatenate([np.zeros(0, int), *(np.diff(part.start) for part in parts)])
    np.testing.assert_array_equal(sizes, np.diff(whole.start))


def test_lines_outside_come_to_the_nearest_line_or_the_middle():
    found = packed([(0,) * 10] * 6, low=20)
    lines = np.array([-(2**60), 20, 21, 29, 30, 2**60])
    assert move_inside(found, lines, "nearest").tolist() == [21, 21, 21, 29, 29, 29]
    assert move_inside(found, lines, "middle").tolist() == [25, 25, 21, 29, 25, 25]
    with pytest.raises(SettingError, match="nearest, middle"):
        move_inside(found, lines, "beyond")
