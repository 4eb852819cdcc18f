"""Counts by place and hour against a tree per hour and flat counts, and what they cost beside their own noise.

    pytest -n 0 -s -m benchmark tests/benchmarks/test_place_by.py

The made-up city has 1,608 blocks; hours come from mixtures that differ from district to district, tract to tract and block to block.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dpviz as dv
from dpviz.mechanisms.areas.cross_tree import CrossTree
from dpviz.privacy.lean import PLACES, Families, make_lean
from dpviz.privacy.noise import discrete_gaussian
from dpviz.privacy.tree_product import fit_product
from dpviz.release.cross_release import CrossRelease
from tests.benchmarks.measures import best
from tests.cross_cases import categories_like, cross_of
from tests.trip_cases import regular

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

HOURS, HOURS_IN_UTC = dv.Categories.hours(), dv.Categories.hours("UTC")
CITY, SEEDS = dv.load_sample("made_up_city"), range(7000, 7010)
RHO, PURE = dv.ApproxBudget(1, "1e-6").to_zcdp(), dv.PureBudget(1)


def visits(records: int, **options) -> dv.AreaCounts:
    """Records of the city by block and hour."""
    regions, rng, hour = CITY.regions, np.random.default_rng(5), np.arange(24)

    def peak(centre: float, width: float) -> np.ndarray:
        away = np.abs(hour - centre)
        return np.exp(-((np.minimum(away, 24 - away) / width) ** 2) / 2)

    days = [peak(8, 1.5) + 1.2 * peak(18, 2.5) + 0.15, peak(13, 3) + 0.3 * peak(9, 1) + 0.02, peak(22, 2.5) + 0.5 * peak(0, 2) + 0.05]
    days = np.array([*days, peak(12, 5) + 0.04])
    weight = np.zeros((1, 4))
    for level, deviation in zip(range(1, 4), (0.8, 0.6, 0.4), strict=True):
        weight = weight[regions.parent[level - 1]] + rng.normal(size=(regions.size(level), 4)) * deviation
    share = np.exp(weight) / np.exp(weight).sum(axis=1, keepdims=True)
    of_block = np.zeros(regions.size(3))
    of_block[CITY.leaf] = CITY.count
    mean = (records * of_block / of_block.sum())[:, None] * (share @ (days / days.sum(axis=1, keepdims=True)))
    return cross_of(regions, HOURS, rng.poisson(mean), **options)


def mechanisms(areas: dv.AreaCounts, budget) -> dict[str, CrossTree]:
    """The cross tree; a region tree per hour; and flat counts: all as cross trees, whose noise and fit are the same."""
    tree = dv.RegionTree().level_weights(areas.regions, gaussian=budget is RHO)
    per_slot = {"slot_split": "custom", "slot_weights": (0, 0, 1), "split": "custom", "lean": False}
    return {"cross": CrossTree(), "per hour": CrossTree(**per_slot, weights=tree), "flat": CrossTree(**per_slot, weights=(0, 0, 0, 1))}


def nonnegative(release: CrossRelease) -> np.ndarray:
    """Counts projected to at least 0 hour by hour, from the whole down, as a region tree's non-negative counts nearly are."""
    hours, places = release.slot_hierarchy.at_depth(2), release.hierarchy
    found = np.maximum(release.cross_count[:, hours], 0)
    for depth in range(1, places.height + 1):
        here, above = places.at_depth(depth), places.at_depth(depth - 1)
        found[here] = Families.at_depth(places, depth, PLACES).project(release.cross_count[here, hours], found[above])
    leaves = np.zeros_like(release.cross_count)
    leaves[places.at_depth(3), hours] = found[places.at_depth(3)]
    return np.ascontiguousarray(release.slot_hierarchy.sum_up(np.ascontiguousarray(places.sum_up(leaves).T)).T)


PAIRS = {"cell": (3, 2), "block": (3, 0), "district by hour": (1, 2), "hour": (0, 2), "whole": (0, 0)}


