"""Mechanisms by key: those of one family, with those of other installed packages, and those of all families."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import entry_points
from itertools import chain
from typing import Any

from dpviz.errors import SettingError, check_choice


class _ByKey(Mapping[str, type[Any]]):
    """Mechanisms by key, as a mapping of `_by_key`."""

    @property
    @abstractmethod
    def _by_key(self) -> Mapping[str, type[Any]]: ...

    def __getitem__(self, key: str) -> type[Any]:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"


class Registry(_ByKey):
    """The mechanisms of a family by key: first this package's own ones, then the entry points of other installed packages.

    Entry points are loaded at the first access, so that a package with entry points can import dpviz without a circular import.

    Args:
        base: class that every mechanism of the family inherits from.
        own: mechanisms of this package.
        group: name of the group of entry points.

    Raises:
        SettingError: at the first access, if an entry point is no mechanism of the family, or has the key of another mechanism.
    """

    def __init__(self, base: type[Any], own: Sequence[type[Any]], group: str) -> None:
        self.group = group
        self._base, self._own = base, own

    def reload(self) -> None:
        """Forget the loaded entry points; the next access loads them again, for example after a package was installed."""
        self.__dict__.pop("_by_key", None)

    @cached_property
    def _by_key(self) -> dict[str, type[Any]]:
        mechanisms = {mechanism.key: mechanism for mechanism in self._own}
        for entry in entry_points(group=self.group):
            loaded = entry.load()
            if not (isinstance(loaded, type) and issubclass(loaded, self._base)):
                raise SettingError(f"The entry point {entry.name!r} of {self.group} is no mechanism based on {self._base.__name__}.")
            mechanism: Any = loaded
            if mechanism.key in mechanisms:
                raise SettingError(f"The entry point {entry.name!r} of {self.group} has the key {mechanism.key!r}, which is taken.")
            mechanisms[mechanism.key] = mechanism
        return mechanisms


class Registries(_ByKey):
    """The mechanisms of all families by key: `of` gives those of one family.

    Args:
        list_families: lists for each family by name its mechanisms by key; no two families share a key.

    >>> import dpviz as dv
    >>> dv.MECHANISMS["top_down"].family, "region_tree" in dv.MECHANISMS.of("areas")
    ('trips', True)
    """

    def __init__(self, list_families: Callable[[], Mapping[str, Mapping[str, type[Any]]]]) -> None:
        self._list_families = list_families

    def of(self, family: str) -> Mapping[str, type[Any]]:
        """Return the mechanisms of a family: "points", "trips" or "areas".

        Raises:
            SettingError: there is no such family.
        """
        families = self._list_families()
        check_choice(family, tuple(families), "family")
        return families[family]

    @property
    def _by_key(self) -> dict[str, type[Any]]:
        return dict(chain.from_iterable(kinds.items() for kinds in self._list_families().values()))
