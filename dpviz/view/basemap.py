"""Parts that all maps share: corners of partitions in degrees, outlines of land, borders and regions, and the area shown at first."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer

from dpviz.arrays import Floats, Mask, Texts
from dpviz.bundled import folder
from dpviz.space.domain import Domain
from dpviz.space.region_builders import h3_outlines
from dpviz.space.regions import DEGREES, Regions

Bounds = tuple[float, float, float, float]

WGS84 = "EPSG:4326"
OUTLINES = {"land": "land.json", "countries": "countries.json", "states": "us_states.json"}
MOST_CORNERS = 100_000  # of all polygons of a map
MOST_LINE_CORNERS = 30_000  # of an outline, which is a part of a message's header
MOST_NORTH = 85.05  # degrees; a web map ends here
_PLANE_DEGREES = 1.0  # degrees over which a plain plane is drawn
_FIRST_TOLERANCE, _LARGEST_TOLERANCE = 1e-4, 0.02  # of simplified polygons, as shares of the map's extent
_MOST_SAMPLED_LEAVES = 20_000
_OUTER_SHARE, _MOST_GAPS = 0.12, 3  # at each side, the share of the leaves that may be left out, and the number of gaps that are tried
_COST_OF_LEAVING_OUT, _COST_OUTSIDE = 0.4, 5.0  # zoom levels: for leaving out any leaf, and for all leaves, in proportion to those left out
_NEARBY_SHARE = 0.06  # of the area's extent: leaves this near to the area are shown as well
_SMALLEST_EXTENT = 0.05  # degrees


def map_bounds(domain: Domain) -> Bounds:
    """Return west, south, east, north of the domain on the map, in degrees."""
    corners = corner_coordinates(domain, np.array([[0, 0, domain.side, domain.side]]))[0]
    return (*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist())


def find_map_bounds(domain: Domain) -> Bounds | None:
    """Return the bounds of a domain on a web map; None if it has no place on one, as around a pole or in the plan of a building."""
    if domain.crs is not None and CRS(domain.crs).is_engineering:
        return None
    west, south, east, north = bounds = map_bounds(domain)
    return bounds if np.isfinite(bounds).all() and west < east and south < north else None


def corner_coordinates(domain: Domain, rectangles: NDArray[Any]) -> Floats:
    """Compute corners of lattice rectangles on the map.

    Args:
        domain: the public domain. A plain plane, without a CRS, is scaled to one degree around (0, 0), where a web map hardly distorts.
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
    return np.stack([x, np.clip(y, -MOST_NORTH, MOST_NORTH)], axis=-1)


def box_to_domain(domain: Domain, box: Bounds) -> Bounds:
    """Convert a box on the map, in degrees, to the coordinates of a domain: the smallest box there that holds it.

    >>> plane = Domain(bounds=(0, 0, 100, 100), crs=None, order=4)
    >>> box_to_domain(plane, (-0.5, -0.5, 0.0, 0.0))
    (0.0, 0.0, 50.0, 50.0)
    """
    return _convert_box(domain, box, to_map=False)


def box_to_map(domain: Domain, box: Sequence[float]) -> Bounds:
    """Convert a box in the coordinates of a domain to degrees on the map: the smallest box there that holds it.

    >>> plane = Domain(bounds=(0, 0, 100, 100), crs=None, order=4)
    >>> box_to_map(plane, (0, 0, 50, 50))
    (-0.5, -0.5, 0.0, 0.0)
    """
    return _convert_box(domain, box, to_map=True)


def _convert_box(domain: Domain, box: Sequence[float], *, to_map: bool) -> Bounds:
    west, south, east, north = box
    if domain.crs is None:
        left, bottom, right, top = domain.bounds
        scale = _PLANE_DEGREES / max(right - left, top - bottom)
        x, y = (left + right) / 2, (bottom + top) / 2
        if to_map:
            return (west - x) * scale, (south - y) * scale, (east - x) * scale, (north - y) * scale
        return west / scale + x, south / scale + y, east / scale + x, north / scale + y
    if domain.crs != WGS84:
        to_other = Transformer.from_crs(*((domain.crs, WGS84) if to_map else (WGS84, domain.crs)), always_xy=True)
        west, south, east, north = to_other.transform_bounds(west, south, east, north)
    return west, south, east, north


