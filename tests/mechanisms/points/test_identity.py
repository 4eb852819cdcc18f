"""Noise on every cell: the grid's order, and the optional threshold."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import Identity
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.release.point_release import PointRelease

MATRIX = np.zeros((32, 32), int)
MATRIX[4:6, 7:9] = 200
POINTS = PointCounts.from_matrix(MATRIX)


def release(mechanism: Identity, epsilon: float = 1.0, seed: int = 1, points: PointCounts = POINTS) -> PointRelease:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


@pytest.mark.parametrize(
    ("order", "cells", "notes"), [(2, 16, ()), (5, 1024, ()), (10, 1024, ("The grid has order 5: the lattice is no finer.",))]
)
def test_every_cell_gets_all_of_epsilon_once_and_an_order_finer_than_the_lattice_is_cut(order, cells, notes):
    found = release(Identity(order=order), 0.7)
    (step,) = found.receipt.steps
    leaves = found.tree.leaves
    assert (step.amount, step.counts, step.level) == (found.receipt.total.epsilon, cells, found.tree.height)
    assert (len(leaves), found.receipt.notes) == (cells, notes)
    np.testing.assert_allclose(found.node_stddev[leaves] ** 2, laplace_variance(1 / 0.7))
    np.testing.assert_allclose(found.node_stddev[0] ** 2, cells * laplace_variance(1 / 0.7))
    assert (found.steps, found.approximate) == ((), None)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_threshold_sets_cells_below_it_to_zero_and_leaves_the_others(epsilon):
    plain, cut = (release(Identity(order=5, threshold=on), epsilon) for on in (False, True))
    threshold, leaves = math.log(1024) / epsilon, plain.tree.leaves
    small = plain.count[leaves] < threshold
    assert small.any()
    assert (~small).any()
    assert (cut.count[leaves][small] == 0).all()
    np.testing.assert_array_equal(cut.count[leaves][~small], plain.count[leaves][~small])
    np.testing.assert_array_equal(cut.noisy, plain.noisy)
    assert cut.receipt == plain.receipt


def test_after_the_threshold_coarser_levels_are_sums_and_hardly_any_empty_cell_is_kept():
    found = release(Identity(order=5, threshold=True))
    sums = np.bincount(found.tree.parent[1:], found.count[1:], len(found.tree))
    inner = found.tree.children > 0
    np.testing.assert_allclose(found.count[inner], sums[inner])
    assert found.steps == ("cells below 6.9 set to 0",)
    assert "adds bias" in found.approximate
    assert (found.count[found.tree.leaves] > 0).sum() <= 8
    persons = release(Identity(order=5, threshold=True), points=replace(POINTS, contributions=3))
    assert persons.steps == (f"cells below {3 * math.log(1024):,.1f} set to 0",)
