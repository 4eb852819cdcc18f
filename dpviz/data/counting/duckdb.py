"""The counting pass out of core: one GROUP BY in DuckDB over files that need not fit in memory; each person's records are bounded there."""

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
from dpviz.data.counting.duckdb_session import DuckDBSettings, Session, UnreadableError, connected, quote_list
from dpviz.data.counting.duckdb_sql import BAD_COUNT, NOBODY, Expressions, Function, ParquetRows, TextRows
from dpviz.data.counting.job import CountingPass, Faults, Watch, plain_type
from dpviz.data.reading.safety import private_folder
from dpviz.data.reading.text_rows import NO_BAD_LINES, NOT_CUT, BadLines
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.duckdb_session import Session

_AT_ONCE = 2048
_LARGEST = 2**62

SATURATED = f"CAST(least(sum({{}}), {MOST_RECORDS}) AS BIGINT)"


def hold(rows: str, bound: Bound, *, weighted: bool) -> str:
    """A statement that puts down what each person has in each place, as the table `held`; faults in place of places, of nobody."""
    share = f"least(amount, {bound.cap})"
    records = "1" if bound.distinct else SATURATED.format(share) if weighted else "count(*)"
    amount = SATURATED.format("amount") if weighted else "count(*)"
    nobody = "CASE WHEN place < 0 THEN NULL ELSE person END"
    return (
        f"CREATE TEMP TABLE held AS SELECT {nobody} AS person, place, count(*) AS rows, {amount} AS amount, {records} AS records"  # noqa: S608
        f" FROM ({rows}) GROUP BY 1, 2"
    )


def bounded(session: Session, bound: Bound) -> dict[str, Any]:
    """Columns place and records: what all people keep, at most m records each.

    Raises:
        InputError: somebody has fewer than m, and such people are refused.
    """
    most = min(int(bound.most), _LARGEST)
    session.define("priority", _priority(bound.key), ("VARCHAR", "BIGINT", "BIGINT"), "UBIGINT")
    session.run(_totals(most), (0.6, 0.7))
    if bound.fewer == REFUSE and session.row(f"SELECT 1 FROM totals WHERE total < {most} LIMIT 1", (0.7, 0.7)):  # noqa: S608
        raise InputError(FEWER)
    return session.columns(_kept(most, drop=bound.fewer == DROP), (0.7, 1.0))


