"""Build trees: complete quadtrees, quadtrees grown level by level, grids of leaves under a pyramid, and grids within grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines, Mask, number_runs
from dpviz.errors import DomainError
from dpviz.space.domain import Domain
from dpviz.space.hilbert import Curve
from dpviz.space.morton import cells_at, morton
from dpviz.space.tree import Tree

MOST_NODES = 2**25
BYTES_PER_NODE = 120


def quadtree(domain: Domain, height: int, fan_out: int = 4) -> Tree:
    """Build the complete quadtree: every node is cut into equal quarters (or sixteenths).

    Args:
        domain: the domain, whose lattice is used.
        height: the number of levels below the root. Each level halves the sides once (fan-out 4) or twice (fan-out 16; the last one
            only once if the lattice has no finer lines).
        fan_out: children per node, 4 or 16.

    Raises:
        DomainError: the tree is finer than the lattice, or too large for memory.

    >>> quadtree(Domain(bounds=(0, 0, 8, 8), crs=None, order=3), height=2)
    Tree(21 nodes, 16 leaves, height 2)
    """
    halvings = 1 if fan_out == 4 else 2
    steps = tuple(min(halvings, domain.order - halvings * step) for step in range(height))
    if height < 1 or fan_out not in (4, 16) or min(steps) < 1:
        raise DomainError(f"A quadtree of fan-out {fan_out} and height {height} does not fit a lattice of order {domain.order}.")
    side = 1 << sum(steps)
    return _pyramid(domain.order, side, side, steps)


def grid(domain: Domain, columns: int, rows: int) -> Tree:
    """Build `columns` x `rows` leaves of nearly equal size, with edges on lattice lines, under a pyramid of groups of 2 x 2.

    The pyramid makes range queries and coarser zoom levels fast. Mechanisms need not measure its inner nodes.

    Args:
        domain: the domain, whose lattice is used.
        columns: number of columns, 1 to the lattice's side.
        rows: number of rows, likewise.

    Raises:
        DomainError: the grid is finer than the lattice, or too large for memory.

    >>> grid(Domain(bounds=(0, 0, 8, 8), crs=None, order=3), columns=3, rows=3)
    Tree(14 nodes, 9 leaves, height 2)
    """
    if not (1 <= columns <= domain.side and 1 <= rows <= domain.side):
        raise DomainError(f"A grid needs 1 to {domain.side} columns and rows on this lattice.")
    height = max(1, (max(columns, rows) - 1).bit_length())
    return _pyramid(domain.order, columns, rows, (1,) * height)


@lru_cache(maxsize=2)
def _pyramid(order: int, columns: int, rows: int, steps: tuple[int, ...]) -> Tree:
    """Build a grid of leaves under nodes that each group 2**step x 2**step nodes of the next depth. The tree is public and is cached."""
    nodes = sum(-(-columns // (1 << sum(steps[depth:]))) * -(-rows // (1 << sum(steps[depth:]))) for depth in range(len(steps) + 1))
    _refuse_nodes(nodes, f"{columns:,} x {rows:,} partitions need", "Choose a smaller height, side or order.")
    xs, ys = snap_lines(columns, 1 << order), snap_lines(rows, 1 << order)
    rectangles, codes = [], []
    for depth in range(len(steps) + 1):
        width = 1 << sum(steps[depth:])
        across, up = -(-columns // width), -(-rows // width)
        i, j = (part.ravel() for part in np.meshgrid(np.arange(across), np.arange(up)))
        codes.append(np.sort(morton(i, j)))
        west, south = cells_at(codes[-1])
        ends = ((xs, west), (ys, south), (xs, west + 1), (ys, south + 1))
        rectangles.append(np.stack([lines[np.minimum(at * width, len(lines) - 1)] for lines, at in ends], axis=1))
    parents = [np.searchsorted(above, below >> (2 * step)) for above, below, step in zip(codes, codes[1:], steps, strict=False)]
    children = [np.bincount(parent, minlength=len(above)) for parent, above in zip(parents, codes, strict=False)]
    return tree_of(rectangles, [*children, np.zeros(len(codes[-1]), np.int64)], lines=(xs, ys))


def snap_lines(parts: int, side: int) -> Lines:
    """Choose (parts + 1,) lattice lines nearest to even spacing, from 0 to `side`; distinct if parts <= side."""
    return ((np.arange(parts + 1) * side + parts // 2) // parts).astype(np.int32)


Rectangles = NDArray[Any]


def tree_of(
    rectangles: Sequence[Rectangles],
    children: Sequence[NDArray[np.int64]],
    curve: Curve | None = None,
    lines: tuple[Lines, Lines] | None = None,
) -> Tree:
    """Build a tree from its levels.

    Args:
        rectangles: one (n_d, 4) array per depth, root first: west, south, east, north as lattice lines. The children of each node
            are consecutive, in the order of their parents.
        children: one (n_d,) array per depth: the number of children of each node; zeros for the last depth.
        curve: the stretches of the Hilbert curve that the nodes cover, if the rectangles are bounding boxes of such stretches; else None.
        lines: the lattice lines of columns and rows, if the nodes of the last depth are a grid; else None.
    """
    fans = np.concatenate(children).astype(np.int32)
    west, south, east, north = (np.concatenate([level[:, side] for level in rectangles]).astype(np.int32) for side in range(4))
    child_ends = np.cumsum(fans, dtype=np.int64)
    return Tree(
        parent=np.concatenate([[-1], np.repeat(np.arange(len(fans)), fans)]).astype(np.int32),
        first_child=(child_ends - fans + 1).astype(np.int32),
        children=fans,
        west=west,
        south=south,
        east=east,
        north=north,
        starts=(0, *np.cumsum([len(level) for level in rectangles]).tolist()),
        curve=curve,
        lines=lines,
    )


def refuse_too_large(height: int, fan_out: int) -> None:
    """Check that a complete tree fits in memory.

    Args:
        height: the number of levels below the root.
        fan_out: children per node.

    Raises:
        DomainError: the tree would have more than 2**25 nodes.
    """
    nodes = sum(fan_out**depth for depth in range(height + 1))
    _refuse_nodes(nodes, f"A tree of height {height} needs up to", "Choose a smaller height.")


def _refuse_nodes(nodes: int, needs: str, remedy: str) -> None:
    if nodes > MOST_NODES:
        raise DomainError(
            f"{needs} {nodes:,} nodes and about {nodes * BYTES_PER_NODE / 2**30:,.0f} GiB of memory;"
            f" at most {MOST_NODES:,} nodes are allowed. {remedy}"
        )


def split_nodes(node: Integers, halvings: int = 1) -> Integers:
    """Halve each side of nodes, and return the parts.

    Args:
        node: (n,) nodes as positions on the Z-order curve of their depth.
        halvings: the number of times that each side is halved.

    Returns:
        (n * 4**halvings,) positions on the finer curve, node by node.

    >>> split_nodes(np.array([2])).tolist()
    [8, 9, 10, 11]
    """
    fan_out = 1 << 2 * halvings
    return np.repeat(node << 2 * halvings, fan_out) + np.tile(np.arange(fan_out), len(node))


def have_open_cells(node: Integers, halved: int, domain: Domain) -> Mask:
    """Return (n,) whether nodes of a grid of 2**halved columns and rows, as positions on the Z-order curve, have an open cell."""
    if domain.mask is None:
        return np.ones(len(node), np.bool_)
    column, row = cells_at(node)
    return domain.mask.holds(column, row, halved)


def rectangles(node: Integers, halved: int, order: int) -> Integers:
    """Compute the rectangles of nodes in a grid of 2**halved columns and rows.

    Args:
        node: (n,) positions on the Z-order curve.
        halved: the number of times that the domain's sides were halved.
        order: the order of the lattice.

    Returns:
        (n, 4) west, south, east, north as lattice lines.
    """
    column, row = cells_at(node)
    return np.stack([column, row, column + 1, row + 1], axis=1) << (order - halved)


def quarter_tree(nodes: Sequence[Integers], children: Sequence[Integers], halved: Sequence[int], order: int) -> Tree:
    """Build a quadtree from its levels.

    Args:
        nodes: one array per depth, root first: positions of the nodes on the Z-order curve of that depth's grid.
        children: one array per depth: the number of children of each node.
        halved: per depth, the number of times that the domain's sides were halved: its grid has 2**halved columns.
        order: the order of the lattice.
    """
    return tree_of([rectangles(level, halves, order) for level, halves in zip(nodes, halved, strict=True)], children)


@dataclass(frozen=True, kw_only=True, eq=False)
class Subgrids:
    """Grids within a grid: cell k of a grid is cut into columns[k] x rows[k] parts with edges on lattice lines.

    Attributes:
        base: the tree of the outer grid, whose leaves are its cells.
        columns: (cells,) number of parts from west to east, at most the cell's width, in the order of the grid's leaves.
        rows: (cells,) number of parts from south to north, at most the cell's height.
    """

    base: Tree
    columns: Integers
    rows: Integers

    @classmethod
    def of(cls, domain: Domain, side: int, parts: Integers) -> Subgrids:
        """Make a grid of cells, each cut into a square grid of its own.

        Args:
            domain: the domain, whose lattice is used.
            side: columns and rows of the outer grid.
            parts: (side**2,) cell k is cut into parts[k] x parts[k] parts, or as many as the lattice allows.
        """
        base = grid(domain, side, side)
        leaves = base.leaves
        width, height = base.east[leaves] - base.west[leaves], base.north[leaves] - base.south[leaves]
        return cls(base=base, columns=np.minimum(parts, width).astype(np.int64), rows=np.minimum(parts, height).astype(np.int64))

    @cached_property
    def offset(self) -> Integers:
        """(cells + 1,) index of the first part of each cell. The parts of a cell are numbered row by row from the south-west."""
        return np.concatenate([[0], np.cumsum(self.columns * self.rows)])

    def part_of(self, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        """Find the part that contains each lattice cell.

        In a cell of width w with c columns of parts, column k covers the lattice columns floor(k w / c) <= u < floor((k + 1) w / c),
        so that k = ((u + 1) c - 1) // w.

        Args:
            column: (n,) lattice columns.
            row: (n,) lattice rows.

        Returns:
            (n,) indices of parts.
        """
        leaf = self.base.leaf_of(column, row)
        cell, base = leaf - self.base.leaves[0], self.base
        across = ((column - base.west[leaf] + 1) * self.columns[cell] - 1) // (base.east[leaf] - base.west[leaf])
        up = ((row - base.south[leaf] + 1) * self.rows[cell] - 1) // (base.north[leaf] - base.south[leaf])
        return np.asarray(self.offset[cell] + up * self.columns[cell] + across, np.int64)

    def tree(self) -> tuple[Tree, Integers]:
        """Build the tree of the outer grid, with the parts of each cell below it, in groups of 2 x 2 if there are more than four parts.

        A cell with a single part has one child of its own size, so that the cell and its part can both be measured.

        Returns:
            The tree, and (p,) the node of each part.
        """
        base, bottom = self.base, self.base.height
        levels = [base.rectangles(base.at_depth(depth)).astype(np.int64) for depth in range(bottom + 1)]
        children = [base.children[base.at_depth(depth)].astype(np.int64) for depth in range(bottom)]
        nodes = np.stack([np.arange(len(self.columns)), *(0 * self.columns, 0 * self.rows, self.columns, self.rows)], axis=1)
        node_of, first, first_step = np.empty(self.offset[-1], np.int64), base.starts[bottom], True
        while len(nodes):
            nodes, fans = _halve_groups(nodes, whole_too=first_step)
            first, first_step = first + len(levels[-1]), False
            children.append(fans)
            levels.append(self._rectangles(nodes))
            single = np.flatnonzero((nodes[:, 3:] - nodes[:, 1:3] == 1).all(axis=1))
            cell, across, up = nodes[single, :3].T
            node_of[self.offset[cell] + up * self.columns[cell] + across] = first + single
            if len(single) == len(nodes):
                break
        children.append(np.zeros(len(nodes), np.int64))
        return tree_of(levels, children), node_of

    def _rectangles(self, nodes: Integers) -> Integers:
        """Compute (n, 4) rectangles of groups of parts, given as (n, 5) cell, first column, first row, end column and end row."""
        cell, west, south, east, north = nodes.T
        box = self.base.rectangles(self.base.leaves[cell]).astype(np.int64)
        width, height = box[:, 2] - box[:, 0], box[:, 3] - box[:, 1]
        across, up = self.columns[cell], self.rows[cell]
        sides = [box[:, 0] + west * width // across, box[:, 1] + south * height // up]
        return np.stack([*sides, box[:, 0] + east * width // across, box[:, 1] + north * height // up], axis=1)


def _halve_groups(nodes: Integers, *, whole_too: bool) -> tuple[Integers, Integers]:
    """Cut (n, 5) groups of parts into halves or quarters. Return these (p, 5) groups, and (n,) into how many each group was cut.

    A group of a single part is cut into none; with `whole_too`, into itself.
    """
    sizes = nodes[:, 3:] - nodes[:, 1:3]
    cut = sizes > 1
    fans = np.where(cut.any(axis=1) | whole_too, (1 + cut).prod(axis=1), 0)
    _, position = number_runs(fans)
    halves, cut, middle = (np.repeat(part, fans, axis=0) for part in (nodes, cut, nodes[:, 1:3] + (sizes + 1) // 2))
    second = np.stack([np.where(cut[:, 0], position % 2, 0), np.where(cut[:, 0], position // 2, position)], axis=1) > 0
    halves[:, 1:3] = np.where(cut & second, middle, halves[:, 1:3])
    halves[:, 3:] = np.where(cut & ~second, middle, halves[:, 3:])
    return halves, fans
