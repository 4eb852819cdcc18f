"""TopDown at the size of a country, against its own noise; memory in a process of its own: pytest -m benchmark."""

import time

import numpy as np
import pytest

from dpviz.data.flows import Flows
from dpviz.mechanisms import TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian
from dpviz.samples.flows import made_up_country
from tests.benchmarks.measures import peak

pytestmark = pytest.mark.benchmark

BUDGET = ApproxBudget(1, "1e-8")
MOST_BYTES = 2 * 10**9
PEAK = """
from dpviz.samples.flows import made_up_country
mechanisms.TopDown().release(made_up_country(), dv.ApproxBudget(1, "1e-8"), dv.Entropy.system())
"""


@pytest.fixture(scope="module")
def country() -> Flows:
    return made_up_country()


def test_top_down_takes_at_most_three_times_its_own_noise(line, country):
    """Both in turn, the ratio of the medians: noise and structure see the same computer."""
    ours, noises = [], []
    for _ in range(9):
        start = time.perf_counter()
        release = TopDown().release(country, BUDGET, Entropy.system())
        ours.append(time.perf_counter() - start)
        zeros = [np.zeros(step.counts, np.int64) for step in release.receipt.steps]
        start = time.perf_counter()
        for zero, step in zip(zeros, release.receipt.steps, strict=True):
            discrete_gaussian(zero, ZcdpBudget(step.amount), Entropy.system(), 2)
        noises.append(time.perf_counter() - start)
    draws = sum(step.counts for step in release.receipt.steps)
    whole, noise = float(np.median(ours)), float(np.median(noises))
    line(f"TopDown on 28.8 M trips, {draws:,} draws, system entropy", whole, noise, "its own noise", 3)


def test_top_down_of_a_country_stays_under_two_gigabytes():
    """In a process of its own: the most memory that it ever held, the making of the data included."""
    most = peak(PEAK)
    print(f"\npeak memory {most / 2**20:,.0f} MiB")
    assert most < MOST_BYTES
