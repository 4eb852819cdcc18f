r"""Rows of text tables (CSV, TSV): a row is one line, and whether it is good depends on no other line.

A line ends at ``\n`` and nowhere else; one ``\r`` right before the ``\n`` belongs to its end. An empty line is no row. A line is bad if it
is longer than `LINE_BYTES`, is not UTF-8, has another number of cells than the header, or breaks the rules for quotation marks of RFC
4180: a cell of a CSV file begins and ends with a mark or holds none, and marks within are doubled. In a TSV file a mark is a letter like
any other. So one malformed line is one bad row and spoils no other row, whichever engine reads the file, and in whichever parts.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from dpviz.arrays import Integers, Mask
from dpviz.data.reading.arrow_csv import read_csv
from dpviz.data.reading.safety import attempt, guard
from dpviz.errors import InputError

Bytes = NDArray[np.uint8]

SEPARATORS = {"CSV": ",", "TSV": "\t"}
LINE_BYTES = 2**20
HEAD_BYTES = 2**20
MISSING_WORDS = tuple(pyarrow.csv.ConvertOptions().null_values)  # "", NA, null, NaN and the like
TEXT_BLOCK = 2**22
NOT_UTF8 = "The text is not encoded in UTF-8; save the file as UTF-8."
NOT_CUT = "The text cannot be cut into rows and cells."
HEADER_TOO_LONG = "The first line must hold the names of the columns; this one does not end."
_EMPTY = "The file is empty: a text table starts with a line of column names."
_OLD_ENDS = "The file's lines end in carriage returns alone, as on old computers; save it with line ends of Unix or Windows."
_HEADER_MARKS = "The header's quotation marks do not fit: a name begins and ends with a mark, or holds none; the header is a single line."
_RULES = {
    "long": f"A row is longer than {LINE_BYTES:,} bytes.",
    "not_utf8": "A row is not encoded in UTF-8; save the file as UTF-8.",
    "marks": (
        "A row has a quotation mark that is not closed on its line, or that stands within a cell: a cell begins and ends with a mark or"
        " holds none, and marks within are doubled. If cells hold line ends between marks, convert the file to Parquet, or pass"
        " quoted_newlines=True, which studies allow and releases do not."
    ),
    "cells": "A row has more or fewer cells than the header has names (a decimal comma makes two cells).",
}
_BOM = b"\xef\xbb\xbf"
_PARSED_AT_ONCE = 2**23  # bytes; larger than `LINE_BYTES`, so that a block holds at least one whole line
_ONE_BLOCK = 2**31 - 1
_CARRIAGE = b"\xff"  # a byte that UTF-8 never has; replaces a carriage return within a line, where Arrow would end the row
_END, _MARK, _SURROGATE, _FIRST_SURROGATE = ord("\n"), ord('"'), 0xED, 0xA0
NO_END = re.compile(rb"[^\r\n]")


@dataclass(frozen=True, kw_only=True)
class BadLines:
    """How many lines are bad, by the first rule that each line breaks. PRIVATE.

    Attributes:
        long: lines of more than `LINE_BYTES` bytes, the line end not counted.
        not_utf8: lines with bytes that are not UTF-8.
        marks: lines that break the rules for quotation marks.
        cells: lines with more or fewer cells than the header.
    """

    long: int = field(default=0, repr=False)
    not_utf8: int = field(default=0, repr=False)
    marks: int = field(default=0, repr=False)
    cells: int = field(default=0, repr=False)

    def __add__(self, other: BadLines) -> BadLines:
        return BadLines(
            long=self.long + other.long,
            not_utf8=self.not_utf8 + other.not_utf8,
            marks=self.marks + other.marks,
            cells=self.cells + other.cells,
        )

    @property
    def total(self) -> int:
        """The number of all bad lines."""
        return sum(astuple(self))

    def refuse(self, remedy: str) -> None:
        """Refuse bad lines.

        Args:
            remedy: what to do, at the end of the error's text.

        Raises:
            InputError: there is a bad line; the text says the rule, never an entry.
        """
        broken = next((rule for name, rule in _RULES.items() if getattr(self, name)), None)
        if broken is not None:
            raise InputError(f"{broken} {remedy}".rstrip())


NO_BAD_LINES = BadLines()


class Header(NamedTuple):
    """Names of the columns of a text table, and the byte at which the line after them begins."""

    names: tuple[str, ...]
    end: int


@dataclass(frozen=True, kw_only=True)
class TextLayout:
    """How the lines of a text table are cut, and which cells are read.

    Attributes:
        separator: the character between cells; if it is a comma, a cell may stand in quotation marks.
        width: number of cells in a row.
        types: position of a column -> the Arrow type in which it is read.
        missing: texts that stand for a missing entry.
        quoted_newlines: whether a cell in quotation marks may hold line ends; then one malformed row can spoil others.
    """

    separator: str
    width: int
    types: Mapping[int, pa.DataType] = field(default_factory=dict)
    missing: Sequence[str] = MISSING_WORDS
    quoted_newlines: bool = False


def header_of(head: bytes, separator: str) -> Header:
    """Read the header of a text table, its first line that is not empty.

    Args:
        head: the file's first `HEAD_BYTES` bytes, or all if it has fewer.
        separator: of cells.

    Raises:
        InputError: every line is empty; the header has no end, is not in UTF-8, or has wrong line ends or quotation marks.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(NOT_UTF8)
    first = NO_END.search(head, len(_BOM) if head.startswith(_BOM) else 0)
    if first is None:
        raise InputError(_EMPTY)
    end = head.find(b"\n", first.start())
    if end < 0 and len(head) >= HEAD_BYTES and b"\r" not in head:
        raise InputError(HEADER_TOO_LONG)
    line = head[first.start() : len(head) if end < 0 else end].removesuffix(b"\r")
    if not _is_utf8(line) or b"\0" in line:
        raise InputError(NOT_UTF8)
    text = line.decode("utf-8")
    if "\r" in text:
        raise InputError(_OLD_ENDS)
    if separator != ",":
        names = text.split(separator)
    else:
        if good_lines(line + b"\n", separator)[1].marks:
            raise InputError(_HEADER_MARKS)
        names = guard(NOT_CUT, lambda: next(csv.reader([text], delimiter=separator)))
    return Header(tuple(names), len(head) if end < 0 else end + 1)


