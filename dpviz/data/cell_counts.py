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


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What rows add up to before each person's records are bounded; every number is cut to 2**53. PRIVATE.

    A row that breaks several rules counts for the first of them.

    Attributes:
        rows: all rows, without bad lines of text tables.
        cell: rows without readable coordinates or ids.
        count: rows without a readable count.
        person: rows without a person.
        elsewhere: good rows outside the domain or the regions.
        inside: records of good rows inside.
        outside: records of good rows outside, or in no slot.
        bad: records of all other rows; a row whose count is bad is one record.
    """

    rows: int = field(default=0, repr=False)
    cell: int = field(default=0, repr=False)
    count: int = field(default=0, repr=False)
    person: int = field(default=0, repr=False)
    elsewhere: int = field(default=0, repr=False)
    inside: int = field(default=0, repr=False)
    outside: int = field(default=0, repr=False)
    bad: int = field(default=0, repr=False)

    def __add__(self, other: Totals) -> Totals:
        return Totals(**{name: min(number + getattr(other, name), MOST_RECORDS) for name, number in vars(self).items()})


def check_rows(cells: Integers, weight: Integers | None, no_person: Mask | None) -> tuple[Mask | None, Totals]:
    """Return (n,) whether each row is good and inside, None if all are; and what the rows add up to. Every engine calls this.

    Args:
        cells: (n,) cell of each row, OUTSIDE, NO_SLOT or BAD.
        weight: (n,) records of each row, -1 where the count is bad; if None, each row is one record.
        no_person: (n,) whether the person of a row is missing; None where the unit is one record.
    """
    if weight is None and no_person is None:
        inside = cells >= 0
        good, bad_cells = int(np.count_nonzero(inside)), int(np.count_nonzero(cells == BAD))
        others, elsewhere = len(cells) - good - bad_cells, int(np.count_nonzero(cells == OUTSIDE))
        totals = Totals(rows=len(cells), cell=bad_cells, elsewhere=elsewhere, inside=good, outside=others, bad=bad_cells)
        return None if good == len(cells) else inside, totals
    bad, faults = np.zeros(len(cells), np.bool_), []
    for fault in (cells == BAD, None if weight is None else weight < 0, no_person):
        faults.append(0 if fault is None else int(np.count_nonzero(fault & ~bad)))
        if fault is not None:
            bad |= fault
    inside, outside = ~bad & (cells >= 0), ~bad & (cells < 0)
    elsewhere = int(np.count_nonzero(outside & (cells == OUTSIDE)))
    if weight is None:
        records = [int(np.count_nonzero(inside)), int(np.count_nonzero(outside)), sum(faults)]
    else:
        records = [total_of(np.abs(weight[rows])) for rows in (inside, outside, bad)]
    amounts = dict(zip(("inside", "outside", "bad"), records, strict=True))
    named = dict(zip(("cell", "count", "person"), faults, strict=True))
    return inside, Totals(rows=len(cells), elsewhere=elsewhere, **named, **amounts)


def count_rows(cells: Integers, weight: Integers | None, owners: People | None, bound: Bound | None, size: int) -> CellCounts:
    """Bound each person's records, and add up the records of each cell.

    Args:
        cells: (n,) cell of each row, OUTSIDE or BAD.
        weight: (n,) records of each row, -1 where the count is bad; if None, each row is one record.
        owners: who each row belongs to; None where the unit is one record.
        bound: the bound of each person's records; None without `owners`.
        size: number of cells.
    """
    inside, totals = check_rows(cells, weight, None if owners is None else owners.codes < 0)
    sums = CellSums(size=size)
    if owners is not None and bound is not None:
        kept = bound_records(owners, cells if inside is None or inside.all() else np.where(inside, cells, OUTSIDE), weight, bound)
        sums.add(kept.cells, kept.records)
    elif inside is None:
        sums.add(cells)
    else:
        sums.add(cells[inside], None if weight is None else weight[inside])
    return sums.counts(totals)


@dataclass(kw_only=True, eq=False)
class CellSums:
    """Adds up records per cell, in parts. A sum is cut to 2**53; up to there floats are exact. PRIVATE.

    Sums are in an array of all cells if there are few cells, or many records for them; else the cells with records are kept in order.

    Attributes:
        size: number of cells.
    """

    size: int
    _parts: list[tuple[Integers, Integers | None]] = field(default_factory=list, repr=False)
    _waiting: int = field(default=0, repr=False)
    _cells: Integers | None = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)  # None: all cells
    _sums: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    def add(self, cells: Integers, records: Integers | None = None) -> None:
        """Add records to cells, of which one may be there several times; one record to each if `records` is None."""
        self._parts.append((cells, records))
        self._waiting += len(cells)
        if self._waiting >= max(len(self._sums), _LEAST_BUFFER):
            self._add_parts()

    def result(self) -> tuple[Integers, Integers]:
        """Return the cells with records, ascending, and the records of each, cut to 2**53."""
        self._add_parts()
        occupied = np.flatnonzero(self._sums)
        if len(occupied) == len(self._sums):
            return occupied if self._cells is None else self._cells, self._sums.astype(np.int64)
        return occupied if self._cells is None else self._cells[occupied], self._sums[occupied].astype(np.int64)

    def counts(self, totals: Totals, lines: int = 0) -> CellCounts:
        """Return the counts of the cells, cut to `most_per_cell`.

        Args:
            totals: what all rows add up to before the bound.
            lines: bad lines of text tables.
        """
        cells, records = self.result()
        counts = np.minimum(records, most_per_cell(self.size))
        counted = total_of(counts)
        return CellCounts(
            cells=cells,
            counts=counts,
            outside=totals.outside,
            bad=totals.bad + lines,
            over=totals.inside - counted,
            beyond=total_of(records) - counted,
        )

    def _add_parts(self) -> None:
        if not self._waiting:
            return
        cells, records = self._parts[0]
        if len(self._parts) > 1:
            cells = np.concatenate([part for part, _ in self._parts])
            if any(each is not None for _, each in self._parts):
                records = np.concatenate([np.ones(len(part), np.int64) if each is None else each for part, each in self._parts])
        self._parts, self._waiting = [], 0
        if self._cells is not None and self.size <= max(_DENSE_CELLS, 4 * (len(cells) + len(self._cells))):
            dense = np.zeros(self.size)
            dense[self._cells] = self._sums
            self._cells, self._sums = None, dense
        if self._cells is None:
            self._sums += np.bincount(cells, weights=records, minlength=self.size)
        else:
            self._cells, self._sums = _merge(self._cells, self._sums, cells, records)
        np.minimum(self._sums, float(MOST_RECORDS), out=self._sums)


def _merge(summed: Integers, sums: Floats, cells: Integers, records: Integers | None) -> tuple[Integers, Floats]:
    """Add records to the sums of cells that are in order. Return the cells, in order, and their sums."""
    if records is None:
        cells, numbers = np.unique(cells, return_counts=True)
        added = numbers.astype(np.float64)
    else:
        order = np.argsort(cells)
        cells, added = cells[order], records[order].astype(np.float64)
    if not len(summed) and records is None:
        return cells, added
    cells, added = np.r_[summed, cells], np.r_[sums, added]
    order = np.argsort(cells, kind="stable")  # fast, because both parts are in order already
    cells = cells[order]
    first = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]])
    return cells[first], np.add.reduceat(added[order], first)
