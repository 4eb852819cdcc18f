"""Check tables of regions, and convert them to the fields of `Regions`.

There are three layouts: a column of ids per level, one list of ids whose prefixes are the levels, or a column with each region's parent.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pandas as pd

from dpviz.amounts import LONGEST_NUMBER
from dpviz.arrays import Integers, Places, Texts
from dpviz.errors import DomainError, DpvizError, did_you_mean
from dpviz.space.denominators import read_denominator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Codes = NDArray[np.int64]
REGIONS = "regions"
NO_ID = "Column {column!r} must hold texts or whole numbers, since ids are names: name another column, or write its ids as texts."
DISSOLVE = "Join the shapes of each id into one row first, as frame.dissolve(by=...) of geopandas does."


def fields_from_columns(
    table: pd.DataFrame, levels: Sequence[str], names: Mapping[str, str], denominator: str | None = None, *, rows: str = REGIONS
) -> dict[str, Any]:
    """Make the fields of `Regions` from a table with one row per leaf; arguments and errors as for `Regions.from_table`.

    `rows` is what a row is, for errors: regions, or categories.
    """
    check_list(levels, "levels", "columns, coarsest first, such as ['state', 'county']")
    levels = tuple(levels)
    if unknown := [key for key in names if key not in levels]:
        raise DomainError(f"names has a column for {unknown[0]!r}, which is not one of the levels.")
    if not levels:
        raise DomainError("No levels are named: give the columns of ids, from coarse to fine.")
    columns = [id_texts(table, column, rows) for column in levels]
    if not len(columns[0]):
        raise DomainError(f"The table of {rows} has no rows: there is nothing to count in.")
    labels = [label_texts(table, names[level], ids, rows) if level in names else ids for level, ids in zip(levels, columns, strict=True)]
    codes = [pd.factorize(column)[0] for column in columns]
    _refuse_other_order(codes, levels)
    _refuse_duplicate_leaves(codes, levels[-1], DISSOLVE if rows == REGIONS else "")
    order = np.lexsort(codes[::-1])
    parts: list[tuple[Texts, Texts, Places]] = []
    parent_index = np.zeros(len(order), np.int32)
    for level, code in enumerate(codes):
        first = _region_starts(code[order], parent_index, levels[level])
        parts.append((columns[level][order[first]], labels[level][order[first]], parent_index[first]))
        parent_index = np.repeat(np.arange(len(first), dtype=np.int32), np.diff(np.append(first, len(order))))
    shapes = shapes_of(table)
    leaves = None if shapes is None else shapes.iloc[order].reset_index(drop=True)
    ids, names_of_levels, parent = zip(*parts, strict=True)
    geometry = (*[None] * (len(levels) - 1), leaves)
    fields = {"levels": levels, "ids": ids, "parent": parent, "names": names_of_levels, "geometry": geometry}
    return fields if denominator is None else fields | {"denominator": read_denominator(cells_of(table, denominator), columns[-1])}


def fields_from_prefixes(ids: Sequence[str] | Texts, lengths: Sequence[int], levels: Sequence[str]) -> dict[str, Any]:
    """Make the fields of `Regions` from the first characters of ids; arguments and errors as for `Regions.from_prefixes`."""
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
    if is_blank(cells).any():
        raise DomainError("An id is missing or blank.")
    if not all(isinstance(value, str) for value in cells):
        raise DomainError("Ids must be texts: as a number, an id has lost its leading zeros. Read the column as text.")
    if lengths and min(map(len, cells), default=0) < lengths[-1]:
        raise DomainError(f"Every id needs at least {lengths[-1]} characters, the last of the lengths; one is shorter, or there is none.")
    leaves = dict.fromkeys(value[: lengths[-1]] for value in cells) if lengths else {}
    prefixes = {level: [leaf[:length] for leaf in leaves] for level, length in zip(levels, lengths, strict=True)}
    return fields_from_columns(pd.DataFrame(prefixes, dtype=object), levels, {})


def check_list(values: object, name: str, what: str) -> None:
    """Check that an argument is a list, and not a single text.

    Args:
        values: the argument.
        name: name of the argument.
        what: what the list must hold, for the error.

    Raises:
        DomainError: the argument is not a list.
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise DomainError(f"{name} must be a list of {what}.")


def shapes_of(table: pd.DataFrame) -> geopandas.GeoSeries | None:
    """Return the (n,) geometry of a GeoDataFrame; None if the table has none, or if all of it is missing."""
    if not isinstance(table, geopandas.GeoDataFrame) or table.active_geometry_name is None:
        return None
    return None if table.geometry.isna().all() else table.geometry


