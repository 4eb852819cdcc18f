"""How far a release is from the truth: for studies and the curator's eyes, never for export."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.release.point_release import Release
from dpviz.space.coverage import checked_coverage

FINEST_ZOOM = 10
SMOOTHING = 20.0
SMALL_SHARE = 0.001
PRESENT = 0.5
_SAMPLED_BLOCKS = 1024
_LAPLACE_KURTOSIS = 6.0
_QUERIES_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """A release beside the truth. CURATOR ONLY: aggregates of private data, not exportable.

    Attributes:
        truth: (n,) true count of every node of the release's tree.
        by_zoom: one row per zoom z, over 2**z x 2**z equal blocks: zoom, blocks, mae and rmse (records), expected (rmse of the
            noise alone), low and high (95 % band of the rmse if block errors were independent, with
            the heavy tails of Laplace noise), relative
            (percent: mean absolute error over max(truth, 20)), empty (blocks with no record), false_positives (empty blocks released
            as 0.5 or more), false_positive_records (what is released on them), false_negatives (the reverse).
    """

    truth: Integers
    by_zoom: pd.DataFrame

    def __repr__(self) -> str:
        return "Evaluation(curator only: holds true counts)"


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Four figures for one workload.

    Attributes:
        mean20: mean of |estimate - truth| / max(truth, 20), in percent.
        median20: its median.
        n3: mean of |estimate - truth| / max(truth, N / 1000), in percent.
        mae: mean of |estimate - truth|, in records.
    """

    mean20: float
    median20: float
    n3: float
    mae: float


def evaluate(release: Release, points: PointCounts) -> Evaluation:
    """Compare a release with the counts it was made from, node by node and zoom by zoom.

    Raises:
        DomainError: `points` lie on another domain.
    """
    if points.domain != release.domain:
        raise DomainError("The release and the points must have the same domain.")
    truth = release.tree.sums(points.column, points.row, points.count)
    zooms = range(min(release.domain.order, FINEST_ZOOM) + 1)
    return Evaluation(truth=truth, by_zoom=pd.DataFrame([_at_zoom(release, points, zoom) for zoom in zooms]))


def workload_errors(release: Release, points: PointCounts, boxes: ArrayLike) -> Errors:
    """The four figures of a release on (q, 4) boxes.

    Source:
        mean20 and median20: Shaham et al., HTF, 2021, Section 6; n3: the smoothing of Cormode et al., ICDE 2012, and its
        successors. On sparse data mean20 alone is nearly degenerate (releasing zero everywhere does well): judge by the others.
    """
    return Errors(**error_figures(release.answer(boxes), true_answers(points, boxes), int(points.count.sum())))


def error_figures(estimate: ArrayLike, truth: ArrayLike, total: float) -> dict[str, float]:
    """The figures of `Errors` by name; 0 where nothing is asked.

    Args:
        estimate: (q,) answers of a release.
        truth: (q,) true answers.
        total: N, all records or trips.
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


def true_answers(points: PointCounts, boxes: ArrayLike) -> Integers:
    """(q,) true counts in (q, 4) boxes; exact on lattice lines, else by the centres of the lattice cells.

    Raises:
        DomainError: malformed boxes, or more than 1e-9 of one outside the domain, where nothing was counted.
    """
    checked_coverage(points.domain, boxes)
    lattice = points.domain.lattice(boxes)
    parts = range(0, len(lattice), _QUERIES_AT_ONCE)
    return np.concatenate([np.zeros(0, np.int64), *(_true_answers(points, lattice[start : start + _QUERIES_AT_ONCE]) for start in parts)])


def _true_answers(points: PointCounts, boxes: Floats) -> Integers:
    """Running sums over a raster whose lines are just the boxes' own edges, whatever the lattice's order."""
    columns, rows = np.unique(boxes[:, [0, 2]]), np.unique(boxes[:, [1, 3]])
    i = np.searchsorted(columns, points.column + 0.5)
    j = np.searchsorted(rows, points.row + 0.5)
    shape = (len(rows) + 1, len(columns) + 1)
    cells = np.bincount(j * shape[1] + i, points.count, shape[0] * shape[1]).reshape(shape)
    sums = cells.cumsum(0).cumsum(1)
    west, east = np.searchsorted(columns, boxes[:, 0]), np.searchsorted(columns, boxes[:, 2])
    south, north = np.searchsorted(rows, boxes[:, 1]), np.searchsorted(rows, boxes[:, 3])
    found = sums[north, east] - sums[south, east] - sums[north, west] + sums[south, west]
    return np.asarray(found, np.int64)


def error_by_size(truth: ArrayLike, released: ArrayLike) -> pd.DataFrame:
    """Error of partitions grouped by their true count: 0, 1-9, 10-99, and so on by powers of ten.

    Args:
        truth: (k,) true counts.
        released: (k,) released counts.

    Returns:
        One row per occupied group: low, high (true counts from and to), partitions, mae (records), bias (mean of released - true)
        and relative (percent, mean absolute error over the mean true count; NaN where that is 0).
    """
    truth, error = np.asarray(truth), np.asarray(released) - np.asarray(truth)
    group = np.where(truth > 0, np.floor(np.log10(np.maximum(truth, 1))) + 1, 0).astype(int)
    table = pd.DataFrame({"group": group, "truth": truth, "size": np.abs(error), "error": error}).groupby("group").mean()
    low = np.where(table.index > 0, 10 ** np.maximum(table.index.to_numpy() - 1, 0), 0)
    return pd.DataFrame(
        {
            "low": low,
            "high": np.where(low > 0, 10 * low - 1, 0),
            "partitions": np.bincount(group)[table.index.to_numpy()],
            "mae": table["size"].to_numpy(),
            "bias": table["error"].to_numpy(),
            "relative": 100 * table["size"].to_numpy() / np.where(low > 0, table["truth"].to_numpy(), np.nan),
        }
    )


def _at_zoom(release: Release, points: PointCounts, zoom: int) -> dict[str, float]:
    truth, estimate = points.blocks(zoom), release.blocks(zoom)
    error = estimate - truth
    empty, present = truth == 0, estimate >= PRESENT
    expected = expected_error(release, zoom)
    half_freedom = truth.size / (_LAPLACE_KURTOSIS - 1)
    low, high = expected * np.sqrt(scipy.special.gammaincinv(half_freedom, [0.025, 0.975]) / half_freedom)
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
        "false_positives": int((empty & present).sum()),
        "false_positive_records": float(estimate[empty & present].sum()),
        "false_negatives": int((~empty & ~present).sum()),
    }


def expected_error(release: Release, zoom: int) -> float:
    """Root mean square error that the noise alone gives 2**zoom x 2**zoom equal blocks; from the release, without the truth.

    On many blocks, taken from 1,024 of them spread evenly along both sides.
    """
    side, width = 1 << zoom, release.domain.side >> zoom
    chosen = np.unique(np.linspace(0, side**2 - 1, min(side**2, _SAMPLED_BLOCKS)).astype(np.int64))
    row, column = np.divmod(chosen, side)
    column = (column + row) % side
    corners = np.stack([column, row, column + 1, row + 1], axis=1) * width
    _, stddev = release.answer(release.domain.coordinates(corners), spread=True)
    return float(np.sqrt((stddev**2).mean()))
