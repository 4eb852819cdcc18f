"""The work of Dask's workers: they read parts of files, and count, bound and add up tables of records per cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.arrays import Integers
from dpviz.data.bounding import REFUSE, Bound, factorize_objects, group_pairs, keep_records, person_hashes
from dpviz.data.cells import MOST_RECORDS, total_of
from dpviz.data.columns import readable_texts
from dpviz.data.counting.job import Job
from dpviz.data.library_errors import without_private_text
from dpviz.data.reading.safety import first_bytes
from dpviz.data.reading.tables import open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_BAD_LINES, BadLines, cut_lines, line_begins, read_lines
from dpviz.data.roles import is_number
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DENSE_CELLS = 2**22


class Tally(IntEnum):
    """Keys of counters and faults in the column `cell` of a table. The keys are negative, unlike numbers of cells.

    Counters are for the curator. For a fault the client raises an error.
    """

    OUTSIDE = -1  # from here on: numbers of records
    BAD = -2
    INSIDE = -3  # records before the bound
    KEPT = -4  # records after the bound
    ROWS = -10  # from here on: numbers of rows, first all rows but the bad lines
    CELL_ROWS = -12
    COUNT_ROWS = -13
    PERSON_ROWS = -14
    OUTSIDE_ROWS = -15
    LONG_LINES = -16  # from here on: numbers of bad lines, by the rule that they break
    NOT_UTF8_LINES = -17
    BADLY_QUOTED_LINES = -18
    RAGGED_LINES = -19
    FEWER = -21  # people with fewer records than was declared for every person
    ABSENT = -31  # from here on: numbers of parts that were not counted, by the reason
    DAMAGED = -32
    DIFFERENT = -33
    MEMORY = -35
    FAILED = -36


def table(cells: Integers, counts: Integers) -> pd.DataFrame:
    """Make a table of the columns `cell` and `count`: cells, and the records of each. PRIVATE."""
    return pd.DataFrame({"cell": cells.astype(np.int64, copy=False), "count": counts.astype(np.int64, copy=False)})


EMPTY = table(np.zeros(0, np.int64), np.zeros(0, np.int64))


def tally_table(numbers: Mapping[Tally, int]) -> pd.DataFrame:
    """Make a table of counters; counters of 0 are left out."""
    nonzero = {int(kind): number for kind, number in sorted(numbers.items()) if number}
    return table(np.fromiter(nonzero.keys(), np.int64, len(nonzero)), np.fromiter(nonzero.values(), np.int64, len(nonzero)))


def count_cells(cells: Integers, weight: Integers | None, size: int) -> pd.DataFrame:
    """Return a table of distinct cells, ascending, and the records in each.

    Args:
        cells: (n,) the cell of each row, at least 0.
        weight: (n,) records of each row; if None, each row is one record.
        size: number of cells.
    """
    if weight is not None:
        return sum_tables(table(cells, weight))
    if size <= max(DENSE_CELLS, 4 * len(cells)):
        total = np.bincount(cells, minlength=size)
        occupied = np.flatnonzero(total)
        return table(occupied, total[occupied])
    return table(*np.unique(cells, return_counts=True))


def join_tables(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Join the rows of several tables, one after the other."""
    return pd.concat([EMPTY, *tables], ignore_index=True)


def sum_tables(table_of_cells: pd.DataFrame) -> pd.DataFrame:
    """Add up the rows of each cell, ascending by cell. Sums are floats, because integers could wrap around, and are cut to 2**53."""
    cells, counts = table_of_cells["cell"].to_numpy(), table_of_cells["count"].to_numpy()
    if not len(cells):
        return EMPTY
    if (cells[1:] > cells[:-1]).all() and counts.min() > 0:
        return table_of_cells
    if 0 < cells.max() < max(DENSE_CELLS, len(cells)):
        is_cell = cells >= 0  # there are few cells: one array of all of them is fast
        total = np.minimum(np.bincount(cells[is_cell], weights=counts[is_cell]), MOST_RECORDS).astype(np.int64)
        occupied = np.flatnonzero(total)
        return join_tables([sum_tables(table(cells[~is_cell], counts[~is_cell])), table(occupied, total[occupied])])
    order = np.argsort(cells, kind="stable")  # a stable sort is fast where parts are in order already
    cells = cells[order]
    first = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]])
    totals = np.minimum(np.add.reduceat(counts[order].astype(np.float64), first), MOST_RECORDS).astype(np.int64)
    return table(cells[first][totals > 0], totals[totals > 0])


def count_by_person(owners: pa.Array, cells: Integers, records: Integers, bound: Bound) -> pd.DataFrame:
    """Count the records of each person in each cell, and add the person's keyed hash, by which Dask groups the rows. PRIVATE.

    Args:
        owners: (n,) persons, as canonical texts or numbers of 64 bits, none missing.
        cells: (n,) the cell of each row, at least 0.
        records: (n,) records that each row stands for; at most m of them can count.
        bound: the bound of each person's records; its key is the key of the hash.
    """
    encoded = owners.dictionary_encode()
    persons = encoded.dictionary.to_numpy() if pa.types.is_integer(owners.type) else encoded.dictionary
    capped = np.minimum(records, bound.cap)
    rows = capped > 0
    codes = encoded.indices.to_numpy()[rows].astype(np.int64)
    holdings = group_pairs(codes, persons, cells[rows], capped[rows], bound)
    hashes = person_hashes(persons, bound.key)[holdings.codes]
    people = persons[holdings.codes] if isinstance(persons, np.ndarray) else _text_column(persons.take(pa.array(holdings.codes)))
    return pd.DataFrame({"person": people, "hash": hashes, "cell": holdings.cells, "count": holdings.records})


