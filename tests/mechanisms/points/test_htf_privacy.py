"""HTF's privacy by enumeration: along any script of noise and choices, no neighbouring inputs differ by more than epsilon.

See `tests/transcripts.py` for how.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpviz.mechanisms import noisy_counts as measure
from dpviz.mechanisms.points import htf
from dpviz.mechanisms.points.htf import Htf
from dpviz.privacy.budget import PureBudget
from tests.mechanisms.points.test_htf import PAPER as PUBLISHED
from tests.often import often
from tests.transcripts import EPSILON, Script, compared, pair, run
from tests.transcripts import loss as loss_of

PAPER = replace(PUBLISHED, split_epsilon=0.01, stop_cells=Htf().stop_cells, stop_count=2)
VARIANTS = {
    "default": Htf(),
    "halves": Htf(search="middle", height=4),
    "half for splits": Htf(split_share=0.5, lines=63, inner=1.0, height=4, stop_noise=0),
    "rounds": Htf(search="rounds", split_share=0.5, height=4, stop="count", stop_count=1),
    "paper": PAPER,
    "paper of known height": replace(PAPER, height=4, split_epsilon=10.0, stop_cells=5),
    "stops at large counts": Htf(height=3, stop_noise=30.0, stop_cells=3),
}
EVERY = pytest.mark.parametrize("variant", VARIANTS)
MOST = float(EPSILON) + 1e-9


def loss(monkeypatch, mechanism: Htf, inputs, seed: int) -> float:
    return float(loss_of(*compared(monkeypatch, mechanism, *inputs, Script(seed=seed, reach=(-4, 8)))))


def worst_loss(monkeypatch, mechanism: Htf, seeds: range) -> float:
    worst, rng = 0.0, np.random.default_rng(1)
    for seed in seeds:
        matrix = rng.integers(0, 4, (4, 4)) * (seed > 0)
        for cell in range(16):
            worst = max(worst, loss(monkeypatch, mechanism, pair(matrix, [cell])[:: 1 if cell % 2 else -1], 17 * seed + cell))
    return worst


@EVERY
def test_on_an_order_1_lattice_no_record_costs_more_than_epsilon(monkeypatch, variant):
    for seed, (base, turn) in enumerate(product(product((0, 1), repeat=4), range(2))):
        inputs = pair(np.array(base).reshape(2, 2), [(seed // 2 + 2 * turn) % 4])
        assert loss(monkeypatch, VARIANTS[variant], inputs[:: 1 if seed % 3 else -1], seed) <= MOST


@pytest.mark.parametrize("most", often([8, 4, 14], 1))
@pytest.mark.parametrize("variant", ["default", "halves", "rounds"])
def test_nor_where_memory_ends_the_tree(monkeypatch, variant, most):
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    assert worst_loss(monkeypatch, VARIANTS[variant], range(2)) <= MOST


@pytest.mark.slow
@EVERY
def test_on_many_order_2_lattices_no_record_costs_more_than_epsilon(monkeypatch, variant):
    assert worst_loss(monkeypatch, VARIANTS[variant], range(2, 20)) <= MOST


@EVERY
def test_on_an_order_2_lattice_no_record_costs_more_than_epsilon_and_one_nearly_all_of_it(monkeypatch, variant):
    unspent = 0.0 if VARIANTS[variant].reuse_splits else 0.25  # all that splits may cost
    assert (0.95 - unspent) * float(EPSILON) < worst_loss(monkeypatch, VARIANTS[variant], range(2)) <= MOST


@EVERY
def test_a_person_with_several_records_costs_no_more_wherever_they_lie(monkeypatch, variant):
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 3, (4, 4))
    for seed in range(8):
        assert loss(monkeypatch, VARIANTS[variant], pair(matrix, rng.integers(0, 16, 3)), seed) <= MOST


def test_a_path_that_ends_early_spends_all_of_epsilon_and_the_steps_say_so(monkeypatch):
    mechanism, inputs = Htf(height=4, stop_noise=100.0), pair(np.ones((4, 4), int), [5])
    assert loss(monkeypatch, mechanism, inputs, 0) == pytest.approx(float(EPSILON))
    released = run(monkeypatch, mechanism, inputs[0], Script(reach=(-4, 8)))
    assert len(released.tree) == 1
    steps = {step.purpose: step for step in reversed(released.receipt.steps)}
    own, again = steps["counts"], steps["fresh counts of early leaves"]
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
    monkeypatch.setattr(htf, "SENSITIVITY", htf.SENSITIVITY // 4)
    assert worst_loss(monkeypatch, Htf(search="rounds", rounds=1, split_share=0.8, height=1), range(1, 3)) > EPSILON


def test_the_enumeration_catches_rounds_that_each_spend_all(monkeypatch):
    by_rounds = htf.by_rounds
    dear = lambda nodes, rounds: by_rounds(replace(nodes, epsilon=nodes.epsilon * (2 * rounds + 1)), rounds)  # noqa: E731
    monkeypatch.setattr(htf, "by_rounds", dear)
    unchecked(monkeypatch)
    assert worst_loss(monkeypatch, Htf(search="rounds", rounds=1, split_share=0.8, height=1), range(1, 3)) > EPSILON


def test_the_enumeration_catches_a_choice_that_depends_on_more_than_was_released(monkeypatch):
    honest = Htf._threshold
    counted = htf.Htf._count_level

    def peeking(self, counter, spending, depth, cells, may):
        monkeypatch.setattr(Htf, "_threshold", lambda mine, rate: honest(mine, rate) + 3.0 * (cells.records().sum() % 2))
        return counted(self, counter, spending, depth, cells, may)

    monkeypatch.setattr(Htf, "_count_level", peeking)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        worst_loss(monkeypatch, VARIANTS["rounds"], range(3))
