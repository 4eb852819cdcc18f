"""How often the intervals of released pairs hold, by mechanism, epsilon and set of trips.

    pytest -n 0 -s -m benchmark tests/benchmarks/test_coverage.py

A line has the mean share of released pairs of the finest level, in percent, whose interval contains the true number, and the lowest of all
levels between regions: with the intervals of the release, and with those of one pair that was chosen without a look at the counts. A
release without pairs counts 1.
"""

import numpy as np
import pytest

from dpviz.release.trip_release import TripRelease
from tests.release.pair_coverage import CASES, SETS, lowest, plain_interval, shares_covered

pytestmark = pytest.mark.benchmark

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
RUNS = 200
LARGE_EPSILONS = ("0.1", "1", "10")  # of the flights, which take longer


@pytest.mark.parametrize("data", SETS)
def test_on_average_95_percent_of_the_intervals_of_released_pairs_hold(data, capsys):
    trips, broken = SETS[data](), []
    with capsys.disabled():
        print(f"\n{data}: released pairs whose interval holds, percent; {RUNS} runs\n{'':40} epsilon  finest  lowest   plain  lowest")
    for name in CASES:
        if data == "us_flights" and "pruned" in name:
            continue
        for epsilon in LARGE_EPSILONS if data == "us_flights" else EPSILONS:
            shares, plain = shares_covered(name, trips, epsilon, RUNS, TripRelease.stage_interval, plain_interval)
            known = ~np.isnan(shares).any(axis=0)
            means, plain_means = shares.mean(axis=0), plain.mean(axis=0)
            numbers = (means[-1], means[known].min(), plain_means[-1], plain_means.min())
            with capsys.disabled():
                print(f"{name:40} {epsilon:>7} " + " ".join(f"{100 * number:7.1f}" for number in numbers), flush=True)
            if (means[known] < lowest(shares)[known]).any():
                broken.append((name, epsilon))
    assert broken == []
