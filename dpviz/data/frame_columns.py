"""Columns of a DataFrame by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpviz.data.columns import list_columns
from dpviz.errors import InputError

_MAY_BE_NAMES = ("count", "person")


def column_of(table: pd.DataFrame, name: str, counted: str = "trips") -> pd.Series:
    """Return a column of a table; raise `InputError` if the table is no DataFrame, or has no such column, or several."""
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"The table of {counted} must be a DataFrame.")
    positions = [index for index, column in enumerate(table.columns) if column == name]
    if not positions:
        raise InputError(f"The table of {counted} has no column {name!r}.{list_columns(list(map(str, table.columns)), name)}")
    if len(positions) > 1:
        raise InputError(f"The table of {counted} has several columns {name!r}; rename all but one.")
    return table.iloc[:, positions[0]]


def named_columns(frame: pd.DataFrame, options: Mapping[str, Any]) -> dict[str, pd.Series]:
    """Return the columns that options name by a text: of `count` and `person`, which may be given as arrays, too.

    Raises:
        InputError: there is no such column, or several.

    >>> named_columns(pd.DataFrame({"who": ["a", "b"]}), {"person": "who", "distinct": True})["person"].tolist()
    ['a', 'b']
    """
    return {name: column_of(frame, options[name], "records") for name in _MAY_BE_NAMES if isinstance(options.get(name), str)}
