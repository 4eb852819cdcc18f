"""Privacy of trip mechanisms by enumeration: sensitivities, zCDP of whole scripts, (epsilon, delta) of the stability histogram.

Gaussian noise is replaced by a script: see `tests/transcripts.py`. The zCDP loss is the sum over all steps of
(squared distance of the true numbers) / (2 variance), in fractions.
"""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from dpviz.data.trips import TripCounts
from dpviz.errors import InputError
from dpviz.mechanisms import MECHANISMS, FlatGaussian, StabilityHistogram, TopDown
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.mechanisms.trips.fitted_tree import FittedTree
from dpviz.mechanisms.trips.true_stages import sum_true_stages
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.trip_release import TripRelease
from dpviz.space.pair_tree import PairTree
from tests import transcripts
from tests.often import often
from tests.trip_cases import person, regular, trip_counts_of, trips_of

RHO = Fraction("1.3")
SIDES = pytest.mark.parametrize("first", ["destination", "origin"])
NEIGHBOURS = pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])


# Sensitivities of true counts.


def stage_vectors(tree: PairTree, placements: list[tuple]) -> list[np.ndarray]:
    """Per stage, (placements, nodes) true counts of the trips of one unit, by the code that mechanisms use."""
    vectors = [np.zeros((len(placements), tree.size(stage)), np.int64) for stage in range(tree.height + 1)]
    for row, pairs in enumerate(placements):
        trips = trip_counts_of(tree.origins, dict(Counter(pairs)))
        for stage, at in enumerate(sum_true_stages(trips, tree)):
            vectors[stage][row, at.origin * tree.destinations.size(tree.levels(stage)[1]) + at.destination] = at.count
    return vectors


PAIRS = list(product(range(4), repeat=2))
"""All pairs of leaves of `regular(2, 2)`."""


def largest_squared_distance(vectors: np.ndarray) -> int:
    gram = vectors @ vectors.T
    return int((np.diag(gram)[:, None] + np.diag(gram) - 2 * gram).max())


def placements(first: str, units: list[tuple]) -> list[np.ndarray]:
    regions = regular(2, 2)
    return stage_vectors(PairTree(origins=regions, destinations=regions, first=first), units)


@SIDES
@NEIGHBOURS
@pytest.mark.parametrize("bound", [1, 3])
def test_a_unit_moves_every_stage_by_its_sensitivity_at_most_and_by_all_of_it(first, neighbours, bound):
    """By 2 m squared if m trips are replaced, but for the total; by m squared if up to m are added or removed."""
    replaced, least = neighbours == "bounded", bound if neighbours == "bounded" else 0
    vectors = placements(first, [unit for number in range(least, bound + 1) for unit in combinations_with_replacement(PAIRS, number)])
    found = [largest_squared_distance(at) if replaced else int((at**2).sum(1).max()) for at in vectors]
    trips = trip_counts_of(regular(2, 2), {}, **person(neighbours, bound))
    squares = measure.Run.of(TopDown(neighbours=neighbours), trips, ZcdpBudget(1), Entropy.seeded(0)).sensitivity.squares
    assert squares == (2 if replaced else 1) * bound**2
    assert found == [0 if replaced else bound**2] + [squares] * (len(found) - 1)


@SIDES
def test_distinct_trips_share_nodes_so_the_papers_2_m_and_m_hold_on_pairs_of_leaves_only(first):
    bound = 3
    vectors = placements(first, list(combinations(PAIRS, bound)))
    replaced, added = [largest_squared_distance(at) for at in vectors], [int((at**2).sum(1).max()) for at in vectors]
    assert (replaced[-1], added[-1]) == (2 * bound, bound)
    assert min(replaced[1:-1]) > 2 * bound
    assert min(added[:-1]) > bound
    assert (replaced[1], added[1]) == (2 * bound**2, bound**2)


# Whole scripts.


class Script(transcripts.Script):
    """Stands in for `discrete_gaussian`: writes down what was measured, and the variance."""

    def install(self, monkeypatch) -> None:
        monkeypatch.setattr(measure, "discrete_gaussian", self.gaussian)

    def gaussian(self, counts, budget, entropy, squared_sensitivity=1):
        self.requests.append((counts.copy(), squared_sensitivity / (2 * budget.rho)))
        return self._answer(self.made_up(counts, 1))


