"""Least squares on the product of two trees, compared with dense matrices on random irregular trees."""

import numpy as np
import pytest
import scipy

from dpviz.privacy.tree_product import ProductSpread, TreeFit, fit_product
from tests.area_cases import membership
from tests.trip_cases import from_parents, random_regions, regular


class Case:
    """Two random trees, variances per pair of levels (infinite for levels that are not measured), and noisy counts."""

    def __init__(self, seed: int, *, is_product: bool) -> None:
        rng = np.random.default_rng(seed)
        self.trees = [random_regions(rng, int(rng.integers(1, 4)), 4 if side else 3) for side in (0, 1)]
        self.sums = [membership(tree) for tree in self.trees]
        self.levels = [tree.hierarchy.depth for tree in self.trees]
        self.of_levels = [rng.uniform(0.2, 5, tree.depth + 1) for tree in self.trees]
        for each in self.of_levels:
            each[:-1][rng.random(len(each) - 1) < 0.3] = np.inf
        self.noise = np.outer(*self.of_levels) * (1 if is_product else rng.uniform(0.5, 2, tuple(map(len, self.of_levels))))
        shape = tuple(map(len, self.sums))
        self.variance = self.noise[np.ix_(*self.levels)]
        cells = rng.integers(0, 30, tuple(each.shape[1] for each in self.sums)).astype(float)
        self.noisy = self.sums[0] @ cells @ self.sums[1].T + rng.normal(size=shape) * 3
        self.noisy[np.isinf(self.variance)] = np.nan
        self.fits = [TreeFit.of_variances(tree.hierarchy, each) for tree, each in zip(self.trees, self.of_levels, strict=True)]
        self.spread = ProductSpread(places=self.fits[0], slots=self.fits[1], noise=np.where(np.isinf(self.noise), 0.0, self.noise))

    def dense_map(self) -> np.ndarray:
        """(nodes, measured) the weights of noisy counts in all estimates, by dense least squares with the product of variances."""
        rows, variance = np.kron(*self.sums), np.outer(*self.of_levels)[np.ix_(*self.levels)].ravel()
        measured = np.isfinite(variance)
        weighted = rows[measured] / np.sqrt(variance[measured])[:, None]
        return rows @ np.linalg.pinv(weighted, rcond=1e-13) / np.sqrt(variance[measured])


@pytest.mark.parametrize("seed", range(40))
def test_two_passes_are_dense_least_squares(seed):
    case = Case(seed, is_product=True)
    found, dense = fit_product(*case.fits, case.noisy), case.dense_map() @ case.noisy[np.isfinite(case.noisy)]
    np.testing.assert_allclose(found.ravel(), dense, atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("is_product", [True, False])
def test_stated_variances_are_those_of_the_dense_covariance(seed, is_product):
    case = Case(seed, is_product=is_product)
    weights = case.dense_map() * np.sqrt(case.variance[np.isfinite(case.variance)])
    covariance = weights @ weights.T
    nodes = case.spread.of_nodes()
    np.testing.assert_allclose(nodes.ravel(), np.diag(covariance), rtol=1e-9)
    np.testing.assert_allclose(case.spread.variances(case.trees[0].hierarchy), nodes[:, 0], rtol=1e-9)
    rng = np.random.default_rng(seed)
    places, slots = rng.normal(size=(5, nodes.shape[0])), rng.normal(size=(5, nodes.shape[1]))
    sums = np.einsum("qi,qj->qij", places, slots).reshape(5, -1)
    dense = np.einsum("qi,ij,qj->q", sums, covariance, sums)
    np.testing.assert_allclose(case.spread.of_ranges(scipy.sparse.csr_array(places), slots), dense, rtol=1e-9)
    of_places = case.spread.of_sums(case.trees[0].hierarchy, scipy.sparse.csr_array(places))
    total = places @ covariance[:: nodes.shape[1], :: nodes.shape[1]] @ places.T
    np.testing.assert_allclose(of_places, np.diag(total), rtol=1e-9)


def test_product_variances_are_the_product_of_those_of_each_tree():
    case = Case(3, is_product=True)
    by_axis = [fit.squares_of_nodes() @ np.where(np.isinf(each), 0, each) for fit, each in zip(case.fits, case.of_levels, strict=True)]
    np.testing.assert_allclose(case.spread.of_nodes(), np.outer(*by_axis), rtol=1e-9)


@pytest.mark.parametrize("slots", [regular(6), from_parents([[0]]), regular(1, 3)], ids=["six", "one", "in one part"])
def test_consistent_counts_stay_as_they_are_and_add_up(slots):
    places, rng = random_regions(np.random.default_rng(5), 3, 4), np.random.default_rng(6)
    sums = membership(places), membership(slots)
    cells = rng.integers(0, 9, (sums[0].shape[1], sums[1].shape[1]))
    counts = sums[0] @ cells @ sums[1].T
    fits = [TreeFit.of_variances(tree.hierarchy, rng.uniform(1, 2, tree.depth + 1)) for tree in (places, slots)]
    np.testing.assert_allclose(fit_product(*fits, counts), counts, atol=1e-9)
    fitted = fit_product(*fits, counts + rng.normal(size=counts.shape))
    leaves = fitted[places.hierarchy.at_depth(places.depth)][:, slots.hierarchy.at_depth(slots.depth)]
    np.testing.assert_allclose(sums[0] @ leaves @ sums[1].T, fitted, atol=1e-9)
