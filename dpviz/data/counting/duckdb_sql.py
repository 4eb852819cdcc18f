"""Write a counting job as SQL, with the rules and the arithmetic of NumPy's engine, and stream rows of files into DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.amounts import LONGEST_NUMBER
from dpviz.arrays import Floats, Integers
from dpviz.data.cells import BAD, MOST_RECORDS, OUTSIDE, leave_masked_out
from dpviz.data.columns import MAY_BE_THOUSANDS, readable_numbers, readable_texts
from dpviz.data.counting.duckdb_session import quote, quote_list
from dpviz.data.counting.job import CellFinder, GeometryColumn, IdPairs, LeafColumn, PointCells, XyColumns, XyPairs, leaves_of
from dpviz.data.leaf_ids import BLOCK_CODE, LeafIds
from dpviz.data.library_errors import without_private_text
from dpviz.data.reading.tables import open_header
from dpviz.data.reading.text_rows import (
    HEAD_BYTES,
    MISSING_WORDS,
    NO_BAD_LINES,
    NOT_CUT,
    BadLines,
    cut_lines,
    read_lines,
)
from dpviz.data.roles import is_text, plain_type
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.job import Job
    from dpviz.space.domain import Domain

BAD_COUNT, NO_PERSON = -3, -4
_INT32 = 2**31

_MARKED = rf"[\s\x0b]*{MAY_BE_THOUSANDS[1:-1]}[\s\x0b]*"

_MARGIN = 2.0**-30  # of the width of the domain: far more than rounding can move a coordinate
_WKB_POINT_HEADER, _WKB_POINT_BYTES = b"\x01\x01\x00\x00\x00", 21  # little-endian, a point

Compute = Callable[..., pa.Array]
NextBatch = Callable[[], pa.RecordBatch | None]


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of Arrow columns that SQL calls by its name.

    Attributes:
        compute: takes (n,) Arrow columns, which may have missing entries, and returns a (n,) Arrow array.
        inputs: the arguments, as names of the job's columns if `of_columns`, else as SQL types.
        output: the type of the result in SQL.
        of_columns: whether `inputs` are names of columns.
    """

    compute: Compute
    inputs: tuple[str, ...]
    output: str
    of_columns: bool = True


