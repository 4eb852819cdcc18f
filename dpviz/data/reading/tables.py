"""Read tables (CSV, TSV and Parquet) within the limits. Entries keep their form: an id such as 06037 stays text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyproj import CRS

from dpviz.amounts import LONGEST_NUMBER
from dpviz.arrow_memory import copy_to_arrow
from dpviz.data.columns import readable_texts
from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.formats import Format, named, say_tables
from dpviz.data.reading.safety import NUMBER_BYTES, Limits, too_much_memory
from dpviz.data.reading.text_format import PLAIN_TEXT, SEPARATOR_NAMES, TextFormat
from dpviz.data.reading.text_rows import (
    HEAD_BYTES,
    MISSING_WORDS,
    NO_BAD_LINES,
    NOT_CUT,
    TAB,
    UTF8,
    UTF16,
    BadLines,
    Header,
    TextLayout,
    any_longer,
    cut_text,
    header_of,
    refuse_other_mark,
    utf16_to_utf8,
)
from dpviz.data.roles import PublicHeader, plain_type
from dpviz.errors import InputError


def open_header(kind: str, head: bytes, text_format: TextFormat) -> Header:
    """Return the header of a CSV or TSV file.

    Args:
        kind: CSV or TSV.
        head: the file's first `HEAD_BYTES` bytes, or all if it has fewer.
        text_format: the declared format; `as_utf8` comes before if it is UTF-16.

    Raises:
        InputError: as `header_of`; or other characters than the declared one separate the names.
    """
    separator = text_format.separator_of(kind)
    header = header_of(head, separator, text_format.encoding)
    others = [other for other in SEPARATOR_NAMES if len(header.names) == 1 and other in header.names[0]]
    if others:
        other = max(others, key=header.names[0].count)
        raise InputError(
            f"The header has no {SEPARATOR_NAMES[separator]}; the columns seem to be separated by {SEPARATOR_NAMES[other]}s: declare"
            f' text_format=dv.reading.TextFormat(separator={json.dumps(other)}), and decimal="," in it if numbers have decimal commas.'
            " A file of regions of the app, or of a configuration, must be saved with commas (.csv) or tabs (.tsv)."
        )
    return header


def as_utf8(data: bytes, text_format: TextFormat) -> tuple[bytes, TextFormat]:
    """Return a text in UTF-16 as UTF-8, with the format that it then has; texts in other encodings as they are.

    Raises:
        InputError: a byte order mark contradicts the declared encoding.
    """
    refuse_other_mark(data, text_format.encoding)
    if text_format.encoding != UTF16:
        return data, text_format
    return utf16_to_utf8(data), replace(text_format, encoding=UTF8)


NESTED = "A column that is needed holds lists or records; store one text or number per cell."
UNREADABLE = "The content cannot be read as {kind}: the file is damaged, or its ending is wrong."
_TEXT = "BYTE_ARRAY"
_SHARED_PREFIXES = "DELTA_BYTE_ARRAY"
_USUAL_BATCH, _SMALLEST_BATCH = 65_536, 16
_SMALL_FILE = 8 * 2**20
_AS_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
_PLAIN_TEXTS = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_VIEWS = (pa.string_view(), pa.binary_view())


def _read_columns(memory: pa.Buffer, names: Sequence[str], limits: Limits) -> pa.Table:
    """Read the columns of some names, in their stored types; texts that are not UTF-8 are missing.

    Texts could unpack to far more than the limit. In small files, and where dictionaries are large, they are read dictionary-encoded,
    measured, and only then decoded. In other files they are read in batches that cannot pass the limit.

    Raises:
        InputError: the columns unpack to more than the limit, or one holds lists of texts.
    """
    file = pq.ParquetFile(pa.BufferReader(memory), page_checksum_verification=True)
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
    chunks = [chunk for chunk in chunks if {chunk.path_in_schema, chunk.path_in_schema.partition(".")[0]} & {*names}]
    leaves = [file.schema.column(index) for index in range(len(file.schema.names))]
    widths = {leaf.path: max(leaf.length or 0, NUMBER_BYTES) for leaf in leaves}
    if sum(chunk.num_values * widths[chunk.path_in_schema] for chunk in chunks) > limits.decoded_bytes:  # texts without letters
        raise too_many_bytes(limits, streamed=True)
    texts = [chunk for chunk in chunks if chunk.physical_type == _TEXT]
    if any(chunk.path_in_schema not in names for chunk in texts):
        raise InputError(NESTED)
    rows_per_limit = limits.decoded_bytes // 2 // max([chunk.total_uncompressed_size for chunk in texts], default=1)
    has_shared_prefixes = any(_SHARED_PREFIXES in chunk.encodings for chunk in texts)  # Arrow cannot read these as dictionary-encoded
    dictionary_encoded = bool(texts) and not has_shared_prefixes and (memory.size < _SMALL_FILE or rows_per_limit < _SMALLEST_BATCH)
    batch_rows = (
        _SMALLEST_BATCH if has_shared_prefixes else _USUAL_BATCH if dictionary_encoded or not texts else min(rows_per_limit, _USUAL_BATCH)
    )
    if dictionary_encoded:
        file = pq.ParquetFile(
            pa.BufferReader(memory), page_checksum_verification=True, read_dictionary=sorted({chunk.path_in_schema for chunk in texts})
        )
    return _read_batches(file, schema, batch_rows, limits)


def _read_batches(file: pq.ParquetFile, schema: pa.Schema, batch_rows: int, limits: Limits) -> pa.Table:
    batches, bytes_left = [], limits.decoded_bytes
    for batch in file.iter_batches(batch_size=batch_rows, columns=schema.names):
        bytes_left -= sum(map(_decoded_bytes, batch.columns))
        if bytes_left < 0:
            raise too_many_bytes(limits, streamed=True)
        batches.append(batch)
    if not batches:
        return schema.empty_table()
    table = pa.Table.from_batches(batches)
    columns = [readable_texts(_decode(table.column(field.name), field.type)) for field in schema]
    return pa.Table.from_arrays(columns, names=schema.names)


def _decoded_bytes(column: pa.Array) -> int:
    """Return the number of bytes that a column takes when it is decoded."""
    kind, is_coded = plain_type(column.type), pa.types.is_dictionary(column.type)
    if kind in _VIEWS or (is_coded and kind in _PLAIN_TEXTS):
        lengths = _text_lengths(column.dictionary).take(column.indices) if is_coded else _text_lengths(column)
        return int(pc.sum(lengths).as_py() or 0) + NUMBER_BYTES * len(column)
    if is_coded and pa.types.is_fixed_size_binary(kind):
        return int(kind.byte_width + NUMBER_BYTES) * len(column)
    return int(column.nbytes)


def _text_lengths(texts: pa.Array) -> pa.Array:
    """Return (n,) bytes of each text; missing where the text is. A view's length is the first of the four words that store it."""
    if texts.type not in _VIEWS:
        return pc.cast(pc.binary_length(texts), pa.int64())
    words = np.frombuffer(texts.buffers()[1] or b"", np.int32)[4 * texts.offset :][: 4 * len(texts) : 4]
    return pa.array(words, pa.int64(), mask=np.asarray(texts.is_null()))