def cut_text(data: bytes, begin: int, layout: TextLayout) -> tuple[pa.Table, BadLines]:
    """Cut a text table in memory into rows and cells.

    Args:
        data: the whole file.
        begin: the byte at which the rows begin.
        layout: how rows are cut.

    Returns:
        The columns in `layout.types`, named by their positions, with a row for each good line; and the numbers of bad lines.
    """
    if layout.quoted_newlines:
        return _cut_across_lines(data[begin:], layout)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = list(pool.map(lambda part: cut_lines(_lines(data, part), layout), _parts(data, begin)))
    table = pa.concat_tables([part for part, _ in parts]) if parts else _no_rows(layout)
    return table, sum((bad for _, bad in parts), NO_BAD_LINES)


def cut_lines(lines: bytes, layout: TextLayout) -> tuple[pa.Table, BadLines]:
    r"""Cut whole lines into rows and cells, as `cut_text` does. The last line ends with ``\n``."""
    text, bad = good_lines(lines, layout.separator)
    if _CARRIAGE in text:  # Arrow does not call its handler for rows with this byte
        text, ragged = _without(text, lambda signs, ends: _have_other_widths(signs, ends, layout))
        bad += BadLines(cells=ragged)
    if NO_END.search(text) is None:
        return _no_rows(layout), bad
    table, ragged = _parse(text, layout, newlines=False)
    return table, bad + BadLines(cells=ragged)


