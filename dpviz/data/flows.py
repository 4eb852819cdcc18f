"""How many trips run between each pair of leaf regions: the private input of every trip mechanism."""

from __future__ import annotations

import secrets
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.data.arrays import frozen, too_many, whole_counts
from dpviz.data.bounding import kept_rows, people
from dpviz.errors import InputError
from dpviz.space.regions import Places, Regions

Integers = NDArray[np.int64]

TRIP, PERSON = "trip", "person"
_DROP = "Correct the table, or pass bad_rows='drop' to leave such rows out."


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
        dropped: trips left out (unknown regions, unreadable, over the bound); for the curator only, never released.

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

    def __post_init__(self) -> None:
        if self.destinations is None:
            object.__setattr__(self, "destinations", self.regions)
        for name, kind in (("origin", np.int32), ("destination", np.int32), ("count", np.int64)):
            object.__setattr__(self, name, frozen(getattr(self, name), kind, name))
        if isinstance(self.contributions, bool) or not isinstance(self.contributions, int) or self.contributions < 1:
            raise InputError("contributions must be a whole number, at least 1.")
        if self.unit not in (TRIP, PERSON) or (self.unit == TRIP and self.contributions > 1):
            raise InputError("unit must be 'person', or 'trip' where contributions is 1.")
        self._check_pairs()

    def _check_pairs(self) -> None:
        if self.regions.depth != self.ends.depth:
            raise InputError("Origins and destinations need hierarchies of the same depth.")
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
        exactly: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
    ) -> Flows:
        """Add up trips per pair of leaf regions.

        Args:
            table: columns origin, destination (ids of leaf regions) and count (whole, >= 0; each row is one trip without it).
            regions: where trips begin.
            destinations: where they end, a hierarchy of the same depth; `regions` if None.
            person: a column of `table`, or (n,) entries, that say who a row belongs to; each person then keeps at most
                `contributions` trips, chosen at random. Without it and with contributions = 1, the protected unit is one
                trip; with contributions > 1, the curator vouches that no person has more.
            contributions: m >= 1.
            exactly: declare that every person has exactly m trips. With `person` it is enforced: people with fewer are refused
                or dropped.
            bad_rows: "refuse" raises on an unknown id, a missing cell or a bad count, "drop" leaves the row out.
            key: bytes that decide which trips a person keeps; fresh from the operating system if None.

        Raises:
            InputError: a missing column, or a bad row under "refuse"; names the column and the rule, never a cell.
        """
        if bad_rows not in ("refuse", "drop"):
            raise InputError("bad_rows must be 'refuse' or 'drop'.")
        ends = destinations or regions
        trips = _counts(table, bad_rows)
        origin, destination = (_places(table, column, side, bad_rows) for column, side in (("origin", regions), ("destination", ends)))
        weight = np.where((origin < 0) | (destination < 0), 0, np.maximum(trips, 0))
        total = int(np.abs(trips).sum())
        if person is not None:
            owner = _column(table, person) if isinstance(person, str) else person
            rows = _bounded(owner, weight, (contributions, exactly), bad_rows, key)
            origin, destination, weight = origin[rows], destination[rows], np.ones(len(rows), np.int64)
        unit = PERSON if person is not None or contributions != 1 else TRIP
        pairs = _summed(origin, destination, weight, ends.size(ends.depth))
        return cls(
            regions,
            *pairs,
            destinations=ends,
            contributions=contributions,
            unit=unit,
            exactly=bool(exactly),
            enforced=person is not None,
            dropped=total - int(pairs[2].sum()),
        )


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table.columns:
        raise InputError(f"The table of trips has no column {name!r}.")
    return table[name]


def _counts(table: pd.DataFrame, bad_rows: str) -> Integers:
    """(n,) trips per row; -1 marks a row to drop."""
    if "count" not in table.columns:
        return np.ones(len(table), np.int64)
    values = table["count"].to_numpy(na_value=np.nan) if table["count"].isna().any() else table["count"].to_numpy()
    if len(values) == 0:
        return np.zeros(0, np.int64)
    return whole_counts(values, len(table), bad_rows)


def _places(table: pd.DataFrame, column: str, regions: Regions, bad_rows: str) -> Places:
    """(n,) places of the ids in a column, found once per distinct id; -1 where a row is to be dropped."""
    code, ids = pd.factorize(_column(table, column), use_na_sentinel=True)
    if bad_rows == "refuse" and (code < 0).any():
        raise InputError(f"Column {column!r} has a missing cell. {_DROP}")
    texts = [str(value) if isinstance(value, str | int | np.integer) else None for value in ids]
    known = np.append(regions.find(texts, regions.depth), np.int32(-1))
    if bad_rows == "refuse" and (known[:-1] < 0).any():
        raise InputError(f"Column {column!r} has an id that is no leaf region. {_DROP}")
    return known[code]


def _bounded(owner: ArrayLike, weight: Integers, bound: tuple[int, bool], bad_rows: str, key: bytes | None) -> Integers:
    """Rows of the trips that people keep; of people with exactly m of them only, where that was declared."""
    owners, (most, exactly) = people(owner), bound
    if owners.codes.shape != weight.shape:
        raise InputError("The person column must have one entry per row.")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InputError("contributions must be a whole number, at least 1.")
    if bad_rows == "refuse" and (owners.codes < 0).any():
        raise InputError(f"The person column has a missing cell. {_DROP}")
    rows = kept_rows(owners, weight, most, key or secrets.token_bytes(16))
    if exactly:
        number = np.bincount(owners.codes[rows], minlength=len(owners.distinct))
        if bad_rows == "refuse" and ((number > 0) & (number < most)).any():
            raise InputError(f"Somebody has fewer trips than were declared for everybody. {_DROP}")
        rows = rows[number[owners.codes[rows]] == most]
    return rows


def _summed(origin: Places, destination: Places, weight: Integers, width: int) -> tuple[Places, Places, Integers]:
    """Distinct pairs with trips, ordered by origin, then destination, and the trips of each."""
    some = weight > 0
    pair = origin[some] * np.int64(width) + destination[some]
    pairs, place = np.unique(pair, return_inverse=True)
    counts = np.bincount(place, weights=weight[some], minlength=len(pairs)).astype(np.int64)
    one, other = np.divmod(pairs, width)
    return one.astype(np.int32), other.astype(np.int32), counts
