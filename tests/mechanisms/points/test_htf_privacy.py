"""HTF's privacy by enumeration: along any script of noise and choices, no neighbouring inputs differ by more than epsilon.

See `tests/transcripts.py` for how.
"""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.mechanisms import run as measure
from dpviz.mechanisms.points import htf
from dpviz.mechanisms.points.htf import Htf
from dpviz.privacy.budget import PureBudget
from tests.mechanisms.points.test_htf import PAPER as PUBLISHED
from tests.often import often
from tests.transcripts import EPSILON, Script, compared, pair
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


def worst_loss(monkeypatch, mechanism: Htf, seeds: int, side: int = 4) -> float:
    """The largest loss by one record more or less in any cell, of an empty input and of random ones."""
    rng = np.random.default_rng(1)
    inputs = [rng.integers(0, 4, (side, side)) * (seed > 0) for seed in range(seeds)]
    pairs = [pair(matrix, [cell])[:: 1 if cell % 2 else -1] for matrix in inputs for cell in range(side**2)]
    return max(loss(monkeypatch, mechanism, each, seed) for seed, each in enumerate(pairs))


@pytest.mark.parametrize("most", often([8, 4, 14], 1))
@pytest.mark.parametrize("variant", ["default", "halves", "rounds"])
def test_nor_where_memory_ends_the_tree(monkeypatch, variant, most):
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    assert worst_loss(monkeypatch, VARIANTS[variant], 2) <= MOST


@EVERY
@pytest.mark.parametrize("seeds", often([2, 10], 1))
def test_no_record_costs_more_than_epsilon_and_one_nearly_all_of_it(monkeypatch, variant, seeds):
    unspent = 0.0 if VARIANTS[variant].reuse_splits else 0.25  # all that splits may cost
    assert (0.95 - unspent) * float(EPSILON) < worst_loss(monkeypatch, VARIANTS[variant], seeds) <= MOST
    assert worst_loss(monkeypatch, VARIANTS[variant], 4 * seeds, side=2) <= MOST


@EVERY
def test_a_person_with_several_records_costs_no_more_wherever_they_lie(monkeypatch, variant):
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 3, (4, 4))
    for seed in range(8):
        assert loss(monkeypatch, VARIANTS[variant], pair(matrix, rng.integers(0, 16, 3)), seed) <= MOST


def test_the_enumeration_catches_a_fresh_count_that_forgets_what_its_path_has_spent(monkeypatch):
    dear = lambda run, *_: measure.Receipt(total=PureBudget(100), steps=(*run.steps,))  # noqa: E731
    monkeypatch.setattr(measure.Run, "receipt", dear)
    honest = htf.Spending.remaining
    monkeypatch.setattr(htf.Spending, "remaining", lambda spending, depth: honest(spending, depth) + spending.counts[depth])
    assert worst_loss(monkeypatch, VARIANTS["default"], 2) > EPSILON