def run(monkeypatch, mechanism, trips: TripCounts, script: Script) -> TripRelease:
    with monkeypatch.context() as patched:
        script.install(patched)
        return mechanism.release(trips, ZcdpBudget(RHO), script.entropy)


def loss(monkeypatch, mechanism, one: TripCounts, other: TripCounts, seed: int = 0) -> Fraction:
    """zCDP loss between two inputs along one script; fails if anything but the noise can tell them apart."""
    first = Script(seed=seed)
    released = run(monkeypatch, mechanism, one, first)
    second = Script(given=first.answers)
    again = run(monkeypatch, mechanism, other, second)
    assert released.receipt == again.receipt
    assert (released.steps, released.settings, released.approximate) == (again.steps, again.settings, again.approximate)
    for stage, (at, same) in enumerate(zip(released.stages, again.stages, strict=True)):
        for part in ("origin", "destination", "count", "noisy"):
            np.testing.assert_array_equal(getattr(at, part), getattr(same, part))
        assert (at.variance, at.measured) == (same.variance, same.measured)
        assert len(at.count) == len(released.stage(stage))
    total = Fraction(0)
    for (true, variance), (moved, same), step in zip(first.requests, second.requests, released.receipt.steps, strict=True):
        assert variance == same == step.scale
        assert step.counts == len(true) == len(moved)
        total += int(((true - moved) ** 2).sum()) / (2 * variance)
    return total


class PrunedTree(FittedTree):
    """The fitted tree as it is beyond `MOST_MEASURED_LEAVES` leaves: only the children of kept nodes are measured."""

    def _is_pruned(self, tree: PairTree) -> bool:
        return True


def draws_gaussian_noise(mechanism) -> bool:
    return mechanism.release(trips_of(10), ApproxBudget(1, "1e-5"), Entropy.seeded(1)).noise == "gaussian"


VARIANTS = {key: made for key, kind in MECHANISMS.of("trips").items() if draws_gaussian_noise(made := kind())} | {
    "top down, origins first": TopDown(tree="origin"),
    "top down, least squares": TopDown(optimiser="euclidean"),
    "top down, largest lowered": TopDown(lowered="largest"),
    "top down, levels": TopDown(split="levels"),
    "top down, dial": TopDown(dial=1.0),
    "top down, false discovery": TopDown(false_discovery=0.2),
    "flat from 2": FlatGaussian(threshold=2),
    "fitted, all stages, origins first": FittedTree(between=True, tree="origin"),
    "fitted, list": FittedTree(false_discovery=0.2),
    "fitted, pruned": PrunedTree(between=True),
    "fitted, pruned, list": PrunedTree(false_discovery=0.2),
}
SCRIPTED = list(product(VARIANTS, ["add_remove", "bounded"]))
OFTEN = [(variant, "add_remove") for variant in ("top_down", "top down, dial", "flat_gaussian", "fitted, pruned, list")]
"""Variants of the ordinary run: without a threshold, with one, and of a single step."""

BASES = sorted({*product((0, 1), repeat=4), *product((0, 4), repeat=4)})
"""Trips on the four pairs of two regions: empty ones, ones that a single trip empties, and crowded ones."""


def moved(trips: Counter, out: list, into: list) -> Counter:
    result = Counter(trips)
    result.subtract(out)
    result.update(into)
    return result


@pytest.mark.parametrize(("variant", "neighbours"), often(SCRIPTED, OFTEN))
def test_between_two_regions_no_trip_costs_more_than_rho_and_one_costs_all_of_it(monkeypatch, variant, neighbours):
    regions, found = regular(2), []
    mechanism, pairs = replace(VARIANTS[variant], neighbours=neighbours), list(product(range(2), repeat=2))
    for counts in BASES:
        trips = Counter(dict(zip(pairs, counts, strict=True)))
        gone = [[]] if neighbours == "add_remove" else [[pair] for pair in pairs if trips[pair]]
        for out, into in product(gone, pairs):
            inputs = trip_counts_of(regions, trips), trip_counts_of(regions, moved(trips, out, [into]))
            found.append(loss(monkeypatch, mechanism, *inputs[:: 1 if len(found) % 2 else -1], sum(counts)))
    assert max(found) == RHO


