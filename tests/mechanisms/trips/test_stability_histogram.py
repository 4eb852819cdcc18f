"""The stability histogram: nothing but pairs with trips, nothing under the threshold, sums of what is left."""

import numpy as np
import pytest

from dpviz.data.trips import TripCounts
from dpviz.mechanisms import StabilityHistogram
from dpviz.mechanisms import run as measure
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from tests.trip_cases import random_regions, random_trips, recorded, regular, released_at, sums_between, trip_counts_of

BUDGET = ApproxBudget(1, "1e-4")


@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
@pytest.mark.parametrize("threshold", ["tight", "paper"])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_released_is_every_noisy_count_from_the_threshold_on_and_sums_of_those(monkeypatch, neighbours, threshold, seed):
    rng, depth = np.random.default_rng(seed), 1 + seed % 3
    noise = recorded(monkeypatch, measure, "discrete_laplace")
    trips = random_trips(rng, random_regions(rng, depth, 4, "from "), random_regions(rng, depth, 4, "to "), most=100)
    mechanism = StabilityHistogram(neighbours=neighbours, threshold=threshold)
    release, least = mechanism.release(trips, BUDGET, Entropy.seeded(seed)), mechanism.compute_threshold(BUDGET)
    here = trips.count + noise >= least
    kept = TripCounts(
        regions=trips.regions,
        origin=trips.origin[here],
        destination=trips.destination[here],
        count=(trips.count + noise)[here],
        destinations=trips.ends,
    )
    for stage in range(2 * depth + 1):
        assert released_at(release, stage) == sums_between(kept, release.tree.levels(stage))
    assert f"under {least:,} left out" in release.steps[0]
    variance = laplace_variance(2.0 if neighbours == "bounded" else 1.0)
    assert [at.variance for at in release.stages] == [np.inf] * (2 * depth) + [variance]
    assert (release.receipt.steps[0].counts, release.stages[-1].measured) == (None, len(kept.count))


def test_the_spread_of_a_sum_is_that_of_its_released_pairs_not_of_empty_ones():
    """Empty pairs were never measured: a sum of two released pairs has twice the variance of one."""
    trips = trip_counts_of(regular(2, 5), {(0, 0): 900, (1, 3): 800, (7, 7): 700})
    release = StabilityHistogram().release(trips, BUDGET, Entropy.seeded(1))
    table, one = release.to_frame(1), laplace_variance(2.0)
    assert table["stddev"].to_numpy() ** 2 == pytest.approx([2 * one, one])
    assert release.to_frame(0)["stddev"].to_numpy() ** 2 == pytest.approx([3 * one])
    _, stddev = release.answer(["a0", "a1"], ["a0", "a1"], levels=(1, 1), spread=True)
    assert stddev**2 == pytest.approx([2 * one, one])
