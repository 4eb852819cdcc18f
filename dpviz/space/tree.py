"""A hierarchy of lattice rectangles as flat arrays in breadth-first order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines
from dpviz.space.hilbert import Curve
from dpviz.space.morton import morton


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """Nested rectangles on a lattice; the root is the whole domain.

    Nodes stand in breadth-first order: levels are contiguous, and so are the children of a node. Levels count
    from the root, which is 0: a node's level is its depth. Children tile their parent; with a `curve` they tile its
    stretch of the Hilbert curve, and rectangles are the boxes around stretches, which may overlap.

    Attributes:
        parent: (n,) index of the parent, -1 for the root.
        first_child: (n,) index of the first child; meaningless where `children` is 0.
        children: (n,) number of children, 0 for a leaf.
        west: (n,) lattice lines of the rectangles, half-open: columns west..east-1, rows south..north-1.
        south: (n,)
        east: (n,)
        north: (n,)
        starts: (height + 2,) the nodes of depth d are starts[d]..starts[d + 1] - 1.
        lines: the columns' and rows' lattice lines if all leaves form one grid, in Morton order; else None.
        curve: the stretch that each node stands for; None where the rectangles themselves do not overlap.
    """

    parent: NDArray[np.int32]
    first_child: NDArray[np.int32]
    children: NDArray[np.int32]
    west: Lines
    south: Lines
    east: Lines
    north: Lines
    starts: tuple[int, ...]
    lines: tuple[Lines, Lines] | None = None
    curve: Curve | None = None

    def __post_init__(self) -> None:
        for array in (self.parent, self.first_child, self.children, self.west, self.south, self.east, self.north):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.parent)

    def __repr__(self) -> str:
        return f"Tree({len(self):,} nodes, {len(self.leaves):,} leaves, height {self.height})"

    @property
    def height(self) -> int:
        """Depth of the deepest node."""
        return len(self.starts) - 2

    @property
    def order(self) -> int:
        """The lattice has ``2**order`` columns and rows."""
        return int(self.east[0]).bit_length() - 1

    @property
    def overlaps(self) -> bool:
        """Whether rectangles may overlap."""
        return self.curve is not None

    @cached_property
    def depth(self) -> NDArray[np.int8]:
        """(n,) steps from the root."""
        return np.repeat(np.arange(self.height + 1, dtype=np.int8), np.diff(self.starts))

    @cached_property
    def leaves(self) -> Integers:
        """(leaves,) indices of the nodes without children."""
        return np.flatnonzero(self.children == 0)

    @cached_property
    def cells(self) -> NDArray[np.float64]:
        """(n,) lattice cells in each node: in its rectangle, or in its stretch of the curve."""
        if self.curve is not None:
            return np.ldexp((self.curve.last - self.curve.first).astype(np.float64), 2 * (self.order - self.curve.order))
        return (self.east - self.west).astype(np.float64) * (self.north - self.south)

    def at_depth(self, depth: int) -> slice:
        """The nodes of one depth."""
        return slice(self.starts[depth], self.starts[depth + 1])

    def rectangles(self, nodes: Integers | slice = slice(None)) -> NDArray[np.int32]:
        """(k, 4) west, south, east, north of `nodes` as lattice lines."""
        return np.stack([self.west[nodes], self.south[nodes], self.east[nodes], self.north[nodes]], axis=1)

    def cut(self, depth: int) -> Integers:
        """Nodes that tile the domain at `depth`: those of that depth, and leaves that stand above it."""
        above = np.flatnonzero(self.children[: self.starts[depth]] == 0)
        return np.concatenate([above, np.arange(self.starts[depth], self.starts[depth + 1])])

    def leaf_of(self, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        """(k,) the leaf that each lattice cell lies in."""
        if self.lines is not None:
            return self._grid_leaf(column, row)
        if self.curve is not None:
            leaves, first = self._along
            return leaves[np.searchsorted(first, self.curve.places(column, row, self.order), side="right") - 1]
        node = np.zeros(len(column), np.int64)
        for _ in range(self.height):
            node = self._child_of(node, column, row)
        return node

    def sums(self, column: NDArray[np.int32], row: NDArray[np.int32], count: Integers) -> Integers:
        """(n,) exact sums of lattice counts in every node."""
        total = np.bincount(self.leaf_of(column, row), weights=count, minlength=len(self)).astype(np.int64)
        for depth in range(self.height - 1, -1, -1):
            below, here = self.at_depth(depth + 1), self.at_depth(depth)
            total[here] += self.sum_children(depth, total[below]).astype(np.int64)
        return total

    def sum_children(self, depth: int, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over siblings: (nodes of depth + 1,) values to (nodes of depth,), 0 for leaves."""
        here, below = self.at_depth(depth), self.at_depth(depth + 1)
        fan_out = self.fan_outs[depth]
        if fan_out:
            grouped = values.reshape(-1, fan_out)
            total = grouped[:, 0] + grouped[:, 1] if fan_out > 1 else grouped[:, 0].copy()
            for child in range(2, fan_out):
                total += grouped[:, child]
            return total
        return np.bincount(self.parent[below] - here.start, weights=values, minlength=here.stop - here.start)

    def to_children(self, depth: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each parent's value at its children: (nodes of depth,) to (nodes of depth + 1,)."""
        fan_out = self.fan_outs[depth]
        if fan_out:
            return np.repeat(values, fan_out)
        return values[self.parent[self.at_depth(depth + 1)] - self.starts[depth]]

    @cached_property
    def fan_outs(self) -> tuple[int, ...]:
        """Per depth, how many children every node has; 0 where that differs from node to node."""
        return tuple(self._fan_out(depth) for depth in range(self.height))

    def _fan_out(self, depth: int) -> int:
        counts = self.children[self.at_depth(depth)]
        return int(counts[0]) if (counts == counts[0]).all() else 0

    @cached_property
    def _along(self) -> tuple[Integers, Integers]:
        """(leaves,) leaves in the order of the curve, and their first places."""
        assert self.curve is not None  # noqa: S101
        first = self.curve.first[self.leaves]
        order = np.argsort(first)
        return self.leaves[order], first[order]

    def _grid_leaf(self, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        assert self.lines is not None  # noqa: S101
        columns, rows = self.lines
        i, j = intervals(columns, column), intervals(rows, row)
        bottom = self.starts[self.height]
        if len(columns) == len(rows) and (len(columns) - 1).bit_count() == 1:
            return morton(i, j) + bottom
        ordered = morton(intervals(columns, self.west[bottom:]), intervals(rows, self.south[bottom:]))
        return np.searchsorted(ordered, morton(i, j)) + bottom

    def _child_of(self, node: Integers, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        """One step down: the child that holds each cell; leaves stay."""
        found = node.copy()
        for child in range(int(self.children.max(initial=0))):
            tried = self.first_child[node] + child
            valid = child < self.children[node]
            tried = np.where(valid, tried, 0)
            inside = (self.west[tried] <= column) & (column < self.east[tried]) & (self.south[tried] <= row) & (row < self.north[tried])
            found = np.where(valid & inside, tried, found)
        return found


def intervals(lines: Lines, values: NDArray[np.int32]) -> Integers:
    """(k,) which interval between `lines` each value lies in; a shift where the lines are a power of two apart."""
    step = int(lines[1] - lines[0])
    if step.bit_count() == 1 and int(lines[-1]) == step * (len(lines) - 1) and (np.diff(lines) == step).all():
        return values.astype(np.int64) >> (step.bit_length() - 1)
    return np.searchsorted(lines, values, side="right") - 1


def pruned(tree: Tree, stop: NDArray[np.bool_]) -> tuple[Tree, Integers]:
    """Remove all descendants of marked nodes.

    Args:
        tree: any tree.
        stop: (n,) nodes that shall become leaves.

    Returns:
        The smaller tree, and (k,) the indices of its nodes in `tree`.
    """
    keep = np.ones(len(tree), np.bool_)
    for depth in range(tree.height):
        here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
        keep[below] = tree.to_children(depth, (keep[here] & ~stop[here]).astype(np.float64)) > 0
    kept = np.flatnonzero(keep)
    renumbered = np.cumsum(keep) - 1
    children = np.where(stop[kept], 0, tree.children[kept]).astype(np.int32)
    starts = [int(keep[: tree.starts[depth]].sum()) for depth in range(tree.height + 2)]
    starts = [start for place, start in enumerate(starts) if place == 0 or start > starts[place - 1]]
    parent = np.where(kept > 0, renumbered[tree.parent[kept]], -1)
    return Tree(
        parent=parent.astype(np.int32),
        first_child=np.where(children > 0, renumbered[np.minimum(tree.first_child[kept], len(tree) - 1)], 0).astype(np.int32),
        children=children,
        west=tree.west[kept],
        south=tree.south[kept],
        east=tree.east[kept],
        north=tree.north[kept],
        starts=tuple(starts),
        lines=tree.lines if len(kept) == len(tree) else None,
        curve=None if tree.curve is None else tree.curve.of(kept),
    ), kept
