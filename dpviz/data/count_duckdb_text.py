"""Text tables as a stream of the cells that a pass needs, cut by the same rules as files that are read whole."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from dpviz.data.files import guarded
from dpviz.data.tables import SEPARATORS
from dpviz.data.text_formats import NOT_UTF8, open_text
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting_pass import CountingPass

_BLOCK = 2**24
_HEAD = 2**20
NOT_CUT = "The text cannot be cut into rows and cells."


@dataclass(kw_only=True)
class TextRows:
    """The rows of text tables, one file after the other. It is read once.

    Attributes:
        asked: the pass.
        ragged: rows left out so far, that have more or fewer cells than the header; private.
        read: bytes so far.
    """

    asked: CountingPass
    ragged: int = field(default=0, repr=False)
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
        for path in self.asked.files:
            with path.open("rb") as file:
                self._check_header(file.read(_HEAD))
                file.seek(0)
                yield from self._cells(_Utf8(file, self), schema)

    def _check_header(self, head: bytes) -> None:
        kind = self.asked.format
        if open_text(kind, head, SEPARATORS[kind]).names != tuple(self.asked.schema.names):
            raise InputError("A file's columns are no longer those of the others: it was changed while the files were read.")

    def _cells(self, file: _Utf8, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = self.asked.schema.names
        wanted = {str(names.index(name)): pa.string() for name in self.asked.columns}

        def skip(_row: pyarrow.csv.InvalidRow) -> str:
            self.ragged += 1
            return "skip"

        places = [str(place) for place in range(len(names))]
        reader = pyarrow.csv.open_csv(
            pa.PythonFile(file, "r"),
            pyarrow.csv.ReadOptions(column_names=places, skip_rows_after_names=1, block_size=_BLOCK),
            pyarrow.csv.ParseOptions(delimiter=SEPARATORS[self.asked.format], newlines_in_values=True, invalid_row_handler=skip),
            pyarrow.csv.ConvertOptions(column_types=wanted, include_columns=list(wanted), strings_can_be_null=True, null_values=[""]),
        )
        for batch in reader:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


class _Utf8(io.RawIOBase):
    """A file that begins with its header and ends its last line, in UTF-8: checked, or with marks in place of what is not.

    Marks are put where bad rows are dropped.
    """

    def __init__(self, file: io.BufferedReader, rows: TextRows) -> None:
        super().__init__()
        self._file, self._rows = file, rows
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace" if rows.asked.drop else "strict")
        self._left, self._last = b"", b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        size = _BLOCK if size < 0 else size
        while len(self._left) < size and self._more(size):
            pass
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def _more(self, size: int) -> bool:
        """Take in some more bytes; the last ones end with a line's end. False where there are none."""
        raw = self._file.read(size)
        self._rows.read += len(raw)
        text = guarded(NOT_UTF8, lambda: self._decoder.decode(raw, final=not raw)).encode()
        text = text if self._last else text.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
        if not raw and self._last not in b"\r\n":
            text += b"\n"
        self._last = text[-1:] or self._last
        self._left += text
        return bool(raw)
