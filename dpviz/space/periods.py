"""Periods of a series of releases, such as the month 2026-11: their names, and the records that count in one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from dpviz.errors import SettingError
from dpviz.space.categories import Categories

Kind: TypeAlias = Literal["month", "quarter", "year"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_NAMES = {"month": r"[12][0-9]{3}-(0[1-9]|1[0-2])", "quarter": "[12][0-9]{3}-Q[1-4]", "year": "[12][0-9]{3}"}
_EXAMPLES = {"month": "2026-11", "quarter": "2026-Q4", "year": "2026"}
_PER_QUARTER = 3


@dataclass(frozen=True, kw_only=True)
class Period:
    """One period, and how a row says whether it counts in it. PUBLIC.

    A period has its begin, and not its end. What an entry says depends on that entry alone, and it lies in one month or in none. So of all
    periods of one kind, with one column and one time zone, a row counts in at most one.

    Attributes:
        name: its only name: "2026-11" of a month, "2026-Q4" of a quarter, "2026" of a year.
        time: the column of a row's time.
        zone: the time zone in which months begin, such as "Europe/Berlin". If None, entries are months such as 2026-11 themselves.

    Raises:
        SettingError: it is not the name of a period.
        DomainError: an unknown time zone.

    >>> Period(name="2026-Q4", time="at").months
    ('2026-10', '2026-12')
    """

    name: str
    time: str
    zone: str | None = None

    def __post_init__(self) -> None:
        kind_of(self.name)
        self.categories()

    @property
    def months(self) -> tuple[str, str]:
        """Its first and its last month."""
        year, kind = self.name[:4], kind_of(self.name)
        if kind == "month":
            return self.name, self.name
        last = 12 if kind == "year" else _PER_QUARTER * int(self.name[-1])
        return f"{year}-{last - (11 if kind == 'year' else 2):02}", f"{year}-{last:02}"

    def categories(self) -> Categories:
        """Make its months, in one of which the time of each of its rows lies."""
        return Categories.months(*self.months, self.zone)


def kind_of(name: str) -> Kind:
    """Return what a period with this name is.

    Raises:
        SettingError: it is not the name of a period.
    """
    found = [kind for kind in KINDS if isinstance(name, str) and re.fullmatch(_NAMES[kind], name)]
    if not found:
        raise SettingError(f"A period is called such as {', '.join(_EXAMPLES.values())}, and in no other way.")
    return found[0]


def check_name(name: str, kind: Kind) -> str:
    """Return the name of a period, which is its only one, so that no period is paid for under two.

    Raises:
        SettingError: it is not the name of a period of this kind.

    >>> check_name("2026-11", "month")
    '2026-11'
    """
    if not isinstance(name, str) or not re.fullmatch(_NAMES[kind], name):
        raise SettingError(f"The name of a {kind} is written as {_EXAMPLES[kind]}, and in no other way.")
    return name
