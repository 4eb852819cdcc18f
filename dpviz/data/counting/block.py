"""From the rows of files to cells, records and persons: the one arithmetic of rows that engines call, a block of rows at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.amounts import LONGEST_NUMBER
from dpviz.data.cell_counts import Totals, check_rows
from dpviz.data.columns import readable_texts
from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.safety import read_bytes
from dpviz.data.reading.tables import open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_BAD_LINES, NOT_CUT, BadLines, any_longer, cut_lines, line_begins, read_lines
from dpviz.errors import DpvizError, InputError

if TYPE_CHECKING:
    from dpviz.arrays import Integers
    from dpviz.data.counting.job import Job

TEXT_BYTES = 2**26
BLOCK_ROWS = 2**18  # of Parquet: the columns of a block fit the processor's cache, or nearly
OTHER_COLUMNS = "The files do not have the same columns, with the same types: save them again with one schema, or count them separately."
NO_PARQUET = "The files cannot be read as Parquet: one is damaged or cut short, or was changed while it was read."
ABSENT, DAMAGED, DIFFERENT = "absent", "damaged", "different"


class Part(NamedTuple):
    """A part of a file.

    Attributes:
        path: the path of the file, which must be the same for every worker.
        first: the first row group; in a text table, the part has the lines that begin at this byte or after it.
        last: the row group after the last one; in a text table, the part has the lines that begin before this byte.
    """

    path: str
    first: int
    last: int


class Rows(NamedTuple):
    """Some rows of a file. PRIVATE.

    Attributes:
        columns: the columns that the job reads, by name.
        rows: number of rows.
        read: bytes of the file that they take, about.
        bad: further lines of a text table, which are bad and not among the rows.
    """

    columns: Mapping[str, pa.ChunkedArray]
    rows: int
    read: float
    bad: BadLines = NO_BAD_LINES


class Block(NamedTuple):
    """What some rows count for. PRIVATE.

    Attributes:
        cells: (n,) cells of the good rows inside.
        records: (n,) records of each of them; None if each is one record.
        persons: (n,) who each belongs to: numbers of 64 bits, or canonical texts; None where the unit is one record.
        totals: what all rows add up to, before the bound.
        bad: bad lines of a text table.
        read: bytes of the file that the rows take, about.
    """

    cells: Integers
    records: Integers | None
    persons: pa.Array | None
    totals: Totals
    bad: BadLines
    read: float


def count_block(rows: Rows, job: Job) -> Block:
    """Return the cells, records and persons of the good rows inside, and what all rows add up to."""
    cells = job.finder.cells(rows.columns)
    records = None if job.count is None else job.weights(rows.columns[job.count])
    persons = None if job.person is None else job.persons(rows.columns[job.person]).combine_chunks()
    no_person = None if persons is None else persons.is_null().to_numpy(zero_copy_only=False)
    inside, totals = check_rows(cells, records, no_person)
    if inside is not None and not inside.all():
        cells, records = cells[inside], None if records is None else records[inside]
        persons = None if persons is None else persons.filter(pa.array(inside))
    return Block(cells, records, persons, totals, rows.bad, rows.read)


@dataclass(frozen=True)
class UnreadPartError(Exception):
    """Why a part cannot be read: it is `ABSENT`, `DAMAGED` or `DIFFERENT`, with other columns than the other files."""

    kind: str


def blocks_of(part: Part, job: Job) -> Iterator[Block]:
    """Yield the blocks of a part.

    Raises:
        UnreadPartError: the file does not exist, is damaged, or has other columns than the other files.
    """
    return (count_block(rows, job) for rows in read_part(part, job))


def read_part(part: Part, job: Job) -> Iterator[Rows]:
    """Yield the rows of a part; errors as of `blocks_of`."""
    rows = _read_text(part, job) if job.is_text else _read_parquet(part, job)
    while some := _next_rows(part, rows):
        yield some


def _next_rows(part: Part, rows: Iterator[Rows]) -> Rows | None:
    """Return the next rows; None after the last."""
    try:
        return next(rows, None)
    except (UnreadPartError, MemoryError):
        raise
    except Exception:  # noqa: BLE001, S110  (libraries document no common base class, and their texts may quote entries)
        pass
    raise UnreadPartError(DAMAGED if Path(part.path).is_file() else ABSENT)


def _read_parquet(part: Part, job: Job) -> Iterator[Rows]:
    names, groups = list(job.columns), list(range(part.first, part.last))
    with pq.ParquetFile(part.path) as file:
        stored, metadata = file.schema_arrow, file.metadata
    if any(name not in stored.names or stored.field(name).type != job.schema.field(name).type for name in names):
        raise UnreadPartError(DIFFERENT)
    ids = [name for name in names if job.finder.by_id and name in job.finder.columns and _has_dictionary(metadata, groups, name)]
    with pq.ParquetFile(part.path, metadata=metadata, read_dictionary=ids, page_checksum_verification=True) as file:
        row_bytes = Path(part.path).stat().st_size / max(metadata.num_rows, 1)
        for batch in file.iter_batches(BLOCK_ROWS, row_groups=groups, columns=names, use_threads=False):
            columns = {name: readable_texts(pa.chunked_array([batch.column(name)])) for name in names}
            yield Rows(columns, batch.num_rows, batch.num_rows * row_bytes)


def _has_dictionary(metadata: pq.FileMetaData, groups: list[int], name: str) -> bool:
    """Return whether the texts of a column are stored as a dictionary in some row groups, so that each distinct one is looked up once."""
    index = next((index for index in range(metadata.num_columns) if metadata.schema.column(index).path == name), None)
    if index is None:
        return False
    chunks = [metadata.row_group(group).column(index) for group in groups]
    return all(chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page for chunk in chunks)


def _read_text(part: Part, job: Job) -> Iterator[Rows]:
    position_of = {name: job.schema.names.index(name) for name in job.columns}
    are_numbers = bool(job.finder.number_columns)  # until an entry is none: then all are read as texts
    with Path(part.path).open("rb") as file:
        for lines in read_lines(file, line_begins(file, part.first), line_begins(file, part.last)):
            layout = job.text_layout(as_numbers=True)
            are_numbers = are_numbers and not any_longer(lines, LONGEST_NUMBER)  # Arrow takes numbers of any length
            cut = or_none(lambda lines=lines, layout=layout: cut_lines(lines, layout)) if are_numbers else None  # type: ignore[misc]
            are_numbers = cut is not None
            table, bad = cut or cut_lines(lines, job.text_layout())
            yield Rows({name: table.column(str(cell)) for name, cell in position_of.items()}, table.num_rows, len(lines), bad)


def row_groups(path: Path) -> list[int]:
    """Return the number of rows of each row group of a Parquet file.

    Raises:
        InputError: the file is damaged.
    """
    metadata = without_private_text(NO_PARQUET, lambda: pq.read_metadata(path))
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def parquet_parts(path: Path, groups: list[int], rows: int) -> Iterator[Part]:
    """Yield parts of a Parquet file: adjacent row groups with at most `rows` rows together, or a single larger row group."""
    first, rows_so_far = 0, 0
    for group, group_rows in enumerate(groups):
        if rows_so_far and rows_so_far + group_rows > rows:
            yield Part(str(path), first, group)
            first, rows_so_far = group, 0
        rows_so_far += group_rows
    if rows_so_far:
        yield Part(str(path), first, len(groups))


def text_parts(path: Path, job: Job) -> list[Part]:
    """Return the parts of a text table: for each stretch of `TEXT_BYTES` bytes, the rows that begin in it.

    Raises:
        InputError: the file cannot be read, or has other columns than the job.
    """
    rule = "The file cannot be read: does it exist, and may you read it?"
    head, size = without_private_text(rule, lambda: (read_bytes(path, HEAD_BYTES), path.stat().st_size))
    header = open_header(job.format, head, job.text_format)
    if header.names != tuple(job.schema.names):
        raise InputError(OTHER_COLUMNS)
    return [Part(str(path), first, min(first + TEXT_BYTES, size)) for first in range(header.end, size, TEXT_BYTES)]


_PART_ROWS = 2**20  # of Parquet files


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """What the engine may use of the machine.

    Attributes:
        memory: bytes that DuckDB uses before it spills to disk; if None, 640 MiB, or a quarter of the machine's memory where that is less.
        threads: number of threads; the number of processors if None.
        folder: the folder in which a private folder for spilling is made, and later removed; the system's temporary folder if None.
    """

    memory: int | None = None
    threads: int | None = None
    folder: Path | None = None


@dataclass(kw_only=True, eq=False)
class BlockStream:
    """The blocks of all files of a job, which several threads read. It can be read once. PRIVATE.

    Attributes:
        job: what is counted.
        threads: number of threads.
        totals: what the rows that were read so far add up to.
        bad: their bad lines.
        read: how many bytes were read so far, about.
    """

    job: Job
    threads: int
    totals: Totals = field(default_factory=Totals, repr=False)
    bad: BadLines = field(default=NO_BAD_LINES, repr=False)
    read: float = field(default=0, repr=False)

    @property
    def share(self) -> float:
        """The approximate share of all bytes that was read, from 0 to 1."""
        return min(self.read / self.job.size, 1.0) if self.job.size else 0.0

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, a few of which are read ahead.

        Raises:
            InputError: a file cannot be read.
        """
        with ThreadPoolExecutor(self.threads) as pool:
            parts = self._parts()
            ahead = deque[tuple[Iterator[Block], Future[Block | None]]]()
            while True:
                while len(ahead) <= self.threads and (part := next(parts, None)) is not None:
                    blocks = blocks_of(part, self.job)
                    ahead.append((blocks, pool.submit(next, blocks, None)))
                if not ahead:
                    return
                blocks, future = ahead.popleft()
                if (block := self._result(future)) is not None:
                    ahead.append((blocks, pool.submit(next, blocks, None)))
                    self.totals, self.bad, self.read = self.totals + block.totals, self.bad + block.bad, self.read + block.read
                    yield block

    def _result(self, future: Future[Block | None]) -> Block | None:
        """Return a block once it was read. An error of a library gets our text and no cause, because its own may quote entries."""
        error = future.exception()
        if isinstance(error, DpvizError | MemoryError) or (error is not None and not isinstance(error, Exception)):
            raise error
        if error is not None:
            raise InputError(NOT_CUT if self.job.is_text else NO_PARQUET)
        return future.result()

    def _parts(self) -> Iterator[Part]:
        for path in self.job.files:
            if self.job.is_text:
                yield from text_parts(path, self.job)
            else:
                yield from parquet_parts(path, row_groups(path), _PART_ROWS)
