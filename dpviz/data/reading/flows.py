"""Read files of trips: what their headers say, and their rows as checked trips between leaf regions.

A file has one row per pair of regions or per trip, or is a matrix. Rows and columns whose id is a word for a total, such as "all", are left
out. Unless bad rows are dropped, these totals are compared with the sums of the other rows first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpviz.arrays import Integers, Mask
from dpviz.data.cells import REMEDY, check_bad_rows
from dpviz.data.columns import PERSON_NAMES, PointColumns, candidates, fold_name, is_number_text, only_candidate, people_of, resolve_columns
from dpviz.data.flows import (
    BLOCK_CODE,
    Counts,
    Ids,
    Trips,
    any_lost_zeros,
    check_counts,
    counts_of,
    ids_of,
    leaf_indexes,
    refuse_missing,
)
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source, read_checked
from dpviz.data.reading.tables import Cells, OpenTable, open_table
from dpviz.data.reading.text_rows import MISSING_WORDS, SEPARATORS
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpviz.data.bounding import People
    from dpviz.data.flows import Ids
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
NO_HEADER = "The first line must hold the names of the columns (of a matrix, the ids of the destinations); this one starts with data."


@dataclass(frozen=True, kw_only=True)
class FlowColumns:
    """Names of the columns of trips. None stands for no column, or for a column that is still to be found by its name.

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
class FlowsRequest:
    """How the rows of files of trips are read.

    Attributes:
        sides: the regions where trips begin, and where they end.
        columns: those that the caller named; origin, destination and count are found by their names if they are None.
        bad_rows: "refuse" or "drop".
        limits: the most that a file may hold.
        quoted_newlines: whether entries of text tables may hold line ends.
    """

    sides: tuple[Regions, Regions]
    columns: FlowColumns
    bad_rows: str = "refuse"
    limits: Limits = DEFAULT_LIMITS
    quoted_newlines: bool = False

    def __post_init__(self) -> None:
        check_bad_rows(self.bad_rows)


def propose_columns(names: Sequence[str]) -> FlowColumns:
    """Find the columns of origin, destination and count by their names; None where no column fits, or several do."""
    return FlowColumns(
        origin=only_candidate(names, ORIGIN_NAMES),
        destination=only_candidate(names, DESTINATION_NAMES),
        count=only_candidate(names, TRIP_NAMES),
    )


def resolve_flow_columns(names: Sequence[str], wanted: FlowColumns) -> FlowColumns:
    """Return the wanted columns as the file spells them. Origin, destination and count are found by their names if they are None.

    Raises:
        InputError: no column fits, or several do; one column has two roles; the column of counts has the name of a survey weight.
    """
    origin = _find_side(names, wanted.origin, ORIGIN_NAMES, "origin")
    destination = _find_side(names, wanted.destination, DESTINATION_NAMES, "destination")
    if origin == destination:
        raise InputError(f"origin and destination are the same column {origin!r}; they must differ.")
    count = wanted.count
    if count is None and len(found := candidates(names, TRIP_NAMES)) > 1:
        raise InputError(f"Several columns could be count: {_listed(found)}. Say which one it is with count='...'.")
    if count is None:
        count = only_candidate(names, TRIP_NAMES)
    rest = resolve_columns(names, PointColumns(count=count, person=wanted.person), has_geometry=True)
    columns = FlowColumns(origin=origin, destination=destination, count=rest.count, person=rest.person)
    if len({origin, destination} & {columns.count, columns.person}):
        raise InputError("count and person must be other columns than origin and destination.")
    return columns


def _find_side(names: Sequence[str], wanted: str | None, aliases: Sequence[str], side: str) -> str:
    if wanted is not None:
        return str(resolve_columns(names, PointColumns(person=wanted), has_geometry=True).person)
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
    """Return whether a header may be that of a matrix: several names, but not both one for an origin and one for a destination."""
    return len(names) > 1 and not (candidates(names, ORIGIN_NAMES) and candidates(names, DESTINATION_NAMES))