@pytest.mark.parametrize(("variant", "neighbours"), often(SCRIPTED, [*OFTEN, ("top down, dial", "bounded")]))
@pytest.mark.parametrize("bound", [1, 3])
def test_no_person_costs_more_than_rho_on_two_levels_wherever_the_trips_lie(monkeypatch, variant, neighbours, bound):
    regions, rng, found = regular(2, 2), np.random.default_rng(bound), []
    mechanism, who = replace(VARIANTS[variant], neighbours=neighbours), person(neighbours, bound)
    trips = Counter({pair: int(rng.integers(3, 9)) * bound for pair in PAIRS})
    for seed in range(20):
        into = [PAIRS[place] for place in rng.integers(0, 16, bound)] if seed % 2 else [PAIRS[seed % 16]] * bound
        out = [PAIRS[place] for place in rng.integers(0, 16, bound)] if seed % 4 else [(1, 3)] * bound
        other = moved(trips, [] if neighbours == "add_remove" else out, into)
        found.append(loss(monkeypatch, mechanism, trip_counts_of(regions, trips, **who), trip_counts_of(regions, other, **who), seed))
    assert max(found) == RHO


def test_the_enumeration_catches_the_papers_sensitivity_for_many_trips(monkeypatch):
    monkeypatch.setattr(Sensitivity, "squares", property(lambda of_a_unit: 2 * of_a_unit.contributions))
    regions, who = regular(2, 2), person("bounded", 3)
    trips = Counter(dict.fromkeys(PAIRS, 6))
    distinct = [(0, 0), (0, 1), (1, 0)], [(2, 2), (2, 3), (3, 2)]
    one, other = trip_counts_of(regions, trips, **who), trip_counts_of(regions, moved(trips, *distinct), **who)
    assert loss(monkeypatch, TopDown(), one, other) > RHO


# The whole law of a tiny TopDown, by summation.


class Beginning(Script):
    """Gives the first answers as listed, and zeros after them."""

    def made_up(self, counts, scale):
        return np.zeros(len(counts), np.int64)


def renyi_sum(variance: Fraction, shift: int, at: np.ndarray, order: float) -> float:
    """Sum over `at` of p**order q**(1 - order), for the laws p of noise around 0 and q of noise around `shift`."""
    scale, reach = 2 * float(variance), np.arange(-60, 61.0)
    log = -(order * at**2 + (1 - order) * (at - shift) ** 2) / scale
    return float(np.exp(log).sum() / np.exp(-(reach**2) / scale).sum())


def renyi_divergence(monkeypatch, trip_counts: tuple[TripCounts, TripCounts], neighbours: str, order: float, wide: int) -> float:
    """Renyi divergence between the laws of all noisy numbers of TopDown between two regions (T = 2), through the mechanism itself.

    Every answer of the steps before the last is played to both inputs; the last step is summed in closed form.
    """
    mechanism, firsts = TopDown(neighbours=neighbours), 1 if neighbours == "bounded" else 2
    probe, every = Script(), np.arange(-50, 51)
    run(monkeypatch, mechanism, trip_counts[0], probe)
    variance, total = probe.requests[0][1], 0.0
    centre = np.concatenate([true for true, _ in probe.requests[:firsts]])
    for noise in product(range(-wide, wide + 1), repeat=len(centre)):
        scripts = [Beginning(given=np.split(centre + noise, [1][: firsts - 1])) for _ in trip_counts]
        for trips, script in zip(trip_counts, scripts, strict=True):
            run(monkeypatch, mechanism, trips, script)
        one, other = (np.concatenate([true for true, _ in script.requests]) for script in scripts)
        shifts = other - one
        drawn = [np.array([value]) for value in noise] + [every] * (len(shifts) - len(noise))
        total += math.prod(renyi_sum(variance, shift, at, order) for at, shift in zip(drawn, shifts.tolist(), strict=True))
    return math.log(total) / (order - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trips", "out", "into", "orders", "share"),
    [
        ({(0, 0): 30, (1, 1): 30}, [(0, 0)], (1, 1), (1.5, 3.0), 0.999),  # all survive
        ({(0, 0): 1}, [(0, 0)], (1, 1), (1.5, 3.0), 0),
        ({(0, 0): 1, (1, 1): 2}, [(1, 1)], (0, 0), (1.5, 3.0), 0),
        ({(0, 0): 1, (0, 1): 1}, [(0, 1)], (1, 1), (1.5, 3.0), 0),
        ({(0, 0): 30, (1, 1): 30}, [], (0, 1), (2.0,), 0.5),
        ({(0, 0): 4, (1, 1): 5}, [], (0, 1), (2.0,), 0.5),
    ],
)
def test_the_law_of_top_down_keeps_zcdp_when_a_trip_is_replaced_or_added(monkeypatch, trips, out, into, orders, share):
    trip_counts = trip_counts_of(regular(2), trips), trip_counts_of(regular(2), moved(Counter(trips), out, [into]))
    for order in orders:
        found = renyi_divergence(monkeypatch, trip_counts, *(("bounded", order, 9) if out else ("add_remove", order, 7)))
        assert share * order * float(RHO) < found <= order * float(RHO) * (1 + 1e-9)


