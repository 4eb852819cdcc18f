"""The ground of any map: corners of partitions, outlines of land, borders and regions, and the window that shows them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Transformer

from dpviz.arrays import Floats
from dpviz.bundled import folder
from dpviz.space.domain import Domain
from dpviz.space.regions import DEGREES, Regions

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


MOST_CORNERS = 100_000
MOST_NORTH = 85.05
_FIRST_TOLERANCE, _COARSEST = 1e-4, 0.02
_ENOUGH_REGIONS = 20_000
_OUTER_SHARE, _GAPS = 0.12, 3
_COST_OF_ANY, _COST_OUTSIDE = 0.4, 5.0
_NEARBY = 0.06
_SMALLEST = 0.05


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The regions of one level on the map, in plain degrees.

    Attributes:
        centres: (n, 2) longitude and latitude.
        polygons: one ring, or a list of rings where there are holes, for each part of a region; none where regions are points.
        owner: whose part each polygon is.
    """

    centres: Floats
    polygons: list[list[Any]]
    owner: list[int]


def ground(regions: Regions, level: int) -> Ground | None:
    """The regions of a level; None if they have no places. Without outlines, or with too many, they are points."""
    centres = regions.centres(level)
    if centres is None:
        return None
    centres = np.column_stack([centres[:, 0], np.clip(centres[:, 1], -MOST_NORTH, MOST_NORTH)])
    outlines = regions.outlines(level)
    parts = None if outlines is None else _light(_in_degrees(outlines))
    if parts is None:
        return Ground(centres=centres, polygons=[], owner=[])
    return Ground(centres=centres, polygons=_plain(parts[0]), owner=parts[1].tolist())


def _in_degrees(outlines: geopandas.GeoSeries) -> NDArray[np.object_]:
    return np.asarray(outlines.to_crs(DEGREES).to_numpy(), object)


def _light(shapes: NDArray[np.object_]) -> tuple[NDArray[np.object_], NDArray[np.int64]] | None:
    """Polygons with few enough corners in all, and whose they are; None if that would make them unrecognisable.

    Each part that is smaller than what is simplified away is left out, unless it is the largest of its region.
    """
    parts, owner = shapely.get_parts(shapes, return_index=True)
    area = shapely.area(parts)
    order = np.lexsort((-area, owner))
    largest = np.zeros(len(parts), np.bool_)
    largest[order[np.r_[True, np.diff(owner[order]) > 0]]] = True
    extent = _extent(shapes)
    tolerance = 0.0
    while tolerance <= _COARSEST * extent:
        kept = largest | (area > tolerance**2)
        light = shapely.simplify(parts[kept], tolerance, preserve_topology=True) if tolerance else parts
        if shapely.get_num_coordinates(light).sum() <= MOST_CORNERS:
            return light, owner[kept]
        tolerance = 2 * tolerance or _FIRST_TOLERANCE * extent
    return None


def _plain(parts: NDArray[np.object_]) -> list[list[Any]]:
    """Rounded rings as plain lists, without the corner that closes them."""
    extent = _extent(parts)
    decimals = 3 if extent > 20 else 4 if extent > 1 else 5
    _, corners, (of_ring, of_part) = shapely.to_ragged_array(parts)
    corners[:, 1] = np.clip(corners[:, 1], -MOST_NORTH, MOST_NORTH)
    points = np.round(corners, decimals).tolist()
    rings = [points[start : stop - 1] for start, stop in pairwise(of_ring.tolist())]
    return [rings[a] if b == a + 1 else rings[a:b] for a, b in pairwise(of_part.tolist())]


def _extent(shapes: NDArray[np.object_]) -> float:
    west, south, east, north = shapely.total_bounds(shapes)
    return float(max(east - west, north - south))


def fitted_bounds(hierarchies: list[Regions], width: int, height: int) -> Bounds:
    """West, south, east, north of what a map of `width` x `height` pixels should show first.

    Public regions decide alone. A few leaves that lie far from all others (Alaska, Hawaii) are left to be panned to: each
    share of the leaves that is outside must be paid for by a larger scale.

    Args:
        hierarchies: regions with places.
        width: of the map.
        height: of the map.
    """
    boxes = np.concatenate([_leaf_boxes(regions) for regions in hierarchies])
    x, y = boxes[:, :2].mean(axis=1), boxes[:, 2:].mean(axis=1)
    best, scale = (-math.inf, boxes), (2 * math.pi / width, 2 * math.pi / height)
    for west, east, south, north in product(_cuts(x), -_cuts(-x), _cuts(y), -_cuts(-y)):
        inside = boxes[(x >= west) & (x <= east) & (y >= south) & (y <= north)]
        if not len(inside):
            continue
        across, up = np.ptp(inside[:, :2]), np.ptp(inside[:, 2:])
        zoom = -math.log2(max(across * scale[0], up * scale[1], 1e-9))
        outside = 1 - len(inside) / len(boxes)
        best = max(best, (zoom - _COST_OF_ANY * (outside > 0) - _COST_OUTSIDE * outside, inside), key=lambda found: found[0])
    return _grown(_with_neighbours(boxes, best[1]))


def _with_neighbours(boxes: Floats, inside: Floats) -> Floats:
    """The boxes inside, and those that lie just beyond them."""
    margin = _NEARBY * max(np.ptp(inside[:, :2]), np.ptp(inside[:, 2:]))
    near = [(boxes[:, low] >= inside[:, low].min() - margin) & (boxes[:, low + 1] <= inside[:, low + 1].max() + margin) for low in (0, 2)]
    return np.asarray(boxes[near[0] & near[1]], np.float64)


def _leaf_boxes(regions: Regions) -> Floats:
    """(n, 4) west, east, south, north of the leaves, in radians of the web map; of every so many if there are very many."""
    outlines, centres = regions.outlines(regions.depth), regions.centres(regions.depth)
    every = slice(None, None, -(-regions.size(regions.depth) // _ENOUGH_REGIONS))
    if outlines is None:
        west, south = east, north = np.asarray(centres)[every].T
    else:
        west, south, east, north = shapely.bounds(_in_degrees(outlines.iloc[every])).T
    up = [np.arcsinh(np.tan(np.radians(np.clip(side, -MOST_NORTH, MOST_NORTH)))) for side in (south, north)]
    return np.column_stack([np.radians(west), np.radians(east), *up])


def _cuts(values: Floats) -> Floats:
    """Where a low end may begin: at the lowest value, or behind one of the widest gaps among the outermost ones."""
    low = np.sort(values)[: int(_OUTER_SHARE * len(values)) + 1]
    gaps = np.argsort(-np.diff(low), kind="stable")[:_GAPS]
    return np.append(low[:1], low[gaps + 1])


def _grown(boxes: Floats) -> Bounds:
    """Bounds in degrees of (n, 4) boxes; never a mere point."""
    west, east = math.degrees(boxes[:, :2].min()), math.degrees(boxes[:, :2].max())
    south, north = (math.degrees(math.atan(math.sinh(end))) for end in (boxes[:, 2:].min(), boxes[:, 2:].max()))
    spare = max(_SMALLEST - (east - west), _SMALLEST - (north - south), 0.0) / 2
    return west - spare, max(south - spare, -MOST_NORTH), east + spare, min(north + spare, MOST_NORTH)
