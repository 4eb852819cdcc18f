"""Where the scales of a map of trips end: from released trips alone, and the same on maps that stand side by side."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from dpviz.release.flow_release import FlowRelease
from dpviz.view.trips_pairs import Pairs, error_top, pairs_of, released_most
from dpviz.view.trips_regions import released_totals, shade_top, size_top

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpviz.view.trips_map import TripsView


@dataclass(frozen=True, kw_only=True)
class Tops:
    """What gets the strongest look; all of it is public.

    Attributes:
        trips: of a pair, for the widest arc.
        arcs: how many arcs there are, which makes all of them narrower.
        error: of a pair, for the strongest colour.
        shade: trips of a region, for the strongest shade.
        size: trips of a region, for the largest point.
    """

    trips: float
    arcs: int
    error: float
    shade: float
    size: float


def tops_of(release: FlowRelease, view: TripsView, pairs: Pairs | None = None) -> Tops:
    """Those of one map; `pairs` are those of its view, where they are at hand: only what was released of them is looked at."""
    trips, arcs = released_most(pairs_of(release, view, None) if pairs is None else pairs, view)
    sides = released_totals(release, view.level)
    shade, size = max(map(shade_top, sides)), max(map(size_top, sides))
    return Tops(trips=trips, arcs=arcs, error=error_top(release, view.level), shade=shade, size=size)


def shared_tops(several: Sequence[Tops]) -> Tops:
    """The largest of each, so that the same look means the same number on several maps."""
    trips, arcs, error, shade, size = (max(each) for each in zip(*map(astuple, several), strict=True))
    return Tops(trips=trips, arcs=arcs, error=error, shade=shade, size=size)
