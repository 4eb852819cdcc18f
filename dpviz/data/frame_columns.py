"""Columns of a DataFrame by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from dpviz.data.columns import find_count, list_columns
from dpviz.data.roles import EachRow, PublicHeader, each_row_of, says_none, unread_columns
from dpviz.errors import InputError
from dpviz.space.region_tables import cells_of

_MAY_BE_NAMES = ("count", "person")


def column_of(table: pd.DataFrame, name: str, counted: str = "trips") -> pd.Series:
    """Return a column of a table; raise `InputError` if the table is no DataFrame, or has no such column, or several."""
    return cells_of(table, name, counted, InputError, list_columns)


def named_columns(frame: pd.DataFrame, options: Mapping[str, Any]) -> dict[str, pd.Series | None]:
    """Return the columns that options name by a text: of `count` and `person`, which may be given as arrays, too. The count "none" is None.

    Raises:
        InputError: there is no such column, or several.

    >>> list(named_columns(pd.DataFrame({"who": ["a", "b"]}), {"person": "who", "distinct": True})["person"])
    ['a', 'b']
    """
    named = {name: options[name] for name in _MAY_BE_NAMES if isinstance(options.get(name), str)}
    columns = {name: column_of(frame, column, "records") for name, column in named.items() if name != "count" or not says_none(column)}
    return {name: columns.get(name) for name in named}


def count_of(table: pd.DataFrame, count: str | None, counted: str = "trips") -> pd.Series | None:
    """Return a table's column of counts: the named one, or if None that called "count"; None for "none", or if there is no such column.

    Raises:
        InputError: there is no such column, or several; or a column is called "none", too.
    """
    name = "count" if count is None and "count" in table.columns else find_count(list(map(str, table.columns)), count)
    return None if name is None else column_of(table, name, counted)


def each_row_of_frame(noun: str, frame: pd.DataFrame, count: object, used: Iterable[object]) -> EachRow | None:
    """Return what is to be said of columns of numbers that are not read; None if there are none, or if a count is given, be it "none".

    Args:
        noun: "record" or "trip".
        frame: the table.
        count: a column's name, an array or "none"; None if nothing is said.
        used: the names of the columns that are read; other values are passed over.
    """
    if count is not None:
        return None
    numbers = [str(name) for name, kind in frame.dtypes.items() if is_numeric_dtype(kind) and not is_bool_dtype(kind)]
    header = PublicHeader(names=tuple(numbers), types=dict.fromkeys(numbers, pa.float64()))
    return each_row_of(noun, unread_columns(header, {name for name in used if isinstance(name, str)}))
