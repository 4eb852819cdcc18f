"""Worked examples for readers of a report: real released numbers, and what becomes of errors when they are added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.release.flow_release import FlowRelease, interval
from dpviz.release.point_release import Release
from dpviz.release.utility import reliability
from dpviz.space.domain import Domain
from dpviz.view.report_trips import pair_name, pair_rows

Floats = NDArray[np.float64]

_PLACES = {
    "at the centre": (1 / 2, 1 / 2),
    "south-west": (1 / 4, 1 / 4),
    "south-east": (3 / 4, 1 / 4),
    "north-west": (1 / 4, 3 / 4),
    "north-east": (3 / 4, 3 / 4),
}
"""Public places in the domain, as shares of its width and height."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One released number.

    Attributes:
        kind: how it was chosen.
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
    """The whole, and the partitions of a level at public places: the centre of the domain and those of its quarters.

    They are chosen without a look at the counts, so that each interval holds with its probability. The centre comes first.
    """
    nodes = _at_places(release, release.nodes(level))
    found = [_point_example(release, kind, node) for node, kind in nodes.items()]
    return found if 0 in nodes else [*found, _point_example(release, "the whole", 0)]


def _at_places(release: Release, nodes: NDArray[np.int64]) -> dict[int, str]:
    """Which of the nodes lie at the public places, each once, with the names of the places."""
    tree, side = release.tree, release.domain.side
    column, row = (np.array([int(share[axis] * side) for share in _PLACES.values()], np.int32) for axis in (0, 1))
    shown = np.zeros(len(tree), np.bool_)
    shown[nodes] = True
    found: dict[int, str] = {}
    for kind, leaf in zip(_PLACES, tree.leaf_of(column, row).tolist(), strict=True):
        node = leaf
        while not shown[node]:
            node = int(tree.parent[node])
        found.setdefault(node, kind)
    return found


def _point_example(release: Release, kind: str, node: int) -> Example:
    at = np.array([node])
    count, stddev, (low, high) = release.count[at], release.stddev[at], release.interval(at)
    return Example(
        kind=kind,
        where="the whole area" if node == 0 else f"partition {node:,} ({_box(release.domain, release.tree.rectangles(at)[0])})",
        **_numbers(count[0], stddev[0], low[0], high[0]),
        reliability=_classes(count, stddev)[0],
    )


def trip_examples(release: FlowRelease) -> list[Example]:
    """Released pairs of the coarsest level, chosen by their places in the lists of regions, and all trips."""
    level, at = min(1, release.depth), release.stages[2 * min(1, release.depth)]
    size = release.tree.origins.size(level), release.tree.destinations.size(level)
    wanted = dict.fromkeys((int(u * (size[0] - 1)), int(v * (size[1] - 1))) for u, v in ((0, 0), (0, 1), (1, 0), (0.5, 0.5), (1, 1)))
    place = {pair: number for number, pair in enumerate(zip(at.origin.tolist(), at.destination.tolist(), strict=True))}
    pairs = [place[pair] for pair in wanted if pair in place]
    stddev = release.stddev(2 * level)
    low, high = interval(at.noisy, stddev)
    found = [
        Example(
            kind="by its place in the list",
            where=pair_name(release, level, int(at.origin[one]), int(at.destination[one])),
            **_numbers(at.count[one], stddev[one], low[one], high[one]),
            reliability=_classes(at.count[[one]], stddev[[one]])[0],
        )
        for one in pairs
    ]
    return [*found, *_all_trips(release)]


def _all_trips(release: FlowRelease) -> list[Example]:
    at, stddev = release.stages[0], release.stddev(0)
    low, high = interval(at.noisy, stddev)
    return [
        Example(kind="the whole", where="all trips", **_numbers(*row), reliability=_classes(at.count, stddev)[0])
        for row in zip(at.count.tolist(), stddev.tolist(), low.tolist(), high.tolist(), strict=True)
    ]


def largest_pairs(release: FlowRelease, most: int) -> list[Example]:
    """The released pairs of the finest level with the most trips; their intervals hold for all numbers of the release at once."""
    rows = pair_rows(release, release.depth)
    named = _classes(rows.count, rows.stddev)
    return [
        Example(
            kind=str(at + 1),
            where=pair_name(release, rows.level, int(rows.origin[at]), int(rows.destination[at])),
            **_numbers(rows.count[at], rows.stddev[at], rows.low[at], rows.high[at]),
            reliability=named[at],
        )
        for at in range(min(most, len(rows.count)))
    ]


def sums_of(release: Release | FlowRelease) -> Sums:
    """How the errors of the smallest parts add up to that of the whole."""
    if isinstance(release, Release):
        leaves = release.tree.leaves
        own = np.sqrt(release.noise_variance[leaves])
        parts, root = np.where(np.isfinite(own), own, release.stddev[leaves]), release.stddev[:1]
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
