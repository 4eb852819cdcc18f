"""Where things lie on any map, drawn by whatever means: corners of partitions, outlines of land and borders."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Transformer

from dpviz.bundled import folder
from dpviz.space.domain import Domain

Floats = NDArray[np.float64]
Bounds = tuple[float, float, float, float]

WGS84 = "EPSG:4326"
OUTLINES = {"land": "land.json", "countries": "countries.json", "states": "us_states.json"}
_PLANE_DEGREES = 1.0


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


def outlines_around(name: str, bounds: Bounds, margin: float, detail: float) -> NDArray[np.object_]:
    """Outlines of land or borders in and around bounds, as light as may be.

    Args:
        name: one of `OUTLINES`.
        bounds: west, south, east, north in degrees.
        margin: how far around, in degrees.
        detail: what is smaller is left out, in degrees.

    Returns:
        (k,) parts, in degrees.
    """
    west, south, east, north = bounds
    window = shapely.box(west - margin, south - margin, east + margin, north + margin)
    parts = shapely.get_parts(shapely.simplify(shapely.intersection(_shapes(name), window), detail))
    return np.asarray(parts[(shapely.length(parts) > 4 * detail) & ~shapely.is_empty(parts)], object)


@lru_cache(maxsize=4)
def _shapes(name: str) -> NDArray[np.object_]:
    """The outline's geometries; read as they are, without a file-format library."""
    features = json.loads((folder("assets") / OUTLINES[name]).read_text("utf-8"))["features"]
    return np.array([shapely.geometry.shape(feature["geometry"]) for feature in features], object)
