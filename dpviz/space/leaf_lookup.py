"""Which leaf region a point lies in: one look-up on a lattice, and an exact test only where a border is near."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS

from dpviz.arrays import Floats, Integers
from dpviz.errors import DomainError, InputError
from dpviz.space.regions import Regions, are_areas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Shapes = NDArray[np.object_]

FINEST_ORDER = 12
COARSEST_ORDER = 4
MARGIN = 2
PADDING = 1e-6
NO_LEAF = np.uint32(2**32 - 1)

_CELLS_AT_ONCE = 2**20
_BORDER_CELLS = 2**23
_BORDER_SHARE = 1 / 64
_ULPS_PER_CELL = 16


@dataclass(frozen=True, kw_only=True)
class LeafLattice:
    """``2**order`` x ``2**order`` cells around all polygons, with a margin of two cells that no border comes near to.

    Attributes:
        west: the polygons' lowest x; it lies on lattice line 2.
        south: the polygons' lowest y, on line 2, too.
        across: columns per unit of x.
        up: rows per unit of y.
        order: 4 to 12.
    """

    west: float
    south: float
    across: float
    up: float
    order: int

    @property
    def side(self) -> int:
        """Columns, and rows."""
        return 1 << self.order

    @property
    def size(self) -> int:
        """How many cells there are."""
        return 1 << 2 * self.order

    def exact(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """(n,) places between lattice lines. Rounding moves none by more than 4 ulp of `side`: about 2e-12 of a cell."""
        return (x - self.west) * self.across + MARGIN, (y - self.south) * self.up + MARGIN

    def cells(self, x: Floats, y: Floats) -> Integers:
        """(n,) ``row * side + column``; what lies beyond the lattice, or nowhere, is moved to its outermost cells."""
        with np.errstate(over="ignore", invalid="ignore"):
            columns, rows = self.exact(x, y)
        top = self.side - 1
        cells = np.fmax(np.fmin(rows, top, out=rows), 0, out=rows).astype(np.int64)
        cells <<= self.order
        cells += np.fmax(np.fmin(columns, top, out=columns), 0, out=columns).astype(np.int64)
        return cells

    def centres(self, cells: Integers) -> tuple[Floats, Floats]:
        """(n,) x and y of the middles of cells."""
        columns, rows = cells & (self.side - 1), cells >> self.order
        x, y = (columns + (0.5 - MARGIN)) / self.across + self.west, (rows + (0.5 - MARGIN)) / self.up + self.south
        return x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Borders:
    """Every straight piece of every ring, holes included.

    Attributes:
        ends: (4, s) x, y of one end, x, y of the other.
        leaf: (s,) place of the polygon, ascending.
    """

    ends: Floats
    leaf: Integers


def borders_of(leaves: Shapes) -> Borders:
    """The straight pieces of the borders of polygons, of one part or several."""
    parts, leaf = shapely.get_parts(leaves, return_index=True)
    rings, part = shapely.get_rings(parts, return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    first = np.flatnonzero(ring[1:] == ring[:-1])
    return Borders(ends=np.concatenate([corners[first].T, corners[first + 1].T]), leaf=leaf[part[ring[first]]].astype(np.int64))


def lattice_around(borders: Borders, order: int | None = None) -> LeafLattice:
    """The coarsest lattice of which borders cross few cells, within bounds on memory.

    Args:
        borders: those of the polygons.
        order: for tests and measurements; None chooses.

    Raises:
        DomainError: the polygons are so small, or so far away, that floating-point numbers cannot tell their points apart.
    """
    x, y = borders.ends[::2], borders.ends[1::2]
    west, south, width, height = float(x.min()), float(y.min()), float(np.ptp(x)), float(np.ptp(y))
    finest = min(width / math.ulp(float(np.abs(x).max())), height / math.ulp(float(np.abs(y).max()))) / _ULPS_PER_CELL
    if not (math.isfinite(width) and math.isfinite(height) and finest >= 2**COARSEST_ORDER):
        raise DomainError("The regions' polygons span too little, or too much, for floating-point coordinates; scale or move them.")
    length = float(np.abs(np.diff(x, axis=0)).sum() / width + np.abs(np.diff(y, axis=0)).sum() / height)
    side = min(length / _BORDER_SHARE, _BORDER_CELLS / length, finest)
    chosen = min(max(math.ceil(math.log2(side)), COARSEST_ORDER), FINEST_ORDER) if order is None else order
    inner = (1 << chosen) - 2 * MARGIN
    if not (math.isfinite(inner / width) and math.isfinite(inner / height)):
        raise DomainError("The regions' polygons span too little for floating-point coordinates; scale them.")
    return LeafLattice(west=west, south=south, across=inner / width, up=inner / height, order=chosen)


def border_pairs(borders: Borders, lattice: LeafLattice) -> Integers:
    """(k,) ``leaf << 2 order | cell``, ascending: the cells that each polygon's border may cross.

    Every point of a border, as `LeafLattice.cells` rounds it, falls into a cell of that list: the true border lies within 2e-12
    of a cell of the one that is computed, and whatever comes within `PADDING` of a cell counts as crossing it.
    """
    u, v = lattice.exact(borders.ends[::2], borders.ends[1::2])
    swapped = u[0] > u[1]
    u, v = np.where(swapped, u[::-1], u), np.where(swapped, v[::-1], v)
    stops = np.cumsum(u[1] - u[0] + np.abs(v[1] - v[0]) + 4)
    cuts = np.searchsorted(stops, np.arange(_CELLS_AT_ONCE, stops[-1], _CELLS_AT_ONCE))
    found = [
        _distinct(_crossed(own_u, own_v, leaf, lattice.order))
        for own_u, own_v, leaf in zip(np.split(u, cuts, axis=1), np.split(v, cuts, axis=1), np.split(borders.leaf, cuts), strict=True)
    ]
    return _distinct(np.concatenate(found)) if len(found) > 1 else found[0]


def _crossed(u: Floats, v: Floats, leaf: Integers, order: int) -> Integers:
    """Pairs of leaf and cell for pieces from (u[0], v[0]) to (u[1], v[1]), column by column; u[0] <= u[1]; not distinct."""
    first = np.floor(u[0] - PADDING)
    piece, step = _runs((np.floor(u[1] + PADDING) - first).astype(np.int64) + 1)
    column = first[piece] + step
    west, east, start, rise = u[0][piece], u[1][piece], v[0][piece], (v[1] - v[0])[piece]
    width = np.where(east > west, east - west, 1.0)
    one = start + rise * ((np.clip(column - PADDING, west, east) - west) / width)
    other = start + rise * (1 - (east - np.clip(column + (1 + PADDING), west, east)) / width)
    low = np.floor(np.minimum(one, other) - PADDING).astype(np.int64)
    high = np.floor(np.maximum(one, other) + PADDING).astype(np.int64)
    base = (leaf[piece] << (2 * order)) + (low << order) + column.astype(np.int64)
    index, step = _runs(high - low + 1)
    return np.asarray(base[index] + (step << order))


def _distinct(values: Integers) -> Integers:
    """The values, ascending, each once: many times as fast as `numpy.unique`, which hashes."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-1) > 0]


