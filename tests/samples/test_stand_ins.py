"""Stand-ins for the data of the paper on private tuning: as many as asked for, within the bounds, far from uniform, those of their seed."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.samples.points import POINT_SAMPLES, sample_xy


@pytest.mark.parametrize("key", ["storage", "landmark", "gowalla"])
def test_stand_ins_are_as_many_as_given_within_the_bounds_far_from_uniform_and_those_of_their_seed(key):
    domain = POINT_SAMPLES[key].domain
    places, same, others = (np.array(sample_xy(key, 5_000, seed)) for seed in (7, 7, 8))
    low, high = np.reshape(domain.bounds, (2, 2, 1))
    assert places.shape == (2, 5_000)
    assert ((low <= places) & (places <= high)).all()
    np.testing.assert_array_equal(places, same)
    assert (places != others).any()
    blocks = np.sort(PointCounts.from_xy(*places, domain=domain).blocks(5).ravel())
    assert blocks[-100:].sum() > 2_500
    assert (blocks == 0).mean() > 0.25
