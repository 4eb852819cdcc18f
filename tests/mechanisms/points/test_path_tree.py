"""The path-budget tree: every path spends exactly epsilon whatever is released, and the rest is a function of what was released."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import PathTree
from dpviz.mechanisms import noisy_counts as measure
from dpviz.mechanisms.points import path_tree
from dpviz.privacy.budget import GRAIN, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release

EPSILON = Fraction("1.3")
LEAF, PLAIN, SKIP = -1, 1, 2
"""What an answer makes of a node: far under its threshold, between it and the one for skipping, far above both."""


class Script:
    """Stands in for `discrete_laplace`: writes down what was measured; answers come from a policy or from an earlier run.

    A policy is a function from the number of nodes to LEAF, PLAIN or SKIP for each.
    """

    def __init__(self, policy=None, answers=None) -> None:
        self.policy, self.given = policy, answers
        self.answers: list[np.ndarray] = []
        self.measured: list[tuple[np.ndarray, Fraction]] = []

    def __call__(self, counts, budget, entropy, sensitivity=1):
        scale = sensitivity / budget.epsilon
        self.measured.append((counts.copy(), scale))
        if self.given is None:
            reach = np.ceil(float(scale) * np.array([0, 15, 10**6, -(10**6)]))
            answer = reach[self.policy(len(counts))].astype(np.int64)
        else:
            answer = self.given[len(self.answers)]
        self.answers.append(answer)
        return answer.copy()


def run(monkeypatch, mechanism: PathTree, points: PointCounts, script: Script, epsilon=EPSILON) -> Release:
    monkeypatch.setattr(path_tree, "discrete_laplace", script)
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(0))


def loss(monkeypatch, mechanism: PathTree, one: PointCounts, other: PointCounts, policy) -> Fraction:
    """Privacy loss between two inputs along one transcript; fails if anything but the noise can tell them apart."""
    first = Script(policy)
    released = run(monkeypatch, mechanism, one, first)
    second = Script(answers=first.answers)
    again = run(monkeypatch, mechanism, other, second)
    assert len(first.measured) == len(second.measured)
    for name in ("count", "stddev", "noisy", "again", "noise_variance", "unbiased"):
        np.testing.assert_array_equal(getattr(released, name), getattr(again, name))
    np.testing.assert_array_equal(released.tree.rectangles(), again.tree.rectangles())
    assert (released.receipt, released.steps, released.settings) == (again.receipt, again.steps, again.settings)
    total = Fraction(0)
    for (true, scale), (moved, same) in zip(first.measured, second.measured, strict=True):
        assert scale == same
        total += int(np.abs(true - moved).sum()) / scale
    return total


def neighbours(rng: np.random.Generator, order: int, cells: list[int], bound: int = 1) -> list[PointCounts]:
    """A random input and the same with one more record in each of `cells`."""
    matrix = rng.integers(0, 3, (1 << order, 1 << order))
    more = matrix.copy()
    np.add.at(more.ravel(), cells, 1)
    return [replace(PointCounts.from_matrix(each), contributions=bound) for each in (matrix, more)]


def each_in_turn(decisions):
    """A policy that hands out `decisions`, and starts again when there are no more."""
    place = 0

    def policy(size: int) -> np.ndarray:
        nonlocal place
        chosen = np.take(decisions, range(place, place + size), mode="wrap")
        place += size
        return chosen

    return policy


def at_random(seed: int, chances: tuple[float, float, float]):
    rng = np.random.default_rng(seed)
    return lambda size: rng.choice([LEAF, PLAIN, SKIP], size, p=chances)


@pytest.mark.parametrize("decisions", [[LEAF], [PLAIN], [SKIP]], ids=["all leaves", "all split", "all skipped"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_one_record_costs_exactly_epsilon_where_all_nodes_go_one_way(monkeypatch, order, decisions):
    rng = np.random.default_rng(order)
    for cell in range(0, 4**order, (1, 1, 5, 21)[order - 1]):
        one, other = neighbours(rng, order, [cell])
        assert loss(monkeypatch, PathTree(), one, other, each_in_turn(decisions)) == EPSILON


def test_one_record_costs_exactly_epsilon_whatever_the_first_two_depths_release(monkeypatch):
    rng = np.random.default_rng(5)
    for turn, first in enumerate(product((LEAF, PLAIN, SKIP), repeat=4)):
        for second in (LEAF, PLAIN):
            one, other = neighbours(rng, 3, [int(rng.integers(64))])
            pair = (one, other) if turn % 2 else (other, one)
            assert loss(monkeypatch, PathTree(), *pair, each_in_turn([*first, *[second] * 60])) == EPSILON


@pytest.mark.parametrize("mechanism", [PathTree(), PathTree(growth=1, mix=1, calm=0), PathTree(growth=4, mix=0.01, big=1, doubt=1)])
@pytest.mark.parametrize(("order", "chances"), [(2, (0.4, 0.3, 0.3)), (4, (0.4, 0.3, 0.3)), (10, (0.85, 0.1, 0.05))])
def test_random_transcripts_cost_exactly_epsilon_too(monkeypatch, mechanism, order, chances):
    rng = np.random.default_rng(order)
    for seed in range(2 if order == 10 else 8):
        one, other = neighbours(rng, order, [int(rng.integers(4**order))])
        assert loss(monkeypatch, mechanism, one, other, at_random(seed, chances)) == EPSILON


@pytest.mark.parametrize("most", [5, 20, 60, 200])
def test_one_record_costs_exactly_epsilon_where_memory_ends_the_tree(monkeypatch, most):
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    rng = np.random.default_rng(most)
    for seed in range(8):
        one, other = neighbours(rng, 4, [int(rng.integers(256))])
        assert loss(monkeypatch, PathTree(), one, other, at_random(seed, (0.3, 0.4, 0.3))) == EPSILON


@pytest.mark.parametrize("bound", [2, 3, 7])
def test_all_records_of_a_person_cost_exactly_epsilon_wherever_they_lie(monkeypatch, bound):
    rng = np.random.default_rng(bound)
    for seed in range(12):
        records = bound if seed % 3 else int(rng.integers(1, bound + 1))
        cells = rng.integers(0, 64 if seed % 2 else 2, records).tolist()
        one, other = neighbours(rng, 3, cells, bound)
        assert loss(monkeypatch, PathTree(), one, other, at_random(seed, (0.4, 0.3, 0.3))) == EPSILON * records / bound


def path_sums(monkeypatch, mechanism: PathTree, points: PointCounts, policy) -> tuple[Release, np.ndarray]:
    """A release, and (n,) units of the budget that were spent from the root down to each node, its second measurement included."""
    spent, honest = [], path_tree._add_noise

    def noted(counter, true, part, epsilon):
        spent.append(part)
        return honest(counter, true, part, epsilon)

    monkeypatch.setattr(path_tree, "_add_noise", noted)
    released = run(monkeypatch, mechanism, points, Script(policy))
    monkeypatch.setattr(path_tree, "_add_noise", honest)
    first, second = (np.concatenate([[0], *spent[which::2]]) for which in (0, 1))
    along = first.copy()
    for depth in range(released.tree.height):
        here, below = released.tree.at_depth(depth), released.tree.at_depth(depth + 1)
        along[below] += released.tree.to_children(depth, along[here])
    return released, along + second


@pytest.mark.parametrize("order", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("settings", [{}, {"growth": 1, "mix": 1}, {"growth": 4, "mix": 0.01, "big": 1}])
def test_every_leaf_has_spent_every_unit_of_its_path(monkeypatch, order, settings):
    points = PointCounts.from_matrix(np.eye(1 << order, dtype=np.int64))
    for seed, chances in enumerate([(0.7, 0.2, 0.1), (0.8, 0.0, 0.2), (0.75, 0.25, 0.0)]):
        released, spent = path_sums(monkeypatch, PathTree(**settings), points, at_random(seed, chances))
        tree = released.tree
        assert (spent[tree.leaves] == GRAIN).all()
        assert (spent <= GRAIN).all()
        np.testing.assert_array_equal(np.isnan(released.noisy)[tree.children == 0], False)
        assert np.isfinite(released.again).tolist() == ((tree.children == 0) & (tree.cells > 1)).tolist()


@pytest.mark.parametrize("order", [1, 2, 9, 24])
@pytest.mark.parametrize("settings", [{}, {"growth": 1, "mix": 1}, {"growth": 4, "mix": 0.01}])
def test_the_schedule_gives_the_levels_their_weights_and_the_bottom_all_that_is_left(order, settings):
    mechanism = PathTree(**settings)
    phi, rest, spent = mechanism.schedule(order), GRAIN, []
    for each in phi:
        spent.append(rest * each >> 30)
        rest -= spent[-1]
    powers = mechanism.growth ** np.arange(1.0, order + 1)
    weights = (1 - mechanism.mix) * powers / powers.sum() + mechanism.mix / order
    assert phi[-1] == 2**30
    assert (sum(spent), rest, min(spent) > 0) == (GRAIN, 0, True)
    np.testing.assert_allclose(np.array(spent) / GRAIN, weights, atol=1e-8)
