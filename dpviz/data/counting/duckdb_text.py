"""Text tables as a stream of the cells that a pass needs, cut by the same rules as files that are read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from dpviz.data.reading.safety import guarded
from dpviz.data.reading.text_formats import open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_BAD_LINES, NOT_CUT, SEPARATORS, BadLines, TextLayout, cut_lines, read_lines
from dpviz.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from dpviz.data.counting.job import CountingPass


@dataclass(kw_only=True)
class TextRows:
    """The rows of text tables, one file after the other. It is read once.

    Attributes:
        asked: the pass.
        bad: lines left out so far, which are no rows; private.
        read: bytes so far.
    """

    asked: CountingPass
    bad: BadLines = field(default=NO_BAD_LINES, repr=False)
    read: int = field(default=0, repr=False)

    @property
    def share(self) -> float:
        """The part of all bytes that was read."""
        return self.read / self.asked.size if self.asked.size else 0.0

    def reader(self, caught: Callable[[Callable[[], pa.RecordBatch | None]], Callable[[], pa.RecordBatch | None]]) -> pa.RecordBatchReader:
        """Batches of texts, with the pass's columns called c0, c1, ...; `caught` keeps our errors, which DuckDB would hide."""
        schema = pa.schema([(f"c{place}", pa.string()) for place in range(len(self.asked.columns))])
        batches = self._batches(schema)
        return pa.RecordBatchReader.from_batches(schema, iter(caught(lambda: next(batches, None)), None))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = self.asked.schema.names
        types = {names.index(name): pa.string() for name in self.asked.columns}
        layout = TextLayout(separator=SEPARATORS[self.asked.format], width=len(names), types=types, missing=("",))
        for path in self.asked.files:
            for lines in self._lines(path):
                table, bad = guarded(NOT_CUT, lambda lines=lines: cut_lines(lines, layout))  # type: ignore[misc]
                self.bad += bad
                self.read += len(lines)
                yield from table.rename_columns(schema.names).to_batches()

    def _lines(self, path: Path) -> Iterator[bytes]:
        """The lines after the header, some at once."""
        with path.open("rb") as file:
            header = open_header(self.asked.format, file.read(HEAD_BYTES))
            if header.names != tuple(self.asked.schema.names):
                raise InputError("A file's columns are no longer those of the others: it was changed while the files were read.")
            yield from read_lines(file, header.end, path.stat().st_size)
