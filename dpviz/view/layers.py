"""Layers of a map: partitions as polygons, or as a picture where they are too many."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np
import pydeck
from numpy.typing import NDArray
from PIL import Image

from dpviz.space.domain import Domain
from dpviz.view.colors import Colors
from dpviz.view.deck import DECIMALS
from dpviz.view.places import corner_coordinates, map_bounds

MOST_FEATURES = 20_000
_PICTURE_ROWS = 1024


def partitions(
    domain: Domain, rectangles: NDArray[np.int32], colors: Colors, fields: dict[str, list[Any]], *, name: str = "partitions"
) -> pydeck.Layer:
    """Partitions as polygons that can be hovered and clicked.

    Args:
        domain: the public frame.
        rectangles: (k, 4) west, south, east, north as lattice lines; at most 20,000.
        colors: (k, 4) red, green, blue, alpha.
        fields: lists of k plain values for the tooltip and for selection, by short names; only what is shown goes to the
            browser. Texts must be escaped.
        name: the layer's id, stable between draws.
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
    """A dense grid of partitions as one picture, stretched row by row to the web map's projection.

    Args:
        domain: the public frame, with coordinates that are degrees or a plain plane.
        colors: (rows, columns, 4) of equal blocks, row 0 in the south.
        name: the layer's id.
    """
    west, south, east, north = map_bounds(domain)
    way = _rows_on_web_map(south, north, max(len(colors), _PICTURE_ROWS))
    image = colors[np.clip(way * len(colors), 0, len(colors) - 1).astype(np.int64)]
    return pydeck.Layer("BitmapLayer", data=None, id=name, image=_png(image), bounds=[west, south, east, north], pickable=False)


def _rows_on_web_map(south: float, north: float, rows: int) -> NDArray[np.float64]:
    """(rows,) share of the way from south to north of each picture row, from the top down."""
    top, bottom = (math.asinh(math.tan(math.radians(latitude))) for latitude in (north, south))
    middle = top - (np.arange(rows) + 0.5) / rows * (top - bottom)
    return (np.degrees(np.arctan(np.sinh(middle))) - south) / (north - south)


def _png(image: Colors) -> str:
    """A data address of an (h, w, 4) picture, quoted as pydeck wants a plain text."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", compress_level=2)
    return f"'data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}'"
