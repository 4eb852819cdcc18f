"""Three indexes of the occupied cells, for fast counts: by node, by position on the Z-order curve, and by the lattice lines around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines, Mask, Places
from dpviz.data.points import PointCounts
from dpviz.space.morton import morton
from dpviz.space.tree import intervals

_CELLS_AT_ONCE = 2**18
_INDEX_BITS = 39  # of a sort key; the column has the bits above


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cells:
    """(k,) columns, rows and counts of occupied cells, in some order. PRIVATE."""

    column: Places
    row: Places
    count: Integers

    def select(self, indexes: Integers | Mask | slice) -> Cells:
        """Return some of the cells, by their indexes, a mask or a slice."""
        return Cells(column=self.column[indexes], row=self.row[indexes], count=self.count[indexes])


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeCells:
    """The cells of disjoint nodes. PRIVATE.

    In both orders the cells of a node have the same range of indexes. So the cells are sorted only once, at the start: cutting a node
    between columns keeps `by_column` as it is, and needs only a stable partition of the node's cells in `by_row`.

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
        """Return all occupied cells as one node."""
        by_row = Cells(column=points.column, row=points.row, count=points.count)
        size = len(points.column)
        key = np.sort(points.column.astype(np.int64) << _INDEX_BITS | np.arange(size))
        return cls(by_column=by_row.select(key & (2**_INDEX_BITS - 1)), by_row=by_row, start=np.array([0, size]))

    def records(self) -> Integers:
        """Return (n,) records in each node."""
        sums = np.concatenate([[0], np.cumsum(self.by_row.count)])
        return np.diff(sums[self.start])

    def along(self, by_columns: Mask) -> tuple[Places, Integers]:
        """Return (k,) positions of the cells along the axis of their node's cut, ascending in each node, and (k,) their counts.

        Args:
            by_columns: (n,) whether a node is cut between columns; otherwise between rows.
        """
        sizes, one, other = np.diff(self.start), self.by_column, self.by_row
        return _choose(by_columns, sizes, one.column, other.row), _choose(by_columns, sizes, one.count, other.count)

    def cut(self, by_columns: Mask, line: Integers, is_cut: Mask) -> Self:
        """Cut nodes in two.

        Args:
            by_columns: (n,) whether a node's line lies between columns; otherwise between rows.
            line: (n,) lattice line of each node; the cells below it are the first part.
            is_cut: (n,) whether a node is cut; otherwise it stays whole.

        Returns:
            The cells of the parts, in the order of the nodes: two parts for a node that is cut, one for a node that is not.
        """
        compared_lines = np.where(is_cut, line, np.iinfo(np.int32).max).astype(np.int32)
        unchanged = bool(by_columns.all()), not by_columns.any()
        orders, below = [], np.zeros(len(compared_lines), np.int64)
        for cells, keep_order in zip((self.by_column, self.by_row), unchanged, strict=True):
            if keep_order:
                orders.append(cells)
            else:
                partitioned, below = self._partition(cells, by_columns, compared_lines)
                orders.append(partitioned)
        ends = np.stack([self.start[:-1] + below, self.start[1:]], axis=1)
        is_node_end = np.stack([is_cut, np.ones_like(is_cut)], axis=1)
        return type(self)(by_column=orders[0], by_row=orders[1], start=np.concatenate([[0], ends[is_node_end]]))

    def filter_nodes(self, keep: Mask) -> Self:
        """Return the nodes that a (n,) mask selects, with their cells."""
        if keep.all():
            return self
        sizes = np.diff(self.start)
        keep_cell = np.repeat(keep, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[keep])])
        return type(self)(by_column=self.by_column.select(keep_cell), by_row=self.by_row.select(keep_cell), start=start)

    def _partition(self, cells: Cells, by_columns: Mask, line: Places) -> tuple[Cells, Integers]:
        """Return the cells in a stable partition of each node, cells below its line first; and (n,) the number of cells below."""
        size = len(cells.column)
        partitioned = Cells(column=np.empty(size, np.int32), row=np.empty(size, np.int32), count=np.empty(size, np.int64))
        below = np.empty(len(line), np.int64)
        for nodes, part in self._batches():
            sizes = np.diff(self.start[nodes.start : nodes.stop + 1])
            target, below[nodes] = _partition_targets(cells.select(part), sizes, by_columns[nodes], line[nodes])
            partitioned.column[part][target] = cells.column[part]
            partitioned.row[part][target] = cells.row[part]
            partitioned.count[part][target] = cells.count[part]
        return partitioned, below

    def _batches(self) -> Iterator[tuple[slice, slice]]:
        """Yield slices of nodes and of their cells, a bounded number of cells at a time unless one node has more."""
        first, nodes = 0, len(self.start) - 1
        while first < nodes:
            last = int(np.searchsorted(self.start, self.start[first] + _CELLS_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), nodes)
            yield slice(first, last), slice(int(self.start[first]), int(self.start[last]))
            first = last