@dataclass(kw_only=True)
class Expressions:
    """SQL expressions for a job, whose columns are called c0, c1, ... in the order of `job.columns`.

    Attributes:
        job: what is counted.
        functions: functions that the expressions call, by name; each is added when an expression needs it.
        tables: Arrow tables that the expressions join, by name; added likewise.
    """

    job: Job
    functions: dict[str, Function] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def rows_sql(self, scan: str) -> str:
        """Return a query of the cell (or fault), amount and person of every row; without amount or person if the job has no such column.

        Args:
            scan: SQL that yields the rows of the files, with the columns c0, c1, ...
        """
        expressions = [self._cell_or_fault_sql(), self._weight_sql(), self._person_sql()]
        columns = ", ".join(f"{text} AS {name}" for name, text in zip(("cell", "weight", "person"), expressions, strict=True) if text)
        joins = " ".join(f"LEFT JOIN {name} ON {name}.id = {self._id_sql(name)}" for name in self.tables)
        xy = self._point_sql(self.job.finder.points) if _on_lattice(self.job.finder) else []
        coordinates = "".join(f", {number} AS {axis}" for number, axis in zip(xy, "xy", strict=False))  # so that each is computed once
        entries = f"SELECT *{coordinates} FROM {scan}"  # noqa: S608  (names are ours, texts quoted)
        inner = f"SELECT {columns} FROM ({entries}) AS entries {joins}"  # noqa: S608
        return f"SELECT {self._result_columns_sql()} FROM ({inner})"  # noqa: S608

    def _result_columns_sql(self) -> str:
        """Return SQL for the columns of the result: the cell or first fault of a row, its amount (number of records), and its person."""
        faults = [f"WHEN cell = {BAD} THEN {BAD}"]
        if self.job.count is not None:
            faults.append(f"WHEN weight < 0 THEN {BAD_COUNT}")
        if self.job.person is not None:
            faults.append(f"WHEN person IS NULL THEN {NO_PERSON}")
        cell = "cell" if len(faults) == 1 else f"CASE {' '.join(faults)} ELSE cell END AS cell"
        amount = [] if self.job.count is None else ["CASE WHEN weight < 0 THEN 1 ELSE weight END AS amount"]
        person = [] if self.job.person is None else ["person"]
        return ", ".join([cell, *amount, *person])

    def number_sql(self, name: str, *, are_counts: bool = False) -> str:
        """Return SQL for a column's entries as numbers, by the rules of `readable_numbers`."""
        column, kind = self._column(name), self._kind(name)
        if _is_number(kind):
            return f"CAST({column} AS DOUBLE)"
        if is_text(kind):
            no_number = f"strlen({column}) > {LONGEST_NUMBER} OR contains({column}, '_') OR contains({column}, '+-')"
            marked = f" OR regexp_full_match({column}, '{_MARKED}')" if are_counts else ""
            return f"CASE WHEN {no_number}{marked} THEN NULL ELSE TRY_CAST({column} AS DOUBLE) END"
        if not pa.types.is_decimal(kind):
            return "CAST(NULL AS DOUBLE)"
        return self._call_sql(f"number_{column}", lambda entries: pa.array(readable_numbers(entries)), (name,), "DOUBLE")

    def _point_sql(self, points: XyColumns | GeometryColumn) -> list[str]:
        """Return SQL for the coordinates of points as doubles; [] for WKB, which SQL does not read."""
        if isinstance(points, XyColumns):
            return [self.number_sql(name) for name in points.columns]
        column = self._column(points.geometry)
        return [] if points.encoding != "point" else [f"CAST({column}.{axis} AS DOUBLE)" for axis in "xy"]

    def _cell_or_fault_sql(self) -> str:
        finder = self.job.finder
        if isinstance(finder, IdPairs):
            start = self._leaf_sql("starts", finder.origin, finder.starts)
            end = self._leaf_sql("ends", finder.destination, finder.ends)
            pair = f"CAST({start} AS BIGINT) * {len(finder.ends.texts)} + {end}"
            return f"CASE WHEN least({start}, {end}) < 0 THEN least({start}, {end}) ELSE {pair} END"
        if isinstance(finder, LeafColumn):
            return self._leaf_sql("starts", finder.region, finder.leaves)
        if isinstance(finder, XyPairs):
            return self._found_sql(finder, [self.number_sql(name) for name in finder.columns])
        assert isinstance(finder, PointCells)  # noqa: S101  (for the type checker: there is no other)
        numbers = self._point_sql(finder.points)
        if not numbers:
            return self._call_sql("cells", lambda entries: pa.array(cells_of_wkb(entries, finder)), finder.columns, "BIGINT")
        if finder.domain is None:
            return self._found_sql(finder, numbers)
        return self._leave_masked_out_sql(finder.domain, cell_sql(finder.domain, finder.size))

    def _found_sql(self, finder: PointCells | XyPairs, numbers: list[str]) -> str:
        """Return SQL that calls a Python function, which finds cells by coordinates."""

        def find(*columns: pa.ChunkedArray) -> pa.Array:
            return pa.array(finder.find(*map(readable_numbers, columns)).astype(np.int64))

        self.functions["cells"] = Function(compute=find, inputs=("DOUBLE",) * len(numbers), output="BIGINT", of_columns=False)
        return f"cells({', '.join(numbers)})"

    def _leave_masked_out_sql(self, domain: Domain, cell: str) -> str:
        """Return SQL for a lattice cell that is OUTSIDE if the domain's mask covers it: by a call of Python, if there is a mask."""
        if domain.mask is None:
            return cell

        def find_open(cells: pa.ChunkedArray) -> pa.Array:
            numbers = cells.to_numpy().astype(np.int64)
            leave_masked_out(numbers, domain)
            return pa.array(numbers)

        self.functions["open_cells"] = Function(compute=find_open, inputs=("BIGINT",), output="BIGINT", of_columns=False)
        return f"open_cells(CAST({cell} AS BIGINT))"

    def _leaf_sql(self, table: str, name: str, ids: LeafIds) -> str:
        """Return SQL for the leaf of an id: by a join if the id is written as in the regions, else by a call of Python."""
        kind = self._kind(name)
        call = self._call_sql(f"{table}_of", lambda entries: pa.array(leaves_of(entries, ids)), (name,), "BIGINT")
        if not (is_text(kind) or pa.types.is_integer(kind)):
            return call
        self.tables[table] = pa.table({"id": pa.array(ids.texts, pa.string()), "leaf": np.arange(len(ids.texts))})
        return f"CASE WHEN {table}.leaf IS NULL THEN {call} ELSE {table}.leaf END"

    def _id_sql(self, table: str) -> str:
        """Return SQL for the text on which an id is joined; codes of Census blocks are cut first if the finder says so."""
        finder = self.job.finder
        if isinstance(finder, LeafColumn):
            name, ids = finder.region, finder.leaves
        else:
            assert isinstance(finder, IdPairs)  # noqa: S101  (for the type checker: no other one has tables)
            name, ids = (finder.origin, finder.starts) if table == "starts" else (finder.destination, finder.ends)
        text = f"CAST({self._column(name)} AS VARCHAR)"
        return text if ids.cut is None else f"CASE WHEN length({text}) = {BLOCK_CODE} THEN left({text}, {ids.cut}) ELSE {text} END"

    def _weight_sql(self) -> str | None:
        name = self.job.count
        if name is None:
            return None
        column, kind = self._column(name), self._kind(name)
        if _on_lattice(self.job.finder):
            return _count_sql(self.number_sql(name, are_counts=True))
        if _is_number(kind):
            return _count_sql(column if pa.types.is_integer(kind) else f"CAST({column} AS DOUBLE)")
        call = self._call_sql("weights", lambda entries: pa.array(self.job.weights(entries)), (name,), "BIGINT")
        return (
            f"CASE WHEN regexp_full_match({column}, '[0-9]{{1,15}}') THEN CAST({column} AS BIGINT) ELSE {call} END"
            if is_text(kind)
            else call
        )

    def _person_sql(self) -> str | None:
        """Return SQL for the person of a row: a whole number as it is stored, anything else as a canonical text."""
        name = self.job.person
        if name is None:
            return None
        column, kind = self._column(name), self._kind(name)
        if pa.types.is_integer(kind):
            return column
        call = self._call_sql("persons", lambda entries: self.job.persons(entries).cast(pa.string()).combine_chunks(), (name,), "VARCHAR")
        if not is_text(kind):
            return call
        not_missing = f" AND {column} NOT IN ({quote_list(list(MISSING_WORDS))[1:-1]})" if self.job.is_text else ""
        visible_start = f"{column} >= '!' AND {column} < chr(127)"  # it starts with a visible ASCII character, so it is not blank
        return f"CASE WHEN {column} IS NULL THEN NULL WHEN {visible_start}{not_missing} THEN {column} ELSE {call} END"

    def _call_sql(self, function: str, compute: Compute, names: tuple[str, ...], output: str) -> str:
        self.functions[function] = Function(compute=compute, inputs=names, output=output)
        return f"{function}({', '.join(map(self._column, names))})"

    def _column(self, name: str) -> str:
        return f"c{self.job.columns.index(name)}"

    def _kind(self, name: str) -> pa.DataType:
        return plain_type(self.job.schema.field(self.job.schema.names.index(name)).type)


