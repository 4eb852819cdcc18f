"""Counts of made-up records on a public frame: evenly, or like a public density. Nothing of them comes from private data."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpviz.arrays import Integers
from dpviz.data.areas import AreaCounts
from dpviz.data.counts import Counts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.errors import InputError, SettingError, check_choice
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import BOUNDED, AnyMechanism, Mechanism
from dpviz.publishing.private_data import PrivateData, PublicFrame
from dpviz.publishing.public_guess import (
    EVEN,
    NO_SHARED_LEVEL,
    RELEASED,
    SEED,
    TOWNS,
    check_guess,
    guess_points,
    guess_regions,
    is_level_of,
    weigh_regions,
)
from dpviz.release.trip_release import TripRelease

DENOMINATOR = "as the denominator is"
SPREADS = (EVEN, TOWNS, DENOMINATOR, RELEASED)
"""How made-up records lie: evenly; of points and areas, most as residents of towns; in regions, by their public denominator; or by a
release's counts."""
MOST_RECORDS = 50_000_000
_MOST_PAIRS = 2**22  # pairs whose counts are drawn one by one; of more, trips are


@dataclass(frozen=True, kw_only=True)
class PublicGuess:
    """A guess of private data from public knowledge alone.

    Attributes:
        records: how many records or trips there may be, 1 to 50,000,000.
        spread: how they lie, one of `SPREADS`.
        pairs: of trips, on how many pairs of the finest regions, chosen at random; None for all of them.
        like: the release by whose counts they lie, for `RELEASED` alone.

    Raises:
        SettingError: a number out of its range, an unknown spread, or a release that is missing or does not belong here.
    """

    records: int
    spread: str = EVEN
    pairs: int | None = None
    like: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _check_number("records", self.records))
        if self.pairs is not None:
            object.__setattr__(self, "pairs", _check_number("pairs", self.pairs))
        check_choice(self.spread, SPREADS, "spread")
        if (self.spread == RELEASED) != (self.like is not None):
            raise SettingError(f"Made-up records lie {RELEASED} if, and only if, that release is given.")
        if self.pairs is not None and self.spread != EVEN:
            raise SettingError(f"A number of pairs needs trips that lie {EVEN} on them.")


def _check_number(name: str, number: Any) -> int:
    """Return a number of records or pairs as an int; whole numbers of numpy are also taken."""
    try:
        whole = 0 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        whole = 0
    if not 1 <= whole <= MOST_RECORDS:
        raise SettingError(f"{name} must be a whole number from 1 to {MOST_RECORDS:,}.")
    return whole


def count_no_records(mechanism: AnyMechanism, frame: PublicFrame | PrivateData, contributions: int = 1) -> PrivateData:
    """Make counts without any record on a public frame, of the kind that a mechanism takes. PUBLIC.

    Args:
        mechanism: says what is counted.
        frame: a domain; regions, of trips also a pair (origins, destinations); or counts, of which only frame, unit and bound are used.
        contributions: the bound m on the records of one person; of counts, theirs is used.

    Raises:
        SettingError: no built mechanism, but its key or class, for example.
        InputError: a frame of another family.
    """
    _check_built(mechanism)
    if isinstance(frame, Counts):
        mechanism.check_type(frame)
        return frame.without_records()
    counts = FAMILIES[mechanism.family].counts
    empty: PrivateData | None = counts.empty_in(frame, contributions, exactly=mechanism.neighbours == BOUNDED)
    if empty is None:
        raise InputError(f"{mechanism.title} needs {counts.frame_words} as its frame.")
    return empty


def _check_built(mechanism: object) -> None:
    if not isinstance(mechanism, Mechanism):
        name = mechanism.__name__ if isinstance(mechanism, type) else type(mechanism).__name__
        raise SettingError(f'Give a built mechanism, such as dpviz.PathTree() or dpviz.MECHANISMS["path_tree"](), not {name[:40]}.')


def check_fits(data: PrivateData, guess: PublicGuess) -> None:
    """Check a guess against a public frame, before any record is made up, counted or read.

    Args:
        data: only its frame is used.
        guess: how many records there may be, and how they lie.

    Raises:
        SettingError: a guess for another family, more pairs than there are, or regions without a denominator.
    """
    if guess.like is not None and guess.like.family != data.family:
        raise SettingError("The earlier release is of another kind: choose one of the same kind of data.")
    sides = data.sides
    if guess.spread == DENOMINATOR and not sides:
        raise SettingError("A domain has no denominator: choose how records lie in another way.")
    if guess.spread == TOWNS and len(sides) == 2:
        raise SettingError("Trips lie evenly, by the denominators, or as in an earlier release, not as towns do.")
    if guess.spread == DENOMINATOR and not all(side.denominator is not None and side.denominator.any() for side in sides):
        raise SettingError("These regions have no denominator, a public number of each: choose how records lie in another way.")
    if guess.pairs is None:
        return
    if len(sides) != 2:
        raise SettingError("Only trips lie on pairs of regions.")
    possible = math.prod(side.size(side.depth) for side in sides)
    if guess.pairs > possible:
        raise SettingError(f"There are {possible:,} pairs of the finest regions: pairs must be at most that, or None for all of them.")