# The stability histogram.


def shown(count: int, scale: float, least: int) -> np.ndarray:
    """Law of what is released of a pair: nothing, each number from `least` on, and all beyond the last of them together."""
    length = math.ceil(40 * scale) + 10
    if count == 0:
        return np.eye(1, length + 2)[0]
    noise = np.arange(least, least + length) - count
    law = np.exp(-np.abs(noise) / scale) * math.tanh(1 / (2 * scale))
    beyond = math.exp(-(least + length - count) / scale) / (1 + math.exp(-1 / scale))
    return np.concatenate([[1 - law.sum() - beyond], law, [beyond]])


@cache
def hockey_stick(differ: tuple[tuple[int, int], ...], epsilon: Fraction, scale: float, least: int) -> float:
    """The least delta for which (epsilon, delta) holds in one direction: pairs that do not differ cancel out.

    Args:
        differ: counts in one and in the other, of each pair where they differ.
        epsilon: exact.
        scale: of the noise.
        least: what is released from there on.
    """
    p, q = np.ones(1), np.ones(1)
    for one, other in differ:
        p, q = np.outer(p, shown(one, scale, least)).ravel(), np.outer(q, shown(other, scale, least)).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def worst_delta(budget: ApproxBudget, neighbours: str, scale: float, least: int) -> float:
    """The largest over all databases of up to 3 trips on each of three pairs, and all their neighbours, both ways."""
    worst, pairs = 0.0, ["first", "second", "third"]
    for counts in product(range(4), repeat=3):
        trips = Counter(dict(zip(pairs, counts, strict=True)))
        changes = [([], [pair]) for pair in pairs]
        if neighbours == "bounded":
            changes = [([out], [into]) for out in pairs if trips[out] for into in pairs if into != out]
        for out, into in changes:
            other = moved(trips, out, into)
            differ = sorted((trips[pair], other[pair]) for pair in pairs if trips[pair] != other[pair])
            for way in (tuple(differ), tuple(sorted((b, a) for a, b in differ))):
                worst = max(worst, hockey_stick(way, budget.epsilon, scale, least))
    return worst


@NEIGHBOURS
@pytest.mark.parametrize("threshold", ["tight", "paper"])
@pytest.mark.parametrize(("epsilon", "delta"), [("3", "0.01"), ("1", "1e-3"), ("0.8", "0.2"), ("2", "0.7"), ("10", "1e-8")])
def test_the_stability_histogram_keeps_epsilon_and_delta_on_every_tiny_database(neighbours, threshold, epsilon, delta):
    budget, mechanism = ApproxBudget(epsilon, delta), StabilityHistogram(neighbours=neighbours, threshold=threshold)
    step = mechanism.release(trips_of(10), budget, Entropy.seeded(1)).receipt.steps[0]
    scale, least = float(step.scale), mechanism.compute_threshold(budget)
    assert step.scale == (2 if neighbours == "bounded" else 1) / budget.epsilon
    assert f"from {least:,} on" in step.purpose
    assert worst_delta(budget, neighbours, scale, least) <= float(delta) * (1 + 1e-9)
    if threshold == "tight" and least > 1:
        assert worst_delta(budget, neighbours, scale, least - 1) > float(delta)
    if threshold == "paper":
        assert least >= replace(mechanism, threshold="tight").compute_threshold(budget)


