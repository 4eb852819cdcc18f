"""Amplification by sampling: exact distributions over all subsamples, the inverse that is never too large, binomial samples."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpviz.errors import BudgetError
from dpviz.privacy import sampling
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import PowerRate, geometric_digit, geometric_start
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.noise import geometric
from dpviz.privacy.sampling import (
    amplified_epsilon,
    amplified_epsilon_in_paper,
    delta_before_sampling,
    epsilon_before_sampling,
    sample_records,
)
from dpviz.privacy.smooth import _xi, smooth_sensitivity
from tests import nodes
from tests.laws import SEEDED, SYSTEM, p_of_counts, p_value
from tests.nodes import Histogram, exponential_logs, packed, smooth_law, tiled, worst_loss

RATES = ["0.02", "0.3", "0.9"]


def subsamples(histogram: Histogram, rate: float) -> list[tuple[Histogram, float]]:
    """Every subsample of a node's records, place by place, and its chance."""

    def chance(kept):
        return math.prod(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k, n in zip(kept, histogram, strict=True))

    return [(kept, chance(kept)) for kept in product(*(range(count + 1) for count in histogram))]


def mixed(histogram: Histogram, rate: float, law) -> np.ndarray:
    """(width - 1,) chances of each line on a random sample."""
    return np.sum([chance * law(each) for each, chance in subsamples(histogram, rate)], axis=0)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_a_median_on_a_sample_loses_at_most_what_was_requested(epsilon, rate, m):
    inner = epsilon_before_sampling(Fraction(epsilon), Fraction(rate), m)
    known = {each: np.exp(exponential_logs(each, float(inner) / m)) for each in nodes.histograms(3, (0, 1, 2))}
    logs = {each: np.log(mixed(each, float(rate), known.__getitem__)) for each in known}
    worst = worst_loss(logs, m)
    assert worst <= float(epsilon) * (1 + 1e-12)
    assert worst > float(epsilon) * 0.4 or Fraction(rate) < Fraction(1, 2)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("3", "1e-2")])
def test_smooth_medians_on_a_sample_keep_epsilon_and_delta(epsilon, delta, m):
    rate = Fraction("0.4")
    inner, inside = epsilon_before_sampling(Fraction(epsilon), rate, m), delta_before_sampling(Fraction(delta), rate, m)
    found = nodes.histograms(3, (0, 1, 2, 3))
    scales = smooth_sensitivity(packed(found), _xi(ApproxBudget(inner, inside), m)) * 2 * m / float(inner)
    known = dict(zip(found, (smooth_law(*pair, "nearest") for pair in zip(found, scales.tolist(), strict=True)), strict=True))
    laws = {each: mixed(each, float(rate), known.__getitem__) for each in found}
    pairs = [(one, other) for one in laws for other in nodes.added(one, m) if other in laws]
    assert max(nodes.hockey_stick(laws[one], laws[other], float(epsilon)) for one, other in pairs) <= float(delta)


