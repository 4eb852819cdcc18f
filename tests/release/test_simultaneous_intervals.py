"""Intervals that hold for many numbers at once, and examples that are chosen without a look at the counts: how often they miss."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpviz.data.points import PointCounts
from dpviz.mechanisms import MECHANISMS, FittedTree, FlatGaussian, Quadtree
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.release.intervals import MISS_PROBABILITY, half_widths
from dpviz.release.simultaneous_intervals import (
    bound_chosen_noise,
    count_of_region_numbers,
    region_intervals,
    rest_intervals,
)
from dpviz.samples.trips import load_trip_sample
from dpviz.space.domain import Domain
from dpviz.view.levels import find_level
from dpviz.view.report_numbers import list_largest_pairs, list_point_examples
from tests.often import often
from tests.trip_cases import sums_between
from tests.view.trips_cases import grid, random_trips

RUNS = 150
DOMAIN = Domain(bounds=(0, 0, 64, 64), crs=None, order=6)


def number(text):
    return int(text.replace(",", "").replace("−", "-"))


@pytest.fixture(scope="module")
def sparse_runs():
    """2,000 records on 4,096 cells at a low epsilon: most cells are noise."""
    x, y = np.random.default_rng(5).uniform(0, 64, (2, 2000))
    points = PointCounts.from_xy(x, y, domain=DOMAIN)
    runs = [Quadtree(height=6).release(points, PureBudget("0.05"), stream) for stream in Entropy.seeded(3).spawn(RUNS)]
    return runs, runs[0].tree.sums(points.column, points.row, points.count)


def test_the_intervals_of_examples_in_a_report_cover_the_truth(sparse_runs):
    runs, truth = sparse_runs
    covered = []
    for release in runs:
        examples = list_point_examples(release, find_level(release, None))
        nodes = [0 if each.where == "the whole area" else number(each.where.split()[1]) for each in examples]
        assert len(nodes) == len(set(nodes)) == 6
        covered.append([number(row.low) <= truth[node] <= number(row.high) for row, node in zip(examples, nodes, strict=True)])
    assert np.mean(covered, axis=0).min() >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / RUNS)
    assert np.mean(covered) >= 0.95


def test_the_interval_of_the_largest_of_many_covers_the_truth_only_if_it_holds_for_all_at_once(sparse_runs):
    runs, truth = sparse_runs
    alone, together = [], []
    for release in runs:
        largest = release.tree.leaves[[release.count[release.tree.leaves].argmax()]]
        for (low, high), covered in ((release.node_interval(largest), alone), (release.node_interval(largest, joint=True), together)):
            covered.append(low[0] <= truth[largest[0]] <= high[0])
    assert np.mean(alone) < 0.5  # why no report may state it
    assert np.mean(together) >= 0.95


@pytest.mark.parametrize("numbers", [1, 10, 4096, 10**6])
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "3", "5", "10", "20"])
def test_one_of_many_laplace_counts_is_outside_with_its_share_of_the_probability_at_most(epsilon, numbers):
    scale = 1 / Fraction(epsilon)
    reach = math.ceil(half_widths("laplace", np.array([math.sqrt(laplace_variance(scale))]), numbers)[0])
    outside = 2 * math.exp(-float(epsilon) * (reach + 1)) / (1 + math.exp(-float(epsilon)))
    assert outside <= MISS_PROBABILITY / numbers * (1 + 1e-9)


@pytest.mark.parametrize("numbers", [1, 1000])
def test_gaussian_widths_are_quantiles_and_noise_of_no_size_has_no_width(numbers):
    assert half_widths("gaussian", np.array([2.0]), numbers)[0] == pytest.approx(2 * stats.norm.isf(0.025 / numbers))
    assert half_widths("laplace", np.zeros(2), numbers).tolist() == [0, 0]


@pytest.mark.parametrize("key", MECHANISMS.of("trips"))
def test_the_intervals_of_the_largest_pairs_cover_the_truth_all_at_once(key):
    trips = random_trips(grid())
    truth, missed = sums_between(trips, (2, 2)), 0
    for stream in Entropy.seeded(2).spawn(40):
        release = MECHANISMS.of("trips")[key]().release(trips, ApproxBudget(1, "1e-6"), stream)
        at, (low, high) = release.stages[-1], release.stage_interval(release.tree.height, joint=True)
        true = np.array([truth.get(pair, 0) for pair in zip(at.origin.tolist(), at.destination.tolist(), strict=True)])
        missed += bool(((true < low) | (true > high)).any())
        first = np.lexsort((at.destination, at.origin, -at.count))[:3]
        listed = [(number(each.low), number(each.high)) for each in list_largest_pairs(release, 3)]
        assert listed == [*zip(low[first], high[first], strict=True)]
    assert missed <= 5


SUMS = {
    "fitted": FittedTree(),
    "list": FittedTree(false_discovery=0.05),
    "list, origins first": FittedTree(false_discovery=0.2, tree="origin", neighbours="add_remove"),
    "flat": FlatGaussian(),
    "flat, large pairs only": FlatGaussian(threshold=15),
}
SIDES = ("origin", "destination")


def ends_of_region(level, side, region):
    """The levels of the trips of a region, and its ends as arguments of `rest_intervals`."""
    ends = np.array([region], np.int32), np.zeros(1, np.int32)
    return ((level, 0), ends) if side == "origin" else ((0, level), ends[::-1])


def slow_totals(trips, listed):
    """True trips of each region, trip by trip, by (level, side, region): all of them, and those in pairs that are not listed."""
    totals, rests, regions = Counter(), Counter(), trips.regions
    for origin, destination, count in zip(trips.origin.tolist(), trips.destination.tolist(), trips.count.tolist(), strict=True):
        for level in (1, 2):
            for side, leaf in zip(SIDES, (origin, destination), strict=True):
                key = (level, side, int(regions.ancestors(level)[leaf]))
                totals[key] += count
                rests[key] += count * ((origin, destination) not in listed)
    return totals, rests


@pytest.mark.parametrize("name", often(SUMS, 1))
def test_the_intervals_of_totals_and_rests_of_all_regions_cover_the_truth_at_once(name):
    trips, missed, runs = random_trips(grid()), 0, 60
    for stream in Entropy.seeded(4).spawn(runs):
        release = SUMS[name].release(trips, ApproxBudget(1, "1e-6"), stream)
        at, numbers = release.stages[-1], count_of_region_numbers(release)
        totals, rests = slow_totals(trips, {*zip(at.origin.tolist(), at.destination.tolist(), strict=True)})
        inside = []
        for level in (1, 2):
            for side in SIDES:
                low, high = region_intervals(release, level, side)
                inside += [low[i] <= totals[level, side, i] <= high[i] for i in range(len(low))]
                for region in range(len(low)) if release.half_step_sums is not None else ():
                    levels, ends = ends_of_region(level, side, region)
                    low_rest, high_rest = rest_intervals(release, levels, *ends, numbers, most=high[region : region + 1])
                    assert high_rest[0] <= high[region]
                    inside.append(low_rest[0] <= rests[level, side, region] <= high_rest[0])
        assert len(inside) == numbers / (1 if release.half_step_sums is not None else 2)
        missed += not all(inside)
    assert missed <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


def test_intervals_of_totals_are_as_wide_as_the_noise_of_their_pairs_and_not_wider_than_that():
    """Of the flat mechanism the error of a total is known: so many numbers with the same noise."""
    release = FlatGaussian().release(random_trips(grid()), ApproxBudget(1, "1e-6"), Entropy.seeded(1))
    total = np.bincount(release.stages[-1].origin, release.stages[-1].noisy, 24)
    stddev = math.sqrt(24 * release.stages[-1].variance)
    reach = half_widths("gaussian", np.full(24, stddev), 2 * 2 * (6 + 24))
    low, high = region_intervals(release, 2, "origin")
    assert low.tolist() == np.maximum(np.floor(total - reach), 0).tolist()
    assert high.tolist() == np.maximum(np.ceil(total + reach), 0).tolist()


def test_rests_of_pairs_of_regions_are_covered_at_once():
    trips, missed, runs = random_trips(grid()), 0, 60
    parent = trips.regions.ancestors(1)
    for stream in Entropy.seeded(6).spawn(runs):
        release = SUMS["list"].release(trips, ApproxBudget(1, "1e-6"), stream)
        at, above = release.stages[-1], release.stages[2]
        listed, true = {*zip(at.origin.tolist(), at.destination.tolist(), strict=True)}, Counter()
        for origin, destination, count in zip(trips.origin.tolist(), trips.destination.tolist(), trips.count.tolist(), strict=True):
            true[int(parent[origin]), int(parent[destination])] += count * ((origin, destination) not in listed)
        whole = release.stage_interval(2, joint=True)[1]
        low, high = rest_intervals(release, (1, 1), above.origin, above.destination, release.numbers, most=whole)
        assert (high <= whole).all()
        rests = np.array([true[pair] for pair in zip(above.origin.tolist(), above.destination.tolist(), strict=True)])
        missed += bool(((rests < low) | (rests > high)).any())
    assert missed <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


def test_what_is_not_listed_is_never_said_to_be_more_than_the_whole():
    """Of the flights of a region, and of two states; without the bound by the whole it would be, for several."""
    release = FittedTree(false_discovery=0.05).release(load_trip_sample("us_flights"), ApproxBudget(1, "1e-6"), Entropy.seeded(1))
    pairs, numbers = release.stages[4], release.numbers
    whole = release.stage_interval(4, joint=True)[1]
    alone, bounded = (rest_intervals(release, (2, 2), pairs.origin, pairs.destination, numbers, most=most) for most in (None, whole))
    assert (alone[1] > whole).sum() > 100
    assert bounded[0].tolist() == alone[0].tolist()
    assert bounded[1].tolist() == np.minimum(alone[1], whole).tolist()
    assert release.numbers >= 2 * sum(release.tree.size(2 * level) for level in (1, 2))


@pytest.mark.parametrize(("inside", "correlated"), [(5, False), (24, False), (24, True), (300, False)])
def test_the_bound_on_chosen_noise_holds_for_the_largest_sum_of_every_size(inside, correlated):
    """Whichever k of n noises are chosen, the worst choice are the k largest."""
    noise = np.random.default_rng(7).normal(size=(4000, inside))
    if correlated:  # a sum that is known exactly makes its parts negatively correlated
        noise = (noise - noise.mean(axis=1, keepdims=True)) / math.sqrt(1 - 1 / inside)
    sizes = np.arange(inside + 1)
    sums = np.column_stack([np.zeros(4000), np.cumsum(-np.sort(-noise, axis=1), axis=1)])
    bound = bound_chosen_noise(sizes, np.full(inside + 1, float(inside)), 1)
    assert (sums > bound).any(axis=1).mean() <= MISS_PROBABILITY / 2
    few = slice(1, inside // 2 + 1)
    assert (bound[few] < 3 * np.quantile(sums, 0.95, axis=0)[few] + 5).all()  # of a useful size
    assert bound[0] == 0


@pytest.mark.parametrize("key", ["top_down", "stability_histogram"])
def test_totals_that_lack_pairs_have_no_interval_but_where_they_were_measured(key):
    trips = random_trips(grid())
    release = MECHANISMS.of("trips")[key]().release(trips, ApproxBudget(1, "1e-6"), Entropy.seeded(1))
    assert np.isnan(region_intervals(release, 2, "destination")).all()
    assert np.isnan(region_intervals(release, 1, "origin")).all()
    assert np.isnan(release.stage_interval(2, joint=True)[1]).all() == (key == "stability_histogram"), "sums of pairs above a threshold"
    low, high = region_intervals(release, 1, "destination")
    if key == "stability_histogram":
        assert np.isnan([low, high]).all()
        return
    at, ends = release.stages[1], release.stage_interval(1, joint=True)
    assert low[at.destination].tolist() == ends[0].tolist()
    assert high[at.destination].tolist() == ends[1].tolist()
