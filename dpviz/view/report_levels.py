"""How large the noise of a release is, level by level: the numbers of a chart and of the table beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release
from dpviz.release.utility import reliability
from dpviz.release.verdict import verdict
from dpviz.view.report_budget import place_name

Floats = NDArray[np.float64]

CLASSES = ("high", "medium", "low")
_WIDE = 20.0


@dataclass(frozen=True, kw_only=True)
class LevelRow:
    """One level of a release.

    Attributes:
        level: its number, 0 for the whole.
        name: in words.
        parts: how many partitions, or released pairs, it has.
        size: median area of its partitions in km2 (units of area on a plain plane); None for trips.
        median: standard deviation of the noise, the median; None where it is not known.
        p95: its 95th percentile.
        width: of the 95 % intervals, the median.
        shares: of partitions or pairs of high, medium and low reliability, in percent.
        grade: "usable", "rough" or "mostly noise".
    """

    level: int
    name: str
    parts: int
    size: float | None
    median: float | None
    p95: float | None
    width: float | None
    shares: tuple[float, float, float]
    grade: str


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A scale of a chart.

    Attributes:
        ticks: place (0 to 1) and text.
        logarithmic: by powers of ten.
        low: left end.
        high: right end.
    """

    ticks: list[tuple[float, str]]
    logarithmic: bool
    low: float
    high: float

    def place(self, value: float) -> float:
        """0 to 1; what lies beyond the ends is put on them."""
        if self.logarithmic:
            found = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)


def level_rows(release: Release | FlowRelease, levels: list[dict[str, Any]]) -> list[LevelRow]:
    """One row per level, coarsest first.

    Args:
        release: public.
        levels: what the manifest says of its expected utility, level by level.
    """
    grades = [each.grade for each in verdict(release).levels]
    return [_row(release, level, facts, grade) for level, (facts, grade) in enumerate(zip(levels, grades, strict=True))]


def error_axis(rows: list[LevelRow]) -> Axis:
    """The axis that holds all standard deviations; logarithmic where they differ much."""
    values = [value for row in rows for value in (row.median, row.p95) if value]
    low, high = min(values, default=1.0), max(values, default=1.0)
    if high < _WIDE * low:
        step = _nice(high / 4)
        ends = step * math.ceil(high / step - 1e-9)
        return Axis(
            ticks=[(k * step / ends, f"{k * step:,.3g}" if step < 1 else f"{k * step:,.0f}") for k in range(round(ends / step) + 1)],
            logarithmic=False,
            low=0.0,
            high=ends,
        )
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = range(first, last + 1)
    ticks = [((power - first) / (last - first), f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}") for power in powers]
    return Axis(ticks=ticks, logarithmic=True, low=10.0**first, high=10.0**last)


def shares_of(count: NDArray[Any], stddev: Floats) -> tuple[float, float, float]:
    """How many percent are of high, medium and low reliability."""
    found = reliability(count, stddev)
    names = np.array(found.dictionary.to_pylist(), object)[found.indices.to_numpy()]
    return tuple(100 * float((names == name).sum()) / max(len(names), 1) for name in CLASSES)  # type: ignore[return-value]


def _row(release: Release | FlowRelease, level: int, facts: dict[str, Any], grade: str) -> LevelRow:
    size = None
    if isinstance(release, Release):
        nodes = release.nodes(level)
        count, stddev = release.count[nodes], release.stddev[nodes]
        size = float(np.nanmedian(release.domain.areas_km2(release.tree.rectangles(nodes))))
        name = place_name(release, level)
    else:
        count, stddev = release.stages[2 * level].count.astype(np.float64), release.stddev(2 * level)
        name = "all trips" if level == 0 else str(facts["between"])
    return LevelRow(
        level=level,
        name=name,
        parts=facts["partitions"],
        size=size,
        median=facts["stddev_median"],
        p95=facts["stddev_p95"],
        width=facts["interval_width_median"],
        shares=shares_of(count, stddev),
        grade=grade,
    )


def _nice(value: float) -> float:
    """The next of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))