def errors(areas: dv.AreaCounts, budget) -> pd.DataFrame:
    """Root mean square errors of each way and each pair of levels, of unbiased counts and of those of at least 0 (+)."""
    truth, rows = areas.cross_counts(), []
    for seed in SEEDS:
        for name, mechanism in mechanisms(areas, budget).items():
            release = mechanism.release(areas, budget, dv.Entropy.seeded(seed))
            final = release.cross_count if mechanism.lean else nonnegative(release)
            for way, counts in ((name, release.cross_centre), (f"{name} +", final)):
                wrong = {pair: np.sqrt(np.mean(release.of_pair(counts - truth, levels) ** 2)) for pair, levels in PAIRS.items()}
                rows.append({"way": way, "seed": seed, **wrong})
    return pd.DataFrame(rows).drop(columns="seed").groupby("way", sort=False).mean()


SETS = {"sparse": lambda: visits(40_000), "dense": lambda: visits(2_000_000), "flights": lambda: dv.load_sample("us_departures")}
"""The city twice, and real flights by airport and hour."""


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("budget", [RHO, PURE], ids=["rho", "epsilon"])
def test_errors_stand_to_those_of_other_ways_as_was_worked_out(name, budget):
    found = errors(SETS[name](), budget)
    print(f"\n{name}, {budget}\n{found.round(2)}")
    best_other = found.loc[["per hour +", "flat +"]].min()
    lean = found.loc["cross +"]
    assert lean["cell"] < (0.72 if name == "sparse" and budget is RHO else 1.25) * best_other["cell"]
    if budget is RHO:
        assert lean["block"] < 0.7 * best_other["block"]
    else:
        assert found.loc["cross", "cell"] < 1.25 * found.loc["flat", "cell"]
        assert found.loc["cross", "hour"] < (0.6 if name == "flights" else 0.28) * found.loc["flat", "hour"]


def test_a_person_with_four_records_and_one_an_hour_has_a_seventh_of_the_noise_of_24_releases():
    """Each of the 24 with a 24th of epsilon and delta."""
    frame = visits(40_000).frame
    cross = {each.of: each.stddev for each in CrossTree().expected_pair_errors(frame, RHO, 4, 1)}["block by hour"]
    one_day = dv.RegionTree().expected_errors(CITY.regions, dv.ApproxBudget("1/24", "1/24000000").to_zcdp())[-1].stddev
    print(f"\ncell {cross:.1f}, in 24 releases {one_day:.1f}: {cross / one_day:.3f}")
    assert cross < 0.15 * one_day


@pytest.mark.parametrize(("fan_outs", "slots"), [((12, 9, 15), (4, 6)), ((50, 20, 20), (7, 24))], ids=["50,000", "3.7 million"])
def test_the_fit_takes_less_time_than_the_noise_and_lean_counts_a_few_times_as_long(line, fan_outs, slots):
    regions, categories = regular(*fan_outs), categories_like(regular(*slots, prefix="slot "))
    areas = cross_of(regions, categories, np.random.default_rng(1).poisson(2, (regions.size(3), categories.slots)))
    release, truth = CrossTree(lean=False).release(areas, RHO, dv.Entropy.system()), areas.cross_counts()
    pairs = [(level, slot) for level in range(4) for slot in range(3)]
    parts = [np.ascontiguousarray(release.of_pair(truth, pair)).ravel() for pair in pairs]

    def draw() -> None:
        for true, step in zip(parts, release.receipt.steps, strict=True):
            discrete_gaussian(true, dv.ZcdpBudget(step.amount), dv.Entropy.system())

    noise = best(draw, 3)
    fit = best(lambda: fit_product(release.spread.places, release.spread.slots, release.cross_noisy), 3)
    spread, places, categories_tree = release.spread, regions.hierarchy, categories.hierarchy
    lean = best(lambda: make_lean(places, categories_tree, release.cross_count, spread.of_nodes()), 3)
    line(f"fit of {truth.size:,} numbers", fit, noise, "their noise", 1)
    line(f"lean counts of {truth.size:,} numbers", lean, noise, "their noise", 6)


