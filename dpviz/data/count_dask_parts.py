"""Parts of files that Dask's workers count one by one: row groups of Parquet files, stretches of text tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpviz.data.arrow_csv import read_csv
from dpviz.data.columns import is_number
from dpviz.data.count_dask_tables import Tally
from dpviz.data.counting_pass import CountingPass
from dpviz.data.files import attempt, guarded
from dpviz.data.tables import SEPARATORS
from dpviz.data.text_formats import open_text

TEXT_BYTES = 2**26
_NUMBERS_AT_ONCE, _CELLS_AT_ONCE = 2**21, 2**20  # rows of numbers alone, and of texts or geometries
_ONE_BLOCK = 2**31 - 1
_PIECE = 2**20
_BOM = b"\xef\xbb\xbf"


class Part(NamedTuple):
    """A part of a file.

    Attributes:
        path: of the file, as every worker must see it.
        first: its first row group, or the byte at or after which its first row begins.
        last: the row group after its last one, or the byte at or after which the next part's first row begins.
        quoted: whether byte `first` of a text table stands between quotes.
        quoted_last: whether byte `last` does.
    """

    path: str
    first: int
    last: int
    quoted: bool = False
    quoted_last: bool = False


class Batch(NamedTuple):
    """Rows that are counted at once. PRIVATE.

    Attributes:
        columns: those that the pass reads.
        rows: how many.
        ragged: further rows of a text table that have more or fewer cells than the header.
    """

    columns: Mapping[str, pa.ChunkedArray]
    rows: int
    ragged: int = 0


@dataclass(frozen=True)
class Fault(Exception):  # noqa: N818  (it never leaves a worker)
    """A part cannot be read."""

    kind: Tally


def batches(part: Part, asked: CountingPass) -> Iterator[Batch]:
    """The rows of a part.

    Raises:
        Fault: the file is not there, damaged, or unlike the others.
    """
    read = _text_batches(part, asked) if asked.is_text else _parquet_batches(part, asked)
    while batch := _read(part, read):
        yield batch


def _read(part: Part, read: Iterator[Batch]) -> Batch | None:
    """The next rows; None after the last."""
    try:
        return next(read, None)
    except (Fault, MemoryError):
        raise
    except Exception:  # noqa: BLE001, S110  (libraries document no common root, and their texts must not get out)
        pass
    raise Fault(Tally.DAMAGED if Path(part.path).is_file() else Tally.ABSENT)


def _parquet_batches(part: Part, asked: CountingPass) -> Iterator[Batch]:
    with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
        stored, names = file.schema_arrow, list(asked.columns)
        if any(name not in stored.names or stored.field(name).type != asked.schema.field(name).type for name in names):
            raise Fault(Tally.DIFFERENT)
        groups = list(range(part.first, part.last))
        rows = _NUMBERS_AT_ONCE if all(is_number(stored.field(name).type) for name in names) else _CELLS_AT_ONCE
        for batch in file.iter_batches(rows, row_groups=groups, columns=names, use_threads=False):
            yield Batch({name: pa.chunked_array([batch.column(name)]) for name in names}, batch.num_rows)


def row_groups(path: Path) -> list[int]:
    """Rows of each row group of a Parquet file.

    Raises:
        InputError: the file is damaged.
    """
    rule = "The content cannot be read as Parquet: the file is damaged, or its ending is wrong."
    facts = guarded(rule, lambda: pq.read_metadata(path))
    return [facts.row_group(group).num_rows for group in range(facts.num_row_groups)]


def parquet_parts(path: Path, groups: list[int], rows: int) -> Iterator[Part]:
    """Whole row groups of a file, together of at most `rows` rows where they are small."""
    first, held = 0, 0
    for group, more in enumerate(groups):
        if held and held + more > rows:
            yield Part(str(path), first, group)
            first, held = group, 0
        held += more
    if held:
        yield Part(str(path), first, len(groups))


def text_stretches(path: Path) -> list[tuple[str, int, int]]:
    """Path, first and last byte of the stretches in which a text table is read."""
    size = guarded("The file cannot be read: does it exist, and may you read it?", lambda: path.stat().st_size)
    return [(str(path), first, min(first + TEXT_BYTES, size)) for first in range(0, size, TEXT_BYTES)]


class Quotes(NamedTuple):
    """Quotation marks of a stretch of a text table. PRIVATE.

    Attributes:
        number: how many; below zero, a Tally, where the file cannot be read.
        begin_cells: whether its first, third, ... mark begins a cell, or follows a mark; and its second, fourth, ...
    """

    number: int
    begin_cells: tuple[bool, bool] = (True, True)


def quotes_in(path: str, first: int, last: int, separator: str) -> Quotes:
    """The quotation marks in a stretch of a file."""
    number, begin = 0, [True, True]
    starts = np.frombuffer(f'{separator}\r\n"'.encode(), np.uint8)
    try:
        with Path(path).open("rb") as file:
            before = _sign_before(file, first)
            while piece := file.read(max(min(_PIECE, last - file.tell()), 0)):
                signs = np.frombuffer(before + piece, np.uint8)
                fits = np.isin(signs[np.flatnonzero(signs[1:] == ord('"'))], starts)
                for parity in range(2):
                    begin[(number + parity) % 2] &= bool(fits[parity::2].all())
                number, before = number + len(fits), piece[-1:]
    except OSError:
        return Quotes(int(Tally.ABSENT))
    return Quotes(number, (begin[0], begin[1]))


def _sign_before(file: BinaryIO, first: int) -> bytes:
    """The byte before a stretch, which is read next; before a file's first cell, the end of a row."""
    if first:
        file.seek(first - 1)
        return file.read(1)
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return b"\n"


