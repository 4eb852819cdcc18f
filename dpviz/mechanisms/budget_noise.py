"""The noise that the kind of a budget asks for: discrete Laplace for epsilon, discrete Gaussian for rho and for (epsilon, delta)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpviz.errors import BudgetError
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import AnyMechanism, setting
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget, require_pure
from dpviz.privacy.exact_accounting import ACCOUNTING, LARGEST_STDDEV, find_gaussian_rho

_SUMS = "A record's value moves a sum by more than one: (ε, δ) was converted by the tight conversion, not the exact one."
_SEVERAL = (
    "Exact accounting was chosen, and the tight conversion was used: the exact one is proved for one {noun} per person only, and here a"
    " person has up to {most:,}."
)
_TOO_MUCH_NOISE = (
    "Exact accounting was chosen, and the tight conversion was used: the exact one is not computed where a level has noise with a"
    f" standard deviation above {LARGEST_STDDEV:,.0f}, or for a delta below 1e-250, and it is not taken where it saves nothing."
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


def split_budget(
    budget: Budget, mechanism: AnyMechanism, weights: Sequence[float | Fraction], sensitivity: Sensitivity, *, gaussian: bool | None = None
) -> Split:
    """Split a budget over parts that are measured one after the other, each with noise of its own.

    One record per unit changes `sensitivity.changes` numbers of each part by one, so that (epsilon, delta) buys what the exact accounting
    says that this noise costs. It takes it that every part is measured with its own amount. With several records per unit, or sums of
    values, (epsilon, delta) is converted by the tight conversion in its place, and a note says so: the exact accounting is proved for
    numbers that change by one.

    Args:
        budget: epsilon; rho; or (epsilon, delta), which is converted to rho.
        mechanism: whose setting `accounting` says how (epsilon, delta) is converted; "exact" without one.
        weights: of the parts; at least 0.
        sensitivity: of the numbers of each part.
        gaussian: whether noise is Gaussian, for which epsilon is refused; None if the kind of the budget decides.

    Raises:
        BudgetError: another kind of budget, delta = 0, or weights out of range.
    """
    if not (is_gaussian(budget, mechanism.title) if gaussian is None else gaussian):
        return Split(parts=tuple(require_pure(budget, mechanism.title).split(weights)), gaussian=False)
    accounting, most = getattr(mechanism, "accounting", "exact"), sensitivity.contributions
    rho, conversion = find_gaussian_rho(budget, mechanism.title, accounting, weights, sensitivity.changes_by_one)
    several = _SEVERAL.format(most=most, noun=FAMILIES[mechanism.family].noun) if most > 1 else _SUMS
    notes = _TOO_MUCH_NOISE if sensitivity.changes_by_one else several
    return Split(
        parts=tuple(rho.split(weights)),
        gaussian=True,
        converted=None if conversion is None else rho,
        conversion=conversion,
        notes=() if accounting != "exact" or conversion in ("exact", None) else (notes,),
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
