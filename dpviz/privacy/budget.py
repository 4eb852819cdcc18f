"""Privacy budgets as exact fractions, one type per privacy definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Self

import scipy

from dpviz.amounts import LONGEST_NUMBER
from dpviz.errors import BudgetError

Number = Fraction | float | str

GRAIN = 2**32  # shares are multiples of the budget / GRAIN
LARGEST = 10**15  # of an epsilon or rho
_ROUNDING_MARGIN = 1e-9


def exact(value: object, name: str) -> Fraction:
    """The fraction that a decimal number stands for: 0.1 becomes 1/10, not the nearest binary number.

    Args:
        value: an int, a float, a Fraction, or a text such as "0.1" or "1/10".
        name: the name of the value in the error.

    Raises:
        BudgetError: the value is not a number, is NaN or infinite, or is a text with more than 400 characters or an exponent beyond 400.

    >>> exact(0.1, "epsilon")
    Fraction(1, 10)
    """
    if isinstance(value, bool):
        raise BudgetError(f"{name} must be a number.")
    try:
        if isinstance(value, str):
            _refuse_huge(value, name)
        if isinstance(value, str | int | Fraction):
            return Fraction(value)
        number = float(value)  # type: ignore[arg-type]
    except BudgetError:
        raise
    except (TypeError, ValueError, ZeroDivisionError, InvalidOperation):
        raise BudgetError(f"{name} must be a number.") from None
    if not math.isfinite(number):
        raise BudgetError(f"{name} must be finite: NaN and infinity are refused.")
    return Fraction(repr(number))


def _refuse_huge(text: str, name: str) -> None:
    """Refuse numbers with many digits: even a short text such as 1e-999999999 would need gigabytes as a fraction."""
    if len(text) > LONGEST_NUMBER or ("/" not in text and abs(Decimal(text).adjusted()) > LONGEST_NUMBER):
        raise BudgetError(f"{name} is out of range: give a number of ordinary size.")


def _check_positive(value: object, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise BudgetError(f"{name} must be greater than 0.")
    if number > LARGEST:
        raise BudgetError(f"{name} must be at most 1e15; so large a number protects nothing.")
    return number


class _Exact:
    """Arithmetic of budgets, exact: times or over a number, and plus or minus a budget of the same kind."""

    def __mul__(self, factor: Number) -> Self:
        number = exact(factor, "The factor of a budget")
        return type(self)(*(amount * number for amount in self._amounts()))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> Self:
        number = exact(divisor, "The divisor of a budget")
        if number == 0:
            raise BudgetError("A budget cannot be divided by 0.")
        return type(self)(*(amount / number for amount in self._amounts()))

    def __add__(self, other: Self) -> Self:
        self._require_same_kind(other)
        return type(self)(*(sum(pair) for pair in zip(self._amounts(), other._amounts(), strict=True)))

    def __sub__(self, other: Self) -> Self:
        self._require_same_kind(other)
        amounts = [mine - theirs for mine, theirs in zip(self._amounts(), other._amounts(), strict=True)]
        if amounts[0] <= 0 or min(amounts) < 0:
            raise BudgetError(f"{self} minus {other} leaves nothing that can be spent.")
        return type(self)(*amounts)

    def _amounts(self) -> list[Fraction]:
        return [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]

    def _require_same_kind(self, other: object) -> None:
        if type(other) is not type(self):
            raise BudgetError(
                f"A {type(self).__name__} adds up with another {type(self).__name__} only, not with {type(other).__name__}:"
                " convert one of them first, with to_zcdp or to_approx."
            )


class _Divisible(_Exact):
    """A budget of one number, which can be divided."""

    def split(self, weights: Sequence[float | Fraction]) -> list[Fraction]:
        """Parts in proportion to weights; they add up to the budget exactly.

        Each part is rounded down to a multiple of the budget / 2**32; the last positive one also gets the remainder.

        Args:
            weights: relative weights, at least 0, one of them above 0.

        Raises:
            BudgetError: a weight is out of range, or so small that its part would be 0.

        >>> [str(part) for part in PureBudget(1).split([1, 3, 0])]
        ['1/4', '3/4', '0']
        """
        exact_weights, (total,) = [exact(weight, "A share") for weight in weights], self._amounts()
        if not exact_weights or min(exact_weights) < 0 or max(exact_weights) == 0:
            raise BudgetError("Shares must be numbers of at least 0, and one of them greater than 0.")
        weight_sum = sum(exact_weights)
        shares = [total * (GRAIN * weight // weight_sum) / GRAIN for weight in exact_weights]
        if any(weight > 0 and share == 0 for weight, share in zip(exact_weights, shares, strict=True)):
            raise BudgetError("A share is so small that nothing of the budget is left for it; raise it or set it to 0.")
        last = max(index for index, weight in enumerate(exact_weights) if weight > 0)
        shares[last] += total - sum(shares)
        return shares


@dataclass(frozen=True)
class PureBudget(_Divisible):
    """A budget under pure differential privacy: an exact epsilon.

    Attributes:
        epsilon: above 0, at most 1e15.

    Raises:
        BudgetError: epsilon is not a number, or out of range.

    >>> PureBudget(0.1).epsilon
    Fraction(1, 10)

    Budgets are added, subtracted and scaled exactly:

    >>> PureBudget(1) / 3, PureBudget(1) - PureBudget(0.9)
    (PureBudget(epsilon=Fraction(1, 3)), PureBudget(epsilon=Fraction(1, 10)))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _check_positive(epsilon, "epsilon"))

    def to_zcdp(self) -> ZcdpBudget:
        """The zCDP budget that this one implies: rho = epsilon**2 / 2.

        Source:
            Bun, Steinke, TCC 2016, Proposition 1.4.
        """
        return ZcdpBudget(self.epsilon**2 / 2)

    def __str__(self) -> str:
        return f"epsilon {float(self.epsilon):.6g}"


