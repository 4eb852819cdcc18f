"""Interactive maps as whole HTML pages, for notebooks and files: pydeck's library and the data are in the page, which loads nothing."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache, singledispatch

from dpviz.errors import DomainError
from dpviz.privacy.receipt import PRIVATE
from dpviz.release.area_release import AreaRelease
from dpviz.release.flow_release import FlowRelease, Level
from dpviz.release.nouns import AnyRelease, counted_noun
from dpviz.release.point_release import Release
from dpviz.shown import MapPage
from dpviz.view.areas_drawing import AreasMapSettings
from dpviz.view.areas_map import AreasMap, areas_map
from dpviz.view.basemap import find_map_bounds
from dpviz.view.deck import BUNDLE
from dpviz.view.levels import find_level
from dpviz.view.points_map import PointsMap, points_map
from dpviz.view.report import load_template
from dpviz.view.trips_drawing import TripsMapSettings
from dpviz.view.trips_map import TripsMap, trips_map

WIDTH, HEIGHT = 800, 380
"""About the size of a map in a notebook, in pixels, by which the first view of trips is chosen."""
AnyMap = PointsMap | TripsMap | AreasMap


def explore(release: AnyRelease, level: Level | None = None) -> MapPage:
    """Make an interactive map of a level.

    Args:
        release: of points, trips or areas.
        level: number or name; None for the finest one that is not mostly noise.

    Raises:
        DomainError: no such level, or regions without geometry.
    """
    shown = draw_map(release, find_level(release, level))
    page = load_template("explore.html.jinja").render(
        description=shown.description,
        legend=shown.legend,
        note=shown.note,
        status="" if release.status == PRIVATE else release.status,
        outlines=not isinstance(release, Release) or release.domain.crs is not None,
        deck=_embed(shown.deck.to_json()),
        tooltip=_embed(json.dumps(shown.deck.tooltip)),
        library=_pack_library(),
    )
    return MapPage(html=page, description=shown.description)


@singledispatch
def draw_map(release: AnyRelease, level: int) -> AnyMap:
    """Draw a level with pydeck."""
    raise TypeError(f"There is no map of level {level} of {type(release).__name__}.")


@draw_map.register
def _(release: Release, level: int) -> PointsMap:
    release.nodes(level)  # refuses a level that is not there
    if find_map_bounds(release.domain) is None:
        raise DomainError("The domain has no place on a web map, because of its CRS. plot draws it on its own plane.")
    return points_map(release, level, "Released", unit=counted_noun(release), dark=False)


@draw_map.register
def _(release: FlowRelease, level: int) -> TripsMap:
    return trips_map(release, TripsMapSettings(level=level, width=WIDTH, height=HEIGHT))


@draw_map.register
def _(release: AreaRelease, level: int) -> AreasMap:
    return areas_map(release, AreasMapSettings(level=level))


def _embed(text: str) -> str:
    """Write JSON so that it may stand in a script: without "<", which could end the script or begin a comment."""
    return text.replace("<", "\\u003c")


@cache
def _pack_library() -> str:
    """Pack deck.gl, as pydeck brings it: gzip in base64, a third of its size, which the page unpacks."""
    return base64.b64encode(gzip.compress(BUNDLE.read_bytes(), mtime=0)).decode()