def cells_of(
    table: pd.DataFrame,
    column: str,
    rows: str = REGIONS,
    error: type[DpvizError] = DomainError,
    advise: Callable[[list[str], str], str] = lambda names, wanted: did_you_mean(wanted, names),
) -> pd.Series:
    """Return the (n,) cells of the column with this name.

    Args:
        table: the table.
        column: the name.
        rows: what a row is, for errors.
        error: the class of errors.
        advise: what an error says, from the names that there are and the one that there is not.

    Raises:
        DomainError: `table` is not a DataFrame, or has no column or several columns of this name. Or another `error`.
    """
    if not isinstance(table, pd.DataFrame):
        raise error(f"The table of {rows} must be a DataFrame.")
    positions = [index for index, name in enumerate(table.columns) if name == column]
    if not positions:
        raise error(f"The table of {rows} has no column {column!r}.{advise(list(map(str, table.columns)), column)}")
    if len(positions) > 1:
        raise error(f"The table of {rows} has several columns {column!r}; rename all but one.")
    return table.iloc[:, positions[0]]


def id_texts(table: pd.DataFrame, column: str, rows: str = REGIONS) -> Texts:
    """Convert a column of ids to texts. Whole numbers become texts.

    Args:
        table: a table of n rows.
        column: name of the column.
        rows: what a row is, for errors.

    Returns:
        (n,) texts.

    Raises:
        DomainError: there is no such column, a cell is missing or blank, or a cell is neither a text nor a whole number.
    """
    cells = cells_of(table, column, rows)
    if is_blank(cells).any():
        raise DomainError(f"Column {column!r} has a missing or blank cell: in a table of {rows} every row needs all its ids.")
    return _to_texts(cells, column)


def label_texts(table: pd.DataFrame, column: str, ids: Texts, rows: str = REGIONS) -> Texts:
    """Convert a column of readable names to texts; a missing name is replaced by the id.

    Args:
        table: a table of n rows.
        column: name of the column.
        ids: (n,) ids.
        rows: what a row is, for errors.

    Returns:
        (n,) texts.

    Raises:
        DomainError: there is no such column, or a cell is neither a text nor a whole number.
    """
    cells = cells_of(table, column, rows)
    missing = is_blank(cells)
    names = ids.copy()
    names[~missing] = _to_texts(cells[~missing], column)
    return names


def is_blank(cells: pd.Series) -> NDArray[np.bool_]:
    """Return (n,) whether a cell is missing, or a text of blanks only."""
    missing = cells.isna().to_numpy(np.bool_)
    return missing | np.array([isinstance(value, str) and not value.strip() for value in cells.to_numpy(object)], np.bool_)


def _to_texts(cells: pd.Series, column: str) -> Texts:
    values = cells.to_numpy(object)
    kind = pd.api.types.infer_dtype(values, skipna=False)
    texts = np.empty(len(values), object)
    texts[:] = [_id_text(value) if kind == "floating" else str(value) for value in values]  # Shapefiles store whole numbers as floats
    if kind not in ("string", "integer", "floating", "empty") or any(text is None for text in texts):
        raise DomainError(NO_ID.format(column=column))
    return texts


def _refuse_other_order(codes: list[Codes], levels: Sequence[str]) -> None:
    """Refuse levels that are not given from coarse to fine, if another order of them is nested; the error names that order."""
    sizes = [int(code.max()) + 1 for code in codes]
    order = sorted(range(len(codes)), key=sizes.__getitem__)
    if order == sorted(order) or sizes[order[-1]] < len(codes[0]):
        return
    pairs = itertools.pairwise(order)
    if all(len(np.unique(codes[above] * sizes[below] + codes[below])) == sizes[below] for above, below in pairs):
        seem = "reversed" if order == list(range(len(codes)))[::-1] else "in another order"
        raise DomainError(f"Give the levels from coarse to fine; these seem {seem}: {', '.join(levels[index] for index in order)}.")


def _refuse_duplicate_leaves(codes: list[Codes], leaf: str, advice: str) -> None:
    """Refuse a leaf in two rows; the error says whether these rows have the same parents, and else ends with an advice."""
    if codes[-1].max() + 1 == len(codes[-1]):
        return
    if pd.DataFrame(np.stack(codes, axis=1)).duplicated().any():
        raise DomainError(f"Column {leaf!r} has a duplicate id: each id of the last level has one row. {advice}".strip())
    raise DomainError(f"Column {leaf!r} has an id under two different parents: ids are unique in their level.")


def _region_starts(code: Codes, above: Places, level: str) -> Codes:
    """Find the first leaf of each region of a level, for leaves in tree order. Refuse an id with two parents.

    Args:
        code: (leaves,) number of each leaf's region in the level.
        above: (leaves,) index of this region's parent.
        level: name of the level, for errors.
    """
    change = np.ones(len(code), np.bool_)
    change[1:] = (np.diff(code) != 0) | (np.diff(above) != 0)
    first = np.flatnonzero(change)
    if len(np.unique(code[first])) < len(first):
        raise DomainError(f"Column {level!r} has an id with two different parents: ids are unique in their level.")
    return first


