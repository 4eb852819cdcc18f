"""PrivTree's price for a whole path, from the exact law of its splits: no chain of counts, and no tiny input, ever costs more."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms import PrivTree
from dpviz.mechanisms import run as measure
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from tests import laws
from tests.transcripts import EPSILON, Script, compared, loss, pair, run

EPSILONS = ("0.01", "0.1", "0.5", "1", "2", "3", "5", "10", "30")
DEEPEST = {4: 24, 16: 12}


@dataclass(frozen=True, kw_only=True)
class SettingSpec:
    """The exact law of splits with one scale of the noise, bias per step, threshold and number of parts: b + X > theta."""

    scale: float
    delta: int
    theta: int = 0
    fan_out: int = 4

    @property
    def declared(self) -> float:
        return (2 * self.fan_out - 1) / (self.fan_out - 1) / self.scale

    def surplus(self, count, depth: int):
        """(k,) b - theta of nodes with (k,) true counts."""
        return np.maximum(count - depth * self.delta, self.theta - self.delta) - self.theta

    def splits(self, count, depth: int):
        """(k,) logarithm of P(X > -s), X discrete Laplace."""
        return self._log_tail(1 - self.surplus(count, depth))

    def stays(self, count, depth: int):
        """(k,) logarithm of P(X <= -s) = P(X >= s)."""
        return self._log_tail(self.surplus(count, depth))

    def _log_tail(self, least):
        """(k,) logarithm of P(X >= least): q**least / (1 + q) above 0, 1 - q**(1 - least) / (1 + q) up to 0."""
        rate = 1 / self.scale
        whole, over = math.log1p(math.exp(-rate)), np.maximum(1 - least, 1)
        return np.where(least >= 1, -least * rate - whole, np.log1p(-np.exp(-over * rate - whole)))


def worst_chain(rule: SettingSpec, depth: int) -> float:
    """The largest log-ratio either way between a chain of counts and the same with one record less, over all chains c_0 >= c_1 >= ...

    by dynamic programming from the deepest tested depth up to the root: with c records here, the best of at most c below. A path ends
    at the lattice, untested, or in a node that stays whole.
    """
    count = np.arange(1, int(abs(rule.theta) + (depth + 1) * rule.delta + 50 * max(rule.scale, 1)) + 2)
    more, fewer = np.zeros(len(count)), np.full(len(count), 0.0)
    for here in range(depth - 1, -1, -1):
        split = rule.splits(count, here) - rule.splits(count - 1, here)
        stay = rule.stays(count - 1, here) - rule.stays(count, here)
        more = np.maximum(split + np.maximum.accumulate(more), -stay)
        fewer = np.maximum(-split + np.maximum.accumulate(fewer), stay)
    return float(max(more.max(), fewer.max()))


def worst_tree(rule: SettingSpec, one: np.ndarray, other: np.ndarray, depth: int = 0) -> float:
    """The largest logarithm of P(tree | one) / P(tree | other) over all trees, exactly: two (side, side) matrices, side a power of 2."""
    if len(one) == 1 or (one == other).all():
        return 0.0
    side, half = len(one), len(one) // 2
    quarters = [(slice(row, row + half), slice(column, column + half)) for row in range(0, side, half) for column in range(0, side, half)]
    split = float(rule.splits(one.sum(), depth) - rule.splits(other.sum(), depth))
    stay = float(rule.stays(one.sum(), depth) - rule.stays(other.sum(), depth))
    return max(stay, split + sum(worst_tree(rule, one[quarter], other[quarter], depth + 1) for quarter in quarters))


@dataclass(kw_only=True)
class Splits(Script):
    """Writes down every b and the noise's rate, and answers with what `decide` makes of it."""

    decide: Callable
    bias: list[np.ndarray] = field(default_factory=list)
    rates: set[Fraction] = field(default_factory=set)

    def split(self, bias, budget, entropy, sensitivity=1):
        self.bias.append(bias.copy())
        self.rates.add(budget.epsilon / sensitivity)
        return self._answer(self.decide(bias))


