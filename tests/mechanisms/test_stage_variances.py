"""Variances by stage that follow from the settings alone are those that a release with these settings states."""

from dataclasses import replace

import numpy as np
import pytest

import dpviz as dv
from dpviz.mechanisms import MECHANISMS
from dpviz.mechanisms.trips import fitted_tree
from tests.view.trips_cases import grid, random_trips

BUDGET = dv.ApproxBudget(1, "1e-6")
PLANNED = [
    *(dv.TopDown(neighbours=neighbours) for neighbours in ("bounded", "add_remove")),
    dv.TopDown(accounting="paper", tree="origin", split="custom", weights=(1, 2, 3, 4)),
    *(dv.FittedTree(neighbours=neighbours, false_discovery=bound) for neighbours, bound in (("bounded", None), ("add_remove", 0.05))),
    dv.FittedTree(between=True, tree="origin"),
    dv.FittedTree(split="custom", weights=(0, 3, 0, 1)),
]


def stated(release):
    return np.array([stage.variance for stage in release.stages])


@pytest.mark.parametrize("mechanism", PLANNED, ids=lambda each: f"{each.key} {each.chosen()}")
@pytest.mark.parametrize("pruned", [False, True])
def test_planned_variances_are_those_that_a_release_states(mechanism, pruned, monkeypatch):
    trips = random_trips(grid(), pairs=300)
    monkeypatch.setattr(fitted_tree, "MOST_MEASURED_LEAVES", 0 if pruned else 2**21)
    release = mechanism.release(trips, BUDGET, dv.Entropy.seeded(1))
    assert mechanism.stage_variances(release.tree, BUDGET, 1) == pytest.approx(stated(release), rel=1e-9)


def test_more_trips_per_person_are_more_noise_and_another_split_is_another_variance():
    trips = random_trips(grid(), pairs=300)
    several = replace(trips, unit="person", contributions=3, exactly=True)
    for mechanism in (dv.TopDown(), dv.FittedTree()):
        release = mechanism.release(several, BUDGET, dv.Entropy.seeded(1))
        assert mechanism.stage_variances(release.tree, BUDGET, 3) == pytest.approx(stated(release), rel=1e-9)
        moved = mechanism.with_shares([0.1, 0.2, 0.3, 0.4])
        other = moved.release(trips, BUDGET, dv.Entropy.seeded(1))
        assert moved.stage_variances(release.tree, BUDGET, 1) == pytest.approx(stated(other), rel=1e-9)


def test_the_other_mechanisms_say_nothing_without_a_run():
    tree = dv.TopDown().release(random_trips(grid(), pairs=9), BUDGET, dv.Entropy.seeded(1)).tree
    for key in MECHANISMS.of("trips").keys() - {"top_down", "fitted_tree"}:
        assert MECHANISMS.of("trips")[key]().stage_variances(tree, BUDGET, 1) is None
