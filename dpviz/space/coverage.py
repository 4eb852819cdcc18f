"""The share of a query that is inside the domain. Nothing is counted outside, so that no query can be answered there."""

from __future__ import annotations

from typing import Any, TypeGuard

import geopandas
import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS

from dpviz.amounts import format_percent
from dpviz.arrays import Floats
from dpviz.errors import DomainError, check_choice
from dpviz.space.domain import Domain

Shapes = NDArray[np.object_]

OUTSIDE = ("refuse", "inside_part")
TOLERANCE = 1e-9
"""The share of a query that may be outside without an error, because reprojection and rounding move its edges a little."""


def is_areas(queries: object) -> bool:
    """Return whether queries are polygons (a GeoDataFrame, a GeoSeries, or one polygon) and not an array of boxes."""
    return isinstance(queries, geopandas.GeoDataFrame | geopandas.GeoSeries | shapely.Geometry)


def shapes_in(crs: CRS | str | None, areas: Any) -> Shapes:
    """Convert polygons to a CRS, that of a domain or of regions.

    Args:
        crs: the CRS; None if polygons are left as they are.
        areas: GeoDataFrame or GeoSeries of q polygons; or one polygon, in this CRS.

    Returns:
        (q,) shapely polygons, reprojected if there is a CRS.

    Raises:
        DomainError: `areas` is not a GeoDataFrame or GeoSeries, has no CRS although there is one, or has an invalid or missing geometry.
    """
    if isinstance(areas, shapely.Geometry):
        areas = geopandas.GeoSeries([areas], crs=crs)
    if not is_areas(areas):
        raise DomainError("Areas must be a GeoDataFrame or a GeoSeries of polygons.")
    geometry = areas.geometry
    if crs is not None:
        if geometry.crs is None:
            raise DomainError("The areas have no CRS; set it with set_crs(...), it is never guessed.")
        geometry = geometry.to_crs(crs)
    if geometry.isna().any() or not geometry.is_valid.all() or not geometry.geom_type.isin(["Polygon", "MultiPolygon"]).all():
        raise DomainError("Areas must be valid polygons; repair them with make_valid() first.")
    return np.asarray(geometry.to_numpy(), object)


def shape_coverage(domain: Domain, shapes: Shapes) -> Floats:
    """Compute the share of each polygon's area that is inside the domain.

    Args:
        domain: the public domain.
        shapes: (q,) polygons in the domain's CRS.

    Returns:
        (q,) 0 to 1; 1 for an empty polygon.
    """
    west, south, east, north = domain.bounds
    x_low, y_low, x_high, y_high = shapely.bounds(shapes).T.reshape(4, -1)
    within = ((x_low >= west) & (y_low >= south) & (x_high <= east) & (y_high <= north)) | shapely.is_empty(shapes)
    share, cut = np.ones(len(shapes)), np.flatnonzero(~within)
    parts = shapely.area(shapely.intersection(shapes[cut], shapely.box(*domain.bounds)))
    share[cut] = np.minimum(parts / shapely.area(shapes[cut]), 1.0)
    return share


def check_coverage(domain: Domain, queries: ArrayLike | Shapes, outside: str = "refuse") -> Floats:
    """Check that no query is partly outside the domain, and return the share of each query that is inside.

    Args:
        domain: the public domain.
        queries: (q, 4) boxes west, south, east, north, or (q,) polygons that `shapes_in` returned, in the domain's CRS.
        outside: "refuse" raises for queries partly outside; "inside_part" allows them.

    Returns:
        (q,) 0 to 1.

    Raises:
        DomainError: more than 1e-9 of a query is outside and `outside` is "refuse"; boxes are malformed; or `outside` is unknown.
    """
    check_choice(outside, OUTSIDE, "outside", DomainError)
    share = _coverage(domain, queries)
    too_far = np.flatnonzero(share < 1 - TOLERANCE)
    if outside == "refuse" and len(too_far):
        raise DomainError(_outside_text(domain, queries, share, too_far))
    return share


def _coverage(domain: Domain, queries: ArrayLike | Shapes) -> Floats:
    return shape_coverage(domain, queries) if _are_shapes(queries) else domain.coverage(queries)


def _are_shapes(queries: object) -> TypeGuard[Shapes]:
    return isinstance(queries, np.ndarray) and queries.dtype == object and queries.ndim == 1


def _outside_text(domain: Domain, queries: Any, share: Floats, too_far: NDArray[np.int64]) -> str:
    """Write the error text for queries outside. It may quote numbers, because queries and the domain are public."""
    bounds = ", ".join(f"{bound:g}" for bound in domain.bounds)
    lead = f"{len(too_far):,} of {len(share):,} queries reach" if len(share) > 1 else "The query reaches"
    size = "their size" if len(share) > 1 else "its size"
    exchanged = _exchange_x_and_y(queries, too_far)
    hint = " Are x and y swapped?" if (_coverage(domain, exchanged) >= 1 - TOLERANCE).all() else ""
    return (
        f"{lead} outside the domain ({bounds}), by up to {percent_outside(float(share.min()))} of {size}: nothing was counted there.{hint}"
        " With outside='inside_part' the part inside is answered, together with its share; coverage(...) returns the shares alone."
    )


def percent_outside(share: float) -> str:
    """Write the part of a query outside the domain as a percentage, which is never rounded to 0 %.

    Args:
        share: the part inside, 0 to 1.

    >>> percent_outside(0.37), percent_outside(0), percent_outside(1 - 1e-7)
    ('63 %', '100 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if 1 - share < 0.001 else format_percent(1 - share)


def _exchange_x_and_y(queries: Any, chosen: NDArray[np.int64]) -> Any:
    """Exchange x and y of the chosen queries."""
    if not _are_shapes(queries):
        return np.asarray(queries, np.float64)[chosen][:, [1, 0, 3, 2]]
    return np.asarray([shapely.transform(shape, lambda xy: xy[:, ::-1]) for shape in queries[chosen]], object)
