"""Tables whose cells are read as they stand: CSV, TSV and Parquet. An id such as 06037 stays text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from dpviz.arrow_memory import in_arrow_memory
from dpviz.data.reading.geometries import too_many_rows
from dpviz.data.reading.parquet import open_parquet, read_columns
from dpviz.data.reading.safety import Limits, guarded
from dpviz.data.reading.text_formats import open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_BAD_LINES, NOT_CUT, SEPARATORS, BadLines, TextLayout, cut_text
from dpviz.errors import InputError


class Cells(NamedTuple):
    """Columns of a table. PRIVATE, unless the table is public.

    Attributes:
        columns: the cells of each column that was asked for, as text from text tables, as they were stored from Parquet.
        bad: further lines of a text table that are no rows.
    """

    columns: list[pa.ChunkedArray]
    bad: BadLines = NO_BAD_LINES


@dataclass(frozen=True, kw_only=True)
class OpenTable:
    """What a table's header says, and the way to its columns.

    Attributes:
        format: CSV, TSV or Parquet.
        names: of the columns; two may be the same.
        rows: how many, where the file says it; private.
        take: reads columns by their positions.
        geo: GeoParquet's description of geometries, None without any.
    """

    format: str
    names: tuple[str, ...]
    rows: int | None = field(repr=False)
    take: Callable[[Sequence[int]], Cells] = field(repr=False)
    geo: bytes | None = field(default=None, repr=False)


def open_table(kind: str, data: bytes, limits: Limits, *, quoted_newlines: bool = False) -> OpenTable:
    """Open checked bytes of a table.

    Raises:
        InputError: not CSV, TSV or Parquet, the content is not of that format, or passes a limit.
    """
    if kind not in ("Parquet", *SEPARATORS):
        raise InputError(f"A table must be CSV, TSV or Parquet, not {kind}.")
    if kind in SEPARATORS and data.count(b"\n") > limits.rows + 1:
        raise too_many_rows(limits)
    rule = f"The content cannot be read as {kind}: the file is damaged, or its ending is wrong."
    if kind == "Parquet":
        opened = guarded(rule, lambda: _open_parquet(data, limits))
    else:
        opened = guarded(rule, lambda: _open_text(kind, data, limits, quoted_newlines=quoted_newlines))
    if len(opened.names) > limits.columns:
        raise InputError(f"The file has more columns than the limit of {limits.columns:,}.")
    if opened.rows is not None and opened.rows > limits.rows:
        raise too_many_rows(limits)
    return opened


def _open_text(kind: str, data: bytes, limits: Limits, *, quoted_newlines: bool) -> OpenTable:
    header = open_header(kind, data[:HEAD_BYTES])

    def take(places: Sequence[int]) -> Cells:
        types = dict.fromkeys(places, pa.string())
        layout = TextLayout(
            separator=SEPARATORS[kind], width=len(header.names), types=types, missing=("",), quoted_newlines=quoted_newlines
        )
        table, bad = guarded(NOT_CUT, lambda: cut_text(data, header.end, layout))
        if table.num_rows + bad.total > limits.rows:
            raise too_many_rows(limits)
        return Cells([table.column(str(place)) for place in places], bad)

    return OpenTable(format=kind, names=header.names, rows=None, take=take)


def _open_parquet(data: bytes, limits: Limits) -> OpenTable:
    memory = in_arrow_memory(data)
    file = open_parquet(memory, limits)
    schema = file.schema_arrow
    names = _index_first(schema)

    def take(places: Sequence[int]) -> Cells:
        table = read_columns(memory, list(dict.fromkeys(names[place] for place in places)), limits)
        return Cells([table.column(names[place]) for place in places])

    def guarded_take(places: Sequence[int]) -> Cells:
        return guarded("The rows cannot be read as Parquet: the file is damaged.", lambda: take(places))

    geo = (schema.metadata or {}).get(b"geo")
    return OpenTable(format="Parquet", names=names, rows=file.metadata.num_rows, take=guarded_take, geo=geo)


def _index_first(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the columns; those of a stored index, which pandas puts last, come first."""
    declared = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in declared if isinstance(name, str) and name in schema.names]
    return (*index, *(name for name in schema.names if name not in index))
