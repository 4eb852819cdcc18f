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
    if weight is None and owners is None:
        inside = places >= 0
        some, counts = _summed(places if inside.all() else places[inside], None, size)
        bad = int(np.count_nonzero(places == BAD))
        return Counted(places=some, counts=counts, bad=bad, outside=len(places) - int(np.count_nonzero(inside)) - bad)
    amount = np.ones(len(places), np.int64) if weight is None else np.abs(weight)
    faulty = _faulty(places, weight, owners)
    inside = ~faulty & (places >= 0)
    if owners is None or bound is None:
        kept, records = places[inside], amount[inside]
    else:
        held = bounded(owners, np.where(inside, places, OUTSIDE), amount, bound)
        kept, records = held.places, held.records
    some, counts = _summed(kept, records, size)
    bad, outside = int(amount[faulty].sum()), int(amount[~faulty & (places == OUTSIDE)].sum())
    over = int(amount.sum() - counts.sum()) - bad - outside
    return Counted(places=some, counts=counts, outside=outside, bad=bad, over=over)


def _faulty(places: Integers, weight: Integers | None, owners: People | None) -> NDArray[np.bool_]:
    """(n,) whether a row has a bad cell."""
    bad: NDArray[np.bool_] = places == BAD
    if weight is not None:
        bad |= weight < 0
    if owners is not None:
        bad |= owners.codes < 0
    return bad


def _summed(places: Integers, weight: Integers | None, size: int) -> tuple[Integers, Integers]:
    """Distinct places with records, ascending, and the records of each; float64 holds every total up to 2**53."""
    if size <= max(_DENSE_PLACES, 4 * len(places)):
        total = np.bincount(places, weights=weight, minlength=size).astype(np.int64, copy=False)
        some = np.flatnonzero(total)
        return some, total[some]
    if weight is None:
        some, counts = np.unique(places, return_counts=True)
        return some, counts.astype(np.int64)
    some, where = np.unique(places, return_inverse=True)
    counts = np.bincount(where, weights=weight, minlength=len(some)).astype(np.int64)
    keep = counts > 0
    return some[keep], counts[keep]
