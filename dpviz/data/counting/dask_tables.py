"""Parts of files and the tables that Dask's workers make of them: cut at whole rows, counted, added up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.arrays import Integers
from dpviz.data.bounding import KEEP, REFUSE, Bound, Holdings, person_hashes, records_kept
from dpviz.data.cells import MOST_RECORDS, total_of
from dpviz.data.columns import is_number, readable_texts
from dpviz.data.counting.job import CountingPass
from dpviz.data.reading.safety import guarded
from dpviz.data.reading.tables import open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_BAD_LINES, SEPARATORS, BadLines, TextLayout, cut_lines, line_begins, read_lines
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DENSE_CELLS = 2**22
_AT_ONCE = 2**22


class Tally(IntEnum):
    """What a row of a table counts where its place is none: numbers of the curator's, and faults that the client raises."""

    OUTSIDE = -1  # records
    BAD = -2
    INSIDE = -3  # before the bound
    KEPT = -4  # after it
    ROWS = -10  # read; bad lines left out
    CELL_ROWS = -12
    COUNT_ROWS = -13
    PERSON_ROWS = -14
    OUTSIDE_ROWS = -15
    LONG_LINES = -16  # bad ones, by what is wrong with them
    NOT_UTF8_LINES = -17
    MARKED_LINES = -18
    RAGGED_LINES = -19
    FEWER = -21  # people with fewer records than were declared
    ABSENT = -31  # parts of files
    DAMAGED = -32
    DIFFERENT = -33
    MEMORY = -35
    FAILED = -36


_TEXT = pd.ArrowDtype(pa.large_string())


def table(places: Integers, counts: Integers) -> pd.DataFrame:
    """Places and the records of each, as Dask's frames hold them. PRIVATE."""
    return pd.DataFrame({"place": places.astype(np.int64, copy=False), "count": counts.astype(np.int64, copy=False)})


EMPTY = table(np.zeros(0, np.int64), np.zeros(0, np.int64))


def tallies(numbers: Mapping[Tally, int]) -> pd.DataFrame:
    """A table of counters alone; those that are 0 are left out."""
    some = {int(kind): number for kind, number in sorted(numbers.items()) if number}
    return table(np.fromiter(some.keys(), np.int64, len(some)), np.fromiter(some.values(), np.int64, len(some)))


def counted(places: Integers, weight: Integers | None, size: int) -> pd.DataFrame:
    """A table of (n,) places, ascending, and of the records in each.

    Args:
        places: (n,) at least 0.
        weight: (n,) records of each row; 1 each if None.
        size: how many places there are.
    """
    if weight is not None:
        return summed(table(places, weight))
    if size <= max(DENSE_CELLS, 4 * len(places)):
        total = np.bincount(places, minlength=size)
        some = np.flatnonzero(total)
        return table(some, total[some])
    return table(*np.unique(places, return_counts=True))


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One table of the same rows as several."""
    return pd.concat([EMPTY, *tables], ignore_index=True)


def summed(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table with each place once, ascending; sums are cut to 2**53, in floats, which never wrap around."""
    places, counts = frame["place"].to_numpy(), frame["count"].to_numpy()
    if not len(places):
        return EMPTY
    if (places[1:] > places[:-1]).all() and counts.min() > 0:
        return frame
    if 0 < places.max() < max(DENSE_CELLS, len(places)):
        return _summed_densely(places, counts)
    order = np.argsort(places, kind="stable")  # merges what is in order already
    places = places[order]
    first = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    totals = np.minimum(np.add.reduceat(counts[order].astype(np.float64), first), MOST_RECORDS).astype(np.int64)
    return table(places[first][totals > 0], totals[totals > 0])


def _summed_densely(places: Integers, counts: Integers) -> pd.DataFrame:
    """Sums of places that are few."""
    good = places >= 0
    total = np.minimum(np.bincount(places[good], weights=counts[good]), MOST_RECORDS).astype(np.int64)
    some = np.flatnonzero(total)
    return joined([summed(table(places[~good], counts[~good])), table(some, total[some])])


