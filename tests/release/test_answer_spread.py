"""Variances of answers in their three kinds, each against a dense covariance of all nodes' errors."""

import numpy as np
import pytest

from dpviz.privacy.consistency import least_squares
from dpviz.privacy.wavelet import WaveletSpread, table
from dpviz.release.point_release import errors_of, variances
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from dpviz.space.ranges import batches, box_overlap
from dpviz.space.tree import Tree
from tests import trees


def spreads(tree: Tree, errors, boxes: np.ndarray) -> np.ndarray:
    found = np.empty(len(boxes))
    for part, fronts in batches(tree, box_overlap(tree, boxes), len(boxes)):
        found[part] = variances(tree, errors, fronts, part)
    return found


def frontier(tree: Tree, box: np.ndarray, node: int = 0) -> np.ndarray:
    """(n,) weight of every node in the canonical answer of one box, by recursion."""
    weight = np.zeros(len(tree))
    share = trees.shares_of(tree, box[None], np.array([node]))[0, 0]
    if share == 1 or tree.children[node] == 0:
        weight[node] = share
    elif share > 0:
        for child in range(tree.first_child[node], tree.first_child[node] + tree.children[node]):
            weight += frontier(tree, box, child)
    return weight


@pytest.mark.parametrize("seed", range(12))
def test_independent_counts_add_the_variances_of_the_canonical_nodes(seed):
    rng = np.random.default_rng(seed)
    tree = trees.random_tree(rng, side=32)
    variance, boxes = np.exp(rng.normal(0, 2, len(tree))), trees.random_boxes(rng, 32, 25)
    weights = np.array([frontier(tree, box) for box in boxes])
    np.testing.assert_allclose(spreads(tree, errors_of(tree, None, variance), boxes), weights**2 @ variance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_consistent_counts_have_the_variance_of_the_dense_covariance(seed):
    rng = np.random.default_rng(seed)
    tree = trees.random_tree(rng, side=32)
    variance, boxes = trees.random_variances(rng, tree, spread=2), trees.random_boxes(rng, 32, 25)
    _, spread = least_squares(tree, np.zeros(len(tree)), variance)
    _, covariance = trees.dense_solution(tree, np.zeros(len(tree)), variance)
    weights = np.array([frontier(tree, box) for box in boxes])
    wanted = np.einsum("qn,nm,qm->q", weights, covariance, weights)
    np.testing.assert_allclose(spreads(tree, errors_of(tree, spread, variance), boxes), wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("order", "finer"), [(1, 0), (2, 1), (3, 2), (4, 0)])
def test_wavelet_noise_counts_each_place_by_its_share_also_where_whole_nodes_answer(order, finer):
    rng, side = np.random.default_rng(order), 1 << order
    tree = quadtree(Domain(bounds=(0, 0, 1, 1), crs=None, order=order + finer), order)
    errors = WaveletSpread(order=order, variance=1.5, width=1 << finer)
    boxes = trees.random_boxes(rng, side << finer, 300)
    leaves = tree.rectangles(tree.leaves) >> finer
    inverse = np.array([table(unit.reshape(side, side))[leaves[:, 1], leaves[:, 0]] for unit in np.eye(side * side, dtype=np.int64)])
    weights = trees.shares_of(tree, boxes, tree.leaves)
    wanted = 1.5 * ((inverse @ weights.T) ** 2).sum(0)
    np.testing.assert_allclose(spreads(tree, errors_of(tree, errors, np.zeros(0)), boxes), wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(errors.boxes(np.clip(boxes, 0, side << finer)), wanted, rtol=1e-9, atol=1e-12)


def test_questions_that_touch_nothing_have_no_spread():
    tree = quadtree(Domain(bounds=(0, 0, 1, 1), crs=None, order=2), 2)
    boxes = np.array([[9.0, 9, 12, 12], [1, 1, 1, 3]])
    _, spread = least_squares(tree, np.zeros(len(tree)), np.ones(len(tree)))
    for errors in (np.ones(len(tree)), errors_of(tree, spread, np.ones(len(tree))), WaveletSpread(order=2, variance=1.0, width=1)):
        assert spreads(tree, errors, boxes).tolist() == [0, 0]