@pytest.mark.parametrize(("kind", "bar"), [("parquet", 1.3), ("csv", 1.7)])
def test_hours_of_20_million_points_cost_little(line, tmp_path, kind, bar):
    rng, rows, regions = np.random.default_rng(1), 20_000_000, CITY.regions
    west, south, east, north = regions.geometry[-1].total_bounds
    minutes = rng.integers(0, 365 * 24 * 60, rows) * np.timedelta64(1, "m")
    table = pa.table(
        {
            "x": rng.uniform(west, east, rows).round(4),
            "y": rng.uniform(south, north, rows).round(4),
            "at": pa.array((np.datetime64("2026-01-01T00:00") + minutes).astype("datetime64[ms]")),
        }
    )
    path = tmp_path / f"visits.{kind}"
    if kind == "csv":
        pacsv.write_csv(table.set_column(2, "at", pc.strftime(table["at"], "%Y-%m-%d %H:%M")), path)
    else:
        pq.write_table(table, path)
    options = {"regions": regions, "x": "x", "y": "y", "crs": str(regions.crs), "count": "none", "engine": "duckdb"}
    without = best(lambda: dv.read_areas(path, **options), 3)
    by_hour = best(lambda: dv.read_areas(path, **options, categories=HOURS_IN_UTC, slot="at"), 3)
    line(f"20 M points of {kind} by hour", by_hour, without, "without hours", bar)


TOWNS = np.array([20, 50, 200, 2000])
"""Records of each of four kinds of towns, of which there are 150 each."""


@pytest.mark.parametrize(("budget", "bar"), [(dv.PureBudget(1), 0.77), (RHO, 1.02)], ids=["epsilon", "rho"])
def test_means_have_smaller_errors_than_half_of_the_budget_on_a_count_and_half_on_a_centred_sum(budget, bar):
    """Geometric mean over sizes of towns and true means; the other way has the same kind of noise, and its means are cut to the bounds."""
    rng, top, kinds = np.random.default_rng(9), 120, np.repeat(TOWNS, 150)
    regions = dv.Regions.from_table(pd.DataFrame({"town": [f"t{town}" for town in range(len(kinds))]}), levels=["town"])
    ratios, held = [], []
    for mean in (15, 45, 60):
        values = np.clip(rng.gamma(2, mean / 2, kinds.sum()).round(), 0, top)
        town = np.repeat(np.arange(len(kinds)), kinds)
        table = pd.DataFrame({"region": regions.ids_of(1)[town], "v": values})
        areas = dv.AreaCounts.from_table(table, regions=regions, categories=dv.Summed(low=0, high=top), slot="v", count="none")
        true = np.bincount(town, values) / kinds
        release = CrossTree(lean=False, split="custom", weights=(0, 1)).release(areas, budget, dv.Entropy.seeded(mean))
        means = release.means()
        held.append(((means["mean_low"] <= true) & (true <= means["mean_high"])).mean())
        nodes = release.nodes()
        share = release.cross_count[nodes, 2] / np.maximum(release.count[nodes], 1e-9)
        ours = np.where(
            release.cross_count[nodes, 2] <= 0, 0, np.where(release.cross_count[nodes, 1] <= 0, top, top * np.clip(share, 0, 1))
        )
        count, centred = (_half_noise(sensitivity, budget, len(kinds), rng) for sensitivity in (1, top))
        other = np.clip(top / 2 + (np.bincount(town, 2 * values - top) + centred) / 2 / np.maximum(kinds + count, 1), 0, top)
        for size in TOWNS:
            here = kinds == size
            errors = [np.sqrt(np.mean((found[here] - true[here]) ** 2)) for found in (ours, other)]
            ratios.append(errors[0] / errors[1])
    ratio, coverage = float(np.exp(np.mean(np.log(ratios)))), float(np.mean(held))
    print(f"\nerror of the mean: {ratio:.2f} of the other way, from {min(ratios):.2f} to {max(ratios):.2f}; intervals hold {coverage:.3f}")
    assert ratio < bar
    assert 0.94 < coverage < 0.96


def _half_noise(sensitivity, budget, number, rng):
    """Noise of the kind of a budget, of which half is spent on a number of this sensitivity."""
    if isinstance(budget, dv.PureBudget):
        return rng.laplace(0, 2 * sensitivity / float(budget.epsilon), number)
    return rng.normal(0, sensitivity / np.sqrt(float(budget.rho)), number)
