"""Audits of every mechanism: neighbouring inputs on which it shows much, and what an attacker sees of its releases."""

from __future__ import annotations

import math
import multiprocessing
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.errors import InputError, SettingError
from dpviz.mechanisms import (
    FLOW_MECHANISMS,
    POINT_MECHANISMS,
    AdaptiveGrid,
    FlatGaussian,
    HilbertTree,
    Htf,
    Identity,
    Kdtree,
    PathTree,
    PrivTree,
    Quadtree,
    StabilityHistogram,
    TopDown,
    Tuned,
    TunedGrid,
    UniformGrid,
)
from dpviz.mechanisms.noisy_counts import Study
from dpviz.mechanisms.noisy_flows import ADD_REMOVE, BOUNDED, FlowSettings
from dpviz.mechanisms.points.median_tree import Halving, Spending, grow
from dpviz.privacy.audit import AuditPlan, AuditResult, Neighbours, Sight, audit
from dpviz.privacy.budget import ApproxBudget, Budget, Number, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.wavelet import WaveletSpread, coefficients
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import contents_facts
from dpviz.release.point_release import Release
from dpviz.space.regions import Regions
from dpviz.space.tree import Tree

MOST_NODES = 40
BUSY = 100

Numbers = dict[Hashable, float]

_MOST_LISTED = 4


class Added(NamedTuple):
    """Records to add to an input.

    Attributes:
        order: of the lattice.
        beside: column, row and number of the records that are there before, occupied cell by occupied cell.
        cells: column and row of each record that is added, all of one person where there are several; a cell may come again.
    """

    order: int
    beside: tuple[tuple[int, int, int], ...] = ()
    cells: tuple[tuple[int, int], ...] = ((0, 0),)

    @property
    def words(self) -> str:
        """How the inputs differ."""
        cells, side = Counter(self.cells), 1 << self.order
        if len(cells) > _MOST_LISTED:
            return f"a person's {len(self.cells)} records in {len(cells)} cells of {side} x {side}, beside many others"
        who = "a record" if len(self.cells) == 1 else f"a person's {len(self.cells)} records"
        where = f"cell {self.cells[0]}" if len(cells) == 1 else ", ".join(f"{cell}: {times}" for cell, times in cells.items())
        others = ", ".join(f"{number} in ({column}, {row})" for column, row, number in self.beside)
        return f"{who} in {where} of {side} x {side}, beside {others or 'none'}"

    def inputs(self) -> tuple[PointCounts, PointCounts]:
        """With the records, and without."""
        matrix = np.zeros((1 << self.order, 1 << self.order), np.int64)
        for column, row, number in self.beside:
            matrix[row, column] = number
        more = matrix.copy()
        np.add.at(more, tuple(np.transpose(self.cells)[::-1]), 1)
        one, other = (replace(PointCounts.from_matrix(each), contributions=len(self.cells)) for each in (more, matrix))
        return one, other


PERSON = Added(order=2, beside=((3, 3, 1),), cells=((3, 3), (3, 3)))
SPREAD = Added(order=2, beside=((3, 3, 1), (1, 0, 6)), cells=((3, 3), (3, 3), (0, 0), (1, 2)))
"""One person in several cells of several nodes of each level, some of them split further than others."""
USUAL = (Added(order=1), PERSON, SPREAD)
MEDIANS = (Added(order=1), Added(order=2, beside=((0, 0, 1), (1, 1, 1), (3, 3, 1)), cells=((3, 3),)), SPREAD)
TUNING = (PERSON, Added(order=3, beside=((0, 0, 20),)), SPREAD)
WORST = {"kdtree": MEDIANS, "exact_kdtree": MEDIANS, "hilbert_tree": MEDIANS, "tuned": TUNING, "tuned_grid": TUNING}
"""Inputs for mechanisms that would show no structure on the usual ones: medians it moves, room for a choice."""

_NODES = tuple((16 * column, 16 * row) for column in range(4) for row in range(4))
ACROSS = Added(
    order=6,
    beside=tuple((west + at, south, 50) for west, south in _NODES for at in (1, 14)),
    cells=tuple((west + 14, south) for west, south in _NODES),
)
"""A person with one record in each of 16 nodes of one level; each moves its node's median from one end to the other."""


def point_pairs(mechanism: Any, budget: Budget) -> list[Neighbours]:
    """Pairs of points on small lattices, with the mechanism run on them."""
    pairs = [_points(mechanism, budget, added) for added in WORST.get(getattr(mechanism, "key", ""), USUAL)]
    if isinstance(mechanism, Kdtree) and mechanism.variant != "cell":
        pairs.append(_one_level(mechanism, budget))
    return pairs


