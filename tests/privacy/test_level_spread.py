"""The spread of sums on a tree of regions, against the dense covariance."""

import numpy as np
import pytest
import scipy

from dpviz.privacy.nonnegative_fit import NoisyStage, Root, fit_unbiased, fit_with_spread
from tests.area_cases import membership
from tests.flow_cases import random_regions


def tree(seed: int, unmeasured: tuple[int, ...] = ()):
    """A random tree with noise on its levels: regions, root, stages, and (nodes,) variances."""
    rng = np.random.default_rng(seed)
    regions = random_regions(rng, 3, 4)
    variance = [*np.exp(rng.normal(0, 1.5, 4))]
    for level in unmeasured:
        variance[level] = np.inf
    stages = [
        NoisyStage(
            starts=regions.first_child(level - 1)[:-1],
            noisy=rng.normal(0, 9, regions.size(level)) if np.isfinite(variance[level]) else None,
            variance=variance[level] if np.isfinite(variance[level]) else 0.0,
            size=regions.size(level),
        )
        for level in (1, 2, 3)
    ]
    sizes = [regions.size(level) for level in range(4)]
    return regions, Root(count=3.0, variance=variance[0]), stages, np.repeat(variance, sizes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("unmeasured", [(), (0,), (0, 1), (0, 1, 2), (2,)])
def test_spread_of_nodes_and_of_any_weighted_sum_is_that_of_dense_least_squares(seed, unmeasured):
    regions, root, stages, variance = tree(seed, unmeasured)
    counts, spread = fit_with_spread(root, stages)
    nodes, measured = membership(regions), np.isfinite(variance)
    noisy = np.concatenate([[root.count], *(np.zeros(stage.size) if stage.noisy is None else stage.noisy for stage in stages)])
    weighted = nodes[measured] / np.sqrt(variance[measured])[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted)
    leaves = covariance @ weighted.T @ (noisy[measured] / np.sqrt(variance[measured]))
    np.testing.assert_allclose(np.concatenate(counts), nodes @ leaves, atol=1e-8)
    np.testing.assert_allclose(np.concatenate(spread.variances()), np.diag(nodes @ covariance @ nodes.T), rtol=1e-8)
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 1, (20, len(leaves))) * (rng.random((20, len(leaves))) < 0.4)
    found = spread.of_sums(scipy.sparse.csr_array(weights))
    np.testing.assert_allclose(found, np.diag(weights @ covariance @ weights.T), rtol=1e-8, atol=1e-10)


def test_the_variances_of_an_unbiased_fit_are_those_of_its_spread():
    _, root, stages, _ = tree(1)
    counts, variances = fit_unbiased(root, stages)
    same, spread = fit_with_spread(root, stages)
    for one, other in ((counts, same), (variances, spread.variances())):
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))


def test_a_sum_of_nothing_has_no_spread():
    _, root, stages, _ = tree(2)
    _, spread = fit_with_spread(root, stages)
    assert spread.of_sums(scipy.sparse.csr_array((2, stages[-1].size))).tolist() == [0.0, 0.0]
