"""A real map under charts of the Learn page: sea, borders and names of places, from bundled outlines alone; no tiles, no network.

Marks are placed in kilometres east and north of the middle of an `Area`. A lesson draws its layers on the area's channels and hands them
to `real_map`, which keeps a kilometre as long across as up whatever the chart's size, and shows what lies around where there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import shapely

from dpviz.arrays import Floats
from dpviz.lessons.maps import Cells, fill_cells, mark_layers
from dpviz.samples.points import SQUARE
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds, map_bounds, outlines_around
from dpviz.view.charts import GREY, LIGHT_PAGE, WIDTH, finish
from dpviz.view.places import ATTRIBUTION, TILE, place_names

HEIGHT = 420
SEA = "#56b4e9"
_DEGREE_KM = (111.32, 110.9)  # km per degree of longitude at the equator, and per degree of latitude
_MARGIN = 0.03  # around the area, as a share of its extent
_BESIDE, _ABOVE = 1.8, 0.4  # how far the map reaches beyond the area, in extents of the area
_FINEST = 500  # details of outlines that are smaller than the area's extent divided by this are left out
_LETTER, _LINE = 6.5, 32.0  # pixels: the width of a letter of a name, and twice the height of a name with its dot
_HEADING = 40  # pixels of a chart's height that its title takes
INK = f"{LIGHT_PAGE} ? '#1d282e' : '#e4e9eb'"
"""Vega expression of a colour that is read on the page in both themes: that of texts on the map."""
_PAPER = f"{LIGHT_PAGE} ? '#ffffff' : '#101518'"


@dataclass(frozen=True, kw_only=True)
class Area:
    """A part of the Earth that a chart shows as a whole; what lies around it is seen where the chart has room.

    Attributes:
        bounds: west, south, east, north in degrees; at most a few degrees wide, since it is drawn as a plane.
        height: of the whole chart, in pixels.

    >>> [round(side) for side in LOS_ANGELES.size]
    [70, 70]
    """

    bounds: Bounds
    height: int = HEIGHT

    @classmethod
    def of(cls, domain: Domain) -> Area:
        """Return the area of a public domain that lies on the Earth."""
        return cls(bounds=map_bounds(domain))

    @property
    def middle(self) -> tuple[float, float]:
        """Longitude and latitude of the middle."""
        west, south, east, north = self.bounds
        return (west + east) / 2, (south + north) / 2

    @property
    def scale(self) -> tuple[float, float]:
        """Kilometres per degree of longitude and of latitude, at the middle."""
        return _DEGREE_KM[0] * float(np.cos(np.radians(self.middle[1]))), _DEGREE_KM[1]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in kilometres."""
        west, south, east, north = self.bounds
        return (east - west) * self.scale[0], (north - south) * self.scale[1]

    def to_km(self, longitude: Any, latitude: Any) -> tuple[Floats, Floats]:
        """Convert (n,) degrees to (n,) kilometres east and (n,) kilometres north of the middle, rounded to 10 m."""
        places = (np.asarray(longitude, np.float64), np.asarray(latitude, np.float64))
        east, north = (np.round((part - middle) * km, 2) for part, middle, km in zip(places, self.middle, self.scale, strict=True))
        return east, north

    def edges(self, boxes: Any) -> pd.DataFrame:
        """Convert (n, 4) boxes west, south, east, north in degrees to columns x, y, x2, y2 in kilometres, as `Cells` takes them."""
        west, south, east, north = np.asarray(boxes, np.float64).reshape(-1, 4).T
        (x, y), (x2, y2) = self.to_km(west, south), self.to_km(east, north)
        return pd.DataFrame({"x": x, "y": y, "x2": x2, "y2": y2})

    def channels(self, *, edges: bool = False) -> dict[str, Any]:
        """Return the channels of marks at the columns x and y, with `edges` also of those at x2 and y2, all in kilometres."""
        ends = {"x2": alt.X2(field="x2"), "y2": alt.Y2(field="y2")} if edges else {}
        return {**_positions(self), **ends}

    def reaches(self) -> tuple[str, str]:
        """Return expressions of how far the plot reaches from the middle to each side, and up and down, in kilometres."""
        width, height = self.pixels()
        across, up = (round((0.5 + _MARGIN) * side, 2) for side in self.size)
        return f"max({across}, {up} * {width} / {height})", f"max({up}, {across} * {height} / {width})"

    def pixels(self) -> tuple[str, str]:
        """Return expressions of the width and height of the plot. Vega knows neither while it draws one of several charts of a file."""
        return f"(width > 0 ? width : {WIDTH})", f"(height > 0 ? height : {self.height})"


