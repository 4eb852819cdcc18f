"""Privacy of trip mechanisms by enumeration: sensitivities, zCDP of whole transcripts, (epsilon, delta) of the stability histogram.

Gaussian noise is replaced by a script, as in `test_privacy`: one run records every number that it measured and what it got
back, the run on the neighbouring input gets the same numbers back. The zCDP loss of that transcript is the sum over all
steps of (squared distance of the true numbers) / (2 variance), in fractions.
"""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from dpviz.data.flows import Flows
from dpviz.errors import InputError
from dpviz.mechanisms import FLOW_MECHANISMS, FlatGaussian, StabilityHistogram, TopDown
from dpviz.mechanisms import noisy_flows as flow_measure
from dpviz.mechanisms.trips import flat_gaussian
from dpviz.mechanisms.trips.top_down import true_stages
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.flow_release import FlowRelease
from dpviz.space.pair_tree import PairTree
from tests.flow_cases import flows_of, random_flows, regular, trips_of
from tests.often import often

RHO = Fraction("1.3")
SIDES = pytest.mark.parametrize("first", ["destination", "origin"])
NEIGHBOURS = pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])


def person(neighbours: str, bound: int) -> dict:
    """How flows say that a unit has `bound` trips."""
    return {} if bound == 1 else {"contributions": bound, "unit": "person", "exactly": neighbours == "bounded"}


# Sensitivities of true counts.


def stage_vectors(tree: PairTree, placements: list[tuple]) -> list[np.ndarray]:
    """Per stage, (placements, nodes) true counts of the trips of one unit, by the code that mechanisms use."""
    vectors = [np.zeros((len(placements), tree.size(stage)), np.int64) for stage in range(tree.height + 1)]
    for row, pairs in enumerate(placements):
        flows = flows_of(tree.origins, dict(Counter(pairs)))
        for stage, at in enumerate(true_stages(flows, tree)):
            vectors[stage][row, at.origin * tree.destinations.size(tree.levels(stage)[1]) + at.destination] = at.count
    return vectors


def largest_squared_distance(vectors: np.ndarray) -> int:
    gram = vectors @ vectors.T
    return int((np.diag(gram)[:, None] + np.diag(gram) - 2 * gram).max())


@SIDES
@pytest.mark.parametrize("bound", [1, 3])
def test_replacing_trips_moves_every_stage_by_2_m_squared_at_most_and_by_all_of_it(first, bound):
    regions = regular(2, 2)
    tree = PairTree(origins=regions, destinations=regions, first=first)
    pairs = list(product(range(4), repeat=2))
    vectors = stage_vectors(tree, list(combinations_with_replacement(pairs, bound)))
    found = [largest_squared_distance(at) for at in vectors]
    flows = flows_of(regions, {}, **person("bounded", bound))
    counter = flow_measure.NoisyFlows(flows=flows, entropy=Entropy.seeded(0), neighbours="bounded")
    assert found == [0] + [counter.squared_sensitivity] * tree.height
    assert counter.squared_sensitivity == 2 * bound**2


@SIDES
@pytest.mark.parametrize("bound", [1, 3])
def test_adding_or_removing_a_unit_moves_every_stage_by_m_squared_at_most_and_by_all_of_it(first, bound):
    regions = regular(2, 2)
    tree = PairTree(origins=regions, destinations=regions, first=first)
    pairs = list(product(range(4), repeat=2))
    units = [unit for number in range(bound + 1) for unit in combinations_with_replacement(pairs, number)]
    found = [int((at**2).sum(1).max()) for at in stage_vectors(tree, units)]
    counter = flow_measure.NoisyFlows(
        flows=flows_of(regions, {}, **person("add_remove", bound)), entropy=Entropy.seeded(0), neighbours="add_remove"
    )
    assert found == [counter.squared_sensitivity] * (tree.height + 1)
    assert counter.squared_sensitivity == bound**2


@SIDES
def test_distinct_trips_share_nodes_so_the_papers_2_m_and_m_hold_on_pairs_of_leaves_only(first):
    regions, bound = regular(2, 2), 3
    tree = PairTree(origins=regions, destinations=regions, first=first)
    vectors = stage_vectors(tree, list(combinations(product(range(4), repeat=2), bound)))
    replaced = [largest_squared_distance(at) for at in vectors]
    added = [int((at**2).sum(1).max()) for at in vectors]
    assert (replaced[-1], added[-1]) == (2 * bound, bound)
    assert min(replaced[1:-1]) > 2 * bound
    assert min(added[:-1]) > bound
    assert (replaced[1], added[1]) == (2 * bound**2, bound**2)


