"""The engine "numpy": it reads whole files of every format into memory, and joins their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpviz.data.bounding import People
from dpviz.data.columns import UnusableFileError
from dpviz.data.counting.job import Progress
from dpviz.data.fingerprints import add_sums
from dpviz.data.placed_rows import PlacedRows

if TYPE_CHECKING:
    from dpviz.data.reading.safety import Source


def place_all(sources: Sequence[Source], place: Callable[[Source], PlacedRows], bad_rows: str, progress: Progress) -> PlacedRows:
    """Read the rows of all files. A person with the same text in several files is one person.

    Args:
        sources: the files.
        place: reads the rows of one, and finds their cells.
        bad_rows: "refuse" or "drop".
        progress: reports progress, and can cancel.

    Raises:
        UnusableFileError: no row of any file can be used, or under "refuse" no row of one of them.
    """
    parts, faults = list[PlacedRows](), list[UnusableFileError]()
    for number, source in enumerate(sources):
        progress.report(number / len(sources))
        try:
            parts.append(place(source))
        except UnusableFileError as fault:
            if bad_rows == "refuse":
                raise
            faults.append(fault)
    if not parts:
        raise faults[0]
    progress.report(1.0)
    ragged = sum(part.ragged for part in parts) + sum(fault.rows for fault in faults)
    if len(parts) == 1:
        return replace(parts[0], ragged=ragged)
    counts = [part.count for part in parts if part.count is not None]
    return PlacedRows(
        cells=np.concatenate([part.cells for part in parts]),
        count=np.concatenate(counts) if counts else None,
        person=join_people([part.person for part in parts]),
        ragged=ragged,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        rows=add_sums(part.rows for part in parts),
    )


def join_people(parts: Sequence[People | None]) -> People | None:
    """Join the people of several parts.

    A person who is in several parts then has several codes. All of them stand for the same canonical text, which the bounding of records
    goes by, so that this is still one person.
    """
    present = [part for part in parts if part is not None]
    if not present:
        return None
    first_codes = np.cumsum([0, *(len(part.distinct) for part in present)])
    codes = [np.where(part.codes < 0, -1, part.codes + first) for part, first in zip(present, first_codes[:-1], strict=True)]
    values = [part.distinct for part in present]
    are_numbers = all(isinstance(part, np.ndarray) for part in values)
    distinct = np.concatenate(values) if are_numbers else [value for part in present for value in part.distinct]
    return People(codes=np.concatenate(codes), distinct=distinct)
