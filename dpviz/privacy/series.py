"""Series: releases of the same data for one period after another, paid from one account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Literal, get_args
from zoneinfo import available_timezones

from dpviz.errors import SettingError, check_choice
from dpviz.space.periods import KINDS, Kind, Period, check_name

Protects = Literal["person", "person-period", "record"]
MOST_PERIODS = 1000


@dataclass(frozen=True, kw_only=True)
class Series:
    """Releases for one period after another, such as the months of a year, on one account. Its first draw fixes it.

    What is protected, if n is the number of periods and each release M_t is (epsilon, delta)- or rho-private for its own period's data D_t:

    * "person": the cap is for all periods together, and each may spend cap / n, exactly. *Sequential composition:* all that a unit has in
      all periods changes D_1, ..., D_n, each of which costs at most cap / n, and at most n periods are paid for. So the sum is at most the
      cap, whatever the data of the periods are: a later M_t may also depend on earlier releases.
    * "person-period" and "record": each period may spend the cap. *Parallel composition:* the row's own time, column and time zone, which
      are fixed with the account, decide in which one period it counts (`Period`), and a person's records are bounded only after that. So
      M_t depends on D_t alone, and what a person has in one period, or one record, changes one D_t: it costs at most the cap. Somebody with
      records in all periods changes all of them: at most n times the cap.

    Two notes on the second. It holds for one unit more or less, and for one that is replaced by another *of the same period*: a replacement
    by one of another period, or a record whose time is corrected between two releases, changes two D_t and costs twice the cap. And where
    neighbours are "replace one", the total of each period is public.

    Attributes:
        period: the kind of period: "month", "quarter" or "year".
        periods: the most that are ever paid for (n above), from 2 to 1,000; in any order, and none need follow another.
        protects: all that one person (or record, if each is its own person) has in all periods together; what one person has in a single
            period; or one record.
        time: the column that says in which period a row counts; other rows are left out. Without it, which "person" alone allows, the
            file of each release is the period's.
        zone: the time zone in which times are read and periods begin, such as "Europe/Berlin". Left out, entries are months such as
            2026-11.

    Raises:
        SettingError: a value out of range, no column of times though single periods or records are protected, a zone without a column, or
            an unknown zone.

    >>> Series(protects="person-period", time="at", zone="Europe/Berlin").period_of("2026-11")
    Period(name='2026-11', time='at', zone='Europe/Berlin')
    """

    period: Kind = "month"
    periods: int = 12
    protects: Protects = "person"
    time: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        check_choice(self.period, KINDS, "period")
        check_choice(self.protects, get_args(Protects), "protects")
        if isinstance(self.periods, bool) or not isinstance(self.periods, int) or not 2 <= self.periods <= MOST_PERIODS:
            raise SettingError(f"A series has from 2 to {MOST_PERIODS:,} periods.")
        if self.time is not None and not (isinstance(self.time, str) and self.time.strip() and self.time.isprintable()):
            raise SettingError("time names the column of a row's time, in one line.")
        if self.time is None and self.protects != "person":
            raise SettingError(
                f'A series that protects "{self.protects}" needs time, the column that says in which {self.period} a row counts: without it'
                f' a row could count in every {self.period}. protects = "person" needs none.'
            )
        if self.zone is not None and (self.time is None or self.zone not in available_timezones()):
            raise SettingError("zone is the time zone of the column time, such as 'Europe/Berlin'.")

    def check_unit(self, unit: str) -> None:
        """Refuse an account of a unit that this series does not protect."""
        fitting = {"person": True, "person-period": unit == "person", "record": unit != "person"}
        if not fitting[self.protects]:
            remedy = '"person" or "person-period"' if unit == "person" else '"record" or "person"'
            raise SettingError(f"The unit of these data is one {unit}, so that a series protects {remedy}, not {self.protects!r}.")

    def period_of(self, name: str) -> Period | None:
        """Make the period with this name; None if the series has no column of times.

        Raises:
            SettingError: it is not the name of a period of this kind.
        """
        check_name(name, self.period)
        return None if self.time is None else Period(name=name, time=self.time, zone=self.zone)

    def share_of(self, cap: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """The most that one period may spend, exact."""
        parts = self.periods if self.protects == "person" else 1
        return {name: value / parts for name, value in cap.items()}

    def sum_of(self, cap: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """The most that all periods together cost a unit with records in each of them, exact."""
        return {name: value * self.periods for name, value in self.share_of(cap).items()}

    def to_text(self) -> str:
        """Return the text that the ledger stores, from which `from_text` makes an equal series."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Series:
        """Make the series of a text from `to_text`; `ValueError`, `TypeError` or `SettingError` for any other."""
        return cls(**json.loads(text))

    def send_to_command_line(self, account: str) -> str:
        """Return a sentence on an account of that name, for a page that meets it."""
        return (
            f"These data have the account '{account}', a series of {self.describe()}: it is paid from the command line, with the"
            " configuration of the series: dpviz release CONFIG --period NAME."
        )

    def describe(self) -> str:
        """The terms in a few words, to be shown and compared."""
        by = "by the file" if self.time is None else f"by the column {self.time!r}{f' in {self.zone}' if self.zone else ''}"
        return f"at most {self.periods} {self.period}s {by}, protecting the {self.protects}"
