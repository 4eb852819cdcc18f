"""Polygons and points of regions: checked, repaired, dissolved into larger ones, placed on the globe."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import shapely
from pyproj import CRS
from pyproj.exceptions import ProjError

from dpviz.errors import DomainError
from dpviz.space.domain import is_horizontal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpviz.space.regions import Places

_DEGREES = "EPSG:4326"
_POINT, _AREAS = 0, (3, 6)
_POLE, _TURN = 90.000001, 360.000001
_SAME_AREA = 1e-9


def are_areas(shapes: geopandas.GeoSeries) -> bool:
    """Whether all shapes are polygons, of one part or several."""
    return bool(np.isin(shapely.get_type_id(shapes.to_numpy()), _AREAS).all())


def checked_shapes(shapes: geopandas.GeoSeries, level: str) -> geopandas.GeoSeries:
    """(n,) the shapes of a level in two dimensions, polygons that cross themselves repaired.

    Raises:
        DomainError: no GeoSeries, no CRS or none of a map, shapes that are missing, neither polygons nor points or both, without area, or
            beyond the poles.
    """
    if not isinstance(shapes, geopandas.GeoSeries):
        raise DomainError(f"The geometry of level {level!r} must be a GeoSeries.")
    _check_crs(shapes.crs)
    found = shapely.force_2d(shapes.to_numpy())
    if (shapely.is_missing(found) | shapely.is_empty(found)).any():
        raise DomainError(f"Level {level!r} has a region without a shape: give all of a level's regions one, or none of them.")
    kinds = shapely.get_type_id(found)
    areas = np.isin(kinds, _AREAS)
    if not (areas | (kinds == _POINT)).all():
        raise DomainError(f"Level {level!r} has shapes that are neither polygons nor points (lines, multipoints or collections).")
    if areas.any() != areas.all():
        raise DomainError(f"Level {level!r} mixes polygons and points: take one kind for all of its regions.")
    _check_bounds(found, shapes.crs, level)
    return geopandas.GeoSeries(_repaired(found, level) if areas.any() else found, crs=shapes.crs)


def _check_crs(crs: CRS | None) -> None:
    if crs is None:
        raise DomainError("The geometry has no CRS; set it with set_crs(...), it is never guessed.")
    if not is_horizontal(crs):
        raise DomainError(
            "The geometry's CRS has no place on a map (heights only, or geocentric); reproject it to EPSG:4326, for instance."
        )


def _check_bounds(shapes: NDArray[np.object_], crs: CRS, level: str) -> None:
    if not np.isfinite(shapely.get_coordinates(shapes)).all():
        raise DomainError(f"Level {level!r} has a coordinate that is not finite.")
    west, south, east, north = shapely.total_bounds(shapes)
    if crs.is_geographic and not (-_POLE <= south <= north <= _POLE and -_TURN <= west <= east <= _TURN):
        raise DomainError(f"Level {level!r} has a longitude or latitude that is none: are x and y swapped, or is the CRS another?")


def _repaired(shapes: NDArray[np.object_], level: str) -> NDArray[np.object_]:
    """The same polygons, valid: those that cross or touch themselves are cut into parts that do not."""
    broken = np.flatnonzero(~shapely.is_valid(shapes))
    if not len(broken):
        return shapes
    repaired = shapes.copy()
    for place in broken.tolist():
        parts = shapely.get_parts(shapely.make_valid(shapes[place]))
        repaired[place] = shapely.union_all(parts[np.isin(shapely.get_type_id(parts), _AREAS)])
    if shapely.is_empty(repaired).any():
        raise DomainError(f"Level {level!r} has a polygon without area.")
    return repaired


def dissolved(finer: geopandas.GeoSeries, parent: Places, size: int) -> geopandas.GeoSeries:
    """(size,) unions of the shapes of each region's children, which stand in tree order."""
    shapes = finer.to_numpy()
    bounds = np.searchsorted(parent, np.arange(size + 1)).tolist()
    return geopandas.GeoSeries([_union(shapes[start:stop]) for start, stop in itertools.pairwise(bounds)], crs=finer.crs)


def _union(shapes: NDArray[np.object_]) -> Any:
    """The union of valid polygons, by leaving out the edges that two of them share if that is right.

    That is ten times as fast, and right where polygons meet in common vertices and nowhere overlap: then, and only then, the
    result is valid and as large as all of them together.
    """
    if len(shapes) == 1:
        return shapes[0]
    try:
        union = shapely.coverage_union_all(shapes)
    except shapely.errors.GEOSException:
        return shapely.union_all(shapes)
    area = shapely.area(shapes).sum()
    right = shapely.is_valid(union) and abs(union.area - area) <= _SAME_AREA * area
    return union if right else shapely.union_all(shapes)


def degrees_inside(shapes: geopandas.GeoSeries) -> NDArray[np.float64]:
    """(n, 2) longitude and latitude of a point in each shape.

    Raises:
        DomainError: a point that has none.
    """
    inside = shapes.representative_point()
    degrees = np.full((len(shapes), 2), np.nan)
    with suppress(ProjError):
        inside = inside.to_crs(_DEGREES)
        degrees = np.stack([inside.x, inside.y], axis=1)
    if not np.isfinite(degrees).all():
        raise DomainError("A region lies where its CRS knows no longitude and latitude; is the CRS the right one?")
    return degrees