def by_person(owners: pa.Array, places: Integers, records: Integers, bound: Bound) -> pd.DataFrame:
    """Records of each person in each place, with the keyed hash by which people are brought together. PRIVATE.

    Args:
        owners: (n,) canonical texts, none missing.
        places: (n,) at least 0.
        records: (n,) how many each row stands for, at most m of which take part.
        bound: whether several in one place count once, and by which key people are brought together.
    """
    encoded = owners.dictionary_encode()
    few = np.minimum(records, bound.cap)
    rows = few > 0
    codes, places, few = _grouped(encoded.indices.to_numpy()[rows], places[rows], few[rows], bound)
    hashes = person_hashes(encoded.dictionary, bound.key)
    texts = pd.Series(pd.arrays.ArrowExtensionArray(encoded.dictionary.take(pa.array(codes))))
    return pd.DataFrame({"person": texts, "hash": hashes[codes], "place": places, "count": few})


def nobodys(numbers: pd.DataFrame) -> pd.DataFrame:
    """Counters as rows of nobody, to go along with records of people."""
    blank = pd.Series([""] * len(numbers), dtype=_TEXT)
    return pd.DataFrame({"person": blank, "hash": np.zeros(len(numbers), np.uint64), "place": numbers["place"], "count": numbers["count"]})


NOBODY = nobodys(EMPTY)


