"""Find the leaf region that contains a point: by a look-up in a lattice of cells, and an exact test in cells that a border crosses."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS

from dpviz.arrays import Floats, Integers, number_runs, slices
from dpviz.errors import DomainError, InputError
from dpviz.space.borders import Borders, borders_of
from dpviz.space.regions import Regions, are_areas

if TYPE_CHECKING:
    from collections.abc import Callable

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
_BORDERS_COUNTED = 2**30  # by the tests of one cell in each gap, which count the borders between it and the outside
_ULPS_PER_CELL = 16
_HAIR = (2.0**-26, 2.0**-42)  # of a cell
_BESIDE = ((1, 1), (1, -1), (-1, 1), (-1, -1))  # east or west, and north or south, in the order in which they are tried


@dataclass(frozen=True, kw_only=True)
class LeafLattice:
    """``2**order`` x ``2**order`` cells around all polygons, with a margin of two cells on each side that no border touches.

    Attributes:
        west: the polygons' lowest x, which is lattice line 2.
        south: the polygons' lowest y, which is lattice line 2.
        across: columns per unit of x.
        up: rows per unit of y.
        order: the lattice's order, 4 to 12.
    """

    west: float
    south: float
    across: float
    up: float
    order: int

    @property
    def side(self) -> int:
        """The number of columns, and of rows."""
        return 1 << self.order

    @property
    def size(self) -> int:
        """The number of cells."""
        return 1 << 2 * self.order

    @property
    def hair(self) -> tuple[float, float]:
        """How far a point on a border is moved in x, and in y: far less than a cell, but more than rounding takes back; much less in y."""
        (across, up), ends = _HAIR, (self.west + self.side / self.across, self.south + self.side / self.up)
        ulps = [math.ulp(max(abs(start), abs(end))) for start, end in zip((self.west, self.south), ends, strict=True)]
        return max(across / self.across, 4 * ulps[0]), max(up / self.up, ulps[1])

    def exact(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Convert coordinates to lattice units.

        Rounding moves a point by at most 4 ulp of `side`, which is about 2e-12 of a cell.

        Args:
            x: (n,) x of points in the polygons' CRS.
            y: (n,) y of points.

        Returns:
            (n,) columns and (n,) rows, with fractions.
        """
        return (x - self.west) * self.across + MARGIN, (y - self.south) * self.up + MARGIN

    def cells(self, x: Floats, y: Floats) -> Integers:
        """Find the cell of each point.

        Args:
            x: (n,) x of points in the polygons' CRS; may be NaN or infinite.
            y: (n,) y of points, likewise.

        Returns:
            (n,) cells, ``row * side + column``. Points outside the lattice, or with NaN or infinity, get one of its outermost cells.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            columns, rows = self.exact(x, y)
        top = self.side - 1
        cells = np.fmax(np.fmin(rows, top, out=rows), 0, out=rows).astype(np.int64)
        cells <<= self.order
        cells += np.fmax(np.fmin(columns, top, out=columns), 0, out=columns).astype(np.int64)
        return cells

    def centres(self, cells: Integers) -> tuple[Floats, Floats]:
        """Compute (n,) x and (n,) y of the centres of (n,) cells."""
        columns, rows = cells & (self.side - 1), cells >> self.order
        x, y = (columns + (0.5 - MARGIN)) / self.across + self.west, (rows + (0.5 - MARGIN)) / self.up + self.south
        return x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)


def lattice_around(borders: Borders, order: int | None = None) -> LeafLattice:
    """Choose a lattice around polygons: the coarsest one in which borders cross few cells, within limits on memory.

    Args:
        borders: the borders of the polygons.
        order: the lattice's order, for tests and measurements; None chooses it.

    Raises:
        DomainError: the polygons are too small, or too far from the origin, for the precision of floating-point coordinates.
    """
    x, y = borders.ends[::2], borders.ends[1::2]
    west, south, width, height = float(x.min()), float(y.min()), float(np.ptp(x)), float(np.ptp(y))
    finest = min(width / math.ulp(float(np.abs(x).max())), height / math.ulp(float(np.abs(y).max()))) / _ULPS_PER_CELL
    if not (math.isfinite(width) and math.isfinite(height) and finest >= 2**COARSEST_ORDER):
        raise DomainError("The regions' polygons span too little, or too much, for floating-point coordinates; scale or move them.")
    length = float(np.abs(np.diff(x, axis=0)).sum() / width + np.abs(np.diff(y, axis=0)).sum() / height)
    rises = np.bincount(borders.leaf, np.abs(np.diff(y, axis=0))[0]) / height  # how often a line from west to east crosses each border
    tests = float((rises * (np.bincount(borders.leaf, np.abs(np.diff(x, axis=0))[0]) / width + rises)).sum())
    side = min(length / _BORDER_SHARE, _BORDER_CELLS / length, _BORDERS_COUNTED / tests, finest)
    chosen = min(max(math.ceil(math.log2(side)), COARSEST_ORDER), FINEST_ORDER) if order is None else order
    inner = (1 << chosen) - 2 * MARGIN
    if not (math.isfinite(inner / width) and math.isfinite(inner / height)):
        raise DomainError("The regions' polygons span too little for floating-point coordinates; scale them.")
    return LeafLattice(west=west, south=south, across=inner / width, up=inner / height, order=chosen)


def border_pairs(borders: Borders, lattice: LeafLattice) -> Integers:
    """List the cells that each polygon's border may cross.

    The list is complete: for every point of a border, the cell that `LeafLattice.cells` computes is in the list. The computed border
    differs from the true one by at most 2e-12 of a cell, and every cell within `PADDING` of the computed border is listed.

    Args:
        borders: the borders of the polygons.
        lattice: the lattice around the polygons.

    Returns:
        (k,) pairs of leaf and cell as ``leaf << 2 order | cell``, ascending.
    """
    u, v = lattice.exact(borders.ends[::2], borders.ends[1::2])
    swapped = u[0] > u[1]
    u, v = np.where(swapped, u[::-1], u), np.where(swapped, v[::-1], v)
    stops = np.cumsum(u[1] - u[0] + np.abs(v[1] - v[0]) + 4)
    cuts = np.searchsorted(stops, np.arange(_CELLS_AT_ONCE, stops[-1], _CELLS_AT_ONCE))
    pairs = [
        _distinct(_crossed_cells(part_u, part_v, leaf, lattice.order))
        for part_u, part_v, leaf in zip(np.split(u, cuts, axis=1), np.split(v, cuts, axis=1), np.split(borders.leaf, cuts), strict=True)
    ]
    return _distinct(np.concatenate(pairs)) if len(pairs) > 1 else pairs[0]


def _crossed_cells(u: Floats, v: Floats, leaf: Integers, order: int) -> Integers:
    """List pairs of leaf and cell, with repetitions, for segments from (u[0], v[0]) to (u[1], v[1]), u[0] <= u[1], in lattice units."""
    first = np.floor(u[0] - PADDING)
    segment, step = number_runs((np.floor(u[1] + PADDING) - first).astype(np.int64) + 1)
    column = first[segment] + step
    west, east, start, rise = u[0][segment], u[1][segment], v[0][segment], (v[1] - v[0])[segment]
    width = np.where(east > west, east - west, 1.0)
    v_west = start + rise * ((np.clip(column - PADDING, west, east) - west) / width)
    v_east = start + rise * (1 - (east - np.clip(column + (1 + PADDING), west, east)) / width)
    low = np.floor(np.minimum(v_west, v_east) - PADDING).astype(np.int64)
    high = np.floor(np.maximum(v_west, v_east) + PADDING).astype(np.int64)
    base = (leaf[segment] << (2 * order)) + (low << order) + column.astype(np.int64)
    index, step = number_runs(high - low + 1)
    return np.asarray(base[index] + (step << order))


def _distinct(values: Integers) -> Integers:
    """Sort values and remove repetitions. This is much faster than `numpy.unique`, which hashes."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-1) > 0]


