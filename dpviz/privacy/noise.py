"""Exact discrete Laplace and discrete Gaussian noise on whole numbers, and the variance of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.errors import BudgetError, InputError
from dpviz.privacy.budget import PureBudget, ZcdpBudget, exact
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.inversion import BASE, Rate, geometric_digit, geometric_start, half_gaussian, rounded_exponential

LARGEST_SCALE = Fraction(10**15)
LARGEST_VARIANCE = Fraction(10**16)
LARGEST_COUNT = 2**60
_NARROW_VARIANCE = 2**20
_COARSEST_RATE = Fraction(1, 64)


def discrete_laplace(counts: Integers, budget: PureBudget, entropy: Entropy, sensitivity: int = 1) -> Integers:
    """Add discrete Laplace noise: P(k) proportional to exp(-epsilon |k| / sensitivity).

    Args:
        counts: (n,) whole counts, within 2**60 of 0. One unit changes them by at most `sensitivity` in all (sum of absolute changes).
        budget: spent once for all counts together.
        entropy: source of random bits.
        sensitivity: a whole number, at least 1.

    Returns:
        (n,) int64 noisy counts; they may be negative. The distribution is exact: no floating-point number is involved.

    Raises:
        BudgetError: the budget is not a PureBudget, the sensitivity is below 1, or the scale sensitivity / epsilon is over 1e15.
        InputError: a count is not a whole number or exceeds 2**60.
        SettingError: `entropy` is no stream.

    Source:
        Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009. The magnitude is sampled
        by inversion of its independent base-256 digits. Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy",
        NeurIPS 2020, Algorithm 2, use rejection instead: the same distribution from more random bits. As there, a negative zero is
        drawn again.

    >>> discrete_laplace(np.array([100, 0, 7]), PureBudget(1), Entropy.seeded(1)).tolist()
    [105, -1, 6]
    """
    require_entropy(entropy)
    if not isinstance(budget, PureBudget):
        raise BudgetError("Discrete Laplace noise takes a PureBudget(epsilon).")
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int | np.integer) or sensitivity < 1:
        raise BudgetError("The sensitivity must be a whole number, at least 1.")
    scale = int(sensitivity) / budget.epsilon
    if scale > LARGEST_SCALE:
        raise BudgetError("The noise scale sensitivity / epsilon would exceed 1e15; spend a larger epsilon.")
    values = check_whole(counts)
    noise = _two_sided(lambda n: geometric(1 / scale, n, entropy), values.size, entropy)
    noise += values
    return noise


def discrete_gaussian(counts: Integers, budget: ZcdpBudget, entropy: Entropy, squared_sensitivity: int | Fraction = 1) -> Integers:
    """Add discrete Gaussian noise: P(k) proportional to exp(-k**2 / (2 variance)), variance = squared_sensitivity / (2 rho).

    Args:
        counts: (n,) whole counts, within 2**60 of 0.
        budget: spent once for all counts together.
        entropy: source of random bits.
        squared_sensitivity: the largest sum of squared changes that one unit can cause. It is given squared because its root may be
            irrational.

    Returns:
        (n,) int64 noisy counts; they may be negative. The distribution is exact.

    Raises:
        BudgetError: the budget is not a ZcdpBudget, the squared sensitivity is 0 or less, or the variance is over 1e16.
        InputError: a count is not a whole number or exceeds 2**60.
        SettingError: `entropy` is no stream.

    Source:
        Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Theorem 4 (privacy) and
        Algorithm 3 (rejection from the discrete Laplace), for variances above 2**20. For smaller ones, noise is sampled by inversion
        of the exact probabilities. Variances above 2**20 are rounded up by at most 2**-50 of themselves, which only adds noise.

    >>> discrete_gaussian(np.array([100, 0, 7]), ZcdpBudget("1/2"), Entropy.seeded(1)).tolist()
    [103, -1, 6]
    """
    require_entropy(entropy)
    if not isinstance(budget, ZcdpBudget):
        raise BudgetError("Discrete Gaussian noise takes a ZcdpBudget(rho); ApproxBudget(...).to_zcdp() gives one.")
    squared = exact(squared_sensitivity, "The squared sensitivity")
    if squared <= 0:
        raise BudgetError("The squared sensitivity must be greater than 0.")
    variance = squared / (2 * budget.rho)
    if variance > LARGEST_VARIANCE:
        raise BudgetError("The noise variance squared_sensitivity / (2 rho) would exceed 1e16; spend a larger rho.")
    values = check_whole(counts)
    if variance <= _NARROW_VARIANCE:
        return values + _two_sided(lambda n: half_gaussian(variance).draw(n, entropy), values.size, entropy)
    return values + _wide_gaussian(variance, values.size, entropy)


def rounded_laplace(scale: NDArray[np.float64], limit: Integers | int, entropy: Entropy) -> Integers:
    """Continuous Laplace noise, each value with a scale of its own, rounded to whole numbers.

    Rounding is post-processing, so this noise has every guarantee of continuous noise of the same scale. The distribution is exact:
    P(|v| >= k) = exp(-(k - 1/2) / scale) for k >= 1.

    Args:
        scale: (n,) sensitivity / epsilon of each number, above 0.
        limit: (n,) limits, or one for all, at most 2**62: the noise is cut to -limit..limit.
        entropy: source of random bits.

    Returns:
        (n,) int64 noise.
    """
    size = rounded_exponential(scale, np.broadcast_to(np.asarray(limit, np.int64), scale.shape), entropy)
    return np.where(entropy.bits(len(scale)), -size, size)


def laplace_variance(scale: Fraction | float) -> float:
    """Variance of discrete Laplace noise: 2 q / (1 - q)**2 with q = exp(-1 / scale).

    Args:
        scale: sensitivity / epsilon, above 0.

    >>> round(laplace_variance(10), 2)
    199.83
    """
    x = float(min(1 / scale, 700))
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


def gaussian_variance(variance: Fraction | float) -> float:
    """Variance of discrete Gaussian noise: nearly equal to the parameter of the distribution above about 4, smaller below.

    Args:
        variance: the parameter squared_sensitivity / (2 rho), above 0.

    >>> gaussian_variance(200), round(gaussian_variance(0.1), 4)
    (200.0, 0.0133)
    """
    parameter = float(variance)
    if parameter > 100:
        return parameter
    k = np.arange(1, 200.0)
    weight = np.exp(-(k**2) / (2 * parameter))
    return float(2 * (k**2 * weight).sum() / (1 + 2 * weight.sum()))


def check_whole(numbers: Integers, name: str = "Counts") -> Integers:
    """(n,) numbers as 64-bit integers, if they are whole, and within 2**60 of zero.

    Raises:
        InputError: they are not, or there is not one dimension of them; the text begins with `name`.
    """
    array = np.asarray(numbers)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} must have an integer dtype; whole floats may have been rounded, so they are refused too.")
    if array.size and not -LARGEST_COUNT <= array.min() <= array.max() <= LARGEST_COUNT:
        raise InputError(f"{name} must lie within 2**60 of zero.")
    return array.astype(np.int64, copy=False)


def _two_sided(magnitudes: Callable[[int], Integers], n: int, entropy: Entropy) -> Integers:
    """(n,) samples with P(x) proportional to P(magnitude = |x|): a random sign is added, and a negative zero is drawn again."""
    values, negative = magnitudes(n), entropy.bits(n)
    while (negative_zeros := np.flatnonzero((values == 0) & negative)).size:
        values[negative_zeros], negative[negative_zeros] = magnitudes(negative_zeros.size), entropy.bits(negative_zeros.size)
    np.negative(values, out=values, where=negative)
    return values


def geometric(rate: Rate, n: int, entropy: Entropy) -> Integers:
    """(n,) geometric random numbers, P(v) proportional to exp(-rate v), made of independent base-256 digits.

    The leading digit has no upper limit and is itself geometric. If it is 256 or more, a fresh sample is added to 256: the geometric
    distribution is memoryless.

    Args:
        rate: the rate of the distribution, above 0.
        n: how many numbers.
        entropy: source of random bits.
    """
    values, unit = np.zeros(n, np.int64), 1
    while rate * unit < _COARSEST_RATE:
        values += unit * geometric_digit(rate * unit).draw(n, entropy)
        unit *= BASE
    start = geometric_start(rate * unit)
    leading = start.draw(n, entropy)
    unfinished = np.flatnonzero(leading == BASE)
    while unfinished.size:
        further = start.draw(unfinished.size, entropy)
        leading[unfinished] += further
        unfinished = unfinished[further == BASE]
    return values + unit * leading


def _wide_gaussian(variance: Fraction, n: int, entropy: Entropy) -> Integers:
    """(n,) discrete Gaussian samples for variances above `_NARROW_VARIANCE`, by rejection from a discrete Laplace of scale t.

    Let variance = a / b, t = floor(sigma) + 1 and D = t**2 b. A proposal Y is accepted with probability
    exp(-(|Y| - a / (b t))**2 b / (2 a)) = exp(-c (g + f)**2), where | |Y| t b - a | = D (g + f) with a whole g and f in [0, 1),
    and c = D / (2 a). The square of |Y| is never formed, so the largest integer is |Y| t b < 64 t**2 b < 2**62.
    """
    t = math.isqrt(int(variance)) + 1
    b = 1 << (55 - (t * t).bit_length())
    a = math.ceil(variance * b)
    denominator = t * t * b
    values, pending = np.zeros(n, np.int64), np.arange(n)
    while pending.size:
        proposal = _two_sided(lambda k: geometric(Fraction(1, t), k, entropy), pending.size, entropy)
        quotient, remainder = _distance(np.abs(proposal), t, b, a)
        accepted = _exp_coins(quotient, remainder, denominator, 2 * a, entropy)
        values[pending[accepted]] = proposal[accepted]
        pending = pending[~accepted]
    return values


def _distance(size: Integers, t: int, b: int, a: int) -> tuple[Integers, Integers]:
    """Quotient and remainder of |size t b - a| by t**2 b. Sizes over 60 t, of probability e**-60, use Python's unbounded integers."""
    quotient, remainder = np.divmod(np.abs(np.minimum(size, 60 * t) * (t * b) - a), t * t * b)
    for index in np.flatnonzero(size > 60 * t):
        quotient[index], remainder[index] = divmod(abs(int(size[index]) * t * b - a), t * t * b)
    return quotient, remainder


def _exp_coins(quotient: Integers, remainder: Integers, denominator: int, twice_a: int, entropy: Entropy) -> NDArray[np.bool_]:
    """(n,) coins with P(True) = exp(-c (g + f)**2): g**2 coins of exp(-c), 2 g of exp(-c f) and one of exp(-c f f) must all be True.

    Args:
        quotient: (n,) g.
        remainder: (n,) f times `denominator`.
        denominator: D.
        twice_a: 2 a, so that c = D / (2 a) <= 1.
        entropy: source of random bits.
    """
    alive = np.arange(quotient.size)
    for factors, trials in ((0, quotient * quotient), (1, 2 * quotient), (2, np.ones_like(quotient))):
        done = 0
        while (tossed := alive[trials[alive] > done]).size:
            failed = tossed[~_exp_coin(remainder[tossed], factors, denominator, twice_a, entropy)]
            alive = np.setdiff1d(alive, failed, assume_unique=True)
            done += 1
    coins = np.zeros(quotient.size, np.bool_)
    coins[alive] = True
    return coins


def _exp_coin(remainder: Integers, factors: int, denominator: int, twice_a: int, entropy: Entropy) -> NDArray[np.bool_]:
    """(n,) coins with P(True) = exp(-c f**factors), by von Neumann's alternating series (CKS 2020, Algorithm 1).

    Round k continues with probability c f**factors / k, which is the AND of independent coins of probability c, each f, and 1 / k.
    The result is True if the first round that does not continue has an odd number.
    """
    coins = np.zeros(remainder.size, np.bool_)
    alive, k = np.arange(remainder.size), 1
    while alive.size:
        continues = entropy.below(twice_a, alive.size) < denominator
        for _ in range(factors):
            continues &= entropy.below(denominator, alive.size) < remainder[alive]
        if k > 1:
            continues &= entropy.below(k, alive.size) == 0
        if k % 2:
            coins[alive[~continues]] = True
        alive, k = alive[continues], k + 1
    return coins
