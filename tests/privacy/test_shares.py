"""Shares moved by hand: the total stays one, locked parts stay put, the others keep their proportions."""

import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpviz.errors import BudgetError
from dpviz.privacy.shares import normalise_shares, redistribute

SHARE = st.floats(0, 1)


@st.composite
def moves(draw):
    count = draw(st.integers(1, 25))
    shares = draw(st.lists(SHARE, min_size=count, max_size=count))
    assume(max(shares) > 0)
    locked = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return shares, locked, draw(st.integers(0, count - 1)), draw(st.floats(-1, 2))


@settings(max_examples=200)
@given(moves())
@example(([5e-324, 1.0], [False, False], 1, 0.0))
@example(([1.0, 0.0, 0.0], [False, False, False], 0, 0.5))
def test_the_total_stays_one_locked_parts_stay_the_value_is_met_and_the_others_keep_their_proportions(move):
    shares, locked, place, value = move
    before, after = normalise_shares(shares, len(shares)), redistribute(shares, locked, place, value)
    assert sum(after) == pytest.approx(1, abs=1e-12)
    assert min(after) >= 0
    assert all(new == old for new, old, fixed in zip(after, before, locked, strict=True) if fixed)
    if locked[place] or sum(not fixed for fixed in locked) < 2:
        assert after == before
        return
    room = 1 - sum(part for part, fixed in zip(before, locked, strict=True) if fixed)
    assert after[place] == pytest.approx(min(max(value, 0), max(room, 0)), abs=1e-12)
    others = [k for k, fixed in enumerate(locked) if not fixed and k != place]
    if sum(before[k] for k in others) > 1e-300:
        ratio = sum(after[k] for k in others) / sum(before[k] for k in others)
        assert all(after[k] == pytest.approx(ratio * before[k], rel=1e-9, abs=1e-12) for k in others)


def test_parts_of_nothing_grow_evenly_and_huge_shares_do_not_overflow():
    assert redistribute([1, 0, 0], [False] * 3, 0, 0.5) == [0.5, 0.25, 0.25]
    assert normalise_shares([1e308, 1e308], 2) == normalise_shares([5e-324, 5e-324], 2) == [0.5, 0.5]


@pytest.mark.parametrize(
    "wrong", [None, "ab", {}, [1], [1, 2, 3], [1, -1], [0, 0], [1, math.nan], [1, math.inf], [1, "1"], [1, True], [1, None]]
)
def test_what_is_no_list_of_shares_is_refused(wrong):
    with pytest.raises(BudgetError):
        normalise_shares(wrong, 2)


def test_value_must_be_finite():
    for value in (math.nan, math.inf):
        with pytest.raises(BudgetError, match="finite"):
            redistribute([1, 1], [False, False], 0, value)
