"""How far a release's own counts may be off, as the mechanism says: never by a look at the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpviz.release.flow_release import FlowRelease, interval
from dpviz.release.point_release import Release

Floats = NDArray[np.float64]
Facts = dict[str, Any]

CONFIDENCE = 0.95
RELIABILITY = ((0.12, "high"), (0.40, "medium"))
LEAST_RELIABLE = "low"
_POINT_INTERVAL = "count ± ln(20) / √2 ≈ 2.12 stddev, rounded outwards: exact for one Laplace count, cautious for sums of them."
_TRIP_INTERVAL = "count_noisy ± 1.96 stddev, rounded outwards and not under 0."
_COVERS = "Covers the noise only: neither what is assumed inside partitions nor what was wrong in the data."


def reliability(count: NDArray[Any], stddev: Floats) -> pa.DictionaryArray:
    """(n,) "high", "medium" or "low" by the coefficient of variation stddev / |count|: up to 12 %, up to 40 %, above.

    A count of 0 is "low", unless it is exact.
    """
    found = np.full(len(stddev), len(RELIABILITY), np.int8)
    for place, (bound, _) in reversed(list(enumerate(RELIABILITY))):
        found[stddev <= bound * np.maximum(count, 0)] = place
    return pa.DictionaryArray.from_arrays(found, [*(name for _, name in RELIABILITY), LEAST_RELIABLE])


def utility_facts(release: Release | FlowRelease) -> Facts:
    """Per level, coarsest first: how many numbers, their standard deviations and the width of their intervals."""
    points = isinstance(release, Release)
    return {
        "confidence": CONFIDENCE,
        "interval": f"{_POINT_INTERVAL if points else _TRIP_INTERVAL} {_COVERS}",
        "approximate": release.approximate,
        "levels": _point_levels(release) if isinstance(release, Release) else _trip_levels(release),
    }


def _point_levels(release: Release) -> list[Facts]:
    low, high = release.interval(np.arange(len(release.tree)))
    levels = []
    for level in range(release.height + 1):
        nodes = release.nodes(level)
        levels.append(_facts(level, None, release.stddev[nodes], (high - low)[nodes]))
    return levels


def _trip_levels(release: FlowRelease) -> list[Facts]:
    levels = []
    for level in range(release.depth + 1):
        stddev = release.stddev(2 * level)
        low, high = interval(release.stages[2 * level].noisy, stddev)
        levels.append(_facts(level, release.tree.title(2 * level), stddev, high - low))
    return levels


def _facts(level: int, between: str | None, stddev: Floats, width: Floats) -> Facts:
    return {
        "level": level,
        "between": between,
        "partitions": len(stddev),
        "stddev_median": _quantile(stddev, 0.5),
        "stddev_p95": _quantile(stddev, CONFIDENCE),
        "interval_width_median": _quantile(width, 0.5),
    }


def _quantile(values: Floats, share: float) -> float | None:
    """A quantile; None where there are no values, or it is not finite."""
    found = float(np.quantile(values, share)) if len(values) else np.nan
    return found if np.isfinite(found) else None
