"""Public numbers of regions, such as residents, by which counts are divided to rates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Texts
from dpviz.errors import DomainError

RATES_PER = 1000.0
"""Rates of tables, reports and maps are per so many of the denominator."""


def describe_rate(denominator: pd.Series[float]) -> str:
    """Write what follows a rate, such as "per 1,000 residents"."""
    return f"per {RATES_PER:,.0f} {denominator.name}"


def parse_numbers(cells: pd.Series) -> Floats:
    """Return (n,) numbers of a column; NaN where a cell is blank, true or false, or no number.

    >>> parse_numbers(pd.Series(["12", " 3.5", "", "many", True])).tolist()
    [12.0, 3.5, nan, nan, nan]
    """
    is_flag = np.array([isinstance(value, bool | np.bool_) for value in cells.to_numpy(object)], np.bool_)
    return np.where(is_flag, np.nan, np.asarray(pd.to_numeric(cells.where(~is_flag), errors="coerce"), np.float64))


def read_denominator(cells: pd.Series, ids: Texts) -> pd.Series[float]:
    """Read the public number of each leaf from a column.

    Args:
        cells: (n,) cells of the column, whose name is kept.
        ids: (n,) ids of the leaves.

    Returns:
        (n,) numbers of at least 0, by the ids.

    Raises:
        DomainError: a cell is blank, no finite number, or negative.
    """
    numbers, column = parse_numbers(cells), str(cells.name)
    blank = cells.isna().to_numpy(np.bool_) | (cells.astype(str).str.strip() == "").to_numpy(np.bool_)
    if blank.any():
        raise DomainError(f"The denominator {column!r} is blank for a region: fill it in, or write 0 for a region without a rate.")
    if not np.isfinite(numbers).all():
        raise DomainError(f"The denominator {column!r} is not numeric: every finest region needs a number in digits, such as 1250.")
    if (numbers < 0).any():
        raise DomainError(f"The denominator {column!r} has a negative number: it must be at least 0 for every region.")
    return pd.Series(numbers, index=pd.Index(ids, dtype=object), name=column)


def check_denominator(numbers: pd.Series[float], ids: Texts) -> pd.Series[float]:
    """Put public numbers into the order of leaves.

    Args:
        numbers: by the ids of the leaves; its name says what they are.
        ids: (leaves,) ids of the leaves.

    Returns:
        (leaves,) numbers in the order of the leaves.

    Raises:
        DomainError: the numbers have no name; a leaf has none or two; or one is negative or not finite.
    """
    if not isinstance(numbers, pd.Series) or not isinstance(numbers.name, str) or not numbers.name:
        raise DomainError("The denominator of regions must be a Series of numbers with a name, such as 'residents'.")
    if numbers.index.has_duplicates or len(numbers) != len(ids):
        raise DomainError("The denominator of regions needs one number per finest region, by its id.")
    return read_denominator(numbers.reindex(pd.Index(ids, dtype=object)), ids)
