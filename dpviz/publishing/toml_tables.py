"""TOML files: read as tables within limits, and written; `TOML` is the codec of the dataclasses that declare their keys."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import tomli_w

from dpviz.codec import TEXT, Codec, Scalar
from dpviz.data.counting.scheduler import ADDRESS_REFUSED
from dpviz.errors import BudgetError, InputError, RefusedError, SettingError
from dpviz.privacy.budget import exact
from dpviz.release.older import hint_at_name

LARGEST_FILE = 2**20
MOST_TEXT = 20_000
SEED_REFUSED = (
    "A release takes no seed: anyone who knows the seed can subtract the noise, so published noise comes from the operating system."
    " For repeatable simulations on public data, use compare."
)


def _read_text(value: object, name: str) -> str:
    """Read a text that is not too long."""
    text: str = TEXT.read(value, name)
    if len(text) > MOST_TEXT:
        raise SettingError(f"{name} must be at most {MOST_TEXT:,} characters long.")
    return text


def _read_fraction(value: object, name: str) -> Fraction:
    """Read an exact fraction: 0.1 is one tenth, and texts such as "1/3" are allowed."""
    if not isinstance(value, str | int | float):
        raise BudgetError(f"{name} must be a number.")
    return exact(value, name)


def _write_fraction(value: Fraction) -> int | float | str:
    """Write a fraction as a number if that reads back as the same fraction, else as a text."""
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(repr(float(value))) == value else str(value)


TOML = Codec(
    scalars={
        str: replace(TEXT, read=_read_text),
        Fraction: Scalar(read=_read_fraction, write=_write_fraction, schema={"type": ["number", "string"]}),
        Any: Scalar(read=lambda value, _: tuple(value) if isinstance(value, list) else value, schema={}),  # the mechanism checks it later
    },
    says_none=False,
    refused={"seed": (RefusedError, SEED_REFUSED), "address": (SettingError, ADDRESS_REFUSED)},
    hint=hint_at_name,
)
"""How configurations are read and written: fractions are exact, and a seed or an address is refused."""


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


def to_text(document: dict[str, Any]) -> str:
    """Write tables as TOML text."""
    return tomli_w.dumps(document)
