"""AG: the two rules for its sizes, what the total costs, edges at the lattice, counts of both layers and how they are reconciled."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import AdaptiveGrid
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests import trees
from tests.transcripts import EPSILON, Script, compared, loss, pair

POINTS = PointCounts.from_matrix(np.full((64, 64), 5))


def release(mechanism: AdaptiveGrid, epsilon: float | str = 1.0, seed: int = 1, points: PointCounts = POINTS) -> PointRelease:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


def cells_of(found: PointRelease) -> np.ndarray:
    """(k,) nodes that are cells of the first grid: measured, with something below them."""
    return np.flatnonzero(np.isfinite(found.noisy) & (found.tree.children > 0))


def side_of(found: PointRelease) -> int:
    return math.isqrt(len(cells_of(found)))


def parts_of(found: PointRelease) -> np.ndarray:
    """(2, k) columns and rows that each cell of the first grid is cut into, by the lines of its leaves."""
    west, south, east, north = found.tree.rectangles(cells_of(found)).T[:, :, None]
    leaves = found.tree.rectangles(found.tree.leaves)
    within = (leaves[:, 0] >= west) & (leaves[:, 2] <= east) & (leaves[:, 1] >= south) & (leaves[:, 3] <= north)
    return np.array([[len(np.unique(leaves[inside, side])) for inside in within] for side in (0, 1)])


def crowded(order: int = 7, records: int = 200_000, **options) -> PointCounts:
    """Records around one place, the same every time."""
    rng = np.random.default_rng(order)
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=order)
    x, y = np.clip(rng.normal(0.45, 0.15, (2, records)), 0, 1)
    return PointCounts.from_xy(x, y, domain=domain, **options)


@pytest.mark.parametrize(
    ("total", "epsilon", "c", "side"),
    [
        (0, 1, 10, 10),
        (10**6, 1, 10, 64),
        (160_000, 0.5, 10, 23),
        (25_600, 1, 1, 40),
    ],
)
def test_the_first_grid_has_a_quarter_of_the_root_of_n_epsilon_over_c_and_at_least_ten(total, epsilon, c, side):
    found = release(AdaptiveGrid(declared_total=total, c=c), epsilon)
    assert side_of(found) == side
    assert len(found.receipt.steps) == 2
    assert found.receipt.unprotected[-1] == f"the declared number of records ({total:,})"


@pytest.mark.parametrize(("epsilon", "alpha", "c"), [(1, 0.5, 10), (0.2, 0.3, 10), (0.5, 0.8, 3)])
def test_each_cell_is_cut_by_its_own_noisy_count(epsilon, alpha, c):
    found = release(AdaptiveGrid(declared_total=20_000, alpha=alpha, c=c), epsilon, points=crowded())
    noisy = found.noisy[cells_of(found)]
    rule = np.ceil(np.sqrt(np.maximum(noisy, 0) * (1 - alpha) * epsilon / (c / 2)))
    box = found.tree.rectangles(cells_of(found)).T
    np.testing.assert_array_equal(parts_of(found), np.clip(rule, 1, box[2:] - box[:2]))
    assert len(np.unique(parts_of(found))) >= 5
    assert noisy.min() < 0


def test_by_default_a_hundredth_of_epsilon_buys_the_total_that_decides_the_first_size():
    found = release(AdaptiveGrid(), "0.02")
    steps, names = found.receipt.steps, ["total, for the size of the first grid", "counts, first grid", "counts, second grid"]
    assert [step.purpose for step in steps] == names
    assert [float(step.amount) for step in steps] == pytest.approx([0.0002, 0.0099, 0.0099], rel=1e-6)
    assert [step.counts for step in steps] == [1, side_of(found) ** 2, len(found.tree.leaves)]
    assert not any("declared" in words for words in found.receipt.unprotected)
    sides = {side_of(release(AdaptiveGrid(c=0.1), "0.05", seed)) for seed in range(6)}
    assert len(sides) > 1
    assert max(sides) < 64
    assert AdaptiveGrid()._choose_side(-(10**9), 1.0, POINTS.domain) == 10, "a total under 0 gives the smallest"


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_neither_grid_is_finer_than_the_lattice(order):
    side = 1 << order
    points = PointCounts.from_matrix(np.full((side, side), 1000))
    for mechanism in (AdaptiveGrid(), AdaptiveGrid(c=0.1), AdaptiveGrid(declared_total=10**15)):
        found = release(mechanism, 10, points=points)
        assert side_of(found) == side
        assert len(found.tree.leaves) == side * side


def test_memory_stays_bounded_where_the_lattice_does_not_bound_it():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=20)
    points = replace(PointCounts.from_xy([0.4], [0.6], domain=domain), count=np.array([2**50]))
    assert AdaptiveGrid()._choose_side(10**15, 10.0, domain) == 2048
    found = release(AdaptiveGrid(declared_total=0), 1, points=points)
    assert found.receipt.steps[1].counts == (2048 // 10) ** 2 + 99


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.2, "c": 2.0}])
def test_the_layers_are_reconciled_by_least_squares_and_the_spread_is_that_of_redrawn_noise(settings):
    found = release(AdaptiveGrid(declared_total=3000, **settings), 0.5, points=crowded(4, 3000))
    count, covariance = trees.dense_solution(found.tree, found.noisy, found.noise_variance)
    np.testing.assert_allclose(found.count, count, atol=1e-7)
    np.testing.assert_allclose(found.node_stddev**2, np.diag(covariance), rtol=1e-8)
    assert found.steps == ("least squares",)
    assert "decided how finely" in found.approximate
    amounts = [float(step.amount) for step in found.receipt.steps]
    for nodes, amount in ((cells_of(found), amounts[0]), (found.tree.leaves, amounts[1])):
        q = math.exp(-amount)
        np.testing.assert_allclose(found.noise_variance[nodes], 2 * q / (1 - q) ** 2)
    rest = np.setdiff1d(np.arange(len(found.tree)), np.concatenate([cells_of(found), found.tree.leaves]))
    assert np.isinf(found.noise_variance[rest]).all()


@pytest.mark.parametrize("bound", [1, 4])
def test_sizes_count_epsilon_per_record(bound):
    points = crowded(6, 30_000, person=np.arange(30_000) // bound, contributions=bound)
    found = release(AdaptiveGrid(declared_total=64_000), 1, points=points)
    assert side_of(found) == {1: 20, 4: 10}[bound]
    rule = np.ceil(np.sqrt(np.maximum(found.noisy[cells_of(found)], 0) * 0.5 / bound / 5))
    width = (found.tree.east - found.tree.west)[cells_of(found)]
    np.testing.assert_array_equal(parts_of(found)[0], np.clip(rule, 1, width))


@pytest.mark.parametrize("settings", [{"c": 0.1}, {"c": 0.1, "total_share": 0.5}, {"declared_total": 40, "alpha": 0.9}])
@pytest.mark.parametrize("bound", [1, 3])
def test_a_record_costs_exactly_epsilon_and_only_noisy_numbers_decide_anything(monkeypatch, settings, bound):
    rng, mechanism = np.random.default_rng(6), AdaptiveGrid(**settings)
    for seed in range(10):
        order = 3 if seed % 2 else 5  # cells of the first grid are those of the lattice, or have room for a second one
        inputs = pair(rng.integers(0, 3, (1 << order, 1 << order)), rng.integers(0, 4**order, bound))
        assert loss(*compared(monkeypatch, mechanism, *inputs, Script(seed=seed, reach=(-3, 40)))) == EPSILON


def test_the_parts_of_the_budget_can_be_moved():
    assert [part.structure for part in AdaptiveGrid().shares(POINTS.domain)] == [True, False, False]
    moved = AdaptiveGrid().with_shares([0.1, 0.3, 0.6])
    assert [float(step.amount) for step in release(moved).receipt.steps] == pytest.approx([0.1, 0.3, 0.6])
    assert AdaptiveGrid(declared_total=5).with_shares([0.3, 0.7]).alpha == pytest.approx(0.3)
    assert AdaptiveGrid().with_shares([0.0, 1.0, 0.0]).alpha == 0.99