@dataclass(frozen=True)
class ZcdpBudget(_Divisible):
    """A budget under zero-concentrated differential privacy (zCDP): an exact rho.

    Attributes:
        rho: above 0, at most 1e15.

    Raises:
        BudgetError: rho is not a number, or out of range.

    >>> budget = ZcdpBudget("1/8")
    >>> budget.rho, round(float(budget.to_approx(1e-6).epsilon), 2)
    (Fraction(1, 8), 2.42)
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _check_positive(rho, "rho"))

    def to_approx(self, delta: Number, conversion: str = "tight") -> ApproxBudget:
        """The (epsilon, delta) that rho implies: this delta, and the conversion's smallest epsilon, rounded up by about 1e-9 of itself.

        Args:
            delta: above 0, below 1.
            conversion: "tight" or "simple", as in `ApproxBudget.to_zcdp`.

        Raises:
            BudgetError: delta is out of range, or the conversion is unknown.
        """
        delta, rho = _check_delta(delta), float(self.rho)
        if delta == 0:
            raise BudgetError("zCDP implies no pure guarantee: delta must be greater than 0.")
        log_delta = _log(delta)
        epsilon = rho + 2 * math.sqrt(-rho * log_delta)
        if _check_conversion(conversion) == "tight":
            low, high = 0.0, epsilon
            while low < (middle := (low + high) / 2) < high:
                low, high = (low, middle) if log_delta_of(rho, middle) <= log_delta - _ROUNDING_MARGIN else (middle, high)
            epsilon = high
        return ApproxBudget(Fraction(epsilon * (1 + _ROUNDING_MARGIN)), delta)

    def __str__(self) -> str:
        return f"rho {float(self.rho):.6g}"


@dataclass(frozen=True)
class ApproxBudget(_Exact):
    """A budget under approximate differential privacy: exact epsilon and delta.

    Attributes:
        epsilon: above 0, at most 1e15.
        delta: at least 0, below 1.

    Raises:
        BudgetError: one of them is not a number, or out of range.

    >>> budget = ApproxBudget(2.0, 1e-6)
    >>> budget.delta, round(float(budget.to_zcdp().rho), 4)
    (Fraction(1, 1000000), 0.0882)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _check_positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _check_delta(delta))

    def to_zcdp(self, conversion: str = "tight") -> ZcdpBudget:
        """The largest rho that implies (epsilon, delta), rounded down by about 1e-9 of itself.

        Args:
            conversion: "tight" minimises delta over the Renyi orders (Canonne, Kamath, Steinke, NeurIPS 2020,
                Proposition 12); "simple" is epsilon = rho + 2 sqrt(rho ln(1 / delta)) (Bun, Steinke, TCC 2016,
                Proposition 1.3; Lemma 3 of the InfTDA paper).

        Raises:
            BudgetError: delta is 0, epsilon and delta are too small for any Gaussian noise, or the conversion is unknown.
        """
        if self.delta == 0:
            raise BudgetError("delta = 0 cannot be met by Gaussian noise; give a delta greater than 0.")
        epsilon, log_delta = float(self.epsilon), _log(self.delta)
        simple = (epsilon / (math.sqrt(epsilon - log_delta) + math.sqrt(-log_delta))) ** 2
        rho = simple
        if _check_conversion(conversion) == "tight":
            low, high = 0.0, max(4 * simple, 2 * epsilon)
            while low < (middle := (low + high) / 2) < high:
                low, high = (middle, high) if log_delta_of(middle, epsilon) <= log_delta - _ROUNDING_MARGIN else (low, middle)
            rho = low
        if rho * (1 - _ROUNDING_MARGIN) <= 0:
            raise BudgetError("epsilon and delta are too small for any Gaussian noise.")
        return ZcdpBudget(Fraction(rho * (1 - _ROUNDING_MARGIN)))

    def __str__(self) -> str:
        return f"epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.3g}"


