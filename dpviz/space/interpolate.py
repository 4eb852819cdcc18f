"""Interpolation inside leaves that keeps their sums, as an alternative to the assumption that records are uniform in each leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Mask
from dpviz.errors import DomainError
from dpviz.space.corner_sums import corner_sums
from dpviz.space.mask import CellMask
from dpviz.space.ranges import Cumulative, block_sums, sum_covering
from dpviz.space.tree import Tree

UNIFORM, INTERPOLATED, LOG_LINEAR = "uniform", "interpolated", "log-linear"
FILLS = (UNIFORM, INTERPOLATED, LOG_LINEAR)
FINEST_ORDER = 11
STEEPNESS = 3.0
_LARGEST_RATIO = float(np.exp(6))  # of neighbours, for log-linear interpolation
Divide = Callable[..., Floats]
"""A function that divides (s, s) blocks into (2 s, 2 s) parts, which add up to the blocks; it may be given the domain's `mask`."""


def interpolation_sums(tree: Tree, count: Floats, fill: str = INTERPOLATED, mask: CellMask | None = None) -> Cumulative:
    """Compute the difference between interpolated and uniform answers, as cumulative sums over a raster of blocks.

    Args:
        tree: any tree of rectangles that tile their parents.
        count: (n,) consistent counts: children add up to their parent.
        fill: "interpolated" (limited slopes) or "log-linear".
        mask: of the domain, if it has one.

    Returns:
        Sums to be added to answers that assume uniform leaves.

    Raises:
        DomainError: rectangles overlap, so that leaves have no well-defined neighbours.
    """
    if tree.overlaps:
        raise DomainError("Partitions that overlap cannot be interpolated; answer with fill='uniform'.")
    uniform = block_sums(tree, count, min(tree.order, FINEST_ORDER), mask)
    return accumulate_blocks(tree, interpolated_blocks(tree, count, _DIVISIONS[fill], mask) - uniform)