def text_parts(stretches: list[tuple[str, int, int]], quotes: list[Quotes]) -> list[Part]:
    """Parts of one text table from its stretches and the quotation marks in each.

    Cells that begin with a mark are told from the rest by counting marks, unless one stands within a cell that does not begin
    with one: where every other mark begins a cell, or follows a mark, none does. A file with one that does is one part.
    """
    inside = np.cumsum([0, *(each.number for each in quotes)]) % 2 == 1
    if inside[-1] or not all(each.begin_cells[int(before)] for each, before in zip(quotes, inside[:-1], strict=True)):
        return [Part(stretches[0][0], 0, stretches[-1][2])]
    return [
        Part(path, first, last, bool(before), bool(after))
        for (path, first, last), before, after in zip(stretches, inside[:-1], inside[1:], strict=True)
    ]


def _text_batches(part: Part, asked: CountingPass) -> Iterator[Batch]:
    with Path(part.path).open("rb") as file:
        first = _row_begins(file, part.first, part.quoted)
        last = _row_begins(file, part.last, part.quoted_last)
        file.seek(first)
        text = file.read(last - first)
    if part.first == 0:
        text = text.removeprefix(_BOM).lstrip(b"\r\n")
    if attempt(lambda: text.decode("utf-8")) is None:
        if not asked.drop:
            raise Fault(Tally.NOT_UTF8)
        text = text.decode("utf-8", "replace").encode()
    if text.strip(b"\r\n"):
        _check_header(text, part, asked)
        yield attempt(lambda: _cells(text, part, asked, None)) or _cells(text, part, asked, _ONE_BLOCK)


def _row_begins(file: BinaryIO, place: int, quoted: bool) -> int:
    """Where the first row at or after a byte begins; `quoted` says whether the byte stands between quotes."""
    if place == 0:
        return 0
    file.seek(place - 1)
    if file.read(1) == b"\n" and not quoted:
        return place
    while piece := file.read(_PIECE):
        signs = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero((signs == ord("\n")) & ((np.cumsum(signs == ord('"')) + quoted) % 2 == 0))
        if len(ends):
            return place + int(ends[0]) + 1
        place, quoted = place + len(piece), bool((piece.count(b'"') + quoted) % 2)
    return place


def _check_header(text: bytes, part: Part, asked: CountingPass) -> None:
    if part.first == 0 and open_text(asked.format, text[:_PIECE], SEPARATORS[asked.format]).names != tuple(asked.schema.names):
        raise Fault(Tally.DIFFERENT)


def _cells(text: bytes, part: Part, asked: CountingPass, block: int | None) -> Batch:
    names = asked.schema.names
    wanted = {name: str(names.index(name)) for name in asked.columns}
    table, ragged = read_csv(
        text + b"\n",
        pyarrow.csv.ReadOptions(
            use_threads=False,
            column_names=[str(place) for place in range(len(names))],
            skip_rows_after_names=int(part.first == 0),
            block_size=block,
        ),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted.values(), pa.string()),
            include_columns=list(wanted.values()),
            strings_can_be_null=True,
            null_values=[""],
        ),
        delimiter=SEPARATORS[asked.format],
        newlines_in_values=True,
    )
    return Batch({name: table.column(place) for name, place in wanted.items()}, table.num_rows, ragged)
