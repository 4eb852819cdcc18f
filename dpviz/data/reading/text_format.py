"""The format of a text table: the declared separator, decimal mark and encoding, and a proposal of what to declare for a file.

A read follows the declaration and detects nothing. `detect_text_format` only proposes a declaration, which a person confirms.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from dpviz.data.library_errors import attempt
from dpviz.data.reading.safety import Source, first_bytes, format_of, is_path, name_of
from dpviz.data.reading.text_rows import (
    EMPTY_FILE,
    HEAD_BYTES,
    LATIN,
    SEPARATORS,
    TAB,
    UTF8,
    UTF16,
    WINDOWS,
    is_utf8,
    marked_encoding,
    utf8_lines,
    utf16_to_utf8,
)
from dpviz.errors import InputError, SettingError, check_choice

SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "|": "bar", TAB: "tab"}
DECIMALS = {".": "point", ",": "comma"}
ENCODINGS = {UTF8: "UTF-8", UTF16: "UTF-16", LATIN: "Latin-1", WINDOWS: "Windows-1252"}
_OTHER_NAMES = {"utf8": UTF8, "utf-8-sig": UTF8, "utf16": UTF16, "latin1": LATIN, "iso-8859-1": LATIN, "cp1252": WINDOWS}


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    r"""How a text table is written. It is declared, public, and never taken from the file that is read.

    Attributes:
        separator: the character between cells: a comma, a semicolon, a bar or a tab; if None, a comma in .csv and a tab in .tsv files.
            Between tabs a quotation mark is an ordinary character; otherwise a cell may be in quotation marks.
        decimal: the decimal mark of coordinates and counts: a point or a comma. With a comma, a number with a point is a bad cell.
        encoding: "utf-8" (with or without a byte order mark), "utf-16" (with one), "latin-1" or "windows-1252".

    Raises:
        SettingError: a setting has another value.

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
    decimal: str = "."
    encoding: str = UTF8

    def __post_init__(self) -> None:
        if self.separator is not None and self.separator not in SEPARATOR_NAMES:
            raise SettingError('separator must be a comma ",", a semicolon ";", a bar "|" or a tab "\\t".')
        if self.decimal not in DECIMALS:
            raise SettingError('decimal must be a point "." or a comma ",".')
        name = str(self.encoding).lower()
        name = _OTHER_NAMES.get(name, name)
        check_choice(name, ENCODINGS, "encoding")
        object.__setattr__(self, "encoding", name)

    def separator_of(self, kind: str) -> str:
        """Return the separator in files of a format, CSV or TSV."""
        return self.separator or SEPARATORS[kind]

    def declarations(self) -> dict[str, str]:
        """Return the settings that differ from the defaults: arguments of `read_points`, and keys under [data] of a configuration."""
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
        return f"{SEPARATOR_NAMES[self.separator_of(kind)]}s between cells, decimal {DECIMALS[self.decimal]}s, {ENCODINGS[self.encoding]}"

    def refuse_for(self, kind: str) -> None:
        """Refuse declared settings for files of a format that is no text table.

        Raises:
            InputError: a setting is declared, and the format is neither CSV nor TSV.
        """
        if kind not in SEPARATORS and (declared := self.declarations()):
            raise InputError(f"{' and '.join(declared)} can be declared for text tables (.csv, .tsv) only, not for {kind}: leave it out.")


PLAIN_TEXT = TextFormat()

_LINES = 100  # after the header; the most that a proposal looks at
_DIGITS = r"[+-]?\d+{}\d+"
_COMMA_NUMBER, _POINT_NUMBER = re.compile(_DIGITS.format(",")), re.compile(_DIGITS.format(r"\."))
_NO_MARK = "The text seems to be in UTF-16 without a byte order mark: save the file as UTF-8."


def detect_text_format(source: Source) -> TextFormat:
    r"""Propose how a text table is written, by its byte order mark, its header and the structure of its first lines.

    The result holds no entry of the file. It is a proposal: no reader uses it unless it is declared.

    Args:
        source: a path, or an open binary file with a `name`.

    Returns:
        The proposal; `separator` is None where it is that of the file's ending. It equals `TextFormat()` where nothing is to be declared.

    Raises:
        InputError: the file is no CSV or TSV file by its ending, cannot be read, or is empty.

    >>> import io
    >>> upload = io.BytesIO("Länge;Breite\n13,4;52,5\n".encode("latin-1"))
    >>> upload.name = "homes.csv"
    >>> detect_text_format(upload)
    TextFormat(separator=';', decimal=',', encoding='windows-1252')
    """
    kind = format_of(name_of(source))
    if kind not in SEPARATORS:
        raise InputError(f"Only text tables (.csv, .tsv) have a separator, a decimal mark and an encoding, not {kind}.")
    is_readable = not is_path(source) or os.path.isfile(source)  # noqa: PTH113  (reading a pipe would wait forever)
    head = attempt(lambda: first_bytes(source, HEAD_BYTES)) if is_readable else None
    if head is None:
        raise InputError("The file cannot be read: does it exist, and may you read it?")
    if not head:
        raise InputError(EMPTY_FILE)
    return propose_text_format(kind, head)


def is_header_only(source: Source) -> bool:
    r"""Return whether a text table has no line but its first.

    >>> import io
    >>> is_header_only(io.BytesIO(b"lon,lat\r\n\r\n")), is_header_only(io.BytesIO(b"lon,lat\n1,2"))
    (True, False)
    """
    head = attempt(lambda: first_bytes(source, HEAD_BYTES)) or b""
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
    encoding = encoding or _propose_encoding(head)
    text = utf8_lines(head, encoding if encoding in (LATIN, WINDOWS) else UTF8).decode("utf-8-sig", "replace")
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip("\r")][: _LINES + 1]
    separator = _propose_separator(lines, SEPARATORS[kind])
    decimal = _propose_decimal([cell for line in lines[1:] for cell in _cut(line, separator)])
    return TextFormat(separator=None if separator == SEPARATORS[kind] else separator, decimal=decimal, encoding=encoding)


def _propose_encoding(head: bytes) -> str:
    """Propose UTF-8 unless more lines break its rules than use it; then Windows-1252, or Latin-1 if a byte is no letter of Windows-1252."""
    lines = [line for line in head.split(b"\n") if not line.isascii()]
    invalid = [line for line in lines if not is_utf8(line)]
    if not invalid or 2 * len(invalid) < len(lines):
        return UTF8
    return LATIN if attempt(lambda: b"".join(invalid).decode("cp1252")) is None else WINDOWS


def _propose_separator(lines: Sequence[str], usual: str) -> str:
    """Propose the separator with which most lines have as many cells as the header, if that has several; of equal ones, the widest."""

    def fit(separator: str) -> tuple[int, int, bool]:
        width, *widths = (len(_cut(line, separator)) for line in lines)
        return (1 + widths.count(width), width, separator == usual) if width > 1 else (0, 0, separator == usual)

    return max(SEPARATOR_NAMES, key=fit) if lines else usual


def _cut(line: str, separator: str) -> list[str]:
    if separator == TAB:
        return line.split(TAB)
    return attempt(lambda: next(csv.reader([line], delimiter=separator))) or []


def _propose_decimal(cells: Sequence[str]) -> str:
    """Propose a decimal comma if more cells are numbers with a comma than numbers with a point."""
    commas, points = (sum(number.fullmatch(cell.strip()) is not None for cell in cells) for number in (_COMMA_NUMBER, _POINT_NUMBER))
    return "," if commas > points else "."
