"""The leaf region of each point: by the grid of regions that have one, else by the leaves' polygons.

The rules: a point belongs to one leaf or to none. A point in a gap, or outside all regions, belongs to none. A region includes its border;
a point on a border that several leaves share belongs to the first of them in the order of the regions. On a grid, a point belongs to
the cell that the grid says: of a lattice's squares, the one east or north of the border.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpviz.arrays import Floats, Integers
from dpviz.data.cells import cells_of
from dpviz.errors import DomainError, InputError
from dpviz.space.domain import Domain
from dpviz.space.leaf_lookup import LeafLookup
from dpviz.space.morton import morton
from dpviz.space.region_builders import H3Cells
from dpviz.space.regions import Regions

if TYPE_CHECKING:
    from pyproj import CRS

_MOST_NAMED = 3


def leaf_finder(regions: Regions) -> Callable[[Floats, Floats], Integers]:
    """Make a function that finds the leaf of each point.

    Args:
        regions: whose leaves are cells of a grid, or have polygons that do not overlap.

    Returns:
        A function from (n,) x and (n,) y, in the regions' CRS, to (n,) indices of leaves: OUTSIDE for points in no leaf, BAD where a
        coordinate is not finite.

    Raises:
        InputError: not Regions.
        DomainError: the leaves have no polygons, or polygons overlap; or the package h3 is missing.
    """
    check_regions(regions)
    if isinstance(regions.grid, Domain):
        return _square_finder(regions.grid)
    if isinstance(regions.grid, H3Cells):
        return regions.grid.find(regions.ids_of(regions.depth))
    refuse_overlaps(regions)
    return LeafLookup.from_regions(regions).find


def crs_of_leaves(regions: Regions) -> CRS | str | None:
    """Return the CRS in which points find their leaf; None on a plain plane, or without shapes."""
    return regions.grid.crs if isinstance(regions.grid, Domain) else regions.crs


def check_regions(regions: object) -> None:
    """Refuse anything but `Regions`."""
    if not isinstance(regions, Regions):
        raise InputError("regions must be Regions: see Regions.from_table, Regions.h3 and read_regions.")


def refuse_overlaps(regions: Regions) -> None:
    """Refuse leaves whose polygons overlap, by their names: a place in two regions would be counted in the first one only."""
    overlaps = regions.overlaps
    if not len(overlaps):
        return
    names = regions.names_of(regions.depth)
    pairs = [f"{str(names[one])[:40]} and {str(names[other])[:40]}" for one, other in overlaps[:_MOST_NAMED].tolist()]
    more = f", and {len(overlaps) - _MOST_NAMED:,} more pairs" if len(overlaps) > _MOST_NAMED else ""
    raise DomainError(
        f"Regions of level {regions.levels[-1]!r} overlap: {'; '.join(pairs)}{more}. Correct their polygons, so that a place is in one"
        " region at most."
    )


def _square_finder(lattice: Domain) -> Callable[[Floats, Floats], Integers]:
    """Make a function that finds squares of a lattice, which are numbered in Z-order."""

    def find(x: Floats, y: Floats) -> Integers:
        cells = cells_of(x, y, lattice)
        inside = cells >= 0
        cells[inside] = morton(cells[inside] & (lattice.side - 1), cells[inside] >> lattice.order)
        return cells

    return find
