"""Neighbouring inputs for audits, and what an attacker who knows them sees of a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.mechanisms.flow_measure import ADD_REMOVE, BOUNDED
from dpviz.privacy.audit import Neighbours, Sight
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.wavelet import WaveletSpread, coefficients
from dpviz.release.contents import contents_facts
from dpviz.release.flow_release import FlowRelease
from dpviz.release.release import Release
from dpviz.space.regions import Regions
from dpviz.space.tree import Tree

MOST_NODES = 40
BUSY = 100

Numbers = dict[Hashable, float]


class Added(NamedTuple):
    """Records to add to an input.

    Attributes:
        order: of the lattice.
        beside: column, row and number of the records that are there before, occupied cell by occupied cell.
        cell: column and row where records are added.
        records: how many, all of one person where more than one.
    """

    order: int
    beside: tuple[tuple[int, int, int], ...] = ()
    cell: tuple[int, int] = (0, 0)
    records: int = 1

    @property
    def words(self) -> str:
        """How the inputs differ."""
        who = "a record" if self.records == 1 else f"a person's {self.records} records"
        rest = ", ".join(f"{number} in ({column}, {row})" for column, row, number in self.beside)
        return f"{who} in cell {self.cell} of {1 << self.order} x {1 << self.order}, beside {rest or 'none'}"

    def inputs(self) -> tuple[PointCounts, PointCounts]:
        """With the records, and without."""
        matrix = np.zeros((1 << self.order, 1 << self.order), np.int64)
        for column, row, number in self.beside:
            matrix[row, column] = number
        more = matrix.copy()
        more[self.cell[1], self.cell[0]] += self.records
        one, other = (replace(PointCounts.from_matrix(each), contributions=self.records) for each in (more, matrix))
        return one, other


PERSON = Added(order=2, beside=((3, 3, 1),), cell=(3, 3), records=2)
USUAL = (Added(order=1), PERSON)
MEDIANS = (Added(order=1), Added(order=2, beside=((0, 0, 1), (1, 1, 1), (3, 3, 1)), cell=(3, 3)))
TUNING = (PERSON, Added(order=3, beside=((0, 0, 20),)))
WORST = {"kdtree": MEDIANS, "exact_kdtree": MEDIANS, "hilbert_tree": MEDIANS, "tuned": TUNING, "tuned_grid": TUNING}
"""Inputs for mechanisms that would show no structure on the usual ones: medians it moves, room for a choice."""


def point_pairs(mechanism: Any, budget: Budget) -> list[Neighbours]:
    """Pairs of points on small lattices, with the mechanism run on them."""
    return [_points(mechanism, budget, added) for added in WORST.get(getattr(mechanism, "key", ""), USUAL)]


def _points(mechanism: Any, budget: Budget, added: Added) -> Neighbours:
    def run(points: PointCounts) -> Callable[[Entropy], Sight]:
        return lambda entropy: seen(mechanism.release(points, budget, entropy), added.cell)

    one, other = added.inputs()
    return Neighbours(words=added.words, one=run(one), other=run(other))


def seen(release: Release, cell: tuple[int, int]) -> Sight:
    """What a release shows to somebody who looks for a record in a cell.

    All that lies on the path from the root to the cell: rectangles, counts as first measured, measured again and as released. All
    nodes by their place, if they are at most 40. The coefficients of a wavelet. Whatever its manifest says: settings, notes, height.
    """
    tree, numbers = release.tree, _said(release)
    numbers["number of nodes"] = len(tree)
    path = _path(tree, cell, release.domain.order)
    shown = np.arange(len(tree)) if len(tree) <= MOST_NODES else path
    unbiased = release.count if release.unbiased is None else release.unbiased
    again = release.noisy if release.again is None else release.again
    for depth, (node, box) in enumerate(zip(path.tolist(), tree.rectangles(path).tolist(), strict=True)):
        numbers["noisy count at depth", depth], numbers["count at depth", depth] = release.noisy[node], release.count[node]
        numbers["second count at depth", depth] = again[node]
        numbers["variance at depth", depth] = release.noise_variance[node]
        numbers["unbiased count at depth", depth], numbers["deviation at depth", depth] = unbiased[node], release.stddev[node]
        for side, line in zip(("west", "south", "east", "north"), box, strict=True):
            numbers[f"{side} at depth", depth] = line
    if len(shown) == len(tree):
        boxes = map(tuple, tree.rectangles().tolist())
        for box, noisy, count in zip(boxes, release.noisy.tolist(), release.count.tolist(), strict=True):
            numbers["noisy count in", *box], numbers["count in", *box] = noisy, count
    if isinstance(release.spread, WaveletSpread):
        found = coefficients(release.blocks(release.spread.order)).ravel()  # type: ignore[arg-type]
        numbers |= {("coefficient", place): round(value) for place, value in enumerate(found.tolist())}
    chance = _point_chance(release, shown)
    return Sight(numbers={name: value for name, value in numbers.items() if math.isfinite(value)}, chance=chance)


def _path(tree: Tree, cell: tuple[int, int], order: int) -> NDArray[np.int64]:
    """Nodes that hold a cell, from the root on."""
    column, row = cell
    if tree.curve is not None:
        place = int(tree.curve.places(np.array([column]), np.array([row]), order)[0])
        return np.flatnonzero((tree.curve.first <= place) & (place < tree.curve.last))
    return np.flatnonzero((tree.west <= column) & (column < tree.east) & (tree.south <= row) & (row < tree.north))


def _said(release: Release | FlowRelease) -> Numbers:
    """What a manifest says beside tables: texts, each once, what each step cost and how it was noised, and its contents."""
    receipt = release.receipt
    told = (receipt.unit, receipt.neighbours, receipt.total, receipt.contributions, receipt.converted)
    texts = (*map(str, told), *receipt.notes, *receipt.unprotected, *release.steps)
    numbers: Numbers = {("text", text): 1.0 for text in texts}
    for place, step in enumerate(receipt.steps):
        numbers["numbers measured in step", place, step.purpose] = -1 if step.counts is None else step.counts
        numbers["amount of step", place, step.purpose, step.level, step.noise, step.instead] = float(step.amount)
        numbers["scale of step", place], numbers["sensitivity of step", place] = float(step.scale), float(step.sensitivity)
        numbers["delta of step", place] = float(step.delta)
    return numbers | dict(_leaves(contents_facts(release), ("manifest",)))


def _leaves(facts: object, name: tuple[Hashable, ...]) -> Iterator[tuple[Hashable, float]]:
    """Each number and each text of a manifest, by its place in it."""
    if isinstance(facts, dict | list):
        for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
            yield from _leaves(value, (*name, key))
    elif isinstance(facts, int | float):
        yield name, float(facts)
    else:
        yield (*name, str(facts)), 1.0


def _point_chance(release: Release, shown: NDArray[np.int64]) -> float:
    """The largest chance of the noises that are seen: on some nodes, or on all coefficients of a wavelet."""
    if isinstance(release.spread, WaveletSpread):
        return _chance(np.full(4**release.spread.order, release.spread.variance))
    return _chance(release.noise_variance[shown][~np.isnan(release.noisy[shown])])


def _chance(variance: NDArray[np.float64]) -> float:
    """The largest chance of any whole-number noise of (k,) variances: 1 / sqrt(1 + 2 variance) each.

    No symmetric log-concave law on whole numbers has more at 0.

    Source:
        Bobkov, Marsiglietti, Melbourne, "Concentration functions and entropy bounds for discrete log-concave distributions", 2022.
    """
    return float(np.exp(-np.log1p(2 * variance[np.isfinite(variance)]).sum() / 2))


class Moved(NamedTuple):
    """A trip to move or add.

    Attributes:
        fan_outs: children of the root, of its children, and so on.
        trips: on every pair of leaves but the last, and on the last one.
    """

    fan_outs: tuple[int, ...]
    trips: tuple[int, int]

    @property
    def words(self) -> str:
        """The inputs."""
        levels = " x ".join(map(str, self.fan_outs))
        return f"a trip on the last pair of {levels} regions, beside {self.trips[1]} there and {self.trips[0]} on the other pairs"

    def inputs(self, *, moved: bool) -> tuple[Flows, Flows]:
        """With the trip, and without; if it is moved, the first pair has it then."""
        regions = _regular(self.fan_outs)
        number = regions.size(regions.depth)
        count = np.full(number**2, self.trips[0], np.int64)
        count[-1] = self.trips[1]
        one, other = count.copy(), count
        one[-1] += 1
        other[0] += moved
        return _flows(regions, one), _flows(regions, other)


TRIPS = (Moved((2,), (BUSY, BUSY)), Moved((2, 2), (BUSY, 0)))


def flow_pairs(mechanism: Any, budget: Budget) -> list[Neighbours]:
    """Pairs of trips between few regions, with the mechanism run on them."""
    moved = getattr(mechanism, "neighbours", BOUNDED) != ADD_REMOVE

    def run(flows: Flows) -> Callable[[Entropy], Sight]:
        return lambda entropy: flows_seen(mechanism.release(flows, budget, entropy))

    inputs = [(pair.words, pair.inputs(moved=moved)) for pair in TRIPS]
    return [Neighbours(words=words, one=run(one), other=run(other)) for words, (one, other) in inputs]


def flows_seen(release: FlowRelease) -> Sight:
    """What a release of trips shows: all pairs of all stages, as measured and as released, which of them exist, and its texts."""
    numbers, log_chance = _said(release), 0.0
    for stage, at in enumerate(release.stages):
        numbers["numbers measured in stage", stage] = at.measured
        pairs = zip(at.origin.tolist(), at.destination.tolist(), at.noisy.tolist(), at.count.tolist(), strict=True)
        for origin, destination, noisy, count in pairs:
            numbers["noisy trips", stage, origin, destination] = noisy
            numbers["trips", stage, origin, destination] = count
        if math.isfinite(at.variance):
            log_chance += math.log(_chance(np.full(len(at.count), at.variance)))
    return Sight(numbers=numbers, chance=math.exp(log_chance))


def _regular(fan_outs: tuple[int, ...]) -> Regions:
    sizes = np.cumprod(fan_outs)
    levels = [f"level {depth}" for depth in range(1, len(sizes) + 1)]
    leaf = np.arange(sizes[-1])
    table = pd.DataFrame(
        {name: [f"{name}: {place}" for place in leaf // (sizes[-1] // size)] for name, size in zip(levels, sizes, strict=True)}
    )
    return Regions.from_table(table, levels=levels)


def _flows(regions: Regions, count: NDArray[np.int64]) -> Flows:
    width, some = regions.size(regions.depth), np.flatnonzero(count)
    return Flows(regions, (some // width).astype(np.int32), (some % width).astype(np.int32), count[some])
