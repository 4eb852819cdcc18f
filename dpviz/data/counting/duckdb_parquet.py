"""Parquet files as a stream of the cells that a pass needs, for files that DuckDB refuses because a text is not UTF-8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.data.columns import is_text, readable_texts
from dpviz.data.reading.text_rows import NO_BAD_LINES, BadLines

if TYPE_CHECKING:
    from dpviz.data.counting.job import CountingPass

_ROWS = 2**16


@dataclass(kw_only=True)
class ParquetRows:
    """The rows of Parquet files, one file after the other; texts that are not UTF-8 are missing. It is read once.

    Attributes:
        asked: the pass.
        bad: none: a Parquet file has no lines.
        read: bytes so far, about.
    """

    asked: CountingPass
    bad: BadLines = NO_BAD_LINES
    read: float = field(default=0.0, repr=False)

    @property
    def share(self) -> float:
        """The part of all rows that was read, about."""
        return self.read / self.asked.size if self.asked.size else 0.0

    def reader(self, caught: Callable[[Callable[[], pa.RecordBatch | None]], Callable[[], pa.RecordBatch | None]]) -> pa.RecordBatchReader:
        """Batches of the pass's columns, called c0, c1, ...; `caught` keeps our errors, which DuckDB would hide."""
        kinds = [_as_duckdb_reads(self.asked.schema.field(name).type) for name in self.asked.columns]
        schema = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
        batches = self._batches(schema)
        return pa.RecordBatchReader.from_batches(schema, iter(caught(lambda: next(batches, None)), None))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = list(self.asked.columns)
        for path in self.asked.files:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                row_bytes = path.stat().st_size / max(file.metadata.num_rows, 1)
                for batch in file.iter_batches(_ROWS, columns=names, use_threads=False):
                    columns = [readable_texts(pa.chunked_array([batch.column(name)])) for name in names]
                    self.read += batch.num_rows * row_bytes
                    cast = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
                    yield from pa.Table.from_arrays(cast, schema=schema).to_batches()


def _as_duckdb_reads(kind: pa.DataType) -> pa.DataType:
    """The type that DuckDB gives a column of Parquet, of those that a pass reads."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if is_text(kind):
        return pa.large_string()
    if pa.types.is_float16(kind):
        return pa.float32()
    return pa.float64() if pa.types.is_decimal256(kind) else kind
