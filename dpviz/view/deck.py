"""Maps without a map service: a compact pydeck Deck, the view that fits its frame, and outlines of land and borders."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import geopandas
import numpy as np
import pydeck
import shapely
from numpy.typing import NDArray
from pydeck.bindings.json_tools import default_serialize
from pyproj import Transformer

from dpviz.bundled import folder
from dpviz.space.domain import Domain

Floats = NDArray[np.float64]
Bounds = tuple[float, float, float, float]

WGS84 = "EPSG:4326"
DECIMALS = 5
_PLANE_DEGREES = 1.0
_SURROUNDINGS = 2.0
_FINEST_DETAIL = 1500  # parts of the extent: finer outlines would not be seen at first, but are drawn anew at every move
_OUTLINES = {"land": "land.json", "countries": "countries.json", "states": "us_states.json"}


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a map shows at first.

    Attributes:
        bounds: west, south, east, north, in degrees; public.
        width: of the map in pixels, roughly, to choose the zoom.
        height: likewise.
    """

    bounds: Bounds
    width: int = 900
    height: int = 420


class CompactDeck(pydeck.Deck):  # type: ignore[misc]
    """A Deck whose JSON has no blanks: a quarter of the size, and of the time on the wire."""

    def to_json(self) -> str:
        """The Deck as compact JSON."""
        return json.dumps(self, default=default_serialize, separators=(",", ":"))


def deck(
    layers: list[pydeck.Layer], domain: Domain, *, tooltip: str | None, dark: bool, width: int = 900, height: int = 420
) -> CompactDeck:
    """A map of `layers` over offline outlines, fitted to the domain; it asks no other server for anything.

    Args:
        layers: drawn in order, above the land and below the borders.
        domain: decides the view, never the data.
        tooltip: HTML with {field} placeholders; None for no tooltip. Fields must hold escaped text.
        dark: whether the page is dark.
        width: of the map in pixels, roughly, to choose the zoom.
        height: likewise.
    """
    below, above = outlines(domain, dark=dark)
    return _made([*below, *layers, *above], view_of(domain, width, height), tooltip)


def deck_in(window: Window, under: list[pydeck.Layer], over: list[pydeck.Layer], *, tooltip: str | None, dark: bool) -> CompactDeck:
    """A map over the same offline outlines, fitted to a window in degrees.

    Args:
        window: decides the view.
        under: drawn above the land and below the borders.
        over: drawn above the borders.
        tooltip: as for `deck`.
        dark: whether the page is dark.
    """
    ground, borders = _land_and_borders(window.bounds, dark)
    return _made([ground, *under, *borders, *over], view_in(window), tooltip)


def _made(layers: list[pydeck.Layer], view: pydeck.ViewState, tooltip: str | None) -> CompactDeck:
    return CompactDeck(
        layers=layers,
        map_provider=None,
        initial_view_state=view,
        tooltip=False if tooltip is None else {"html": tooltip, "style": {"fontSize": "13px", "maxWidth": "320px"}},
    )


def view_of(domain: Domain, width: int, height: int) -> pydeck.ViewState:
    """Centre and web-map zoom at which the whole domain fits a window of `width` x `height` pixels."""
    return view_in(Window(bounds=map_bounds(domain), width=width, height=height))


def view_in(window: Window) -> pydeck.ViewState:
    """Centre and web-map zoom at which the whole of a window's bounds fits it."""
    west, south, east, north = window.bounds
    top, bottom = mercator(north), mercator(south)
    zoom = min(math.log2(window.width * 360 / (512 * (east - west))), math.log2(window.height * 2 * math.pi / (512 * (top - bottom))))
    latitude = math.degrees(math.atan(math.sinh((top + bottom) / 2)))
    return pydeck.ViewState(longitude=(west + east) / 2, latitude=latitude, zoom=round(zoom - 0.1, 3), min_zoom=zoom - 2)


def map_bounds(domain: Domain) -> Bounds:
    """West, south, east, north of the domain on the map, in degrees."""
    corners = corner_coordinates(domain, np.array([[0, 0, domain.side, domain.side]]))[0]
    return (*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist())


