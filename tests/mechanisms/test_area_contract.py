"""What every mechanism of areas must keep, whatever its method. A new one is tested without an edit; see test_contract_settings, too."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.errors import BudgetError, InputError, SettingError
from dpviz.mechanisms import MECHANISMS, CrossTree, FlatAreas, RegionTree
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_release import AreaRelease
from tests.area_cases import areas_of, dense_fit, membership, records_of, true_sums
from tests.often import named, often
from tests.trip_cases import from_parents, random_regions, regular

VARIANTS = {
    "region_tree with the whole": RegionTree(count_root=True, split="uniform"),
    "region_tree, geometric": RegionTree(split="geometric"),
    "region_tree, non-negative": RegionTree(nonnegative=True),
    "region_tree, balanced": RegionTree(split="balanced"),
    "region_tree, bounded": RegionTree(neighbours="bounded", accounting="tight"),
    "cross_tree, unbiased": CrossTree(lean=False),
    "cross_tree, bounded": CrossTree(neighbours="bounded", accounting="tight", split="minimax"),
    "flat, bounded": FlatAreas(neighbours="bounded", accounting="paper"),
    "flat, some hidden": FlatAreas(threshold=5),
}
DEFAULTS = {key: row() for key, row in MECHANISMS.of("areas").items()}
EVERY = pytest.mark.parametrize("mechanism", named(DEFAULTS | VARIANTS, 4))
BUDGETS = {"epsilon": PureBudget("0.8"), "rho": ZcdpBudget("0.3"), "delta": ApproxBudget("0.8", "1e-5")}
ALL = pytest.mark.parametrize("budget", [pytest.param(budget, id=name) for name, budget in BUDGETS.items()])


def released(mechanism, areas: AreaCounts, budget=BUDGETS["epsilon"], seed: int = 1) -> AreaRelease:
    return mechanism.release(areas, budget, Entropy.seeded(seed))


def numbers(release: AreaRelease) -> list:
    return [part.tolist() for part in (release.noisy, release.centre, release.count)]


def sensitivity(mechanism, bound: int, *, gaussian: bool) -> int:
    """What one unit changes in a level at most."""
    twice = 2 if mechanism.neighbours == "bounded" else 1
    return twice * (bound**2 if gaussian else bound)


@EVERY
@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize(
    "budget", [PureBudget("1/3"), PureBudget("7.000000000000000000001"), ZcdpBudget("1e-3"), ZcdpBudget("1/3"), ApproxBudget("0.1", "1e-8")]
)
def test_it_spends_all_of_the_budget_and_never_more(mechanism, bound, budget):
    receipt = released(mechanism, records_of(300, contributions=bound, unit="person"), budget).receipt
    gaussian = not isinstance(budget, PureBudget)
    assert receipt.spent == receipt.total == budget
    assert sum(step.amount for step in receipt.steps) == receipt.available == receipt.used
    for step in receipt.steps:
        assert step.noise == ("discrete Gaussian" if gaussian else "discrete Laplace")
        assert step.sensitivity == sensitivity(mechanism, bound, gaussian=gaussian)
        assert step.scale == step.sensitivity / (2 * step.amount if gaussian else step.amount)
        assert step.delta == 0
    if isinstance(budget, ApproxBudget):
        conversions = {"exact": "exact" if bound == 1 else "tight", "tight": "tight", "paper": "simple"}
        assert receipt.conversion == conversions[mechanism.accounting]
        assert bool(receipt.notes) == (bound > 1 and mechanism.accounting == "exact")
    else:
        assert receipt.conversion is receipt.converted is None


@EVERY
@ALL
@pytest.mark.parametrize("records", [0, 1, 1000])
@pytest.mark.parametrize("entropy", [Entropy.system(), Entropy.seeded(2)], ids=["system", "seeded"])
def test_it_works_on_no_one_and_a_thousand_records(mechanism, budget, records, entropy):
    areas = records_of(records)
    release = mechanism.release(areas, budget, entropy)
    assert (release.mechanism, release.settings, release.simulation) == (mechanism.key, mechanism.chosen(), entropy.simulation)
    assert repr(release).startswith(f"{type(release).__name__}({mechanism.key}, ")
    assert ("SIMULATION: not private" in repr(release)) == entropy.simulation
    assert release.regions == areas.regions
    for level in range(areas.regions.depth + 1):
        size = areas.regions.size(level)
        parts = [each[release.nodes(level)] for each in (release.noisy, release.centre, release.count, release.node_stddev)]
        assert [len(part) for part in parts] == [size] * 4
        assert np.isfinite(parts[1:]).all()
        assert (parts[3] > 0).all()
        assert np.isfinite(parts[0]).all() == np.isfinite(release.noise_variance[release.nodes(level)]).all()
        assert len(release.to_frame(level)) == size
    assert abs(release.count[release.nodes(0)][0] - records) < 60 * release.stddev(0)[0] + (
        1000 if mechanism.chosen().get("nonnegative") else 0
    )


@EVERY
@ALL
def test_the_same_seed_gives_the_same_release_and_another_seed_or_a_second_draw_another(mechanism, budget):
    entropy = Entropy.seeded(4)
    one, other, same, third = (
        mechanism.release(records_of(3000), budget, each) for each in (entropy, entropy, *map(Entropy.seeded, (4, 5)))
    )
    np.testing.assert_equal((numbers(one), one.receipt), (numbers(same), same.receipt))
    for each in (other, third):
        assert (one.count != each.count).any()


@EVERY
def test_it_leaves_its_input_alone(mechanism):
    areas = records_of(3000)
    before = [part.copy() for part in (areas.leaf, areas.count)]
    release = released(mechanism, areas, PureBudget(10**6))
    for part in (release.count, release.centre, release.noisy):
        if part.flags.writeable:
            part[:] = -1
    for part, copy in zip((areas.leaf, areas.count), before, strict=True):
        np.testing.assert_array_equal(part, copy)


FRAMES = {
    "one level": regular(5),
    "two levels": regular(3, 4),
    "eight levels": random_regions(np.random.default_rng(8), 8, 2),
    "one region": from_parents([[0]]),
    "one region per level": from_parents([[0], [0], [0]]),
    "uneven": random_regions(np.random.default_rng(3), 3, 6),
}


@EVERY
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("budget", [PureBudget(10**6), ZcdpBudget(10**6), ApproxBudget(10**5, "1e-8")], ids=["epsilon", "rho", "delta"])
def test_a_huge_budget_gives_the_truth_at_every_level_of_every_frame(mechanism, frame, budget):
    regions = FRAMES[frame]
    areas = areas_of(regions, np.random.default_rng(7).poisson(3, regions.size(regions.depth)) * 7)
    release = released(mechanism, areas, budget)
    for level in range(regions.depth + 1):
        np.testing.assert_allclose(release.count[release.nodes(level)], true_sums(areas, level), atol=1e-6)


@EVERY
@ALL
@pytest.mark.parametrize("frame", FRAMES)
def test_regions_add_up_to_the_region_above_on_every_frame(mechanism, budget, frame):
    regions = FRAMES[frame]
    areas = areas_of(regions, np.random.default_rng(8).poisson(2, regions.size(regions.depth)))
    release = released(mechanism, areas, budget)
    for part in (release.count, release.centre):
        for level in range(1, regions.depth + 1):
            sums = np.bincount(regions.parent[level - 1], part[release.nodes(level)], regions.size(level - 1))
            np.testing.assert_allclose(sums, part[release.nodes(level - 1)], atol=1e-6)
    if mechanism.chosen().get("nonnegative"):
        assert (release.count >= 0).all()
        assert (release.count == np.rint(release.count)).all()


@EVERY
@ALL
def test_estimates_and_their_stated_spread_are_those_of_dense_least_squares(mechanism, budget):
    release = released(mechanism, records_of(500), budget)
    leaves, covariance = dense_fit(release)
    nodes = membership(release.regions)
    np.testing.assert_allclose(release.centre, nodes @ leaves, atol=1e-6)
    stated = np.concatenate([release.stddev(level) for level in range(release.regions.depth + 1)])
    np.testing.assert_allclose(stated**2, np.diag(nodes @ covariance @ nodes.T), rtol=1e-9)


@pytest.mark.parametrize("mechanism", named(DEFAULTS | VARIANTS, 2))
@pytest.mark.parametrize("budget", often(list(BUDGETS.values()), 1), ids=str)
def test_estimates_are_unbiased_and_their_stated_spread_is_that_of_many_runs(mechanism, budget):
    areas, runs = areas_of(regular(2, 3, 2), [4, 0, 9, 100, 0, 3] * 2, contributions=2, unit="person"), 4000
    entropies = Entropy.seeded(11).spawn(runs)
    drawn = np.array([mechanism.release(areas, budget, entropy).centre for entropy in entropies])
    truth = np.concatenate(areas.level_counts())
    release = released(mechanism, areas, budget)
    stated = np.concatenate([release.stddev(level) for level in range(4)])
    scores = (drawn - truth) / stated
    assert np.abs(scores.mean(axis=0)).max() < 5 / np.sqrt(runs)
    of_levels = [np.sqrt((scores[:, part] ** 2).mean()) for part in np.split(np.arange(len(truth)), np.cumsum([1, 2, 6])) if len(part)]
    assert of_levels[1:] == pytest.approx([1] * 3, abs=0.02), "within 2 %"
    assert of_levels[0] == pytest.approx(1, abs=5 * np.sqrt(2 / runs))


@EVERY
@ALL
def test_intervals_hold_as_often_as_they_say_one_by_one_and_all_at_once(mechanism, budget):
    areas, runs = areas_of(regular(3, 4), np.arange(12) * 20 + 50), 300
    single, together = [], []
    for entropy in Entropy.seeded(12).spawn(runs):
        release = mechanism.release(areas, budget, entropy)
        for level in range(3):
            truth = true_sums(areas, level)
            (low, high), (all_low, all_high) = release.interval(level), release.interval(level, joint=True)
            single.append(((low <= truth) & (truth <= high)).mean())
            together.append(((all_low <= truth) & (truth <= all_high)).all())
    assert np.mean(single) > 0.945
    assert np.mean(together) > 0.945


@EVERY
@pytest.mark.parametrize("bound", [2, 5])
def test_the_noise_grows_with_the_records_per_person(mechanism, bound):
    one, many = (released(mechanism, records_of(200, contributions=m, unit="person"), PureBudget(1)) for m in (1, bound))
    for alone, step in zip(one.receipt.steps, many.receipt.steps, strict=True):
        assert (step.sensitivity, step.scale) == (bound * alone.sensitivity, bound * alone.scale)
    assert (many.receipt.unit, many.receipt.contributions) == ("person", bound)


@EVERY
def test_shares_add_up_and_come_back_as_they_were_given(mechanism):
    for regions in FRAMES.values():
        shares = [part.share for part in mechanism.shares(regions)]
        assert sum(shares) == pytest.approx(1)
        assert all(part.label for part in mechanism.shares(regions))
        assert [part.share for part in mechanism.with_shares(shares).shares(regions)] == pytest.approx(shares)
        mechanism.check(regions)


@EVERY
def test_no_word_of_the_release_depends_on_the_records(mechanism):
    few, many = (released(mechanism, records_of(number), seed=seed) for number, seed in ((0, 1), (1000, 2)))
    assert (few.steps, few.settings, few.approximate) == (many.steps, many.settings, many.approximate)
    assert few.receipt == many.receipt
    np.testing.assert_array_equal(few.noise_variance, many.noise_variance)
    for level in range(4):
        np.testing.assert_array_equal(few.stddev(level), many.stddev(level))
    assert not mechanism.depends_on_data(many)


@EVERY
def test_the_receipt_names_the_neighbours_and_what_is_not_protected(mechanism):
    receipt = released(mechanism, records_of(1234)).receipt
    bounded = mechanism.neighbours == "bounded"
    assert receipt.neighbours == ("replace one" if bounded else "add or remove one")
    text = "; ".join(receipt.unprotected)
    assert "regions" in text
    assert "settings" in text
    assert ("how many records" in text) == bounded
    assert "1,234" not in text


@EVERY
def test_every_choice_of_a_setting_makes_a_release_that_spends_its_budget(mechanism):
    six = areas_of(regular(1, 2, 2, 2, 2, 2), np.arange(32))
    for name, choice in [(rule.name, choice) for rule in mechanism.rules() for choice in rule.choices if choice != "custom"]:
        if choice == "census" and mechanism.count_root:
            continue
        release = released(replace(mechanism, **{name: choice}), six, BUDGETS["delta"])
        assert release.settings[name] == choice
        assert release.receipt.spent == BUDGETS["delta"]


@EVERY
def test_level_errors_are_those_that_the_release_states(mechanism):
    release = released(mechanism, records_of(100), BUDGETS["rho"])
    errors = mechanism.level_errors(release)
    assert [error.level for error in errors] == [0, 1, 2, 3]
    assert [error.of for error in errors] == ["the whole", *release.regions.levels]
    assert [error.numbers for error in errors] == [release.regions.size(level) for level in range(4)]
    for error in errors:
        assert error.stddev == pytest.approx(np.sqrt(np.mean(release.stddev(error.level) ** 2)))
        assert error.interval == pytest.approx(1.959963984540054 * error.stddev)


@EVERY
@ALL
@pytest.mark.parametrize("bound", [1, 4])
def test_the_errors_to_expect_are_those_of_a_release_of_any_records(mechanism, budget, bound):
    areas = records_of(700, contributions=bound)
    release = released(mechanism, areas, budget)
    assert mechanism.expected_errors(areas.regions, budget, bound) == mechanism.level_errors(release)


@EVERY
def test_other_arguments_than_areas_a_budget_and_a_stream_are_refused(mechanism):
    for budget in (0.5, None, "1"):
        with pytest.raises(BudgetError, match=r"takes a PureBudget\(epsilon\), a ZcdpBudget\(rho\) or an ApproxBudget") as refusal:
            released(mechanism, records_of(10), budget)
        assert mechanism.title in str(refusal.value)
        assert type(budget).__name__ in str(refusal.value)
    with pytest.raises(BudgetError, match="delta = 0"):
        released(mechanism, records_of(10), ApproxBudget(1, 0))
    with pytest.raises(SettingError, match=r"Entropy\.system"):
        mechanism.release(records_of(10), PureBudget(1), 7)
    for other in (np.ones(4), pd.DataFrame({"region": ["a"]})):
        with pytest.raises(InputError, match="AreaCounts"):
            released(mechanism, other)
