"""Private tuning of heights and thresholds: bounds that hold, sensitivities that are never exceeded, choices that make sense."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms import Identity, PrivTree, Quadtree, UniformGrid
from dpviz.mechanisms.box_shares import Asked, Boxes
from dpviz.mechanisms.candidates import FAMILIES, GridCandidate, PublicCandidate, QuadtreeCandidate, _kept, _noise, _public_noise
from dpviz.mechanisms.tuned import Tuned
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy

BUDGET = PureBudget(1)
TREES = {
    "default": Quadtree(height=3),
    "uniform budget, no root": Quadtree(height=3, split="uniform", count_root=False),
    "leaves only": Quadtree(height=3, split="leaf"),
    "16 parts": Quadtree(height=2, fan_out=16),
    "no least squares": Quadtree(height=3, least_squares=False),
    "gap in the middle": Quadtree(height=2, split="custom", weights=(1, 0, 2)),
}


def asked_of(matrix: np.ndarray, number: int = 60) -> Asked:
    points = PointCounts.from_matrix(matrix)
    edges = np.sort(np.random.default_rng(1).integers(0, len(matrix) + 1, (3 * number, 2, 2)), axis=1).reshape(-1, 4)
    edges = edges[(edges[:, :2] < edges[:, 2:]).all(axis=1)][:number]
    return Asked(points=points, boxes=Boxes(domain=points.domain, lattice=edges))


@pytest.mark.parametrize("name", TREES)
def test_the_bound_covers_the_true_spread_of_answers_and_the_bias(name):
    asked = asked_of(np.random.default_rng(2).poisson(3, (8, 8)) * np.eye(8, dtype=int)[::-1] * 5)
    boxes = asked.points.domain.coordinates(asked.boxes.lattice)
    released = TREES[name].release(asked.points, BUDGET, Entropy.seeded(1))
    _, spread = released.answer(boxes, spread=True)
    wanted = QuadtreeCandidate(mechanism=TREES[name]).expected(asked, BUDGET)
    huge = TREES[name].release(asked.points, PureBudget(10**7), Entropy.seeded(1))
    bias = np.abs(huge.answer(boxes) - asked.truth)
    assert (wanted.error >= np.sqrt(spread**2 + bias**2) - 1e-4).all()
    assert wanted.error.sum() < 1.6 * np.sqrt(spread**2 + bias**2).sum()
    found = PublicCandidate(mechanism=TREES[name]).expected(asked, BUDGET)
    np.testing.assert_allclose(found.error, np.sqrt(spread**2 + bias**2), rtol=1e-5)
    assert found.moved == wanted.moved


def test_a_public_grid_is_the_same_candidate_either_way_and_others_are_refused():
    asked = asked_of(np.random.default_rng(2).poisson(3, (8, 8)))
    for side in (1, 3, 8):
        one, other = (kind(mechanism=UniformGrid(side=side)).expected(asked, BUDGET) for kind in (PublicCandidate, GridCandidate))
        np.testing.assert_allclose(one.error, other.error)
        assert one.moved == other.moved
    assert PublicCandidate(mechanism=Identity(order=2)).expected(asked, BUDGET).error.shape == (60,)
    for mechanism in (PrivTree(), Quadtree(prune=3)):
        with pytest.raises(SettingError, match="must be public and form a grid"):
            PublicCandidate(mechanism=mechanism).expected(asked, BUDGET)


def test_the_noise_of_a_tree_that_nothing_is_pruned_from_is_that_of_the_whole_tree():
    asked = asked_of(np.full((8, 8), 9))
    counts = [np.full((side, side), 576 // side**2) for side in (1, 2, 4, 8)]
    variance = (1.0, 2.0, 3.0, 5.0)
    found = _noise(asked.boxes, variance, _kept(counts, 1.0))
    np.testing.assert_allclose(found, _public_noise(asked.boxes, (1, 2, 4, 8), variance))


@pytest.mark.parametrize("prune", [0.0, 1.0, 1.5, 3.0, 8.0])
def test_no_record_moves_the_errors_of_a_tree_by_more_than_it_says(prune):
    candidate, worst = QuadtreeCandidate(mechanism=Quadtree(height=2, prune=prune)), 0.0
    rng = np.random.default_rng(3)
    for matrix in [rng.poisson(rate, (4, 4)) for rate in (0, 0.2, 0.2, 0.5, 0.5, 2)] + [np.diag([0, 2, 0, 0]), np.diag([0, 0, 7, 0])]:
        first = asked_of(matrix)
        before = candidate.expected(first, BUDGET)
        for cell in range(16):
            more = matrix.copy()
            more.ravel()[cell] += 1
            after = candidate.expected(Asked(points=PointCounts.from_matrix(more), boxes=first.boxes), BUDGET)
            assert before.moved == after.moved
            moved = np.abs(after.error - before.error).sum()
            assert moved <= before.moved + 1e-9
            worst = max(worst, moved)
    if prune:
        assert worst > QuadtreeCandidate(mechanism=Quadtree(height=2)).expected(first, BUDGET).moved / 4


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


@pytest.mark.parametrize("tune", FAMILIES)
def test_every_family_releases_with_a_candidate_and_says_which(tune):
    points = PointCounts.from_matrix(np.random.default_rng(1).poisson(5, (16, 16)))
    found = Tuned(tune=tune).release(points, PureBudget(1), Entropy.seeded(1))
    assert found.mechanism == "tuned"
    assert found.settings["tune"] == tune
    assert found.receipt.spent.epsilon == 1
    assert found.receipt.steps[1].purpose == tune
    assert found.receipt.steps[1].counts == len(Tuned(tune=tune).candidates(points.domain))
    value = getattr(Tuned(tune=tune).candidates(points.domain)[0].mechanism, FAMILIES[tune].setting)
    assert f"the {tune} is" in found.receipt.notes[0]
    assert isinstance(value, int | float)


def test_heights_follow_the_data_and_the_budget():
    rng = np.random.default_rng(1)
    matrix = rng.poisson(30, (64, 64)) * (rng.random((64, 64)) < 0.1)
    points = PointCounts.from_matrix(matrix)
    heights = [
        {Tuned(values=(1, 6), sizes=(0.1, 0.2)).release(points, PureBudget(epsilon), Entropy.seeded(seed)).tree.height for seed in range(8)}
        for epsilon in (20, 10**4)
    ]
    assert heights == [{6}, {6}]
    flat = PointCounts.from_matrix(np.full((64, 64), 1))
    mechanism = Tuned(values=(1, 6), tuning_share=0.8, sizes=(0.1,), clip=1)
    assert {mechanism.release(flat, PureBudget(2), Entropy.seeded(seed)).tree.height for seed in range(8)} == {1}


def test_values_must_suit_what_is_tuned():
    for wrong in ({"values": (2.5,)}, {"values": (0,)}, {"tune": "grid size", "values": (0.5,)}, {"tune": "luck"}):
        with pytest.raises(SettingError):
            Tuned(**wrong)
    assert Tuned(tune="pruning threshold", values=(0, 2.5)).values == (0, 2.5)
    domain = PointCounts.from_matrix(np.ones((4, 4), int)).domain
    assert [each.mechanism.height for each in Tuned(values=(1, 2, 9)).candidates(domain)] == [1, 2]
