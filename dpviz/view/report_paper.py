"""The sheet that a printed map is drawn on: projections that keep areas true, outlines as light SVG paths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer

from dpviz.space.domain import Domain
from dpviz.view.places import OUTLINES, WGS84, Bounds, outlines_around

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Shapes = NDArray[np.object_]

WIDTH = 9000
"""Of a sheet, in its units: about ten to a pixel, so that all coordinates are whole numbers."""
_TALLEST = 8000
_MARGIN, _LAND_MARGIN = 0.03, 0.15
_DETAIL = 6.0
_BEYOND = 60
_FINEST_LAND = 3000
_WIDEST = 110.0
_STEPS = np.linspace(0.0, 1.0, 33)


@dataclass(frozen=True, kw_only=True)
class Paper:
    """From a projected plane to a sheet with whole units, its first row in the north.

    Attributes:
        crs: of the plane; None for a plain plane, which has no land.
        west: of the sheet, in the plane's units.
        north: likewise.
        scale: sheet units per unit of the plane.
        width: of the sheet.
        height: of the sheet.
    """

    crs: str | None
    west: float
    north: float
    scale: float
    width: int
    height: int

    def place(self, xy: Floats) -> Integers:
        """(k, 2) columns and rows of (k, 2) points of the plane."""
        return np.rint(self._moved(xy)).astype(np.int64)

    def _moved(self, xy: Floats) -> Floats:
        return np.column_stack([(xy[:, 0] - self.west) * self.scale, (self.north - xy[:, 1]) * self.scale])

    def degrees(self, points: Floats) -> Integers:
        """(k, 2) columns and rows of (k, 2) longitudes and latitudes."""
        placed = geopandas.GeoSeries(shapely.points(points), crs=WGS84).to_crs(self.crs)
        return self.place(shapely.get_coordinates(placed.to_numpy()))

    def paths(self, shapes: geopandas.GeoSeries) -> list[str]:
        """One SVG path per shape, in the sheet's CRS: cut to the sheet, without what is too small to be seen; "" if nothing is left."""
        known = np.asarray(shapes.to_numpy(), object)
        moved = shapely.transform(shapely.force_2d(known), self._moved)
        edge = (-_BEYOND, -_BEYOND, self.width + _BEYOND, self.height + _BEYOND)
        lines, owner = _lines(shapely.clip_by_rect(moved, *edge))
        paths = [""] * len(known)
        for text, place in zip(_texts(shapely.simplify(lines, _DETAIL)), owner.tolist(), strict=True):
            paths[place] += text
        return paths

    def land(self, bounds: Bounds) -> dict[str, str]:
        """SVG paths of "land", "countries" and "states" around bounds in degrees; "" on a plain plane."""
        if self.crs is None:
            return dict.fromkeys(OUTLINES, "")
        extent = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
        return {name: self._outline(name, bounds, extent) for name in OUTLINES}

    def _outline(self, name: str, bounds: Bounds, extent: float) -> str:
        parts = outlines_around(name, bounds, _LAND_MARGIN * extent, extent / _FINEST_LAND)
        placed = geopandas.GeoSeries(parts, crs=WGS84).to_crs(self.crs)
        whole = np.isfinite(placed.bounds.to_numpy()).all(axis=1)
        return "".join(self.paths(placed[whole]))


def domain_paper(domain: Domain) -> Paper:
    """A sheet for partitions, on which they stay rectangles.

    Geographic coordinates are drawn in a cylindrical equal-area projection that is true to shape in the domain's middle;
    all others as they are.
    """
    crs = _plane(domain) if domain.crs is None or not CRS(domain.crs).is_engineering else None
    return paper_of(crs, tuple(on_plane(domain, np.array([[0, 0, domain.side, domain.side]]))[0].tolist()))


def on_plane(domain: Domain, rectangles: NDArray[np.integer]) -> Floats:
    """(k, 4) west, south, east, north of lattice rectangles on the plane of `domain_paper`."""
    west, south, east, north = domain.coordinates(rectangles).T
    if domain.is_geographic:
        to_plane = Transformer.from_crs(domain.crs, _plane(domain), always_xy=True)
        west, south = to_plane.transform(west, south)
        east, north = to_plane.transform(east, north)
    return np.column_stack([west, south, east, north])


def _plane(domain: Domain) -> str | None:
    if not domain.is_geographic:
        return domain.crs
    west, south, east, north = domain.bounds
    return f"+proj=cea +lat_ts={(south + north) / 2:.4f} +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"


def regions_paper(bounds: Bounds) -> Paper:
    """A sheet for regions within bounds in degrees: equal areas around its middle, or those of the whole Earth."""
    west, south, east, north = bounds
    crs = f"+proj=laea +lat_0={(south + north) / 2:.4f} +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"
    if max(east - west, north - south) > _WIDEST:
        crs = f"+proj=eqearth +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"
    across, up = west + (east - west) * _STEPS, south + (north - south) * _STEPS
    edge = np.concatenate([np.column_stack([across, 0 * across + y]) for y in (south, north)])
    sides = np.concatenate([np.column_stack([0 * up + x, up]) for x in (west, east)])
    points = geopandas.GeoSeries(shapely.points(np.concatenate([edge, sides])), crs=WGS84).to_crs(crs)
    return paper_of(crs, tuple(points.total_bounds.tolist()))


def paper_of(crs: str | None, bounds: tuple[float, ...]) -> Paper:
    """A sheet for bounds of the plane, with a small margin."""
    west, south, east, north = map(float, bounds)
    margin = _MARGIN * max(east - west, north - south)
    across, up = east - west + 2 * margin, north - south + 2 * margin
    scale = min(WIDTH / across, _TALLEST / up)
    return Paper(
        crs=crs,
        west=west - margin,
        north=north + margin,
        scale=scale,
        width=max(1, math.ceil(across * scale)),
        height=max(1, math.ceil(up * scale)),
    )


def _lines(shapes: Shapes) -> tuple[Shapes, Integers]:
    """Rings of polygons and lines as they are, and whose they are, in the order of the shapes."""
    parts, owner = shapely.get_parts(shapes, return_index=True)
    areas = np.isin(shapely.get_type_id(parts), (3, 6))
    parts_again, again = shapely.get_parts(parts[areas], return_index=True)
    rings, ring_of = shapely.get_rings(parts_again, return_index=True)
    lines = np.isin(shapely.get_type_id(parts), (1, 2, 5))
    found = np.concatenate([rings, parts[lines]])
    whose = np.concatenate([owner[areas][again][ring_of], owner[lines]])
    order = np.argsort(whose, kind="stable")
    return found[order], whose[order]


def _texts(lines: Shapes) -> list[str]:
    """SVG paths with relative steps: whole numbers, so that errors do not add up."""
    corners = np.rint(shapely.get_coordinates(lines)).astype(np.int64)
    ends = np.r_[0, np.cumsum(shapely.get_num_coordinates(lines))]
    closed = shapely.is_closed(lines).tolist()
    return [_text(corners[start:stop], ring) for (start, stop), ring in zip(pairwise(ends.tolist()), closed, strict=True)]


def _text(corners: Integers, ring: bool) -> str:
    steps = np.diff(corners, axis=0)
    steps = steps[(steps != 0).any(axis=1)]
    if len(steps) < (2 if ring else 1):
        return ""
    start = corners[0].tolist()
    moves = " ".join(map(str, (steps[:-1] if ring else steps).ravel().tolist()))
    return f"M{start[0]} {start[1]}l{moves.replace(' -', '-')}{'z' if ring else ''}"
