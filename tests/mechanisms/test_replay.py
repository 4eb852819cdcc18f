"""The replay audit of every mechanism: see `tests/replay.py`. Also, that it flags mechanisms with a fault.

Losses are summed where all that is drawn is released: everywhere but in DAWA and PrivTree, whose noise decides splits and stays private, in
kd-trees by noisy means, smooth sensitivity or a sample, and in the stability histogram. There fields are compared, and one selection alone,
or one pair's delta, is held against what it may cost; the proofs of whole trees have tests of their own beside the mechanisms.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms import (
    MECHANISMS,
    REFERENCES,
    AdaptiveGrid,
    Dawa,
    FittedTree,
    FlatAreas,
    FlatGaussian,
    HilbertTree,
    Htf,
    Identity,
    Kdtree,
    PathTree,
    PrivTree,
    Quadtree,
    RegionTree,
    StabilityHistogram,
    TopDown,
    Tuned,
    TunedGrid,
    UniformGrid,
)
from dpviz.mechanisms.points import htf
from dpviz.mechanisms.trips import fitted_tree
from dpviz.privacy import noise
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from tests.area_cases import areas_of
from tests.release_cases import assert_same
from tests.replay import audited, gains, replayed, run
from tests.trip_cases import from_parents, person, random_trips, regular, trip_counts_of

Pair = tuple[Any, Any, Budget]
SIDE = 8
UNEVEN = from_parents([[0, 0], [0, 0, 1], [0, 1, 1, 2, 2, 2]])
PEOPLE = {
    "one cell": lambda m: [9] * m,
    "a crowd": lambda m: [0] * m,
    "at a border": lambda m: [27, 28, 36][:m],
    "near": lambda m: [10, 11, 11][:m],
    "far": lambda m: [63, 0, 7][:m],
    "less than allowed": lambda m: [37],
}
"""Cells of a person's records, who may have m."""
POINTS = {key: row() for key, row in MECHANISMS.of("points").items()} | {
    "adaptive_grid of many parts": AdaptiveGrid(c=0.1, least_squares=False),
    "dawa in halves": Dawa(fan_out=2, price=0.3),
    "hilbert_tree in halves": HilbertTree(height=4, fan_out=2),
    "htf by rounds": Htf(search="rounds", rounds=2, combine=False, shrink_small=False),
    "htf by the paper": Htf(search="rounds", split_epsilon=1e-2, extra=0, stop="count", stop_count=3, reuse_splits=False),
    "identity with threshold": Identity(threshold=True),
    "kdtree, hybrid": Kdtree(variant="hybrid", height=3),
    "kdtree, cell": Kdtree(variant="cell", height=3, prune=2.0),
    "kdtree, noisy-mean": Kdtree(variant="noisy-mean", height=3),
    "kdtree, smooth-sensitivity": Kdtree(variant="smooth-sensitivity", height=3),
    "kdtree on a sample": Kdtree(sample=0.5, fan_out=2, height=4),
    "path_tree of deep splits": PathTree(tau=0.3, big=1.5),
    "privtree of 16 parts": PrivTree(fan_out=16, threshold=2),
    "quadtree pruned": Quadtree(prune=3.0, shrink_small=True, negative="spread"),
    "quadtree without the whole": Quadtree(count_root=False, split="leaf", fan_out=16),
    "tuned_grid by the paper": TunedGrid(total="declared", declared_total=200, law="exponential mechanism", bound="paper"),
    "tuned pruning": Tuned(tune="pruning threshold", law="exponential mechanism"),
    "uniform_grid of many parts": UniformGrid(c=0.2, total_share=0.4),
}


def both_sides(family: str) -> dict[str, Any]:
    """Every mechanism of a family, for each kind of neighbours between which it lets one choose."""
    found = {}
    for key, kind in MECHANISMS.of(family).items():
        sides = next((rule.choices for rule in kind.rules() if rule.name == "neighbours"), ())
        found |= {f"{key}, {side}": kind(neighbours=side) for side in sides} or {key: kind()}
    return found


