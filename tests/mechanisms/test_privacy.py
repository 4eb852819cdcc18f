"""Exact privacy by enumeration: no neighbouring inputs can ever be told apart better than the budget allows.

Noise is replaced by a script. One run records every number that it measured and what it got back; the run on the
neighbouring input gets the same numbers back, so whatever it chooses from them must be the same, and the loss is the sum
over all steps of |difference of the true numbers| / scale, in fractions.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import POINT_MECHANISMS, Identity, Quadtree, UniformGrid
from dpviz.mechanisms import noisy_counts as measure
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release

VARIANTS = {
    "quadtree": Quadtree(),
    "quadtree without root": Quadtree(count_root=False, split="uniform"),
    "quadtree of 16 parts": Quadtree(fan_out=16),
    "quadtree on leaves": Quadtree(split="leaf", least_squares=False),
    "quadtree of odd weights": Quadtree(height=1, split="custom", weights=(1 / 3, 2 / 3)),
    "pruned quadtree": Quadtree(prune=1.5),
    "uniform grid": UniformGrid(),
    "uniform grid, large total share": UniformGrid(total_share=0.5, c=0.1),
    "uniform grid of 1": UniformGrid(side=1),
    "uniform grid of 3": UniformGrid(side=3),
    "uniform grid, declared total": UniformGrid(declared_total=30, c=1.0),
    "identity": Identity(),
    "identity with threshold": Identity(threshold=True, order=1),
}
EPSILON = Fraction("1.3")


class Script:
    """Stands in for `discrete_laplace`: writes down what was measured, answers from a list or makes the answers up."""

    def __init__(self, answers: list[np.ndarray] | None = None, seed: int = 0) -> None:
        self.given, self.rng = answers, np.random.default_rng(seed)
        self.answers: list[np.ndarray] = []
        self.measured: list[tuple[np.ndarray, Fraction]] = []

    def __call__(self, counts, budget, entropy, sensitivity=1):
        self.measured.append((counts.copy(), sensitivity / budget.epsilon))
        answer = counts + self.rng.integers(-2, 4, len(counts)) if self.given is None else self.given[len(self.answers)]
        self.answers.append(answer)
        return answer.copy()


def run(monkeypatch, mechanism, points: PointCounts, script: Script) -> Release:
    monkeypatch.setattr(measure, "discrete_laplace", script)
    return mechanism.release(points, PureBudget(EPSILON), Entropy.seeded(0))


def loss(monkeypatch, mechanism, one: PointCounts, other: PointCounts, seed: int = 0) -> Fraction:
    """Largest privacy loss between two inputs along one script; fails if anything but the noise can tell them apart."""
    first = Script(seed=seed)
    released = run(monkeypatch, mechanism, one, first)
    second = Script(first.answers)
    again = run(monkeypatch, mechanism, other, second)
    assert len(first.measured) == len(second.measured) == len(released.receipt.steps)
    np.testing.assert_array_equal(released.tree.rectangles(), again.tree.rectangles())
    np.testing.assert_array_equal(released.count, again.count)
    np.testing.assert_array_equal(released.stddev, again.stddev)
    assert released.receipt == again.receipt
    assert (released.steps, released.settings) == (again.steps, again.settings)
    total = Fraction(0)
    for (true, scale), (moved, same), step in zip(first.measured, second.measured, released.receipt.steps, strict=True):
        assert scale == same == step.scale
        assert step.counts == len(true) == len(moved)
        total += int(np.abs(true - moved).sum()) / scale
    return total


def add(matrix: np.ndarray, cells: list[int]) -> np.ndarray:
    more = matrix.copy()
    np.add.at(more.ravel(), cells, 1)
    return more


@pytest.mark.parametrize("variant", VARIANTS)
def test_on_an_order_1_lattice_no_record_costs_more_than_epsilon_and_one_costs_all_of_it(monkeypatch, variant):
    worst = Fraction(0)
    for base in product((0, 1), repeat=4):
        matrix = np.array(base).reshape(2, 2)
        points = PointCounts.from_matrix(matrix)
        for cell in range(4):
            more = PointCounts.from_matrix(add(matrix, [cell]))
            for one, other in ((points, more), (more, points)):
                worst = max(worst, loss(monkeypatch, VARIANTS[variant], one, other))
    assert worst == EPSILON


@pytest.mark.parametrize("variant", VARIANTS)
def test_on_an_order_2_lattice_no_record_costs_more_than_epsilon_and_one_costs_all_of_it(monkeypatch, variant):
    worst, rng = Fraction(0), np.random.default_rng(1)
    for seed in range(3):
        matrix = rng.integers(0, 3, (4, 4)) * (seed > 0)
        points = PointCounts.from_matrix(matrix)
        for cell in range(16):
            worst = max(worst, loss(monkeypatch, VARIANTS[variant], points, PointCounts.from_matrix(add(matrix, [cell])), seed))
    assert worst == EPSILON


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bound", [2, 3])
def test_a_person_with_the_most_records_allowed_costs_no_more_than_epsilon_wherever_they_lie(monkeypatch, variant, bound):
    worst, rng = Fraction(0), np.random.default_rng(2)
    matrix = rng.integers(0, 2, (4, 4))
    points = replace(PointCounts.from_matrix(matrix), contributions=bound)
    for seed in range(12):
        cells = rng.integers(0, 16, int(rng.integers(1, bound + 1)) if seed else bound).tolist()
        more = replace(PointCounts.from_matrix(add(matrix, cells)), contributions=bound)
        found = loss(monkeypatch, VARIANTS[variant], points, more, seed)
        assert found == EPSILON * len(cells) / bound
        worst = max(worst, found)
    assert worst == EPSILON


def test_the_enumeration_catches_a_mechanism_that_forgets_to_split_its_budget(monkeypatch):
    honest = measure.NoisyCounts.count_levels
    monkeypatch.setattr(
        measure.NoisyCounts, "count_levels", lambda counter, tree, epsilons: honest(counter, tree, [EPSILON / 2 for _ in epsilons])
    )
    monkeypatch.setattr(measure.NoisyCounts, "receipt", lambda counter, finish: _without_check(counter, finish))
    points = PointCounts.from_matrix(np.zeros((4, 4), int))
    more = PointCounts.from_matrix(add(np.zeros((4, 4), int), [5]))
    assert loss(monkeypatch, Quadtree(), points, more) == EPSILON * 3 / 2


def _without_check(counter, finish):
    receipt = measure.Receipt(total=PureBudget(EPSILON * 10), steps=tuple(counter.steps))
    assert finish.budget.epsilon == EPSILON
    return receipt


def test_every_mechanism_of_the_table_is_enumerated_here_or_named_as_checked_elsewhere():
    elsewhere = {"kdtree", "hilbert_tree", "privtree", "path_tree", "htf", "tuned_grid", "tuned", "adaptive_grid", "privelet"}
    ours = {key for key, row in POINT_MECHANISMS.items() if row.__module__.startswith("dpviz.")}
    assert {variant.key for variant in VARIANTS.values()} | elsewhere >= ours


@pytest.mark.parametrize(
    "mechanism", [Quadtree(height=2, split="uniform"), UniformGrid(side=4), Identity(order=2)], ids=["quadtree", "grid", "identity"]
)
def test_noise_is_drawn_afresh_for_every_node(mechanism):
    points, runs = PointCounts.from_matrix(np.arange(16).reshape(4, 4)), 500
    noisy = np.array([mechanism.release(points, PureBudget(0.3), entropy).noisy for entropy in Entropy.seeded(3).spawn(runs)])
    noisy = noisy[:, np.isfinite(noisy[0])]
    correlation = np.corrcoef(noisy.T) - np.eye(noisy.shape[1])
    sizes = np.corrcoef(np.abs(noisy - noisy.mean(0)).T) - np.eye(noisy.shape[1])
    assert np.abs(correlation).max() < 5 / np.sqrt(runs)
    assert np.abs(sizes).max() < 5.5 / np.sqrt(runs)
    assert len(np.unique(noisy, axis=0)) == runs


def test_large_noise_hardly_ever_repeats_within_a_release():
    points = PointCounts.from_matrix(np.zeros((64, 64), int))
    noisy = Identity(order=6).release(points, PureBudget("1e-9"), Entropy.system()).noisy
    assert len(np.unique(noisy[np.isfinite(noisy)])) >= 4090
