"""Privacy of mechanisms of areas by enumeration: sensitivities, and exact losses of whole releases along scripts.

Noise is replaced by a script: the run on a neighbouring input gets the same noisy counts, so that everything else must be the same. The
loss is exact, in fractions: for Laplace noise the sum over all levels of |difference of true counts| / scale, for Gaussian noise the sum of
(difference)**2 / (2 variance), the rho of zCDP.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.mechanisms import MECHANISMS, CrossTree, FlatAreas, RegionTree
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.areas import cross_tree
from dpviz.mechanisms.audit import AREAS, read_release
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.audit import AuditPlan, audit_neighbours
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.exact_accounting import certified_delta
from dpviz.space.summed import Summed
from tests.area_cases import areas_of
from tests.cross_cases import categories_like, cross_of
from tests.laws import SEEDED, bins, gaussian_below, laplace_below, p_value
from tests.often import often
from tests.trip_cases import from_parents, regular

EPSILON, RHO = Fraction("1.3"), Fraction("0.7")
UNEVEN = from_parents([[0, 0], [0, 0, 1], [0, 1, 1, 2, 2, 2]])
"""Three levels whose regions have one to three children."""
NEIGHBOURS = pytest.mark.parametrize("neighbours", ["add_remove", "bounded"])
VARIANTS = {key: kind() for key, kind in MECHANISMS.of("areas").items()} | {
    "flat, some hidden": FlatAreas(threshold=2),
    "tree with the whole": RegionTree(count_root=True, split="uniform"),
    "tree of odd weights": RegionTree(split="custom", weights=(1 / 3, 0, 2 / 3)),
    "non-negative tree": RegionTree(nonnegative=True, split="geometric"),
}
EVERY = pytest.mark.parametrize("mechanism", [pytest.param(each, id=name) for name, each in VARIANTS.items()])
PURE = pytest.mark.parametrize("gaussian", [False, True], ids=["epsilon", "rho"])


def units(bound: int, leaves: int) -> list[np.ndarray]:
    """Everything that one person with at most `bound` records can add: (leaves,) counts."""
    chosen = [unit for number in range(bound + 1) for unit in combinations_with_replacement(range(leaves), number)]
    return [np.bincount(unit, minlength=leaves) if unit else np.zeros(leaves, np.int64) for unit in chosen]


def changes(neighbours: str, bound: int, leaves: int) -> list[np.ndarray]:
    """All changes of the leaves' counts by one person who comes, or is replaced."""
    if neighbours == "add_remove":
        return units(bound, leaves)
    return [one - other for one, other in product(units(bound, leaves), repeat=2)]


@NEIGHBOURS
@pytest.mark.parametrize("bound", [1, 3])
def test_a_unit_moves_every_level_by_its_sensitivity_at_most_and_by_all_of_it(neighbours, bound):
    areas = areas_of(UNEVEN, [0] * 6, contributions=bound)
    of_a_unit = Run.of(FlatAreas(neighbours=neighbours), areas, PureBudget(1), Entropy.seeded(0)).sensitivity
    twice = 2 if neighbours == "bounded" else 1
    assert (of_a_unit.total, of_a_unit.squares) == (twice * bound, twice * bound**2)
    vectors = np.array(changes(neighbours, bound, 6))
    for level in range(1, 4):
        above = UNEVEN.ancestors(level)
        sums = np.array([np.bincount(above, vector, UNEVEN.size(level)) for vector in vectors])
        assert np.abs(sums).sum(axis=1).max() == of_a_unit.total
        assert (sums**2).sum(axis=1).max() == of_a_unit.squares
    assert np.abs(vectors.sum(axis=1)).max() == bound, "the whole changes by less under bounded, and is measured with the same noise"


