"""Shares of a budget, which add up to 1: check them, and change one by hand while others are locked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpviz.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Sequence


def normalise_shares(values: object, count: int) -> list[float]:
    """Check numbers and scale them to shares that add up to 1.

    Args:
        values: untrusted input, such as a browser may send.
        count: the required number of shares.

    Returns:
        `count` shares in proportion to `values`.

    Raises:
        BudgetError: `values` is not a list of `count` finite numbers of at least 0, or all of them are 0.

    >>> normalise_shares([1, 3], 2)
    [0.25, 0.75]
    """
    if not isinstance(values, list | tuple) or len(values) != count:
        raise BudgetError(f"There must be {count} shares, in a list.")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise BudgetError("Shares must be numbers.")
    largest = max(values, default=0)
    if not all(0 <= value < math.inf for value in values) or largest <= 0:
        raise BudgetError("Shares must be finite, at least 0, and one of them greater than 0.")
    scaled = [value / largest for value in values]
    total = sum(scaled)
    return [share / total for share in scaled]


def redistribute(shares: Sequence[float], locked: Sequence[bool], index: int, value: float) -> list[float]:
    """Set one share, and scale the other unlocked shares in proportion (evenly if all are 0), so that the total stays 1.

    Args:
        shares: (n,) at least 0; scaled to a total of 1 first.
        locked: (n,) True for shares that must not change.
        index: index of the share to set.
        value: its new value; clipped to the range from 0 to 1 minus the locked shares.

    Returns:
        (n,) shares with a total of 1; unchanged if the share to set is locked, or all other shares are.

    Raises:
        BudgetError: `shares` are not valid (see `normalise_shares`), or `value` is not a finite number.

    >>> redistribute([0.2, 0.2, 0.6], [False, False, False], 0, 0.6)
    [0.6, 0.1, 0.3]
    """
    parts = normalise_shares(list(shares), len(locked))
    if not math.isfinite(value):
        raise BudgetError("A share must be a finite number.")
    other_indexes = [other_index for other_index, is_locked in enumerate(locked) if not is_locked and other_index != index]
    if locked[index] or not other_indexes:
        return parts
    others_total = sum(parts[other_index] for other_index in other_indexes)
    free = others_total + parts[index]
    remaining = free - min(max(value, 0.0), free)
    for other_index in other_indexes:
        parts[other_index] = remaining * (parts[other_index] / others_total if others_total > 0 else 1 / len(other_indexes))
    parts[index] = free - remaining
    return parts
