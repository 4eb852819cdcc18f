"""Tables read as they stand, CSV, TSV, Parquet and GeoJSON: an id such as 06037 stays text, and nothing unpacks beyond the limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyproj import CRS

from dpviz.arrow_memory import in_arrow_memory
from dpviz.data.columns import NOT_POINTS, OpenFile, PointColumns, RawPoints, fold_name, raw_points, readable_texts
from dpviz.data.reading.safety import Limits, attempt, guarded, too_many_rows
from dpviz.data.reading.text_rows import (
    HEAD_BYTES,
    NO_BAD_LINES,
    NO_END,
    NOT_CUT,
    NOT_UTF8,
    SEPARATORS,
    BadLines,
    Header,
    TextLayout,
    cut_text,
    header_of,
)
from dpviz.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLEAN = "Clean the file, or pass bad_rows='drop' to leave such rows out."
_DEEPEST = 100
_OPENINGS, _BRACKETS = (np.frombuffer(signs, np.uint8) for signs in (b"[{", b"[{]}"))
TWICE = object()
NAMED_TWICE = "The GeoJSON names a member twice, and which one is meant is not guessed; save the file again."


def open_text(kind: str, data: bytes, *, quoted_newlines: bool = False) -> OpenFile:
    """A table with a header, CSV or TSV; see `text_rows` for what a row is."""
    header = open_header(kind, data[:HEAD_BYTES])
    has_rows = attempt(lambda: NO_END.search(data, header.end)) is not None

    def take(columns: PointColumns, bad_rows: str) -> RawPoints:
        if not has_rows:
            return raw_points(columns, lambda _name: np.empty(0))
        layout = TextLayout(separator=SEPARATORS[kind], width=len(header.names), quoted_newlines=quoted_newlines)
        table, bad = _text_table(data, header, layout, columns)
        if bad_rows == "refuse":
            bad.refuse(CLEAN)
        return raw_points(columns, lambda name: table.column(str(header.names.index(name))), ragged=bad.total)

    return OpenFile(format=kind, names=header.names, has_geometry=False, crs=None, rows=None, take=take)


def open_header(kind: str, head: bytes) -> Header:
    """The header of a CSV or TSV file.

    Raises:
        InputError: as `header_of`, or names that stand between other separators.
    """
    header = header_of(head, SEPARATORS[kind])
    if kind == "CSV" and len(header.names) == 1 and (";" in header.names[0] or "\t" in header.names[0]):
        raise InputError(
            "The header has no comma: separate columns with commas in .csv files (tabs in .tsv), and write decimals with a point."
        )
    return header


def _text_table(data: bytes, header: Header, layout: TextLayout, columns: PointColumns) -> tuple[pa.Table, BadLines]:
    """Needed columns by position, as numbers if all cells are numbers, else as text; and the bad lines."""

    def read(number: pa.DataType) -> tuple[pa.Table, BadLines]:
        kinds = dict.fromkeys((columns.x, columns.y, columns.count), number) | {columns.person: pa.string()}
        types = {header.names.index(name): kind for name, kind in kinds.items() if name is not None}
        return cut_text(data, header.end, replace(layout, types=types))

    return attempt(lambda: read(pa.float64())) or guarded(NOT_CUT, lambda: read(pa.string()))


class _Feature(NamedTuple):
    """The parts of a GeoJSON feature that are kept while the rest of the file is read."""

    x: float = np.nan
    y: float = np.nan
    is_stranger: bool = False
    kept: dict[str, Any] = {}  # noqa: RUF012  (never written to)


def open_geojson(data: bytes, asked: PointColumns) -> OpenFile:
    """A GeoJSON FeatureCollection, or one Feature; of the properties only the columns asked for are kept.

    The file is one text of JSON, so that its syntax is damaged as a whole or not at all; control characters within texts and
    deep nesting do no harm.
    """
    text = flatten_json(data).decode("utf-8-sig", "replace")
    names: dict[str, None] = {}
    wanted = {fold_name(str(name)) for name in (asked.count, asked.person) if name is not None}

    def collapse(pairs: list[tuple[str, Any]]) -> Any:
        thing = once(pairs)
        if not isinstance(thing, dict) or thing.get("type") != "Feature" or "geometry" not in thing:
            return thing
        properties = thing.get("properties")
        if properties is TWICE:
            return _Feature()
        properties = properties if isinstance(properties, dict) else {}
        names.update(dict.fromkeys(properties))
        kept = {name: value for name, value in properties.items() if fold_name(name) in wanted} if wanted else {}
        return _feature(thing.get("geometry"), kept)

    top = json.loads(text, object_pairs_hook=collapse, parse_int=_whole, strict=False)
    if top is TWICE:
        raise InputError(NAMED_TWICE)
    features = [top] if isinstance(top, _Feature) else top.get("features") if isinstance(top, dict) else None
    if not isinstance(features, list) or not (isinstance(top, _Feature) or top.get("type") == "FeatureCollection"):
        raise InputError("The file is no GeoJSON FeatureCollection of points.")
    features = [feature if isinstance(feature, _Feature) else _Feature() for feature in features]

    def take(columns: PointColumns, bad_rows: str) -> RawPoints:
        if bad_rows == "refuse" and attempt(lambda: data.decode("utf-8")) is None:
            raise InputError(NOT_UTF8)
        return _from_features(features, columns)

    crs = _geojson_crs(top) if isinstance(top, dict) else CRS("OGC:CRS84")
    if not features:
        names = dict.fromkeys(filter(None, (asked.count, asked.person)))
    return OpenFile(format="GeoJSON", names=tuple(names), has_geometry=True, crs=crs, rows=len(features), take=take)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) < 19 else digits


def flatten_json(data: bytes) -> bytes:
    """The same JSON with a 0 for what is nested deeper than 100, which the parser would give up on; a function of each value alone."""
    content = np.frombuffer(data, np.uint8)
    quotes, marks = np.flatnonzero(content == ord('"')), np.flatnonzero(content == ord("\\"))
    first = np.flatnonzero(np.r_[True, np.diff(marks) > 1][: len(marks)])
    lengths = np.diff(np.r_[first, len(marks)])
    quotes = np.setdiff1d(quotes, (marks[first] + lengths)[lengths % 2 == 1], assume_unique=True)
    places = np.flatnonzero(np.isin(content, _BRACKETS))
    places = places[np.searchsorted(quotes, places) % 2 == 0]
    opens = np.isin(content[places], _OPENINGS)
    depth = np.cumsum(np.where(opens, 1, -1))
    begins, ends = places[opens & (depth == _DEEPEST + 1)], places[~opens & (depth == _DEEPEST)]
    if not len(begins) or len(begins) != len(ends):
        return data
    change = np.zeros(len(content) + 1, np.int8)
    change[begins], change[ends + 1] = 1, -1
    flat = np.where(np.cumsum(change[:-1], dtype=np.int8) > 0, ord(" "), content)
    flat[begins] = ord("0")
    return flat.astype(np.uint8).tobytes()


def once(pairs: list[tuple[str, Any]]) -> Any:
    """The object that a JSON parser found, or TWICE if it has a name twice; a hook."""
    thing = dict(pairs)
    return thing if len(thing) == len(pairs) else TWICE


def _feature(geometry: Any, kept: dict[str, Any]) -> _Feature:
    if not isinstance(geometry, dict):
        return _Feature(kept=kept)
    if geometry.get("type") != "Point":
        return _Feature(is_stranger=True, kept=kept)
    place = geometry.get("coordinates")
    if isinstance(place, list) and len(place) >= 2 and all(type(value) in (int, float) for value in place[:2]):
        return _Feature(float(place[0]), float(place[1]), False, kept)
    return _Feature(kept=kept)


def _geojson_crs(top: dict[str, Any]) -> CRS:
    """CRS84, unless the file has the member `crs` of the format's first edition."""
    declared = top.get("crs")
    if declared is None:
        return CRS("OGC:CRS84")
    if not isinstance(declared, dict) or declared.get("type") != "name":
        raise InputError("The GeoJSON's crs member is not a name; links are never followed. Save the file in longitude and latitude.")
    return guarded("The GeoJSON's crs member names no known CRS.", lambda: CRS.from_user_input(declared["properties"]["name"]))