TRIPS = both_sides("trips") | {
    "fitted_tree with a list": FittedTree(false_discovery=0.1, between=True, tree="origin"),
    "top_down by euclid": TopDown(optimiser="euclidean", lowered="largest", dial=0.5, neighbours="add_remove"),
    "top_down by discovery": TopDown(false_discovery=0.3, accounting="paper", tree="origin", split="levels"),
    "flat_gaussian above a threshold": FlatGaussian(threshold=3, accounting="exact"),
}
AREAS = both_sides("areas") | {
    "flat, some hidden": FlatAreas(threshold=3),
    "region_tree with the whole": RegionTree(count_root=True, split="geometric"),
    "region_tree, non-negative": RegionTree(nonnegative=True, split="uniform", accounting="paper"),
}


BUDGETS = (PureBudget("1.3"), PureBudget(6), ZcdpBudget("0.7"), ApproxBudget("1.3", "1e-6"))


def taken(mechanism: Any, data: Any) -> list[Budget]:
    """The budgets of a kind that the mechanism takes."""

    def takes(budget: Budget) -> bool:
        try:
            return bool(mechanism.release(data, budget, Entropy.seeded(0)))
        except BudgetError:
            return False

    found = [budget for budget in BUDGETS if takes(budget)]
    assert found
    return found


def dragged(mechanism: Any, frame: Any) -> list[Any]:
    """The mechanism with other splits of its budget, one of them without its second part if there are more than two."""
    number = len(mechanism.shares(frame))
    shares = np.random.default_rng(1).dirichlet(np.ones(number), 2)
    shares[1, 1 : number - 1][:1] = 0
    return [mechanism.with_shares((part / part.sum()).tolist()) for part in shares]


@cache
def bases() -> dict[str, np.ndarray]:
    """(8, 8) counts of everybody else."""
    rng = np.random.default_rng(1)
    nobody, crowd = np.zeros((SIDE, SIDE), np.int64), rng.poisson(0.3, (SIDE, SIDE))
    crowd[:2, :2] = [[400, 60], [35, 90]]
    return {"nobody": nobody, "few": rng.poisson(0.3, (SIDE, SIDE)), "even": rng.poisson(6, (SIDE, SIDE)), "a crowd": crowd}


def counted(matrix: np.ndarray, open_cells: np.ndarray | None, m: int) -> PointCounts:
    mask = None if open_cells is None else CellMask.from_open(open_cells)
    domain = Domain(bounds=(0, 0, SIDE, SIDE), crs=None, order=3, mask=mask)
    points = PointCounts.from_matrix(np.where(True if open_cells is None else open_cells, matrix, 0), domain=domain)
    return replace(points, contributions=m, unit="record" if m == 1 else "person")


def point_pairs(mechanism: Any, bounds: tuple[int, ...] = (1, 2, 3), *, masked: bool = False, moved: bool = False) -> list[Pair]:
    """A person more or less among others, wherever the records lie, or a person whose records lie elsewhere."""
    open_cells = np.random.default_rng(2).random((SIDE, SIDE)) < 0.6 if masked else None
    cells = np.arange(SIDE**2) if open_cells is None else np.flatnonzero(open_cells)
    budgets, everybody, pairs = taken(mechanism, counted(bases()["few"], open_cells, 1)), [*PEOPLE.values()], []
    for number, (base, m, place) in enumerate(product(bases().values(), bounds, range(len(everybody)))):
        both = []
        for people in (everybody[place](m), everybody[place - 1](m) if moved else []):
            more = np.bincount(cells[np.array(people, int) % len(cells)], minlength=SIDE**2)
            both.append(counted(base + more.reshape(SIDE, SIDE), open_cells, m))
        pairs.append((*both[:: 1 if number % 2 else -1], budgets[number % len(budgets)]))
    return pairs


PAIRS_OF_TRIPS = {
    "one pair": lambda m: [(0, 1)] * m,
    "siblings": lambda m: [(0, 0), (0, 1), (1, 1)][:m],
    "across": lambda m: [(3, 0), (0, 3), (2, 2)][:m],
    "far": lambda m: [(3, 3)] * m,
}
"""Origins and destinations of a person's m trips."""
OTHER_REGIONS = [(UNEVEN, None), (regular(2, 2), regular(3, 2, prefix="z"))]
"""Levels of different sizes, and destinations of their own."""


