"""Public trees: complete quadtrees, quadtrees split node by node, grids under a pyramid, and grids within grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines
from dpviz.errors import DomainError
from dpviz.space.domain import Domain
from dpviz.space.hilbert import Curve
from dpviz.space.morton import morton, places
from dpviz.space.tree import Tree

MOST_NODES = 2**25
BYTES_PER_NODE = 120


def quadtree(domain: Domain, height: int, fan_out: int = 4) -> Tree:
    """The complete quadtree: every node cut into equal quarters (or sixteenths).

    Args:
        domain: gives the lattice.
        height: steps below the root; a step halves each side once (fan-out 4) or twice (16, the last one once if the
            lattice has no more).
        fan_out: 4 or 16.

    Raises:
        DomainError: finer than the lattice, or too large for memory.
    """
    halvings = 1 if fan_out == 4 else 2
    steps = tuple(min(halvings, domain.order - halvings * step) for step in range(height))
    if height < 1 or fan_out not in (4, 16) or min(steps) < 1:
        raise DomainError(f"A quadtree of fan-out {fan_out} and height {height} does not fit a lattice of order {domain.order}.")
    side = 1 << sum(steps)
    return _pyramid(domain.order, side, side, steps)


def grid(domain: Domain, columns: int, rows: int) -> Tree:
    """`columns` x `rows` leaves of nearly equal size, edges snapped to lattice lines, under a pyramid of 2 x 2 groups.

    The pyramid makes range queries and coarser zoom levels cheap; nothing in it needs to be measured.

    Raises:
        DomainError: finer than the lattice, or too large for memory.
    """
    if not (1 <= columns <= domain.side and 1 <= rows <= domain.side):
        raise DomainError(f"A grid needs 1 to {domain.side} columns and rows on this lattice.")
    height = max(1, (max(columns, rows) - 1).bit_length())
    return _pyramid(domain.order, columns, rows, (1,) * height)


@lru_cache(maxsize=2)
def _pyramid(order: int, columns: int, rows: int, steps: tuple[int, ...]) -> Tree:
    """A grid of leaves under nodes that group 2**step x 2**step of the next depth; public, so it may be kept."""
    _check_size(columns, rows, steps)
    xs, ys = snapped(columns, 1 << order), snapped(rows, 1 << order)
    levels = []
    for depth in range(len(steps) + 1):
        width = 1 << sum(steps[depth:])
        across, up = -(-columns // width), -(-rows // width)
        i, j = (part.ravel() for part in np.meshgrid(np.arange(across), np.arange(up)))
        code = np.sort(morton(i, j))
        levels.append((width, *places(code), code))
    return _assembled(levels, xs, ys, steps)


def _assembled(levels: list[tuple[int, Integers, Integers, Integers]], xs: Lines, ys: Lines, steps: tuple[int, ...]) -> Tree:
    sizes = [len(level[1]) for level in levels]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parents, fans = [np.array([-1])], []
    for depth, step in enumerate(steps):
        up = np.searchsorted(levels[depth][3], levels[depth + 1][3] >> (2 * step))
        parents.append(up + starts[depth])
        fans.append(np.bincount(up, minlength=sizes[depth]))
    children = np.concatenate([*fans, np.zeros(sizes[-1], np.int64)])
    edges = [
        np.concatenate([lines[np.minimum((place[axis] + side) * place[0], len(lines) - 1)] for place in levels])
        for axis, lines, side in ((1, xs, 0), (2, ys, 0), (1, xs, 1), (2, ys, 1))
    ]
    return Tree(
        parent=np.concatenate(parents).astype(np.int32),
        first_child=(np.cumsum(children) - children + 1).astype(np.int32),
        children=children.astype(np.int32),
        west=edges[0],
        south=edges[1],
        east=edges[2],
        north=edges[3],
        starts=tuple(starts.tolist()),
        lines=(xs, ys),
    )


def snapped(parts: int, side: int) -> Lines:
    """(parts + 1,) lattice lines nearest to even spacing; distinct because parts <= side."""
    return ((np.arange(parts + 1) * side + parts // 2) // parts).astype(np.int32)


def _check_size(columns: int, rows: int, steps: tuple[int, ...]) -> None:
    nodes = sum(-(-columns // (1 << sum(steps[depth:]))) * -(-rows // (1 << sum(steps[depth:]))) for depth in range(len(steps) + 1))
    if nodes > MOST_NODES:
        raise DomainError(
            f"{columns:,} x {rows:,} partitions need {nodes:,} nodes and about {nodes * BYTES_PER_NODE / 2**30:,.0f} GiB of memory;"
            f" at most {MOST_NODES:,} nodes are allowed. Choose a smaller height, side or order."
        )


Rectangles = NDArray[Any]


def tree_of(rectangles: Sequence[Rectangles], children: Sequence[NDArray[np.int64]], curve: Curve | None = None) -> Tree:
    """The tree of levels that were grown one after the other.

    Args:
        rectangles: one (n_d, 4) array per depth, root first: west, south, east, north as lattice lines; the children of a
            node stand together, in the order of their parents.
        children: one (n_d,) array per depth: how many children each node has; zeros on the last one.
        curve: the stretches that the nodes stand for, if their rectangles are boxes around stretches of the Hilbert curve.
    """
    fans = np.concatenate(children).astype(np.int32)
    west, south, east, north = (np.concatenate([level[:, side] for level in rectangles]).astype(np.int32) for side in range(4))
    ends = np.cumsum(fans, dtype=np.int64)
    return Tree(
        parent=np.concatenate([[-1], np.repeat(np.arange(len(fans)), fans)]).astype(np.int32),
        first_child=(ends - fans + 1).astype(np.int32),
        children=fans,
        west=west,
        south=south,
        east=east,
        north=north,
        starts=(0, *np.cumsum([len(level) for level in rectangles]).tolist()),
        curve=curve,
    )


def refuse_too_large(height: int, fan_out: int) -> None:
    """Raise `DomainError` if a complete tree would need too much memory."""
    nodes = sum(fan_out**depth for depth in range(height + 1))
    if nodes > MOST_NODES:
        raise DomainError(
            f"A tree of height {height} needs up to {nodes:,} nodes and about {nodes * BYTES_PER_NODE / 2**30:,.0f} GiB of memory;"
            f" at most {MOST_NODES:,} nodes are allowed. Choose a smaller height."
        )


def parts(node: Integers, halvings: int = 1) -> Integers:
    """(n * 4**halvings,) the parts of (n,) nodes, each node's in order; nodes are places on the Z-order curve of their depth."""
    fan_out = 1 << 2 * halvings
    return np.repeat(node << 2 * halvings, fan_out) + np.tile(np.arange(fan_out), len(node))


