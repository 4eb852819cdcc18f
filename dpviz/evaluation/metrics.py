"""Errors of point releases: by zoom level, by query, by size of partitions. CURATOR ONLY, except for `expected_error`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.cards import HtmlCard
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError, InputError
from dpviz.release.point_release import PointRelease
from dpviz.space.coverage import check_coverage
from dpviz.space.domain import Domain

FINEST_ZOOM = 10
SMOOTHING = 20.0  # records: the least denominator of a relative error
SMALL_SHARE = 0.001  # of all records: the least denominator of `n3`
PRESENT = 0.5  # records: a block released with at least so many counts as occupied
_SAMPLED_BLOCKS = 1024
_LAPLACE_KURTOSIS = 6.0
_QUERIES_PER_BATCH = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation(HtmlCard):
    """A point release compared with the true counts. CURATOR ONLY: aggregates of private data, must not be exported.

    Attributes:
        truth: (n,) true count of every node of the release's tree.
        by_zoom: one row per zoom level z, over 2**z x 2**z equal blocks, without those that the domain's mask covers: zoom, blocks, mae
            and rmse (records), expected (rmse from noise alone), low and high (95 % band of the rmse, for independent block errors with
            the heavy tails of Laplace noise), relative (percent: mean absolute error over max(truth, 20)), empty (blocks without
            records), false_positives (empty blocks released as 0.5 or more), false_positive_records (the sum released on them),
            false_negatives (occupied blocks released as less than 0.5).

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> dv.evaluate(release, points)
    Evaluation(curator only: holds true counts)
    """

    truth: Integers
    by_zoom: pd.DataFrame

    def __repr__(self) -> str:
        return "Evaluation(curator only: holds true counts)"


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Four error metrics for one workload.

    Attributes:
        mean20: mean of |estimate - truth| / max(truth, 20), in percent.
        median20: median of |estimate - truth| / max(truth, 20), in percent.
        n3: mean of |estimate - truth| / max(truth, N / 1000), in percent.
        mae: mean of |estimate - truth|, in records.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> errors = dv.evaluation.metrics.workload_errors(release, points, [[0, 0, 8, 8], [8, 8, 16, 16]])
    >>> errors.mean20 < 50, errors.mae < 10
    (True, True)
    """

    mean20: float
    median20: float
    n3: float
    mae: float


def evaluate_points(release: PointRelease, points: PointCounts) -> Evaluation:
    """Compare a release with the counts that it was made from, by node and by zoom level. CURATOR ONLY.

    Args:
        release: of points, by any mechanism.
        points: the private counts, on the same domain.

    Raises:
        DomainError: `points` lie on another domain.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> evaluation = dv.evaluate(release, points)
    >>> int(evaluation.truth[0]), evaluation.by_zoom["zoom"].tolist()
    (40, [0, 1, 2, 3, 4])
    """
    if points.domain != release.domain:
        raise DomainError("The release and the points must have the same domain.")
    truth = release.tree.sums(points.column, points.row, points.count)
    finest = min(release.domain.order, FINEST_ZOOM)
    counts, estimates, rows = points.blocks(finest), release.blocks(finest), []
    for zoom in range(finest, -1, -1):
        rows.append(_zoom_errors(release, zoom, counts, estimates))
        counts, estimates = (_join_blocks(blocks) for blocks in (counts, estimates))
        if zoom and not release.states_noise:  # contrasts may publish larger areas by themselves, which need not add up
            estimates = release.blocks(zoom - 1)
    return Evaluation(truth=truth, by_zoom=pd.DataFrame(rows[::-1]))


def _join_blocks(blocks: NDArray[Any]) -> NDArray[Any]:
    """Add up blocks by four: (n, n) counts of a zoom level become the (n / 2, n / 2) counts of the next coarser one; one block stays."""
    return blocks if len(blocks) == 1 else blocks[::2, ::2] + blocks[1::2, ::2] + blocks[::2, 1::2] + blocks[1::2, 1::2]


