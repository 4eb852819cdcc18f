"""Expected errors: those of real releases, and the epsilon that gives a wanted one, computed without any record."""

import math

import numpy as np
import pandas as pd
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms import FittedTree, FlatGaussian, Identity, PathTree, PrivTree, Quadtree, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing import dry_run as module
from dpviz.publishing.dry_run import (
    FROM_DATA,
    LISTED,
    ONLY_NOISE,
    WantedError,
    compute_error,
    dry_run,
    expected_errors,
    find_epsilon,
)
from dpviz.publishing.public_guess import guess_points
from dpviz.samples.trips import load_trip_sample
from dpviz.space.domain import Domain

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
CROWD = PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 500)), domain=PLANE)
NO_RECORDS = PointCounts.from_xy([], [], domain=PLANE)
COMMUTERS = load_trip_sample("northeast_commuters")
HALF, BOTH = PureBudget("1/2"), ApproxBudget(1, "1e-8")


@pytest.mark.parametrize("mechanism", [Quadtree(height=3), Identity(), Quadtree(height=2, split="uniform", least_squares=False)])
def test_levels_state_the_error_of_a_real_release(mechanism):
    found = expected_errors(mechanism, CROWD, HALF)
    real = mechanism.release(CROWD, HALF, Entropy.seeded(5))
    stated = [np.sqrt((real.node_stddev[real.nodes(level)] ** 2).mean()) for level in found.by_level["level"]]
    np.testing.assert_allclose(found.by_level["stddev"], stated)
    assert found.by_level["numbers"].tolist() == [len(real.nodes(level)) for level in found.by_level["level"]]
    assert found.note == ONLY_NOISE
    assert found.receipt.spent == HALF


@pytest.mark.parametrize("mechanism", [Quadtree(height=3), PrivTree()])
def test_expected_errors_do_not_depend_on_records_and_can_never_be_published(mechanism):
    pd.testing.assert_frame_equal(expected_errors(mechanism, CROWD, HALF).by_level, expected_errors(mechanism, NO_RECORDS, HALF).by_level)
    assert dry_run(mechanism, CROWD, HALF).simulation


@pytest.mark.parametrize(("mechanism", "from_data"), [(TopDown(), True), (StabilityHistogram(), True), (FlatGaussian(), False)])
def test_the_note_says_that_pairs_depend_on_data(mechanism, from_data):
    assert (FROM_DATA in expected_errors(mechanism, COMMUTERS, BOTH).note) == from_data


@pytest.mark.slow
def test_a_list_is_not_foreseen_and_the_note_says_so():
    def notes(mechanism, level):
        return find_epsilon(mechanism, COMMUTERS, WantedError(error=200, level=level)).note

    listing, every = FittedTree(false_discovery=0.05), FittedTree()
    for mechanism, listed in ((listing, True), (every, False), (FlatGaussian(threshold=5), True), (TopDown(), False)):
        assert (LISTED in expected_errors(mechanism, COMMUTERS, BOTH).note) == listed
    assert [LISTED in notes(listing, level) for level in (1, 2, 3)] == [False, False, True]
    assert LISTED not in notes(every, 3)


def test_trips_state_the_noise_of_each_geographic_level():
    found = expected_errors(TopDown(), COMMUTERS, BOTH)
    real = TopDown().release(COMMUTERS, BOTH, Entropy.seeded(5))
    stated = [np.sqrt(real.stages[2 * level].variance) for level in range(4)]
    np.testing.assert_allclose(found.by_level["stddev"], stated)
    assert found.by_level["of"].tolist()[1:] == ["division to division", "state to state", "county to county"]


def test_of_a_flat_mechanism_the_whole_has_the_noise_of_all_its_pairs():
    found = expected_errors(FlatGaussian(), COMMUTERS, BOTH).by_level
    last = FlatGaussian().release(COMMUTERS, BOTH, Entropy.seeded(5)).stages[-1]
    assert found["stddev"][0] == pytest.approx(np.sqrt(last.variance * last.measured))
    assert np.isnan(found["stddev"][1])
    assert np.isfinite(found["interval"][0])


FINE = Domain(bounds=(0, 0, 32, 32), crs=None, order=5)
FINE_CROWD = PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 32, (2, 3000)), domain=FINE)


