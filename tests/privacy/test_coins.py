"""Coins and rounded exponential noise: floating point proposes, digits decide; against decimals on words that were chosen to mislead."""

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpviz.privacy import inversion
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import rounded_exponential, toss_coins
from dpviz.privacy.noise import rounded_laplace
from tests.laws import SEEDED, SYSTEM, p_of_counts, p_value

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
    rng, shares, words, true, asked = np.random.default_rng(1), [], [], [], set()
    for share, chance in chances(rng, slack):
        edge = int(chance * 2**64)
        thresholds = [int(Fraction(max(share * (1 + sign * 2 * slack) + sign * 2.0**-60, 0.0)) * 2**64) for sign in (-1, 1)]
        for word in [*near(edge, rng), *near(thresholds[0], rng), *near(thresholds[1], rng), 0, 2**64 - 1]:
            shares.append(share)
            words.append(word)
            true.append(chance)

    def exactly(place: int) -> Decimal:
        asked.add(place)
        return Decimal(true[place].numerator) / true[place].denominator

    found = toss_coins(np.array(shares), slack, exactly, stream(words, later))
    assert found.tolist() == [heads(word, later, chance) for word, chance in zip(words, true, strict=True)]
    assert 10 < len(asked) < len(words)


def heads(word: int, later: int, chance: Fraction) -> bool:
    """Whether the uniform number that begins with a word and goes on with others is below a chance."""
    bits = 64
    while not (word + 1 <= chance * 2**bits or word >= chance * 2**bits):
        word, bits = word << 64 | later, bits + 64
    return word + 1 <= chance * 2**bits


@pytest.mark.parametrize(("slack", "off"), [(0.3, 1.25), (0.3, 0.75), (2.0**-50, 1.0), (0.0625, 0.95)])
@pytest.mark.parametrize("chance", ["0.03", "1/3", "0.6"])
def test_the_distribution_is_that_of_the_digits_however_far_off_the_proposals_are(chance, slack, off):
    n, true = 4_000, Fraction(chance)
    found = toss_coins(np.full(n, float(true) * off), slack, lambda _: Decimal(true.numerator) / true.denominator, Entropy.seeded(2))
    share = float(true)
    assert p_of_counts(np.bincount(found.astype(int), minlength=2), np.array([1 - share, share])) > SEEDED


def test_a_coin_is_drawn_on_while_its_bits_lie_on_the_edge():
    third = Fraction(1, 3)
    digits = int(third * 2**256)
    on_edge = [digits >> 192, digits >> 128 & 2**64 - 1, digits >> 64 & 2**64 - 1]
    for last, wanted in ((0, True), (2**64 - 1, False)):
        entropy = stream(on_edge, last)
        assert toss_coins(np.array([1 / 3]), 2.0**-50, lambda _: Decimal(1) / 3, entropy).tolist() == [wanted]


def test_a_chance_of_nothing_falls_only_on_tails_and_certainty_on_heads():
    for word in (0, 1, 7, 2**40, 2**64 - 1):
        assert toss_coins(np.zeros(1), 2.0**-38, lambda _: Decimal(0), stream([word], 5)).tolist() == [False]
        assert toss_coins(np.ones(1), 2.0**-38, lambda _: Decimal(1), stream([word], 5)).tolist() == [True]
    assert toss_coins(np.zeros(0), 2.0**-38, lambda _: Decimal(0), stream([0])).tolist() == []


def value_of(word: int, bits: int, scale: float, *, upper: bool) -> int | None:
    """floor(1/2 - scale ln U) at the upper or lower end of what is left of U; None for infinity."""
    if word + upper == 0:
        return None
    with localcontext() as context:
        context.prec = 90
        uniform = Decimal(word + upper) / Decimal(2) ** bits
        return int((Decimal("0.5") - Decimal(scale) * uniform.ln()).to_integral_value(ROUND_FLOOR))


def exact_value(word: int, later: int, scale: float, limit: int) -> int:
    """The value that all digits of U tell."""
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