def rule_of(monkeypatch, epsilon: str, fan_out: int = 4, theta: int = 0, contributions: int = 1) -> SettingSpec:
    """The numbers that the mechanism really uses when its splits get `epsilon`: half of the budget by default."""
    points = replace(PointCounts.from_matrix(np.pad([[10**6]], (0, 31))), contributions=contributions)
    only_first = Splits(decide=lambda bias: np.where(np.arange(len(bias)) == 0, theta + 1, theta))
    run(monkeypatch, PrivTree(fan_out=fan_out, threshold=theta), points, only_first, 2 * Fraction(epsilon))
    first = np.array([level[0] for level in only_first.bias])
    assert first[0] == 10**6
    (delta,), (rate,) = set(-np.diff(first)), only_first.rates
    assert all((level[1:] == max(-depth * delta, theta - delta)).all() for depth, level in enumerate(only_first.bias))
    return SettingSpec(scale=float(1 / rate), delta=int(delta), theta=theta, fan_out=fan_out)


@pytest.mark.parametrize(("fan_out", "contributions"), [(4, 1), (16, 1), (4, 3)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_scale_and_the_bias_are_those_of_the_proof(monkeypatch, epsilon, fan_out, contributions):
    rule = rule_of(monkeypatch, epsilon, fan_out, 5, contributions)
    assert rule.declared == pytest.approx(float(epsilon) / contributions, rel=1e-12)
    assert rule.delta == math.ceil(rule.scale * math.log(fan_out))
    assert math.exp(-rule.delta / rule.scale) <= 1 / fan_out


@pytest.mark.parametrize("fan_out", [4, 16])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_chain_of_counts_costs_more_than_the_splits_may_spend(monkeypatch, epsilon, fan_out):
    for theta in (0, 7, 150):
        rule = rule_of(monkeypatch, epsilon, fan_out, theta)
        worst = [worst_chain(rule, depth) for depth in (1, 2, 3, DEEPEST[fan_out])]
        assert worst == sorted(worst)
        assert worst[0] == pytest.approx(1 / rule.scale)
        assert 0.85 * rule.declared < worst[-1] <= rule.declared


@pytest.mark.parametrize("contributions", [1, 2, 4])
@pytest.mark.parametrize("theta", [0, 3])
@pytest.mark.parametrize("epsilon", ["1", "10"])
def test_no_tree_tells_inputs_that_differ_by_all_records_of_a_person_apart_better_than_declared(monkeypatch, epsilon, theta, contributions):
    rule, rng = rule_of(monkeypatch, epsilon, 4, theta, contributions), np.random.default_rng(3)
    for trial in range(40):
        matrix = rng.integers(0, 2 + trial // 8, (16, 16)) * (rng.random((16, 16)) < rng.choice([0.02, 0.3]))
        more, cells = matrix.copy(), rng.integers(0, 16 if trial % 2 else 3, (2, contributions))
        np.add.at(more, tuple(cells), 1)
        assert max(worst_tree(rule, more, matrix), worst_tree(rule, matrix, more)) <= float(epsilon)


@pytest.mark.parametrize("fan_out", [4, 16])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_every_node_is_biased_by_its_depth_and_tested_above_the_lattice_only(monkeypatch, fan_out, order):
    rng = np.random.default_rng(order)
    for theta in (0, 3, 4):
        points = PointCounts.from_matrix(rng.integers(0, 40, (1 << order, 1 << order)) * (rng.random((1 << order, 1 << order)) < 0.3))
        script = Splits(decide=lambda bias, theta=theta: np.where(rng.random(len(bias)) < 0.6, theta + 1, theta))
        tree = run(monkeypatch, PrivTree(fan_out=fan_out, threshold=theta), points, script, 1).tree
        scale = Fraction(2 * fan_out - 1, fan_out - 1) * 2
        assert script.rates == {1 / scale}
        true, delta = tree.sums(points.column, points.row, points.count), math.ceil(scale * Fraction(math.log(fan_out)))
        tested = np.flatnonzero(tree.cells > 1)
        biased = np.maximum(true - tree.depth * delta, theta - delta)
        np.testing.assert_array_equal(np.concatenate(script.bias), biased[tested])
        np.testing.assert_array_equal(tree.children[tested] > 0, np.concatenate(script.answers[:-1]) > theta)
        assert set(tree.children.tolist()) <= {0, 4, fan_out}


@pytest.mark.parametrize("most", [measure.MOST_GROWN, 30, 4])
@pytest.mark.parametrize("contributions", [1, 3])
def test_the_leaves_cost_the_rest_and_all_else_is_a_function_of_what_was_released(monkeypatch, contributions, most):
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    rng = np.random.default_rng(8)
    for trial in range(20):
        mechanism = PrivTree(structure_share=0.3, fan_out=4 if trial % 2 else 16)
        inputs, script = pair(rng.integers(0, 5, (8, 8)), rng.integers(0, 64, contributions)), Script(seed=trial, reach=(-1, 3))
        cost = loss(*compared(monkeypatch, mechanism, *inputs, script))
        splits, counts = run(monkeypatch, mechanism, inputs[0], Script(given=script.answers)).receipt.steps
        assert (script.requests[-1].scale, cost) == (counts.scale, counts.amount)
        assert splits.amount + counts.amount == EPSILON
        assert float(splits.amount) == pytest.approx(0.39)


def test_trees_come_as_often_as_their_exact_chances_say():
    points, runs = PointCounts.from_matrix(np.kron([[3, 0], [1, 9]], np.eye(2, dtype=int))), 500
    rule = SettingSpec(scale=7 / 3 / 0.8, delta=math.ceil(7 / 3 / 0.8 * math.log(4)))
    root, below = np.exp(rule.splits(26, 0)), np.exp(rule.splits(np.array([6, 0, 2, 18]), 1))
    seen = np.zeros(17)
    for entropy in Entropy.seeded(5).spawn(runs):
        tree = PrivTree().release(points, PureBudget(1.6), entropy).tree
        seen[16 if len(tree) == 1 else int((tree.children[1:5] > 0) @ [1, 2, 4, 8])] += 1
    patterns = (np.arange(16)[:, None] >> np.arange(4)) & 1
    chance = np.append(root * np.where(patterns, below, 1 - below).prod(1), 1 - root)
    assert chance.sum() == pytest.approx(1)
    assert laws.p_of_counts(seen, chance) > laws.SEEDED


def test_only_leaves_are_counted_and_budgets_that_are_too_small_are_refused():
    points = PointCounts.from_matrix(np.eye(8, dtype=int) * 50)
    found = PrivTree(structure_share=0.25).release(points, PureBudget(2), Entropy.seeded(1))
    splits, counts = found.receipt.steps
    assert (splits.counts, splits.sensitivity, splits.scale) == (None, Fraction(7, 3), Fraction(7, 3) / splits.amount)
    assert counts.counts == len(found.tree.leaves)
    np.testing.assert_array_equal(np.isnan(found.noisy), found.tree.children > 0)
    assert [PrivTree().with_shares(shares).structure_share for shares in ([3.0, 1.0], [1.0, 0.0])] == [0.75, 0.99]
    with pytest.raises(BudgetError, match="1e15"):
        PrivTree().release(points, PureBudget("1e-15"), Entropy.seeded(1))


def test_deep_lattices_and_huge_scales_stay_within_64_bits():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=24)
    points = PointCounts.from_xy(np.full(3, 0.3), np.full(3, 0.7), domain=domain)
    found = PrivTree(fan_out=16).release(points, PureBudget("1e-13"), Entropy.seeded(1))
    assert found.count[0] == pytest.approx(found.count[found.tree.leaves].sum())
    crowd = replace(points, count=np.array([2**50]))
    assert PrivTree().release(crowd, PureBudget(1), Entropy.seeded(2)).tree.height == 24
