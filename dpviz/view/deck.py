"""pydeck maps without a map service: the deck, its first view, and layers of partitions as polygons or as a bitmap."""

from __future__ import annotations

import base64
import io
import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pydeck
import shapely
from numpy.typing import NDArray
from PIL import Image
from pydeck.bindings.json_tools import default_serialize

from dpviz.space.domain import Domain
from dpviz.view.basemap import OUTLINES, Bounds, corner_coordinates, map_bounds, outlines_around
from dpviz.view.colors import Colors

DECIMALS = 5
_SURROUNDINGS = 2.0
_FINEST_DETAIL = 1500  # detail is 1/1500 of the extent: finer outlines slow the map and cannot be seen at first


@dataclass(frozen=True, kw_only=True)
class Window:
    """The area that a map shows at first.

    Attributes:
        bounds: west, south, east, north, in degrees; public.
        width: of the map in pixels; width and height decide the zoom.
        height: of the map in pixels.
    """

    bounds: Bounds
    width: int = 900
    height: int = 420


class CompactDeck(pydeck.Deck):  # type: ignore[misc]
    """A pydeck Deck whose JSON has no white space, which makes it four times smaller."""

    def to_json(self) -> str:
        """Write the Deck as compact JSON."""
        return json.dumps(self, default=default_serialize, separators=(",", ":"))

    @property
    def tooltip(self) -> Any:
        """HTML and style of the tooltip, as the library takes them; False for none."""
        return self._tooltip


BUNDLE = Path(pydeck.__file__).parent / "nbextension" / "static" / "index.js"
"""deck.gl as pydeck brings it, which the app serves."""


@lru_cache(maxsize=1)
def has_hexagon_layer() -> bool:
    """Return whether pydeck's deck.gl can draw H3 cells by their indexes."""
    try:
        return b'"H3HexagonLayer"' in BUNDLE.read_bytes()
    except OSError:
        return False


def deck(
    layers: list[pydeck.Layer], domain: Domain, *, tooltip: str | None, dark: bool, width: int = 900, height: int = 420
) -> CompactDeck:
    """Draw a map of a domain over bundled outlines; the browser loads nothing from other servers.

    Args:
        layers: drawn in order, above the land and below the borders.
        domain: the first view shows the whole domain, whatever the data are.
        tooltip: HTML with {field} placeholders; None for no tooltip. Texts of fields must be escaped.
        dark: whether the page is dark.
        width: of the map in pixels; width and height decide the zoom.
        height: of the map in pixels.
    """
    below, above = outlines(domain, dark=dark)
    return _assemble([*below, *layers, *above], domain_view(domain, width, height), tooltip)


def deck_in(window: Window, under: list[pydeck.Layer], over: list[pydeck.Layer], *, tooltip: str | None, dark: bool) -> CompactDeck:
    """Draw a map of an area in degrees over the same outlines as `deck`.

    Args:
        window: the first view.
        under: layers above the land and below the borders.
        over: layers above the borders.
        tooltip: as for `deck`.
        dark: whether the page is dark.
    """
    ground, borders = _land_and_borders(window.bounds, dark)
    return _assemble([ground, *under, *borders, *over], window_view(window), tooltip)


def _assemble(layers: list[pydeck.Layer], view: pydeck.ViewState, tooltip: str | None) -> CompactDeck:
    return CompactDeck(
        layers=layers,
        map_provider=None,
        initial_view_state=view,
        tooltip=False if tooltip is None else {"html": tooltip, "style": {"fontSize": "13px", "maxWidth": "320px"}},
    )


def domain_view(domain: Domain, width: int, height: int) -> pydeck.ViewState:
    """Choose the view that shows the whole domain on a map of `width` x `height` pixels."""
    return window_view(Window(bounds=map_bounds(domain), width=width, height=height))


def window_view(window: Window) -> pydeck.ViewState:
    """Choose the view that shows the whole of a window's bounds."""
    west, south, east, north = window.bounds
    top, bottom = mercator(north), mercator(south)
    zoom = min(math.log2(window.width * 360 / (512 * (east - west))), math.log2(window.height * 2 * math.pi / (512 * (top - bottom))))
    latitude = math.degrees(math.atan(math.sinh((top + bottom) / 2)))
    return pydeck.ViewState(longitude=(west + east) / 2, latitude=latitude, zoom=round(zoom - 0.1, 3), min_zoom=zoom - 2)


