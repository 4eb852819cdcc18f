"""A rectangle along the axes that is given as a polygon, in place of the four numbers of its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import shapely

from dpviz.errors import DomainError

if TYPE_CHECKING:
    import geopandas
    from pyproj import CRS

Bounds: TypeAlias = "Sequence[float] | shapely.Polygon | geopandas.GeoSeries | geopandas.GeoDataFrame"
"""West, south, east, north; or a polygon that is this rectangle, alone or as the one row of a GeoSeries or GeoDataFrame."""

_NO_RECTANGLE = (
    "A domain is a rectangle along the axes, and this shape is none: declare bounds around it, bounds=(west, south, east, north), and leave"
    " out what is not of it with dv.mask_outside(domain, geopandas.GeoSeries([shape], crs=...))."
)
_ROWS = (
    "A domain is one rectangle: give one row, or declare bounds around all shapes, and leave out the rest with"
    " dv.mask_outside(domain, shapes)."
)


def bounds_of(bounds: Any) -> object:
    """Return the four numbers of bounds that are given as a rectangle; anything else as it is.

    Raises:
        DomainError: there are several shapes, or one that is no rectangle along the axes.

    >>> bounds_of(shapely.box(4, 52, 5, 53))
    (4.0, 52.0, 5.0, 53.0)
    """
    shape = bounds
    if hasattr(shape, "total_bounds"):
        if len(shape.geometry) != 1:
            raise DomainError(_ROWS)
        shape = shape.geometry.iloc[0]
    if not isinstance(shape, shapely.Geometry):
        return shape
    if not shapely.equals(shape, shapely.box(*shapely.bounds(shape))):
        raise DomainError(_NO_RECTANGLE)
    return tuple(shapely.bounds(shape).tolist())


def crs_of(bounds: object) -> CRS | None:
    """Return the CRS that a GeoSeries or GeoDataFrame states; None for all other bounds."""
    return getattr(bounds, "crs", None) if hasattr(bounds, "total_bounds") else None
