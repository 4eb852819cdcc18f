"""Bound each person's records in rows that arrive sorted by person and cell.

Memory depends neither on the number of rows nor on how many of them belong to one person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpviz.arrays import Integers
from dpviz.data.bounding import RECORDS_AT_ONCE, Bound, Holdings, LargePerson, LargePersonBySlot, Persons, keep_records, large_person
from dpviz.data.cell_counts import CellSums
from dpviz.data.cells import MOST_RECORDS


@dataclass(kw_only=True, eq=False)
class SortedPeople:
    """Bounds people one after the other, and adds up the records that they keep. PRIVATE.

    Only the last person of a batch can go on in the next one: this person's pairs wait for it, and if there are many, the person's m
    smallest records.

    Attributes:
        bound: the bound of each person's records.
        sums: kept records per cell.
        fewer: people with fewer than m records.
    """

    bound: Bound
    sums: CellSums
    fewer: int = field(default=0, repr=False)
    _last: Holdings | None = field(default=None, repr=False)
    _large: LargePerson | LargePersonBySlot | None = field(default=None, repr=False)
    _last_person: Any = field(default=None, repr=False)

    def add(self, persons: pa.Array, cells: Integers, amounts: Integers | None) -> None:
        """Add the next rows, in ascending order of (person, cell).

        Args:
            persons: (n,) whole numbers or canonical texts, none missing.
            cells: (n,) the cell of each row, at least 0.
            amounts: (n,) records that each row stands for; if None, each row is one record.
        """
        if amounts is not None and not amounts.all():
            counted = amounts > 0
            persons, cells, amounts = persons.filter(pa.array(counted)), cells[counted], amounts[counted]
        if len(cells):
            holdings = _count_pairs(persons, cells, amounts, self.bound)
            ends: list[Any] = [holdings.persons[0], holdings.persons[-1]]
            if isinstance(holdings.persons, np.ndarray):
                ascends = bool((holdings.persons[1:] > holdings.persons[:-1]).all())
            else:
                ends = [person.as_py().encode() for person in ends]  # bytes are ordered as DuckDB orders them
                ascends = bool(pc.all(pc.greater(holdings.persons[1:], holdings.persons[:-1]), min_count=0).as_py())
            if not ascends or (self._last_person is not None and ends[0] < self._last_person):
                raise RuntimeError("The rows are not sorted by person.")  # a person who came twice would be bounded twice
            self._last_person = ends[1]
            self._add_holdings(holdings)

    def finish(self) -> None:
        """Bound the last person, after the last rows."""
        if self._large is not None:
            self._finish_large_person(self._large)
        elif self._last is not None:
            self._bound_people(self._last)
        self._last = None

    def _add_holdings(self, holdings: Holdings) -> None:
        """Bound all people but the last, together with the person who waits. The last one waits for the next rows."""
        if self._large is not None and self._last is not None:
            own = int(np.searchsorted(holdings.codes, 1)) if holdings.persons[0] == self._last.persons[0] else 0
            self._add_to_large_person(self._large, self._last, _part_of(holdings, 0, own))
            if own == len(holdings.codes):
                return
            self._finish_large_person(self._large)
            holdings = _part_of(holdings, own, len(holdings.codes))
        elif self._last is not None:
            holdings = _join(self._last, holdings, self.bound)
        start = int(np.searchsorted(holdings.codes, holdings.codes[-1]))
        self._bound_people(_part_of(holdings, 0, start))
        self._last = _part_of(holdings, start, len(holdings.codes))
        if len(self._last.codes) > RECORDS_AT_ONCE:
            self._large = large_person(self._last.persons, self.bound)
            self._large.add(self._last.cells, np.zeros(len(self._last.cells), np.int64), self._last.records)
            self._last = _part_of(self._last, len(self._last.codes) - 1, len(self._last.codes))

    def _add_to_large_person(self, large: LargePerson | LargePersonBySlot, last: Holdings, holdings: Holdings) -> None:
        """Add pairs of the person who waits. The first cell may be the last one from before, where records have numbers already."""
        if not len(holdings.codes):
            return
        first_numbers = np.zeros(len(holdings.codes), np.int64)
        goes_on = holdings.cells[0] == last.cells[0]
        first_numbers[0] = last.records[0] if goes_on else 0
        skipped = int(goes_on and self.bound.distinct)
        large.add(holdings.cells[skipped:], first_numbers[skipped:], holdings.records[skipped:])
        end = len(holdings.codes)
        self._last = _part_of(_join(last, holdings, self.bound) if end == 1 else holdings, -1, None)

    def _finish_large_person(self, large: LargePerson | LargePersonBySlot) -> None:
        self.fewer += int(large.total < self.bound.most)
        self.sums.add(*large.kept())
        self._large = self._last = None

    def _bound_people(self, holdings: Holdings) -> None:
        kept_records, fewer = keep_records(holdings, self.bound)
        self.fewer += fewer
        is_kept = kept_records > 0
        self.sums.add(holdings.cells[is_kept], kept_records[is_kept])


def _count_pairs(persons: pa.Array, cells: Integers, amounts: Integers | None, bound: Bound) -> Holdings:
    """Count the records of each pair of person and cell in sorted rows."""
    distinct, first_of_person = _distinct_runs(persons)
    begins = np.r_[True, cells[1:] != cells[:-1]]
    begins[first_of_person] = True
    first = np.flatnonzero(begins)
    codes = np.repeat(np.arange(len(first_of_person)), np.diff(np.searchsorted(first, np.r_[first_of_person, len(cells)])))
    if bound.distinct:
        records = np.ones(len(first), np.int64)
    elif amounts is None:
        records = np.diff(first, append=len(cells))
    else:
        records = np.add.reduceat(np.minimum(amounts, bound.cap), first)
    return Holdings(codes=codes, persons=distinct, cells=cells[first], records=records)


def _distinct_runs(persons: pa.Array) -> tuple[Persons, Integers]:
    """Return the distinct entries of a sorted column without missing entries, and the index at which the run of each begins."""
    if pa.types.is_integer(persons.type):
        numbers = persons.to_numpy()
        first = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        return numbers[first], first
    runs = pc.run_end_encode(persons)
    return runs.values, np.r_[0, runs.run_ends.to_numpy()[:-1]]


def _part_of(holdings: Holdings, start: int, end: int | None) -> Holdings:
    """Return some adjacent pairs, with the people who have them."""
    codes = holdings.codes[start:end]
    first, last = (int(codes[0]), int(codes[-1]) + 1) if len(codes) else (0, 0)
    return Holdings(
        codes=codes - first,
        persons=holdings.persons[first:last],
        cells=holdings.cells[start:end],
        records=holdings.records[start:end],
    )


def _join(last: Holdings, holdings: Holdings, bound: Bound) -> Holdings:
    """Join the pairs of one person, and the pairs that follow, whose first ones may belong to the same person and cell."""
    is_same_person = bool(last.persons[0] == holdings.persons[0])
    is_same_pair = is_same_person and last.cells[-1] == holdings.cells[0]
    records = holdings.records
    if is_same_pair and not bound.distinct:
        records = records.copy()
        records[0] = min(int(records[0]) + int(last.records[-1]), MOST_RECORDS)
    end = len(last.codes) - int(is_same_pair)
    persons = holdings.persons
    if not is_same_person:
        concatenate = np.concatenate if isinstance(persons, np.ndarray) else pa.concat_arrays
        persons = concatenate([last.persons, persons])
    return Holdings(
        codes=np.r_[last.codes[:end], holdings.codes + int(not is_same_person)],
        persons=persons,
        cells=np.r_[last.cells[:end], holdings.cells],
        records=np.r_[last.records[:end], records],
    )
