"""How unevenly the two parts of a split node are filled, for all nodes of a level at once, from occupied cells only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

UNITS = 2**16
SENSITIVITY = 2 * UNITS + 1
LARGEST = 2**59


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitCells:
    """The occupied cells of the nodes of a level, in any order. PRIVATE.

    Attributes:
        column: (k,) lattice columns.
        row: (k,) lattice rows.
        count: (k,) records in each, whole; floats, since they are only added up, which is exact below 2**53.
        node: (k,) which node a cell lies in.
        rectangles: (n, 4) west, south, east, north of the nodes as lattice lines; public.
    """

    column: NDArray[np.int32]
    row: NDArray[np.int32]
    count: Floats
    node: NDArray[np.int32]
    rectangles: Integers

    def __repr__(self) -> str:
        return f"SplitCells({len(self.rectangles):,} nodes)"

    @classmethod
    def of(cls, points: PointCounts) -> Self:
        """All cells as one node."""
        side = points.domain.side
        return cls(
            column=points.column,
            row=points.row,
            count=points.count.astype(np.float64),
            node=np.zeros(len(points.column), np.int32),
            rectangles=np.array([[0, 0, side, side]], np.int64),
        )

    def records(self) -> Integers:
        """(n,) records in each node."""
        return np.bincount(self.node, self.count, len(self.rectangles)).astype(np.int64)

    def kept(self, keep: Mask) -> Self:
        """Some nodes only, and their cells."""
        if keep.all():
            return self
        here = np.flatnonzero(keep[self.node])
        number = (np.cumsum(keep) - 1).astype(np.int32)
        return type(self)(
            column=self.column[here],
            row=self.row[here],
            count=self.count[here],
            node=number[self.node[here]],
            rectangles=self.rectangles[keep],
        )

    def cut(self, across: Mask, line: Integers) -> Self:
        """Cut every node in two: by a line between columns if `across`, else between rows; parts stand together, lower one first."""
        parts, first = np.repeat(self.rectangles, 2, axis=0), 2 * np.arange(len(line))
        axis = np.where(across, 0, 1)
        parts[first, axis + 2] = line
        parts[first + 1, axis] = line
        return type(self)(column=self.column, row=self.row, count=self.count, node=self._part(self.along(across), line), rectangles=parts)

    def along(self, across: Mask) -> NDArray[np.int32]:
        """(k,) columns of cells whose node is cut across, rows of the others."""
        if across.all():
            return self.column
        if not across.any():
            return self.row
        return np.where(across[self.node], self.column, self.row)

    def _part(self, place: NDArray[np.int32], line: Integers) -> NDArray[np.int32]:
        """(k,) number of the part that each cell falls into: 2 node, or 2 node + 1 from the line on."""
        part = 2 * self.node
        part += place >= line.astype(np.int32)[self.node]
        return part

    def objective(self, across: Mask, line: Integers) -> Integers:
        """(n,) 2**16 times the split objective, each part rounded down: 0 if both parts are evenly filled, 2**17 N at most.

        The objective is o = sum of |c - mu| over the cells of both parts, mu the mean of the part, empty cells included. As
        deviations cancel, sum |c - mu| = 2 sum of c - mu over the cells above the mean, which are all occupied. With N = q A + r
        records on A cells these are the cells with c > q, n of them, and their sum is sum (c - q) - n r / A: a fraction, rounded
        here without floating-point error. What exceeds 2**59 in a part is cut to that.

        One record changes 2**16 o by less than 2**17 and only one part of it, m records by m times that: see `SENSITIVITY`.

        Args:
            across: (n,) cut by a line between columns, else between rows.
            line: (n,) lattice lines strictly inside the nodes.

        Source:
            Shaham et al., "HTF: homogeneous tree framework for differentially-private release of location data", SIGSPATIAL
            2021, Equation (5) and Theorem 1: one more record in a part moves mu by 1 / A and its own c by 1, so the sum of |c -
            mu| changes by at most (A - 1) / A + (1 - 1 / A) = 2 - 2 / A. Rounding down adds less than 1, so the change of the
            whole number is below 2**17 + 1. (As it is whole, 2**17 would do; the larger number is charged.)
        """
        parts, area = 2 * len(line), self._areas(across, line)
        part = self._part(self.along(across), line)
        records = np.bincount(part, self.count, parts).astype(np.int64)
        whole, rest = np.divmod(records, area)
        if whole.any():
            above = self.count - whole.astype(np.float64)[part]
            number, excess = np.bincount(part, above > 0, parts), np.bincount(part, np.maximum(above, 0, out=above), parts)
        else:
            number, excess = np.bincount(part, minlength=parts), records
        below, beyond = _rounded(excess.astype(np.int64), number.astype(np.int64), rest, area).reshape(-1, 2).T
        return below + beyond

    def _areas(self, across: Mask, line: Integers) -> Integers:
        """(2 n,) cells of the parts, two for each node."""
        west, south, east, north = self.rectangles.T
        low, high = np.where(across, west, south), np.where(across, east, north)
        other = np.where(across, north - south, east - west)
        return np.stack([(line - low) * other, (high - line) * other], axis=1).ravel()


def _rounded(excess: Integers, number: Integers, rest: Integers, area: Integers) -> Integers:
    """(p,) floor(2**17 (excess - number rest / area)), at most 2**59; in Python's integers where 64 bits are too few."""
    large = (number.astype(np.float64) * rest > 2.0**44) | (excess > 2**41)
    product = 2 * UNITS * np.where(large, 0, number * rest)
    value = 2 * UNITS * np.where(large, 0, excess) + (-product) // area
    for place in np.flatnonzero(large).tolist():
        n, r, cells, over = (int(array[place]) for array in (number, rest, area, excess))
        value[place] = min(2 * UNITS * over + (-2 * UNITS * n * r) // cells, LARGEST)
    return value