def accumulate_blocks(tree: Tree, blocks: Floats) -> Cumulative:
    """Prepare (side, side) counts of equal blocks of a tree's domain, [row, column], for sums in boxes."""
    lines = np.arange(len(blocks) + 1, dtype=np.float64) * ((1 << tree.order) // len(blocks))
    return Cumulative(columns=lines, rows=lines, sums=corner_sums(blocks))


def divide_with_limited_slopes(blocks: Floats, steepness: float = STEEPNESS, *, mask: CellMask | None = None) -> Floats:
    """Divide (s, s) blocks into (2 s, 2 s) parts with limited slopes.

    The parts of a block of count E are (E / 4) (1 +- r_x) (1 +- r_y). Along an axis, consider three numbers: `steepness` times the
    difference to either neighbour, and the mean of both differences. r is a quarter of the smallest of the three in absolute value,
    relative to E, and 0 if the two differences have opposite signs. r is between -1 and 1. So the parts add up to E, and none has the
    opposite sign.

    Args:
        blocks: counts, [row, column].
        steepness: the steepness of slopes, 1 (cautious) to 4.
        mask: of the domain, if it has one; see `interpolated_blocks`.

    Source:
        Our own. The slope limiter is van Leer's, "Towards the ultimate conservative difference scheme V", J. Comput. Phys. 32, 1979.
    """
    return _divide(blocks, lambda quarter, axis, is_open: _limited_slopes(quarter, axis, steepness, is_open), mask)


def divide_log_linearly(blocks: Floats, *, mask: CellMask | None = None) -> Floats:
    """Divide (s, s) blocks into (2 s, 2 s) parts as if the logarithm of the density were linear between the neighbours of a block.

    The parts of a block of count E are (E / 4) (1 +- r_x) (1 +- r_y). Along an axis, with neighbours of counts L and H, the logarithm of
    the density changes by log(H / L) / 2 per block, so by half of this between the middles of the two parts: their ratio is
    (1 + r) / (1 - r) = (H / L)**(1/4), and r = tanh(log(H / L) / 8). The ratios L / E and H / E are cut to exp(-6) to exp(6), so that r
    is between -0.91 and 0.91. Counts of 0 or less stand for nothing: such a block is divided evenly. At the edge, the missing neighbour
    equals the block. With a mask: see `interpolated_blocks`.

    >>> divide_log_linearly(np.array([[1.0, 1.0], [16.0, 16.0]])).sum(axis=1).round(3).tolist()
    [0.667, 1.333, 10.667, 21.333]
    """
    return _divide(blocks, _log_slopes, mask)


def interpolated_blocks(tree: Tree, count: Floats, divide: Divide = divide_with_limited_slopes, mask: CellMask | None = None) -> Floats:
    """Estimate counts of equal blocks of the domain; inside a leaf, blocks near leaves with more records get more.

    Blocks are divided into 2 x 2 from the root down. A block inside one leaf is divided by `divide`. A block in several leaves gets from
    each of them a share in proportion to the area in common.

    With a mask, the counts of blocks are compared per open cell, and the parts are weighted by their open cells, so that masked parts get
    nothing. A masked neighbour is treated as one that is missing at the domain's edge.

    Args:
        tree: any tree of rectangles that tile their parents.
        count: (n,) consistent counts: children add up to their parent.
        divide: how blocks are divided: `divide_with_limited_slopes` or `divide_log_linearly`.
        mask: of the domain, if it has one.

    Returns:
        (side, side) counts, [row, column], row 0 in the south; one per lattice cell, but at most 2**11 per side.
    """
    blocks = np.full((1, 1), count[0])
    for depth in range(1, min(tree.order, FINEST_ORDER) + 1):
        is_divided = np.repeat(np.repeat(_blocks_inside_leaves(tree, depth - 1), 2, axis=0), 2, axis=1)
        known = block_sums(tree, np.where(_fills_blocks(tree, depth - 1), 0.0, count), depth, mask)
        blocks = np.where(is_divided, divide(blocks, mask=mask), known)
    return blocks


def _fills_blocks(tree: Tree, zoom: int) -> Mask:
    """Return (n,) whether a node is a leaf that consists of whole blocks, which are divided, so that nothing else need be known of it."""
    within = (1 << (tree.order - zoom)) - 1
    return np.asarray((tree.children == 0) & ((tree.west | tree.south | tree.east | tree.north) & within == 0))


def _blocks_inside_leaves(tree: Tree, zoom: int) -> Mask:
    """Return (2**zoom, 2**zoom) whether each block is wholly inside one leaf, by a difference array over the leaves."""
    side, width = 1 << zoom, 1 << (tree.order - zoom)
    west, south, east, north = tree.rectangles(tree.leaves).T.astype(np.int64)
    west, south, east, north = -(-west // width), -(-south // width), east // width, north // width
    with_blocks = np.flatnonzero((west < east) & (south < north))
    edges = [edge[with_blocks] for edge in (west, south, east, north)]
    return np.asarray(sum_covering(edges, np.ones(len(with_blocks), np.int64), (side + 1, side + 1)) > 0)


def _divide(blocks: Floats, slopes: Callable[[Floats, int, Mask | None], Floats], mask: CellMask | None) -> Floats:
    """Divide (s, s) blocks into (2 s, 2 s) parts, by the slopes r of (s, s) quarters of the blocks along an axis."""
    if mask is not None:
        return _divide_open(blocks, slopes, mask)
    quarter = np.maximum(blocks / 4, 0.0)
    up, across = (slopes(quarter, axis, None) for axis in (0, 1))
    return _tilt(blocks / 4, up, across)


def _divide_open(blocks: Floats, slopes: Callable[[Floats, int, Mask | None], Floats], mask: CellMask) -> Floats:
    """Divide (s, s) blocks into (2 s, 2 s) parts, by the slopes of their densities in open cells."""
    shares = mask.open_shares(len(blocks).bit_length())
    whole = _add_quarters(shares)
    is_open = whole > 0
    density = np.divide(np.maximum(blocks, 0.0), whole, out=np.zeros_like(blocks), where=is_open)
    up, across = (slopes(density, axis, is_open) for axis in (0, 1))
    weights = shares * _tilt(np.ones_like(blocks), up, across)
    total = _add_quarters(weights)
    per_weight = np.divide(blocks, total, out=np.zeros_like(blocks), where=total > 0)
    return np.asarray(weights * np.repeat(np.repeat(per_weight, 2, axis=0), 2, axis=1))


def _add_quarters(parts: Floats) -> Floats:
    """Return (s, s) sums of the four parts of each block, of (2 s, 2 s) parts."""
    return np.asarray(parts[::2, ::2] + parts[1::2, ::2] + parts[::2, 1::2] + parts[1::2, 1::2])


def _tilt(quarter: Floats, up: Floats, across: Floats) -> Floats:
    """Return (2 s, 2 s) parts of blocks, of (s, s) quarters and their slopes along both axes."""
    parts = np.empty((2 * len(quarter), 2 * len(quarter)))
    for row in (0, 1):
        for column in (0, 1):
            parts[row::2, column::2] = quarter * (1 + (2 * row - 1) * up) * (1 + (2 * column - 1) * across)
    return parts


def _limited_slopes(quarter: Floats, axis: int, steepness: float, is_open: Mask | None) -> Floats:
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


def _log_slopes(quarter: Floats, axis: int, is_open: Mask | None) -> Floats:
    """Compute the (s, s) slopes r along an axis from the logarithms of the neighbours' counts; 0 where a block is empty."""
    low, high = _neighbours(quarter, axis)
    if is_open is not None:
        low, high = (np.where(side, each, quarter) for side, each in zip(_neighbours(is_open, axis), (low, high), strict=True))
    least, most = quarter / _LARGEST_RATIO, quarter * _LARGEST_RATIO
    ratio = np.divide(high.clip(least, most), low.clip(least, most), out=np.ones_like(quarter), where=quarter > 0)
    root = np.sqrt(np.sqrt(ratio))
    return np.asarray((root - 1) / (root + 1))


def _neighbours(values: NDArray[Any], axis: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the (s, s) values of both neighbours along an axis; at the edge, the missing neighbour equals the block."""
    padded = np.pad(values, [(1, 1) if each == axis else (0, 0) for each in (0, 1)], mode="edge")
    return (padded[:-2], padded[2:]) if axis == 0 else (padded[:, :-2], padded[:, 2:])


_DIVISIONS = {INTERPOLATED: divide_with_limited_slopes, LOG_LINEAR: divide_log_linearly}