def trip_pairs(mechanism: Any, bounds: tuple[int, ...] = (1, 2, 3), regions: tuple = (regular(2, 2), None)) -> list[Pair]:
    """A person's trips that come or go, or become other trips, among those of others."""
    pairs, everybody, budgets = [], [*PAIRS_OF_TRIPS.values()], taken(mechanism, trip_counts_of(regions[0], {}, regions[1]))
    for m, most in product(bounds, (0, 3, 300)):
        base = random_trips(np.random.default_rng(most), *regions, most=most) if most else trip_counts_of(regions[0], {}, regions[1])
        for place, people in enumerate(everybody):
            instead = everybody[place - 1](m) if mechanism.neighbours == "bounded" else []
            unit = person(mechanism.neighbours, m)
            both = (with_trips(base, people(m), unit), with_trips(base, instead, unit))
            pairs += [(*both[:: 1 if place % 2 else -1], budget) for budget in budgets]
    return pairs


def with_trips(base: TripCounts, more: list[tuple[int, int]], unit: dict) -> TripCounts:
    trips = Counter(dict(zip(zip(base.origin.tolist(), base.destination.tolist(), strict=True), base.count.tolist(), strict=True)))
    trips.update(more)
    return trip_counts_of(base.regions, trips, base.destinations, **unit)


LEAVES = {
    "one leaf": lambda m: [1] * m,
    "siblings": lambda m: [2, 3, 3][:m],
    "far": lambda m: [0, 5, 4][:m],
    "less than allowed": lambda m: [4],
}
"""Leaves of a person's records, who may have m."""


def area_pairs(mechanism: Any, bounds: tuple[int, ...] = (1, 2, 3)) -> list[Pair]:
    """A person's records that come or go, or lie elsewhere, among those of others."""
    pairs, everybody = [], [*LEAVES.values()]
    budgets = taken(mechanism, areas_of(UNEVEN, [0] * 6))
    for m, most in product(bounds, (0, 3, 300)):
        base, unit = np.random.default_rng(most).integers(0, most + 1, 6), {"contributions": m, "unit": "record" if m == 1 else "person"}
        for place, people in enumerate(everybody):
            instead = everybody[place - 1](m) if mechanism.neighbours == "bounded" else []
            both = [areas_of(UNEVEN, base + np.bincount(np.array(leaves, int), minlength=6), **unit) for leaves in (people(m), instead)]
            pairs += [(*both[:: 1 if place % 2 else -1], budget) for budget in budgets]
    return pairs


KINDS = {"points": (POINTS, point_pairs), "trips": (TRIPS, trip_pairs), "areas": (AREAS, area_pairs)}
EVERY = [pytest.param(made, pairs_of, id=name) for made_of, pairs_of in KINDS.values() for name, made in made_of.items()]
PRIVATE = ("dawa", "privtree")
"""Mechanisms whose splits are decided by noise that is not released."""
UNPRICED = [POINTS[name] for name in ("kdtree, noisy-mean", "kdtree, smooth-sensitivity", "kdtree on a sample")]
"""Mechanisms of which one step has no bound on its own for the lines that were drawn."""
LEAST = {"kdtree": 0.9, "hilbert_tree": 0.9, "tuned": 0.8, "tuned_grid": 0.8, "htf": 0.99}
"""The part of the budget that some pair costs at least: all of it where noise alone is paid for; choices have no neighbours that bad."""


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "pairs_of"), [case for case in EVERY if case.values[0].key != "stability_histogram"])
def test_a_neighbour_changes_no_field_and_costs_no_more_than_the_budget(mechanism, pairs_of):
    priced, pairs = mechanism.key not in PRIVATE, pairs_of(mechanism)
    parts = audited(mechanism, pairs, priced=priced)
    if priced and mechanism not in UNPRICED:
        assert len(parts) == len(pairs)
        assert max(parts) >= LEAST.get(mechanism.key, 1)
    for other in dragged(mechanism, getattr(pairs[0][0], "domain", None) or pairs[0][0].regions):
        audited(other, pairs_of(other, bounds=(2,)), priced=priced)


