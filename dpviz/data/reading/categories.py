"""Read a public table of categories, with one row per slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpviz.data.columns import find_column
from dpviz.data.reading.safety import DEFAULT_LIMITS, Source
from dpviz.data.reading.text_format import PLAIN_TEXT
from dpviz.data.reading.trips import open_rows, read_named
from dpviz.space.categories import Categories

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def read_categories(source: Source, *, levels: Sequence[str], names: Mapping[str, str] | None = None) -> Categories:
    """Read categories from a table with one row per slot and a column of ids per level.

    Args:
        source: a path, or an open binary file with a `name`.
        levels: the columns of ids, coarsest first.
        names: level -> column with readable names.

    Raises:
        InputError: the file cannot be read, or lacks a column.
        DomainError: as for `Categories.from_table`.
    """
    opened, named = open_rows(source, DEFAULT_LIMITS, text_format=PLAIN_TEXT), dict(names or {})
    wanted = [find_column(opened.names, column) for column in (*levels, *named.values())]
    columns, _ = read_named(opened, wanted, "refuse", None)
    table = pd.DataFrame({column: cells.to_pandas() for column, cells in columns.items()})
    return Categories.from_table(table, levels=levels, names=named)
