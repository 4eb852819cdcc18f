"""The sheets on which maps are drawn as SVG: projections that keep areas, or the web map's, and paths of whole-numbered corners."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer

from dpviz.arrays import Floats, Integers
from dpviz.space.domain import Domain
from dpviz.view.basemap import OUTLINES, WGS84, Bounds, corner_coordinates, outlines_in

Shapes = NDArray[np.object_]
MERCATOR = "EPSG:3857"  # of web maps
WIDTH = 9000
"""Width of an SVG in its own units, about ten per pixel, so that whole-numbered coordinates are fine enough."""
_TALLEST = 8000  # sheet units, as all lengths here unless said otherwise
_MARGIN, _LAND_MARGIN = 0.03, 0.15  # around the shown area, and around it for land; shares of its extent
_DETAIL = 6.0  # details of shapes that are smaller are left out
_CLIP_MARGIN = 60  # around the sheet, so that the edges of cut shapes are not seen
_FINEST_LAND = 3000  # details of land that are smaller than the extent divided by this are left out
_WIDEST_DEGREES = 110.0  # an area that is wider or higher is drawn by the Equal Earth projection
_STEPS = np.linspace(0.0, 1.0, 33)  # positions along each side of an area, to find its bounds once it is projected


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The SVG sheet of a map: converts coordinates of a projected plane to whole sheet units, counted from the north-west corner.

    Attributes:
        crs: the plane's CRS; None for a plain plane, on which no land is drawn.
        west: western edge of the sheet, in units of the plane.
        north: northern edge of the sheet, in units of the plane.
        scale: sheet units per unit of the plane.
        width: of the sheet, in sheet units.
        height: of the sheet, in sheet units.
    """

    crs: str | None
    west: float
    north: float
    scale: float
    width: int
    height: int

    def to_sheet(self, xy: Floats) -> Integers:
        """Convert (k, 2) coordinates of the plane to (k, 2) columns and rows of the sheet."""
        return np.rint(self._to_unrounded(xy)).astype(np.int64)

    def _to_unrounded(self, xy: Floats) -> Floats:
        """Convert (k, 2) coordinates of the plane to (k, 2) columns and rows, not rounded."""
        return np.column_stack([(xy[:, 0] - self.west) * self.scale, (self.north - xy[:, 1]) * self.scale])

    def place(self, points: Floats) -> Integers:
        """Convert (k, 2) longitudes and latitudes to (k, 2) columns and rows of the sheet."""
        return self.to_sheet(self.project(points, self.crs))

    @staticmethod
    def project(points: Floats, crs: str | None) -> Floats:
        """Convert (k, 2) longitudes and latitudes to coordinates of a plane."""
        return np.column_stack(Transformer.from_crs(WGS84, crs, always_xy=True).transform(*points.T))

    def place_rectangles(self, domain: Domain, rectangles: NDArray[np.integer]) -> Integers:
        """Convert k lattice rectangles to (4 k, 2) corners on the sheet: south-west, south-east, north-east and north-west of each."""
        if self.crs == MERCATOR:
            return self.place(corner_coordinates(domain, rectangles).reshape(-1, 2))
        west, south, east, north = project_rectangles(domain, rectangles).T
        return self.to_sheet(np.stack([west, south, east, south, east, north, west, north], axis=1).reshape(-1, 2))

    def write_paths(self, shapes: geopandas.GeoSeries) -> list[str]:
        """Write shapes in the sheet's CRS as SVG paths, cut to the sheet and simplified; "" for a shape that lies outside."""
        geometries = np.asarray(shapes.to_numpy(), object)
        on_sheet = shapely.transform(shapely.force_2d(geometries), self._to_unrounded)
        edge = (-_CLIP_MARGIN, -_CLIP_MARGIN, self.width + _CLIP_MARGIN, self.height + _CLIP_MARGIN)
        lines, owner = _collect_lines(shapely.clip_by_rect(on_sheet, *edge))
        lines, paths = shapely.simplify(lines, _DETAIL), [""] * len(geometries)
        corners = np.rint(shapely.get_coordinates(lines)).astype(np.int64)  # before steps are taken: their rounding does not add up
        ends = np.r_[0, np.cumsum(shapely.get_num_coordinates(lines))].tolist()
        for (start, stop), closed, index in zip(pairwise(ends), shapely.is_closed(lines).tolist(), owner.tolist(), strict=True):
            paths[index] += _write_path(corners[start:stop], closed)
        return paths

    def write_land(self, bounds: Bounds) -> dict[str, str]:
        """Write the outlines "land", "countries" and "states" around bounds in degrees as SVG paths; "" on a plain plane."""
        if self.crs is None:
            return dict.fromkeys(OUTLINES, "")
        extent = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
        lines = {name: outlines_in(self.crs, name, bounds, _LAND_MARGIN * extent, extent / _FINEST_LAND) for name in OUTLINES}
        return {name: "".join(self.write_paths(shapes)) for name, shapes in lines.items()}


