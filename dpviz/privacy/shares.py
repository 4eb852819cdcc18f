"""Shares of a budget that add up to one: checked, and changed by hand while some of them are locked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpviz.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Sequence


def normalise_shares(values: object, count: int) -> list[float]:
    """Check numbers and scale them to shares that add up to 1.

    Args:
        values: untrusted: anything that a browser may have sent.
        count: how many shares there must be.

    Returns:
        `count` shares in proportion to `values`.

    Raises:
        BudgetError: not a list of `count` finite numbers of at least 0, or all of them are 0.

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
    parts = [value / largest for value in values]
    whole = sum(parts)
    return [part / whole for part in parts]


def redistribute(shares: Sequence[float], locked: Sequence[bool], place: int, value: float) -> list[float]:
    """Set one share and scale the other unlocked ones, in proportion to their size (evenly if all are 0), so that the total stays 1.

    Args:
        shares: (n,) at least 0; scaled to a total of 1 first.
        locked: (n,) True for shares that must not change.
        place: index of the share to set.
        value: its new value; clipped to the range from 0 to 1 minus the locked shares.

    Returns:
        (n,) shares with a total of 1; unchanged if the share to set, or all others, are locked.

    Raises:
        BudgetError: `shares` as for `normalise_shares`, or `value` is not a finite number.

    >>> redistribute([0.2, 0.2, 0.6], [False, False, False], 0, 0.6)
    [0.6, 0.1, 0.3]
    """
    parts = normalise_shares(list(shares), len(locked))
    if not math.isfinite(value):
        raise BudgetError("A share must be a finite number.")
    others = [other for other, is_locked in enumerate(locked) if not is_locked and other != place]
    if locked[place] or not others:
        return parts
    others_total = sum(parts[other] for other in others)
    free = others_total + parts[place]
    remaining = free - min(max(value, 0.0), free)
    for other in others:
        parts[other] = remaining * (parts[other] / others_total if others_total > 0 else 1 / len(others))
    parts[place] = free - remaining
    return parts
