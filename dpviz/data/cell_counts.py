"""Records per cell, as every engine returns them, and the count of rows in memory, which gives the same result as the other engines."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.data.bounding import Bound, People, bound_records
from dpviz.data.cells import BAD, OUTSIDE, most_per_cell, total_of

_DENSE_CELLS = 2**22


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts:
    """Records per cell. PRIVATE.

    Attributes:
        cells: (k,) cells with records, ascending, none twice.
        counts: (k,) records in each, at least 1, cut to `most_per_cell`.
        outside: records of good rows outside the domain or the regions.
        bad: records of rows with a missing or malformed entry; one for a row whose count is bad or that cannot be cut into cells.
        over: records of good rows inside that are not in `counts`: the bound left them out, or their cell holds too many.
        beyond: records among `over` that were left out because their cell holds too many.
    """

    cells: Integers = field(repr=False)
    counts: Integers = field(repr=False)
    outside: int = field(default=0, repr=False)
    bad: int = field(default=0, repr=False)
    over: int = field(default=0, repr=False)
    beyond: int = field(default=0, repr=False)


def count_rows(cells: Integers, weight: Integers | None, owners: People | None, bound: Bound | None, size: int) -> CellCounts:
    """Bound each person's records and add up those of each cell.

    Args:
        cells: (n,) cell of each row, OUTSIDE or BAD.
        weight: (n,) records of each row, -1 where the count is bad; 1 each if None.
        owners: who each row belongs to; None where the unit is one record.
        bound: of each person's records; None without `owners`.
        size: how many cells there are.
    """
    if weight is None and owners is None:
        inside = cells >= 0
        some, counts = _sum_records(cells if inside.all() else cells[inside], None, size)
        bad, here = int(np.count_nonzero(cells == BAD)), int(np.count_nonzero(inside))
        beyond = here - total_of(counts)
        return CellCounts(cells=some, counts=counts, bad=bad, outside=len(cells) - here - bad, over=beyond, beyond=beyond)
    amount = np.ones(len(cells), np.int64) if weight is None else np.abs(weight)
    faulty = _find_faulty(cells, weight, owners)
    inside = ~faulty & (cells >= 0)
    if owners is None or bound is None:
        kept, records = cells[inside], amount[inside]
    else:
        held = bound_records(owners, np.where(inside, cells, OUTSIDE), amount, bound)
        kept, records = held.cells, held.records
    some, counts = _sum_records(kept, records, size)
    bad, outside = total_of(amount[faulty]), total_of(amount[~faulty & (cells == OUTSIDE)])
    left = total_of(counts)
    over, beyond = total_of(amount[inside]) - left, total_of(records) - left
    return CellCounts(cells=some, counts=counts, outside=outside, bad=bad, over=over, beyond=beyond)


def _find_faulty(cells: Integers, weight: Integers | None, owners: People | None) -> NDArray[np.bool_]:
    """Return (n,) whether a row has a missing or malformed entry."""
    bad: NDArray[np.bool_] = cells == BAD
    if weight is not None:
        bad |= weight < 0
    if owners is not None:
        bad |= owners.codes < 0
    return bad


def _sum_records(cells: Integers, weight: Integers | None, size: int) -> tuple[Integers, Integers]:
    """Return cells with records, ascending, and the records of each, cut to `most_per_cell`. float64 is exact for totals up to 2**53."""
    most = most_per_cell(size)
    if size <= max(_DENSE_CELLS, 4 * len(cells)):
        total = np.minimum(np.bincount(cells, weights=weight, minlength=size), most).astype(np.int64, copy=False)
        some = np.flatnonzero(total)
        return some, total[some]
    if weight is None:
        some, counts = np.unique(cells, return_counts=True)
        return some, np.minimum(counts, most).astype(np.int64)
    some, where = np.unique(cells, return_inverse=True)
    counts = np.minimum(np.bincount(where, weights=weight, minlength=len(some)), most).astype(np.int64)
    keep = counts > 0
    return some[keep], counts[keep]
