"""TOML tables as frozen dataclasses: a field declares a key once; keys and values are checked when they are read."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from dpviz.data.counting.scheduler import ADDRESS_REFUSED
from dpviz.errors import BudgetError, InputError, RefusedError, SettingError
from dpviz.privacy.budget import exact

T = TypeVar("T")

LARGEST_FILE = 2**20
MOST_TEXT = 20_000
SEED_REFUSED = (
    "A release takes no seed: anyone who knows the seed can subtract the noise, so published noise comes from the operating system."
    " For repeatable simulations on public data, use compare."
)


def read_file(path: Path) -> dict[str, Any]:
    """Read the tables of a TOML file.

    Raises:
        InputError: the file does not exist, or is not TOML; the text names the line, and quotes nothing from it.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE + 1).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("The configuration must be text in UTF-8.") from None
    except (OSError, ValueError):  # no such file, or an invalid path
        raise InputError("The configuration cannot be read: does the file exist, and may you read it?") from None
    if len(text) > LARGEST_FILE:
        raise InputError("The configuration is larger than a megabyte: is this the right file?")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number with too many digits raises a plain ValueError
        line = re.search(r"at line (\d+)", str(error))
    raise InputError(f"The configuration is not TOML{f': see line {line[1]}' if line else ''}.")


def table_of(kind: type[T], found: object, where: str) -> T:
    """Convert a table to the dataclass that declares its keys.

    Args:
        kind: a keyword-only dataclass; annotations of fields declare the allowed values, fields with defaults are optional.
        found: the table.
        where: name of the table in messages, such as "[data]".

    Raises:
        SettingError: an unknown key (the text lists the known ones), a missing key, or a value of the wrong kind.
        RefusedError: a seed, where none is allowed.
    """
    found = tables(found, where)
    declared = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    check_keys(found, declared, where)
    for name, each in declared.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in found:
            raise SettingError(f"{where} lacks {name}.")
    read = {name: value_of(str(declared[name].type), value, f"{where} {name}") for name, value in found.items()}
    return kind(**read)


def check_keys(found: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
    """Refuse unknown keys. For a seed and for a scheduler's address the text says why they are not allowed.

    Args:
        found: the table.
        known: the known keys.
        where: name of the table in messages.

    Raises:
        SettingError: an unknown key.
        RefusedError: a seed.
    """
    for name in found:
        if name not in known:
            if name == "seed":
                raise RefusedError(SEED_REFUSED)
            if name == "address":
                raise SettingError(ADDRESS_REFUSED)
            raise SettingError(f"{where} has no key {name[:40]!r}; it knows {', '.join(known)}.")


def tables(found: object, where: str) -> dict[str, Any]:
    """Check that `found` is a table, and return it.

    Raises:
        SettingError: `found` is not a table.
    """
    if not isinstance(found, dict):
        raise SettingError(f"{where} must be a table.")
    return found


def value_of(kind: str, value: object, what: str) -> Any:
    """Check a value against an annotation and convert it.

    Args:
        kind: the annotation as text: str, int, float, bool, Fraction, tuple[...] or dict[...] of these, or Any; " | None" is ignored,
            and "str | tuple[str, ...]" takes one text or a list of texts.
        value: value from the table.
        what: name of the value in messages.

    Raises:
        SettingError: the value is of another kind.
    """
    plain = kind.removesuffix(" | None")
    one, _, several = plain.partition(" | ")
    if several:
        plain = several if isinstance(value, list) else one
    if plain.startswith("tuple["):
        inner = plain.removeprefix("tuple[").removesuffix("]").partition(",")[0]
        if not isinstance(value, list):
            raise SettingError(f"{what} must be a list.")
        return tuple(value_of(inner, each, f"Each of {what}") for each in value)
    if plain.startswith("dict["):
        inner = plain.removesuffix("]").partition(", ")[2]
        return {name: value_of(inner, each, f"{what}.{name[:40]}") for name, each in tables(value, what).items()}
    return _READ[plain](value, what)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{what} must be a text in quotes.")
    if len(value) > MOST_TEXT:
        raise SettingError(f"{what} must be at most {MOST_TEXT:,} characters long.")
    return value


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingError(f"{what} must be a whole number.")
    return value


def _real(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(f"{what} must be a finite number.")
    return float(value)


def _boolean(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{what} must be true or false.")
    return value


def _exact(value: object, what: str) -> Fraction:
    """Read an exact fraction: 0.1 is one tenth, and texts such as "1/3" are allowed."""
    if not isinstance(value, str | int | float):
        raise BudgetError(f"{what} must be a number.")
    return exact(value, what)


def _anything(value: object, what: str) -> Any:  # noqa: ARG001
    """Pass on a setting of any kind, which the mechanism checks later; lists become tuples."""
    return tuple(value) if isinstance(value, list) else value


_READ: dict[str, Callable[[object, str], Any]] = {
    "str": _text,
    "int": _integer,
    "float": _real,
    "bool": _boolean,
    "Fraction": _exact,
    "Any": _anything,
}


def to_table(part: Any) -> dict[str, Any]:
    """Convert a dataclass to a TOML table; fields with their default values are left out."""
    written = {}
    for each in fields(part):
        value = getattr(part, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if value is not None and (value != default or type(value) is not type(default)):
            written[each.name] = to_value(value)
    return written


def to_value(value: object) -> Any:
    """Convert a value for TOML. A fraction becomes a number if that reads back as the same fraction, else a text."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        return float(value) if Fraction(repr(float(value))) == value else str(value)
    if isinstance(value, tuple | list):
        return [to_value(each) for each in value]
    if isinstance(value, dict):
        return {name: to_value(each) for name, each in value.items() if each is not None}
    return value


def to_text(document: dict[str, Any]) -> str:
    """Write tables as TOML text."""
    return tomli_w.dumps(document)
