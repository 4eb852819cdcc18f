"""TOML tables as frozen dataclasses: each field declares a key and the type of its value, by which tables are checked."""

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
from dpviz.release.older import hint_at_name

T = TypeVar("T")

LARGEST_FILE = 2**20
MOST_TEXT = 20_000
SEED_REFUSED = (
    "A release takes no seed: anyone who knows the seed can subtract the noise, so published noise comes from the operating system."
    " For repeatable simulations on public data, use compare."
)


def _decode(body: bytes) -> str | None:
    """Decode text in UTF-8; None if it is none."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_file(path: Path) -> dict[str, Any]:
    """Read the tables of a TOML file.

    Raises:
        InputError: the file does not exist, or is not TOML; the text names the line, and quotes nothing from it.
    """
    try:
        with path.open("rb") as file:
            body = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError):  # no such file, or an invalid path
        raise InputError("The configuration cannot be read: does the file exist, and may you read it?") from None
    return read_tables(body)


def read_tables(body: bytes) -> dict[str, Any]:
    """Read the tables of TOML.

    Args:
        body: the content of the file, or its beginning if that is longer than `LARGEST_FILE`.

    Raises:
        InputError: it is too large, or is not TOML; the text names the line, and quotes nothing from it.
    """
    if len(body) > LARGEST_FILE:
        raise InputError("The configuration is larger than a megabyte: is this the right file?")
    text = _decode(body)
    if text is None:  # outside of the handler, since its exception holds the file's bytes
        raise InputError("The configuration must be text in UTF-8.")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number with too many digits raises a plain ValueError
        line = re.search(r"at line (\d+)", str(error))
    raise InputError(f"The configuration is not TOML{f': see line {line[1]}' if line else ''}.")


def table_of(kind: type[T], table: object, where: str) -> T:
    """Convert a table to the dataclass that declares its keys.

    Args:
        kind: a keyword-only dataclass; annotations of fields declare the allowed values, fields with defaults are optional.
        table: the table.
        where: name of the table in messages, such as "[data]".

    Raises:
        SettingError: an unknown key (the text lists the known ones), a missing key, or a value of the wrong kind.
        RefusedError: a seed, where none is allowed.
    """
    table = require_table(table, where)
    declared_fields = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    check_keys(table, declared_fields, where)
    for name, item in declared_fields.items():
        if item.default is MISSING and item.default_factory is MISSING and name not in table:
            raise SettingError(f"{where} lacks {name}.")
    values = {name: value_of(str(declared_fields[name].type), value, f"{where} {name}") for name, value in table.items()}
    return kind(**values)


def check_keys(table: Mapping[str, Any], known: Mapping[str, Any], table_name: str) -> None:
    """Refuse unknown keys. For a seed and for a scheduler's address the text says why they are not allowed.

    Args:
        table: the table.
        known: the known keys.
        table_name: name of the table in messages.

    Raises:
        SettingError: an unknown key.
        RefusedError: a seed.
    """
    for name in table:
        if name not in known:
            if name == "seed":
                raise RefusedError(SEED_REFUSED)
            if name == "address":
                raise SettingError(ADDRESS_REFUSED)
            raise SettingError(f"{table_name} has no key {name[:40]!r}; it knows {', '.join(known)}.{hint_at_name(name, known)}")


def require_table(table: object, table_name: str) -> dict[str, Any]:
    """Check that `table` is a table, and return it.

    Raises:
        SettingError: `table` is not a table.
    """
    if not isinstance(table, dict):
        raise SettingError(f"{table_name} must be a table.")
    return table


def value_of(kind: str, value: object, name: str) -> Any:
    """Check a value against an annotation and convert it.

    Args:
        kind: the annotation as text: str, int, float, bool, Fraction, tuple[...] or dict[...] of these, or Any; " | None" is ignored,
            and "str | tuple[str, ...]" takes one text or a list of texts.
        value: value from the table.
        name: name of the value in messages.

    Raises:
        SettingError: the value is of another kind.
    """
    kind_name = kind.removesuffix(" | None")
    single, _, list_kind = kind_name.partition(" | ")
    if list_kind:
        kind_name = list_kind if isinstance(value, list) else single
    if kind_name.startswith("tuple["):
        inner = kind_name.removeprefix("tuple[").removesuffix("]").partition(",")[0]
        if not isinstance(value, list):
            raise SettingError(f"{name} must be a list.")
        return tuple(value_of(inner, item, f"Each of {name}") for item in value)
    if kind_name.startswith("dict["):
        inner = kind_name.removesuffix("]").partition(", ")[2]
        return {key: value_of(inner, item, f"{name}.{key[:40]}") for key, item in require_table(value, name).items()}
    return _READERS[kind_name](value, name)


def _read_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{name} must be a text in quotes.")
    if len(value) > MOST_TEXT:
        raise SettingError(f"{name} must be at most {MOST_TEXT:,} characters long.")
    return value


def _read_integer(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingError(f"{name} must be a whole number.")
    return value


def _read_real(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(f"{name} must be a finite number.")
    return float(value)


def _read_boolean(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{name} must be true or false.")
    return value


def _read_fraction(value: object, name: str) -> Fraction:
    """Read an exact fraction: 0.1 is one tenth, and texts such as "1/3" are allowed."""
    if not isinstance(value, str | int | float):
        raise BudgetError(f"{name} must be a number.")
    return exact(value, name)


def _read_any(value: object, name: str) -> Any:  # noqa: ARG001
    """Return a setting of any kind unchanged, since the mechanism checks it later; lists become tuples."""
    return tuple(value) if isinstance(value, list) else value


_READERS: dict[str, Callable[[object, str], Any]] = {
    "str": _read_text,
    "int": _read_integer,
    "float": _read_real,
    "bool": _read_boolean,
    "Fraction": _read_fraction,
    "Any": _read_any,
}


def to_table(part: Any) -> dict[str, Any]:
    """Convert a dataclass to a TOML table; fields with their default values are left out."""
    table = {}
    for item in fields(part):
        value = getattr(part, item.name)
        default = item.default if item.default_factory is MISSING else item.default_factory()
        if value is not None and (value != default or type(value) is not type(default)):
            table[item.name] = to_value(value)
    return table


def to_value(value: object) -> Any:
    """Convert a value for TOML. A fraction becomes a number if that reads back as the same fraction, else a text."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        return float(value) if Fraction(repr(float(value))) == value else str(value)
    if isinstance(value, tuple | list):
        return [to_value(item) for item in value]
    if isinstance(value, dict):
        return {name: to_value(item) for name, item in value.items() if item is not None}
    return value


def to_text(document: dict[str, Any]) -> str:
    """Write tables as TOML text."""
    return tomli_w.dumps(document)
