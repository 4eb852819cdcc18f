"""Intervals that hold for many numbers at once, and examples that are chosen without a look at the counts: how often they miss."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpviz.data.points import PointCounts
from dpviz.mechanisms import FLOW_MECHANISMS, Quadtree
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.release.simultaneous_intervals import MISS_PROBABILITY, gaussian_reach, laplace_reach, pair_intervals, point_intervals
from dpviz.space.domain import Domain
from dpviz.view.report_maps import choose_level
from dpviz.view.report_numbers import list_largest_pairs, list_point_examples
from tests.flow_cases import sums_between
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
        examples = list_point_examples(release, choose_level(release))
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
        for (low, high), covered in ((release.interval(largest), alone), (point_intervals(release, largest), together)):
            covered.append(low[0] <= truth[largest[0]] <= high[0])
    assert np.mean(alone) < 0.5  # why no report may state it
    assert np.mean(together) >= 0.95


@pytest.mark.parametrize("numbers", [1, 10, 4096, 10**6])
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "3", "5", "10", "20"])
def test_one_of_many_laplace_counts_is_outside_with_its_share_of_the_probability_at_most(epsilon, numbers):
    scale = 1 / Fraction(epsilon)
    reach = math.ceil(laplace_reach(np.array([math.sqrt(laplace_variance(scale))]), numbers)[0])
    outside = 2 * math.exp(-float(epsilon) * (reach + 1)) / (1 + math.exp(-float(epsilon)))
    assert outside <= MISS_PROBABILITY / numbers * (1 + 1e-9)


@pytest.mark.parametrize("numbers", [1, 1000])
def test_gaussian_widths_are_quantiles_and_noise_of_no_size_has_no_width(numbers):
    assert gaussian_reach(np.array([2.0]), numbers)[0] == pytest.approx(2 * stats.norm.isf(0.025 / numbers))
    assert laplace_reach(np.zeros(2), numbers).tolist() == [0, 0]


@pytest.mark.parametrize("key", FLOW_MECHANISMS)
def test_the_intervals_of_the_largest_pairs_cover_the_truth_all_at_once(key):
    flows = random_trips(grid())
    truth, missed = sums_between(flows, (2, 2)), 0
    for stream in Entropy.seeded(2).spawn(40):
        release = FLOW_MECHANISMS[key]().release(flows, ApproxBudget(1, "1e-6"), stream)
        at, (low, high) = release.stages[-1], pair_intervals(release, release.tree.height)
        true = np.array([truth.get(pair, 0) for pair in zip(at.origin.tolist(), at.destination.tolist(), strict=True)])
        missed += bool(((true < low) | (true > high)).any())
        first = np.lexsort((at.destination, at.origin, -at.count))[:3]
        listed = [(number(each.low), number(each.high)) for each in list_largest_pairs(release, 3)]
        assert listed == [*zip(low[first], high[first], strict=True)]
    assert missed <= 5
