"""The fitted tree: consistent whole counts, its budget to the last digit, its list, and its noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpviz.errors import BudgetError, InputError, SettingError
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import TopDown
from dpviz.mechanisms.trips import fitted_tree
from dpviz.mechanisms.trips.fitted_tree import FittedTree
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.trips import load_trip_sample
from tests.trip_cases import random_trips, regular, trip_counts_of

BUDGET = ApproxBudget(1, "1e-8")
SETTINGS = (
    {},
    {"neighbours": "add_remove"},
    {"tree": "origin", "between": True},
    {"false_discovery": 0.1},
    {"false_discovery": 0.5, "neighbours": "add_remove"},
    {"split": "custom", "weights": (1, 0, 2, 3)},
)


@pytest.fixture(scope="module")
def trips():
    return random_trips(np.random.default_rng(2), regular(3, 4), pairs=60)


@pytest.fixture(params=[2**21, 30], ids=["all measured", "pruned"])
def most_at_once(request, monkeypatch):
    monkeypatch.setattr(fitted_tree, "MOST_MEASURED_LEAVES", request.param)
    return request.param


def released(trips, budget=BUDGET, seed=1, **settings):
    return FittedTree(**settings).release(trips, budget, Entropy.seeded(seed))


@pytest.mark.parametrize("settings", SETTINGS)
def test_counts_are_whole_not_negative_and_add_up_but_for_the_rest(trips, settings, most_at_once):
    release = released(trips, **settings)
    assert release.inconsistencies()["largest_gap"].max() == 0
    assert all((stage.count > 0).all() for stage in release.stages)
    listed, above = release.stages[-1], release.stages[-2]
    assert listed.count.sum() <= above.count.sum() == release.stages[0].count.sum()
    rest = release.unlisted_trips(*release.tree.levels(release.tree.height - 1)).count
    assert rest.sum() == above.count.sum() - listed.count.sum()
    assert (rest > 0).all()
    if "false_discovery" not in settings:
        assert len(rest) == 0
    if settings.get("neighbours") != "add_remove":
        assert release.stages[0].count.tolist() == [trips.total]


@pytest.mark.parametrize("settings", SETTINGS)
def test_exactly_the_budget_is_spent_on_the_measured_stages(trips, settings, most_at_once):
    receipt = released(trips, **settings).receipt
    assert receipt.used == receipt.available
    assert receipt.spent == BUDGET
    squared = 1 if settings.get("neighbours") == "add_remove" else 2
    assert all(step.scale == squared / (2 * step.amount) for step in receipt.steps)
    assert receipt.steps[-1].level == 4
    assert (receipt.steps[0].level == 0) == (squared == 1)


def test_exact_accounting_has_less_noise_than_rho_and_is_for_one_trip_per_unit(trips):
    exact, tight, paper = (released(trips, accounting=way).receipt for way in ("exact", "tight", "paper"))
    assert exact.converted.rho > tight.converted.rho > paper.converted.rho
    assert [receipt.conversion for receipt in (exact, tight, paper)] == ["exact", "tight", "simple"]
    assert [receipt.notes for receipt in (exact, tight, paper)] == [()] * 3
    assert released(trips, ZcdpBudget(1)).receipt.conversion is None


def test_the_receipt_notes_that_the_tight_conversion_stood_in_for_exact_accounting(trips):
    two = trip_counts_of(regular(2, 2), {(0, 1): 8, (2, 3): 2}, contributions=2, unit="person")
    receipt = released(two, neighbours="add_remove").receipt
    assert receipt.conversion == "tight"
    assert "Exact accounting was chosen" in receipt.notes[0]
    assert "up to 2" in receipt.notes[0]
    for settings in ({"accounting": "tight"}, {"budget": ZcdpBudget(1)}):
        notes = released(two, neighbours="add_remove", **settings).receipt.notes
        assert not any("Exact accounting" in note for note in notes), "no note where exact accounting was done, or not chosen"
    tiny = released(trips, ApproxBudget("0.0001", "1e-8")).receipt
    assert tiny.conversion == "tight"
    assert "standard deviation above 10,000" in tiny.notes[0]


def test_a_budget_so_large_that_there_is_no_noise_gives_the_truth(trips, most_at_once):
    release = released(trips, ZcdpBudget(10**6), false_discovery=0.05)
    leaves = release.stages[-1]
    found = dict(zip(zip(leaves.origin.tolist(), leaves.destination.tolist(), strict=True), leaves.count.tolist(), strict=True))
    assert found == dict(zip(zip(trips.origin.tolist(), trips.destination.tolist(), strict=True), trips.count.tolist(), strict=True))


def test_leaf_errors_are_smaller_than_those_of_top_down(trips):
    def error(mechanism):
        runs = Entropy.seeded(5).spawn(30)
        return np.mean([evaluate_trips(mechanism.release(trips, BUDGET, run), trips).by_stage["max_error"].iloc[-1] for run in runs])

    assert error(FittedTree()) < 0.85 * error(TopDown())


@pytest.mark.parametrize("settings", [{}, {"neighbours": "add_remove"}])
def test_stated_standard_deviations_are_those_of_the_unbiased_estimates(settings):
    """On counts so large that none is near 0, whole counts are the estimates, rounded."""
    trips = trip_counts_of(regular(2, 3), {(a, b): 10_000 + 100 * a + b for a in range(6) for b in range(6)})
    true = [stage.count for stage in FittedTree().release(trips, ZcdpBudget(10**9), Entropy.seeded(0)).stages]
    errors = []
    for run in Entropy.seeded(6).spawn(150):
        release = FittedTree(**settings).release(trips, BUDGET, run)
        errors.append([stage.count - truth for stage, truth in zip(release.stages, true, strict=True)])
    for stage, at in enumerate(zip(*errors, strict=True)):
        spread, stated = np.std(np.concatenate(at)), math.sqrt(release.stages[stage].variance)
        assert spread == pytest.approx(stated, rel=0.12, abs=0.4), stage


@pytest.mark.parametrize("settings", [{}, {"tree": "origin", "neighbours": "add_remove", "false_discovery": 0.1}])
def test_totals_of_regions_are_unbiased_within_their_stated_spread_where_most_pairs_are_empty(settings):
    trips = trip_counts_of(regular(2, 4), {(0, b): 30 + b for b in range(4)} | {(7, 7): 400})
    exact = FittedTree().release(trips, ZcdpBudget(10**9), Entropy.seeded(0))
    errors: dict[tuple[int, int], list[np.ndarray]] = {}
    for run in Entropy.seeded(6).spawn(100):
        release = FittedTree(**settings).release(trips, BUDGET, run)
        for level in (1, 2):
            ids, everywhere = trips.regions.ids_of(level), ["all"] * trips.regions.size(level)
            for levels, ends, estimates in (
                ((level, 0), (ids, everywhere), release.totals.leaving[level - 1]),
                ((0, level), (everywhere, ids), release.totals.arriving[level - 1]),
            ):
                true, stddev = exact.answer(*ends, levels=levels), release.answer(*ends, levels=levels, spread=True)[1]
                low, high = release.answer_interval(*ends, levels=levels)
                assert (np.abs(low - np.maximum(np.floor(estimates - 1.959963984540054 * stddev), 0)) <= 1).all()
                assert (estimates <= high).all()
                errors.setdefault(levels, []).append((estimates - true) / stddev)
    for levels, found in errors.items():
        every = np.array(found)
        assert 0.6 < np.sqrt((every**2).mean()) < 1.1, levels
        assert np.abs(every.mean(axis=0)).max() < 4.5 / math.sqrt(100), levels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "least", "least_released"),
    [
        (FittedTree(), 95, {"0.1": 97, 1: 97, 10: 99}),
        (FittedTree(false_discovery=0.05), 95, {"0.1": 97, 1: 97, 10: 99}),
        (TopDown(), 87, {"0.1": 99, 1: 99, 10: 99}),
    ],
    ids=["fitted_tree", "its list", "top_down"],
)
def test_most_true_sums_of_flights_are_in_their_intervals_at_every_pair_of_levels(mechanism, least, least_released):
    """The percentages that the mechanisms state; 6 releases, up to 4,000 pairs of each pair of levels, at three budgets."""
    trips, rng = load_trip_sample("us_flights"), np.random.default_rng(0)
    for epsilon in ("0.1", 1, 10):
        inside, released = {}, []
        for run in Entropy.seeded(6).spawn(6):
            release = mechanism.release(trips, ApproxBudget(epsilon, "1e-8"), run)
            truth, regions = evaluate_trips(release, trips), trips.regions
            released.append(truth.by_stage["coverage"].iloc[-1])
            for levels in [(a, b) for a in range(4) for b in range(4) if a + b]:
                sizes = regions.size(levels[0]), regions.size(levels[1])
                pairs = rng.permutation(sizes[0] * sizes[1])[:4000]
                origin, destination = (part.astype(np.int32) for part in np.divmod(pairs, sizes[1]))
                ids = regions.ids_of(levels[0])[origin], regions.ids_of(levels[1])[destination]
                low, high = release.answer_interval(*ids, levels=levels)
                true = truth.true_sums(*levels).at(origin, destination)
                inside.setdefault(levels, []).append(100 * ((low <= true) & (true <= high))[~np.isnan(low)].mean())
        shares = {levels: np.mean(each) for levels, each in inside.items()}
        assert np.mean(released) >= least_released[epsilon]
        print(f"epsilon {epsilon}: {np.mean(released):.1f} % of the released finest pairs; at each pair of levels:", end=" ")
        print(", ".join(f"{levels} {share:.1f}" for levels, share in shares.items()))
        assert min(shares.values()) >= least


def test_empty_trips_are_listed_rarely():
    empty = trip_counts_of(regular(2, 2), {})
    lists = [len(released(empty, seed=seed, false_discovery=0.05, neighbours="add_remove").stages[-1].count) for seed in range(400)]
    assert np.mean(np.array(lists) > 0) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_what_cannot_be_spent_is_refused_before_any_noise(trips):
    for budget in (PureBudget(1), ApproxBudget(1, 0)):
        with pytest.raises(BudgetError):
            released(trips, budget)
    with pytest.raises(SettingError, match="split='custom'"):
        FittedTree(weights=(1, 2, 3, 4))
    with pytest.raises(BudgetError, match="4 weights"):
        released(trips, split="custom", weights=(1, 2))
    for neighbours, weights in (("bounded", (1, 1, 1, 0)), ("add_remove", (0, 1, 1, 1, 1)), ("add_remove", (1, 1, 1, 1, 0))):
        with pytest.raises(BudgetError, match="greater than 0"):
            released(trips, split="custom", weights=weights, neighbours=neighbours)
    with pytest.raises(InputError, match="exactly"):
        released(trip_counts_of(regular(2, 2), {(0, 1): 4}, contributions=2, unit="person"))


def test_weights_without_a_custom_split_are_refused():
    for mechanism in (FittedTree, TopDown):
        for settings in ({"weights": (1, 2)}, {"weights": (1, 2), "split": mechanism().split}):
            with pytest.raises(SettingError, match="split='custom'"):
                mechanism.from_settings(settings)
        custom = mechanism.from_settings({"split": "custom", "weights": (1, 2)})
        assert custom.weights == (1, 2)


@pytest.mark.parametrize("value", [5, 0, -0.1, "5 %", math.nan, True])
def test_a_share_of_false_pairs_out_of_range_says_what_to_give(value):
    for mechanism in (FittedTree, TopDown):
        with pytest.raises(SettingError, match=r"from 0\.0001 to 0\.9999, such as 0\.05 for 5 %, or leave it empty"):
            mechanism(false_discovery=value)


def test_shares_can_be_dragged(trips):
    mechanism = FittedTree().with_shares([0.25, 0, 0.25, 0.5])
    assert [share.share for share in mechanism.shares(trips.regions)] == [0.25, 0, 0.25, 0.5]
    receipt = mechanism.release(trips, BUDGET, Entropy.seeded(1)).receipt
    assert [step.amount / receipt.used for step in receipt.steps] == [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    assert [len(FittedTree(**settings).shares(trips.regions)) for settings in SETTINGS] == [4, 5, 4, 4, 5, 4]
