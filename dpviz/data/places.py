"""Places of rows as numbers: lattice cells of coordinates, pairs of leaf regions. The arithmetic that every engine follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.space.domain import Domain
from dpviz.space.leaf_lookup import BAD, OUTSIDE

__all__ = ["BAD", "OUTSIDE", "cells_of", "pairs_of", "xy_of"]

_CHUNK = 1 << 16
_NOWHERE = np.zeros(0, np.int64)


def cells_of(x: Floats, y: Floats, domain: Domain) -> Integers:
    """(n,) lattice cells, row * side + column, of coordinates in the domain's CRS; OUTSIDE of it, or BAD where not finite."""
    cells, inside = _cells(x, y, domain)
    if not inside:
        odd = np.flatnonzero(cells < 0)
        cells[odd[~(np.isfinite(x[odd]) & np.isfinite(y[odd]))]] = BAD
    return cells


def xy_of(shapes: NDArray[np.object_]) -> tuple[Floats, Floats]:
    """(n,) x and (n,) y of points; NaN where a geometry is missing, empty or no point."""
    points = shapes.copy()
    points[shapely.is_empty(shapes)] = None
    return shapely.get_x(points), shapely.get_y(points)


def pairs_of(origin: NDArray[np.signedinteger[Any]], destination: NDArray[np.signedinteger[Any]], width: int) -> Integers:
    """(n,) pairs of leaf places; BAD where either is, else OUTSIDE where either is."""
    pairs = origin.astype(np.int64) * width + destination
    odd = np.minimum(origin, destination)
    return np.where(odd < 0, odd, pairs)


def _cells(x: Floats, y: Floats, domain: Domain) -> tuple[Integers, bool]:
    """(n,) lattice cell numbers, OUTSIDE where there is none; and whether all are inside.

    Works in chunks that stay in cache, on floats (exact: cells are below 2**48) until the last step.
    """
    cells, buffers, inside = np.empty(len(x), np.int64), np.empty((2, _CHUNK)), True
    west, south, east, north = domain.bounds
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        column, row = buffers[:, : min(_CHUNK, len(x) - start)]
        outside = _place(x[part], west, east, domain.side, column)
        beyond = _place(y[part], south, north, domain.side, row)
        row *= domain.side
        row += column
        row[outside] = OUTSIDE
        row[beyond] = OUTSIDE
        cells[part] = row
        inside = inside and not (outside.size or beyond.size)
    return cells, inside


def _place(values: Floats, low: float, high: float, side: int, out: Floats) -> Integers:
    """Write lattice places along one axis to `out`; give the indices of those outside. The upper edge is in the last place."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(values, low, out=out)
        np.multiply(out, side / (high - low), out=out)
        np.floor(out, out=out)
        np.minimum(out, side - 1, out=out)
    if values.min() >= low and values.max() < high:
        return _NOWHERE
    odd = np.flatnonzero(~((values >= low) & (values < high)))
    edge = values[odd] == high
    out[odd] = np.where(edge, side - 1, 0)
    return np.asarray(odd[~edge])
