"""The curve of the split objective: equal to what HTF itself computes, with the lines that it would look at."""

import math

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.split_objective import objective_curve, run_without_noise, split_objectives
from dpviz.mechanisms.points.htf import UNITS_PER_RECORD, Htf, SplitCells, Splitting, by_rounds
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain

BUDGET = PureBudget("0.1")


def crowd(density, side=32, seed=3):
    rng = np.random.default_rng(seed)
    return rng.poisson(density * rng.exponential(1.0, (side, side)) ** 2) * rng.integers(0, 2, (side, side))


@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("density", [0.0, 0.05, 1.0, 40.0])
def test_it_is_the_objective_that_htf_splits_by(across, density):
    matrix = crowd(density)
    points = PointCounts.from_matrix(matrix)
    cells, values = SplitCells.of(points), split_objectives(points, across=across)
    slow = [int(cells.objective(np.array([across]), np.array([line]))[0]) / UNITS_PER_RECORD for line in range(1, 32)]
    assert values[1:-1] == pytest.approx(slow, abs=2 / UNITS_PER_RECORD)
    assert values[0] == values[-1] == pytest.approx(np.abs(matrix - matrix.mean()).sum()), "the domain as one part"


@pytest.mark.parametrize("rounds", [1, 3, 6])
@pytest.mark.parametrize("side", [2, 4, 64])
def test_it_closes_in_as_the_mechanism_does_when_the_noise_is_gone(rounds, side):
    for seed in range(4):
        points = PointCounts.from_matrix(crowd(2.0, side, seed))
        run = Run.of(Htf(), points, PureBudget(10**9), Entropy.seeded(1))
        nodes = Splitting(run=run, cells=SplitCells.of(points), across=np.array([True]), epsilon=PureBudget(10**9).epsilon, depth=1)
        visited, last = run_without_noise(split_objectives(points), rounds)
        assert [last] == by_rounds(nodes, rounds).tolist()
        assert len(visited) == len(set(visited.tolist())) <= 2 * rounds + 1
        assert last in visited
        assert 0 < visited.min() <= visited.max() < side


def test_a_full_and_an_empty_side_part_where_they_meet():
    matrix = np.zeros((16, 16), int)
    matrix[:, 6:] = 50
    curve = objective_curve(PointCounts.from_matrix(matrix), BUDGET)
    assert (curve.best, curve.least, curve.last_visited) == (6, 0.0, 6)
    assert curve.visited.tolist() == [8, 4, 12, 6, 10, 5, 7]
    assert curve.tried.tolist() == [6, 8, 10]
    assert curve.tried_objective.argmin() == 0
    other = objective_curve(PointCounts.from_matrix(matrix), BUDGET, across=False)
    assert np.ptp(other.objective) == pytest.approx(0)


def test_the_noise_is_that_of_one_of_seven_looks_and_of_one_choice():
    place, domain = np.zeros((2, 4)), Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    one = objective_curve(PointCounts.from_xy(*place, domain=domain), BUDGET)
    many = objective_curve(PointCounts.from_xy(*place, domain=domain, person=list("aabb"), contributions=2), BUDGET)
    assert one.noise == pytest.approx(math.sqrt(2) * 2 * 7 / 0.1, rel=1e-3)
    assert one.choice_noise == pytest.approx(2 * 2 / 0.1, rel=1e-3)
    assert many.noise == pytest.approx(2 * one.noise, rel=1e-3)


def test_a_fine_lattice_shows_some_lines_but_finds_the_best_of_all():
    matrix = np.zeros((1024, 1024), int)
    matrix[:, :333] = 1
    curve = objective_curve(PointCounts.from_matrix(matrix), BUDGET)
    assert (curve.best, curve.least) == (333, 0)
    assert (len(curve.lines), curve.lines[0], curve.lines[-1]) == (256, 1, 1023)
    assert np.ptp(np.diff(curve.lines)) <= 1


def test_places_are_coordinates_along_the_axis():
    domain = Domain(bounds=(-10, 40, 10, 48), crs="EPSG:4326", order=2)
    points = PointCounts.from_xy([0.0], [41.0], domain=domain)
    across, along = (objective_curve(points, BUDGET, across=across) for across in (True, False))
    assert across.places(across.lines).tolist() == [-5, 0, 5]
    assert along.places(along.lines).tolist() == [42, 44, 46]
    assert "curator" in repr(across)
