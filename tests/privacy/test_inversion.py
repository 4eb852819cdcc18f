"""Inversion by refined integer thresholds and by logarithms, and coins: floating point proposes, digits decide, every law is exact."""

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpviz.privacy import inversion, noise
from dpviz.privacy.budget import ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import BASE, Inversion, geometric_digit, geometric_start, half_gaussian, rounded_exponential, toss_coins
from dpviz.privacy.noise import rounded_laplace
from tests.laws import SEEDED, SYSTEM, exp_minus, p_of_counts, p_value
from tests.nodes import counted, scripted, smooth_law
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


@pytest.mark.parametrize("bits", often([128, 64], 1))
@few
@given(fractions)
@example(Fraction("1e9"))
@example(Fraction("1e30"))
def test_thresholds_of_geometric_starts_and_digits_enclose_the_exact_distribution(bits, rate):
    assert_thresholds(geometric_start(rate).edges(bits), start_law(rate), bits)
    if rate >= Fraction(1, 10**15):
        assert_thresholds(geometric_digit(rate).edges(bits), digit_law(rate), bits)


@pytest.mark.parametrize("bits", [64, 128])
@few
@given(st.fractions(Fraction(1, 1000), 60, max_denominator=10**6))
def test_thresholds_of_the_half_gaussian_enclose_the_exact_distribution(bits, variance):
    edges = half_gaussian(variance).edges(bits)
    assert_thresholds(edges, gaussian_law(variance, len(edges)), bits)


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
def test_with_few_bits_refinement_is_frequent_and_the_distribution_still_exact(monkeypatch, law, bits):
    edges, weight = LAWS[law]
    drawer = Inversion(lru_cache(edges), bits=bits)
    times = counted(monkeypatch, Inversion, "_refine")
    draws = drawer.draw(5_000, Entropy.seeded(30))
    assert times[0] > 50
    assert p_of_counts(np.bincount(draws, minlength=len(weight)), weight / weight.sum()) > SEEDED


def test_refinement_goes_on_while_the_draw_is_uncertain():
    requested = []

    def edges(bits: int) -> list[int]:
        requested.append(bits)
        return [2 ** (bits - 1) - 1]

    assert Inversion(edges, bits=2).draw(1, scripted(1 << 62, 2**64 - 1, 2**64 - 1, 5)).tolist() == [0]
    assert requested == [2, 2, 66, 130, 194]


def test_full_words_are_practically_never_refined_nor_digits_requested_at_ordinary_scales(monkeypatch):
    times = counted(monkeypatch, Inversion, "_refine")
    Inversion(geometric_start(Fraction(1, 5)).edges).draw(200_000, Entropy.seeded(31))
    assert times == [0]
    times = counted(monkeypatch, inversion, "_round_exactly")
    for scale in (0.1, 3.7, 1e3, 1e6):
        rounded_exponential(np.full(100_000, scale), np.full(100_000, WIDE), Entropy.seeded(5))
    assert times[0] < 10


