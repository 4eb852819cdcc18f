"""Audits of trip mechanisms: neighbouring made-up trips between few regions, and what an attacker sees of their releases."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpviz.arrays import Integers
from dpviz.data.trips import TripCounts
from dpviz.mechanisms.audit_numbers import largest_chance, manifest_numbers
from dpviz.privacy.audit import Observation
from dpviz.release.trip_release import TripRelease
from dpviz.space.regions import Regions

BUSY = 100


class Moved(NamedTuple):
    """Trips of one person that are moved or added.

    Attributes:
        fan_outs: number of children of the root, of each child of the root, and so on.
        trips: number of trips on every pair of leaves but the last one, and on the last pair, before trips are moved or added.
        pairs: the pair of leaves to which each trip is moved or added, counted from the last pair; a pair may occur several times.
        origins: the pair from which each trip is moved, counted from the first pair.
    """

    fan_outs: tuple[int, ...]
    trips: tuple[int, int]
    pairs: tuple[int, ...] = (0,)
    origins: tuple[int, ...] = (0,)

    @property
    def words(self) -> str:
        """Description of the two inputs and their difference, for the audit's table."""
        levels, trips = " x ".join(map(str, self.fan_outs)), len(self.pairs)
        who = "a trip on the last pair" if trips == 1 else f"a person's {trips} trips on {len(set(self.pairs))} pair(s)"
        return f"{who} of {levels} regions, beside {self.trips[1]} on the last one and {self.trips[0]} on the others"

    def inputs(self, *, moved: bool) -> tuple[TripCounts, TripCounts]:
        """Make two inputs: with the person's trips on `pairs`, and without them, or if `moved` with these trips on `origins` instead."""
        regions = regular_regions(self.fan_outs)
        number = regions.size(regions.depth)
        other = np.full(number**2, self.trips[0], np.int64)
        other[-1] = self.trips[1]
        one = other.copy()
        np.add.at(one, len(one) - 1 - np.array(self.pairs), 1)
        if moved:
            np.add.at(other, np.array(self.origins), 1)
        several = len(self.pairs) > 1
        bound = {"contributions": len(self.pairs), "unit": "person" if several else "trip", "exactly": moved and several}
        return _make_trips(regions, one, **bound), _make_trips(regions, other, **bound)


TRIPS = (Moved((2,), (BUSY, BUSY)), Moved((2, 2), (BUSY, 0)))
PEOPLE = (
    Moved((2, 2), (BUSY, 0), pairs=(0, 0), origins=(0, 0)),
    Moved((2, 2), (BUSY, 0), pairs=(0, 0, 5), origins=(0, 2, 8)),
)
"""One person's trips, all on one pair, or on pairs in several nodes of each stage; for mechanisms that take several trips per person."""


def read_trip_release(release: TripRelease) -> Observation:
    """Read everything in a release of trips: the pairs of all stages with measured and released counts, and the manifest's facts."""
    numbers, log_chance = manifest_numbers(release), 0.0
    for stage, counts in enumerate(release.stages):
        numbers["numbers measured in stage", stage] = counts.measured
        pairs = zip(counts.origin.tolist(), counts.destination.tolist(), counts.noisy.tolist(), counts.count.tolist(), strict=True)
        for origin, destination, noisy, count in pairs:
            numbers["noisy trips", stage, origin, destination] = noisy
            numbers["trips", stage, origin, destination] = count
        if math.isfinite(counts.variance):
            log_chance += math.log(largest_chance(np.full(len(counts.count), counts.variance)))
    return Observation(numbers=numbers, chance=math.exp(log_chance))


def regular_regions(fan_outs: tuple[int, ...]) -> Regions:
    """Make regions in which all regions of a level have equally many children."""
    sizes = np.cumprod(fan_outs)
    levels = [f"level {depth}" for depth in range(1, len(sizes) + 1)]
    leaf = np.arange(sizes[-1])
    table = pd.DataFrame(
        {name: [f"{name}: {leaf_number}" for leaf_number in leaf // (sizes[-1] // size)] for name, size in zip(levels, sizes, strict=True)}
    )
    return Regions.from_table(table, levels=levels)


def _make_trips(regions: Regions, count: Integers, **bound: Any) -> TripCounts:
    width, occupied = regions.size(regions.depth), np.flatnonzero(count)
    return TripCounts(regions, (occupied // width).astype(np.int32), (occupied % width).astype(np.int32), count[occupied], **bound)
