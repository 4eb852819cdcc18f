"""Private tuning of heights and thresholds: bounds that hold, sensitivities that are never exceeded, choices that make sense."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms import Quadtree, UniformGrid
from dpviz.mechanisms.expected_error import Boxes, BoxQueries
from dpviz.mechanisms.points.tuned import MOST_NODES, Tuned
from dpviz.mechanisms.tuning import (
    TUNABLE,
    GridCandidate,
    HeightCandidate,
    PruningCandidate,
    TreeNoise,
    _kept,
    _sums,
    answer_variance,
    canonical_variance,
)
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain

BUDGET = PureBudget(1)
TREES = {
    "default": Quadtree(height=3),
    "uniform budget, no root": Quadtree(height=3, split="uniform", count_root=False),
    "leaves only": Quadtree(height=3, split="leaf"),
    "16 parts": Quadtree(height=2, fan_out=16),
    "no least squares": Quadtree(height=3, least_squares=False),
    "16 parts, one halving left": Quadtree(height=2, fan_out=16, split="uniform"),
    "gap in the middle": Quadtree(height=2, split="custom", weights=(1, 0, 2)),
}


def queries_of(matrix: np.ndarray, number: int = 60) -> BoxQueries:
    points = PointCounts.from_matrix(matrix)
    edges = np.sort(np.random.default_rng(1).integers(0, len(matrix) + 1, (3 * number, 2, 2)), axis=1).reshape(-1, 4)
    edges = edges[(edges[:, :2] < edges[:, 2:]).all(axis=1)][:number]
    return BoxQueries(points=points, boxes=Boxes(domain=points.domain, lattice=edges))


@pytest.mark.parametrize("name", TREES)
def test_the_bound_covers_the_true_spread_of_answers_and_the_bias(name):
    queries = queries_of(np.random.default_rng(2).poisson(3, (8, 8)) * np.eye(8, dtype=int)[::-1] * 5)
    boxes = queries.points.domain.coordinates(queries.boxes.lattice)
    released = TREES[name].release(queries.points, BUDGET, Entropy.seeded(1))
    _, spread = released.answer(boxes, spread=True)
    wanted = PruningCandidate(mechanism=TREES[name]).expected(queries, BUDGET)
    huge = TREES[name].release(queries.points, PureBudget(10**7), Entropy.seeded(1))
    bias = np.abs(huge.answer(boxes) - queries.truth)
    assert (wanted.error >= np.sqrt(spread**2 + bias**2) - 1e-4).all()
    assert wanted.error.sum() < 1.6 * np.sqrt(spread**2 + bias**2).sum()
    found = HeightCandidate(mechanism=TREES[name]).expected(queries, BUDGET)
    np.testing.assert_allclose(found.error, np.sqrt(spread**2 + bias**2), rtol=1e-5)
    assert found.moved == wanted.moved


def test_a_tree_of_which_only_the_root_was_measured_has_its_noise_by_share_of_area():
    queries, tree = queries_of(np.ones((8, 8), int)), Quadtree(height=2, split="custom", weights=(1, 0, 0))
    _, spread = tree.release(queries.points, BUDGET, Entropy.seeded(1)).answer(
        queries.points.domain.coordinates(queries.boxes.lattice), spread=True
    )
    np.testing.assert_allclose(answer_variance(queries.boxes, TreeNoise.of(tree, queries.points.domain, BUDGET, 1)), spread**2)


def test_leaves_alone_are_the_same_candidate_as_a_grid():
    queries = queries_of(np.random.default_rng(2).poisson(3, (8, 8)))
    for height in (1, 2, 3):
        one = HeightCandidate(mechanism=Quadtree(height=height, split="leaf")).expected(queries, BUDGET)
        other = GridCandidate(mechanism=UniformGrid(side=2**height)).expected(queries, BUDGET)
        np.testing.assert_allclose(one.error, other.error)
        assert one.moved == other.moved


def test_the_noise_of_a_tree_that_nothing_is_pruned_from_is_that_of_the_whole_tree():
    queries, sides, variance = queries_of(np.full((8, 8), 9)), (1, 2, 4, 8), (1.0, 2.0, 3.0, 5.0)
    levels = _kept([np.full((side, side), 576 // side**2) for side in sides], 1.0)
    known = [(side, each, _sums(kept), _sums(leaf)) for side, each, (kept, leaf) in zip(sides, variance, levels, strict=True)]
    noise = TreeNoise(sides=sides, variance=variance, consistent=False)
    np.testing.assert_allclose(canonical_variance(queries.boxes, known), answer_variance(queries.boxes, noise))


def test_no_noise_is_drawn_and_no_tree_is_built_to_compare_heights(monkeypatch):
    queries = queries_of(np.ones((8, 8), int))
    for owner, name in (("dpviz.mechanisms.noisy_counts", "discrete_laplace"), ("dpviz.mechanisms.points.quadtree", "quadtree")):
        monkeypatch.setattr(f"{owner}.{name}", lambda *_: pytest.fail("drawn or built"))
    Tuned().check(queries.points.domain)
    assert len({HeightCandidate(mechanism=Quadtree(height=height)).expected(queries, BUDGET).error.sum() for height in (1, 2, 3)}) == 3


def test_candidates_that_are_too_large_are_refused_before_anything_is_spent():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=14)
    Tuned(values=(2, 11)).check(domain)
    for mechanism, told in (
        (Tuned(values=(2, 11, 12)), "quadtree height of 12 needs 22,369,621"),
        (Tuned(tune="grid size", values=(4096,)), "4,096"),
    ):
        with pytest.raises(SettingError, match=told):
            mechanism.check(domain)
        with pytest.raises(SettingError, match=f"{MOST_NODES:,}"):
            mechanism.release(PointCounts.from_xy([0.5], [0.5], domain=domain), BUDGET, Entropy.seeded(1))


def test_the_number_of_nodes_of_a_candidate_is_that_of_its_tree():
    points = PointCounts.from_matrix(np.ones((32, 32), int))
    grids = [GridCandidate(mechanism=UniformGrid(side=side)) for side in (1, 5, 32)]
    trees = [HeightCandidate(mechanism=each) for each in (Quadtree(height=2), Quadtree(height=9), Quadtree(height=3, fan_out=16))]
    for candidate in grids + trees:
        assert candidate.nodes(points.domain) == len(candidate.mechanism.release(points, BUDGET, Entropy.seeded(1)).tree)


@pytest.mark.parametrize("prune", [0.0, 1.0, 1.5, 3.0, 8.0])
def test_no_record_moves_the_errors_of_a_tree_by_more_than_it_says(prune):
    candidate, worst = PruningCandidate(mechanism=Quadtree(height=2, prune=prune)), 0.0
    rng = np.random.default_rng(3)
    for matrix in [rng.poisson(rate, (4, 4)) for rate in (0, 0.2, 0.2, 0.5, 0.5, 2)] + [np.diag([0, 2, 0, 0]), np.diag([0, 0, 7, 0])]:
        first = queries_of(matrix)
        before = candidate.expected(first, BUDGET)
        for cell in range(16):
            more = matrix.copy()
            more.ravel()[cell] += 1
            after = candidate.expected(BoxQueries(points=PointCounts.from_matrix(more), boxes=first.boxes), BUDGET)
            assert before.moved == after.moved
            moved = np.abs(after.error - before.error).sum()
            assert moved <= before.moved + 1e-9
            worst = max(worst, moved)
    if prune:
        assert worst > PruningCandidate(mechanism=Quadtree(height=2)).expected(first, BUDGET).moved / 4


def test_thresholds_keep_the_nodes_that_are_full_enough():
    cells = np.zeros((4, 4), int)
    cells[0, :2] = 5
    counts = [cells.reshape(side, 4 // side, side, 4 // side).sum(axis=(1, 3)) for side in (1, 2, 4)]
    (root, root_leaf), (quarters, quarter_leaf), (fine, fine_leaf) = _kept(counts, 6)
    assert root.all()
    assert not root_leaf.any()
    assert quarters.all()
    np.testing.assert_array_equal(quarter_leaf, [[False, True], [True, True]])
    assert fine.sum() == fine_leaf.sum() == 4


@pytest.mark.parametrize("tune", TUNABLE)
def test_every_family_releases_with_a_candidate_and_says_which(tune):
    points, mechanism = PointCounts.from_matrix(np.random.default_rng(1).poisson(5, (16, 16))), Tuned(tune=tune)
    found, values = mechanism.release(points, BUDGET, Entropy.seeded(1)), [each.value for each in mechanism.candidates(points.domain)]
    assert (found.mechanism, found.settings["tune"]) == ("tuned", tune)
    assert (found.receipt.steps[1].purpose, found.receipt.steps[1].counts) == (tune, len(values))
    assert any(f"the {tune} is {value:g}, chosen among {len(values)}" in found.receipt.notes[0] for value in values)


def test_heights_follow_the_data_and_the_budget():
    rng = np.random.default_rng(1)
    crowded = PointCounts.from_matrix(rng.poisson(30, (64, 64)) * (rng.random((64, 64)) < 0.1))
    flat = PointCounts.from_matrix(np.full((64, 64), 1))
    eager = Tuned(values=(1, 6), tuning_share=0.8, sizes=(0.1,), clip=1)
    usual = Tuned(values=(1, 6), sizes=(0.1, 0.2))
    for mechanism, points, epsilon, height in ((usual, crowded, 20, 6), (usual, crowded, 10**4, 6), (eager, flat, 2, 1)):
        assert {mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed)).tree.height for seed in range(8)} == {height}


def test_values_must_suit_what_is_tuned():
    for wrong in ({"values": (2.5,)}, {"values": (0,)}, {"tune": "grid size", "values": (0.5,)}, {"tune": "luck"}):
        with pytest.raises(SettingError):
            Tuned(**wrong)
    assert Tuned(tune="pruning threshold", values=(0, 2.5)).values == (0, 2.5)
    domain = PointCounts.from_matrix(np.ones((4, 4), int)).domain
    assert [each.mechanism.height for each in Tuned(values=(1, 2, 9)).candidates(domain)] == [1, 2]