@pytest.mark.parametrize("rate", [1 / 200, 1 / 1000, 1 / 30_000])
def test_each_digit_of_a_geometric_number_has_the_exact_distribution(rate):
    values = noise.geometric(Fraction(rate), 100_000, Entropy.seeded(32))
    for place in range(3):
        step = rate * BASE**place
        law = np.exp(-step * np.arange(BASE)) * math.expm1(-step) / math.expm1(-step * BASE)
        assert p_of_counts(np.bincount(values // BASE**place % BASE, minlength=BASE), law) > SEEDED


def frequency_is(coins: np.ndarray, share: float) -> bool:
    return abs(coins.mean() - share) <= 5 * math.sqrt(share * (1 - share) / len(coins)) + 1e-12


SQUARED = [(0, 0), (0, 0.5), (1, 0), (1, 0.25), (2, 0.125), (3, 0.75)]


@pytest.mark.parametrize("c", ["1", "0.4", "0.05"])
def test_coins_of_one_call_each_show_exp_of_minus_c_times_the_square_of_their_own_number(c):
    c, denominator = Fraction(c), 8_000_000
    whole, rest = (np.tile(part, 60_000) for part in zip(*SQUARED, strict=True))
    rest = (rest * denominator).astype(np.int64)
    coins = noise._exp_coins(whole, rest, denominator, int(denominator / c), Entropy.seeded(35)).reshape(-1, len(SQUARED))
    for place, (g, f) in enumerate(SQUARED):
        assert frequency_is(coins[:, place], math.exp(-c * (g + f) ** 2))


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


WIDE_VARIANCES = [Fraction("1.1e6"), Fraction("1e12") + Fraction(1, 7), Fraction("1e16"), Fraction(2**20) + Fraction(1, 3)]
WIDE_VARIANCES += [Fraction("1e7") / 7, Fraction(2**31), Fraction(4**17) - 1, Fraction(4**17), Fraction(4**26)]


@pytest.mark.parametrize("variance", WIDE_VARIANCES)
def test_no_product_of_the_wide_gaussian_can_leave_64_bits_and_distances_are_those_of_unbounded_integers(monkeypatch, variance):
    t, b, a, twice = captured(monkeypatch, variance)
    assert all(type(value) is int for value in (t, b, a))
    assert t * t > variance
    assert twice == 2 * a < 2**62
    assert 60 * t * t * b + a < 2**62
    assert t * t * b <= 2 * a
    assert variance <= Fraction(a, b) <= variance * (1 + Fraction(1, 2**50))
    sizes = [0, 1, t - 1, t, 7 * t + 3, 60 * t - 1, 60 * t, 60 * t + 1, 61 * t, 1000 * t + 5, 2**62]
    whole, rest = noise._distance(np.array(sizes), t, b, a)
    assert list(zip(whole.tolist(), rest.tolist(), strict=True)) == [divmod(abs(size * t * b - a), t * t * b) for size in sizes]


SCALES = [1e-3, 0.1, 0.7, 3.7, 41.0, 1e3, 1e6, 1e9, 2.0**40 + 0.3]
WIDE = 2**61


LATER = (1, 2**64 - 2, 0x9E3779B97F4A7C15)
"""Words that follow an undecided one; always the same, since it does not matter then who needs how many."""


def stream(words: list[int], *later: int) -> Entropy:
    """A stream of chosen words; its last word is repeated without end."""
    left = [*words, *later]

    def draw(n: int) -> np.ndarray:
        return np.array([left.pop(0) if len(left) > 1 else left[0] for _ in range(n)], np.uint64)

    return Entropy._make(draw, None)


def near(centre: int, rng: np.random.Generator) -> list[int]:
    """Words around one that lies on an edge, as far as 53 bits can be off and farther."""
    steps = [0, 1, -1, 2, -2, *(int(sign * 2**power) for sign in (1, -1) for power in rng.uniform(2, 60, 12))]
    return [min(max(centre + step, 0), 2**64 - 1) for step in steps]


def chances(rng: np.random.Generator, slack: float) -> list[tuple[float, Fraction]]:
    """Floating-point shares, and the true ones that they stand for with a relative error of at most `slack`."""
    shares = [*rng.random(12), *10.0 ** -rng.uniform(1, 30, 8), 1e-300, 0.0, 0.5, 1 - 2**-53]
    off = [Fraction(float(each)) for each in rng.choice([-1.0, 1.0, 0.3], len(shares)) * slack]
    return [(share, min(Fraction(share) * (1 + each), Fraction(1))) for share, each in zip(map(float, shares), off, strict=True)]


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("slack", [2.0**-50, 2.0**-38, 2.0**-10, 0.25])
def test_no_coin_ever_contradicts_the_exact_comparison_with_its_probability(slack, later):
    rng, shares, words, true, refined = np.random.default_rng(1), [], [], [], set()
    for share, chance in chances(rng, slack):
        edge = int(chance * 2**64)
        thresholds = [int(Fraction(max(share * (1 + sign * 2 * slack) + sign * 2.0**-60, 0.0)) * 2**64) for sign in (-1, 1)]
        for word in [*near(edge, rng), *near(thresholds[0], rng), *near(thresholds[1], rng), 0, 2**64 - 1]:
            shares.append(share)
            words.append(word)
            true.append(chance)

    def exactly(place: int) -> Decimal:
        refined.add(place)
        return Decimal(true[place].numerator) / true[place].denominator

    found = toss_coins(np.array(shares), slack, exactly, stream(words, later))
    assert found.tolist() == [heads(word, later, chance) for word, chance in zip(words, true, strict=True)]
    assert 10 < len(refined) < len(words)


def heads(word: int, later: int, chance: Fraction) -> bool:
    """Whether the uniform number that begins with a word and goes on with others is below a chance."""
    bits = 64
    while not (word + 1 <= chance * 2**bits or word >= chance * 2**bits):
        word, bits = word << 64 | later, bits + 64
    return word + 1 <= chance * 2**bits


def test_a_coin_is_drawn_on_while_its_bits_lie_on_the_edge_and_certainty_needs_no_luck():
    digits = 2**256 // 3
    on_edge = [digits >> 192, digits >> 128 & 2**64 - 1, digits >> 64 & 2**64 - 1]
    for last, wanted in ((0, True), (2**64 - 1, False)):
        entropy = stream(on_edge, last)
        assert toss_coins(np.array([1 / 3]), 2.0**-50, lambda _: Decimal(1) / 3, entropy).tolist() == [wanted]
    for word in (0, 1, 7, 2**40, 2**64 - 1):
        assert toss_coins(np.zeros(1), 2.0**-38, lambda _: Decimal(0), stream([word], 5)).tolist() == [False]
        assert toss_coins(np.ones(1), 2.0**-38, lambda _: Decimal(1), stream([word], 5)).tolist() == [True]


def value_of(word: int, bits: int, scale: float, *, upper: bool) -> int | None:
    """floor(1/2 - scale ln U) at the upper or lower end of what is left of U; None for infinity."""
    if word + upper == 0:
        return None
    with localcontext() as context:
        context.prec = 90
        uniform = Decimal(word + upper) / Decimal(2) ** bits
        return int((Decimal("0.5") - Decimal(scale) * uniform.ln()).to_integral_value(ROUND_FLOOR))


def exact_value(word: int, later: int, scale: float, limit: int) -> int:
    """The value by all digits of U."""
    bits = 64
    while True:
        low, high = (value_of(word, bits, scale, upper=upper) for upper in (True, False))
        if min(low, limit) == (limit if high is None else min(high, limit)):
            return min(low, limit)
        word, bits = word << 64 | later, bits + 64


@pytest.mark.parametrize("limit", [WIDE, 3, 0])
@pytest.mark.parametrize(("scale", "later"), [(scale, LATER[place % 3]) for place, scale in enumerate(SCALES)])
def test_rounded_exponential_numbers_are_those_of_decimals_on_words_near_every_edge(scale, later, limit):
    rng = np.random.default_rng(3)
    words = [0, 1, 2, 4095, 4096, 4097, 2**64 - 1, 2**64 - 2, *rng.integers(0, 2**64, 20, dtype=np.uint64).tolist()]
    steps = np.unique([1, 2, 3, *(rng.exponential(scale, 6) + 1).astype(np.int64)])
    for step in steps.tolist():
        with localcontext() as context:
            context.prec = 60
            edge = int((-(Decimal(step) - Decimal("0.5")) / Decimal(scale)).exp() * 2**64)
        words += near(edge, rng)
    found = rounded_exponential(np.full(len(words), scale), np.full(len(words), limit), stream(words, later))
    assert found.tolist() == [exact_value(word, later, scale, limit) for word in words]


@pytest.mark.parametrize("kind", ["seeded", "system"])
@pytest.mark.parametrize("scale", SCALES[1:])
def test_rounded_noise_follows_its_exact_distribution_and_no_other(scale, kind):
    entropy, least = (Entropy.seeded(6), SEEDED) if kind == "seeded" else (Entropy.system(), SYSTEM)
    n = 40_000 if scale < 1e8 else 4_000

    def below(k, scale):
        return np.where(k > 0, 1 - 0.5 * np.exp(-(np.maximum(k, 1) - 0.5) / scale), 0.5 * np.exp((np.minimum(k, 0) - 0.5) / scale))

    size = np.ceil(scale * -np.log(np.arange(1, 20) / 20) + 0.5).astype(np.int64)
    cuts = np.unique(np.concatenate([1 - size, size]))
    found = rounded_laplace(np.full(n, scale), WIDE, entropy)
    assert p_value(found, lambda k: below(k, scale), cuts) > least
    for off in (0.7, 1.3):
        assert p_value(found, lambda k, off=off: below(k, scale * off), cuts) < 1e-9


def test_scales_and_limits_of_their_own_hold_for_each_number_of_a_call():
    copies, scales, limits = 30_000, [0.4, 2.0, 2.0, 9.0, 1e-9], [2**40, 1, 0, 4, 7]
    noise = rounded_laplace(np.tile(scales, copies), np.tile(limits, copies), Entropy.seeded(7)).reshape(copies, 5)
    for own, scale, limit in zip(noise.T, scales, limits, strict=True):
        assert np.abs(own).max() <= limit
        reach = min(limit, 12)
        law = smooth_law((*[0] * reach, 1, *[0] * (reach + 1)), scale, "nearest")
        assert p_of_counts(np.bincount(np.clip(own, -reach, reach) + reach, minlength=2 * reach + 1), law) > SEEDED
    margin = np.bincount((noise[:, 1] + 1) * 3 + np.sign(noise[:, 3]) + 1, minlength=9).reshape(3, 3)
    assert p_of_counts(margin.ravel(), np.outer(margin.sum(1), margin.sum(0)).ravel() / copies**2) > SEEDED