# Transcripts.


class Script:
    """Stands in for `discrete_gaussian`: writes down what was measured, answers from a list or makes the answers up."""

    def __init__(self, answers: list[np.ndarray] | None = None, seed: int = 0) -> None:
        self.given, self.rng = answers, np.random.default_rng(seed)
        self.answers: list[np.ndarray] = []
        self.measured: list[tuple[np.ndarray, Fraction]] = []

    def __call__(self, counts, budget, entropy, squared_sensitivity=1):
        self.measured.append((counts.copy(), squared_sensitivity / (2 * budget.rho)))
        answer = counts + self.rng.integers(-2, 4, len(counts)) if self.given is None else self.given[len(self.answers)]
        self.answers.append(answer)
        return answer.copy()


def run(monkeypatch, mechanism, flows: Flows, script: Script) -> FlowRelease:
    monkeypatch.setattr(flow_measure, "discrete_gaussian", script)
    monkeypatch.setattr(flat_gaussian, "discrete_gaussian", script)
    return mechanism.release(flows, ZcdpBudget(RHO), Entropy.seeded(0))


def loss(monkeypatch, mechanism, one: Flows, other: Flows, seed: int = 0) -> Fraction:
    """zCDP loss between two inputs along one script; fails if anything but the noise can tell them apart."""
    first = Script(seed=seed)
    released = run(monkeypatch, mechanism, one, first)
    second = Script(first.answers)
    again = run(monkeypatch, mechanism, other, second)
    assert len(first.measured) == len(second.measured) == len(released.receipt.steps)
    assert released.receipt == again.receipt
    assert (released.steps, released.settings, released.approximate) == (again.steps, again.settings, again.approximate)
    for stage, (at, same) in enumerate(zip(released.stages, again.stages, strict=True)):
        for part in ("origin", "destination", "count", "noisy"):
            np.testing.assert_array_equal(getattr(at, part), getattr(same, part))
        assert (at.variance, at.measured) == (same.variance, same.measured)
        assert len(at.count) == len(released.stage(stage))
    total = Fraction(0)
    for (true, variance), (moved, same), step in zip(first.measured, second.measured, released.receipt.steps, strict=True):
        assert variance == same == step.scale
        assert step.counts == len(true) == len(moved)
        total += int(((true - moved) ** 2).sum()) / (2 * variance)
    return total


VARIANTS = {
    "top down": TopDown(),
    "top down, origins first": TopDown(tree="origin"),
    "top down, least squares": TopDown(optimiser="euclidean"),
    "top down, largest lowered": TopDown(lowered="largest"),
    "top down, levels": TopDown(split="levels"),
    "top down, dial": TopDown(dial=1.0),
    "top down, false discovery": TopDown(false_discovery=0.2),
    "flat": FlatGaussian(),
    "flat from 2": FlatGaussian(least=2),
}
OFTEN = ("top down", "top down, dial", "flat")
"""Variants of the ordinary run: without a threshold, with one, and of a single step."""


BASES = sorted({*product((0, 1), repeat=4), *product((0, 4), repeat=4)})
"""Trips on the four pairs of two regions: empty ones, ones that a single trip empties, and crowded ones."""


def moved(trips: Counter, out: list, into: list) -> Counter:
    result = Counter(trips)
    result.subtract(out)
    result.update(into)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_between_two_regions_no_replaced_trip_costs_more_than_rho_and_one_costs_all_of_it(monkeypatch, variant):
    regions, worst = regular(2), Fraction(0)
    pairs = list(product(range(2), repeat=2))
    for counts in BASES:
        trips = Counter(dict(zip(pairs, counts, strict=True)))
        for out, into in product([pair for pair in pairs if trips[pair]], pairs):
            other = moved(trips, [out], [into])
            found = loss(monkeypatch, VARIANTS[variant], flows_of(regions, trips), flows_of(regions, other), sum(counts))
            assert found <= RHO
            worst = max(worst, found)
    assert worst == RHO


