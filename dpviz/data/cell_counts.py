"""The records per cell that every engine returns, and the counting of rows in memory, with the same result as the other engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.bounding import Bound, People, bound_of, bound_records, check_people, refuse_bound_without_persons
from dpviz.data.cells import (
    BAD,
    MOST_RECORDS,
    OUTSIDE,
    REMEDY,
    check_bad_rows,
    check_whole,
    coordinates,
    most_per_cell,
    total_of,
    whole_counts,
)
from dpviz.data.fingerprints import RowSum, sum_rows
from dpviz.errors import InputError

_DENSE_CELLS = 2**22
_LEAST_BUFFER = 2**20
_NOT_FINITE = f"A coordinate is missing, NaN or infinite. {REMEDY}"


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts:
    """Records per cell. PRIVATE.

    Attributes:
        cells: (k,) cells with records, ascending, none twice.
        counts: (k,) records in each, at least 1, cut to `most_per_cell`.
        outside: records of good rows outside the domain or the regions.
        bad: records of rows with a missing or malformed entry. A row whose count is bad, or that cannot be cut into cells, is one record.
        over: records of good rows inside that are not in `counts`, because of the bound or because their cell holds too many.
        beyond: the part of `over` that was left out because a cell holds too many.
        rows: of the rows of persons that were counted in memory, by which the ledger recognises them; None for others.
    """

    cells: Integers = field(repr=False)
    counts: Integers = field(repr=False)
    outside: int = field(default=0, repr=False)
    bad: int = field(default=0, repr=False)
    over: int = field(default=0, repr=False)
    beyond: int = field(default=0, repr=False)
    rows: RowSum | None = field(default=None, repr=False)


def count_coordinates(
    points: tuple[ArrayLike, ArrayLike],
    find: Callable[[Floats, Floats], Integers],
    size: int,
    *,
    count: ArrayLike | None,
    person: ArrayLike | People | None,
    contributions: int,
    distinct: bool,
    bad_rows: str,
    key: bytes | None,
    own: tuple[Floats, Floats] | None = None,
) -> tuple[CellCounts, Bound | None]:
    """Check coordinates and what belongs to them, bound each person's records, and count the records of each cell.

    Args:
        points: (n,) x and (n,) y.
        find: returns the (n,) cells of (n,) x and (n,) y, OUTSIDE or BAD included.
        size: number of cells.
        count: (n,) records that each row stands for; None if each row is one record.
        person: (n,) who a record belongs to; None where the unit is one record.
        contributions: m >= 1.
        distinct: whether each person counts once in each cell.
        bad_rows: "refuse" or "drop".
        key: decides which records a person keeps; fresh from the operating system if None.
        own: (n,) x and (n,) y in their own CRS, if `points` were reprojected: what the ledger goes by.

    Returns:
        The counts, and the bound that was enforced; None without persons.

    Raises:
        InputError: shapes differ, a column holds no numbers, a bound has no persons, or a row is bad under "refuse".
    """
    x, y = coordinates(points[0], "x"), coordinates(points[1], "y")
    if x.shape != y.shape:
        raise InputError("x and y must have the same length.")
    contributions = check_whole(contributions, "contributions", 1)
    check_bad_rows(bad_rows)
    weight = None if count is None else whole_counts(count, len(x), bad_rows)
    cells = find(x, y)
    if bad_rows == "refuse" and (cells == BAD).any():
        raise InputError(_NOT_FINITE)
    refuse_bound_without_persons(person, contributions, distinct=distinct)
    bound = None if person is None else bound_of(contributions, key, distinct=distinct)
    owners = None if person is None else check_people(person, len(x), bad_rows)
    rows = None if owners is None else sum_rows(own or (x, y), weight, owners)
    return replace(count_rows(cells, weight, owners, bound, size), rows=rows), bound


def count_rows(cells: Integers, weight: Integers | None, owners: People | None, bound: Bound | None, size: int) -> CellCounts:
    """Bound each person's records, and add up the records of each cell.

    Args:
        cells: (n,) cell of each row, OUTSIDE or BAD.
        weight: (n,) records of each row, -1 where the count is bad; if None, each row is one record.
        owners: who each row belongs to; None where the unit is one record.
        bound: the bound of each person's records; None without `owners`.
        size: number of cells.
    """
    if weight is None and owners is None:
        inside = cells >= 0
        occupied, counts = _sum_records(cells if inside.all() else cells[inside], None, size)
        bad, inside_count = int(np.count_nonzero(cells == BAD)), int(np.count_nonzero(inside))
        beyond = inside_count - total_of(counts)
        return CellCounts(cells=occupied, counts=counts, bad=bad, outside=len(cells) - inside_count - bad, over=beyond, beyond=beyond)
    amount = np.ones(len(cells), np.int64) if weight is None else np.abs(weight)  # a bad count is -1: one record
    faulty: Mask = cells == BAD
    if weight is not None:
        faulty |= weight < 0
    if owners is not None:
        faulty |= owners.codes < 0
    inside = ~faulty & (cells >= 0)
    if owners is None or bound is None:
        kept_cells, records = cells[inside], amount[inside]
    else:
        inside_cells = cells if inside.all() else np.where(inside, cells, OUTSIDE)
        kept = bound_records(owners, inside_cells, None if weight is None else amount, bound)
        kept_cells, records = kept.cells, kept.records
    occupied, counts = _sum_records(kept_cells, records, size)
    bad, outside = total_of(amount[faulty]), total_of(amount[~faulty & (cells == OUTSIDE)])
    counted = total_of(counts)
    over, beyond = total_of(amount[inside]) - counted, total_of(records) - counted
    return CellCounts(cells=occupied, counts=counts, outside=outside, bad=bad, over=over, beyond=beyond)


def _sum_records(cells: Integers, weight: Integers | None, size: int) -> tuple[Integers, Integers]:
    """Return cells with records, ascending, and the records of each, cut to `most_per_cell`.

    Weighted sums are floats, exact up to 2**53.
    """
    most = most_per_cell(size)
    if size <= max(_DENSE_CELLS, 4 * len(cells)):
        total = np.minimum(np.bincount(cells, weights=weight, minlength=size), most).astype(np.int64, copy=False)
        occupied = np.flatnonzero(total)
        return occupied, total[occupied]
    if weight is None:
        occupied, counts = np.unique(cells, return_counts=True)
        return occupied, np.minimum(counts, most).astype(np.int64)
    occupied, index = np.unique(cells, return_inverse=True)
    counts = np.minimum(np.bincount(index, weights=weight, minlength=len(occupied)), most).astype(np.int64)
    keep = counts > 0
    return occupied[keep], counts[keep]


@dataclass(kw_only=True, eq=False)
class CellSums:
    """Adds up records per cell, in parts. A sum is cut to 2**53; up to there floats are exact. PRIVATE.

    Attributes:
        size: number of cells.
    """

    size: int
    _cells: list[Integers] = field(default_factory=list, repr=False)
    _records: list[Integers] = field(default_factory=list, repr=False)
    _buffered: int = field(default=0, repr=False)
    _summed_cells: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    _sums: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    def add(self, cells: Integers, records: Integers) -> None:
        """Add records to cells, of which one may be there several times."""
        self._cells.append(cells)
        self._records.append(records)
        self._buffered += len(cells)
        if self._buffered >= max(len(self._sums), _LEAST_BUFFER):
            self._add_buffered()

    def result(self) -> tuple[Integers, Integers]:
        """Return the cells with records, ascending, and the records of each, cut to 2**53."""
        self._add_buffered()
        cells = np.flatnonzero(self._sums) if self._is_dense else self._summed_cells
        return cells, (self._sums[cells] if self._is_dense else self._sums).astype(np.int64)

    @property
    def _is_dense(self) -> bool:
        return self.size <= _DENSE_CELLS

    def _add_buffered(self) -> None:
        cells, records = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (self._cells, self._records))
        self._cells, self._records, self._buffered = [], [], 0
        if self._is_dense:
            weights = None if records.max(initial=1) == records.min(initial=1) == 1 else records
            sums = np.bincount(cells, weights=weights, minlength=self.size).astype(np.float64, copy=False)
            self._sums = sums + self._sums if len(self._sums) else sums
        elif len(cells):
            cells, sums = np.r_[self._summed_cells, cells], np.r_[self._sums, records.astype(np.float64)]
            order = np.argsort(cells)
            first = np.flatnonzero(np.r_[True, np.diff(cells[order]) > 0])
            self._summed_cells, self._sums = cells[order][first], np.add.reduceat(sums[order], first)
        self._sums = np.minimum(self._sums, float(MOST_RECORDS))
