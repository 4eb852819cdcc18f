"""Least squares on trees: the dense solution, Theorem 5, spreads, unknown nodes, extreme variances."""

import numpy as np
import pytest
import scipy

from dpviz.privacy.consistency import SMALLEST_VARIANCE, Shrinkage, add_up, least_squares, shrink_small_counts
from dpviz.space.domain import Domain
from dpviz.space.grids import grid, quadtree
from dpviz.space.tree import Tree
from tests.area_cases import membership
from tests.often import often
from tests.trees import build, dense_solution, leaf_matrix, misfit, random_tree, random_variances
from tests.trip_cases import random_regions

LATTICE = Domain(bounds=(0, 0, 1, 1), crs=None, order=4)


def measured(seed: int, spread: float = 6.0, **shape) -> tuple[np.random.Generator, Tree, np.ndarray, np.ndarray]:
    """A random tree with variances and noisy counts."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, **shape)
    variance = random_variances(rng, tree, spread=spread)
    return rng, tree, observed(rng, tree, variance), variance


def observed(rng: np.random.Generator, tree: Tree, variance: np.ndarray) -> np.ndarray:
    noisy = rng.normal(20, 10, len(tree))
    noisy[~np.isfinite(variance)] = np.nan
    return noisy


def assert_adds_up(tree: Tree, count: np.ndarray) -> None:
    inner = np.flatnonzero(tree.children)
    sums = np.bincount(tree.parent[1:], count[1:], len(tree))
    np.testing.assert_allclose(sums[inner], count[inner], atol=1e-9 * max(1.0, np.abs(count).max()))


@pytest.mark.parametrize("seed", often(range(200), 30))
def test_least_squares_is_the_dense_weighted_solution_on_any_tree_and_no_consistent_counts_fit_better(seed):
    rng, tree, noisy, variance = measured(seed, 6 if seed % 2 else 3)
    count, spread = least_squares(tree, noisy, variance)
    expected, covariance = dense_solution(tree, noisy, variance)
    np.testing.assert_allclose(count, expected, rtol=1e-8, atol=1e-8)
    assert_adds_up(tree, count)
    if seed % 2 == 0:
        np.testing.assert_allclose(spread.variances(tree), np.diag(covariance), rtol=1e-8)
        moved = count + leaf_matrix(tree) @ rng.normal(0, 1e-3, len(tree.leaves))
        assert misfit(tree, moved, noisy, variance) > misfit(tree, count, noisy, variance)


@pytest.mark.parametrize("seed", often(range(40), 10))
def test_the_spread_of_any_weighted_sum_of_nodes_is_that_of_the_dense_covariance(seed):
    rng, tree, noisy, variance = measured(seed, 3)
    _, spread = least_squares(tree, noisy, variance)
    _, covariance = dense_solution(tree, noisy, variance)
    weights = rng.normal(0, 1, (20, len(tree))) * (rng.random((20, len(tree))) < rng.choice([0.05, 0.4]))
    weights[3] = 0
    found = spread.of_sums(tree, scipy.sparse.csr_array(weights))
    np.testing.assert_allclose(found, np.diag(weights @ covariance @ weights.T), rtol=1e-7, atol=1e-9)
    assert found[3] == 0
    np.testing.assert_allclose(spread.of_sums(tree, scipy.sparse.eye_array(len(tree))), spread.variances(tree), rtol=1e-7, atol=1e-9)
    assert spread.of_sums(tree, scipy.sparse.csr_array((2, len(tree)))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("unmeasured", [(), (0,), (0, 1), (0, 1, 2), (2,)])
def test_counts_and_spread_on_nested_regions_are_those_of_dense_least_squares(seed, unmeasured):
    rng = np.random.default_rng(seed)
    regions = random_regions(rng, 3, 4)
    tree, nodes = regions.hierarchy, membership(regions)
    of_level = np.exp(rng.normal(0, 1.5, 4))
    of_level[list(unmeasured)] = np.inf
    variance = np.repeat(of_level, np.diff(tree.starts))
    noisy = observed(rng, tree, variance)
    count, spread = least_squares(tree, noisy, variance)
    known = np.isfinite(variance)
    weighted = nodes[known] / np.sqrt(variance[known])[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted)
    leaves = covariance @ weighted.T @ (noisy[known] / np.sqrt(variance[known]))
    np.testing.assert_allclose(count, nodes @ leaves, atol=1e-8)
    np.testing.assert_allclose(spread.variances(tree), np.diag(nodes @ covariance @ nodes.T), rtol=1e-8)
    weights = rng.normal(0, 1, (20, len(leaves))) * (rng.random((20, len(leaves))) < 0.4)
    of_nodes = scipy.sparse.hstack([scipy.sparse.csr_array((20, tree.starts[-2])), scipy.sparse.csr_array(weights)])
    found = spread.of_sums(tree, of_nodes)
    np.testing.assert_allclose(found, np.diag(weights @ covariance @ weights.T), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", often(range(400, 460), 15))
def test_where_leaves_are_undetermined_the_objective_is_still_the_smallest(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    variance = np.exp(rng.uniform(-3, 3, len(tree)))
    variance[rng.random(len(tree)) < 0.4] = np.inf
    noisy = observed(rng, tree, variance)
    count, _ = least_squares(tree, noisy, variance)
    assert_adds_up(tree, count)
    best = misfit(tree, dense_solution(tree, noisy, variance)[0], noisy, variance)
    assert misfit(tree, count, noisy, variance) == pytest.approx(best, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_one_root_and_four_children_as_in_the_paper_also_of_whole_counts_and_inputs_are_left_alone(dtype):
    tree = quadtree(LATTICE, 1)
    noisy, variance = np.array([10, 1, 2, 3, 9], dtype), np.full(5, 8.0)
    count, spread = least_squares(tree, noisy, variance)
    assert count[0] == pytest.approx(4 / 5 * 10 + 15 / 5)
    assert count[1] == pytest.approx(0)
    assert spread.root == pytest.approx(4 / 5 * 8)
    assert (noisy.tolist(), variance.tolist()) == ([10, 1, 2, 3, 9], [8] * 5)


def one_family(rectangles: list[tuple[int, int, int, int]]) -> Tree:
    return build([[(0, 0, 8, 8)], rectangles], [[-1], [0] * len(rectangles)])


@pytest.mark.parametrize(
    ("noisy", "variance", "counts", "variances"),
    [
        ([100, 20, np.nan, np.nan], [1, 1, np.inf, np.inf], [100, 20, 80 / 4, 80 * 3 / 4], [1, 1, 2 / 16, 2 * 9 / 16]),
        ([64, np.nan, np.nan, np.nan], [4, np.inf, np.inf, np.inf], [64, 16, 12, 36], [4, 4 / 16, 4 * (12 / 64) ** 2, 4 * (36 / 64) ** 2]),
    ],
)
def test_unknown_children_share_what_is_left_of_their_parent_by_area(noisy, variance, counts, variances):
    tree = one_family([(0, 0, 2, 8), (2, 0, 8, 2), (2, 2, 8, 8)])
    count, spread = least_squares(tree, np.array(noisy, float), np.array(variance, float))
    np.testing.assert_allclose(count, counts)
    np.testing.assert_allclose(spread.variances(tree), variances)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_noise_free_counts_stay_as_they_are_even_with_variance_zero(seed, unknown):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    true = leaf_matrix(tree) @ rng.integers(0, 100, len(tree.leaves))
    variance = np.zeros(len(tree))
    if unknown:
        variance[rng.random(len(tree)) < 0.3] = np.inf
        variance[0] = 0.0
    count, spread = least_squares(tree, np.where(np.isfinite(variance), true, np.nan), variance)
    np.testing.assert_allclose(count[np.isfinite(variance)], true[np.isfinite(variance)], atol=1e-9)
    assert_adds_up(tree, count)
    shares = np.bincount(tree.parent[1:], spread.share[1:], len(tree))
    np.testing.assert_allclose(shares[tree.children > 0], 1)
    if not unknown:
        assert spread.variances(tree).max() <= len(tree.leaves) * SMALLEST_VARIANCE


@pytest.mark.parametrize("ratio", [1e8, 1e12, 1e16, 1e24, 1e30])
@pytest.mark.parametrize("seed", range(3))
def test_huge_ratios_of_variances_break_neither_counts_nor_spreads(seed, ratio):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    true = leaf_matrix(tree) @ rng.integers(0, 100, len(tree.leaves)).astype(float)
    variance = np.where(rng.random(len(tree)) < 0.5, 1e-8, 1e-8 * ratio)
    exact = variance < 1e-7
    noisy = np.where(exact, true, true + rng.normal(0, 1, len(tree)))
    count, spread = least_squares(tree, noisy, variance)
    assert np.isfinite(count).all()
    np.testing.assert_allclose(count[exact], true[exact], atol=1e-5)
    assert_adds_up(tree, count)
    stated = spread.variances(tree)
    assert (stated >= 0).all()
    assert (stated <= variance * (1 + 1e-9)).all()


def test_the_spread_of_a_node_that_its_siblings_determine_survives_a_huge_own_variance_and_a_lone_root_is_its_own_estimate():
    tree = one_family([(0, 0, 4, 8), (4, 0, 8, 8)])
    _, spread = least_squares(tree, np.zeros(3), np.array([1.0, 1e18, 2.0]))
    np.testing.assert_allclose(spread.variances(tree), [1, 3, 2], rtol=1e-9)
    root = build([[(0, 0, 8, 8)]], [[-1]])
    count, spread = least_squares(root, np.array([7.0]), np.array([3.0]))
    assert (count.tolist(), spread.variances(root).tolist()) == ([7], [3])


@pytest.mark.parametrize("parts", [(3, 5), (16, 16), (1, 7)])
def test_adding_up_keeps_measured_counts_and_fills_the_others(parts):
    tree = grid(LATTICE, *parts)
    rng = np.random.default_rng(4)
    variance = np.where((tree.children > 0) & (rng.random(len(tree)) < 0.6), np.inf, 2.0)
    noisy = np.where(np.isfinite(variance), rng.normal(5, 2, len(tree)), np.nan)
    count, spread = add_up(tree, noisy, variance)
    seen = np.isfinite(variance)
    np.testing.assert_array_equal(count[seen], noisy[seen])
    for node in np.flatnonzero(~seen).tolist():
        children = np.flatnonzero(tree.parent == node)
        assert count[node] == pytest.approx(count[children].sum())
        assert spread[node] == pytest.approx(spread[children].sum())


@pytest.mark.parametrize("seed", range(3))
def test_the_whole_is_raised_to_the_least_and_the_parts_share_what_is_added(seed):
    _, tree, noisy, variance = measured(seed, 2)
    plain, spread = least_squares(tree, noisy, variance)
    for least in (plain[0] - 1, plain[0], plain[0] + 5):
        count, same = least_squares(tree, noisy, variance, least=least)
        assert count[0] == max(plain[0], least)
        np.testing.assert_array_equal(same.share, spread.share)
        assert_adds_up(tree, count)
        fixed, tight = noisy.copy(), variance.copy()
        fixed[0], tight[0] = count[0], SMALLEST_VARIANCE
        np.testing.assert_allclose(count, least_squares(tree, fixed, tight)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("shrinkage", "zero", "full", "least"), [(None, 1, 2.5, 0.3), (Shrinkage(zero=0, full=1.75, variance_at_zero=0.5), 0, 1.75, 0.5)]
)
@pytest.mark.parametrize("seed", range(3))
def test_zeroing_is_its_definition_leaf_by_leaf_and_leaves_inner_nodes_and_single_cells_alone(seed, shrinkage, zero, full, least):
    rng, tree, _, variance = measured(seed, 1, side=16)
    variance[tree.leaves[::3]] = np.inf
    noisy = observed(rng, tree, variance) - 18
    before = noisy.copy(), variance.copy()
    value, trust = shrink_small_counts(tree, noisy, variance, shrinkage)
    for node in range(len(tree)):
        wanted = noisy[node], variance[node]
        if tree.children[node] == 0 and tree.cells[node] > 1 and np.isfinite(variance[node]):
            kept = np.clip((noisy[node] / variance[node] ** 0.5 - zero) / (full - zero), 0, 1)
            wanted = kept * noisy[node], (least + (1 - least) * kept) * variance[node]
        np.testing.assert_allclose([value[node], trust[node]], wanted, rtol=1e-9)
    np.testing.assert_array_equal(noisy, before[0])
    np.testing.assert_array_equal(variance, before[1])
