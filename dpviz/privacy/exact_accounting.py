"""What discrete Gaussian noise costs exactly: a certified delta from privacy-loss distributions, and the most rho that a budget buys.

Several stages each add independent discrete Gaussian noise to counts of disjoint sets of records. One unit changes at most `changes`
counts of a stage, each by at most 1: one count if it is added or removed, two if one record is replaced by another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy

from dpviz.arrays import Floats
from dpviz.errors import BudgetError
from dpviz.privacy.budget import ApproxBudget, Budget, ZcdpBudget, require_gaussian

ACCOUNTING = ("exact", "tight", "paper")
"""The ways to find the noise that (epsilon, delta) asks for; see `gaussian_rho`."""
LARGEST_STDDEV = 10_000.0  # of the noise of a stage; above it the loss has millions of values, and the tight conversion is as good
_POINTS = 500  # grid steps in one standard deviation of the loss
_POINTS_IN_SEARCH = 150
_FEW_VALUES = 2_000
_MOST_VALUES = 2**22  # of all grids together; the error analysis needs a limit
_CUT = 1e-6  # part of delta that may go to losses that are cut off
_SMALLEST_DELTA = 1e-250
_LOSS_MARGIN = 2.0**-49  # 16 rounding errors of a float64
_MASS_MARGIN = 1 + 1e-9
_TOO_SMALL = 1e-300  # more than what all products that underflow to 0 can add up to


@dataclass(frozen=True, eq=False)
class _Losses:
    """A distribution of the privacy loss on a grid.

    Attributes:
        first: the loss of the first value is `first` grid steps.
        mass: (n,) the probability of each value under the first of two neighbouring inputs.
        infinite: the probability of an infinite loss.
    """

    first: int
    mass: Floats
    infinite: float

    @property
    def last(self) -> int:
        return self.first + len(self.mass) - 1


def certified_delta(variances: Sequence[Fraction], epsilon: Fraction, changes: int) -> float:
    """Bound from above the delta at which stages of discrete Gaussian noise are (epsilon, delta)-differentially private.

    The stages may be adaptive: which counts a stage measures may depend on the noisy counts of earlier stages, its variance may not.

    Why the number is an upper bound:

    1. One unit changes `changes` counts of a stage by one at most, and the noise of different counts is independent. So the pair of a
       stage's output distributions is dominated by `changes` independent pairs of a discrete Gaussian and its shift by one. Dominating
       pairs compose, also adaptively (Zhu, Dong, Wang, AISTATS 2022, Theorem 10). A discrete Gaussian is symmetric, so that both
       orders of the inputs give the same delta.
    2. Let P give the value i the probability p_i, and let its loss be l_i = ln(p_i / q_i). Then delta = sum of p_i (1 - exp(epsilon -
       l_i)) over all l_i > epsilon. The sum grows with every p_i and with every l_i.
    3. A loss between two grid points is split onto both, so that the probabilities p_i and q_i are kept (Doroshenko, Ghazi, Kamath,
       Kumar, Manurangsi, PETS 2022). For non-negative numbers max(p - c q, 0) is subadditive, so that a split never lowers the sum,
       whatever the other stages' outcome is.
    4. A value further out than K counts as an infinite loss. Its probability is at most 2 exp(-K**2 / (2 sigma**2)) (Canonne, Kamath,
       Steinke, NeurIPS 2020, Corollary 9).
    5. Rounding: every loss is raised by 2**-49 of its size plus the grid step, more than the six roundings of its calculation. All
       probabilities are sums of products of non-negative numbers, so that a sum of n terms has a relative error of at most (n + 2)
       2**-53. The exponents of the densities are at most 700 with a relative error of 2**-51, an error of 4e-13. All grids together
       have at most 2**22 values: the errors multiply to a factor of less than 1 + 1e-9, which the result is multiplied by. Products
       below the smallest float add up to less than 1e-300, which is added.

    Args:
        variances: the parameter sigma**2 of the noise of each stage, in squared counts.
        epsilon: above 0.
        changes: 1 for added or removed records, 2 for replaced ones.

    Returns:
        The upper bound; at most 0.3 % above the true delta in our tests.

    Raises:
        BudgetError: no stage, a variance of 0 or less, or so much noise that the calculation would take too long.

    >>> bound = certified_delta([Fraction(2), Fraction(8)], Fraction(3), changes=2)
    >>> round(bound, 5)
    0.00487
    """
    if not variances or min(variances) <= 0:
        raise BudgetError("Every stage needs noise with a variance above 0.")
    return _certified_delta(tuple(variances), epsilon, changes, 1e-60, _POINTS)


def exact_rho(budget: ApproxBudget, shares: Sequence[Fraction], changes: int) -> ZcdpBudget | None:
    """Find the largest rho whose stages of discrete Gaussian noise fit into (epsilon, delta), by `certified_delta`.

    Args:
        budget: epsilon and delta.
        shares: the part of rho of each stage; at least 0, and their sum is 1.
        changes: 1 for added or removed records, 2 for replaced ones.

    Returns:
        The budget; stage s gets shares[s] * rho, and its noise has the variance changes / (2 shares[s] rho). None if the noise is so
        large or delta so small that only the tight conversion is known to hold.
    """
    parts = tuple(share for share in shares if share > 0)
    return _exact_rho(budget, parts, changes)


def gaussian_rho(
    budget: Budget, mechanism: str, accounting: str, shares: Sequence[float], changes: int | None
) -> tuple[ZcdpBudget, str | None]:
    """Find the rho that stages of discrete Gaussian noise may spend.

    Args:
        budget: (epsilon, delta), or rho, which is returned unchanged.
        mechanism: the name of the mechanism in errors.
        accounting: "exact" (`exact_rho`), "tight" or "paper" (the conversions "tight" and "simple" of `ApproxBudget.to_zcdp`).
        shares: the weights of the stages, at least 0.
        changes: how many counts of a stage one unit changes by one; None if it changes a count by more, for which only the tight
            conversion is proved.

    Returns:
        The budget, and the conversion by which it was found: "exact", "tight" or "simple"; None if `budget` was given in rho. "exact"
        becomes "tight" where `exact_rho` knows no bound, or `changes` is None.

    Raises:
        BudgetError: a pure budget, delta = 0, or shares out of range.
    """
    if isinstance(budget, ZcdpBudget):
        return budget, None
    conversion = "simple" if accounting == "paper" else "tight"
    rho = require_gaussian(budget, mechanism, conversion)
    if accounting == "exact" and changes is not None and isinstance(budget, ApproxBudget):
        exact = exact_rho(budget, ZcdpBudget(1).split(shares), changes)
        if exact is not None:
            return exact, "exact"
    return rho, conversion


@lru_cache(maxsize=64)
def _exact_rho(budget: ApproxBudget, parts: tuple[Fraction, ...], changes: int) -> ZcdpBudget | None:
    tight = budget.to_zcdp()
    delta = float(budget.delta)
    if delta < _SMALLEST_DELTA or max(_variances(tight.rho, parts, changes)) > LARGEST_STDDEV**2:
        return None
    tail = delta * _CUT

    def excess(log_rho: float) -> float:
        found = _certified_delta(_variances(_rounded(log_rho), parts, changes), budget.epsilon, changes, tail, _POINTS_IN_SEARCH)
        return math.log(max(found, _TOO_SMALL) / delta)

    low = math.log(float(tight.rho))
    high = low + 0.5
    if excess(low) > 0:
        return None
    while excess(high) <= 0:
        low, high = high, high + 0.5
    found = float(scipy.optimize.brentq(excess, low, high, xtol=1e-7))
    while excess(found) > 0:
        found -= 1e-7
    return ZcdpBudget(_rounded(found))


def _rounded(log_rho: float) -> Fraction:
    return Fraction(math.exp(log_rho))


def _variances(rho: Fraction, parts: Sequence[Fraction], changes: int) -> tuple[Fraction, ...]:
    return tuple(changes / (2 * rho * part) for part in parts)


def _certified_delta(variances: tuple[Fraction, ...], epsilon: Fraction, changes: int, tail: float, points: int) -> float:
    limit = float(epsilon)
    step = math.sqrt(sum(changes / float(variance) for variance in variances)) / points
    step = limit / max(1, math.ceil(limit / step))
    factors = [losses for variance in sorted(variances) for losses in _stage_losses(variance, changes, step, tail)]
    if sum(len(factor.mass) for factor in factors) > _MOST_VALUES:
        raise BudgetError("The exact accounting of so many stages takes too long: choose the tight conversion.")
    most_later = [*np.cumsum([factor.last for factor in factors[::-1]])[::-1], 0][1:]
    least = math.floor(limit / step) - 1
    total = _Losses(0, np.ones(1), 0.0)
    for factor, later in zip(factors, most_later, strict=True):
        total = _sum_of(total, factor)
        total = _without_low(_trimmed(total, tail), least - int(later))
    loss = (total.first + np.arange(len(total.mass))) * step
    loss += _LOSS_MARGIN * (np.abs(loss) + limit) - limit
    above = loss > 0
    return float((total.mass[above] * -np.expm1(-loss[above])).sum() + total.infinite + _TOO_SMALL) * _MASS_MARGIN


def _stage_losses(variance: Fraction, changes: int, step: float, tail: float) -> list[_Losses]:
    """Compute the independent losses of a stage on the grid.

    Up to a few thousand noise values, the losses of the changed counts are added up before they are put on the grid, where they have one
    lattice of values and lose nothing. Beyond, each is put on the grid, which is then coarser than this lattice.
    """
    sigma2 = float(variance)
    farthest = math.ceil(math.sqrt(-2 * sigma2 * math.log(tail))) + 1
    values = np.arange(-farthest, farthest + 1.0)
    density = np.exp(-(values**2) / (2 * sigma2))
    single = density / density.sum()
    infinite = 2 * math.exp(-(farthest**2) / (2 * sigma2)) + _TOO_SMALL
    if farthest > _FEW_VALUES:
        return [_on_grid(single, (2 * values + 1) / (2 * sigma2), infinite, step, tail)] * changes
    mass = single
    for _ in range(changes - 1):
        mass = np.convolve(mass, single)
    sums = np.arange(-changes * farthest, changes * farthest + 1.0)
    return [_on_grid(mass, (2 * sums + changes) / (2 * sigma2), changes * infinite, step, tail)]


def _on_grid(mass: Floats, loss: Floats, infinite: float, step: float, tail: float) -> _Losses:
    """Split every loss onto the two grid points around it; the probabilities under both inputs are kept."""
    some = mass > 0
    mass, loss = mass[some], loss[some] + _LOSS_MARGIN * (np.abs(loss[some]) + step)
    point = np.floor(loss / step)
    beyond = np.clip(loss - point * step, 0, step)
    upper = mass * (np.expm1(-beyond) / math.expm1(-step))
    lower = mass * np.exp(-beyond) * (np.expm1(beyond - step) / math.expm1(-step))
    index = (point - point[0]).astype(np.int64)
    size = int(index[-1]) + 2
    on_grid = np.asarray(np.bincount(index, lower, size) + np.bincount(index + 1, upper, size), np.float64)
    return _trimmed(_Losses(int(point[0]), on_grid, infinite), tail)


def _sum_of(one: _Losses, other: _Losses) -> _Losses:
    """The distribution of the sum of two independent losses."""
    return _Losses(one.first + other.first, np.convolve(one.mass, other.mass), one.infinite + other.infinite)


def _trimmed(losses: _Losses, tail: float) -> _Losses:
    """Count the largest losses, of probability `tail` together, as infinite, and raise the smallest ones to the least loss that is kept."""
    mass = losses.mass
    stop = max(len(mass) - int(np.searchsorted(np.cumsum(mass[::-1]), tail, side="right")), 1)
    start = min(int(np.searchsorted(np.cumsum(mass), tail, side="right")), stop - 1)
    kept = mass[start:stop].copy()
    kept[0] += mass[:start].sum()
    return _Losses(losses.first + start, kept, losses.infinite + float(mass[stop:].sum()))


def _without_low(losses: _Losses, least: int) -> _Losses:
    """Drop losses under `least` grid steps, which cannot reach epsilon any more."""
    start = min(max(least - losses.first, 0), len(losses.mass) - 1)
    return _Losses(losses.first + start, losses.mass[start:], losses.infinite)
