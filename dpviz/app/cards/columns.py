"""Which columns of a file are read. What an opened configuration names is preset, or else what the registry of columns finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import DATA, Cards
from dpviz.app.session.saved_config import NONE
from dpviz.app.session.widgets import carry_out
from dpviz.data.columns import join_pairs
from dpviz.data.reading.points import PointsFile
from dpviz.data.reading.trips import TripsFile
from dpviz.data.roles import NO_COUNT, Pair, quote_unread, say_each_row, say_ten_millionths
from dpviz.view.escape import markdown

_AXES = {"x": "Longitude or easting", "y": "Latitude or northing"}
_NO_PLACE = (
    "Choose the columns of longitude and latitude, or of easting and northing, under Columns on the left. A column with both in one cell"
    " must be split in the file first."
)


def keep_known(key: str, columns: Sequence[str], named: str | None) -> None:
    """Say which column of an opened configuration a file lacks, and go back to what is preset.

    Args:
        key: key of the widget.
        columns: of the file.
        named: the column that is chosen; None if there is none.
    """
    if named is not None and named not in columns and key in st.session_state:
        del st.session_state[key]
        st.caption(f":orange[The opened configuration names a column {markdown(named)}, which this file does not have.]")


def pick(title: str, names: list[str], found: str | None, key: str, text: str | None = None) -> str | None:
    """Ask for one column, or none; `found` is preset."""
    keep_known(key, names, st.session_state.get(key))
    chosen = st.selectbox(title, names, index=names.index(found) if found else 0, key=key, help=text, persist_state="session")
    return None if chosen == NONE else chosen


def ask_pair(title: str, pairs: Sequence[Pair], keys: Pair) -> None:
    """Ask which of several pairs of columns is meant; none is preset. The answer is written into the fields of the two columns.

    Args:
        title: the question.
        pairs: the pairs; nothing is asked if there are none.
        keys: keys of the two fields, which are shown below.
    """
    if not pairs:
        return
    key, chosen = f"pair {keys[0]}", tuple(st.session_state.get(each) for each in keys)
    st.session_state[key] = next((number for number, pair in enumerate(pairs) if pair == chosen), None)
    st.radio(
        title,
        range(len(pairs)),
        None,
        format_func=lambda number: f"{markdown(pairs[number][0])} and {markdown(pairs[number][1])}",
        key=key,
        on_change=carry_out(partial(_take_pair, key, pairs, keys)),
    )


def _take_pair(key: str, pairs: Sequence[Pair], keys: Pair) -> None:
    if (number := st.session_state[key]) is not None:
        st.session_state.update(zip(keys, pairs[number], strict=True))


def choose_count(noun: str, about: PointsFile | TripsFile, options: Mapping[str, Any], key: str) -> dict[str, str]:
    """Ask how many records a row stands for; a column that the registry proposes is preset, and otherwise nothing.

    Args:
        noun: what a row is without an answer: "record" or "trip".
        about: the file.
        options: columns that are chosen by now.
        key: key of the field.

    Returns:
        The option `count`: a column, or "none" if each row is one; no option without an answer.
    """
    used, no_answer = _columns_in(options), key in st.session_state and st.session_state[key] is None
    others = [NO_COUNT, *(name for name in about.columns if name not in used and name != NO_COUNT)]
    if len(others) == 1 and st.session_state.get(key) is None:
        return {}
    keep_known(key, others, st.session_state.get(key))
    chosen = st.selectbox(
        f"How many {noun}s does a row stand for?",
        others,
        others.index(about.count) if about.count in others and not no_answer else None,
        format_func=lambda name: f"Each row is one {noun}" if name == NO_COUNT else name,
        key=key,
        placeholder="Choose" if _list_unread(about, options) else f"Each row is one {noun}",
        persist_state="session",
        help="Whole numbers in one of the columns, such as the total of a table that is added up already; or each row is one.",
    )
    return {} if chosen is None else {"count": chosen}


def lacks_count(noun: str, about: PointsFile | TripsFile, options: Mapping[str, Any], cards: Cards) -> bool:
    """Say that each row counts once, where no column of counts is chosen and one may be there. In Curate ask for an answer.

    Args:
        noun: "record" or "trip".
        about: the file.
        options: the chosen columns, that of persons included.
        cards: say what is missing.

    Returns:
        Whether an answer is missing without which nothing is counted.
    """
    unread = () if "count" in options else _list_unread(about, options)
    if not unread:
        return False
    if cards.curates:
        cards.ask(DATA, f"Say how many {noun}s a row stands for, on the left. {quote_unread(unread)} may hold the number.")
    else:
        said = say_each_row(noun, unread)
        st.caption(f":orange[{markdown(f'{said[:1].upper()}{said[1:]}.')}]")
    return cards.curates


def _list_unread(about: PointsFile | TripsFile, options: Mapping[str, Any]) -> tuple[str, ...]:
    """List the columns that may hold the number of records of a row, as the registry says, without those that are chosen."""
    if about.use is None:
        return ()
    proposed = (about.count,) if about.count is not None else about.use.unread
    return tuple(name for name in proposed if name not in _columns_in(options))


def _columns_in(options: Mapping[str, Any]) -> set[Any]:
    return {name for value in options.values() for name in (value if isinstance(value, tuple) else (value,))}


def choose_point_columns(about: PointsFile, digest: str) -> dict[str, Any]:
    """Ask which columns of a file of points to read; those that the registry finds are preset."""
    options: dict[str, Any] = {}
    names, pairs = [NONE, *about.columns], about.use.open.get("x and y", ())
    ask_pair("Which columns hold the coordinates?", pairs, (f"column x {digest}", f"column y {digest}"))
    is_clear = about.has_geometry or about.geometry is not None or bool(pairs) or (about.x is not None and about.y is not None)
    with st.expander("Columns", expanded=not is_clear):
        if about.has_geometry:
            text = "Each polygon counts as one record at its centroid. Off: a file with polygons is refused."
            options["centroids"] = st.toggle("Polygons by their centroid", key=f"centroids {digest}", persist_state="session", help=text)
        else:
            wkt = None if pairs or (about.x is not None and about.y is not None) else about.geometry
            text = "Texts such as POINT (13.4 52.5), in place of two columns of coordinates."
            options["geometry"] = pick("Points as text (WKT)", names, wkt, f"column geometry {digest}", text)
        if not (about.has_geometry or options["geometry"]):
            for axis, title in _AXES.items():
                options[axis] = pick(title, names, getattr(about, axis), f"column {axis} {digest}")
    options = {name: value for name, value in options.items() if value not in (None, False)}
    return options | choose_count("record", about, options, f"column count {digest}")


def lacking_place(about: PointsFile, options: Mapping[str, Any]) -> str:
    """Return what is to be said or done before the points can be read; "" if they can be."""
    if about.has_geometry or options.get("geometry"):
        return ""
    lacking = [title for axis, title in _AXES.items() if not options.get(axis)]
    if lacking and (pairs := about.use.open.get("x and y", ())):
        return f"Say which columns hold the coordinates, on the left: {join_pairs(pairs)}."
    if len(lacking) == 1:
        return f"Choose the column of {lacking[0]}, under Columns on the left."
    if lacking:
        return _NO_PLACE
    divide = say_ten_millionths([str(options[axis]) for axis in _AXES])
    return f"{divide}." if divide else ""
