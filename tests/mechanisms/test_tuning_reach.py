"""How well grids are tuned on data of the paper's sizes, and what would not pass."""

from functools import lru_cache

import numpy as np
import pytest

from dpviz.mechanisms import UniformGrid, tuning
from dpviz.mechanisms.expected_error import BoxQueries, expected_grid
from dpviz.mechanisms.noisy_counts import NoisyCounts
from dpviz.mechanisms.points.tuned import GridSize, TunedGrid
from dpviz.papers.e2epriv import TUNING_SETS, tuning_counts
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import LAWS

pytestmark = pytest.mark.slow
RUNS = 100
WITHIN = 1.15
counts = lru_cache(maxsize=3)(tuning_counts)


def tried(monkeypatch, key: str, epsilon: float | str = 1, **options) -> tuple[TunedGrid, dict[str, np.ndarray], np.ndarray]:
    """A mechanism with a set's sizes; each one's mean relative error (same rho, not clipped) by bound; how often each was chosen.

    What does not depend on the noise of the run is computed once.
    """
    points, mechanism = counts(key), TunedGrid(sides=TUNING_SETS[key].sides, **options)
    queries = BoxQueries(points=points, boxes=mechanism.boxes(points.domain))
    honest, candidates = lru_cache(GridSize.expected), mechanism.candidates(points.domain)
    monkeypatch.setattr(tuning, "BoxQueries", lambda **_: queries)
    monkeypatch.setattr(GridSize, "expected", lambda self, queries, budget: honest(self, queries, budget))
    streams = Entropy.seeded(1).spawn(RUNS)
    choices = [mechanism.tune_by(NoisyCounts(points=points, entropy=each), PureBudget(epsilon), "size", candidates) for each in streams]
    budget, floor = PureBudget(choices[0].remaining), np.maximum(queries.truth, mechanism.rho(int(points.count.sum())))
    errors = {
        bound: np.array([(expected_grid(queries, each.side, budget, bound=bound).error / floor).mean() for each in candidates])
        for bound in ("tight", "paper")
    }
    chosen = np.bincount([choice.index for choice in choices], minlength=len(candidates))
    return mechanism, errors, chosen


def passed(error: np.ndarray, chosen: np.ndarray) -> int:
    """How many of the choices come within 15 % of the best candidate."""
    return int(chosen[error <= WITHIN * error.min()].sum())


def regret(error: np.ndarray, chosen: np.ndarray) -> float:
    """How much larger the error is than the best candidate's, in the mean."""
    return float((error * chosen).sum() / chosen.sum() / error.min() - 1)


@pytest.mark.parametrize(("key", "always_smallest"), [("storage", 0), ("landmark", RUNS), ("gowalla", 0)])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
def test_by_default_it_comes_within_15_percent_of_the_best_candidate_in_80_of_100_runs(monkeypatch, key, always_smallest, epsilon):
    """Judged by the bound that it tunes by. On Landmark this says little: the smallest size and random ones pass as well."""
    _, errors, chosen = tried(monkeypatch, key, epsilon)
    assert passed(errors["tight"], chosen) >= (80 if epsilon == "1" else 70 if key == "storage" else 95)
    assert regret(errors["tight"], chosen) < (0.08 if epsilon == "1" else 0.15)
    if epsilon == "1":
        at_random = np.full(len(chosen), 60)
        assert passed(errors["tight"], np.where(np.arange(len(chosen)) == 0, RUNS, 0)) == always_smallest
        assert (passed(errors["tight"], at_random) >= 0.8 * at_random.sum()) == (key == "landmark")


@pytest.mark.parametrize("key", ["storage", "landmark", "gowalla"])
def test_the_papers_bound_is_too_loose_to_tune_by(monkeypatch, key):
    """It is least for the smallest size on all data, by far, and what it calls good is not: both bounds are of the same error."""
    _, errors, chosen = tried(monkeypatch, key, bound="paper")
    assert errors["paper"].argmin() == 0
    assert passed(errors["paper"], chosen) >= 95
    assert (errors["paper"] > 3.5 * errors["tight"]).all()
    assert (errors["paper"][1:] > 1.4 * errors["paper"][0]).all()
    assert errors["tight"].argmin() > 0


def test_on_storage_releases_are_better_than_with_the_smallest_size(monkeypatch):
    mechanism, _, chosen = tried(monkeypatch, "storage")
    measured = measured_errors(counts("storage"), mechanism)
    assert (measured * chosen).sum() / RUNS < 0.9 * measured[0]


def measured_errors(points, mechanism: TunedGrid) -> np.ndarray:
    """(c,) mean relative error, same rho, of releases of each candidate, on other boxes than it was tuned by."""
    queries = BoxQueries(points=points, boxes=type(mechanism)(sizes=mechanism.sizes, seed=99).boxes(points.domain))
    boxes, floor = points.domain.coordinates(queries.boxes.lattice), np.maximum(queries.truth, mechanism.rho(int(points.count.sum())))
    rest = PureBudget(str(mechanism.shares(points.domain)[-1].share))
    found = []
    for each in mechanism.candidates(points.domain):
        runs = [UniformGrid(side=each.side).release(points, rest, entropy) for entropy in Entropy.seeded(3).spawn(20)]
        found.append(np.mean([(np.abs(run.answer(boxes) - queries.truth) / floor).mean() for run in runs]))
    return np.array(found)


def test_the_papers_own_way_hardly_tells_candidates_apart(monkeypatch):
    """Its sensitivity is |D| / rho times as large: recorded here, since it is why the default is another one."""
    about = TUNING_SETS["storage"]
    options = {"bound": "paper", "total": "declared", "law": LAWS[1], "sanity": about.sanity, "declared_total": about.size}
    _, errors, chosen = tried(monkeypatch, "storage", **options)
    assert passed(errors["paper"], chosen) < 70
