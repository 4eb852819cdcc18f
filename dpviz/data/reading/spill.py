"""Folders for what does not fit in memory: private data, so nobody else can read them and none outlives its work for long."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpviz.errors import InputError

if sys.platform != "win32":
    import fcntl

PREFIX = "dpviz-spill-"
NO_FOLDER = "There is no folder for temporary files that can be written: set TMPDIR to one on a disk with free space."
_LOCK = "in use"


@contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder that nobody else can read, removed with all that is in it.

    A process that is killed cannot remove its own: whoever asks next does, which the lock of a folder in use forbids
    (not on Windows).

    Args:
        parent: where it is made; the system's folder for temporary files if None.

    Raises:
        InputError: none can be made.
    """
    folder = lock = None
    with suppress(OSError):
        _remove_abandoned(Path(parent or tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # 0700
        lock = _locked(folder)
    try:
        if folder is None or lock is None:
            raise InputError(NO_FOLDER)
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int:
    """A lock that ends with this process; it has its name only once it is held."""
    unnamed = folder / "new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
    if sys.platform != "win32":
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(folder / _LOCK)
    return lock


def _remove_abandoned(parent: Path) -> None:
    if sys.platform == "win32":
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
