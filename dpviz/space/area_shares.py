"""The share of each leaf region that lies in a polygon: by area, or by a public weight such as population or built-up area."""

from __future__ import annotations

from typing import Any

import geopandas
import numpy as np
import scipy
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Geod

from dpviz.arrays import Floats, Integers
from dpviz.errors import DomainError
from dpviz.space.borders import common_areas
from dpviz.space.mask import count_up
from dpviz.space.regions import Regions, are_areas

Shapes = NDArray[np.object_]
WEIGHT = "weight"
WHOLE = 1 - 1e-9
"""The least share of a region that counts as the whole region: reprojection and rounding move edges a little."""
MOST_OUTSIDE = 1e-3
"""The share of a polygon that may lie in no region without an error: neighbours' borders leave slivers."""


def leaf_polygons(regions: Regions) -> Shapes:
    """Return the polygons of the leaves; raise `DomainError` if there are none."""
    shapes = regions.geometry[-1]
    if shapes is None or not are_areas(shapes):
        raise DomainError(f"The level {regions.levels[-1]!r} has no polygons: give the regions some, or name regions by their ids.")
    return np.asarray(shapes.to_numpy(), object)


def leaf_shares(regions: Regions, polygons: Shapes, weights: geopandas.GeoDataFrame | None = None) -> tuple[Any, Floats]:
    """Compute which share of each leaf lies in each polygon. Only leaves' own shapes are used, no coarser level's.

    Args:
        regions: with polygons of their leaves.
        polygons: (q,) valid polygons in the regions' CRS.
        weights: public points or polygons with a column `weight`, at least 0; without the column, a point weighs 1 and a polygon as much
            as its area. A polygon's weight is spread evenly over its area. Leaves without any weight are divided by area.

    Returns:
        (q, leaves) shares, 0 to 1, as a sparse matrix; and (q,) which share of each polygon's area lies in leaves.

    Raises:
        DomainError: the leaves have no polygons, or `weights` are not of this form.
    """
    leaves = leaf_polygons(regions)
    tree = shapely.STRtree(leaves)
    query, leaf = tree.query(polygons, predicate="intersects")
    whole_query, whole_leaf = tree.query(polygons, predicate="covers")
    area, shape = shapely.area(leaves), (len(polygons), len(leaves))
    whole = np.isin(query * np.int64(len(leaves)) + leaf, whole_query * np.int64(len(leaves)) + whole_leaf)
    common = area[leaf].copy()
    common[~whole] = common_areas(polygons, query[~whole], leaves[leaf[~whole]])
    share = np.minimum(common / area[leaf], 1.0)
    share[share >= WHOLE] = 1.0
    covered = np.bincount(query, common, len(polygons)) / shapely.area(polygons)
    cut = np.flatnonzero((share > 0) & (share < 1))
    if weights is not None and len(cut):
        share[cut] = _weighted_shares(regions, (polygons, query[cut], leaf[cut]), weights, share[cut])
    matrix = scipy.sparse.csr_array((share, (query, leaf)), shape=shape)
    matrix.eliminate_zeros()
    return matrix, np.minimum(covered, 1.0)


def _weighted_shares(regions: Regions, cut: tuple[Shapes, Integers, Integers], weights: geopandas.GeoDataFrame, by_area: Floats) -> Floats:
    """Return (c,) shares of the weight of leaves that lie in polygons, for c pairs of polygon and leaf that cut each other."""
    polygons, query, leaf = cut
    leaves, (shapes, weight) = leaf_polygons(regions), _check_weights(weights, regions.crs)
    piece_leaf, piece = shapely.STRtree(shapes).query(leaves, predicate="intersects")
    parts, mass = shapes[piece], weight[piece]
    if are_areas(weights.geometry):
        parts = shapely.intersection(parts, leaves[piece_leaf])
        mass = mass * shapely.area(parts) / shapely.area(shapes[piece])
    total = np.bincount(piece_leaf, mass, len(leaves))
    pair, chosen = count_up(*(np.searchsorted(piece_leaf, leaf, side=side) for side in ("left", "right")))
    inside = np.bincount(pair, mass[chosen] * _parts_inside(parts[chosen], polygons[query[pair]]), len(leaf))
    known = total[leaf] > 0
    return np.where(known, np.minimum(inside / np.where(known, total[leaf], 1.0), 1.0), by_area)


def _parts_inside(parts: Shapes, polygons: Shapes) -> Floats:
    """Return (n,) the share of each part that lies in its polygon: 0 or 1 for a point."""
    area = shapely.area(parts)
    common = shapely.area(shapely.intersection(parts, polygons))
    return np.where(area > 0, common / np.where(area > 0, area, 1.0), shapely.intersects(parts, polygons))


def _check_weights(weights: object, crs: CRS | None) -> tuple[Shapes, Floats]:
    """Return the shapes of public weights in the regions' CRS, and the (n,) weights."""
    if not isinstance(weights, geopandas.GeoDataFrame) or weights.crs is None or crs is None:
        raise DomainError("Weights must be a GeoDataFrame of points or polygons with a CRS, and with a column 'weight'.")
    geometry = weights.geometry.to_crs(crs)
    points = bool((geometry.geom_type == "Point").all())
    if geometry.isna().any() or not geometry.is_valid.all() or not (points or are_areas(geometry)):
        raise DomainError("Weights must be valid points only, or valid polygons only.")
    shapes = np.asarray(geometry.to_numpy(), object)
    if WEIGHT not in weights.columns:
        return shapes, np.ones(len(shapes)) if points else shapely.area(shapes)
    weight = np.asarray(weights[WEIGHT], np.float64)
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DomainError("Weights must be finite numbers of at least 0.")
    return shapes, weight


def areas_km2(regions: Regions) -> Floats:
    """Compute the (leaves,) areas of the leaves' polygons in square kilometres, on the WGS 84 ellipsoid.

    Raises:
        DomainError: the leaves have no polygons.
    """
    shapes = geopandas.GeoSeries(leaf_polygons(regions), crs=regions.crs).to_crs("EPSG:4326")
    geod = Geod(ellps="WGS84")
    return np.array([abs(geod.geometry_area_perimeter(shape)[0]) for shape in shapely.normalize(shapes.to_numpy())]) / 1e6
