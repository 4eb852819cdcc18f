"""The flat Gaussian: every pair of leaves gets noise, larger regions are sums of noisy pairs, thresholds touch the list only."""

from itertools import product

import numpy as np
import pytest

from dpviz.errors import DomainError
from dpviz.mechanisms import FlatGaussian
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.trips import flat_gaussian
from dpviz.privacy.budget import ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.false_positives import gaussian_tail
from dpviz.release.trip_release import TripRelease
from tests.trip_cases import random_regions, random_trips, recorded, regular, released_at, trip_counts_of

RHO = ZcdpBudget("0.05")


def noisy_leaves(monkeypatch, trips, mechanism=FlatGaussian(), seed=1) -> tuple[TripRelease, np.ndarray]:  # noqa: B008
    """A release, and the (origins, destinations) table of true count plus the very noise that it drew."""
    noise = recorded(monkeypatch, measure, "discrete_gaussian")
    release = mechanism.release(trips, RHO, Entropy.seeded(seed))
    table = np.array(noise).reshape(trips.regions.size(trips.regions.depth), -1)
    table[trips.origin, trips.destination] += trips.count
    return release, table


def sums_of(release: TripRelease, table: np.ndarray, levels: tuple[int, int]) -> np.ndarray:
    """Sums of a table of leaves between the regions of two levels."""
    a, b = levels
    sums = np.zeros((release.tree.origins.size(a), release.tree.destinations.size(b)), np.int64)
    np.add.at(sums, np.ix_(release.tree.origins.ancestors(a), release.tree.destinations.ancestors(b)), table)
    return sums


def listed(sums: np.ndarray) -> dict[tuple[int, int], int]:
    return {pair: int(count) for pair, count in np.ndenumerate(sums) if count}


@pytest.mark.parametrize(("seed", "at_once"), [(0, 2**20), (1, 7), (2, 1), (3, 7), (4, 2**20), (5, 7)])
def test_every_stage_is_the_sum_of_the_same_noisy_pairs_however_many_are_drawn_at_once(monkeypatch, seed, at_once):
    rng, depth = np.random.default_rng(seed), 1 + seed % 3
    monkeypatch.setattr(flat_gaussian, "_PAIRS_PER_BLOCK", at_once)
    origins, destinations = random_regions(rng, depth, 3, "from "), random_regions(rng, depth, 4, "to ")
    trips = random_trips(rng, origins, destinations, most=50)
    release, table = noisy_leaves(monkeypatch, trips, seed=seed)
    for stage in range(release.tree.height + 1):
        assert released_at(release, stage) == listed(sums_of(release, table, release.tree.levels(stage)))
    assert release.stages[-1].noisy.tolist() == release.stages[-1].count.tolist()
    assert min(release.stages[-1].count, default=-1) < 0
    assert release.stages[-1].measured == release.receipt.steps[0].counts == table.size
    assert release.every_pair
    assert all(np.isinf(at.variance) for at in release.stages[:-1])


@pytest.mark.parametrize("least", [1, 4, 1000])
def test_a_smallest_count_shortens_the_list_of_leaves_and_leaves_every_sum_between_two_levels_alone(monkeypatch, least):
    trips = random_trips(np.random.default_rng(1), regular(3, 3))
    release, table = noisy_leaves(monkeypatch, trips, FlatGaussian(threshold=least))
    for levels in {*product(range(3), repeat=2)} - {(2, 2)}:
        sums = sums_of(release, table, levels)
        origin, destination = np.indices(sums.shape, np.int32).reshape(2, -1)
        assert release.sums(*levels).at(origin, destination).tolist() == sums.ravel().tolist()
    assert released_at(release, 4) == listed(np.where(table >= least, table, 0))
    assert any(f"under {least:,} left out" in step for step in release.steps)
    assert "left out" in release.approximate
    assert release.stages[4].measured == 81
    whole = FlatGaussian().release(trips, RHO, Entropy.seeded(1))
    assert (whole.approximate, len(whole.steps)) == (None, 1)


def test_a_frame_with_very_many_pairs_gets_a_threshold_that_few_empty_pairs_pass(monkeypatch):
    monkeypatch.setattr(flat_gaussian, "MOST_KEPT", 1000)
    monkeypatch.setattr(flat_gaussian, "_MOST_EMPTY_KEPT", 20)
    regions = regular(6, 10)
    law = 1 / RHO.rho
    least = FlatGaussian().choose_threshold(3600, law)
    assert 3600 * gaussian_tail(np.array([least]), float(law))[0] <= 20 < 3600 * gaussian_tail(np.array([least - 1]), float(law))[0]
    release = FlatGaussian().release(trip_counts_of(regions, {(0, 0): 500}), RHO, Entropy.seeded(1))
    assert release.stages[-1].count.min() >= least
    assert 5 < len(release.stages[-1].count) < 40
    assert any(f"under {least:,} left out" in step for step in release.steps)
    assert abs(release.stages[0].count[0] - 500) < 5 * 60 * float(law) ** 0.5
    assert release.steps == FlatGaussian().release(trip_counts_of(regions, {}), RHO, Entropy.seeded(1)).steps, "public facts alone decide"
    assert FlatGaussian().choose_threshold(1000, law) is None
    assert FlatGaussian(threshold=3).choose_threshold(10**6, law) == FlatGaussian(threshold=3).choose_threshold(10, law) == 3


def test_too_many_pairs_are_refused_before_anything_is_spent_and_top_down_is_named(monkeypatch):
    """What counts is the product of both sides, not the square of the larger one."""
    monkeypatch.setattr(flat_gaussian, "MOST_PAIRS", 80)
    trips = trip_counts_of(regular(3, 3), {(0, 1): 5})
    refusals = [lambda: FlatGaussian().check_data(trips), lambda: FlatGaussian().check(trips.regions)]
    for refused in (*refusals, lambda: FlatGaussian().release(trips, RHO, Entropy.seeded(1))):
        with pytest.raises(DomainError, match=r"pairs of leaf regions.*TopDown"):
            refused()
    FlatGaussian().check(regular(2, 4))
    FlatGaussian().check_pairs(regular(2, 13), regular(1, 3))
