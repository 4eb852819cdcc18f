"""Draws of the exponential mechanism against its exact distribution, many tiny nodes in one call; extreme budgets, widths and counts."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpviz.privacy import inversion, medians, node_values
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exponential_medians
from dpviz.privacy.node_values import NodeValues
from tests.laws import SEEDED, SYSTEM, p_of_counts
from tests.nodes import exponential_logs, packed, tiled

NODES = [
    (0, 0, 0, 0, 0, 0),
    (1, 0, 0, 0, 0, 3),
    (0, 0, 5, 0, 0, 0),
    (2, 1),
    (7, 0, 0, 1, 0, 0, 0, 0, 2),
    (30, 0, 0, 25, 0),
    (1, 1, 1, 1, 1, 1, 40),
]
"""Empty, records at both ends, one occupied place, a single line, skewed ones."""


def drawn(copies: int, rate: str, entropy: Entropy, low: int = 3, dtype: type = np.int64) -> np.ndarray:
    """(copies, 7) lines of interleaved nodes in one call, counted from 0."""
    found = tiled(packed(NODES, low=low, dtype=dtype), copies)
    lines = exponential_medians(found, Fraction(rate), entropy)
    assert lines.dtype == np.int64
    return (lines - low - 1).reshape(copies, len(NODES))


def p_values(lines: np.ndarray, rate: float) -> list[float]:
    laws = [np.exp(exponential_logs(histogram, rate)) for histogram in NODES]
    return [p_of_counts(np.bincount(lines[:, node], minlength=len(law)), law) for node, law in enumerate(laws)]


@pytest.mark.parametrize("kind", ["seeded", "system"])
@pytest.mark.parametrize("rate", ["0.05", "0.5", "3"])
def test_interleaved_nodes_of_one_call_follow_their_exact_distributions_and_no_others(rate, kind):
    lines = drawn(20_000, rate, Entropy.seeded(1) if kind == "seeded" else Entropy.system())
    assert min(p_values(lines, float(rate))) > (SEEDED if kind == "seeded" else SYSTEM)
    for off in (1.3, 0.7):
        assert min(p_values(lines, float(rate) * off)) < 1e-9


def counted(monkeypatch, function: str) -> list[int]:
    """How often a function of `inversion` is called from now on, in the list's only place."""
    honest, times = getattr(inversion, function), [0]

    def wrapped(*given):
        times[0] += 1
        return honest(*given)

    monkeypatch.setattr(inversion, function, wrapped)
    return times


def refined_often(monkeypatch, copies: int, rate: str) -> None:
    times = counted(monkeypatch, "_decide")
    monkeypatch.setattr(medians, "SLACK", 0.3)
    lines = drawn(copies, rate, Entropy.seeded(2))
    assert times[0] > copies
    assert min(p_values(lines, float(rate))) > SEEDED


@pytest.mark.parametrize("rate", ["0.05", "0.5", "3"])
def test_the_distribution_stays_exact_where_digits_decide_most_coins(monkeypatch, rate):
    refined_often(monkeypatch, 1_500, rate)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["0.05", "0.5", "3"])
def test_the_distribution_stays_exact_in_many_draws_that_digits_decide(monkeypatch, rate):
    refined_often(monkeypatch, 40_000, rate)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["0.05", "0.5", "3"])
def test_half_a_million_copies_still_follow_the_exact_distribution(rate):
    lines = drawn(500_000, rate, Entropy.system())
    assert min(p_values(lines, float(rate))) > SYSTEM
    assert min(p_values(lines, float(rate) * 1.05)) < 1e-9


def test_coins_are_practically_never_settled_by_digits(monkeypatch):
    times = counted(monkeypatch, "_decide")
    drawn(20_000, "0.5", Entropy.seeded(3))
    assert times == [0]


@pytest.mark.parametrize(("one", "other", "step"), [(4, 5, 1), (2, 4, 2), (4, 4, 7), (6, 6, 21)])
def test_lines_of_different_nodes_in_one_call_are_independent(one, other, step):
    """One draw shared by nodes would leave every single distribution as it is and yet reveal everything."""
    lines = drawn(30_000, "0.5", Entropy.seeded(4)).ravel()
    laws = [np.exp(exponential_logs(NODES[node], 0.5)) for node in (one, other)]
    second = lines[one + step :: len(NODES)]
    first = lines[one :: len(NODES)][: len(second)]
    joint = np.bincount(first * len(laws[1]) + second, minlength=len(laws[0]) * len(laws[1]))
    assert p_of_counts(joint, np.outer(*laws).ravel()) > SEEDED


def test_two_calls_on_one_stream_differ():
    entropy = Entropy.seeded(5)
    one, other = (drawn(50, "0.5", entropy) for _ in range(2))
    assert (one != other).any()


@pytest.mark.parametrize("most", [1, 5, 11])
def test_batches_change_nothing_about_the_distribution(monkeypatch, most):
    monkeypatch.setattr(node_values, "_VALUES_AT_ONCE", most)
    assert min(p_values(drawn(150, "0.5", Entropy.seeded(6)), 0.5)) > SEEDED


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_numbers_of_32_bits_serve_as_well_up_to_their_end(dtype):
    low = 2**31 - 10
    assert min(p_values(drawn(4_000, "0.5", Entropy.seeded(7), low, dtype), 0.5)) > SEEDED


@pytest.mark.parametrize("rate", ["1000000", "1e12"])
def test_a_huge_budget_draws_evenly_among_the_most_even_lines_and_no_others(rate):
    lines = drawn(2_000, rate, Entropy.seeded(8))
    for node, histogram in enumerate(NODES):
        uneven = -exponential_logs(histogram, 1.0)
        best = np.isclose(uneven, uneven.min())
        assert p_of_counts(np.bincount(lines[:, node], minlength=len(best)), best / best.sum()) > SEEDED
        assert best[lines[:, node]].all()


