"""Regions from a table with a column per level, or from prefixes of their ids."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pandas as pd

from dpviz.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dpviz.space.regions import Places, Texts

    Codes = NDArray[np.int64]


def by_columns(table: pd.DataFrame, levels: Sequence[str], names: Mapping[str, str]) -> dict[str, Any]:
    """The fields of `Regions` from one row per leaf; see `Regions.from_table`."""
    check_list(levels, "levels", "columns, coarsest first, such as ['state', 'county']")
    levels = tuple(levels)
    if strange := [key for key in names if key not in levels]:
        raise DomainError(f"names speaks of {strange[0]!r}, which is none of the levels.")
    columns = [id_texts(table, column) for column in levels]
    labels = [label_texts(table, names[level], ids) if level in names else ids for level, ids in zip(levels, columns, strict=True)]
    if not columns or not len(columns[0]):
        raise DomainError("The table of regions is empty, or no levels were named.")
    codes = [pd.factorize(column)[0] for column in columns]
    _refuse_twice(codes, levels[-1])
    order = np.lexsort(codes[::-1])
    ids: list[Texts] = []
    label: list[Texts] = []
    parent: list[Places] = []
    above = np.zeros(len(order), np.int32)
    for level, code in enumerate(codes):
        first = _starts(code[order], above, levels[level])
        ids.append(columns[level][order[first]])
        label.append(labels[level][order[first]])
        parent.append(above[first])
        above = np.repeat(np.arange(len(first), dtype=np.int32), np.diff(np.append(first, len(order))))
    shapes = shapes_of(table)
    leaves = None if shapes is None else shapes.iloc[order].reset_index(drop=True)
    geometry = (*[None] * (len(levels) - 1), leaves)
    return {"levels": levels, "ids": tuple(ids), "parent": tuple(parent), "names": tuple(label), "geometry": geometry}


def by_prefixes(ids: Sequence[str] | Texts, lengths: Sequence[int], levels: Sequence[str]) -> dict[str, Any]:
    """The fields of `Regions` from the first characters of ids; see `Regions.from_prefixes`."""
    check_list(levels, "levels", "names, coarsest first, such as ['state', 'county']")
    check_list(ids, "ids", "texts, one per region")
    check_list(lengths, "lengths", "whole numbers, such as [2, 5]")
    if len(lengths) != len(levels):
        raise DomainError("lengths and levels must be of the same length: one number of characters per level.")
    if not all(isinstance(length, int | np.integer) and not isinstance(length, bool) and length >= 1 for length in lengths):
        raise DomainError("lengths must be whole numbers, at least 1.")
    if any(b <= a for a, b in itertools.pairwise(lengths)):
        raise DomainError("lengths must grow from level to level: an id's first characters name the larger region.")
    cells = pd.Series(list(ids), dtype=object)
    if blank(cells).any():
        raise DomainError("An id is missing or blank.")
    if not all(isinstance(value, str) for value in cells):
        raise DomainError("Ids must be texts: as a number, an id has lost its leading zeros. Read the column as text.")
    if lengths and min(map(len, cells), default=0) < lengths[-1]:
        raise DomainError(f"Every id needs at least {lengths[-1]} characters, the last of the lengths; one is shorter, or there is none.")
    leaves = dict.fromkeys(value[: lengths[-1]] for value in cells) if lengths else {}
    prefixes = {level: [leaf[:length] for leaf in leaves] for level, length in zip(levels, lengths, strict=True)}
    return by_columns(pd.DataFrame(prefixes, dtype=object), levels, {})


def check_list(values: object, name: str, what: str) -> None:
    """Refuse a single text or anything else that is no list, where a list is meant."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise DomainError(f"{name} must be a list of {what}.")


def shapes_of(table: pd.DataFrame) -> geopandas.GeoSeries | None:
    """(n,) the geometry of a GeoDataFrame; None if it has none, or nothing but gaps."""
    if not isinstance(table, geopandas.GeoDataFrame) or table.active_geometry_name is None:
        return None
    return None if table.geometry.isna().all() else table.geometry


def cells_of(table: pd.DataFrame, column: str) -> pd.Series:
    """(n,) the one column of this name.

    Raises:
        DomainError: no table, no such column, or several.
    """
    if not isinstance(table, pd.DataFrame):
        raise DomainError("The table of regions must be a DataFrame.")
    found = [place for place, name in enumerate(table.columns) if name == column]
    if not found:
        raise DomainError(f"The table of regions has no column {column!r}.")
    if len(found) > 1:
        raise DomainError(f"The table of regions has several columns {column!r}; rename all but one.")
    return table.iloc[:, found[0]]


def id_texts(table: pd.DataFrame, column: str) -> Texts:
    """(n,) the column's cells as texts: whole numbers are spelt out, everything else but texts is refused."""
    cells = cells_of(table, column)
    if blank(cells).any():
        raise DomainError(f"Column {column!r} has a missing or blank cell: every region needs all its ids.")
    return _spelt(cells, column)


def label_texts(table: pd.DataFrame, column: str, ids: Texts) -> Texts:
    """(n,) readable names; a region without one is called by its id."""
    cells = cells_of(table, column)
    missing = blank(cells)
    names = ids.copy()
    names[~missing] = _spelt(cells[~missing], column)
    return names


def blank(cells: pd.Series) -> NDArray[np.bool_]:
    """(n,) whether a cell is missing, or text of spaces only."""
    missing = cells.isna().to_numpy(np.bool_)
    return missing | np.array([isinstance(value, str) and not value.strip() for value in cells.to_numpy(object)], np.bool_)


def _spelt(cells: pd.Series, column: str) -> Texts:
    values = cells.to_numpy(object)
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind not in ("string", "integer", "empty"):
        raise DomainError(f"Column {column!r} must hold texts (or whole numbers): ids are names, not measurements.")
    texts = np.empty(len(values), object)
    texts[:] = [str(value) for value in values]
    return texts


def _refuse_twice(codes: list[Codes], leaf: str) -> None:
    """Refuse a leaf that stands in two rows, and say whether they agree on where it lies."""
    if codes[-1].max() + 1 == len(codes[-1]):
        return
    if pd.DataFrame(np.stack(codes, axis=1)).duplicated().any():
        raise DomainError(f"Column {leaf!r} has a duplicate id: every leaf region stands in one row.")
    raise DomainError(f"Column {leaf!r} has an id under two different parents: ids are unique in their level.")


def _starts(code: Codes, above: Places, level: str) -> Codes:
    """Where each region of a level begins, among leaves in tree order; refuses an id that has two parents."""
    change = np.ones(len(code), np.bool_)
    change[1:] = (np.diff(code) != 0) | (np.diff(above) != 0)
    first = np.flatnonzero(change)
    if len(np.unique(code[first])) < len(first):
        raise DomainError(f"Column {level!r} has an id with two different parents: ids are unique in their level.")
    return first
