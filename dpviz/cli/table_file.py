"""A table's file: complete from the moment it has its name."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pandas as pd
from pandas.api.types import is_string_dtype

from dpviz.errors import DpvizError, SettingError
from dpviz.release.members import neutral

ENDINGS = (".csv", ".json")


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV whose texts no spreadsheet takes for formulas."""
    texts = {str(name): neutral(column.to_numpy(object)) for name, column in table.items() if is_string_dtype(column)}
    return str(table.assign(**texts).to_csv(index=False, lineterminator="\n"))


def checked_target(path: Path) -> Path:
    """The path, if a table can be written there; asked before the long work begins.

    Raises:
        SettingError: another ending than .csv or .json, or no folder to write into.
    """
    if path.suffix.lower() not in ENDINGS:
        raise SettingError("The table's file must end in .csv or .json.")
    parent = path.absolute().parent
    if os.path.isdir(path) or not os.path.isdir(parent) or not os.access(parent, os.W_OK | os.X_OK):  # noqa: PTH112
        raise SettingError("The table's file must lie in a folder that exists and can be written.")
    return path


def write_table(path: Path, text: str) -> None:
    """Write a file, all of it or nothing.

    Raises:
        DpvizError: the disk does not take it; nothing is left behind.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    failed = False
    try:
        with fresh.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        failed = True
    finally:
        fresh.unlink(missing_ok=True)
    if failed:
        raise DpvizError("The table could not be written: is there room, and may you write there?")
