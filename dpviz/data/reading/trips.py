"""Read files of trips: describe them by their headers, and read their rows as trips between leaf regions; tables of ids of areas, too.

A file has one row per pair of regions or per trip, or is a matrix. Rows and columns whose id is a word for a total, such as "all", are left
out. Unless bad rows are dropped, these totals are first compared with the sums of the other rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpviz.arrays import Integers, Mask
from dpviz.data.cells import REMEDY
from dpviz.data.columns import (
    PointColumns,
    find_column,
    find_pair,
    is_number_text,
    people_of,
    resolve_columns,
)
from dpviz.data.fingerprints import sum_rows
from dpviz.data.leaf_ids import cut_block_code, find_leaves
from dpviz.data.placed_rows import PlacedRows
from dpviz.data.reading.memory_tables import TableUpload
from dpviz.data.reading.rules import ReadingRules
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source, read_checked
from dpviz.data.reading.tables import Cells, OpenTable, open_table, refuse_nested
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.text_rows import MISSING_WORDS, SEPARATORS
from dpviz.data.roles import (
    BLOCK_NAMES,
    ENDS,
    NOTHING_CHOSEN,
    DescribedFile,
    find_ends,
    find_trips,
    fold_name,
    names_destinations,
    only,
    propose_trips,
)
from dpviz.data.trips import (
    ColumnCounts,
    Ids,
    cells_of_ids,
    check_counts,
    counts_of,
    ids_of,
    refuse_missing,
)
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dpviz.data.bounding import People
    from dpviz.data.roles import PublicHeader, Use
    from dpviz.data.trips import Ids
    from dpviz.space.regions import Regions

NO_HEADER = "The first line must hold the names of the columns (of a matrix, the ids of the destinations); this one starts with data."


@dataclass(frozen=True, kw_only=True)
class IdColumns:
    """Names of the columns of a table of ids. None stands for no column, or for a column that is still to be found by its name.

    Attributes:
        ends: the column of ids of regions; or of trips, those of the regions where they begin and where they end.
        count: the column of records that a row stands for.
        person: the column that says who a row belongs to.
    """

    ends: tuple[str | None, ...]
    count: str | None = None
    person: str | None = None

    @property
    def found(self) -> tuple[str, ...]:
        """The columns of ids, none of which is still to be found."""
        return tuple(map(str, self.ends))


@dataclass(frozen=True, kw_only=True)
class IdsRequest(ReadingRules):
    """How the rows of tables of ids are read.

    Attributes:
        sides: the regions; or of trips, the regions where they begin and the regions where they end.
        columns: the columns that the caller names; those of trips are found by their names if they are None.
    """

    sides: tuple[Regions, ...]
    columns: IdColumns

    @property
    def noun(self) -> str:
        """What is counted."""
        return "records" if len(self.sides) == 1 else "trips"


def resolve_id_columns(names: Sequence[str], wanted: IdColumns, *, is_file: bool = True) -> IdColumns:
    """Return the wanted columns as the file spells them. Those of trips are found by their names if they are None.

    Args:
        names: the columns.
        wanted: names of columns.
        is_file: as for `resolve_columns`.

    Raises:
        InputError: no column or several have a wanted name; one column has two roles; the column of counts has the name of a survey
            weight.
    """
    count = wanted.count
    if len(wanted.ends) == 1:
        ends: tuple[str, ...] = (find_column(names, str(wanted.ends[0])),)
    else:
        advice = "The header of a matrix holds the ids of the destinations."
        ends = find_pair(names, ENDS, wanted.ends, is_file=is_file, advice=[advice])
        matches = find_trips([name for name in names if name not in ends])
        if count is None and len(matches) > 1:
            raise InputError(f"Several columns could be count: {' and '.join(map(repr, matches))}. Say which one it is with count='...'.")
        count = only(matches) if count is None else count
    others = resolve_columns(names, PointColumns(count=count, person=wanted.person), has_geometry=True)
    if {*ends} & {others.count, others.person}:
        if len(ends) == 1:
            raise InputError("region, count and person must be different columns.")
        raise InputError("count and person must be other columns than origin and destination.")
    return IdColumns(ends=ends, count=others.count, person=others.person)


def may_be_matrix(names: Sequence[str]) -> bool:
    """Return whether a header may be that of a matrix: it has several names, and no origin beside a destination.

    Words of one or two letters do not count as such: they may be ids, as DE and DO are of countries.
    """
    return len(names) > 1 and not any(min(map(len, pair)) > 2 for pair in find_ends(names))


def is_matrix(names: Sequence[str], request: IdsRequest) -> bool:
    """Return whether a file is a matrix of trips.

    The header of a matrix has the id of a destination after its first name, and the caller names neither origin nor destination. An id that
    is no usual name of a column decides, whatever the other names are: a single trip to a place called "d" or "to" may have made one of
    them, and must not turn a matrix into a table. Without such an id, and for ids that are written otherwise than in the regions, the
    header must pass `may_be_matrix`.

    Raises:
        InputError: the header is a row of data; the caller names a column of counts or people, which a matrix lacks.
    """
    wanted = request.columns
    if len(names) < 2 or any(wanted.ends):
        return False
    ids, (starts, ends) = [name.strip() for name in names[1:]], request.sides
    found = find_leaves(ids, ends) if may_be_matrix(names) else ends.find(ids, ends.depth)
    known = [name for name, leaf in zip(ids, found.tolist(), strict=True) if leaf >= 0]
    pairs = find_ends(names)
    if not known or (pairs and set(known) <= {name.strip() for name in (*itertools.chain(*pairs), *find_trips(names))}):
        return False
    if starts_with_data(names) or starts.find([names[0].strip()], starts.depth)[0] >= 0:
        raise InputError(NO_HEADER)
    if wanted.count is not None or wanted.person is not None:
        raise InputError("The file is a matrix of trips: every cell is a count, so leave count and person out.")
    return True


def starts_with_data(names: Sequence[str]) -> bool:
    """Return whether a header starts with a number and so is a row of data. The header of a matrix starts with a word or a blank."""
    return bool(names) and is_number_text(names[0])


def cut_length(name: str, side: Regions) -> int | None:
    """Return the length of the leaves' ids, to which a column's Census block codes are cut; None unless the column has a name of LODES."""
    lengths = {len(text) for text in side.ids_of(side.depth)}
    return lengths.pop() if fold_name(name) in BLOCK_NAMES and len(lengths) == 1 else None


TOTAL_WORDS = (
    *("total", "totals", "all", "sum", "sums", "grand total"),
    *("insgesamt", "gesamt", "summe", "gesamtsumme"),
    *("totaux", "ensemble", "somme", "totales", "suma", "totale", "totali", "somma", "soma", "total geral"),
    *("razem", "ogółem", "łącznie", "totaal", "totalt", "celkem", "итого", "всего", "合计", "总计", "合計", "総計"),
)
_CONTRADICTION = (
    "Rows or columns whose id is a word for a total, such as total, sum or all, do not equal the sum of the other rows or columns:"
    " the file contradicts itself. Correct them, or leave them out of the file."
)
_ROWS_ARE_DESTINATIONS = (
    "The first name of the matrix says that its rows are destinations: exchange rows and columns, or if the rows are origins, call the"
    " first column 'origin'."
)
_CODE_LENGTH = 5  # digits of an id in a header; shorter numbers may be years or classes
TOTALS_CHECKED = "rows or columns of totals, which equal the sums of the others"
TOTALS_UNCHECKED = "rows or columns of totals, unchecked"


@dataclass(frozen=True, kw_only=True, eq=False)
class IdRows:
    """Rows of a file before the leaf regions of their ids are found. PRIVATE.

    Attributes:
        ends: ids of n regions; or of n origins, and of n destinations.
        counts: (n,) records of each row, -1 where a row is to be left out.
        person: who each row belongs to; None without persons.
        ragged: number of further, bad lines.
        weighted: whether a row may stand for several records.
    """

    ends: tuple[Ids, ...]
    counts: Integers = field(repr=False)
    person: People | None = None
    ragged: int = field(default=0, repr=False)
    weighted: bool = True

    def select(self, rows: Mask) -> IdRows:
        """Return the rows that a (n,) mask selects, of rows without persons."""
        return replace(self, ends=tuple(replace(ids, codes=ids.codes[rows]) for ids in self.ends), counts=self.counts[rows])


def are_totals(trips: IdRows, sides: tuple[Regions, ...]) -> tuple[Mask, Mask]:
    """Return two (n,) masks: whether each row's origin is a word for a total, and not a region; and the same for its destination."""
    masks = []
    for ids, side in zip(trips.ends, sides, strict=True):
        words = total_words(ids.texts)
        words[:-1] &= side.find(ids.texts, side.depth) < 0
        masks.append(words[ids.codes])
    return masks[0], masks[1]


