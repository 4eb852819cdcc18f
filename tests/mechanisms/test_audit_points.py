"""Inputs of audits of points are neighbours, and an attacker sees all that a release shows."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import Identity, Quadtree
from dpviz.mechanisms.audit import ACROSS, PERSON, SPREAD, Added, read_release
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy


@pytest.mark.parametrize(
    "added", [Added.to_cells(order=1), Added.to_cells(order=2, occupied=((0, 0, 1), (2, 1, 4)), cells=((3, 1),)), PERSON, SPREAD, ACROSS]
)
def test_neighbouring_points_differ_by_one_person(added):
    more, less = (points.blocks(points.domain.order) for points in added.inputs())
    assert (more - less).sum() == len(added.leaves) == np.abs(more - less).sum()
    assert all((more - less).flat[leaf] == added.leaves.count(leaf) for leaf in added.leaves)
    assert {points.contributions for points in added.inputs()} == {len(added.leaves)}


def test_an_attacker_sees_places_numbers_and_words_of_a_release():
    points = PointCounts.from_matrix(np.eye(4, dtype=int))
    release = Quadtree(height=2).release(points, PureBudget(10), Entropy.seeded(1))
    sight = read_release(release, 3)
    path = [(0, 0, 4, 4), (2, 0, 4, 2), (3, 0, 4, 1)]
    for depth, box in enumerate(path):
        assert sight.numbers["count at depth", depth] == sight.numbers["count in", *box]
        assert sight.numbers["west at depth", depth] == box[0]
    assert sight.numbers[("number of nodes",)] == 21
    assert ("text", "least squares") in sight.numbers
    assert 0 < sight.chance < 0.5


def test_the_chance_is_that_of_the_noises_that_are_looked_at():
    """65 nodes, of which a path of two is read: the root's count is a sum and not measured."""
    release = Identity(order=3).release(PointCounts.from_matrix(np.zeros((8, 8), int)), PureBudget(2), Entropy.seeded(1))
    few = Identity(order=2).release(PointCounts.from_matrix(np.zeros((4, 4), int)), PureBudget(2), Entropy.seeded(1))
    one = 1 / np.sqrt(1 + 2 * release.noise_variance[-1])
    assert read_release(release, 0).chance == pytest.approx(one)
    assert read_release(few, 0).chance == pytest.approx(one**16)
