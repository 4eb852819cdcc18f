"""Figures of the paper on end-to-end private tuning as tables; the samples "storage", "landmark" and "gowalla" stand in for its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms.expected_error import grid_cover, largest_grid_sensitivity, overlap_sensitivity, response_sensitivity, tuning_boxes
from dpviz.mechanisms.points.base import PointMechanism
from dpviz.mechanisms.points.tuned import TunedGrid
from dpviz.mechanisms.points.uniform_grid import UniformGrid
from dpviz.mechanisms.references import ExactTunedGrid
from dpviz.mechanisms.tuning import PAPER_SIZES
from dpviz.papers.parts import join_parts
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.domain import Domain


@dataclass(frozen=True, kw_only=True)
class TuningSet:
    """One of the paper's three data sets and the settings for tuning on it. PUBLIC.

    Attributes:
        key: the set's key in `TUNING_SETS`, and in `dv.samples.points.POINT_SAMPLES` that of the made-up points that take its place.
        sides: candidate grids, in cells per side.
        sanity: the factor delta of the sanity bound rho = delta |D|, not the delta of differential privacy.
    """

    key: str
    sides: tuple[int, ...]
    sanity: float

    @property
    def size(self) -> int:
        """The number of records, which the paper's method declares."""
        return POINT_SAMPLES[self.key].usual or 0

    @property
    def domain(self) -> Domain:
        """The set's public domain."""
        return POINT_SAMPLES[self.key].domain


_ALL_SETS = (
    TuningSet(key="storage", sides=(30, 40, 50, 60, 70, 80), sanity=0.1),
    TuningSet(key="landmark", sides=(200, 250, 300, 350, 400), sanity=0.01),
    TuningSet(key="gowalla", sides=(300, 400, 500, 600, 700, 800), sanity=0.001),
)
TUNING_SETS: dict[str, TuningSet] = {item.key: item for item in _ALL_SETS}

EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0)
SHARES = (0.2, 0.25, 0.5, 0.75)
SANITIES = (0.002, 0.01, 0.1)
REPEATS = 20
PER_SIZE = 100  # boxes of each size
SEED = 2017
_TUNING_SEED = 7


def methods(tuning_set: TuningSet) -> dict[str, PointMechanism]:
    """Build the paper's methods for one data set, by name, for a declared number of records |D|. Leaky and BestNonPriv are NOT PRIVATE.

    "E2EPriv" tunes by the exponential mechanism (Theorem 7.1) with the sensitivities of Corollary 7.9. "Tuned" is not in the paper: it is
    `TunedGrid` with its defaults (clipped errors, the tight bound) and the same candidates, boxes and sanity bound.
    """
    size = tuning_set.size
    shared: dict[str, Any] = {"sides": tuning_set.sides, "sanity": tuning_set.sanity, "declared_total": size, "seed": _TUNING_SEED}
    return {
        "Heuristic": UniformGrid(declared_total=size),
        "E2EPriv": TunedGrid(total="declared", bound="paper", law="exponential mechanism", **shared),
        "Tuned": TunedGrid(**shared),
        "Leaky": ExactTunedGrid(**shared),
        "BestNonPriv": ExactTunedGrid(counts="exact", **shared),
    }