def _choose(by_columns: Mask, sizes: Integers, of_columns: NDArray[Any], of_rows: NDArray[Any]) -> NDArray[Any]:
    """Return (k,) values of the cells of (n,) nodes of these sizes: the first ones where a node is cut between columns, else the others."""
    if by_columns.all():
        return of_columns
    return np.where(np.repeat(by_columns, sizes), of_columns, of_rows) if by_columns.any() else of_rows


def _partition_targets(cells: Cells, sizes: Integers, by_columns: Mask, line: Places) -> tuple[Integers, Integers]:
    """Return (k,) new index of each cell in a stable partition of every node by its line, and (n,) how many cells are below the line."""
    is_above = _choose(by_columns, sizes, cells.column, cells.row) >= np.repeat(line, sizes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    above_before = np.zeros(len(is_above) + 1, np.int64)
    np.cumsum(is_above, out=above_before[1:])
    above_count = np.diff(above_before[start])
    first_above = above_before[start[:-1]]
    target_above = above_before[:-1] + np.repeat(start[1:] - above_count - first_above, sizes)
    target_below = np.arange(len(is_above)) - above_before[:-1] + np.repeat(first_above, sizes)
    return np.where(is_above, target_above, target_below), sizes - above_count


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
        """Return all occupied cells of a lattice."""
        position = morton(points.column.astype(np.int64), points.row.astype(np.int64))
        sort = np.argsort(position)
        below = np.concatenate([[0], np.cumsum(points.count[sort])])
        return cls(position=position[sort], below=below, order=points.domain.order)

    def records(self, node: Integers, depth: int) -> Integers:
        """Return (n,) records in quadtree nodes of one depth.

        Args:
            node: (n,) positions of the nodes on the curve of 2**depth columns; fastest if ascending.
            depth: depth of the nodes.
        """
        shift = 2 * (self.order - depth)
        begin, end = np.searchsorted(self.position, [node << shift, (node + 1) << shift])
        return np.asarray(self.below[end] - self.below[begin])


MOST_CELLS = 2**21


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CornerCounts:
    """The number of records south-west of each crossing of lattice lines. PRIVATE.

    A table of all numbers is made if it has at most `MOST_CELLS` entries. Otherwise each request is counted, in time that grows like
    (occupied cells + crossings) x log(columns), and in memory that grows like occupied cells + crossings.

    Attributes:
        points: the private counts.
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
        return self._count_south_west(row.ravel(), column.ravel()).reshape(row.shape)

    @cached_property
    def table(self) -> Integers:
        """(r, c) number of records south-west of every crossing."""
        lines_west, lines_south = (
            _count_lines_passed(lines, cells) for lines, cells in ((self.columns, self.points.column), (self.rows, self.points.row))
        )
        shape = (len(self.rows) + 1, len(self.columns) + 1)
        counts = np.bincount(lines_south * shape[1] + lines_west, self.points.count, shape[0] * shape[1]).reshape(shape).astype(np.int64)
        return counts.cumsum(0).cumsum(1)[:-1, :-1]

    def _count_south_west(self, row: Integers, column: Integers) -> Integers:
        """Count the records south-west of (m,) crossings, by a wavelet matrix.

        At first occupied cells are ordered by row, so that the cells south of a row line are a range. Then the cells are sorted stably by
        the bits of their column, the highest bit first. After each bit, the cells south of the row line whose higher bits equal those of
        the column line are still a range. If the next bit of the column line is 1, the cells of the range with bit 0 are west of the line.
        """
        passed, weight = _count_lines_passed(self.columns, self.points.column).astype(np.int32), self.points.count
        low, high = np.zeros(len(row), np.int64), np.searchsorted(self.points.row, self.rows)[row]
        totals, column = np.zeros(len(row), np.int64), column + 1  # cells west of line i have passed fewer than i + 1 lines
        for bit in reversed(range((len(self.columns) + 1).bit_length())):
            is_one = (passed >> bit & 1).astype(np.bool_)
            zeros, sums = _running_sums(~is_one), _running_sums(np.where(is_one, 0, weight))
            line_bit = (column >> bit & 1).astype(np.bool_)
            totals += np.where(line_bit, sums[high] - sums[low], 0)
            low, high = (np.where(line_bit, zeros[-1] + edge - zeros[edge], zeros[edge]) for edge in (low, high))
            order = np.concatenate([np.flatnonzero(~is_one), np.flatnonzero(is_one)])
            passed, weight = passed[order], weight[order]
        return totals


def _count_lines_passed(lines: Lines, cells: NDArray[np.int32]) -> Integers:
    """Return (k,) how many of the ascending lines are at or below each cell's column (or row)."""
    return np.minimum(intervals(lines, cells) + 1, len(lines))


def _running_sums(values: NDArray[np.bool_] | Integers) -> Integers:
    """Return (n + 1,) running sums: the sum of all values before each value, then the sum of all."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums
