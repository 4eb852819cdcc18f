"""Expected errors: those of real releases, computed without any record."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms import FlatGaussian, Identity, PrivTree, Quadtree, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.dry_run import FROM_DATA, ONLY_NOISE, dry_run, expected
from dpviz.samples.flows import load_flow_sample
from dpviz.space.domain import Domain

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
CROWD = PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 500)), domain=PLANE)
NOBODY = PointCounts.from_xy([], [], domain=PLANE)
COMMUTERS = load_flow_sample("northeast_commuters")
HALF, BOTH = PureBudget("1/2"), ApproxBudget(1, "1e-8")


@pytest.mark.parametrize("mechanism", [Quadtree(height=3), Identity(), Quadtree(height=2, split="uniform", least_squares=False)])
def test_levels_state_the_error_of_a_real_release(mechanism):
    found = expected(mechanism, CROWD, HALF)
    real = mechanism.release(CROWD, HALF, Entropy.seeded(5))
    stated = [np.sqrt((real.stddev[real.nodes(level)] ** 2).mean()) for level in found.by_level["level"]]
    np.testing.assert_allclose(found.by_level["stddev"], stated)
    assert found.by_level["numbers"].tolist() == [len(real.nodes(level)) for level in found.by_level["level"]]
    assert found.note == ONLY_NOISE
    assert found.receipt.spent == HALF


def test_expected_errors_do_not_depend_on_records():
    for mechanism in (Quadtree(height=3), PrivTree()):
        pd.testing.assert_frame_equal(expected(mechanism, CROWD, HALF).by_level, expected(mechanism, NOBODY, HALF).by_level)


def test_the_note_says_that_structures_depend_on_data():
    assert FROM_DATA in expected(PrivTree(), CROWD, HALF).note
    assert FROM_DATA in expected(TopDown(), COMMUTERS, BOTH).note
    assert FROM_DATA in expected(StabilityHistogram(), COMMUTERS, BOTH).note
    assert FROM_DATA not in expected(FlatGaussian(), COMMUTERS, BOTH).note


def test_trips_state_the_noise_of_each_geographic_level():
    found = expected(TopDown(), COMMUTERS, BOTH)
    real = TopDown().release(COMMUTERS, BOTH, Entropy.seeded(5))
    stated = [np.sqrt(real.stages[2 * level].variance) for level in range(4)]
    np.testing.assert_allclose(found.by_level["stddev"], stated)
    assert found.by_level["of"].tolist()[1:] == ["division to division", "state to state", "county to county"]
    assert np.isnan(expected(FlatGaussian(), COMMUTERS, BOTH).by_level["stddev"][1])


def test_the_whole_has_the_noise_of_all_its_pairs():
    found = expected(FlatGaussian(), COMMUTERS, BOTH).by_level
    real = FlatGaussian().release(COMMUTERS, BOTH, Entropy.seeded(5))
    last = real.stages[-1]
    assert found["stddev"][0] == pytest.approx(np.sqrt(last.variance * last.measured))
    assert np.isfinite(found["interval"][0])


def test_a_larger_bound_per_person_makes_the_error_larger():
    one, three = (replace(NOBODY, unit="person", contributions=m) for m in (1, 3))
    ratio = expected(Identity(), three, HALF).by_level["stddev"] / expected(Identity(), one, HALF).by_level["stddev"]
    assert (ratio > 2.5).all()


def test_a_dry_run_refuses_the_same_as_a_release():
    with pytest.raises(BudgetError):
        expected(Quadtree(), CROWD, BOTH)


def test_a_dry_run_can_never_be_published():
    assert dry_run(Quadtree(height=2), CROWD, HALF).simulation
