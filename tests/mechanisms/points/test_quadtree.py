"""The quadtree's settings: splits, root, fan-out, least squares, pruning, and what is said when something is cut."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DomainError
from dpviz.mechanisms import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from tests.trees import dense_solution

MATRIX = np.random.default_rng(1).integers(0, 9, (16, 16))
POINTS = PointCounts.from_matrix(MATRIX)


def release(mechanism: Quadtree, epsilon: float = 1.0, seed: int = 1, points: PointCounts = POINTS) -> Release:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


def amounts(found: Release) -> dict[int, float]:
    return {step.level: float(step.amount / found.receipt.total.epsilon) for step in found.receipt.steps}


CUBE_ROOT, SIXTH_ROOT = 2 ** (1 / 3), 4 ** (1 / 3)
SPLITS = {
    "by default growing by the cube root of two": (Quadtree(height=4), [1, CUBE_ROOT, CUBE_ROOT**2, 2, 2 * CUBE_ROOT]),
    "16 parts, growing by the sixth root of 16": (Quadtree(height=4, fan_out=16), [1, SIXTH_ROOT, SIXTH_ROOT**2]),
    "uniform": (Quadtree(height=3, split="uniform"), [1, 1, 1, 1]),
    "leaf": (Quadtree(height=3, split="leaf"), [0, 0, 0, 1]),
    "without root": (Quadtree(height=3, count_root=False), [0, 1, CUBE_ROOT, CUBE_ROOT**2]),
    "custom": (Quadtree(height=3, split="custom", weights=(0, 2, 0, 6)), [0, 1, 0, 3]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_splits_share_epsilon_over_the_levels_as_they_say_and_measure_no_other_level(name):
    mechanism, weights = SPLITS[name]
    found = release(mechanism)
    wanted = {level: weight / sum(weights) for level, weight in enumerate(weights) if weight}
    assert amounts(found) == pytest.approx(wanted, rel=1e-6)
    assert set(found.tree.children.tolist()) == {mechanism.fan_out, 0}
    np.testing.assert_array_equal(np.isnan(found.noisy), ~np.isin(found.tree.depth, [*wanted]))
    np.testing.assert_array_equal(np.isinf(found.noise_variance), np.isnan(found.noisy))
    for step in found.receipt.steps:
        assert found.noise_variance[found.tree.depth == step.level] == pytest.approx(laplace_variance(1 / step.amount))


@pytest.mark.parametrize("weights", [(), (1, 2), (1, 2, 3, 4, 5), (0, 0, 0, 0)])
def test_custom_weights_that_do_not_fit_the_tree_are_refused(weights):
    with pytest.raises(BudgetError, match=r"[Cc]ustom"):
        release(Quadtree(height=3, split="custom", weights=weights))


@pytest.mark.parametrize(("weights", "height"), [((1, 1, 0, 0), 1), ((1, 0, 0, 0), 1), ((0, 0, 1, 0), 2)])
def test_levels_below_the_deepest_measured_one_are_not_built_and_the_receipt_says_so(weights, height):
    found = release(Quadtree(height=3, split="custom", weights=weights))
    assert found.tree.height == height
    assert found.receipt.notes == (f"The tree ends at zoom level {height}: nothing is measured below.",)


@pytest.mark.parametrize(("fan_out", "order", "height"), [(4, 4, 4), (16, 4, 2), (16, 5, 3)])
def test_a_height_finer_than_the_lattice_is_cut_and_the_receipt_says_so(fan_out, order, height):
    points = PointCounts.from_xy([0.5], [0.5], domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    found = release(Quadtree(height=20, fan_out=fan_out), points=points)
    assert found.receipt.notes == (f"The height is {height}: the lattice is no finer.",)
    assert (found.tree.cells[found.tree.leaves] == 1).all()
    assert release(Quadtree(height=height, fan_out=fan_out), points=points).receipt.notes == ()


def test_what_cannot_fit_is_known_before_anything_is_spent():
    domain = Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=24)
    Quadtree().check(domain)
    for mechanism, told in ((Quadtree(height=24), "GiB"), (Quadtree(height=8, split="custom", weights=(1, 2)), "needs 9 weights")):
        for refused in (mechanism.check, lambda _, each=mechanism: release(each, points=PointCounts.from_xy([], [], domain=domain))):
            with pytest.raises((DomainError, BudgetError), match=told):
                refused(domain)


def test_least_squares_gives_the_dense_solution_of_the_noisy_counts_and_a_smaller_spread():
    plain, better = (release(Quadtree(height=3, least_squares=on)) for on in (False, True))
    np.testing.assert_allclose(better.count, dense_solution(better.tree, better.noisy, better.noise_variance)[0], atol=1e-8)
    assert (better.stddev < plain.stddev).all()
    np.testing.assert_array_equal(plain.count, plain.noisy)
    np.testing.assert_allclose(plain.stddev, np.sqrt(plain.noise_variance))
    leaves = release(Quadtree(height=3, split="leaf"))
    np.testing.assert_array_equal(leaves.count[leaves.tree.leaves], leaves.noisy[leaves.tree.leaves])
    assert (plain.steps, better.steps, leaves.steps) == ((), ("least squares",), ())


@pytest.mark.parametrize("consistent", [True, False])
def test_pruning_removes_what_lies_under_nodes_with_small_estimates(consistent):
    whole = release(Quadtree(height=4, least_squares=consistent))
    found = release(Quadtree(height=4, least_squares=consistent, prune=60.0))
    inner = found.tree.children > 0
    assert (found.count[inner] >= 60).all()
    assert 0 < len(found.tree) < len(whole.tree)
    early = ~inner & (found.tree.depth < 4)
    assert early.any()
    assert (found.count[early] < 60).all()
    places = {tuple(rectangle): place for place, rectangle in enumerate(whole.tree.rectangles().tolist())}
    same = [places[tuple(rectangle)] for rectangle in found.tree.rectangles().tolist()]
    np.testing.assert_array_equal(found.count, whole.count[same])
    np.testing.assert_allclose(found.stddev, whole.stddev[same])
    assert found.steps[-1] == "pruned below nodes under 60"
    assert "pruning looks at the released counts" in found.approximate
    every = release(Quadtree(zero=True, inside="interpolated", prune=8)).approximate
    assert [word in every for word in ("towards 0", "fuller neighbours", "pruning")] == [True] * 3
    assert found.receipt == whole.receipt


@pytest.mark.parametrize(
    "mechanism", [Quadtree(height=3), Quadtree(height=3, count_root=False), Quadtree(height=3, split="leaf"), Quadtree(height=20)]
)
def test_the_parts_of_the_budget_that_it_shows_are_those_it_spends_and_can_be_handed_back(mechanism):
    shares = mechanism.shares(POINTS.domain)
    found = amounts(release(mechanism))
    height = len(shares) - 1
    assert sum(part.share for part in shares) == pytest.approx(1)
    assert [found.get(depth, 0.0) for depth in range(height + 1)] == pytest.approx([part.share for part in shares], abs=1e-8)
    again = replace(mechanism, height=height).with_shares([part.share for part in shares])
    assert amounts(release(again)) == pytest.approx(found, abs=1e-8)


@pytest.mark.parametrize("order", [16, 24])
def test_pruned_trees_on_fine_lattices_answer_the_same_by_every_way(order):
    """A raster cell of 2**31 lattice cells and more once overflowed."""
    domain = Domain(bounds=(0.0, 0.0, 100.0, 100.0), crs=None, order=order)
    x, y = np.random.default_rng(1).normal(50, 3, (2, 20_000))
    points = PointCounts.from_xy(x, y, domain=domain)
    for prune in (200.0, 1e12):
        found = Quadtree(height=6, prune=prune).release(points, PureBudget(1), Entropy.seeded(3))
        boxes = np.array([[0, 0, 100, 100], [20, 10, 50.5, 60], [49, 49, 51, 51]], float)
        assert found.answer(boxes) == pytest.approx(found.answer(boxes, spread=True)[0], rel=1e-9)
        assert found.blocks(0)[0, 0] == pytest.approx(found.count[0])


def test_levels_keep_their_numbers_when_pruning_lowers_the_tree():
    points = PointCounts.from_matrix(np.zeros((16, 16), int))
    found = Quadtree(height=4, prune=1e9).release(points, PureBudget(1), Entropy.seeded(3))
    assert found.tree.height < found.height == 4
    assert {step.level for step in found.receipt.steps} == set(range(5))
    assert found.to_frame()["level"].tolist() == [0]
    assert [len(found.nodes(level)) for level in range(5)] == [1] * 5
    assert found.answer([[0, 0, 8, 16]])[0] == pytest.approx(found.count[0] / 2)