def is_matrix(names: Sequence[str], wanted: FlowColumns, sides: tuple[Regions, Regions]) -> bool:
    """Return whether a file is a matrix of trips.

    It is one if its header passes `may_be_matrix` and has the id of a destination, and the caller names neither origin nor destination.

    Raises:
        InputError: ids in the header have lost their leading zeros; the header is a row of data, or holds an id twice; the caller
            names a column of counts or people, which a matrix lacks.
    """
    if not may_be_matrix(names) or wanted.origin is not None or wanted.destination is not None:
        return False
    ids, (starts, ends) = [name.strip() for name in names[1:]], sides
    if not (ends.find(ids, ends.depth) >= 0).any():
        if any_lost_zeros([name for name in ids if name.isdecimal()], ends):
            raise InputError("The header holds ids without the leading zeros that those of the regions have; write them as text.")
        return False
    if starts_with_data(names) or starts.find([names[0].strip()], starts.depth)[0] >= 0:
        raise InputError(NO_HEADER)
    if len(set(ids)) < len(ids):
        raise InputError("The header names a destination twice; add up or rename its columns.")
    if wanted.count is not None or wanted.person is not None:
        raise InputError("The file is a matrix of trips: every cell is a count, so leave count and person out.")
    return True


def starts_with_data(names: Sequence[str]) -> bool:
    """Return whether a header starts with a number and so is a row of data. The header of a matrix starts with a word or a blank."""
    return bool(names) and is_number_text(names[0])


def cut_length(name: str, side: Regions) -> int | None:
    """Return the length to which a column's block codes are cut: that of the leaves' ids. None for a column without a name of LODES."""
    lengths = {len(text) for text in side.ids_of(side.depth)}
    return lengths.pop() if fold_name(name) in LODES_NAMES and len(lengths) == 1 else None


TOTAL_WORDS = ("total", "totals", "all", "sum", "sums", "grand total")
_CONTRADICTION = (
    f"Rows or columns whose id is a word for a total ({', '.join(TOTAL_WORDS)}) do not equal the sum of the others:"
    " the file contradicts itself. Correct them, or leave them out of the file."
)
TOTALS_CHECKED = "rows or columns of totals, which equal the sums of the others"
TOTALS_UNCHECKED = "rows or columns of totals, unchecked"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Rows of trips between regions that are given by ids. PRIVATE.

    Attributes:
        origin: (n,) ids.
        destination: (n,) ids.
        trips: (n,) number of trips of each row, -1 where a row is to be left out.
    """

    origin: Ids
    destination: Ids
    trips: Integers = field(repr=False)

    def at(self, rows: Mask) -> Pairs:
        """Return the rows that a (n,) mask selects."""
        origin, destination = (replace(ids, codes=ids.codes[rows]) for ids in (self.origin, self.destination))
        return Pairs(origin=origin, destination=destination, trips=self.trips[rows])


def are_totals(pairs: Pairs, sides: tuple[Regions, Regions]) -> tuple[Mask, Mask]:
    """Return two (n,) masks: whether each row's origin is a word for a total and no region, and whether its destination is."""
    origin, destination = pairs.origin, pairs.destination
    return _are_words(origin, sides[0])[origin.codes], _are_words(destination, sides[1])[destination.codes]


def _are_words(ids: Ids, side: Regions) -> Mask:
    words = total_words(ids.texts)
    words[:-1] &= side.find(ids.texts, side.depth) < 0
    return words


def total_words(texts: list[str]) -> Mask:
    """Return (k + 1,) whether each of k texts is a word for a total. The last entry, False, stands for missing ids, whose code is -1."""
    return np.array([*(fold_name(text) in TOTAL_WORDS for text in texts), False])


def check_totals(pairs: Pairs, from_total: Mask, to_total: Mask) -> None:
    """Refuse totals that are not the sums of the other rows.

    Raises:
        InputError: the stated total of an origin, of a destination or of all trips is not the sum of its rows.
    """
    single = ~(from_total | to_total)
    both = from_total & to_total
    origin, destination, count = pairs.origin.codes, pairs.destination.codes, pairs.trips
    good = (
        _agree(origin, destination, count, (single, to_total & ~from_total))
        and _agree(destination, origin, count, (single, from_total & ~to_total))
        and bool((count[both] == count[single].sum()).all())
    )
    if not good:
        raise InputError(_CONTRADICTION)


