"""Masks from polygons: the cells of a domain that touch no polygon of the study area are masked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dpviz.errors import DomainError
from dpviz.space.coverage import shapes_in
from dpviz.space.domain import Domain
from dpviz.space.mask import FINEST_MASK, CellMask
from dpviz.space.outline import Outline
from dpviz.space.touched_cells import Report, find_touched

if TYPE_CHECKING:
    import geopandas


def mask_outside(
    domain: Domain, areas: geopandas.GeoDataFrame | geopandas.GeoSeries | Outline, *, report: Report = lambda _: None
) -> Domain:
    """Mask the cells of a domain that do not touch a study area: the public polygons in which people can be.

    A cell is masked only if it and the polygons have no point in common, not even on an edge. On lattices of order above 11, this holds
    for the blocks of a lattice of order 11. Cells that the domain masks already stay masked.

    The polygons must be public, and must hold every place where a record can be: records in masked cells are left out as those outside
    the domain are. The bundled outlines of land are too coarse for this along most coasts; see sample_data/README.md.

    Args:
        domain: the public domain.
        areas: polygons, which are reprojected to the domain's CRS. Inside a polygon that crosses itself is what an odd number of its
            borders divides from the outside.
        report: called with the part that is done, from 0 to 1; it may raise an error to stop.

    Returns:
        The domain with the mask.

    Raises:
        DomainError: polygons without CRS although the domain has one, or which cannot be reprojected; no cell touches them; or
            their edges cross too many cells.

    >>> import geopandas, shapely
    >>> domain = Domain(bounds=(0, 0, 4, 4), crs=None, order=2)
    >>> mask_outside(domain, geopandas.GeoSeries([shapely.box(0.5, 0.5, 1.5, 0.9)])).mask
    CellMask(2 of 16 cells open)
    """
    shapes = areas.shapes_around(domain) if isinstance(areas, Outline) else shapes_in(domain.crs, areas)
    is_open = find_touched(domain, shapes, min(domain.order, FINEST_MASK), report)
    if domain.mask is not None:
        is_open &= domain.mask.blocks(len(is_open).bit_length() - 1)
    if not is_open.any():
        raise DomainError("No cell of the domain touches the study area: are its polygons those of the domain's area, and the CRS right?")
    return replace(domain, mask=CellMask.from_open(is_open))
