"""How well grids are tuned on data of the paper's sizes, and what would not pass."""

from functools import lru_cache

import numpy as np
import pytest

from dpviz.mechanisms import tuning
from dpviz.mechanisms.expected_error import BoxQueries, expected_grid
from dpviz.mechanisms.points.tuned import TunedGrid
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.tuning import GridCandidate
from dpviz.papers.e2epriv import TUNING_SETS
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_point_sample

pytestmark = pytest.mark.slow
RUNS = 100
WITHIN = 1.15
counts = lru_cache(maxsize=3)(load_point_sample)


def tried(monkeypatch, key: str, epsilon: float | str = 1) -> tuple[TunedGrid, np.ndarray, np.ndarray]:
    """A mechanism with a set's sizes; each one's mean relative error (same rho, not clipped); how often each was chosen.

    What does not depend on the noise of the run is computed once.
    """
    points, mechanism = counts(key), TunedGrid(sides=TUNING_SETS[key].sides)
    queries = BoxQueries(points=points, boxes=mechanism.boxes(points.domain))
    honest, candidates = lru_cache(GridCandidate.expected), mechanism.candidates(points.domain)
    monkeypatch.setattr(tuning, "BoxQueries", lambda **_: queries)
    monkeypatch.setattr(GridCandidate, "expected", lambda self, queries, budget: honest(self, queries, budget))
    streams = Entropy.seeded(1).spawn(RUNS)
    budget = PureBudget(epsilon)
    choices = [mechanism.tune_by(Run.of(mechanism, points, budget, each), "size", candidates) for each in streams]
    budget, floor = PureBudget(choices[0].remaining), np.maximum(queries.truth, mechanism.rho(int(points.count.sum())))
    errors = np.array([(expected_grid(queries, each.value, budget).error / floor).mean() for each in candidates])
    chosen = np.bincount([choice.index for choice in choices], minlength=len(candidates))
    return mechanism, errors, chosen


def passed(error: np.ndarray, chosen: np.ndarray) -> int:
    """How many of the choices come within 15 % of the best candidate."""
    return int(chosen[error <= WITHIN * error.min()].sum())


def regret(error: np.ndarray, chosen: np.ndarray) -> float:
    """How much larger the error is than the best candidate's, in the mean."""
    return float((error * chosen).sum() / chosen.sum() / error.min() - 1)


@pytest.mark.parametrize("key", ["storage", "landmark", "gowalla"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
def test_by_default_it_comes_within_15_percent_of_the_best_candidate_in_80_of_100_runs(monkeypatch, key, epsilon):
    """Judged by the bound that it tunes by. On Landmark this says little: random sizes pass as well."""
    _, errors, chosen = tried(monkeypatch, key, epsilon)
    assert passed(errors, chosen) >= (80 if epsilon == "1" else 70 if key == "storage" else 95)
    assert regret(errors, chosen) < (0.08 if epsilon == "1" else 0.15)


def test_on_storage_releases_are_better_than_with_the_smallest_size(monkeypatch):
    """By the mean relative error, same rho, of releases of each candidate, on other boxes than it was tuned by."""
    points, (mechanism, _, chosen) = counts("storage"), tried(monkeypatch, "storage")
    queries = BoxQueries(points=points, boxes=type(mechanism)(sizes=mechanism.sizes, seed=99).boxes(points.domain))
    boxes, floor = points.domain.coordinates(queries.boxes.lattice), np.maximum(queries.truth, mechanism.rho(int(points.count.sum())))
    rest, measured = PureBudget(str(mechanism.shares(points.domain)[-1].share)), []
    for each in mechanism.candidates(points.domain):
        runs = [each.mechanism.release(points, rest, entropy) for entropy in Entropy.seeded(3).spawn(20)]
        measured.append(np.mean([(np.abs(run.answer(boxes) - queries.truth) / floor).mean() for run in runs]))
    assert (measured * chosen).sum() / RUNS < 0.9 * measured[0]