def measure_distance(x: Floats, y: Floats, bounds: Bounds) -> Floats:
    """Compute (n,) how far (n,) places are outside of bounds, by the larger of both differences; `x` is in degrees and goes around."""
    west, south, east, north = bounds
    across = np.abs(x - (west + east) / 2)
    beyond_x = np.minimum(across, 360 - across) - (east - west) / 2
    beyond_y = np.abs(y - (south + north) / 2) - (north - south) / 2
    return np.asarray(np.maximum(np.maximum(beyond_x, beyond_y), 0.0))


def outlines_around(name: str, bounds: Bounds, margin: float, detail: float) -> NDArray[np.object_]:
    """Select outlines of land or borders in and around bounds, simplified.

    Args:
        name: one of `OUTLINES`.
        bounds: west, south, east, north in degrees.
        margin: how far beyond the bounds outlines are kept, in degrees.
        detail: smallest detail that is kept, in degrees.

    Returns:
        (k,) lines and polygons, in degrees.
    """
    west, south, east, north = bounds
    window = shapely.box(west - margin, south - margin, east + margin, north + margin)
    parts = shapely.get_parts(shapely.simplify(shapely.intersection(_shapes(name), window), detail))
    return np.asarray(parts[(shapely.length(parts) > 4 * detail) & ~shapely.is_empty(parts)], object)


def outlines_in(crs: str, name: str, bounds: Bounds, margin: float, detail: float) -> geopandas.GeoSeries:
    """Select outlines as `outlines_around` does, in another CRS; those without a place in it are left out."""
    outlines = geopandas.GeoSeries(outlines_around(name, bounds, margin, detail), crs=WGS84).to_crs(crs)
    return outlines[np.isfinite(outlines.bounds.to_numpy()).all(axis=1)]


@lru_cache(maxsize=4)
def _shapes(name: str) -> NDArray[np.object_]:
    """Read the geometries of a bundled outline; its GeoJSON is parsed directly, without a geometry file library."""
    features = json.loads((folder("assets") / OUTLINES[name]).read_text("utf-8"))["features"]
    return np.array([shapely.geometry.shape(feature["geometry"]) for feature in features], object)


@dataclass(frozen=True, kw_only=True)
class RegionShapes:
    """The shapes of the regions of one level, in degrees.

    Attributes:
        centres: (n, 2) longitude and latitude of the regions.
        polygons: for each polygon its outer ring, or a list of rings if it has holes; empty if the regions are drawn as points.
        owner: for each polygon, the index of its region; a region may have several polygons.
        cells: (n,) indexes of H3 cells, whose outlines the map library knows: there are no polygons then; None for other regions.
    """

    centres: Floats
    polygons: list[list[Any]]
    owner: list[int]
    cells: Texts | None = None

    @property
    def are_dots(self) -> bool:
        """Whether the regions are drawn as points."""
        return not self.polygons and self.cells is None

    def with_polygons(self) -> RegionShapes:
        """Return the same shapes with the polygons of H3 cells, for pictures that are drawn without the map library."""
        if self.cells is None:
            return self
        return replace(self, polygons=_to_rings(h3_outlines(self.cells)), owner=list(range(len(self.cells))), cells=None)