@pytest.mark.parametrize("zoom", [0, 3, 5])
@pytest.mark.parametrize("mechanism", [Quadtree(height=5), Identity()])
def test_the_epsilon_that_is_found_gives_the_error_and_no_smaller_one_does(mechanism, zoom):
    found = find_epsilon(mechanism, FINE_CROWD, WantedError(error=5, level=zoom))
    assert found.error == compute_error(mechanism, FINE_CROWD, WantedError(error=5, level=zoom), found.epsilon) <= 5
    assert compute_error(mechanism, FINE_CROWD, WantedError(error=5, level=zoom), found.epsilon * 0.98) > 5
    assert found.note == ONLY_NOISE


def test_records_are_not_used(monkeypatch):
    monkeypatch.setattr(module, "STEPS", 3)
    others = PointCounts.from_xy([1.0], [2.0], domain=FINE)
    one, other = (find_epsilon(PathTree(), data, WantedError(error=5, level=3, records=1000)) for data in (FINE_CROWD, others))
    assert one == other


def test_structures_that_depend_on_data_are_approximated_and_the_note_says_so():
    wanted = WantedError(error=2, level=4, records=3000)
    found = find_epsilon(PathTree(), FINE_CROWD, wanted)
    assert "3,000 made-up records, which lie evenly" in found.note
    assert found.error <= 2
    assert compute_error(PathTree(), FINE_CROWD, wanted, found.epsilon * 1.5) <= 2
    empty = find_epsilon(PathTree(), FINE_CROWD, WantedError(error=2, level=4))
    assert "empty data" in empty.note
    assert empty.epsilon != found.epsilon
    assert int(guess_points(FINE_CROWD, 3000).count.sum()) == 3000


def test_trips_by_level():
    uneven = TopDown(split="custom", weights=(1, 2, 3, 4, 5, 6))
    noise = expected_errors(uneven, COMMUTERS, BOTH).by_level["stddev"]
    assert compute_error(uneven, COMMUTERS, WantedError(error=20, level=2), 1.0) == noise[2]
    fine = find_epsilon(FlatGaussian(), COMMUTERS, WantedError(error=20, level=3))
    coarse = find_epsilon(FlatGaussian(), COMMUTERS, WantedError(error=20, level=1))
    assert coarse.epsilon > fine.epsilon
    assert "a sum of finer pairs" in coarse.note
    assert "leaves small pairs out" not in coarse.note


def test_mechanisms_that_leave_pairs_out_say_so_or_refuse():
    found = find_epsilon(StabilityHistogram(), COMMUTERS, WantedError(error=20, level=3))
    assert found.error <= 20
    assert "Pairs that are not released count as 0" in found.note
    refused = find_epsilon(StabilityHistogram(), COMMUTERS, WantedError(error=20, level=1))
    assert refused.epsilon is None
    assert "leaves small pairs out" in refused.note


def test_rounded_epsilons_that_are_not_enough_are_skipped():
    def jumping(epsilon):
        return 3.0 if 0.5 < epsilon < 0.5035 else 1.0

    wanted = WantedError(error=2, level=1)
    assert module._round_to_enough(0.49999, wanted, jumping) == (0.5, 1.0)
    assert module._round_to_enough(0.50001, wanted, jumping) == (0.504, 1.0)
    assert module._round_to_enough(0.1, wanted, lambda epsilon: 1.0 if epsilon == 0.1 else 9.0) == (0.1, 1.0)


def test_errors_that_no_epsilon_or_every_epsilon_gives():
    never = find_epsilon(Quadtree(height=2), FINE_CROWD, WantedError(error=1e-9, level=0))
    assert never.epsilon is None
    assert math.isnan(never.error)
    assert "no ε from 0.001 to 100" in never.note
    always = find_epsilon(Identity(), FINE_CROWD, WantedError(error=1e9, level=0))
    assert (always.epsilon, always.error < 1e9) == (0.001, True)


@pytest.mark.parametrize(
    ("wanted", "data", "message"),
    [
        (WantedError(error=0, level=1), FINE_CROWD, "above 0"),
        (WantedError(error=math.inf, level=1), FINE_CROWD, "above 0"),
        (WantedError(error=1, level=6), FINE_CROWD, "zoom levels 0 to 5"),
        (WantedError(error=1, level=4), COMMUTERS, "levels 1 to 3"),
    ],
)
def test_invalid_questions_are_refused(wanted, data, message):
    mechanism = Identity() if data is FINE_CROWD else TopDown()
    with pytest.raises(SettingError, match=message):
        find_epsilon(mechanism, data, wanted)