def _decode(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind or pa.types.is_dictionary(kind):
        return column.cast(kind)
    if not pa.types.is_dictionary(column.type):
        return column
    large = pa.large_string() if pa.types.is_string(column.type.value_type) else pa.large_binary()
    return column.cast(large).cast(kind)


def too_many_bytes(limits: Limits, *, streamed: bool = False) -> InputError:
    """Return the error for a file that unpacks to more than `limits.decoded_bytes`. It says which limit that is.

    Args:
        limits: the most that the file may hold.
        streamed: whether an engine could read it in parts instead.
    """
    if limits.decoded_bytes < limits.unpacked_bytes:
        remedy = "Read it in parts with engine='duckdb' (by its path)" if streamed else "Save it as Parquet"
        return too_much_memory(limits, f"{remedy}, or split it")
    return InputError(f"The file unpacks to more than the limit of {limits.unpacked_bytes:,} bytes.")


class Cells(NamedTuple):
    """Columns of a table. PRIVATE, unless the table is public.

    Attributes:
        columns: the columns that were read: texts or numbers from text tables, the stored types from Parquet.
        bad: further lines of a text table, which are bad and have no entries in `columns`.
    """

    columns: list[pa.ChunkedArray]
    bad: BadLines = NO_BAD_LINES


def refuse_nested(columns: Iterable[pa.ChunkedArray]) -> None:
    """Raise an InputError if a column holds lists or records."""
    if any(pa.types.is_nested(cells.type) for cells in columns):
        raise InputError(NESTED)


class Take(Protocol):
    """A function that reads columns of an open table."""

    def __call__(
        self, positions: Sequence[int], *, numbers: Collection[int] = (), counts: Collection[int] = (), missing_words: bool = False
    ) -> Cells:
        """Read columns by their positions.

        Args:
            positions: positions of the columns.
            numbers: positions of columns of coordinates, to be read as numbers in text tables. They are read as texts if an entry is not
                a number.
            counts: positions of columns of counts, to be read as texts in text tables, in one way of writing: see `TextLayout.counts`.
            missing_words: whether NA, null, NaN and the like are missing entries in text tables, like empty ones.
        """


@dataclass(frozen=True, kw_only=True)
class GeoColumns:
    """The metadata of a GeoParquet file about its geometries.

    Attributes:
        primary: the column of geometries that is read.
        encoding: WKB, point, or another encoding of GeoArrow.
        columns: all columns of geometries, in the order of their names.
        declared_crs: the CRS as the file writes it; None if it is unknown.
        may_be_points: whether points are among the declared types of geometries, or no type is declared. Files may differ in it: writers
            declare the types of the rows.
    """

    primary: str
    encoding: str
    columns: tuple[str, ...]
    declared_crs: Any = field(repr=False)
    may_be_points: bool = field(compare=False)

    @property
    def crs(self) -> CRS | None:
        """The CRS of the geometries; None if it is unknown.

        Raises:
            InputError: the declared CRS is not known.
        """
        if self.declared_crs is None:
            return None
        return without_private_text("The GeoParquet's CRS is not known.", lambda: CRS.from_user_input(self.declared_crs))


def geo_columns(schema: pa.Schema) -> GeoColumns | None:
    """Return a Parquet file's metadata about geometries; None without any. By GeoParquet's specification a missing CRS means CRS84."""
    geo = json.loads((schema.metadata or {}).get(b"geo", b"null"))
    if geo is None:
        return None
    column = geo["columns"][geo["primary_column"]]
    types = column.get("geometry_types")
    return GeoColumns(
        primary=geo["primary_column"],
        encoding=column["encoding"],
        columns=tuple(sorted(geo["columns"])),
        declared_crs=column.get("crs", "OGC:CRS84"),
        may_be_points=not types or any(geometry_type.split()[0] == "Point" for geometry_type in types),
    )


@dataclass(frozen=True, kw_only=True)
class OpenTable:
    """The header of a table, and a function that reads its columns.

    Attributes:
        format: its name.
        names: names of the columns, in the file's order; two may be the same.
        rows: number of rows, where the file states it; private.
        take: reads columns by their positions.
        geo: the description of geometries, as GeoParquet has it; None without any.
        index: positions of the columns that pandas stored as the index of a data frame.
        types: the declared types of columns by name; a text table declares none.
    """

    format: str
    names: tuple[str, ...]
    rows: int | None = field(repr=False)
    take: Take = field(repr=False)
    geo: GeoColumns | None = None
    index: tuple[int, ...] = ()
    types: Mapping[str, pa.DataType] = field(default_factory=dict, repr=False)

    @property
    def header(self) -> PublicHeader:
        """What is public of the table before a row is read, its geometries among the columns."""
        return PublicHeader(names=self.names, types=self.types)

    def index_first(self) -> OpenTable:
        """Return the same table with the index columns of pandas, which are stored last, as its first columns."""
        order = (*self.index, *(position for position in range(len(self.names)) if position not in self.index))

        def take(
            positions: Sequence[int], *, numbers: Collection[int] = (), counts: Collection[int] = (), missing_words: bool = False
        ) -> Cells:
            stored, stored_numbers, stored_counts = ([order[position] for position in each] for each in (positions, numbers, counts))
            return self.take(stored, numbers=stored_numbers, counts=stored_counts, missing_words=missing_words)

        return replace(self, names=tuple(self.names[position] for position in order), take=take, index=tuple(range(len(self.index))))


def open_table(kind: str, data: bytes, limits: Limits, *, quoted_newlines: bool = False, text_format: TextFormat = PLAIN_TEXT) -> OpenTable:
    """Open checked bytes of a table.

    Args:
        kind: the format.
        data: the content.
        limits: the most that the file may hold.
        quoted_newlines: whether entries of a text table may hold line ends.
        text_format: the declared format of a text table.

    Raises:
        InputError: the format is not one of tables; the content is not of that format, or passes a limit.
    """
    form = named(kind)
    open_checked = form.open_table
    if open_checked is None:
        raise InputError(f"A table must be {say_tables()}, not {kind}.")
    text_format.refuse_for(kind)
    how: dict[str, Any] = {"text_format": text_format, "quoted_newlines": quoted_newlines} if form.separator else {}
    rule = UNREADABLE.format(kind=kind)
    opened: OpenTable = without_private_text(rule, lambda: open_checked(form.check(data, limits), limits, **how))
    limits.check(rows=opened.rows, columns=len(opened.names))
    return opened


def open_arrow(kind: str, table: pa.Table, limits: Limits) -> OpenTable:
    """Return an Arrow table as an open table of a format: what a reader gives that reads a file as a whole.

    Columns are checked before they are read: a library may hand over what a file says without a look at it. Geometries and an index are
    found by the table's metadata, as geopandas and pandas write them into files of any format that keeps them.

    Raises:
        InputError: the table is damaged, takes more memory than the limits allow, or has run-end encoded columns, which could unpack to
            more. So does reading a column that is damaged, or unpacks to more.
    """
    streamed = named(kind).streamed
    if any(map(pa.types.is_run_end_encoded, table.schema.types)):
        raise InputError("A column is stored as runs of equal entries (run-end encoded); save the table without that.")
    table.validate()
    if table.nbytes > limits.decoded_bytes:
        raise too_many_bytes(limits, streamed=streamed)

    def read(positions: Sequence[int]) -> Cells:
        chunks = [chunk for position in {*positions} for chunk in table.column(position).chunks]
        for chunk in chunks:
            _refuse_damage(chunk)
        if sum(map(_decoded_bytes, chunks)) > limits.decoded_bytes:
            raise too_many_bytes(limits, streamed=streamed)
        return Cells([readable_texts(table.column(position)) for position in positions])

    def take(positions: Sequence[int], **_marks: Any) -> Cells:  # columns have types
        return without_private_text(f"The rows cannot be read as {kind}: the file is damaged.", lambda: read(positions))

    return _table_of(kind, table.schema, table.num_rows, take)


def _table_of(kind: str, schema: pa.Schema, rows: int, take: Take) -> OpenTable:
    """Return an open table whose columns, geometries and index are those of a schema."""
    names = tuple(schema.names)
    stored_index = (schema.pandas_metadata or {}).get("index_columns", [])
    return OpenTable(
        format=kind,
        names=names,
        rows=rows,
        take=take,
        geo=geo_columns(schema),
        index=tuple(names.index(name) for name in stored_index if isinstance(name, str) and name in names),
        types=dict(zip(names, schema.types, strict=True)),
    )


def _refuse_damage(array: pa.Array) -> None:
    """Raise an error of Arrow where an array points outside its own memory. Texts are looked at as bytes: they need not be UTF-8."""
    kind = _AS_BYTES.get(plain_type(array.type), plain_type(array.type))
    if pa.types.is_dictionary(array.type):
        kind = pa.dictionary(array.type.index_type, kind, array.type.ordered)
    (array if kind == array.type else array.view(kind)).validate(full=True)


def check_text(data: bytes, limits: Limits) -> bytes:
    """Check that a text has not too many lines, and return it. Nothing in a text table makes its reader open a file or unpack.

    Raises:
        InputError: it has more lines than the limit.
    """
    if b"\0" not in data:  # a text in UTF-16 has further bytes like those of line ends, and is counted in UTF-8
        limits.check(rows=data.count(b"\n") - 1)
    return data


def _open_text(kind: str, data: bytes, limits: Limits, *, text_format: TextFormat, quoted_newlines: bool) -> OpenTable:
    data, text_format = as_utf8(data, text_format)
    limits.check(rows=data.count(b"\n") - 1)
    header = open_header(kind, data[:HEAD_BYTES], text_format)

    def take(
        positions: Sequence[int], *, numbers: Collection[int] = (), counts: Collection[int] = (), missing_words: bool = False
    ) -> Cells:
        def cut(number: pa.DataType) -> tuple[pa.Table, BadLines]:
            layout = TextLayout(
                separator=text_format.separator_of(kind),
                width=len(header.names),
                types={position: number if position in numbers and position not in counts else pa.string() for position in positions},
                missing=MISSING_WORDS if missing_words else ("",),
                quoted_newlines=quoted_newlines,
                encoding=text_format.encoding,
                coordinates=numbers,
                counts=counts,
                decimal=text_format.decimal,
                thousands=text_format.thousands,
            )
            return cut_text(data, header.end, layout)

        reads_numbers = bool(numbers) and not any_longer(data, LONGEST_NUMBER, header.end)  # Arrow takes numbers of any length
        as_numbers = or_none(lambda: cut(pa.float64())) if reads_numbers else None
        table, bad = as_numbers or without_private_text(NOT_CUT, lambda: cut(pa.string()))
        limits.check(rows=table.num_rows + bad.total)
        return Cells([table.column(str(position)) for position in positions], bad)

    return OpenTable(format=kind, names=header.names, rows=None, take=take)


def check_parquet(data: bytes, limits: Limits) -> bytes:
    """Check that a Parquet file does not declare more bytes than the limit, and return it. Only its metadata is read.

    Raises:
        InputError: it declares more.
    """
    metadata_bytes = int.from_bytes(data[-8:-4], "little") + 8  # the file ends with them, their number and a mark
    metadata = pq.ParquetFile(pa.BufferReader(copy_to_arrow(data[-metadata_bytes:]))).metadata
    if sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)) > limits.unpacked_bytes:
        raise too_many_bytes(limits, streamed=True)
    return data