ID, PARENT, LEVEL, NAME = "region_id", "parent_id", "level", "name"
_DOUBLINGS = 32  # each doubles the number of parents that were followed
_BLANK_PARENTS = f"Only the coarsest regions leave {PARENT!r} blank."
_UNKNOWN_PARENT = f"Column {PARENT!r} names a region that has no row of its own. {_BLANK_PARENTS}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """One row per region of any level.

    Attributes:
        ids: (n,) texts.
        parents: (n,) ids of the parents, "" for regions without one.
        level: (n,) index into `levels`.
        levels: names of the levels, coarsest first; None for a level that is given by its number.
    """

    ids: Texts
    parents: Texts
    level: Integers
    levels: list[str | None]

    def ids_at(self, level: int) -> pd.Index[Any]:
        ids: pd.Index[Any] = pd.Index(self.ids[self.level == level], dtype=object)
        return ids

    def title(self, level: int) -> str:
        return repr(self.levels[level]) if self.levels[level] is not None else f"number {level + 1} from the top"


def fields_from_parents(table: pd.DataFrame, denominator: str | None = None) -> dict[str, Any]:
    """Make the fields of `Regions` from a table with one row per region; arguments and errors as for `Regions.from_parents`."""
    ids = id_texts(table, ID)
    if not len(ids):
        raise DomainError("The table of regions is empty.")
    level, levels = _read_levels(cells_of(table, LEVEL))
    rows = _Rows(ids=ids, parents=_read_parents(cells_of(table, PARENT)), level=level, levels=levels)
    if pd.DataFrame({LEVEL: level, ID: ids}).duplicated().any():
        raise DomainError(f"Column {ID!r} has a duplicate id: every region has one row on its level. {DISSOLVE}")
    _refuse_cycles(rows)
    if any(name is not None for name in levels):
        rows = _order_levels(rows)
    _check_parents(rows)
    labels = label_texts(table, NAME, ids) if NAME in table.columns else ids
    has_root = len(levels) > 1 and (rows.level == 0).sum() == 1  # one coarsest region is the whole, which is no level of `Regions`
    fields = _nest(rows, labels, shapes_of(table), top=1 if has_root else 0)
    if denominator is None:
        return fields
    leaves = rows.level == len(rows.levels) - 1
    return fields | {"denominator": read_denominator(cells_of(table, denominator)[leaves], rows.ids[leaves])}


def _nest(rows: _Rows, labels: Texts, shapes: geopandas.GeoSeries | None, top: int) -> dict[str, Any]:
    """Make the fields of `Regions` for the levels from `top` on, in tree order."""
    parts: list[tuple[Texts, Texts, Places, geopandas.GeoSeries | None]] = []
    for level in range(top, len(rows.levels)):
        row_numbers = np.flatnonzero(rows.level == level)
        above = np.zeros(len(row_numbers), np.int64)
        if parts:
            above = pd.Index(parts[-1][0], dtype=object).get_indexer(pd.Index(rows.parents[row_numbers]))
        order = np.argsort(above, kind="stable")
        chosen = row_numbers[order]
        shape = None if shapes is None else shapes.iloc[chosen].reset_index(drop=True)
        shape = None if shape is None or shape.isna().all() else shape
        parts.append((rows.ids[chosen], labels[chosen], above[order].astype(np.int32), shape))
    ids, names, parent, geometry = zip(*parts, strict=True)
    levels = tuple(name if name is not None else f"level {number}" for number, name in enumerate(rows.levels[top:], start=1))
    return {"levels": levels, "ids": ids, "parent": parent, "names": names, "geometry": geometry}


def _read_levels(cells: pd.Series) -> tuple[Integers, list[str | None]]:
    """Read the level of each row as an (n,) index, and the names of the levels.

    Numbers give the order of the levels, which then have no names (None). Names are numbered in the order of appearance.
    """
    if is_blank(cells).any():
        raise DomainError(f"Column {LEVEL!r} has a missing cell: give the level of every region.")
    texts = [_id_text(value) for value in cells.to_numpy(object)]
    if any(text is None for text in texts):
        raise DomainError(f"Column {LEVEL!r} must hold whole numbers from 0 or 1, or the names of the levels.")
    if not all(text is not None and len(text) <= LONGEST_NUMBER and text.lstrip("+-").isdecimal() for text in texts):
        code, names = pd.factorize(np.array(texts, object))
        return code.astype(np.int64), [str(name) for name in names]
    numbers = np.array([int(text) if text is not None else 0 for text in texts])
    distinct = np.unique(numbers)
    if distinct[0] not in (0, 1) or distinct[-1] - distinct[0] + 1 != len(distinct):
        raise DomainError(f"There is a gap in the levels: the numbers in {LEVEL!r} must start at 0 or 1 and leave none out.")
    return (numbers - distinct[0]).astype(np.int64), [None] * len(distinct)


def _read_parents(cells: pd.Series) -> Texts:
    """Read the (n,) ids of the parents, "" for none. Whole numbers that pandas made floats, because cells are missing, are restored."""
    missing = is_blank(cells)
    texts = np.full(len(cells), "", object)
    texts[~missing] = [_id_text(value) for value in cells.to_numpy(object)[~missing]]
    if any(text is None for text in texts):
        raise DomainError(NO_ID.format(column=PARENT))
    return texts


def _id_text(value: object) -> str | None:
    """Return a text as it is, and a whole number as a text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_) else None


