r"""Cut text tables (CSV, TSV) into rows: a row is one line, and whether it is good depends on no other line.

A line ends at ``\n`` and nowhere else; one ``\r`` right before the ``\n`` belongs to its end. An empty line is no row. A line is bad if it
is longer than `LINE_BYTES`, is not UTF-8, has more or fewer cells than the header, or breaks the rules for quotation marks of RFC
4180: a cell begins and ends with a mark or holds none, and marks within are doubled. Between tabs a quotation mark is an ordinary
character. So a malformed line is one bad row and spoils no other row, in every engine.

Lines in an encoding of `CODECS` become UTF-8 block by block: in all of them lines end with the byte of UTF-8, which no letter has. A text
in UTF-16 is converted as a whole, and its line ends are those of its 16-bit units. What the encoding does not have becomes bytes that are
not UTF-8, in its own line alone.
"""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from dpviz.arrays import Integers, Mask
from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.arrow_csv import read_csv
from dpviz.errors import InputError

Bytes = NDArray[np.uint8]

TAB = "\t"
SEPARATORS: dict[str, str] = {}
"""The formats of text tables, each with its separator; `formats.register` fills it."""
UTF8, UTF16 = "utf-8", "utf-16"
CODECS = {
    "latin-1": "latin-1",
    **{f"windows-{page}": f"cp{page}" for page in (*range(1250, 1259), 874)},
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (*range(2, 12), *range(13, 17))},
    **{name: name for name in ("koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp866")},
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "euc-jp": "euc_jp",
    "gb18030": "gb18030",
    "big5": "cp950",
    "euc-kr": "cp949",
}
"""Encodings that extend ASCII byte by byte, so that lines can be cut before they are decoded -> Python's name of the codec."""
LINE_BYTES = 2**20
HEAD_BYTES = 2**20
MISSING_WORDS = tuple(pyarrow.csv.ConvertOptions().null_values)  # "", NA, null, NaN and the like
TEXT_BLOCK = 2**22
NOT_UTF8 = "The text is not encoded in UTF-8; save the file as UTF-8."
SAVE_AS_UTF8 = (
    'save the file as UTF-8 (spreadsheets call it "CSV UTF-8"), or declare the encoding in which it was saved, such as'
    ' text_format=dv.reading.TextFormat(encoding="windows-1250"); it is not guessed, since several would fit'
)
NOT_CUT = "The text cannot be cut into rows and cells."
HEADER_TOO_LONG = "The first line must hold the names of the columns; this one does not end."
EMPTY_FILE = "The file is empty: a text table starts with a line of column names."
_HEADER_NOT_UTF8 = f"The header is not encoded in UTF-8, or in the encoding that is declared: {SAVE_AS_UTF8}."
_NO_MARK = 'The file has no byte order mark of UTF-16, although encoding="utf-16" is declared: declare its encoding, or save it as UTF-8.'
_OLD_ENDS = "The file's lines end in carriage returns alone; save it with line ends of Unix or Windows."
_SPREADSHEET_LINE = re.compile(r'"?sep=')
_SEPARATOR_FIRST = (
    "The first line says the separator to a spreadsheet (sep=), and the names of the columns come after it: take that line out."
)
_HEADER_MARKS = "The header's quotation marks do not fit: a name begins and ends with a mark, or holds none; the header is a single line."
_RULES = {
    "long": f"A row is longer than {LINE_BYTES:,} bytes.",
    "not_utf8": f"A row is not encoded in UTF-8, or in the encoding that is declared: {SAVE_AS_UTF8}.",
    "marks": (
        "A row has a quotation mark that is not closed on its line, or that is within a cell: a cell begins and ends with a mark or"
        " holds none, and marks within are doubled. If cells hold line ends between marks, convert the file to Parquet, or pass"
        " quoted_newlines=True, which studies allow and releases do not. If they are degrees, minutes and seconds, write decimal degrees."
    ),
    "cells": "A row has more or fewer cells than the header has names (a decimal comma makes two cells).",
}
_BOM = b"\xef\xbb\xbf"
_UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_PARSED_AT_ONCE = 2**23  # bytes; larger than `LINE_BYTES`, so that a block holds at least one whole line
_ONE_BLOCK = 2**31 - 1
_CARRIAGE = b"\xff"  # a byte that UTF-8 never has; it replaces a carriage return within a line, at which Arrow would end the row
_END, _MARK, _SURROGATE, _FIRST_SURROGATE = ord("\n"), ord('"'), 0xED, 0xA0
NOT_LINE_END = re.compile(rb"[^\r\n]")
THOUSANDS_MARKS = {",": ",", ".": ".", "'": "'\u2019", " ": " \u00a0\u2009\u202f"}  # a declared mark -> what is taken for it


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
        return BadLines(**{rule: getattr(self, rule) + getattr(other, rule) for rule in _RULES})

    @property
    def total(self) -> int:
        """The number of all bad lines."""
        return sum(astuple(self))

    def refuse(self, remedy: str) -> None:
        """Refuse bad lines.

        Args:
            remedy: the end of the error's text, which says what to do.

        Raises:
            InputError: there is a bad line; the text says the rule, never an entry.
        """
        broken = next((rule for name, rule in _RULES.items() if getattr(self, name)), None)
        if broken is not None:
            raise InputError(f"{broken} {remedy}".rstrip())


