"""How many trips run between each pair of leaf regions: the private input of every trip mechanism."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.data.arrays import frozen, too_many
from dpviz.data.bounding import KEEP, People, bound_of, people, refuse_unenforced
from dpviz.data.counted import Counted, counted_rows
from dpviz.data.flow_rows import REMEDY, Trips, checked_counts, counts_of, ids_of, leaf_places
from dpviz.data.places import pairs_of
from dpviz.errors import InputError
from dpviz.space.regions import Places, Regions

Integers = NDArray[np.int64]

TRIP, PERSON = "trip", "person"


@dataclass(frozen=True, eq=False)
class Flows:
    """Trips per pair of leaf regions. PRIVATE: only a mechanism or a study may look inside.

    Attributes:
        regions: where trips begin.
        origin: (k,) places of leaf regions of `regions`.
        destination: (k,) places of leaf regions of `destinations`; pairs are distinct, ordered by origin, then destination.
        count: (k,) trips of each pair, at least 1.
        destinations: where trips end; None where that is `regions` too.
        contributions: m, the most trips of one protected unit.
        unit: "trip", or "person" where m trips of one person are protected together.
        exactly: declared: every person has exactly m trips, so that replacing a person leaves the total as it is.
        enforced: whether the bound was enforced with a person column; else the curator vouches for it.
        dropped: trips left out; for the curator only, never released.
        outside: those of them outside the regions.
        bad: those of rows with a bad cell; one for a row whose count is bad or that cannot be cut into cells.
        over: those over the bound, and `beyond`.
        beyond: trips beyond the most that a pair holds, which are in no `count`; see `most_per_place`.
        notes: what a reader left out on purpose, such as totals; for the curator only.

    Raises:
        InputError: arrays of different lengths, places outside the regions, pairs out of order or twice, counts under 1
            or beyond 2**53 in all, a depth or unit that does not fit.
    """

    regions: Regions
    origin: Places
    destination: Places
    count: Integers
    _: KW_ONLY
    destinations: Regions | None = None
    contributions: int = 1
    unit: str = TRIP
    exactly: bool = False
    enforced: bool = False
    dropped: int = 0
    outside: int = 0
    bad: int = 0
    over: int = 0
    beyond: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.destinations is None:
            object.__setattr__(self, "destinations", self.regions)
        for name, kind in (("origin", np.int32), ("destination", np.int32), ("count", np.int64)):
            object.__setattr__(self, name, frozen(getattr(self, name), kind, name))
        object.__setattr__(self, "contributions", _most(self.contributions))
        if not isinstance(self.exactly, bool | np.bool_):
            raise InputError("exactly must be True or False: it is a declaration.")
        if self.unit not in (TRIP, PERSON) or (self.unit == TRIP and self.contributions > 1):
            raise InputError("unit must be 'person', or 'trip' where contributions is 1.")
        if self.outside + self.bad + self.over not in (0, self.dropped):
            raise InputError("outside, bad and over must add up to dropped.")
        self._check_pairs()

    def _check_pairs(self) -> None:
        matched(self.regions, self.ends)
        if not len(self.origin) == len(self.destination) == len(self.count):
            raise InputError("origin, destination and count must have the same length.")
        if not len(self.count):
            return
        inside = self.origin.min() >= 0 and self.origin.max() < self.regions.size(self.regions.depth)
        if not inside or self.destination.min() < 0 or self.destination.max() >= self.ends.size(self.ends.depth):
            raise InputError("origin and destination must be places of leaf regions.")
        pair = self.origin * np.int64(self.ends.size(self.ends.depth)) + self.destination
        if (pair[1:] <= pair[:-1]).any():
            raise InputError("Pairs must be distinct and ordered by origin, then destination.")
        if self.count.min() < 1 or too_many(self.count):
            raise InputError("Counts must be at least 1 and add up to at most 2**53.")

    @property
    def ends(self) -> Regions:
        """Where trips end: `destinations`, never None."""
        return self.destinations or self.regions

    @property
    def total(self) -> int:
        """All trips that are counted, `beyond` included, cut to 2**53: the same however they are spread over the pairs."""
        return int(self.count.sum()) + self.beyond

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        return f"Flows({self.regions!r}, unit={self.unit!r}, contributions={self.contributions})"

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        *,
        regions: Regions,
        destinations: Regions | None = None,
        person: str | ArrayLike | None = None,
        contributions: int = 1,
        distinct: bool = False,
        exactly: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
    ) -> Flows:
        """Add up trips per pair of leaf regions.

        Args:
            table: columns origin, destination (ids of leaf regions: texts, or whole numbers, which are spelt out) and count
                (whole numbers, >= 0; each row is one trip without it).
            regions: where trips begin.
            destinations: where they end, a hierarchy of the same depth; `regions` if None.
            person: a column of `table`, or (n,) entries, that say who a row belongs to; each person then keeps at most
                `contributions` trips, chosen at random. Without it and with contributions = 1, the protected unit is one
                trip; with contributions > 1, the curator vouches that no person has more.
            contributions: m >= 1.
            distinct: whether each person counts once in each pair, and keeps at most m distinct pairs.
            exactly: declare that every person has exactly m trips. With `person` it is enforced: people with fewer are refused
                or dropped.
            bad_rows: "refuse" raises on an unknown id, a missing cell or a bad count, "drop" leaves the row out.
            key: bytes that decide which trips a person keeps; fresh from the operating system if None.

        Raises:
            InputError: a missing column, or a bad row under "refuse"; names the column and the rule, never a cell. Under
                "drop" only what concerns a whole column raises: counts of which not one is a whole number, ids that are stored
                as numbers where those of the regions have leading zeros.
        """
        check_rule(bad_rows)
        ends = destinations or regions
        sides = ((_column(table, "origin"), regions), (_column(table, "destination"), ends))
        origin, destination = (leaf_places(ids_of(cells, f"Column {cells.name!r}"), side, bad_rows) for cells, side in sides)
        count = np.ones(len(table), np.int64)
        if "count" in table.columns:
            count = checked_counts(counts_of(_column(table, "count"), "Column 'count'"), bad_rows)
        owner = _column(table, person) if isinstance(person, str) else person
        return cls.from_trips(
            Trips(origin=origin, destination=destination, count=count, person=owner),
            regions=regions,
            destinations=ends,
            contributions=contributions,
            distinct=distinct,
            exactly=exactly,
            bad_rows=bad_rows,
            key=key,
        )

    @classmethod
    def from_trips(
        cls,
        trips: Trips,
        *,
        regions: Regions,
        destinations: Regions,
        contributions: int = 1,
        distinct: bool = False,
        exactly: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
    ) -> Flows:
        """Bound each person's trips and add up those of each pair; as `from_table`, from places instead of ids."""
        most = _most(contributions)
        refuse_unenforced(trips.person, 1, distinct=distinct)
        pair = pairs_of(trips.origin, trips.destination, destinations.size(destinations.depth))
        fewer = KEEP if not exactly else bad_rows
        bound = None if trips.person is None else bound_of(most, key, distinct=distinct, fewer=fewer)
        owners = None if trips.person is None else _owners(trips.person, len(pair), bad_rows)
        counted = counted_rows(pair, trips.count, owners, bound, regions.size(regions.depth) * destinations.size(destinations.depth))
        return cls.from_counted(
            replace(counted, bad=counted.bad + trips.ragged),
            regions=regions,
            destinations=destinations,
            contributions=most,
            exactly=exactly,
            enforced=bound is not None,
            notes=trips.notes,
        )

    @classmethod
    def from_counted(cls, counted: Counted, *, regions: Regions, destinations: Regions, **held: Any) -> Flows:
        """Take the trips per pair that a pass counted; `held` says to which bound, and who vouches for it."""
        origin, destination = np.divmod(counted.places, destinations.size(destinations.depth))
        return cls(
            regions,
            origin.astype(np.int32),
            destination.astype(np.int32),
            counted.counts,
            destinations=destinations,
            unit=PERSON if held["enforced"] or held["contributions"] > 1 else TRIP,
            dropped=counted.outside + counted.bad + counted.over,
            outside=counted.outside,
            bad=counted.bad,
            over=counted.over,
            beyond=counted.beyond,
            **held,
        )