def _agree(key: Integers, word: Integers, count: Integers, parts: tuple[Mask, Mask]) -> bool:
    """Return whether stated totals are the sums of single rows.

    Args:
        key: (n,) codes of the region whose trips are added up.
        word: (n,) codes of the other id of each row. In a row with a total, it is a word such as "all"; each word is checked by itself.
        count: (n,) trips of each row.
        parts: two (n,) masks: which rows are single pairs, and which are totals.
    """
    single, total = parts
    size = int(key.max(initial=-1)) + 2
    actual = np.bincount(key[single], weights=count[single], minlength=size)
    width = int(word.max(initial=-1)) + 2
    stated, index = np.unique(key[total] * width + word[total], return_inverse=True)
    return bool((np.bincount(index, weights=count[total], minlength=len(stated)) == actual[stated // width]).all())


@dataclass(frozen=True, kw_only=True)
class FlowsFile:
    """What the content of a file of trips says about its columns, for the curator, who adds what is missing. Not for release.

    Attributes:
        format: CSV, TSV or Parquet.
        columns: names as the file spells them; for a matrix, they include the ids of the destinations.
        matrix: whether it looks like a matrix: origins in the first column, destinations in the header, counts in the cells.
        origin: the one column with a name of an origin; None if there is none, or several.
        destination: the one column with a name of a destination, likewise.
        count: the one column with a name of a number of trips, likewise; `read_flows` uses it if the caller names no other.
        person: the one column with a name of a person, likewise; a proposal, which `read_flows` does not use by itself.
        rows: number of rows, where the file states it; private.
    """

    format: str
    columns: tuple[str, ...]
    matrix: bool
    origin: str | None
    destination: str | None
    count: str | None
    person: str | None
    rows: int | None = field(repr=False)


def inspect_flows(source: Source, *, through: bool = False, limits: Limits = DEFAULT_LIMITS) -> FlowsFile:
    """Read what a file of trips says about itself. The result holds no entry of a row.

    Args:
        source: a path, or an open binary file with a `name`.
        through: whether to read every row as well, where it is clear which columns are meant, and to refuse rows that `read_flows`
            refuses under bad_rows="refuse" whatever the regions are.
        limits: the most that the file may hold.

    Raises:
        InputError: the file cannot be opened, is too large, starts with data where column names belong, or has a bad row.
    """
    opened = _open(source, limits)
    found = propose_columns(opened.names)
    if starts_with_data(opened.names):
        raise InputError(NO_HEADER)
    matrix = may_be_matrix(opened.names) and _looks_like_matrix(opened)
    if through and (matrix or (found.origin is not None and found.destination is not None)):
        _read_through(opened, found, matrix)
    return FlowsFile(
        format=opened.format,
        columns=opened.names,
        matrix=matrix,
        origin=found.origin,
        destination=found.destination,
        count=found.count,
        person=only_candidate(opened.names, PERSON_NAMES),
        rows=opened.rows,
    )


def _read_through(opened: OpenTable, found: FlowColumns, matrix: bool) -> None:
    """Refuse rows that are bad whatever the regions are."""
    if matrix:
        _from_matrix(opened, "refuse")
    else:
        names = [name for name in (found.origin, found.destination, found.count) if name is not None]
        read = _read(opened, [opened.names.index(name) for name in names], "refuse")
        for name, cells in zip(names[:2], read.columns, strict=False):
            refuse_missing(ids_of(cells, f"Column {name!r}"))
        for name, cells in zip(names[2:], read.columns[2:], strict=True):
            check_counts(counts_of(cells, f"Column {name!r}", texts=True), "refuse")


def _looks_like_matrix(opened: OpenTable) -> bool:
    """Return whether most names after the first contain a digit, as ids do, or occur in the first column as well."""
    ids = ids_of(_read(opened, [0], "drop").columns[0], "")
    known = {text.strip() for text in ids.texts}
    alike = sum(name.strip() in known or any(sign.isdigit() for sign in name) for name in opened.names[1:])
    return 2 * alike > len(opened.names) - 1


def read_trips(source: Source, request: FlowsRequest) -> Trips:
    """Read a file's trips as indexes of leaf regions; bad rows are refused, or marked to be dropped.

    Raises:
        InputError: as `read_flows`.
    """
    sides, bad_rows = request.sides, request.bad_rows
    opened = _open(source, request.limits, quoted_newlines=request.quoted_newlines)
    if is_matrix(opened.names, request.columns, sides):
        rows = _from_matrix(opened, bad_rows)
    else:
        rows = _from_table(opened, resolve_flow_columns(opened.names, request.columns), sides, bad_rows)
    return _find_leaves(rows, sides, bad_rows)


def _open(source: Source, limits: Limits, *, quoted_newlines: bool = False) -> OpenTable:
    kind, data = read_checked(source, limits)
    return open_table(kind, data, limits, quoted_newlines=quoted_newlines).index_first()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """Rows of a file before their ids are looked up. `ragged` is the number of further, bad lines. PRIVATE."""

    pairs: Pairs
    person: People | None = None
    ragged: int = 0


def _read(opened: OpenTable, positions: Sequence[int], bad_rows: str) -> Cells:
    """Read the columns at some positions, and refuse nested ones. Bad lines are refused, or under "drop" left out."""
    read = opened.take(positions)
    if bad_rows == "refuse":
        read.bad.refuse(REMEDY)
    if any(pa.types.is_nested(cells.type) for cells in read.columns):
        raise InputError("A column that is needed holds lists or records; store one text or number per cell.")
    return read


def _from_table(opened: OpenTable, columns: FlowColumns, sides: tuple[Regions, Regions], bad_rows: str) -> _Rows:
    names = [name for name in (columns.origin, columns.destination, columns.count, columns.person) if name is not None]
    read = _read(opened, [opened.names.index(name) for name in names], bad_rows)
    cells = dict(zip(names, read.columns, strict=True))
    origin, destination = (_block_ids(cells[name], name, side) for name, side in zip(names[:2], sides, strict=True))
    count = np.ones(len(origin.codes), np.int64)
    if columns.count is not None and len(count):
        count = check_counts(counts_of(cells[columns.count], f"Column {columns.count!r}", texts=True), bad_rows)
    person = None
    if columns.person is not None:
        people = cells[columns.person]
        person = people_of(_without_words(people) if opened.format in SEPARATORS else people)
    return _Rows(pairs=Pairs(origin=origin, destination=destination, trips=count), person=person, ragged=read.bad.total)


def _block_ids(cells: pa.ChunkedArray, name: str, side: Regions) -> Ids:
    """Return the ids in a column. In a column with a name of LODES, Census block codes are cut to the length of the leaves' ids."""
    ids, length = ids_of(cells, f"Column {name!r}"), cut_length(name, side)
    return ids if length is None else replace(ids, texts=[text[:length] if len(text) == BLOCK_CODE else text for text in ids.texts])


def _without_words(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a person column in which words such as NA, null and NaN are missing entries."""
    return pc.if_else(pc.is_in(cells, value_set=pa.array(MISSING_WORDS)), pa.scalar(None, cells.type), cells)


def _from_matrix(opened: OpenTable, bad_rows: str) -> _Rows:
    """Turn a matrix into rows: one for each entry that is not 0, and one for each entry of a total."""
    read = _read(opened, range(len(opened.names)), bad_rows)
    origin = ids_of(read.columns[0], "The first column")
    texts = [name.strip() for name in opened.names[1:]]
    counts = [counts_of(cells, "", texts=True, blanks=True) for cells in read.columns[1:]]
    fault = np.stack([each.fault for each in counts])
    trips = check_counts(Counts(trips=np.stack([each.trips for each in counts]), fault=fault, source="A column of the matrix"), bad_rows)
    wanted = trips != 0
    wanted |= total_words(texts)[:-1, None] | total_words(origin.texts)[origin.codes]
    column, row = np.nonzero(wanted)
    destination = Ids(
        codes=np.where([not text for text in texts], -1, np.arange(len(texts)))[column], texts=texts, numeric=False, source="The header"
    )
    pairs = Pairs(origin=replace(origin, codes=origin.codes[row]), destination=destination, trips=trips[column, row])
    return _Rows(pairs=pairs, ragged=read.bad.total)


def _find_leaves(rows: _Rows, sides: tuple[Regions, Regions], bad_rows: str) -> Trips:
    """Look up the ids, and leave totals out. In files with a person column no row is taken for a total."""
    pairs, notes = rows.pairs, list[str]()
    if bad_rows == "refuse":
        refuse_missing(pairs.origin)
        refuse_missing(pairs.destination)
    totals = are_totals(pairs, sides)
    if rows.person is None and (total := totals[0] | totals[1]).any():
        if bad_rows == "refuse":
            check_totals(pairs, *totals)
        pairs = pairs.at(~total)
        notes.append(TOTALS_CHECKED if bad_rows == "refuse" else TOTALS_UNCHECKED)
    return Trips(
        origin=leaf_indexes(pairs.origin, sides[0], bad_rows),
        destination=leaf_indexes(pairs.destination, sides[1], bad_rows),
        count=pairs.trips,
        person=rows.person,
        ragged=rows.ragged,
        notes=tuple(notes),
    )
