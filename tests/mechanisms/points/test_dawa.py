"""DAWA: whole-number costs, the cheapest partition, and the exact law of the partition that is released."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, SettingError
from dpviz.mechanisms import Dawa
from dpviz.mechanisms.points import dawa
from dpviz.mechanisms.points.dawa import cheapest, deviations
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from tests import laws
from tests.often import often
from tests.transcripts import EPSILON, Script, compared, loss, pair

GRAIN, SENSITIVITY, STRUCTURE = 4, 9, 2  # a coarse unit, so that the exact law is a short sum; and epsilon of the partition
EVEN = [9, 9, 9, 8]
"""A quarter that one more record makes even, while the whole becomes less so."""


def by_definition(count: np.ndarray, length: int) -> list[int]:
    parts = [[Fraction(each) for each in part] for part in count.reshape(-1, length).tolist()]
    sums = [sum(abs(each - sum(part) / length) for each in part) for part in parts]
    return [min(math.floor(2**16 * deviation), 2**58) for deviation in sums]


@pytest.mark.parametrize("most", [2, 1000, 2**40, 2**51])
def test_deviations_are_those_of_the_definition_rounded_down(most):
    rng = np.random.default_rng(1)
    for length in (1, 2, 4, 8):
        count = rng.integers(0, most, 8) * rng.integers(0, 2, 8)
        assert deviations(count, length).tolist() == by_definition(count, length)


def test_one_record_changes_a_cost_by_less_than_the_sensitivity_and_sometimes_by_nearly_all_of_it():
    rng, changes = np.random.default_rng(2), []
    for length in (1, 4, 16, 64):
        for most in (1, 2, 50):
            count = rng.integers(0, most, (40, length))
            more = count + np.eye(length, dtype=np.int64)[rng.integers(0, length, 40)]
            changes.append(np.abs(deviations(more.ravel(), length) - deviations(count.ravel(), length)).max())
    assert 0.98 * 2**17 < max(changes) <= 2**17 < dawa.SENSITIVITY


def partitions(costs: list[list[int]], depth: int = 0, node: int = 0):
    """All partitions below a node with their sums, those that keep earlier nodes whole first."""
    yield ((depth, node),), costs[depth][node]
    if depth + 1 < len(costs):
        parts = len(costs[depth + 1]) // len(costs[depth])
        for each in product(*(list(partitions(costs, depth + 1, parts * node + part)) for part in range(parts))):
            yield tuple(name for names, _ in each for name in names), sum(cost for _, cost in each)


def kept(whole: list[np.ndarray], depth: int = 0, node: int = 0) -> tuple:
    if whole[depth][node]:
        return ((depth, node),)
    parts = len(whole[depth + 1]) // len(whole[depth])
    return tuple(name for part in range(parts) for name in kept(whole, depth + 1, parts * node + part))


@pytest.mark.parametrize(("parts", "height"), [(2, 1), (2, 3), (4, 1), (4, 2)])
@pytest.mark.parametrize("unit", [1, 2**61])
def test_the_cheapest_partition_is_the_first_of_the_smallest_of_all_also_beyond_64_bits(parts, height, unit):
    rng, ties = np.random.default_rng(3), 0
    for _ in range(30):
        costs = [rng.integers(-2, 3, parts**depth) * unit for depth in range(height + 1)]
        every = list(partitions([cost.tolist() for cost in costs]))
        least = min(cost for _, cost in every)
        assert kept(cheapest(costs)) == next(names for names, cost in every if cost == least)
        ties += sum(cost == least for _, cost in every) > 1
    assert ties > 0


def laplace(cost: int, scale: float) -> tuple[int, np.ndarray]:
    """A cost with discrete Laplace noise: its smallest value, and the probabilities of all values."""
    reach = int(25 * scale)
    weight = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return cost - reach, weight / weight.sum()


def at_least(law: tuple[int, np.ndarray], low: int, size: int) -> np.ndarray:
    """(size,) probabilities of at least low, low + 1, ..."""
    tail = np.append(np.cumsum(law[1][::-1])[::-1], 0)
    return tail[np.clip(low - law[0] + np.arange(size), 0, len(law[1]))]


def partition_law(costs: list[np.ndarray], scale: float) -> dict[tuple, float]:
    """The exact probability of each partition: with that of each value of its sum, from the cells up."""
    nodes = [{((len(costs) - 1, node),): laplace(cost, scale)} for node, cost in enumerate(costs[-1].tolist())]
    for depth in range(len(costs) - 2, -1, -1):
        parts, above = len(costs[depth + 1]) // len(costs[depth]), []
        for node, cost in enumerate(costs[depth].tolist()):
            cut = {}
            for each in product(*(below.items() for below in nodes[parts * node : parts * (node + 1)])):
                total = each[0][1][1]
                for _, (_, weight) in each[1:]:
                    total = np.convolve(total, weight)
                cut[tuple(name for names, _ in each for name in names)] = sum(low for _, (low, _) in each), total
            low, own = laplace(cost, scale)
            found = {((depth, node),): (low, own * sum(at_least(law, low, len(own)) for law in cut.values()))}
            for names, (first, weight) in cut.items():
                found[names] = first, weight * at_least((low, own), first + 1, len(weight))
            above.append(found)
        nodes = above
    return {names: weight.sum() for names, (_, weight) in nodes[0].items()}


def worst(count: list[int], more: list[int], parts: int, scale: float, price: int = 0) -> float:
    """The largest log-ratio of the probabilities of a partition for two rows of cells."""
    both = []
    for row in (np.array(count), np.array(count) + np.bincount(more, minlength=len(count))):
        lengths = [len(row) // parts**depth for depth in range(round(math.log(len(row), parts)) + 1)]
        both.append(partition_law([deviations(row, length) + price for length in lengths], scale))
    assert all(sum(law.values()) == pytest.approx(1) for law in both)
    return max(abs(math.log(both[0][names] / both[1][names])) for names in both[0])


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(dawa, "GRAIN", GRAIN)
    monkeypatch.setattr(dawa, "SENSITIVITY", SENSITIVITY)


@pytest.mark.parametrize("parts", [2, 4])
def test_no_record_changes_the_probability_of_any_partition_by_more_than_epsilon(coarse, parts):
    rng, found = np.random.default_rng(4), []
    for trial in range(40):
        count = (rng.integers(0, 3, 4) * (1, 5)[trial % 2]).tolist()
        found.append(worst(count, [int(rng.integers(4))], parts, 2 * SENSITIVITY / STRUCTURE, (0, 10, 60)[trial % 3]))
    assert STRUCTURE / 6 < max(found) <= STRUCTURE


PEOPLE = often([([*EVEN, *[0] * 12], [3], 0), ([*EVEN, *EVEN, *[0] * 8], [3, 7], 0), (EVEN * 4, [3, 7, 11, 15], 60)], 2)
"""Counts of 16 cells, the cells in which a person has a record, and a price."""


@pytest.mark.parametrize(("count", "more", "price"), PEOPLE)
def test_a_persons_records_in_several_buckets_cost_at_most_epsilon_and_a_wrong_scale_shows(coarse, count, more, price):
    """Too small is half the scale of one record, and the scale of one record for several."""
    scale = 2 * len(more) * SENSITIVITY / STRUCTURE
    assert worst(count, more, 4, scale, price) <= STRUCTURE
    assert worst(count, more, 4, scale / max(2, len(more)), price) > 1.1 * STRUCTURE


def test_partitions_come_as_often_as_their_exact_chances_say(coarse):
    mechanism = Dawa(fan_out=2, price=1, structure_share=0.5)
    points, runs = PointCounts.from_matrix([[3, 1], [0, 1]]), 200
    epsilons = mechanism._epsilons(points.domain, PureBudget(2 * STRUCTURE))
    law = partition_law(list(mechanism._costs(points, epsilons)), 2 * SENSITIVITY / STRUCTURE)
    seen = dict.fromkeys(law, 0)
    for entropy in Entropy.seeded(6).spawn(runs):
        tree = mechanism.release(points, PureBudget(2 * STRUCTURE), entropy).tree
        whole = [np.ones(2**depth, np.bool_) for depth in range(3)]
        if len(tree) > 1:
            whole[0][:], whole[1][:] = False, tree.children[1:3] == 0
        seen[kept(whole)] += 1
    assert laws.p_of_counts(np.array([*seen.values()]), np.array([*law.values()])) > laws.SEEDED


@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize("fan_out", [4, 2])
def test_every_candidate_has_noise_of_the_scale_of_the_proof(monkeypatch, fan_out, bound):
    seen = []
    noise = lambda cost, budget, entropy, sensitivity: seen.append((len(cost), sensitivity / budget.epsilon)) or cost  # noqa: E731
    monkeypatch.setattr(dawa, "discrete_laplace", noise)
    points = replace(PointCounts.from_matrix(np.eye(8, dtype=int)), contributions=bound)
    step = Dawa(fan_out=fan_out).release(points, PureBudget(1), Entropy.seeded(1)).receipt.steps[0]
    sizes = [4**depth for depth in range(4)] if fan_out == 4 else [2**depth for depth in range(7)]
    assert seen == [(size, 2 * bound * (2**17 + 1) / step.amount) for size in sizes]
    assert (step.counts, step.sensitivity, step.scale) == (sum(sizes), bound * (2**17 + 1), seen[0][1])
    assert float(step.amount) == pytest.approx(0.55)


@pytest.mark.parametrize("settings", [{}, {"fan_out": 2}, {"split": "custom", "weights": (0, 3, 0, 1)}, {"split": "leaf"}])
@pytest.mark.parametrize("bound", [1, 3])
def test_counts_cost_exactly_what_the_partition_leaves_wherever_records_lie(monkeypatch, settings, bound):
    rng, mechanism, sizes = np.random.default_rng(7), Dawa(**settings), set()
    for trial in range(8):
        inputs = pair(rng.integers(0, 3, (8, 8)) * (1, 200)[trial % 2], rng.integers(0, 64, bound))
        first, second = compared(monkeypatch, mechanism, *inputs, Script(seed=trial, reach=(-(2**22), 2**22)))
        structure, *counts = mechanism._epsilons(inputs[0].domain, PureBudget(EPSILON))
        assert loss(first, second) == sum(counts) == EPSILON - structure
        sizes.add(sum(len(request.true) for request in first.requests))
    assert len(sizes) > 2


@pytest.mark.parametrize(("fan_out", "ratios"), [(4, {1}), (2, {0.5, 1, 2})])
def test_buckets_are_squares_and_with_two_parts_per_step_also_halves_of_squares(fan_out, ratios):
    matrix = np.zeros((16, 16), np.int64)
    matrix[:8, :8], matrix[8, 8], matrix[9, 1] = 10, 1000, 500
    tree = Dawa(fan_out=fan_out).release(PointCounts.from_matrix(matrix), PureBudget(100), Entropy.seeded(1)).tree
    west, south, east, north = tree.rectangles(tree.leaves).T
    assert set(((east - west) / (north - south)).tolist()) == ratios
    assert [0, 0, 8, 8] in tree.rectangles(tree.leaves).tolist(), "it is evenly filled"
    assert not tree.overlaps


def test_without_noise_the_partition_is_the_cheapest_and_has_the_noise_that_a_release_states():
    points = PointCounts.from_matrix(np.kron([[40, 0], [3, 90]], np.ones((4, 4), int)))
    tree, variance = Dawa().partition_exactly(points, PureBudget(5))
    assert tree.rectangles(tree.leaves).tolist() == [[0, 0, 4, 4], [0, 4, 4, 8], [4, 4, 8, 8], [4, 0, 8, 4]]
    released = Dawa().release(points, PureBudget(5), Entropy.seeded(1))
    np.testing.assert_array_equal(released.tree.rectangles(), tree.rectangles())
    np.testing.assert_array_equal(released.noise_variance, variance)


def test_fine_lattices_are_counted_in_blocks_and_what_memory_has_no_room_for_is_refused():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=24)
    points = PointCounts.from_xy(np.full(3, 0.3), np.full(3, 0.7), domain=domain)
    released = Dawa(order=3).release(points, PureBudget(1), Entropy.seeded(1))
    assert (released.receipt.steps[0].counts, released.receipt.notes) == (85, ())
    coarser = Dawa(split="custom", weights=(1, 1, 0, 0)).release(
        PointCounts.from_matrix(np.eye(8, dtype=int)), PureBudget(1), Entropy.seeded(1)
    )
    assert coarser.receipt.steps[0].counts == 5
    assert [note.split(":")[0] for note in coarser.receipt.notes] == ["The grid has order 3", "The tree ends at zoom level 1"]
    with pytest.raises(SettingError, match="must be from 1 to 11"):
        Dawa(order=12)


def test_huge_counts_and_scales_stay_within_64_bits():
    crowd = replace(PointCounts.from_matrix(np.eye(16, dtype=int)), count=np.full(16, 2**48))
    assert len(Dawa(price=100).release(crowd, PureBudget(1), Entropy.seeded(1)).tree.leaves) > 16
    wide = Dawa(price=100).release(crowd, PureBudget("1e-9"), Entropy.seeded(1))
    assert wide.count[0] == pytest.approx(wide.count[wide.tree.leaves].sum())
    with pytest.raises(BudgetError, match="1e15"):
        Dawa(price=100).release(crowd, PureBudget("1e-15"), Entropy.seeded(1))


def test_shares_are_those_of_the_split_and_a_dragged_split_keeps_its_range():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=2)
    assert [share.level for share in Dawa(fan_out=2).shares(domain)] == [None, 0, None, 1, None, 2]
    dragged = Dawa().with_shares([1, 1, 0, 2])
    assert [share.share for share in dragged.shares(domain)] == pytest.approx([0.25, 0.25, 0, 0.5])
    assert Dawa().with_shares([3, 0, 0, 0]) == Dawa(structure_share=0.99)
