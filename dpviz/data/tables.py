"""Tables whose cells are read as they stand: CSV, TSV and Parquet. An id such as 06037 stays text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv

from dpviz.arrow_memory import in_arrow_memory
from dpviz.data.arrow_csv import read_csv
from dpviz.data.files import Limits, attempt, guarded
from dpviz.data.formats import too_many_rows
from dpviz.data.parquet import open_parquet, read_columns
from dpviz.data.text_formats import NOT_UTF8, open_text
from dpviz.errors import InputError

SEPARATORS = {"CSV": ",", "TSV": "\t"}
_ONE_BLOCK = 2**31 - 1
_BOM = b"\xef\xbb\xbf"
_MISSING = [""]


class Cells(NamedTuple):
    """Columns of a table. PRIVATE, unless the table is public.

    Attributes:
        columns: the cells of each column that was asked for, as text from text tables, as they were stored from Parquet.
        ragged: further rows of a text table that have more or fewer cells than the header.
    """

    columns: list[pa.ChunkedArray]
    ragged: int = 0


@dataclass(frozen=True, kw_only=True)
class OpenTable:
    """What a table's header says, and the way to its columns.

    Attributes:
        format: CSV, TSV or Parquet.
        names: of the columns; two may be the same.
        rows: how many, where the file says it; private.
        take: reads columns by their positions; the text is the caller's rule for bad rows.
        geo: GeoParquet's description of geometries, None without any.
    """

    format: str
    names: tuple[str, ...]
    rows: int | None = field(repr=False)
    take: Callable[[Sequence[int], str], Cells] = field(repr=False)
    geo: bytes | None = field(default=None, repr=False)


def open_table(kind: str, data: bytes, limits: Limits) -> OpenTable:
    """Open checked bytes of a table.

    Raises:
        InputError: not CSV, TSV or Parquet, the content is not of that format, or passes a limit.
    """
    if kind not in ("Parquet", *SEPARATORS):
        raise InputError(f"A table must be CSV, TSV or Parquet, not {kind}.")
    if kind in SEPARATORS and data.count(b"\n") > limits.rows + 1:
        raise too_many_rows(limits)
    rule = f"The content cannot be read as {kind}: the file is damaged, or its ending is wrong."
    opened = guarded(rule, lambda: _open_parquet(data, limits) if kind == "Parquet" else _open_text(kind, data, limits))
    if len(opened.names) > limits.columns:
        raise InputError(f"The file has more columns than the limit of {limits.columns:,}.")
    if opened.rows is not None and opened.rows > limits.rows:
        raise too_many_rows(limits)
    return opened


def _open_text(kind: str, data: bytes, limits: Limits) -> OpenTable:
    names = open_text(kind, data, SEPARATORS[kind]).names

    def take(places: Sequence[int], bad_rows: str) -> Cells:
        text = _utf8(data.removeprefix(_BOM), bad_rows).lstrip(b"\r\n") + b"\n"
        width, separator = len(names), SEPARATORS[kind]
        read = attempt(lambda: _read_text(text, separator, width, places, None))
        read = read or guarded(
            "The text cannot be cut into rows and cells.", lambda: _read_text(text, separator, width, places, _ONE_BLOCK)
        )
        if len(read.columns[0]) + read.ragged > limits.rows:
            raise too_many_rows(limits)
        return read

    return OpenTable(format=kind, names=names, rows=None, take=take)


def _utf8(data: bytes, bad_rows: str) -> bytes:
    """The same bytes if they are UTF-8; else, under "drop", with marks in place of what is not."""
    if attempt(lambda: data.decode("utf-8")) is not None:
        return data
    if bad_rows == "refuse":
        raise InputError(NOT_UTF8)
    return data.decode("utf-8", "replace").encode()


def _read_text(data: bytes, separator: str, width: int, places: Sequence[int], block: int | None) -> Cells:
    wanted = [str(place) for place in dict.fromkeys(places)]
    table, ragged = read_csv(
        data,
        pyarrow.csv.ReadOptions(column_names=[str(place) for place in range(width)], skip_rows_after_names=1, block_size=block),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, strings_can_be_null=True, null_values=_MISSING
        ),
        delimiter=separator,
        newlines_in_values=True,
    )
    return Cells([table.column(str(place)) for place in places], ragged)


def _open_parquet(data: bytes, limits: Limits) -> OpenTable:
    memory = in_arrow_memory(data)
    file = open_parquet(memory, limits)
    schema = file.schema_arrow
    names = _index_first(schema)

    def take(places: Sequence[int], _bad_rows: str) -> Cells:
        table = read_columns(memory, list(dict.fromkeys(names[place] for place in places)), limits)
        return Cells([table.column(names[place]) for place in places])

    def guarded_take(places: Sequence[int], bad_rows: str) -> Cells:
        return guarded("The rows cannot be read as Parquet: the file is damaged.", lambda: take(places, bad_rows))

    geo = (schema.metadata or {}).get(b"geo")
    return OpenTable(format="Parquet", names=names, rows=file.metadata.num_rows, take=guarded_take, geo=geo)


def _index_first(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the columns; those of a stored index, which pandas puts last, come first."""
    declared = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in declared if isinstance(name, str) and name in schema.names]
    return (*index, *(name for name in schema.names if name not in index))
