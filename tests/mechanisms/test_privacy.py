"""Exact privacy by enumeration: no neighbouring inputs differ by more than the budget allows; see `tests/transcripts.py`."""

from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import MECHANISMS, Identity, Privelet, Quadtree, UniformGrid
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from tests.transcripts import EPSILON, pair, worst_loss

VARIANTS = {key: kind() for key, kind in MECHANISMS.of("points").items() if kind.noise_by_budget} | {
    "quadtree without root": Quadtree(count_root=False, split="uniform"),
    "quadtree of 16 parts": Quadtree(fan_out=16),
    "quadtree on leaves": Quadtree(split="leaf", least_squares=False),
    "quadtree of odd weights": Quadtree(height=1, split="custom", weights=(1 / 3, 2 / 3)),
    "pruned quadtree": Quadtree(prune=1.5),
    "uniform grid, large total share": UniformGrid(total_share=0.5, c=0.1),
    "uniform grid of 1": UniformGrid(side=1),
    "uniform grid of 3": UniformGrid(side=3),
    "uniform grid, declared total": UniformGrid(declared_total=30, c=1.0),
    "identity with threshold": Identity(threshold=True, order=1),
}
"""Mechanisms whose noise is all on counts, by `Run`; `test_replay` has all others, too."""
EVERY = pytest.mark.parametrize("mechanism", [pytest.param(each, id=name) for name, each in VARIANTS.items()])


@EVERY
def test_no_record_costs_more_than_epsilon_and_one_costs_all_of_it(monkeypatch, mechanism):
    """On all inputs of 2 x 2 places with up to one record each, and on some of 4 x 4; one more record in every other place, or in each."""
    rng = np.random.default_rng(1)
    tiny = [np.array(base).reshape(2, 2) for base in product((0, 1), repeat=4)]
    small = [rng.integers(0, 3, (4, 4)) * (seed > 0) for seed in range(3)]
    for matrices, step in ((tiny, 2), (small, 1)):
        pairs = [pair(matrix, [cell]) for place, matrix in enumerate(matrices) for cell in range(place % step, matrix.size, step)]
        found = [worst_loss(monkeypatch, mechanism, *each[:: 1 if seed % 2 else -1], seed) for seed, each in enumerate(pairs)]
        assert max(found) == EPSILON


@EVERY
@pytest.mark.parametrize("bound", [2, 3])
def test_a_person_with_the_most_records_allowed_costs_no_more_than_epsilon_wherever_they_lie(monkeypatch, mechanism, bound):
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 2, (4, 4))
    for seed in range(12):
        cells = rng.integers(0, 16, int(rng.integers(1, bound + 1))).tolist() if seed else [5] * bound
        cost, most = worst_loss(monkeypatch, mechanism, *pair(matrix, cells, bound), seed), EPSILON * len(cells) / bound
        assert cost <= most
        assert cost == most or (len(set(cells)) > 1 and isinstance(mechanism, Privelet)), "differences of a wavelet cancel out"


@pytest.mark.parametrize(
    "mechanism", [Quadtree(height=2, split="uniform"), UniformGrid(side=4), Identity(order=2)], ids=["quadtree", "grid", "identity"]
)
def test_noise_is_drawn_afresh_for_every_node(mechanism):
    points, runs = PointCounts.from_matrix(np.arange(16).reshape(4, 4)), 200
    noisy = np.array([mechanism.release(points, PureBudget(0.3), entropy).noisy for entropy in Entropy.seeded(3).spawn(runs)])
    noisy = noisy[:, np.isfinite(noisy[0])]
    for values, most in ((noisy, 5), (np.abs(noisy - noisy.mean(0)), 5.5)):
        assert np.abs(np.corrcoef(values.T) - np.eye(noisy.shape[1])).max() < most / np.sqrt(runs)
    assert len(np.unique(noisy, axis=0)) == runs
