"""Sum-preserving interpolation inside the leaves of a quadtree: an alternative to the uniformity assumption."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpviz.space.tree import Tree

Floats = NDArray[np.float64]

FINEST_ORDER = 11
STEEPNESS = 3.0


def raster(tree: Tree, count: Floats, steepness: float = STEEPNESS) -> Floats:
    """Counts of equal blocks, from the root down: nodes keep theirs, and inside a leaf counts lean towards fuller neighbours.

    Every block is divided into 2 x 2 with limited slopes: a part is (E / 4) (1 +- r_x) (1 +- r_y), where r is the most cautious
    of the differences to the two neighbours (`steepness` times each, and their mean), at most 1. Parts add up to their block.

    Args:
        tree: of quarters, or of grids whose sides are powers of two; nodes are squares of the lattice.
        count: (n,) counts that add up.
        steepness: of slopes, 1 (cautious) to 4.

    Returns:
        (side, side) counts, [row, column], row 0 in the south; side 2**11 at most, finer nodes are summed up.

    Source:
        Own. Slopes as in van Leer, J. Comput. Phys. 32 (1979), with a minmod limiter.
    """
    order = int(tree.east[0]).bit_length() - 1
    halved = order - np.frexp((tree.east - tree.west).astype(np.float64))[1] + 1
    blocks = count[:1].reshape(1, 1)
    for depth in range(1, min(order, FINEST_ORDER) + 1):
        blocks = _divided(blocks, steepness)
        here = np.flatnonzero(halved == depth)
        shift = order - depth
        blocks[tree.south[here] >> shift, tree.west[here] >> shift] = count[here]
    return blocks


def _divided(blocks: Floats, steepness: float) -> Floats:
    """(2 s, 2 s) parts of (s, s) blocks."""
    quarter = np.maximum(blocks / 4, 0.0)
    up, across = (_slopes(quarter, axis, steepness) for axis in (0, 1))
    parts = np.empty((2 * len(blocks), 2 * len(blocks)))
    for row in (0, 1):
        for column in (0, 1):
            parts[row::2, column::2] = blocks / 4 * (1 + (2 * row - 1) * up) * (1 + (2 * column - 1) * across)
    return parts


def _slopes(quarter: Floats, axis: int, steepness: float) -> Floats:
    """(s, s) r along an axis, -1 to 1; 0 where a block is empty. Beyond the edge the neighbour is the block itself."""
    step = np.diff(quarter, axis=axis)
    edge = np.zeros_like(np.take(quarter, [0], axis=axis))
    left, right = np.concatenate([edge, step], axis=axis), np.concatenate([step, edge], axis=axis)
    size = np.minimum(np.minimum(np.abs(left), np.abs(right)) * steepness, np.abs(left + right) / 2)
    slope = np.where(left * right > 0, np.sign(left) * size, 0.0) / 4
    return np.divide(np.clip(slope, -quarter, quarter), quarter, out=np.zeros_like(quarter), where=quarter > 0)
