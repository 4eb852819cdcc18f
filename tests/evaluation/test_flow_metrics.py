"""Metrics of released trips against slow definitions, pair by pair; the truth for the curator's map."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import DomainError
from dpviz.evaluation.flow_metrics import evaluate_flows
from dpviz.mechanisms import FlatGaussian, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.flow_release import INTERVAL_WIDTH, StageCounts
from tests.flow_cases import flows_of, random_flows, random_regions, regular, released_at, sums_between

MECHANISMS = {
    "top_down": TopDown(),
    "origins first": TopDown(tree="origin", neighbours="add_remove"),
    "flat_gaussian": FlatGaussian(),
    "flat from 3": FlatGaussian(least=3),
    "stability_histogram": StabilityHistogram(),
}
EVERY = pytest.mark.parametrize("mechanism", MECHANISMS)
BUDGET = ApproxBudget("0.8", "1e-3")


def case(mechanism: str, seed: int = 1):
    rng = np.random.default_rng(seed)
    flows = random_flows(rng, random_regions(rng, 2, 4, "from "), random_regions(rng, 2, 4, "to "))
    return MECHANISMS[mechanism].release(flows, BUDGET, Entropy.seeded(seed)), flows


def slow_row(release, flows, stage: int) -> dict:
    """Every pair of the stage, one by one."""
    a, b = release.tree.levels(stage)
    true, out, at = sums_between(flows, (a, b)), released_at(release, stage), release.stages[stage]
    pairs = list(product(range(release.tree.origins.size(a)), range(release.tree.destinations.size(b))))
    error = {pair: abs(out.get(pair, 0) - true.get(pair, 0)) for pair in pairs}
    shown = [pair for pair in pairs if out.get(pair, 0) > 0]
    occupied = [pair for pair in pairs if true.get(pair, 0) > 0]
    present = [error[pair] for pair in pairs if pair in set(shown) | set(occupied)]
    false = [pair for pair in shown if not true.get(pair, 0)]
    missed = [pair for pair in occupied if out.get(pair, 0) <= 0]
    inside = [
        max(np.floor(noisy - INTERVAL_WIDTH * stddev), 0) <= true.get((o, d), 0) <= max(np.ceil(noisy + INTERVAL_WIDTH * stddev), 0)
        for o, d, count, noisy, stddev in zip(at.origin, at.destination, at.count, at.noisy, release.stddev(stage), strict=True)
        if count > 0
    ]
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
        "false_discovery": 100 * len(false) / len(shown) if shown else 0.0,
        "false_negative": 100 * len(missed) / len(occupied) if occupied else 0.0,
        "false_positives": len(false),
        "false_negatives": len(missed),
        "false_positive_trips": sum(out[pair] for pair in false),
        "coverage": 100 * np.mean(inside) if inside else np.nan,
    }


@EVERY
@pytest.mark.parametrize("seed", range(5))
def test_every_figure_of_every_stage_is_its_definition_pair_by_pair(mechanism, seed):
    release, flows = case(mechanism, seed)
    table = evaluate_flows(release, flows).by_stage
    slow = pd.DataFrame([slow_row(release, flows, stage) for stage in range(5)]).astype({"level": "Int64"})
    pd.testing.assert_frame_equal(table, slow, check_exact=False)
    assert table["level"].isna().tolist() == [False, True, False, True, False]


@EVERY
def test_a_stage_table_with_intervals_covers_what_the_coverage_says(mechanism):
    release, flows = case(mechanism, 3)
    coverage = evaluate_flows(release, flows).by_stage["coverage"]
    for stage in range(5):
        a, b = release.tree.levels(stage)
        table, true = release.stage(stage, spread=True).query("count > 0"), sums_between(flows, (a, b))
        o, d = release.tree.origins.find(table["origin"], a), release.tree.destinations.find(table["destination"], b)
        truth = np.array([true.get(pair, 0) for pair in zip(o.tolist(), d.tolist(), strict=True)])
        inside = ((table["ci_low"] <= truth) & (truth <= table["ci_high"])).mean()
        assert coverage[stage] == pytest.approx(100 * inside, nan_ok=True)


def test_a_perfect_release_has_no_errors():
    _, flows = case("top_down")
    flows = replace(flows, count=flows.count + 1)
    table = evaluate_flows(TopDown().release(flows, ZcdpBudget(10**6), Entropy.seeded(1)), flows).by_stage
    for column in ("max_error", "mean_error", "mean_error_present", "false_discovery", "false_negative", "false_positives"):
        assert (table[column] == 0).all()
    assert (table["true_pairs"] == table["released_pairs"]).all()
    assert (table["coverage"] == 100).all()


def test_nothing_released_and_nothing_there_divide_by_no_zero():
    flows = flows_of(regular(2, 2), {(0, 0): 5})
    nothing = evaluate_flows(StabilityHistogram().release(flows, ApproxBudget("0.1", "1e-8"), Entropy.seeded(1)), flows).by_stage
    assert nothing["released_pairs"].tolist() == nothing["false_discovery"].tolist() == [0] * 5
    assert nothing["false_negative"].tolist() == [100] * 5
    assert nothing["max_error"].tolist() == [5] * 5
    assert nothing["mean_error_present"].tolist() == [5] * 5
    assert nothing["coverage"].isna().all()
    empty = flows_of(regular(2, 2), {})
    table = evaluate_flows(TopDown().release(empty, BUDGET, Entropy.seeded(1)), empty).by_stage
    assert table.drop(columns=["between", "level", "pairs", "stage", "coverage"]).to_numpy().max() == 0


def test_negative_counts_are_not_released_and_zeros_in_a_list_count_once():
    regions = regular(2)
    flows = flows_of(regions, {(0, 0): 10, (1, 1): 4})
    release = FlatGaussian().release(flows, BUDGET, Entropy.seeded(1))
    origin, destination = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    count = np.array([7, -3, 2, 0])
    leaves = StageCounts(origin=origin, destination=destination, count=count, noisy=count, variance=1.0, measured=4)
    evaluation = evaluate_flows(replace(release, stages=(*release.stages[:-1], leaves)), flows)
    row = evaluation.by_stage.iloc[-1]
    assert (row["true_pairs"], row["released_pairs"], row["false_positives"], row["false_negatives"]) == (2, 2, 1, 1)
    assert (row["max_error"], row["mean_error"], row["mean_error_present"]) == (4, 12 / 4, 9 / 3)
    assert (row["false_discovery"], row["false_negative"], row["false_positive_trips"]) == (50, 50, 2)
    table = evaluation.compare(1)
    assert table[["origin", "destination", "released", "true", "error"]].to_numpy().tolist() == [
        [0, 0, 7, 10, -3],
        [1, 0, 2, 0, 2],
        [1, 1, 0, 4, -4],
    ]
    assert table["kind"].tolist() == ["true positive", "false positive", "false negative"]


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_a_level_is_compared_over_the_union_of_true_and_released_pairs(mechanism, seed):
    release, flows = case(mechanism, seed)
    evaluation = evaluate_flows(release, flows)
    for level in range(3):
        table, row = evaluation.compare(level), evaluation.by_stage.iloc[2 * level]
        true, out = sums_between(flows, (level, level)), released_at(release, 2 * level)
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
    release, flows = case("top_down", 2)
    evaluation = evaluate_flows(release, flows)
    for a, b in product(range(3), repeat=2):
        sums = evaluation.true_sums(a, b)
        found = dict(zip(zip(sums.origin.tolist(), sums.destination.tolist(), strict=True), sums.count.tolist(), strict=True))
        assert found == sums_between(flows, (a, b))
        assert evaluation.true_sums(a, b) is sums
    assert evaluation.true_level(1) is evaluation.true_sums(1, 1)
    assert evaluation.by_stage is evaluation.by_stage
    for level in (-1, 3):
        with pytest.raises(DomainError, match="0 to 2"):
            evaluation.true_level(level)
        with pytest.raises(DomainError, match="0 to 2"):
            evaluation.compare(level)


def test_an_evaluation_shows_no_truth_when_printed():
    release, flows = case("top_down")
    assert not any(character.isdigit() for character in repr(evaluate_flows(release, flows)))


def test_other_regions_are_refused_and_equal_ones_taken():
    release, flows = case("top_down")
    with pytest.raises(DomainError, match="same regions"):
        evaluate_flows(release, flows_of(regular(2, 2), {(0, 0): 1}))
    with pytest.raises(DomainError, match="same regions"):
        evaluate_flows(release, flows_of(flows.regions, {(0, 0): 1}))
    again = flows_of(replace(flows.regions), {(0, 0): 1}, replace(flows.ends))
    assert len(evaluate_flows(release, again).by_stage) == 5