@pytest.mark.parametrize("variant", often(VARIANTS, OFTEN))
def test_between_two_regions_no_added_trip_costs_more_than_rho_and_one_costs_all_of_it(monkeypatch, variant):
    regions, worst = regular(2), Fraction(0)
    mechanism = replace(VARIANTS[variant], neighbours="add_remove")
    pairs = list(product(range(2), repeat=2))
    for counts in BASES:
        trips = Counter(dict(zip(pairs, counts, strict=True)))
        for pair in pairs:
            one, other = flows_of(regions, trips), flows_of(regions, moved(trips, [], [pair]))
            for first, second in ((one, other), (other, one)):
                found = loss(monkeypatch, mechanism, first, second, sum(counts))
                assert found <= RHO
                worst = max(worst, found)
    assert worst == RHO


@pytest.mark.parametrize("variant", often(VARIANTS, OFTEN))
@NEIGHBOURS
@pytest.mark.parametrize("bound", [1, 3])
def test_no_person_costs_more_than_rho_on_two_levels_wherever_the_trips_lie(monkeypatch, variant, neighbours, bound):
    regions, rng, worst = regular(2, 2), np.random.default_rng(bound), Fraction(0)
    mechanism, who = replace(VARIANTS[variant], neighbours=neighbours), person(neighbours, bound)
    pairs = list(product(range(4), repeat=2))
    trips = Counter({pair: int(rng.integers(3, 9)) * bound for pair in pairs})
    for seed in range(40):
        into = [pairs[place] for place in rng.integers(0, 16, bound)] if seed % 2 else [pairs[seed % 16]] * bound
        out = [] if neighbours == "add_remove" else [pairs[place] for place in rng.integers(0, 16, bound)] if seed % 4 else [(1, 3)] * bound
        other = moved(trips, out, into)
        found = loss(monkeypatch, mechanism, flows_of(regions, trips, **who), flows_of(regions, other, **who), seed)
        assert found <= RHO
        worst = max(worst, found)
    assert worst == RHO


def test_the_enumeration_catches_the_papers_sensitivity_for_many_trips(monkeypatch):
    monkeypatch.setattr(flow_measure.NoisyFlows, "squared_sensitivity", property(lambda counter: 2 * counter.flows.contributions))
    regions, who = regular(2, 2), person("bounded", 3)
    trips = Counter(dict.fromkeys(product(range(4), repeat=2), 6))
    distinct = [(0, 0), (0, 1), (1, 0)], [(2, 2), (2, 3), (3, 2)]
    one, other = flows_of(regions, trips, **who), flows_of(regions, moved(trips, *distinct), **who)
    assert loss(monkeypatch, TopDown(), one, other) > RHO


def test_every_mechanism_of_the_table_is_enumerated_here():
    ours = {key for key, row in FLOW_MECHANISMS.items() if row.__module__.startswith("dpviz.")}
    assert {variant.key for variant in VARIANTS.values()} | {StabilityHistogram.key} >= ours


# The whole law of a tiny TopDown, by summation.


class Beginning(Script):
    """Gives the first answers as listed, and zeros after them."""

    def __call__(self, counts, budget, entropy, squared_sensitivity=1):
        if len(self.answers) == len(self.given):
            self.given = [*self.given, np.zeros(len(counts), np.int64)]
        return super().__call__(counts, budget, entropy, squared_sensitivity)


def renyi_sum(variance: Fraction, shift: int, at: np.ndarray, order: float) -> float:
    """Sum over `at` of p**order q**(1 - order), for the laws p of noise around 0 and q of noise around `shift`."""
    scale, reach = 2 * float(variance), np.arange(-60, 61.0)
    log = -(order * at**2 + (1 - order) * (at - shift) ** 2) / scale
    return float(np.exp(log).sum() / np.exp(-(reach**2) / scale).sum())