def _open_parquet(data: bytes, limits: Limits) -> OpenTable:
    memory = copy_to_arrow(data)
    file = pq.ParquetFile(pa.BufferReader(memory), page_checksum_verification=True)
    names = tuple(file.schema_arrow.names)

    def take(positions: Sequence[int], **_marks: Any) -> Cells:  # columns have types
        needed = list(dict.fromkeys(names[position] for position in positions))
        rule = "The rows cannot be read as Parquet: the file is damaged."
        table = without_private_text(rule, lambda: _read_columns(memory, needed, limits))
        return Cells([table.column(names[position]) for position in positions])

    return _table_of("Parquet", file.schema_arrow, file.metadata.num_rows, take)


def text_table(name: str, endings: tuple[str, ...], separator: str, *, streamed: bool = False) -> Format:
    """Declare a format of text tables: a line per row, and a line of names before them.

    Args:
        name: of the format.
        endings: of its files' names.
        separator: between cells.
        streamed: whether engines read such files in parts.
    """
    opened = partial(_open_text, name)
    return Format(name=name, endings=endings, check=check_text, open_table=opened, separator=separator, streamed=streamed)


CSV = text_table("CSV", (".csv", ".txt"), ",", streamed=True)
TSV = text_table("TSV", (".tsv",), TAB, streamed=True)
PARQUET = Format(name="Parquet", endings=(".parquet", ".geoparquet"), check=check_parquet, open_table=_open_parquet, streamed=True)
