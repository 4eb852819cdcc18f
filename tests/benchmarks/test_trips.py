"""Trips at the size of a country, against their own noise; memory in a process of its own; errors: pytest -m benchmark."""

import time

import numpy as np
import pytest

from dpviz.data.flows import Flows
from dpviz.mechanisms import FittedTree, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian
from dpviz.samples.flows import made_up_country
from tests.benchmarks.measures import peak
from tests.mechanisms.trips.fitted_bars import MOST_LEAF, MOST_MEAN, MOST_OF_SIMPLE, MOST_OF_TOP_DOWN, cases

pytestmark = pytest.mark.benchmark

BUDGET = ApproxBudget(1, "1e-8")
MOST_BYTES = 2 * 10**9
PEAK = """
from dpviz.samples.flows import made_up_country
mechanisms.{mechanism}().release(made_up_country(), dv.ApproxBudget(1, "1e-8"), dv.Entropy.system())
"""


@pytest.fixture(scope="module")
def country() -> Flows:
    return made_up_country()


@pytest.mark.parametrize(("mechanism", "most"), [(TopDown(), 3), (FittedTree(), 4)], ids=lambda each: getattr(each, "key", None))
def test_a_release_takes_a_few_times_its_own_noise(line, country, mechanism, most):
    """Both in turn, the ratio of the medians: noise and structure see the same computer."""
    ours, noises = [], []
    mechanism.release(country, BUDGET, Entropy.system())
    for _ in range(7):
        start = time.perf_counter()
        release = mechanism.release(country, BUDGET, Entropy.system())
        ours.append(time.perf_counter() - start)
        zeros = [np.zeros(step.counts, np.int64) for step in release.receipt.steps]
        start = time.perf_counter()
        for zero, step in zip(zeros, release.receipt.steps, strict=True):
            discrete_gaussian(zero, ZcdpBudget(step.amount), Entropy.system(), 2)
        noises.append(time.perf_counter() - start)
    draws = sum(step.counts for step in release.receipt.steps)
    whole, noise = float(np.median(ours)), float(np.median(noises))
    line(f"{mechanism.title} on 28.8 M trips, {draws:,} draws, system entropy", whole, noise, "its own noise", most)


@pytest.mark.parametrize("mechanism", ["TopDown", "FittedTree"])
def test_a_release_of_a_country_stays_under_two_gigabytes(mechanism):
    """In a process of its own: the most memory that it ever held, the making of the data included."""
    most = peak(PEAK.format(mechanism=mechanism))
    print(f"\npeak memory {most / 2**20:,.0f} MiB")
    assert most < MOST_BYTES


def test_the_fitted_trees_errors_on_the_six_sets():
    """Thirty runs; maximum errors of the leaves, over the published ones, and of the levels, over those of other mechanisms."""
    found = list(cases(runs=30))
    for case in found:
        errors = ", ".join(f"{key} {error[-1]:.1f}" for key, error in case.errors.items())
        print(f"\n{case.name}: {errors}; over published {case.leaf:.3f}", end="")
        print(f", levels over simple {case.over_simple.max():.2f}, over TopDown {case.over_top_down.max():.2f}", end="")
    print(f"\ngeometric mean over published: {np.exp(np.mean([np.log(case.leaf) for case in found])):.3f}")
    assert max(case.leaf for case in found) <= MOST_LEAF
    assert max(case.over_simple.max() for case in found) <= MOST_OF_SIMPLE
    assert max(case.over_top_down.max() for case in found) <= MOST_OF_TOP_DOWN
    assert np.exp(np.mean([np.log(case.leaf) for case in found])) <= MOST_MEAN
