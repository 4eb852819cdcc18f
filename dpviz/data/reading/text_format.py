"""The format of a text table: the declared separator, decimal mark and encoding, and a proposal of what to declare for a file.

A read follows the declaration and detects nothing. `detect_text_format` only proposes a declaration, which a person confirms.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dpviz.data.library_errors import or_none
from dpviz.data.reading.safety import Source, format_of, is_path, name_of, read_bytes
from dpviz.data.reading.text_rows import (
    CODECS,
    EMPTY_FILE,
    HEAD_BYTES,
    SEPARATORS,
    TAB,
    UTF8,
    UTF16,
    is_utf8,
    marked_encoding,
    utf16_to_utf8,
)
from dpviz.data.roles import is_coordinate
from dpviz.errors import InputError, SettingError, check_choice

SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "|": "bar", TAB: "tab"}
DECIMALS = {".": "point", ",": "comma"}
THOUSANDS = {",": "comma", ".": "point", "'": "apostrophe", " ": "blank"}
_SCRIPTS = {
    "Western European": ("latin-1", "windows-1252", "iso-8859-15", "cp437", "cp850", "macintosh"),
    "Central European": ("windows-1250", "iso-8859-2", "iso-8859-16", "cp852"),
    "Cyrillic": ("windows-1251", "iso-8859-5", "koi8-r", "koi8-u", "cp866"),
    "Greek": ("windows-1253", "iso-8859-7"),
    "Turkish": ("windows-1254", "iso-8859-9"),
    "Hebrew": ("windows-1255", "iso-8859-8"),
    "Arabic": ("windows-1256", "iso-8859-6"),
    "Baltic": ("windows-1257", "iso-8859-4", "iso-8859-13"),
    "Northern European": ("iso-8859-10",),
    "Celtic": ("iso-8859-14",),
    "Maltese and Esperanto": ("iso-8859-3",),
    "Vietnamese": ("windows-1258",),
    "Thai": ("windows-874", "iso-8859-11"),
    "Japanese": ("shift_jis", "euc-jp"),
    "Chinese": ("gb18030", "big5"),
    "Korean": ("euc-kr",),
}
ENCODINGS = {UTF8: "UTF-8", UTF16: "UTF-16"} | {
    name: f"{name.replace('windows', 'Windows')} ({script})" for script, names in _SCRIPTS.items() for name in names
}
_OTHER_NAMES = {
    **{codec: name for name, codec in CODECS.items()},
    "utf-8-sig": UTF8,
    "iso8859-1": "latin-1",
    "windows-31j": "shift_jis",
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "euc_kr": "euc-kr",
}


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    r"""How a text table is written. It is declared, public, and never taken from the file that is read.

    Attributes:
        separator: the character between cells: a comma, a semicolon, a bar or a tab; if None, a comma in .csv and a tab in .tsv files.
            Between tabs a quotation mark is an ordinary character; otherwise a cell may be in quotation marks.
        decimal: the decimal mark of coordinates and counts: a point or a comma. With a comma, a number with a point is a bad cell. If it
            is not declared, it is a point, and a count such as 1.000 is a bad cell: the point may be a mark of thousands.
        thousands: the mark between groups of three digits, in counts only: a comma, a point, an apostrophe (also ’) or a blank (also one
            that does not break the line, or is thin). If it is not declared, a count with such a mark is a bad cell.
        encoding: "utf-8" (with or without a byte order mark), "utf-16" (with one), or a name in `ENCODINGS`, such as "windows-1250".

    Raises:
        SettingError: a setting has another value, or decimal and thousands are equal.

    >>> TextFormat(separator=";", decimal=",").declarations()
    {'separator': ';', 'decimal': ','}
    >>> TextFormat(encoding="ISO-8859-1").encoding
    'latin-1'
    >>> TextFormat(separator=" ")
    Traceback (most recent call last):
    ...
    dpviz.errors.SettingError: separator must be a comma ",", a semicolon ";", a bar "|" or a tab "\t".
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str = UTF8

    def __post_init__(self) -> None:
        if self.separator is not None and self.separator not in SEPARATOR_NAMES:
            raise SettingError('separator must be a comma ",", a semicolon ";", a bar "|" or a tab "\\t".')
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise SettingError('decimal must be a point "." or a comma ",".')
        if self.thousands is not None and self.thousands not in THOUSANDS:
            raise SettingError('thousands must be a comma ",", a point ".", an apostrophe "\'" or a blank " ".')
        if self.thousands is not None and self.thousands == self.decimal:
            raise SettingError("decimal and thousands must be different marks.")
        name = str(self.encoding).lower()
        if name not in ENCODINGS:
            known = or_none(lambda: codecs.lookup(name).name) or name
            name = _OTHER_NAMES.get(known, known)
        check_choice(name, ENCODINGS, "encoding")
        object.__setattr__(self, "encoding", name)

    def separator_of(self, kind: str) -> str:
        """Return the separator in files of a format, CSV or TSV."""
        return self.separator or SEPARATORS[kind]

    def declarations(self) -> dict[str, str]:
        """Return the settings that differ from the defaults; they are keys under [data] of a configuration, too."""
        return {item.name: getattr(self, item.name) for item in fields(self) if getattr(self, item.name) != item.default}

    def lines(self) -> list[str]:
        r"""Return the settings that differ from the defaults as lines of a configuration, to be written under [data].

        >>> TextFormat(separator="\t", encoding="utf-16").lines()
        ['separator = "\\t"', 'encoding = "utf-16"']
        """
        return [f"{name} = {json.dumps(value)}" for name, value in self.declarations().items()]

    def describe(self, kind: str) -> str:
        """Say in words how files of a format, CSV or TSV, are written.

        >>> TextFormat(decimal=",").describe("CSV")
        'commas between cells, decimal commas, UTF-8'
        """
        groups = "" if self.thousands is None else f"{THOUSANDS[self.thousands]}s between thousands, "
        separator, decimal = SEPARATOR_NAMES[self.separator_of(kind)], DECIMALS[self.decimal or "."]
        return f"{separator}s between cells, decimal {decimal}s, {groups}{ENCODINGS[self.encoding]}"

    def refuse_for(self, kind: str) -> None:
        """Refuse declared settings for files of a format that is no text table.

        Raises:
            InputError: a setting is declared, and the format is neither CSV nor TSV.
        """
        if kind not in SEPARATORS and (declared := self.declarations()):
            raise InputError(f"{' and '.join(declared)} can be declared for text tables (.csv, .tsv) only, not for {kind}: leave it out.")


