"""Metrics of released trips against slow definitions, pair by pair; bounds on the largest error hold over many runs and are not idle."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpviz.errors import DomainError, SettingError
from dpviz.evaluation.trip_metrics import error_bounds, evaluate_trips, theorem_4
from dpviz.mechanisms import FittedTree, FlatGaussian, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.release.intervals import half_widths_of_released
from tests.trip_cases import random_regions, random_trips, regular, released_at, sums_between, trip_counts_of, trips_of

MECHANISMS = {
    "top_down": TopDown(),
    "origins first": TopDown(tree="origin", neighbours="add_remove"),
    "flat_gaussian": FlatGaussian(),
    "flat from 3": FlatGaussian(threshold=3),
    "list": FittedTree(false_discovery=0.2),
    "stability_histogram": StabilityHistogram(),
}
BUDGET = ApproxBudget("0.8", "1e-3")


def case(mechanism: str, seed: int = 1):
    rng = np.random.default_rng(seed)
    trips = random_trips(rng, random_regions(rng, 2, 4, "from "), random_regions(rng, 2, 4, "to "))
    return MECHANISMS[mechanism].release(trips, BUDGET, Entropy.seeded(seed)), trips


def slow_row(release, trips, stage: int) -> dict:
    """Every pair of the stage, one by one."""
    a, b = release.tree.levels(stage)
    true, out, at = sums_between(trips, (a, b)), released_at(release, stage), release.stages[stage]
    pairs = list(product(range(release.tree.origins.size(a)), range(release.tree.destinations.size(b))))
    error = {pair: abs(out.get(pair, 0) - true.get(pair, 0)) for pair in pairs}
    shown = [pair for pair in pairs if out.get(pair, 0) > 0]
    occupied = [pair for pair in pairs if true.get(pair, 0) > 0]
    present = [error[pair] for pair in pairs if pair in set(shown) | set(occupied)]
    false = [pair for pair in shown if not true.get(pair, 0)]
    missed = [pair for pair in occupied if out.get(pair, 0) <= 0]
    reach = half_widths_of_released(release.noise, release.stage_stddev(stage), len(out), len(pairs))
    inside = [
        max(noisy - far, 0) <= true.get((o, d), 0) <= max(noisy + far, 0)
        for o, d, count, noisy, far in zip(at.origin, at.destination, at.count, at.noisy, reach, strict=True)
        if count > 0
    ]
    without_ends = release.mechanism == "stability_histogram" and stage < 2 * release.depth
    listed = release.half_step_sums is not None and stage == 2 * release.depth
    return {
        "stage": stage,
        "between": release.tree.title(stage),
        "level": pd.NA if stage % 2 else stage // 2,
        "pairs": len(pairs),
        "true_pairs": len(occupied),
        "released_pairs": len(shown),
        "max_error": max(error.values()),
        "mean_error": sum(error.values()) / len(pairs),
        "mean_error_present": np.mean(present) if present else 0.0,
        "rms_error_present": np.sqrt(np.mean(np.square(present))) if present else 0.0,
        "false_discovery": 100 * len(false) / len(shown) if shown else 0.0,
        "false_negative": 100 * len(missed) / len(occupied) if occupied else 0.0,
        "false_positives": len(false),
        "false_negatives": len(missed),
        "false_positive_trips": sum(out[pair] for pair in false),
        "rest": sum(released_at(release, 0).values()) - sum(out.values()) if listed else 0,
        "coverage": 100 * np.mean(inside) if inside and not without_ends else np.nan,
    }


def assert_slow(release, trips) -> None:
    table = evaluate_trips(release, trips).by_stage
    slow = pd.DataFrame([slow_row(release, trips, stage) for stage in range(5)]).astype({"level": "Int64"})
    pd.testing.assert_frame_equal(table, slow, check_exact=False)
    assert table["level"].isna().tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_figure_of_every_stage_is_its_definition_pair_by_pair(mechanism):
    for seed in range(5):
        assert_slow(*case(mechanism, seed))


@pytest.mark.parametrize("pairs", [{(0, 0): 5}, {}], ids=["nothing released", "nothing there"])
def test_nothing_released_and_nothing_there_divide_by_no_zero(pairs):
    trips = trip_counts_of(regular(2, 2), pairs)
    assert_slow(StabilityHistogram().release(trips, ApproxBudget("0.1", "1e-8"), Entropy.seeded(1)), trips)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_level_is_compared_over_the_union_of_true_and_released_pairs(mechanism):
    for seed in range(3):
        release, trips = case(mechanism, seed)
        evaluation = evaluate_trips(release, trips)
        for level in range(3):
            table, row = evaluation.compare(level), evaluation.by_stage.iloc[2 * level]
            true, out = sums_between(trips, (level, level)), released_at(release, 2 * level)
            wanted = sorted(true.keys() | {pair for pair, count in out.items() if count > 0})
            assert list(zip(table["origin"].tolist(), table["destination"].tolist(), strict=True)) == wanted
            assert table["true"].tolist() == [true.get(pair, 0) for pair in wanted]
            assert table["released"].tolist() == [out.get(pair, 0) for pair in wanted]
            assert (table["error"] == table["released"] - table["true"]).all()
            kinds = table["kind"].value_counts()
            assert kinds["false positive"] == row["false_positives"]
            assert kinds["false negative"] == row["false_negatives"]
            assert kinds["true positive"] == row["true_pairs"] - row["false_negatives"]
            assert table["error"].abs().mean() == pytest.approx(row["mean_error_present"])


def test_the_truth_between_any_two_levels_is_plain_sums_made_once():
    release, trips = case("top_down", 2)
    evaluation = evaluate_trips(release, trips)
    for a, b in product(range(3), repeat=2):
        sums = evaluation.true_sums(a, b)
        found = dict(zip(zip(sums.origin.tolist(), sums.destination.tolist(), strict=True), sums.count.tolist(), strict=True))
        assert found == sums_between(trips, (a, b))
        assert evaluation.true_sums(a, b) is sums
    assert evaluation.true_level(1) is evaluation.true_sums(1, 1)
    assert evaluation.by_stage is evaluation.by_stage
    for level, action in product((-1, 3), (evaluation.true_level, evaluation.compare)):
        with pytest.raises(DomainError, match="0 to 2"):
            action(level)


def test_an_evaluation_shows_no_truth_and_takes_only_its_own_regions():
    release, trips = case("top_down")
    assert not any(character.isdigit() for character in repr(evaluate_trips(release, trips)))
    for other in (regular(2, 2), trips.regions):
        with pytest.raises(DomainError, match="same regions"):
            evaluate_trips(release, trip_counts_of(other, {(0, 0): 1}))
    again = trip_counts_of(replace(trips.regions), {(0, 0): 1}, replace(trips.ends))
    assert len(evaluate_trips(release, again).by_stage) == 5


RHO, APPROX, RUNS = ZcdpBudget("0.05"), ApproxBudget(1, "1e-4"), 40


def frames():
    """Trips by what is special about them."""
    rng = np.random.default_rng(1)
    return {
        "sparse": random_trips(rng, regular(4, 5), pairs=40, most=300),
        "uneven": random_trips(rng, random_regions(rng, 2, 4, "from "), random_regions(rng, 2, 5, "to ")),
        "deep": random_trips(rng, random_regions(rng, 4, 2), pairs=30),
        "crowded": trip_counts_of(regular(3, 3), dict.fromkeys(product(range(9), repeat=2), 500)),
        "small counts": trip_counts_of(regular(3, 3), dict.fromkeys(product(range(9), repeat=2), 12)),
    }


FRAMES = frames()
VARIANTS = {
    "default": TopDown(),
    "origins first": TopDown(tree="origin"),
    "add or remove": TopDown(neighbours="add_remove"),
    "levels, largest lowered": TopDown(split="levels", lowered="largest"),
    "least squares": TopDown(optimiser="euclidean"),
    "flat": FlatGaussian(),
    "flat, add or remove": FlatGaussian(neighbours="add_remove"),
    "flat from 9": FlatGaussian(threshold=9),
    "stability": StabilityHistogram(),
    "stability, add or remove": StabilityHistogram(neighbours="add_remove", threshold="paper"),
}


PLAIN = ("default", "flat", "stability")
PAIRS = [(variant, frame) for variant, frame in product(VARIANTS, FRAMES) if variant in PLAIN or frame == "uneven"]


def runs(mechanism, trips, *betas, number=RUNS):
    """(runs, stages) largest errors, and bounds for each beta."""
    budget = APPROX if mechanism.key == "stability_histogram" else RHO
    releases = [mechanism.release(trips, budget, entropy) for entropy in Entropy.seeded(7).spawn(number)]
    errors = np.array([evaluate_trips(release, trips).by_stage["max_error"] for release in releases])
    return errors, *(np.array([error_bounds(release, beta) for release in releases]) for beta in betas)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "frame"), PAIRS)
def test_no_stage_breaks_its_bound_more_often_than_beta(variant, frame):
    errors, *both = runs(VARIANTS[variant], FRAMES[frame], 0.5, 0.05)
    for beta, bounds in zip((0.5, 0.05), both, strict=True):
        assert np.isfinite(bounds).all()
        broken = (errors > bounds).sum(0)
        assert (stats.binom.sf(broken - 1, RUNS, beta) > 1e-6).all()


def test_the_bound_of_top_down_is_within_a_small_factor_of_what_happens():
    errors, bounds = runs(TopDown(), FRAMES["sparse"], 0.05)
    assert (errors[:, 0] == bounds[:, 0]).all()
    ratio = bounds[:, 1:] / np.maximum(errors.mean(0)[1:], 1)
    assert (ratio.max(0) < [8, 13, 18, 25]).all()
    assert (np.diff(bounds, axis=1) > 0).all()
    printed = np.roll(bounds, 1, axis=1)
    assert (errors[:, 1] > printed[:, 1]).mean() > 0.9, "up to l - 1, as printed, the sum of the paper's equation 11 is 0 at stage 1"


def test_the_bound_of_top_down_by_hand():
    trips = trip_counts_of(regular(3, 2), {(0, 0): 4000, (5, 5): 3000})
    for neighbours in ("bounded", "add_remove"):
        release = TopDown(neighbours=neighbours, split="levels").release(trips, RHO, Entropy.seeded(1))
        steps = {step.level: step for step in release.receipt.steps}
        found = error_bounds(release, 0.1)
        for stage in range(5):
            levels = [level for level in sorted(steps) if level <= stage]
            wanted = 0.0
            for level in levels:
                largest = math.sqrt(2 * steps[level].scale * math.log(2 * steps[level].counts * len(levels) / 0.1))
                wanted += largest if level == 0 else 2 * largest
            assert found[stage] == pytest.approx(wanted)


@pytest.mark.parametrize("distance", ["chebyshev", "euclidean"])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(-12, 12)), min_size=1, max_size=9),
    st.integers(-40, 40),
    st.sampled_from(["ascending", "descending"]),
)
def test_no_child_errs_by_more_than_twice_the_noise_and_its_parents_error(distance, family, off, order):
    true, noise = (np.array(part) for part in zip(*family, strict=True))
    total = max(int(true.sum()) + off, 0)
    found = nearest_whole_numbers(true + noise, total=total, distance=distance, order=order)
    assert np.abs(found - true).max() <= 2 * np.abs(noise).max() + abs(total - true.sum())


def test_the_other_bounds_by_hand():
    regions = regular(3, 2)
    trips = trip_counts_of(regions, {(0, 0): 4000})
    flat = error_bounds(FlatGaussian().release(trips, RHO, Entropy.seeded(1)), 0.1)
    inside, sizes = np.array([36, 12, 4, 2, 1]), np.array([1, 3, 9, 18, 36])
    np.testing.assert_allclose(flat, np.sqrt(inside * 2 * float(1 / RHO.rho) * np.log(2 * sizes / 0.1)))
    listed = error_bounds(FlatGaussian(threshold=7).release(trips, RHO, Entropy.seeded(1)), 0.1)
    np.testing.assert_allclose(listed, flat + np.array([0, 0, 0, 0, 6]))
    stable = error_bounds(StabilityHistogram().release(trips, APPROX, Entropy.seeded(1)), 0.1)
    np.testing.assert_allclose(stable, inside * (StabilityHistogram().compute_threshold(APPROX) - 1 + 2 * math.log(2 * 36 / 0.1)))


@pytest.mark.parametrize("mechanism", [TopDown(neighbours="add_remove"), FlatGaussian(neighbours="add_remove"), StabilityHistogram()])
def test_bounds_are_functions_of_public_facts(mechanism):
    """Two inputs whose measured numbers are as many give one bound."""
    inputs = (
        trip_counts_of(regular(2), dict(zip(product(range(2), repeat=2), counts, strict=True)))
        for counts in ((9000, 9000, 9000, 9000), (5000, 9999, 8000, 7000))
    )
    np.testing.assert_array_equal(*(error_bounds(mechanism.release(trips, APPROX, Entropy.seeded(1))) for trips in inputs))


@pytest.mark.parametrize("settings", [{"dial": 1.0}, {"false_discovery": 0.1}, {}])
def test_neither_the_dial_nor_an_unknown_mechanism_has_a_known_bound(settings):
    release = TopDown(**settings).release(trips_of(100), RHO, Entropy.seeded(1))
    assert np.isnan(error_bounds(release if settings else replace(release, mechanism="another"))).tolist() == [True] * 5


def test_no_trips_have_a_bound_too():
    for mechanism in (TopDown(), TopDown(neighbours="add_remove"), FlatGaussian(), StabilityHistogram()):
        assert np.isfinite(error_bounds(mechanism.release(trips_of(0), APPROX, Entropy.seeded(3)))).all()


@pytest.mark.parametrize("beta", [0, 1, -0.1, 1.5, float("nan")])
def test_a_probability_out_of_range_is_refused(beta):
    with pytest.raises(SettingError, match="beta"):
        error_bounds(TopDown().release(trips_of(10), RHO, Entropy.seeded(1)), beta)


def test_the_papers_curve():
    assert theorem_4(3, 4, 0.5, 10, 0.05) == pytest.approx(math.sqrt(27 * 4 / 0.5 * math.log(10 * 3 / 0.05)))
    assert theorem_4(0, 4, 0.5, 10, 0.05) == 0


def proposition_1_gaussian(stage, height, rho, fan_out, beta):
    """Boninsegna, Silvestri, 2025, Proposition 1, Eq. (4): the asymptotic error of FlatGaussian, up to a constant."""
    return fan_out ** ((height - stage) / 2) * math.sqrt(stage / rho * math.log(fan_out / beta))


@pytest.mark.parametrize("fan_out", [2, 5, 20])
def test_explicit_bounds_are_constants_times_the_papers_curves(fan_out):
    """On a regular tree: Theorem 4 with a constant of at most 4 sqrt(2), Proposition 1 with at most 2."""
    trips, rho, beta = trip_counts_of(regular(fan_out, fan_out), {(0, 0): 10**6}), 0.05, 0.05
    top, flat = (
        error_bounds(mechanism.release(trips, ZcdpBudget(rho), Entropy.seeded(1)), beta) for mechanism in (TopDown(), FlatGaussian())
    )
    for stage in range(1, 5):
        assert top[stage] <= 4 * math.sqrt(2) * theorem_4(stage, 4, rho, fan_out, beta)
        assert flat[stage] <= 2 * proposition_1_gaussian(stage, 4, rho, fan_out, beta)
