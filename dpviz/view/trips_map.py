"""The map of a release of trips: arcs between regions as released, as they are, how far apart, and which are made up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pydeck

from dpviz.errors import DomainError
from dpviz.release.flow_release import FlowRelease
from dpviz.release.pair_sums import PairSums
from dpviz.space.regions import Regions
from dpviz.view.deck import CompactDeck, Window, deck_in
from dpviz.view.escape import line
from dpviz.view.ground import Ground, fitted_bounds, ground
from dpviz.view.layers import MOST_FEATURES
from dpviz.view.trips_layers import Arcs, Areas, arc_layer, area_layer, chosen_layer, label_layer
from dpviz.view.trips_looks import Look, Widths, error_look, legend_line, marks_look, plain_look
from dpviz.view.trips_pairs import Pairs, arcs_told, pairs_of, ranked
from dpviz.view.trips_regions import areas_of, released_totals, shade_legend, true_totals
from dpviz.view.trips_scale import Tops, tops_of

SHOWN_TRIPS = ("Released", "True", "Error", "False positives")
MOST_ARCS = 5_000
_WHAT = {
    "Released": "pairs with released {unit}",
    "True": "pairs with true {unit}",
    "Error": "pairs whose released {unit} are not the true ones",
    "False positives": "pairs that are released or true",
}


@dataclass(frozen=True, kw_only=True)
class TripsView:
    """What a map of trips shows.

    Attributes:
        level: 1 to g.
        shown: one of `SHOWN_TRIPS`; all but "Released" need the truth.
        top: how many arcs at most, the most important ones; 5,000 are the limit.
        least: the smallest number of trips that gets an arc.
        chosen: place of an origin region at that level: only trips from or to it are drawn; None for all.
        unit: what one trip is, for example "commuters".
        dark: whether the page is dark.
        width: of the map in pixels, roughly; rather too small than too large.
        height: likewise.
        tops: where its scales end, shared with other maps; None for those of its own.
    """

    level: int
    shown: str = SHOWN_TRIPS[0]
    top: int = 500
    least: int = 1
    chosen: int | None = None
    unit: str = "trips"
    dark: bool = False
    width: int = 780
    height: int = 560
    tops: Tops | None = None


@dataclass(frozen=True, kw_only=True)
class TripsMap:
    """A map and what belongs beside it.

    Attributes:
        deck: to be drawn; `i` of the objects of its layer "regions" is the place of a region.
        legend: one line of HTML.
        note: what was left out, as plain text.
        description: alternative text, plain.
        drawn: how many arcs there are.
        total: of how many pairs.
    """

    deck: CompactDeck
    legend: str
    note: str
    description: str
    drawn: int
    total: int


def has_places(regions: Regions, level: int) -> bool:
    """Whether the regions of a level can be put on a map: they have outlines or points, or those below them do."""
    return regions.centres(level) is not None


def trips_map(release: FlowRelease, view: TripsView, truth: PairSums | None = None) -> TripsMap:
    """Draw the trips of one level.

    Scales, the choice of arcs and what the map shows first come from released trips and public regions. The truth decides
    what is drawn in those views only that show it.

    Args:
        release: public.
        view: what is shown.
        truth: true trips between the regions of that level, from an evaluation: for teaching or the curator's eyes only.

    Raises:
        DomainError: no such level, view or region, or regions without places (see `has_places`).
    """
    origins, destinations = release.tree.origins, release.tree.destinations
    view = _checked(view, origins, truth)
    hierarchies = [origins] if origins == destinations else [origins, destinations]
    grounds = [_ground(each, view.level) for each in hierarchies]
    pairs = pairs_of(release, view, truth)
    places, total = ranked(pairs, view)
    tops = view.tops or tops_of(release, view, pairs)
    look = _look(view, pairs[places], tops)
    arcs = _arcs(release, view, pairs[places], (grounds[0], grounds[-1], look))
    released = released_totals(release, view.level)
    true = (None, None) if truth is None else true_totals(truth, origins, destinations, view.level)
    areas = [areas_of(each, grounds[k], view, (released[k], true[k]), tops) for k, each in enumerate(hierarchies)]
    window = Window(bounds=fitted_bounds(hierarchies, view.width, view.height), width=view.width, height=view.height)
    under, over = _layers(areas, arcs, view)
    over.append(label_layer(areas[0], window.bounds, view.chosen, dark=view.dark))
    return TripsMap(
        deck=deck_in(window, under, over, tooltip=arcs.told.template(), dark=view.dark),
        legend=legend_line([*look.legend, shade_legend(released[0], view, tops)]),
        note=_note(release, view, pairs, (len(places), total)),
        description=_description(release, view, len(places)),
        drawn=len(places),
        total=total,
    )


def _checked(view: TripsView, origins: Regions, truth: PairSums | None) -> TripsView:
    """The view that can be drawn: without the truth, that is the released one."""
    if view.shown not in SHOWN_TRIPS:
        raise DomainError(f"A map of trips shows one of {', '.join(SHOWN_TRIPS)}.")
    if not 1 <= view.level <= origins.depth:
        raise DomainError(f"Levels on a map are 1 to {origins.depth}.")
    if view.chosen is not None and not 0 <= view.chosen < origins.size(view.level):
        raise DomainError("The chosen region is none of that level.")
    shown = SHOWN_TRIPS[0] if truth is None else view.shown
    return replace(view, shown=shown, top=max(1, min(view.top, MOST_ARCS)), least=max(1, view.least))


def _ground(regions: Regions, level: int) -> Ground:
    found = ground(regions, level)
    if found is None:
        raise DomainError("These regions have neither outlines nor points: they can be shown as a matrix, not on a map.")
    return found


def _look(view: TripsView, drawn: Pairs, tops: Tops) -> Look:
    if view.shown == "Error":
        return error_look(drawn, view, Widths(top=tops.error, arcs=tops.arcs))
    look = marks_look if view.shown == "False positives" else plain_look
    return look(drawn, view, Widths(top=tops.trips, arcs=tops.arcs))


def _arcs(release: FlowRelease, view: TripsView, drawn: Pairs, known: tuple[Ground, Ground, Look]) -> Arcs:
    origins, destinations, look = known
    return Arcs(
        start=origins.centres[drawn.origin],
        end=destinations.centres[drawn.destination],
        color=look.color,
        width=look.width,
        origin=drawn.origin,
        destination=drawn.destination,
        told=arcs_told(release, view, drawn),
    )


def _layers(areas: list[Areas], arcs: Arcs, view: TripsView) -> tuple[list[pydeck.Layer], list[pydeck.Layer]]:
    """What lies under the borders, and over them; points lie over arcs, so that they can be clicked where many arcs meet."""
    line = [225, 230, 235, 50] if view.dark else [90, 100, 110, 75]
    names = ("regions", "ends")
    layers = [area_layer(each, line=line, name=name) for each, name in zip(areas, names, strict=False)]
    ring = [235, 240, 245, 255] if view.dark else [20, 28, 34, 255]
    chosen = [] if view.chosen is None else [chosen_layer(areas[0], view.chosen, ring), arc_layer(arcs, again=True)]
    polygons = [layer for layer, each in zip(layers, areas, strict=True) if each.ground.polygons]
    points = [layer for layer, each in zip(layers, areas, strict=True) if not each.ground.polygons]
    return polygons[::-1], [*chosen, arc_layer(arcs), *points[::-1]]


def _note(release: FlowRelease, view: TripsView, pairs: Pairs, numbers: tuple[int, int]) -> str:
    drawn, total = numbers
    largest = "" if drawn == total else ", the largest first" if view.shown != "False positives" else ", the wrong ones first"
    least = f", from {view.least:,} {view.unit} on" if view.least > 1 else ""
    said = [f"Showing {drawn:,} of {total:,} {_WHAT[view.shown].format(unit=view.unit)}{largest}{least}."]
    if view.shown == "False positives":
        wrong = [int((pairs.marks == mark).sum()) for mark in (1, 2)]
        said.append(f"Of all, {wrong[0]:,} are false positives and {wrong[1]:,} false negatives.")
    if view.chosen is not None:
        said.append(f"Only those from or to {_name(release, view)}.")
    size = release.tree.origins.size(view.level)
    if size > MOST_FEATURES:
        said.append(f"Of {size:,} regions, the {MOST_FEATURES:,} with the most trips can be clicked.")
    return " ".join(said)


def _description(release: FlowRelease, view: TripsView, drawn: int) -> str:
    regions = release.tree.origins
    where = "" if view.chosen is None else f", from or to {_name(release, view)}"
    what = f"{regions.size(view.level):,} regions ({line(regions.levels[view.level - 1])}) and {drawn:,} arcs between them{where}"
    return f"Map of {what}, {view.shown.lower()}: {view.unit} per pair."


def _name(release: FlowRelease, view: TripsView) -> str:
    return line(release.tree.origins.names_of(view.level)[view.chosen])
