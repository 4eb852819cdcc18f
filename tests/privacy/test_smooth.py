"""Medians by smooth sensitivity: the literal definition, smoothness, and exact (epsilon, delta) over all tiny neighbours."""

import functools
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.errors import BudgetError, SettingError
from dpviz.privacy import node_values, smooth
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.smooth import smooth_medians, smooth_sensitivity
from tests import nodes
from tests.laws import SEEDED, p_of_counts
from tests.nodes import Histogram, added, hockey_stick, packed, places, slow_median, smooth_law, tiled

BUDGETS = [("1", "1e-6"), ("3", "1e-2"), ("0.1", "1e-3"), ("10", "1e-1"), ("0.5", "0.5")]
TINY = {
    "3 places": nodes.histograms(3, (0, 1, 2, 3, 4)),
    "5 places": nodes.histograms(5, (0, 1, 2)),
    "9 places": nodes.of_records(9, 3),
    "crowded": nodes.histograms(4, (0, 1, 2, 40, 41, 42)),
}
CLUSTERS = {
    ("1", "1e-6"): [100 if place in (10, 32) else 21 if place in (12, 26) else 0 for place in range(35)],
    ("3", "1e-2"): [21 if place in (4, 22) else place == 25 for place in range(38)],
    ("10", "1e-1"): [int(place in (4, 32)) for place in range(35)],
}
"""Nodes where a jump of the median as large as the smooth sensitivity meets a change of scale."""


def slow_sensitivity(histogram: Histogram, xi: float) -> float:
    """Definition 4 as it is printed."""
    records, centre = places(histogram), (sum(histogram) + 1) // 2
    line = [0] * (len(records) + 2) + records + [len(histogram) - 1] * (len(records) + 3)
    middle = len(records) + 1 + centre
    return max(math.exp(-k * xi) * (line[middle + t] - line[middle + t - k - 1]) for k in range(len(records) + 1) for t in range(k + 2))


@pytest.mark.parametrize("xi", [1e-4, 0.01, 0.1, 0.4, 1.0])
def test_hundreds_of_random_nodes_in_one_call_are_the_slow_definition(xi):
    """Small ones, some with gaps and crowded places, and three with long records and far gaps."""
    rng = np.random.default_rng(1)
    found = [
        tuple((rng.integers(0, 4, width) * (rng.random(width) < 0.6) * rng.choice([1, 1, 7], width)).tolist())
        for width in rng.integers(2, 14, 150)
    ]
    for width in (60, 150, 400):
        at = (rng.random(80) ** 3 * width).astype(int)
        found.append(tuple(np.bincount(at, minlength=width).tolist()))
    fast, slow = smooth_sensitivity(packed(found, low=1000), xi), [slow_sensitivity(histogram, xi) for histogram in found]
    np.testing.assert_allclose(fast, slow, rtol=3e-11)
    assert (fast >= slow).all()


def test_batches_and_32_bits_give_the_same_sensitivities(monkeypatch):
    found = TINY["5 places"]
    whole = smooth_sensitivity(packed(found), 0.1)
    monkeypatch.setattr(node_values, "_VALUES_AT_ONCE", 7)
    np.testing.assert_array_equal(smooth_sensitivity(packed(found, 2**31 - 9, np.int32), 0.1), whole)
    assert smooth_sensitivity(packed([]), 0.1).tolist() == []


def test_widths_of_48_bits_and_a_trillion_records_overflow_nothing():
    wide = NodeValues(
        value=np.array([2**20, 2**47]), count=np.array([10**12, 1]), start=np.array([0, 2, 2]), low=np.zeros(2, int), high=np.full(2, 2**48)
    )
    found = smooth_sensitivity(wide, 1e-12)
    half = (10**12 + 2) // 2
    assert found[0] == pytest.approx(max(2**48 * math.exp(-1e-12 * 10**12), (2**48 - 2**20) * math.exp(-1e-12 * half)), rel=1e-9)
    assert found[1] == pytest.approx(2**48 - 1)