PLAIN_TEXT = TextFormat()


def fold_text_format(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `read_points` and its like; keys under [data] that say how text tables are written become `text_format`."""
    names = {item.name for item in fields(TextFormat)}
    others = {name: value for name, value in options.items() if name not in names}
    return others | {"text_format": TextFormat(**{name: options[name] for name in names & options.keys()})}


_LINES = 100  # after the header; the most that a proposal looks at
_DIGITS = r"[+-]?\d+{}\d+"
_COMMA_NUMBER, _POINT_NUMBER = re.compile(_DIGITS.format(",")), re.compile(_DIGITS.format(r"\."))
_MAY_BE_THOUSANDS = re.compile(r"\+?[1-9]\d{0,2}[,.]\d{3}")
_NO_MARK = "The text seems to be in UTF-16 without a byte order mark: save the file as UTF-8."


def detect_text_format(source: Source) -> TextFormat:
    r"""Propose how a text table is written, by its byte order mark, its header and the structure of its first lines.

    The result holds no entry of the file. It is a proposal: no reader uses it unless it is declared. Of encodings only UTF-8 and UTF-16
    are proposed: others give a letter to nearly every byte, so that several fit any file, and with a wrong one ids would be lost.

    Args:
        source: a path, or an open binary file with a `name`.

    Returns:
        The proposal; `separator` is None where it is that of the file's ending. It equals `TextFormat()` where nothing is to be declared.

    Raises:
        InputError: the file is no CSV or TSV file by its ending, cannot be read, or is empty.

    >>> import io
    >>> upload = io.BytesIO("Länge;Breite\n13,4;52,5\n".encode("utf-16"))
    >>> upload.name = "homes.csv"
    >>> detect_text_format(upload)
    TextFormat(separator=';', decimal=',', thousands=None, encoding='utf-16')
    """
    kind = format_of(name_of(source))
    if kind not in SEPARATORS:
        raise InputError(f"Only text tables (.csv, .tsv) have a separator, a decimal mark and an encoding, not {kind}.")
    is_readable = not is_path(source) or os.path.isfile(source)  # noqa: PTH113  (reading a pipe would wait forever)
    head = or_none(lambda: read_bytes(source, HEAD_BYTES)) if is_readable else None
    if head is None:
        raise InputError("The file cannot be read: does it exist, and may you read it?")
    if not head:
        raise InputError(EMPTY_FILE)
    return propose_text_format(kind, head)


def seems_utf8(source: Source) -> bool:
    r"""Return whether the first lines of a text table seem to be in UTF-8, or in UTF-16 with its mark: most that are not ASCII are valid.

    >>> import io
    >>> seems_utf8(io.BytesIO("Länge\n".encode())), seems_utf8(io.BytesIO("Länge\n".encode("latin-1")))
    (True, False)
    """
    head = or_none(lambda: read_bytes(source, HEAD_BYTES)) or b""
    lines = [line for line in head.split(b"\n")[: -1 if len(head) == HEAD_BYTES else None] if not line.isascii()]
    return marked_encoding(head) is not None or 2 * sum(map(is_utf8, lines)) >= len(lines)


def is_header_only(source: Source) -> bool:
    r"""Return whether a text table has no line but its first.

    >>> import io
    >>> is_header_only(io.BytesIO(b"lon,lat\r\n\r\n")), is_header_only(io.BytesIO(b"lon,lat\n1,2"))
    (True, False)
    """
    head = or_none(lambda: read_bytes(source, HEAD_BYTES)) or b""
    return 0 < len(head) < HEAD_BYTES and not re.search(rb"[\r\n]", head.replace(b"\0", b"").strip())


def propose_text_format(kind: str, head: bytes) -> TextFormat:
    """Propose how a CSV or TSV file is written, from its first `HEAD_BYTES` bytes.

    Raises:
        InputError: the text is in UTF-16 without a byte order mark.
    """
    encoding = marked_encoding(head)
    if encoding == UTF16:
        head = utf16_to_utf8(head)
    elif encoding is None and b"\0" in head[:2]:
        raise InputError(_NO_MARK)
    if len(head) >= HEAD_BYTES:
        head = head[: head.rfind(b"\n") + 1]
    text = head.decode("utf-8-sig", "replace")
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip("\r")][: _LINES + 1]
    separator = _propose_separator(lines, SEPARATORS[kind])
    decimal = _propose_decimal([_cut(line, separator) for line in lines])
    return TextFormat(separator=None if separator == SEPARATORS[kind] else separator, decimal=decimal, encoding=encoding or UTF8)


def _propose_separator(lines: Sequence[str], usual: str) -> str:
    """Propose the separator with which most lines have as many cells as the header, if that has several; of equal ones, the widest."""

    def fit(separator: str) -> tuple[int, int, bool]:
        width, *widths = (len(_cut(line, separator)) for line in lines)
        return (1 + widths.count(width), width, separator == usual) if width > 1 else (0, 0, separator == usual)

    return max(SEPARATOR_NAMES, key=fit) if lines else usual


def _cut(line: str, separator: str) -> list[str]:
    if separator == TAB:
        return line.split(TAB)
    return or_none(lambda: next(csv.reader([line], delimiter=separator))) or []


def _propose_decimal(lines: Sequence[Sequence[str]]) -> str | None:
    """Propose a decimal comma if more cells are numbers with a comma than numbers with a point.

    A mark before three digits may be one of thousands, and decides nothing, unless the column is called like one of coordinates.
    """
    names, *rows = lines or [[]]
    are_coordinates = list(map(is_coordinate, names))
    cells = [
        cell.strip()
        for row in rows
        for cell, is_coordinate in zip(row, are_coordinates, strict=False)
        if is_coordinate or not _MAY_BE_THOUSANDS.fullmatch(cell.strip())
    ]
    commas, points = (sum(number.fullmatch(cell) is not None for cell in cells) for number in (_COMMA_NUMBER, _POINT_NUMBER))
    return "," if commas > points else None
