"""What it takes to say which errors to expect, beside one release of as many made-up records.

pytest -n 0 -m benchmark tests/benchmarks/test_expected_errors.py
"""

import time

import pytest

import dpviz as dv
from dpviz.mechanisms import MECHANISMS
from dpviz.publishing.guessed_records import PublicGuess, count_no_records, guess_records
from dpviz.publishing.public_guess import EVEN, TOWNS

pytestmark = pytest.mark.benchmark

CITY = dv.Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=10)
MOST = 20  # releases


def processor_time(run):
    start = time.process_time()
    run()
    return time.process_time() - start


@pytest.mark.parametrize(
    "key", [key for family in ("points", "trips", "areas") for key, each in MECHANISMS.of(family).items() if each.private]
)
def test_errors_to_expect_cost_at_most_20_releases(key, line):
    mechanism = MECHANISMS[key]()
    frame = {"points": CITY, "trips": dv.load_sample("us_flights").regions, "areas": dv.load_sample("us_residents").regions}[
        mechanism.family
    ]
    guess = {"records": 200_000, "spread": TOWNS if mechanism.family == "points" else EVEN}
    budget = dv.ApproxBudget(1, "1e-6") if mechanism.needs_delta else dv.PureBudget(1)
    made_up = guess_records(count_no_records(mechanism, frame), PublicGuess(**guess))
    seeds = iter(range(1000))
    release = min(processor_time(lambda: mechanism.release(made_up, budget, dv.Entropy.seeded(next(seeds)))) for _ in range(4))
    dv.expected_errors(mechanism, frame, budget, **(guess | {"records": 1000}))  # imports
    ours = processor_time(lambda: dv.expected_errors(mechanism, frame, budget, **guess))
    line(f"errors to expect of {key}", ours, release, "one release (processor time)", MOST)
