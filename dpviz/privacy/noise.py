"""Exact discrete Laplace and discrete Gaussian noise on whole numbers, and their variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.errors import BudgetError, InputError
from dpviz.privacy.budget import PureBudget, ZcdpBudget, exact
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import BASE, Rate, geometric_digit, geometric_start, half_gaussian, rounded_exponential

LARGEST_SCALE = Fraction(10**15)
LARGEST_VARIANCE = Fraction(10**16)
LARGEST_COUNT = 2**60
_NARROW_VARIANCE = 2**20
_COARSEST_RATE = Fraction(1, 64)


def discrete_laplace(counts: Integers, budget: PureBudget, entropy: Entropy, sensitivity: int = 1) -> Integers:
    """Add discrete Laplace noise: P(k) proportional to exp(-epsilon |k| / sensitivity).

    Args:
        counts: (n,) whole counts; one unit changes them by at most `sensitivity` in all (sum of absolute changes).
        budget: spent once for all counts together.
        entropy: where randomness comes from.
        sensitivity: a whole number, at least 1.

    Returns:
        (n,) int64 noisy counts, some of them negative. The law is exact: no floating-point number is involved.

    Raises:
        BudgetError: not a PureBudget, a sensitivity below 1, or a scale sensitivity / epsilon over 1e15.
        InputError: counts that are not whole numbers or exceed 2**60.

    Source:
        Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009. Drawn by
        inversion of base-256 digits, which are independent, in place of the rejection of Canonne, Kamath, Steinke,
        "The discrete Gaussian for differential privacy", NeurIPS 2020, Algorithm 2: the same law, fewer bits. A
        negative zero is drawn again, as there.
    """
    if not isinstance(budget, PureBudget):
        raise BudgetError("Discrete Laplace noise takes a PureBudget(epsilon).")
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int | np.integer) or sensitivity < 1:
        raise BudgetError("The sensitivity must be a whole number, at least 1.")
    scale = int(sensitivity) / budget.epsilon
    if scale > LARGEST_SCALE:
        raise BudgetError("The noise scale sensitivity / epsilon would exceed 1e15; spend a larger epsilon.")
    values = _whole(counts)
    noise = _two_sided(lambda n: geometric(1 / scale, n, entropy), values.size, entropy)
    noise += values
    return noise


def discrete_gaussian(counts: Integers, budget: ZcdpBudget, entropy: Entropy, squared_sensitivity: int | Fraction = 1) -> Integers:
    """Add discrete Gaussian noise: P(k) proportional to exp(-k**2 / (2 variance)), variance = squared_sensitivity / (2 rho).

    Args:
        counts: (n,) whole counts.
        budget: spent once for all counts together.
        entropy: where randomness comes from.
        squared_sensitivity: the largest sum of squared changes that one unit can cause; exact, since its root may be irrational.

    Returns:
        (n,) int64 noisy counts.

    Raises:
        BudgetError: not a ZcdpBudget, a squared sensitivity of 0 or less, or a variance over 1e16.
        InputError: counts that are not whole numbers or exceed 2**60.

    Source:
        Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Theorem 4 (privacy) and
        Algorithm 3 (rejection from the discrete Laplace), for variances above 2**20; below that by inversion of the
        exact probabilities. Above 2**20 the variance is rounded up by at most 2**-50 of itself, towards less budget.
    """
    if not isinstance(budget, ZcdpBudget):
        raise BudgetError("Discrete Gaussian noise takes a ZcdpBudget(rho); ApproxBudget(...).to_zcdp() gives one.")
    squared = exact(squared_sensitivity, "The squared sensitivity")
    if squared <= 0:
        raise BudgetError("The squared sensitivity must be greater than 0.")
    variance = squared / (2 * budget.rho)
    if variance > LARGEST_VARIANCE:
        raise BudgetError("The noise variance squared_sensitivity / (2 rho) would exceed 1e16; spend a larger rho.")
    values = _whole(counts)
    if variance <= _NARROW_VARIANCE:
        return values + _two_sided(lambda n: half_gaussian(variance).draw(n, entropy), values.size, entropy)
    return values + _wide_gaussian(variance, values.size, entropy)


def rounded_laplace(scale: NDArray[np.float64], limit: Integers | int, entropy: Entropy) -> Integers:
    """Continuous Laplace noise rounded to whole numbers, one scale per number: for sensitivities that differ from place to place.

    Rounding is post-processing, so what holds for continuous noise of the same scale holds for this. The law is exact:
    P(|v| >= k) = exp(-(k - 1/2) / scale).

    Args:
        scale: (n,) sensitivity / epsilon of each, above 0.
        limit: (n,) or one: draws are cut to -limit..limit, at most 2**62.
        entropy: where randomness comes from.

    Returns:
        (n,) int64 noise.
    """
    size = rounded_exponential(scale, np.broadcast_to(np.asarray(limit, np.int64), scale.shape), entropy)
    return np.where(entropy.bits(len(scale)), -size, size)


def laplace_variance(scale: Fraction | float) -> float:
    """Variance of discrete Laplace noise, 2 q / (1 - q)**2 with q = exp(-1 / scale); `scale` = sensitivity / epsilon."""
    x = float(min(1 / scale, 700))
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


def gaussian_variance(variance: Fraction | float) -> float:
    """Variance of discrete Gaussian noise with parameter `variance`; equal to it above about 4, less below."""
    parameter = float(variance)
    if parameter > 100:
        return parameter
    k = np.arange(1, 200.0)
    weight = np.exp(-(k**2) / (2 * parameter))
    return float(2 * (k**2 * weight).sum() / (1 + 2 * weight.sum()))


def _whole(counts: Integers) -> Integers:
    array = np.asarray(counts)
    if array.ndim != 1:
        raise InputError("Counts must have one dimension.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError("Exact noise is added to whole numbers; the counts must have an integer dtype.")
    if array.size and not -LARGEST_COUNT <= array.min() <= array.max() <= LARGEST_COUNT:
        raise InputError("Counts must lie within 2**60 of zero.")
    return array.astype(np.int64, copy=False)


def _two_sided(magnitudes: Callable[[int], Integers], n: int, entropy: Entropy) -> Integers:
    """(n,) draws with P(x) proportional to P(magnitude = |x|): a random sign, and a negative zero drawn again."""
    values, negative = magnitudes(n), entropy.bits(n)
    while (again := np.flatnonzero((values == 0) & negative)).size:
        values[again], negative[again] = magnitudes(again.size), entropy.bits(again.size)
    np.negative(values, out=values, where=negative)
    return values


def geometric(rate: Rate, n: int, entropy: Entropy) -> Integers:
    """(n,) geometric numbers, P(v) proportional to exp(-rate v), as independent base-256 digits.

    The leading digit is itself geometric; past 255 it starts again from 256, since a geometric law has no memory.
    """
    values, unit = np.zeros(n, np.int64), 1
    while rate * unit < _COARSEST_RATE:
        values += unit * geometric_digit(rate * unit).draw(n, entropy)
        unit *= BASE
    start = geometric_start(rate * unit)
    leading = start.draw(n, entropy)
    more = np.flatnonzero(leading == BASE)
    while more.size:
        further = start.draw(more.size, entropy)
        leading[more] += further
        more = more[further == BASE]
    return values + unit * leading


def _wide_gaussian(variance: Fraction, n: int, entropy: Entropy) -> Integers:
    """(n,) discrete Gaussian draws for variances above `_NARROW_VARIANCE`, by rejection from a discrete Laplace.

    With variance = a / b, t = floor(sigma) + 1 and D = t**2 b, a proposal Y is accepted with probability
    exp(-(|Y| - a / (b t))**2 b / (2 a)) = exp(-c (g + f)**2), where | |Y| t b - a | = D (g + f), f in [0, 1), c = D / (2 a).
    No square is ever formed, so the largest integer is |Y| t b < 64 t**2 b < 2**62.
    """
    t = math.isqrt(int(variance)) + 1
    b = 1 << (55 - (t * t).bit_length())
    a = math.ceil(variance * b)
    denominator = t * t * b
    values, todo = np.zeros(n, np.int64), np.arange(n)
    while todo.size:
        proposal = _two_sided(lambda k: geometric(Fraction(1, t), k, entropy), todo.size, entropy)
        whole, rest = _distance(np.abs(proposal), t, b, a)
        accepted = _exp_coins(whole, rest, denominator, 2 * a, entropy)
        values[todo[accepted]] = proposal[accepted]
        todo = todo[~accepted]
    return values


def _distance(size: Integers, t: int, b: int, a: int) -> tuple[Integers, Integers]:
    """Quotient and remainder of |size t b - a| by t**2 b; sizes over 60 t (probability e**-60) in Python's integers."""
    whole, rest = np.divmod(np.abs(np.minimum(size, 60 * t) * (t * b) - a), t * t * b)
    for place in np.flatnonzero(size > 60 * t):
        whole[place], rest[place] = divmod(abs(int(size[place]) * t * b - a), t * t * b)
    return whole, rest