rates = st.fractions(Fraction(1, 10**4), Fraction(9999, 10**4), max_denominator=10**6)
epsilons = st.one_of(st.fractions(Fraction(1, 10**6), 40, max_denominator=10**9), st.sampled_from([Fraction(1, 10**15), Fraction(1000)]))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(epsilons, rates, st.integers(1, 5))
def test_what_is_handed_on_is_the_largest_epsilon_that_loses_no_more_on_a_sample(epsilon, rate, m):
    inner = epsilon_before_sampling(epsilon, rate, m)
    share = 1 - (1 - rate) ** m
    assert inner >= epsilon - Fraction(1, 2**64)
    with localcontext() as context:
        context.prec = 560

        def lost(value: Fraction) -> Decimal:
            grown = (Decimal(value.numerator) / value.denominator).exp() - 1
            return (1 + grown * share.numerator / share.denominator).ln()

        wanted = Decimal(epsilon.numerator) / epsilon.denominator
        assert lost(inner) <= wanted
        assert lost(inner + Fraction(101, 100) / 2**64) > wanted
    if epsilon < 30:
        assert amplified_epsilon(float(inner), float(rate), m) == pytest.approx(float(epsilon), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_papers_bound_is_looser(epsilon, rate):
    assert amplified_epsilon_in_paper(epsilon, rate) == pytest.approx(2 * rate * math.exp(epsilon))
    assert amplified_epsilon(epsilon, rate) < amplified_epsilon_in_paper(epsilon, rate)
    assert amplified_epsilon(epsilon, rate, 3) == pytest.approx(amplified_epsilon(epsilon, 1 - (1 - rate) ** 3))
    assert amplified_epsilon(epsilon, 1.0) == pytest.approx(epsilon) == amplified_epsilon(epsilon, 1.0, 3)


def test_the_whole_data_set_hands_on_the_budget_itself_and_rates_out_of_range_are_refused():
    assert epsilon_before_sampling(Fraction("0.3"), Fraction(1)) == Fraction("0.3")
    assert epsilon_before_sampling(Fraction(5000), Fraction(1)) == 5000
    assert delta_before_sampling(Fraction("1e-6"), Fraction(1)) == Fraction("1e-6")
    assert delta_before_sampling(Fraction("1e-6"), Fraction(1, 10)) == Fraction("1e-5")
    assert delta_before_sampling(Fraction("1e-6"), Fraction(1, 2), 2) == Fraction("1e-6") / Fraction(3, 4)
    assert delta_before_sampling(Fraction("0.4"), Fraction(1, 10)) == Fraction(1, 2)
    for rate in (Fraction(0), Fraction(-1), Fraction(11, 10)):
        with pytest.raises(BudgetError, match="one in a million to 1"):
            epsilon_before_sampling(Fraction(1), rate)
    with pytest.raises(BudgetError, match="rate to 1"):
        epsilon_before_sampling(Fraction(1001), Fraction(1, 2))


@pytest.mark.parametrize("rate", ["0.03", "0.5", "0.87", "1/3"])
@pytest.mark.parametrize("kind", ["seeded", "system"])
def test_every_record_is_kept_alone_with_the_chance_that_was_requested(rate, kind):
    """Crowded and lonely places, empty nodes between them, 9,000 copies in one call."""
    found, copies = [(3, 0, 1), (0, 0), (0, 40, 0, 2)], 9_000
    entropy, least = (Entropy.seeded(5), SEEDED) if kind == "seeded" else (Entropy.system(), SYSTEM)
    kept = sample_records(tiled(packed(found, low=2), copies), Fraction(rate), entropy)
    node = np.repeat(np.arange(len(kept)), np.diff(kept.start))
    assert (kept.count >= 1).all()
    assert len(kept) == len(found) * copies
    counts = np.zeros((copies, 3, 4), int)
    counts[node // 3, node % 3, kept.value - 2] = kept.count
    for place in ((0, 0), (0, 2), (2, 1), (2, 3)):
        size = found[place[0]][place[1]]
        law = stats.binom.pmf(np.arange(size + 1), size, float(Fraction(rate)))
        assert p_of_counts(np.bincount(counts[:, *place], minlength=size + 1), law) > least
    chance = float(Fraction(rate))
    assert p_of_counts(np.bincount(counts[:, 2, 1], minlength=41), stats.binom.pmf(np.arange(41), 40, chance * 1.1)) < 1e-9
    joint = np.bincount(counts[:, 0, 0] * 3 + counts[:, 2, 3], minlength=12)
    law = np.outer(stats.binom.pmf(np.arange(4), 3, chance), stats.binom.pmf(np.arange(3), 2, chance))
    assert p_of_counts(joint, law.ravel()) > least


@pytest.mark.parametrize("most", [1, 4, 7, 10**6])
def test_thinning_keeps_order_and_nodes_and_goes_on_across_its_batches(monkeypatch, most):
    monkeypatch.setattr(sampling, "_RECORDS_AT_ONCE", most)
    given = packed([(2, 0, 5, 1), (0, 0), (0, 9)], low=3)
    for seed in range(15):
        kept = sample_records(given, Fraction(1, 2), Entropy.seeded(seed))
        for node in range(3):
            own, whole = slice(*kept.start[node : node + 2]), slice(*given.start[node : node + 2])
            most_of = dict(zip(given.value[whole].tolist(), given.count[whole].tolist(), strict=True))
            assert (np.diff(kept.value[own]) > 0).all()
            assert all(1 <= count <= most_of[value] for value, count in zip(kept.value[own].tolist(), kept.count[own], strict=True))
        assert (kept.low is given.low, kept.high is given.high) == (True, True)
    kept = sample_records(tiled(packed([(0, 3), (1, 0)]), 1_000), Fraction("0.4"), Entropy.seeded(11)).records.reshape(-1, 2)
    law = np.outer(stats.binom.pmf(np.arange(4), 3, 0.4), stats.binom.pmf(np.arange(2), 1, 0.4))
    assert p_of_counts(np.bincount(kept[:, 0] * 2 + kept[:, 1], minlength=8), law.ravel()) > SEEDED


def test_keeping_all_or_nearly_none_and_thinning_nothing():
    given = packed([(2, 0, 5, 1), (0, 0)])
    assert sample_records(given, Fraction(1), Entropy.seeded(1)) is given
    assert sample_records(given, Fraction(1, 10**6), Entropy.seeded(1)).records.tolist() == [0, 0]
    with pytest.raises(BudgetError, match="one in a million"):
        sample_records(given, Fraction(1, 10**7), Entropy.seeded(1))
    assert sample_records(packed([(0, 0)]), Fraction(1, 2), Entropy.seeded(1)).records.tolist() == [0]
    one = (sample_records(packed([(1, 0)]), Fraction(1, 2), Entropy.seeded(seed)).records[0] for seed in range(20))
    assert set(one) == {0, 1}, "the first record of a call has its chance too"
    assert len(sample_records(packed([]), Fraction(1, 2), Entropy.seeded(1))) == 0


@pytest.mark.parametrize("rate", ["0.50000000000000000000000001", "0.00012345678901234567", "1/3"])
def test_huge_counts_cost_no_more_than_their_sample(rate):
    size = int(200_000 / Fraction(rate))
    many = NodeValues(value=np.array([0]), count=np.array([size]), start=np.array([0, 1]), low=np.array([0]), high=np.array([2]))
    kept = int(sample_records(many, Fraction(rate), Entropy.seeded(6)).records[0])
    assert abs(kept - 200_000) < 6 * math.sqrt(200_000)


def test_many_records_per_person_take_no_long_fractions_and_budgets_of_which_nothing_is_left_are_refused():
    assert epsilon_before_sampling(Fraction(1), Fraction(1, 100), 10**9) == pytest.approx(1, abs=1e-15)
    assert epsilon_before_sampling(Fraction(1), Fraction(1, 100), 10**9) <= 1
    exact = 1 - (1 - Fraction(1, 100)) ** 65
    assert 0 <= Fraction("1e-6") / exact - delta_before_sampling(Fraction("1e-6"), Fraction(1, 100), 65) < 1e-50
    with pytest.raises(BudgetError, match="leaves nothing"):
        epsilon_before_sampling(Fraction(1, 10**20), Fraction(1, 2))


def test_two_samples_of_one_stream_and_neighbouring_records_are_independent():
    """The same sample on every level would cost more than its levels say."""
    given, entropy = tiled(packed([(1, 0)]), 30_000), Entropy.seeded(9)
    one, other = (sample_records(given, Fraction(1, 3), entropy).records for _ in range(2))
    for first, second in ((one, other), (one[:-1:2], one[1::2])):
        assert p_of_counts(np.bincount(first * 2 + second, minlength=4), np.outer([2, 1], [2, 1]).ravel() / 9) > SEEDED


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("rate", ["0.000001", "0.003", "1/3", "0.9", "0.99999999999999994"])
def test_thresholds_of_the_steps_to_the_next_record_enclose_the_exact_distribution(rate, bits):
    base = 1 - Fraction(rate)
    with localcontext() as context:
        context.prec = 400
        for power in (1, 256) if base > Fraction(9, 10) else (1,):
            left = (Decimal(base.numerator) / base.denominator) ** power
            for inversion, whole in (
                (geometric_start(PowerRate(base, power)), 1),
                (geometric_digit(PowerRate(base, power)), 1 - left**256),
            ):
                edges = inversion.edges(bits)
                for place in (0, 1, 7, 100, len(edges) - 1):
                    edge = (1 - left ** (place + 1)) / whole * 2**bits
                    assert edges[place] <= edge
                    assert edge < edges[place] + 2 or edges[place] == 2**bits - 1


@pytest.mark.parametrize("rate", ["0.00002", "0.004", "0.3", "0.97"])
def test_steps_to_the_next_record_are_geometric(rate):
    chance = float(Fraction(rate))
    steps = geometric(PowerRate(1 - Fraction(rate)), 40_000, Entropy.seeded(10))
    cuts = np.unique(np.ceil(np.log1p(-np.arange(1, 25) / 25) / math.log1p(-chance)).astype(np.int64))
    for off in (1, 0.9):
        p = p_value(steps, lambda k, off=off: -np.expm1(np.maximum(k, 0) * math.log1p(-chance * off)), cuts)
        assert p > SEEDED if off == 1 else p < 1e-9
