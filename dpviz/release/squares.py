"""How far off the equal squares of a zoom level are, from released numbers alone: by noise, and by what is not known inside partitions.

Inside a partition of n records, a square gets records by its share of the area. How uneven they really lie is carried over from the divided
partitions, whose children were counted: see `find_evenness`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpviz.arrays import Floats, Integers, Mask

if TYPE_CHECKING:
    from dpviz.release.point_release import PointRelease

FINEST_ZOOM = 10
_SAMPLED_BLOCKS = 1024
_FEWEST_DIVIDED = 5  # divided partitions from which an evenness can be found
_CLEAR = 3.0  # standard deviations of the sum of its children from which the count of a divided partition is clear of noise
_FEW_RECORDS = 2.0  # of so few, no unevenness can be seen


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
    side, width = 1 << zoom, release.domain.side >> zoom
    blocks = np.unique(np.linspace(0, side**2 - 1, min(side**2, _SAMPLED_BLOCKS)).astype(np.int64))
    row, column = np.divmod(blocks, side)
    column = (column + row) % side  # evenly spaced numbers would often lie in few columns: each row is shifted by its own number
    if release.domain.mask is not None:
        row, column = _select_evenly(release.domain.mask.blocks(zoom))
    corners = np.stack([column, row, column + 1, row + 1], axis=1) * width
    _, stddev = release.answer(release.domain.coordinates(corners), spread=True, fill="uniform")  # only the spread is used
    return float(np.sqrt((stddev**2).mean()))


def _select_evenly(is_open: Mask) -> tuple[Integers, Integers]:
    """Return the rows and the columns of up to 1,024 open blocks, which are chosen at random, the same ones each time."""
    blocks = np.random.default_rng(0).permutation(np.flatnonzero(is_open))[:_SAMPLED_BLOCKS]
    row, column = np.divmod(np.sort(blocks), len(is_open))
    return row, column


def find_evenness(release: PointRelease) -> float:
    """Estimate how evenly records lie inside the partitions of a release, from its divided partitions. Their children were counted.

    Let a divided partition have n records and children with shares p of them and a of its area. Then g = sum(p**2 / a) is 1 if they are
    spread evenly, and 1 / a if all are in one child. The estimate of n(n - 1)g is free of noise: the variance of each count is taken from
    its square. Sums over the half of the divided partitions with the smallest counts, which are most like those that were not divided,
    give one g; and the evenness is 1 - log(g) / log(1 / sum(a**2)).

    As for a fractal of correlation dimension 2 b, k equal parts of a partition of evenness b hold shares with sum(p**2) = k**-b.

    Returns:
        0 (all in one place) to 1 (even); 0, the worst, if fewer than five divided partitions are clear of noise.
    """
    tree, count, variance = release.tree, release.centre, release.node_stddev**2
    child = np.arange(1, len(tree))
    parent = tree.parent[child]
    area = release.open_cells[child] / np.maximum(release.open_cells[parent], 1.0)
    known = np.isfinite(variance[child]) & (area > 0)
    child, parent, area = child[known], parent[known], area[known]

    def add_up(numbers: Floats) -> Floats:
        return np.bincount(parent, numbers, len(tree))

    pairs = count**2 - variance - count  # estimates of n(n - 1)
    clear = (tree.children > 1) & (count > np.maximum(_CLEAR * np.sqrt(add_up(variance[child])), _FEW_RECORDS)) & np.isfinite(variance)
    if clear.sum() < _FEWEST_DIVIDED:
        return 0.0
    small = clear & (count <= np.median(count[clear]))
    weight = np.maximum(pairs[small], 0.0)
    if not weight.any():
        return 0.0
    growth = add_up(pairs[child] / area)[small].sum() / weight.sum()
    parts = 1.0 / np.average(add_up(area**2)[small], weights=weight)
    return float(np.clip(1.0 - math.log(max(growth, 1.0)) / math.log(parts), 0.0, 1.0)) if parts > 1 else 0.0


def square_errors(release: PointRelease) -> tuple[Floats, Floats]:
    """Estimate the errors of the squares of each zoom level, from released numbers alone.

    The variance of k squares of which a partition of n records and evenness b has the shares f of its area is, in sum,
    n**2 (s**b - s) + n (1 - s), where s = sum(f**2): what a fractal adds, and the variance of n independent records. n**2 is
    estimated by the squared count less the variance of its noise. Squares that consist of whole partitions have noise alone.

    Returns:
        (z,) expected root mean square errors at zoom levels 0 to the domain's order, at most 10, in records; and (z,) those from noise
        alone. NaN if the release states no noise.
    """
    zooms = range(min(release.domain.order, FINEST_ZOOM) + 1)
    noise = np.array([expected_error(release, zoom) for zoom in zooms])
    leaves = release.open_nodes(release.height)
    count, variance = release.centre[leaves], release.node_stddev[leaves] ** 2
    squared, records, evenness = np.maximum(count**2 - variance, 0.0), np.maximum(count, 0.0), find_evenness(release)
    inside = []
    for zoom in zooms:
        share = _sum_squared_shares(release, leaves, release.domain.side >> zoom)
        added = squared * (share**evenness - share) + records * (1.0 - share)
        inside.append(added.sum() / release.domain.count_open_blocks(zoom))
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
