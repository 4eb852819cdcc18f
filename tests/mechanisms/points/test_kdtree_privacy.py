"""Exact privacy of trees whose splits are bought: along any script, lines and counts together cost no unit more than epsilon.

See `tests/transcripts.py` for how. The lines of a script are chosen level by level to tell as much as they can.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import ExactKdtree, HilbertTree, Kdtree
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.points.median_tree import MedianTree
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exact_medians
from tests.laws import SEEDED, SYSTEM, p_of_counts
from tests.nodes import exponential_logs
from tests.often import often, rarely
from tests.transcripts import DELTA, EPSILON, Script, Smooth, compared, loss, pair, run, worst_loss

PURE = {
    "standard": Kdtree(),
    "one step": Kdtree(height=1),
    "halves": Kdtree(fan_out=2),
    "one step of halves, nearly all for medians": Kdtree(fan_out=2, height=1, median_share=0.99),
    "counts on leaves": Kdtree(split="leaf", least_squares=False),
    "no counts of halves": Kdtree(height=2, split="custom", weights=(1, 0, 2)),
    "pruned": Kdtree(prune=1.5),
    "hybrid": Kdtree(variant="hybrid"),
    "hybrid of halves": Kdtree(variant="hybrid", fan_out=2, switch=3),
    "cell": Kdtree(variant="cell"),
    "cell, coarse grid": Kdtree(variant="cell", cell_order=1, split="leaf"),
    "noisy mean": Kdtree(variant="noisy-mean"),
    "hilbert": HilbertTree(),
    "hilbert in halves": HilbertTree(fan_out=2),
}
HALF = {"paper's exponent": Kdtree(exponent="paper"), "paper's exponent along the curve": HilbertTree(exponent="paper")}
SAMPLED = {"sample": Kdtree(sample=0.7, median_share=0.5), "hilbert on a sample": HilbertTree(sample=0.9)}
EVERY = PURE | HALF | SAMPLED
USUAL = [*product(EVERY, (1,), (2,)), *product(("standard", "cell", "noisy mean", "hilbert"), (2,), (2,))]
"""Trees, records per person and seeds of the ordinary run."""


def crowd(records: int = 1) -> tuple[PointCounts, PointCounts]:
    """The worst of all: every level has a line that splits evenly, and last lines that cost all of the level's epsilon."""
    return pair(np.pad([[500, 500], [500, 502]], (0, 2)), [0] * records)


def neighbours(order: int, seeds: int, records: int = 1) -> list[tuple[PointCounts, PointCounts]]:
    """Few records and more in the far corner, then more anywhere, and both exchanged."""
    cells, pairs = 4**order, []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        matrix = np.bincount(rng.integers(0, cells, 3), minlength=cells).reshape(1 << order, -1)
        pairs.append(pair(matrix, rng.integers(0 if seed else cells - 1, cells, records)))
    return [*pairs, *((more, less) for less, more in pairs[:1])]


def worst_of(monkeypatch, mechanism, pairs) -> float:
    return max(worst_loss(monkeypatch, mechanism, *each, seed=seed) for seed, each in enumerate(pairs))


@pytest.mark.parametrize(("name", "records", "seeds"), often(product(EVERY, (1, 2), (2, 10)), USUAL))
def test_no_unit_costs_more_than_epsilon_and_some_cost_all_of_it(monkeypatch, name, records, seeds):
    mechanism = EVERY[name]
    pairs = neighbours(2, seeds, records) + neighbours(3, seeds // 4, records)
    if mechanism.sample == 1:
        pairs.append(crowd(records))
    worst = worst_of(monkeypatch, mechanism, pairs) / EPSILON
    least = 0.5 if mechanism.sample < 1 else 0.849 if mechanism.exponent == "paper" else 0.999999
    assert least <= worst <= 1 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["one step", "halves", "hybrid"])
def test_the_same_for_every_script_of_lines_on_an_order_2_lattice(monkeypatch, variant):
    """Every line of every node on the path of the record that differs, not only the worst found level by level."""
    for one, other in [*neighbours(2, 2), crowd()]:
        for digits in product(range(3), repeat=4):
            script = Lined(digits=digits)
            assert loss(*compared(monkeypatch, PURE[variant], one, other, script)) <= EPSILON * (1 + 1e-12)


class Lined(Script):
    """Gives all nodes of a level the line of one number, counted round from their first."""

    def __init__(self, digits: tuple[int, ...]) -> None:
        super().__init__()
        self.digits = list(digits)

    def _lines(self, nodes):
        return self._answer(nodes.low + 1 + self.digits.pop(0) % (nodes.high - nodes.low - 1))


