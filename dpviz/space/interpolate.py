"""Interpolation inside leaves that keeps their sums, as an alternative to the assumption that records are uniform in each leaf."""

from __future__ import annotations

import numpy as np

from dpviz.arrays import Floats, Mask
from dpviz.errors import DomainError
from dpviz.space.mask import CellMask
from dpviz.space.ranges import Cumulative, block_sums
from dpviz.space.tree import Tree

INSIDE = ("uniform", "interpolated")
FINEST_ORDER = 11
STEEPNESS = 3.0


def interpolation_sums(tree: Tree, count: Floats, mask: CellMask | None = None) -> Cumulative:
    """Compute the difference between interpolated and uniform answers, as cumulative sums over a raster of blocks.

    Args:
        tree: any tree of rectangles that tile their parents.
        count: (n,) consistent counts: children add up to their parent.
        mask: of the domain, if it has one.

    Returns:
        Sums to be added to answers that assume uniform leaves.

    Raises:
        DomainError: rectangles overlap, so that leaves have no well-defined neighbours.
    """
    if tree.overlaps:
        raise DomainError("Partitions that overlap cannot be interpolated; answer with inside='uniform'.")
    depth = min(tree.order, FINEST_ORDER)
    sums = np.zeros(((1 << depth) + 1,) * 2)
    difference = interpolated_blocks(tree, count, mask=mask) - block_sums(tree, count, depth, mask)
    np.cumsum(np.cumsum(difference, axis=0), axis=1, out=sums[1:, 1:])
    lines = np.arange((1 << depth) + 1, dtype=np.float64) * (1 << (tree.order - depth))
    return Cumulative(columns=lines, rows=lines, sums=sums)


def interpolated_blocks(tree: Tree, count: Floats, steepness: float = STEEPNESS, mask: CellMask | None = None) -> Floats:
    """Estimate counts of equal blocks of the domain; inside a leaf, blocks near leaves with more records get more.

    Blocks are divided into 2 x 2 from the root down. A block of count E inside one leaf is divided with limited slopes: its
    parts are (E / 4) (1 +- r_x) (1 +- r_y). Along an axis, consider three numbers: `steepness` times the difference to either
    neighbour, and the mean of both differences. r is a quarter of the smallest of the three in absolute value, relative to E, and 0 if
    the two differences have opposite signs. r is between -1 and 1. So the parts add up to E, and none has the opposite sign. A block
    in several leaves gets from each of them a share in proportion to the area in common.

    With a mask, E / 4 is divided by the share of the block that is open, and the parts are weighted by their open shares, so that masked
    parts get nothing. A masked neighbour is treated as the domain's edge is: its difference is 0.

    Args:
        tree: any tree of rectangles that tile their parents.
        count: (n,) consistent counts: children add up to their parent.
        steepness: the steepness of slopes, 1 (cautious) to 4.
        mask: of the domain, if it has one.

    Returns:
        (side, side) counts, [row, column], row 0 in the south; one per lattice cell, but at most 2**11 per side.

    Source:
        Our own. The slope limiter is van Leer's, "Towards the ultimate conservative difference scheme V", J. Comput. Phys. 32, 1979.
    """
    blocks = np.full((1, 1), count[0])
    inside = _blocks_inside_leaves(tree, 0)
    for depth in range(1, min(tree.order, FINEST_ORDER) + 1):
        is_divided = np.repeat(np.repeat(inside, 2, axis=0), 2, axis=1)
        parts = _divide(blocks, steepness) if mask is None else _divide_open(blocks, steepness, mask)
        blocks = np.where(is_divided, parts, block_sums(tree, count, depth, mask))
        inside = _blocks_inside_leaves(tree, depth)
    return blocks


def _blocks_inside_leaves(tree: Tree, zoom: int) -> Mask:
    """Return (2**zoom, 2**zoom) whether each block is wholly inside one leaf, by a difference array over the leaves."""
    side, width = 1 << zoom, 1 << (tree.order - zoom)
    west, south, east, north = tree.rectangles(tree.leaves).T.astype(np.int64)
    west, south, east, north = -(-west // width), -(-south // width), east // width, north // width
    with_blocks = np.flatnonzero((west < east) & (south < north))
    steps = np.zeros((side + 1) * (side + 1), np.int64)
    for row, column, sign in ((south, west, 1), (north, east, 1), (south, east, -1), (north, west, -1)):
        np.add.at(steps, row[with_blocks] * (side + 1) + column[with_blocks], sign)
    return np.asarray(steps.reshape(side + 1, -1).cumsum(0).cumsum(1)[:-1, :-1] > 0)


def _divide(blocks: Floats, steepness: float) -> Floats:
    """Divide (s, s) blocks into (2 s, 2 s) parts by interpolation."""
    quarter = np.maximum(blocks / 4, 0.0)
    up, across = (_slopes(quarter, axis, steepness) for axis in (0, 1))
    return _tilt(blocks / 4, up, across)


def _tilt(quarter: Floats, up: Floats, across: Floats) -> Floats:
    """Return (2 s, 2 s) parts of (s, s) blocks by the slopes along their axes."""
    parts = np.empty((2 * len(quarter), 2 * len(quarter)))
    for row in (0, 1):
        for column in (0, 1):
            parts[row::2, column::2] = quarter * (1 + (2 * row - 1) * up) * (1 + (2 * column - 1) * across)
    return parts


def _divide_open(blocks: Floats, steepness: float, mask: CellMask) -> Floats:
    """Divide (s, s) blocks into (2 s, 2 s) parts by interpolation of the densities in their open shares."""
    order = len(blocks).bit_length()
    shares = mask.open_shares(order)
    whole = shares[::2, ::2] + shares[1::2, ::2] + shares[::2, 1::2] + shares[1::2, 1::2]
    is_open = whole > 0
    quarter = np.divide(np.maximum(blocks, 0.0), whole, out=np.zeros_like(blocks), where=is_open)
    up, across = (_slopes(quarter, axis, steepness, is_open) for axis in (0, 1))
    weights = shares * _tilt(np.ones_like(blocks), up, across)
    total = weights[::2, ::2] + weights[1::2, ::2] + weights[::2, 1::2] + weights[1::2, 1::2]
    per_weight = np.divide(blocks, total, out=np.zeros_like(blocks), where=total > 0)
    return np.asarray(weights * np.repeat(np.repeat(per_weight, 2, axis=0), 2, axis=1))


def _slopes(quarter: Floats, axis: int, steepness: float, is_open: Mask | None = None) -> Floats:
    """Compute the (s, s) slopes r along an axis, -1 to 1; 0 where a block is empty.

    At the edge, the missing neighbour equals the block; so does a neighbour that is not open.
    Negative counts are treated as 0. So a difference to a smaller neighbour is at most the block itself. Of two differences of equal
    sign one is to a smaller neighbour, so the smaller difference is at most the block, too. It is multiplied by `steepness` / 4 <= 1,
    so |r| is at most 1.
    """
    step = np.diff(quarter, axis=axis)
    if is_open is not None:
        step *= np.diff(is_open.astype(np.int8), axis=axis) == 0
    edge = np.zeros_like(np.take(quarter, [0], axis=axis))
    left, right = np.concatenate([edge, step], axis=axis), np.concatenate([step, edge], axis=axis)
    size = np.minimum(np.minimum(np.abs(left), np.abs(right)) * steepness, np.abs(left + right) / 2)
    slope = np.where(left * right > 0, np.sign(left) * size, 0.0) / 4
    return np.divide(slope, quarter, out=np.zeros_like(quarter), where=quarter > 0)
