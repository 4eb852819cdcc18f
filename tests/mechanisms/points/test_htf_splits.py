"""HTF's splits: the objective of a line from occupied cells, and the searches for lines, against the paper's formulas node by node."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import floor

import numpy as np
import pytest
from scipy import stats

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points import htf
from dpviz.mechanisms.points.htf import (
    LARGEST,
    SENSITIVITY,
    UNITS_PER_RECORD,
    Htf,
    SplitCells,
    Splitting,
    by_permute_and_flip,
    by_rounds,
    candidates,
)
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from tests.laws import by_integral
from tests.often import often

EPSILON = Fraction(7, 5)


def dense(part: np.ndarray) -> Fraction:
    """Sum of |c - mean| over all cells, empty ones too, as the paper has it."""
    mean = Fraction(int(part.sum()), part.size)
    return sum((abs(int(cell) - mean) for cell in part.ravel()), Fraction(0))


def whole(matrix: np.ndarray, across: bool, line: int) -> int:
    parts = (matrix[:, :line], matrix[:, line:]) if across else (matrix[:line], matrix[line:])
    return sum(floor(UNITS_PER_RECORD * dense(part)) for part in parts)


def objective(matrix: np.ndarray, across: bool, line: int) -> int:
    return int(SplitCells.of(PointCounts.from_matrix(matrix)).objective(np.array([across]), np.array([line]))[0])


@pytest.mark.parametrize("rate", [0.05, 0.8, 20])
def test_nodes_that_were_cut_again_and_again_each_have_the_dense_objective(rate):
    rng = np.random.default_rng(2)
    matrix = rng.poisson(rate, (16, 16))
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


def largest_change(inputs) -> float:
    """Of the objective, per record that is added: over (matrix, across, line, cells)."""
    worst = 0.0
    for matrix, across, line, cells in inputs:
        more = matrix.copy()
        np.add.at(more.ravel(), cells, 1)
        worst = max(worst, abs(objective(more, across, line) - objective(matrix, across, line)) / len(cells))
    return worst


def test_no_record_changes_it_by_more_than_its_sensitivity():
    """On all tiny matrices by two minus two over the part at most; on random ones by nearly all of it; a person by m times that."""
    tiny = [np.array(entries).reshape(2, 2) for entries in product((0, 1, 3), repeat=4)]
    assert (
        largest_change((matrix, across, 1, [cell]) for matrix in tiny for across, cell in product((True, False), range(4)))
        == UNITS_PER_RECORD
    )
    rng = np.random.default_rng(3)
    matrices = [rng.poisson(rate, (4, 4)) for rate in (0.1, 1, 5) * 20]
    some = [(matrix, across, line, [rng.integers(0, 16)]) for matrix in matrices for across in (True, False) for line in (1, 2, 3)]
    assert 1.5 * UNITS_PER_RECORD < largest_change(some) <= 2 * UNITS_PER_RECORD < SENSITIVITY
    assert largest_change((rng.poisson(1.0, (4, 4)), True, 3, rng.integers(0, 3, rng.integers(1, 4))) for _ in range(200)) < SENSITIVITY


def test_large_numbers_are_exact_and_cut_to_the_largest():
    domain, side, line = Domain(bounds=(0, 0, 1, 1), crs=None, order=20), 2**20, 3 * 2**17
    wanted = 0
    for cells, width in (((3**20, 7**12), line), ((5**15,), side - line)):
        mean = Fraction(sum(cells), width * side)
        wanted += floor(2 * UNITS_PER_RECORD * sum(each - mean for each in cells))
    for column, count, objective in (([5, 9, 2**19], [3**20, 7**12, 5**15], wanted), ([5], [2**53], LARGEST)):
        points = PointCounts(domain=domain, column=np.array(column), row=np.ones(len(column), int), count=np.array(count))
        assert SplitCells.of(points).objective(np.array([True]), np.array([line])).tolist() == [objective]


def test_values_beyond_64_bits_are_rounded_down_exactly_too():
    rng = np.random.default_rng(5)
    area, number, excess = rng.integers(2**20, 2**30, 200), rng.integers(0, 2**20, 200), rng.integers(0, 2**40, 200)
    rest = rng.integers(0, area)
    rows = zip(*(part.tolist() for part in (excess, number, rest, area)), strict=True)
    assert htf._round_down(excess, number, rest, area).tolist() == [
        2 * UNITS_PER_RECORD * e + (-2 * UNITS_PER_RECORD * n * r) // a for e, n, r, a in rows
    ]


def test_no_cells_and_no_nodes_are_fine():
    empty = SplitCells.of(PointCounts.from_matrix(np.zeros((4, 4), int)))
    assert empty.objective(np.array([True]), np.array([2])).tolist() == [0]
    none = empty.keep(np.array([False]))
    assert none.cut(np.zeros(0, bool), np.zeros(0, np.int64)).rectangles.shape == (0, 4)
    assert repr(SplitCells.of(PointCounts.from_matrix(np.full((4, 4), 7)))) == "SplitCells(1 nodes)"


def splitting(matrix: np.ndarray, epsilon: Fraction = EPSILON, seed: int = 1) -> Splitting:
    """The whole of a matrix, about to be split across."""
    run = Run.of(Htf(), PointCounts.from_matrix(matrix), PureBudget(epsilon), Entropy.seeded(seed))
    return Splitting(run=run, cells=SplitCells.of(run.data), across=np.array([True]), epsilon=epsilon, depth=1)


def nodes_of(matrix: np.ndarray, seed: int = 0, depth: int = 4) -> Splitting:
    """Parts of a matrix cut at random lines, all of them about to be split; every second one across."""
    rng, whole_matrix = np.random.default_rng(seed), splitting(matrix, seed=seed)
    cells = whole_matrix.cells
    for level in range(depth):
        across = np.full(len(cells.rectangles), level % 2 == 0)
        west, south, east, north = cells.rectangles.T
        low, high = np.where(across, west, south), np.where(across, east, north)
        cells = cells.cut(across, rng.integers(low + 1, high))
        cells = cells.keep(((cells.rectangles[:, 2:] - cells.rectangles[:, :2]) > 1).all(axis=1))
    return replace(whole_matrix, cells=cells, across=np.arange(len(cells.rectangles)) % 2 == 0)


class Recorder:
    """Stands in for `discrete_laplace`: noise that follows from the true value alone, so that both searches share it."""

    def __init__(self, size: int) -> None:
        self.size, self.used, self.drawn = size, set(), 0

    def __call__(self, counts, budget=None, entropy=None, sensitivity=1):
        self.used.add((budget and budget.epsilon, sensitivity))
        self.drawn += np.size(counts)
        return counts + (counts * 7919 + 12345) % (2 * self.size + 1) - self.size


def searched(part: np.ndarray, across: bool, rounds: int, noise: Recorder) -> int:
    """Algorithm 1 for one node, with the midpoints that are meant; the second part begins at line k."""
    left, right = 0, part.shape[1 if across else 0]
    k = left + (right - left) // 2
    if right - left == 2:
        return k
    best = noise(whole(part, across, k))
    for _ in range(rounds):
        k1, k2 = left + (k - left) // 2, k + (right - k) // 2
        lower = noise(whole(part, across, k1)) if k1 > left else np.inf
        upper = noise(whole(part, across, k2)) if k2 > k else np.inf
        least = min(lower, best, upper)
        if least == best:
            left, right = k1, k2
        elif least == lower:
            right, k, best = k, k1, lower
        else:
            left, k, best = k, k2, upper
    return k


@pytest.mark.parametrize("rounds", [1, 3, 5])
@pytest.mark.parametrize("size", often([10**5, 0, 10**7], 1))
def test_all_nodes_at_once_find_what_the_papers_search_finds_one_by_one(monkeypatch, rounds, size):
    rng = np.random.default_rng(size + rounds)
    for seed in range(3):
        matrix = rng.poisson(rng.choice([0.2, 3.0]), (64, 64)) * (rng.random((64, 64)) < 0.6)
        nodes, one, all_at_once = nodes_of(matrix, seed), Recorder(size), Recorder(size)
        monkeypatch.setattr(htf, "discrete_laplace", all_at_once)
        found = by_rounds(nodes, rounds) - nodes.ends[0]
        parts = [matrix[s:n, w:e] for w, s, e, n in nodes.cells.rectangles.tolist()]
        assert found.tolist() == [searched(part, bool(a), rounds, one) for part, a in zip(parts, nodes.across, strict=True)]
        assert one.drawn == all_at_once.drawn
        assert all_at_once.used == {(EPSILON / (2 * rounds + 1), SENSITIVITY)}
    assert len(found) > 3


def test_a_split_with_little_noise_parts_the_full_half_from_the_empty_one():
    matrix = np.zeros((16, 16), int)
    matrix[:, 6:] = 50
    for search in (lambda nodes: by_rounds(nodes, 4), lambda nodes: by_permute_and_flip(nodes, 63, 1.0)):
        assert search(splitting(matrix, Fraction(100))).tolist() == [6]


@pytest.mark.parametrize("most", [1, 7, 31])
@pytest.mark.parametrize("inner", [0.01, 0.5, 1.0])
def test_candidates_are_distinct_strictly_inside_and_as_many_as_fit(most, inner):
    low = np.repeat([0, 5, 1000], 60)
    high = low + np.tile(np.arange(2, 62), 3)
    lines, valid = candidates(low, high, most, inner)
    for start, end, row, mine in zip(low, high, lines, valid, strict=True):
        own = row[mine]
        assert (np.diff(own) > 0).all()
        assert start < own[0] <= (start + end + 1) // 2 <= own[-1] + 1 <= end
        assert len(own) == most or len(own) >= min(most, (end - start) * inner - 2)
        assert (np.abs(own - (start + end) / 2) <= inner * (end - start) / 2 + 1).all()
        assert ((start < row) & (row < end)).all()
    lines, valid = candidates(np.array([3]), np.array([9]), 31, 1.0)
    assert lines[valid].tolist() == [4, 5, 6, 7, 8]


def test_steps_are_charged_in_full_even_where_no_node_had_a_choice():
    nodes = splitting(np.ones((2, 2), int))
    assert by_rounds(nodes, 3).tolist() == by_permute_and_flip(nodes, 7, 0.5).tolist() == [1]
    assert [(step.amount, step.sensitivity, step.noise) for step in nodes.run.steps] == [
        (EPSILON, 7 * SENSITIVITY, "discrete Laplace"),
        (EPSILON, SENSITIVITY, "permute-and-flip"),
    ]


def test_permute_and_flip_follows_the_objectives_of_each_node():
    matrix = np.array([[9, 0, 0, 0], [9, 0, 1, 0], [9, 2, 0, 0], [9, 0, 0, 1]])
    nodes, runs = splitting(matrix, Fraction(1, 10), seed=3), 1500
    seen = np.bincount([int(by_permute_and_flip(nodes, 3, 1.0)[0]) for _ in range(runs)], minlength=4)[1:]
    scores = [-whole(matrix, True, line) for line in (1, 2, 3)]
    law = by_integral(scores, 0.1 / (2 * SENSITIVITY))
    assert stats.chisquare(seen, runs * law).pvalue > 1e-4
