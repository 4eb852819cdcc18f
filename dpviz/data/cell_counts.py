"""Records per place: what a counting pass gives, and the pass over rows in memory that all others agree with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.data.bounding import Bound, People, bounded
from dpviz.data.cells import BAD, OUTSIDE, most_per_cell, total_of

_DENSE_CELLS = 2**22


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts:
    """Records per place. PRIVATE.

    Attributes:
        places: (k,) those with records, ascending, none twice.
        counts: (k,) records in each, at least 1, cut to `most_per_cell`.
        outside: records of good rows outside the domain or the regions.
        bad: records of rows with a bad cell; one for a row whose count is bad or that cannot be cut into cells.
        over: records of good rows inside that are not in `counts`: the bound left them out, or their place holds too many.
        beyond: those of them that their place holds too many.
    """

    places: Integers = field(repr=False)
    counts: Integers = field(repr=False)
    outside: int = field(default=0, repr=False)
    bad: int = field(default=0, repr=False)
    over: int = field(default=0, repr=False)
    beyond: int = field(default=0, repr=False)


def count_rows(places: Integers, weight: Integers | None, owners: People | None, bound: Bound | None, size: int) -> CellCounts:
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
        bad, here = int(np.count_nonzero(places == BAD)), int(np.count_nonzero(inside))
        beyond = here - total_of(counts)
        return CellCounts(places=some, counts=counts, bad=bad, outside=len(places) - here - bad, over=beyond, beyond=beyond)
    amount = np.ones(len(places), np.int64) if weight is None else np.abs(weight)
    faulty = _faulty(places, weight, owners)
    inside = ~faulty & (places >= 0)
    if owners is None or bound is None:
        kept, records = places[inside], amount[inside]
    else:
        held = bounded(owners, np.where(inside, places, OUTSIDE), amount, bound)
        kept, records = held.places, held.records
    some, counts = _summed(kept, records, size)
    bad, outside = total_of(amount[faulty]), total_of(amount[~faulty & (places == OUTSIDE)])
    left = total_of(counts)
    over, beyond = total_of(amount[inside]) - left, total_of(records) - left
    return CellCounts(places=some, counts=counts, outside=outside, bad=bad, over=over, beyond=beyond)


def _faulty(places: Integers, weight: Integers | None, owners: People | None) -> NDArray[np.bool_]:
    """(n,) whether a row has a bad cell."""
    bad: NDArray[np.bool_] = places == BAD
    if weight is not None:
        bad |= weight < 0
    if owners is not None:
        bad |= owners.codes < 0
    return bad


def _summed(places: Integers, weight: Integers | None, size: int) -> tuple[Integers, Integers]:
    """Distinct places with records, ascending, and the records of each, cut; float64 holds every total up to 2**53."""
    most = most_per_cell(size)
    if size <= max(_DENSE_CELLS, 4 * len(places)):
        total = np.minimum(np.bincount(places, weights=weight, minlength=size), most).astype(np.int64, copy=False)
        some = np.flatnonzero(total)
        return some, total[some]
    if weight is None:
        some, counts = np.unique(places, return_counts=True)
        return some, np.minimum(counts, most).astype(np.int64)
    some, where = np.unique(places, return_inverse=True)
    counts = np.minimum(np.bincount(where, weights=weight, minlength=len(some)), most).astype(np.int64)
    keep = counts > 0
    return some[keep], counts[keep]
