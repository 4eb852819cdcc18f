from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpviz.lessons import interval
from dpviz.lessons.town import TWO_CROWDS, town
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.intervals import STDDEVS


@pytest.mark.parametrize("height", [3, 4, 5])
def test_the_answer_without_noise_is_that_of_a_release_with_true_counts(height):
    points = town(interval.ORDER, interval.PEOPLE, TWO_CROWDS)
    release = Quadtree(height=height).release(points, PureBudget(1), Entropy.seeded(1))
    exact = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(float))
    for area, box in interval.AREAS.items():
        assert interval.noiseless_answer(area, height) == pytest.approx(exact.answer([box])[0]), area


def test_without_bias_intervals_hold_as_often_as_they_say_and_with_bias_never():
    found = [interval.intervals(interval.BLOCK, 0.5, 4, draw) for draw in (1, 2, 3)]
    assert sum(each.containing for each in found) >= stats.binom.ppf(0.001, 3 * interval.REPEATS, 0.95)
    assert found[0].bias == pytest.approx(0)
    biased = interval.intervals(interval.CUTS, 0.5, 3, 1)
    assert abs(biased.bias) > 10 * biased.stddev
    assert biased.containing == 0
    finer, coarser = (interval.intervals(interval.SMALL, 0.5, height, 1).containing for height in (5, 3))
    assert finer > coarser


def test_intervals_are_those_of_the_release_and_counted_right():
    found = interval.intervals(interval.BLOCK, 0.5, 4, 9)
    table = found.table
    assert len(table) == interval.REPEATS
    assert (table["low"] == np.maximum(np.floor(table["estimate"] - STDDEVS["laplace"] * found.stddev), 0)).all()
    containing = ((table["low"] <= found.truth) & (found.truth <= table["high"])).sum()
    assert found.containing == containing == (table["series"] == interval.CONTAINS).sum()
    assert table["estimate"].mean() == pytest.approx(found.truth + found.bias, abs=5 * found.stddev / np.sqrt(interval.REPEATS))
    assert table["estimate"].std() == pytest.approx(found.stddev, rel=0.3)
    low, high = interval.expected_range()
    below, inside = stats.binom(interval.REPEATS, 0.95).cdf([low - 1, high])
    assert below < 0.03, "the usual range is that of the binomial law"
    assert inside - below >= 0.95
