"""Records per place: what a counting pass gives, and the pass over rows in memory that all others agree with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpviz.data.bounding import Bound, People, bounded
from dpviz.data.places import BAD, OUTSIDE

Integers = NDArray[np.int64]

_DENSE_PLACES = 2**22


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """Records per place. PRIVATE.

    Attributes:
        places: (k,) those with records, ascending, none twice.
        counts: (k,) records in each, at least 1.
        outside: records of good rows outside the domain or the regions.
        bad: records of rows with a bad cell; one for a row whose count is bad or that cannot be cut into cells.
        over: records that the bound left out, of good rows inside.
    """

    places: Integers = field(repr=False)
    counts: Integers = field(repr=False)
    outside: int = field(default=0, repr=False)
    bad: int = field(default=0, repr=False)
    over: int = field(default=0, repr=False)


def counted_rows(places: Integers, weight: Integers | None, owners: People | None, bound: Bound | None, size: int) -> Counted:
    """Bound each person's records and add up those of each place.

    Args:
        places: (n,) of each row, OUTSIDE or BAD.
        weight: (n,) records of each row, -1 where the count is bad; 1 each if None.
        owners: who each row belongs to; None where the unit is one record.
        bound: of each person's records; None without `owners`.
        size: how many places there are.
    """
    if weight is None and owners is None and (not len(places) or places.min() >= 0):
        return Counted(**_summed(places, None, size))
    bad = places == BAD
    amount = np.ones(len(places), np.int64) if weight is None else np.abs(weight)
    if weight is not None:
        bad |= weight < 0
    if owners is not None:
        bad |= owners.codes < 0
    inside = ~bad & (places >= 0)
    left = {"bad": int(amount[bad].sum()), "outside": int(amount[~bad & (places == OUTSIDE)].sum())}
    if owners is None or bound is None:
        return Counted(**_summed(places[inside], None if weight is None else weight[inside], size), **left)
    held = bounded(owners, np.where(inside, places, OUTSIDE), amount, bound)
    return Counted(**_summed(held.places, held.records, size), **left, over=int(amount[inside].sum() - held.records.sum()))


def _summed(places: Integers, weight: Integers | None, size: int) -> dict[str, Integers]:
    """Distinct places, ascending, and the records of each; float64 holds every total up to 2**53."""
    if size <= max(_DENSE_PLACES, 4 * len(places)):
        total = np.bincount(places, weights=weight, minlength=size).astype(np.int64, copy=False)
        some = np.flatnonzero(total)
        return {"places": some, "counts": total[some]}
    if weight is None:
        some, counts = np.unique(places, return_counts=True)
        return {"places": some, "counts": counts.astype(np.int64)}
    some, where = np.unique(places, return_inverse=True)
    counts = np.bincount(where, weights=weight, minlength=len(some)).astype(np.int64)
    keep = counts > 0
    return {"places": some[keep], "counts": counts[keep]}
