"""Whether two releases are the same: the one place that compares their arrays, frames, receipts and tables, value by value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values say the same to a reader.

    Dataclasses of one type are compared field by field, but not in fields that say `compare=False`. Arrays and columns are the same if
    their shapes and values are; two missing numbers (NaN) are the same, and numbers are compared by value, not by type: 1 is 1.0.
    Shapes are the same if all their coordinates are. A list is the same as a tuple of the same values.

    >>> is_same({"count": np.array([1.0, np.nan])}, {"count": np.array([1, np.nan])})
    True
    >>> is_same((1, "a"), (1, "b"))
    False
    """
    if one is other:
        return True
    if is_dataclass(one) or is_dataclass(other):
        names = [field.name for field in fields(one) if field.compare] if type(one) is type(other) else None
        return names is not None and all(is_same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, pd.Series) and isinstance(other, pd.Series):
        parts = [(each.name, getattr(each, "crs", None), each.index.to_numpy(), np.asarray(each)) for each in (one, other)]
        return is_same(*parts)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _are_same_arrays(one, other)
    if isinstance(one, shapely.Geometry) and isinstance(other, shapely.Geometry):
        return bool(shapely.equals_identical(one, other))
    return bool(one == other or (one != one and other != other))


def _are_same_arrays(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if object in (one.dtype, other.dtype):
        return one.shape == other.shape and all(map(is_same, one.ravel().tolist(), other.ravel().tolist()))
    return np.array_equal(one, other, equal_nan=all(np.issubdtype(each.dtype, np.number) for each in (one, other)))