def _from_features(features: list[_Feature], columns: PointColumns) -> RawPoints:
    strangers = sum(feature.is_stranger for feature in features)
    if strangers and strangers == len(features):
        raise InputError(NOT_POINTS)
    x = np.array([feature.x for feature in features], np.float64)
    y = np.array([feature.y for feature in features], np.float64)

    def get(name: str) -> NDArray[np.object_]:
        cells = np.empty(len(features), object)
        cells[:] = [_cell(feature.kept.get(name), name == columns.person) for feature in features]
        return cells

    return raw_points(columns, get, x=x, y=y, has_other_shapes=strangers > 0)


def _cell(value: Any, as_text: bool) -> Any:
    """A property as text (None stays None), or as it is if it may be a number."""
    if as_text:
        return None if value is None else str(value)
    return value if type(value) in (int, float, str) else None


_TEXT = "BYTE_ARRAY"
_SHARED_PREFIXES = "DELTA_BYTE_ARRAY"
_NUMBER_BYTES = 8
_USUAL_BATCH, _SMALLEST_BATCH = 65_536, 16
_SMALL_FILE = 8 * 2**20


def open_parquet(memory: pa.Buffer, limits: Limits) -> pq.ParquetFile:
    """A Parquet file's metadata; its content comes in Arrow's own memory.

    Raises:
        InputError: it declares more bytes than the limit.
    """
    file = pq.ParquetFile(pa.BufferReader(memory), page_checksum_verification=True)
    if sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups)) > limits.unpacked_bytes:
        raise _too_many_bytes(limits)
    return file


