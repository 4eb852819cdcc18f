"""The split objective from occupied cells: equal to the dense formula, whole, and of bounded sensitivity."""

from fractions import Fraction
from itertools import product
from math import floor

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points import htf as split_objective
from dpviz.mechanisms.points.htf import LARGEST, SENSITIVITY, SplitCells
from dpviz.space.domain import Domain

UNITS = split_objective.UNITS


def dense(part: np.ndarray) -> Fraction:
    """Sum of |c - mean| over all cells, empty ones too, as the paper has it."""
    mean = Fraction(int(part.sum()), part.size)
    return sum((abs(int(cell) - mean) for cell in part.ravel()), Fraction(0))


def whole(matrix: np.ndarray, across: bool, line: int) -> int:
    parts = (matrix[:, :line], matrix[:, line:]) if across else (matrix[:line], matrix[line:])
    return sum(floor(UNITS * dense(part)) for part in parts)


def objective(matrix: np.ndarray, across: bool, line: int) -> int:
    return int(SplitCells.of(PointCounts.from_matrix(matrix)).objective(np.array([across]), np.array([line]))[0])


@pytest.mark.parametrize("across", [True, False])
def test_it_is_the_dense_formula_rounded_down_in_each_part(across):
    rng = np.random.default_rng(1)
    for density in (0.05, 0.7, 20):
        matrix = rng.poisson(density, (8, 8)) * rng.integers(0, 2, (8, 8))
        for line in range(1, 8):
            assert objective(matrix, across, line) == whole(matrix, across, line)


def test_nodes_that_were_cut_again_and_again_each_have_the_dense_objective():
    rng = np.random.default_rng(2)
    matrix = rng.poisson(0.8, (16, 16))
    cells = SplitCells.of(PointCounts.from_matrix(matrix))
    for level in range(5):
        width, height = (cells.rectangles[:, 2:] - cells.rectangles[:, :2]).T
        cells = cells.keep((width > 1) & (height > 1) & (rng.random(len(width)) < 0.9 + 0.1 * (level == 0)))
        west, south, east, north = cells.rectangles.T
        across = rng.random(len(west)) < 0.5
        line = np.where(across, rng.integers(west + 1, east), rng.integers(south + 1, north))
        inside = [matrix[s:n, w:e] for w, s, e, n in cells.rectangles.tolist()]
        assert cells.records().tolist() == [int(part.sum()) for part in inside]
        starts = np.where(across, west, south)
        wanted = [whole(part, bool(a), int(at)) for part, a, at in zip(inside, across, line - starts, strict=True)]
        assert cells.objective(across, line).tolist() == wanted
        cells = cells.cut(across, line)
    assert cells.rectangles.shape[0] >= 8


@pytest.mark.parametrize(("rows", "columns"), [(4, 4)])
def test_one_record_changes_it_by_less_than_its_sensitivity_on_random_matrices(rows, columns):
    rng, worst = np.random.default_rng(3), 0
    for _ in range(60):
        matrix = rng.poisson(rng.choice([0.1, 1, 5]), (rows, columns))
        for across, line in product((True, False), range(1, 4)):
            before, cell = objective(matrix, across, line), rng.integers(0, matrix.size)
            more = matrix.copy()
            more.ravel()[cell] += 1
            worst = max(worst, abs(objective(more, across, line) - before))
    assert 1.5 * UNITS < worst <= 2 * UNITS < SENSITIVITY


def test_on_all_tiny_matrices_no_record_changes_it_by_more_than_two_minus_two_over_the_part():
    worst = 0
    for entries in product((0, 1, 3), repeat=4):
        matrix = np.array(entries).reshape(2, 2)
        for across, cell in product((True, False), range(4)):
            more = matrix.copy()
            more.ravel()[cell] += 1
            worst = max(worst, abs(objective(more, across, 1) - objective(matrix, across, 1)))
    assert worst == UNITS


def test_a_person_with_m_records_changes_it_by_m_times_that_at_most():
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(200):
        matrix, records = rng.poisson(1.0, (4, 4)), int(rng.integers(1, 4))
        more = matrix.copy()
        np.add.at(more.ravel(), rng.integers(0, 3, records), 1)
        worst = max(worst, abs(objective(more, True, 3) - objective(matrix, True, 3)) / records)
    assert worst < SENSITIVITY


def test_numbers_beyond_64_bits_are_exact_too_and_cut_to_the_largest():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=20)
    counts = np.array([3**20, 7**12, 5**15])
    points = PointCounts(domain=domain, column=np.array([5, 9, 2**19]), row=np.array([1, 1, 1]), count=counts)
    side, line = 2**20, 3 * 2**17
    left, right = counts[:2].tolist(), counts[2:].tolist()
    wanted = 0
    for cells, width in ((left, line), (right, side - line)):
        mean = Fraction(sum(cells), width * side)
        wanted += floor(2 * UNITS * sum((each - mean for each in cells if each > mean), Fraction(0)))
    assert SplitCells.of(points).objective(np.array([True]), np.array([line])).tolist() == [wanted]
    many = PointCounts(domain=domain, column=np.array([5]), row=np.array([1]), count=np.array([2**53]))
    assert SplitCells.of(many).objective(np.array([True]), np.array([line])).tolist() == [LARGEST]


def test_the_way_through_pythons_integers_agrees_with_that_through_64_bits():
    rng = np.random.default_rng(5)
    area, number = rng.integers(2**20, 2**30, 200), rng.integers(0, 2**16, 200)
    rest, excess = rng.integers(0, area), rng.integers(0, 2**40, 200)
    exact = [2 * UNITS * int(e) + (-2 * UNITS * int(n) * int(r)) // int(a) for e, n, r, a in zip(excess, number, rest, area, strict=True)]
    assert split_objective._round_down(excess, number, rest, area).tolist() == exact


def test_no_cells_and_no_nodes_are_fine():
    empty = SplitCells.of(PointCounts.from_matrix(np.zeros((4, 4), int)))
    assert empty.objective(np.array([True]), np.array([2])).tolist() == [0]
    none = empty.keep(np.array([False]))
    assert none.objective(np.zeros(0, bool), np.zeros(0, np.int64)).shape == (0,)
    assert none.cut(np.zeros(0, bool), np.zeros(0, np.int64)).rectangles.shape == (0, 4)


def test_its_text_shows_no_private_number():
    assert repr(SplitCells.of(PointCounts.from_matrix(np.full((4, 4), 7)))) == "SplitCells(1 nodes)"