@pytest.mark.parametrize("rate", ["1e-9", "1e-30", "1e-320"])
def test_a_tiny_budget_draws_evenly_among_all_lines(rate):
    lines = drawn(4_000, rate, Entropy.seeded(9))
    for node, histogram in enumerate(NODES):
        lengths = len(histogram) - 1
        assert p_of_counts(np.bincount(lines[:, node], minlength=lengths), np.full(lengths, 1 / lengths)) > SEEDED


@pytest.mark.parametrize("width", [2**24, 2**40 + 3, 2**48])
@pytest.mark.parametrize("crowd", [1, 2**50])
def test_wide_nodes_and_large_counts_keep_the_distribution(width, crowd):
    """The records stand at a third of the node and just before its end: three intervals, two of them long."""
    at, copies, rate = width // 3, 5_000, 2.0 / crowd
    one = NodeValues(
        value=np.array([at, width - 2]),
        count=np.array([crowd, 2 * crowd]),
        start=np.array([0, 2]),
        low=np.array([0]),
        high=np.array([width]),
    )
    lines = exponential_medians(tiled(one, copies), Fraction(2, crowd), Entropy.seeded(10))
    assert lines.min() >= 1
    assert lines.max() <= width - 1
    edges = np.array([0, at // 2, at, (at + width) // 2, width - 2, width - 1])
    below = np.array([0, 0, crowd, crowd, 3 * crowd])
    law = np.diff(edges) * np.exp(-rate * (np.abs(below - 1.5 * crowd) - 0.5 * crowd))
    seen = np.bincount(np.searchsorted(edges, lines) - 1, minlength=5)
    assert p_of_counts(seen, law / law.sum()) > SEEDED


NOTHING = np.zeros(0, np.int64)


def test_a_line_is_even_inside_a_long_interval():
    one = NodeValues(value=NOTHING, count=NOTHING, start=np.array([0, 0]), low=np.array([0]), high=np.array([2**48]))
    lines = exponential_medians(tiled(one, 30_000), Fraction(1), Entropy.seeded(11))
    assert p_of_counts(np.bincount(lines >> 43, minlength=32), np.full(32, 1 / 32)) > SEEDED
    assert p_of_counts(np.bincount(lines % 32, minlength=32), np.full(32, 1 / 32)) > SEEDED


def test_a_million_places_in_one_node_and_none_in_its_neighbours():
    rng = np.random.default_rng(12)
    value = np.cumsum(rng.integers(1, 17, 10**6))
    found = NodeValues(
        value=value,
        count=np.ones(10**6, int),
        start=np.array([0, 0, 10**6, 10**6]),
        low=np.array([0, 0, 5]),
        high=np.array([2, 2**24, 7]),
    )
    lines = exponential_medians(found, Fraction(1), Entropy.seeded(12))
    assert lines[[0, 2]].tolist() == [1, 6]
    assert abs(np.searchsorted(value, lines[1]) - 5 * 10**5) < 60


def test_no_nodes_have_no_lines():
    assert exponential_medians(packed([]), Fraction(1), Entropy.seeded(13)).tolist() == []


ADVERSARIAL = [
    (10 ** int(size), Fraction(rate))
    for size, rate in zip([0, 1, 3, 6, 9, 12, 15], ["700", "74", "0.74", "7.1e-4", "7e-7", "6.9e-10", "1e-15"], strict=True)
]


@pytest.mark.parametrize(("crowd", "rate"), ADVERSARIAL)
def test_tickets_cover_the_true_weights_whose_floating_point_error_is_far_below_its_bound(crowd, rate):
    rng = np.random.default_rng(14)
    found = [tuple(rng.integers(0, 3, int(rng.integers(2, 9))).tolist()) for _ in range(60)]
    given = packed(found)
    given = NodeValues(value=given.value * 2**44, count=given.count * crowd, start=given.start, low=given.low, high=given.high * 2**44)
    intervals = medians._intervals(given)
    least = intervals.least(intervals.distance)
    weight, scale, tickets = medians._tickets(intervals, least, rate / 2)
    owner = np.concatenate([np.repeat(np.arange(60), np.diff(intervals.start)), np.arange(60)])
    worst = Decimal(0)
    with localcontext() as context:
        context.prec = 60
        for place in np.flatnonzero(intervals.length > 0).tolist():
            node = int(owner[place])
            steps = rate / 2 * int(intervals.distance[place] - least[node])
            true = (-Decimal(steps.numerator) / steps.denominator).exp() * int(intervals.length[place]) * Decimal(float(scale[node]))
            assert tickets[place] >= true
            assert tickets[place] <= true * (1 + Decimal(2) ** -35) + 1
            if weight[place] > 1e-290:
                worst = max(worst, abs(Decimal(float(weight[place])) * Decimal(float(scale[node])) / true - 1))
    assert worst < Decimal(medians.SLACK) / 8
    assert (tickets[intervals.length == 0] == 0).all()
    assert sum(tickets.tolist()) < 2**62


@pytest.mark.parametrize("copies", [1, 1_000, 70_000])
def test_all_tickets_of_a_call_stay_below_62_bits(copies):
    found = tiled(packed([(0, 0, 3, 0), (1, 0, 1, 9), (0, 0)]), copies)
    intervals = medians._intervals(found)
    tickets = medians._tickets(intervals, intervals.least(intervals.distance), Fraction(1, 10**9))[2]
    assert 2**58 < sum(tickets.tolist()) < 2**62