class Script:
    """Stands in for both kinds of noise: writes down each request, and answers from a list, or makes answers up."""

    def __init__(self, given=(), seed: int = 0):
        self.given, self.answers, self.requests, self.rng = list(given), [], [], np.random.default_rng(seed)

    def _answer(self, true):
        made_up = true + self.rng.integers(-4, 5, len(true))
        self.answers.append(self.given[len(self.answers)] if self.given else made_up)
        return self.answers[-1].copy()

    def laplace(self, true, budget, entropy, sensitivity):
        self.requests.append((true.copy(), sensitivity / budget.epsilon, "Laplace"))
        return self._answer(true)

    def gaussian(self, true, budget, entropy, squared):
        self.requests.append((true.copy(), squared / (2 * budget.rho), "Gaussian"))
        return self._answer(true)

    def run(self, monkeypatch, mechanism, areas, budget):
        with monkeypatch.context() as patched:
            patched.setattr(measure, "discrete_laplace", self.laplace)
            patched.setattr(measure, "discrete_gaussian", self.gaussian)
            return mechanism.release(areas, budget, Entropy.seeded(0))


def loss(monkeypatch, mechanism, one, other, budget, seed: int = 0) -> Fraction:
    """The exact loss between two inputs along one script; fails if anything but noise can tell them apart."""
    first, second = Script(seed=seed), None
    released = first.run(monkeypatch, mechanism, one, budget)
    second = Script(first.answers)
    again = second.run(monkeypatch, mechanism, other, budget)
    seen, seen_again = (read_release(release).numbers for release in (released, again))
    assert seen == seen_again
    assert released.receipt == again.receipt
    assert [step.scale for step in released.receipt.steps] == [scale for _, scale, _ in first.requests]
    total = Fraction(0)
    for (true, scale, kind), (true_again, same_scale, same_kind) in zip(first.requests, second.requests, strict=True):
        assert (scale, kind) == (same_scale, same_kind)
        difference = (true - true_again).tolist()
        total += sum(map(abs, difference)) / scale if kind == "Laplace" else sum(d * d for d in difference) / (2 * scale)
    return total


@EVERY
@NEIGHBOURS
@PURE
@pytest.mark.parametrize("bound", often([1, 2], 1))
def test_no_unit_costs_more_than_the_budget_and_one_costs_all_of_it(monkeypatch, mechanism, neighbours, gaussian, bound):
    """On inputs of 6 leaves: everything that one person can add, or change. A replaced person changes the whole least where it changes
    its parts most, so that under bounded a share for the whole is not used up.
    """
    mechanism, budget = replace(mechanism, neighbours=neighbours), ZcdpBudget(RHO) if gaussian else PureBudget(EPSILON)
    base = np.random.default_rng(1).integers(0, 3, 6) + bound * (neighbours == "bounded")
    unit = {"contributions": bound, "unit": "person"}
    found = [
        loss(monkeypatch, mechanism, areas_of(UNEVEN, base + change, **unit), areas_of(UNEVEN, base, **unit), budget, seed)
        for seed, change in enumerate(changes(neighbours, bound, 6))
    ]
    steps = mechanism.release(areas_of(UNEVEN, base, **unit), budget, Entropy.seeded(1)).receipt.steps
    of_whole = sum(step.amount for step in steps if step.level == 0 and neighbours == "bounded")
    assert max(found) == (RHO if gaussian else EPSILON) - of_whole


@EVERY
def test_a_persons_records_in_leaves_of_different_parents_cost_no_more_than_in_one(monkeypatch, mechanism):
    unit, budget = {"contributions": 3, "unit": "person"}, ZcdpBudget(RHO)
    base, spread, together = np.arange(6), np.array([1, 0, 1, 0, 0, 1]), np.array([3, 0, 0, 0, 0, 0])
    pairs = [(areas_of(UNEVEN, base + more, **unit), areas_of(UNEVEN, base, **unit)) for more in (spread, together)]
    costs = [loss(monkeypatch, mechanism, *pair, budget) for pair in pairs]
    assert costs[0] < costs[1] == RHO


SLOTS = categories_like(from_parents([[0, 0], [0, 0, 1]]))
SPREAD, INSIDE = [[1, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 3, 0], [0, 0, 0], [0, 0, 0]]
"""A person's three records: one in each of three slots, and all in one."""


@PURE
@pytest.mark.parametrize(("records", "per_slot"), [(SPREAD, 1), (INSIDE, None), (INSIDE, 3)])
def test_a_persons_day_by_slot_costs_the_budget_and_no_more(monkeypatch, records, per_slot, gaussian):
    assert cost_of_a_day(monkeypatch, records, per_slot, gaussian=gaussian) == (RHO if gaussian else EPSILON)