def without_person(numbers: pd.DataFrame, *, as_numbers: bool = False) -> pd.DataFrame:
    """Turn counters into rows without a person, with the columns of `count_by_person`, where people are texts or numbers."""
    nobody = np.zeros(len(numbers), np.int64) if as_numbers else _text_column(pa.array([""] * len(numbers), pa.large_string()))
    return pd.DataFrame({"person": nobody, "hash": np.zeros(len(numbers), np.uint64), "cell": numbers["cell"], "count": numbers["count"]})


def _text_column(texts: pa.Array) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(texts))


def bound_table(rows: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """Bound the records of people, all of whose records must be in `rows`. Return the kept records per cell, and the counters."""
    is_cell = rows["cell"].to_numpy() >= 0
    persons = rows["person"][is_cell]
    are_numbers = persons.dtype == np.int64
    codes, distinct = pd.factorize(persons.to_numpy()) if are_numbers else factorize_objects(persons.to_numpy(dtype=object))
    cells, records = (rows[name].to_numpy()[is_cell] for name in ("cell", "count"))
    holdings = group_pairs(codes.astype(np.int64), distinct, cells, records, bound)
    kept_records, fewer = keep_records(holdings, bound)
    is_kept = kept_records > 0
    counters = tally_table({Tally.KEPT: total_of(kept_records), Tally.FEWER: fewer if bound.fewer == REFUSE else 0})
    tables = (count_cells(holdings.cells[is_kept], kept_records[is_kept], size), rows.loc[~is_cell, ["cell", "count"]], counters)
    return sum_tables(join_tables(tables))


TEXT_BYTES = 2**26
_NUMBERS_AT_ONCE, _CELLS_AT_ONCE = 2**21, 2**20  # rows of numbers alone, and rows with texts or geometries
OTHER_COLUMNS = "The files do not have the same columns, with the same types: save them again with one schema, or count them separately."


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


class Batch(NamedTuple):
    """Some rows of a file. PRIVATE.

    Attributes:
        columns: the columns that the job reads, by name.
        rows: number of rows.
        bad: further lines of a text table, which are bad and not among the rows.
    """

    columns: Mapping[str, pa.ChunkedArray]
    rows: int
    bad: BadLines = NO_BAD_LINES


@dataclass(frozen=True)
class Fault(Exception):  # noqa: N818  (it never leaves a worker)
    """Why a part cannot be read."""

    kind: Tally


def batches(part: Part, job: Job) -> Iterator[Batch]:
    """Yield the rows of a part.

    Raises:
        Fault: the file does not exist, is damaged, or has other columns than the other files.
    """
    rows = _text_batches(part, job) if job.is_text else _parquet_batches(part, job)
    while batch := _next_batch(part, rows):
        yield batch


def _next_batch(part: Part, rows: Iterator[Batch]) -> Batch | None:
    """Return the next batch; None after the last."""
    try:
        return next(rows, None)
    except (Fault, MemoryError):
        raise
    except Exception:  # noqa: BLE001, S110  (libraries document no common base class, and their texts may quote entries)
        pass
    raise Fault(Tally.DAMAGED if Path(part.path).is_file() else Tally.ABSENT)


def _parquet_batches(part: Part, job: Job) -> Iterator[Batch]:
    with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
        stored, names = file.schema_arrow, list(job.columns)
        if any(name not in stored.names or stored.field(name).type != job.schema.field(name).type for name in names):
            raise Fault(Tally.DIFFERENT)
        groups = list(range(part.first, part.last))
        rows = _NUMBERS_AT_ONCE if all(is_number(stored.field(name).type) for name in names) else _CELLS_AT_ONCE
        for batch in file.iter_batches(rows, row_groups=groups, columns=names, use_threads=False):
            yield Batch({name: readable_texts(pa.chunked_array([batch.column(name)])) for name in names}, batch.num_rows)


def row_groups(path: Path) -> list[int]:
    """Return the number of rows of each row group of a Parquet file.

    Raises:
        InputError: the file is damaged.
    """
    rule = "The content cannot be read as Parquet: the file is damaged, or its ending is wrong."
    metadata = without_private_text(rule, lambda: pq.read_metadata(path))
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
    head, size = without_private_text(rule, lambda: (first_bytes(path, HEAD_BYTES), path.stat().st_size))
    header = open_header(job.format, head, job.text_format)
    if header.names != tuple(job.schema.names):
        raise InputError(OTHER_COLUMNS)
    return [Part(str(path), first, min(first + TEXT_BYTES, size)) for first in range(header.end, size, TEXT_BYTES)]


def _text_batches(part: Part, job: Job) -> Iterator[Batch]:
    position_of = {name: job.schema.names.index(name) for name in job.columns}
    layout = job.text_layout()
    with Path(part.path).open("rb") as file:
        for lines in read_lines(file, line_begins(file, part.first), line_begins(file, part.last)):
            table, bad = cut_lines(lines, layout)
            yield Batch({name: table.column(str(cell)) for name, cell in position_of.items()}, table.num_rows, bad)
