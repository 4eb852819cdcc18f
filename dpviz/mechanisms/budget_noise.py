"""The noise that the kind of a budget asks for: discrete Laplace for epsilon, discrete Gaussian for rho and for (epsilon, delta)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpviz.errors import BudgetError
from dpviz.mechanisms.base import setting
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.exact_accounting import ACCOUNTING, LARGEST_STDDEV, find_gaussian_rho
from dpviz.privacy.noise import gaussian_variance, laplace_variance
from dpviz.privacy.receipt import Step

_SEVERAL = (
    "Exact accounting was chosen, and the tight conversion was used: the exact one is proved for one {noun} per person only, and here a"
    " person has up to {most:,}."
)
_TOO_MUCH_NOISE = (
    "Exact accounting was chosen, and the tight conversion was used: the exact one is not computed where a level has noise with a"
    f" standard deviation above {LARGEST_STDDEV:,.0f}, or for a delta below 1e-250, and it is not taken where it saves nothing."
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """How one unit changes whole numbers that are measured together.

    A unit's m records change them by a sum of m vectors, each with `ones` entries of 1 or -1. By the triangle inequality, this sum has an
    absolute sum of at most m `ones`, and a Euclidean norm of at most m sqrt(`ones`). Both are reached by m records that change the same
    numbers, such as m records in one cell.

    Attributes:
        contributions: the bound m on the records of one unit.
        ones: how many of the numbers one record changes, by one each: 1 for counts of disjoint cells if a record is added or removed, 2
            if it is replaced by another.

    >>> Change(contributions=3, ones=2).total, Change(contributions=3, ones=2).squares
    (6, 18)
    """

    contributions: int
    ones: int = 1

    @property
    def total(self) -> int:
        """Largest sum of absolute changes by one unit, for Laplace noise: m `ones`."""
        return self.contributions * self.ones

    @property
    def squares(self) -> int:
        """Largest sum of squared changes by one unit, for Gaussian noise: m**2 `ones`."""
        return self.contributions**2 * self.ones

    def scale(self, part: Fraction, *, gaussian: bool) -> Fraction:
        """Return the parameter of the noise for a part of the budget: the scale of Laplace, or sigma squared of Gaussian noise."""
        return self.squares / (2 * part) if gaussian else self.total / part

    def variance(self, part: Fraction, *, gaussian: bool) -> float:
        """Return the variance of the noise for a part of epsilon or of rho."""
        return (gaussian_variance if gaussian else laplace_variance)(self.scale(part, gaussian=gaussian))

    def step(self, part: Fraction, *, gaussian: bool, **facts: Any) -> Step:
        """Make the step of a receipt that spends a part of the budget on these numbers.

        Args:
            part: of epsilon, or of rho.
            gaussian: whether noise is Gaussian.
            facts: other fields of the step, such as its purpose.
        """
        return Step(
            amount=part,
            sensitivity=Fraction(self.squares if gaussian else self.total),
            noise="discrete Gaussian" if gaussian else "discrete Laplace",
            scale=self.scale(part, gaussian=gaussian),
            **facts,
        )


@dataclass(frozen=True, kw_only=True)
class Split:
    """A budget that was split.

    Attributes:
        parts: parts of epsilon, or of rho; 0 for what is not measured.
        gaussian: whether the parts are of rho, for Gaussian noise.
        converted: the rho to which (epsilon, delta) was converted; None without a conversion.
        conversion: the conversion, as in `find_gaussian_rho`; None without one.
        notes: what the receipt notes, such as another accounting than the chosen one.
    """

    parts: tuple[Fraction, ...]
    gaussian: bool
    converted: ZcdpBudget | None = None
    conversion: str | None = None
    notes: tuple[str, ...] = ()


def is_gaussian(budget: object, mechanism: str) -> bool:
    """Return whether a budget asks for Gaussian noise: rho, or (epsilon, delta); refuse anything but a budget."""
    if not isinstance(budget, PureBudget | ZcdpBudget | ApproxBudget):
        kinds = "a PureBudget(epsilon), a ZcdpBudget(rho) or an ApproxBudget(epsilon, delta)"
        raise BudgetError(f"{mechanism} takes {kinds}, not {type(budget).__name__}.")
    return not isinstance(budget, PureBudget)


def split_budget(budget: Budget, mechanism: str, weights: Sequence[float], change: Change, accounting: str = "exact") -> Split:
    """Split a budget over parts that are measured one after the other, each with noise of its own.

    With several records per unit, (epsilon, delta) is converted by the tight conversion in place of the exact accounting: that one is
    proved for numbers that change by one.

    Args:
        budget: epsilon; rho; or (epsilon, delta), which is converted to rho.
        mechanism: the name of the mechanism, for errors.
        weights: of the parts; at least 0.
        change: how one unit changes the numbers of a part.
        accounting: how (epsilon, delta) is converted: "exact", "tight" or "paper"; see `find_gaussian_rho`.

    Raises:
        BudgetError: another kind of budget, delta = 0, or weights out of range.
    """
    if not is_gaussian(budget, mechanism):
        return Split(parts=tuple(budget.split(weights)), gaussian=False)  # type: ignore[union-attr]
    most = change.contributions
    rho, conversion = find_gaussian_rho(budget, mechanism, accounting, weights, change.ones if most == 1 else None)
    return Split(
        parts=tuple(rho.split(weights)),
        gaussian=True,
        converted=None if conversion is None else rho,
        conversion=conversion,
        notes=tuple(accounting_notes(accounting, conversion, most, "record")),
    )


def accounting_setting(default: str, noun: str = "trip") -> Any:
    """Declare the setting `accounting`; `noun` is what is counted."""
    return setting(
        default,
        "Accounting",
        choices=ACCOUNTING,
        help="How much noise (ε, δ) asks for. exact: what this noise really costs, for one "
        f"{noun} per person. tight: through ρ, about 5 % more noise. paper: through ρ by the paper's formula, which wastes some.",
    )


def accounting_notes(accounting: str, conversion: str | None, most: int, noun: str = "trip") -> list[str]:
    """Write a note for the receipt if exact accounting was chosen and another conversion was used.

    Args:
        accounting: the chosen one.
        conversion: the conversion that was used; None without one.
        most: the bound m per person.
        noun: what is counted.
    """
    if accounting != "exact" or conversion in ("exact", None):
        return []
    return [_TOO_MUCH_NOISE if most == 1 else _SEVERAL.format(most=most, noun=noun)]
