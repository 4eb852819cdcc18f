"""The finish without negative counts: against its definition family by family, and what it must keep on any tree."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.privacy.consistency import least_squares
from dpviz.privacy.nonnegative_counts import find_far_leaves, nonnegative_counts, spread_negatives
from dpviz.space.grids import quadtree
from dpviz.space.interpolate import divide_log_linearly
from dpviz.space.tree import Tree, remove_descendants
from tests.often import often
from tests.space.curves import curve_tree, lattice
from tests.trees import leaf_matrix, random_tree, random_variances

SEEDS = st.integers(0, 2**32 - 1)


def measured(seed: int, tree: Tree | None = None, unobserved: float = 0.4) -> tuple[Tree, np.ndarray, np.ndarray]:
    """A random tree, or the given one, with noisy counts of which many are negative, and their variances over many sizes."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, side=32) if tree is None else tree
    variance = random_variances(rng, tree, unobserved, spread=float(rng.choice([0, 2, 6])))
    noisy = rng.normal(rng.choice([-5, 0, 20]), 10, len(tree)).round(int(rng.integers(3)))
    noisy[~np.isfinite(variance)] = np.nan
    return tree, noisy, variance


def families(tree: Tree) -> list[tuple[int, slice]]:
    """Each inner node with its children, from the root down."""
    inner = np.flatnonzero(tree.children)
    return [(node, slice(tree.first_child[node], tree.first_child[node] + tree.children[node])) for node in inner.tolist()]


def nearest(wanted: np.ndarray, weight: np.ndarray, total: float) -> np.ndarray:
    """The nearest numbers of at least 0 with a sum, by trying every set of numbers that are not 0."""
    best, least = np.zeros(len(wanted)), np.inf
    for size in range(1, len(wanted) + 1):
        for chosen in map(list, combinations(range(len(wanted)), size)):
            found = np.zeros(len(wanted))
            found[chosen] = wanted[chosen] + weight[chosen] * (total - wanted[chosen].sum()) / weight[chosen].sum()
            misfit = ((found - wanted) ** 2 / weight).sum()
            if found.min() >= -1e-9 and misfit < least:
                best, least = np.maximum(found, 0), misfit
    return best


def assert_keeps(tree: Tree, count: np.ndarray, total: float) -> None:
    """No count is negative, children add up to their parent, and the total is kept."""
    assert count.min() >= 0
    assert count[0] == max(total, 0)
    for node, children in families(tree):
        assert count[children].sum() == pytest.approx(count[node], rel=1e-9, abs=1e-9 * max(1, total))


@settings(max_examples=25)
@given(SEEDS)
def test_each_family_is_the_nearest_one_of_at_least_0_that_adds_up_to_its_parent(seed):
    tree, noisy, variance = measured(seed)
    count, spread = least_squares(tree, noisy, variance)
    found = spread_negatives(tree, count, spread, total=count[0])
    assert_keeps(tree, found, count[0])
    for node, children in families(tree):
        slow = nearest(count[children], spread.slack[children], found[node])
        np.testing.assert_allclose(found[children], slow, rtol=1e-6, atol=1e-6 * max(1, found[0]))
    positive = leaf_matrix(tree) @ np.abs(count[tree.leaves])
    np.testing.assert_allclose(spread_negatives(tree, positive, spread, total=positive[0]), positive, rtol=1e-9, atol=1e-6)


@settings(max_examples=25)
@given(SEEDS, st.booleans(), st.booleans())
def test_nothing_is_negative_and_all_adds_up_on_any_tree_also_where_leaves_were_not_measured(seed, zero, smooth):
    rng = np.random.default_rng(seed)
    shapes = (random_tree(rng, side=32), curve_tree(rng), some_quarters(rng, 4), random_tree(rng, side=32, most=30, height=2))
    tree, noisy, variance = measured(seed, shapes[seed % 4])
    unknown = rng.random(len(tree)) < 0.3
    noisy[unknown], variance[unknown] = np.nan, np.inf
    total = float(rng.choice([-30.0, 0.0, 1e-9, 50.0, 1e6]))
    assert_keeps(tree, nonnegative_counts(tree, noisy, variance, total=total, zero=zero, smooth=smooth), total)


def some_quarters(rng: np.random.Generator, order: int) -> Tree:
    """A quadtree, here and there cut short."""
    tree = quadtree(lattice(order), order)
    return remove_descendants(tree, (tree.children > 0) & (tree.depth > 0) & (rng.random(len(tree)) < 0.4))[0]


@pytest.mark.parametrize("seed", often(range(20), 3))
def test_four_quarters_are_drawn_towards_the_interpolation_of_their_surroundings(seed):
    tree, noisy, variance = measured(seed, some_quarters(np.random.default_rng(seed), 4), unobserved=0.1)
    count, spread = least_squares(tree, noisy, variance)
    found, blocks = spread_negatives(tree, count, spread, total=count[0], smooth=True), np.maximum(count[:1], 0).reshape(1, 1)
    for depth in range(tree.height):
        blocks = divide_log_linearly(blocks)
        for node, children in families(tree):
            if tree.depth[node] != depth:
                continue
            place = tree.south[children] >> 3 - depth, tree.west[children] >> 3 - depth
            weight, expected = spread.slack[children], blocks[place]
            own = count[children] + weight * (found[node] - count[children].sum()) / weight.sum()
            unlike = ((own - expected) ** 2 / weight).sum()
            mixed = expected + max(0, 1 - 1.5 / max(unlike, 1e-12)) * (own - expected)
            np.testing.assert_allclose(found[children], nearest(mixed, weight, found[node]), rtol=1e-6, atol=1e-6 * max(1, found[0]))
            blocks[place] = found[children]


@settings(max_examples=25)
@given(SEEDS)
def test_a_leaf_is_far_where_the_ring_around_it_has_too_little_for_its_size(seed):
    rng = np.random.default_rng(seed)
    tree, _, variance = measured(seed)
    count = np.zeros(len(tree))
    count[tree.leaves] = rng.gamma(1, 3, len(tree.leaves)) * (rng.random(len(tree.leaves)) < 0.4)
    for node, children in reversed(families(tree)):
        count[node] = count[children].sum()
    cells = np.zeros((32, 32))
    for leaf, (west, south, east, north) in zip(tree.leaves.tolist(), tree.rectangles(tree.leaves).tolist(), strict=True):
        cells[south:north, west:east] = count[leaf] / tree.cells[leaf]
    found = find_far_leaves(tree, count, variance)
    assert not found[tree.children > 0].any()
    for leaf, (west, south, east, north) in zip(tree.leaves.tolist(), tree.rectangles(tree.leaves).tolist(), strict=True):
        width, height = east - west, north - south
        ring = cells[max(south - height, 0) : north + height, max(west - width, 0) : east + width]
        around, area = ring.sum() - count[leaf], ring.size - tree.cells[leaf]
        limit = 0.7 * np.sqrt(variance[leaf]) * area / tree.cells[leaf]
        if abs(around - limit) > 1e-6 * max(limit, 1):
            assert found[leaf] == (area > 0 and around < limit)