def guess_records(data: PrivateData, guess: PublicGuess) -> PrivateData:
    """Replace data by made-up records; frame, unit and bound stay. The result is public, and the same for the same guess.

    Args:
        data: only its frame, unit and bound are used.
        guess: how many records there may be, and how they lie.

    Raises:
        SettingError: a guess that does not fit (see `check_fits`), or a release of other regions.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> made_up = guess_records(trips, PublicGuess(records=9_000, pairs=300))
    >>> len(made_up.count), int(made_up.count.sum()), made_up.count.min() > 9
    (300, 9000, np.True_)
    """
    check_fits(data, guess)
    made_up: PrivateData = FAMILIES[data.family].guess(data.without_records(), guess, np.random.default_rng(SEED))
    return made_up


def guess_in_cells(empty: PointCounts, guess: PublicGuess, rng: np.random.Generator) -> PointCounts:  # noqa: ARG001
    """Make up records of points: in towns, evenly, or as in an earlier release."""
    return guess_points(empty, guess.records, guess.spread, guess.like)


def guess_in_regions(empty: AreaCounts, guess: PublicGuess, rng: np.random.Generator) -> AreaCounts:
    """Make up records of areas: evenly, as towns are, by the denominator, or as in an earlier release; in each region evenly over slots."""
    regions = empty.regions
    if guess.spread == RELEASED:
        like = guess_regions(empty, regions.depth, guess.like)
        weight = np.repeat(like.count, like.number.astype(np.int64))
    elif guess.spread == DENOMINATOR:
        weight = np.asarray(regions.denominator, np.float64)
    elif guess.spread == TOWNS:
        weight = weigh_regions(regions)
    else:
        weight = np.ones(regions.size(regions.depth))
    if not weight.sum():
        raise SettingError("The earlier release has no records in these regions: choose another one.")
    by_slot = np.repeat(weight, empty.entries)
    count = rng.multinomial(guess.records, by_slot / by_slot.sum())
    cells = np.flatnonzero(count)
    places = empty.places_of(cells)
    return replace(empty, leaf=places["leaf"], slot=places["slot"], count=count[cells])


def guess_between_regions(empty: TripCounts, guess: PublicGuess, rng: np.random.Generator) -> TripCounts:
    """Make up trips: evenly, on some pairs, by the denominator, or as in an earlier release."""
    pair, count = _draw_pairs(empty, guess, rng)
    origin, destination = np.divmod(pair, empty.ends.size(empty.ends.depth))
    return replace(empty, origin=origin.astype(np.int32), destination=destination.astype(np.int32), count=count)


def _draw_pairs(trips: TripCounts, guess: PublicGuess, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Draw trips on pairs of finest regions: (k,) numbers of pairs, ascending, and (k,) trips of at least 1."""
    sides = (trips.regions, trips.ends)
    sizes = [side.size(side.depth) for side in sides]
    possible = sizes[0] * sizes[1]
    if guess.spread == RELEASED:
        return _draw_like(trips, guess.like, guess.records, rng)
    if guess.spread == DENOMINATOR:
        density = [np.asarray(side.denominator, np.float64) for side in sides]
        ends = [rng.choice(size, guess.records, p=each / each.sum()) for size, each in zip(sizes, density, strict=True)]
        return np.unique(ends[0] * np.int64(sizes[1]) + ends[1], return_counts=True)
    pairs = guess.pairs or possible
    if pairs > _MOST_PAIRS:
        return np.unique(rng.integers(0, possible, guess.records), return_counts=True)
    chosen = np.arange(possible) if pairs == possible else np.sort(rng.choice(possible, pairs, replace=False))
    count = rng.multinomial(guess.records, np.full(pairs, 1 / pairs))
    return chosen[count > 0], count[count > 0]


def _draw_like(trips: TripCounts, release: TripRelease, records: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Draw trips by the counts of a release, evenly inside its pairs where its regions are coarser."""
    sides = ((trips.regions, check_guess(release).tree.origins), (trips.ends, release.tree.destinations))
    shared = next((level for level in range(trips.regions.depth, 0, -1) if all(is_level_of(*side, level) for side in sides)), 0)
    if not shared:
        raise SettingError(NO_SHARED_LEVEL)
    table = release.to_frame(trips.regions.levels[shared - 1])
    weight = np.maximum(table["count"].to_numpy(np.float64), 0)
    if not weight.sum():
        raise SettingError("The earlier release has no trips: choose another one.")
    row = rng.choice(len(table), records, p=weight / weight.sum())
    leaves = []
    for name, (regions, _) in zip(("origin", "destination"), sides, strict=True):
        place = regions.find(table[name].to_numpy(object), shared)[row]
        first = np.searchsorted(regions.ancestors(shared), place)  # leaves are in the order of their ancestors
        leaves.append(first + (rng.random(records) * regions.leaf_count(shared)[place]).astype(np.int64))
    return np.unique(leaves[0] * np.int64(trips.ends.size(trips.ends.depth)) + leaves[1], return_counts=True)
