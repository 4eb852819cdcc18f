"""The engine "duckdb": one GROUP BY over files that need not fit in memory; each person's records are bounded in SQL, too."""

from __future__ import annotations

import glob
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.data.bounding import DROP, FEWER, REFUSE, Bound, priorities
from dpviz.data.cell_counts import CellCounts
from dpviz.data.cells import BAD, MOST_RECORDS, OUTSIDE, most_per_cell, total_of
from dpviz.data.columns import is_text
from dpviz.data.counting.duckdb_session import DuckDBSettings, Session, UnreadableError, connect, quote_list
from dpviz.data.counting.duckdb_sql import BAD_COUNT, NO_PERSON, Expressions, Function, ParquetRows, TextRows
from dpviz.data.counting.job import Faults, Job, Progress, plain_type
from dpviz.data.reading.safety import private_folder
from dpviz.data.reading.text_rows import NO_BAD_LINES, NOT_CUT, BadLines
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.duckdb_session import Session

_AT_ONCE = 2048
_LARGEST = 2**62

SATURATED = f"CAST(least(sum({{}}), {MOST_RECORDS}) AS BIGINT)"


def held_table(rows: str, bound: Bound, *, weighted: bool) -> str:
    """Return SQL that creates `held`: records per person and cell. Faulty rows keep their fault as cell and have no person.

    Args:
        rows: a query of cell (or fault), person, and amount if `weighted`.
        bound: the bound of each person's records.
        weighted: whether a row can stand for several records.
    """
    share = f"least(amount, {bound.cap})"
    records = "1" if bound.distinct else SATURATED.format(share) if weighted else "count(*)"
    amount = SATURATED.format("amount") if weighted else "count(*)"
    person = "CASE WHEN cell < 0 THEN NULL ELSE person END"
    return (
        f"CREATE TEMP TABLE held AS SELECT {person} AS person, cell, count(*) AS rows, {amount} AS amount, {records} AS records"  # noqa: S608
        f" FROM ({rows}) GROUP BY 1, 2"
    )


def bound_held(session: Session, bound: Bound) -> dict[str, Any]:
    """Return the columns cell and records: the kept records of the table `held`, at most m of each person.

    Raises:
        InputError: a person has fewer than m, and such people are refused.
    """
    most = min(int(bound.most), _LARGEST)
    session.define("priority", _priority(bound.key), ("VARCHAR", "BIGINT", "BIGINT"), "UBIGINT")
    session.run(_totals_table(most), (0.6, 0.7))
    if bound.fewer == REFUSE and session.row(f"SELECT 1 FROM totals WHERE total < {most} LIMIT 1", (0.7, 0.7)):  # noqa: S608
        raise InputError(FEWER)
    return session.columns(_kept_query(most, drop=bound.fewer == DROP), (0.7, 1.0))


def _priority(key: bytes) -> Any:
    def work(persons: pa.ChunkedArray, cells: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.Array:
        return pa.array(priorities(persons, cells.to_numpy(), numbers.to_numpy(), key), pa.uint64())

    return work


def _totals_table(most: int) -> str:
    """Return SQL that creates `totals`: the people who do not have exactly m records, and how many they have."""
    return (
        "CREATE TEMP TABLE totals AS SELECT person, sum(records) AS total FROM held"  # noqa: S608
        f" WHERE cell >= 0 AND amount > 0 GROUP BY person HAVING sum(records) <> {most}"
    )


def _kept_query(most: int, *, drop: bool) -> str:
    """Return a query of the kept records per cell: all records of people with at most m, and the chosen ones of the others."""
    others = "totals" if drop else f"(SELECT person FROM totals WHERE total > {most})"  # noqa: S608
    whole = f"SELECT cell, records FROM held ANTI JOIN {others} USING (person) WHERE cell >= 0 AND amount > 0"  # noqa: S608
    chosen = f"SELECT cell, 1 AS records FROM ({_ranks_query(most)}) WHERE rank <= {most}"  # noqa: S608
    return f"SELECT cell, {SATURATED.format('records')} AS records FROM ({whole} UNION ALL {chosen}) GROUP BY cell"  # noqa: S608


def _ranks_query(most: int) -> str:
    """Return a query of the records of people who have more than m, each with its rank among those of its person."""
    crowded = (
        f"SELECT person, cell, records FROM held SEMI JOIN (SELECT person FROM totals WHERE total > {most}) USING (person)"  # noqa: S608
        " WHERE cell >= 0 AND amount > 0"
    )
    begun = f"SELECT person, cell, records, unnest(range(0, records, {_AT_ONCE})) AS first FROM ({crowded})"  # noqa: S608
    each = f"SELECT person, cell, unnest(range(first, least(first + {_AT_ONCE}, records))) AS number FROM ({begun})"  # noqa: S608
    order = "priority(CAST(person AS VARCHAR), CAST(cell AS BIGINT), number), cell, number"
    return f"SELECT cell, row_number() OVER (PARTITION BY person ORDER BY {order}) AS rank FROM ({each})"  # noqa: S608


Stream: TypeAlias = TextRows | ParquetRows

DEFAULT_SETTINGS = DuckDBSettings()
_DAMAGED = "The files cannot be read as Parquet: one is damaged or cut short, or was changed while it was read."
_STREAM = "stream"
_DENSE_CELLS, _SPARSE = 2**22, 4


def count_with_duckdb(job: Job, watch: Progress, settings: DuckDBSettings = DEFAULT_SETTINGS) -> CellCounts:
    """Count all rows of some files. Data that are spilled to disk are removed, however the count ends.

    Args:
        job: what to count: Parquet, CSV or TSV.
        watch: reports progress, and can cancel.
        settings: what DuckDB may use of the machine.

    Raises:
        InputError: the files cannot be read, a row is bad and bad rows are refused, there is no room to
            spill. The text is never one of DuckDB, which may quote entries.
        DpvizError: the count was cancelled.
    """
    watch.at(0.0)
    found = _count(job, watch, settings, TextRows(job=job)) if job.is_text else _count_parquet(job, watch, settings)
    watch.at(1.0)
    return found


def _count_parquet(job: Job, watch: Progress, settings: DuckDBSettings) -> CellCounts:
    """Count with DuckDB's own reader; if that fails, as for a text that is not UTF-8, with Arrow's, where such an entry is missing."""
    if any(is_text(plain_type(job.schema.field(name).type)) for name in job.columns):
        with suppress(UnreadableError):
            return _count(job, watch, settings, None)
        return _count(job, watch, settings, ParquetRows(job=job))
    return _count(job, watch, settings, None)


def _count(job: Job, watch: Progress, settings: DuckDBSettings, stream: Stream | None) -> CellCounts:
    """Count the rows of a stream, or of files that DuckDB reads itself."""
    with private_folder(settings.folder) as folder, connect(job, folder, settings) as connection:
        damaged, share = NOT_CUT if job.is_text else _DAMAGED, None if stream is None else lambda: stream.share
        session = Session(connection=connection, folder=folder, watch=watch, damaged=damaged, read_share=share)
        return _count_rows(job, session, stream)


def _count_rows(job: Job, session: Session, stream: Stream | None) -> CellCounts:
    rows, weighted = _rows(job, session, stream), job.count is not None
    if job.person is None or job.bound is None:
        amount = SATURATED.format("amount") if weighted else "count(*)"
        query = f"SELECT cell, {amount} AS records, count(*) AS rows FROM ({rows}) GROUP BY cell"  # noqa: S608
        found = _Rows.of(session.columns(query, (0.0, 1.0)))
        return _result(job, found, found.inside(), _bad_lines(stream))
    session.run(held_table(rows, job.bound, weighted=weighted), (0.0, 0.6))
    query = f"SELECT least(cell, 0) AS cell, {SATURATED.format('amount')} AS records, sum(rows) AS rows FROM held GROUP BY 1"  # noqa: S608
    found = _Rows.of(session.columns(query, (0.6, 0.6)))
    _refuse(job, found, _bad_lines(stream))
    return _result(job, found, _Rows.of(bound_held(session, job.bound)), _bad_lines(stream))


class _Rows(NamedTuple):
    """(k,) cells or faults, the records of each, and the rows of each. PRIVATE."""

    cell: Integers
    records: Integers
    rows: Integers

    @classmethod
    def of(cls, columns: dict[str, NDArray[np.generic]]) -> _Rows:
        cell, records = (np.asarray(columns[name]).astype(np.int64, copy=False) for name in ("cell", "records"))
        return cls(cell, records, np.asarray(columns.get("rows", records)).astype(np.int64, copy=False))

    def inside(self) -> _Rows:
        some = self.cell >= 0
        return _Rows(*(column[some] for column in self))

    def at(self, fault: int) -> tuple[int, int]:
        """Return how many records and how many rows have a fault."""
        here = self.cell == fault
        return total_of(self.records[here]), int(self.rows[here].sum())


def _bad_lines(stream: Stream | None) -> BadLines:
    return NO_BAD_LINES if stream is None else stream.bad


def _refuse(job: Job, found: _Rows, lines: BadLines) -> None:
    rows = {name: found.at(fault)[1] for name, fault in _FAULTS.items()}
    Faults(rows=int(found.rows.sum()), lines=lines, **rows).refuse(job)


_FAULTS = {"cell": BAD, "count": BAD_COUNT, "person": NO_PERSON, "outside": OUTSIDE}


def _result(job: Job, found: _Rows, kept: _Rows, lines: BadLines) -> CellCounts:
    """Put together the kept records and the counters of all rows.

    Raises:
        InputError: a row is bad, and bad rows are refused.
    """
    _refuse(job, found, lines)
    cells, counts = _ordered(kept, job.finder.size)
    bad = total_of(np.array([found.at(fault)[0] for fault in (BAD, BAD_COUNT, NO_PERSON)]))
    left = total_of(counts)
    over, beyond = total_of(found.inside().records) - left, total_of(kept.records) - left
    return CellCounts(cells=cells, counts=counts, outside=found.at(OUTSIDE)[0], bad=bad + lines.total, over=over, beyond=beyond)


def _ordered(kept: _Rows, size: int) -> tuple[Integers, Integers]:
    """Return the cells with records, ascending, and the records of each, cut to `most_per_cell`."""
    kept = kept._replace(records=np.minimum(kept.records, most_per_cell(size)))
    if size <= max(_DENSE_CELLS, _SPARSE * len(kept.cell)):
        total = np.zeros(size, np.int64)
        total[kept.cell] = kept.records
        cells = np.flatnonzero(total)
        return cells, total[cells]
    some = np.flatnonzero(kept.records)
    order = some[np.argsort(kept.cell[some])]
    return kept.cell[order], kept.records[order]


def _rows(job: Job, session: Session, stream: Stream | None) -> str:
    """Return a query of all rows, and register the functions and tables that it needs in the session."""
    cells = Expressions(job=job)
    connection = session.connection
    if stream is None:
        scan = _parquet(job)
    else:
        connection.register(_STREAM, stream.reader(session.caught))
        scan = _STREAM
    query = cells.rows(scan)
    types = _types(job, session) if any(function.of_columns for function in cells.functions.values()) else {}
    for name, function in cells.functions.items():
        _define_function(session, name, function, types)
    for name, table in cells.tables.items():
        connection.register(name, table)
    return query


def _parquet(job: Job) -> str:
    """Return SQL for the job's columns as c0, c1, ... They are chosen by position, because SQL ignores the case of names."""
    names = job.schema.names
    renamed = ", ".join(f"f{index}" for index in range(len(names)))
    columns = ", ".join(f"f{names.index(name)} AS c{number}" for number, name in enumerate(job.columns))
    files = quote_list([glob.escape(str(path)) for path in job.files])
    return f"(SELECT {columns} FROM read_parquet({files}, hive_partitioning = false) AS files({renamed}))"  # noqa: S608


def _types(job: Job, session: Session) -> dict[str, str]:
    """Return DuckDB's types of the job's columns."""
    if job.is_text:
        return dict.fromkeys(job.columns, "VARCHAR")
    found = session.columns(f"DESCRIBE SELECT * FROM {_parquet(job)}", (0.0, 0.0))["column_type"]  # noqa: S608
    return dict(zip(job.columns, found.tolist(), strict=True))


def _define_function(session: Session, name: str, function: Function, types: dict[str, str]) -> None:
    inputs = [types[column] for column in function.inputs] if function.of_columns else list(function.inputs)
    session.define(name, function.work, inputs, function.output)
