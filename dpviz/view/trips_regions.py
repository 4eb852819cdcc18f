"""The regions under a map of trips: how many trips leave, arrive and stay, as shades, sizes and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpviz.release.flow_release import FlowRelease
from dpviz.release.pair_sums import PairSums
from dpviz.space.regions import Regions
from dpviz.view.colors import Colors, top_of
from dpviz.view.escape import deck, html
from dpviz.view.ground import Ground
from dpviz.view.trips_layers import Areas, Told, bar

if TYPE_CHECKING:
    from dpviz.view.trips_map import TripsView
    from dpviz.view.trips_scale import Tops

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Totals = Mapping[str, Integers]

LEAVING, ARRIVING, WITHIN = "leaving", "arriving", "within"
_SHADED = ("Released", "True")
_FAINTEST, _STRONGEST = 10, 105
_CHOSEN = {False: (206, 226, 233), True: (30, 66, 78)}
_POINT, _PLAIN_POINT = 130, 70


def released_totals(release: FlowRelease, level: int) -> tuple[Totals, Totals]:
    """Trips of the origins and of the destinations of a level, each from the coarsest stage that tells it.

    Where trips begin and end in the same regions, both are the same: leaving and arriving, and apart from them, within.
    """
    origins, destinations = release.tree.origins, release.tree.destinations
    leaving = release.sums(level, 0).at(*_with_root(origins.size(level)))
    arriving = release.sums(0, level).at(*_with_root(destinations.size(level))[::-1])
    if origins != destinations:
        return {LEAVING: leaving}, {ARRIVING: arriving}
    place = np.arange(origins.size(level), dtype=np.int32)
    both = _apart(leaving, arriving, release.sums(level, level).at(place, place))
    return both, both


def true_totals(truth: PairSums, origins: Regions, destinations: Regions, level: int) -> tuple[Totals, Totals]:
    """The same of the true trips. PRIVATE."""
    sizes = origins.size(level), destinations.size(level)
    sides = (truth.origin, truth.destination)
    leaving, arriving = (np.bincount(side, truth.count, size).astype(np.int64) for side, size in zip(sides, sizes, strict=True))
    if origins != destinations:
        return {LEAVING: leaving}, {ARRIVING: arriving}
    place = np.arange(sizes[0], dtype=np.int32)
    both = _apart(leaving, arriving, truth.at(place, place))
    return both, both


def _with_root(size: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return np.arange(size, dtype=np.int32), np.zeros(size, np.int32)


def _apart(leaving: Integers, arriving: Integers, within: Integers) -> Totals:
    return {LEAVING: leaving - within, ARRIVING: arriving - within, WITHIN: within}


def areas_of(regions: Regions, ground: Ground, view: TripsView, totals: tuple[Totals, Totals | None], tops: Tops) -> Areas:
    """The regions of one side, shaded by the first of their totals.

    Args:
        regions: of that side.
        ground: where they are.
        view: what is shown.
        totals: released, and true ones where the truth may be seen.
        tops: where the scales end.
    """
    released, true = totals
    shown = true if true is not None and view.shown == "True" else released
    told = Told(
        title=[deck(name) for name in regions.names_of(view.level)],
        text=[f"{deck(view.unit)}: {text}" for text in _told(released)],
        truth=None if true is None else [f"true: {text}" for text in _told(true)],
    )
    size = np.sqrt(np.clip(sum(shown.values()) / tops.size, 0.0, 1.0))
    strength = np.sqrt(np.clip(_first(shown) / tops.shade, 0.0, 1.0)) * (view.shown in _SHADED)
    color = _shades(strength, dark=view.dark, points=not ground.polygons)
    if view.chosen is not None and LEAVING in released:
        color[view.chosen] = (*_CHOSEN[view.dark], 255)
    return Areas(
        ground=ground,
        color=color,
        size=size,
        told=told,
    )


def shade_top(released: Totals) -> float:
    """The total that gets the strongest shade."""
    return top_of(np.maximum(_first(released), 0))


def size_top(released: Totals) -> float:
    """The total of all trips that gets the largest point."""
    return top_of(sum(released.values()))


def shade_legend(released: Totals, view: TripsView, tops: Tops) -> str:
    """What shades mean, as a piece of HTML; nothing where regions are not shaded."""
    if view.shown not in _SHADED:
        return ""
    shades = _shades(np.linspace(0.0, 1.0, 12), dark=view.dark, points=False)
    return f"region: {html(view.unit)} {next(iter(released))} 0 {bar(shades, 60)} {tops.shade:,.0f} and more"


def _first(totals: Totals) -> Integers:
    return next(iter(totals.values()))


def _told(totals: Totals) -> list[str]:
    """One text per region."""
    rows = zip(*(values.tolist() for values in totals.values()), strict=True)
    return [", ".join(f"{value:,} {name}" for name, value in zip(totals, row, strict=True)) for row in rows]


def _shades(strength: Floats, *, dark: bool, points: bool) -> Colors:
    grey = (235, 240, 245) if dark else (60, 72, 84)
    least, most = (_PLAIN_POINT, _PLAIN_POINT + _POINT) if points else (_FAINTEST, _STRONGEST)
    alpha = least + (most - least) * strength
    return np.column_stack([np.tile(grey, (len(strength), 1)), alpha]).astype(np.uint8)
