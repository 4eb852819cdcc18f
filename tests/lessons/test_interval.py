from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpviz.lessons import interval
from dpviz.lessons.town import TWO, town
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import INTERVAL_WIDTH


@pytest.mark.parametrize("height", [3, 4, 5])
@pytest.mark.parametrize("area", interval.AREAS)
def test_the_answer_without_noise_is_that_of_a_release_with_true_counts(area, height):
    points = town(interval.ORDER, interval.PEOPLE, TWO)
    release = Quadtree(height=height).release(points, PureBudget(1), Entropy.seeded(1))
    exact = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(float))
    assert interval.noiseless_answer(area, height) == pytest.approx(exact.answer([interval.AREAS[area]])[0])


def test_without_bias_intervals_hold_as_often_as_they_say():
    containing = sum(interval.intervals(interval.BLOCK, 0.5, 4, draw).containing for draw in (1, 2, 3))
    assert containing >= stats.binom.ppf(0.001, 3 * interval.REPEATS, 0.95)
    assert interval.intervals(interval.BLOCK, 0.5, 4, 1).bias == pytest.approx(0)


def test_a_bias_is_in_no_interval():
    found = interval.intervals(interval.CUTS, 0.5, 3, 1)
    assert abs(found.bias) > 10 * found.stddev
    assert found.containing == 0
    assert interval.intervals(interval.SMALL, 0.5, 5, 1).containing > interval.intervals(interval.SMALL, 0.5, 3, 1).containing


def test_intervals_are_those_of_the_release_and_counted_right():
    found = interval.intervals(interval.BLOCK, 0.5, 4, 9)
    table = found.table
    assert len(table) == interval.REPEATS
    assert (table["low"] == np.floor(table["estimate"] - INTERVAL_WIDTH * found.stddev)).all()
    containing = ((table["low"] <= found.truth) & (found.truth <= table["high"])).sum()
    assert found.containing == containing == (table["series"] == interval.CONTAINS).sum()
    assert table["estimate"].mean() == pytest.approx(found.truth + found.bias, abs=5 * found.stddev / np.sqrt(interval.REPEATS))
    assert table["estimate"].std() == pytest.approx(found.stddev, rel=0.3)


def test_the_usual_range_is_that_of_the_binomial_law():
    low, high = interval.expected_range()
    law = stats.binom(interval.REPEATS, 0.95)
    assert law.cdf(low - 1) < 0.03
    assert law.cdf(high) - law.cdf(low - 1) >= 0.95