NO_BAD_LINES = BadLines()


class Header(NamedTuple):
    """The names of a text table's columns, and the byte `end` at which the line after them begins."""

    names: tuple[str, ...]
    end: int


@dataclass(frozen=True, kw_only=True)
class TextLayout:
    """How the lines of a text table are cut, and which cells are read.

    Attributes:
        separator: the character between cells; unless it is a tab, a cell may be in quotation marks.
        width: number of cells in a row.
        types: the columns to read: position -> Arrow type.
        missing: texts that stand for a missing entry.
        quoted_newlines: whether a cell in quotation marks may hold line ends; then one malformed row can spoil others.
        encoding: UTF-8, or one of `CODECS`.
        coordinates: the columns in `types` that hold coordinates.
        counts: the columns in `types` that hold counts, as texts. Numbers come out as all readers take them, with decimal points and
            without marks of thousands; a number that is not written as declared becomes a text that is none.
        decimal: the declared decimal mark of coordinates and counts; None if it is not declared.
        thousands: the declared mark of thousands in counts, a key of `THOUSANDS_MARKS`.
    """

    separator: str
    width: int
    types: Mapping[int, pa.DataType] = field(default_factory=dict)
    missing: Sequence[str] = MISSING_WORDS
    quoted_newlines: bool = False
    encoding: str = UTF8
    coordinates: Collection[int] = ()
    counts: Collection[int] = ()
    decimal: str | None = None
    thousands: str | None = None


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte order mark at the beginning of a file says; None without a mark."""
    if head.startswith(_BOM):
        return UTF8
    return UTF16 if head.startswith(tuple(_UTF16_MARKS)) else None


def refuse_other_mark(head: bytes, encoding: str) -> None:
    """Refuse a file whose byte order mark contradicts the declared encoding.

    Raises:
        InputError: the mark says another encoding, or the mark that UTF-16 needs is missing.
    """
    marked = marked_encoding(head)
    if marked is not None and marked != encoding:
        raise InputError(
            f"The file begins with the byte order mark of {marked.upper()}, and is not encoded in {encoding.upper()}: declare"
            f' text_format=dv.reading.TextFormat(encoding="{marked}"), or save the file as UTF-8.'
        )
    if marked is None and encoding == UTF16:
        raise InputError(_NO_MARK)


def utf16_to_utf8(data: bytes) -> bytes:
    """Convert a text in UTF-16 with a byte order mark to UTF-8 without one.

    Half of a pair of surrogates, and a last byte without its second half, become bytes that are not UTF-8.
    """
    decoder = codecs.getincrementaldecoder(_UTF16_MARKS[data[:2]])("surrogatepass")
    end = len(data) - len(data) % 2
    parts = [decoder.decode(data[begin : min(begin + TEXT_BLOCK, end)], begin + TEXT_BLOCK >= end) for begin in range(2, end, TEXT_BLOCK)]
    return b"".join([*(part.encode("utf-8", "surrogatepass") for part in parts), b"\xff" * (len(data) - end)])


def utf8_lines(lines: bytes, encoding: str) -> bytes:
    """Convert whole lines in UTF-8, or in an encoding of `CODECS`, to UTF-8. Bytes without a letter become surrogates: no valid UTF-8."""
    if encoding == UTF8 or lines.isascii():
        return lines
    return lines.decode(CODECS[encoding], "surrogateescape").encode("utf-8", "surrogatepass")


def header_of(head: bytes, separator: str, encoding: str = UTF8) -> Header:
    """Read the header of a text table, its first line that is not empty.

    Args:
        head: the file's first `HEAD_BYTES` bytes, or all if it has fewer.
        separator: the character between cells.
        encoding: UTF-8, or one of `CODECS`.

    Raises:
        InputError: every line is empty; the header has no end, is not in the encoding, or has wrong line ends or quotation marks.
    """
    refuse_other_mark(head, encoding)
    first = NOT_LINE_END.search(head, len(_BOM) if head.startswith(_BOM) else 0)
    if first is None:
        raise InputError(EMPTY_FILE)
    end = head.find(b"\n", first.start())
    if end < 0 and len(head) >= HEAD_BYTES and b"\r" not in head:
        raise InputError(HEADER_TOO_LONG)
    line = utf8_lines(head[first.start() : len(head) if end < 0 else end].removesuffix(b"\r"), encoding)
    if not is_utf8(line) or b"\0" in line:
        raise InputError(_HEADER_NOT_UTF8)
    text = line.decode("utf-8")
    if "\r" in text:
        raise InputError(_OLD_ENDS)
    if _SPREADSHEET_LINE.match(text):
        raise InputError(_SEPARATOR_FIRST)
    if separator == TAB:
        names = text.split(separator)
    else:
        if good_lines(line + b"\n", separator)[1].marks:
            raise InputError(_HEADER_MARKS)
        names = without_private_text(NOT_CUT, lambda: next(csv.reader([text], delimiter=separator)))
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

    def cut_part(part: slice) -> tuple[pa.Table, BadLines]:
        lines = data[part]
        return cut_lines(lines if lines.endswith(b"\n") else lines + b"\n", layout)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = list(pool.map(cut_part, _slice_lines(data, begin)))
    table = pa.concat_tables([part for part, _ in parts]) if parts else _empty_table(layout)
    return table, sum((bad for _, bad in parts), NO_BAD_LINES)


def cut_lines(lines: bytes, layout: TextLayout) -> tuple[pa.Table, BadLines]:
    r"""Cut whole lines into rows and cells, as `cut_text` does. The last line ends with ``\n``."""
    lines, long = _remove_bad(lines, _are_long) if any_longer(lines, LINE_BYTES) else (lines, 0)  # before a text becomes shorter in UTF-8
    text, bad = good_lines(utf8_lines(lines, layout.encoding), layout.separator)
    bad += BadLines(long=long)
    if _CARRIAGE in text:  # Arrow does not call its handler for rows with this byte
        text, ragged = _remove_bad(text, lambda content, line_ends: _have_other_widths(content, line_ends, layout))
        bad += BadLines(cells=ragged)
    if NOT_LINE_END.search(text) is None:
        return _empty_table(layout), bad
    table, ragged = _parse(text, layout, newlines=False)
    return table, bad + BadLines(cells=ragged)


def read_lines(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    r"""Yield the lines of a file from one byte to another, several at once, each with ``\n`` at its end.

    A line that is too long is cut to a beginning that is still longer than `LINE_BYTES`, so that the line remains bad.
    """
    file.seek(begin)
    unfinished = b""
    while begin < end and (block := file.read(min(TEXT_BLOCK, end - begin))):
        begin += len(block)
        cut = block.rfind(b"\n") + 1
        if cut:
            yield unfinished + block[:cut]
            unfinished = block[cut:]
        else:
            unfinished += block
        unfinished = unfinished[: LINE_BYTES + 2]
    if unfinished:
        yield unfinished + b"\n"


def line_begins(file: BinaryIO, position: int) -> int:
    """Return the first byte, at or after `position`, at which a line begins."""
    if position == 0:
        return 0
    file.seek(position - 1)
    position -= 1
    while block := file.read(LINE_BYTES):
        end = block.find(b"\n")
        if end >= 0:
            return position + end + 1
        position += len(block)
    return position


def good_lines(lines: bytes, separator: str) -> tuple[bytes, BadLines]:
    r"""Return the lines that break no rule, and how many are bad. The number of cells in a line is not checked here.

    Args:
        lines: whole lines; the last one ends with ``\n``.
        separator: the character between cells.

    Returns:
        The good lines, with a byte 0xFF in place of each carriage return within a line; and the numbers of bad lines.
    """
    long = not_utf8 = marks = 0
    if any_longer(lines, LINE_BYTES):
        lines, long = _remove_bad(lines, _are_long)
    if not is_utf8(lines):
        lines, not_utf8 = _remove_bad(lines, _are_not_utf8)
    quoted = separator != TAB and b'"' in lines
    if b"\r" in lines and (quoted or lines.count(b"\r") > lines.count(b"\r\n")):
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", _CARRIAGE)
    if quoted:
        lines, marks = _remove_bad(lines, lambda content, line_ends: _have_invalid_marks(content, line_ends, separator))
    return lines, BadLines(long=long, not_utf8=not_utf8, marks=marks)


def _slice_lines(data: bytes, begin: int) -> Iterator[slice]:
    """Yield slices of whole lines, of about `TEXT_BLOCK` bytes each."""
    while begin < len(data):
        end = data.rfind(b"\n", begin, begin + TEXT_BLOCK) + 1 or data.find(b"\n", begin) + 1 or len(data)
        yield slice(begin, end)
        begin = end


def is_utf8(lines: bytes) -> bool:
    """Return whether all lines are UTF-8."""
    try:
        return lines.isascii() or bool(lines.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def any_longer(lines: bytes, most: int, begin: int = 0) -> bool:
    """Return whether a line may be longer than `most` bytes. The check is quick, because it jumps over lines.

    Args:
        lines: the lines.
        most: bytes, the line end not counted.
        begin: the byte at which the first of them begins.
    """
    while begin + most < len(lines):
        begin, previous = lines.rfind(b"\n", begin, begin + most + 1) + 1, begin
        if begin <= previous:
            return True
    return False


def _remove_bad(lines: bytes, are_bad: Callable[[Bytes, Integers], Mask]) -> tuple[bytes, int]:
    """Remove bad lines. Return the remaining lines, and the number of bad ones.

    Args:
        lines: whole lines.
        are_bad: a function of the (b,) bytes of the lines, and of the (n,) indexes at which lines end; it returns (n,) whether each is bad.
    """
    content = np.frombuffer(lines, np.uint8)
    line_ends = np.flatnonzero(content == _END)
    bad = are_bad(content, line_ends)
    number = int(np.count_nonzero(bad))
    if not number:
        return lines, 0
    return content[np.repeat(~bad, np.diff(line_ends, prepend=-1))].tobytes(), number


def _are_long(content: Bytes, line_ends: Integers) -> Mask:
    length = np.diff(line_ends, prepend=-1) - 1
    length -= (length > 0) & (content[line_ends - 1] == ord("\r"))
    return np.asarray(length > LINE_BYTES)


def _are_not_utf8(content: Bytes, line_ends: Integers) -> Mask:
    """Return (n,) whether each line is not UTF-8. Invalid bytes decode to surrogates, which valid UTF-8 cannot encode."""
    decoded = np.frombuffer(content.tobytes().decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass"), np.uint8)
    surrogates = np.flatnonzero((decoded[:-1] == _SURROGATE) & (decoded[1:] >= _FIRST_SURROGATE))
    number = np.diff(np.searchsorted(surrogates, np.flatnonzero(decoded == _END)), prepend=0)
    return np.asarray(number.reshape(line_ends.shape) > 0)


def _have_invalid_marks(content: Bytes, line_ends: Integers, separator: str) -> Mask:
    r"""Return (n,) whether each line breaks the rules for quotation marks. No line has a ``\r``.

    The marks of a good line alternate: one opens a cell, the next one closes it. An opening mark is at the beginning of a cell, or right
    after a closing mark, if the two are a doubled mark within a cell. A closing mark is at the end of a cell, or right before an opening
    one.
    """
    marks = np.flatnonzero(content == _MARK)
    if len(marks) < len(line_ends):
        marks_per_line = np.bincount(np.searchsorted(line_ends, marks), minlength=len(line_ends))
    else:
        marks_per_line = np.diff(np.searchsorted(marks, line_ends), prepend=0)
    bad = marks_per_line % 2 == 1
    if bad.any():
        marks = marks[np.repeat(~bad, marks_per_line)]
    opening, closing = marks[0::2], marks[1::2]
    may_be_beside = np.zeros(256, np.bool_)
    may_be_beside[[ord(separator), _END, _MARK]] = True
    begins_cell, ends_cell = may_be_beside[content[opening - 1]] | (opening == 0), may_be_beside[content[closing + 1]]
    bad[np.searchsorted(line_ends, np.concatenate([opening[~begins_cell], closing[~ends_cell]]))] = True
    return np.asarray(bad)


def _have_other_widths(content: Bytes, line_ends: Integers, layout: TextLayout) -> Mask:
    """Return (n,) whether each line has more or fewer cells than the header. Empty lines are good. Quotation marks must be valid."""
    is_separator = content == ord(layout.separator)
    if layout.separator != TAB:
        is_separator &= ~np.logical_xor.accumulate(content == _MARK)
    separators = np.diff(np.searchsorted(np.flatnonzero(is_separator), line_ends), prepend=0)
    return np.asarray((separators != layout.width - 1) & (np.diff(line_ends, prepend=-1) > 1))


def _empty_table(layout: TextLayout) -> pa.Table:
    return pa.table({str(column): pa.array([], kind) for column, kind in layout.types.items()})


def _cut_across_lines(data: bytes, layout: TextLayout) -> tuple[pa.Table, BadLines]:
    """Cut a text table whose cells may hold line ends between quotation marks."""
    data = utf8_lines(data, layout.encoding)
    if not is_utf8(data):
        raise InputError(NOT_UTF8)
    if NOT_LINE_END.search(data) is None:
        return _empty_table(layout), NO_BAD_LINES
    parsed = or_none(lambda: _parse(data + b"\n", layout, newlines=True))
    table, ragged = parsed or without_private_text(NOT_CUT, lambda: _parse(data + b"\n", layout, newlines=True, block=_ONE_BLOCK))
    return table, BadLines(cells=ragged)


def _parse(text: bytes, layout: TextLayout, *, newlines: bool, block: int = _PARSED_AT_ONCE) -> tuple[pa.Table, int]:
    """Return columns of the rows that have as many cells as the header, and the number of other rows."""
    escaped = not newlines and _CARRIAGE in text
    types = {str(column): pa.binary() if escaped else kind for column, kind in layout.types.items()}
    table, ragged = read_csv(
        b"\n" + text if text.startswith(_BOM) else text,  # Arrow would drop a byte order mark at the beginning
        pyarrow.csv.ReadOptions(column_names=[str(column) for column in range(layout.width)], block_size=block, use_threads=newlines),
        pyarrow.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            strings_can_be_null=True,
            check_utf8=False,
            null_values=list(layout.missing),
            decimal_point=layout.decimal or ".",
        ),
        delimiter=layout.separator,
        quote_char='"' if newlines or layout.separator != TAB else False,
        newlines_in_values=newlines,
    )
    cells = dict(zip(layout.types, table.columns, strict=True))
    if escaped:
        cells = {position: pc.replace_substring(column, _CARRIAGE, b"\r").cast(pa.string()) for position, column in cells.items()}
    for position in {position for position, column in cells.items() if pa.types.is_string(column.type)}:
        if position in layout.counts:
            cells[position] = plain_counts(cells[position], layout.decimal, layout.thousands)
        elif position in layout.coordinates and layout.decimal == ",":
            cells[position] = with_decimal_points(cells[position])
    columns = [cells[position].cast(kind) for position, kind in layout.types.items()]
    return pa.table(columns, names=table.column_names), ragged


def with_decimal_points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts with points in place of commas. Points become question marks first, so that such a text is no number."""
    return pc.replace_substring(pc.replace_substring(column, ".", "?"), ",", ".")


def plain_counts(column: pa.ChunkedArray, decimal: str | None, thousands: str | None) -> pa.ChunkedArray:
    """Return texts of counts with declared marks as all readers take them.

    Without a declared decimal mark a count such as 1.000 stays, which all readers refuse; with one, a 0 is added, as it is a decimal.
    Marks that are not between groups of three digits become question marks, so that such a text is no number.
    """
    if thousands is not None:
        column = pc.utf8_trim_whitespace(column)
        marks = f"[{THOUSANDS_MARKS[thousands]}]"
        decimals = "" if (decimal or ".") == thousands else f"([{decimal or '.'}][0-9]*)?"
        are_grouped = pc.match_substring_regex(column, f"^[+-]?[0-9]{{1,3}}({marks}[0-9]{{3}})+{decimals}$")
        column = pc.if_else(are_grouped, pc.replace_substring_regex(column, marks, ""), pc.replace_substring_regex(column, marks, "?"))
    if decimal == ",":
        column = with_decimal_points(column)
    if decimal is not None:
        column = pc.replace_substring_regex(column, r"^(\s*[+-]?[0-9]{1,3}[.][0-9]{3})(\s*)$", r"\10\2")
    return column
