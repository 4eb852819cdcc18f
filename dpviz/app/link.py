"""A configuration as the parameters of a link: validated like any text that a stranger wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from dpviz.errors import DpvizError, SettingError
from dpviz.privacy.budget import exact

LONGEST_TEXT = 4000
Reader = Callable[[str], Any]


def to_query(config: Any) -> dict[str, str]:
    """Parameters of a link; defaults and the source of the data are left out."""
    plain = type(config)()
    changed = {f.name: getattr(config, f.name) for f in fields(config) if getattr(config, f.name) != getattr(plain, f.name)}
    changed.pop("source", None)
    return {
        name: json.dumps(value, separators=(",", ":")) if isinstance(value, dict | tuple) else str(value) for name, value in changed.items()
    }


def from_query(kind: type[Any], query: Mapping[str, str]) -> Any:
    """Read a link. Whatever is unknown, malformed or out of range falls back to the default.

    Args:
        kind: the configuration's class: its `readers()` read single parameters, its `built()` refuses settings that do not fit.
        query: the parameters.
    """
    config = kind()
    for name, read in kind.readers().items():
        if name in query and len(query[name]) <= LONGEST_TEXT:
            try:
                config = replace(config, **{name: read(query[name])})
            except (ValueError, TypeError, OverflowError, RecursionError):
                continue
    try:
        config.built()
    except (DpvizError, TypeError, OverflowError):
        return replace(config, settings={})
    return config


def one_of(*allowed: str) -> Reader:
    """Reads one of some texts."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError
        return text

    return read


def number(low: float, high: float, kind: type) -> Reader:
    """Reads a number of a kind within a range."""

    def read(text: str) -> Any:
        found = kind(text)
        if not (math.isfinite(found) and low <= found <= high):
            raise ValueError
        return found

    return read


def amount(low: float, high: float) -> Reader:
    """Reads an exact number within a range, such as 0.1 or 1/3."""
    return lambda text: amount_in(text, "The number", low, high)


def amount_in(text: object, label: str, low: float, high: float) -> float | Fraction:
    """A number as a person types it, exact: 0.1, 1e-3 or 1/3; a fraction only where no decimal number is the same.

    >>> amount_in("1e-3", "ε", 0.001, 100), amount_in(" 1/3 ", "ε", 0.001, 100), amount_in("1/2", "ε", 0.001, 100)
    (0.001, Fraction(1, 3), 0.5)

    Raises:
        SettingError: no number, or one outside the range.
    """
    wrong = SettingError(f"{label} must be a number from {low:g} to {high:g}, such as 0.1, 1e-3 or 1/3.")
    try:
        number = exact(str(text).replace(" ", ""), label)
    except DpvizError:
        raise wrong from None
    if not exact(low, label) <= number <= exact(high, label):
        raise wrong
    return float(number) if exact(float(number), label) == number else number


def settings(text: str) -> dict[str, Any]:
    """Reads settings by name."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError
    return {str(name): tuple(value) if isinstance(value, list) else value for name, value in found.items()}
