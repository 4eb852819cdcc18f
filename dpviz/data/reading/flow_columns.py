"""Which columns of a file of trips are meant, and whether it is a table with a row per pair or a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpviz.data.columns import PointColumns, candidates, folded, only_candidate, resolved
from dpviz.data.flow_rows import any_lost_zeros
from dpviz.data.reading.safety import Limits
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpviz.space.regions import Regions

LODES_NAMES = ("h_geocode", "w_geocode")
ORIGIN_NAMES = (
    *("origin", "origin_id", "origin_geoid", "orig", "o", "from", "from_id", "source", "source_id", "start", "start_id"),
    *("home", "home_id", "residence", LODES_NAMES[0]),
)
DESTINATION_NAMES = (
    *("destination", "destination_id", "destination_geoid", "dest", "dest_id", "d", "to", "to_id", "target", "target_id"),
    *("end", "end_id", "work", "work_id", "workplace", LODES_NAMES[1]),
)
TRIP_NAMES = ("count", "counts", "flow", "flows", "trips", "s000", "commuters", "journeys", "passengers")
HEADLESS = "The first line must hold the names of the columns (of a matrix, the ids of the destinations); this one starts with data."


@dataclass(frozen=True, kw_only=True)
class FlowColumns:
    """Names of the columns of trips; None where there is none, or where it is to be found by its name.

    Attributes:
        origin: ids of the regions where trips begin.
        destination: ids of the regions where they end.
        count: trips that a row stands for.
        person: who a row belongs to.
    """

    origin: str | None = None
    destination: str | None = None
    count: str | None = None
    person: str | None = None


@dataclass(frozen=True, kw_only=True)
class FlowsQuestion:
    """What is asked of each file of trips.

    Attributes:
        sides: where trips begin, and where they end.
        columns: those that were named; origin, destination and count are found if they were not.
        bad_rows: "refuse" or "drop".
        limits: the most that a file may hold.
        quoted_newlines: whether cells of text tables may hold line ends.
    """

    sides: tuple[Regions, Regions]
    columns: FlowColumns
    bad_rows: str = "refuse"
    limits: Limits = field(default_factory=Limits)
    quoted_newlines: bool = False

    def __post_init__(self) -> None:
        if self.bad_rows not in ("refuse", "drop"):
            raise InputError("bad_rows must be 'refuse' or 'drop'.")


def proposed(names: Sequence[str]) -> FlowColumns:
    """The columns that are called as their kind is; None where none is, or several are."""
    return FlowColumns(
        origin=only_candidate(names, ORIGIN_NAMES),
        destination=only_candidate(names, DESTINATION_NAMES),
        count=only_candidate(names, TRIP_NAMES),
    )


def found_columns(names: Sequence[str], asked: FlowColumns) -> FlowColumns:
    """The file's own names of the columns that were asked for; origin, destination and count are found if they were not.

    Raises:
        InputError: a name is not there, or two columns fit; one column is meant twice; the counts are called a weight.
    """
    origin = _side(names, asked.origin, ORIGIN_NAMES, "origin")
    destination = _side(names, asked.destination, DESTINATION_NAMES, "destination")
    if origin == destination:
        raise InputError(f"origin and destination are the same column {origin!r}; they must differ.")
    count = asked.count
    if count is None and len(found := candidates(names, TRIP_NAMES)) > 1:
        raise InputError(f"Several columns could be count: {_listed(found)}. Say which one it is with count='...'.")
    if count is None:
        count = only_candidate(names, TRIP_NAMES)
    rest = resolved(names, PointColumns(count=count, person=asked.person), has_geometry=True)
    columns = FlowColumns(origin=origin, destination=destination, count=rest.count, person=rest.person)
    if len({origin, destination} & {columns.count, columns.person}):
        raise InputError("count and person must be other columns than origin and destination.")
    return columns


def _side(names: Sequence[str], asked: str | None, aliases: Sequence[str], side: str) -> str:
    if asked is not None:
        return str(resolved(names, PointColumns(person=asked), has_geometry=True).person)
    found = candidates(names, aliases)
    if not found:
        raise InputError(
            f"No column for {side}: the header names none of {', '.join(aliases)}. Say which one it is with {side}='...';"
            " the first line must hold the names. The header of a matrix holds the ids of the destinations."
        )
    if len(found) > 1:
        raise InputError(f"Several columns could be {side}: {_listed(found)}. Say which one it is with {side}='...'.")
    return found[0]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))


def may_be_matrix(names: Sequence[str]) -> bool:
    """Whether a header leaves room for a matrix: no two columns are called origin and destination."""
    return len(names) > 1 and not (candidates(names, ORIGIN_NAMES) and candidates(names, DESTINATION_NAMES))


def is_matrix(names: Sequence[str], asked: FlowColumns, sides: tuple[Regions, Regions]) -> bool:
    """Whether a file is a matrix of trips: nothing else fits, and its header holds ids of destinations after the first name.

    Raises:
        InputError: it would be one if ids in the header had not lost their leading zeros; a header that is a row of data, or
            holds an id twice; columns that were asked for, though it is one.
    """
    if not may_be_matrix(names) or asked.origin is not None or asked.destination is not None:
        return False
    ids, (starts, ends) = [name.strip() for name in names[1:]], sides
    if not (ends.find(ids, ends.depth) >= 0).any():
        if any_lost_zeros([name for name in ids if name.isdecimal()], ends):
            raise InputError("The header holds ids without the leading zeros that those of the regions have; write them as text.")
        return False
    if headless(names) or starts.find([names[0].strip()], starts.depth)[0] >= 0:
        raise InputError(HEADLESS)
    if len(set(ids)) < len(ids):
        raise InputError("The header names a destination twice; add up or rename its columns.")
    if asked.count is not None or asked.person is not None:
        raise InputError("The file is a matrix of trips: every cell is a count, so leave count and person out.")
    return True


def headless(names: Sequence[str]) -> bool:
    """Whether a header starts with a number, as only data does; the header of a matrix starts with a word or a blank."""
    return bool(names) and folded(names[0]).replace(".", "", 1).lstrip("+-").isdecimal()


def cut_of(name: str, side: Regions) -> int | None:
    """The letters to which a column's block codes are cut: the length of the leaves' ids; None where LODES does not call it so."""
    lengths = {len(text) for text in side.ids_of(side.depth)}
    return lengths.pop() if folded(name) in LODES_NAMES and len(lengths) == 1 else None
