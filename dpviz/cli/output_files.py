"""Files that commands write: checked before the work begins, and written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection
from pathlib import Path

from dpviz.errors import DpvizError, SettingError


def check_target(path: Path, endings: Collection[str], what: str) -> Path:
    """Check, before the long work begins, that a file can be written, and return the path.

    Args:
        path: of the file.
        endings: that it may have, in lower case.
        what: the file in a message.

    Raises:
        SettingError: another ending, or no folder to write into.
    """
    if path.suffix.lower() not in endings:
        *first, last = endings
        raise SettingError(f"{what} must end in {', '.join(first)} or {last}.")
    parent = path.absolute().parent
    if os.path.isdir(path) or not os.path.isdir(parent) or not os.access(parent, os.W_OK | os.X_OK):  # noqa: PTH112
        raise SettingError(f"{what} must be in a folder that exists and can be written.")
    return path


def write_file(path: Path, text: str | bytes) -> None:
    """Write a file completely or not at all, by way of a temporary file; texts in UTF-8.

    Raises:
        DpvizError: the file cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    is_failed = False
    try:
        with temporary.open("xb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        is_failed = True
    finally:
        temporary.unlink(missing_ok=True)
    if is_failed:
        raise DpvizError("The file could not be written: is there room, and may you write there?")
