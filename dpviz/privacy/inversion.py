"""Exact samples by inversion: a uniform random number is compared with integer thresholds, with more bits until the result is certain.

Every sampler here follows one pattern. Of a uniform number U in [0, 1) only the first 64 random bits u are known, so it is in the
interval [u, u + 1) / 2**64. A probability, or a threshold, is known only up to a bound on its rounding error. If both intervals
leave only one possible result, that is the result. Otherwise 64 more bits of U are drawn, the threshold is computed to as many more
bits, and the comparison is repeated. The result is the one that the real number U and the real threshold give, so its distribution is
exact: rounding decides only how many bits are needed, never which result is returned.
"""

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
    """A sampler of a distribution on 0, 1, 2, ..., K, given its cumulative probabilities c_0 < c_1 < ... < c_(K-1).

    The sample is the number of thresholds c_v <= U, for U uniform in [0, 1). At first only 64 bits of U are drawn, as an integer u.
    For each threshold c the table holds an integer L with L <= 2**64 c < L + 2. If u >= L + 2, then U is certainly above c. If
    u < L, then U is certainly below it. Otherwise, which has probability 2**-63 per threshold, 64 more bits of U are drawn and the
    thresholds are computed to as many more bits, until every comparison is certain. So the distribution is exact for a table of any
    length.

    Attributes:
        edges: function from a number of bits to the K integers L for that many bits.
        bits: the number of bits of U that are drawn at first. Tests use fewer than 64, so that more bits are often needed.
    """

    def __init__(self, edges: Callable[[int], list[int]], bits: int = WORD) -> None:
        self.edges, self.bits = edges, bits
        low = edges(bits)
        top = 2**bits - 1
        self._low = np.array([*low, 2**WORD - 1], np.uint64)
        self._high = np.array([edge + 2 for edge in low if edge + 2 <= top], np.uint64)
        self._last = len(low)

    def draw(self, n: int, entropy: Entropy) -> Integers:
        """(n,) independent samples."""
        words = entropy.words(n)
        if self.bits < WORD:
            words = words >> np.uint64(WORD - self.bits)
        values = np.searchsorted(self._high, words, side="right")
        for index in np.flatnonzero(self._low[values] <= words):
            values[index] = self._refine(int(words[index]), entropy)
        return values

    def _refine(self, word: int, entropy: Entropy) -> int:
        bits = self.bits
        while True:
            low = self.edges(bits)
            count = sum(word >= edge + 2 for edge in low)
            if count == sum(word >= edge for edge in low):
                return count
            bits += WORD
            word = word << WORD | int(entropy.words(1)[0])


@contextmanager
def _digits_for(bits: int, terms: int = 1) -> Iterator[Context]:
    """Set a decimal precision with which `terms` correctly rounded operations add up to an error far below 2**-bits."""
    with localcontext() as context:
        context.prec = int(bits * 0.302) + 40 + len(str(terms))
        context.Emin, context.Emax = MIN_EMIN, MAX_EMAX
        yield context


def _floor(value: Decimal, bits: int) -> int:
    """The integer L with L <= 2**bits c < L + 2, for a `value` within 2**-bits / 8 of c."""
    scaled = int((value * 2**bits - Decimal("0.25")).to_integral_value(ROUND_FLOOR))
    return min(max(scaled, 0), (1 << bits) - 1)


def exp_minus(x: Fraction) -> Decimal:
    """exp(-x) in the precision of the current decimal context; 0 from x = 1e9 on.

    The exponential is correctly rounded. Only the rounding of x as a decimal adds an error: x units in the last place, relatively.

    Args:
        x: the exponent, at least 0.
    """
    return (-Decimal(x.numerator) / Decimal(x.denominator)).exp() if x < 10**9 else Decimal(0)


def toss_coins(share: Floats, slack: float, exactly: Callable[[int], Decimal], entropy: Entropy) -> NDArray[np.bool_]:
    """(n,) independent coins with exact probabilities, of which only floating-point approximations are given.

    A coin is True if a uniform U is below its probability. If 64 bits of U and the bound on the error do not decide that, `exactly`
    is called and more bits of U are drawn.

    Args:
        share: (n,) approximate probabilities of True.
        slack: bound on their relative error, at least 2**-50.
        exactly: function from the index of a coin to its true probability, in the precision of the current decimal context.
        entropy: source of random bits.

    Returns:
        (n,) True or False.
    """
    words = entropy.words(len(share))
    uniform = words * 2.0**-WORD
    true = uniform < share * (1 - 2 * slack) - 2.0**-60
    for index in np.flatnonzero(~true & (uniform < share * (1 + 2 * slack) + 2.0**-60)):
        true[index] = _decide(int(words[index]), int(index), exactly, entropy)
    return true


def _decide(word: int, index: int, exactly: Callable[[int], Decimal], entropy: Entropy) -> bool:
    """Whether the uniform number that begins with the 64 bits `word` is below the probability of coin `index`; draw bits as needed."""
    bits = WORD
    while True:
        with _digits_for(bits):
            edge = exactly(index) * 2**bits
            low, high = (int((edge + step).to_integral_value(ROUND_FLOOR)) for step in (Decimal("-0.25"), Decimal("1.25")))
        if word + 1 <= low or word >= high:
            return word + 1 <= low
        bits += WORD
        word = word << WORD | int(entropy.words(1)[0])


