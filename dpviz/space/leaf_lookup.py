"""Which leaf region a place lies in: one look-up on a lattice, and an exact test only where a border is near."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS

from dpviz.errors import DomainError, InputError
from dpviz.space.leaf_lattice import LeafLattice, border_pairs, borders_of, filled, lattice_around
from dpviz.space.region_shapes import are_areas
from dpviz.space.regions import Regions

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTSIDE = -1
BAD = -2

_LISTS = -3
_LOOKED_UP_AT_ONCE = 2**16
_TESTED_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafLookup:
    """Places of leaf regions for coordinates, as `shapely.intersects_xy` answers. PUBLIC: made from regions alone.

    A border belongs to its region. Where several regions hold a point, on a common border or because they overlap, the one with
    the smallest place has it. `Regions` repairs polygons that cross themselves; those are what counts. The table takes 64 MB at
    most (16 million cells), and is pickled as its runs, a small part of that. Threads may share a look-up.

    Attributes:
        leaves: (l,) polygons, prepared.
        crs: that of the polygons, and of the coordinates that are asked for.
        lattice: the cells around all polygons.
        table: (side * side,) place of the leaf that fills the cell; OUTSIDE; or, below BAD, ``-3 - list``.
        first: (m + 1,) where each list begins in `candidates`, one list per cell that a border decides.
        candidates: (k,) leaves whose border may cross the cell, ascending.
        otherwise: (m,) whose the cell is where no candidate holds the point: the leaf that fills it, or OUTSIDE.
    """

    leaves: NDArray[np.object_]
    crs: CRS
    lattice: LeafLattice
    table: NDArray[np.int32]
    first: NDArray[np.int64]
    candidates: NDArray[np.int32]
    otherwise: NDArray[np.int32]

    def __post_init__(self) -> None:
        for held in (self.leaves, self.table, self.first, self.candidates, self.otherwise):
            held.flags.writeable = False
        _prepare(self.leaves)

    def __repr__(self) -> str:
        return f"LeafLookup({len(self.leaves):,} leaves, {self.lattice.side:,} x {self.lattice.side:,} cells)"

    def __getstate__(self) -> dict[str, Any]:
        begins = np.flatnonzero(np.diff(self.table, prepend=self.table[0] - 1))
        lengths = np.diff(begins, append=len(self.table)).astype(np.int32)
        return self.__dict__ | {"table": (self.table[begins], lengths)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"table": np.repeat(*state["table"])})
        self.__post_init__()

    @classmethod
    def from_regions(cls, regions: Regions, *, order: int | None = None) -> LeafLookup:
        """Lay a lattice over the polygons of the leaves.

        Args:
            regions: their last level has polygons.
            order: of the lattice, for tests and measurements; by default as fine as the borders need.

        Raises:
            DomainError: leaves without geometry or with points for one, polygons of too small or too large a span.
        """
        shapes = regions.geometry[-1]
        if shapes is None or not are_areas(shapes):
            raise DomainError(
                f"The level {regions.levels[-1]!r} has no polygons: coordinates can only be assigned to leaves with outlines."
                " Give the regions a geometry of polygons, or count trips by the leaves' ids."
            )
        leaves = shapes.to_numpy().copy()
        _prepare(leaves)
        borders = borders_of(leaves)
        lattice = lattice_around(borders, order)
        pairs = border_pairs(borders, lattice)
        lists = _listed(filled(leaves, pairs, lattice), pairs, lattice)
        return cls(leaves=leaves, crs=CRS(shapes.crs), lattice=lattice, **lists)

    def places(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.int64]:
        """Place of the leaf of each pair of coordinates; beyond its result, the memory it takes does not grow with n.

        Args:
            x: (n,) eastings or longitudes in the regions' CRS.
            y: (n,) northings or latitudes.

        Returns:
            (n,) places of leaves; OUTSIDE (-1) where no leaf is; BAD (-2) where a coordinate is NaN or infinite.

        Raises:
            InputError: columns that are no numbers, or of different lengths.
        """
        xs, ys = _numbers(x), _numbers(y)
        if xs.ndim != 1 or xs.shape != ys.shape:
            raise InputError("x and y must be two columns of the same length.")
        found = np.empty(len(xs), np.int64)
        for part in _slices(len(xs), _LOOKED_UP_AT_ONCE):
            found[part] = self._looked_up(xs[part].astype(np.float64, copy=False), ys[part].astype(np.float64, copy=False))
        for part in _slices(len(xs), _TESTED_AT_ONCE):
            near = np.flatnonzero(found[part] < BAD) + part.start
            found[near] = self._tested(_LISTS - found[near], xs[near].astype(np.float64), ys[near].astype(np.float64))
        return found

    def _looked_up(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int32]:
        """(n,) what the table says of points, BAD for those that are nowhere."""
        found = self.table.take(self.lattice.cells(x, y))
        found[~(np.isfinite(x) & np.isfinite(y))] = BAD
        return found

    def _tested(self, lists: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int32]:
        """(n,) places of points in cells that borders may cross: the first candidate that holds the point.

        Points are asked polygon by polygon, which takes less than half the time that a random order does.
        """
        found = self.otherwise[lists]
        left, at, stop = np.arange(len(lists)), self.first[lists], self.first[lists + 1]
        while len(left):
            leaf = self.candidates[at[left]]
            ranked = np.argsort(leaf)
            left, leaf = left[ranked], leaf[ranked]
            holds = shapely.intersects_xy(self.leaves[leaf], x[left], y[left])
            found[left[holds]] = leaf[holds]
            at[left] += 1
            left = left[~holds & (at[left] < stop[left])]
        return found


def _slices(number: int, most: int) -> Iterator[slice]:
    """Slices of that many entries, of at most `most` each."""
    return (slice(start, start + most) for start in range(0, number, most))


def _listed(filled_by: NDArray[np.uint32], pairs: NDArray[np.int64], lattice: LeafLattice) -> dict[str, Any]:
    """The table with its cells decided or numbered, and the lists of candidates that it numbers."""
    by_cell = np.sort((pairs & (lattice.size - 1)) << 32 | pairs >> (2 * lattice.order))
    cell, leaf = by_cell >> 32, by_cell.astype(np.uint32)
    open_to = leaf < filled_by[cell]
    cell, leaf = cell[open_to], leaf[open_to].astype(np.int32)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    table = filled_by.view(np.int32)
    otherwise = table[cell[starts]]
    table[cell[starts]] = _LISTS - np.arange(len(starts), dtype=np.int32)
    return {"table": table, "first": np.append(starts, len(cell)), "candidates": leaf, "otherwise": otherwise}


def _prepare(leaves: NDArray[np.object_]) -> None:
    """Index the polygons for questions about points: now, because GEOS does so at the first one, which threads may ask at once."""
    shapely.prepare(leaves)
    west, south, east, north = shapely.bounds(leaves).T
    shapely.intersects_xy(leaves, west / 2 + east / 2, south / 2 + north / 2)


def _numbers(values: ArrayLike) -> NDArray[Any]:
    """The values as an array of real numbers; masked ones are NaN."""
    with suppress(TypeError, ValueError, OverflowError):
        found = np.ma.filled(values.astype(np.float64), np.nan) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if found.dtype.kind in "fiu":
            return found
        if found.dtype.kind == "O":
            return found.astype(np.float64)
    raise InputError("Coordinates must be columns of numbers.")
