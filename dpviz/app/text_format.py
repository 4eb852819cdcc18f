"""How a text table is written: separator, decimal mark and encoding, as proposed from its header and confirmed by the person."""

from __future__ import annotations

from pathlib import PurePath

import streamlit as st

from dpviz.app.cards import DATA, Cards
from dpviz.app.session import show_error
from dpviz.data.reading.safety import Source, format_of
from dpviz.data.reading.text_format import (
    DECIMALS,
    ENCODINGS,
    PLAIN_TEXT,
    SEPARATOR_NAMES,
    TextFormat,
    detect_text_format,
    is_header_only,
)
from dpviz.data.reading.text_rows import SEPARATORS

HEADER_ONLY = "The file has a line of column names and no other line: choose the file with the records."


def choose_text_format(source: Source, name: str, key: str, cards: Cards) -> TextFormat | None:
    """Ask how a text table is written. Usual tables, with commas and points in UTF-8, and other kinds of files need no question.

    Where an opened configuration has said it, the question is shown even so, with that answer.

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
    proposed = detect_text_format(source)
    if is_header_only(source):
        cards.ask(DATA, HEADER_ONLY)
        show_error(HEADER_ONLY)
        return None
    if proposed == PLAIN_TEXT and not _differs_from_usual(kind, key):
        return PLAIN_TEXT
    with st.container(border=True):
        st.markdown("**How the file is written**")
        st.caption("Proposed from its first lines. Nothing of them is shown or kept.")
        chosen = _choose(proposed, kind, key)
        if not st.checkbox(f"Read it so: {chosen.describe(kind)}", key=f"text format {key}", persist_state="session"):
            cards.ask(DATA, "Confirm how the file is written.")
            return None
    return chosen


def _differs_from_usual(kind: str, key: str) -> bool:
    """Return whether an answer is there that says something else than a usual table."""
    usual = {"separator": SEPARATORS[kind], "decimal": PLAIN_TEXT.decimal, "encoding": PLAIN_TEXT.encoding}
    return any(st.session_state.get(f"{name} {key}", value) != value for name, value in usual.items())


def _choose(proposed: TextFormat, kind: str, key: str) -> TextFormat:
    """Ask for separator, decimal mark and encoding; what is proposed is preset."""
    names = {"separator": SEPARATOR_NAMES, "decimal": DECIMALS, "encoding": ENCODINGS}
    presets = {"separator": proposed.separator_of(kind), "decimal": proposed.decimal, "encoding": proposed.encoding}
    titles = {"separator": "Between cells", "decimal": "Decimal mark", "encoding": "Encoding"}
    chosen = {
        name: st.selectbox(
            titles[name],
            list(options),
            list(options).index(presets[name]),
            key=f"{name} {key}",
            format_func=options.__getitem__,
            persist_state="session",
        )
        for name, options in names.items()
    }
    separator = None if chosen["separator"] == SEPARATORS[kind] else chosen["separator"]
    return TextFormat(separator=separator, decimal=str(chosen["decimal"]), encoding=str(chosen["encoding"]))
