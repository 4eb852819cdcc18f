"""A hierarchy of lattice rectangles, stored as flat arrays in breadth-first order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines
from dpviz.space.hierarchy import Hierarchy
from dpviz.space.hilbert import Curve
from dpviz.space.morton import morton


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree(Hierarchy):
    """Nested rectangles on a lattice. The root is the whole domain.

    A node's level is its depth: 0 for the root. Children tile their parent. If the tree has a `curve`, the children tile their parent's
    stretch of the Hilbert curve, and rectangles are bounding boxes of stretches, which may overlap.

    Attributes:
        parent: (n,) index of the parent, -1 for the root.
        first_child: (n,) index of the first child; meaningless where `children` is 0.
        children: (n,) number of children, 0 for a leaf.
        west: (n,) lattice line. A rectangle covers the columns west..east-1 and the rows south..north-1.
        south: (n,) lattice line.
        east: (n,) lattice line.
        north: (n,) lattice line.
        starts: (height + 2,) the nodes of depth d are starts[d]..starts[d + 1] - 1.
        lines: lattice lines between the grid's columns and between its rows, outer edges included, if the leaves are one grid in Z-order
            (Morton order); else None.
        curve: the stretch of the Hilbert curve that each node covers; None if nodes are rectangles that do not overlap.

    >>> from dpviz.space.domain import Domain
    >>> from dpviz.space.grids import quadtree
    >>> tree = quadtree(Domain(bounds=(0, 0, 4, 4), crs=None, order=2), height=1)
    >>> tree, tree.rectangles().tolist()
    (Tree(5 nodes, 4 leaves, height 1), [[0, 0, 4, 4], [0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]])
    """

    west: Lines
    south: Lines
    east: Lines
    north: Lines
    lines: tuple[Lines, Lines] | None = None
    curve: Curve | None = None

    def __post_init__(self) -> None:
        for array in (self.parent, self.first_child, self.children, self.west, self.south, self.east, self.north):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"Tree({len(self):,} nodes, {len(self.leaves):,} leaves, height {self.height})"

    @property
    def order(self) -> int:
        """The lattice has ``2**order`` columns and rows."""
        return int(self.east[0]).bit_length() - 1

    @cached_property
    def block_order(self) -> int:
        """Every node consists of whole blocks of ``2**block_order`` per side, and of no larger ones; at most `order`."""
        edges = int(np.bitwise_or.reduce(self.west | self.south | self.east | self.north))
        return self.order - ((edges & -edges).bit_length() - 1)

    @property
    def overlaps(self) -> bool:
        """Whether rectangles may overlap, because they are bounding boxes of stretches of a curve."""
        return self.curve is not None

    @cached_property
    def cells(self) -> NDArray[np.float64]:
        """(n,) number of lattice cells in each node: in its rectangle, or in its stretch of the curve."""
        if self.curve is not None:
            return np.ldexp((self.curve.last - self.curve.first).astype(np.float64), 2 * (self.order - self.curve.order))
        return (self.east - self.west).astype(np.float64) * (self.north - self.south)

    def rectangles(self, nodes: Integers | slice = slice(None)) -> NDArray[np.int32]:
        """Return (k, 4) west, south, east, north of `nodes` as lattice lines."""
        return np.stack([self.west[nodes], self.south[nodes], self.east[nodes], self.north[nodes]], axis=1)

    def leaf_of(self, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        """Find the leaf that contains each lattice cell.

        Args:
            column: (k,) lattice columns.
            row: (k,) lattice rows.

        Returns:
            (k,) indices of leaves.
        """
        if self.lines is not None:
            return self._grid_leaf(*self.lines, column, row)
        if self.curve is not None:
            leaves, first = self._leaves_on_curve
            return leaves[np.searchsorted(first, self.curve.positions(column, row, self.order), side="right") - 1]
        if self._quarters is not None:
            leaves, first = self._quarters
            return leaves[np.searchsorted(first, morton(column.astype(np.int64), row.astype(np.int64)), side="right") - 1]
        node = np.zeros(len(column), np.int64)
        for _ in range(self.height):
            node = self._child_of(node, column, row)
        return node

    def sums(self, column: NDArray[np.int32], row: NDArray[np.int32], count: Integers) -> Integers:
        """Add up lattice counts in every node, exactly.

        Args:
            column: (k,) columns of occupied lattice cells.
            row: (k,) rows.
            count: (k,) whole counts of the cells; below 2**53 in all.

        Returns:
            (n,) sums.
        """
        return self.sum_up(np.bincount(self.leaf_of(column, row), weights=count, minlength=len(self)).astype(np.int64))

    @cached_property
    def _leaves_on_curve(self) -> tuple[Integers, Integers]:
        """(leaves,) leaves in the order of the curve, and (leaves,) their first positions."""
        assert self.curve is not None  # noqa: S101
        first = self.curve.first[self.leaves]
        order = np.argsort(first)
        return self.leaves[order], first[order]

    @cached_property
    def _quarters(self) -> tuple[Integers, Integers] | None:
        """As `_leaves_on_curve`, on the Z-order curve; None unless every leaf is a quarter of a quarter and so on of the lattice."""
        west, south, east, north = self.rectangles(self.leaves).T
        width = east - west
        if (((west | south | width) & (width - 1)) | (north - south - width)).any():
            return None
        first = morton(west.astype(np.int64), south.astype(np.int64))
        order = np.argsort(first)
        return self.leaves[order], first[order]

    def _grid_leaf(self, columns: Lines, rows: Lines, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        i, j = intervals(columns, column), intervals(rows, row)
        bottom = self.starts[self.height]
        if len(columns) == len(rows) and (len(columns) - 1).bit_count() == 1:
            return morton(i, j) + bottom
        ordered = morton(intervals(columns, self.west[bottom:]), intervals(rows, self.south[bottom:]))
        return np.searchsorted(ordered, morton(i, j)) + bottom

    def _child_of(self, node: Integers, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        """Find, for (k,) nodes, the child of each that contains the given cell; for a leaf, the leaf itself."""
        result = node.copy()
        for child in range(int(self.children.max(initial=0))):
            candidate = self.first_child[node] + child
            valid = child < self.children[node]
            candidate = np.where(valid, candidate, 0)
            west, south, east, north = (side[candidate] for side in (self.west, self.south, self.east, self.north))
            inside = (west <= column) & (column < east) & (south <= row) & (row < north)
            result = np.where(valid & inside, candidate, result)
        return result


def intervals(lines: Lines, values: NDArray[np.int32]) -> Integers:
    """Find the interval between lattice lines that contains each value.

    If the lines are evenly spaced by a power of two, this is a bit shift, which is fast.

    Args:
        lines: ascending lattice lines; the first is 0.
        values: (k,) lattice columns or rows, from the first line to below the last one.

    Returns:
        (k,) indices, 0 for the interval after the first line.
    """
    step = int(lines[1] - lines[0])
    if step.bit_count() == 1 and int(lines[-1]) == step * (len(lines) - 1) and (np.diff(lines) == step).all():
        return values.astype(np.int64) >> (step.bit_length() - 1)
    return np.searchsorted(lines, values, side="right") - 1


def remove_descendants(tree: Tree, stop: NDArray[np.bool_]) -> tuple[Tree, Integers]:
    """Remove all descendants of some nodes.

    Args:
        tree: any tree of n nodes.
        stop: (n,) whether a node becomes a leaf.

    Returns:
        The smaller tree, and (k,) the indices of its nodes in `tree`.
    """
    keep = np.ones(len(tree), np.bool_)
    for depth in range(tree.height):
        parents, child_nodes = tree.at_depth(depth), tree.at_depth(depth + 1)
        keep[child_nodes] = tree.to_children(depth, (keep[parents] & ~stop[parents]).astype(np.float64)) > 0
    kept_nodes = np.flatnonzero(keep)
    renumbered = np.cumsum(keep) - 1
    children = np.where(stop[kept_nodes], 0, tree.children[kept_nodes]).astype(np.int32)
    starts = [int(keep[: tree.starts[depth]].sum()) for depth in range(tree.height + 2)]
    starts = [start for index, start in enumerate(starts) if index == 0 or start > starts[index - 1]]
    parent = np.where(kept_nodes > 0, renumbered[tree.parent[kept_nodes]], -1)
    return Tree(
        parent=parent.astype(np.int32),
        first_child=np.where(children > 0, renumbered[np.minimum(tree.first_child[kept_nodes], len(tree) - 1)], 0).astype(np.int32),
        children=children,
        west=tree.west[kept_nodes],
        south=tree.south[kept_nodes],
        east=tree.east[kept_nodes],
        north=tree.north[kept_nodes],
        starts=tuple(starts),
        lines=tree.lines if len(kept_nodes) == len(tree) else None,
        curve=None if tree.curve is None else tree.curve.select(kept_nodes),
    ), kept_nodes
