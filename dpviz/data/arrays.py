"""Arrays of callers: numbers and counts that are read as such, or refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.errors import InputError

MOST_RECORDS = 2**53
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")

Integers = NDArray[np.int64]


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
    """(n,) counts; -1 marks a row to drop.

    Raises:
        InputError: no numbers, another length, a bad or masked count under "refuse", more than 2**53 records.
    """
    array = array_of(values)
    if array is None or array.shape != (length,):
        raise InputError("The counts column must have one number per row.")
    if array.dtype.kind not in "iuf":
        raise InputError("The counts column must hold whole numbers.")
    hidden, array = np.ma.getmask(array), np.ma.getdata(array)
    bad = ~((array >= 0) & (array <= MOST_RECORDS)) | hidden
    if array.dtype.kind == "f":
        bad |= array != np.floor(array)
    if bad.any():
        if bad_rows == "refuse":
            raise InputError(
                "The counts column must hold whole numbers, at least 0. Survey weights are refused:"
                " one row would move a count by its weight, more than the privacy guarantee covers."
            )
        array = np.where(bad, -1, array)
    counts = array.astype(np.int64)
    if too_many(np.maximum(counts, 0)):
        raise InputError("The counts column adds up to more than 2**53 records.")
    return counts


def too_many(counts: Integers) -> bool:
    """Whether (n,) counts >= 0 add up to more than 2**53; a sum of floats first, as one of integers could wrap around."""
    return bool(counts.sum(dtype=np.float64) > MOST_RECORDS or counts.sum() > MOST_RECORDS)


def frozen(values: Any, dtype: type[np.signedinteger[Any]], name: str) -> NDArray[Any]:
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
