"""Marks: digests by which the ledger recognises data, whatever they are called and however they are named together."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from dpviz.data.counting.job import Watch
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.data.reading.safety import guarded

_FILE = b"file"
_PIECE = 2**22
_READERS = min(4, os.cpu_count() or 1)
_UNWATCHED = Watch()


def marks_of(data: PointCounts | Flows, content: bytes | None = None, *, files: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What the ledger recognises data by: the bytes of each file, and the counts themselves, whatever files they came from.

    Args:
        data: the counts. Where the records that a person keeps were chosen at random, counts differ each time and are no
            mark; nor are those of no records, which all empty files share.
        content: of the one file.
        files: `file_marks` of several instead, those left out that have no row: two datasets may share an empty part.

    Returns:
        Hex digests (SHA-256), at least one. For the ledger only, which keeps them under a key of its own: they are never shown.
    """
    enforced = data.enforced if isinstance(data, Flows) else data.unit == "person"
    marks = [*files] if content is None else [*files, content_mark(content)]
    telling = len(data.count) > 0 and not enforced
    return tuple([*marks, _counts_mark(data)] if telling or not marks else marks)


def content_mark(content: bytes) -> str:
    """The mark of a file's whole content."""
    digest = hashlib.sha256(_FILE)
    digest.update(content)
    return digest.hexdigest()


def file_marks(paths: Sequence[Path], watch: Watch = _UNWATCHED) -> tuple[str, ...]:
    """The marks of files, each the one that `marks_of` gives its content alone; in an order that says nothing about names.

    Raises:
        InputError: a file cannot be read.
        DpvizError: it was ended.
    """
    whole, done, one_by_one = max(sum(path.stat().st_size for path in paths), 1), 0, threading.Lock()

    def step(size: int) -> None:
        nonlocal done
        with one_by_one:
            done += size
            watch.at(done / whole)

    with ThreadPoolExecutor(_READERS) as readers:
        try:
            return tuple(sorted({*readers.map(lambda path: _file_mark(path, step), paths)}))
        finally:
            readers.shutdown(cancel_futures=True)


def _file_mark(path: Path, step: Callable[[int], None]) -> str:
    digest = hashlib.sha256(_FILE)

    def read() -> None:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                step(len(piece))

    guarded(f"The file {path.name!r} cannot be read any more.", read)
    return digest.hexdigest()


def _counts_mark(data: PointCounts | Flows) -> str:
    if isinstance(data, Flows):
        text = repr(("trips", [[*side.ids[-1]] for side in (data.regions, data.ends)]))
        arrays = (data.origin, data.destination, data.count)
    else:
        text = repr(("points", data.domain.bounds, data.domain.crs, data.domain.order))
        arrays = (data.column, data.row, data.count)
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