def renyi_divergence(monkeypatch, flows: tuple[Flows, Flows], neighbours: str, order: float, wide: int) -> float:
    """Renyi divergence between the laws of all noisy numbers of TopDown between two regions (T = 2), through the mechanism itself.

    Every answer of the steps before the last is played to both inputs; the last step is summed in closed form.
    """
    mechanism, firsts = TopDown(neighbours=neighbours), 1 if neighbours == "bounded" else 2
    probe, every = Script(), np.arange(-50, 51)
    run(monkeypatch, mechanism, flows[0], probe)
    variance, total = probe.measured[0][1], 0.0
    centre = np.concatenate([true for true, _ in probe.measured[:firsts]])
    for noise in product(range(-wide, wide + 1), repeat=len(centre)):
        scripts = [Beginning(np.split(centre + noise, [1][: firsts - 1])) for _ in flows]
        for trips, script in zip(flows, scripts, strict=True):
            run(monkeypatch, mechanism, trips, script)
        one, other = (np.concatenate([true for true, _ in script.measured]) for script in scripts)
        shifts = other - one
        drawn = [np.array([value]) for value in noise] + [every] * (len(shifts) - len(noise))
        total += math.prod(renyi_sum(variance, shift, at, order) for at, shift in zip(drawn, shifts.tolist(), strict=True))
    return math.log(total) / (order - 1)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1.5, 3.0])
@pytest.mark.parametrize(
    ("trips", "out", "into", "all_survive"),
    [
        ({(0, 0): 30, (1, 1): 30}, (0, 0), (1, 1), True),
        ({(0, 0): 1}, (0, 0), (1, 1), False),
        ({(0, 0): 1, (1, 1): 2}, (1, 1), (0, 0), False),
        ({(0, 0): 1, (0, 1): 1}, (0, 1), (1, 1), False),
    ],
)
def test_the_law_of_top_down_keeps_zcdp_when_a_trip_is_replaced(monkeypatch, order, trips, out, into, all_survive):
    regions = regular(2)
    flows = flows_of(regions, trips), flows_of(regions, moved(Counter(trips), [out], [into]))
    found = renyi_divergence(monkeypatch, flows, "bounded", order, 9)
    assert found <= order * float(RHO) * (1 + 1e-9)
    if all_survive:
        assert found > order * float(RHO) * 0.999


@pytest.mark.slow
@pytest.mark.parametrize("trips", [{(0, 0): 30, (1, 1): 30}, {(0, 0): 4, (1, 1): 5}])
def test_the_law_of_top_down_keeps_zcdp_when_a_trip_is_added(monkeypatch, trips):
    regions = regular(2)
    flows = flows_of(regions, trips), flows_of(regions, moved(Counter(trips), [], [(0, 1)]))
    found = renyi_divergence(monkeypatch, flows, "add_remove", 2.0, 7)
    assert float(RHO) < found <= 2 * float(RHO) * (1 + 1e-9)


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
    scale, least = float(step.scale), mechanism.least(budget)
    assert step.scale == (2 if neighbours == "bounded" else 1) / budget.epsilon
    assert f"from {least:,} on" in step.purpose
    assert worst_delta(budget, neighbours, scale, least) <= float(delta) * (1 + 1e-9)
    if threshold == "tight" and least > 1:
        assert worst_delta(budget, neighbours, scale, least - 1) > float(delta)
    if threshold == "paper":
        assert least >= replace(mechanism, threshold="tight").least(budget)


@NEIGHBOURS
@pytest.mark.parametrize("epsilon", ["0.1", "1", "10"])
@pytest.mark.parametrize("delta", ["1e-8", "1e-3", "0.3"])
def test_the_tight_threshold_is_the_least_that_hides_a_single_trip_as_often_as_delta_says(neighbours, epsilon, delta):
    least = StabilityHistogram(neighbours=neighbours).least(ApproxBudget(epsilon, delta))
    q = math.exp(-float(epsilon) / (2 if neighbours == "bounded" else 1))
    assert q ** (least - 1) / (1 + q) <= float(delta)
    assert least == 1 or q ** (least - 2) / (1 + q) > float(delta)


def test_the_tight_thresholds_are_the_published_ones():
    found = [StabilityHistogram().least(ApproxBudget(epsilon, "1e-8")) for epsilon in ("0.1", "1", "10")]
    assert found == [357, 37, 5]
    paper = [StabilityHistogram(threshold="paper").least(ApproxBudget(epsilon, "1e-8")) for epsilon in ("0.1", "1", "10")]
    assert paper == [math.ceil(1 + 2 * math.log(2e8) / epsilon) for epsilon in (0.1, 1, 10)]


