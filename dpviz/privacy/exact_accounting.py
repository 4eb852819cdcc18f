"""What discrete Gaussian noise costs exactly: a certified delta from privacy-loss distributions, and the most rho that a budget buys.

Several stages each add independent discrete Gaussian noise to whole numbers. One unit changes at most `changes` numbers of a stage, each by
at most 1. If these are counts of disjoint sets of records, that is one count if a record is added or removed, and two if it is replaced by
another. Of the coefficients of a wavelet, one record changes many: (1 + log2 side)**2 on a square grid.
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
"""The ways to find the noise that (epsilon, delta) asks for; see `find_gaussian_rho`."""
LARGEST_STDDEV = 10_000.0  # of the noise of a stage; above it the loss has millions of values, and the tight conversion is as good
_STEPS_PER_STDDEV = 500  # grid steps in one standard deviation of the loss
_STEPS_IN_SEARCH = 150  # the same while rho is searched for: a coarser grid, whose bound is looser but holds
_FARTHEST_SUMMED = 2_000  # up to this noise value, the losses of two changed numbers are added up before they are put on the grid
_WIDEST_SUMMED = 600  # the same for more of them, as their number times the standard deviation of one noise
_MOST_VALUES = 2**22  # of all grids together; the error analysis needs a limit
_CUT_SHARE = 1e-6  # of delta, for the losses that are cut off
_SMALLEST_DELTA = 1e-250  # below it, floating-point numbers are too coarse for a bound
_LOSS_MARGIN = 2.0**-49  # 16 rounding errors of a float64: see 5. in `certified_delta`
_MASS_MARGIN = 1e-9  # the factor of 5. in `certified_delta`, above 1
_BITS_OF_RHO = 20  # of a rho that was searched for: processors round the last bits in different ways, and seeded noise depends on them
_UNDERFLOW = 1e-300  # more than all products that underflow to 0 add up to


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
        """The loss of the last value, in grid steps."""
        return self.first + len(self.mass) - 1


def certified_delta(variances: Sequence[Fraction], epsilon: Fraction, changes: int) -> float:
    """Bound from above the delta at which stages of discrete Gaussian noise are (epsilon, delta)-differentially private.

    The stages may be adaptive: which counts a stage measures may depend on the noisy counts of earlier stages, its variance may not.

    Why the number is an upper bound:

    1. One unit changes `changes` numbers of a stage by one at most, and the noise of different numbers is independent. So the pair of a
       stage's output distributions is dominated by `changes` independent pairs of a discrete Gaussian and its shift by one. Dominating
       pairs compose, also adaptively (Zhu, Dong, Wang, AISTATS 2022, Theorem 10). A discrete Gaussian is symmetric, so that a shift by
       -1 has the same losses as one by 1, and both orders of the inputs give the same delta.
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
       have at most 2**22 values: the errors multiply to a factor of less than 1 + 1e-9, which the result is multiplied by. With c > 2
       changes, a grid is used c times. It was made from at most 700,000 probabilities, whose sums have a relative error of less than
       2e-10: c times that and the convolutions stay below the factor 1 + (c - 1) 1e-9. Products below the smallest float add up to less
       than 1e-300, which is added.

    Args:
        variances: the parameter sigma**2 of the noise of each stage, in squared counts.
        epsilon: above 0.
        changes: how many numbers of a stage one unit changes by one: 1 for counts and added or removed records, 2 for replaced ones.

    Returns:
        The upper bound. In our tests it is at most 0.3 % above a true delta of 1e-55 or more; below that, what is cut off (1e-60 per
        stage) is most of it. It can be much larger than the true delta, too, where epsilon is far above 10 and just above the loss of
        single values; `find_exact_rho` then tries a finer grid.

    Raises:
        BudgetError: no stage, a variance of 0 or less, or so much noise that the calculation would take too long.

    >>> bound = certified_delta([Fraction(2), Fraction(8)], Fraction(3), changes=2)
    >>> round(bound, 5)
    0.00487
    """
    if not variances or min(variances) <= 0:
        raise BudgetError("Every level needs noise with a variance above 0.")
    return _bound_delta(tuple(variances), epsilon, changes, 1e-60, _STEPS_PER_STDDEV)


def find_exact_rho(budget: ApproxBudget, shares: Sequence[Fraction], changes: int) -> ZcdpBudget | None:
    """Find the largest rho whose stages of discrete Gaussian noise fit into (epsilon, delta), by `certified_delta`.

    Args:
        budget: epsilon and delta.
        shares: the part of rho of each stage; at least 0, and their sum is 1.
        changes: how many numbers of a stage one unit changes by one, as in `certified_delta`.

    Returns:
        The budget, rounded down to 20 bits, so that the same settings give the same noise on every computer; stage s gets shares[s] * rho,
        and its noise has the variance changes / (2 shares[s] rho). None if the noise is so large or delta so small that only the tight
        conversion is known to hold.
    """
    parts = tuple(share for share in shares if share > 0)
    return _search_rho(budget, parts, changes)


def find_gaussian_rho(
    budget: Budget, mechanism: str, accounting: str, shares: Sequence[float | Fraction], changes: int | None
) -> tuple[ZcdpBudget, str | None]:
    """Find the rho that stages of discrete Gaussian noise may spend.

    Args:
        budget: (epsilon, delta), or rho, which is returned unchanged.
        mechanism: the name of the mechanism in errors.
        accounting: "exact" (`find_exact_rho`), "tight" or "paper" (the conversions "tight" and "simple" of `ApproxBudget.to_zcdp`).
        shares: the weights of the stages, at least 0.
        changes: how many numbers of a stage one unit changes by one; None if it changes a number by more, for which only the tight
            conversion is proved.

    Returns:
        The budget, and the conversion by which it was found: "exact", "tight" or "simple"; None if `budget` was given in rho. "exact"
        becomes "tight" where `find_exact_rho` knows no bound, or `changes` is None.

    Raises:
        BudgetError: a pure budget, delta = 0, or shares out of range.
    """
    if isinstance(budget, ZcdpBudget):
        return budget, None
    conversion = "simple" if accounting == "paper" else "tight"
    rho = require_gaussian(budget, mechanism, conversion)
    if accounting == "exact" and changes is not None and isinstance(budget, ApproxBudget):
        exact = find_exact_rho(budget, ZcdpBudget(1).split(shares), changes)
        if exact is not None:
            return exact, "exact"
    return rho, conversion


@lru_cache(maxsize=64)
def _search_rho(budget: ApproxBudget, parts: tuple[Fraction, ...], changes: int) -> ZcdpBudget | None:
    tight = budget.to_zcdp()
    delta = float(budget.delta)
    if delta < _SMALLEST_DELTA or max(_compute_variances(tight.rho, parts, changes)) > LARGEST_STDDEV**2:
        return None
    tail = delta * _CUT_SHARE

    def excess(log_rho: float) -> float:
        return excess_of(Fraction(math.exp(log_rho)))

    def excess_of(rho: Fraction) -> float:
        found = _bound_delta(_compute_variances(rho, parts, changes), budget.epsilon, changes, tail, _STEPS_IN_SEARCH)
        return math.log(max(found, _UNDERFLOW) / delta)

    low = math.log(float(tight.rho))
    high = low + 0.5
    if excess(low) > 0:
        return None
    while excess(high) <= 0:
        low, high = high, high + 0.5
    found = float(scipy.optimize.brentq(excess, low, high, xtol=1e-7))
    whole, unit = _round_down(math.exp(found))
    while excess_of(whole * unit) > 0:
        whole -= 1
    return ZcdpBudget(whole * unit)


def _round_down(number: float) -> tuple[int, Fraction]:
    """Return the whole number and the power of two whose product is the largest number of `_BITS_OF_RHO` bits not above `number`."""
    mantissa, exponent = math.frexp(number)
    return math.floor(math.ldexp(mantissa, _BITS_OF_RHO)), Fraction(2) ** (exponent - _BITS_OF_RHO)


def _compute_variances(rho: Fraction, parts: Sequence[Fraction], changes: int) -> tuple[Fraction, ...]:
    """Compute the variance of the noise of each stage, in squared counts, from its part of rho."""
    return tuple(changes / (2 * rho * part) for part in parts)


def _bound_delta(variances: tuple[Fraction, ...], epsilon: Fraction, changes: int, tail: float, steps_per_stddev: int) -> float:
    """Compute the bound of `certified_delta`.

    Args:
        variances: the parameter sigma**2 of the noise of each stage.
        epsilon: above 0.
        changes: how many numbers of a stage one unit changes by one.
        tail: probability up to which the rarest losses are cut off, at each step of the calculation.
        steps_per_stddev: grid steps in one standard deviation of the loss of all stages.
    """
    limit = float(epsilon)
    step = math.sqrt(sum(changes / float(variance) for variance in variances)) / steps_per_stddev
    step = limit / max(1, math.ceil(limit / step))
    factors = [losses for variance in sorted(variances) for losses in _compute_stage_losses(variance, changes, step, tail)]
    if sum(len(factor.mass) for factor in factors) > _MOST_VALUES:
        raise BudgetError("The exact accounting of so many levels takes too long: choose the tight conversion.")
    largest_later = [*np.cumsum([factor.last for factor in factors[::-1]])[::-1], 0][1:]  # sums of the factors still to be added
    smallest_counted = math.floor(limit / step) - 1
    total = _Losses(0, np.ones(1), 0.0)
    for factor, later in zip(factors, largest_later, strict=True):
        total = _Losses(total.first + factor.first, np.convolve(total.mass, factor.mass), total.infinite + factor.infinite)  # of the sum
        total = _drop_low(_trim_tails(total, tail), smallest_counted - int(later))
    loss = (total.first + np.arange(len(total.mass))) * step
    loss += _LOSS_MARGIN * (np.abs(loss) + limit) - limit
    above = loss > 0
    return float((total.mass[above] * -np.expm1(-loss[above])).sum() + total.infinite + _UNDERFLOW) * (
        1 + max(changes - 1, 1) * _MASS_MARGIN
    )


def _compute_stage_losses(variance: Fraction, changes: int, step: float, tail: float) -> list[_Losses]:
    """Compute independent losses on the grid whose sum is the loss of a stage.

    Where noise has few values, the losses of the changed numbers are added up before they are put on the grid. All of them are multiples
    of one number, so nothing is lost. Where their sum has many, each loss is put on the grid by itself. With c changes, a
    standard deviation of one loss has 1 / sqrt(c) as many grid steps as that of all losses: the split onto the grid adds at most
    c / (4 `steps_per_stddev`**2) of the variance, 0.2 % for 144 changes while rho is searched for.

    Returns:
        One distribution, or `changes` equal ones.
    """
    sigma2 = float(variance)
    farthest = math.ceil(math.sqrt(-2 * sigma2 * math.log(tail))) + 1
    values = np.arange(-farthest, farthest + 1.0)
    density = np.exp(-(values**2) / (2 * sigma2))
    single = density / density.sum()
    infinite = 2 * math.exp(-(farthest**2) / (2 * sigma2)) + _UNDERFLOW
    if farthest > _FARTHEST_SUMMED if changes <= 2 else math.sqrt(sigma2) * changes > _WIDEST_SUMMED:
        return [_put_on_grid(single, (2 * values + 1) / (2 * sigma2), infinite, step, tail)] * changes
    mass = single
    for _ in range(changes - 1):
        mass = np.convolve(mass, single)
    sums = np.arange(-changes * farthest, changes * farthest + 1.0)
    return [_put_on_grid(mass, (2 * sums + changes) / (2 * sigma2), changes * infinite, step, tail)]


def _put_on_grid(mass: Floats, loss: Floats, infinite: float, step: float, tail: float) -> _Losses:
    """Split every loss onto the two grid points around it; the probabilities under both inputs are kept.

    Args:
        mass: (n,) probability of each loss under the first input.
        loss: (n,) losses, ascending.
        infinite: probability of an infinite loss.
        step: distance of two grid points.
        tail: see `_trim_tails`.
    """
    positive = mass > 0
    mass, loss = mass[positive], loss[positive] + _LOSS_MARGIN * (np.abs(loss[positive]) + step)
    point = np.floor(loss / step)
    above_point = np.clip(loss - point * step, 0, step)
    upper = mass * (np.expm1(-above_point) / math.expm1(-step))
    lower = mass * np.exp(-above_point) * (np.expm1(above_point - step) / math.expm1(-step))
    index = (point - point[0]).astype(np.int64)
    size = int(index[-1]) + 2
    on_grid = np.asarray(np.bincount(index, lower, size) + np.bincount(index + 1, upper, size), np.float64)
    return _trim_tails(_Losses(int(point[0]), on_grid, infinite), tail)


def _trim_tails(losses: _Losses, tail: float) -> _Losses:
    """Cut a distribution at both ends, where `tail` is the probability that is cut off at each.

    The largest losses count as infinite; the smallest are raised to the smallest loss that is kept. So no bound becomes too low.
    """
    mass = losses.mass
    stop = max(len(mass) - int(np.searchsorted(np.cumsum(mass[::-1]), tail, side="right")), 1)
    start = min(int(np.searchsorted(np.cumsum(mass), tail, side="right")), stop - 1)
    kept = mass[start:stop].copy()
    kept[0] += mass[:start].sum()
    return _Losses(losses.first + start, kept, losses.infinite + float(mass[stop:].sum()))


def _drop_low(losses: _Losses, least: int) -> _Losses:
    """Drop losses under `least` grid steps: with all later losses added, they stay below epsilon."""
    start = min(max(least - losses.first, 0), len(losses.mass) - 1)
    return _Losses(losses.first + start, losses.mass[start:], losses.infinite)