def figure_5(
    points: PointCounts,
    *,
    sides: Iterable[int] = range(10, 101, 10),
    size: float = 0.1,
    epsilon: float = 1.0,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure the error of uniform grids by size: with more cells, noise grows and uniformity error falls. CURATOR ONLY.

    Args:
        points: `dv.load_sample("storage")` for the paper's setting.
        sides: cells per side.
        size: of the queries, as a share of the domain's width and height; 0.1 is the paper's 1 % of the area.
        epsilon: budget.
        repeats: releases with fresh noise, averaged.
        seed: of queries and noise.

    Returns:
        One row per side: side, error (percent: mean over the repeats of the median relative error), spread, and heuristic (True for
        the side nearest to the result of UG's rule).

    Source:
        Fanaeepour, Rubinstein, 2017, Figure 5.
    """
    sides = list(sides)
    grids = {str(side): UniformGrid(side=side) for side in sides}
    table = _measure_errors(points, grids, (size,), epsilon, repeats, seed)
    rule = UniformGrid().rule(int(points.count.sum()), PureBudget(str(epsilon)).epsilon)
    nearest = min(sides, key=lambda side: abs(side - rule))
    table.insert(0, "side", table["method"].astype(int))
    return table.drop(columns=["method", "size"]).assign(heuristic=table["side"] == nearest)


def figure_10(
    points: PointCounts,
    key: str,
    *,
    sizes: Sequence[float] = PAPER_SIZES,
    epsilon: float = 1.0,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure accuracy by the size of queries, for grids tuned in different ways. CURATOR ONLY.

    Args:
        points: `dv.load_sample(key)` for the paper's setting.
        key: "storage", "landmark" or "gowalla"; decides candidates, sanity bound and declared number of records.
        sizes: of the queries, as shares of the domain's width and height.
        epsilon: budget.
        repeats: releases with fresh noise, averaged; the paper has 100.
        seed: of queries and noise; the boxes used for tuning have another seed.

    Returns:
        One row per method and size: method, size, error (percent: mean over the repeats of the median relative error), spread.

    Source:
        Fanaeepour, Rubinstein, 2017, Figure 10. Queries that contain no record are left out: their relative error is undefined.
    """
    return _measure_errors(points, methods(TUNING_SETS[key]), sizes, epsilon, repeats, seed)


def figure_11a(
    points: PointCounts,
    key: str = "storage",
    *,
    epsilons: Sequence[float] = EPSILONS,
    size: float = 0.1,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure accuracy by budget, for grids tuned in different ways; arguments as for `figure_10`. CURATOR ONLY.

    Returns:
        One row per method and epsilon: epsilon, method, size, error, spread.

    Source:
        Fanaeepour, Rubinstein, 2017, Figure 11a.
    """
    tuning_set = TUNING_SETS[key]
    parts = {epsilon: _measure_errors(points, methods(tuning_set), (size,), epsilon, repeats, seed) for epsilon in epsilons}
    return join_parts(parts, "epsilon")


def figure_11b(
    points: PointCounts,
    key: str = "storage",
    *,
    shares: Sequence[float] = SHARES,
    sizes: Sequence[float] = PAPER_SIZES,
    epsilon: float = 1.0,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure accuracy by the share of the budget spent on tuning; arguments as for `figure_10`. CURATOR ONLY.

    Returns:
        One row per share, method and size: share, method, size, error, spread.

    Source:
        Fanaeepour, Rubinstein, 2017, Figure 11b.
    """
    tuned = {name: item for name, item in methods(TUNING_SETS[key]).items() if isinstance(item, TunedGrid)}
    forms = {share: {name: item.with_shares([share, 1 - share]) for name, item in tuned.items()} for share in shares}
    parts = {share: _measure_errors(points, form, sizes, epsilon, repeats, seed) for share, form in forms.items()}
    return join_parts(parts, "share")


def figure_11c(
    key: str = "storage",
    *,
    sides: Sequence[int] = (40, 60, 80),
    sanities: Sequence[float] = SANITIES,
    sizes: Sequence[float] = PAPER_SIZES,
    epsilon: float = 0.8,
) -> pd.DataFrame:
    """Compute bounds on the sensitivity of the error by which grids are tuned; needs no data.

    Args:
        key: "storage", "landmark" or "gowalla"; decides the domain and |D|.
        sides: candidates, cells per side.
        sanities: values of delta in the sanity bound rho = delta |D|.
        sizes: of the tuning boxes, 100 of each.
        epsilon: for the counts.

    Returns:
        One row per delta, bound and side: sanity, rho, bound, side (0 if it is the same for all sides), sensitivity. Bounds:
        "response" is Corollary 7.9, "overlap" Equation 7, "largest grid" Equation 8, and "clipped" ours, for the mean of clipped errors.

    Source:
        Fanaeepour, Rubinstein, 2017, Figure 11c. Table 2 gives the middle delta as 0.001, but its rho = 89.38 belongs to 0.01.
    """
    tuning_set = TUNING_SETS[key]
    boxes = tuning_boxes(tuning_set.domain, tuple(sizes), PER_SIZE, _TUNING_SEED)
    noise = np.stack([grid_cover(boxes, side).area / epsilon for side in sides])
    cut = max(grid_cover(boxes, side).most_cut for side in sides)
    rows: list[tuple[float, str, int, float]] = []
    for sanity in sanities:
        response = response_sensitivity(tuning_set.size, sanity, noise)
        rows += [(sanity, "response", side, float(item)) for side, item in zip(sides, response, strict=True)]
        rows.append((sanity, "overlap", 0, overlap_sensitivity(tuning_set.size, sanity, noise)))
        rows.append((sanity, "largest grid", 0, largest_grid_sensitivity(tuning_set.size, sanity, 1 / epsilon, sides)))
        rows.append((sanity, "clipped", 0, (cut + TunedGrid().clip * boxes.most_inside) / len(boxes) / (sanity * tuning_set.size)))
    table = pd.DataFrame(rows, columns=["sanity", "bound", "side", "sensitivity"])
    table.insert(1, "rho", table["sanity"] * tuning_set.size)
    return table


def _measure_errors(
    points: PointCounts, mechanisms: Mapping[str, PointMechanism], sizes: Sequence[float], epsilon: float, repeats: int, seed: int
) -> pd.DataFrame:
    """Measure median relative errors of repeated releases, per method and size of queries; boxes without records are left out."""
    queries: dict[float, tuple[Floats, Floats]] = {}
    for size in sizes:
        boxes = points.domain.coordinates(tuning_boxes(points.domain, (size,), PER_SIZE, seed).lattice)
        truth = true_answers(points, boxes)
        queries[size] = boxes[truth > 0], truth[truth > 0].astype(np.float64)
    streams, rows = iter(Entropy.seeded(seed).spawn(len(mechanisms) * repeats)), []
    for name, mechanism in mechanisms.items():
        runs = (mechanism.release(points, PureBudget(str(epsilon)), next(streams)) for _ in range(repeats))
        workloads = list(queries.values())
        medians = np.array([[100 * np.median(np.abs(run.answer(boxes) - truth) / truth) for boxes, truth in workloads] for run in runs])
        spread = medians.std(axis=0, ddof=1) if repeats > 1 else np.full(len(sizes), np.nan)
        rows += [
            {"method": name, "size": size, "error": float(error), "spread": float(item)}
            for size, error, item in zip(sizes, medians.mean(axis=0), spread, strict=True)
        ]
    return pd.DataFrame(rows)