def read_lines(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    r"""Yield the lines of a file from one byte to another, several at once, each with ``\n`` at its end.

    Of a line that is too long only the beginning is kept. The beginning is longer than `LINE_BYTES`, too, so the line remains bad.
    """
    file.seek(begin)
    begun = b""
    while begin < end and (piece := file.read(min(TEXT_BLOCK, end - begin))):
        begin += len(piece)
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield begun + piece[:cut]
            begun = piece[cut:]
        else:
            begun += piece
        begun = begun[: LINE_BYTES + 2]
    if begun:
        yield begun + b"\n"


def line_begins(file: BinaryIO, position: int) -> int:
    """Return the byte at which the first line begins that begins at or after `position`."""
    if position == 0:
        return 0
    file.seek(position - 1)
    position -= 1
    while piece := file.read(LINE_BYTES):
        found = piece.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(piece)
    return position


def good_lines(lines: bytes, separator: str) -> tuple[bytes, BadLines]:
    r"""Return the lines that break no rule, and how many are bad. The number of cells in a line is not checked here.

    Args:
        lines: whole lines; the last one ends with ``\n``.
        separator: of cells.

    Returns:
        The good lines, with a byte 0xFF in place of each carriage return within a line; and the numbers of bad lines.
    """
    long = not_utf8 = marks = 0
    if _any_long(lines):
        lines, long = _without(lines, _are_long)
    if not _is_utf8(lines):
        lines, not_utf8 = _without(lines, _are_not_utf8)
    quoted = separator == "," and b'"' in lines
    if b"\r" in lines and (quoted or lines.count(b"\r") > lines.count(b"\r\n")):
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", _CARRIAGE)
    if quoted:
        lines, marks = _without(lines, _have_odd_marks)
    return lines, BadLines(long=long, not_utf8=not_utf8, marks=marks)


def _parts(data: bytes, begin: int) -> Iterator[slice]:
    """Yield slices of whole lines, of about `TEXT_BLOCK` bytes each."""
    while begin < len(data):
        end = data.rfind(b"\n", begin, begin + TEXT_BLOCK) + 1 or data.find(b"\n", begin) + 1 or len(data)
        yield slice(begin, end)
        begin = end


def _lines(data: bytes, part: slice) -> bytes:
    lines = data[part]
    return lines if lines.endswith(b"\n") else lines + b"\n"


def _is_utf8(lines: bytes) -> bool:
    """Return whether all lines are UTF-8."""
    try:
        return lines.isascii() or bool(lines.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _any_long(lines: bytes) -> bool:
    """Return whether a line may be too long. The check is quick, because it does not look at every line."""
    begin = 0
    while begin + LINE_BYTES < len(lines):
        begin, before = lines.rfind(b"\n", begin, begin + LINE_BYTES + 1) + 1, begin
        if begin <= before:
            return True
    return False


def _without(lines: bytes, are_bad: Callable[[Bytes, Integers], Mask]) -> tuple[bytes, int]:
    """Return the lines that pass the rule `are_bad`, and the number of lines that break it."""
    signs = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(signs == _END)
    bad = are_bad(signs, ends)
    number = int(np.count_nonzero(bad))
    if not number:
        return lines, 0
    return signs[np.repeat(~bad, np.diff(ends, prepend=-1))].tobytes(), number


def _are_long(signs: Bytes, ends: Integers) -> Mask:
    length = np.diff(ends, prepend=-1) - 1
    length -= (length > 0) & (signs[ends - 1] == ord("\r"))
    return np.asarray(length > LINE_BYTES)


def _are_not_utf8(signs: Bytes, ends: Integers) -> Mask:
    """Return (n,) whether each line is not UTF-8. Invalid bytes decode to surrogates, which valid UTF-8 cannot encode."""
    marked = np.frombuffer(signs.tobytes().decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass"), np.uint8)
    odd = np.flatnonzero((marked[:-1] == _SURROGATE) & (marked[1:] >= _FIRST_SURROGATE))
    number = np.diff(np.searchsorted(odd, np.flatnonzero(marked == _END)), prepend=0)
    return np.asarray(number.reshape(ends.shape) > 0)


def _have_odd_marks(signs: Bytes, ends: Integers) -> Mask:
    r"""Return (n,) whether each line breaks the rules for quotation marks. Cells are separated by commas; no line has a ``\r``.

    The marks of a good line alternate: one opens a cell, the next one closes it. An opening mark is at the beginning of a cell, or right
    after a closing mark; these two then stand for one mark in the text. A closing mark is at the end of a cell, or right before an
    opening one.
    """
    marks = np.flatnonzero(signs == _MARK)
    if len(marks) < len(ends):
        number = np.bincount(np.searchsorted(ends, marks), minlength=len(ends))
    else:
        number = np.diff(np.searchsorted(marks, ends), prepend=0)
    bad = number % 2 == 1
    if bad.any():
        marks = marks[np.repeat(~bad, number)]
    opening, closing = marks[0::2], marks[1::2]
    may_stand = np.zeros(256, np.bool_)
    may_stand[[ord(","), _END, _MARK]] = True
    before, after = may_stand[signs[opening - 1]] | (opening == 0), may_stand[signs[closing + 1]]
    bad[np.searchsorted(ends, np.concatenate([opening[~before], closing[~after]]))] = True
    return np.asarray(bad)


def _have_other_widths(signs: Bytes, ends: Integers, layout: TextLayout) -> Mask:
    """Return (n,) whether each line has more or fewer cells than the header. Empty lines count as good. Quotation marks must fit."""
    between = signs == ord(layout.separator)
    if layout.separator == ",":
        between &= ~np.logical_xor.accumulate(signs == _MARK)
    number = np.diff(np.searchsorted(np.flatnonzero(between), ends), prepend=0)
    return np.asarray((number != layout.width - 1) & (np.diff(ends, prepend=-1) > 1))


def _no_rows(layout: TextLayout) -> pa.Table:
    return pa.table({str(column): pa.array([], kind) for column, kind in layout.types.items()})


def _cut_across_lines(data: bytes, layout: TextLayout) -> tuple[pa.Table, BadLines]:
    """Cut a text table whose cells may hold line ends between quotation marks."""
    if not _is_utf8(data):
        raise InputError(NOT_UTF8)
    if NO_END.search(data) is None:
        return _no_rows(layout), NO_BAD_LINES
    found = attempt(lambda: _parse(data + b"\n", layout, newlines=True))
    table, ragged = found or guard(NOT_CUT, lambda: _parse(data + b"\n", layout, newlines=True, block=_ONE_BLOCK))
    return table, BadLines(cells=ragged)


def _parse(text: bytes, layout: TextLayout, *, newlines: bool, block: int = _PARSED_AT_ONCE) -> tuple[pa.Table, int]:
    """Return columns of the rows that have as many cells as the header, and the number of other rows."""
    escaped = not newlines and _CARRIAGE in text
    types = {str(column): pa.binary() if escaped else kind for column, kind in layout.types.items()}
    table, ragged = read_csv(
        b"\n" + text if text.startswith(_BOM) else text,  # Arrow would drop a byte order mark at the beginning
        pyarrow.csv.ReadOptions(column_names=[str(column) for column in range(layout.width)], block_size=block, use_threads=newlines),
        pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=True, check_utf8=False, null_values=list(layout.missing)
        ),
        delimiter=layout.separator,
        quote_char='"' if newlines or layout.separator == "," else False,
        newlines_in_values=newlines,
    )
    return _with_carriages(table, layout) if escaped else table, ragged


def _with_carriages(table: pa.Table, layout: TextLayout) -> pa.Table:
    """Return the columns in the types of `layout`, with carriage returns in place of the bytes 0xFF."""
    cells = [pc.replace_substring(column, _CARRIAGE, b"\r").cast(pa.string()) for column in table.columns]
    kinds = list(layout.types.values())
    return pa.table([column.cast(kind) for column, kind in zip(cells, kinds, strict=True)], names=table.column_names)