def kept(frame: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """What the bound leaves of people's records, all of which are in the frame: a table, with the counters that came along."""
    good = frame["place"].to_numpy() >= 0
    codes, texts = pd.factorize(frame["person"][good].to_numpy(dtype=object))
    people, places, records = _grouped(codes.astype(np.int64), frame["place"].to_numpy()[good], frame["count"].to_numpy()[good], bound)
    total = np.bincount(people, weights=records, minlength=len(texts))
    fewer = int((total < bound.most).sum()) if bound.fewer == REFUSE else 0
    lenient = replace(bound, fewer=KEEP) if bound.fewer == REFUSE else bound
    left = np.zeros(len(people), np.int64)
    for part in _slices(people, np.where(total[people] > bound.most, records, 1)):
        start, stop = people[part.start], people[part.stop - 1] + 1
        held = Holdings(codes=people[part] - start, texts=texts[start:stop], places=places[part], records=records[part])
        left[part] = records_kept(held, lenient)
    some = left > 0
    left_in = tallies({Tally.KEPT: total_of(left), Tally.FEWER: fewer})
    tables = (counted(places[some], left[some], size), frame.loc[~good, ["place", "count"]], left_in)
    return summed(joined(tables))


def _grouped(codes: Integers, places: Integers, records: Integers, bound: Bound) -> tuple[Integers, Integers, Integers]:
    """Distinct pairs of person and place, ordered by person, then place, and the records of each."""
    if not len(codes):
        return codes, places, records
    order = np.lexsort((places, codes))
    codes, places = codes[order], places[order]
    first = np.flatnonzero(np.r_[True, (codes[1:] != codes[:-1]) | (places[1:] != places[:-1])])
    number = np.ones(len(first), np.int64) if bound.distinct else np.add.reduceat(records[order], first)
    return codes[first], places[first], number


def _slices(people: Integers, weight: Integers) -> Iterable[slice]:
    """Runs of whole people, ordered by person, of about as many records as are bounded at once."""
    ends = np.r_[np.flatnonzero(people[1:] != people[:-1]) + 1, len(people)][: len(people) and None]
    share = np.cumsum(weight)[ends - 1] // _AT_ONCE if len(people) else ends
    last = ends[np.r_[share[1:] != share[:-1], True]] if len(people) else ends[:0]
    return map(slice, np.r_[0, last[:-1]].tolist() if len(last) else [], last.tolist())


TEXT_BYTES = 2**26
_NUMBERS_AT_ONCE, _CELLS_AT_ONCE = 2**21, 2**20  # rows of numbers alone, and of texts or geometries
OTHER_COLUMNS = "The files do not have the same columns, with the same types: save them again with one schema, or count them apart."


class Part(NamedTuple):
    """A part of a file.

    Attributes:
        path: of the file, as every worker must see it.
        first: its first row group, or the byte at or after which its first line begins.
        last: the row group after its last one, or the byte at or after which the next part's first line begins.
    """

    path: str
    first: int
    last: int


class Batch(NamedTuple):
    """Rows that are counted at once. PRIVATE.

    Attributes:
        columns: those that the pass reads.
        rows: how many.
        bad: further lines of a text table that are no rows.
    """

    columns: Mapping[str, pa.ChunkedArray]
    rows: int
    bad: BadLines = NO_BAD_LINES


@dataclass(frozen=True)
class Fault(Exception):  # noqa: N818  (it never leaves a worker)
    """A part cannot be read."""

    kind: Tally


def batches(part: Part, asked: CountingPass) -> Iterator[Batch]:
    """The rows of a part.

    Raises:
        Fault: the file is not there, damaged, or unlike the others.
    """
    read = _text_batches(part, asked) if asked.is_text else _parquet_batches(part, asked)
    while batch := _read(part, read):
        yield batch


def _read(part: Part, read: Iterator[Batch]) -> Batch | None:
    """The next rows; None after the last."""
    try:
        return next(read, None)
    except (Fault, MemoryError):
        raise
    except Exception:  # noqa: BLE001, S110  (libraries document no common root, and their texts must not get out)
        pass
    raise Fault(Tally.DAMAGED if Path(part.path).is_file() else Tally.ABSENT)


def _parquet_batches(part: Part, asked: CountingPass) -> Iterator[Batch]:
    with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
        stored, names = file.schema_arrow, list(asked.columns)
        if any(name not in stored.names or stored.field(name).type != asked.schema.field(name).type for name in names):
            raise Fault(Tally.DIFFERENT)
        groups = list(range(part.first, part.last))
        rows = _NUMBERS_AT_ONCE if all(is_number(stored.field(name).type) for name in names) else _CELLS_AT_ONCE
        for batch in file.iter_batches(rows, row_groups=groups, columns=names, use_threads=False):
            yield Batch({name: readable_texts(pa.chunked_array([batch.column(name)])) for name in names}, batch.num_rows)


def row_groups(path: Path) -> list[int]:
    """Rows of each row group of a Parquet file.

    Raises:
        InputError: the file is damaged.
    """
    rule = "The content cannot be read as Parquet: the file is damaged, or its ending is wrong."
    facts = guarded(rule, lambda: pq.read_metadata(path))
    return [facts.row_group(group).num_rows for group in range(facts.num_row_groups)]


def parquet_parts(path: Path, groups: list[int], rows: int) -> Iterator[Part]:
    """Whole row groups of a file, together of at most `rows` rows where they are small."""
    first, held = 0, 0
    for group, more in enumerate(groups):
        if held and held + more > rows:
            yield Part(str(path), first, group)
            first, held = group, 0
        held += more
    if held:
        yield Part(str(path), first, len(groups))


def text_parts(path: Path, asked: CountingPass) -> list[Part]:
    """Parts of a text table: the rows that begin in a stretch of its lines.

    Raises:
        InputError: the file cannot be read, or has other columns than the pass.
    """
    head, size = guarded("The file cannot be read: does it exist, and may you read it?", lambda: (_head(path), path.stat().st_size))
    header = open_header(asked.format, head)
    if header.names != tuple(asked.schema.names):
        raise InputError(OTHER_COLUMNS)
    return [Part(str(path), first, min(first + TEXT_BYTES, size)) for first in range(header.end, size, TEXT_BYTES)]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _text_batches(part: Part, asked: CountingPass) -> Iterator[Batch]:
    names = asked.schema.names
    wanted = {name: names.index(name) for name in asked.columns}
    layout = TextLayout(
        separator=SEPARATORS[asked.format],
        width=len(names),
        types=dict.fromkeys(wanted.values(), pa.string()),
        missing=("",),
    )
    with Path(part.path).open("rb") as file:
        for lines in read_lines(file, line_begins(file, part.first), line_begins(file, part.last)):
            table, bad = cut_lines(lines, layout)
            yield Batch({name: table.column(str(place)) for name, place in wanted.items()}, table.num_rows, bad)
