"""A tree from its levels, as mechanisms that choose their own partitions grow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.errors import DomainError
from dpviz.space.grids import BYTES_PER_NODE, MOST_NODES
from dpviz.space.hilbert import Curve
from dpviz.space.tree import Tree

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