def cost_of_a_day(monkeypatch, records, per_slot, *, gaussian):
    """The exact loss of the records of a person, who is removed."""
    regions, unit = from_parents([[0, 0], [0, 1, 1]]), {"contributions": 3, "unit": "person", "per_slot": per_slot}
    one, other = (cross_of(regions, SLOTS, np.ones((3, 3)) + more, **unit) for more in (np.array(records), 0))
    mechanism = CrossTree(split="custom", weights=(0, 1, 1), slot_split="custom", slot_weights=(0, 1, 1))
    return loss(monkeypatch, mechanism, one, other, ZcdpBudget(RHO) if gaussian else PureBudget(EPSILON))


def test_m_in_place_of_m_squared_is_found_by_a_person_inside_one_slot(monkeypatch):
    monkeypatch.setattr(Sensitivity, "squares", property(lambda sensitivity: sensitivity.contributions * sensitivity.changes))
    assert cost_of_a_day(monkeypatch, INSIDE, None, gaussian=True) == 3 * RHO


def test_b_of_one_slot_in_place_of_its_slots_is_found_by_a_person_over_slots(monkeypatch):
    monkeypatch.setattr(cross_tree, "_most_in_category", lambda per_slot, categories, level: per_slot)
    assert cost_of_a_day(monkeypatch, SPREAD, 1, gaussian=True) > RHO


@pytest.mark.parametrize("neighbours", ["add_remove", "bounded"])
def test_epsilon_and_delta_are_met_by_the_noise_of_all_levels_together(neighbours):
    budget, mechanism = ApproxBudget(1, "1e-6"), RegionTree(neighbours=neighbours, count_root=True)
    receipt = mechanism.release(areas_of(UNEVEN, np.arange(6)), budget, Entropy.seeded(1)).receipt
    delta = certified_delta([step.scale for step in receipt.steps], budget.epsilon, 2 if neighbours == "bounded" else 1)
    assert 0.99e-6 < delta <= 1e-6


MEASURED = [FlatAreas(), RegionTree(split="custom", weights=(1, 3)), RegionTree(count_root=True, neighbours="bounded", split="uniform")]


@pytest.mark.parametrize("mechanism", MEASURED, ids=["flat", "tree", "tree with the whole"])
@PURE
def test_every_measured_level_has_fresh_noise_of_the_stated_law(mechanism, gaussian):
    """It follows a law of the stated scale, and none of half or twice the scale; and it is drawn for every region and run on its own."""
    areas, runs = areas_of(regular(2, 3), [1000] * 6, contributions=2), 400
    budget = ZcdpBudget("0.1") if gaussian else PureBudget("0.3")
    releases = [mechanism.release(areas, budget, entropy) for entropy in Entropy.seeded(3).spawn(runs)]
    draws = []
    for step in releases[0].receipt.steps:
        truth = areas.level_counts()[step.level]
        noise = np.array([release.noisy[release.nodes(step.level)] for release in releases]) - truth
        scale, below = (float(step.scale) ** 0.5, gaussian_below) if gaussian else (float(step.scale), laplace_below)
        for factor in (1, 0.5, 2):

            def law(values, factor=factor, scale=scale, below=below):
                return below(values, **{"sigma" if below is gaussian_below else "scale": factor * scale})

            assert (p_value(noise.ravel(), law, bins(law, factor * scale, 20)) > SEEDED) == (factor == 1)
        assert noise.var() == pytest.approx(releases[0].noise_variance[releases[0].nodes(step.level)][0], rel=5 * (5 / noise.size) ** 0.5)
        draws.append(noise)
    table = np.hstack(draws)
    for values in (table, np.abs(table)):
        assert np.abs(np.corrcoef(values.T) - np.eye(table.shape[1])).max() < 5.5 / np.sqrt(runs)
    assert len(np.unique(table, axis=0)) == runs


