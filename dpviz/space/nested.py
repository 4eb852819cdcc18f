"""Named parts of a whole in nested levels, such as states and their counties, or parts of the day and their hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.arrays import Places, Texts
from dpviz.cards import HtmlCard
from dpviz.errors import DomainError
from dpviz.space.hierarchy import Hierarchy

ROOT = "all"
MOST_LEVELS = 16
MOST_LEAVES = 2**24


@dataclass(frozen=True, kw_only=True, eq=False)
class Nested(HtmlCard):
    """Named parts in nested levels under one root: the base of `Regions` and `Categories`. PUBLIC.

    Level 0 is the root alone; levels 1 to g are named, coarsest first. The parts of a level are in tree order: the children of a part are
    consecutive in the level below. Functions refer to a part by its index in its level.

    Attributes:
        levels: g names, coarsest first.
        ids: g arrays, (n_k,) texts, unique in their level.
        parent: g arrays, (n_k,) index of each part's parent in the level above; zeros for level 1.
        names: g arrays, (n_k,) readable names.
    """

    noun: ClassVar[str]

    levels: tuple[str, ...]
    ids: tuple[Texts, ...]
    parent: tuple[Places, ...]
    names: tuple[Texts, ...]

    def __post_init__(self) -> None:
        depth, plural = len(self.levels), type(self).__name__
        if not 1 <= depth <= MOST_LEVELS:
            raise DomainError(f"{plural} need 1 to {MOST_LEVELS} levels.")
        if len(set(self.levels)) < depth or not all(isinstance(name, str) and name for name in self.levels):
            raise DomainError(f"The levels of {plural.lower()} need names, each different.")
        if not len(self.ids) == len(self.parent) == len(self.names) == depth:
            raise DomainError("ids, parent and names need one entry per level.")
        if len(self.ids[-1]) > MOST_LEAVES:
            raise DomainError(f"There are more than {MOST_LEAVES:,} leaf {plural.lower()}.")
        for level in range(1, depth + 1):
            self._check_level(level)

    def _check_level(self, level: int) -> None:
        name, ids, parent, above = self.levels[level - 1], self.ids[level - 1], self.parent[level - 1], self.size(level - 1)
        if not len(ids) == len(parent) == len(self.names[level - 1]):
            raise DomainError(f"Level {name!r} needs one id, parent and name per {self.noun}.")
        if not len(ids) or not all(isinstance(text, str) and text for text in ids):
            raise DomainError(f"Level {name!r} needs at least one {self.noun}, and ids that are texts.")
        if len(set(ids)) < len(ids):
            raise DomainError(f"Level {name!r} has a duplicate id: ids are unique in their level.")
        if (np.diff(parent) < 0).any() or parent[0] < 0 or parent[-1] >= above:
            raise DomainError(f"Level {name!r} is not in tree order.")
        if len(np.unique(parent)) < above:
            raise DomainError(f"A {self.noun} above level {name!r} has no children: every branch must reach the last level.")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(ids):,} {name}" for name, ids in zip(self.levels, self.ids, strict=True))
        return f"{type(self).__name__}({sizes})"

    def __hash__(self) -> int:
        return hash((self.levels, *(len(ids) for ids in self.ids)))

    def has_same_levels(self, other: Nested) -> bool:
        """Return whether both have the same levels, with the same ids in the same order; names are not compared."""
        mine, theirs = (*self.ids, *self.parent), (*other.ids, *other.parent)
        return self.levels == other.levels and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    @property
    def depth(self) -> int:
        """The number of levels below the root, g."""
        return len(self.levels)

    def size(self, level: int) -> int:
        """Return the number of parts in a level, 0 to g; 1 for level 0."""
        return 1 if level == 0 else len(self.ids[level - 1])

    def level_number(self, level: int | str) -> int:
        """Find the number of a level, 0 to g, by its number or name.

        Raises:
            DomainError: no such level.
        """
        if isinstance(level, str) and level in self.levels:
            return self.levels.index(level) + 1
        if isinstance(level, bool) or not isinstance(level, int | np.integer) or not 0 <= level <= self.depth:
            raise DomainError(f"Levels are 0 to {self.depth}, or {', '.join(self.levels)}.")
        return int(level)

    def first_child(self, level: int) -> NDArray[np.int64]:
        """Find where the children of each part begin.

        Args:
            level: 0 to g - 1.

        Returns:
            (n_level + 1,) index of each part's first child in the level below; the last entry is the size of that level.
        """
        return self._first_child[level]

    @cached_property
    def _first_child(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(np.searchsorted(self.parent[level], np.arange(self.size(level) + 1)) for level in range(self.depth))

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """All parts as one hierarchy, the root first; its depths are the levels."""
        return Hierarchy.of_levels(self.parent)

    def ancestors(self, level: int, below: int | None = None) -> Places:
        """Find the ancestor of each part of a level.

        Args:
            level: the level of the ancestors, 0 to `below`.
            below: the level of the parts; the last level if None.

        Returns:
            (n_below,) index, in `level`, of the part that contains each part of level `below`.

        Raises:
            DomainError: a level is out of range.
        """
        below = self.depth if below is None else below
        if not 0 <= level <= below <= self.depth:
            raise DomainError(f"Levels run from 0 to {self.depth}, and an ancestor's level must not be the finer one.")
        index = np.arange(self.size(below), dtype=np.int32)
        for step in range(below, level, -1):
            index = self.parent[step - 1][index]
        return index

    def leaf_count(self, level: int) -> NDArray[np.int64]:
        """Count the leaves in each part of a level: (n_level,)."""
        return np.bincount(self.ancestors(level), minlength=self.size(level))

    def ids_of(self, level: int) -> Texts:
        """Return the (n_level,) ids of a level; the root's is "all"."""
        return np.array([ROOT], object) if level == 0 else self.ids[level - 1]

    def names_of(self, level: int) -> Texts:
        """Return the (n_level,) readable names of a level."""
        return np.array([ROOT], object) if level == 0 else self.names[level - 1]

    def find(self, ids: Sequence[object] | Texts, level: int) -> Places:
        """Find the parts of a level by their ids.

        Args:
            ids: (k,) ids.
            level: 0 to g.

        Returns:
            (k,) indices of the parts; -1 for an unknown id.
        """
        return np.asarray(self._indexes[level].get_indexer(pd.Index(ids, dtype=object)), np.int32)

    @cached_property
    def _indexes(self) -> tuple[pd.Index[Any], ...]:
        return tuple(pd.Index(self.ids_of(level), dtype=object) for level in range(self.depth + 1))
