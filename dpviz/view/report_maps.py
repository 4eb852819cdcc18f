"""The maps of a report and of a notebook: scenes of the canvas as SVG on sheets that keep areas, for light and for dark pages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from markupsafe import Markup

from dpviz.errors import DomainError
from dpviz.release.area_release import AreaRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.space.domain import EQUAL_AREA, Domain
from dpviz.space.regions import Regions
from dpviz.view import areas_canvas, areas_drawing, trips_canvas, trips_drawing
from dpviz.view.areas_drawing import AreasMapSettings, Denominator, RegionsOnMap
from dpviz.view.basemap import find_map_bounds, fit_bounds
from dpviz.view.canvas import Cells, Legend, Pane, Scene, ground_of
from dpviz.view.colors import occupied_top
from dpviz.view.levels import MOST_SHAPES, find_level
from dpviz.view.masked_area import list_masked_runs
from dpviz.view.partition_looks import MASKED, OUTSIDE
from dpviz.view.points_canvas import GREY, RELEASED, ReleaseView
from dpviz.view.scene_svg import LEGEND_LINE, Looks, Pen, draw_legend, draw_map
from dpviz.view.sheet import WIDTH, Sheet, make_domain_sheet, make_regions_sheet
from dpviz.view.trips_drawing import ABOVE_ZERO, TripsDrawing, TripsMapSettings, hierarchies_of

MOST_ARCS = 200
MOST_SHAPES_IN_ALL = 8_000  # on all maps of a report together
_LEGEND_WIDTH, _MAP_WIDTH = 520, 860  # pixels
_SHORTEST = 0.015 * WIDTH  # a shorter arc is not seen
_CELLS = "partitions"  # name of the rectangles of a scene


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Values for the template of a map.

    Attributes:
        sheet: of the map.
        body: what is in the map's SVG element.
        legend: what is in that of the legend; "" for none.
        legend_height: in pixels.
        title: what the colours show, with unit.
        looks: the CSS classes of its colours.
        level: the drawn level, 0 for the whole.
        shapes: number of partitions, regions, or arcs.
        total: number of those that could have been drawn.
        note: how to read the map; "" if nothing needs to be said.
        land: whether land and borders are on it.
    """

    sheet: Sheet
    body: Markup
    legend: Markup
    legend_height: int
    title: str
    looks: Looks = field(repr=False)
    level: int
    shapes: int
    total: int
    note: str
    land: bool

    @property
    def below(self) -> bool:
        """Whether the legend explains numbers below zero."""
        return "below zero" in self.legend


def draw_picture(
    scenes: Sequence[Scene], sheet: Sheet, *, level: int = 0, shapes: int = 0, total: int = 0, looks: Looks | None = None
) -> Picture:
    """Draw a scene.

    Args:
        scenes: the scene on light and on dark pages.
        sheet: on which it is drawn.
        level: that is drawn.
        shapes: number of shapes or arcs that count.
        total: number of those that could have been drawn.
        looks: the CSS classes of other pictures of the same page; None if there are none.
    """
    light, dark = (replace(scene, dark=bool(place), places=[]) for place, scene in enumerate(scenes))
    pane = light.panes[0]
    drawn = (sheet, level, pane.title, pane.legend, pane.arcs and pane.arcs.texts.lines())
    key = f"m{hashlib.sha256(repr(drawn).encode(errors='replace')).hexdigest()[:8]}"
    pen = Pen(scenes=(light, dark), sheet=sheet, pixel=sheet.width / _MAP_WIDTH, looks=looks or Looks(), key=key, titles=True)
    legend, lines = draw_legend(pen, (1, 14, _LEGEND_WIDTH - 2))
    return Picture(
        sheet=sheet,
        body=Markup(draw_map(pen)),  # noqa: S704  (every text in it is escaped)
        legend=Markup(legend),  # noqa: S704
        legend_height=LEGEND_LINE * lines,
        title=pane.legend.title,
        looks=pen.looks,
        level=level,
        shapes=shapes,
        total=total,
        note=pane.note,
        land=bool(light.ground["land"]),
    )


def draw_points(release: PointRelease) -> Picture:
    """Draw the finest level that can be read."""
    domain, level, unit = release.domain, find_level(release, None), release.counted
    mark = f"{{outside:{OUTSIDE}}}" if release.nonnegative else ""
    words = f"{{released}} {unit}" + (f" (95 %: {{low}} to {{high}}{mark}, for this one alone)" if release.states_noise else "")
    scenes = []
    for view in (ReleaseView.of(release, level, unit=unit, dark=dark) for dark in (False, True)):
        pane = view.pane(RELEASED, cells=_CELLS)
        note = pane.note.replace(GREY, MASKED)
        scenes.append(_make_scene(domain, view.cells(), replace(pane, words=words, note=note)))
    return draw_picture(scenes, make_domain_sheet(domain), level=level, shapes=len(release.open_nodes(level)))


def _make_scene(domain: Domain, cells: Cells, pane: Pane) -> Scene:
    """Make a scene of a domain, which may have no place on the web map: there is no land then."""
    scene = Scene(bounds=(0, 0, 1, 1), panes=(pane,), cells={_CELLS: cells}, description=pane.title, dark=False)
    bounds = find_map_bounds(domain)
    return scene if bounds is None else replace(scene, bounds=bounds, ground=ground_of(domain))


