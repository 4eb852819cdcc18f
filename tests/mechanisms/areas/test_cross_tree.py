"""The cross tree: what one unit changes, what the release says of every pair of levels, and its bars against other ways."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpviz.errors import BudgetError
from dpviz.mechanisms import CrossTree, RegionTree
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.exact_accounting import certified_delta
from dpviz.release.verdict import judge_pairs
from dpviz.samples.load import load_sample
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross
from tests.area_cases import membership
from tests.cross_cases import categories_like, cross_of, cross_records, true_cross
from tests.trip_cases import from_parents

BUDGETS = {"epsilon": PureBudget("0.8"), "rho": ZcdpBudget("0.3"), "delta": ApproxBudget("0.8", "1e-5")}
ALL = pytest.mark.parametrize("budget", [pytest.param(budget, id=name) for name, budget in BUDGETS.items()])
PLACES, SLOTS = from_parents([[0, 0], [0, 1, 1]]), categories_like(from_parents([[0, 0], [0, 0, 1]]))
"""Three towns in two states by three hours in two parts of the day."""


def made(mechanism, areas, budget=BUDGETS["rho"], seed: int = 1):
    return mechanism.release(areas, budget, Entropy.seeded(seed))


def placements(most: int, per_slot: int, places: int, slots: int) -> np.ndarray:
    """Everything that one person can add: (k, places, slots) counts of at most m records, and at most b in each slot."""
    cells = list(product(range(places), range(slots)))
    found = []
    for number in range(most + 1):
        for chosen in combinations_with_replacement(range(len(cells)), number):
            table = np.bincount(chosen, minlength=len(cells)).reshape(places, slots) if chosen else np.zeros((places, slots), int)
            if table.sum(axis=0).max() <= per_slot:
                found.append(table)
    return np.array(found)


def steps_of(mechanism, areas):
    """The steps of a release by the pair of levels that they measure."""
    found = made(replace(mechanism, split="uniform", slot_split="uniform"), areas).receipt.steps
    pairs = product(range(areas.regions.depth + 1), range(areas.categories.depth + 1))
    return dict(zip(pairs, found, strict=True))


@pytest.mark.parametrize(("most", "per_slot"), [(1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (5, 3)])
@pytest.mark.parametrize("neighbours", ["add_remove", "bounded"])
def test_no_placement_of_a_persons_records_changes_more_than_is_stated(neighbours, most, per_slot):
    """And some placement changes as much, wherever there are slots for all records; of replaced ones, where there are two places."""
    areas = cross_of(PLACES, SLOTS, np.zeros((3, 3)), unit="person", contributions=most, per_slot=per_slot)
    steps, units = steps_of(CrossTree(neighbours=neighbours), areas), placements(most, per_slot, 3, 3)
    for (level, slot_level), step in steps.items():
        rows = [
            PLACES.ancestors(level)[:, None] == np.arange(PLACES.size(level)),
            SLOTS.ancestors(slot_level)[:, None] == np.arange(SLOTS.size(slot_level)),
        ]
        sums = np.einsum("kps,pl,sm->klm", units, *[each.astype(int) for each in rows]).reshape(len(units), -1)
        own = (sums**2).sum(axis=1)
        changes = own if neighbours == "add_remove" else own[:, None] + own - 2 * sums @ sums.T
        assert changes.max() <= step.sensitivity
        category = min(most, per_slot * int(SLOTS.leaf_count(slot_level).max()))
        uniform = SLOTS.size(slot_level) * category >= most and len(set(SLOTS.leaf_count(slot_level))) == 1
        if uniform and (neighbours == "add_remove" or level):
            assert changes.max() == step.sensitivity


def test_slots_lower_the_squares_and_not_the_absolute_changes():
    wide = [Sensitivity(contributions=m, most=b) for m, b in ((4, 1), (4, 3), (5, 2), (24, 1), (3, 9))]
    assert [each.squares for each in wide] == [4, 10, 9, 24, 9]
    assert [each.total for each in wide] == [4, 4, 5, 24, 3]


@ALL
@pytest.mark.parametrize("options", [{}, {"unit": "person", "contributions": 4, "per_slot": 1}], ids=["record", "person"])
@pytest.mark.parametrize("mechanism", [CrossTree(), CrossTree(lean=False, split="minimax", slot_split="uniform", neighbours="bounded")])
def test_it_spends_its_budget_and_every_step_states_its_noise(mechanism, options, budget):
    areas = cross_records(**options)
    release = made(mechanism, areas, budget)
    receipt, gaussian = release.receipt, not isinstance(budget, PureBudget)
    assert receipt.spent == receipt.total == budget
    assert sum(step.amount for step in receipt.steps) == receipt.available
    for step in receipt.steps:
        assert step.scale == step.sensitivity / (2 * step.amount if gaussian else step.amount)
    assert receipt.conversion == (None if budget is not BUDGETS["delta"] else "tight" if options else "exact")
    assert "the categories and their levels" in receipt.unprotected
    assert any("at most 1 in each slot" in note for note in receipt.notes) == bool(options)


def test_epsilon_and_delta_are_met_by_the_noise_of_all_pairs_together():
    budget = ApproxBudget(1, "1e-6")
    receipt = made(CrossTree(), cross_records(), budget).receipt
    assert 0.99e-6 < certified_delta([step.scale for step in receipt.steps], budget.epsilon, 1) <= 1e-6


@ALL
def test_each_slot_alone_is_a_region_tree(budget):
    """With all of the budget on slots, the counts of each are those that the region tree makes of the same noisy counts."""
    areas = cross_records()
    cross = CrossTree(lean=False, split="custom", weights=(0, 1, 2), slot_split="custom", slot_weights=(0, 0, 1))
    tree, release = RegionTree(split="custom", weights=(1, 2)), made(cross, areas, budget)
    run = Run.of(tree, areas, budget, Entropy.seeded(1))
    _, variance = tree.count_levels(run, [0, 1, 2])
    for slot in range(areas.entries):
        column = release.slot_hierarchy.starts[-2] + slot
        alone = tree.make_release(run, release.cross_noisy[:, column], variance)
        np.testing.assert_allclose(release.cross_count[:, column], alone.count, atol=1e-9)
        np.testing.assert_allclose(release.cross_stddev[:, column], alone.node_stddev, rtol=1e-9)


@ALL
@pytest.mark.parametrize("lean", [True, False])
def test_counts_add_up_both_ways_and_totals_are_those_of_the_regions(budget, lean):
    areas = cross_records()
    release = made(CrossTree(lean=lean), areas, budget)
    leaves = release.of_pair(release.cross_count, (2, 2))
    summed = membership(areas.regions) @ leaves @ membership(areas.categories).T
    np.testing.assert_allclose(summed, release.cross_count, atol=1e-6)
    np.testing.assert_array_equal(release.cross_count[:, 0], release.count)
    np.testing.assert_allclose(release.cross_stddev[:, 0], release.node_stddev, rtol=1e-9)
    assert (release.cross_count >= 0).all() or not lean


def test_answers_for_ranges_and_differences_are_weighted_sums_with_their_spread():
    areas = cross_records(mean=40)
    release, slots = made(CrossTree(lean=False, split="uniform", slot_split="uniform"), areas), areas.categories.ids_of(2)
    regions, part = areas.regions.ids_of(2), areas.categories.ids_of(1)[0]
    inside = areas.categories.ancestors(1) == 0
    rows = np.isin(np.arange(len(regions)), [0, 2])
    leaves = release.of_pair(release.cross_count, (2, 2))
    one = release.answer([[regions[0], regions[2]]], slots=[part, slots[-1], slots[0]])
    weights = (inside | np.isin(np.arange(len(slots)), [0, len(slots) - 1])).astype(float)
    assert one[0] == pytest.approx((leaves @ weights)[rows].sum())
    difference, stddev = release.answer([regions[0]], slots=[slots[-1]], minus=[slots[0]], spread=True)
    assert difference[0] == pytest.approx(leaves[0, -1] - leaves[0, 0])
    runs = [made(CrossTree(lean=False, split="uniform", slot_split="uniform"), areas, seed=seed) for seed in range(300)]
    drawn = [run.answer([regions[0]], slots=[slots[-1]], minus=[slots[0]])[0] for run in runs]
    assert np.std(drawn, ddof=1) == pytest.approx(stddev[0], rel=0.15)
    same = release.answer_interval([regions[0]], slots=[slots[-1]], minus=[slots[0]])
    swapped = release.answer_interval([regions[0]], slots=[slots[0]], minus=[slots[-1]])
    assert (same[0][0], same[1][0]) == (-swapped[1][0], -swapped[0][0]), "a difference is not cut at 0"
    assert release.answer(["all"], level=0)[0] == pytest.approx(release.count[0])


def test_a_table_of_a_pair_of_levels_has_a_row_for_every_region_and_slot():
    areas = cross_records()
    release = made(CrossTree(), areas)
    table = release.to_frame(("level 1", 2))
    assert table[["region", "slot"]].to_numpy().tolist() == [
        [region, slot] for region in areas.regions.ids_of(1) for slot in areas.categories.ids_of(2)
    ]
    np.testing.assert_array_equal(table["count"], release.of_pair(release.cross_count, (1, 2)).ravel())
    assert (table.all_low <= table.ci_low).all()
    assert (table.ci_high <= table.all_high).all()
    assert table.attrs == {"private": True, "simulation": True} | release.attrs
    assert release.name_pair((1, 2)) == "level 1 by level 2"
    graded = judge_pairs(release)
    assert graded[0, 0].parts == 1
    assert graded[2, 2].stddev == pytest.approx(release.stddev((2, 2)).mean())


@ALL
def test_errors_to_expect_are_those_of_a_release_of_any_records(budget):
    areas = cross_records(unit="person", contributions=3, per_slot=1)
    release = made(CrossTree(), areas, budget)
    assert CrossTree().expected_errors(areas.frame, budget, 3, 1) == CrossTree().level_errors(release)
    errors = CrossTree().expected_pair_errors(areas.frame, budget, 3, 1)
    assert errors == CrossTree().pair_errors(release)
    assert [error.of for error in errors][:3] == ["the whole", "the whole by level 1", "the whole by level 2"]


def test_both_bars_of_shares_come_back_as_they_were_given():
    frame = cross_records().frame
    mechanism = CrossTree().with_shares([1, 2, 5]).with_slot_shares([0, 1, 3])
    assert [part.share for part in mechanism.shares(frame)] == [1 / 8, 2 / 8, 5 / 8]
    assert [part.share for part in mechanism.slot_shares(frame, gaussian=True)] == [0, 1 / 4, 3 / 4]
    with pytest.raises(BudgetError, match="needs 3 weights"):
        replace(mechanism, slot_weights=(1,)).check(frame)


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "most"), [(PureBudget("0.2"), 0.975), (ZcdpBudget("0.005"), 0.965)], ids=["epsilon", "rho"])
def test_intervals_of_random_places_and_ranges_cover_as_often_as_they_say(budget, most):
    """In 2,000 runs at least 94 %, and little more where noise is wide: sums of Laplace noise have light tails, and ends are rounded."""
    areas, rng, hits = cross_records(mean=2000), np.random.default_rng(3), []
    truth, mechanism = true_cross(areas), CrossTree(lean=False)
    regions, slots = areas.regions.ids_of(2), areas.categories.ids_of(2)
    for seed in range(2000):
        release = made(mechanism, areas, budget, seed)
        some, first = rng.random(len(regions)) < 0.5, int(rng.integers(len(slots)))
        some[0], last = True, int(rng.integers(first, len(slots))) + 1
        low, high = release.answer_interval([regions[some].tolist()], slots=slots[first:last].tolist())
        hits.append(low[0] <= release.of_pair(truth, (2, 2))[some, first:last].sum() <= high[0])
    assert 0.94 < np.mean(hits) < most


CITY = load_sample("made_up_city").regions
BARS = {(3, 2): 0.845, (3, 0): 0.36, (0, 0): 0.218, (0, 2): 0.512, (1, 2): 1.634}
"""Standard deviations under rho, divided by those of a region tree per slot, summed where it has no number of its own."""


def test_the_citys_standard_deviations_stand_to_a_region_tree_per_slot_as_was_worked_out():
    """Within 2 %: cell, place total, total, slot total, district by slot."""
    budget, frame = ApproxBudget(1, "1e-6").to_zcdp(), Cross(CITY, Categories.hours())
    cross = {error.of: error.stddev for error in CrossTree().expected_pair_errors(frame, budget)}
    tree = [error.stddev for error in RegionTree().expected_errors(CITY, budget)]
    names = ["the whole", *CITY.levels]
    for (level, slot_level), ratio in BARS.items():
        name = names[level] if not slot_level else f"{names[level]} by hour"
        of_trees = tree[level] * (1 if slot_level else np.sqrt(24))
        assert cross[name] / of_trees == pytest.approx(ratio, rel=0.02), name