@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize("xi", [1e-3, 0.1, 1.0])
def test_it_is_smooth_and_no_record_moves_the_median_farther(tiny, xi):
    found = TINY[tiny]
    bound = dict(zip(found, smooth_sensitivity(packed(found), xi).tolist(), strict=True))
    assert smooth._medians(packed(found, low=50))[0].tolist() == [slow_median(histogram) + 50 for histogram in found]
    for one in found:
        for other in added(one):
            least = min(bound[one], bound.get(other, math.inf))
            assert abs(slow_median(one) - slow_median(other)) <= least
            assert other not in bound or abs(math.log(bound[one] / bound[other])) <= xi + 2 * smooth.ROUNDING


def scales_of(monkeypatch, found: list[Histogram], budget: ApproxBudget, m: int = 1) -> np.ndarray:
    """(n,) the scales of the noise that a call draws; the draws are never cut where that could be seen."""
    scales: list[np.ndarray] = []

    def recorded(scale, limit, entropy):
        assert (limit >= [len(histogram) for histogram in found]).all()
        scales.append(scale)
        return np.zeros(len(scale), np.int64)

    monkeypatch.setattr(smooth, "rounded_laplace", recorded)
    smooth_medians(packed(found), budget, Entropy.seeded(1), m)
    monkeypatch.undo()
    return np.concatenate(scales)


def worst_delta(found: list[Histogram], scales: np.ndarray, epsilon: float, outside: str) -> float:
    laws = {histogram: smooth_law(histogram, scale, outside) for histogram, scale in zip(found, scales.tolist(), strict=True)}
    pairs = [(one, other) for one in laws for other in added(one) if other in laws]
    assert pairs
    return max(hockey_stick(laws[one], laws[other], epsilon) for one, other in pairs)


@pytest.mark.parametrize("outside", ["nearest", "middle"])
@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_no_neighbour_of_a_tiny_node_is_distinguished_beyond_epsilon_and_delta(monkeypatch, tiny, epsilon, delta, outside):
    scales = scales_of(monkeypatch, TINY[tiny], ApproxBudget(epsilon, delta))
    assert worst_delta(TINY[tiny], scales, float(epsilon), outside) <= float(delta)


def worst_person(found: list[Histogram], scales: np.ndarray, epsilon: float, m: int) -> float:
    """Largest delta that m records of a person need, spread over nodes in every way: some in one node, the others in one of their own."""
    laws = {each: smooth_law(each, scale, "nearest") for each, scale in zip(found, scales.tolist(), strict=True)}
    by_records = [
        [(laws[one], laws[other]) for one in laws for other in added(one, together) if other in laws and sum(other) - sum(one) == together]
        for together in range(1, m + 1)
    ]
    worst = 0.0
    for parts in partitions(m):
        for pairs in product(*(telling(by_records[part - 1], epsilon) for part in parts)):
            one, other = (joint([pair[side] for pair in pairs]) for side in (0, 1))
            worst = max(worst, hockey_stick(one, other, epsilon))
    return worst


def partitions(m: int, most: int | None = None) -> list[tuple[int, ...]]:
    """Every way to write m as a sum, largest part first: how many of a person's records lie in each node."""
    if m == 0:
        return [()]
    return [(part, *rest) for part in range(min(m, most or m), 0, -1) for rest in partitions(m - part, part)]


