"""Inversion by refined integer thresholds: the thresholds, the refinement, the digits and the coins are exact."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.privacy import noise
from dpviz.privacy.budget import ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import BASE, Inversion, geometric_digit, geometric_start, half_gaussian
from tests.laws import SEEDED, exp_minus, p_of_counts, p_value
from tests.often import often

PRECISION = 700
few = settings(max_examples=12, deadline=None, derandomize=True)
fractions = st.builds(lambda digits, power: Fraction(digits) * Fraction(10) ** power, st.integers(1, 10**6), st.integers(-20, 2))


def digit_law(rate: Fraction) -> list[int]:
    """2**PRECISION times the 255 cumulative probabilities of a base-256 digit."""
    whole = (1 << PRECISION) - exp_minus(rate * BASE, PRECISION)
    return [((1 << PRECISION) - exp_minus(rate * (v + 1), PRECISION) << PRECISION) // whole for v in range(BASE - 1)]


def start_law(rate: Fraction) -> list[int]:
    return [(1 << PRECISION) - exp_minus(rate * (v + 1), PRECISION) for v in range(BASE)]


def gaussian_law(variance: Fraction, length: int) -> list[int]:
    """2**PRECISION times the first `length` cumulative probabilities of |X|'s proposal, P(v) proportional to exp(-v**2 / (2 variance))."""
    weights = []
    while not weights or weights[-1]:
        weights.append(exp_minus(Fraction(len(weights) ** 2) / (2 * variance), PRECISION))
    weights += [0] * (length - len(weights))
    total, passed, law = sum(weights), 0, []
    for weight in weights[:length]:
        passed += weight
        law.append((passed << PRECISION) // total)
    return law


def assert_thresholds(edges: list[int], law: list[int], bits: int) -> None:
    """L <= 2**bits c < L + 2 for every threshold, c known to within 2**-400."""
    slack = 1 << (PRECISION - 400)
    for low, share in zip(edges, law, strict=True):
        assert 0 <= low < 2**bits
        assert low << PRECISION <= (share + slack) << bits
        assert (share - slack) << bits < (low + 2) << PRECISION


@pytest.mark.parametrize("bits", [64, 128])
@few
@given(fractions.filter(lambda rate: rate >= Fraction(1, 10**15)))
def test_thresholds_of_geometric_digits_enclose_the_exact_distribution(bits, rate):
    assert_thresholds(geometric_digit(rate).edges(bits), digit_law(rate), bits)


@pytest.mark.parametrize("bits", [64, 128])
@few
@given(fractions)
def test_thresholds_of_the_geometric_start_enclose_the_exact_distribution(bits, rate):
    assert_thresholds(geometric_start(rate).edges(bits), start_law(rate), bits)


@pytest.mark.parametrize("bits", [64, 128])
@few
@given(st.fractions(Fraction(1, 1000), 60, max_denominator=10**6))
def test_thresholds_of_the_half_gaussian_enclose_the_exact_distribution(bits, variance):
    edges = half_gaussian(variance).edges(bits)
    assert_thresholds(edges, gaussian_law(variance, len(edges)), bits)


@pytest.mark.parametrize("rate", ["1e9", "123456789012", "1e30"])
def test_thresholds_exist_for_rates_so_large_that_everything_is_zero(rate):
    assert set(geometric_start(Fraction(rate)).edges(64)) == {2**64 - 1}


def counting(inversion: Inversion) -> list[int]:
    """Count the refinements of an inversion from now on, in the list's only place."""
    refined, times = inversion._refine, [0]

    def wrapped(word: int, entropy: Entropy) -> int:
        times[0] += 1
        return refined(word, entropy)

    inversion._refine = wrapped
    return times


def start_weights(rate: float) -> np.ndarray:
    """(257,) a geometric distribution with everything from 256 on in the last place."""
    return np.append(np.exp(-rate * np.arange(BASE)) * -np.expm1(-rate), np.exp(-rate * BASE))


LAWS = {
    "start": (geometric_start(Fraction(1, 3)).edges, start_weights(1 / 3)),
    "slow start": (geometric_start(Fraction(1, 60)).edges, start_weights(1 / 60)),
    "digit": (geometric_digit(Fraction(1, 100)).edges, np.exp(-np.arange(BASE) / 100)),
    "half-Gaussian": (half_gaussian(Fraction(9)).edges, np.exp(-(np.arange(60.0) ** 2) / 18)),
}


@pytest.mark.parametrize("bits", often([4, 1, 9], 1))
@pytest.mark.parametrize("law", LAWS)
def test_with_few_bits_refinement_is_frequent_and_the_distribution_still_exact(law, bits):
    edges, weight = LAWS[law]
    inversion = Inversion(lru_cache(edges), bits=bits)
    times = counting(inversion)
    draws = inversion.draw(8_000, Entropy.seeded(30))
    assert times[0] > 50
    assert p_of_counts(np.bincount(draws, minlength=len(weight)), weight / weight.sum()) > SEEDED


def test_refinement_goes_on_while_the_draw_is_uncertain():
    half = Fraction(1, 2)
    asked = []

    def edges(bits: int) -> list[int]:
        asked.append(bits)
        return [int(half * 2**bits) - 1]

    inversion = Inversion(edges, bits=2)
    words = iter([1 << 62, 2**64 - 1, 2**64 - 1, 5])

    class Script:
        def words(self, n):
            return np.array([next(words) for _ in range(n)], np.uint64)

    assert inversion.draw(1, Script()).tolist() == [0]
    assert asked == [2, 2, 66, 130, 194]


def test_full_words_are_practically_never_refined():
    inversion = Inversion(geometric_start(Fraction(1, 5)).edges)
    times = counting(inversion)
    inversion.draw(200_000, Entropy.seeded(31))
    assert times == [0]


@pytest.mark.parametrize(("rate", "digits"), [(Fraction(1, 200), 1), (Fraction(1, 1000), 1), (Fraction(1, 30_000), 2)])
def test_the_digits_of_a_geometric_number_have_the_exact_joint_distribution(rate, digits):
    n, unit = 150_000, BASE**digits
    values = noise.geometric(rate, n, Entropy.seeded(32))
    leading, rest = np.minimum(values // unit, 5), values % unit
    part = rest * 16 // unit
    observed = np.bincount(leading * 16 + part, minlength=96)
    step = float(rate) * unit / 16
    share = np.exp(-step * np.arange(96)) * -math.expm1(-step)
    share[80:] = np.exp(-step * 80) * np.exp(-step * np.arange(16)) * -math.expm1(-step) / -math.expm1(-16 * step)
    assert p_of_counts(observed, share) > SEEDED
    low = np.bincount(values % BASE, minlength=BASE)
    assert p_of_counts(low, np.exp(-float(rate) * np.arange(BASE)) * math.expm1(-float(rate)) / math.expm1(-float(rate) * BASE)) > SEEDED


def test_a_geometric_number_past_the_table_starts_again_and_keeps_the_distribution():
    rate = Fraction(1, 60)
    values = noise.geometric(rate, 300_000, Entropy.seeded(33))
    cuts = np.array([200, 240, 255, 256, 257, 270, 300, 400, 511, 512, 513, 600])
    assert (values > 2 * BASE).sum() > 30
    assert p_value(values, lambda k: -np.expm1(-k / 60), cuts) > SEEDED


def frequency_is(coins: np.ndarray, share: float) -> bool:
    return abs(coins.mean() - share) <= 5 * math.sqrt(share * (1 - share) / len(coins)) + 1e-12


@pytest.mark.parametrize("factors", [0, 1, 2])
@pytest.mark.parametrize(
    ("c", "f"),
    [
        (Fraction(1, 2), Fraction(1, 3)),
        (Fraction(1, 1), Fraction(99, 100)),
        (Fraction(9, 10), Fraction(0)),
        (Fraction(1, 50), Fraction(1, 2)),
    ],
)
def test_a_coin_shows_exp_of_minus_c_times_powers_of_f(c, f, factors):
    denominator = 10**6 * c.numerator * f.denominator
    rest = np.full(60_000, int(f * denominator))
    coins = noise._exp_coin(rest, factors, denominator, int(denominator / c), Entropy.seeded(34))
    assert frequency_is(coins, math.exp(-c * f**factors))


@pytest.mark.parametrize(
    ("c", "g", "f"), [("0.5", 0, "0.5"), ("0.5", 1, "0.25"), ("0.4", 2, "0.125"), ("0.5", 0, "0"), ("0.05", 5, "0.75"), ("1", 1, "0")]
)
def test_a_product_of_coins_shows_exp_of_minus_c_times_the_square(c, g, f):
    c, f, denominator = Fraction(c), Fraction(f), 8_000_000
    whole, rest = np.full(60_000, g), np.full(60_000, int(f * denominator))
    coins = noise._exp_coins(whole, rest, denominator, int(denominator / c), Entropy.seeded(35))
    assert frequency_is(coins, math.exp(-c * (g + f) ** 2))


def test_coins_of_different_chances_do_not_mix():
    whole = np.tile([0, 1, 2], 40_000)
    coins = noise._exp_coins(whole, np.zeros_like(whole), 1000, 2000, Entropy.seeded(36)).reshape(-1, 3)
    for place in range(3):
        assert frequency_is(coins[:, place], math.exp(-0.5 * place**2))


def captured(monkeypatch, variance: Fraction) -> tuple[int, int, int, int]:
    """t, b, a and 2 a that a wide Gaussian of a variance works with."""
    seen = []
    distance, coins = noise._distance, noise._exp_coins
    monkeypatch.setattr(noise, "_distance", lambda size, t, b, a: seen.append((t, b, a)) or distance(size, t, b, a))
    monkeypatch.setattr(noise, "_exp_coins", lambda *given: seen.append(given[2:4]) or coins(*given))
    noise.discrete_gaussian(np.zeros(1, np.int64), ZcdpBudget(1 / (2 * variance)), Entropy.seeded(37))
    monkeypatch.undo()
    (t, b, a), (denominator, twice) = seen[:2]
    assert denominator == t * t * b
    return t, b, a, twice


@pytest.mark.parametrize(
    "variance",
    [
        Fraction(2**20) + Fraction(1, 3),
        Fraction("1.1e6"),
        Fraction("1e7") / 7,
        Fraction(2**31),
        Fraction(4**17) - 1,
        Fraction(4**17),
        Fraction("1e12") + Fraction(1, 7),
        Fraction(4**26),
        Fraction("1e16"),
    ],
)
def test_no_product_of_the_wide_gaussian_can_leave_64_bits(monkeypatch, variance):
    t, b, a, twice = captured(monkeypatch, variance)
    assert all(type(value) is int for value in (t, b, a))
    assert t * t > variance
    assert twice == 2 * a < 2**62
    assert 60 * t * t * b + a < 2**62
    assert t * t * b <= 2 * a
    assert variance <= Fraction(a, b) <= variance * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("variance", [Fraction("1.1e6"), Fraction("1e12") + Fraction(1, 7), Fraction("1e16")])
def test_distances_equal_those_of_unbounded_integers_also_past_60_t(monkeypatch, variance):
    t, b, a, _ = captured(monkeypatch, variance)
    sizes = [0, 1, t - 1, t, 7 * t + 3, 60 * t - 1, 60 * t, 60 * t + 1, 61 * t, 1000 * t + 5, 2**62]
    whole, rest = noise._distance(np.array(sizes), t, b, a)
    assert list(zip(whole.tolist(), rest.tolist(), strict=True)) == [divmod(abs(size * t * b - a), t * t * b) for size in sizes]
