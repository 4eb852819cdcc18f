"""Land and borders under a map: detailed around an area, coarser with the distance, and all of the world, so that nothing is cut off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.bundled import folder
from dpviz.view.basemap import OUTLINES, Bounds, measure_distance

Line = list[list[float]]

SURROUNDINGS = 2.0  # extents of the area: within this distance, the outlines are hardly coarser than in the area
FINEST_DETAIL = 1500  # detail is 1/1500 of the area's extent
COARSEST = 0.5  # degrees: detail of land and borders far away
_WIDE = 240.0  # degrees: of a wider area, detail is coarser, as the message would become large
_NEAR_GROWTH, _FAR_GROWTH = 3 / FINEST_DETAIL, 1 / 20  # degrees of detail per degree of distance: in the surroundings, and beyond
_RATIO, _STEPS = 2**0.5, 28  # outlines are simplified at so many tolerances, each finer than the one before by this ratio
_SHORTEST_RING, _SHORTEST_LINE = 4, 1  # rings and lines are left out if they are shorter than this many times their detail
_FEWEST_CORNERS = 4  # of a ring; the last repeats the first
_COARSE, _COARSE_DECIMALS, _DECIMALS = 0.3, 1, 3  # degrees: corners of outlines that are as coarse as this have fewer decimals


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Land and borders of the whole world, as plain lists of [longitude, latitude] in degrees.

    Attributes:
        land: polygons; each is a list of rings, the outer one first. The last corner of a ring, which repeats the first, is left out.
        borders: lines between countries.
        states: lines between states of the United States.
    """

    land: list[list[Line]]
    borders: list[Line]
    states: list[Line]


@lru_cache(maxsize=24)
def ground_around(bounds: Bounds) -> Ground:
    """Prepare land and borders for a map of an area.

    In the area, detail is 1/1500 of its extent. Within two extents of it, detail grows with the distance just so that it cannot be
    seen when a person zooms out; further away it grows faster, up to `COARSEST`. Lines and polygons are never cut: their corners only
    become fewer.

    Args:
        bounds: west, south, east, north in degrees.

    Returns:
        Lists that are ready for deck.gl; they are shared between callers and must not be changed.

    >>> ground = ground_around((-119.0, 33.6, -117.6, 34.9))
    >>> len(ground.land) > 100, len(ground.borders) > 100, len(ground.states) > 50
    (True, True, True)
    """
    return Ground(land=_thin_polygons(bounds), borders=_thin_lines("countries", bounds), states=_thin_lines("states", bounds))


@dataclass(frozen=True, kw_only=True)
class _Outlines:
    """Outlines of which corners can be left out.

    Attributes:
        corners: (n, 2) longitude and latitude.
        detail: (n,) degrees; a corner is left out if this detail or a coarser one is wanted.
        line: (n,) the line, or ring of a polygon, that a corner belongs to.
        length: (m,) lengths of the lines, in degrees.
        polygon: (m,) the polygon that a ring belongs to; rings of one polygon are neighbours, the outer one first.
    """

    corners: Floats
    detail: Floats
    line: NDArray[np.int64]
    length: Floats
    polygon: NDArray[np.int64]


@lru_cache(maxsize=3)
def _read(name: str) -> _Outlines:
    """Read a bundled outline, and find at which detail each of its corners is needed.

    The index of each corner is carried through the simplification as its height.
    """
    shapes = shapely.get_parts(shapely.get_parts(shapely.from_geojson((folder("assets") / OUTLINES[name]).read_text("utf-8"))))
    _, corners, (starts, *of_polygon) = shapely.to_ragged_array(shapes)
    line = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    lines = shapely.linestrings(np.column_stack([corners, np.arange(len(corners))]), indices=line)
    detail = np.full(len(corners), COARSEST * _RATIO**-_STEPS)
    for step in range(_STEPS - 1, -1, -1):
        tolerance = COARSEST * _RATIO**-step
        kept = shapely.get_coordinates(shapely.simplify(lines, tolerance, preserve_topology=False), include_z=True)[:, 2]
        detail[kept.astype(np.int64)] = tolerance * _RATIO if step else np.inf
    polygon = np.repeat(np.arange(len(shapes)), np.diff(of_polygon[0])) if of_polygon else np.arange(len(shapes))
    return _Outlines(corners=corners, detail=detail, line=line, length=np.asarray(shapely.length(lines)), polygon=polygon)


def _thin_lines(name: str, bounds: Bounds) -> list[Line]:
    corners, starts, _ = _thin(_read(name), bounds, rings=False)
    return _split(corners, starts)


def _thin_polygons(bounds: Bounds) -> list[list[Line]]:
    """Thin the corners of land; polygons that then cross themselves are repaired."""
    corners, starts, polygon = _thin(_read("land"), bounds, rings=True)
    first_rings = np.append(np.flatnonzero(np.diff(polygon, prepend=-1)), len(polygon))
    polygons = shapely.from_ragged_array(shapely.GeometryType.POLYGON, corners, (starts, first_rings))
    crossed = ~shapely.is_valid(polygons)
    repaired = shapely.get_parts(shapely.make_valid(polygons[crossed], method="structure", keep_collapsed=False))
    polygons = np.concatenate([polygons[~crossed], repaired[~shapely.is_empty(repaired)]])
    _, corners, (of_ring, of_polygon) = shapely.to_ragged_array(polygons)
    rings = [ring[:-1] for ring in _split(np.round(corners, _DECIMALS), of_ring)]
    return [rings[first:last] for first, last in pairwise(of_polygon.tolist())]


def _thin(outlines: _Outlines, bounds: Bounds, *, rings: bool) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Leave out corners that are too detailed for where they are, and lines or rings that are too short for where they are.

    Returns:
        (k, 2) corners, rounded; (j + 1,) where each line starts and the last ends; (j,) the polygon of each line.
    """
    wanted = _wanted_detail(outlines.corners, bounds)
    finest = np.full(len(outlines.length), np.inf)
    np.minimum.at(finest, outlines.line, wanted)
    kept = outlines.detail > wanted
    long = outlines.length > (_SHORTEST_RING if rings else _SHORTEST_LINE) * finest
    if rings:
        long &= np.bincount(outlines.line[kept], minlength=len(long)) >= _FEWEST_CORNERS
        outer = np.flatnonzero(np.diff(outlines.polygon, prepend=-1))
        long &= long[outer][outlines.polygon]  # a hole goes with its polygon
    kept &= long[outlines.line]
    corners = outlines.corners[kept]
    rounded = np.where(wanted[kept, None] >= _COARSE, np.round(corners, _COARSE_DECIMALS), np.round(corners, _DECIMALS))
    counts = np.bincount(outlines.line[kept], minlength=len(long))[long]
    return rounded, np.append(0, np.cumsum(counts)), outlines.polygon[long]


def _wanted_detail(corners: Floats, bounds: Bounds) -> Floats:
    """Compute the detail that is wanted at each of (n, 2) corners, in degrees."""
    west, south, east, north = bounds
    extent = max(east - west, north - south)
    distance = measure_distance(corners[:, 0], corners[:, 1], bounds)
    far = np.maximum(distance - SURROUNDINGS * extent, 0.0)
    detail = extent / FINEST_DETAIL * max(1.0, extent / _WIDE)
    return np.asarray(np.minimum(detail + _NEAR_GROWTH * (distance - far) + _FAR_GROWTH * far, COARSEST))


def _split(corners: Floats, starts: NDArray[np.integer]) -> list[Line]:
    points = corners.tolist()
    return [points[first:last] for first, last in pairwise(starts.tolist())]
