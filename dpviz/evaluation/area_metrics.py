"""Errors of releases of areas, by level of the regions. CURATOR ONLY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.cards import HtmlCard
from dpviz.data.areas import AreaCounts
from dpviz.errors import DomainError
from dpviz.evaluation.metrics import SMOOTHING, presence_errors
from dpviz.release.area_fitness import narrow_share
from dpviz.release.area_release import AreaRelease


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaEvaluation(HtmlCard):
    """A release of areas compared with the true counts. CURATOR ONLY: aggregates of private data, must not be exported.

    Attributes:
        truth: g + 1 arrays, (n_k,) true counts of the regions of each level, the whole first.
        by_level: one row per level, the whole first: level, name, regions, mae and rmse (records), expected (rmse from noise alone),
            relative (percent: mean absolute error over max(truth, 20)), empty (regions without records), false_positives (empty regions
            released as 0.5 or more), false_negatives (occupied regions released as less than 0.5), worst (id of the region with the
            largest error), max_error (records), and narrow (percent of the regions whose interval is narrower than half of the
            released count).

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> release = dv.RegionTree().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> dv.evaluate(release, areas)
    AreaEvaluation(curator only: holds true counts)
    """

    truth: tuple[Integers, ...]
    by_level: pd.DataFrame

    def __repr__(self) -> str:
        return "AreaEvaluation(curator only: holds true counts)"


def evaluate_areas(release: AreaRelease, areas: AreaCounts) -> AreaEvaluation:
    """Compare a release with the counts that it was made from, region by region. CURATOR ONLY.

    Args:
        release: of areas, by any mechanism.
        areas: the private counts, of the same regions.

    Raises:
        DomainError: `areas` are counts of other regions.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> release = dv.RegionTree().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> dv.evaluate(release, areas).by_level["name"].tolist()
    ['the whole', 'district', 'tract', 'block']
    """
    if areas.regions != release.regions:
        raise DomainError("The release and the counts must have the same regions.")
    truth = areas.level_counts()
    rows = [_level_row(release, level, true) for level, true in enumerate(truth)]
    return AreaEvaluation(truth=tuple(truth), by_level=pd.DataFrame(rows))


def _level_row(release: AreaRelease, level: int, truth: Integers) -> dict[str, Any]:
    """Make a row of `AreaEvaluation.by_level`."""
    count: Floats = release.count[release.nodes(level)]
    error = np.abs(count - truth)
    worst = int(np.argmax(error))
    return {
        "level": level,
        "name": release.regions.levels[level - 1] if level else "the whole",
        "regions": len(truth),
        "mae": float(error.mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "expected": float(np.sqrt((release.stddev(level) ** 2).mean())),
        "relative": float(100 * (error / np.maximum(truth, SMOOTHING)).mean()),
        "empty": int((truth == 0).sum()),
        **presence_errors(count, truth),
        "worst": release.regions.ids_of(level)[worst],
        "max_error": float(error[worst]),
        "narrow": 100 * narrow_share(release, level),
    }
