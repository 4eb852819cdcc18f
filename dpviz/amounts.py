"""Numbers as people read them: counts, errors, shares and budgets, in maps, charts, the report and on the command line.

Files, manifests and the JSON of the command line hold exact numbers; they do not use this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_DOWN, Decimal, localcontext
from fractions import Fraction

MISSING, UNKNOWN = "–", "unknown"
LONGEST_NUMBER = 400  # characters; a longer text is no number anywhere, since the time to read one can grow with the square of its length
_BUDGET_DIGITS, _SYMBOL_DIGITS = 9, 6
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def format_count(value: float | Fraction) -> str:
    """A count, rounded to a whole number, with thousands separators.

    >>> format_count(-1234.4), format_count(-0.2), format_count(math.inf)
    ('−1,234', '0', 'unknown')
    """
    return _with_minus(f"{round(float(value)):,}") if math.isfinite(value) else UNKNOWN


def format_signed(value: float) -> str:
    """An error, rounded to a whole number, with its sign.

    >>> format_signed(1234.4), format_signed(-7), format_signed(-0.2)
    ('+1,234', '−7', '+0')
    """
    return _with_minus(f"{round(float(value)):+,}")


def format_decimal(value: float | Fraction, digits: int = 4) -> str:
    """A measured or computed number with a few digits; large ones are rounded to whole numbers.

    Args:
        value: any finite number; not-a-number is shown as a dash.
        digits: significant digits below `10 ** digits`.

    >>> format_decimal(Fraction(1, 3)), format_decimal(89_129_640), format_decimal(Fraction(1, 10**8)), format_decimal(1234.56, 3)
    ('0.3333', '89,129,640', '1e-8', '1,235')
    """
    number = float(value)
    if math.isnan(number):
        return MISSING
    return _with_minus(f"{number:,.0f}" if abs(number) >= 10 ** (digits - 1) else _short_exponent(f"{number:,.{digits}g}"))


def format_upper_bound(value: Fraction, digits: int = 4) -> str:
    """The same, rounded up: what is shown is never below the value, so that a bound stays a bound.

    >>> format_upper_bound(Fraction(1, 3)), format_upper_bound(Fraction(1, 2)), format_upper_bound(Fraction(1, 10**8))
    ('0.3334', '0.5', '1e-8')
    """
    if value >= 10 ** (digits - 1):
        return f"{math.ceil(value):,}"
    return format_decimal(float(round_to(value, digits, ROUND_CEILING)), digits)


def format_short(value: float) -> str:
    """A number where there is little room, such as in a legend.

    >>> format_short(1200), format_short(45_000), format_short(1_000_000), format_short(0.02), format_short(0.00005), format_short(0)
    ('1,200', '45k', '1M', '0.02', '5e-5', '0')
    """
    size = abs(value)
    for unit, letter, least in ((1e6, "M", 1e6), (1e3, "k", 1e4)):
        if size >= least:
            return _with_minus(f"{value / unit:,.3g}{letter}")
    return _with_minus(f"{value:,.0f}" if size >= 10 or value == 0 else _short_exponent(f"{value:.3g}"))


def format_percent(share: float | Fraction, digits: int = 3) -> str:
    """A share between 0 and 1 in percent.

    >>> format_percent(0.37), format_percent(Fraction(1, 3)), format_percent(1)
    ('37 %', '33.3 %', '100 %')
    """
    return f"{format_decimal(100 * float(share), digits)} %"


def format_budget(parts: Mapping[str, float | Fraction], *, zero_delta: bool = False) -> str:
    """A privacy budget in words.

    Args:
        parts: what it consists of: "epsilon", "epsilon" and "delta", or "rho".
        zero_delta: whether a delta of 0 is written, as in messages about a delta that is used up.

    Returns:
        Decimals cut after nine digits, never rounded up: a remaining budget that is shown can be spent.

    >>> format_budget({"epsilon": Fraction(2, 3), "delta": Fraction(1, 10**8)}), format_budget({"epsilon": 1, "delta": 0})
    ('epsilon 0.666666666, delta 1e-8', 'epsilon 1')
    """
    return _join_parts(parts, {}, zero_delta, _BUDGET_DIGITS)


def format_budget_symbols(parts: Mapping[str, float | Fraction]) -> str:
    """The same with Greek letters and at most six digits, for pages and charts.

    >>> format_budget_symbols({"rho": Fraction(1, 8)}), format_budget_symbols({"epsilon": 0.5, "delta": 1e-6})
    ('ρ 0.125', 'ε 0.5, δ 1e-6')
    """
    return _join_parts(parts, _SYMBOLS, False, _SYMBOL_DIGITS)


def _join_parts(parts: Mapping[str, float | Fraction], names: Mapping[str, str], zero_delta: bool, digits: int) -> str:
    shown = {part: value for part, value in parts.items() if value or zero_delta or part != "delta"}
    return ", ".join(f"{names.get(part, part)} {_format_part(value, digits)}" for part, value in shown.items())


def round_to(value: Fraction, digits: int, rounding: str) -> Decimal:
    """A fraction as a decimal with so many significant digits; `rounding` is one of the modes of the `decimal` module."""
    with localcontext(prec=digits, rounding=rounding):
        return Decimal(value.numerator) / value.denominator


def _format_part(value: float | Fraction, digits: int) -> str:
    """A part of a budget; floats are taken for the decimal that they print as."""
    part = round_to(Fraction(str(value)), digits, ROUND_DOWN)
    return f"{part.normalize():f}" if part >= 1 else _short_exponent(f"{float(part):.{digits}g}")


def _short_exponent(text: str) -> str:
    return text.replace("e-0", "e-")


def _with_minus(text: str) -> str:
    """A text with a true minus sign, which is as wide as a plus."""
    return text.replace("-", "−") if text.startswith("-") else text
