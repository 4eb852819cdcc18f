"""The quadtree's settings: splits, root, fan-out, least squares, pruning, and what is said when something is cut."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DomainError
from dpviz.mechanisms import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests.trees import dense_solution

MATRIX = np.random.default_rng(1).integers(0, 9, (16, 16))
POINTS = PointCounts.from_matrix(MATRIX)


def release(mechanism: Quadtree, epsilon: float = 1.0, seed: int = 1, points: PointCounts = POINTS) -> PointRelease:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


def amounts(found: PointRelease) -> dict[int, float]:
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


@pytest.mark.parametrize(
    ("settings", "order", "height", "note"),
    [
        ({"split": "custom", "weights": (1, 1, 0, 0), "height": 3}, 4, 1, "The tree ends at zoom level 1: nothing is measured below."),
        ({"split": "custom", "weights": (0, 0, 1, 0), "height": 3}, 4, 2, "The tree ends at zoom level 2: nothing is measured below."),
        ({"height": 20}, 4, 4, "The height is 4: the lattice is no finer."),
        ({"height": 4}, 4, 4, None),
        ({"height": 20, "fan_out": 16}, 5, 3, "The height is 3: the lattice is no finer."),
        ({"height": 3, "fan_out": 16}, 5, 3, None),
    ],
)
def test_levels_that_are_not_measured_or_finer_than_the_lattice_are_not_built_and_a_note_says_so(settings, order, height, note):
    points = PointCounts.from_xy([0.5], [0.5], domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    found = release(Quadtree(**settings), points=points)
    assert found.tree.height == height
    assert found.receipt.notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"height": 24}, "GiB"),
        ({"height": 8, "split": "custom", "weights": (1, 2)}, "needs 9 weights"),
        ({"height": 3, "split": "custom", "weights": (1, 2, 3, 4, 5)}, "needs 4 weights"),
        ({"height": 3, "split": "custom", "weights": (0, 0, 0, 0)}, "[Cc]ustom"),
    ],
)
def test_what_cannot_fit_is_known_before_anything_is_spent(settings, words):
    domain = Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=24)
    for refused in (Quadtree(**settings).check, lambda _: release(Quadtree(**settings), points=PointCounts.from_xy([], [], domain=domain))):
        with pytest.raises((DomainError, BudgetError), match=words):
            refused(domain)


def test_least_squares_gives_the_dense_solution_of_the_noisy_counts_and_a_smaller_spread():
    plain, better = (release(Quadtree(height=3, least_squares=on)) for on in (False, True))
    np.testing.assert_allclose(better.count, dense_solution(better.tree, better.noisy, better.noise_variance)[0], atol=1e-8)
    assert (better.node_stddev < plain.node_stddev).all()
    np.testing.assert_allclose(plain.node_stddev, np.sqrt(plain.noise_variance))
    assert (plain.steps, better.steps, release(Quadtree(height=3, split="leaf")).steps) == ((), ("least squares",), ())


@pytest.mark.parametrize("consistent", [True, False])
def test_pruning_removes_what_lies_under_nodes_with_small_estimates(consistent):
    whole = release(Quadtree(height=4, least_squares=consistent))
    found = release(Quadtree(height=4, least_squares=consistent, prune=60.0))
    inner = found.tree.children > 0
    assert (found.count[inner] >= 60).all()
    assert 0 < len(found.tree) < len(whole.tree)
    assert (found.count[~inner & (found.tree.depth < 4)] < 60).all()
    places = {tuple(rectangle): place for place, rectangle in enumerate(whole.tree.rectangles().tolist())}
    same = [places[tuple(rectangle)] for rectangle in found.tree.rectangles().tolist()]
    np.testing.assert_array_equal(found.count, whole.count[same])
    np.testing.assert_allclose(found.node_stddev, whole.node_stddev[same])
    assert found.steps[-1] == "pruned below nodes under 60"
    assert "pruning looks at the released counts" in found.approximate
    every = release(Quadtree(shrink_small=True, fill="interpolated", prune=8)).approximate
    assert [word in every for word in ("towards 0", "fuller neighbours", "pruning")] == [True] * 3
    assert found.receipt == whole.receipt


@pytest.mark.parametrize("settings", [{}, {"count_root": False}, {"split": "leaf"}, {"height": 20}])
def test_the_parts_of_the_budget_that_it_shows_are_those_it_spends(settings):
    mechanism = Quadtree(**{"height": 3} | settings)
    shares = {depth: part.share for depth, part in enumerate(mechanism.shares(POINTS.domain)) if part.share}
    assert amounts(release(mechanism)) == pytest.approx(shares, abs=1e-8)


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
