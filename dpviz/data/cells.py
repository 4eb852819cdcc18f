"""Rows of callers as numbers: counts and coordinates that are checked, lattice cells and pairs of regions; the same for every engine."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from dpviz.space.leaf_lookup import BAD, OUTSIDE

__all__ = ["BAD", "OUTSIDE", "cells_of", "pairs_of", "xy_of"]

MOST_RECORDS = 2**53
MOST_PER_CELL = 10**9
_MOST_OCCUPIED = 2**33
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")


def array_of(values: ArrayLike) -> NDArray[Any] | None:
    """The values as an array, a masked one with its mask; None if they are ragged."""
    if isinstance(values, np.ma.MaskedArray):
        return values
    with suppress(Exception):  # whatever a foreign array raises may quote a cell
        return np.asarray(values)
    return None


def coordinates(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """(n,) coordinates; NaN where they are missing or masked.

    Raises:
        InputError: no numbers (texts, booleans, times, complex numbers), or not of one dimension.
    """
    array, found = array_of(values), None
    with suppress(TypeError, ValueError, OverflowError):
        found = None if array is None else _floats(array)
    if found is None:
        raise InputError(f"Column {name} must hold numbers.")  # outside a handler: a context would quote the cell
    if found.ndim != 1:
        raise InputError(f"Column {name} must have one dimension.")
    return found


def _floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    if array.dtype.kind == "O":
        if pd.api.types.infer_dtype(np.ma.getdata(array).ravel(), skipna=True) not in _NUMBERS:
            return None
        array = np.ma.masked_array(np.where(pd.isna(np.ma.getdata(array)), np.nan, np.ma.getdata(array)), np.ma.getmask(array))
    elif array.dtype.kind not in "iuf":
        return None
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(np.where(np.ma.getmaskarray(array), np.nan, np.ma.getdata(array)), np.float64)
    return np.asarray(array, np.float64)


def whole_counts(values: ArrayLike, length: int, bad_rows: str) -> Integers:
    """(n,) counts, cut to 2**53; -1 marks a row to drop.

    Raises:
        InputError: no numbers, another length, a bad or masked count under "refuse".
    """
    array = array_of(values)
    if array is None or array.shape != (length,):
        raise InputError("The counts column must have one number per row.")
    if array.dtype.kind not in "iuf":
        raise InputError("The counts column must hold whole numbers.")
    hidden, array = np.ma.getmask(array), np.ma.getdata(array)
    counts, whole = clip_counts(array)
    bad = ~whole | hidden
    if bad_rows == "refuse" and bad.any():
        raise InputError(
            "The counts column must hold whole numbers, at least 0. Survey weights are refused:"
            " one row would move a count by its weight, more than the privacy guarantee covers."
        )
    return np.where(bad, -1, counts)


def clip_counts(values: NDArray[Any]) -> tuple[Integers, NDArray[np.bool_]]:
    """(n,) numbers cut to 2**53, 0 where they are no finite whole number >= 0; and where they are one."""
    whole = values >= 0
    if values.dtype.kind == "f":
        whole &= np.isfinite(values) & (values == np.floor(values))
    wide = values.astype({"f": np.float64, "u": np.uint64}.get(values.dtype.kind, np.int64))
    return np.where(whole, np.minimum(wide, wide.dtype.type(MOST_RECORDS)), 0).astype(np.int64), whole


def most_per_cell(size: int) -> int:
    """The most records that a cell or pair holds; more are cut to it.

    It depends on the public frame alone. Cut counts add up to at most 2**53 in all (as no machine holds 2**33 occupied places), so that
    every sum of them is exact, and no row decides whether a file can be used.

    A place's count is min(s, c), s the sum of its rows' counts, each of them >= 0 and in any order, and c this number: one record more
    raises one place's s by 1 and its count by 0 or 1, and leaves all other places as they are. m records of a person raise counts by
    at most m in all. That rows are cut before (to 2**53) and partial sums on the way (to 2**53) changes nothing, because
    min(min(a, d) + b, c) = min(a + b, c) for a, b >= 0 and d >= c.

    Args:
        size: how many places the frame has.
    """
    return min(MOST_PER_CELL, MOST_RECORDS // min(max(size, 1), _MOST_OCCUPIED))


def total_of(counts: Integers) -> int:
    """The sum of (n,) counts from 0 to 2**53, cut to 2**53; in floats, which are exact below that and never wrap around."""
    return int(min(counts.sum(dtype=np.float64), MOST_RECORDS))


def too_many(counts: Integers) -> bool:
    """Whether (n,) counts >= 0 add up to more than 2**53; a sum of floats first, as one of integers could wrap around."""
    return bool(counts.sum(dtype=np.float64) > MOST_RECORDS or counts.sum() > MOST_RECORDS)


def freeze(values: Any, dtype: type[np.signedinteger[Any]], name: str) -> NDArray[Any]:
    """(k,) whole numbers that nobody can change: a copy, unless the array is its own and read-only already.

    Raises:
        InputError: not an array of whole numbers in one dimension, or beyond the type.
    """
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iu" or np.ma.is_masked(values):
        raise InputError(f"{name} must be an array of whole numbers in one dimension.")
    if values.dtype == dtype and not values.flags.writeable and values.base is None:
        return values
    if values.size and not np.iinfo(dtype).min <= values.min() <= values.max() <= np.iinfo(dtype).max:
        raise InputError(f"{name} has a number that is too large.")
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


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