@NEIGHBOURS
@pytest.mark.parametrize("key", sorted(MECHANISMS.of("areas")))
@pytest.mark.parametrize("budget", often([PureBudget(2), ApproxBudget(2, "0.03")], 1), ids=str)
def test_the_audit_passes_and_sees_much_of_epsilon(key, neighbours, budget):
    mechanism = MECHANISMS.of("areas")[key](neighbours=neighbours)
    found = audit_neighbours(key, mechanism.audit_pairs(budget), budget, AuditPlan(runs=300))
    assert found.passed
    assert found.lower_bound > (0.1 if key == "cross_tree" else 0.3), "its budget is divided over more counts"


@pytest.mark.parametrize(
    "fault", often(["half the noise", "a persons bound forgotten", "no noise on empty regions", "one level drawn once"], 0)
)
def test_the_audit_rejects_a_wrong_noise(monkeypatch, fault):
    budget, honest = PureBudget(2), measure.discrete_laplace

    def broken(true, budget, entropy, sensitivity):
        if fault == "half the noise":
            return honest(true, PureBudget(3 * budget.epsilon), entropy, sensitivity)
        if fault == "a persons bound forgotten":
            return honest(true, budget, entropy, 1)
        noisy = honest(true, budget, entropy, sensitivity)
        if fault == "no noise on empty regions":
            return np.where(true == 0, 0, noisy)
        return true + (noisy - true)[:1]

    monkeypatch.setattr(measure, "discrete_laplace", broken)
    mechanism = RegionTree(split="uniform")
    found = audit_neighbours("broken", mechanism.audit_pairs(budget), budget, AuditPlan(runs=800))
    assert not found.passed


def test_made_up_neighbours_of_the_audit_differ_by_one_unit():
    for pair in AREAS:
        for moved in (False, True):
            one, other = pair.inputs(moved=moved)
            assert one.contributions == other.contributions == len(pair.leaves)
            difference = one.level_counts()[-1] - other.level_counts()[-1]
            assert np.abs(difference).sum() == len(pair.leaves) * (1 + moved)
            assert Counter(np.repeat(np.arange(len(difference)), np.maximum(difference, 0)).tolist()) == Counter(pair.leaves)
        assert pair.words


AT_BOUNDS, ACROSS, BEYOND = [(0, 0), (2, 7)], [(0, 7), (1, 7)], [(0, 7), (0, 900)]
"""A person's two values (place, value) between 0 and 7: at both bounds, both at the upper one, and one of them far beyond it."""


@PURE
@pytest.mark.parametrize("values", [AT_BOUNDS, ACROSS, BEYOND])
def test_a_persons_values_cost_the_budget_and_no_more(monkeypatch, values, gaussian):
    budget = RHO if gaussian else EPSILON
    apart = gaussian and values != BEYOND  # in two places, or in two slots: their squares are less than that of both in one
    assert (cost_of_values(monkeypatch, values, gaussian=gaussian) < budget) is apart
    if not apart:
        assert cost_of_values(monkeypatch, values, gaussian=gaussian) == budget


def cost_of_values(monkeypatch, values, *, gaussian):
    """The exact loss of the values of a person, who is removed."""
    regions, summed = from_parents([[0, 0], [0, 1, 1]]), Summed(low=0, high=7)
    places = regions.ids_of(2)
    others = [(place, value) for place in range(3) for value in (1, 4)]
    one, other = (
        AreaCounts.from_table(
            pd.DataFrame({"region": [places[place] for place, _ in rows], "v": [value for _, value in rows]}),
            regions=regions,
            categories=summed,
            slot="v",
            count="none",
        ).of_persons(2)
        for rows in (others + values, others)
    )
    mechanism = CrossTree(split="custom", weights=(0, 0, 1))
    return loss(monkeypatch, mechanism, one, other, ZcdpBudget(RHO) if gaussian else PureBudget(EPSILON))


def test_a_value_that_is_taken_for_one_record_is_found(monkeypatch):
    total = property(lambda sensitivity: sensitivity.contributions * sensitivity.changes)
    monkeypatch.setattr(Sensitivity, "total", total)
    assert cost_of_values(monkeypatch, BEYOND, gaussian=False) == 7 * EPSILON
