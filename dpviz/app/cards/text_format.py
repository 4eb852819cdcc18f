"""How a text table is written: separator, marks in numbers and encoding, as proposed from its first lines and confirmed by the person."""

from __future__ import annotations

from pathlib import PurePath

import streamlit as st

from dpviz.app.cards.cards import DATA, Cards
from dpviz.app.session.saved_config import NO_MARK, text_format_values
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

HEADER_ONLY = "The file has a line of column names and no other line: choose the file with the records."
NOT_UTF8 = (
    "The file is not in UTF-8. Save it as UTF-8 (spreadsheets call it “CSV UTF-8”), or choose the encoding in which it was saved. It is not"
    " guessed: several would fit."
)
_DECIMALS = {NO_MARK: "point", ".": "point, also in counts such as 1.000", ",": "comma"}
_THOUSANDS = {NO_MARK: "none", **THOUSANDS}


def choose_text_format(source: Source, name: str, key: str, cards: Cards) -> TextFormat | None:
    """Ask how a text table is written. Usual tables, with commas and points in UTF-8, need no answer, and other kinds of files no question.

    Where an opened configuration has said it, an answer is needed even so, and that one is preset.

    Args:
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
    proposed, in_utf8 = detect_text_format(source), seems_utf8(source)
    if is_header_only(source):
        cards.ask(DATA, HEADER_ONLY)
        show_error(HEADER_ONLY)
        return None
    if in_utf8 and proposed == PLAIN_TEXT and not _differs_from_usual(kind, key):
        with st.expander("How the file is written"):
            return _choose(proposed, kind, key, in_utf8=in_utf8)
    with st.container(border=True):
        st.markdown("**How the file is written**")
        st.caption("Proposed from its first lines. Nothing of them is shown or kept." if in_utf8 else NOT_UTF8)
        chosen = _choose(proposed, kind, key, in_utf8=in_utf8)
        if chosen is None:
            cards.ask(DATA, "Choose the file's encoding, or save it as UTF-8.")
        elif not st.checkbox(f"Read it so: {chosen.describe(kind)}", key=f"text format {key}", persist_state="session"):
            cards.ask(DATA, "Confirm how the file is written.")
            return None
    return chosen


def _differs_from_usual(kind: str, key: str) -> bool:
    """Return whether an answer is there that says something else than a usual table."""
    usual = {"separator": SEPARATORS[kind], "decimal": NO_MARK, "thousands": NO_MARK, "encoding": PLAIN_TEXT.encoding}
    return any(st.session_state.get(f"{name} {key}", value) != value for name, value in usual.items())


def _choose(proposed: TextFormat, kind: str, key: str, *, in_utf8: bool) -> TextFormat | None:
    """Ask for separator, marks and encoding; what is proposed is preset. None without an encoding, or if the marks are equal."""
    options = {"separator": SEPARATOR_NAMES, "decimal": _DECIMALS, "thousands": _THOUSANDS, "encoding": ENCODINGS}
    presets = text_format_values(proposed, kind)
    titles = {"separator": "Between cells", "decimal": "Decimal mark", "thousands": "Thousands mark of counts", "encoding": "Encoding"}
    chosen = {
        name: st.selectbox(
            titles[name],
            list(names),
            None if name == "encoding" and not in_utf8 else list(names).index(presets[name]),
            key=f"{name} {key}",
            format_func=names.__getitem__,
            persist_state="session",
        )
        for name, names in options.items()
    }
    if chosen["encoding"] is None:
        return None
    try:
        return TextFormat(
            separator=None if chosen["separator"] == SEPARATORS[kind] else chosen["separator"],
            decimal=chosen["decimal"] or None,
            thousands=chosen["thousands"] or None,
            encoding=chosen["encoding"],
        )
    except SettingError as error:
        show_error(str(error))
        return None
