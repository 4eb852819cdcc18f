"""The area that a domain's mask covers, as polygons that lie over the partitions of a map."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import shapely

from dpviz.arrays import Floats
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from dpviz.view.basemap import corner_coordinates

Polygon = list[list[list[float]]]
FINEST_DRAWN = 9
"""The order of the finest mask that is drawn. Of a finer one, those blocks are drawn that are wholly masked."""
_DECIMALS = 5


@lru_cache(maxsize=8)
def find_masked_area(domain: Domain) -> list[Polygon]:
    """Find the area that a domain's mask covers.

    Args:
        domain: the public domain.

    Returns:
        Polygons on the map, each a list of rings of [longitude, latitude] in degrees, the outer one first; none without a mask. The list
        is shared between callers and must not be changed.

    >>> domain = Domain(bounds=(0, 0, 2, 2), crs="EPSG:4326", order=1, mask=CellMask.from_masked_cells([1], [0], order=1))
    >>> find_masked_area(domain)
    [[[[2.0, 0.0], [2.0, 1.0], [1.0, 1.0], [1.0, 0.0], [2.0, 0.0]]]]
    """
    runs = list_masked_runs(domain)
    if not len(runs):
        return []
    area = shapely.get_parts(shapely.union_all(shapely.box(*runs.T)))
    on_map = shapely.transform(area, lambda corners: corner_coordinates(domain, np.tile(corners, 2))[:, 0])
    return [[np.round(shapely.get_coordinates(ring), _DECIMALS).tolist() for ring in shapely.get_rings(polygon)] for polygon in on_map]


def list_masked_runs(domain: Domain) -> Floats:
    """List the rectangles that together are the area of `find_masked_area`, (k, 4) west, south, east, north as lattice lines."""
    nothing = np.empty((0, 4))
    if domain.mask is None:
        return nothing
    is_masked = ~domain.mask.blocks(min(domain.mask.order, FINEST_DRAWN))
    whole = np.array([[0, 0, domain.side, domain.side]])
    return CellMask.from_open(is_masked).rectangles_in(whole, domain.order)[1] if is_masked.any() else nothing
