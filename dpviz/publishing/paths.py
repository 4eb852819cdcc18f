"""Paths of a configuration: they start from its folder, and name local files only."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from dpviz.data.library_errors import or_none
from dpviz.data.reading.safety import refuse_share
from dpviz.errors import InputError


def resolve_path(base: Path, text: str) -> Path:
    """Resolve a path of a configuration: relative paths start from the configuration's folder.

    Raises:
        InputError: a URL or a network share.
    """
    if "://" in text:
        raise InputError("A configuration names local files only: URLs are never opened.")
    refuse_share(text)
    return base / Path(text).expanduser()


def resolve_pattern(base: Path, text: str) -> str:
    """Resolve a path or a glob pattern, as `resolve_path`. Special characters in the name of the configuration's folder are escaped."""
    path = resolve_path(base, text)
    if glob.has_magic(text) and or_none(path.exists) is not True:
        return os.path.join(glob.escape(str(base)), Path(text).expanduser())  # noqa: PTH118  (a pattern is no path)
    return str(path)