def _priority(key: bytes) -> Any:
    def work(persons: pa.ChunkedArray, places: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.Array:
        return pa.array(priorities(persons, places.to_numpy(), numbers.to_numpy(), key), pa.uint64())

    return work


def _totals(most: int) -> str:
    """People who do not have exactly m records, with how many they have."""
    return (
        "CREATE TEMP TABLE totals AS SELECT person, sum(records) AS total FROM held"  # noqa: S608
        f" WHERE place >= 0 AND amount > 0 GROUP BY person HAVING sum(records) <> {most}"
    )


def _kept(most: int, *, drop: bool) -> str:
    """Records per place: all of those who have no more than m, and the chosen ones of the others."""
    others = "totals" if drop else f"(SELECT person FROM totals WHERE total > {most})"  # noqa: S608
    whole = f"SELECT place, records FROM held ANTI JOIN {others} USING (person) WHERE place >= 0 AND amount > 0"  # noqa: S608
    chosen = f"SELECT place, 1 AS records FROM ({_ranked(most)}) WHERE rank <= {most}"  # noqa: S608
    return f"SELECT place, {SATURATED.format('records')} AS records FROM ({whole} UNION ALL {chosen}) GROUP BY place"  # noqa: S608


def _ranked(most: int) -> str:
    """Every record of those who have more than m, and its rank among its person's."""
    crowded = (
        f"SELECT person, place, records FROM held SEMI JOIN (SELECT person FROM totals WHERE total > {most}) USING (person)"  # noqa: S608
        " WHERE place >= 0 AND amount > 0"
    )
    begun = f"SELECT person, place, records, unnest(range(0, records, {_AT_ONCE})) AS first FROM ({crowded})"  # noqa: S608
    each = f"SELECT person, place, unnest(range(first, least(first + {_AT_ONCE}, records))) AS number FROM ({begun})"  # noqa: S608
    order = "priority(CAST(person AS VARCHAR), CAST(place AS BIGINT), number), place, number"
    return f"SELECT place, row_number() OVER (PARTITION BY person ORDER BY {order}) AS rank FROM ({each})"  # noqa: S608


Fed: TypeAlias = TextRows | ParquetRows

DEFAULT_SETTINGS = DuckDBSettings()
_DAMAGED = "The files cannot be read as Parquet: one is damaged or cut short, or was changed while it was read."
_FED = "fed"
_DENSE_CELLS, _SPARSE = 2**22, 4


def count_with_duckdb(asked: CountingPass, watch: Watch, settings: DuckDBSettings = DEFAULT_SETTINGS) -> CellCounts:
    """Count all rows of some files; what is spilled to disk on the way is removed, however it ends.

    Args:
        asked: what to count: Parquet, CSV or TSV.
        watch: who follows.
        settings: what DuckDB may take of the machine.

    Raises:
        InputError: the files cannot be read, a row is bad and bad rows are refused, there is no room to
            spill; no text of DuckDB's, which may quote cells.
        DpvizError: cancelled.
    """
    watch.at(0.0)
    found = _count(asked, watch, settings, TextRows(asked=asked)) if asked.is_text else _count_parquet(asked, watch, settings)
    watch.at(1.0)
    return found


def _count_parquet(asked: CountingPass, watch: Watch, settings: DuckDBSettings) -> CellCounts:
    """By DuckDB's own reader, which refuses a file for one text that is not UTF-8; then by Arrow, for which that cell is missing."""
    if any(is_text(plain_type(asked.schema.field(name).type)) for name in asked.columns):
        with suppress(UnreadableError):
            return _count(asked, watch, settings, None)
        return _count(asked, watch, settings, ParquetRows(asked=asked))
    return _count(asked, watch, settings, None)


def _count(asked: CountingPass, watch: Watch, settings: DuckDBSettings, fed: Fed | None) -> CellCounts:
    """Count rows that DuckDB is fed with, or those that it reads itself."""
    with private_folder(settings.folder) as folder, connected(asked, folder, settings) as connection:
        damaged, share = NOT_CUT if asked.is_text else _DAMAGED, None if fed is None else lambda: fed.share
        session = Session(connection=connection, folder=folder, watch=watch, damaged=damaged, read_share=share)
        return _counted(asked, session, fed)


def _counted(asked: CountingPass, session: Session, fed: Fed | None) -> CellCounts:
    rows, weighted = _rows(asked, session, fed), asked.count is not None
    if asked.person is None or asked.bound is None:
        amount = SATURATED.format("amount") if weighted else "count(*)"
        query = f"SELECT place, {amount} AS records, count(*) AS rows FROM ({rows}) GROUP BY place"  # noqa: S608
        found = _Places.of(session.columns(query, (0.0, 1.0)))
        return _result(asked, found, found.inside(), _bad_lines(fed))
    session.run(hold(rows, asked.bound, weighted=weighted), (0.0, 0.6))
    query = f"SELECT least(place, 0) AS place, {SATURATED.format('amount')} AS records, sum(rows) AS rows FROM held GROUP BY 1"  # noqa: S608
    found = _Places.of(session.columns(query, (0.6, 0.6)))
    _refuse(asked, found, _bad_lines(fed))
    return _result(asked, found, _Places.of(bounded(session, asked.bound)), _bad_lines(fed))


class _Places(NamedTuple):
    """Records per place or fault. PRIVATE."""

    place: Integers
    records: Integers
    rows: Integers

    @classmethod
    def of(cls, columns: dict[str, NDArray[np.generic]]) -> _Places:
        place, records = (np.asarray(columns[name]).astype(np.int64, copy=False) for name in ("place", "records"))
        return cls(place, records, np.asarray(columns.get("rows", records)).astype(np.int64, copy=False))

    def inside(self) -> _Places:
        some = self.place >= 0
        return _Places(*(column[some] for column in self))

    def at(self, fault: int) -> tuple[int, int]:
        """Records and rows at a fault."""
        here = self.place == fault
        return total_of(self.records[here]), int(self.rows[here].sum())


def _bad_lines(fed: Fed | None) -> BadLines:
    return NO_BAD_LINES if fed is None else fed.bad


def _refuse(asked: CountingPass, found: _Places, lines: BadLines) -> None:
    rows = {name: found.at(fault)[1] for name, fault in _FAULTS.items()}
    Faults(rows=int(found.rows.sum()), lines=lines, **rows).refuse(asked)


_FAULTS = {"place": BAD, "count": BAD_COUNT, "person": NOBODY, "outside": OUTSIDE}


def _result(asked: CountingPass, found: _Places, kept: _Places, lines: BadLines) -> CellCounts:
    """The records that are kept, and the curator's counters of all that were found."""
    _refuse(asked, found, lines)
    places, counts = _ordered(kept, asked.finder.size)
    bad = total_of(np.array([found.at(fault)[0] for fault in (BAD, BAD_COUNT, NOBODY)]))
    left = total_of(counts)
    over, beyond = total_of(found.inside().records) - left, total_of(kept.records) - left
    return CellCounts(places=places, counts=counts, outside=found.at(OUTSIDE)[0], bad=bad + lines.total, over=over, beyond=beyond)


def _ordered(kept: _Places, size: int) -> tuple[Integers, Integers]:
    """Places with records, ascending, and the records of each, cut to what a place holds."""
    kept = kept._replace(records=np.minimum(kept.records, most_per_cell(size)))
    if size <= max(_DENSE_CELLS, _SPARSE * len(kept.place)):
        total = np.zeros(size, np.int64)
        total[kept.place] = kept.records
        places = np.flatnonzero(total)
        return places, total[places]
    some = np.flatnonzero(kept.records)
    order = some[np.argsort(kept.place[some])]
    return kept.place[order], kept.records[order]


def _rows(asked: CountingPass, session: Session, fed: Fed | None) -> str:
    """A query of all rows, whose functions and tables the session then has."""
    cells = Expressions(asked=asked)
    connection = session.connection
    if fed is None:
        scan = _parquet(asked)
    else:
        connection.register(_FED, fed.reader(session.caught))
        scan = _FED
    query = cells.rows(scan)
    types = _types(asked, session) if any(function.of_columns for function in cells.functions.values()) else {}
    for name, function in cells.functions.items():
        _define(session, name, function, types)
    for name, table in cells.tables.items():
        connection.register(name, table)
    return query


def _parquet(asked: CountingPass) -> str:
    """The pass's columns as c0, c1, ...: by their places, because SQL holds names alike that differ in case."""
    names = asked.schema.names
    renamed = ", ".join(f"f{place}" for place in range(len(names)))
    columns = ", ".join(f"f{names.index(name)} AS c{number}" for number, name in enumerate(asked.columns))
    files = quote_list([glob.escape(str(path)) for path in asked.files])
    return f"(SELECT {columns} FROM read_parquet({files}, hive_partitioning = false) AS files({renamed}))"  # noqa: S608


def _types(asked: CountingPass, session: Session) -> dict[str, str]:
    """DuckDB's types of the pass's columns."""
    if asked.is_text:
        return dict.fromkeys(asked.columns, "VARCHAR")
    found = session.columns(f"DESCRIBE SELECT * FROM {_parquet(asked)}", (0.0, 0.0))["column_type"]  # noqa: S608
    return dict(zip(asked.columns, found.tolist(), strict=True))


def _define(session: Session, name: str, function: Function, types: dict[str, str]) -> None:
    inputs = [types[column] for column in function.inputs] if function.of_columns else list(function.inputs)
    session.define(name, function.work, inputs, function.output)
