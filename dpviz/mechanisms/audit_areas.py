"""Audits of mechanisms of areas: neighbouring made-up counts of few regions, and what an attacker sees of their releases."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from dpviz.arrays import Integers
from dpviz.data.areas import PERSON, RECORD, AreaCounts
from dpviz.mechanisms.audit_numbers import largest_chance, receipt_numbers
from dpviz.mechanisms.audit_trips import regular_regions
from dpviz.privacy.audit import Observation
from dpviz.release.area_release import AreaRelease
from dpviz.space.regions import Regions


class AddedRecords(NamedTuple):
    """Records of one person that are added to leaf regions, or moved to them.

    Attributes:
        fan_outs: number of children of the root, of each child of the root, and so on.
        records: number of records of every leaf, before records are added.
        leaves: the leaf of each added record; a leaf may occur several times.
        origins: the leaf from which each record is moved, if records are moved.
    """

    fan_outs: tuple[int, ...]
    records: int
    leaves: tuple[int, ...]
    origins: tuple[int, ...]

    @property
    def words(self) -> str:
        """Description of the two inputs and their difference, for the audit's table."""
        levels, number = " x ".join(map(str, self.fan_outs)), len(self.leaves)
        who = "a record" if number == 1 else f"a person's {number} records in {len(set(self.leaves))} region(s)"
        return f"{who} of {levels} regions, beside {self.records} in each"

    def inputs(self, *, moved: bool) -> tuple[AreaCounts, AreaCounts]:
        """Make two inputs: with the person's records in `leaves`, and without them, or if `moved` with these records in `origins`."""
        regions = regular_regions(self.fan_outs)
        one, other = (np.full(regions.size(regions.depth), self.records, np.int64) for _ in range(2))
        np.add.at(one, np.array(self.leaves), 1)
        if moved:
            np.add.at(other, np.array(self.origins), 1)
        bound: dict[str, Any] = {"contributions": len(self.leaves), "unit": RECORD if len(self.leaves) == 1 else PERSON}
        return _make_areas(regions, one, **bound), _make_areas(regions, other, **bound)


AREAS = (
    AddedRecords((2,), 5, (0,), (1,)),
    AddedRecords((2, 2), 0, (3,), (0,)),
    AddedRecords((2, 2), 3, (3, 3), (0, 0)),
    AddedRecords((2, 3), 1, (0, 2, 4), (5, 5, 1)),
)
"""One record; and one person's records, all in one leaf, or in leaves of several regions of each level."""


def read_area_release(release: AreaRelease) -> Observation:
    """Read everything in a release of areas: counts of all levels as measured, estimated and released, and what the receipt says."""
    numbers: dict[Hashable, float] = receipt_numbers(release)
    for level in range(release.regions.depth + 1):
        nodes = release.nodes(level)
        for name, values in (("noisy records", release.noisy), ("estimated records", release.centre), ("records", release.count)):
            numbers |= {(name, level, region): value for region, value in enumerate(values[nodes].tolist()) if math.isfinite(value)}
    if release.hidden is not None:
        numbers |= {("hidden", leaf): float(value) for leaf, value in enumerate(release.hidden.tolist())}
    return Observation(numbers=numbers, chance=largest_chance(release.noise_variance))


def _make_areas(regions: Regions, count: Integers, **bound: Any) -> AreaCounts:
    occupied = np.flatnonzero(count)
    return AreaCounts(regions=regions, leaf=occupied.astype(np.int32), count=count[occupied], **bound)
