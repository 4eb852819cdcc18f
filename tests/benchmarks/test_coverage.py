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


def measure(data, name):
    """Lines of a table, one per epsilon, and the epsilons at which intervals hold too rarely."""
    trips, lines, broken = SETS[data](), [], []
    for epsilon in LARGE_EPSILONS if data == "us_flights" else EPSILONS:
        shares, plain = shares_covered(name, trips, epsilon, RUNS, TripRelease.stage_interval, plain_interval)
        means, known = shares.mean(axis=0), ~np.isnan(shares).any(axis=0)
        numbers = (means[-1], means[known].min(), plain.mean(axis=0)[-1], plain.mean(axis=0).min())
        lines.append(f"{data:14} {name:38} {epsilon:>7} " + " ".join(f"{100 * number:7.1f}" for number in numbers))
        broken += [epsilon] if (means[known] < lowest(shares)[known]).any() else []
    return lines, broken


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("data", SETS)
def test_on_average_95_percent_of_the_intervals_of_released_pairs_hold(data, name, capsys):
    if data == "us_flights" and "pruned" in name:
        pytest.skip("would take long; small sets show it")
    lines, broken = measure(data, name)
    with capsys.disabled():
        print(f"\n{'trips':14} {f'mechanism, {RUNS} runs':38} epsilon  finest  lowest   plain  lowest")
        print("\n".join(lines))
    assert broken == []