@NEIGHBOURS
@pytest.mark.parametrize("epsilon", ["0.1", "1", "10"])
@pytest.mark.parametrize("delta", ["1e-8", "1e-3", "0.3"])
def test_the_tight_threshold_is_the_least_that_hides_a_single_trip_as_often_as_delta_says(neighbours, epsilon, delta):
    least = StabilityHistogram(neighbours=neighbours).compute_threshold(ApproxBudget(epsilon, delta))
    q = math.exp(-float(epsilon) / (2 if neighbours == "bounded" else 1))
    assert q ** (least - 1) / (1 + q) <= float(delta)
    assert least == 1 or q ** (least - 2) / (1 + q) > float(delta)


@pytest.mark.parametrize(("epsilon", "published"), [("0.1", 357), ("1", 37), ("10", 5)])
def test_the_tight_thresholds_are_the_published_ones(epsilon, published):
    budget = ApproxBudget(epsilon, "1e-8")
    assert StabilityHistogram().compute_threshold(budget) == published
    assert StabilityHistogram(threshold="paper").compute_threshold(budget) == math.ceil(1 + 2 * math.log(2e8) / float(epsilon))


@NEIGHBOURS
def test_the_stability_histogram_refuses_more_than_one_trip_per_person(neighbours):
    trips = trip_counts_of(regular(2), {(0, 0): 6}, **person(neighbours, 2))
    with pytest.raises(InputError, match="one trip per person"):
        StabilityHistogram(neighbours=neighbours).release(trips, ApproxBudget(1, "1e-5"), Entropy.seeded(1))


# What a unit may be, and what the receipt says of it.


@pytest.mark.parametrize("kind", [TopDown, FlatGaussian])
def test_many_trips_per_person_are_replaced_only_where_everybody_is_declared_to_have_as_many(kind):
    vague, budget = trip_counts_of(regular(2, 2), {(0, 0): 700, (1, 2): 300}, contributions=3, unit="person"), ZcdpBudget(1)
    with pytest.raises(InputError, match="exactly"):
        kind().release(vague, budget, Entropy.seeded(1))
    declared, enforced = (
        kind().release(replace(vague, exactly=True, enforced=each), budget, Entropy.seeded(1)).receipt for each in (False, True)
    )
    assert (declared.unit, declared.contributions, declared.neighbours) == ("person", 3, "replace one")
    assert any("exactly this many trips" in text and "declares" in text for text in declared.unprotected)
    assert any("number of trips" in text for text in declared.unprotected)
    assert any("(1,000)" in text for text in declared.unprotected) == (kind is TopDown)
    assert any("declared, not enforced" in text for text in declared.notes)
    assert {step.sensitivity for step in declared.steps} == {18}
    assert enforced.notes == ()
    added = kind(neighbours="add_remove").release(vague, budget, Entropy.seeded(1)).receipt
    assert (added.unit, added.contributions, added.neighbours) == ("person", 3, "add or remove one")
    assert not any("number of trips" in text or "1,000" in text for text in added.unprotected)
    assert {step.sensitivity for step in added.steps} == {9}


def test_a_negative_noisy_total_becomes_zero_and_the_release_empty():
    trips, empty = trip_counts_of(regular(2, 3), {(0, 4): 3}), 0
    for seed in range(30):
        release = TopDown(neighbours="add_remove").release(trips, ZcdpBudget("1e-4"), Entropy.seeded(seed))
        sizes = [len(at.count) for at in release.stages]
        if sizes[0] == 0:
            assert sizes == [0] * 5
            assert [step.counts for step in release.receipt.steps] == [1, 0, 0, 0, 0]
            assert release.receipt.spent == release.receipt.total
            empty += 1
        else:
            assert release.stages[0].count[0] > 0
    assert 5 < empty < 25
