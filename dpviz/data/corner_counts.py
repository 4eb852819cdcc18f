"""Exact numbers of records south-west of many crossings of lattice lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts
from dpviz.space.tree import Lines, intervals

Integers = NDArray[np.int64]

MOST_CELLS = 2**21


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CornerCounts:
    """Running sums of records over the crossings of lattice lines. PRIVATE.

    They are kept as a table where it has at most `MOST_CELLS` cells. Beyond, crossings are counted when they are asked for, in a
    time that grows like (occupied cells + crossings) x log(columns), and in memory that grows like occupied cells + crossings.

    Attributes:
        points: private.
        columns: (c,) ascending lattice lines.
        rows: (r,) ascending lattice lines.
    """

    points: PointCounts
    columns: Lines
    rows: Lines

    def at(self, row: Integers, column: Integers) -> Integers:
        """(...) exact number of records south of `rows[row]` and west of `columns[column]`; the places of lines, any shape."""
        if (len(self.rows) + 1) * (len(self.columns) + 1) <= MOST_CELLS:
            return self.table[row, column]
        row, column = np.broadcast_arrays(row, column)
        return self._counted(row.ravel(), column.ravel()).reshape(row.shape)

    @cached_property
    def table(self) -> Integers:
        """(r, c) the number at every crossing."""
        i, j = (_passed(lines, place) for lines, place in ((self.columns, self.points.column), (self.rows, self.points.row)))
        shape = (len(self.rows) + 1, len(self.columns) + 1)
        cells = np.bincount(j * shape[1] + i, self.points.count, shape[0] * shape[1]).reshape(shape).astype(np.int64)
        return cells.cumsum(0).cumsum(1)[:-1, :-1]

    def _counted(self, row: Integers, column: Integers) -> Integers:
        """(m,) the same for (m,) crossings, by a wavelet matrix.

        Occupied cells stand in the order of their rows, so that those south of a line are the first ones; then they are sorted by one
        bit of their column after the other, the highest first, and cells of the same bit keep their order. So the cells that
        agree with a line's place in all bits so far, and lie south of the other line, remain a range. Wherever the line's bit is 1,
        those of the range with a 0 lie west of it.
        """
        passed, weight = _passed(self.columns, self.points.column).astype(np.int32), self.points.count
        low, high = np.zeros(len(row), np.int64), np.searchsorted(self.points.row, self.rows)[row]
        found, column = np.zeros(len(row), np.int64), column + 1
        for bit in reversed(range((len(self.columns) + 1).bit_length())):
            one = (passed >> bit & 1).astype(np.bool_)
            zeros, sums = _before(~one), _before(np.where(one, 0, weight))
            east = (column >> bit & 1).astype(np.bool_)
            found += np.where(east, sums[high] - sums[low], 0)
            low, high = (np.where(east, zeros[-1] + edge - zeros[edge], zeros[edge]) for edge in (low, high))
            order = np.concatenate([np.flatnonzero(~one), np.flatnonzero(one)])
            passed, weight = passed[order], weight[order]
        return found


def _passed(lines: Lines, place: NDArray[np.int32]) -> Integers:
    """(k,) how many of the ascending lines each place is not west (or south) of."""
    return np.minimum(intervals(lines, place) + 1, len(lines))


def _before(values: NDArray[np.bool_] | Integers) -> Integers:
    """(n + 1,) sum of all values before each."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums
