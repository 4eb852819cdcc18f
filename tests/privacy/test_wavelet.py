"""The Haar wavelet in whole numbers against its definition, and spreads of sums against the dense covariance."""

from itertools import product

import numpy as np
import pytest

from dpviz.privacy.wavelet import WaveletSpread, coefficients, table
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from dpviz.space.tree import Tree
from tests import trees

ORDERS = pytest.mark.parametrize("order", [0, 1, 2, 3, 4])


def along(order: int) -> np.ndarray:
    """(side, side) the definition along one axis: the total, then lower half minus upper half of every node, coarsest first."""
    side = 1 << order
    rows = [np.ones(side, np.int64)]
    for level in range(order):
        size = side >> level
        for begin in range(0, side, size):
            row = np.zeros(side, np.int64)
            row[begin : begin + size // 2], row[begin + size // 2 : begin + size] = 1, -1
            rows.append(row)
    return np.array(rows)


def random_counts(order: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 1000, (1 << order, 1 << order))


@ORDERS
def test_coefficients_are_products_of_differences_along_both_axes(order):
    counts = random_counts(order)
    found = coefficients(counts)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, along(order) @ counts @ along(order).T)
    assert found.flags.c_contiguous


@ORDERS
def test_one_more_record_changes_one_coefficient_per_pair_of_levels_by_one(order):
    side = 1 << order
    level = np.array([0, *np.repeat(np.arange(1, order + 1), 2 ** np.arange(order))])
    before = coefficients(np.zeros((side, side), np.int64))
    for row, column in product(range(side), repeat=2):
        more = np.zeros((side, side), np.int64)
        more[row, column] = 1
        change = coefficients(more) - before
        assert set(np.unique(np.abs(change))) <= {0, 1}
        assert np.abs(change).sum() == (1 + order) ** 2
        rows, columns = np.nonzero(change)
        assert len(set(zip(level[rows].tolist(), level[columns].tolist(), strict=True))) == (1 + order) ** 2


@pytest.mark.parametrize("order", [0, 1, 3, 6, 10])
def test_the_inverse_gives_whole_counts_back_exactly(order):
    counts = random_counts(order)
    copy = counts.copy()
    np.testing.assert_array_equal(table(coefficients(counts)), counts)
    np.testing.assert_array_equal(counts, copy)
    sums = coefficients(np.full((1 << order, 1 << order), 2**40 // 4**order))
    assert sums[0, 0] == 2**40
    other = random_counts(order, 2)
    np.testing.assert_allclose(table(counts + 3 * other), table(counts) + 3 * table(other))


def dense(order: int, variance: float) -> np.ndarray:
    """(cells, cells) covariance of the cells, row by row, where every coefficient has independent noise."""
    inverse = np.linalg.inv(np.kron(along(order), along(order)).astype(float))
    return variance * inverse @ inverse.T


def lattice_tree(order: int) -> Tree:
    """A quadtree whose leaves are the cells."""
    return quadtree(Domain(bounds=(0, 0, 1, 1), crs=None, order=order), order)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_variances_of_boxes_are_those_of_the_dense_covariance(order, width):
    rng, side = np.random.default_rng(order), 1 << order
    spread, covariance = WaveletSpread(order=order, variance=2.7, width=width), dense(order, 2.7)
    boxes = np.clip(trees.random_boxes(rng, side * width, 150), 0, side * width)
    tree = lattice_tree(order)
    west, south, _, _ = tree.rectangles(tree.leaves).T
    weights = np.zeros((len(boxes), side * side))
    weights[:, south * side + west] = trees.shares_of(tree, boxes / width, tree.leaves)
    wanted = np.einsum("qc,cd,qd->q", weights, covariance, weights)
    np.testing.assert_allclose(spread.boxes(boxes), wanted, rtol=1e-9, atol=1e-12)
    whole = WaveletSpread(order=10, variance=7.0, width=2).boxes(np.array([[0.0, 0, 2048, 2048], [5, 5, 5, 900], [2048, 0, 2048, 2048]]))
    np.testing.assert_allclose(whole, [7, 0, 0], atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_variances_of_any_shares_are_those_of_the_dense_covariance_and_those_of_nodes_are_those_of_their_boxes(order):
    rng, side, tree = np.random.default_rng(order), 1 << order, lattice_tree(order)
    spread, covariance = WaveletSpread(order=order, variance=0.4, width=1), dense(order, 0.4)
    for _ in range(10):
        shares = rng.random((side, side)) * (rng.random((side, side)) < 0.5)
        weights = np.zeros((1, len(tree)))
        west, south, _, _ = tree.rectangles(tree.leaves).T
        weights[0, tree.leaves] = shares[south, west]
        assert spread.of_sums(tree, weights) == pytest.approx([shares.ravel() @ covariance @ shares.ravel()], rel=1e-9)
    np.testing.assert_allclose(spread.variances(tree), spread.boxes(tree.rectangles().astype(float)), rtol=1e-9)