def _runs(lengths: Integers) -> tuple[Integers, Integers]:
    """For runs of these lengths, one after another: each entry's run, and its number in it from 0."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def filled(leaves: Shapes, pairs: Integers, lattice: LeafLattice) -> NDArray[np.uint32]:
    """(side * side,) the smallest place of the polygons that fill a cell wholly, their border outside it; NO_LEAF if none.

    Between two neighbouring border cells of a polygon in one row lie only cells inside it, or only cells outside it: the middle
    of the first one tells.

    Args:
        leaves: (l,) prepared polygons.
        pairs: those of `border_pairs`.
        lattice: the same lattice.
    """
    order = lattice.order
    before = np.flatnonzero((np.diff(pairs) > 1) & (pairs[1:] >> order == pairs[:-1] >> order))
    leaf, start = pairs[before] >> (2 * order), (pairs[before] + 1) & (lattice.size - 1)
    length = pairs[before + 1] - pairs[before] - 1
    inside = np.flatnonzero(shapely.intersects_xy(leaves[leaf], *lattice.centres(start)))
    inside = inside[np.argsort(start[inside])]
    return _painted(leaf[inside].astype(np.uint32), start[inside], length[inside], lattice.size)


def _painted(leaf: NDArray[np.uint32], start: Integers, length: Integers, size: int) -> NDArray[np.uint32]:
    """(size,) the smallest leaf of the runs over each cell: at one go for runs that begin beyond all before them, as most do."""
    reached = np.maximum.accumulate(start + length)
    free = start >= np.concatenate([[0], reached[:-1]])
    lines = np.stack([start[free], reached[free]], axis=1).ravel()
    values = np.stack([np.full(free.sum(), NO_LEAF), leaf[free]], axis=1).ravel()
    table = np.repeat(np.append(values, NO_LEAF), np.diff(lines, prepend=0, append=size))
    leaf, start, length = leaf[~free], start[~free], length[~free]
    for part in _portions(length):
        run, step = _runs(length[part])
        np.minimum.at(table, start[part][run] + step, leaf[part][run])
    return table


def _portions(lengths: Integers) -> Iterator[slice]:
    """Slices of runs, each with few enough entries for memory; a run has at most `side`."""
    stops = np.cumsum(lengths)
    cuts = np.searchsorted(stops, np.arange(_CELLS_AT_ONCE, lengths.sum(), _CELLS_AT_ONCE)).tolist()
    yield from map(slice, [0, *cuts], [*cuts, len(lengths)])


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