def draw_domain(domain: Domain) -> Picture:
    """Draw the edge of a domain, and where nobody can be."""
    cells = Cells(domain=domain, rectangles=list_masked_runs(domain).astype(np.int32), numbers={})
    words, shades = "Nobody can be here, as declared", np.zeros(len(cells.rectangles), np.uint8)
    palettes = np.array([[[86, 97, 106, 115]], [[163, 173, 181, 115]]], np.uint8)  # on light and on dark pages
    pane = Pane(title="", about="", words=words, legend=Legend(title=""), cells=_CELLS, shades=shades)
    return draw_picture([_make_scene(domain, cells, replace(pane, palette=each)) for each in palettes], make_domain_sheet(domain))


def draw_regions(regions: Regions, level: int) -> Picture:
    """Draw the regions of a level without any number."""
    on_map = RegionsOnMap(regions, by_deck=False)
    scenes = [areas_canvas.declared_scene(on_map, level, None, unit="", dark=dark, height=0) for dark in (False, True)]
    return draw_picture([scene for scene in scenes if scene is not None], make_regions_sheet(fit_bounds([regions], 900, 700)), level=level)


def draw_trips(release: TripRelease) -> Picture | None:
    """Draw the largest pairs of different regions as arcs over the regions; None if the regions have no geometry.

    The level is the finest on which most arcs are long enough to be seen; if there is no such level, the finest with at most 5,000
    regions on each side.
    """
    hierarchies = hierarchies_of(release)
    levels = [level for level in range(release.depth, 0, -1) if all(can_draw(regions, level) for regions in hierarchies)]
    if not levels:
        return None
    sheet = make_regions_sheet(fit_bounds(hierarchies, 900, 700))

    def draw(level: int, *, dark: bool = False) -> TripsDrawing:
        return trips_drawing.draw_trips(release, TripsMapSettings(level=level, top=MOST_ARCS, pairs=ABOVE_ZERO, dark=dark))

    found = next((drawing for drawing in map(draw, levels) if _arcs_are_visible(drawing, sheet)), None) or draw(levels[0])
    level = found.view.level
    scenes = [_name_regions(trips_canvas.released_scene(release, each, height=0)) for each in (found, draw(level, dark=True))]
    return draw_picture(scenes, sheet, level=level, shapes=found.drawn, total=found.total)


def _name_regions(scene: Scene) -> Scene:
    """Return a scene whose regions have no other text than their names, the first lines: thousands of others would make a page large."""
    areas = {name: replace(area, texts=[text.partition("\n")[0] for text in area.texts]) for name, area in scene.areas.items()}
    return replace(scene, areas=areas)


def can_draw(regions: Regions, level: int) -> bool:
    """Return whether a level has at most 5,000 regions, all with a place on the globe."""
    try:
        return regions.size(level) <= MOST_SHAPES and regions.centres(level) is not None
    except DomainError:  # nowhere on the globe
        return False


def _arcs_are_visible(drawing: TripsDrawing, sheet: Sheet) -> bool:
    """Return whether most arcs are long enough to be seen."""
    ends = [(drawing.areas[0], drawing.arcs.origin), (drawing.areas[-1], drawing.arcs.destination)]
    start, end = (sheet.place(area.shapes.centres[index]) for area, index in ends)
    return bool(len(start)) and bool(np.median(np.hypot(*(start - end).T)) >= _SHORTEST)


def draw_areas(release: AreaRelease) -> list[Picture]:
    """Draw a map per level, coarsest first: at most 5,000 regions on each, and 8,000 on all; none if there are no polygons on a globe."""
    regions, pictures, shapes, looks = release.regions, list[Picture](), 0, Looks()
    outlines = regions.outlines(regions.depth)
    if outlines is None or not can_draw(regions, 1):
        return []
    area = outlines.to_crs(EQUAL_AREA).area.to_numpy() / 1e6
    per_area = Denominator(words="per km²", numbers=pd.Series(area, regions.ids_of(regions.depth)))
    on_map, sheet = RegionsOnMap(regions, by_deck=False), make_regions_sheet(fit_bounds([regions], 900, 700))
    for level in range(1, regions.depth + 1):
        shapes += regions.size(level)
        if regions.size(level) > MOST_SHAPES or shapes > MOST_SHAPES_IN_ALL:
            continue
        size = np.bincount(regions.ancestors(level), area, regions.size(level))
        density = np.divide(release.count[release.nodes(level)], size, out=np.zeros(len(size)), where=size > 0)
        tops = areas_drawing.AreaTops(count=occupied_top(density, size), error=1.0)
        view = AreasMapSettings(level=level, also=Denominator.of(regions), unit=release.counted, tops=tops)
        texts = areas_drawing.draw_areas(release, on_map, view).areas.texts
        both = [areas_drawing.draw_areas(release, on_map, replace(view, rate=per_area, dark=dark)) for dark in (False, True)]
        both = [replace(each, areas=replace(each.areas, texts=texts)) for each in both]
        scenes = [areas_canvas.released_scene(on_map, each, (), dark=False, height=0) for each in both]
        pictures.append(draw_picture(scenes, sheet, level=level, shapes=regions.size(level), looks=looks))
    return pictures
