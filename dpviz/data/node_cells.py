"""The occupied cells of all nodes of a level, kept in two orders while the nodes are cut again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts

Places = NDArray[np.int32]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CELLS_AT_ONCE = 2**18


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cells:
    """(k,) columns, rows and counts of occupied cells, in some order. PRIVATE."""

    column: Places
    row: Places
    count: Integers

    def at(self, place: Integers | Mask | slice) -> Cells:
        """Some of the cells."""
        return Cells(column=self.column[place], row=self.row[place], count=self.count[place])


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeCells:
    """The cells of disjoint nodes. PRIVATE.

    Both orders hold the same cells and the nodes in the same places, so one sort at the start serves every level: a node cut
    across leaves `by_column` as it is, and `by_row` needs only a stable partition inside the node.

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
        """All cells as one node."""
        by_row = Cells(column=points.column, row=points.row, count=points.count)
        size = len(points.column)
        key = np.sort(points.column.astype(np.int64) << 39 | np.arange(size))
        return cls(by_column=by_row.at(key & (2**39 - 1)), by_row=by_row, start=np.array([0, size]))

    def records(self) -> Integers:
        """(n,) records in each node."""
        sums = np.concatenate([[0], np.cumsum(self.by_row.count)])
        return np.diff(sums[self.start])

    def along(self, across: Mask) -> tuple[Places, Integers]:
        """(k,) columns of nodes that are cut across and rows of the others, and (k,) counts, in order within each node."""
        if across.all():
            return self.by_column.column, self.by_column.count
        if not across.any():
            return self.by_row.row, self.by_row.count
        here = np.repeat(across, np.diff(self.start))
        return np.where(here, self.by_column.column, self.by_row.row), np.where(here, self.by_column.count, self.by_row.count)

    def cut(self, across: Mask, line: Integers, halved: Mask) -> Self:
        """Cut nodes in two.

        Args:
            across: (n,) columns are compared, else rows.
            line: (n,) lattice lines; cells below them come first.
            halved: (n,) nodes that are cut; the others stay whole.

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
        """The cells of some nodes only."""
        if keep.all():
            return self
        sizes = np.diff(self.start)
        here = np.repeat(keep, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[keep])])
        return type(self)(by_column=self.by_column.at(here), by_row=self.by_row.at(here), start=start)

    def _partitioned(self, cells: Cells, across: Mask, line: Places) -> tuple[Cells, Integers]:
        """The cells with those below their node's line first, in the same order otherwise; and (n,) how many are below."""
        size = len(cells.column)
        new = Cells(column=np.empty(size, np.int32), row=np.empty(size, np.int32), count=np.empty(size, np.int64))
        below = np.empty(len(line), np.int64)
        for nodes, part in self._batches():
            sizes = np.diff(self.start[nodes.start : nodes.stop + 1])
            place, below[nodes] = _places(cells.at(part), sizes, across[nodes], line[nodes])
            new.column[part][place] = cells.column[part]
            new.row[part][place] = cells.row[part]
            new.count[part][place] = cells.count[part]
        return new, below

    def _batches(self) -> Iterator[tuple[slice, slice]]:
        """Slices of nodes and of their cells, a bounded number of cells at a time unless one node has more."""
        first, nodes = 0, len(self.start) - 1
        while first < nodes:
            last = int(np.searchsorted(self.start, self.start[first] + _CELLS_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), nodes)
            yield slice(first, last), slice(int(self.start[first]), int(self.start[last]))
            first = last


def _places(cells: Cells, sizes: Integers, across: Mask, line: Places) -> tuple[Integers, Integers]:
    """(k,) where each cell goes in a stable partition of every node by its line, and (n,) how many cells are below it."""
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
