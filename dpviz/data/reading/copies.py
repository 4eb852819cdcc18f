"""Files of equal content under several names: their records would count twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from dpviz.data.reading.safety import Source, guarded
from dpviz.data.reading.sources import FoundFiles, is_path, name_of
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIECE = 2**22


def copies_in(found: FoundFiles) -> list[tuple[str, ...]]:
    """Names of files that have the same content, each group in order; files without a row have none that could count twice.

    Only files of one size are read, piece by piece up to where they differ: far less than a digest of each would take.

    Raises:
        InputError: a file cannot be read any more.
    """
    sized: dict[int, list[Source]] = {}
    for source, size, rowless in zip(found.sources, found.sizes, found.rowless, strict=True):
        if not rowless:
            sized.setdefault(size, []).append(source)
    same = [group for size, some in sized.items() for group in _equal(some, size)]
    return sorted(tuple(sorted(Path(name_of(source)).name for source in group)) for group in same)


def refuse_copies(found: FoundFiles) -> None:
    """Refuse files of equal content.

    Raises:
        InputError: there are two; says their names.
    """
    for one, two, *_others in copies_in(found):
        raise InputError(
            f"The files {one!r} and {two!r} have the same content, and everybody in it would count twice: remove one, or leave it out."
        )


def copies_in_words(found: FoundFiles) -> list[str]:
    """A sentence for each group of files of equal content, for the curator's eyes only."""
    return [
        f"the files {' and '.join(map(repr, names))} have the same content, and all of them were counted: is one a copy?"
        for names in copies_in(found)
    ]


def _equal(sources: Sequence[Source], size: int) -> Iterator[list[Source]]:
    """Groups of several files of equal content among files of one size."""
    groups = [list(sources)]
    for begin in range(0, size, _PIECE):
        groups = [part for group in groups if len(group) > 1 for part in _alike(group, begin)]
    yield from (group for group in groups if len(group) > 1)


def _alike(sources: Iterable[Source], begin: int) -> list[list[Source]]:
    """The same files, apart where they differ in one piece."""
    parts: dict[bytes, list[Source]] = {}
    for source in sources:
        rule = f"The file {Path(name_of(source)).name!r} cannot be read any more."
        piece = guarded(rule, lambda source=source: _read(source, begin))  # type: ignore[misc]
        parts.setdefault(hashlib.sha256(piece).digest(), []).append(source)
    return list(parts.values())


def _read(source: Source, begin: int) -> bytes:
    if is_path(source):
        with Path(os.fspath(source)).open("rb") as file:
            file.seek(begin)
            return file.read(_PIECE)
    upload = cast("BinaryIO", source)
    upload.seek(begin)
    piece = upload.read(_PIECE)
    upload.seek(0)
    return piece
