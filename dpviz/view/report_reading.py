"""Worked examples for readers of a report: real released numbers, and what becomes of errors when they are added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.release.flow_release import FlowRelease
from dpviz.release.release import Release
from dpviz.release.utility import reliability
from dpviz.space.domain import Domain
from dpviz.view.report_trips import PairRows, pair_name

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One released number.

    Attributes:
        kind: why it was chosen.
        where: the partition or pair in words.
        count: as a text.
        low: lower end of its interval.
        high: upper end.
        relative: standard deviation in percent of the count; "–" where the count is not above 0.
        reliability: "high", "medium" or "low".
    """

    kind: str
    where: str
    count: str
    low: str
    high: str
    relative: str
    reliability: str


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What becomes of errors when the smallest parts are added up.

    Attributes:
        parts: how many there are.
        single: median standard deviation of one.
        piled: standard deviation of their sum if their errors had nothing to do with each other.
        stated: standard deviation of the whole.
        drift: whether errors pile up: the whole is hardly better known than by piling up.
        agree: whether the released numbers of the smallest parts add up to that of the whole.
    """

    parts: int
    single: float
    piled: float
    stated: float
    drift: bool
    agree: bool


def point_examples(release: Release, level: int) -> list[Example]:
    """A partition of a level that is well known, the fullest, one that is little known, and one below zero."""
    nodes = release.nodes(level)
    count, stddev = release.count[nodes], release.stddev[nodes]
    low, high = release.interval(nodes)
    named = _classes(count, stddev)
    return [
        Example(
            kind=kind,
            where=f"partition {nodes[at]:,} ({_box(release.domain, release.tree.rectangles(nodes[[at]])[0])})",
            **_numbers(count[at], stddev[at], low[at], high[at]),
            reliability=named[at],
        )
        for kind, at in _telling(count, np.array(named))
    ]


def trip_examples(release: FlowRelease, rows: PairRows, most: int) -> list[Example]:
    """The strongest pairs of a level, and one that is little known."""
    named = _classes(rows.count, rows.stddev)
    strongest = [(str(rank), rank - 1) for rank in range(1, min(most, len(rows.count)) + 1)]
    weak = [("a weak one", int(at)) for at in np.flatnonzero(np.array(named) == "low")[:1] if at >= len(strongest)]
    return [
        Example(
            kind=kind,
            where=pair_name(release, rows.level, int(rows.origin[at]), int(rows.destination[at])),
            **_numbers(rows.count[at], rows.stddev[at], rows.low[at], rows.high[at]),
            reliability=named[at],
        )
        for kind, at in [*strongest, *weak]
    ]


def sums_of(release: Release | FlowRelease) -> Sums:
    """How the errors of the smallest parts add up to that of the whole."""
    if isinstance(release, Release):
        leaves = release.tree.leaves
        parts, root = release.stddev[leaves], release.stddev[:1]
        gap = float(release.count[leaves].sum() - release.count[0])
    else:
        parts, root = release.stddev(release.tree.height), release.stddev(0)
        gap = float(release.stages[-1].count.sum() - release.stages[0].count.sum())
    stated, piled = float(root.max(initial=0.0)), float(np.sqrt((parts**2).sum()))
    return Sums(
        parts=len(parts),
        single=float(np.median(parts)) if len(parts) else 0.0,
        piled=piled,
        stated=stated,
        drift=stated > 0.8 * piled,
        agree=abs(gap) < 0.5,
    )


def _telling(count: Floats, named: NDArray[np.str_]) -> list[tuple[str, int]]:
    """Places of telling examples, each once: the middle one of its kind, as the end of a long list owes its place to noise."""
    order = np.argsort(-count, kind="stable")
    high, weak = order[named[order] == "high"], order[(named[order] == "low") & (count[order] >= 0.5)]
    below = order[count[order] < -0.5]
    groups = {"well known": high, "little known": weak, "below zero, by noise": below}
    chosen = [(kind, places[len(places) // 2 :][:1]) for kind, places in groups.items()]
    chosen.insert(1 if len(high) else 0, ("the fullest", order[:1]))
    found: dict[int, str] = {}
    for kind, places in chosen:
        for place in places.tolist():
            found.setdefault(place, kind)
    return [(kind, place) for place, kind in found.items()]


def _classes(count: NDArray[Any], stddev: Floats) -> list[str]:
    return [str(name) for name in reliability(count, stddev).to_pylist()]


def _numbers(count: float, stddev: float, low: float, high: float) -> dict[str, str]:
    share = 100 * stddev / count if count >= 0.5 and stddev < 10 * count else np.nan
    relative = "–" if np.isnan(share) else "under 0.1 %" if share < 0.1 else f"{share:.{0 if share >= 10 else 1}f} %"
    return {"count": whole(count), "low": whole(low), "high": whole(high), "relative": relative}


def whole(value: float) -> str:
    """A number rounded to a whole one, with thousands separators and a true minus.

    >>> whole(-1234.4), whole(-0.2)
    ('−1,234', '0')
    """
    return f"{round(float(value)):,}".replace("-", "−") if math.isfinite(value) else "unknown"


def _box(domain: Domain, rectangle: NDArray[np.integer]) -> str:
    """Where a partition lies, with as many decimals as its size needs."""
    west, south, east, north = domain.coordinates(rectangle).tolist()
    decimals = max(0, min(6, 1 - math.floor(math.log10(max(min(east - west, north - south), 1e-6)))))
    if not domain.is_geographic:
        return f"x {west:,.{decimals}f} to {east:,.{decimals}f}, y {south:,.{decimals}f} to {north:,.{decimals}f}"
    x = [f"{abs(value):.{decimals}f}° {'W' if value < 0 else 'E'}" for value in (west, east)]
    y = [f"{abs(value):.{decimals}f}° {'S' if value < 0 else 'N'}" for value in (south, north)]
    return f"{x[0]} to {x[1]}, {y[0]} to {y[1]}"
