"""Tables of several runs as one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


def join_parts(parts: Mapping[Any, pd.DataFrame], column: str) -> pd.DataFrame:
    """Put tables below each other, with a first column that tells them apart.

    Args:
        parts: the tables by the value of that column.
        column: its name.

    >>> join_parts({"tree": pd.DataFrame({"error": [1.0]}), "grid": pd.DataFrame({"error": [2.0]})}, "method").to_numpy().tolist()
    [['tree', 1.0], ['grid', 2.0]]
    """
    return pd.concat([table.assign(**{column: key})[[column, *table.columns]] for key, table in parts.items()], ignore_index=True)