@pytest.mark.slow
@pytest.mark.parametrize("name", POINTS)
def test_a_replaced_person_changes_no_field(name):
    """Two neighbours away, where records are added and removed."""
    audited(POINTS[name], point_pairs(POINTS[name], bounds=(1, 3), moved=True), priced=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, made in POINTS.items() if made.takes_mask])
def test_the_same_where_nobody_can_be_in_some_cells(name):
    audited(POINTS[name], point_pairs(POINTS[name], masked=True), priced=POINTS[name].key not in PRIVATE)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, made in TRIPS.items() if made.key != "stability_histogram"])
def test_the_same_between_regions_of_uneven_levels_and_destinations_of_their_own(name):
    for regions in OTHER_REGIONS:
        audited(TRIPS[name], trip_pairs(TRIPS[name], bounds=(1, 3), regions=regions))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
def test_the_same_where_only_children_of_kept_pairs_are_measured(monkeypatch, neighbours):
    monkeypatch.setattr(fitted_tree, "MOST_MEASURED_LEAVES", 3)
    mechanism = FittedTree(neighbours=neighbours)
    assert max(audited(mechanism, trip_pairs(mechanism))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, made in POINTS.items() if made.key in PRIVATE])
@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
def test_what_decides_splits_in_private_moves_by_its_sensitivity_and_counts_cost_the_rest(name, masked):
    """PrivTree: by one per record and level, of noise for a whole path. DAWA: the costs of a level by half of what their noise is for."""
    mechanism, moved, counted_for = POINTS[name], [], []
    for one, other, budget in point_pairs(mechanism, masked=masked):
        first, again = replayed(mechanism, one, other, budget)
        step, m = first.release.receipt.steps[0], one.contributions
        most = m if mechanism.key == "privtree" else int(step.sensitivity)
        pairs = [*zip(first.tape.draws, again.tape.draws, strict=True)]
        moved += [draw.moved(after).sum() / most for draw, after in pairs if draw.scale == step.scale]
        counts = [draw.gain(after) for draw, after in pairs if draw.scale != step.scale]
        counted_for.append(sum(counts) / (budget.epsilon - step.amount))
    assert 0.95 < max(moved) <= 1
    assert max(counted_for) == 1


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
@pytest.mark.parametrize("threshold", ["tight", "paper"])
@pytest.mark.parametrize("budget", [BUDGETS[-1], ApproxBudget(6, "1e-3")], ids=str)
def test_a_pair_that_one_person_fills_leaves_a_trace_with_probability_delta_at_most(neighbours, threshold, budget):
    """Pairs without trips have no noise, so that the runs are not alike: common pairs get the same numbers, and the pair that only one of
    the inputs has gets one number after the other, up to the first that shows.
    """
    mechanism = StabilityHistogram(neighbours=neighbours, threshold=threshold)
    base = random_trips(np.random.default_rng(1), regular(2, 2), most=300)
    occupied = [*zip(base.origin.tolist(), base.destination.tolist(), strict=True)]
    without = run(mechanism, with_trips(base, occupied[:1] if neighbours == "bounded" else [], {}), budget)
    (draw,), (numbers,) = without.tape.draws, without.tape.answers
    scale = float(draw.scale)
    assert draw.scale == (2 if neighbours == "bounded" else 1) / budget.epsilon
    for place in sorted({*product(range(4), repeat=2)} - {*occupied}):
        own = sum(pair < place for pair in occupied)

        def shows(number: int, place: tuple[int, int] = place, own: int = own) -> bool:
            found = run(mechanism, with_trips(base, [place], {}), budget, given=[np.insert(numbers, own, number)])
            return not _are_same(without.release, found.release)

        least = next(number for number in range(1, 1000) if shows(number))
        chance = math.exp(-(least - 1) / scale) / (1 + math.exp(-1 / scale))
        assert chance <= float(budget.delta) * (1 + 1e-9)
        assert threshold == "paper" or chance * math.exp(1 / scale) > float(budget.delta)
        assert [shows(number) for number in (-5, 0, least - 1, least + 3)] == [False, False, False, True]


def _are_same(one: object, other: object) -> bool:
    try:
        assert_same(one, other)
    except AssertionError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