def rounded_exponential(scale: Floats, limit: Integers, entropy: Entropy) -> Integers:
    """Exponential random numbers, rounded to the nearest whole number: P(v >= k) = exp(-(k - 1/2) / scale) for k >= 1.

    v = floor(1/2 + scale E), where E = -ln U is exponential with mean 1. The distribution is exact for the given floating-point
    scales: if 64 bits of U and floating-point arithmetic do not decide v, more bits of U and more digits are used.

    Args:
        scale: (n,) above 0.
        limit: (n,) larger numbers are cut to this one; whole, at least 0, up to 2**53 or a power of two up to 2**62.
        entropy: source of random bits.

    Returns:
        (n,) whole numbers from 0 to `limit`.
    """
    words = entropy.words(len(scale))
    uniform = (words + 0.5) * 2.0**-WORD
    middle = 0.5 - scale * np.log(uniform)
    error = 2.0**-48 * (middle + scale) + scale * 2.0**-WORD / uniform
    low, high = (np.floor(np.minimum(end, limit)) for end in (middle - error, middle + error))
    values = low.astype(np.int64)
    for index in np.flatnonzero((low != high) | (words < 2**12)):
        values[index] = _round_exactly(int(words[index]), Fraction(float(scale[index])), int(limit[index]), entropy)
    return np.asarray(np.minimum(values, limit), np.int64)


def _round_exactly(word: int, scale: Fraction, limit: int, entropy: Entropy) -> int:
    """floor(1/2 - scale ln U), at most `limit`, for the uniform number U that begins with the 64 bits `word`; draw bits as needed."""
    bits = WORD
    while True:
        with _digits_for(bits):
            factor, denominator = Decimal(scale.numerator) / Decimal(scale.denominator), Decimal(2**bits)
            slack = (factor + 1) * Decimal(2) ** -bits
            low = int((Decimal("0.5") - slack - factor * ((word + 1) / denominator).ln()).to_integral_value(ROUND_FLOOR))
            high = limit if not word else int((Decimal("0.5") + slack - factor * (word / denominator).ln()).to_integral_value(ROUND_FLOOR))
        if min(low, limit) == min(high, limit):
            return max(min(low, limit), 0)
        bits += WORD
        word = word << WORD | int(entropy.words(1)[0])


@dataclass(frozen=True)
class PowerRate:
    """A rate given by its exact exponential: exp(-rate) = base**power.

    That is the probability that `power` tosses of a coin, each True with probability 1 - base, are all False.

    Attributes:
        base: an exact fraction, above 0 and below 1.
        power: a whole number, at least 1.
    """

    base: Fraction
    power: int = 1

    def __mul__(self, factor: int) -> PowerRate:
        return PowerRate(self.base, self.power * factor)

    def __lt__(self, other: Fraction) -> bool:
        return -math.log(self.base) * self.power < other


Rate = Fraction | PowerRate
"""The rate of a geometric distribution, P(v) proportional to exp(-rate v)."""


def _decay(rate: Rate) -> Decimal:
    """exp(-rate)."""
    if isinstance(rate, PowerRate):
        return (Decimal(rate.base.numerator) / Decimal(rate.base.denominator)) ** rate.power
    return exp_minus(rate)


@lru_cache(maxsize=512)
def geometric_digit(rate: Rate) -> Inversion:
    """Sampler of one base-256 digit of a geometric number: P(v) proportional to exp(-rate v) on 0..255."""

    def edges(bits: int) -> list[int]:
        with _digits_for(bits, BASE):
            ratio = _decay(rate)
            total = 1 - _decay(rate * BASE)
            power, low = Decimal(1), []
            for _ in range(BASE - 1):
                power *= ratio
                low.append(_floor((1 - power) / total, bits))
            return low

    return Inversion(edges)


@lru_cache(maxsize=512)
def geometric_start(rate: Rate) -> Inversion:
    """Sampler of a geometric number, P(v) proportional to exp(-rate v) on 0, 1, ...; the result 256 means 256 or more."""

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
    """Sampler of P(v) proportional to exp(-v**2 / (2 variance)) on 0, 1, ...

    The table ends where the probability of all larger numbers is far below 2**-bits. Only with more bits of U can these be the result,
    and then the table is longer.
    """

    def edges(bits: int) -> list[int]:
        reach = int((2 * float(variance) * 0.7 * (bits + 8)) ** 0.5) + 2
        with _digits_for(bits, 4 * reach):
            step, power, weight, weights = exp_minus(1 / variance), exp_minus(1 / (2 * variance)), Decimal(1), []
            for _ in range(reach):
                weights.append(weight)
                weight *= power
                power *= step
            total, cumulative, low = sum(weights), Decimal(0), []
            for weight in weights:
                cumulative += weight
                low.append(_floor(cumulative / total, bits))
            return low

    return Inversion(edges)