def workload_errors(release: PointRelease, points: PointCounts, boxes: ArrayLike) -> Errors:
    """Measure the errors of a release on range queries. CURATOR ONLY.

    On sparse data mean20 alone says little, since a release of zeros has a small mean20; use the other metrics as well.

    Args:
        release: of points, by any mechanism.
        points: the private counts, on the same domain.
        boxes: (q, 4) west, south, east, north, in the domain's CRS.

    Raises:
        DomainError: malformed boxes, or boxes that reach outside the domain.

    Source:
        mean20 and median20: Shaham et al., HTF, 2021, Section 6; n3: the smoothing of Cormode et al., ICDE 2012.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> bool(dv.evaluation.metrics.workload_errors(release, points, [[0, 0, 8, 8]]).mae < 10)
    True
    """
    return Errors(**error_figures(release.answer(boxes), true_answers(points, boxes), int(points.count.sum())))


def error_figures(estimate: ArrayLike, truth: ArrayLike, total: float) -> dict[str, float]:
    """Compute the metrics of `Errors`, by name; all are 0 if there are no queries.

    Args:
        estimate: (q,) answers of a release.
        truth: (q,) true answers.
        total: N, the number of all records or trips.
    """
    true = np.asarray(truth)
    if not len(true):
        return dict.fromkeys(("n3", "mae", "mean20", "median20"), 0.0)
    error = np.abs(np.asarray(estimate) - true)
    relative = 100 * error / np.maximum(true, SMOOTHING)
    large = 100 * error / np.maximum(true, max(SMALL_SHARE * float(total), 1.0))
    return {
        "n3": float(large.mean()),
        "mae": float(error.mean()),
        "mean20": float(relative.mean()),
        "median20": float(np.median(relative)),
    }


def presence_errors(estimate: ArrayLike, truth: ArrayLike) -> dict[str, int]:
    """Count the blocks that a release calls occupied though they are empty, and the other way round.

    Args:
        estimate: (q,) released counts, of blocks or boxes.
        truth: (q,) true counts.

    Returns:
        false_positives (without records, released as 0.5 or more) and false_negatives (with records, released as less than 0.5).

    >>> presence_errors([0.6, 0.4, 3.0, 0.4], [0, 0, 2, 2])
    {'false_positives': 1, 'false_negatives': 1}
    """
    empty, present = np.asarray(truth) == 0, np.asarray(estimate) >= PRESENT
    return {"false_positives": int((empty & present).sum()), "false_negatives": int((~empty & ~present).sum())}


def true_answers(points: PointCounts, boxes: ArrayLike) -> Integers:
    """Count the records in boxes. CURATOR ONLY.

    Args:
        points: the private counts.
        boxes: (q, 4) west, south, east, north, in the domain's CRS. A lattice cell belongs to a box that contains its centre, so
            counts are exact for boxes on lattice lines.

    Returns:
        (q,) true counts.

    Raises:
        DomainError: malformed boxes, or more than 1e-9 of a box lies outside the domain.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> dv.evaluation.metrics.true_answers(points, [[0, 0, 8, 8], [8, 0, 16, 16]]).tolist()
    [40, 0]
    """
    check_coverage(points.domain, boxes)
    lattice = points.domain.lattice(boxes)
    batches = [lattice[start : start + _QUERIES_PER_BATCH] for start in range(0, len(lattice), _QUERIES_PER_BATCH)]
    return np.concatenate([np.zeros(0, np.int64), *(_true_answers(points, batch) for batch in batches)])


def _true_answers(points: PointCounts, boxes: Floats) -> Integers:
    """Count the records in each of q boxes on the lattice: (q,) counts.

    The counts come from cumulative sums over a raster whose lines are the edges of the boxes, so memory does not grow with the lattice.
    """
    columns, rows = np.unique(boxes[:, [0, 2]]), np.unique(boxes[:, [1, 3]])
    i = np.searchsorted(columns, points.column + 0.5)
    j = np.searchsorted(rows, points.row + 0.5)
    shape = (len(rows) + 1, len(columns) + 1)
    cells = np.bincount(j * shape[1] + i, points.count, shape[0] * shape[1]).reshape(shape)
    sums = cells.cumsum(0).cumsum(1)
    west, east = np.searchsorted(columns, boxes[:, 0]), np.searchsorted(columns, boxes[:, 2])
    south, north = np.searchsorted(rows, boxes[:, 1]), np.searchsorted(rows, boxes[:, 3])
    counts = sums[north, east] - sums[south, east] - sums[north, west] + sums[south, west]
    return np.asarray(counts, np.int64)


