"""A grid whose cells are cut into grids of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.space.domain import Domain
from dpviz.space.grids import grid
from dpviz.space.levels import tree_of
from dpviz.space.tree import Tree

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Subgrids:
    """Sub-cells of the cells of a grid: cell k is cut into columns[k] x rows[k] parts whose edges are lattice lines.

    Attributes:
        base: the tree of the grid, whose leaves are its cells.
        columns: (k,) parts across, at most the cell's width, in the order of the grid's leaves.
        rows: (k,) parts up, at most its height.
    """

    base: Tree
    columns: Indices
    rows: Indices

    @classmethod
    def of(cls, domain: Domain, side: int, parts: Indices) -> Subgrids:
        """A grid of side x side cells, cell k cut into parts[k] x parts[k], or as many as the lattice has room for."""
        base = grid(domain, side, side)
        leaves = base.leaves
        width, height = base.east[leaves] - base.west[leaves], base.north[leaves] - base.south[leaves]
        return cls(base=base, columns=np.minimum(parts, width).astype(np.int64), rows=np.minimum(parts, height).astype(np.int64))

    @cached_property
    def offset(self) -> Indices:
        """(k + 1,) number of the first part of each cell; parts count row by row from the south-west."""
        return np.concatenate([[0], np.cumsum(self.columns * self.rows)])

    def part_of(self, column: NDArray[np.int32], row: NDArray[np.int32]) -> Indices:
        """(n,) the part that each lattice cell lies in: floor(k w / c) <= u < floor((k + 1) w / c) for k = ((u + 1) c - 1) // w."""
        leaf = self.base.leaf_of(column, row)
        cell, base = leaf - self.base.leaves[0], self.base
        across = ((column - base.west[leaf] + 1) * self.columns[cell] - 1) // (base.east[leaf] - base.west[leaf])
        up = ((row - base.south[leaf] + 1) * self.rows[cell] - 1) // (base.north[leaf] - base.south[leaf])
        return np.asarray(self.offset[cell] + up * self.columns[cell] + across, np.int64)

    def tree(self) -> tuple[Tree, Indices]:
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

    def _rectangles(self, nodes: Indices) -> Indices:
        """(n, 4) lattice lines of (n, 5) cell, first column, first row, end column and end row of groups of parts."""
        cell, west, south, east, north = nodes.T
        box = self.base.rectangles(self.base.leaves[cell]).astype(np.int64)
        width, height = box[:, 2] - box[:, 0], box[:, 3] - box[:, 1]
        across, up = self.columns[cell], self.rows[cell]
        sides = [box[:, 0] + west * width // across, box[:, 1] + south * height // up]
        return np.stack([*sides, box[:, 0] + east * width // across, box[:, 1] + north * height // up], axis=1)


def _halved(nodes: Indices, *, whole_too: bool) -> tuple[Indices, Indices]:
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