def total_words(texts: list[str]) -> Mask:
    """Return (k + 1,) whether each of k texts is a word for a total. The last entry, False, is for missing ids, whose code is -1."""
    return np.array([*(fold_name(text) in TOTAL_WORDS for text in texts), False])


def check_totals(trips: IdRows, from_total: Mask, to_total: Mask) -> None:
    """Refuse totals that are not the sums of the other rows.

    Raises:
        InputError: the stated total of an origin, of a destination or of all trips is not the sum of its rows.
    """
    single = ~(from_total | to_total)
    grand_total = from_total & to_total
    (origin, destination), count = (ids.codes for ids in trips.ends), trips.counts
    agree = (
        _sums_agree(origin, destination, count, (single, to_total & ~from_total))
        and _sums_agree(destination, origin, count, (single, from_total & ~to_total))
        and bool((count[grand_total] == count[single].sum()).all())
    )
    if not agree:
        raise InputError(_CONTRADICTION)


def _sums_agree(key: Integers, word: Integers, count: Integers, parts: tuple[Mask, Mask]) -> bool:
    """Return whether stated totals are the sums of single rows.

    Args:
        key: (n,) code of the region whose trips are added up.
        word: (n,) code of the other id of the row; in a row with a total, of a word such as "all". Totals are checked for each word.
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
class TripsFile(DescribedFile):
    """A description of a file of trips, from which the curator chooses the columns.

    Attributes:
        matrix: whether it looks like a matrix: origins in the first column, destinations in the header, counts in the cells.
        origin: the column of origins that is named, or whose name and that of the destination say so; None if there is none, or several.
        destination: likewise.
        use: what the header says of trips, pairs of coordinates included; None for a matrix.
    """

    matrix: bool
    origin: str | None
    destination: str | None
    use: Use | None = field(default=None, compare=False)


def inspect_trips(
    source: Source,
    *,
    through: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    text_format: TextFormat = PLAIN_TEXT,
    chosen: Mapping[str, Any] = NOTHING_CHOSEN,
) -> TripsFile:
    r"""Describe a file of trips. The result holds no entry of a row.

    Args:
        source: a path, or an open binary file with a `name`.
        through: whether to read every row as well, if the columns are clear from their names, and to refuse rows that `read_trips`
            refuses for all regions under bad_rows="refuse".
        limits: the most that the file may hold.
        text_format: the declared format of a text table.
        chosen: columns that are named, by role, as the file spells them; for count perhaps "none".

    Raises:
        InputError: the file cannot be opened, is too large, starts with data where column names belong, or has a bad row.

    >>> import io
    >>> upload = io.BytesIO(b"home,work,trips\na,b,12\nb,a,3\n")
    >>> upload.name = "commuters.csv"
    >>> found = inspect_trips(upload, through=True)
    >>> found.origin, found.destination, found.count, found.matrix
    ('home', 'work', 'trips', False)
    """
    opened = open_rows(source, limits, text_format=text_format)
    if starts_with_data(opened.names):
        raise InputError(NO_HEADER)
    is_named = any(chosen.get(role) for role in ENDS)
    matrix = not is_named and may_be_matrix(opened.names) and _looks_like_matrix(opened)
    described = describe_trips(opened.format, opened.header, opened.rows, chosen, matrix=matrix)
    if through and described.matrix:
        _read_matrix(opened, "refuse")
    elif through and described.origin is not None and described.destination is not None:
        read_through(opened, (described.origin, described.destination), described.count)
    return described


def describe_trips(kind: str, header: PublicHeader, rows: int | None, chosen: Mapping[str, Any], *, matrix: bool) -> TripsFile:
    """Describe a table of trips by its header alone."""
    use = propose_trips(header, chosen)
    ids = {} if matrix else {role: name for role, name in use.found.items() if isinstance(name, str)}
    roles: dict[str, Any] = {role: ids.get(role) for role in (*ENDS, "count", "person")}
    return TripsFile(format=kind, columns=header.names, matrix=matrix, **roles, rows=rows, use=None if matrix else use)


def _looks_like_matrix(opened: OpenTable) -> bool:
    """Return whether most names after the first, words for totals left out, are entries of the first column; or all are long codes."""
    if any(map(pa.types.is_nested, opened.types.values())):
        return False
    names = [name.strip() for name in opened.names[1:] if fold_name(name) not in TOTAL_WORDS]
    if names and all(name.isdecimal() and len(name) == len(names[0]) >= _CODE_LENGTH for name in names):
        return True
    first_column = {text.strip() for text in ids_of(read_columns(opened, [0], "drop").columns[0], "").texts}
    return 2 * sum(name in first_column for name in names) > len(names)


def read_ids(source: Source, request: IdsRequest) -> PlacedRows:
    """Read a file's rows as leaf regions or pairs of them; bad rows are refused, or marked to be dropped.

    Raises:
        InputError: as `read_trips` and `read_areas`.
    """
    opened = open_rows(source, request.limits, quoted_newlines=request.quoted_newlines, text_format=request.text_format)
    if is_matrix(opened.names, request):
        rows = _read_matrix(opened, request.bad_rows)
    else:
        columns = resolve_id_columns(opened.names, request.columns, is_file=not isinstance(source, TableUpload))
        rows = _read_table(opened, columns, request)
    return _find_leaves(rows, request.sides, request.bad_rows)


def open_rows(source: Source, limits: Limits, *, text_format: TextFormat, quoted_newlines: bool = False) -> OpenTable:
    """Open a table, whose first line names its columns."""
    kind, data = read_checked(source, limits)
    return open_table(kind, data, limits, quoted_newlines=quoted_newlines, text_format=text_format).index_first()


def read_columns(
    opened: OpenTable, positions: Sequence[int], bad_rows: str, counts: Sequence[int] = (), numbers: Sequence[int] = ()
) -> Cells:
    """Read the columns at some positions, and refuse nested columns. Bad lines are refused, or under "drop" left out.

    `counts` are the positions of columns of counts, and `numbers` of those of other numbers.
    """
    read = opened.take(positions, counts=counts, numbers=numbers)
    if bad_rows == "refuse":
        read.bad.refuse(REMEDY)
    refuse_nested(read.columns)
    return read


def read_named(opened: OpenTable, names: Sequence[str | None], bad_rows: str, count: str | None) -> tuple[dict[str, pa.ChunkedArray], int]:
    """Read the columns of some names, as `read_columns` does; None is no column, and `count` the one of counts.

    Returns:
        The columns by their names, and the number of bad lines.
    """
    wanted = list(dict.fromkeys(name for name in names if name is not None))
    counts = [] if count is None else [opened.names.index(count)]
    read = read_columns(opened, [opened.names.index(name) for name in wanted], bad_rows, counts)
    return dict(zip(wanted, read.columns, strict=True)), read.bad.total


def counts_in(cells: Mapping[str, pa.ChunkedArray], name: str, bad_rows: str, noun: str = "trips") -> Integers:
    """Return (n,) counts in a column, as `check_counts` does."""
    return check_counts(counts_of(cells[name], f"Column {name!r}", texts=True, noun=noun), bad_rows)


def persons_in(cells: Mapping[str, pa.ChunkedArray], name: str | None, opened: OpenTable) -> People | None:
    """Return the persons in a column, None without one. In a text table the words NA, null, NaN and the like are missing entries."""
    if name is None:
        return None
    people = cells[name]
    if opened.format in SEPARATORS:
        people = pc.if_else(pc.is_in(people, value_set=pa.array(MISSING_WORDS)), pa.scalar(None, people.type), people)
    return people_of(people)


def read_through(opened: OpenTable, ids: Sequence[str], count: str | None, noun: str = "trips") -> None:
    """Refuse rows that are bad for all regions: by their counts, then by their ids, as such rows alone are no reason not to go on."""
    cells, _ = read_named(opened, [*ids, count], "refuse", count)
    if count is not None:
        counts_in(cells, count, "refuse", noun)
    for name in ids:
        refuse_missing(ids_of(cells[name], f"Column {name!r}"))


def _read_table(opened: OpenTable, columns: IdColumns, request: IdsRequest) -> IdRows:
    bad_rows, as_counts = request.bad_rows, None if columns.count == columns.person else columns.count
    cells, ragged = read_named(opened, (*columns.ends, columns.count, columns.person), bad_rows, as_counts)
    ends = tuple(block_ids(cells[name], name, side) for name, side in zip(columns.found, request.sides, strict=True))
    counts = np.ones(len(ends[0].codes), np.int64)
    if columns.count is not None and len(counts):
        counts = counts_in(cells, columns.count, bad_rows, request.noun)
    person = persons_in(cells, columns.person, opened)
    if bad_rows == "refuse" and person is not None and (person.codes < 0).any():
        raise InputError(f"Column {columns.person!r} has a missing cell: every row must say whom it belongs to. {REMEDY}")
    return IdRows(ends=ends, counts=counts, person=person, ragged=ragged, weighted=columns.count is not None)


def block_ids(cells: pa.ChunkedArray, name: str, side: Regions) -> Ids:
    """Return the ids in a column. In a column with a name of LODES, Census block codes are cut to the length of the leaves' ids."""
    ids, length = ids_of(cells, f"Column {name!r}"), cut_length(name, side)
    return ids if length is None else replace(ids, texts=[cut_block_code(text, length) for text in ids.texts])


