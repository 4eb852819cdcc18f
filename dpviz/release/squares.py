"""How far off the equal squares of a zoom level are, from released numbers alone: by noise, and by what is not known inside partitions."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.errors import InputError
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain

FINEST_ZOOM = 10
_SAMPLED_BLOCKS = 1024
_ESTIMATED: WeakKeyDictionary[PointRelease, tuple[Floats, Floats]] = WeakKeyDictionary()


def expected_error(release: PointRelease, zoom: int) -> float:
    """Compute the error of block counts that is expected from the noise alone; no true counts are needed.

    If there are more than 1,024 blocks, the error is estimated from 1,024 evenly spaced ones; with a mask, from 1,024 random ones
    that the mask does not cover.

    Args:
        release: of points, by any mechanism.
        zoom: 0 to the domain's order; there are 2**zoom x 2**zoom equal blocks.

    Returns:
        Root mean square error of a block, in records.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> bool(0 < dv.evaluation.expected_error(release, zoom=2) < 2)
    True
    """
    if not isinstance(release, PointRelease):
        raise InputError("expected_error reads a release of points; before a release, use dv.expected_errors(mechanism, frame, budget).")
    boxes = block_boxes(release.domain, zoom, *sample_blocks(release.domain, zoom))
    _, stddev = release.answer(boxes, spread=True, fill="uniform")  # only the spread is used
    return float(np.sqrt((stddev**2).mean()))


def sample_blocks(domain: Domain, zoom: int) -> tuple[Integers, Integers]:
    """Choose up to 1,024 blocks of a zoom level that stand for all: evenly spaced ones, with a mask random ones that it leaves open.

    Returns:
        (k,) rows and (k,) columns, from the south and from the west.
    """
    side = 1 << zoom
    if domain.mask is not None:
        chosen = np.random.default_rng(0).permutation(np.flatnonzero(domain.mask.blocks(zoom)))[:_SAMPLED_BLOCKS]  # the same ones each time
        row, column = np.divmod(np.sort(chosen), side)
        return row, column
    row, column = np.divmod(np.unique(np.linspace(0, side**2 - 1, min(side**2, _SAMPLED_BLOCKS)).astype(np.int64)), side)
    return row, (column + row) % side  # evenly spaced numbers would often lie in few columns: each row is shifted by its own number


def block_boxes(domain: Domain, zoom: int, row: Integers, column: Integers) -> Floats:
    """Return (k, 4) the bounds of blocks of a zoom level, as west, south, east and north, in the domain's CRS."""
    return domain.coordinates(np.stack([column, row, column + 1, row + 1], axis=1) * (domain.side >> zoom))


def square_errors(release: PointRelease) -> tuple[Floats, Floats]:
    """Estimate the errors of the squares of each zoom level, from released numbers alone; they are computed once per release.

    The variance of the squares into which a partition of n records is cut is, in sum, (1 - s) (k n**2 + n), as for boxes that cut it (see
    `Unevenness`, which gives k). Here s is the sum of the squared shares of its area in the squares. n**2 is estimated by the squared
    count less the variance of its noise. Squares that consist of whole partitions have noise alone.

    Returns:
        (z,) expected root mean square errors at zoom levels 0 to the domain's order, at most 10, in records; and (z,) those from noise
        alone. NaN if the release states no noise.
    """
    if release not in _ESTIMATED:
        _ESTIMATED[release] = _estimate(release)
    return _ESTIMATED[release]


def _estimate(release: PointRelease) -> tuple[Floats, Floats]:
    zooms = range(min(release.domain.order, FINEST_ZOOM) + 1)
    noise = np.array([expected_error(release, zoom) for zoom in zooms])
    leaves = release.open_nodes(release.height)
    count, variance = release.centre[leaves], release.node_stddev[leaves] ** 2
    uneven = release.unevenness.degree * np.maximum(count**2 - variance, 0.0) + np.maximum(count, 0.0)
    inside = [
        (uneven * (1.0 - _sum_squared_shares(release, leaves, release.domain.side >> zoom))).sum() / release.domain.count_open_blocks(zoom)
        for zoom in zooms
    ]
    return np.sqrt(noise**2 + inside), noise


def _sum_squared_shares(release: PointRelease, leaves: Integers, width: int) -> Floats:
    """Compute for (k,) leaves the sum of the squared shares of their areas in squares of `width` lattice cells; 1 if it lies in one."""
    tree = release.tree
    if tree.overlaps:  # stretches of a curve have no rectangle: as if they were made of whole squares
        return np.minimum(width**2 / tree.cells[leaves], 1.0)
    west, south, east, north = tree.rectangles(leaves).T.astype(np.int64)
    share = _of_side(west, east, width) * _of_side(south, north, width)
    return np.minimum(share * tree.cells[leaves] / release.open_cells[leaves], 1.0)  # under a mask, fewer squares share the records


def _of_side(first: Integers, last: Integers, width: int) -> Floats:
    """Compute the sum of the squared shares of (k,) stretches of lattice lines, from `first` to `last`, in stretches of `width`."""
    start, end = first // width, (last - 1) // width
    before, after = (start + 1) * width - first, last - end * width
    between = np.maximum(end - start - 1, 0)
    return np.where(start == end, 1.0, (before**2 + after**2 + between * width**2) / (last - first) ** 2)


def is_quartered(release: PointRelease) -> bool:
    """Return whether each level of the tree has the zoom level of the same number, because a step cuts into four."""
    return release.height == 0 or len(release.nodes(1)) == 4


def zoom_like(release: PointRelease, level: int) -> int:
    """Return the zoom level whose squares are like the partitions of a level of the tree in number."""
    finest = min(release.domain.order, FINEST_ZOOM)
    if is_quartered(release):
        return min(level, finest)
    return min(range(finest + 1), key=lambda zoom: abs(math.log(len(release.nodes(level))) - zoom * math.log(4)))


def level_like(release: PointRelease, zoom: int) -> int:
    """Return the level of the tree whose partitions are like the squares of a zoom level in number."""
    if is_quartered(release):
        return min(zoom, release.height)
    return min(reversed(range(release.height + 1)), key=lambda level: abs(math.log(len(release.nodes(level))) - zoom * math.log(4)))
