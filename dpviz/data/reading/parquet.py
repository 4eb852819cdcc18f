"""Columns of Parquet files, none of which may unpack to more than a limit: one long text can stand for millions of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpviz.data.columns import readable_texts
from dpviz.data.reading.safety import Limits
from dpviz.errors import InputError

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
