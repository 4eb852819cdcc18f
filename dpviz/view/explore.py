"""Interactive maps as whole HTML pages, for notebooks and files: the canvas, its library and the data are in the page, which loads nothing.

Where there is no WebGL, and in print, the page shows the same scene as SVG.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from functools import cache, singledispatch

from dpviz.cards import MapPage
from dpviz.errors import DomainError
from dpviz.privacy.receipt import PRIVATE
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import Level
from dpviz.release.nouns import AnyRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.view import areas_canvas, points_canvas, trips_canvas
from dpviz.view.areas_drawing import AreasMapSettings, RegionsOnMap, draw_areas
from dpviz.view.basemap import find_map_bounds
from dpviz.view.canvas import Scene
from dpviz.view.deck import BUNDLE, CANVAS_HTML, CANVAS_SCRIPT, CANVAS_STYLE
from dpviz.view.levels import find_level
from dpviz.view.report import load_template
from dpviz.view.scene_svg import draw_svg
from dpviz.view.trips_drawing import TripsMapSettings, draw_trips

HEIGHT = 420
"""About the height of a map in a notebook, in pixels."""


def explore(release: AnyRelease, level: Level | None = None) -> MapPage:
    """Make an interactive map of a level.

    Args:
        release: of points, trips or areas.
        level: number or name; None for the finest one that is not mostly noise.

    Raises:
        DomainError: no such level, or regions without geometry.
    """
    scene, note = make_scene(release, find_level(release, level))
    scene = replace(scene, may_save=True, stamp="" if release.status == PRIVATE else f"{release.status}. Not for publication.")
    page = load_template("explore.html.jinja").render(
        description=scene.description,
        note=note,
        status=scene.stamp,
        outlines=bool(scene.ground["land"]),
        canvas=CANVAS_HTML,
        style=CANVAS_STYLE,
        script=CANVAS_SCRIPT.replace("export default ", "", 1),
        still=draw_svg(scene),
        scene=base64.b64encode(scene.pack()).decode(),
        library=_pack_library(),
    )
    return MapPage(html=page, description=scene.description)


@singledispatch
def make_scene(release: AnyRelease, level: int) -> tuple[Scene, str]:
    """Make the map of a level, and the note under it: what was left out, as plain text."""
    raise TypeError(f"There is no map of level {level} of {type(release).__name__}.")


@make_scene.register
def _(release: PointRelease, level: int) -> tuple[Scene, str]:
    release.nodes(level)  # refuses a level that is not there
    if find_map_bounds(release.domain) is None:
        raise DomainError("The domain has no place on a web map, because of its CRS. plot draws it on its own plane.")
    view = points_canvas.ReleaseView.of(release, level, unit=release.counted, dark=False)
    return points_canvas.released_scene(view, points_canvas.RELEASED, height=HEIGHT), ""


@make_scene.register
def _(release: TripRelease, level: int) -> tuple[Scene, str]:
    drawing = draw_trips(release, TripsMapSettings(level=level))
    return trips_canvas.released_scene(release, drawing, height=HEIGHT), drawing.note


@make_scene.register
def _(release: AreaRelease, level: int) -> tuple[Scene, str]:
    on_map = RegionsOnMap(release.regions)
    drawing = draw_areas(release, on_map, AreasMapSettings(level=level))
    return areas_canvas.released_scene(on_map, drawing, (), dark=False, height=HEIGHT), ""


@cache
def _pack_library() -> str:
    """Pack deck.gl, as pydeck brings it: gzip in base64, a third of its size, which the page unpacks."""
    return base64.b64encode(gzip.compress(BUNDLE.read_bytes(), mtime=0)).decode()
