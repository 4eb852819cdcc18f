"""Named areas in nested levels (country > state > county): the public frame of trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from dpviz.errors import DomainError

ROOT = "all"
MOST_LEVELS = 16
MOST_LEAVES = 2**24
DEGREES = "EPSG:4326"
_AREAS = ("Polygon", "MultiPolygon")

Places = NDArray[np.int32]
Texts = NDArray[np.object_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Regions:
    """Regions in nested levels under one root. PUBLIC: declared, never taken from private trips.

    Level 0 is the root alone; levels 1 to g are named, coarsest first. Regions of a level stand in tree order, so that
    the children of a region are neighbours in the level below, and a *place* is a region's position in its level.

    Attributes:
        levels: g names, coarsest first.
        ids: g arrays, (n_k,) texts, unique in their level.
        parent: g arrays, (n_k,) places in the level above; zeros for level 1.
        names: g arrays, (n_k,) texts for people.
        geometry: g GeoSeries of polygons or points in one CRS, or None where a level has none of its own.

    Raises:
        DomainError: lengths that differ, ids or levels that are empty or not unique, regions out of tree order or without
            children, no CRS, more than 16 levels or 2**24 leaves.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"state": ["NY", "NY", "VT"], "county": ["36001", "36003", "50001"]})
    >>> regions = Regions.from_table(table, levels=["state", "county"])
    >>> regions.size(1), regions.ancestors(1).tolist()
    (2, [0, 0, 1])
    """

    levels: tuple[str, ...]
    ids: tuple[Texts, ...]
    parent: tuple[Places, ...]
    names: tuple[Texts, ...]
    geometry: tuple[geopandas.GeoSeries | None, ...]

    def __post_init__(self) -> None:
        depth = len(self.levels)
        if not 1 <= depth <= MOST_LEVELS:
            raise DomainError(f"Regions need 1 to {MOST_LEVELS} levels.")
        if len(set(self.levels)) < depth or not all(isinstance(name, str) and name for name in self.levels):
            raise DomainError("The levels of regions need names, each different.")
        if not len(self.ids) == len(self.parent) == len(self.names) == len(self.geometry) == depth:
            raise DomainError("ids, parent, names and geometry need one entry per level.")
        if len(self.ids[-1]) > MOST_LEAVES:
            raise DomainError(f"There are more than {MOST_LEAVES:,} leaf regions.")
        for level in range(1, depth + 1):
            self._check_level(level)

    def _check_level(self, level: int) -> None:
        name, ids, parent = self.levels[level - 1], self.ids[level - 1], self.parent[level - 1]
        shape, above = self.geometry[level - 1], self.size(level - 1)
        if not len(ids) == len(parent) == len(self.names[level - 1]) == (len(ids) if shape is None else len(shape)):
            raise DomainError(f"Level {name!r} needs one id, parent, name and shape per region.")
        if not len(ids) or not all(isinstance(text, str) and text for text in ids):
            raise DomainError(f"Level {name!r} needs at least one region, and ids that are texts.")
        if len(set(ids)) < len(ids):
            raise DomainError(f"Level {name!r} has a duplicate id: ids are unique in their level.")
        if (np.diff(parent) < 0).any() or parent[0] < 0 or parent[-1] >= above:
            raise DomainError(f"Level {name!r} is not in tree order.")
        if len(np.unique(parent)) < above:
            raise DomainError(f"A region above level {name!r} has no children: every branch must reach the last level.")
        if shape is not None and shape.crs is None:
            raise DomainError("The geometry has no CRS; set it with set_crs(...), it is never guessed.")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(ids):,} {name}" for name, ids in zip(self.levels, self.ids, strict=True))
        return f"Regions({sizes})"

    def __eq__(self, other: object) -> bool:
        """Whether both name the same regions in the same order; geometry does not matter."""
        if self is other:
            return True
        if not isinstance(other, Regions) or self.levels != other.levels:
            return False
        mine, theirs = (*self.ids, *self.parent), (*other.ids, *other.parent)
        return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def __hash__(self) -> int:
        return hash((self.levels, *(len(ids) for ids in self.ids)))

    @classmethod
    def from_table(cls, table: pd.DataFrame, *, levels: Sequence[str], names: Mapping[str, str] | None = None) -> Regions:
        """Read one row per leaf region.

        Args:
            table: one column of ids per level; a GeoDataFrame's geometry, polygons or points, is that of the leaves.
            levels: the columns, coarsest first.
            names: for some levels, the column that holds readable names; ids serve where there is none.

        Raises:
            DomainError: a missing column or cell, ids that are no texts or whole numbers, a leaf that stands twice, an id
                with two parents, invalid geometry.
        """
        levels, names = tuple(levels), dict(names or {})
        columns = [_texts(table, column) for column in levels]
        labels = [_texts(table, names[column]) if column in names else ids for column, ids in zip(levels, columns, strict=True)]
        if not columns or not len(columns[0]):
            raise DomainError("The table of regions is empty, or no levels were named.")
        codes = [pd.factorize(column)[0] for column in columns]
        if codes[-1].max() + 1 < len(codes[-1]):
            raise DomainError(f"Column {levels[-1]!r} has a duplicate id: every leaf region stands in one row.")
        order = np.lexsort(codes[::-1])
        ids: list[Texts] = []
        parent: list[Places] = []
        label: list[Texts] = []
        above = np.zeros(len(order), np.int32)
        for level, code in zip(levels, codes, strict=True):
            first = _starts(code[order], above, level)
            chosen = order[first]
            ids.append(columns[len(ids)][chosen])
            label.append(labels[len(label)][chosen])
            parent.append(above[first])
            above = (np.cumsum(np.isin(np.arange(len(order)), first)) - 1).astype(np.int32)
        shapes: list[geopandas.GeoSeries | None] = [None] * (len(levels) - 1)
        leaves = table.geometry.iloc[order].reset_index(drop=True) if isinstance(table, geopandas.GeoDataFrame) else None
        return cls(levels=levels, ids=tuple(ids), parent=tuple(parent), names=tuple(label), geometry=(*shapes, leaves))

    @property
    def depth(self) -> int:
        """How many levels there are below the root, g."""
        return len(self.levels)

    def size(self, level: int) -> int:
        """How many regions a level has; 1 for level 0."""
        return 1 if level == 0 else len(self.ids[level - 1])

    def first_child(self, level: int) -> NDArray[np.int64]:
        """(n_level + 1,) place in the level below at which each region's children begin; the last entry is their number."""
        return self._first_child[level]

    @cached_property
    def _first_child(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(np.searchsorted(self.parent[level], np.arange(self.size(level) + 1)) for level in range(self.depth))

    def ancestors(self, level: int, below: int | None = None) -> Places:
        """(n_below,) place at `level` of the region that holds each region of level `below` (of the leaves if None)."""
        below = self.depth if below is None else below
        if not 0 <= level <= below <= self.depth:
            raise DomainError(f"Levels run from 0 to {self.depth}, and an ancestor's is not below.")
        place = np.arange(self.size(below), dtype=np.int32)
        for step in range(below, level, -1):
            place = self.parent[step - 1][place]
        return place

    def leaf_count(self, level: int) -> NDArray[np.int64]:
        """(n_level,) how many leaves each region has."""
        return np.bincount(self.ancestors(level), minlength=self.size(level))

    def ids_of(self, level: int) -> Texts:
        """(n_level,) ids; the root's is "all"."""
        return np.array([ROOT], object) if level == 0 else self.ids[level - 1]

    def names_of(self, level: int) -> Texts:
        """(n_level,) readable names."""
        return np.array([ROOT], object) if level == 0 else self.names[level - 1]

    def find(self, ids: Sequence[object] | Texts, level: int) -> Places:
        """(k,) places of ids in a level; -1 where there is no such region."""
        return np.asarray(self._indexes[level].get_indexer(pd.Index(ids, dtype=object)), np.int32)

    @cached_property
    def _indexes(self) -> tuple[pd.Index[Any], ...]:
        return tuple(pd.Index(self.ids_of(level), dtype=object) for level in range(self.depth + 1))

    def outlines(self, level: int) -> geopandas.GeoSeries | None:
        """(n_level,) polygons in the CRS of the geometry: given, or dissolved from the nearest finer level that has some."""
        known: dict[int, geopandas.GeoSeries | None] = self._known_outlines
        if level not in known:
            own = None if level == 0 else self.geometry[level - 1]
            if own is None or not own.geom_type.isin(_AREAS).all():
                finer = self.outlines(level + 1) if level < self.depth else None
                own = None if finer is None else _dissolved(finer, self.parent[level], self.size(level))
            known[level] = own
        return known[level]

    @cached_property
    def _known_outlines(self) -> dict[int, geopandas.GeoSeries | None]:
        return {}

    def centres(self, level: int) -> NDArray[np.float64] | None:
        """(n_level, 2) longitude and latitude of a point in each region; None without any geometry.

        Polygons give a point inside them, points themselves, and regions above points the mean of their children's.
        """
        known: dict[int, NDArray[np.float64] | None] = self._known_centres
        if level not in known:
            known[level] = self._centres(level)
        return known[level]

    @cached_property
    def _known_centres(self) -> dict[int, NDArray[np.float64] | None]:
        return {}

    def _centres(self, level: int) -> NDArray[np.float64] | None:
        shape = None if level == 0 else self.geometry[level - 1]
        if shape is None:
            shape = self.outlines(level)
        if shape is not None:
            inside = shape.representative_point().to_crs(DEGREES)
            return np.stack([inside.x, inside.y], axis=1)
        finer = self.centres(level + 1) if level < self.depth else None
        if finer is None:
            return None
        parent, size = self.parent[level], self.size(level)
        number = np.bincount(parent, minlength=size)
        return np.stack([np.bincount(parent, finer[:, axis], size) / number for axis in (0, 1)], axis=1)


def _texts(table: pd.DataFrame, column: str) -> Texts:
    """(n,) the column's cells as texts: whole numbers are spelt out, everything else but texts is refused."""
    if column not in table.columns:
        raise DomainError(f"The table of regions has no column {column!r}.")
    cells = table[column]
    if cells.isna().any():
        raise DomainError(f"Column {column!r} has a missing cell: every region needs all its ids.")
    values = cells.to_numpy(object)
    if pd.api.types.infer_dtype(values) not in ("string", "integer", "empty"):
        raise DomainError(f"Column {column!r} must hold texts (or whole numbers): ids are names, not measurements.")
    texts = values.astype(str).astype(object)
    if (texts == "").any():
        raise DomainError(f"Column {column!r} has an empty cell: every region needs all its ids.")
    return texts


def _starts(code: NDArray[np.int64], above: Places, level: str) -> NDArray[np.int64]:
    """Where each region of a level begins, among leaves in tree order; refuses an id that has two parents."""
    change = np.ones(len(code), np.bool_)
    change[1:] = (np.diff(code) != 0) | (np.diff(above) != 0)
    first = np.flatnonzero(change)
    if len(np.unique(code[first])) < len(first):
        raise DomainError(f"Column {level!r} has an id with two different parents: ids are unique in their level.")
    return first


def _dissolved(finer: geopandas.GeoSeries, parent: Places, size: int) -> geopandas.GeoSeries:
    """(size,) unions of the shapes of each region's children."""
    bounds = np.searchsorted(parent, np.arange(size + 1))
    shapes = shapely.make_valid(finer.to_numpy())
    return geopandas.GeoSeries([shapely.union_all(shapes[a:b]) for a, b in pairwise(bounds.tolist())], crs=finer.crs)