def error_by_size(truth: ArrayLike, released: ArrayLike) -> pd.DataFrame:
    """Compute the errors of partitions, grouped by their true count: 0, 1-9, 10-99 and so on. CURATOR ONLY.

    Args:
        truth: (k,) true counts.
        released: (k,) released counts.

    Returns:
        One row per group that occurs: low and high (smallest and largest true count of the group), partitions (number of partitions),
        mae (records), bias (mean of released - true, in records) and relative (mean absolute error in percent of the mean true count;
        NaN if this mean is 0).

    >>> import dpviz as dv
    >>> dv.evaluation.metrics.error_by_size([0, 4, 6, 30], [1, 3, 6, 33])[["low", "high", "mae"]].values.tolist()
    [[0.0, 0.0, 1.0], [1.0, 9.0, 0.5], [10.0, 99.0, 3.0]]
    """
    truth, error = np.asarray(truth), np.asarray(released) - np.asarray(truth)
    group = np.where(truth > 0, np.floor(np.log10(np.maximum(truth, 1))) + 1, 0).astype(int)
    table = pd.DataFrame({"group": group, "truth": truth, "absolute": np.abs(error), "error": error}).groupby("group").mean()
    low = np.where(table.index > 0, 10 ** np.maximum(table.index.to_numpy() - 1, 0), 0)
    return pd.DataFrame(
        {
            "low": low,
            "high": np.where(low > 0, 10 * low - 1, 0),
            "partitions": np.bincount(group)[table.index.to_numpy()],
            "mae": table["absolute"].to_numpy(),
            "bias": table["error"].to_numpy(),
            "relative": 100 * table["absolute"].to_numpy() / np.where(low > 0, table["truth"].to_numpy(), np.nan),
        }
    )


def _zoom_errors(release: PointRelease, zoom: int, truth: Integers, estimate: Floats) -> dict[str, float]:
    """Compute the row of `Evaluation.by_zoom` for a zoom level from the true and the released counts of its blocks.

    Blocks that the domain's mask covers are left out: nobody can be there, and their released count is 0.

    The band approximates the distribution of the mean of the squared block errors, which are independent and have the kurtosis of Laplace
    noise, by the gamma distribution of the same mean and variance.
    """
    is_open = release.domain.open_blocks(zoom)
    truth, estimate = truth[is_open], estimate[is_open]
    error = estimate - truth
    empty, wrong = truth == 0, presence_errors(estimate, truth)
    expected = expected_error(release, zoom)
    gamma_shape = truth.size / (_LAPLACE_KURTOSIS - 1)
    low, high = expected * np.sqrt(scipy.special.gammaincinv(gamma_shape, [0.025, 0.975]) / gamma_shape)
    return {
        "zoom": zoom,
        "blocks": truth.size,
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "expected": expected,
        "low": float(low),
        "high": float(high),
        "relative": float(100 * (np.abs(error) / np.maximum(truth, SMOOTHING)).mean()),
        "empty": int(empty.sum()),
        "false_positives": wrong["false_positives"],
        "false_positive_records": float(estimate[empty & (estimate >= PRESENT)].sum()),
        "false_negatives": wrong["false_negatives"],
    }


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
    if domain.mask is not None:
        return _select_evenly(domain.mask.blocks(zoom))
    side = 1 << zoom
    blocks = np.unique(np.linspace(0, side**2 - 1, min(side**2, _SAMPLED_BLOCKS)).astype(np.int64))
    row, column = np.divmod(blocks, side)
    return row, (column + row) % side  # evenly spaced numbers would often lie in few columns: each row is shifted by its own number


def block_boxes(domain: Domain, zoom: int, row: Integers, column: Integers) -> Floats:
    """Return (k, 4) the bounds of blocks of a zoom level, as west, south, east and north, in the domain's CRS."""
    return domain.coordinates(np.stack([column, row, column + 1, row + 1], axis=1) * (domain.side >> zoom))


def _select_evenly(is_open: Mask) -> tuple[Integers, Integers]:
    """Return the rows and the columns of up to 1,024 open blocks, which are chosen at random, the same ones each time."""
    blocks = np.random.default_rng(0).permutation(np.flatnonzero(is_open))[:_SAMPLED_BLOCKS]
    row, column = np.divmod(np.sort(blocks), len(is_open))
    return row, column