@pytest.mark.parametrize("scale", SCALES)
def test_values_that_floating_point_settles_hold_whatever_bits_would_follow(monkeypatch, scale):
    monkeypatch.setattr(inversion, "_round_exactly", lambda *_: -1)
    rng = np.random.default_rng(4)
    words = rng.integers(0, 2**64, 150, dtype=np.uint64).tolist()
    words += [int(word) >> int(shift) for word, shift in zip(words, rng.integers(0, 53, 150), strict=True)]
    found = rounded_exponential(np.full(len(words), scale), np.full(len(words), WIDE), stream(words, 5)).tolist()
    settled = [(word, value) for word, value in zip(words, found, strict=True) if value >= 0]
    assert len(settled) > 100
    for word, value in settled:
        assert value_of(word, 64, scale, upper=True) == value_of(word, 64, scale, upper=False) == value


def test_digits_are_hardly_ever_requested_at_ordinary_scales(monkeypatch):
    asked: list[int] = []
    honest = inversion._round_exactly
    monkeypatch.setattr(inversion, "_round_exactly", lambda *given: asked.append(1) or honest(*given))
    for scale in (0.1, 3.7, 1e3, 1e6):
        rounded_exponential(np.full(100_000, scale), np.full(100_000, WIDE), Entropy.seeded(5))
    assert len(asked) < 10


def cuts_of(scale: float, two_sided: bool) -> np.ndarray:
    size = np.ceil(scale * -np.log(np.arange(1, 20) / 20) + 0.5).astype(np.int64)
    return np.unique(np.concatenate([1 - size, size])) if two_sided else np.unique(size)


@pytest.mark.parametrize("kind", ["seeded", "system"])
@pytest.mark.parametrize("scale", SCALES[1:])
def test_rounded_noise_follows_its_exact_distribution_and_no_other(scale, kind):
    entropy, least = (Entropy.seeded(6), SEEDED) if kind == "seeded" else (Entropy.system(), SYSTEM)
    n = 40_000 if scale < 1e8 else 4_000

    def below(k, scale=scale):
        return np.where(k > 0, 1 - 0.5 * np.exp(-(np.maximum(k, 1) - 0.5) / scale), 0.5 * np.exp((np.minimum(k, 0) - 0.5) / scale))

    def one_sided(k, scale=scale):
        return -np.expm1(-(k - 0.5) / scale)

    size, noise = rounded_exponential(np.full(n, scale), np.full(n, WIDE), entropy), rounded_laplace(np.full(n, scale), WIDE, entropy)
    assert p_value(size, one_sided, cuts_of(scale, False)) > least
    assert p_value(noise, below, cuts_of(scale, True)) > least
    for off in (0.7, 1.3):
        assert p_value(size, lambda k, off=off: one_sided(k, scale * off), cuts_of(scale, False)) < 1e-9 or scale < 0.5
        assert p_value(noise, lambda k, off=off: below(k, scale * off), cuts_of(scale, True)) < 1e-9


def test_scales_and_limits_of_their_own_hold_for_each_number_of_a_call():
    copies, scales, limits = 30_000, np.array([0.4, 2.0, 2.0, 9.0, 0.0]), np.array([2**40, 1, 0, 4, 7])
    noise = rounded_laplace(np.tile(scales, copies), np.tile(limits, copies), Entropy.seeded(7)).reshape(copies, 5)
    for place, (scale, limit) in enumerate(zip(scales.tolist(), limits.tolist(), strict=True)):
        reach = min(limit, 12)
        k = np.arange(-reach, reach + 1)
        law = np.where(
            k == 0, -math.expm1(-0.5 / max(scale, 1e-9)), np.exp(-np.abs(k) / max(scale, 1e-9)) * math.sinh(0.5 / max(scale, 0.1))
        )
        if limit:
            law[[0, -1]] = 0.5 * math.exp(-(reach - 0.5) / max(scale, 1e-9))
        seen = np.bincount(np.clip(noise[:, place], -reach, reach) + reach, minlength=2 * reach + 1)
        assert np.abs(noise[:, place]).max() <= limit
        assert p_of_counts(seen, law if limit else np.ones(1)) > SEEDED
    joint = np.bincount((noise[:, 1] + 1) * 3 + np.sign(noise[:, 3]) + 1, minlength=9)
    margin = joint.reshape(3, 3) / copies
    assert p_of_counts(joint, np.outer(margin.sum(1), margin.sum(0)).ravel()) > SEEDED
