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
from dpviz.space.mask import CellMask
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
        assert deviations(count, np.full(8 // length, length)).tolist() == by_definition(count, length)


def test_deviations_of_masked_intervals_are_those_of_their_open_cells_alone():
    rng = np.random.default_rng(1)
    is_open = rng.random((50, 8)) < 0.4
    count = rng.integers(0, 9, (50, 8)) * is_open
    found = deviations(count.ravel(), is_open.sum(axis=1))
    assert found.tolist() == [by_definition(row[own], own.sum())[0] if own.any() else 0 for row, own in zip(count, is_open, strict=True)]


def test_one_record_changes_a_cost_by_less_than_the_sensitivity_and_sometimes_by_nearly_all_of_it():
    rng, changes = np.random.default_rng(2), []
    for length in (1, 4, 16, 64):
        for most in (1, 2, 50):
            count = rng.integers(0, most, (40, length))
            more = count + np.eye(length, dtype=np.int64)[rng.integers(0, length, 40)]
            cells = np.full(40, length)
            changes.append(np.abs(deviations(more.ravel(), cells) - deviations(count.ravel(), cells)).max())
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
    """A cost with discrete Laplace noise, without noise if the scale is 0: its smallest value, and the probabilities of all values."""
    reach = int(25 * scale)
    weight = np.exp(-np.abs(np.arange(-reach, reach + 1)) / max(scale, 1))
    return cost - reach, weight / weight.sum()


def at_least(law: tuple[int, np.ndarray], low: int, size: int) -> np.ndarray:
    """(size,) probabilities of at least low, low + 1, ..."""
    tail = np.append(np.cumsum(law[1][::-1])[::-1], 0)
    return tail[np.clip(low - law[0] + np.arange(size), 0, len(law[1]))]


def partition_law(levels: list[tuple[np.ndarray, np.ndarray]], scale: float) -> dict[tuple, float]:
    """The exact probability of each partition: with that of each value of its sum, from the cells up.

    Per depth there are the costs, and whether they are those of candidates, which alone have noise.
    """
    laws = [[laplace(cost, scale * own) for cost, own in zip(*level, strict=True)] for level in levels]
    nodes = [{((len(laws) - 1, node),): law} for node, law in enumerate(laws[-1])]
    for depth in range(len(laws) - 2, -1, -1):
        parts, above = len(laws[depth + 1]) // len(laws[depth]), []
        for node, (low, own) in enumerate(laws[depth]):
            cut = {}
            for each in product(*(below.items() for below in nodes[parts * node : parts * (node + 1)])):
                total = each[0][1][1]
                for _, (_, weight) in each[1:]:
                    total = np.convolve(total, weight)
                cut[tuple(name for names, _ in each for name in names)] = sum(low for _, (low, _) in each), total
            found = {((depth, node),): (low, own * sum(at_least(law, low, len(own)) for law in cut.values()))}
            for names, (first, weight) in cut.items():
                found[names] = first, weight * at_least((low, own), first + 1, len(weight))
            above.append(found)
        nodes = above
    return {names: weight.sum() for names, (_, weight) in nodes[0].items() if weight.sum() > 0}


def worst(count: list[int], more: list[int], parts: int, scale: float, price: int = 0) -> float:
    """The largest log-ratio of the probabilities of a partition for two rows of cells."""
    both = []
    for row in (np.array(count), np.array(count) + np.bincount(more, minlength=len(count))):
        sizes = [parts**depth for depth in range(round(math.log(len(row), parts)) + 1)]
        levels = [(deviations(row, np.full(size, len(row) // size)) + price, np.ones(size, np.bool_)) for size in sizes]
        both.append(partition_law(levels, scale))
    return worst_ratio(*both)


def worst_ratio(one: dict[tuple, float], other: dict[tuple, float]) -> float:
    """The largest log-ratio of the probabilities of a partition under two laws."""
    assert all(sum(law.values()) == pytest.approx(1) for law in (one, other))
    assert one.keys() == other.keys()
    return max(abs(math.log(one[names] / other[names])) for names in one)


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


def masked(is_open: list[list[int]]) -> Domain:
    side = len(is_open)
    mask = CellMask.from_open(np.array(is_open, np.bool_))
    return Domain(bounds=(0, 0, side, side), crs=None, order=side.bit_length() - 1, mask=mask)


THREE_QUARTERS = masked([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0], [1, 1, 0, 0]])
"""One quarter is wholly masked, two are masked in part."""
MASKED_PEOPLE = [
    ([[0, 0, 0, 0], [0, 0, 0, 0], [9, 9, 0, 0], [9, 8, 0, 0]], [13]),
    ([[20, 19, 19, 20], [20, 0, 0, 20], [0, 0, 0, 0], [0, 0, 0, 0]], [1, 2]),
]
"""Counts, and the open cells in which a person has a record, of one quarter or of two."""


@pytest.mark.parametrize(("count", "more"), MASKED_PEOPLE)
def test_a_persons_records_in_open_cells_cost_at_most_epsilon_beside_masked_ones_and_a_wrong_scale_shows(coarse, count, more):
    """By the exact law of all partitions, with the costs of the mechanism. Too small is half the scale."""
    mechanism, inputs = Dawa(price=0, structure_share=0.5), [replace(each, domain=THREE_QUARTERS) for each in pair(np.array(count), more)]
    levels = [list(mechanism._costs(each, mechanism._epsilons(THREE_QUARTERS, PureBudget(2 * STRUCTURE)))) for each in inputs]
    scale = 2 * len(more) * SENSITIVITY / STRUCTURE
    assert worst_ratio(*(partition_law(each, scale) for each in levels)) <= STRUCTURE
    assert worst_ratio(*(partition_law(each, scale / 2) for each in levels)) > 1.1 * STRUCTURE


def test_masked_intervals_are_no_candidates_stay_whole_and_get_no_noise(monkeypatch):
    noise = lambda cost, budget, entropy, sensitivity: seen.append(len(cost)) or cost - (10**9 if len(cost) > 3 else 0)  # noqa: E731
    monkeypatch.setattr(dawa, "discrete_laplace", noise)
    seen: list[int] = []
    points = PointCounts.from_matrix(np.ones((4, 4), int), domain=THREE_QUARTERS)
    release = Dawa().release(points, PureBudget(1), Entropy.seeded(1))
    step = release.receipt.steps[0]
    assert (seen, step.counts, step.scale) == ([1, 3, 10], 14, 2 * dawa.SENSITIVITY / step.amount)
    leaves = release.tree.rectangles(release.tree.leaves).tolist()
    assert len(leaves) == 13
    assert [2, 2, 4, 4] in leaves, "single cells are cheapest; the masked quarter is not cut"
    assert [step.counts for step in release.receipt.steps[1:]] == [1, 3, 10]
    has_people = release.open_cells > 0
    assert (release.count[~has_people] == 0).all()
    np.testing.assert_array_equal(Dawa().count_variances(release, PureBudget(1))[has_people], release.noise_variance[has_people])


@pytest.mark.parametrize("is_open", often([[[1, 1], [1, 1]], [[1, 1], [0, 1]]], 1))
def test_partitions_come_as_often_as_their_exact_chances_say(coarse, is_open):
    mechanism, domain = Dawa(fan_out=2, price=1, structure_share=0.5), masked(is_open)
    points, runs = PointCounts.from_matrix([[3, 1], [0, 1]], domain=domain), 200
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
