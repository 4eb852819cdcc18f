"""The path-budget tree: every path spends exactly epsilon whatever is released, and every step is that of its definition, node by node."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import cycle, product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms import PathTree
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.points import path_tree
from dpviz.privacy.budget import GRAIN, PureBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.nonnegative_counts import nonnegative_counts
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests import trees
from tests.often import often
from tests.transcripts import EPSILON, Script, compared, loss, pair

LEAF, PLAIN, SKIP = -1, 1, 2
"""What an answer makes of a node: far under its threshold, between it and the one for skipping, far above both."""


@dataclass(kw_only=True)
class Decided(Script):
    """A script whose answers come from a policy: from the number of nodes to LEAF, PLAIN or SKIP for each."""

    policy: Callable

    def made_up(self, counts, scale):
        return np.ceil(float(scale) * np.array([0, 15, 10**6, -(10**6)]))[self.policy(len(counts))].astype(np.int64)


def cost(monkeypatch, mechanism: PathTree, rng: np.random.Generator, order: int, cells, policy, bound: int = 1) -> Fraction:
    """Privacy loss between a random input and one with a record more in each of `cells`, along the script of a policy."""
    inputs = pair(rng.integers(0, 3, (1 << order, 1 << order)), cells, bound)[:: rng.choice([1, -1])]
    return loss(*compared(monkeypatch, mechanism, *inputs, Decided(policy=policy)))


def each_in_turn(decisions):
    """A policy that hands out `decisions`, and starts again when there are no more."""
    left = cycle(decisions)
    return lambda size: np.array([next(left) for _ in range(size)])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_one_record_costs_exactly_epsilon_where_all_nodes_go_one_way(monkeypatch, order):
    rng = np.random.default_rng(order)
    for decision, cell in product((LEAF, PLAIN, SKIP), range(0, 4**order, (1, 1, 5, 21)[order - 1])):
        assert cost(monkeypatch, PathTree(), rng, order, [cell], each_in_turn([decision])) == EPSILON


def test_one_record_costs_exactly_epsilon_whatever_the_first_two_depths_release(monkeypatch):
    rng = np.random.default_rng(5)
    for turn, first in enumerate(product((LEAF, PLAIN, SKIP), repeat=4)):
        decisions = [*first, *[(LEAF, PLAIN)[turn % 2]] * 60]
        assert cost(monkeypatch, PathTree(), rng, 3, rng.integers(64, size=1), each_in_turn(decisions)) == EPSILON


GROWN = [PathTree(), PathTree(growth=1, mix=1, calm=0), PathTree(growth=4, mix=0.01, big=1, doubt=1)]
SPLIT = [(3, PathTree().with_shares([3, 0, 1])), (10, PathTree().with_shares([0, 3, 0, 2, 1, 0, 0, 5, 1, 0]))]


@pytest.mark.parametrize(("order", "mechanism"), [*product((3, 10), GROWN), *SPLIT])
@pytest.mark.parametrize("most", often([60, measure.MOST_GROWN, 5], 1))
@pytest.mark.parametrize("bound", [1, 3])
def test_random_scripts_cost_each_record_its_part_of_epsilon_also_where_memory_ends_the_tree(monkeypatch, mechanism, order, most, bound):
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    rng, chances = np.random.default_rng(order), (0.85, 0.1, 0.05) if order == 10 else (0.4, 0.3, 0.3)
    for records in {1, bound} if order < 10 else {bound}:
        cells = rng.integers(rng.integers(1, 4**order, endpoint=True), size=records)
        found = cost(monkeypatch, mechanism, rng, order, cells, lambda size: rng.choice([LEAF, PLAIN, SKIP], size, p=chances), bound)
        assert found == EPSILON * records / bound


@pytest.mark.parametrize("order", [1, 2, 24])
@pytest.mark.parametrize("settings", [{}, {"growth": 1, "mix": 1}, {"growth": 4, "mix": 0.01}])
def test_the_schedule_gives_the_levels_their_weights_and_the_bottom_all_that_is_left(order, settings):
    mechanism = PathTree(**settings)
    phi, rest, spent = mechanism.schedule(order), GRAIN, []
    for each in phi:
        spent.append(rest * each >> 30)
        rest -= spent[-1]
    powers = mechanism.growth ** np.arange(1.0, order + 1)
    weights = (1 - mechanism.mix) * powers / powers.sum() + mechanism.mix / order
    assert phi[-1] == 2**30
    assert (sum(spent), rest, min(spent) > 0) == (GRAIN, 0, True)
    np.testing.assert_allclose(np.array(spent) / GRAIN, weights, atol=1e-8)
    shares = mechanism.shares(Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    np.testing.assert_allclose([share.share for share in shares], weights)
    assert [share.level for share in shares] == list(range(1, order + 1))


def test_custom_weights_are_the_shares_of_the_levels_and_each_is_large_enough():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=3)
    assert [share.share for share in PathTree(split="custom", weights=(1, 2, 5)).shares(domain)] == [0.125, 0.25, 0.625]
    dragged = PathTree().with_shares([0, 0, 3])
    assert dragged.schedule(3)[:2] == [int(0.001 / 1.002 * 2**30), int(0.001 / 1.001 * 2**30)]
    for weights in ((1.0, 2.0), (1.0, 0.0, 2.0), (2e-7, 1.0, 1.0), (1.0, 2.0, 3.0, 4.0)):
        with pytest.raises(BudgetError):
            PathTree(split="custom", weights=weights).shares(domain)


def variance_of(parameter: float) -> float:
    q = np.exp(-parameter)
    return 2 * q / (1 - q) ** 2


def reference(mechanism: PathTree, points: PointCounts, epsilon: float, noise) -> list[dict]:
    """Steps 1 to 5 of the design, node by node, from the root down; `noise(depth, second, place)` is added."""
    order, matrix = points.domain.order, np.zeros((points.domain.side,) * 2, np.int64)
    matrix[points.row, points.column] = points.count
    phi = mechanism.schedule(order)
    nodes = [{"x": 0, "y": 0, "size": 1 << order, "rest": 2**32, "skip": True, "split": True, "mean": None}]
    found = list(nodes)
    for depth in range(1, order + 1):
        nodes = [child for node in nodes if node["split"] for child in quarters(node, depth == 1)]
        for place, node in enumerate(nodes):
            node["part"] = 0 if node["skip"] else node["rest"] * phi[depth - 1] // 2**30
            node["true"] = int(matrix[node["y"] : node["y"] + node["size"], node["x"] : node["x"] + node["size"]].sum())
            node["rest"] -= node["part"]
            if not node["skip"]:
                e = node["part"] / 2**32 * epsilon
                node.update(e=e, first=node["true"] + noise(depth, 0, place), variance=variance_of(e))
        for place, node in enumerate(nodes):
            decide(mechanism, node, nodes[place - place % 4 : place - place % 4 + 4], depth, order)
            node["mean"] = node.get("first")
            if not node["split"] and depth < order:
                e = node["rest"] / 2**32 * epsilon
                node["again"], (v, w) = node["true"] + noise(depth, 1, place), (node["variance"], variance_of(e))
                node["mean"] = (node["first"] / v + node["again"] / w) / (1 / v + 1 / w)
                node["variance"] = 1 / (1 / v + 1 / w)
        found += nodes
    return found


def quarters(node: dict, below_root: bool) -> list[dict]:
    half, skip = node["size"] // 2, not below_root and node["skip next"]
    inherited = {"size": half, "rest": node["rest"], "skip": skip}
    return [{"x": node["x"] + x * half, "y": node["y"] + y * half, **inherited} for y in (0, 1) for x in (0, 1)]


def decide(mechanism: PathTree, node: dict, siblings: list[dict], depth: int, order: int) -> None:
    """Steps 3 and 4: whether a node is split, and whether its children are skipped."""
    if node["skip"]:
        node["split"], node["skip next"] = True, False
        return
    threshold = mechanism.tau * mechanism.rise**depth / node["e"]
    values = [sibling["first"] for sibling in siblings]
    mean = sum(values) / 4
    if depth >= 2 and sum((value - mean) ** 2 for value in values) / 3 / node["variance"] < mechanism.calm:
        threshold *= mechanism.doubt
    node["split"] = depth < order and node["first"] > threshold
    node["skip next"] = node["split"] and depth + 2 <= order and node["first"] > mechanism.big * threshold


MECHANISMS = [
    PathTree(),
    PathTree(tau=1, calm=5, doubt=3, big=2, negative="keep"),
    PathTree(growth=1, mix=1, rise=0.9, calm=0, big=3, negative="keep"),
]


def crowd(order: int, bound: int = 1) -> PointCounts:
    """4,000 records around one place."""
    side, rng = 1 << order, np.random.default_rng(order)
    place = np.clip(rng.normal(side * 0.4, side * 0.1, (4000, 2)), 0, side - 1).astype(int)
    matrix = np.zeros((side, side), np.int64)
    np.add.at(matrix, tuple(place.T), 1)
    return replace(PointCounts.from_matrix(matrix), contributions=bound)


class Shared:
    """Stands in for `_add_noise`: noise by depth, first or second measurement, and place in the depth."""

    def __init__(self, seed: int, order: int) -> None:
        self.calls = iter([(depth, second) for depth in range(1, order + 1) for second in (0, 1)])
        self.made = {key: np.random.default_rng([seed, *key]).integers(-20, 21, 4**6) for key in np.ndindex(order + 1, 2)}

    def __call__(self, counter, true, part, epsilon):
        variance = [variance_of(float(epsilon * each / GRAIN)) if each else np.inf for each in part.tolist()]
        return np.where(part > 0, true + self.made[next(self.calls)][: len(true)], np.nan), np.array(variance)

    def at(self, depth: int, second: int, place: int) -> int:
        return int(self.made[depth, second][place])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["default", "calm", "even"])
@pytest.mark.parametrize(("order", "epsilon", "bound"), often([(4, 2, 1), (5, 3, 1), (6, 3, 1), (6, 12, 4)], 2))
def test_it_measures_splits_and_finishes_as_the_slow_definition_does_with_the_same_noise(monkeypatch, mechanism, order, epsilon, bound):
    points, seen = crowd(order, bound), set()
    for seed in range(2):
        noise = Shared(seed, order)
        monkeypatch.setattr(path_tree, "_add_noise", noise)
        released = mechanism.release(points, PureBudget(epsilon), Entropy.seeded(0))
        wanted = reference(mechanism, points, epsilon / bound, noise.at)
        corners = [(node["x"], node["y"], node["x"] + node["size"], node["y"] + node["size"]) for node in wanted]
        np.testing.assert_array_equal(released.tree.rectangles(), corners)
        for name, key in (("noisy", "first"), ("second_measurement", "again"), ("noise_variance", "variance")):
            missing = np.inf if key == "variance" else np.nan
            np.testing.assert_allclose(getattr(released, name), [node.get(key, missing) for node in wanted], rtol=1e-9)
        finish(released, wanted, dense=order == 4 and seed == 0)
        seen |= {(node["skip"], node["split"], node.get("skip next"), "again" in node) for node in wanted[1:]}
    assert len(seen) == 5


def finish(released: PointRelease, wanted: list[dict], *, dense: bool) -> None:
    """Steps 6 and 7: what was stated, and what was drawn towards 0 before least squares, or spread after it."""
    tree = released.tree
    mean = np.array([np.nan if node["mean"] is None else node["mean"] for node in wanted])
    variance = np.array([node.get("variance", np.inf) for node in wanted])
    count, spread = least_squares(tree, mean, variance)
    np.testing.assert_allclose(released.unbiased, count, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(released.node_stddev**2, spread.variances(tree), rtol=1e-8)
    if released.nonnegative:
        wanted_counts = nonnegative_counts(tree, mean, variance, total=count[0], zero=True, smooth=True)
        np.testing.assert_allclose(released.count, wanted_counts, rtol=1e-8, atol=1e-8)
        return
    for node in np.flatnonzero((tree.children == 0) & (tree.cells > 1)).tolist():
        sd = np.sqrt(variance[node])
        kept = min(max((mean[node] / sd - 1) / 1.5, 0), 1)
        mean[node], variance[node] = kept * mean[node], (0.3 + 0.7 * kept) * variance[node]
    count, _ = least_squares(tree, mean, variance, least=0.0)
    np.testing.assert_allclose(released.count, count, rtol=1e-8, atol=1e-8)
    if dense:
        np.testing.assert_allclose(released.count, trees.dense_solution(tree, mean, variance)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("value", "parts"), [(3, 5), (5, 21), (7, 341)])
def test_four_quarters_of_the_whole_are_never_doubted_but_equal_siblings_below_are(monkeypatch, value, parts):
    """Every level has epsilon 1, so that all thresholds are 3, and 6 where siblings look uniform."""
    mechanism = PathTree(growth=1, mix=1, rise=1)
    monkeypatch.setattr(path_tree, "discrete_laplace", lambda counts, budget, entropy: counts * 0 + value)
    released = mechanism.release(PointCounts.from_matrix(np.ones((16, 16), np.int64)), PureBudget(4), Entropy.seeded(0))
    assert len(released.tree) == parts


def test_noise_goes_where_its_parameter_says_and_nowhere_else(monkeypatch):
    epsilons, epsilon = [], Fraction("0.3")
    exact = lambda counts, budget, entropy: epsilons.append((budget.epsilon, counts.tolist())) or counts * 10  # noqa: E731
    monkeypatch.setattr(path_tree, "discrete_laplace", exact)
    run = measure.Run.of(PathTree(), crowd(3), PureBudget(1), Entropy.seeded(0))
    value, variance = path_tree._add_noise(run, np.arange(6), np.array([0, GRAIN // 2, 7, GRAIN // 2, 0, GRAIN]), epsilon)
    assert epsilons == [(epsilon * units / GRAIN, places) for units, places in ((7, [2]), (GRAIN // 2, [1, 3]), (GRAIN, [5]))]
    np.testing.assert_array_equal(value, [np.nan, 10, 20, 30, np.nan, 50])
    half, whole = (variance_of(float(epsilon) * share) for share in (0.5, 1))
    np.testing.assert_allclose(variance[[0, 1, 3, 4, 5]], [np.inf, half, half, np.inf, whole])


def test_switched_off_it_is_plain_least_squares_and_answers_uniformly():
    points, budget = crowd(6), PureBudget(2)
    plain = PathTree(shrink_small=False, fill="uniform", negative="keep").release(points, budget, Entropy.seeded(3))
    before = PathTree(fill="interpolated", negative="keep").release(points, budget, Entropy.seeded(3))
    full = PathTree().release(points, budget, Entropy.seeded(3))
    assert (plain.unbiased, plain.steps, plain.fill) == (None, ("least squares",), "uniform")
    leaning = "answers lean towards fuller neighbours inside leaves"
    assert before.steps == ("small leaves drawn towards 0", "least squares, the total at least 0", leaning)
    assert full.steps[0] == "small leaves drawn towards 0, those with nothing around them more"
    assert full.steps[-2:] == (
        "negative counts spread over their siblings, the total kept",
        "answers follow a log-linear interpolation inside leaves",
    )
    for other in (before, full):
        np.testing.assert_array_equal(plain.count, other.unbiased)
        np.testing.assert_array_equal(plain.node_stddev, other.node_stddev)
        assert other.receipt.steps == plain.receipt.steps
        assert "towards 0" in other.approximate
    assert (before.receipt, before.fill, full.fill) == (plain.receipt, "interpolated", "log-linear")
    assert "decided what is split" in plain.approximate
    assert "too small" in full.approximate
    assert "too small" in full.receipt.notes[-1]


def test_the_total_is_never_under_0_and_the_receipt_has_one_step_for_all_paths():
    empty = PointCounts.from_matrix(np.zeros((2, 2), np.int64))
    found = [PathTree().release(empty, PureBudget("0.1"), Entropy.seeded(seed)) for seed in range(20)]
    assert min(each.count[0] for each in found) == 0
    assert min(each.unbiased[0] for each in found) < -20
    assert "Every path spends all" in found[0].receipt.notes[0]
    (step,) = PathTree().release(crowd(4, 5), PureBudget("0.1"), Entropy.seeded(1)).receipt.steps
    assert (step.amount, step.sensitivity, step.scale, step.counts) == (Fraction("0.1"), 5, 50, None)
