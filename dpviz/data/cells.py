"""Check counts and coordinates, and find the cell of each row. Every engine follows these rules.

A cell is a number: row * side + column of a lattice, or origin * leaves + destination for a pair of leaf regions. OUTSIDE marks a good row
that is outside the domain or the regions, or in a masked cell of the domain; BAD marks a row with an entry that is missing, not finite or
unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS

from dpviz.arrays import Floats, Integers, slices
from dpviz.data.library_errors import without_private_text
from dpviz.errors import InputError, check_choice
from dpviz.space.domain import Domain
from dpviz.space.leaf_lookup import BAD, OUTSIDE

__all__ = ["BAD", "NO_SLOT", "OUTSIDE", "cells_of", "pairs_of", "xy_of"]

REMEDY = "Correct the data, or pass bad_rows='drop' to leave such rows out."  # ends every error about a bad row
MOST_RECORDS = 2**53
MOST_PER_CELL = 10**9
_MOST_OCCUPIED = 2**33
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")  # what pandas calls columns of objects that are numbers


def array_of(values: ArrayLike) -> NDArray[Any] | None:
    """Return the values as an array, a masked array with its mask; None if they are ragged."""
    if isinstance(values, np.ma.MaskedArray):
        return values
    with suppress(Exception):  # the error of a foreign array may quote an entry
        return np.asarray(values)
    return None


def check_bad_rows(bad_rows: str) -> None:
    """Refuse a `bad_rows` that is neither "refuse" nor "drop"."""
    check_choice(bad_rows, ("refuse", "drop"), "bad_rows", InputError)


def check_whole(value: object, name: str, least: int) -> int:
    """Return a whole number of at least `least`; raise `InputError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number, at least {least}.")
    return int(value)


def coordinates(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return (n,) coordinates; NaN where they are missing or masked.

    Raises:
        InputError: the values are not numbers (texts, booleans, times and complex numbers are none), or the array is not one-dimensional.
    """
    array, numbers = array_of(values), None
    with suppress(TypeError, ValueError, OverflowError):
        numbers = None if array is None else _floats(array)
    if numbers is None:
        raise InputError(f"Column {name} must hold numbers.")  # raised outside the handler, because a context would quote the entry
    if numbers.ndim != 1:
        raise InputError(f"Column {name} must have one dimension.")
    return numbers


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
    """Return (n,) counts, cut to 2**53; -1 marks a row to drop.

    Raises:
        InputError: the values are not numbers, or there are not `length` of them; a count is bad or masked under "refuse".
    """
    array = array_of(values)
    if array is None or array.shape != (length,):
        raise InputError("The counts column must have one number per row.")
    if array.dtype.kind not in "iuf":
        raise InputError("The counts column must hold whole numbers.")
    masked, array = np.ma.getmask(array), np.ma.getdata(array)
    counts, valid = clip_counts(array)
    bad = ~valid | masked
    if bad_rows == "refuse" and bad.any():
        raise InputError(
            "The counts column must hold whole numbers, at least 0. Survey weights are refused:"
            " one row would move a count by its weight, more than the privacy guarantee covers."
        )
    return np.where(bad, -1, counts)


def clip_counts(values: NDArray[Any]) -> tuple[Integers, NDArray[np.bool_]]:
    """Return (n,) counts cut to 2**53, and (n,) whether each is valid: finite, whole and >= 0. The count of an invalid value is 0."""
    valid = values >= 0
    if values.dtype.kind == "f":
        valid &= np.isfinite(values) & (values == np.floor(values))
    widened = values.astype({"f": np.float64, "u": np.uint64}.get(values.dtype.kind, np.int64))
    return np.where(valid, np.minimum(widened, widened.dtype.type(MOST_RECORDS)), 0).astype(np.int64), valid


def most_per_cell(size: int) -> int:
    """Return the most records that a cell holds; a larger count is cut to this number.

    The number depends on the public domain or regions alone. Cut counts add up to at most 2**53 (no machine holds 2**33 occupied
    cells), so that every sum of cut counts is exact, and no row decides whether a file can be used.

    A cell's count is min(s, c), where s is the sum of its rows' counts, each of them >= 0, and c is this number. One more record raises
    s by 1 in one cell, the cell's count by 0 or 1, and leaves all other cells as they are. The m records of a person raise
    counts by at most m in all. Cutting rows and partial sums to 2**53 on the way changes nothing, because
    min(min(a, d) + b, c) = min(a + b, c) for a, b >= 0 and d >= c.

    Args:
        size: number of cells.
    """
    return min(MOST_PER_CELL, MOST_RECORDS // min(max(size, 1), _MOST_OCCUPIED))


def total_of(counts: Integers) -> int:
    """Add up (n,) counts from 0 to 2**53, and cut the sum to 2**53. Floats are exact up to there, and do not wrap around."""
    return int(min(counts.sum(dtype=np.float64), MOST_RECORDS))


def too_many(counts: Integers) -> bool:
    """Return whether (n,) counts >= 0 add up to more than 2**53. Floats are added up first: a sum of integers could wrap around."""
    return bool(counts.sum(dtype=np.float64) > MOST_RECORDS or counts.sum() > MOST_RECORDS)


def freeze(values: Any, dtype: type[np.signedinteger[Any]], name: str) -> NDArray[Any]:
    """Return (k,) whole numbers as a read-only array: a copy, unless the array is read-only and owns its memory already.

    Raises:
        InputError: the values are not a one-dimensional array of whole numbers, or do not fit the type.
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
_NO_ROWS = np.zeros(0, np.int64)


def cells_of(x: Floats, y: Floats, domain: Domain) -> Integers:
    """Return (n,) lattice cells of coordinates in the domain's CRS: OUTSIDE outside the domain or in masked cells, BAD where not finite."""
    cells, inside = _cells(x, y, domain)
    leave_masked_out(cells, domain)
    if not inside:
        unusable = np.flatnonzero(cells < 0)
        cells[unusable[~(np.isfinite(x[unusable]) & np.isfinite(y[unusable]))]] = BAD
    return cells


def leave_masked_out(cells: Integers, domain: Domain) -> None:
    """Replace the (n,) lattice cells in which no record can be by OUTSIDE, in place."""
    if domain.mask is not None:
        inside = np.flatnonzero(cells >= 0)
        row, column = np.divmod(cells[inside], domain.side)
        cells[inside[~domain.mask.holds(column, row, domain.order)]] = OUTSIDE


def xy_of(shapes: NDArray[np.object_]) -> tuple[Floats, Floats]:
    """Return (n,) x and (n,) y of points; NaN where a geometry is missing, empty or no point."""
    points = shapes.copy()
    points[shapely.is_empty(shapes)] = None
    return shapely.get_x(points), shapely.get_y(points)


def xy_of_frame(frame: Any, crs: str | CRS | None, target: str, bad_rows: object) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return (n,) x and (n,) y of a GeoDataFrame's points, reprojected and as they are; NaN where one is missing, empty or no point.

    Args:
        frame: a GeoDataFrame whose geometries are points.
        crs: the CRS to which points are reprojected; None for a plane without a map.
        target: what has this CRS, for errors.
        bad_rows: "refuse" or "drop".

    Raises:
        InputError: there is no geometry column, no CRS although one is needed, or a geometry that is not a point, under "drop" not one
            that is; or the points cannot be reprojected.
    """
    geometry, own_crs = without_private_text(
        "The frame must be a GeoDataFrame with a geometry column.", lambda: (frame.geometry, frame.crs)
    )
    if crs is not None:
        if own_crs is None:
            raise InputError("The GeoDataFrame has no CRS; set it with frame.set_crs(...), it is never guessed.")
        geometry = without_private_text(f"The geometries cannot be reprojected to the {target}'s CRS.", lambda: frame.geometry.to_crs(crs))
    kinds = set(geometry.geom_type.dropna().unique())
    if kinds - {"Point"} and (bad_rows != "drop" or "Point" not in kinds):
        raise InputError("The geometry column must hold points only.")
    xy = xy_of(np.asarray(geometry.to_numpy(), object))
    return xy, xy if geometry.crs == own_crs else xy_of(np.asarray(frame.geometry.to_numpy(), object))


def polygons_as_points(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return (n,) geometries in which each polygon or multipolygon is replaced by its centroid; None where it has none."""
    points = shapes.copy()
    are_polygons = np.isin(shapely.get_type_id(shapes), (shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON))
    points[are_polygons] = _convert_each(shapely.centroid, shapes[are_polygons])
    return points


def shapes_of_wkb(entries: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return (n,) geometries; None where WKB is missing or malformed, or is a curve, which shapely has not."""
    return _convert_each(lambda part: shapely.from_wkb(part, on_invalid="ignore"), entries)


def _convert_each(convert: Callable[[NDArray[np.object_]], Any], values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return (n,) converted values. If shapely fails, they are halved until only the one that it cannot convert is None."""
    with suppress(Exception):  # the value of one row may not decide on other rows
        return np.asarray(convert(values), object)
    if len(values) <= 1:
        return np.full(len(values), None, object)
    middle = len(values) // 2
    return np.concatenate([_convert_each(convert, values[:middle]), _convert_each(convert, values[middle:])])


NO_SLOT = -3
"""Marks a good row inside whose slot is none of those that are counted: it is left out, and never refused."""


def cells_by_slot(places: Integers, slots: Integers, width: int) -> Integers:
    """Return (n,) cells of places by slots, place * width + slot, as `pairs_of` does; NO_SLOT where only the slot is OUTSIDE."""
    cells, nowhere = places * np.int64(width), places < 0
    cells += slots
    nowhere |= slots < 0
    if nowhere.any():
        rows = np.flatnonzero(nowhere)
        place, slot = places[rows], slots[rows]
        cells[rows] = np.where((place >= 0) & (slot == OUTSIDE), NO_SLOT, np.minimum(place, slot))
    return cells


def cells_in_period(cells: Integers, slots: Integers) -> Integers:
    """Return (n,) cells of rows whose slot, a month of a period, is not negative; NO_SLOT where it is OUTSIDE, and the row is inside."""
    return cells_by_slot(cells, np.minimum(slots, 0), 1)


def pairs_of(origin: NDArray[np.signedinteger[Any]], destination: NDArray[np.signedinteger[Any]], width: int) -> Integers:
    """Return (n,) cells of pairs of leaves, origin * width + destination; BAD where either is BAD, else OUTSIDE where either is OUTSIDE."""
    pairs = origin.astype(np.int64) * width + destination
    worst = np.minimum(origin, destination)
    return np.where(worst < 0, worst, pairs)


def _cells(x: Floats, y: Floats, domain: Domain) -> tuple[Integers, bool]:
    """Return (n,) lattice cells, OUTSIDE for points outside the domain, and whether all points are inside.

    Chunks fit the processor's cache. Cells are computed as floats, which are exact here because cells are below 2**48.
    """
    cells, buffers, inside = np.empty(len(x), np.int64), np.empty((2, _CHUNK)), True
    west, south, east, north = domain.bounds
    for part in slices(len(x), _CHUNK):
        column, row = buffers[:, : part.stop - part.start]
        outside_x = _lattice_lines(x[part], west, east, domain.side, column)
        outside_y = _lattice_lines(y[part], south, north, domain.side, row)
        row *= domain.side
        row += column
        row[outside_x] = OUTSIDE
        row[outside_y] = OUTSIDE
        cells[part] = row
        inside = inside and not (outside_x.size or outside_y.size)
    return cells, inside


def _lattice_lines(values: Floats, low: float, high: float, side: int, out: Floats) -> Integers:
    """Write the lattice column or row of each value to `out`, the last one on the upper edge; return the indexes of values outside."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(values, low, out=out)
        np.multiply(out, side / (high - low), out=out)
        np.floor(out, out=out)
        np.minimum(out, side - 1, out=out)
    if values.min() >= low and values.max() < high:
        return _NO_ROWS
    suspect = np.flatnonzero(~((values >= low) & (values < high)))
    edge = values[suspect] == high
    out[suspect] = np.where(edge, side - 1, 0)
    return np.asarray(suspect[~edge])
