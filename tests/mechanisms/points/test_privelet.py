"""Privelet: what its noise costs, by brute force, and the exact spread of boxes and polygons."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import Privelet
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.privacy.wavelet import coefficients, table
from dpviz.release.point_release import PointRelease
from tests import trees
from tests.transcripts import EPSILON, Script, pair, run, worst_loss


@pytest.mark.parametrize("bound", [1, 2, 5])
@pytest.mark.parametrize(("order", "grid"), [(1, 1), (2, 2), (3, 2), (3, 10), (4, 3)])
def test_a_record_costs_exactly_epsilon_wherever_it_lies(monkeypatch, order, grid, bound):
    rng, found = np.random.default_rng(order), []
    for trial in range(8):
        cells = rng.integers(0, 4**order, bound) if trial else [0] * bound
        found.append(worst_loss(monkeypatch, Privelet(order=grid), *pair(rng.integers(0, 3, (1 << order, 1 << order)), cells), trial))
    assert max(found) == EPSILON


@pytest.mark.parametrize("order", [1, 3, 5])
def test_counts_are_the_inverse_wavelet_at_every_node_and_add_up(monkeypatch, order):
    points, script = PointCounts.from_matrix(np.random.default_rng(2).integers(0, 9, (32, 32))), Script()
    found = run(monkeypatch, Privelet(order=order), points, script)
    assert script.requests[0].true.tolist() == coefficients(points.blocks(order)).ravel().tolist()
    cells = table(script.answers[0].reshape(1 << order, -1))
    boxes = (found.tree.rectangles() // (32 >> order)).tolist()
    np.testing.assert_allclose(found.count, [cells[south:north, west:east].sum() for west, south, east, north in boxes], atol=1e-8)
    assert np.isnan(found.noisy).all()
    assert np.isinf(found.noise_variance).all()
    assert (found.steps, found.approximate) == (("inverse wavelet",), None)


def cell_covariance(found: PointRelease, order: int) -> np.ndarray:
    """(leaves, leaves) covariance of the leaves, from the inverse of one unit on each coefficient."""
    side, leaves = 1 << order, found.tree.rectangles(found.tree.leaves) * (1 << order) // found.domain.side
    columns = [table(unit.reshape(side, side))[leaves[:, 1], leaves[:, 0]] for unit in np.eye(side * side, dtype=np.int64)]
    scale = found.receipt.steps[0].scale
    return laplace_variance(scale) * np.array(columns).T @ np.array(columns)


@pytest.mark.parametrize(("order", "finer"), [(1, 0), (2, 2), (4, 2)])
def test_the_spread_of_nodes_and_boxes_is_exact(order, finer):
    rng, side = np.random.default_rng(order), 1 << (order + finer)
    points = replace(PointCounts.from_matrix(rng.integers(0, 9, (side, side))), contributions=2)
    found = Privelet(order=order).release(points, PureBudget("0.7"), Entropy.seeded(1))
    assert float(found.receipt.steps[0].scale) == pytest.approx(2 * (1 + order) ** 2 / 0.7)
    leaves, covariance = found.tree.leaves, cell_covariance(found, order)
    boxes = trees.random_boxes(rng, side, 60)
    weights = trees.shares_of(found.tree, boxes, leaves)
    answer, stddev = found.answer(boxes, spread=True)
    np.testing.assert_allclose(answer, weights @ found.count[leaves], atol=1e-6)
    np.testing.assert_allclose(stddev**2, np.einsum("qc,cd,qd->q", weights, covariance, weights), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.node_stddev[leaves] ** 2, np.diag(covariance), rtol=1e-8)
    assert found.node_stddev[0] ** 2 == pytest.approx(covariance.sum(), rel=1e-8)


@pytest.mark.parametrize(("order", "used", "notes"), [(1, 1, ()), (3, 3, ()), (10, 3, ("The grid has order 3: the lattice is no finer.",))])
def test_an_order_finer_than_the_lattice_is_cut_and_the_receipt_says_so(order, used, notes):
    found = Privelet(order=order).release(PointCounts.from_matrix(np.ones((8, 8), np.int64)), PureBudget(1), Entropy.seeded(1))
    (step,) = found.receipt.steps
    assert (step.sensitivity, step.counts, found.receipt.notes) == ((1 + used) ** 2, 4**used, notes)
    assert len(found.tree.leaves) == 4**used
