"""Shares of a budget that always add up to one: checked, and moved by hand with some of them locked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpviz.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Sequence


def checked_shares(values: object, count: int) -> list[float]:
    """`count` shares in proportion to `values`, adding up to 1; `values` may be anything that a browser sent.

    >>> checked_shares([1, 3], 2)
    [0.25, 0.75]

    Raises:
        BudgetError: not a list of `count` finite numbers of at least 0, or all of them are 0.
    """
    if not isinstance(values, list | tuple) or len(values) != count:
        raise BudgetError(f"There must be {count} shares, in a list.")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise BudgetError("Shares must be numbers.")
    largest = max(values, default=0)
    if not all(0 <= value < math.inf for value in values) or largest <= 0:
        raise BudgetError("Shares must be finite, at least 0, and one of them greater than 0.")
    parts = [value / largest for value in values]
    whole = sum(parts)
    return [part / whole for part in parts]


def redistribute(shares: Sequence[float], locked: Sequence[bool], place: int, value: float) -> list[float]:
    """Set one share; the other unlocked ones give or take in proportion to their size (evenly if all are 0).

    >>> redistribute([0.2, 0.2, 0.6], [False, False, False], 0, 0.6)
    [0.6, 0.1, 0.3]

    Args:
        shares: (n,) at least 0; brought to a total of 1.
        locked: (n,) parts that do not change.
        place: the part to set.
        value: its new share, clipped to between 0 and what the locked parts leave.

    Returns:
        (n,) shares with a total of 1; as they were if `place` or all other parts are locked.

    Raises:
        BudgetError: `shares` as for `checked_shares`, or `value` is no finite number.
    """
    parts = checked_shares(list(shares), len(locked))
    if not math.isfinite(value):
        raise BudgetError("A share must be a finite number.")
    others = [other for other, fixed in enumerate(locked) if not fixed and other != place]
    if locked[place] or not others:
        return parts
    held = sum(parts[other] for other in others)
    free = held + parts[place]
    rest = free - min(max(value, 0.0), free)
    for other in others:
        parts[other] = rest * (parts[other] / held if held > 0 else 1 / len(others))
    parts[place] = free - rest
    return parts