def rectangles(node: Integers, halved: int, order: int) -> Integers:
    """(n, 4) west, south, east, north as lattice lines of nodes that are 2**halved to a side of the domain."""
    column, row = places(node)
    return np.stack([column, row, column + 1, row + 1], axis=1) << (order - halved)


def quarter_tree(nodes: Sequence[Integers], children: Sequence[Integers], halved: Sequence[int], order: int) -> Tree:
    """The tree of nodes grown level by level.

    Args:
        nodes: one array per depth: places on the Z-order curve of 2**halved columns.
        children: one array per depth: how many children each node has.
        halved: per depth, how often the domain's sides were halved.
        order: of the lattice.
    """
    return tree_of([rectangles(level, halves, order) for level, halves in zip(nodes, halved, strict=True)], children)


@dataclass(frozen=True, kw_only=True, eq=False)
class Subgrids:
    """Sub-cells of the cells of a grid: cell k is cut into columns[k] x rows[k] parts whose edges are lattice lines.

    Attributes:
        base: the tree of the grid, whose leaves are its cells.
        columns: (k,) parts across, at most the cell's width, in the order of the grid's leaves.
        rows: (k,) parts up, at most its height.
    """

    base: Tree
    columns: Integers
    rows: Integers

    @classmethod
    def of(cls, domain: Domain, side: int, parts: Integers) -> Subgrids:
        """A grid of side x side cells, cell k cut into parts[k] x parts[k], or as many as the lattice has room for."""
        base = grid(domain, side, side)
        leaves = base.leaves
        width, height = base.east[leaves] - base.west[leaves], base.north[leaves] - base.south[leaves]
        return cls(base=base, columns=np.minimum(parts, width).astype(np.int64), rows=np.minimum(parts, height).astype(np.int64))

    @cached_property
    def offset(self) -> Integers:
        """(k + 1,) number of the first part of each cell; parts count row by row from the south-west."""
        return np.concatenate([[0], np.cumsum(self.columns * self.rows)])

    def part_of(self, column: NDArray[np.int32], row: NDArray[np.int32]) -> Integers:
        """(n,) the part that each lattice cell lies in: floor(k w / c) <= u < floor((k + 1) w / c) for k = ((u + 1) c - 1) // w."""
        leaf = self.base.leaf_of(column, row)
        cell, base = leaf - self.base.leaves[0], self.base
        across = ((column - base.west[leaf] + 1) * self.columns[cell] - 1) // (base.east[leaf] - base.west[leaf])
        up = ((row - base.south[leaf] + 1) * self.rows[cell] - 1) // (base.north[leaf] - base.south[leaf])
        return np.asarray(self.offset[cell] + up * self.columns[cell] + across, np.int64)

    def tree(self) -> tuple[Tree, Integers]:
        """The base tree with the parts of each cell under groups of 2 x 2, and (p,) the node of each part.

        A cell that is not cut has one child of its own size, so that both can be measured.
        """
        base, bottom = self.base, self.base.height
        levels = [base.rectangles(base.at_depth(depth)).astype(np.int64) for depth in range(bottom + 1)]
        children = [base.children[base.at_depth(depth)].astype(np.int64) for depth in range(bottom)]
        nodes = np.stack([np.arange(len(self.columns)), *(0 * self.columns, 0 * self.rows, self.columns, self.rows)], axis=1)
        node_of, first, fresh = np.empty(self.offset[-1], np.int64), base.starts[bottom], True
        while len(nodes):
            nodes, fans = _halved(nodes, whole_too=fresh)
            first, fresh = first + len(levels[-1]), False
            children.append(fans)
            levels.append(self._rectangles(nodes))
            ends = np.flatnonzero((nodes[:, 3:] - nodes[:, 1:3] == 1).all(axis=1))
            cell, across, up = nodes[ends, :3].T
            node_of[self.offset[cell] + up * self.columns[cell] + across] = first + ends
            if len(ends) == len(nodes):
                break
        children.append(np.zeros(len(nodes), np.int64))
        return tree_of(levels, children), node_of

    def _rectangles(self, nodes: Integers) -> Integers:
        """(n, 4) lattice lines of (n, 5) cell, first column, first row, end column and end row of groups of parts."""
        cell, west, south, east, north = nodes.T
        box = self.base.rectangles(self.base.leaves[cell]).astype(np.int64)
        width, height = box[:, 2] - box[:, 0], box[:, 3] - box[:, 1]
        across, up = self.columns[cell], self.rows[cell]
        sides = [box[:, 0] + west * width // across, box[:, 1] + south * height // up]
        return np.stack([*sides, box[:, 0] + east * width // across, box[:, 1] + north * height // up], axis=1)


def _halved(nodes: Integers, *, whole_too: bool) -> tuple[Integers, Integers]:
    """(p, 5) halves or quarters of groups of several parts, and (n,) how many each has; single parts have none, or themselves."""
    sizes = nodes[:, 3:] - nodes[:, 1:3]
    cut = sizes > 1
    fans = np.where(cut.any(axis=1) | whole_too, (1 + cut).prod(axis=1), 0)
    place = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    halves, cut, middle = (np.repeat(part, fans, axis=0) for part in (nodes, cut, nodes[:, 1:3] + (sizes + 1) // 2))
    second = np.stack([np.where(cut[:, 0], place % 2, 0), np.where(cut[:, 0], place // 2, place)], axis=1) > 0
    halves[:, 1:3] = np.where(cut & second, middle, halves[:, 1:3])
    halves[:, 3:] = np.where(cut & ~second, middle, halves[:, 3:])
    return halves, fans
