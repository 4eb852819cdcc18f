"""Private medians: exact distributions against all neighbours, planted faults that must show, draws, and extreme sizes."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpviz.errors import BudgetError, SettingError
from dpviz.privacy import inversion, medians, node_values
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import cell_medians, exact_medians, exponential_medians, noisy_mean_medians
from dpviz.privacy.node_values import NodeValues
from tests import nodes
from tests.laws import SEEDED, SYSTEM, p_of_counts
from tests.nodes import Histogram, counted, exponential_logs, packed, tiled, worst_loss
from tests.often import often

TINY = {
    "3 places": nodes.histograms(3, (0, 1, 2, 3, 4, 5)),
    "4 places": nodes.histograms(4, (0, 1, 2, 3)),
    "5 places": nodes.histograms(5, (0, 1, 2)),
    "crowded": nodes.histograms(3, (0, 1, 50, 51, 52, 1000, 1001)),
}
WIDE = nodes.of_records(16, 3)
EPSILONS = (0.01, 1.0, 4.0)


def rates_of(monkeypatch, **settings) -> list[Fraction]:
    """The rates that one call of `exponential_medians` draws with."""
    rates: list[Fraction] = []
    monkeypatch.setattr(medians, "_sample_lines", lambda intervals, rate, entropy: rates.append(rate) or np.ones(1, np.int64))
    exponential_medians(NodeValues.of_one([1], 0, 3), entropy=Entropy.seeded(1), **settings)
    monkeypatch.undo()
    return rates


def sampled_from(found: list[Histogram], rate: float) -> dict[Histogram, np.ndarray]:
    return dict(zip(found, nodes.sampler_logs(packed(found), rate), strict=True))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_line_is_drawn_at_the_rate_that_its_budget_allows(monkeypatch, m):
    epsilon = Fraction("0.7")
    assert rates_of(monkeypatch, epsilon=epsilon, contributions=m) == [epsilon / m / 2]
    assert rates_of(monkeypatch, epsilon=epsilon, contributions=m, exponent="paper") == [epsilon / m / 4]
    with pytest.raises(SettingError, match="exponent must be one of sharp, paper"):
        exponential_medians(packed([(1, 1)]), epsilon, Entropy.seeded(1), exponent="half")


@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize("rate", EPSILONS)
def test_the_samplers_intervals_are_the_distribution_counted_line_by_line(tiny, rate):
    for histogram, logs in sampled_from(TINY[tiny], rate).items():
        np.testing.assert_allclose(logs, nodes.exponential_logs(histogram, rate), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_neighbour_of_a_tiny_node_changes_a_lines_chance_by_more_than_epsilon(tiny, m, epsilon):
    assert worst_loss(sampled_from(TINY[tiny], epsilon / m), m) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "least"), [(0.01, 0.9), (1.0, 0.95), (4.0, 0.98)])
def test_on_fifteen_lines_the_sharp_form_spends_nearly_all_of_epsilon_and_the_papers_half_of_it(epsilon, least):
    assert epsilon * least < worst_loss(sampled_from(WIDE, epsilon)) <= epsilon * (1 + 1e-12)
    assert epsilon / 2 * 0.9 < worst_loss(sampled_from(WIDE, epsilon / 2)) <= epsilon / 2 * (1 + 1e-12)


def test_the_exact_medians_are_middles_of_the_most_even_lines():
    found = [*TINY["5 places"], *TINY["4 places"]]
    for histogram, line in zip(found, exact_medians(packed(found)).tolist(), strict=True):
        uneven = [abs(2 * sum(histogram[:at]) - sum(histogram)) for at in range(1, len(histogram))]
        best = 1 + uneven.index(min(uneven))
        last = best
        while last < len(uneven) and uneven[last] == uneven[best - 1] and not histogram[last]:
            last += 1
        assert line == (best + last) // 2


MEANS = nodes.histograms(4, (0, 1, 2))


@pytest.mark.parametrize("m", [1, 2])
def test_noise_on_sums_and_numbers_covers_every_neighbour_and_the_farthest_record_costs_all_of_epsilon(monkeypatch, m):
    epsilon, scales, rates = Fraction("1.5"), [], []

    def number(counts, budget, entropy, sensitivity=1):
        rates.append(budget.epsilon / sensitivity)
        return counts

    monkeypatch.setattr(medians, "rounded_laplace", lambda scale, *_: scales.append(scale.tolist()) or np.zeros(len(scale), int))
    monkeypatch.setattr(medians, "discrete_laplace", number)
    noisy_mean_medians(packed(MEANS), epsilon, Entropy.seeded(1), m)
    monkeypatch.undo()
    assert len(scales) == 1
    assert rates == [epsilon / 2 / m]
    assert all(scale >= 2 * m * 3 / epsilon for scale in map(Fraction, scales[0]))
    assert scales[0][0] == pytest.approx(2 * m * 3 / epsilon, rel=1e-14)
    sums = dict(zip(MEANS, medians._sum_values(packed(MEANS, low=7)).tolist(), strict=True))
    worst = Fraction(0)
    for one in MEANS:
        assert sums[one] == sum(place * count for place, count in enumerate(one))
        for other in nodes.added(one, m):
            if other in sums:
                records = sum(other) - sum(one)
                worst = max(worst, abs(sums[other] - sums[one]) / Fraction(scales[0][0]) + records * rates[0])
    assert epsilon * Fraction("0.999999999999") < worst <= epsilon


def line_law(histogram: Histogram, scale: float, rate: float, outside: str, low: int = 0, far: int = 170) -> np.ndarray:
    """(width - 1,) chances of noisy-mean lines for the stated noise."""
    width, noise = len(histogram), np.arange(-far, far + 1)
    tails = 0.5 * np.exp(-(np.arange(1, far + 2) - 0.5) / scale)
    size = np.concatenate([[1 - math.exp(-0.5 / scale)], tails[:-1] - tails[1:]])
    number = np.exp(-rate * np.abs(noise)) * math.tanh(rate / 2)
    sums = sum(place * count for place, count in enumerate(histogram)) + noise
    records = sum(histogram) + noise
    mean = np.rint(np.clip(low + sums[:, None] / np.maximum(records, 1) + 0.5, -1, low + width + 1)) - low
    line = np.where(records < 1, width // 2, mean).astype(int)
    inside = np.clip(line, 1, width - 1)
    line = np.where((inside != line) & (outside == "middle"), width // 2, inside)
    weight = size[np.abs(noise)][:, None] * number
    return np.bincount(line.ravel(), weight.ravel(), minlength=width)[1:]


@pytest.mark.parametrize("outside", ["nearest", "middle"])
def test_noisy_means_are_drawn_from_that_distribution(outside):
    found, copies, epsilon = [(1, 0, 2, 0), (0, 0, 0, 0), (0, 9, 0, 1), (0, 0, 0, 3)], 15_000, 1.2
    draws = noisy_mean_medians(tiled(packed(found, low=5), copies), Fraction("1.2"), Entropy.seeded(3), outside=outside) - 6
    seen = [np.bincount(draws[node :: len(found)], minlength=3) for node in range(len(found))]
    for off in (1, 1.3, 0.7):
        laws = [line_law(each, 6 / epsilon * off, epsilon / 2 / off, outside, 5) for each in found]
        p_values = [p_of_counts(*pair) for pair in zip(seen, laws, strict=True)]
        assert min(p_values) > SEEDED if off == 1 else min(p_values) < 1e-9


def test_sums_that_reach_the_ends_of_their_noise_do_not_shine_through(monkeypatch):
    """At such small budgets noise is nearly always cut; a cut sum once revealed the true one."""
    monkeypatch.setattr(medians, "discrete_laplace", lambda counts, *_: np.full(len(counts), 2**14))
    lines = [
        noisy_mean_medians(NodeValues.of_one([at], 0, 2**48), Fraction(1, 10**12), Entropy.seeded(seed))[0]
        for at in (0, 2**48 - 1)
        for seed in range(20)
    ]
    assert lines[:20] == lines[20:]


def test_sums_stay_exact_to_2_to_the_60_and_are_cut_there():
    values, count = np.tile([2**30, 2**48 - 2], 100), np.tile([1, 2**11], 100)
    found = NodeValues(value=values, count=count, start=np.arange(0, 201, 2), low=np.zeros(100, int), high=np.full(100, 2**48))
    assert medians._sum_values(found).tolist() == [2**30 + (2**48 - 2) * 2**11] * 100, "their running total leaves 64 bits"
    for place in (0, 2**47, 2**48 - 1):
        for records in (1, 2**12, 2**13, 2**15 + 1, 2**52):
            count, start, low, high = np.array([records, 5]), np.array([0, 1, 2]), np.zeros(2, int), np.full(2, 2**48)
            huge = NodeValues(value=np.array([place, 3]), count=count, start=start, low=low, high=high)
            assert medians._sum_values(huge).tolist() == [min(place * records, 2**60), 15]


def test_cell_medians_take_the_most_even_line_of_the_grid_and_the_middle_without_one():
    rng = np.random.default_rng(4)
    sizes = rng.integers(0, 5, 300)
    start = np.concatenate([[0], np.cumsum(sizes)])
    low = rng.integers(0, 50, 300)
    high = low + 10 * (sizes + 1)
    line = np.concatenate([np.zeros(0, int), *(np.arange(1, size + 1) * 10 + at for size, at in zip(sizes, low, strict=True))])
    below, total = rng.integers(-5, 12, start[-1]).astype(float), rng.integers(-6, 20, 300).astype(float)
    chosen = cell_medians((low, high), start, line, below, total)
    for node in range(300):
        own = slice(start[node], start[node + 1])
        uneven = [abs(2 * each - total[node]) for each in below[own]]
        assert chosen[node] == (line[own][uneven.index(min(uneven))] if uneven else (low[node] + high[node]) // 2)


def test_other_places_for_lines_outside_and_vanishing_budgets_are_refused():
    for options, error, words in (
        ({"epsilon": Fraction(1), "outside": "nowhere"}, SettingError, "outside must be one of nearest, middle"),
        ({"epsilon": Fraction(1, 10**16)}, BudgetError, "1e15"),
    ):
        with pytest.raises(error, match=words):
            noisy_mean_medians(packed([(1, 1)]), entropy=Entropy.seeded(1), **options)


NODES = [(0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 3), (0, 0, 5, 0, 0, 0), (2, 1), (7, 0, 0, 1, 0, 0, 0, 0, 2), (30, 0, 0, 25, 0)]
NODES += [(1, 1, 1, 1, 1, 1, 40)]
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


@pytest.mark.parametrize(("copies", "kind"), often([(20_000, "seeded"), (20_000, "system"), (500_000, "system")], 2))
@pytest.mark.parametrize("rate", ["0.05", "0.5", "3"])
def test_interleaved_nodes_of_one_call_follow_their_exact_distributions_and_no_others(monkeypatch, rate, copies, kind):
    times = counted(monkeypatch, inversion, "_decide")
    lines = drawn(copies, rate, Entropy.seeded(1) if kind == "seeded" else Entropy.system())
    assert min(p_values(lines, float(rate))) > (SEEDED if kind == "seeded" else SYSTEM)
    for off in (1.3, 0.7) if copies < 10**5 else (1.05,):
        assert min(p_values(lines, float(rate) * off)) < 1e-9
    assert times[0] < 3, "digits practically never decide a coin"


@pytest.mark.parametrize("rate", ["0.05", "0.5", "3"])
def test_the_distribution_stays_exact_where_digits_decide_most_coins(monkeypatch, rate):
    times = counted(monkeypatch, inversion, "_decide")
    monkeypatch.setattr(medians, "SLACK", 0.3)
    lines = drawn(1_500, rate, Entropy.seeded(2))
    assert times[0] > 1_500
    assert min(p_values(lines, float(rate))) > SEEDED


def test_lines_of_different_nodes_in_one_call_are_independent():
    """One draw shared by nodes would leave every single distribution as it is and yet reveal everything."""
    entropy = Entropy.seeded(4)
    lines = drawn(30_000, "0.5", entropy).ravel()
    for one, other, step in ((4, 5, 1), (2, 4, 2), (4, 4, 7), (6, 6, 21)):
        laws = [np.exp(exponential_logs(NODES[node], 0.5)) for node in (one, other)]
        second = lines[one + step :: len(NODES)]
        first = lines[one :: len(NODES)][: len(second)]
        joint = np.bincount(first * len(laws[1]) + second, minlength=len(laws[0]) * len(laws[1]))
        assert p_of_counts(joint, np.outer(*laws).ravel()) > SEEDED
    assert (drawn(50, "0.5", entropy).ravel() != lines[: 50 * len(NODES)]).any(), "nor do two calls on one stream draw the same"


@pytest.mark.parametrize(("most", "low", "dtype"), [(1, 3, np.int64), (5, 3, np.int64), (10**6, 2**31 - 10, np.int32)])
def test_batches_and_32_bits_change_nothing_about_the_distribution(monkeypatch, most, low, dtype):
    monkeypatch.setattr(node_values, "_VALUES_AT_ONCE", most)
    assert min(p_values(drawn(60 if most < 10 else 4_000, "0.5", Entropy.seeded(6), low, dtype), 0.5)) > SEEDED


@pytest.mark.parametrize("rate", ["1e12", "1000000", "1e-9", "1e-30", "1e-320"])
def test_huge_budgets_draw_evenly_among_the_most_even_lines_and_tiny_ones_among_all(rate):
    lines = drawn(4_000, rate, Entropy.seeded(8))
    assert min(p_values(lines, float(rate))) > SEEDED
    for own, histogram in zip(lines.T, NODES, strict=True):
        assert np.exp(exponential_logs(histogram, float(rate)))[own].all()


@pytest.mark.parametrize("width", [2**24, 2**40 + 3, 2**48])
@pytest.mark.parametrize("crowd", [1, 2**50])
def test_wide_nodes_and_large_counts_keep_the_distribution(width, crowd):
    """The records are at a third of the node and just before its end: three intervals, two of them long."""
    at = width // 3
    one = NodeValues(
        value=np.array([at, width - 2]),
        count=np.array([crowd, 2 * crowd]),
        start=np.array([0, 2]),
        low=np.zeros(1, int),
        high=np.array([width]),
    )
    lines = exponential_medians(tiled(one, 5_000), Fraction(2, crowd), Entropy.seeded(10))
    assert 1 <= lines.min() <= lines.max() <= width - 1
    edges = np.array([0, at // 2, at, (at + width) // 2, width - 2, width - 1])
    law = np.diff(edges) * np.exp(-2 * (np.abs(np.array([0, 0, 1, 1, 3]) - 1.5) - 0.5))
    seen = np.bincount(np.searchsorted(edges, lines) - 1, minlength=5)
    assert p_of_counts(seen, law / law.sum()) > SEEDED


def test_a_line_is_even_inside_a_long_interval_and_no_nodes_have_no_lines():
    one = NodeValues.of_one([], 0, 2**48)
    lines = exponential_medians(tiled(one, 30_000), Fraction(1), Entropy.seeded(11))
    assert p_of_counts(np.bincount(lines >> 43, minlength=32), np.full(32, 1 / 32)) > SEEDED
    assert p_of_counts(np.bincount(lines % 32, minlength=32), np.full(32, 1 / 32)) > SEEDED
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
    intervals = medians._make_intervals(given)
    least = intervals.least(intervals.distance)
    weight, scale, tickets = medians._compute_tickets(intervals, least, rate / 2)
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
    intervals = medians._make_intervals(found)
    tickets = medians._compute_tickets(intervals, intervals.least(intervals.distance), Fraction(1, 10**9))[2]
    assert 2**58 < sum(tickets.tolist()) < 2**62
