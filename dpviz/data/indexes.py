"""Indexes of occupied cells: by node, along the Z-order curve, and as running sums south-west of lattice lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines, Mask, Places
from dpviz.data.points import PointCounts
from dpviz.space.morton import morton
from dpviz.space.tree import intervals

_CELLS_AT_ONCE = 2**18


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cells:
    """(k,) columns, rows and counts of occupied cells, in some order. PRIVATE."""

    column: Places
    row: Places
    count: Integers

    def at(self, some: Integers | Mask | slice) -> Cells:
        """Return some of the cells, by their indexes, a mask or a slice."""
        return Cells(column=self.column[some], row=self.row[some], count=self.count[some])


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeCells:
    """The cells of disjoint nodes. PRIVATE.

    In both orders the cells of a node have the same range of indexes, so one sort at the start is enough for every level: a node that is
    cut across leaves `by_column` as it is, and `by_row` needs only a stable partition within the node.

    Attributes:
        by_column: (k,) cells ordered by node, then column.
        by_row: (k,) cells ordered by node, then row.
        start: (n + 1,) the cells of node i are start[i]..start[i + 1] - 1.
    """

    by_column: Cells
    by_row: Cells
    start: Integers

    def __repr__(self) -> str:
        return f"NodeCells({len(self.start) - 1:,} nodes)"

    @classmethod
    def of(cls, points: PointCounts) -> Self:
        """Take all cells as one node."""
        by_row = Cells(column=points.column, row=points.row, count=points.count)
        size = len(points.column)
        key = np.sort(points.column.astype(np.int64) << 39 | np.arange(size))
        return cls(by_column=by_row.at(key & (2**39 - 1)), by_row=by_row, start=np.array([0, size]))

    def records(self) -> Integers:
        """Return (n,) records in each node."""
        sums = np.concatenate([[0], np.cumsum(self.by_row.count)])
        return np.diff(sums[self.start])

    def along(self, across: Mask) -> tuple[Places, Integers]:
        """Return (k,) columns of cells in nodes that are cut across, rows of other cells, and (k,) counts, in order in each node."""
        if across.all():
            return self.by_column.column, self.by_column.count
        if not across.any():
            return self.by_row.row, self.by_row.count
        here = np.repeat(across, np.diff(self.start))
        return np.where(here, self.by_column.column, self.by_row.row), np.where(here, self.by_column.count, self.by_row.count)

    def cut(self, across: Mask, line: Integers, halved: Mask) -> Self:
        """Cut nodes in two.

        Args:
            across: (n,) whether the columns of a node's cells are compared with its line, else their rows.
            line: (n,) lattice line of each node; cells below it come first.
            halved: (n,) whether a node is cut; the others stay whole.

        Returns:
            The cells of the parts, in order: two for a node that is halved, one for each other.
        """
        lines = np.where(halved, line, np.iinfo(np.int32).max).astype(np.int32)
        stays = bool(across.all()), not across.any()
        orders, below = [], np.zeros(len(lines), np.int64)
        for cells, same in zip((self.by_column, self.by_row), stays, strict=True):
            if same:
                orders.append(cells)
            else:
                cut, below = self._partitioned(cells, across, lines)
                orders.append(cut)
        ends = np.stack([self.start[:-1] + below, self.start[1:]], axis=1)
        wanted = np.stack([halved, np.ones_like(halved)], axis=1)
        return type(self)(by_column=orders[0], by_row=orders[1], start=np.concatenate([[0], ends[wanted]]))

    def kept(self, keep: Mask) -> Self:
        """Return the cells of the nodes that a (n,) mask keeps."""
        if keep.all():
            return self
        sizes = np.diff(self.start)
        here = np.repeat(keep, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[keep])])
        return type(self)(by_column=self.by_column.at(here), by_row=self.by_row.at(here), start=start)

    def _partitioned(self, cells: Cells, across: Mask, line: Places) -> tuple[Cells, Integers]:
        """Return the cells of each node with those below its line first, else in the same order; and (n,) how many are below."""
        size = len(cells.column)
        new = Cells(column=np.empty(size, np.int32), row=np.empty(size, np.int32), count=np.empty(size, np.int64))
        below = np.empty(len(line), np.int64)
        for nodes, part in self._batches():
            sizes = np.diff(self.start[nodes.start : nodes.stop + 1])
            target, below[nodes] = _targets(cells.at(part), sizes, across[nodes], line[nodes])
            new.column[part][target] = cells.column[part]
            new.row[part][target] = cells.row[part]
            new.count[part][target] = cells.count[part]
        return new, below

    def _batches(self) -> Iterator[tuple[slice, slice]]:
        """Yield slices of nodes and of their cells, a bounded number of cells at a time unless one node has more."""
        first, nodes = 0, len(self.start) - 1
        while first < nodes:
            last = int(np.searchsorted(self.start, self.start[first] + _CELLS_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), nodes)
            yield slice(first, last), slice(int(self.start[first]), int(self.start[last]))
            first = last


def _targets(cells: Cells, sizes: Integers, across: Mask, line: Places) -> tuple[Integers, Integers]:
    """Return (k,) new index of each cell in a stable partition of every node by its line, and (n,) how many cells are below the line."""
    if across.all():
        beyond = cells.column >= np.repeat(line, sizes)
    elif not across.any():
        beyond = cells.row >= np.repeat(line, sizes)
    else:
        beyond = np.where(np.repeat(across, sizes), cells.column, cells.row) >= np.repeat(line, sizes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    passed = np.zeros(len(beyond) + 1, np.int64)
    np.cumsum(beyond, out=passed[1:])
    above = np.diff(passed[start])
    before = passed[start[:-1]]
    moved = passed[:-1] + np.repeat(start[1:] - above - before, sizes)
    stayed = np.arange(len(beyond)) - passed[:-1] + np.repeat(before, sizes)
    return np.where(beyond, moved, stayed), sizes - above


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveCells:
    """Positions of occupied cells on the Z-order curve, sorted once. PRIVATE.

    Attributes:
        position: (k,) positions, ascending.
        below: (k + 1,) records before each position, then the number of all records.
        order: order of the lattice.
    """

    position: Integers
    below: Integers
    order: int

    def __repr__(self) -> str:
        return f"CurveCells(order {self.order})"

    @classmethod
    def of(cls, points: PointCounts) -> Self:
        """Take all occupied cells of a lattice."""
        position = morton(points.column.astype(np.int64), points.row.astype(np.int64))
        sort = np.argsort(position)
        below = np.concatenate([[0], np.cumsum(points.count[sort])])
        return cls(position=position[sort], below=below, order=points.domain.order)

    def records(self, node: Integers, depth: int) -> Integers:
        """Return (n,) records in nodes of a quadtree, given by positions on the curve of 2**depth columns. Ascending ones are fastest."""
        shift = 2 * (self.order - depth)
        begin, end = np.searchsorted(self.position, [node << shift, (node + 1) << shift])
        return np.asarray(self.below[end] - self.below[begin])


MOST_CELLS = 2**21


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CornerCounts:
    """The number of records south-west of each crossing of lattice lines. PRIVATE.

    The numbers are kept as a table if the table has at most `MOST_CELLS` entries. Otherwise crossings are counted when they are needed, in
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
        """Return (...) exact number of records south of `rows[row]` and west of `columns[column]`, for indexes of lines in any shape."""
        if (len(self.rows) + 1) * (len(self.columns) + 1) <= MOST_CELLS:
            return self.table[row, column]
        row, column = np.broadcast_arrays(row, column)
        return self._counted(row.ravel(), column.ravel()).reshape(row.shape)

    @cached_property
    def table(self) -> Integers:
        """(r, c) the number at every crossing."""
        i, j = (_passed(lines, cells) for lines, cells in ((self.columns, self.points.column), (self.rows, self.points.row)))
        shape = (len(self.rows) + 1, len(self.columns) + 1)
        cells = np.bincount(j * shape[1] + i, self.points.count, shape[0] * shape[1]).reshape(shape).astype(np.int64)
        return cells.cumsum(0).cumsum(1)[:-1, :-1]

    def _counted(self, row: Integers, column: Integers) -> Integers:
        """Count the records south-west of (m,) crossings, by a wavelet matrix.

        Occupied cells begin in the order of their rows, so that the cells south of a line are the first ones. Then the cells are sorted by
        one bit of their column after the other, the highest bit first; cells of the same bit keep their order. So the cells that agree
        with a line's index in all bits so far, and lie south of the other line, remain a range. Wherever the line's bit is 1, the cells
        of the range whose bit is 0 lie west of the line.
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


def _passed(lines: Lines, cells: NDArray[np.int32]) -> Integers:
    """Return (k,) how many of the ascending lines are at most each cell's column (or row)."""
    return np.minimum(intervals(lines, cells) + 1, len(lines))


def _before(values: NDArray[np.bool_] | Integers) -> Integers:
    """Return (n + 1,) sum of all values before each value, and before the end."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums
