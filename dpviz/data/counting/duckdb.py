"""The engine "duckdb": it counts in SQL over files that need not fit in memory.

With a person column, DuckDB sorts the rows by person and cell, on disk if they do not fit in memory, and NumPy bounds each person's
records while the sorted rows stream by.
"""

from __future__ import annotations

import glob
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.data.bounding import FEWER, REFUSE, Bound
from dpviz.data.cell_counts import CellCounts, CellSums
from dpviz.data.cells import BAD, MOST_RECORDS, OUTSIDE, most_per_cell, total_of
from dpviz.data.counting.duckdb_session import DuckDBSettings, Session, UnreadableError, connect, quote_list
from dpviz.data.counting.duckdb_sql import BAD_COUNT, NO_PERSON, Expressions, ParquetRows, Rows, TextRows
from dpviz.data.counting.job import Faults, Job, Progress
from dpviz.data.counting.sorted_people import SortedPeople
from dpviz.data.reading.safety import private_folder
from dpviz.data.reading.text_rows import NO_BAD_LINES, NOT_CUT, BadLines
from dpviz.data.roles import is_text, plain_type
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.duckdb_session import Session

_SHARE_OF_READING = 0.7  # of the time that a count by person takes, where rows are read before DuckDB gets them
CAPPED_SUM = f"CAST(least(sum({{}}), {MOST_RECORDS}) AS BIGINT)"


def sorted_rows_query(rows: str, *, weighted: bool) -> str:
    """Return a query of rows in ascending order of person and cell. Faulty rows have no person, and come first.

    Args:
        rows: a query of cell (or fault), person, and amount if `weighted`.
        weighted: whether a row can stand for several records.
    """
    person, amount = "CASE WHEN cell < 0 THEN NULL ELSE person END", ", amount" if weighted else ""
    return f"SELECT {person} AS person, cell{amount} FROM ({rows}) ORDER BY 1 NULLS FIRST, 2"  # noqa: S608


def bound_people(session: Session, rows: str, bound: Bound, size: int, *, weighted: bool) -> SortedPeople:
    """Sort rows by person, and bound each person's records.

    Args:
        session: an open DuckDB.
        rows: a query as for `sorted_rows_query`.
        bound: the bound of each person's records.
        size: number of cells.
        weighted: whether a row can stand for several records.
    """
    people = SortedPeople(bound=bound, sums=CellSums(size=size))

    def take(batch: pa.RecordBatch) -> None:
        cells, *amounts = (batch.column(name).to_numpy().astype(np.int64, copy=False) for name in batch.schema.names[1:])
        people.add(batch.column(0), cells, *(amounts or [None]))

    done = 1.0 if session.read_share is None else _SHARE_OF_READING
    session.stream(sorted_rows_query(rows, weighted=weighted), take, (0.0, done))
    people.finish()
    return people


DEFAULT_SETTINGS = DuckDBSettings()
_DAMAGED = "The files cannot be read as Parquet: one is damaged or cut short, or was changed while it was read."
_STREAM = "stream"
_FAULTS = {"cell": BAD, "count": BAD_COUNT, "person": NO_PERSON, "outside": OUTSIDE}
_DENSE_CELLS, _CELLS_PER_OCCUPIED = 2**22, 4  # up to these sizes, cells are ordered by an array of all cells


def count_with_duckdb(job: Job, progress: Progress, settings: DuckDBSettings = DEFAULT_SETTINGS) -> CellCounts:
    """Count all rows of some files. Data that are spilled to disk are removed, even if the count fails.

    Args:
        job: the files, Parquet, CSV or TSV, and what is counted in them.
        progress: reports progress, and can cancel.
        settings: the memory, threads and folder of DuckDB.

    Raises:
        InputError: the files cannot be read, a row is bad and bad rows are refused, or there is no room to spill.
        DpvizError: the count was cancelled.
    """
    progress.report(0.0)
    counts = None
    if not job.is_text:
        may_fail = any(is_text(plain_type(job.schema.field(name).type)) for name in job.columns)
        with suppress(UnreadableError) if may_fail else nullcontext():
            counts = _count(job, progress, settings, None)
    if counts is None:  # texts in Parquet that are not UTF-8 end DuckDB's own reader; in Arrow's each is only a missing entry
        counts = _count(job, progress, settings, TextRows(job=job) if job.is_text else ParquetRows(job=job))
    progress.report(1.0)
    return counts


def _count(job: Job, progress: Progress, settings: DuckDBSettings, stream: Rows | None) -> CellCounts:
    """Count the rows of a stream; without one, the rows of the job's files, which DuckDB reads itself."""
    with private_folder(settings.folder) as folder, connect(job, folder, settings) as connection:
        damaged = NOT_CUT if job.is_text else _DAMAGED
        read_share = None if stream is None else lambda: stream.share
        session = Session(connection=connection, folder=folder, progress=progress, damaged=damaged, read_share=read_share)
        return _count_rows(job, session, stream)


def _count_rows(job: Job, session: Session, stream: Rows | None) -> CellCounts:
    rows, weighted = _rows_query(job, session, stream), job.count is not None
    if job.person is None or job.bound is None:
        amount = CAPPED_SUM.format("amount") if weighted else "count(*)"
        query = f"SELECT cell, {amount} AS records, count(*) AS rows FROM ({rows}) GROUP BY cell"  # noqa: S608
        row_counts = _Sums.from_columns(session.columns(query, (0.0, 1.0)))
        return _make_result(job, row_counts, row_counts.inside(), NO_BAD_LINES if stream is None else stream.bad)
    people = bound_people(session, rows, job.bound, job.finder.size, weighted=weighted)
    row_counts, lines = _Sums.from_people(people), NO_BAD_LINES if stream is None else stream.bad
    _refuse_faults(job, row_counts, lines)
    if people.fewer and job.bound.fewer == REFUSE:
        raise InputError(FEWER)
    cells, records = people.sums.result()
    return _make_result(job, row_counts, _Sums(cells, records, records), lines)


class _Sums(NamedTuple):
    """Numbers per cell or fault: (k,) cells or faults, (k,) records and (k,) rows. PRIVATE."""

    cell: Integers
    records: Integers
    rows: Integers

    @classmethod
    def from_columns(cls, columns: dict[str, NDArray[np.generic]]) -> _Sums:
        cell, records = (np.asarray(columns[name]).astype(np.int64, copy=False) for name in ("cell", "records"))
        return cls(cell, records, np.asarray(columns.get("rows", records)).astype(np.int64, copy=False))

    @classmethod
    def from_people(cls, people: SortedPeople) -> _Sums:
        """Return the numbers of each fault, and of all rows without one as if they were in cell 0."""
        faults = list(people.fault_rows)
        records = [*(people.fault_records[fault] for fault in faults), people.inside]
        return cls(np.array([*faults, 0]), np.array(records), np.array([*people.fault_rows.values(), people.rows]))

    def inside(self) -> _Sums:
        is_inside = self.cell >= 0
        return _Sums(*(column[is_inside] for column in self))

    def count_fault(self, fault: int) -> tuple[int, int]:
        """Return how many records and how many rows have a fault."""
        has_fault = self.cell == fault
        return total_of(self.records[has_fault]), int(self.rows[has_fault].sum())


def _refuse_faults(job: Job, row_counts: _Sums, lines: BadLines) -> None:
    rows = {name: row_counts.count_fault(fault)[1] for name, fault in _FAULTS.items()}
    Faults(rows=int(row_counts.rows.sum()), lines=lines, **rows).refuse(job)


def _make_result(job: Job, row_counts: _Sums, kept: _Sums, lines: BadLines) -> CellCounts:
    """Make the result of the kept records, and of the counters of all rows.

    Raises:
        InputError: a row is bad, and bad rows are refused.
    """
    _refuse_faults(job, row_counts, lines)
    cells, counts = _order_cells(kept, job.finder.size)
    bad = total_of(np.array([row_counts.count_fault(fault)[0] for fault in (BAD, BAD_COUNT, NO_PERSON)]))
    counted = total_of(counts)
    over = total_of(row_counts.inside().records) - counted  # left out by the bound of a person, or beyond what a cell holds
    beyond = total_of(kept.records) - counted  # beyond what a cell holds
    return CellCounts(
        cells=cells, counts=counts, outside=row_counts.count_fault(OUTSIDE)[0], bad=bad + lines.total, over=over, beyond=beyond
    )


def _order_cells(kept: _Sums, size: int) -> tuple[Integers, Integers]:
    """Return the cells with records, ascending, and the records of each, cut to `most_per_cell`."""
    kept = kept._replace(records=np.minimum(kept.records, most_per_cell(size)))
    if size <= max(_DENSE_CELLS, _CELLS_PER_OCCUPIED * len(kept.cell)):
        total = np.zeros(size, np.int64)
        total[kept.cell] = kept.records
        cells = np.flatnonzero(total)
        return cells, total[cells]
    occupied = np.flatnonzero(kept.records)
    order = occupied[np.argsort(kept.cell[occupied])]
    return kept.cell[order], kept.records[order]


def _rows_query(job: Job, session: Session, stream: Rows | None) -> str:
    """Return a query of all rows, after registering the functions and tables that it needs in the session."""
    expressions = Expressions(job=job)
    connection = session.connection
    if stream is None:
        scan = _parquet_scan(job)
    else:
        connection.register(_STREAM, stream.reader(session.keep_errors))
        scan = _STREAM
    query = expressions.rows_sql(scan)
    types = dict.fromkeys(job.columns, "VARCHAR")
    if not job.is_text and any(function.of_columns for function in expressions.functions.values()):
        described = session.columns(f"DESCRIBE SELECT * FROM {_parquet_scan(job)}", (0.0, 0.0))["column_type"]  # noqa: S608
        types = dict(zip(job.columns, described.tolist(), strict=True))
    for name, function in expressions.functions.items():
        inputs = [types[column] for column in function.inputs] if function.of_columns else list(function.inputs)
        session.define(name, function.compute, inputs, function.output)
    for name, table in expressions.tables.items():
        connection.register(name, table)
    return query


def _parquet_scan(job: Job) -> str:
    """Return SQL for the job's columns as c0, c1, ... Columns are chosen by position, because SQL ignores the case of names."""
    names = job.schema.names
    renamed = ", ".join(f"f{index}" for index in range(len(names)))
    columns = ", ".join(f"f{names.index(name)} AS c{number}" for number, name in enumerate(job.columns))
    files = quote_list([glob.escape(str(path)) for path in job.files])
    return f"(SELECT {columns} FROM read_parquet({files}, hive_partitioning = false) AS files({renamed}))"  # noqa: S608