def telling(pairs: list[tuple[np.ndarray, np.ndarray]], epsilon: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pairs that need the largest delta at some part of epsilon, and both ways round: the others tell no more together."""
    chosen = {max(range(len(pairs)), key=lambda at, part=part: hockey_stick(*pairs[at], epsilon * part)) for part in (1, 0.5, 0.25, 0.1)}
    return [pair for at in sorted(chosen) for pair in (pairs[at], pairs[at][::-1])]


def joint(laws: list[np.ndarray]) -> np.ndarray:
    """The distribution of lines that are drawn independently."""
    return functools.reduce(lambda one, other: np.outer(one, other).ravel(), laws)


PEOPLE = {"3 places": (2, 3), "5 places": (2,), "far cluster": (2, 3)}
FAR = [(20 + west, *[0] * 6, 20 + east) for west, east in product(range(4), repeat=2)]


@pytest.mark.parametrize("tiny", PEOPLE)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_nor_is_a_person_with_several_records_in_one_node_or_in_many(monkeypatch, epsilon, delta, tiny):
    for m in PEOPLE[tiny]:
        found = TINY.get(tiny, FAR)
        scales = scales_of(monkeypatch, found, ApproxBudget(epsilon, delta), m)
        assert worst_person(found, scales, float(epsilon), m) <= float(delta)


@pytest.mark.parametrize(("epsilon", "delta"), CLUSTERS)
def test_half_the_noise_is_too_little(monkeypatch, epsilon, delta):
    histogram = tuple(map(int, CLUSTERS[epsilon, delta]))
    found = [histogram, *added(histogram)]
    scales = scales_of(monkeypatch, found, ApproxBudget(epsilon, delta))
    assert worst_delta(found, scales, float(epsilon), "nearest") <= float(delta)
    assert worst_delta(found, scales / 2, float(epsilon), "nearest") > float(delta) * 1.05


@pytest.mark.parametrize("outside", ["nearest", "middle"])
def test_lines_are_drawn_from_that_distribution(monkeypatch, outside):
    found = [(0, 3, 0, 0, 1, 0), (0, 0), (9, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 2)]
    budget = ApproxBudget(3, "1e-2")
    scales = scales_of(monkeypatch, found, budget)
    draws = smooth_medians(tiled(packed(found, low=4), 15_000), budget, Entropy.seeded(3), outside=outside) - 5
    seen = [np.bincount(draws[node :: len(found)], minlength=len(histogram) - 1) for node, histogram in enumerate(found)]
    for off in (1, 1.3, 0.7):
        laws = [smooth_law(histogram, scale * off, outside) for histogram, scale in zip(found, scales.tolist(), strict=True)]
        p_values = [p_of_counts(*pair) for pair in zip(seen, laws, strict=True)]
        assert min(p_values) > SEEDED if off == 1 else min(p_values) < 1e-9


def test_lines_of_different_nodes_in_one_call_are_independent():
    histogram, budget = (0, 0, 1, 1, 0, 0), ApproxBudget(20, "1e-1")
    lines = smooth_medians(tiled(packed([histogram]), 40_000), budget, Entropy.seeded(4)) - 1
    law = smooth_law(histogram, smooth_sensitivity(packed([histogram]), smooth._xi(budget, 1))[0] * 2 / 20, "nearest")
    assert p_of_counts(np.bincount(lines[:-1:2] * 5 + lines[1::2], minlength=25), np.outer(law, law).ravel()) > SEEDED


@pytest.mark.parametrize("m", [1, 2, 8, 64])
@pytest.mark.parametrize(("epsilon", "delta"), [*BUDGETS, ("1000", "1e-6"), ("1e6", "1e-6"), ("1", "1e-300")])
def test_xi_is_that_of_definition_4_for_the_e_and_d_whose_group_costs_epsilon_and_delta(monkeypatch, epsilon, delta, m):
    """One record costs e and d: m of them cost epsilon and delta; xi is at most 1, and the scale twice the sensitivity over e."""
    budget, found = ApproxBudget(epsilon, delta), TINY["3 places"]
    e, log_d = Fraction(epsilon) / m, math.log(float(delta)) - (math.log(m) + float(epsilon) if m > 1 else 0)
    xi = smooth._xi(budget, m)
    assert xi == pytest.approx(min(float(e) / (4 * (1 + math.log(2) - log_d)), 1), rel=1e-12)
    scales, bound = scales_of(monkeypatch, found, budget, m), smooth_sensitivity(packed(found), xi)
    assert all(Fraction(scale) >= 2 * Fraction(most) / e for scale, most in zip(scales.tolist(), bound.tolist(), strict=True))
    np.testing.assert_allclose(scales, 2 * bound / float(e), rtol=1e-14)


def test_budgets_that_it_cannot_meet_are_refused():
    found = packed([(1, 1)])
    for epsilon, delta, m, words in ((1, 0, 1, "delta = 0"), ("1e-9", "1e-6", 1, "too small"), ("1e15", "1e-6", 2, "large")):
        with pytest.raises(BudgetError, match=words):
            smooth_medians(found, ApproxBudget(epsilon, delta), Entropy.seeded(1), m)
    with pytest.raises(SettingError, match="outside must be one of"):
        smooth_medians(found, ApproxBudget(1, "1e-6"), Entropy.seeded(1), outside="beyond")
