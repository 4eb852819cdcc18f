"""Axes, shares, odds and sums of a report, against their definitions."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpviz.mechanisms import Identity, Quadtree, UniformGrid
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.manifest import describe
from dpviz.view.report_numbers import (
    LevelRow,
    add_up_errors,
    add_up_spending,
    choose_axis,
    compute_odds,
    compute_reliability_shares,
    list_level_rows,
)
from tests.release_cases import WORDS, point_release, points_of, trip_release


def rows_of(values):
    same = {"level": 0, "name": "", "parts": 1, "size": None, "width": 1.0, "shares": (0.0, 0.0, 0.0), "grade": ""}
    return [LevelRow(median=median, p95=p95, **same) for median, p95 in values]


AXES = [[(3.0, 4.0)], [(0.2, 0.3), (1.0, 2.0)], [(1.0, 1e5)], [(0.0, 0.0)], [(None, None)], [(0.0, 7.0), (5, 6)]]


@pytest.mark.parametrize("values", AXES)
def test_an_axis_holds_all_values_between_its_ends(values):
    axis = choose_axis(rows_of(values))
    places = [place for place, _ in axis.ticks]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, pytest.approx(1))
    assert places == pytest.approx([axis.position(float(text.replace(",", ""))) for _, text in axis.ticks], abs=1e-6)
    known = sorted(value for pair in values for value in pair if value)
    assert all(axis.low <= value <= axis.high for value in known)
    shown = [axis.position(value) for value in known]
    assert shown == sorted(shown)


def test_the_pyramid_adds_up_exactly_and_shares_follow_the_classes_of_reliability():
    count, stddev = np.array([100.0, 100.0, 100.0, 0.0, -100.0]), np.array([12.0, 40.0, 41.0, 1.0, 5.0])
    assert compute_reliability_shares(count, stddev) == (20.0, 20.0, 60.0)
    release = point_release()
    assert sum(Fraction(layer.exact) for layer in add_up_spending(release)) == release.receipt.used
    assert [layer.name for layer in add_up_spending(release)] == ["whole area", "level 1", "level 2", "level 3, the finest"]


@pytest.mark.parametrize("release", [point_release, trip_release])
def test_level_rows_are_the_manifests_numbers(release):
    facts = describe(release(), WORDS)["utility"]["levels"]
    rows = list_level_rows(release(), facts)
    assert [row.median for row in rows] == [level["stddev_median"] for level in facts]
    assert [row.parts for row in rows] == [level["partitions"] for level in facts]
    assert all(sum(row.shares) == pytest.approx(100) for row in rows if row.parts)


@pytest.mark.parametrize("epsilon", ["1/1000", "1/3", "1", "7/3", "7", "10", "20", "300"])
def test_odds_are_bounds_of_bayes_rule_also_after_rounding(epsilon):
    stated = compute_odds(UniformGrid(side=4).release(points_of(50), PureBudget(epsilon), Entropy.system()).receipt)
    e = float(Fraction(epsilon))
    assert e <= float(stated.epsilon) <= e * 1.001
    for text, factor in ((stated.factor, math.exp(e)), (stated.twice, math.exp(2 * e))):
        assert factor <= float(text.replace(",", "")) <= factor * 1.1
    for before, least, most in stated.beliefs:
        prior = float(before.removesuffix(" %")) / 100
        low, high = (100 / (1 + (1 - prior) / prior * factor) for factor in (math.exp(e), math.exp(-e)))
        assert max(low - 0.1, 0.9 * low if low > 0.1 else 0) <= float(least.removesuffix(" %")) <= low
        assert high <= float(most.removesuffix(" %")) <= high + 0.1


def test_the_error_of_a_sum_of_independent_parts_is_stated():
    flat, release = (made.release(points_of(100), PureBudget(1), Entropy.system()) for made in (Identity(order=3), Quadtree(height=4)))
    sums, tree = add_up_errors(flat), add_up_errors(release)
    assert (sums.accumulates, tree.accumulates, tree.consistent) == (True, False, True)
    assert sums.stated == pytest.approx(sums.independent) == pytest.approx(sums.single * 8)
    assert tree.stated < tree.independent
    assert not add_up_errors(replace(release, count=release.count + np.eye(1, len(release.count))[0])).consistent