def read_columns(memory: pa.Buffer, names: Sequence[str], limits: Limits) -> pa.Table:
    """The columns of some names, as they are stored; texts that are not UTF-8 are missing.

    Texts are small while they are packed: a dictionary holds each of them once. They are measured before they are spelt out,
    where files are small, or packs large; else they come in batches that cannot pass the limit.

    Raises:
        InputError: they unpack to more than the limit, or one holds lists of texts.
    """
    file = open_parquet(memory, limits)
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    chunks = [chunk for chunk in _chunks(file) if {chunk.path_in_schema, chunk.path_in_schema.partition(".")[0]} & {*names}]
    _check_widths(file, chunks, limits)
    texts = [chunk for chunk in chunks if chunk.physical_type == _TEXT]
    if any(chunk.path_in_schema not in names for chunk in texts):
        raise InputError("A column that is needed holds lists or records of texts; store one text or number per cell.")
    fitting = limits.unpacked_bytes // 2 // max([chunk.total_uncompressed_size for chunk in texts], default=1)
    cut = any(_SHARED_PREFIXES in chunk.encodings for chunk in texts)  # which Arrow cannot leave packed
    packed = bool(texts) and not cut and (memory.size < _SMALL_FILE or fitting < _SMALLEST_BATCH)
    rows = _SMALLEST_BATCH if cut else _USUAL_BATCH if packed or not texts else min(fitting, _USUAL_BATCH)
    if packed:
        file = pq.ParquetFile(
            pa.BufferReader(memory), page_checksum_verification=True, read_dictionary=sorted({chunk.path_in_schema for chunk in texts})
        )
    return _read(file, schema, rows, limits)


def _chunks(file: pq.ParquetFile) -> Iterator[pq.ColumnChunkMetaData]:
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        yield from map(group.column, range(group.num_columns))


def _check_widths(file: pq.ParquetFile, chunks: Sequence[pq.ColumnChunkMetaData], limits: Limits) -> None:
    """Refuse columns of numbers, or of cells of a fixed length, that are too many to be spelt out."""
    leaves = [file.schema.column(place) for place in range(len(file.schema.names))]
    widths = {leaf.path: max(leaf.length or 0, _NUMBER_BYTES) for leaf in leaves}
    if sum(chunk.num_values * widths[chunk.path_in_schema] for chunk in chunks) > limits.unpacked_bytes:
        raise _too_many_bytes(limits)


def _read(file: pq.ParquetFile, schema: pa.Schema, rows: int, limits: Limits) -> pa.Table:
    batches, left = [], limits.unpacked_bytes
    for batch in file.iter_batches(batch_size=rows, columns=schema.names):
        left -= sum(map(_bytes_of, batch.columns))
        if left < 0:
            raise _too_many_bytes(limits)
        batches.append(batch)
    if not batches:
        return schema.empty_table()
    read = pa.Table.from_batches(batches)
    columns = [readable_texts(_spelt_out(read.column(field.name), field.type)) for field in schema]
    return pa.Table.from_arrays(columns, names=schema.names)


def _bytes_of(column: pa.Array) -> int:
    """Bytes of a column once it is spelt out."""
    if not (pa.types.is_dictionary(column.type) and _is_text(column.type.value_type)):
        return int(column.nbytes)
    lengths = pc.cast(pc.binary_length(column.dictionary), pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + _NUMBER_BYTES * len(column)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary))


def _spelt_out(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind or pa.types.is_dictionary(kind):
        return column.cast(kind)
    if not pa.types.is_dictionary(column.type):
        return column
    plain = pa.large_string() if pa.types.is_string(column.type.value_type) else pa.large_binary()
    return column.cast(plain).cast(kind)


def _too_many_bytes(limits: Limits) -> InputError:
    return InputError(f"The file unpacks to more than the limit of {limits.unpacked_bytes:,} bytes.")


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