def prepare_shapes(regions: Regions, level: int, *, h3: bool = False) -> RegionShapes | None:
    """Prepare the shapes of the regions of a level for a map.

    Args:
        regions: public regions.
        level: 1 for the coarsest.
        h3: whether the map takes the indexes of H3 cells in place of polygons.

    Returns:
        Polygons, or H3 cells, and centres; only centres if there are no outlines, or they have too many corners. None if the regions
        have no geometry.
    """
    centres = regions.centres(level)
    if centres is None:
        return None
    centres = np.column_stack([centres[:, 0], np.clip(centres[:, 1], -MOST_NORTH, MOST_NORTH)])
    if h3 and regions.are_h3_cells(level):
        return RegionShapes(centres=centres, polygons=[], owner=[], cells=regions.ids_of(level))
    outlines = regions.outlines(level)
    parts = None if outlines is None else _simplify(_to_degrees(outlines), MOST_CORNERS)
    if parts is None:
        return RegionShapes(centres=centres, polygons=[], owner=[])
    return RegionShapes(centres=centres, polygons=_to_rings(parts[0]), owner=parts[1].tolist())


def lie_near(shapes: RegionShapes, places: Floats, margin: float) -> Mask:
    """Return (k,) which places lie in regions or close to them; all places where the regions have no polygons.

    Args:
        shapes: of the regions.
        places: (k, 2) longitude and latitude.
        margin: how far beyond the polygons a place may lie, in degrees.
    """
    near = np.full(len(places), not shapes.polygons)
    if shapes.polygons:
        outer = [polygon[0] if isinstance(polygon[0][0], list) else polygon for polygon in shapes.polygons]
        corners, owner = np.concatenate([np.array(ring) for ring in outer]), np.repeat(np.arange(len(outer)), [len(ring) for ring in outer])
        tree = shapely.STRtree(np.asarray(shapely.polygons(shapely.linearrings(corners, indices=owner)), object))
        near[tree.query(shapely.points(places), predicate="dwithin", distance=margin)[0]] = True
    return near


def outline_rings(polygons: NDArray[np.object_]) -> list[list[list[float]]]:
    """Write polygons in degrees as closed lines for a map, simplified to at most `MOST_LINE_CORNERS` corners; none if that distorts them.

    >>> outline_rings(np.array([shapely.box(4, 45, 5, 46)]))
    [[[5.0, 45.0], [5.0, 46.0], [4.0, 46.0], [4.0, 45.0], [5.0, 45.0]]]
    """
    parts = _simplify(polygons, MOST_LINE_CORNERS)
    if parts is None:
        return []
    polygons_of_rings = [polygon if isinstance(polygon[0][0], list) else [polygon] for polygon in _to_rings(parts[0])]
    return [[*ring, ring[0]] for rings in polygons_of_rings for ring in rings]


def _to_degrees(outlines: geopandas.GeoSeries) -> NDArray[np.object_]:
    return np.asarray(outlines.to_crs(DEGREES).to_numpy(), object)


def _simplify(shapes: NDArray[np.object_], most: int) -> tuple[NDArray[np.object_], NDArray[np.int64]] | None:
    """Simplify polygons to at most so many corners, and return the index of each polygon's region; None if they would be distorted.

    A part that is smaller than the tolerance is left out, unless it is the largest of its region.
    """
    parts, owner = shapely.get_parts(np.array(shapes), return_index=True)  # before 2.2 shapely takes no array that is read-only
    area = shapely.area(parts)
    order = np.lexsort((-area, owner))
    largest = np.zeros(len(parts), np.bool_)
    largest[order[np.r_[True, np.diff(owner[order]) > 0]]] = True
    extent = _extent(shapes)
    tolerance = 0.0
    while tolerance <= _LARGEST_TOLERANCE * extent:
        kept = largest | (area > tolerance**2)
        simplified = shapely.simplify(parts[kept], tolerance, preserve_topology=True) if tolerance else parts
        if shapely.get_num_coordinates(simplified).sum() <= most:
            return simplified, owner[kept]
        tolerance = 2 * tolerance or _FIRST_TOLERANCE * extent
    return None


def _to_rings(parts: NDArray[np.object_]) -> list[list[Any]]:
    """Convert rings to lists of rounded corners; the last corner, which repeats the first, is left out."""
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


