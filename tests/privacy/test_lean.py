"""Lean counts: at least 0, adding up both ways, with the totals of places that were projected, and nothing that depends on the order."""

import numpy as np
import pytest

from dpviz.privacy.lean import PLACES, SLOTS, Families, make_lean
from tests.area_cases import membership
from tests.trip_cases import from_parents, random_regions, regular


def case(seed: int, most: int = 40):
    """Two random trees, true counts, estimates that add up, and variances of about their errors."""
    rng = np.random.default_rng(seed)
    trees = random_regions(rng, int(rng.integers(1, 4)), 4), random_regions(rng, int(rng.integers(1, 3)), 4)
    sums = [membership(tree) for tree in trees]
    cells = rng.poisson(most * rng.random((sums[0].shape[1], 1)) * rng.random(sums[1].shape[1]))
    noise = rng.normal(size=cells.shape) * 6
    variance = 36 * np.outer(*(each.sum(axis=1) for each in sums))
    return trees, sums, sums[0] @ (cells + noise) @ sums[1].T, variance


def lean(trees, estimate, variance):
    return make_lean(*(tree.hierarchy for tree in trees), estimate, variance)


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_not_negative_and_add_up_along_places_and_slots(seed):
    trees, sums, estimate, variance = case(seed)
    found = lean(trees, estimate, variance)
    leaves = found[trees[0].hierarchy.at_depth(trees[0].depth)][:, trees[1].hierarchy.at_depth(trees[1].depth)]
    assert (found >= 0).all()
    np.testing.assert_allclose(sums[0] @ leaves @ sums[1].T, found, atol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_totals_are_those_of_the_estimates_projected_family_by_family(seed):
    trees, _, estimate, variance = case(seed, most=4)
    found, total = lean(trees, estimate, variance)[:, 0], np.maximum(estimate[:, 0], 0)
    places = trees[0].hierarchy
    for depth in range(1, places.height + 1):
        here, above = places.at_depth(depth), places.at_depth(depth - 1)
        for parent in range(above.start, above.stop):
            children = here.start + np.flatnonzero(places.parent[here] == parent)
            total[children] = nearest(estimate[children, 0], total[parent])
    np.testing.assert_allclose(found, total, atol=1e-8)


def nearest(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest non-negative values with a total, by bisection of what is taken from each."""
    low, high = values.min() - total - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > total else (low, middle)
    return np.maximum(values - high, 0)


def test_totals_stay_as_they_are_where_none_is_negative():
    trees, _, estimate, variance = case(3, most=400)
    assert (estimate[:, 0] > 0).all()
    np.testing.assert_allclose(lean(trees, estimate, variance)[:, 0], estimate[:, 0], rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_projections_are_the_nearest_in_every_family(seed):
    rng = np.random.default_rng(seed)
    tree = random_regions(rng, 2, 5).hierarchy
    values, totals = rng.normal(size=(tree.starts[3] - tree.starts[2], 3)) * 5, rng.random((tree.starts[2] - 1, 3)) * 9
    by_place = Families.at_depth(tree, 2, PLACES).project(values, totals)
    np.testing.assert_array_equal(Families.at_depth(tree, 2, SLOTS).project(values.T, totals.T).T, by_place)
    for family in range(len(totals)):
        rows = np.flatnonzero(tree.parent[tree.at_depth(2)] == 1 + family)
        for column in range(3):
            np.testing.assert_allclose(by_place[rows, column], nearest(values[rows, column], totals[family, column]), atol=1e-9)


def test_permuted_slots_permute_the_counts():
    places, slots = random_regions(np.random.default_rng(5), 2, 3), regular(5)
    rng = np.random.default_rng(6)
    order = np.r_[0, 1 + rng.permutation(5)]
    sums = membership(places), membership(slots)
    estimate = sums[0] @ rng.normal(3, 6, (sums[0].shape[1], 5)) @ sums[1].T
    variance = np.full_like(estimate, 36.0)
    found = lean((places, slots), estimate, variance)
    np.testing.assert_allclose(lean((places, slots), estimate[:, order], variance), found[:, order], atol=1e-9)


def test_what_noise_alone_explains_is_split_as_in_the_parent_and_what_it_does_not_explain_stays():
    places, slots, true = from_parents([[0] * 4]), regular(6), np.array([[600, 300, 60, 20, 10, 10]] * 4) / 10.0
    true[3] = true[3, ::-1]
    sums = membership(places), membership(slots)
    rng = np.random.default_rng(1)
    estimate = sums[0] @ (true + rng.normal(size=true.shape) * 0.01) @ sums[1].T
    quiet = lean((places, slots), estimate, np.full_like(estimate, 1e-4))
    np.testing.assert_allclose(quiet, estimate, atol=0.1)
    drowned = lean((places, slots), estimate, np.full_like(estimate, 1e9))
    shares = drowned[1:, 1:] / drowned[1:, :1]
    np.testing.assert_allclose(shares, np.tile(drowned[0, 1:] / drowned[0, 0], (4, 1)), atol=1e-9)


def test_nothing_but_noise_becomes_nothing_much():
    trees, sums, _, variance = case(1)
    estimate = sums[0] @ np.full((sums[0].shape[1], sums[1].shape[1]), -5.0) @ sums[1].T
    assert not lean(trees, estimate, variance).any()
