"""How a text table is written: separator, marks in numbers and encoding, as proposed from its first lines and confirmed by the person."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import show_error
from dpviz.data.reading.safety import Source, format_of
from dpviz.data.reading.text_format import (
    ENCODINGS,
    PLAIN_TEXT,
    SEPARATOR_NAMES,
    THOUSANDS,
    TextFormat,
    detect_text_format,
    is_header_only,
    seems_utf8,
)
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.errors import SettingError

NO_MARK = ""  # stands for a mark of numbers that is not declared
HEADER_ONLY = "The file has a line of column names and no other line: choose the file with the records."
NOT_UTF8 = (
    "The file is not in UTF-8. Save it as UTF-8 (spreadsheets call it “CSV UTF-8”), or choose the encoding in which it was saved. It is not"
    " guessed: several would fit."
)
_DECIMALS = {NO_MARK: "point", ".": "point, also in counts such as 1.000", ",": "comma"}
_THOUSANDS = {NO_MARK: "none", **THOUSANDS}


def propose_text_format(source: Source, name: str) -> dict[str, Any]:
    """Return how a text table seems to be written, as keys of [data]; the encoding is "" if it is not UTF-8. No keys for other files.

    Args:
        source: the file, or the first of several that are written alike.
        name: of the file; its ending says what it is.
    """
    kind = format_of(PurePath(name).name)
    if kind not in SEPARATORS:
        return {}
    found = detect_text_format(source)
    marks = {"decimal": found.decimal, "thousands": found.thousands}
    separator = None if found.separator_of(kind) == SEPARATORS[kind] else found.separator
    return {"separator": separator, **marks, "encoding": found.encoding if seems_utf8(source) else ""}


def choose_text_format(page: FamilyState, source: Source, name: str, key: str, cards: Cards) -> TextFormat | None:
    """Ask how a text table is written. Usual tables, with commas and points in UTF-8, need no answer, and other kinds of files no question.

    Args:
        page: state of the page, with the answers for this file.
        source: the file, or the first of several that are written alike.
        name: of the file; its ending says what it is.
        key: identifies the file in the keys of widgets.
        cards: say that the proposal is to be confirmed.

    Returns:
        The format; None until it is confirmed.

    Raises:
        InputError: the file cannot be read, or is empty.
    """
    kind = format_of(PurePath(name).name)
    if kind not in SEPARATORS:
        return PLAIN_TEXT
    if is_header_only(source):
        cards.ask(FILES, HEADER_ONLY)
        show_error(HEADER_ONLY)
        return None
    in_utf8 = seems_utf8(source)
    if in_utf8 and detect_text_format(source) == PLAIN_TEXT == _format_in(page):
        with st.expander("How the file is written"):
            return _choose(page, kind, key)
    with st.container(border=True):
        st.markdown("**How the file is written**")
        st.caption("Proposed from its first lines. Nothing of them is shown or kept." if in_utf8 else NOT_UTF8)
        chosen = _choose(page, kind, key)
        if chosen is None:
            cards.ask(FILES, "Choose the file's encoding, or save it as UTF-8.")
        else:
            shown = page.widget("files", "confirmed", f"text format {key}")
            if not st.checkbox(f"Read it so: {chosen.describe(kind)}", **shown):
                cards.ask(FILES, "Confirm how the file is written.")
                return None
    return chosen


def _choose(page: FamilyState, kind: str, key: str) -> TextFormat | None:
    """Ask for separator, marks and encoding. None without an encoding, or if the marks are equal."""
    usual, mark = SEPARATORS[kind], {"show": lambda value: value or NO_MARK, "take": lambda name: name or None}
    separator = {"show": lambda value: value or usual, "take": lambda name: None if name == usual else name}
    for name, title, options, how in (
        ("separator", "Between cells", SEPARATOR_NAMES, separator),
        ("decimal", "Decimal mark", _DECIMALS, mark),
        ("thousands", "Thousands mark of counts", _THOUSANDS, mark),
        ("encoding", "Encoding", ENCODINGS, {"show": lambda value: value or None}),
    ):
        st.selectbox(title, list(options), None, format_func=options.__getitem__, **page.widget("data", name, f"{name} {key}", **how))
    try:
        return _format_in(page)
    except SettingError as error:
        show_error(str(error))
        return None


def _format_in(page: FamilyState) -> TextFormat | None:
    """Return the format that is chosen; None without an encoding."""
    data = page.draft.files.data
    if not data.encoding:
        return None
    return TextFormat(separator=data.separator, decimal=data.decimal, thousands=data.thousands, encoding=data.encoding)
