"""Audits of mechanisms: made-up neighbouring inputs of every family, and what an attacker sees of a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.data.areas import AreaCounts
from dpviz.data.counts import Counts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.entropy import Entropy
from dpviz.release.base import NoisyRelease
from dpviz.release.facts import MANIFESTS
from dpviz.release.manifest import describe_contents
from dpviz.space.categories import Categories
from dpviz.space.regions import Regions
from dpviz.space.summed import Summed

BUSY = 100
Data = TypeVar("Data", bound=Counts)
Numbers = dict[Hashable, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Added(Generic[Data]):
    """Records of one person that are added to the leaves of a public frame, or moved to them from others.

    A leaf is a cell of a lattice (row by row from the south), a finest region, or a pair of finest regions (by origin).

    Attributes:
        frame: description of the frame, and of the records beside those of the person, for the audit's table.
        make: makes data of the family from (leaves,) counts.
        beside: (leaves,) counts without the person's records.
        leaves: the leaf of each added record; a leaf may occur several times.
        origins: the leaf from which each record is moved, if records are moved.
        per_slot: of counts by slot, the bound that is declared on the person's records in one slot; None for none.
    """

    frame: str
    make: Callable[[Integers], Data]
    beside: Integers
    leaves: tuple[int, ...]
    origins: tuple[int, ...] = ()
    per_slot: int | None = None

    @classmethod
    def to_cells(
        cls, order: int, occupied: tuple[tuple[int, int, int], ...] = (), cells: tuple[tuple[int, int], ...] = ((0, 0),)
    ) -> Added[PointCounts]:
        """Add a record to each of some cells (column, row) of a lattice; others are `occupied` by (column, row, number of records)."""
        side = 1 << order
        beside = np.zeros(side * side, np.int64)
        for column, row, number in occupied:
            beside[column + side * row] = number
        return Added(
            frame=f"cells of {side} x {side}, beside {beside.sum():,} others",
            make=lambda counts: PointCounts.from_matrix(counts.reshape(side, side)),
            beside=beside,
            leaves=tuple(column + side * row for column, row in cells),
        )

    @classmethod
    def to_regions(cls, fan_outs: tuple[int, ...], records: int, leaves: tuple[int, ...], origins: tuple[int, ...]) -> Added[AreaCounts]:
        """Add records to some of the `regular_regions`, each of which has a number of records."""
        regions = regular_regions(fan_outs)
        frame = f"regions of {' x '.join(map(str, fan_outs))}, beside {records} in each"
        make = partial(AreaCounts.from_counts, regions=regions)
        return Added(frame=frame, make=make, beside=np.full(regions.size(regions.depth), records), leaves=leaves, origins=origins)

    @classmethod
    def to_slots(
        cls, fan_outs: tuple[int, ...], slots: tuple[int, ...] | Summed, cells: tuple[tuple[int, int], ...], per_slot: int | None = None
    ) -> Added[AreaCounts]:
        """Add records to some cells (region, slot) of `regular_regions` by equally regular categories, or (region, steps) of values.

        Others are in every cell: 2 records. Moved records come from other regions, and from the same slots.
        """
        regions, categories = regular_regions(fan_outs), slots if isinstance(slots, Summed) else _regular_categories(slots)
        places, width = regions.size(regions.depth), categories.entries

        def make(counts: Integers) -> AreaCounts:
            leaf, slot = np.divmod(np.flatnonzero(counts), width)
            return AreaCounts(
                regions=regions,
                categories=categories,
                leaf=leaf.astype(np.int32),
                slot=slot.astype(np.int32),
                count=counts[counts > 0],
            )

        return Added(
            frame=f"cells of {' x '.join(map(str, fan_outs))} regions by {categories!r}, beside 2 in each",
            make=make,
            beside=np.full(places * width, 2),
            leaves=tuple(region * width + slot for region, slot in cells),
            origins=tuple((places - 1 - region) * width + slot for region, slot in cells),
            per_slot=per_slot,
        )

    @classmethod
    def to_pairs(
        cls, fan_outs: tuple[int, ...], trips: tuple[int, int], pairs: tuple[int, ...] = (0,), origins: tuple[int, ...] = (0,)
    ) -> Added[TripCounts]:
        """Add trips to some pairs of `regular_regions`.

        Args:
            fan_outs: of the regions.
            trips: number of trips on every pair of leaves but the last one, and on the last pair, before trips are added.
            pairs: the pair of leaves to which each trip is added, counted from the last pair.
            origins: the pair from which each trip is moved, counted from the first pair.
        """
        regions = regular_regions(fan_outs)
        width = regions.size(regions.depth)
        beside = np.full(width**2, trips[0])
        beside[-1] = trips[1]

        def make(counts: Integers) -> TripCounts:
            occupied = np.flatnonzero(counts)
            origin, destination = (places.astype(np.int32) for places in divmod(occupied, width))
            return TripCounts(regions=regions, origin=origin, destination=destination, count=counts[occupied])

        frame = f"pairs of {' x '.join(map(str, fan_outs))} regions, beside {trips[1]} on the last one and {trips[0]} on the others"
        return Added(frame=frame, make=make, beside=beside, leaves=tuple(width**2 - 1 - pair for pair in pairs), origins=origins)

    @property
    def words(self) -> str:
        """Description of the two inputs and their difference, for the audit's table."""
        number, leaves = len(self.leaves), len(set(self.leaves))
        who = "a record" if number == 1 else f"a person's {number} records"
        return f"{who} in {leaves} of the {self.frame}"

    def inputs(self, *, moved: bool = False) -> tuple[Data, Data]:
        """Make two inputs: with the person's records in `leaves`, and without them, or if `moved` with these records in `origins`."""
        one, other = self.beside.copy(), self.beside.copy()
        np.add.at(one, np.array(self.leaves), 1)
        if moved:
            np.add.at(other, np.array(self.origins), 1)
        return self._declare(self.make(one), moved=moved), self._declare(self.make(other), moved=moved)

    def _declare(self, data: Data, *, moved: bool) -> Data:
        """Declare the bound on the records of one person, which everybody has in full if trips are moved."""
        if len(self.leaves) == 1:
            return data
        owned = data.of_persons(len(self.leaves), exactly=moved)
        return owned if self.per_slot is None else replace(owned, per_slot=self.per_slot)  # type: ignore[call-arg]


