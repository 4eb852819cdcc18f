"""Exact draws by inversion: integer thresholds, refined on demand until a draw is certain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.privacy.entropy import Entropy

WORD = 64
BASE = 256


class Inversion:
    """A law on 0, 1, 2, ..., K drawn from its cumulative probabilities c_0 < c_1 < ... < c_(K-1).

    A uniform U in [0, 1) gives the number of thresholds c_v <= U. Of U only the first 64 bits u are drawn. For each
    threshold the table holds an integer L with L <= 2**64 c < L + 2, so u >= L + 2 is certainly past it and u < L
    certainly before it. In the remaining case, of probability 2**-63 per threshold, 64 more bits of U are drawn and the
    thresholds are computed to as many bits, until the draw is certain. So the law is exact, whatever the table's length.

    Attributes:
        edges: gives the K integers L for a number of bits.
        bits: of U drawn first; fewer than 64 only in tests, where refinement must happen often.
    """

    def __init__(self, edges: Callable[[int], list[int]], bits: int = WORD) -> None:
        self.edges, self.bits = edges, bits
        low = edges(bits)
        top = 2**bits - 1
        self._low = np.array([*low, 2**WORD - 1], np.uint64)
        self._high = np.array([edge + 2 for edge in low if edge + 2 <= top], np.uint64)
        self._last = len(low)

    def draw(self, n: int, entropy: Entropy) -> Integers:
        """(n,) independent draws."""
        words = entropy.words(n)
        if self.bits < WORD:
            words = words >> np.uint64(WORD - self.bits)
        values = np.searchsorted(self._high, words, side="right")
        for place in np.flatnonzero(self._low[values] <= words):
            values[place] = self._refined(int(words[place]), entropy)
        return values

    def _refined(self, word: int, entropy: Entropy) -> int:
        bits = self.bits
        while True:
            low = self.edges(bits)
            past = sum(word >= edge + 2 for edge in low)
            if past == sum(word >= edge for edge in low):
                return past
            bits += WORD
            word = word << WORD | int(entropy.words(1)[0])


@contextmanager
def _digits_for(bits: int, terms: int = 1) -> Iterator[Context]:
    """Decimal arithmetic whose errors stay far under 2**-bits after `terms` correctly rounded steps."""
    with localcontext() as context:
        context.prec = int(bits * 0.302) + 40 + len(str(terms))
        context.Emin, context.Emax = MIN_EMIN, MAX_EMAX
        yield context


def _floor(value: Decimal, bits: int) -> int:
    """L with L <= 2**bits c < L + 2, given c to within 2**-bits / 8."""
    scaled = int((value * 2**bits - Decimal("0.25")).to_integral_value(ROUND_FLOOR))
    return min(max(scaled, 0), (1 << bits) - 1)


def exp_minus(x: Fraction) -> Decimal:
    """exp(-x), correctly rounded but for the division (relative error x units in the last place); 0 from x = 1e9 on."""
    return (-Decimal(x.numerator) / Decimal(x.denominator)).exp() if x < 10**9 else Decimal(0)


def coins(share: Floats, slack: float, exactly: Callable[[int], Decimal], entropy: Entropy) -> NDArray[np.bool_]:
    """(n,) independent coins with exact probabilities that floating point knows only nearly.

    Args:
        share: (n,) probabilities of True.
        slack: bound on their relative error, 2**-50 or more.
        exactly: the true probability of one coin to the precision of the decimal context that is then current; asked only if
            the first 64 bits of a uniform number leave the coin open.
        entropy: where randomness comes from.
    """
    words = entropy.words(len(share))
    uniform = words * 2.0**-WORD
    true = uniform < share * (1 - 2 * slack) - 2.0**-60
    for place in np.flatnonzero(~true & (uniform < share * (1 + 2 * slack) + 2.0**-60)):
        true[place] = _decided(int(words[place]), int(place), exactly, entropy)
    return true


def _decided(word: int, place: int, exactly: Callable[[int], Decimal], entropy: Entropy) -> bool:
    """Whether the uniform number that begins with 64 bits `word` is below a probability; more bits are drawn as needed."""
    bits = WORD
    while True:
        with _digits_for(bits):
            edge = exactly(place) * 2**bits
            low, high = (int((edge + step).to_integral_value(ROUND_FLOOR)) for step in (Decimal("-0.25"), Decimal("1.25")))
        if word + 1 <= low or word >= high:
            return word + 1 <= low
        bits += WORD
        word = word << WORD | int(entropy.words(1)[0])


def rounded_exponential(scale: Floats, limit: Integers, entropy: Entropy) -> Integers:
    """(n,) whole numbers floor(1/2 + scale E), E exponential with mean 1, cut to `limit`: P(v >= k) = exp(-(k - 1/2) / scale).

    The law is exact for the scales as they are, which are binary fractions: with U = exp(-E), a draw that the first 64 bits of
    U and floating point leave open is settled by as many digits as it takes.

    Args:
        scale: (n,) above 0.
        limit: (n,) whole, at least 0; up to 2**53, or a power of two up to 2**62.
        entropy: where randomness comes from.
    """
    words = entropy.words(len(scale))
    uniform = (words + 0.5) * 2.0**-WORD
    middle = 0.5 - scale * np.log(uniform)
    error = 2.0**-48 * (middle + scale) + scale * 2.0**-WORD / uniform
    low, high = (np.floor(np.minimum(end, limit)) for end in (middle - error, middle + error))
    values = low.astype(np.int64)
    for place in np.flatnonzero((low != high) | (words < 2**12)):
        values[place] = _rounded(int(words[place]), Fraction(float(scale[place])), int(limit[place]), entropy)
    return np.asarray(np.minimum(values, limit), np.int64)


def _rounded(word: int, scale: Fraction, limit: int, entropy: Entropy) -> int:
    """floor(1/2 - scale ln U), cut to `limit`, for the uniform number U that begins with 64 bits `word`."""
    bits = WORD
    while True:
        with _digits_for(bits):
            factor, whole = Decimal(scale.numerator) / Decimal(scale.denominator), Decimal(2**bits)
            slack = (factor + 1) * Decimal(2) ** -bits
            low = int((Decimal("0.5") - slack - factor * ((word + 1) / whole).ln()).to_integral_value(ROUND_FLOOR))
            high = limit if not word else int((Decimal("0.5") + slack - factor * (word / whole).ln()).to_integral_value(ROUND_FLOOR))
        if min(low, limit) == min(high, limit):
            return max(min(low, limit), 0)
        bits += WORD
        word = word << WORD | int(entropy.words(1)[0])


@dataclass(frozen=True)
class Survival:
    """A rate whose exp(-rate) is the power of a rational number: what a coin that shows True with 1 - base leaves after `power` tosses.

    Attributes:
        base: above 0 and below 1.
        power: at least 1.
    """

    base: Fraction
    power: int = 1

    def __mul__(self, factor: int) -> Survival:
        return Survival(self.base, self.power * factor)

    def __lt__(self, other: Fraction) -> bool:
        return -math.log(self.base) * self.power < other


Rate = Fraction | Survival


def _decay(rate: Rate) -> Decimal:
    """exp(-rate)."""
    if isinstance(rate, Survival):
        return (Decimal(rate.base.numerator) / Decimal(rate.base.denominator)) ** rate.power
    return exp_minus(rate)


@lru_cache(maxsize=512)
def geometric_digit(rate: Rate) -> Inversion:
    """A base-256 digit of a geometric number: P(v) proportional to exp(-rate v) on 0..255."""

    def edges(bits: int) -> list[int]:
        with _digits_for(bits, BASE):
            ratio = _decay(rate)
            whole = 1 - _decay(rate * BASE)
            power, low = Decimal(1), []
            for _ in range(BASE - 1):
                power *= ratio
                low.append(_floor((1 - power) / whole, bits))
            return low

    return Inversion(edges)


@lru_cache(maxsize=512)
def geometric_start(rate: Rate) -> Inversion:
    """A geometric number, P(v) proportional to exp(-rate v) on 0, 1, ...; 256 stands for 256 and more."""

    def edges(bits: int) -> list[int]:
        with _digits_for(bits, BASE):
            ratio, power, low = _decay(rate), Decimal(1), []
            for _ in range(BASE):
                power *= ratio
                low.append(_floor(1 - power, bits))
            return low

    return Inversion(edges)


@lru_cache(maxsize=64)
def half_gaussian(variance: Fraction) -> Inversion:
    """P(v) proportional to exp(-v**2 / (2 variance)) on 0, 1, ...; the table is as long as the bits can see."""

    def edges(bits: int) -> list[int]:
        reach = int((2 * float(variance) * 0.7 * (bits + 8)) ** 0.5) + 2
        with _digits_for(bits, 4 * reach):
            step, power, weight, weights = exp_minus(1 / variance), exp_minus(1 / (2 * variance)), Decimal(1), []
            for _ in range(reach):
                weights.append(weight)
                weight *= power
                power *= step
            total, passed, low = sum(weights), Decimal(0), []
            for weight in weights:
                passed += weight
                low.append(_floor(passed / total, bits))
            return low

    return Inversion(edges)