def _points(mechanism: Any, budget: Budget, added: Added) -> Neighbours:
    def run(points: PointCounts) -> Callable[[Entropy], Sight]:
        return lambda entropy: seen(mechanism.release(points, budget, entropy), *dict.fromkeys(added.cells))

    one, other = added.inputs()
    return Neighbours(words=added.words, one=run(one), other=run(other))


def _one_level(mechanism: Kdtree, budget: Budget) -> Neighbours:
    """The medians of one level of 16 nodes, with all of the budget: levels above are halved in the middle, nothing is counted."""
    above = 4
    nothing = [Fraction(0)] * above
    deltas = [*nothing, budget.delta] if isinstance(budget, ApproxBudget) else []
    steps = -(-(above + 1) // mechanism.cuts)
    spending = Spending(medians=[*nothing, mechanism.accepted(budget).epsilon], counts=[Fraction(0)] * (steps + 1), deltas=deltas)

    def run(points: PointCounts) -> Callable[[Entropy], Sight]:
        def once(entropy: Entropy) -> Sight:
            own = mechanism.splitter(Study(points=points, entropy=entropy), spending)
            found: list[Integers] = []

            def lines(level: int, nodes: Halving) -> Integers:
                if level == above:
                    found.append(own(level, nodes))
                return nodes.middles()

            grow(points, steps, mechanism.cuts, lines)
            numbers: Numbers = {("line in node", node): line for node, line in enumerate((found[0] % 16).tolist())}
            return Sight(numbers=numbers | {"lines in the upper half": int((found[0] % 16 > 8).sum())})

        return once

    one, other = ACROSS.inputs()
    return Neighbours(words=f"{ACROSS.words}; medians of one level alone", one=run(one), other=run(other))


def seen(release: Release, *cells: tuple[int, int]) -> Sight:
    """What a release shows to somebody who looks for a person's records in cells.

    All that lies on the path from the root to each cell: rectangles, counts as first measured, measured again and as released. All
    nodes by their place, if they are at most 40. The coefficients of a wavelet. Whatever its manifest says: settings, notes, height.
    """
    tree, numbers = release.tree, _said(release)
    numbers["number of nodes"] = len(tree)
    paths = [_path(tree, cell, release.domain.order) for cell in cells]
    shown = np.arange(len(tree)) if len(tree) <= MOST_NODES else np.unique(np.concatenate(paths))
    for place, path in enumerate(paths):
        numbers |= {(*name, *((f"of cell {place}",) if place else ())): value for name, value in _along(release, path).items()}
    if len(shown) == len(tree):
        boxes = map(tuple, tree.rectangles().tolist())
        for box, noisy, count in zip(boxes, release.noisy.tolist(), release.count.tolist(), strict=True):
            numbers["noisy count in", *box], numbers["count in", *box] = noisy, count
    if isinstance(release.spread, WaveletSpread):
        found = coefficients(release.blocks(release.spread.order)).ravel()  # type: ignore[arg-type]
        numbers |= {("coefficient", place): round(value) for place, value in enumerate(found.tolist())}
    chance = _point_chance(release, shown)
    return Sight(numbers={name: value for name, value in numbers.items() if math.isfinite(value)}, chance=chance)


def _along(release: Release, path: NDArray[np.int64]) -> dict[tuple[Hashable, ...], float]:
    """Everything about the nodes of a path from the root to a cell, by depth."""
    unbiased = release.count if release.unbiased is None else release.unbiased
    again = release.noisy if release.again is None else release.again
    shown = {
        "noisy count": release.noisy,
        "count": release.count,
        "second count": again,
        "variance": release.noise_variance,
        "unbiased count": unbiased,
        "deviation": release.stddev,
    }
    numbers: dict[tuple[Hashable, ...], float] = {}
    for depth, (node, box) in enumerate(zip(path.tolist(), release.tree.rectangles(path).tolist(), strict=True)):
        numbers |= {(f"{what} at depth", depth): values[node] for what, values in shown.items()}
        numbers |= {(f"{side} at depth", depth): line for side, line in zip(("west", "south", "east", "north"), box, strict=True)}
    return numbers


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
    """Trips of one person to move or add.

    Attributes:
        fan_outs: children of the root, of its children, and so on.
        trips: on every pair of leaves but the last, and on the last one.
        pairs: the pairs of leaves with one trip more, counted from the last one; a pair may come again.
        origins: the pairs that they are moved from, counted from the first one.
    """

    fan_outs: tuple[int, ...]
    trips: tuple[int, int]
    pairs: tuple[int, ...] = (0,)
    origins: tuple[int, ...] = (0,)

    @property
    def words(self) -> str:
        """The inputs."""
        levels, trips = " x ".join(map(str, self.fan_outs)), len(self.pairs)
        who = "a trip on the last pair" if trips == 1 else f"a person's {trips} trips on {len(set(self.pairs))} pair(s)"
        return f"{who} of {levels} regions, beside {self.trips[1]} on the last one and {self.trips[0]} on the others"

    def inputs(self, *, moved: bool) -> tuple[Flows, Flows]:
        """With the trips, and without; if they are moved, the first pairs have them then."""
        regions = _regular(self.fan_outs)
        number = regions.size(regions.depth)
        other = np.full(number**2, self.trips[0], np.int64)
        other[-1] = self.trips[1]
        one = other.copy()
        np.add.at(one, len(one) - 1 - np.array(self.pairs), 1)
        if moved:
            np.add.at(other, np.array(self.origins), 1)
        several = len(self.pairs) > 1
        bound = {"contributions": len(self.pairs), "unit": "person" if several else "trip", "exactly": moved and several}
        return _flows(regions, one, **bound), _flows(regions, other, **bound)


TRIPS = (Moved((2,), (BUSY, BUSY)), Moved((2, 2), (BUSY, 0)))
PEOPLE = (
    Moved((2, 2), (BUSY, 0), pairs=(0, 0), origins=(0, 0)),
    Moved((2, 2), (BUSY, 0), pairs=(0, 0, 5), origins=(0, 2, 8)),
)
"""One person's trips, all on one pair or on pairs of several nodes of each stage: for mechanisms that take more than one."""


def flow_pairs(mechanism: Any, budget: Budget) -> list[Neighbours]:
    """Pairs of trips between few regions, with the mechanism run on them."""
    moved = getattr(mechanism, "neighbours", BOUNDED) != ADD_REMOVE

    def run(flows: Flows) -> Callable[[Entropy], Sight]:
        return lambda entropy: flows_seen(mechanism.release(flows, budget, entropy))

    inputs = [(pair.words, pair.inputs(moved=moved)) for pair in (*TRIPS, *PEOPLE)]
    inputs = [(words, both) for words, both in inputs if _taken(mechanism, both[0])]
    return [Neighbours(words=words, one=run(one), other=run(other)) for words, (one, other) in inputs]


def _taken(mechanism: Any, flows: Flows) -> bool:
    """Whether a mechanism takes trips at all of which a person has so many."""
    try:
        mechanism.check_flows(flows)
    except InputError:
        if flows.contributions == 1:
            raise
        return False
    return True


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


def _flows(regions: Regions, count: NDArray[np.int64], **bound: Any) -> Flows:
    width, some = regions.size(regions.depth), np.flatnonzero(count)
    return Flows(regions, (some // width).astype(np.int32), (some % width).astype(np.int32), count[some], **bound)


EPSILON, DELTA, RUNS = 2, "0.03", 2000
Progress = Callable[[int, int, str], None]

VARIANTS: dict[str, Any] = {
    "quadtree, equal shares, as measured": Quadtree(split="uniform", least_squares=False),
    "quadtree without root, pruned": Quadtree(count_root=False, prune=2),
    "path_tree, splits early": PathTree(tau=0.5, zero=False),
    "privtree of 16 parts": PrivTree(fan_out=16, structure_share=0.8),
    "htf in rounds": Htf(search="rounds", split_share=0.5),
    "kdtree of one step, nearly all for medians": Kdtree(height=1, fan_out=2, median_share=0.9),
    "kdtree, hybrid": Kdtree(variant="hybrid"),
    "kdtree, cell": Kdtree(variant="cell"),
    "kdtree, noisy-mean": Kdtree(variant="noisy-mean", height=1, fan_out=2, median_share=0.5),
    "kdtree, smooth-sensitivity": Kdtree(variant="smooth-sensitivity", outside="nearest"),
    "kdtree on a sample": Kdtree(sample=0.5, height=1, fan_out=2, median_share=0.5),
    "hilbert_tree of one step, nearly all for medians": HilbertTree(height=1, fan_out=2, median_share=0.9),
    "adaptive_grid, mostly the first grid": AdaptiveGrid(alpha=0.8, c=1),
    "uniform_grid of 4": UniformGrid(side=4),
    "uniform_grid, larger total": UniformGrid(total_share=0.5, c=0.5),
    "tuned_grid, half for tuning": TunedGrid(sides=(1, 2, 4), tuning_share=0.5),
    "tuned_grid, declared": TunedGrid(sides=(1, 2, 4), total="declared", declared_total=100, tuning_share=0.5),
    "tuned, grid size": Tuned(tune="grid size", values=(1, 2, 4), tuning_share=0.5),
    "tuned, pruning threshold": Tuned(tune="pruning threshold", values=(0, 8)),
    "identity, small cells at zero": Identity(threshold=True),
    "top_down, add or remove": TopDown(neighbours=ADD_REMOVE),
    "top_down, least squares, dial": TopDown(optimiser="euclidean", dial=1, tree="origin"),
    "flat_gaussian, add or remove": FlatGaussian(neighbours=ADD_REMOVE),
    "stability_histogram, add or remove": StabilityHistogram(neighbours=ADD_REMOVE),
}
"""Settings under which a mechanism releases something else; defaults are audited under their keys."""


def audited() -> dict[str, Any]:
    """Everything that `audit_all` looks at: each mechanism with its default settings, then the variants."""
    return {key: row() for key, row in (POINT_MECHANISMS | FLOW_MECHANISMS).items()} | VARIANTS


def audit_budget(mechanism: Any, epsilon: Number = EPSILON) -> Budget:
    """The budget to audit a mechanism with; where it needs a delta, 0.03, at which most of epsilon can be seen in few runs."""
    return ApproxBudget(epsilon, DELTA) if getattr(mechanism, "needs_delta", False) else PureBudget(epsilon)


def audit_mechanism(
    mechanism: Any, *, budget: Budget | None = None, runs: int = RUNS, confidence: float = 0.95, tests: int = 1, seed: int = 0
) -> AuditResult:
    """A lower bound on the epsilon of a mechanism, from many seeded releases on made-up neighbours; see `audit` for what it means.

    Args:
        mechanism: a key, the name of a variant in `audited()`, or a mechanism with settings of one's own.
        budget: what the releases spend; `audit_budget` if None.
        runs: on each input of each pair of neighbours.
        confidence: of all `tests` bounds together.
        tests: how many audits are read together.
        seed: of the noise.

    Raises:
        SettingError: an unknown key, or a number out of its range.
        BudgetError: a budget of the wrong kind.
    """
    name, made = _named(mechanism)
    plan = AuditPlan(runs=runs, confidence=confidence, tests=tests, seed=seed)
    budget = audit_budget(made, EPSILON) if budget is None else budget
    pairs = flow_pairs(made, budget) if _of_flows(made) else point_pairs(made, budget)
    return audit(name, pairs, budget, plan)


def audit_all(
    mechanisms: Mapping[str, Any] | None = None,
    *,
    plan: AuditPlan | None = None,
    progress: Progress | None = None,
    processes: int = 1,
) -> pd.DataFrame:
    """One row per mechanism: what is declared and what was found; all bounds together hold with the plan's confidence.

    Args:
        mechanisms: by name; all of `audited()` if None.
        plan: runs, confidence and seed; its number of tests becomes that of the rows.
        progress: called after each row with how many are done, how many there are, and its name.
        processes: how many to work in; fresh ones, so a script that asks for several needs the usual `if __name__ == "__main__"`.

    Returns:
        DataFrame with the fields of `AuditResult` and `passed`.
    """
    chosen = audited() if mechanisms is None else dict(mechanisms)
    plan = plan or AuditPlan(runs=RUNS)
    jobs = [(name, made, plan.runs, plan.confidence, len(chosen), plan.seed) for name, made in chosen.items()]
    rows = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) if processes > 1 else _Here() as pool:
        for done, row in enumerate(pool.map(_row, jobs), 1):
            rows.append(row)
            if progress is not None:
                progress(done, len(jobs), row["mechanism"])
    return pd.DataFrame(rows)


class _Here:
    """Stands in for a pool where one process is enough."""

    map = staticmethod(map)

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _row(job: tuple[str, Any, int, float, int, int]) -> dict[str, Any]:
    name, made, runs, confidence, tests, seed = job
    result = audit_mechanism(made, runs=runs, confidence=confidence, tests=tests, seed=seed)
    return {**result.to_dict(), "mechanism": name}


def _named(mechanism: Any) -> tuple[str, Any]:
    if not isinstance(mechanism, str):
        return str(getattr(mechanism, "key", type(mechanism).__name__)), mechanism
    known = audited()
    if mechanism not in known:
        raise SettingError(f"There is no such mechanism; choose one of {', '.join(POINT_MECHANISMS | FLOW_MECHANISMS)}.")
    return mechanism, known[mechanism]


def _of_flows(mechanism: Any) -> bool:
    return isinstance(mechanism, FlowSettings) or getattr(mechanism, "key", None) in FLOW_MECHANISMS
