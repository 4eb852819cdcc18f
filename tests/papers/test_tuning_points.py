"""Made-up points for tuning: size, bounds, seeds, and skewness like that of the real data."""

import numpy as np
import pytest

from dpviz.errors import InputError
from dpviz.papers.e2epriv import TUNING_SETS, tuning_counts, tuning_points

EVERY = pytest.mark.parametrize("key", TUNING_SETS)


@EVERY
def test_their_number_is_as_given_and_all_are_within_the_bounds(key):
    x, y = tuning_points(key, 5_000)
    west, south, east, north = TUNING_SETS[key].bounds
    assert x.shape == y.shape == (5_000,)
    assert west <= x.min() < x.max() <= east
    assert south <= y.min() < y.max() <= north


@EVERY
def test_equal_seeds_give_equal_points(key):
    one, same, other = (tuning_points(key, 500, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert (one[0] != other[0]).any()


@EVERY
def test_they_are_far_from_uniform(key):
    points = tuning_counts(key, 5_000)
    blocks = np.sort(points.blocks(5).ravel())[::-1]
    assert points.count.sum() == 5_000
    assert blocks[:100].sum() > 2_500
    assert (blocks == 0).mean() > 0.25


def test_candidates_and_sanity_bounds_are_those_of_the_paper():
    storage, landmark, gowalla = TUNING_SETS.values()
    assert (storage.size, storage.sides, storage.sanity) == (8_938, (30, 40, 50, 60, 70, 80), 0.1)
    assert (landmark.size, landmark.sides, landmark.sanity) == (869_976, (200, 250, 300, 350, 400), 0.01)
    assert (gowalla.size, gowalla.sides, gowalla.sanity) == (6_442_841, (300, 400, 500, 600, 700, 800), 0.001)
    assert all(max(each.sides) * 4 <= each.domain.side for each in TUNING_SETS.values())
    assert tuning_counts("storage").count.sum() == 8_938


def test_an_unknown_set_and_sizes_out_of_range_are_refused():
    with pytest.raises(InputError, match="storage, landmark, gowalla"):
        tuning_points("shops")
    for size in (0, -1, 10**8, 2.5):
        with pytest.raises(InputError):
            tuning_points("storage", size)
