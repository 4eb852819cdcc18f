"""The epsilon that gives a wanted error, found by bisection without any record."""

import math

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.evaluation.metrics import evaluate
from dpviz.mechanisms import FlatGaussian, Htf, Identity, PathTree, Quadtree, StabilityHistogram, TopDown
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing import dry_run as module
from dpviz.publishing.dry_run import WantedError, error_at, wanted_epsilon, with_uniform_records
from dpviz.samples.flows import load_flow_sample
from dpviz.space.domain import Domain
from tests.often import often

PLANE = Domain(bounds=(0, 0, 32, 32), crs=None, order=5)
CROWD = PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 32, (2, 3000)), domain=PLANE)
COMMUTERS = load_flow_sample("northeast_commuters")


@pytest.mark.parametrize("zoom", [0, 3, 5])
@pytest.mark.parametrize("mechanism", [Quadtree(height=5), Identity()])
def test_the_epsilon_that_is_found_gives_the_error_and_no_smaller_one_does(mechanism, zoom):
    found = wanted_epsilon(mechanism, CROWD, WantedError(error=5, level=zoom))
    assert found.error <= 5
    assert error_at(mechanism, CROWD, WantedError(error=5, level=zoom), found.epsilon * 0.98) > 5
    assert "noise alone" in found.note
    assert "chooses partitions" not in found.note


def test_identity_is_the_formula():
    """Cells have discrete Laplace noise of variance 2 q / (1 - q)^2, q = exp(-epsilon); a block of k cells has k times that variance."""
    found = wanted_epsilon(Identity(), CROWD, WantedError(error=4, level=4))
    q = math.exp(-found.epsilon)
    assert math.sqrt(4 * 2 * q) / (1 - q) == pytest.approx(4, rel=0.02)


def test_real_errors_are_as_expected():
    found = wanted_epsilon(Quadtree(height=5), CROWD, WantedError(error=6, level=4))
    budget = PureBudget(repr(found.epsilon))
    squares = [
        evaluate(Quadtree(height=5).release(CROWD, budget, Entropy.seeded(seed)), CROWD).by_zoom["rmse"][4] ** 2 for seed in range(40)
    ]
    assert math.sqrt(np.mean(squares)) == pytest.approx(6, rel=0.1)


def test_records_are_not_used(monkeypatch):
    seen = []
    real = PathTree.release

    def watched(mechanism, points, budget, entropy):
        seen.append(points)
        return real(mechanism, points, budget, entropy)

    monkeypatch.setattr(PathTree, "release", watched)
    monkeypatch.setattr(module, "STEPS", 3)
    others = PointCounts.from_xy([1.0], [2.0], domain=PLANE)
    answers = [wanted_epsilon(PathTree(), data, WantedError(error=5, level=3, records=1000)) for data in (CROWD, others)]
    assert answers[0] == answers[1]
    assert all(int(points.count.sum()) in (0, 1000) for points in seen)


def test_structures_that_depend_on_data_are_approximated_and_the_note_says_so():
    wanted = WantedError(error=2, level=4, records=3000)
    found = wanted_epsilon(PathTree(), CROWD, wanted)
    assert "3,000 made-up, uniformly distributed records" in found.note
    assert found.error <= 2
    assert error_at(PathTree(), CROWD, wanted, found.epsilon * 1.5) <= 2
    empty = wanted_epsilon(PathTree(), CROWD, WantedError(error=2, level=4))
    assert "empty data" in empty.note
    assert empty.epsilon != found.epsilon
    assert int(with_uniform_records(CROWD, 3000).count.sum()) == 3000


def test_trips_by_level():
    found = wanted_epsilon(TopDown(), COMMUTERS, WantedError(error=20, level=2))
    assert found.error == pytest.approx(20, rel=0.01)
    assert "chooses partitions" not in found.note or "no data" in found.note
    fine = wanted_epsilon(FlatGaussian(), COMMUTERS, WantedError(error=20, level=3))
    coarse = wanted_epsilon(FlatGaussian(), COMMUTERS, WantedError(error=20, level=1))
    assert coarse.epsilon > fine.epsilon
    assert "a sum of finer pairs" in coarse.note


def test_mechanisms_that_leave_pairs_out_say_so_or_refuse():
    told = wanted_epsilon(StabilityHistogram(), COMMUTERS, WantedError(error=20, level=3))
    assert told.error <= 20
    assert "Pairs that are not released count as 0" in told.note
    refused = wanted_epsilon(StabilityHistogram(), COMMUTERS, WantedError(error=20, level=1))
    assert refused.epsilon is None
    assert "leaves small pairs out" in refused.note
    assert "leaves small pairs out" not in wanted_epsilon(FlatGaussian(), COMMUTERS, WantedError(error=20, level=1)).note


@pytest.mark.parametrize("error", often([20, 5, 35], 1))
def test_the_rounded_epsilon_is_enough(error):
    wanted = WantedError(error=error, level=3, records=3000)
    found = wanted_epsilon(Htf(), CROWD, wanted)
    assert found.error == error_at(Htf(), CROWD, wanted, found.epsilon) <= error


def test_rounded_epsilons_that_are_not_enough_are_skipped():
    def jumping(epsilon):
        return 3.0 if 0.5 < epsilon < 0.5035 else 1.0

    assert module._round_to_enough(0.49999, WantedError(error=2, level=1), jumping) == (0.5, 1.0)
    assert module._round_to_enough(0.50001, WantedError(error=2, level=1), jumping) == (0.504, 1.0)
    assert module._round_to_enough(0.1, WantedError(error=2, level=1), lambda epsilon: 1.0 if epsilon == 0.1 else 9.0)[1] == 1.0


def test_errors_that_no_epsilon_or_every_epsilon_gives():
    never = wanted_epsilon(Quadtree(height=2), CROWD, WantedError(error=1e-9, level=0))
    assert never.epsilon is None
    assert math.isnan(never.error)
    assert "no ε from 0.001 to 100" in never.note
    always = wanted_epsilon(Identity(), CROWD, WantedError(error=1e9, level=0))
    assert (always.epsilon, always.error < 1e9) == (0.001, True)


@pytest.mark.parametrize(
    ("wanted", "data", "told"),
    [
        (WantedError(error=0, level=1), CROWD, "above 0"),
        (WantedError(error=math.inf, level=1), CROWD, "above 0"),
        (WantedError(error=1, level=6), CROWD, "zoom levels 0 to 5"),
        (WantedError(error=1, level=4), COMMUTERS, "levels 1 to 3"),
    ],
)
def test_invalid_questions_are_refused(wanted, data, told):
    mechanism = Identity() if data is CROWD else TopDown()
    with pytest.raises(SettingError, match=told):
        wanted_epsilon(mechanism, data, wanted)