PERSON = Added.to_cells(order=2, occupied=((3, 3, 1),), cells=((3, 3), (3, 3)))
SPREAD = Added.to_cells(order=2, occupied=((3, 3, 1), (1, 0, 6)), cells=((3, 3), (3, 3), (0, 0), (1, 2)))
"""One person's records in several cells and several nodes of each level; some of these nodes are split further than others."""
USUAL = (Added.to_cells(order=1), PERSON, SPREAD)
MEDIANS = (Added.to_cells(order=1), Added.to_cells(order=2, occupied=((0, 0, 1), (1, 1, 1), (3, 3, 1)), cells=((3, 3),)), SPREAD)
TUNING = (PERSON, Added.to_cells(order=3, occupied=((0, 0, 20),)), SPREAD)
BUCKETS = (*USUAL, Added.to_cells(order=2, occupied=((0, 0, 9), (1, 0, 9), (0, 1, 9), (1, 1, 8)), cells=((1, 1),)))
"""With the record, the quarter around it is evenly filled and the whole less so: of two partitions, one costs less and the other more."""

_NODES = tuple((16 * column, 16 * row) for column in range(4) for row in range(4))
ACROSS = Added.to_cells(
    order=6,
    occupied=tuple((west + offset, south, 50) for west, south in _NODES for offset in (1, 14)),
    cells=tuple((west + 14, south) for west, south in _NODES),
)
"""A person with one record in each of 16 nodes of one level; each moves its node's median from one end to the other."""


