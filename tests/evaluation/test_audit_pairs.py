"""Inputs of audits are neighbours, and an attacker sees all that a release shows."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.audits import (
    ACROSS,
    PEOPLE,
    PERSON,
    SPREAD,
    TRIPS,
    Added,
    Moved,
    audit_budget,
    audited,
    flow_pairs,
    flows_seen,
    point_pairs,
    seen,
)
from dpviz.mechanisms import FLOW_MECHANISMS, POINT_MECHANISMS, FlatGaussian, Identity, Quadtree, TopDown
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy


@pytest.mark.parametrize("added", [Added(order=1), Added(order=2, beside=((0, 0, 1), (2, 1, 4)), cells=((3, 1),)), PERSON, SPREAD, ACROSS])
def test_neighbouring_points_differ_by_one_person(added):
    more, less = (points.blocks(added.order) for points in added.inputs())
    assert (more - less).sum() == len(added.cells) == np.abs(more - less).sum()
    assert all((more - less)[row, column] == added.cells.count((column, row)) for column, row in added.cells)
    assert {points.contributions for points in added.inputs()} == {len(added.cells)}


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("pair", [*TRIPS[1:], *PEOPLE])
def test_neighbouring_trips_differ_by_one_persons(moved, pair):
    tables, trips = [], len(pair.pairs)
    for flows in pair.inputs(moved=moved):
        assert (flows.contributions, flows.exactly) == (trips, moved and trips > 1)
        table = np.zeros((4, 4), int)
        table[flows.origin, flows.destination] = flows.count
        tables.append(table)
    change = tables[0] - tables[1]
    assert np.abs(change).sum() == trips * (1 + moved)
    assert change.sum() == trips * (1 - moved)
    assert change[3, 3] == pair.pairs.count(0)


def test_an_attacker_sees_places_numbers_and_words_of_a_release():
    points = PointCounts.from_matrix(np.eye(4, dtype=int))
    release = Quadtree(height=2).release(points, PureBudget(10), Entropy.seeded(1))
    sight = seen(release, (3, 0))
    path = [(0, 0, 4, 4), (2, 0, 4, 2), (3, 0, 4, 1)]
    for depth, box in enumerate(path):
        assert sight.numbers["count at depth", depth] == sight.numbers["count in", *box]
        assert sight.numbers["west at depth", depth] == box[0]
    assert sight.numbers["number of nodes"] == 21
    assert ("text", "least squares") in sight.numbers
    assert 0 < sight.chance < 0.5


def test_an_attacker_sees_every_stage_of_trips():
    pair = flow_pairs(TopDown(), audit_budget(TopDown()))[0]
    numbers = pair.one(Entropy.seeded(1)).numbers
    assert {name[:4] for name in numbers if name[0] == "trips"} >= {("trips", 0, 0, 0), ("trips", 1, 0, 1), ("trips", 2, 1, 1)}
    flows, _ = Moved((2,), (5, 0)).inputs(moved=True)
    sight = flows_seen(FlatGaussian().release(flows, ZcdpBudget(1), Entropy.seeded(2)))
    assert sight.chance == pytest.approx(1 / 9, rel=0.3)


def test_the_chance_is_that_of_the_noises_that_are_seen():
    """65 nodes, of which a path of two is seen: the root's count is a sum and not measured."""
    release = Identity(order=3).release(PointCounts.from_matrix(np.zeros((8, 8), int)), PureBudget(2), Entropy.seeded(1))
    few = Identity(order=2).release(PointCounts.from_matrix(np.zeros((4, 4), int)), PureBudget(2), Entropy.seeded(1))
    one = 1 / np.sqrt(1 + 2 * release.noise_variance[-1])
    assert seen(release, (0, 0)).chance == pytest.approx(one)
    assert seen(few, (0, 0)).chance == pytest.approx(one**16)


@pytest.mark.parametrize("key", [*POINT_MECHANISMS, *FLOW_MECHANISMS])
def test_every_mechanism_that_takes_several_records_is_audited_on_a_person_in_several_cells(key):
    mechanism = audited()[key]
    pairs = (point_pairs if key in POINT_MECHANISMS else flow_pairs)(mechanism, audit_budget(mechanism))
    assert any(pair.words.startswith("a person's") and ("(0, 0): 1" in pair.words or "on 2 pair(s)" in pair.words) for pair in pairs) == (
        key != "stability_histogram"
    )
