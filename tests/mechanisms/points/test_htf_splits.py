"""HTF's searches: the vectorised one against the paper's, node by node with the same noise; lines that are tried."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpviz.data.points import PointCounts
from dpviz.mechanisms.noisy_counts import NoisyCounts
from dpviz.mechanisms.points import htf as htf_splits
from dpviz.mechanisms.points.htf import SENSITIVITY, SplitCells, Splitting, by_permute_and_flip, by_rounds, candidates
from dpviz.privacy.entropy import Entropy
from tests.mechanisms.points.test_split_objective import whole
from tests.often import often
from tests.privacy.test_selection import by_algorithm

EPSILON = Fraction(7, 5)


def nodes_of(matrix: np.ndarray, seed: int = 0, depth: int = 4) -> Splitting:
    """Parts of a matrix cut at random lines, all of them about to be split; every second one across."""
    rng, counter = np.random.default_rng(seed), NoisyCounts(points=PointCounts.from_matrix(matrix), entropy=Entropy.seeded(seed))
    cells = SplitCells.of(counter.points)
    for level in range(depth):
        across = np.full(len(cells.rectangles), level % 2 == 0)
        west, south, east, north = cells.rectangles.T
        low, high = np.where(across, west, south), np.where(across, east, north)
        cells = cells.cut(across, rng.integers(low + 1, high))
        cells = cells.keep(((cells.rectangles[:, 2:] - cells.rectangles[:, :2]) > 1).all(axis=1))
    return Splitting(counter=counter, cells=cells, across=np.arange(len(cells.rectangles)) % 2 == 0, epsilon=EPSILON, level=3)


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
        monkeypatch.setattr(htf_splits, "discrete_laplace", all_at_once)
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
        counter = NoisyCounts(points=PointCounts.from_matrix(matrix), entropy=Entropy.seeded(1))
        nodes = Splitting(counter=counter, cells=SplitCells.of(counter.points), across=np.array([True]), epsilon=Fraction(100), level=1)
        assert search(nodes).tolist() == [6]


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
        assert (start < row).all()
        assert (row < end).all()
    assert ((high - low)[valid.sum(axis=1) == 1] >= 2).all()


def test_all_lines_are_tried_where_there_are_few():
    lines, valid = candidates(np.array([3]), np.array([9]), 31, 1.0)
    assert lines[valid].tolist() == [4, 5, 6, 7, 8]


def test_steps_are_charged_in_full_even_where_no_node_had_a_choice():
    counter = NoisyCounts(points=PointCounts.from_matrix(np.ones((2, 2), int)), entropy=Entropy.seeded(2))
    nodes = Splitting(counter=counter, cells=SplitCells.of(counter.points), across=np.array([True]), epsilon=EPSILON, level=1)
    assert by_rounds(nodes, 3).tolist() == by_permute_and_flip(nodes, 7, 0.5).tolist() == [1]
    assert [(step.amount, step.sensitivity, step.noise) for step in counter.steps] == [
        (EPSILON, 7 * SENSITIVITY, "discrete Laplace"),
        (EPSILON, SENSITIVITY, "permute-and-flip"),
    ]


def test_permute_and_flip_follows_the_objectives_of_each_node():
    matrix = np.array([[9, 0, 0, 0], [9, 0, 1, 0], [9, 2, 0, 0], [9, 0, 0, 1]])
    counter = NoisyCounts(points=PointCounts.from_matrix(matrix), entropy=Entropy.seeded(3))
    cells, runs = SplitCells.of(counter.points), 3000
    nodes = Splitting(counter=counter, cells=cells, across=np.array([True]), epsilon=Fraction(1, 10), level=1)
    seen = np.bincount([int(by_permute_and_flip(nodes, 3, 1.0)[0]) for _ in range(runs)], minlength=4)[1:]
    scores = [-whole(matrix, True, line) for line in (1, 2, 3)]
    law = by_algorithm(scores, 0.1 / (2 * SENSITIVITY))
    assert stats.chisquare(seen, runs * law).pvalue > 1e-4
