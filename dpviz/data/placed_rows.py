"""Rows of files that were read into memory, with the cell of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dpviz.arrays import Integers
from dpviz.data.bounding import People
from dpviz.data.cell_counts import count_rows
from dpviz.data.fingerprints import RowSum

if TYPE_CHECKING:
    from dpviz.data.bounding import Bound
    from dpviz.data.cell_counts import CellCounts


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedRows:
    """Rows of files with the cell of each. PRIVATE.

    Attributes:
        cells: (n,) cell of each row, OUTSIDE or BAD.
        count: (n,) records of each row, -1 where the count is bad; None if each row is one record.
        person: who each row belongs to; None where the unit is one record.
        ragged: number of further rows that are bad.
        notes: texts, without a private number, that say what was left out on purpose.
        rows: of the rows of persons, by which the ledger recognises them; None without persons.
    """

    cells: Integers = field(repr=False)
    count: Integers | None = field(repr=False)
    person: People | None = field(repr=False)
    ragged: int = field(default=0, repr=False)
    notes: tuple[str, ...] = ()
    rows: RowSum | None = field(default=None, repr=False)

    def counts(self, bound: Bound | None, size: int) -> CellCounts:
        """Bound each person's records, and add up the records of each cell.

        Args:
            bound: of each person's records; None where the unit is one record.
            size: number of cells.

        Raises:
            InputError: a person has fewer records than was declared, and such people are refused.
        """
        counted = count_rows(self.cells, self.count, self.person, bound, size)
        return replace(counted, bad=counted.bad + self.ragged, rows=self.rows)