def fit_bounds(hierarchies: list[Regions], width: int, height: int) -> Bounds:
    """Choose the area that a map of regions shows at first; it depends on the public regions alone.

    A few leaves that lie far from all others (Alaska, Hawaii) may be outside the area, if the scale becomes much larger without them.
    Each candidate area leaves out some leaves at the four sides; the area with the best balance of zoom and left-out leaves is taken.

    Args:
        hierarchies: regions with geometry.
        width: of the map, in pixels.
        height: of the map, in pixels.

    Returns:
        West, south, east and north, in degrees.
    """
    boxes = np.concatenate([_leaf_boxes(regions) for regions in hierarchies])
    x, y = boxes[:, :2].mean(axis=1), boxes[:, 2:].mean(axis=1)
    best, scale = (-math.inf, boxes), (2 * math.pi / width, 2 * math.pi / height)
    for west, east, south, north in product(_list_cuts(x), -_list_cuts(-x), _list_cuts(y), -_list_cuts(-y)):
        inside = boxes[(x >= west) & (x <= east) & (y >= south) & (y <= north)]
        if not len(inside):
            continue
        width_of_area, height_of_area = np.ptp(inside[:, :2]), np.ptp(inside[:, 2:])
        zoom = -math.log2(max(width_of_area * scale[0], height_of_area * scale[1], 1e-9))
        outside = 1 - len(inside) / len(boxes)
        worth = zoom - _COST_OF_LEAVING_OUT * (outside > 0) - _COST_OUTSIDE * outside
        best = max(best, (worth, inside), key=lambda candidate: candidate[0])
    return _to_bounds(_add_nearby(boxes, best[1]))


def _add_nearby(boxes: Floats, inside: Floats) -> Floats:
    """Select the boxes `fill`, and other boxes that lie just beyond them."""
    margin = _NEARBY_SHARE * max(np.ptp(inside[:, :2]), np.ptp(inside[:, 2:]))
    nearby = [(boxes[:, low] >= inside[:, low].min() - margin) & (boxes[:, low + 1] <= inside[:, low + 1].max() + margin) for low in (0, 2)]
    return np.asarray(boxes[nearby[0] & nearby[1]], np.float64)


def _leaf_boxes(regions: Regions) -> Floats:
    """Compute (n, 4) west, east, south, north of the leaves, in radians of the web map. Of very many leaves, an even sample is used."""
    outlines, centres = regions.outlines(regions.depth), regions.centres(regions.depth)
    sample = slice(None, None, -(-regions.size(regions.depth) // _MOST_SAMPLED_LEAVES))
    if outlines is None:
        west, south = east, north = np.asarray(centres)[sample].T
    else:
        west, south, east, north = shapely.bounds(_to_degrees(outlines.iloc[sample])).T
    up = [np.arcsinh(np.tan(np.radians(np.clip(side, -MOST_NORTH, MOST_NORTH)))) for side in (south, north)]
    return np.column_stack([np.radians(west), np.radians(east), *up])


def _list_cuts(values: Floats) -> Floats:
    """List candidates for the lower end of the shown area: the lowest value, and the values after the widest gaps among low values."""
    lowest = np.sort(values)[: int(_OUTER_SHARE * len(values)) + 1]
    gaps = np.argsort(-np.diff(lowest), kind="stable")[:_MOST_GAPS]
    return np.append(lowest[:1], lowest[gaps + 1])


def _to_bounds(boxes: Floats) -> Bounds:
    """Compute the bounds of (n, 4) boxes in degrees, widened to at least `_SMALLEST_EXTENT` degrees each way."""
    west, east = math.degrees(boxes[:, :2].min()), math.degrees(boxes[:, :2].max())
    south, north = (math.degrees(math.atan(math.sinh(end))) for end in (boxes[:, 2:].min(), boxes[:, 2:].max()))
    spare = max(_SMALLEST_EXTENT - (east - west), _SMALLEST_EXTENT - (north - south), 0.0) / 2
    return west - spare, max(south - spare, -MOST_NORTH), east + spare, min(north + spare, MOST_NORTH)