def outlines(domain: Domain, *, dark: bool) -> tuple[list[pydeck.Layer], list[pydeck.Layer]]:
    """Make the layers below the data (land) and above the data (borders and the domain's edge); on a plain plane only the edge."""
    rectangle = {"type": "Feature", "geometry": shapely.geometry.mapping(shapely.box(*map_bounds(domain))), "properties": {}}
    edge = _outline("domain", {"type": "FeatureCollection", "features": [rectangle]}, _line(dark), width=1.5)
    if domain.crs is None:
        return [], [edge]
    ground, borders = _land_and_borders(map_bounds(domain), dark)
    return [ground], [*borders, edge]


def _land_and_borders(bounds: Bounds, dark: bool) -> tuple[pydeck.Layer, list[pydeck.Layer]]:
    land, countries, states = (_surroundings(name, bounds) for name in OUTLINES)
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
    extent = max(east - west, north - south)
    clipped = geopandas.GeoSeries(outlines_around(name, bounds, _SURROUNDINGS * extent, extent / _FINEST_DETAIL))
    return dict(json.loads(clipped.set_precision(10.0**-4).to_json(drop_id=True)))


def mercator(latitude: float) -> float:
    """Compute the y coordinate of a latitude (in degrees) in the web map's projection, in radians."""
    return math.asinh(math.tan(math.radians(latitude)))


MOST_FEATURES = 20_000
_PICTURE_ROWS = 1024


def partitions(
    domain: Domain, rectangles: NDArray[np.int32], colors: Colors, fields: dict[str, list[Any]], *, name: str = "partitions"
) -> pydeck.Layer:
    """Make a layer of partitions as polygons that can be hovered and clicked.

    Args:
        domain: the public domain.
        rectangles: (k, 4) west, south, east, north as lattice lines; at most 20,000.
        colors: (k, 4) red, green, blue, alpha.
        fields: lists of k values for the tooltip and for selection, by short names. All of them reach the browser; texts must be
            escaped.
        name: the layer's id; it must be the same from one run to the next, so that a selection is kept.
    """
    corners = np.round(corner_coordinates(domain, rectangles), DECIMALS).tolist()
    names = list(fields)
    rows = [
        dict(zip(("p", "c", *names), row, strict=True))
        for row in zip(corners, colors.tolist(), *(fields[key] for key in names), strict=True)
    ]
    return pydeck.Layer(
        "PolygonLayer",
        rows,
        id=name,
        get_polygon="p",
        get_fill_color="c",
        filled=True,
        stroked=len(rows) <= MOST_FEATURES // 4,
        get_line_color=[128, 128, 128, 70],
        line_width_min_pixels=0.5,
        line_width_max_pixels=0.5,
        pickable=True,
        auto_highlight=True,
        highlight_color=[11, 110, 143, 140],
    )


def picture(domain: Domain, colors: Colors, *, name: str = "picture") -> pydeck.Layer:
    """Make a layer with a grid of blocks as one bitmap; its rows are resampled to the web map's projection.

    Args:
        domain: the public domain, in degrees or on a plain plane.
        colors: (rows, columns, 4) colours of equal blocks, row 0 in the south.
        name: the layer's id.
    """
    west, south, east, north = map_bounds(domain)
    image = f"'data:image/png;base64,{base64.b64encode(draw_picture(domain, colors)).decode()}'"  # pydeck reads text without quotes as code
    return pydeck.Layer("BitmapLayer", data=None, id=name, image=image, bounds=[west, south, east, north], pickable=False)


def draw_picture(domain: Domain, colors: Colors) -> bytes:
    """Draw a grid of blocks as a PNG in the web map's projection.

    Args:
        domain: the public domain, in degrees or on a plain plane.
        colors: (rows, columns, 4) colours of equal blocks, row 0 in the south.
    """
    _, south, _, north = map_bounds(domain)
    shares = _latitude_shares(south, north, max(len(colors), _PICTURE_ROWS))
    image = colors[np.clip(shares * len(colors), 0, len(colors) - 1).astype(np.int64)]
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", compress_level=2)
    return file.getvalue()


def _latitude_shares(south: float, north: float, rows: int) -> NDArray[np.float64]:
    """Compute, for each of the bitmap's rows from the top, its latitude as a share of the range of latitudes from south to north."""
    top, bottom = (math.asinh(math.tan(math.radians(latitude))) for latitude in (north, south))
    middle = top - (np.arange(rows) + 0.5) / rows * (top - bottom)
    return (np.degrees(np.arctan(np.sinh(middle))) - south) / (north - south)
