"""The leaf region of each point: by the grid of regions that have one, else by the leaves' polygons.

The rules: a point belongs to one leaf or to none. A point in a gap, or outside all regions, belongs to none. A region includes its border;
a point on a border that several leaves share belongs to the one east of it, or north of it where the border runs east, as on a lattice
(`LeafLookup` has the whole rule). On a grid of H3, a point belongs to the cell that H3 says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import shapely

from dpviz.arrays import Floats, Integers
from dpviz.data.cells import OUTSIDE, cells_of
from dpviz.errors import DomainError, InputError
from dpviz.space.borders import borders_of
from dpviz.space.domain import Domain
from dpviz.space.leaf_lookup import LeafLookup
from dpviz.space.morton import morton
from dpviz.space.region_builders import H3Cells
from dpviz.space.regions import ENOUGH_OVERLAPS, Regions

if TYPE_CHECKING:
    from pyproj import CRS

_MOST_NAMED = 3
_POINTS_PER_CELL = 64  # from so many points per H3 cell on, making a look-up takes less time than it saves
_COARSEST_STRAIGHT = 4  # the coarsest resolution of H3 whose edges are nearly straight on a map, at most 26 km long
_ROUNDING_DEGREES = 1e-7  # about a centimetre
_KEPT = "h3 finder"  # name under which regions keep theirs, as their other derived values


def leaf_finder(regions: Regions, *, may_overlap: bool = False) -> Callable[[Floats, Floats], Integers]:
    """Make a function that finds the leaf of each point.

    Args:
        regions: whose leaves are cells of a grid, or have polygons that do not overlap.
        may_overlap: whether polygons may overlap nevertheless; a point in several leaves is then in the first of them.

    Returns:
        A function from (n,) x and (n,) y, in the regions' CRS, to (n,) indices of leaves: OUTSIDE for points in no leaf, BAD where a
        coordinate is not finite.

    Raises:
        InputError: not Regions.
        DomainError: the leaves have no polygons, or polygons overlap; or the package h3 is missing.
    """
    check_regions(regions)
    if isinstance(regions.grid, Domain):
        return partial(_find_squares, lattice=regions.grid)
    if isinstance(regions.grid, H3Cells):
        kept = vars(regions)  # its tables take longer to make than few points to find
        if _KEPT not in kept:
            kept[_KEPT] = H3Finder(regions=regions)
        return kept[_KEPT]  # type: ignore[no-any-return]
    if not may_overlap:
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
    overlaps = describe_overlaps(regions)
    if overlaps is not None:
        raise DomainError(overlaps)


def describe_overlaps(regions: Regions) -> str | None:
    """Write which leaves' polygons overlap, by their names; None if none do."""
    overlaps = regions.overlaps
    if not len(overlaps):
        return None
    names = regions.names_of(regions.depth)
    pairs = [f"{str(names[one])[:40]} and {str(names[other])[:40]}" for one, other in overlaps[:_MOST_NAMED].tolist()]
    others = "many" if len(overlaps) >= ENOUGH_OVERLAPS else f"{len(overlaps) - _MOST_NAMED:,}"
    more = f", and {others} more pairs" if len(overlaps) > _MOST_NAMED else ""
    return (
        f"Regions of level {regions.levels[-1]!r} overlap: {'; '.join(pairs)}{more}. Correct their polygons, so that a place is in one"
        " region at most."
    )


def _find_squares(x: Floats, y: Floats, lattice: Domain) -> Integers:
    """Find squares of a lattice, which are numbered in Z-order."""
    cells = cells_of(x, y, lattice)
    inside = cells >= 0
    cells[inside] = morton(cells[inside] & (lattice.side - 1), cells[inside] >> lattice.order)
    return cells


@dataclass(frozen=True, kw_only=True, eq=False)
class H3Finder:
    """Finds H3 cells: of many points by a look-up of polygons, and only of those near borders by the package h3.

    Its tables are made once, when they are first needed; pickled without them.

    Attributes:
        regions: whose leaves are H3 cells.
    """

    regions: Regions

    def __getstate__(self) -> dict[str, Any]:
        return {"regions": self.regions}

    def __call__(self, x: Floats, y: Floats) -> Integers:
        """Return (n,) indices of leaves, as `leaf_finder` says."""
        lookup = None if len(x) < _POINTS_PER_CELL * self.regions.size(self.regions.depth) else self._inner_parts
        if lookup is None:
            return self._exact(x, y)
        leaves = lookup.find(x, y)
        unknown = np.flatnonzero(leaves == OUTSIDE)
        leaves[unknown] = self._exact(x[unknown], y[unknown])
        return leaves

    @property
    def _grid(self) -> H3Cells:
        return self.regions.grid  # type: ignore[return-value]

    @cached_property
    def _exact(self) -> Callable[[Floats, Floats], Integers]:
        return self._grid.find(self.regions.ids_of(self.regions.depth))

    @cached_property
    def _inner_parts(self) -> LeafLookup | None:
        """A look-up of the inner parts of H3 cells, in which no point can belong to another cell; None if a cell has no such part.

        The edges of a cell are arcs of great circles, and those of its polygon are straight in degrees. An arc is farthest from its chord
        near the middle. So polygons are shrunk by twice the largest distance there, and a centimetre for rounding.
        """
        regions = self.regions
        if self._grid.resolution < _COARSEST_STRAIGHT:
            return None
        shapes = np.asarray(regions.outlines(regions.depth), object)
        ends = borders_of(shapes).ends
        middle = directions(*np.radians(ends[:2])) + directions(*np.radians(ends[2:]))
        on_arc = np.degrees([np.arctan2(middle[1], middle[0]), np.arctan2(middle[2], np.hypot(middle[0], middle[1]))])
        distance = float(np.hypot(*(on_arc - (ends[:2] + ends[2:]) / 2)).max())
        inner = shapely.buffer(shapes, -(2 * distance + _ROUNDING_DEGREES), quad_segs=1, join_style="mitre")
        if shapely.is_empty(inner).any():
            return None
        geometry = (*[None] * (regions.depth - 1), geopandas.GeoSeries(inner, crs=regions.crs))
        return LeafLookup.from_regions(replace(regions, geometry=geometry, grid=None))


def directions(longitude: Floats, latitude: Floats) -> Floats:
    """Return (3, n) unit vectors from the Earth's centre to places, given in radians."""
    return np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