def fill_cells(leaves: Shapes, pairs: Integers, lattice: LeafLattice) -> NDArray[np.uint32]:
    """Find the polygon that fills each cell.

    In a row, the cells between two consecutive border cells of a polygon are all inside the polygon or all outside. So it is enough to
    test the centre of the first of these cells.

    Args:
        leaves: (l,) prepared polygons.
        pairs: the result of `border_pairs`.
        lattice: the same lattice.

    Returns:
        (side * side,) the smallest index of the polygons that contain the whole cell and whose border does not cross it; NO_LEAF if
        there is none.
    """
    order = lattice.order
    before_gap = np.flatnonzero((np.diff(pairs) > 1) & (pairs[1:] >> order == pairs[:-1] >> order))
    leaf, start = pairs[before_gap] >> (2 * order), (pairs[before_gap] + 1) & (lattice.size - 1)
    length = pairs[before_gap + 1] - pairs[before_gap] - 1
    inside = np.flatnonzero(shapely.intersects_xy(leaves[leaf], *lattice.centres(start)))
    inside = inside[np.argsort(start[inside])]
    return _fill_runs(leaf[inside].astype(np.uint32), start[inside], length[inside], lattice.size)


def _fill_runs(leaf: NDArray[np.uint32], start: Integers, length: Integers, size: int) -> NDArray[np.uint32]:
    """Find, for each of `size` cells, the smallest leaf among the runs that cover it; NO_LEAF if none does.

    Most runs begin after all earlier runs have ended, and are filled in one step. The other runs are added in batches.
    """
    reached = np.maximum.accumulate(start + length)
    is_free = start >= np.concatenate([[0], reached[:-1]])
    lines = np.stack([start[is_free], reached[is_free]], axis=1).ravel()
    values = np.stack([np.full(is_free.sum(), NO_LEAF), leaf[is_free]], axis=1).ravel()
    table = np.repeat(np.append(values, NO_LEAF), np.diff(lines, prepend=0, append=size))
    leaf, start, length = leaf[~is_free], start[~is_free], length[~is_free]
    cuts = np.searchsorted(np.cumsum(length), np.arange(_CELLS_AT_ONCE, length.sum(), _CELLS_AT_ONCE)).tolist()
    for part in map(slice, [0, *cuts], [*cuts, len(length)]):  # memory stays bounded
        run, step = number_runs(length[part])
        np.minimum.at(table, start[part][run] + step, leaf[part][run])
    return table


