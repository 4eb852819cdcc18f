"""Masks from polygons: the cells of a domain that touch no polygon of the study area are masked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import shapely

from dpviz.arrays import Integers, Mask
from dpviz.errors import DomainError
from dpviz.space.coverage import Shapes, shapes_of
from dpviz.space.domain import Domain
from dpviz.space.mask import FINEST_MASK, CellMask
from dpviz.space.outline import Outline

if TYPE_CHECKING:
    import geopandas


def mask_outside(domain: Domain, areas: geopandas.GeoDataFrame | geopandas.GeoSeries | Outline) -> Domain:
    """Mask the cells of a domain that do not touch a study area: the public polygons in which people can be.

    A cell is masked only if it and the polygons have no point in common, not even on an edge. On lattices of order above 11, this holds
    for the blocks of a lattice of order 11. Cells that the domain masks already stay masked.

    The polygons must be public, and must hold every place where a record can be: records in masked cells are left out as those outside
    the domain are. The bundled outlines of land are too coarse for this along most coasts; see sample_data/README.md.

    Args:
        domain: the public domain.
        areas: polygons, which are reprojected to the domain's CRS.

    Returns:
        The domain with the mask.

    Raises:
        DomainError: polygons without CRS although the domain has one, or which cannot be reprojected; or no cell touches them.

    >>> import geopandas
    >>> domain = Domain(bounds=(0, 0, 4, 4), crs=None, order=2)
    >>> mask_outside(domain, geopandas.GeoSeries([shapely.box(0.5, 0.5, 1.5, 0.9)])).mask
    CellMask(2 of 16 cells open)
    """
    shapes = areas.shapes_around(domain) if isinstance(areas, Outline) else shapes_of(domain, areas)
    is_open = find_touched(domain, shapes, min(domain.order, FINEST_MASK))
    if domain.mask is not None:
        is_open &= domain.mask.blocks(len(is_open).bit_length() - 1)
    if not is_open.any():
        raise DomainError("No cell of the domain touches the study area: are its polygons those of the domain's area, and the CRS right?")
    return replace(domain, mask=CellMask.from_open(is_open))


def find_touched(domain: Domain, shapes: Shapes, order: int) -> Mask:
    """Find the blocks of a domain that have a point in common with polygons.

    From the whole domain down, blocks that the polygons do not touch are out, and blocks that they cover are in; only the others are
    divided. So time grows with the length of the polygons' edges.

    Args:
        domain: the public domain.
        shapes: (n,) polygons in the domain's CRS.
        order: there are 2**order x 2**order equal blocks.

    Returns:
        (2**order, 2**order) whether each block touches them, [row, column], row 0 in the south.
    """
    area = shapely.union_all(shapely.make_valid(shapes))
    shapely.prepare(area)
    touched = np.zeros((1, 1), np.bool_)
    column: Integers = np.zeros(1, np.int64)
    row = column
    for depth in range(order + 1):
        boxes = domain.boxes(np.stack([column, row, column + 1, row + 1], axis=1) * (domain.side >> depth))
        touches = shapely.intersects(area, boxes)
        column, row = column[touches], row[touches]
        inside = shapely.covers(area, boxes[touches]) if depth < order else np.ones(len(column), np.bool_)
        touched[row[inside], column[inside]] = True
        if depth < order:
            touched = np.repeat(np.repeat(touched, 2, axis=0), 2, axis=1)
            column = (2 * column[~inside, None] + np.array([0, 1, 0, 1])).ravel()
            row = (2 * row[~inside, None] + np.array([0, 0, 1, 1])).ravel()
    return touched
