"""The engine "numpy": it reads whole files of every format into memory, and joins their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpviz.data.bounding import People
from dpviz.data.cells import whole_counts
from dpviz.data.columns import PointColumns, RawPoints, UnusableFileError
from dpviz.data.counting.job import Pairs, PointCells, Progress
from dpviz.data.fingerprints import add_sums, sum_rows
from dpviz.data.reading.areas import AreaRows, AreasRequest, read_area_rows
from dpviz.data.reading.points import PointsRequest, read_rows
from dpviz.data.reading.trips import TripsRequest, read_trips
from dpviz.data.trips import Trips

if TYPE_CHECKING:
    from dpviz.data.reading.safety import Source

T = TypeVar("T")
R = TypeVar("R", RawPoints, Trips, AreaRows)


def read_all_points(sources: Sequence[Source], request: PointsRequest, progress: Progress) -> RawPoints:
    """Read the rows of all files of points. A person with the same text in several files is one person."""
    parts, bad = _read_each(sources, lambda source: read_rows(source, request), request.bad_rows, progress)
    return _join_rows(parts, bad, "x", "y")


def read_all_trips(sources: Sequence[Source], request: TripsRequest, progress: Progress) -> Trips:
    """Read the trips of all files."""
    parts, bad = _read_each(sources, lambda source: read_trips(source, request), request.bad_rows, progress)
    return _join_trips(parts, bad)


def read_coordinate_trips(sources: Sequence[Source], finder: Pairs[PointCells], request: PointsRequest, progress: Progress) -> Trips:
    """Read the trips between coordinates of all files.

    Args:
        sources: tables.
        finder: names the columns of coordinates, and finds the leaf regions.
        request: names the columns of counts and people; its x and y are not used.
        progress: reports progress, and can cancel.
    """

    def read(source: Source) -> Trips:
        (x, y), (x_end, y_end) = finder.origin.columns, finder.destination.columns
        starts = read_rows(source, replace(request, columns=replace(request.columns, x=x, y=y)))
        ends = read_rows(source, replace(request, columns=PointColumns(x=x_end, y=y_end)))
        count = None if starts.count is None else whole_counts(starts.count, len(starts.x), "drop")
        return Trips(
            origin=finder.origin.find(starts.x, starts.y).astype(np.int32),
            destination=finder.destination.find(ends.x, ends.y).astype(np.int32),
            count=count,
            person=starts.person,
            ragged=starts.ragged,
            rows=None if starts.person is None else sum_rows((starts.x, starts.y, ends.x, ends.y), count, starts.person),
        )

    parts, bad = _read_each(sources, read, request.bad_rows, progress)
    return _join_trips(parts, bad)


def read_all_areas(sources: Sequence[Source], request: AreasRequest, progress: Progress) -> AreaRows:
    """Read the rows of all tables of ids of regions. A person with the same text in several files is one person."""
    parts, bad = _read_each(sources, lambda source: read_area_rows(source, request), request.bad_rows, progress)
    return _join_rows(parts, bad, "leaf")


def _read_each(sources: Sequence[Source], read: Callable[[Source], T], bad_rows: str, progress: Progress) -> tuple[list[T], int]:
    """Read all files. Return what was read, and the number of rows of files of which no row can be used.

    Raises:
        UnusableFileError: no row of any file can be used, or under "refuse" no row of one of them.
    """
    parts, faults = [], list[UnusableFileError]()
    for number, source in enumerate(sources):
        progress.report(number / len(sources))
        try:
            parts.append(read(source))
        except UnusableFileError as fault:
            if bad_rows == "refuse":
                raise
            faults.append(fault)
    if not parts:
        raise faults[0]
    progress.report(1.0)
    return parts, sum(fault.rows for fault in faults)


def _join_trips(parts: Sequence[Trips], bad: int) -> Trips:
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return replace(_join_rows(parts, bad, "origin", "destination"), notes=notes)


def _join_rows(parts: Sequence[R], bad: int, *places: str) -> R:
    """Return the rows of several files, one after the other, with the number of bad rows that are not among them."""
    joined: dict[str, Any] = {"ragged": sum(part.ragged for part in parts) + bad}
    if len(parts) > 1:
        counts = [part.count for part in parts if part.count is not None]
        joined |= {name: np.concatenate([getattr(part, name) for part in parts]) for name in places}
        joined |= {"count": np.concatenate(counts) if counts else None, "rows": add_sums(part.rows for part in parts)}
        joined["person"] = join_people([part.person for part in parts])
    return replace(parts[0], **joined)


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