OUTSIDE = -1
BAD = -2

_LISTS = -3
_LOOKED_UP_AT_ONCE = 2**16
_TESTED_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafLookup:
    """A table that finds the leaf region of coordinates. PUBLIC: made from regions.

    A point inside a region belongs to it; if regions overlap, to the one with the smallest index. A point on borders alone belongs, as on
    a lattice, to the region east of it, and where the border runs east, north of it: to the one in which it is once it is moved by
    `LeafLattice.hair`. If no region is there, the point is on an outer edge: then to the one south-east of it, north-west or south-west,
    and if none is there either, to the one with the smallest index whose border it is on. So each point is in exactly one region: one
    that it touches or that is within a hair of it. Corners of a grid of squares go where a lattice has them.

    Polygons that cross themselves are used as `Regions` has repaired them. The table takes at most 64 MB (16 million cells); pickling
    stores the runs of equal entries instead, which are much smaller. Threads may share a look-up.

    Attributes:
        leaves: (l,) polygons, prepared.
        crs: the CRS of the polygons, and of the points.
        lattice: the cells around all polygons.
        table: (side * side,) index of the leaf that fills the cell; OUTSIDE; or, for a cell that a border may cross, -3 minus the number
            of its list of candidates.
        first: (m + 1,) index in `candidates` at which each of the m lists begins.
        candidates: (k,) leaves whose border may cross the cell, ascending in each list.
        otherwise: (m,) result for points of a list's cell that no candidate contains: the leaf that fills the cell, or OUTSIDE.
    """

    leaves: NDArray[np.object_]
    crs: CRS
    lattice: LeafLattice
    table: NDArray[np.int32]
    first: NDArray[np.int64]
    candidates: NDArray[np.int32]
    otherwise: NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.leaves, self.table, self.first, self.candidates, self.otherwise):
            array.flags.writeable = False
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
        """Make the look-up of the leaves of regions.

        Args:
            regions: regions whose last level has polygons.
            order: the lattice's order, for tests and measurements; None chooses it by the borders.

        Raises:
            DomainError: the leaves have no geometry, or points; or the polygons span too little or too much for floating-point numbers.
        """
        shapes = regions.geometry[-1]
        if shapes is None or not are_areas(shapes):
            raise DomainError(
                f"The level {regions.levels[-1]!r} has no polygons: coordinates can only be assigned to leaves with polygons."
                " Give the regions a geometry of polygons, or count by the leaves' ids."
            )
        leaves = shapes.to_numpy().copy()
        _prepare(leaves)
        borders = borders_of(leaves)
        lattice = lattice_around(borders, order)
        pairs = border_pairs(borders, lattice)
        lists = _make_lists(fill_cells(leaves, pairs, lattice), pairs, lattice)
        return cls(leaves=leaves, crs=CRS(shapes.crs), lattice=lattice, **lists)

    def find(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.int64]:
        """Find the leaf that contains each point. Apart from the result, the memory used does not grow with n.

        Args:
            x: (n,) eastings or longitudes in the regions' CRS.
            y: (n,) northings or latitudes.

        Returns:
            (n,) indices of leaves; OUTSIDE (-1) for points in no leaf; BAD (-2) if a coordinate is NaN or infinite.

        Raises:
            InputError: the coordinates are not numbers, or x and y have different lengths.
        """
        xs, ys = _as_numbers(x), _as_numbers(y)
        if xs.ndim != 1 or xs.shape != ys.shape:
            raise InputError("x and y must be two columns of the same length.")
        leaves = np.empty(len(xs), np.int64)
        for part in slices(len(xs), _LOOKED_UP_AT_ONCE):
            leaves[part] = self._look_up(xs[part].astype(np.float64, copy=False), ys[part].astype(np.float64, copy=False))
        for part in slices(len(xs), _TESTED_AT_ONCE):
            at_borders = np.flatnonzero(leaves[part] < BAD) + part.start
            leaves[at_borders] = self._test_candidates(
                _LISTS - leaves[at_borders], xs[at_borders].astype(np.float64), ys[at_borders].astype(np.float64)
            )
        return leaves

    def _look_up(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the (n,) entries of the table for points; BAD if a coordinate is NaN or infinite."""
        entries = self.table.take(self.lattice.cells(x, y))
        entries[~(np.isfinite(x) & np.isfinite(y))] = BAD
        return entries

    def _test_candidates(self, lists: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int32]:
        """Find the (n,) leaves of points in cells that a border may cross."""
        leaves = self._first_that(shapely.contains_xy, lists, x, y, self.otherwise[lists])
        outside = np.flatnonzero(leaves == OUTSIDE)
        touched = self._first_that(shapely.intersects_xy, lists[outside], x[outside], y[outside], leaves[outside])
        on_border = outside[touched != OUTSIDE]
        leaves[on_border] = self._beside(x[on_border], y[on_border], touched[touched != OUTSIDE])
        return leaves

    def _beside(self, x: NDArray[np.float64], y: NDArray[np.float64], touched: NDArray[np.int32]) -> NDArray[np.int32]:
        """Find the (n,) leaves of points on borders: those that contain the points moved by a hair, else those that they touch."""
        leaves, (across, up) = np.full(len(x), OUTSIDE, np.int32), self.lattice.hair
        for east, north in _BESIDE:
            left = np.flatnonzero(leaves == OUTSIDE)
            moved_x, moved_y = x[left] + east * across, y[left] + north * up
            found = self._look_up(moved_x, moved_y)
            tested = np.flatnonzero(found < BAD)
            lists = (_LISTS - found[tested]).astype(np.int64)
            found[tested] = self._first_that(shapely.contains_xy, lists, moved_x[tested], moved_y[tested], self.otherwise[lists])
            leaves[left] = found
        return np.where(leaves == OUTSIDE, touched, leaves)

    def _first_that(
        self,
        holds: Callable[..., NDArray[np.bool_]],
        lists: NDArray[np.int64],
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        otherwise: NDArray[np.int32],
    ) -> NDArray[np.int32]:
        """Find the first candidate of (n,) points that contains or touches the point; `otherwise` if none does.

        Points are sorted by polygon before they are tested, which takes less than half the time of a random order.
        """
        leaves = otherwise.copy()
        untested, candidate, stop = np.arange(len(lists)), self.first[lists], self.first[lists + 1]
        while len(untested):
            leaf = self.candidates[candidate[untested]]
            ranked = np.argsort(leaf)
            untested, leaf = untested[ranked], leaf[ranked]
            found = holds(self.leaves[leaf], x[untested], y[untested])
            leaves[untested[found]] = leaf[found]
            candidate[untested] += 1
            untested = untested[~found & (candidate[untested] < stop[untested])]
        return leaves


def _make_lists(filled_by: NDArray[np.uint32], pairs: NDArray[np.int64], lattice: LeafLattice) -> dict[str, Any]:
    """Make the fields `table`, `first`, `candidates` and `otherwise` of a `LeafLookup`."""
    by_cell = np.sort((pairs & (lattice.size - 1)) << 32 | pairs >> (2 * lattice.order))
    cell, leaf = by_cell >> 32, by_cell.astype(np.uint32)
    may_cross = leaf < filled_by[cell]
    cell, leaf = cell[may_cross], leaf[may_cross].astype(np.int32)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    table = filled_by.view(np.int32)
    otherwise = table[cell[starts]]
    table[cell[starts]] = _LISTS - np.arange(len(starts), dtype=np.int32)
    return {"table": table, "first": np.append(starts, len(cell)), "candidates": leaf, "otherwise": otherwise}


def _prepare(leaves: NDArray[np.object_]) -> None:
    """Build the polygons' spatial indexes. Otherwise GEOS would build them at the first test of a point, which is not safe in threads."""
    shapely.prepare(leaves)
    west, south, east, north = shapely.bounds(leaves).T
    shapely.intersects_xy(leaves, west / 2 + east / 2, south / 2 + north / 2)


def _as_numbers(values: ArrayLike) -> NDArray[Any]:
    """Convert values to an array of real numbers; masked values become NaN."""
    with suppress(TypeError, ValueError, OverflowError):
        numbers = np.ma.filled(values.astype(np.float64), np.nan) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if numbers.dtype.kind in "fiu":
            return numbers
        if numbers.dtype.kind == "O":
            return numbers.astype(np.float64)
    raise InputError("Coordinates must be columns of numbers.")