def _on_lattice(finder: CellFinder) -> TypeGuard[PointCells]:
    return isinstance(finder, PointCells) and finder.domain is not None


def cells_of_wkb(cells: pa.ChunkedArray, finder: PointCells) -> Integers:
    """Return (n,) the cells of geometries in WKB; faster if all are plain points."""
    points = plain_points(cells)
    return finder.cells({finder.columns[0]: cells}) if points is None else finder.find(*points).astype(np.int64, copy=False)


def plain_points(cells: pa.ChunkedArray) -> tuple[Floats, Floats] | None:
    """Return (n,) x and y of geometries in WKB; None unless all are little-endian points in two dimensions, as in most files."""
    geometries = pa.concat_arrays(cells.chunks or [pa.array([], cells.type)])
    if not pa.types.is_binary(geometries.type) or geometries.null_count or not len(geometries):
        return None
    _, offsets, content = geometries.buffers()
    starts = np.frombuffer(offsets, np.int32)[geometries.offset : geometries.offset + len(geometries) + 1]
    if (np.diff(starts) != _WKB_POINT_BYTES).any():
        return None
    wkb = np.frombuffer(content, np.uint8)[starts[0] : starts[-1]].reshape(-1, _WKB_POINT_BYTES)
    if (wkb[:, : len(_WKB_POINT_HEADER)] != np.frombuffer(_WKB_POINT_HEADER, np.uint8)).any():
        return None
    xy = np.ascontiguousarray(wkb[:, len(_WKB_POINT_HEADER) :]).view("<f8").astype(np.float64, copy=False)
    return np.ascontiguousarray(xy[:, 0]), np.ascontiguousarray(xy[:, 1])


def cell_sql(domain: Domain, size: int) -> str:
    """Return SQL for the lattice cell of doubles x and y, with the arithmetic of `cells.cells_of`.

    NaN is checked first. DuckDB does not evaluate a comparison that a Parquet file's minimum and maximum of the column decide already,
    and these two ignore NaN.
    """
    west, south, east, north = domain.bounds
    kind = "INTEGER" if size < _INT32 else "BIGINT"
    row, column = (
        f"floor(({axis} - {_double_sql(low)}) * {_double_sql(domain.side / (high - low))})"
        for axis, low, high in (("y", south, north), ("x", west, east))
    )
    cell = f"CAST({row} * {_double_sql(domain.side)} + {column} AS {kind})"
    within = "x >= {west} AND x {sign} {east} AND y >= {south} AND y {sign} {north}"
    start = {"west": _double_sql(west), "south": _double_sql(south)}
    inner = within.format(sign="<", east=_double_sql(_below_edge(west, east)), north=_double_sql(_below_edge(south, north)), **start)
    outer = within.format(sign="<=", east=_double_sql(east), north=_double_sql(north), **start)
    last = _double_sql(domain.side - 1)
    last_column, last_row = (  # at most: a point on or next to the east or north edge is in the last column or row
        f"CASE WHEN {axis} = {_double_sql(edge)} THEN {last} ELSE least({index}, {last}) END"
        for axis, edge, index in (("x", east, column), ("y", north, row))
    )
    edge_cell = f"CAST(({last_row}) * {_double_sql(domain.side)} + ({last_column}) AS {kind})"
    valid = f"CASE WHEN {inner} THEN {cell} WHEN {outer} THEN {edge_cell} ELSE {OUTSIDE} END"
    return f"CASE WHEN isfinite(x) AND isfinite(y) THEN {valid} ELSE {BAD} END"


