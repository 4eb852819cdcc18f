"""Private tuning of grids, heights and thresholds: bounds that hold, sensitivities that are never exceeded, choices that make sense."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms import Quadtree, UniformGrid, tuning
from dpviz.mechanisms.expected_error import Boxes, BoxQueries
from dpviz.mechanisms.points.tuned import MOST_NODES, Tuned, TunedGrid
from dpviz.mechanisms.tuning import TUNABLE, GridCandidate, HeightCandidate, PruningCandidate, TreeNoise, answer_variance
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import LAWS
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests.often import often
from tests.transcripts import EPSILON, pair, worst_loss

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
    assert found.sensitivity == wanted.sensitivity


def test_the_noise_of_a_tree_that_nothing_is_pruned_from_is_that_of_the_whole_tree():
    queries, sides, variance = queries_of(np.full((8, 8), 9)), (1, 2, 4, 8), (1.0, 2.0, 3.0, 5.0)
    levels = tuning._prune([np.full((side, side), 576 // side**2) for side in sides], 1.0)
    known = [
        (side, each, tuning._corner_sums(kept), tuning._corner_sums(leaf))
        for side, each, (kept, leaf) in zip(sides, variance, levels, strict=True)
    ]
    noise = TreeNoise(sides=sides, variance=variance, consistent=False)
    np.testing.assert_allclose(tuning.canonical_variance(queries.boxes, known), answer_variance(queries.boxes, noise))


def test_no_noise_is_drawn_and_no_tree_is_built_to_compare_heights(monkeypatch):
    queries = queries_of(np.ones((8, 8), int))
    for owner, name in (("dpviz.mechanisms.run", "discrete_laplace"), ("dpviz.mechanisms.points.quadtree", "quadtree")):
        monkeypatch.setattr(f"{owner}.{name}", lambda *_: pytest.fail("drawn or built"))
    Tuned().check(queries.points.domain)
    assert len({HeightCandidate(mechanism=Quadtree(height=height)).expected(queries, BUDGET).error.sum() for height in (1, 2, 3)}) == 3


def test_candidates_that_are_too_large_are_refused_before_anything_is_spent():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=14)
    Tuned(values=(2, 11)).check(domain)
    tall, fine = Tuned(values=(2, 11, 12)), Tuned(tune="grid size", values=(4096,))
    for mechanism, words in ((tall, "quadtree height of 12 needs 22,369,621"), (fine, "4,096")):
        with pytest.raises(SettingError, match=words):
            mechanism.check(domain)
        with pytest.raises(SettingError, match=f"{MOST_NODES:,}"):
            mechanism.release(PointCounts.from_xy([0.5], [0.5], domain=domain), BUDGET, Entropy.seeded(1))


def test_the_number_of_nodes_of_a_candidate_is_that_of_its_tree():
    points = PointCounts.from_matrix(np.ones((32, 32), int))
    grids = [GridCandidate(mechanism=UniformGrid(side=side)) for side in (1, 5, 32)]
    trees = [HeightCandidate(mechanism=each) for each in (Quadtree(height=2), Quadtree(height=9), Quadtree(height=3, fan_out=16))]
    for candidate in grids + trees:
        assert candidate.nodes(points.domain) == len(candidate.mechanism.release(points, BUDGET, Entropy.seeded(1)).tree)


@pytest.mark.parametrize("prune", often([0.0, 1.5, 3.0, 1.0, 8.0], 3))
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
            assert before.sensitivity == after.sensitivity
            moved = np.abs(after.error - before.error).sum()
            assert moved <= before.sensitivity + 1e-9
            worst = max(worst, moved)
    if prune:
        assert worst > PruningCandidate(mechanism=Quadtree(height=2)).expected(first, BUDGET).sensitivity / 4


def test_thresholds_keep_the_nodes_that_are_full_enough():
    cells = np.zeros((4, 4), int)
    cells[0, :2] = 5
    counts = [cells.reshape(side, 4 // side, side, 4 // side).sum(axis=(1, 3)) for side in (1, 2, 4)]
    (root, root_leaf), (quarters, quarter_leaf), (fine, fine_leaf) = tuning._prune(counts, 6)
    assert root.all()
    assert not root_leaf.any()
    assert quarters.all()
    np.testing.assert_array_equal(quarter_leaf, [[False, True], [True, True]])
    assert fine.sum() == fine_leaf.sum() == 4


@pytest.mark.parametrize(
    "wrong",
    [{"values": (2.5,)}, {"values": (0,)}, {"tune": "grid size", "values": (0.5,)}, {"sides": ()}, {"sides": (2.5,)}, {"sizes": (0.0,)}],
)
def test_values_that_do_not_suit_what_is_tuned_are_refused(wrong):
    with pytest.raises(SettingError):
        (TunedGrid if "sides" in wrong else Tuned)(**wrong)


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


POINTS = PointCounts.from_matrix(np.random.default_rng(1).poisson(5, (64, 64)))
QUICK = {"sizes": (0.5, 1.0), "per_size": 6}
VARIANTS = {
    "default": TunedGrid(sides=(1, 2, 4), **QUICK),
    "declared total": TunedGrid(sides=(1, 2, 3), declared_total=200, clip=0.5, sanity=0.02, **QUICK),
    "the paper's way": TunedGrid(
        sides=(1, 2), total="declared", declared_total=120, sanity=0.1, bound="paper", law="exponential mechanism", **QUICK
    ),
    "heights": Tuned(values=(1, 2), **QUICK),
    "thresholds": Tuned(tune="pruning threshold", values=(0, 1.5, 3), clip=0.2, declared_total=1000, sanity=0.1, **QUICK),
    "sizes": Tuned(tune="grid size", values=(1, 2, 4), law="exponential mechanism", **QUICK),
}


def release(mechanism, epsilon: float | str = 1, seed: int = 1, points: PointCounts = POINTS) -> PointRelease:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


def side_of(found: PointRelease) -> int:
    return round(len(found.tree.leaves) ** 0.5)


def test_by_default_it_buys_the_total_then_chooses_then_counts():
    total, choice, cells = release(TunedGrid(), "0.5").receipt.steps
    assert [float(step.amount) for step in (total, choice, cells)] == pytest.approx([0.01, 0.1, 0.39])
    assert sum(step.amount for step in (total, choice, cells)) == Fraction("0.5")
    assert (choice.noise, choice.counts, choice.sensitivity) == ("permute-and-flip", 5, 1 + Fraction(1, 2**20))
    assert (total.purpose, choice.purpose) == ("total, for the sanity bound", "size of the grid")


def test_a_declared_total_is_listed_as_unprotected_and_saves_its_share():
    found = release(TunedGrid(declared_total=20_000))
    assert [float(step.amount) for step in found.receipt.steps] == pytest.approx([0.2, 0.8])
    assert found.receipt.unprotected[-1] == "the declared number of records (20,000)"
    assert "declared" not in "".join(release(TunedGrid()).receipt.unprotected)


@pytest.mark.parametrize(("wrong", "words"), [({"total": "declared"}, "Declared number of records"), ({"sizes": ()}, "16,384 boxes")])
def test_what_cannot_be_tuned_is_refused_before_anything_is_spent(wrong, words):
    for refused in (TunedGrid(**wrong).check, lambda _: release(TunedGrid(**wrong))):
        with pytest.raises(SettingError, match=words):
            refused(POINTS.domain)


def test_sizes_are_cut_to_the_lattice_with_a_note_and_a_single_one_costs_nothing():
    assert [each.value for each in TunedGrid(sides=(100, 3, 64, 3)).candidates(POINTS.domain)] == [3, 64]
    assert [each.value for each in Tuned(values=(1, 2, 9)).candidates(POINTS.domain)] == [1, 2, 6]
    assert release(TunedGrid()).receipt.notes == ("Grids have at most 64 cells per side: the lattice is no finer.",)
    assert release(TunedGrid(sides=(3, 64))).receipt.notes == ()
    for mechanism in (TunedGrid(sides=(64, 128, 512)), Tuned(values=(3,))):
        assert "choice" not in str(release(mechanism).receipt.steps)
        assert [share.share for share in mechanism.shares(POINTS.domain)] == [1.0]
        assert mechanism.with_shares([1]) is mechanism


def test_the_parts_of_the_budget_can_be_moved():
    moved = TunedGrid().with_shares([0.05, 0.5, 0.45])
    assert [float(step.amount) for step in release(moved).receipt.steps] == pytest.approx([0.05, 0.5, 0.45])
    declared = TunedGrid(declared_total=5).with_shares([3, 1])
    assert (declared.tuning_share, declared.total_share) == (0.75, 0.02)
    assert TunedGrid().with_shares([0, 0, 1]).tuning_share == 0.01


def test_with_a_large_budget_it_chooses_the_best_candidate_under_either_law():
    fine = PointCounts.from_matrix(np.kron(np.eye(32, dtype=int) * 50, np.array([[1, 0], [0, 1]])))
    flat = PointCounts.from_matrix(np.full((64, 64), 1))
    for law in LAWS:
        for options in ({}, {"total": "declared", "declared_total": 3200}):
            mechanism = TunedGrid(sides=(2, 8, 64), law=law, sizes=(0.1, 0.3), **options)
            assert {side_of(release(mechanism, 10**5, seed, fine)) for seed in range(5)} == {64}
    coarse = TunedGrid(sides=(2, 64), tuning_share=0.8, sizes=(1.0,), clip=0.1)
    assert {side_of(release(coarse, 2, seed, flat)) for seed in range(5)} == {2}


def neighbours(bound: int):
    rng = np.random.default_rng(2)
    for base in (np.zeros((4, 4), int), rng.integers(0, 2, (4, 4)), np.diag([0, 2, 0, 9])):
        for place in range(bound % 2, 16, 2):
            yield pair(base, [place, *rng.integers(0, 16, bound - 1)])


@pytest.mark.parametrize(
    ("variant", "bound"), often(product(VARIANTS, (1, 2)), [*product(VARIANTS, (1,)), ("default", 2), ("thresholds", 2)])
)
def test_no_record_and_no_person_costs_more_than_epsilon_whatever_is_drawn_and_chosen(monkeypatch, variant, bound):
    VARIANTS[variant].release(next(neighbours(bound))[0], PureBudget(EPSILON), Entropy.seeded(0))  # what is public is kept from here on
    found = [worst_loss(monkeypatch, VARIANTS[variant], *inputs, seed) for seed, inputs in enumerate(neighbours(bound))]
    assert 0.7 * EPSILON < max(found) <= float(EPSILON) + 1e-9