def _refuse_cycles(rows: _Rows) -> None:
    """Refuse cycles of parents. If an id is used on several levels, `_check_parents` finds cycles instead."""
    index = pd.Index(rows.ids, dtype=object)
    if not index.is_unique:
        return
    above = index.get_indexer(pd.Index(rows.parents, dtype=object))
    if (above == np.arange(len(above))).any():
        raise DomainError(f"Column {PARENT!r} names a region as its own parent. {_BLANK_PARENTS}")
    above = np.append(above, -1)  # -1 means no parent; as an index it points to the last entry, which is -1 again
    for _ in range(_DOUBLINGS):
        above = above[above]
    if (above >= 0).any():
        raise DomainError(f"Column {PARENT!r} has a cycle: a region is an ancestor of itself.")


def _order_levels(rows: _Rows) -> _Rows:
    """Sort the levels of rows from coarsest to finest, so that the parents of each level are in the level before.

    If some rows are wrong, no order fits all rows. Then the order that fits most rows is used, and `_check_parents` reports the wrong ones.
    """
    blank_shares = [float((rows.parents[rows.level == level] == "").mean()) for level in range(len(rows.levels))]
    if not any(blank_shares):
        if not pd.Index(rows.ids).isin(rows.parents).any():
            raise DomainError(_UNKNOWN_PARENT)
        raise DomainError(f"Every region has a parent, so there is no coarsest level. {_BLANK_PARENTS}")
    order = [int(np.argmax(blank_shares))]
    remaining = [level for level in range(len(rows.levels)) if level != order[0]]
    while remaining:
        parents = {level: pd.Index(rows.parents[rows.level == level], dtype=object) for level in remaining}
        share_found = {level: float(of_level.isin(rows.ids_at(order[-1])).mean()) for level, of_level in parents.items()}
        best = max(remaining, key=share_found.__getitem__)
        if list(share_found.values()).count(1.0) > 1:
            raise DomainError(f"The order of the levels does not follow from their ids; put numbers from 1 into {LEVEL!r}, coarsest first.")
        order.append(best)
        remaining.remove(best)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return replace(rows, level=number[rows.level], levels=[rows.levels[level] for level in order])


def _check_parents(rows: _Rows) -> None:
    """Refuse a region whose parent is not in the level above; the error text gives the reason."""
    for level in range(len(rows.levels)):
        in_level = rows.level == level
        parents = pd.Index(rows.parents[in_level], dtype=object)
        is_right = parents.isin(rows.ids_at(level - 1)) if level else parents == ""
        if not is_right.all():
            wrong = int(np.flatnonzero(~np.asarray(is_right))[0])
            raise DomainError(_explain_wrong_parent(rows, level, str(rows.ids[in_level][wrong]), str(parents[wrong])))


def _explain_wrong_parent(rows: _Rows, level: int, region: str, parent: str) -> str:
    """Write the error text for a region of `level` whose parent is not in the level above."""
    title = f"A region of level {rows.title(level)}"
    if parent == "":
        return f"{title} has no parent, though there are coarser levels: all branches must start at the coarsest level. {_BLANK_PARENTS}"
    parent_levels = set(rows.level[rows.ids == parent].tolist())
    if not parent_levels:
        return _UNKNOWN_PARENT
    if parent == region and parent_levels == {level}:
        return f"{title} is its own parent. {_BLANK_PARENTS}"
    if level == 0:
        return f"{title} has a parent, though no level is coarser: the levels contradict the parents. {_BLANK_PARENTS}"
    if min(parent_levels) >= level:
        return f"{title} has a parent of the same level or of a finer one: the levels contradict the parents."
    return f"{title} has a parent more than one level up: there is a gap, and every region's parent must be of the level above."