def _exp_coins(whole: Integers, rest: Integers, denominator: int, twice_a: int, entropy: Entropy) -> NDArray[np.bool_]:
    """(n,) coins with P(True) = exp(-c (g + f)**2): g**2 trials of exp(-c), 2 g of exp(-c f), one of exp(-c f f).

    Args:
        whole: (n,) g.
        rest: (n,) f times `denominator`.
        denominator: D.
        twice_a: 2 a, so that c = D / (2 a) <= 1.
        entropy: where randomness comes from.
    """
    alive = np.arange(whole.size)
    for factors, trials in ((0, whole * whole), (1, 2 * whole), (2, np.ones_like(whole))):
        done = 0
        while (now := alive[trials[alive] > done]).size:
            failed = now[~_exp_coin(rest[now], factors, denominator, twice_a, entropy)]
            alive = np.setdiff1d(alive, failed, assume_unique=True)
            done += 1
    coins = np.zeros(whole.size, np.bool_)
    coins[alive] = True
    return coins


def _exp_coin(rest: Integers, factors: int, denominator: int, twice_a: int, entropy: Entropy) -> NDArray[np.bool_]:
    """(n,) coins with P(True) = exp(-c f**factors), by von Neumann's alternating series (CKS 2020, Algorithm 1).

    Round k goes on with probability c f**factors / k, the AND of independent coins for c, each f and 1 / k; the
    coin shows True if an odd round was the first to stop.
    """
    coins = np.zeros(rest.size, np.bool_)
    alive, k = np.arange(rest.size), 1
    while alive.size:
        goes_on = entropy.below(twice_a, alive.size) < denominator
        for _ in range(factors):
            goes_on &= entropy.below(denominator, alive.size) < rest[alive]
        if k > 1:
            goes_on &= entropy.below(k, alive.size) == 0
        if k % 2:
            coins[alive[~goes_on]] = True
        alive, k = alive[goes_on], k + 1
    return coins
