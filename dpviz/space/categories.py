"""Categories in nested levels, such as the hours of a day and the parts of the day: what is counted beside the place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar
from zoneinfo import available_timezones

import numpy as np
import pandas as pd

from dpviz.errors import DomainError, check_choice
from dpviz.space.nested import Nested
from dpviz.space.region_tables import fields_from_columns

if TYPE_CHECKING:
    from dpviz.arrays import Mask, Texts

IDS, BINS, HOUR, WEEKDAY, MONTH = "ids", "bins", "hour", "weekday", "month"
READ_AS = (IDS, BINS, HOUR, WEEKDAY, MONTH)
TIMES = (HOUR, WEEKDAY, MONTH)
MOST_SLOTS = 2**16
_PARTS_OF_DAY = ("night", "morning", "afternoon", "evening")
_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Categories(Nested):
    """Categories in nested levels under one root, such as part of day > hour. PUBLIC: declared in public, never derived from private data.

    A finest category is called a slot. As with regions, level 0 is the root alone, and a record lies in one slot or in none.

    Attributes:
        levels: g names, coarsest first.
        ids: g arrays, (n_k,) texts, unique in their level.
        parent: g arrays, (n_k,) index of each category's parent in the level above; zeros for level 1.
        names: g arrays, (n_k,) readable names.
        read_as: how an entry of a table finds its slot: "ids" (it is the id of a slot), "bins" (a number), or "hour", "weekday" or "month"
            (a time).
        edges: of bins, ascending: slot i has the numbers from edges[i] up to but not including edges[i + 1]; () for others.
        zone: of times, the time zone in which hours, days and months begin, such as "Europe/Berlin". A time that states its offset is
            converted to it, and any other is taken as a time there. None for others.
        other: whether the last slot has all records that lie in no other slot. Without it, they are left out.

    Raises:
        DomainError: arrays have different lengths; ids or levels are empty or not unique; categories are not in tree order or have no
            children; edges that do not ascend, or are not one more than the slots; an unknown time zone; or more than 16 levels or 65,536
            slots.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"kind": ["road", "road", "rail"], "mode": ["car", "bus", "train"]})
    >>> modes = Categories.from_table(table, levels=["kind", "mode"])
    >>> modes, modes.ancestors(1).tolist()
    (Categories(2 kind, 3 mode), [0, 0, 1])
    """

    noun: ClassVar[str] = "category"

    read_as: str = IDS
    edges: tuple[float, ...] = ()
    zone: str | None = None
    other: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.read_as, READ_AS, "read_as", DomainError)
        if self.slots > MOST_SLOTS:
            raise DomainError(f"There are more than {MOST_SLOTS:,} slots.")
        if (self.read_as == BINS) != bool(self.edges) or (self.edges and len(self.edges) != self.slots - self.other + 1):
            raise DomainError("Bins need edges, one more than there are slots.")
        if (self.read_as in TIMES) != (self.zone is not None):
            raise DomainError("Times need a time zone, and nothing else does.")
        if self.zone is not None and self.zone not in available_timezones():
            raise DomainError("There is no such time zone: give a name such as 'Europe/Berlin'.")

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same levels, categories in the same order, and way of reading; names are not compared."""
        return self is other or (isinstance(other, Categories) and self._reading == other._reading and self.has_same_levels(other))

    __hash__ = Nested.__hash__

    @property
    def _reading(self) -> tuple[object, ...]:
        return self.read_as, self.edges, self.zone, self.other

    @property
    def slots(self) -> int:
        """The number of finest categories."""
        return len(self.ids[-1])

    def mask_of(self, ids: Sequence[str] | None) -> Mask:
        """Return (slots,) whether each slot lies in any of the categories with these ids, of any level; None is all of them.

        Raises:
            DomainError: an unknown id, or one text in place of a list.

        >>> Categories.hours().mask_of(["night", "07"]).nonzero()[0].tolist()
        [0, 1, 2, 3, 4, 5, 7]
        """
        if ids is None:
            return np.ones(self.slots, np.bool_)
        if isinstance(ids, str):
            raise DomainError("slots and minus must be lists of ids.")
        inside, known = np.zeros(self.slots, np.bool_), np.zeros(len(ids), np.bool_)
        for level in range(self.depth, 0, -1):
            found = self.find(ids, level)
            inside |= np.isin(self.ancestors(level), found[(found >= 0) & ~known])
            known |= found >= 0
        if not known.all():
            raise DomainError("There is an id that is not a category; ids are compared letter by letter.")
        return inside

    @classmethod
    def from_table(cls, table: pd.DataFrame, *, levels: Sequence[str], names: Mapping[str, str] | None = None) -> Categories:
        """Make categories from a table with one row per slot and a column of ids per level.

        Args:
            table: ids are texts, or whole numbers, which become texts.
            levels: the columns of ids, coarsest first.
            names: level -> column with readable names; for levels without such a column, ids are the names.

        Raises:
            DomainError: there are no rows; a column or id is missing; ids are neither texts nor whole numbers; a slot is in two rows; or an
                id has two parents.
        """
        fields = fields_from_columns(pd.DataFrame(table), levels, dict(names or {}), rows="categories")
        return cls(**{name: fields[name] for name in ("levels", "ids", "parent", "names")})

    @classmethod
    def values(cls, values: Sequence[str], *, level: str = "value") -> Categories:
        """Make a single level of listed values, such as modes of transport.

        Args:
            values: their ids, as the column has them: texts, or whole numbers, which become texts.
            level: the name of the level.

        Raises:
            DomainError: there is none, or one is blank or there twice.

        >>> Categories.values(["car", "bus", "train"])
        Categories(3 value)
        """
        return cls.from_table(pd.DataFrame({level: list(values)}, dtype=object), levels=[level])

    @classmethod
    def hours(cls, zone: str | None = None) -> Categories:
        """Make the 24 hours of a day, in four parts of the day of six hours each; night begins at midnight.

        Args:
            zone: the time zone in which times are read. If None, entries are no times, but whole numbers from 0 to 23.

        Raises:
            DomainError: an unknown time zone.

        >>> hours = Categories.hours("Europe/Berlin")
        >>> hours, hours.ids_of(1).tolist(), hours.ids_of(2)[[0, 23]].tolist()
        (Categories(4 part of day, 24 hour), ['night', 'morning', 'afternoon', 'evening'], ['00', '23'])
        """
        hours = [f"{hour:02}" for hour in range(24)]
        return cls._of_times(HOUR, zone, {"part of day": np.repeat(_PARTS_OF_DAY, 6), "hour": hours})

    @classmethod
    def weekdays(cls, zone: str | None = None) -> Categories:
        """Make the seven days of a week, Monday first, in working days and weekend.

        Args:
            zone: the time zone in which times are read. If None, entries are the English names of days.

        Raises:
            DomainError: an unknown time zone.

        >>> Categories.weekdays().ids_of(2).tolist()[4:]
        ['Friday', 'Saturday', 'Sunday']
        """
        return cls._of_times(WEEKDAY, zone, {"part of week": ["working day"] * 5 + ["weekend"] * 2, "weekday": _WEEK})

    @classmethod
    def months(cls, first: str, last: str, zone: str | None = None) -> Categories:
        """Make the months from the first to the last one, in years.

        Args:
            first: year and month, such as "2026-01".
            last: likewise, not before the first.
            zone: the time zone in which times are read. If None, entries are years and months such as "2026-01".

        Raises:
            DomainError: a month that is none, a last one before the first, more than 65,536 months, or an unknown time zone.

        >>> Categories.months("2025-11", "2026-02")
        Categories(2 year, 4 month)
        """
        begins, ends = _count_months(first), _count_months(last)
        if not 0 <= ends - begins < MOST_SLOTS:
            raise DomainError(f"The last month must not be before the first, and there must be at most {MOST_SLOTS:,}.")
        months = [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(begins, ends + 1)]
        return cls._of_times(MONTH, zone, {"year": [month[:4] for month in months], "month": months})

    @classmethod
    def _of_times(cls, read_as: str, zone: str | None, columns: Mapping[str, Sequence[str] | Texts]) -> Categories:
        categories = cls.from_table(pd.DataFrame(columns), levels=list(columns))
        return categories if zone is None else replace(categories, read_as=read_as, zone=zone)

    @classmethod
    def bins(cls, edges: Sequence[float], *, coarser: Mapping[str, Sequence[float]] | None = None, level: str = "bin") -> Categories:
        """Make bins of a number, such as groups of ages. A bin has its lower edge, and not its upper one.

        Args:
            edges: k + 1 finite numbers, ascending, of k bins. A number below the first, or from the last on, lies in no bin.
            coarser: the names of coarser levels, coarsest first, and the edges of their bins: each of them an edge of the next finer level,
                the first and the last one among them.
            level: the name of the finest level.

        Raises:
            DomainError: edges that are not finite, do not ascend or are too few, or coarser edges that are not among the finer ones.

        >>> ages = Categories.bins([0, 6, 18, 65, 120], coarser={"group": [0, 18, 120]})
        >>> ages, ages.ids_of(2).tolist(), ages.ancestors(1).tolist()
        (Categories(2 group, 4 bin), ['0 to 6', '6 to 18', '18 to 65', '65 to 120'], [0, 0, 1, 1])
        """
        all_edges = {name: _check_edges(values) for name, values in {**(coarser or {}), level: edges}.items()}
        finest = all_edges[level]
        for above, below in itertools.pairwise(all_edges.values()):
            if not set(above) <= set(below) or (above[0], above[-1]) != (below[0], below[-1]):
                raise DomainError("Edges of a coarser level must be among those of the next finer level, with the same first and last one.")
        columns = {}
        for name, values in all_edges.items():
            ids = [f"{low:.15g} to {high:.15g}" for low, high in itertools.pairwise(values)]
            columns[name] = [ids[place] for place in np.searchsorted(values, finest[:-1], side="right") - 1]
        return replace(cls.from_table(pd.DataFrame(columns), levels=list(columns)), read_as=BINS, edges=finest)

    def with_other(self, name: str = "other") -> Categories:
        """Return a copy with one more slot, in which all records are counted that lie in no other one.

        Args:
            name: its id, on every level.

        Raises:
            DomainError: there is such an id, or such a slot, already.

        >>> Categories.weekdays().with_other("holiday").ids_of(1).tolist()
        ['working day', 'weekend', 'holiday']
        """
        if self.other:
            raise DomainError("There is a slot for all other records already.")
        return replace(
            self,
            ids=tuple(np.append(ids, name) for ids in self.ids),
            names=tuple(np.append(names, name) for names in self.names),
            parent=tuple(np.append(parent, np.int32(self.size(level) if level else 0)) for level, parent in enumerate(self.parent)),
            other=True,
        )


def _check_edges(edges: Sequence[float]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(edge) for edge in edges)
    except (TypeError, ValueError):
        raise DomainError("Edges of bins must be numbers.") from None
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)) or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise DomainError("Edges of bins must be at least two finite numbers, each larger than the one before.")
    return numbers


def _count_months(text: str) -> int:
    """Return the number of months from the year 0 to a month such as "2026-01"."""
    year, dash, month = text.partition("-") if isinstance(text, str) else ("", "", "")
    is_month = dash == "-" and len(year) == 4 and len(month) == 2 and (year + month).isdecimal() and 1 <= int(month) <= 12
    if not is_month:
        raise DomainError("A month is a year and a number from 01 to 12, such as '2026-01'.")
    return 12 * int(year) + int(month) - 1
