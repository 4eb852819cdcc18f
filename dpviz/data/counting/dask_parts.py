"""Parts of files that Dask's workers count one by one: row groups of Parquet files, stretches of text tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.data.columns import is_number, readable_texts
from dpviz.data.counting.dask_tables import Tally
from dpviz.data.counting.job import CountingPass
from dpviz.data.reading.safety import guarded
from dpviz.data.reading.tables import open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_BAD_LINES, SEPARATORS, BadLines, TextLayout, cut_lines, line_begins, read_lines
from dpviz.errors import InputError

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
