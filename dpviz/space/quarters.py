"""Quadtrees whose nodes are split or not, one by one: their parts, and the tree in the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpviz.space.levels import tree_of
from dpviz.space.morton import places
from dpviz.space.tree import Tree

Indices = NDArray[np.int64]


def parts(node: Indices, halvings: int = 1) -> Indices:
    """(n * 4**halvings,) the parts of (n,) nodes, each node's in order; nodes are places on the Z-order curve of their depth."""
    fan_out = 1 << 2 * halvings
    return np.repeat(node << 2 * halvings, fan_out) + np.tile(np.arange(fan_out), len(node))


def rectangles(node: Indices, halved: int, order: int) -> Indices:
    """(n, 4) west, south, east, north as lattice lines of nodes that are 2**halved to a side of the domain."""
    column, row = places(node)
    return np.stack([column, row, column + 1, row + 1], axis=1) << (order - halved)


def quarter_tree(nodes: Sequence[Indices], children: Sequence[Indices], halved: Sequence[int], order: int) -> Tree:
    """The tree of nodes grown level by level.

    Args:
        nodes: one array per depth: places on the Z-order curve of 2**halved columns.
        children: one array per depth: how many children each node has.
        halved: per depth, how often the domain's sides were halved.
        order: of the lattice.
    """
    return tree_of([rectangles(level, halves, order) for level, halves in zip(nodes, halved, strict=True)], children)