def regular_regions(fan_outs: tuple[int, ...]) -> Regions:
    """Make regions in which all regions of a level have equally many children: those of the root, of each child of the root, and so on."""
    sizes = np.cumprod(fan_outs)
    levels = [f"level {depth}" for depth in range(1, len(sizes) + 1)]
    numbers = {name: np.arange(sizes[-1]) // (sizes[-1] // size) for name, size in zip(levels, sizes, strict=True)}
    return Regions.from_table(
        pd.DataFrame({name: [f"{name}: {leaf}" for leaf in leaves] for name, leaves in numbers.items()}), levels=levels
    )


def _regular_categories(fan_outs: tuple[int, ...]) -> Categories:
    nested = regular_regions(fan_outs)
    return Categories(levels=nested.levels, ids=nested.ids, parent=nested.parent, names=nested.names)


AREAS = (
    Added.to_regions((2,), 5, (0,), (1,)),
    Added.to_regions((2, 2), 0, (3,), (0,)),
    Added.to_regions((2, 2), 3, (3, 3), (0, 0)),
    Added.to_regions((2, 3), 1, (0, 2, 4), (5, 5, 1)),
)
"""One record; and one person's records, all in one leaf, or in leaves of several regions of each level."""
CROSS = (
    Added.to_slots((2,), (2,), ((0, 0),)),
    Added.to_slots((2, 2), (2, 2), ((0, 0), (0, 1), (0, 3)), per_slot=1),
    Added.to_slots((2, 2), (2, 2), ((1, 2), (1, 2), (1, 2))),
)
"""One record; and one person's records in one place, spread over slots of which each holds one, or all inside one slot."""
MEANS = (
    Added.to_slots((2,), Summed(low=0, high=3), ((0, 3),)),
    Added.to_slots((2, 2), Summed(low=-1, high=1, step=0.5), ((0, 0), (0, 4), (1, 1))),
)
"""One record with the largest value; and one person's records with values at both bounds and between."""
TRIPS = (Added.to_pairs((2,), (BUSY, BUSY)), Added.to_pairs((2, 2), (BUSY, 0)))
PEOPLE = (
    Added.to_pairs((2, 2), (BUSY, 0), pairs=(0, 0), origins=(0, 0)),
    Added.to_pairs((2, 2), (BUSY, 0), pairs=(0, 0, 5), origins=(0, 2, 8)),
)
"""One person's trips, all on one pair, or on pairs in several nodes of each stage; for mechanisms that take several trips per person."""


def pair_of(words: str, inputs: tuple[Data, Data], observe: Callable[[Data, Entropy], Observation]) -> Neighbours:
    """Make a pair of neighbouring inputs with what an attacker observes of a run on each."""
    one, other = inputs
    return Neighbours(words=words, one=partial(observe, one), other=partial(observe, other))


def read_release(release: Any, *leaves: int) -> Observation:
    """Read everything in a release that can show a person's records in some leaves.

    Of nodes, these are counts as measured first, measured again and released, with variances and, in space, rectangles: of the nodes on
    the path from the root to each leaf, and of all nodes if they are at most 40. Of pairs of regions, the counts of all stages. For a
    wavelet: its coefficients. And the facts of receipt and manifest: settings, notes, steps.
    """
    rows, variance = release.observe(leaves)
    numbers = _read_receipt(release) | dict(_flatten(MANIFESTS.write(describe_contents(release)), ("manifest",)))
    for labels, values in rows:
        columns = {name: given.tolist() for name, given in values.items()}
        numbers |= {(name, *label): column[place] for place, label in enumerate(labels) for name, column in columns.items()}
    return Observation(numbers={name: value for name, value in numbers.items() if math.isfinite(value)}, chance=largest_chance(variance))


def _read_receipt(release: NoisyRelease) -> Numbers:
    """Collect the facts of a receipt: the value 1 for each text, and the cost and noise of each step."""
    receipt = release.receipt
    facts = (receipt.unit, receipt.neighbours, receipt.total, receipt.contributions, receipt.converted)
    numbers: Numbers = {("text", text): 1.0 for text in (*map(str, facts), *receipt.notes, *receipt.unprotected, *release.steps)}
    for number, step in enumerate(receipt.steps):
        numbers["numbers measured in step", number, step.purpose] = -1 if step.counts is None else step.counts
        numbers["amount of step", number, step.purpose, step.level, step.noise, step.replaces_later] = float(step.amount)
        numbers["scale of step", number], numbers["sensitivity of step", number] = float(step.scale), float(step.sensitivity)
        numbers["delta of step", number] = float(step.delta)
    return numbers


def _flatten(facts: object, name: tuple[Hashable, ...]) -> Iterator[tuple[Hashable, float]]:
    """Yield each number and each text of a manifest, with the path of keys that leads to it."""
    if isinstance(facts, dict | list):
        for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
            yield from _flatten(value, (*name, key))
    elif isinstance(facts, int | float):
        yield name, float(facts)
    else:
        yield (*name, str(facts)), 1.0


def largest_chance(variance: Floats) -> float:
    """Bound the probability of the likeliest outcome of k independent whole-number noises with (k,) variances.

    The bound is the product of 1 / sqrt(1 + 2 variance) over finite variances. No symmetric log-concave distribution on whole numbers has
    a larger probability at 0.

    Source:
        Bobkov, Marsiglietti, Melbourne, "Concentration functions and entropy bounds for discrete log-concave distributions", 2022.
    """
    return float(np.exp(-np.log1p(2 * variance[np.isfinite(variance)]).sum() / 2))