def corner_coordinates(domain: Domain, rectangles: NDArray[Any]) -> Floats:
    """Corners of lattice rectangles on the map.

    Args:
        domain: the frame; a plain plane is laid out as one degree around (0, 0), where a web map hardly distorts.
        rectangles: (k, 4) west, south, east, north as lattice lines.

    Returns:
        (k, 4, 2) longitude and latitude of the south-west, south-east, north-east and north-west corners.
    """
    west, south, east, north = domain.coordinates(rectangles).T
    x, y = np.stack([west, east, east, west], axis=1), np.stack([south, south, north, north], axis=1)
    if domain.crs is None:
        left, bottom, right, top = domain.bounds
        scale = _PLANE_DEGREES / max(right - left, top - bottom)
        x, y = (x - (left + right) / 2) * scale, (y - (bottom + top) / 2) * scale
    elif domain.crs != WGS84:
        x, y = Transformer.from_crs(domain.crs, WGS84, always_xy=True).transform(x, y)
    return np.stack([x, np.clip(y, -85.05, 85.05)], axis=-1)


def outlines(domain: Domain, *, dark: bool) -> tuple[list[pydeck.Layer], list[pydeck.Layer]]:
    """Layers below the data (land) and above it (borders), cut to the surroundings of the domain; just a frame on a plane."""
    frame = {"type": "Feature", "geometry": shapely.geometry.mapping(shapely.box(*map_bounds(domain))), "properties": {}}
    edge = _outline("domain", {"type": "FeatureCollection", "features": [frame]}, _line(dark), width=1.5)
    if domain.crs is None:
        return [], [edge]
    ground, borders = _land_and_borders(map_bounds(domain), dark)
    return [ground], [*borders, edge]


def _land_and_borders(bounds: Bounds, dark: bool) -> tuple[pydeck.Layer, list[pydeck.Layer]]:
    land, countries, states = (_surroundings(name, bounds) for name in _OUTLINES)
    ground = pydeck.Layer(
        "GeoJsonLayer",
        land,
        id="land",
        filled=True,
        stroked=True,
        get_fill_color=[255, 255, 255, 14] if dark else [40, 45, 50, 16],
        get_line_color=_line(dark),
        line_width_min_pixels=1,
        pickable=False,
    )
    return ground, [_outline("countries", countries, _line(dark), width=1), _outline("states", states, _line(dark), width=0.7)]


def _line(dark: bool) -> list[int]:
    return [200, 205, 210, 150] if dark else [70, 75, 80, 150]


def _outline(name: str, features: dict[str, Any], color: list[int], width: float) -> pydeck.Layer:
    return pydeck.Layer(
        "GeoJsonLayer",
        features,
        id=name,
        filled=False,
        stroked=True,
        get_line_color=color,
        line_width_min_pixels=width,
        line_width_max_pixels=width,
        pickable=False,
    )


@lru_cache(maxsize=24)
def _surroundings(name: str, bounds: Bounds) -> dict[str, Any]:
    west, south, east, north = bounds
    margin = _SURROUNDINGS * max(east - west, north - south)
    window = shapely.box(west - margin, south - margin, east + margin, north + margin)
    detail = max(east - west, north - south) / _FINEST_DETAIL
    parts = shapely.get_parts(shapely.simplify(shapely.intersection(_shapes(name), window), detail))
    cut = geopandas.GeoSeries(parts[(shapely.length(parts) > 4 * detail) & ~shapely.is_empty(parts)])
    return dict(json.loads(cut.set_precision(10.0**-4).to_json(drop_id=True)))


@lru_cache(maxsize=4)
def _shapes(name: str) -> NDArray[np.object_]:
    """The outline's geometries; read as they are, without a file-format library."""
    features = json.loads((folder("assets") / _OUTLINES[name]).read_text("utf-8"))["features"]
    return np.array([shapely.geometry.shape(feature["geometry"]) for feature in features], object)


def mercator(latitude: float) -> float:
    """Height of a latitude on a web map, in radians of the equator."""
    return math.asinh(math.tan(math.radians(latitude)))