def matched(regions: Regions, destinations: Regions) -> tuple[Regions, Regions]:
    """Both hierarchies, if they are of one depth."""
    if regions.depth != destinations.depth:
        raise InputError("Origins and destinations need hierarchies of the same depth.")
    return regions, destinations


def check_rule(bad_rows: str) -> None:
    """Refuse a rule for bad rows that is not known."""
    if bad_rows not in ("refuse", "drop"):
        raise InputError("bad_rows must be 'refuse' or 'drop'.")


def _most(contributions: object) -> int:
    if isinstance(contributions, bool) or not isinstance(contributions, int | np.integer) or contributions < 1:
        raise InputError("contributions must be a whole number, at least 1.")
    return int(contributions)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if not isinstance(table, pd.DataFrame):
        raise InputError("The table of trips must be a DataFrame.")
    found = [place for place, column in enumerate(table.columns) if column == name]
    if not found:
        raise InputError(f"The table of trips has no column {name!r}.")
    if len(found) > 1:
        raise InputError(f"The table of trips has several columns {name!r}; rename all but one.")
    return table.iloc[:, found[0]]


def _owners(person: ArrayLike | People, length: int, bad_rows: str) -> People:
    owners = people(person)
    if owners.codes.shape != (length,):
        raise InputError("The person column must have one entry per row.")
    if bad_rows == "refuse" and (owners.codes < 0).any():
        raise InputError(f"The person column has a missing cell: every row must say whom it belongs to. {REMEDY}")
    return owners