LOS_ANGELES = Area(bounds=SQUARE)
"""The 70 x 70 km square of the made-up residents."""


def real_map(area: Area, layers: Sequence[Any], title: str, description: str, *, names: int = 12) -> alt.LayerChart:
    """Draw layers on a real map: the sea below them; the coast, borders and names of places above them.

    Args:
        area: what is shown as a whole.
        layers: charts whose marks lie on `Area.channels`, lowest first.
        title: above the map.
        description: alternative text of what the layers show.
        names: how many names of places are shown in the area, at most.
    """
    sea, *lines = _ground(area)
    return finish(alt.layer(sea, *layers, *lines, *_name_layers(area, names)), title, description, area.height)


def real_cell_map(area: Area, cells: Cells, *, marks: pd.DataFrame | None = None) -> alt.LayerChart:
    """Draw cells and marks as `cell_map` does, on a real map.

    Args:
        area: what is shown as a whole; the chart has its height.
        cells: the filled cells, whose edges are from `Area.edges`.
        marks: columns x, y (from `Area.to_km`), what (a name) and shape (a Vega symbol, or "dot" for small grey dots).
    """
    layers: list[Any] = [fill_cells(cells, area.channels(edges=True))]
    if marks is not None:
        layers += mark_layers(marks, area.channels())
    return real_map(area, layers, cells.title, cells.description)


@lru_cache(maxsize=8)
def _positions(area: Area) -> dict[str, Any]:
    x, y = (alt.Scale(domain=[alt.ExprRef(f"-{reach}"), alt.ExprRef(reach)], nice=False, zero=False) for reach in area.reaches())
    place: dict[str, Any] = {"type": "quantitative", "axis": None}
    return {"x": alt.X(field="x", scale=x, **place), "y": alt.Y(field="y", scale=y, **place)}


@lru_cache(maxsize=8)
def _ground(area: Area) -> list[Any]:
    """Return layers of the sea, of the coast, and of the borders of states and countries."""
    sea, coast, borders = _outlines(area)
    marks = (
        alt.Chart(sea).mark_line(filled=True, fill=SEA, fillOpacity=0.22, strokeWidth=0, clip=True, aria=False),
        alt.Chart(coast).mark_line(stroke=GREY, strokeWidth=1.3, clip=True, aria=False),
        alt.Chart(borders).mark_line(stroke=GREY, strokeWidth=0.8, strokeDash=[5, 3], clip=True, aria=False),
    )
    in_order = {"detail": alt.Detail(field="part", type="nominal"), "order": alt.Order(field="step", type="quantitative")}
    return [mark.encode(**area.channels(), **in_order) for mark in marks]


@lru_cache(maxsize=8)
def _outlines(area: Area) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the lines of the sea's surface, of the coast, and of borders, in and around the area: columns x, y (km), part and step."""
    west, south, east, north = area.bounds
    extent = max(east - west, north - south)
    window = shapely.box(*_window(area))
    land, *lines = (outlines_around(name, area.bounds, 2 * extent, extent / _FINEST) for name in ("land", "countries", "states"))
    sea = shapely.get_parts(shapely.difference(window, shapely.union_all(shapely.make_valid(land))))
    borders = shapely.get_parts(shapely.intersection(np.concatenate(lines), window))
    return (
        _corners(area, [_bridge_rings(polygon) for polygon in sea[~shapely.is_empty(sea)]]),
        _corners(area, [shapely.get_coordinates(ring) for ring in shapely.get_rings(sea)]),
        _corners(area, [shapely.get_coordinates(line) for line in borders[~shapely.is_empty(borders)]]),
    )