def _below_edge(low: float, high: float) -> float:
    """Return a bound slightly below `high`. A coordinate below this bound is in the last column at most, whatever the rounding."""
    return high - (high - low) * _MARGIN


def _double_sql(value: float) -> str:
    """Return SQL for a number as a double: without the cast, SQL would read a decimal."""
    return f"CAST({quote(repr(float(value)))} AS DOUBLE)"


def _count_sql(number: str) -> str:
    """Return SQL for a count, cut to 2**53; -1 unless the number is whole and >= 0. NaN is checked first, as in `cell_sql`."""
    count = f"CASE WHEN {number} >= 0 AND {number} = floor({number}) THEN CAST(least({number}, {MOST_RECORDS}) AS BIGINT) ELSE -1 END"
    return f"CASE WHEN isfinite(CAST({number} AS DOUBLE)) THEN {count} ELSE -1 END"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


@dataclass(kw_only=True)
class Rows:
    """A stream of the rows of files, one file after the other. It can be read once.

    Attributes:
        job: what is counted.
        bad: the lines of text tables that were left out so far.
        read: how many bytes were read so far, about.
    """

    job: Job
    bad: BadLines = field(default=NO_BAD_LINES, repr=False)
    read: float = field(default=0, repr=False)

    @property
    def share(self) -> float:
        """The approximate share of all bytes that was read, from 0 to 1."""
        return self.read / self.job.size if self.job.size else 0.0

    def reader(self, keep_errors: Callable[[NextBatch], NextBatch]) -> pa.RecordBatchReader:
        """Return batches of the job's columns as c0, c1, ...; `keep_errors` wraps the reading, because DuckDB would hide our errors."""
        schema = pa.schema([(f"c{index}", self._kind_of(name)) for index, name in enumerate(self.job.columns)])
        batches = self._batches(schema)
        return pa.RecordBatchReader.from_batches(schema, iter(keep_errors(lambda: next(batches, None)), None))

    def _kind_of(self, name: str) -> pa.DataType:
        """Return the type as which DuckDB gets a column."""
        raise NotImplementedError

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows, with columns of a schema."""
        raise NotImplementedError


class TextRows(Rows):
    """A stream of the rows of text tables, whose cells are all texts."""

    def _kind_of(self, name: str) -> pa.DataType:  # noqa: ARG002
        return pa.string()

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        layout = self.job.text_layout()
        for path in self.job.files:
            with path.open("rb") as file:
                header = open_header(self.job.format, file.read(HEAD_BYTES), self.job.text_format)
                if header.names != tuple(self.job.schema.names):
                    raise InputError("A file's columns are no longer those of the others: it was changed while the files were read.")
                for lines in read_lines(file, header.end, path.stat().st_size):
                    table, bad = without_private_text(NOT_CUT, lambda lines=lines: cut_lines(lines, layout))  # type: ignore[misc]
                    self.bad += bad
                    self.read += len(lines)
                    yield from table.rename_columns(schema.names).to_batches()


_ROWS = 2**16


class ParquetRows(Rows):
    """A stream of the rows of Parquet files, in which texts that are not UTF-8 are missing."""

    def _kind_of(self, name: str) -> pa.DataType:
        """Return the type as which DuckDB reads the column itself."""
        kind = plain_type(self.job.schema.field(name).type)
        if is_text(kind):
            return pa.large_string()
        if pa.types.is_float16(kind):
            return pa.float32()
        return pa.float64() if pa.types.is_decimal256(kind) else kind

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = list(self.job.columns)
        for path in self.job.files:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                row_bytes = path.stat().st_size / max(file.metadata.num_rows, 1)
                for batch in file.iter_batches(_ROWS, columns=names, use_threads=False):
                    columns = [readable_texts(pa.chunked_array([batch.column(name)])) for name in names]
                    self.read += batch.num_rows * row_bytes
                    cast = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
                    yield from pa.Table.from_arrays(cast, schema=schema).to_batches()