def _read_matrix(opened: OpenTable, bad_rows: str) -> IdRows:
    """Turn a matrix into rows: one for each cell that is not 0, or that is in a row or column of totals.

    Raises:
        InputError: the first name says that rows are destinations; under "refuse", a cell is bad, or the header names a destination
            twice. Under "drop" the columns of a destination are added up: one trip to a place that is written with a blank may have
            made one of them.
    """
    if names_destinations(opened.names[0]):
        raise InputError(_ROWS_ARE_DESTINATIONS)
    if bad_rows == "refuse" and len({name.strip() for name in opened.names[1:]}) < len(opened.names) - 1:
        raise InputError("The header names a destination twice; add up or rename its columns.")
    table = read_columns(opened, range(len(opened.names)), bad_rows, range(1, len(opened.names)))
    origin = ids_of(table.columns[0], "The first column")
    texts = [name.strip() for name in opened.names[1:]]
    counts = [counts_of(cells, "", texts=True, blanks=True) for cells in table.columns[1:]]
    fault = np.stack([column_counts.fault for column_counts in counts])
    trips = check_counts(
        ColumnCounts(trips=np.stack([column_counts.trips for column_counts in counts]), fault=fault, source="A column of the matrix"),
        bad_rows,
    )
    is_row = trips != 0
    is_row |= total_words(texts)[:-1, None] | total_words(origin.texts)[origin.codes]
    column, row = np.nonzero(is_row)
    destination = Ids(codes=np.where([not text for text in texts], -1, np.arange(len(texts)))[column], texts=texts, source="The header")
    return IdRows(ends=(replace(origin, codes=origin.codes[row]), destination), counts=trips[column, row], ragged=table.bad.total)


def _find_leaves(rows: IdRows, sides: tuple[Regions, ...], bad_rows: str) -> PlacedRows:
    """Find the leaf regions of the ids, and leave totals of trips out. In files with a person column no row is taken for a total."""
    notes = list[str]()
    if bad_rows == "refuse":
        for ids in rows.ends:
            refuse_missing(ids)
    totals = are_totals(rows, sides) if len(sides) > 1 and rows.person is None else None
    if totals is not None and (total := totals[0] | totals[1]).any():
        if bad_rows == "refuse":
            check_totals(rows, *totals)
        rows = rows.select(~total)
        notes.append(TOTALS_CHECKED if bad_rows == "refuse" else TOTALS_UNCHECKED)
    return PlacedRows(
        cells=cells_of_ids(rows.ends, sides, bad_rows),
        count=rows.counts if rows.weighted else None,
        person=rows.person,
        ragged=rows.ragged,
        notes=tuple(notes),
        rows=None if rows.person is None else sum_rows([ids.words() for ids in rows.ends], rows.counts, rows.person),
    )