def make_domain_sheet(domain: Domain) -> Sheet:
    """Make the sheet for a map of partitions, in a projection in which partitions stay rectangles.

    Degrees are projected by a cylindrical equal-area projection whose standard parallel is the middle of the domain. Other coordinates
    are used as they are.
    """
    crs = _choose_plane(domain) if domain.crs is None or not CRS(domain.crs).is_engineering else None
    return make_sheet(crs, tuple(project_rectangles(domain, np.array([[0, 0, domain.side, domain.side]]))[0].tolist()))


def project_rectangles(domain: Domain, rectangles: NDArray[np.integer]) -> Floats:
    """Convert (k, 4) lattice rectangles to west, south, east, north on the plane of `make_domain_sheet`."""
    west, south, east, north = domain.coordinates(rectangles).T
    if domain.is_geographic:
        to_plane = Transformer.from_crs(domain.crs, _choose_plane(domain), always_xy=True)
        west, south = to_plane.transform(west, south)
        east, north = to_plane.transform(east, north)
    return np.column_stack([west, south, east, north])


def _choose_plane(domain: Domain) -> str | None:
    """Choose the CRS of the sheet of a domain; None for a plain plane."""
    if not domain.is_geographic:
        return domain.crs
    west, south, east, north = domain.bounds
    return f"+proj=cea +lat_ts={(south + north) / 2:.4f} +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"


def make_regions_sheet(bounds: Bounds) -> Sheet:
    """Make the sheet for regions within bounds in degrees: Lambert azimuthal equal-area, or Equal Earth beyond 110 degrees."""
    west, south, east, north = bounds
    crs = f"+proj=laea +lat_0={(south + north) / 2:.4f} +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"
    if max(east - west, north - south) > _WIDEST_DEGREES:
        crs = f"+proj=eqearth +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"
    across, up = west + (east - west) * _STEPS, south + (north - south) * _STEPS
    edge = np.concatenate([np.column_stack([across, 0 * across + y]) for y in (south, north)])
    sides = np.concatenate([np.column_stack([0 * up + x, up]) for x in (west, east)])
    points = geopandas.GeoSeries(shapely.points(np.concatenate([edge, sides])), crs=WGS84).to_crs(crs)
    return make_sheet(crs, tuple(points.total_bounds.tolist()))


def make_sheet(crs: str | None, bounds: tuple[float, ...]) -> Sheet:
    """Make the sheet that shows given bounds (west, south, east, north) of a plane, with a small margin."""
    west, south, east, north = map(float, bounds)
    margin = _MARGIN * max(east - west, north - south)
    across, up = east - west + 2 * margin, north - south + 2 * margin
    scale = min(WIDTH / across, _TALLEST / up)
    return Sheet(
        crs=crs,
        west=west - margin,
        north=north + margin,
        scale=scale,
        width=max(1, math.ceil(across * scale)),
        height=max(1, math.ceil(up * scale)),
    )


def write_corners(corners: Integers) -> list[str]:
    """Write k rectangles with (4 k, 2) corners on the sheet as SVG paths; neighbours share their edges exactly."""
    return [
        f"M{a} {b}h{c - a}v{f - d}h{a - c}z" if b == d and c == e and f == h and g == a else f"M{a} {b}L{c} {d} {e} {f} {g} {h}z"
        for a, b, c, d, e, f, g, h in corners.reshape(-1, 8).tolist()
    ]


def _collect_lines(shapes: Shapes) -> tuple[Shapes, Integers]:
    """Collect all lines of shapes, the rings of their polygons included.

    Returns:
        (k,) rings and lines, in the order of the shapes, and (k,) the index of the shape of each.
    """
    parts, owner = shapely.get_parts(np.array(shapes), return_index=True)  # before 2.2 shapely takes no array that is read-only
    areas = np.isin(shapely.get_type_id(parts), (3, 6))
    polygons, part_of_area = shapely.get_parts(parts[areas], return_index=True)
    rings, ring_of = shapely.get_rings(polygons, return_index=True)
    lines = np.isin(shapely.get_type_id(parts), (1, 2, 5))
    all_lines = np.concatenate([rings, parts[lines]])
    owner_of_line = np.concatenate([owner[areas][part_of_area][ring_of], owner[lines]])
    order = np.argsort(owner_of_line, kind="stable")
    return all_lines[order], owner_of_line[order]


def _write_path(corners: Integers, ring: bool) -> str:
    """Write the SVG path, in relative steps, of one line or ring with (k, 2) corners; "" if all its corners are the same after rounding."""
    steps = np.diff(corners, axis=0)
    steps = steps[(steps != 0).any(axis=1)]
    fewest = 2 if ring else 1
    if len(steps) < fewest:
        return ""
    start = corners[0].tolist()
    moves = " ".join(map(str, (steps[:-1] if ring else steps).ravel().tolist()))
    return f"M{start[0]} {start[1]}l{moves.replace(' -', '-')}{'z' if ring else ''}"
