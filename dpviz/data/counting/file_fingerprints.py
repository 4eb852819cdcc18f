"""Fingerprints of the content of files, by which the ledger recognises data that are read from them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from dpviz.data.counting.job import Progress
from dpviz.data.library_errors import without_private_text
from dpviz.data.reading.memory_tables import TableUpload
from dpviz.data.reading.safety import is_path, read_bytes

if TYPE_CHECKING:
    from dpviz.data.reading.sources import FoundFiles

_FILE = b"file"
_PIECE_BYTES = 2**22
_READERS = min(4, os.cpu_count() or 1)
_UNWATCHED = Progress()


def source_fingerprints(found: FoundFiles, watch: Progress = _UNWATCHED) -> tuple[str, ...]:
    """Compute the fingerprints of the files and uploads among some sources, sorted.

    Tables in memory have none, since their bytes depend on the order of their rows. Files without rows are left out, since different
    datasets may share an empty file.

    Raises:
        InputError: a file cannot be read.
        DpvizError: the reading was cancelled.
    """
    with_rows = [source for source, rowless in zip(found.sources, found.rowless, strict=True) if not rowless]
    paths = [Path(os.fspath(source)) for source in with_rows if is_path(source)]
    uploads = [source for source in with_rows if not is_path(source) and not isinstance(source, TableUpload)]
    return tuple(sorted({*file_fingerprints(paths, watch), *(content_fingerprint(read_bytes(upload, -1)) for upload in uploads)}))


def content_fingerprint(content: bytes) -> str:
    """Compute the fingerprint of a file's content: its SHA-256 with a prefix, as a hex digest."""
    digest = hashlib.sha256(_FILE)
    digest.update(content)
    return digest.hexdigest()


def file_fingerprints(paths: Sequence[Path], watch: Progress = _UNWATCHED) -> tuple[str, ...]:
    """Compute the fingerprints of files, sorted, so that their order reveals nothing about the files' names.

    Args:
        paths: paths of the files.
        watch: reports progress, and may cancel.

    Raises:
        InputError: a file cannot be read.
        DpvizError: the reading was cancelled.
    """
    sizes = [without_private_text(f"The file {path.name!r} cannot be read.", path.stat).st_size for path in paths]
    total, finished, lock = max(sum(sizes), 1), 0, threading.Lock()

    def step(size: int) -> None:
        nonlocal finished
        with lock:
            finished += size
            watch.report(finished / total)

    with ThreadPoolExecutor(_READERS) as readers:
        try:
            return tuple(sorted({*readers.map(lambda path: _file_fingerprint(path, step), paths)}))
        finally:
            readers.shutdown(cancel_futures=True)


def _file_fingerprint(path: Path, step: Callable[[int], None]) -> str:
    digest = hashlib.sha256(_FILE)

    def read() -> None:
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
                step(len(piece))

    without_private_text(f"The file {path.name!r} cannot be read any more.", read)
    return digest.hexdigest()