def test_a_trip_among_others_costs_epsilon_in_the_stability_histogram(neighbours):
    mechanism, budget = StabilityHistogram(neighbours=neighbours), BUDGETS[-1]
    base = random_trips(np.random.default_rng(1), regular(2, 2), most=300)
    places = [*zip(base.origin.tolist(), base.destination.tolist(), strict=True)]
    found = []
    for place, instead in pairwise(places):
        both = with_trips(base, [place], {}), with_trips(base, [instead] if neighbours == "bounded" else [], {})
        found.append(sum(gains(*replayed(mechanism, *both, budget))))
    assert max(found) == min(found) == budget.epsilon


@dataclass(frozen=True)
class Planted:
    """A mechanism with a fault."""

    honest: Any
    fault: Callable[..., Any]

    def release(self, data: Any, budget: Budget, entropy: Entropy) -> Any:
        return self.fault(self.honest, data, budget, entropy)


def _twice(budget: Budget) -> Budget:
    return PureBudget(2 * budget.epsilon) if isinstance(budget, PureBudget) else ZcdpBudget(2 * budget.rho)


def _seeing(honest: Any, data: Any, budget: Budget, entropy: Entropy) -> Any:
    release = honest.release(data, budget, entropy)
    return release if data.count.sum() < 3 else replace(release, approximate="there are enough records")


def _telling(honest: Any, data: Any, budget: Budget, entropy: Entropy) -> Any:
    return replace(honest.release(data, budget, entropy), steps=(f"{data.count.sum():,} records were counted",))


def _occupied(honest: Any, data: Any, budget: Budget, entropy: Entropy) -> Any:
    if isinstance(budget, PureBudget):
        noise.discrete_laplace(data.count, budget, entropy, data.contributions)
    else:
        noise.discrete_gaussian(data.count, budget, entropy, 2 * data.contributions**2)
    return None


def _again(honest: Any, data: Any, budget: Budget, entropy: Entropy) -> Any:
    releases = [honest.release(data, budget, entropy) for _ in range(2)]
    return releases[1]


def _aside(honest: Any, data: Any, budget: Budget, entropy: Entropy) -> Any:
    entropy.below(3, len(data.count))
    return honest.release(data, budget, entropy)


FAULTS = {
    "half the noise": (lambda honest, data, budget, entropy: honest.release(data, _twice(budget), entropy), "a pair costs"),
    "the bound of a person forgotten": (
        lambda honest, data, budget, entropy: honest.release(replace(data, contributions=1), budget, entropy),
        "a pair costs",
    ),
    "a threshold on the true total": (_seeing, r"release\.approximate"),
    "a count that nobody paid for": (_telling, r"release\.steps"),
    "noise where records are": (_occupied, "the data decide what is asked for"),
    "all of the budget twice": (_again, "a pair costs"),
    "random bits from aside": (_aside, "drawn outside"),
    "another stream": (lambda honest, data, budget, _: honest.release(data, budget, Entropy.seeded(1)), "another stream"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("family", KINDS)
def test_a_planted_fault_is_flagged_in_every_family(family, fault):
    honest = {"points": Quadtree(), "trips": TopDown(neighbours="add_remove"), "areas": RegionTree()}[family]
    planted, words = FAULTS[fault]
    pairs = [pair for pair in KINDS[family][1](honest) if not isinstance(pair[2], ApproxBudget)]
    with pytest.raises(AssertionError, match=words):
        audited(Planted(honest, planted), pairs)
    audited(honest, pairs[:20])


@pytest.mark.parametrize("reference", [*REFERENCES.of("points").values(), *REFERENCES.of("trips").values()], ids=lambda row: row.key)
def test_what_is_not_private_is_flagged(reference):
    """Methods that look at the truth, and one that hides where a record lies but not how many there are."""
    pairs_of = point_pairs if reference.family == "points" else trip_pairs
    with pytest.raises(AssertionError, match=r"release\.|drawn|asked for|costs"):
        audited(reference(), pairs_of(reference()))


def test_a_choice_whose_errors_move_by_more_than_it_says_is_flagged(monkeypatch):
    monkeypatch.setattr(htf, "SENSITIVITY", 2**14)
    with pytest.raises(AssertionError, match="a pair costs"):
        audited(Htf(split_share=0.8), point_pairs(Htf()))
