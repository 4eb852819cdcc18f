"""HTF's privacy by enumeration: along any transcript, no neighbouring inputs differ by more than epsilon.

As in test_privacy.py, one run records what was measured and what came back, and the run on the neighbouring input gets the same
answers. The loss of a noisy number is |difference| / scale; that of a choice is the difference of the logarithms of its exact
probability under permute-and-flip.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import noisy_counts as measure
from dpviz.mechanisms.points import htf
from dpviz.mechanisms.points import htf as htf_splits
from dpviz.mechanisms.points.htf import Htf
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from tests.often import often
from tests.privacy.test_selection import by_integral

EPSILON = Fraction("1.3")
PAPER = Htf(
    search="rounds",
    split_epsilon=0.01,
    ratio="2^(1/3)",
    extra=0,
    stop="count",
    stop_count=2,
    reuse_splits=False,
    combine=False,
    zero=False,
    inside="uniform",
)
VARIANTS = {
    "default": Htf(),
    "halves": Htf(search="middle", height=4),
    "half for splits": Htf(split_share=0.5, lines=63, inner=1.0, height=4, stop_noise=0),
    "rounds": Htf(search="rounds", split_share=0.5, height=4, stop="count", stop_count=1),
    "paper": PAPER,
    "paper of known height": replace(PAPER, height=4, split_epsilon=10.0, stop_cells=5),
    "stops at large counts": Htf(height=3, stop_noise=30.0, stop_cells=3),
}


class Script:
    """Writes down what was measured or chosen from, and answers from a list or makes the answers up."""

    def __init__(self, answers=None, seed: int = 0) -> None:
        self.given, self.rng, self.answers, self.measured = answers, np.random.default_rng(seed), [], []

    def answer(self, made_up):
        given = made_up() if self.given is None else self.given[len(self.answers)]
        self.answers.append(given)
        return given.copy()

    def laplace(self, counts, budget, entropy, sensitivity=1):
        self.measured.append((counts.copy(), sensitivity / budget.epsilon))
        spread = 4 if sensitivity < 1000 else 2**18
        return self.answer(lambda: counts + self.rng.integers(-spread, 2 * spread, len(counts)))

    def choice(self, scores, valid, budget, entropy, sensitivity=1):
        self.measured.append((np.where(valid, scores, np.iinfo(np.int64).min), (budget.epsilon, sensitivity)))
        return self.answer(lambda: np.array([self.rng.choice(np.flatnonzero(row)) for row in valid], np.int64))


def run(monkeypatch, mechanism: Htf, points: PointCounts, script: Script):
    for module in (measure, htf_splits):
        monkeypatch.setattr(module, "discrete_laplace", script.laplace)
    monkeypatch.setattr(htf_splits, "permute_and_flip", script.choice)
    return mechanism.release(points, PureBudget(EPSILON), Entropy.seeded(0))


def log_chance(scores: np.ndarray, chosen: int, epsilon: Fraction, sensitivity: int) -> float:
    listed = scores[scores > np.iinfo(np.int64).min]
    return float(np.log(by_integral(listed.tolist(), float(epsilon / (2 * sensitivity)))[chosen]))


def loss(monkeypatch, mechanism: Htf, one: PointCounts, other: PointCounts, seed: int) -> tuple[float, Htf]:
    first = Script(seed=seed)
    released = run(monkeypatch, mechanism, one, first)
    second = Script(answers=first.answers)
    again = run(monkeypatch, mechanism, other, second)
    assert len(first.measured) == len(second.measured)
    np.testing.assert_array_equal(released.tree.rectangles(), again.tree.rectangles())
    np.testing.assert_array_equal(released.count, again.count)
    np.testing.assert_array_equal(released.stddev, again.stddev)
    assert released.receipt == again.receipt
    total = 0.0
    for (true, scale), (moved, same), answer in zip(first.measured, second.measured, first.answers, strict=True):
        assert scale == same
        if isinstance(scale, tuple):
            for before, after, chosen in zip(true, moved, answer.tolist(), strict=True):
                if (before != after).any():
                    total += abs(log_chance(before, chosen, *scale) - log_chance(after, chosen, *scale))
        else:
            total += float(int(np.abs(true - moved).sum()) / scale)
    return total, released


def add(matrix: np.ndarray, cells: list[int]) -> np.ndarray:
    more = matrix.copy()
    np.add.at(more.ravel(), cells, 1)
    return more


def worst_loss(monkeypatch, mechanism: Htf, seeds: range) -> float:
    worst, rng = 0.0, np.random.default_rng(1)
    for seed in seeds:
        matrix = rng.integers(0, 4, (4, 4)) * (seed > 0)
        for cell in range(16):
            pair = [PointCounts.from_matrix(each) for each in (matrix, add(matrix, [cell]))]
            one, other = pair if cell % 2 else pair[::-1]
            worst = max(worst, loss(monkeypatch, mechanism, one, other, 17 * seed + cell)[0])
    return worst


@pytest.mark.parametrize("variant", VARIANTS)
def test_on_an_order_1_lattice_no_record_costs_more_than_epsilon(monkeypatch, variant):
    for seed, base in enumerate(product((0, 1), repeat=4)):
        matrix = np.array(base).reshape(2, 2)
        for cell in range(4):
            points, more = PointCounts.from_matrix(matrix), PointCounts.from_matrix(add(matrix, [cell]))
            one, other = (points, more) if (seed + cell) % 2 else (more, points)
            assert loss(monkeypatch, VARIANTS[variant], one, other, seed)[0] <= EPSILON + 1e-9


@pytest.mark.parametrize("most", often([8, 4, 14], 1))
@pytest.mark.parametrize("variant", ["default", "halves", "rounds"])
def test_nor_where_memory_ends_the_tree(monkeypatch, variant, most):
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    assert worst_loss(monkeypatch, VARIANTS[variant], range(3)) <= float(EPSILON) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_on_many_order_2_lattices_no_record_costs_more_than_epsilon(monkeypatch, variant):
    assert worst_loss(monkeypatch, VARIANTS[variant], range(2, 20)) <= float(EPSILON) + 1e-9


@pytest.mark.parametrize("variant", VARIANTS)
def test_on_an_order_2_lattice_no_record_costs_more_than_epsilon_and_one_nearly_all_of_it(monkeypatch, variant):
    unspent = 0.0 if VARIANTS[variant].reuse_splits else 0.25  # all that splits may cost
    assert (0.95 - unspent) * float(EPSILON) < worst_loss(monkeypatch, VARIANTS[variant], range(2)) <= float(EPSILON) + 1e-9


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_person_with_several_records_costs_no_more_wherever_they_lie(monkeypatch, variant):
    rng, bound = np.random.default_rng(2), 3
    matrix = rng.integers(0, 3, (4, 4))
    points = replace(PointCounts.from_matrix(matrix), contributions=bound)
    for seed in range(8):
        cells = rng.integers(0, 16, bound).tolist()
        more = replace(PointCounts.from_matrix(add(matrix, cells)), contributions=bound)
        assert loss(monkeypatch, VARIANTS[variant], points, more, seed)[0] <= EPSILON + 1e-9


def test_a_path_that_ends_early_spends_all_of_epsilon_and_the_steps_say_so(monkeypatch):
    matrix = np.ones((4, 4), int)
    pair = PointCounts.from_matrix(matrix), PointCounts.from_matrix(add(matrix, [5]))
    found, released = loss(monkeypatch, Htf(height=4, stop_noise=100.0), *pair, 0)
    assert len(released.tree) == 1
    assert found == pytest.approx(float(EPSILON))
    own, again = (
        next(step for step in released.receipt.steps if step.purpose == name) for name in ("counts", "fresh counts of early leaves")
    )
    assert own.amount + again.amount == EPSILON
    assert again.replaces_later
    assert not own.replaces_later


def unchecked(monkeypatch) -> None:
    """Let receipts through that say themselves that too much was spent."""
    monkeypatch.setattr(
        measure.NoisyCounts, "receipt", lambda counter, finish: measure.Receipt(total=PureBudget(100), steps=(*counter.steps,))
    )


def test_the_enumeration_catches_a_fresh_count_that_forgets_what_its_path_has_spent(monkeypatch):
    unchecked(monkeypatch)
    honest = htf.Spending.remaining
    monkeypatch.setattr(htf.Spending, "remaining", lambda spending, depth: honest(spending, depth) + spending.counts[depth])
    assert worst_loss(monkeypatch, VARIANTS["default"], range(1, 2)) > EPSILON


def test_the_enumeration_catches_objectives_of_too_small_a_sensitivity(monkeypatch):
    monkeypatch.setattr(htf_splits, "SENSITIVITY", htf_splits.SENSITIVITY // 4)
    assert worst_loss(monkeypatch, Htf(search="rounds", rounds=1, split_share=0.8, height=1), range(1, 3)) > EPSILON


def test_the_enumeration_catches_rounds_that_each_spend_all(monkeypatch):
    by_rounds = htf.by_rounds
    dear = lambda nodes, rounds: by_rounds(replace(nodes, epsilon=nodes.epsilon * (2 * rounds + 1)), rounds)  # noqa: E731
    monkeypatch.setattr(htf, "by_rounds", dear)
    unchecked(monkeypatch)
    assert worst_loss(monkeypatch, Htf(search="rounds", rounds=1, split_share=0.8, height=1), range(1, 3)) > EPSILON


def test_the_enumeration_catches_a_choice_that_depends_on_more_than_was_released(monkeypatch):
    honest = Htf._threshold
    study_of = htf.Htf._count_level

    def peeking(self, counter, spending, depth, cells, may):
        monkeypatch.setattr(Htf, "_threshold", lambda mine, rate: honest(mine, rate) + 3.0 * (cells.records().sum() % 2))
        return study_of(self, counter, spending, depth, cells, may)

    monkeypatch.setattr(Htf, "_count_level", peeking)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        worst_loss(monkeypatch, VARIANTS["rounds"], range(3))
