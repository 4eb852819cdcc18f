"""The map of a report about trips: the strongest arcs between regions, light where trips begin and strong where they end."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas
import numpy as np
from numpy.typing import NDArray

from dpviz.release.at_once import pair_intervals
from dpviz.release.flow_release import FlowRelease
from dpviz.space.regions import Regions
from dpviz.view.colors import top_of
from dpviz.view.ground import fitted_bounds
from dpviz.view.report_paper import WIDTH, Paper, regions_paper

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_REGIONS, MOST_ARCS = 5_000, 200
_THINNEST, _WIDEST = 9.0, 70.0
_SHORTEST = 0.015 * WIDTH
_BEND = 0.22
_SAMPLES = (0.05, 0.3, 1.0)


@dataclass(frozen=True, kw_only=True)
class PairRows:
    """Released pairs of one level, most trips first.

    Attributes:
        level: 1 to g.
        origin: (k,) places.
        destination: (k,) places.
        count: (k,) trips.
        stddev: (k,) of the noise.
        low: (k,) ends of intervals that hold for all pairs at once, since pairs are shown for their size.
        high: (k,)
    """

    level: int
    origin: Integers
    destination: Integers
    count: Integers
    stddev: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class Arc:
    """One pair on the map: its path, the ends of its gradient, its width, how strong it is (0 to 1) and its text."""

    path: str
    ends: tuple[int, int, int, int]
    width: int
    strength: str
    told: str


@dataclass(frozen=True, kw_only=True)
class TripsPicture:
    """What the template draws.

    Attributes:
        paper: the sheet.
        land: paths of land and borders by name.
        regions: path and name of each region with an outline.
        dots: column, row and name of each region without.
        arcs: the strongest last.
        samples: text and width for the legend.
        level: which is drawn.
        drawable: how many pairs of different regions with trips there are.
        outside: whether arcs were left out because they lead beyond the sheet.
    """

    paper: Paper
    land: dict[str, str]
    regions: list[tuple[str, str]]
    dots: list[tuple[int, int, str]]
    arcs: list[Arc]
    samples: list[tuple[str, int]]
    level: int
    drawable: int
    outside: bool


def pair_rows(release: FlowRelease, level: int) -> PairRows:
    """The pairs of a level that were released with trips."""
    at, stddev = release.stages[2 * level], release.stddev(2 * level)
    low, high = pair_intervals(release, 2 * level)
    order = np.lexsort((at.destination, at.origin, -at.count))
    order = order[at.count[order] > 0]
    return PairRows(
        level=level,
        origin=at.origin[order].astype(np.int64),
        destination=at.destination[order].astype(np.int64),
        count=at.count[order],
        stddev=stddev[order],
        low=low[order],
        high=high[order],
    )


def pair_name(release: FlowRelease, level: int, origin: int, destination: int) -> str:
    """A pair in words: "A to B", or "within A"."""
    one, other = release.tree.origins.names_of(level)[origin], release.tree.destinations.names_of(level)[destination]
    return f"within {one}" if origin == destination and release.tree.origins == release.tree.destinations else f"{one} to {other}"


def trips_picture(release: FlowRelease) -> TripsPicture | None:
    """Draw the strongest pairs of different regions over the regions' outlines; None if the regions have no places.

    The finest level is drawn on which most of the arcs are long enough to be seen; if that is none, the finest that fits.
    """
    origins, destinations = release.tree.origins, release.tree.destinations
    hierarchies, levels = [origins] if origins == destinations else [origins, destinations], _levels(release)
    if not levels:
        return None
    bounds = fitted_bounds(hierarchies, 900, 700)
    paper = regions_paper(bounds)
    rows = pair_rows(release, next((level for level in levels if _is_seen(release, level, paper)), levels[0]))
    grounds = [_ground(each, rows.level, paper) for each in hierarchies]
    start, end = _ends(release, rows.level, paper)
    chosen, drawable, outside = _chosen(rows, (start, end), paper, same=len(hierarchies) == 1)
    top = top_of(rows.count[chosen])
    strength = np.sqrt(np.minimum(rows.count[chosen] / top, 1.0))
    ends = np.column_stack([start[rows.origin[chosen]], end[rows.destination[chosen]]])
    told = _told(release, rows, chosen)
    return TripsPicture(
        paper=paper,
        land=paper.land(bounds),
        regions=[row for shapes, _ in grounds for row in shapes],
        dots=[row for _, dots in grounds for row in dots],
        arcs=[_arc(*each) for each in zip(ends.tolist(), strength.tolist(), told, strict=True)][::-1],
        samples=[(f"{share * top:,.0f}", _width(share**0.5)) for share in _SAMPLES if share * top >= 1],
        level=rows.level,
        drawable=drawable,
        outside=outside,
    )


def _levels(release: FlowRelease) -> list[int]:
    """Levels that fit on a map, the finest first: at most 5,000 regions on each side, all with places."""
    both = release.tree.origins, release.tree.destinations
    fits = [level for level in range(release.depth, 0, -1) if max(each.size(level) for each in both) <= MOST_REGIONS]
    return [level for level in fits if all(each.centres(level) is not None for each in both)]


def _is_seen(release: FlowRelease, level: int, paper: Paper) -> bool:
    """Whether most of the strongest arcs of a level are long enough to be seen."""
    rows, (start, end) = pair_rows(release, level), _ends(release, level, paper)
    chosen, _, _ = _chosen(rows, (start, end), paper, same=release.tree.origins == release.tree.destinations)
    length = np.hypot(*(start[rows.origin[chosen]] - end[rows.destination[chosen]]).T)
    return bool(len(chosen)) and bool(np.median(length) >= _SHORTEST)


def _ends(release: FlowRelease, level: int, paper: Paper) -> tuple[Integers, Integers]:
    """Where origins and destinations of a level are on a sheet."""
    return paper.degrees(_centres(release.tree.origins, level)), paper.degrees(_centres(release.tree.destinations, level))


def _centres(regions: Regions, level: int) -> Floats:
    centres = regions.centres(level)
    assert centres is not None  # noqa: S101
    return centres


def _ground(regions: Regions, level: int, paper: Paper) -> tuple[list[tuple[str, str]], list[tuple[int, int, str]]]:
    """Outlines with names; or places with names, where regions are points."""
    names = [str(name) for name in regions.names_of(level)]
    outlines = regions.outlines(level)
    if outlines is not None:
        shapes: geopandas.GeoSeries = outlines.to_crs(paper.crs)
        return [(path, name) for path, name in zip(paper.paths(shapes), names, strict=True) if path], []
    places = paper.degrees(_centres(regions, level))
    inside = _inside(places, paper).tolist()
    return [], [(x, y, name) for (x, y), name, seen in zip(places.tolist(), names, inside, strict=True) if seen]


def _chosen(rows: PairRows, places: tuple[Integers, Integers], paper: Paper, *, same: bool) -> tuple[Integers, int, bool]:
    """Which rows are drawn, the strongest first; how many there are to choose from; whether some lie beyond the sheet."""
    differ = rows.origin != rows.destination if same else np.ones(len(rows.count), np.bool_)
    inside = _inside(places[0], paper)[rows.origin] & _inside(places[1], paper)[rows.destination]
    chosen = np.flatnonzero(differ & inside)
    return chosen[:MOST_ARCS], int(differ.sum()), bool((differ & ~inside).any())


def _inside(places: Integers, paper: Paper) -> NDArray[np.bool_]:
    return np.asarray(((places >= 0) & (places <= (paper.width, paper.height))).all(axis=1))


def _width(strength: float) -> int:
    return round(_THINNEST + (_WIDEST - _THINNEST) * strength)


def _arc(ends: list[int], strength: float, told: str) -> Arc:
    """A curve that bends to its right, so that both directions of a pair are seen."""
    x, y, far_x, far_y = ends
    bent_x, bent_y = (x + far_x) / 2 - _BEND * (far_y - y), (y + far_y) / 2 + _BEND * (far_x - x)
    return Arc(
        path=f"M{x} {y}Q{bent_x:.0f} {bent_y:.0f} {far_x} {far_y}",
        ends=(x, y, far_x, far_y),
        width=_width(strength),
        strength=f"{0.3 + 0.6 * strength:.2f}",
        told=told,
    )


def _told(release: FlowRelease, rows: PairRows, chosen: Integers) -> list[str]:
    columns = (rows.origin, rows.destination, rows.count, rows.low, rows.high)
    return [
        f"{pair_name(release, rows.level, o, d)}: {count:,} trips, 95 % between {low:,.0f} and {high:,.0f} for all pairs at once"
        for o, d, count, low, high in zip(*(column[chosen].tolist() for column in columns), strict=True)
    ]
