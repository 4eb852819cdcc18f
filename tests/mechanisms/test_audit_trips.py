"""Inputs of audits of trips are neighbours, and an attacker sees every stage of a release."""

import numpy as np
import pytest

from dpviz.evaluation.audits import audit_budget
from dpviz.mechanisms import FlatGaussian, TopDown
from dpviz.mechanisms.audit import PEOPLE, TRIPS, Added, read_release
from dpviz.privacy.budget import ZcdpBudget
from dpviz.privacy.entropy import Entropy


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("pair", [*TRIPS[1:], *PEOPLE])
def test_neighbouring_trips_differ_by_one_persons(moved, pair):
    tables, trips = [], len(pair.leaves)
    for trip_counts in pair.inputs(moved=moved):
        assert (trip_counts.contributions, trip_counts.exactly) == (trips, moved and trips > 1)
        table = np.zeros((4, 4), int)
        table[trip_counts.origin, trip_counts.destination] = trip_counts.count
        tables.append(table)
    change = tables[0] - tables[1]
    assert np.abs(change).sum() == trips * (1 + moved)
    assert change.sum() == trips * (1 - moved)
    assert change[3, 3] == pair.leaves.count(15)


def test_an_attacker_sees_every_stage_of_trips():
    pair = TopDown().audit_pairs(audit_budget(TopDown()))[0]
    numbers = pair.one(Entropy.seeded(1)).numbers
    assert {name[:4] for name in numbers if name[0] == "trips"} >= {("trips", 0, 0, 0), ("trips", 1, 0, 1), ("trips", 2, 1, 1)}
    trips, _ = Added.to_pairs((2,), (5, 0)).inputs(moved=True)
    sight = read_release(FlatGaussian().release(trips, ZcdpBudget(1), Entropy.seeded(2)))
    assert sight.chance == pytest.approx(1 / 9, rel=0.3)