@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize(("fan_out", "sample"), [(4, 1.0), (2, 0.5)])
def test_trees_of_smooth_medians_differ_by_nothing_but_their_lines_and_counts(monkeypatch, fan_out, sample, records):
    """The (epsilon, delta) of each node's line is checked elsewhere; here that every level gets its part, and counts the rest."""
    mechanism = Kdtree(variant="smooth-sensitivity", fan_out=fan_out, sample=sample)
    for one, other in neighbours(2, 2, records):
        first, second = compared(monkeypatch, mechanism, one, other, Script(seed=5))
        smooth = [step for step in first.requests if isinstance(step, Smooth)]
        assert [step.sample for step in smooth] == [Fraction(str(sample))] * 4
        assert loss(first, second) <= EPSILON * Fraction("0.70001")
    receipt = run(monkeypatch, mechanism, one, Script()).receipt
    assert receipt.spent == receipt.total == ApproxBudget(EPSILON, DELTA)
    assert {step.delta for step in receipt.steps} == {Fraction(0), DELTA / 4}


def test_splits_that_look_at_the_records_without_paying_are_caught(monkeypatch):
    """Exact medians; and empty nodes that are split in the middle, which tells that they are empty."""
    honest = MedianTree.median

    def exactly(tree, run, nodes, epsilon, level):
        run.steps.append(measure.Step(purpose="medians", amount=epsilon, sensitivity=Fraction(1), noise="none", scale=Fraction(1)))
        return exact_medians(nodes)

    def middle_if_empty(tree, run, nodes, epsilon, level):
        return np.where(nodes.records == 0, nodes.middle, honest(tree, run, nodes, epsilon, level))

    for planted in (exactly, middle_if_empty):
        monkeypatch.setattr(MedianTree, "median", planted)
        with pytest.raises(AssertionError):
            worst_of(monkeypatch, Kdtree(fan_out=2), [pair(np.zeros((4, 4), int), [4 * at + 3]) for at in range(4)])


@pytest.mark.parametrize("counts", ["noisy", "exact"])
def test_the_references_differ_by_their_structure_alone(monkeypatch, counts):
    with pytest.raises(AssertionError):
        worst_of(monkeypatch, ExactKdtree(counts=counts), [pair(np.zeros((4, 4), int), [15]), *neighbours(2, 8)])


def tree_law(matrix: np.ndarray, rate: float) -> np.ndarray:
    """(3, 3, 3) chances of the root's line and of the rows' lines west and east of it, on a 4 x 4 lattice."""
    law = np.zeros((3, 3, 3))
    columns = np.exp(exponential_logs(tuple(matrix.sum(axis=0).tolist()), rate))
    for line in range(1, 4):
        sides = [np.exp(exponential_logs(tuple(part.sum(axis=1).tolist()), rate)) for part in (matrix[:, :line], matrix[:, line:])]
        law[line - 1] = columns[line - 1] * np.outer(*sides)
    return law


def trees_of(matrix: np.ndarray, rate: float, runs: int, entropy: Entropy) -> np.ndarray:
    """(27,) how often each tree of one step was grown."""
    points, mechanism = PointCounts.from_matrix(matrix), Kdtree(height=1, median_share=0.5)
    seen = np.zeros((3, 3, 3), int)
    budget = PureBudget(Fraction(rate) * 4)
    spending = mechanism.spending(points.domain, budget)
    for _ in range(runs):
        tree = mechanism.grow(Run.of(mechanism, points, budget, entropy), spending).tree
        seen[tree.east[1] - 1, tree.north[1] - 1, tree.north[3] - 1] += 1
    return seen.ravel()


SKEWED = np.array([[3, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 2], [5, 0, 0, 1]])


@pytest.mark.parametrize(
    ("rate", "runs", "entropy", "wrong"),
    [(1.0, 600, Entropy.seeded(1), 2), *(rarely((rate, 12_000, Entropy.system(), 1.5)) for rate in (0.25, 1.0, 3.0))],
)
def test_trees_of_one_step_follow_their_enumerated_law_whole(rate, runs, entropy, wrong):
    """Jointly: a draw that nodes share, or one that is used twice, would change no line's own chance."""
    seen = trees_of(SKEWED, rate, runs, entropy)
    assert p_of_counts(seen, tree_law(SKEWED, rate).ravel()) > (SEEDED if entropy.simulation else SYSTEM)
    assert p_of_counts(seen, tree_law(SKEWED, rate * wrong).ravel()) < (1e-6 if entropy.simulation else 1e-9)