@NEIGHBOURS
def test_the_stability_histogram_refuses_more_than_one_trip_per_person(neighbours):
    flows = flows_of(regular(2), {(0, 0): 6}, **person(neighbours, 2))
    with pytest.raises(InputError, match="one trip per person"):
        StabilityHistogram(neighbours=neighbours).release(flows, ApproxBudget(1, "1e-5"), Entropy.seeded(1))


# What a unit may be, and what the receipt says of it.


@pytest.mark.parametrize("mechanism", [TopDown(), FlatGaussian()], ids=["top down", "flat"])
def test_many_trips_per_person_are_replaced_only_where_everybody_is_declared_to_have_as_many(mechanism):
    regions = regular(2, 2)
    vague = flows_of(regions, {(0, 0): 6, (1, 2): 3}, contributions=3, unit="person")
    with pytest.raises(InputError, match="exactly"):
        mechanism.release(vague, ZcdpBudget(1), Entropy.seeded(1))
    declared = mechanism.release(replace(vague, exactly=True), ZcdpBudget(1), Entropy.seeded(1)).receipt
    assert (declared.unit, declared.contributions, declared.neighbours) == ("person", 3, "replace one")
    assert any("exactly this many trips" in text and "declares" in text for text in declared.unprotected)
    assert any("number of trips" in text for text in declared.unprotected)
    assert any("(9)" in text for text in declared.unprotected) == isinstance(mechanism, TopDown)
    assert any("declared, not enforced" in text for text in declared.notes)
    assert {step.sensitivity for step in declared.steps} == {18}
    enforced = mechanism.release(replace(vague, exactly=True, enforced=True), ZcdpBudget(1), Entropy.seeded(1)).receipt
    assert enforced.notes == ()


@pytest.mark.parametrize("mechanism", [TopDown(neighbours="add_remove"), FlatGaussian(neighbours="add_remove")], ids=["top down", "flat"])
def test_under_add_remove_nobody_need_have_exactly_m_trips_and_no_total_is_named(mechanism):
    flows = flows_of(regular(2, 2), {(0, 0): 700, (1, 2): 300}, contributions=3, unit="person")
    receipt = mechanism.release(flows, ZcdpBudget(1), Entropy.seeded(1)).receipt
    assert (receipt.unit, receipt.contributions, receipt.neighbours) == ("person", 3, "add or remove one")
    assert not any("number of trips" in text or "1,000" in text for text in receipt.unprotected)
    assert {step.sensitivity for step in receipt.steps} == {9}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_budget_of_top_down_is_cut_over_the_stages_and_the_root_where_it_is_protected(depth):
    flows = random_flows(np.random.default_rng(1), regular(*[2] * depth))
    bounded, protected = (
        TopDown(neighbours=neighbours).release(flows, ZcdpBudget(RHO), Entropy.seeded(1)).receipt
        for neighbours in ("bounded", "add_remove")
    )
    stages = 2 * depth
    assert [step.level for step in bounded.steps] == list(range(1, stages + 1))
    assert [step.level for step in protected.steps] == list(range(stages + 1))
    for steps, parts, variance in ((bounded.steps, stages, stages / RHO), (protected.steps, stages + 1, (stages + 1) / (2 * RHO))):
        for step in steps:
            assert abs(step.amount - RHO / parts) <= RHO * Fraction(parts, 2**32)
            assert abs(step.scale / variance - 1) < Fraction(1, 10**7)
    assert len(TopDown().release(flows, ZcdpBudget(1), Entropy.seeded(1)).stages[0].count) == 1
    assert TopDown().release(flows, ZcdpBudget(1), Entropy.seeded(1)).stages[0].variance == 0


def test_a_negative_noisy_total_becomes_zero_and_the_release_empty():
    flows, empty = flows_of(regular(2, 3), {(0, 4): 3}), 0
    for seed in range(30):
        release = TopDown(neighbours="add_remove").release(flows, ZcdpBudget("1e-4"), Entropy.seeded(seed))
        sizes = [len(at.count) for at in release.stages]
        if sizes[0] == 0:
            assert sizes == [0] * 5
            assert [step.counts for step in release.receipt.steps] == [1, 0, 0, 0, 0]
            assert release.receipt.spent == release.receipt.total
            empty += 1
        else:
            assert release.stages[0].count[0] > 0
    assert 5 < empty < 25