Budget = PureBudget | ApproxBudget | ZcdpBudget


def log_delta_of(rho: float, epsilon: float) -> float:
    """The natural logarithm of the smallest delta for which rho-zCDP implies (epsilon, delta), by the tight conversion.

    Any Renyi order alpha > 1 gives a valid delta. So if the numerical search misses the best order, the delta is too large, never too
    small.

    Args:
        rho: at least 0.
        epsilon: above 0.

    Returns:
        ln delta; minus infinity if rho is 0.

    Source:
        Canonne, Kamath, Steinke, NeurIPS 2020, Proposition 12: min over alpha of
        exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) (1 - 1 / alpha)**alpha, here in logarithms.
    """
    if rho <= 0:
        return -math.inf

    def log_delta_at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # of the order over 1: alpha - 1
        return excess * ((excess + 1) * rho - epsilon) - log_excess - (excess + 1) * math.log1p(1 / excess)

    centre = math.log(max((epsilon - rho) / (2 * rho), 1e-6))
    minimum = scipy.optimize.minimize_scalar(log_delta_at, bounds=(centre - 6, centre + 6), method="bounded", options={"xatol": 1e-9})
    return float(minimum.fun)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _check_delta(value: object) -> Fraction:
    delta = exact(value, "delta")
    if not 0 <= delta < 1:
        raise BudgetError("delta must be at least 0 and below 1.")
    return delta


def _check_conversion(conversion: str) -> str:
    if conversion not in ("tight", "simple"):
        raise BudgetError("conversion must be 'tight' or 'simple'.")
    return conversion


def require_pure(budget: object, mechanism: str) -> PureBudget:
    """The budget itself, if it is pure. For mechanisms whose noise is Laplace noise alone.

    Args:
        budget: any object.
        mechanism: the name of the mechanism in the error.

    Raises:
        BudgetError: the budget is not pure; the text names the type that is needed, and where those stand that take others.
    """
    if not isinstance(budget, PureBudget):
        others = "; the help page on mechanisms says which take rho, or epsilon and delta, too"
        others = others if isinstance(budget, ApproxBudget | ZcdpBudget) else ""
        raise BudgetError(f"{mechanism} takes a PureBudget(epsilon), that is epsilon alone, not {type(budget).__name__}{others}.")
    return budget


@lru_cache(maxsize=64)
def _convert_cached(budget: ApproxBudget, conversion: str) -> ZcdpBudget:
    return budget.to_zcdp(conversion)


def require_gaussian(budget: object, mechanism: str, conversion: str) -> ZcdpBudget:
    """The zCDP budget that Gaussian noise may spend: the budget itself, or the rho that (epsilon, delta) is converted to.

    Args:
        budget: any object.
        mechanism: the name of the mechanism in the error.
        conversion: "tight" or "simple", as in `ApproxBudget.to_zcdp`.

    Raises:
        BudgetError: the budget is of another type, delta is 0, or the conversion is unknown.
    """
    if isinstance(budget, ApproxBudget):
        return _convert_cached(budget, conversion)
    if not isinstance(budget, ZcdpBudget):
        raise BudgetError(f"{mechanism} takes an ApproxBudget(epsilon, delta) or a ZcdpBudget(rho), not {type(budget).__name__}.")
    return budget


def require_approx(budget: object, mechanism: str) -> ApproxBudget:
    """The budget itself, if it is approximate with delta > 0.

    Args:
        budget: any object.
        mechanism: the name of the mechanism in the error.

    Raises:
        BudgetError: the budget is of another type, or delta is 0; the text says what is needed.
    """
    if not isinstance(budget, ApproxBudget):
        raise BudgetError(f"{mechanism} takes an ApproxBudget(epsilon, delta), not {type(budget).__name__}.")
    if budget.delta == 0:
        raise BudgetError(f"{mechanism} cannot meet delta = 0: give a delta greater than 0.")
    return budget
