"""How much of a query lies inside the domain: outside of it nothing was counted, so that nothing can be answered there."""

from __future__ import annotations

from typing import Any, TypeGuard

import geopandas
import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from dpviz.amounts import format_percent
from dpviz.arrays import Floats
from dpviz.errors import DomainError
from dpviz.space.domain import Domain

Shapes = NDArray[np.object_]

OUTSIDE = ("refuse", "inside_part")
TOLERANCE = 1e-9
"""The share of a query that may lie outside: as much as reprojection and floating-point numbers move an edge."""


def is_areas(queries: object) -> bool:
    """Whether queries are polygons, not boxes."""
    return isinstance(queries, geopandas.GeoDataFrame | geopandas.GeoSeries)


def shapes_of(domain: Domain, areas: Any) -> Shapes:
    """(q,) polygons in the domain's CRS.

    Raises:
        DomainError: no GeoDataFrame or GeoSeries, no CRS on polygons whose domain has one, or invalid or missing geometry.
    """
    if not is_areas(areas):
        raise DomainError("Areas must be a GeoDataFrame or a GeoSeries of polygons.")
    geometry = areas.geometry
    if domain.crs is not None:
        if geometry.crs is None:
            raise DomainError("The areas have no CRS; set it with set_crs(...), it is never guessed.")
        geometry = geometry.to_crs(domain.crs)
    if geometry.isna().any() or not geometry.is_valid.all() or not geometry.geom_type.isin(["Polygon", "MultiPolygon"]).all():
        raise DomainError("Areas must be valid polygons; repair them with make_valid() first.")
    return np.asarray(geometry.to_numpy(), object)


def shape_coverage(domain: Domain, shapes: Shapes) -> Floats:
    """(q,) share of the area of (q,) polygons in the domain's CRS that lies inside, 0 to 1; 1 for an empty polygon."""
    west, south, east, north = domain.bounds
    x_low, y_low, x_high, y_high = shapely.bounds(shapes).T.reshape(4, -1)
    within = ((x_low >= west) & (y_low >= south) & (x_high <= east) & (y_high <= north)) | shapely.is_empty(shapes)
    share, cut = np.ones(len(shapes)), np.flatnonzero(~within)
    parts = shapely.area(shapely.intersection(shapes[cut], shapely.box(*domain.bounds)))
    share[cut] = np.minimum(parts / shapely.area(shapes[cut]), 1.0)
    return share


def checked_coverage(domain: Domain, queries: ArrayLike | Shapes, outside: str = "refuse") -> Floats:
    """The share of each query that lies inside the domain; refuses queries that lie partly outside, unless `outside` allows them.

    Args:
        domain: the public frame.
        queries: (q, 4) boxes, or (q,) polygons in the domain's CRS as `shapes_of` gives them.
        outside: "refuse" or "inside_part".

    Returns:
        (q,) 0 to 1.

    Raises:
        DomainError: more than 1e-9 of a query is outside and `outside` is "refuse"; malformed boxes; another `outside`.
    """
    if outside not in OUTSIDE:
        raise DomainError(f"outside must be one of {', '.join(OUTSIDE)}.")
    share = _coverage(domain, queries)
    beyond = np.flatnonzero(share < 1 - TOLERANCE)
    if outside == "refuse" and len(beyond):
        raise DomainError(_refusal(domain, queries, share, beyond))
    return share


def _coverage(domain: Domain, queries: ArrayLike | Shapes) -> Floats:
    return shape_coverage(domain, queries) if _are_shapes(queries) else domain.coverage(queries)


def _are_shapes(queries: object) -> TypeGuard[Shapes]:
    return isinstance(queries, np.ndarray) and queries.dtype == object and queries.ndim == 1


def _refusal(domain: Domain, queries: Any, share: Floats, beyond: NDArray[np.int64]) -> str:
    """What is wrong, how much of it, and what to do; queries and the domain are public."""
    bounds = ", ".join(f"{bound:g}" for bound in domain.bounds)
    many = f"{len(beyond):,} of {len(share):,} queries reach" if len(share) > 1 else "The query reaches"
    size = "their size" if len(share) > 1 else "its size"
    swapped = _swapped(queries, beyond)
    hint = " Are x and y swapped?" if (_coverage(domain, swapped) >= 1 - TOLERANCE).all() else ""
    return (
        f"{many} outside the domain ({bounds}), by up to {percent_outside(float(share.min()))} of {size}: nothing was counted there.{hint}"
        " With outside='inside_part' the part inside is answered, together with its share; coverage(...) gives the shares alone."
    )


def percent_outside(share: float) -> str:
    """The part outside, as a percentage of the query that is never rounded to nothing.

    >>> percent_outside(0.37), percent_outside(0), percent_outside(1 - 1e-7)
    ('63 %', '100 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if 1 - share < 0.001 else format_percent(1 - share)


def _swapped(queries: Any, chosen: NDArray[np.int64]) -> Any:
    """Some of the queries with x and y exchanged."""
    if not _are_shapes(queries):
        return np.asarray(queries, np.float64)[chosen][:, [1, 0, 3, 2]]
    return np.asarray([shapely.transform(shape, lambda xy: xy[:, ::-1]) for shape in queries[chosen]], object)
