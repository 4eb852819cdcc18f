"""Where the privacy budget of a release went: the bars of the pyramid, and what the guarantee means in odds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from dpviz.privacy.budget import Budget, PureBudget, ZcdpBudget
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

_PRIORS = (0.01, 0.1, 0.5)
_READ_AT = Fraction(1, 10**6)
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One row of the pyramid.

    Attributes:
        name: of the level, or what was bought where there is no level.
        counts: share of the row's bar for counts, of the whole budget, 0 to 1.
        structure: likewise, for choosing the structure.
        amount: both together, as a decimal.
        exact: both together, as a fraction.
        percent: of what could be spent.
    """

    name: str
    counts: float
    structure: float
    amount: str
    exact: str
    percent: str


@dataclass(frozen=True, kw_only=True)
class Odds:
    """The guarantee in plain numbers, all rounded so that they still hold.

    Attributes:
        epsilon: the bound, as a decimal.
        factor: e to the epsilon.
        twice: its square, for what rests on two units.
        delta: as a decimal, and as "1 in so many"; "" where it is 0.
        one_in: likewise.
        rho: as a decimal where the guarantee is zero-concentrated, of which epsilon is a reading at this delta; else "".
        beliefs: percent that somebody was sure before, and at least and at most after seeing the release.
    """

    epsilon: str
    factor: str
    twice: str
    delta: str
    one_in: str
    rho: str
    beliefs: list[tuple[str, str, str]]


def pyramid(release: Release | FlowRelease) -> list[Layer]:
    """What was spent at each level, the whole first; steps without a level have rows of their own above.

    What is spent on paths that end early, in place of later steps, is left out: it is not added up.
    """
    sums: dict[tuple[bool, int | str], tuple[Fraction, Fraction]] = {}
    for step in release.receipt.steps:
        if not step.instead:
            key = (step.level is not None, step.level if step.level is not None else step.purpose)
            counts, structure = sums.get(key, (Fraction(0), Fraction(0)))
            sums[key] = (counts, structure + step.amount) if is_structure(step, release) else (counts + step.amount, structure)
    rows = [(key[1], *parts) for key, parts in sums.items()]
    levels = sorted((row for row in rows if isinstance(row[0], int)), key=lambda row: row[0])
    return [_layer(release, *row) for row in [*(row for row in rows if isinstance(row[0], str)), *levels]]


def decimal(value: Fraction | float, digits: int = 4) -> str:
    """A fraction as a short decimal.

    >>> decimal(Fraction(1, 3)), decimal(89_129_640), decimal(Fraction(1, 10**8))
    ('0.3333', '89,129,640', '1e-8')
    """
    number = float(value)
    return f"{number:,.0f}" if number >= 10**digits else f"{number:.{digits}g}".replace("e-0", "e-")


def upper(value: Fraction, digits: int = 4) -> str:
    """The same, never below the fraction.

    >>> upper(Fraction(1, 3)), upper(Fraction(1, 2)), upper(Fraction(1, 10**8))
    ('0.3334', '0.5', '1e-8')
    """
    return f"{math.ceil(value):,}" if value >= 10**digits else decimal(float(_rounded(value, digits, ROUND_CEILING)), digits)


def is_structure(step: Step, release: Release | FlowRelease) -> bool:
    """Whether a step chose the structure (splits, medians, sizes), not the counts that are published."""
    return isinstance(release, Release) and not step.purpose.startswith("counts")


def place_name(release: Release | FlowRelease, level: int | None) -> str:
    """A level, 0 for the whole, or a stage in words."""
    if level is None:
        return "–"
    if isinstance(release, FlowRelease):
        return release.tree.title(level)
    return "whole area" if level == 0 else f"level {level}, the finest" if level == release.height else f"level {level}"


def odds(receipt: Receipt) -> Odds:
    """What the spent budget lets anybody conclude."""
    spent: Budget = receipt.spent
    rho = spent.rho if isinstance(spent, ZcdpBudget) else None
    bound = spent.to_approx(_READ_AT) if isinstance(spent, ZcdpBudget) else spent
    epsilon, delta = float(bound.epsilon), Fraction(0) if isinstance(bound, PureBudget) else bound.delta
    factor = math.exp(min(epsilon, _LARGEST_EXPONENT))
    return Odds(
        epsilon=upper(bound.epsilon),
        factor=_times(factor),
        twice=_times(math.exp(min(2 * epsilon, _LARGEST_EXPONENT))),
        delta=upper(delta, 3) if delta else "",
        one_in=f"{float(1 / delta):,.0f}" if delta else "",
        rho="" if rho is None else upper(rho),
        beliefs=[_beliefs(prior, factor) for prior in _PRIORS],
    )


def _beliefs(prior: float, factor: float) -> tuple[str, str, str]:
    """Before, and at least and at most after."""
    least, most = _percent(_after(prior, 1 / factor), ROUND_FLOOR), _percent(_after(prior, factor), ROUND_CEILING)
    return f"{100 * prior:.0f} %", least, most


def _after(prior: float, factor: float) -> float:
    """What a belief becomes when its odds are multiplied."""
    return prior * factor / (prior * factor + 1 - prior)


def _times(factor: float) -> str:
    """A factor that is no smaller than the one given."""
    if factor < 1000:
        return f"{Decimal(factor).quantize(Decimal('0.01'), ROUND_CEILING):,}"
    return f"{math.ceil(factor):,}" if factor < 1e9 else f"{_rounded(Fraction(factor), 2, ROUND_CEILING):.1e}"


def _percent(share: float, rounding: str) -> str:
    """A probability with a digit behind the point, small ones with two digits; rounded the way that keeps a bound a bound."""
    percent = Decimal(100 * share)
    if percent < Decimal("0.1") and rounding == ROUND_FLOOR:
        return "0 %"
    if percent < 10:
        return f"{float(_rounded(Fraction(percent), 2, rounding)):.2g} %"
    return f"{percent.quantize(Decimal('0.1'), rounding)} %".replace(".0 ", " ")


def _rounded(value: Fraction, digits: int, rounding: str) -> Decimal:
    with localcontext(prec=digits, rounding=rounding):
        return Decimal(value.numerator) / value.denominator


def _layer(release: Release | FlowRelease, where: int | str, counts: Fraction, structure: Fraction) -> Layer:
    whole, amount = release.receipt.available, counts + structure
    return Layer(
        name=where if isinstance(where, str) else place_name(release, where),
        counts=float(counts / whole),
        structure=float(structure / whole),
        amount=decimal(amount),
        exact=str(amount),
        percent=f"{100 * float(amount / whole):.3g} %",
    )
