"""Polygons on a lattice: which cells their borders may cross, and which cells they fill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import shapely

from dpviz.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
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