def _window(area: Area) -> Bounds:
    """Return the bounds in degrees of what a chart can show of the surroundings."""
    west, south, east, north = area.bounds
    extent = max(east - west, north - south)
    return west - _BESIDE * extent, south - _ABOVE * extent, east + _BESIDE * extent, north + _ABOVE * extent


def _bridge_rings(polygon: Any) -> Floats:
    """Return a polygon as one closed line, which goes to each hole and back the same way, so that filling it leaves the holes out."""
    outer, *holes = (shapely.get_coordinates(ring) for ring in shapely.get_rings(shapely.orient_polygons(polygon)))
    return np.concatenate([outer, *(part for hole in holes for part in (hole, outer[:1]))])


def _corners(area: Area, lines: Sequence[Floats]) -> pd.DataFrame:
    """List the corners of lines in degrees, in order: columns x, y (km with one decimal), part and step."""
    x, y = area.to_km(*np.concatenate([np.empty((0, 2)), *lines]).T)
    part = np.repeat(np.arange(len(lines)), np.array([len(line) for line in lines], np.int64))
    return pd.DataFrame({"x": x.round(1), "y": y.round(1), "part": part, "step": np.arange(len(part))})


def _name_layers(area: Area, most: int) -> list[Any]:
    """Return layers of places whose names fit into the plot, their names, and the attribution that belongs to them."""
    rows = _places(area, most)
    if not len(rows):
        return []
    ink, paper = alt.ExprRef(INK), alt.ExprRef(_PAPER)
    (across, up), (width, height) = area.reaches(), area.pixels()
    fits_across = f"abs(datum.x) < {across} * (1 - {_LETTER} * length(datum.name) / {width})"
    fits_up = f"abs(datum.y) < {up} * (1 - {_LINE} / {height})"
    base = alt.Chart(rows).transform_filter(f"{fits_across} && {fits_up}").encode(**area.channels())
    text = alt.Text(field="name", type="nominal")
    dots = base.mark_point(shape="circle", filled=True, size=14, color=ink, opacity=0.9, clip=True, aria=False)
    place: dict[str, Any] = {"dy": -8, "fontSize": 11, "clip": True, "aria": False}
    halos = base.mark_text(color=paper, stroke=paper, strokeWidth=3, strokeJoin="round", opacity=0.75, **place)
    names = base.mark_text(color=ink, **place)
    return [dots, halos.encode(text=text), names.encode(text=text), *_attribution(area)]


def _attribution(area: Area) -> list[Any]:
    """Return the layers of the attribution with its halo, in the lower right corner."""
    width, height = area.pixels()
    base = alt.Chart(pd.DataFrame({"text": [ATTRIBUTION]})).encode(
        x=alt.value(alt.ExprRef(f"{width} - 4")), y=alt.value(alt.ExprRef(f"{height} - 3")), text=alt.Text(field="text", type="nominal")
    )
    place: dict[str, Any] = {"align": "right", "baseline": "bottom", "fontSize": 9, "aria": False}
    halo = base.mark_text(color=alt.ExprRef(_PAPER), stroke=alt.ExprRef(_PAPER), strokeWidth=3, strokeJoin="round", opacity=0.85, **place)
    return [halo, base.mark_text(color=alt.ExprRef(INK), **place)]


def _places(area: Area, most: int) -> pd.DataFrame:
    """Select places in and around the area, whose names are clear of each other on the chart: columns x, y (km) and name."""
    pixels_per_degree = (area.height - _HEADING) / (1 + 2 * _MARGIN) / area.size[1] * area.scale[0]
    zoom = float(np.log2(pixels_per_degree * 360 / TILE))
    places = place_names(area.bounds)
    inside, near = (
        (west < places.longitude) & (places.longitude < east) & (south < places.latitude) & (places.latitude < north)
        for west, south, east, north in (area.bounds, _window(area))
    )
    if inside.sum() > most:
        zoom = min(zoom, float(np.sort(places.zoom[inside])[most - 1]))
    shown = np.flatnonzero(near & (places.zoom <= zoom))
    x, y = area.to_km(places.longitude[shown], places.latitude[shown])
    return pd.DataFrame({"x": x, "y": y, "name": [places.name[place] for place in shown]})
