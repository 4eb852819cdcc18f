"""Privacy budgets as exact fractions, one type per privacy definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

import scipy

from dpviz.errors import BudgetError

Number = Fraction | float | str

GRAIN = 2**32
LARGEST = 10**15
_SAFETY = 1e-9
_LONGEST_NUMBER = 400


def exact(value: object, name: str) -> Fraction:
    """The fraction that a person means: 0.1 is one tenth, not the nearest binary number.

    Raises:
        BudgetError: no number, NaN or infinite.
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
    """A short text such as 1e-999999999 would need gigabytes as a fraction."""
    if len(text) > _LONGEST_NUMBER or ("/" not in text and abs(Decimal(text).adjusted()) > _LONGEST_NUMBER):
        raise BudgetError(f"{name} is out of range: give a number of ordinary size.")


def _positive(value: object, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise BudgetError(f"{name} must be greater than 0.")
    if number > LARGEST:
        raise BudgetError(f"{name} must be at most 1e15; anything near that protects nobody.")
    return number


def _split(total: Fraction, weights: Sequence[float | Fraction]) -> list[Fraction]:
    """Shares of `total` in proportion to `weights`, multiples of total / 2**32; the last positive one gets the remainder."""
    parts = [exact(weight, "A share") for weight in weights]
    if not parts or min(parts) < 0 or max(parts) == 0:
        raise BudgetError("Shares must be numbers of at least 0, and one of them greater than 0.")
    whole = sum(parts)
    shares = [total * (GRAIN * part // whole) / GRAIN for part in parts]
    if any(part > 0 and share == 0 for part, share in zip(parts, shares, strict=True)):
        raise BudgetError("A share is so small that nothing of the budget is left for it; raise it or set it to 0.")
    last = max(place for place, part in enumerate(parts) if part > 0)
    shares[last] += total - sum(shares)
    return shares


@dataclass(frozen=True)
class PureBudget:
    """Pure differential privacy: epsilon, exact (`PureBudget(0.1).epsilon` is 1/10).

    Raises:
        BudgetError: epsilon is 0, negative, NaN, infinite or no number.
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))

    def split(self, weights: Sequence[float | Fraction]) -> list[Fraction]:
        """Epsilons in proportion to `weights`; they add up to `epsilon` exactly, zeros are allowed."""
        return _split(self.epsilon, weights)

    def to_zcdp(self) -> ZcdpBudget:
        """Rho = epsilon**2 / 2. Source: Bun, Steinke, TCC 2016, Proposition 1.4."""
        return ZcdpBudget(self.epsilon**2 / 2)

    def __str__(self) -> str:
        return f"epsilon {float(self.epsilon):.6g}"


@dataclass(frozen=True)
class ZcdpBudget:
    """Zero-concentrated differential privacy: rho, exact.

    Raises:
        BudgetError: rho is 0, negative, NaN, infinite or no number.
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _positive(rho, "rho"))

    def split(self, weights: Sequence[float]) -> list[Fraction]:
        """Rhos in proportion to `weights`; they add up to `rho` exactly, zeros are allowed."""
        return _split(self.rho, weights)

    def to_approx(self, delta: Number, conversion: str = "tight") -> ApproxBudget:
        """The smallest epsilon, rounded up, for which rho implies (epsilon, delta); conversions as in `ApproxBudget.to_zcdp`."""
        delta, rho = _delta(delta), float(self.rho)
        if delta == 0:
            raise BudgetError("zCDP implies no pure guarantee: delta must be greater than 0.")
        log_delta = _log(delta)
        epsilon = rho + 2 * math.sqrt(-rho * log_delta)
        if _checked_conversion(conversion) == "tight":
            low, high = 0.0, epsilon
            while low < (middle := (low + high) / 2) < high:
                low, high = (low, middle) if log_delta_of(rho, middle) <= log_delta - _SAFETY else (middle, high)
            epsilon = high
        return ApproxBudget(Fraction(epsilon * (1 + _SAFETY)), delta)

    def __str__(self) -> str:
        return f"rho {float(self.rho):.6g}"


@dataclass(frozen=True)
class ApproxBudget:
    """Approximate differential privacy: (epsilon, delta), both exact.

    Raises:
        BudgetError: epsilon as for `PureBudget`, delta outside [0, 1).
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _delta(delta))

    def to_zcdp(self, conversion: str = "tight") -> ZcdpBudget:
        """The largest rho, rounded down, that implies (epsilon, delta).

        Args:
            conversion: "tight" minimises delta over the Renyi orders (Canonne, Kamath, Steinke, NeurIPS 2020,
                Proposition 12); "simple" is epsilon = rho + 2 sqrt(rho ln(1 / delta)) (Bun, Steinke, TCC 2016,
                Proposition 1.3; Lemma 3 of the InfTDA paper).

        Raises:
            BudgetError: delta is 0, or an unknown conversion.
        """
        if self.delta == 0:
            raise BudgetError("delta = 0 cannot be met by Gaussian noise; give a delta greater than 0.")
        epsilon, log_delta = float(self.epsilon), _log(self.delta)
        simple = (epsilon / (math.sqrt(epsilon - log_delta) + math.sqrt(-log_delta))) ** 2
        rho = simple
        if _checked_conversion(conversion) == "tight":
            low, high = 0.0, max(4 * simple, 2 * epsilon)
            while low < (middle := (low + high) / 2) < high:
                low, high = (middle, high) if log_delta_of(middle, epsilon) <= log_delta - _SAFETY else (low, middle)
            rho = low
        if rho * (1 - _SAFETY) <= 0:
            raise BudgetError("epsilon and delta are too small for any Gaussian noise.")
        return ZcdpBudget(Fraction(rho * (1 - _SAFETY)))

    def __str__(self) -> str:
        return f"epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.3g}"


Budget = PureBudget | ApproxBudget | ZcdpBudget


def log_delta_of(rho: float, epsilon: float) -> float:
    """Ln of the smallest delta for which rho-zCDP gives (epsilon, delta) by the tight conversion.

    Any Renyi order alpha > 1 gives a valid bound, so an imperfect minimum errs towards less budget.

    Source:
        Canonne, Kamath, Steinke, NeurIPS 2020, Proposition 12: min over alpha of
        exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) (1 - 1 / alpha)**alpha, here in logarithms.
    """
    if rho <= 0:
        return -math.inf

    def at(log_order: float) -> float:
        order = math.exp(log_order)
        return order * ((order + 1) * rho - epsilon) - log_order - (order + 1) * math.log1p(1 / order)

    centre = math.log(max((epsilon - rho) / (2 * rho), 1e-6))
    found = scipy.optimize.minimize_scalar(at, bounds=(centre - 6, centre + 6), method="bounded", options={"xatol": 1e-9})
    return float(found.fun)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _delta(value: object) -> Fraction:
    delta = exact(value, "delta")
    if not 0 <= delta < 1:
        raise BudgetError("delta must be at least 0 and below 1.")
    return delta


def _checked_conversion(conversion: str) -> str:
    if conversion not in ("tight", "simple"):
        raise BudgetError("conversion must be 'tight' or 'simple'.")
    return conversion


def require_pure(budget: object, mechanism: str) -> PureBudget:
    """The budget itself if it is pure; else an error that names the right kind.

    Raises:
        BudgetError: any other budget.
    """
    if not isinstance(budget, PureBudget):
        raise BudgetError(f"{mechanism} takes a PureBudget(epsilon), not {type(budget).__name__}.")
    return budget


@lru_cache(maxsize=64)
def _bought(budget: ApproxBudget, conversion: str) -> ZcdpBudget:
    return budget.to_zcdp(conversion)


def require_gaussian(budget: object, mechanism: str, conversion: str) -> ZcdpBudget:
    """The zCDP budget that Gaussian noise may spend: the budget itself, or what (epsilon, delta) buys.

    Raises:
        BudgetError: any other budget, delta = 0, or an unknown conversion.
    """
    if isinstance(budget, ApproxBudget):
        return _bought(budget, conversion)
    if not isinstance(budget, ZcdpBudget):
        raise BudgetError(f"{mechanism} takes an ApproxBudget(epsilon, delta) or a ZcdpBudget(rho), not {type(budget).__name__}.")
    return budget


def require_approx(budget: object, mechanism: str) -> ApproxBudget:
    """The budget itself if it is approximate with delta > 0; else an error that names the right kind.

    Raises:
        BudgetError: any other budget, or delta = 0.
    """
    if not isinstance(budget, ApproxBudget):
        raise BudgetError(f"{mechanism} takes an ApproxBudget(epsilon, delta), not {type(budget).__name__}.")
    if budget.delta == 0:
        raise BudgetError(f"{mechanism} cannot meet delta = 0: give a delta greater than 0.")
    return budget
