"""Which columns of a file are read: what an opened configuration names, or else what the registry of columns finds, until it is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import widget_for
from dpviz.app.state.answers import lacking_columns
from dpviz.data.columns import join_pairs
from dpviz.data.reading.points import PointsFile
from dpviz.data.reading.trips import TripsFile
from dpviz.data.roles import NO_COUNT, Pair, quote_unread, say_each_row, say_ten_millionths, says_none
from dpviz.view.escape import markdown

NONE = "(none)"
_AXES = {"x": "Longitude or easting", "y": "Latitude or northing"}
_NO_PLACE = (
    "Choose the columns of longitude and latitude, or of easting and northing, under Columns on the left. A column with both in one cell"
    " must be split in the file first."
)


def say_lacking(page: FamilyState, columns: Sequence[str]) -> None:
    """Say which columns of an opened configuration its files lack."""
    for name in lacking_columns(page.draft, columns):
        st.caption(f":orange[The opened configuration names a column {markdown(name)}, which this file does not have.]")


def pick(
    title: str, names: Sequence[str], chosen: str | None, use: Callable[[str | None], object], key: str, text: str | None = None
) -> Any:
    """Ask for one column, which `use` keeps; none where `names` has `NONE`. Return what is chosen, None without a column."""
    shown = chosen if chosen in names else NONE if NONE in names else None
    widget = widget_for(key, shown, lambda name: use(None if name == NONE else name))
    st.selectbox(title, names, None, help=text, **widget)
    return None if shown == NONE else shown


def pick_of(page: FamilyState, role: str, title: str, names: Sequence[str], key: str, text: str | None = None) -> Any:
    """Ask for the column of a role, which is a key of [data]; as of `pick`."""
    return pick(title, names, page.part("data", role), lambda name: page.set("data", **{role: name}), key, text)


def ask_pair(title: str, pairs: Sequence[Pair], chosen: tuple[Any, Any], use: Callable[[Pair], object], key: str) -> None:
    """Ask which of several pairs of columns is meant; none is preset.

    Args:
        title: the question.
        pairs: the pairs; nothing is asked if there are none.
        chosen: the two columns that are chosen.
        use: keeps a pair.
        key: of the widget.
    """
    if not pairs:
        return
    shown = widget_for(key, pairs.index(chosen) if chosen in pairs else None, lambda number: use(pairs[number]))
    st.radio(
        title,
        range(len(pairs)),
        None,
        format_func=lambda number: f"{markdown(pairs[number][0])} and {markdown(pairs[number][1])}",
        **shown,
    )


def choose_count(page: FamilyState, noun: str, about: PointsFile | TripsFile, options: Mapping[str, Any], key: str) -> dict[str, str]:
    """Ask how many records a row stands for; a column that the registry proposes is preset, and otherwise nothing.

    Args:
        page: state of the page.
        noun: what a row is without an answer: "record" or "trip".
        about: the file.
        options: columns that are chosen by now.
        key: key of the field.

    Returns:
        The option `count`: a column, or "none" if each row is one; no option without an answer.
    """
    used, said = _columns_in(options), page.part("data", "count")
    others = [NO_COUNT, *(name for name in about.columns if name not in used and name != NO_COUNT)]
    if len(others) == 1 and said is None:
        return {}
    chosen = NO_COUNT if says_none(said) else said if said in others else None
    st.selectbox(
        f"How many {noun}s does a row stand for?",
        others,
        None,
        format_func=lambda name: f"Each row is one {noun}" if name == NO_COUNT else name,
        placeholder="Choose" if _list_unread(about, options) else f"Each row is one {noun}",
        help="Whole numbers in one of the columns, such as the total of a table that is added up already; or each row is one.",
        **page.widget("data", "count", key, show=lambda _: chosen),
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
        cards.ask(FILES, f"Say how many {noun}s a row stands for, on the left. {quote_unread(unread)} may hold the number.")
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


def find_point_columns(about: PointsFile) -> dict[str, Any]:
    """Return what the registry finds of a file of points, by key of [data]."""
    wkt = None if about.use.open.get("x and y") or (about.x is not None and about.y is not None) else about.geometry
    place = {"geometry": wkt, **({} if wkt else {"x": about.x, "y": about.y})}
    return {**({} if about.has_geometry else place), "count": about.count}


def choose_point_columns(page: FamilyState, about: PointsFile, key: str) -> dict[str, Any]:
    """Ask which columns of a file of points to read."""
    options: dict[str, Any] = {}
    names, pairs = [NONE, *about.columns], about.use.open.get("x and y", ())
    now = page.draft.files.data
    swap = lambda pair: page.set("data", x=pair[0], y=pair[1])  # noqa: E731
    ask_pair("Which columns hold the coordinates?", pairs, (now.x, now.y), swap, f"pair {key}")
    is_clear = about.has_geometry or about.geometry is not None or bool(pairs) or (about.x is not None and about.y is not None)
    with st.expander("Columns", expanded=not is_clear):
        if about.has_geometry:
            text = "Each polygon counts as one record at its centroid. Off: a file with polygons is refused."
            shown = page.widget("data", "centroids", f"centroids {key}")
            options["centroids"] = st.toggle("Polygons by their centroid", help=text, **shown)
        else:
            text = "Texts such as POINT (13.4 52.5), in place of two columns of coordinates."
            options["geometry"] = pick_of(page, "geometry", "Points as text (WKT)", names, f"column geometry {key}", text)
        if not (about.has_geometry or options["geometry"]):
            for axis, title in _AXES.items():
                options[axis] = pick_of(page, axis, title, names, f"column {axis} {key}")
    options = {name: value for name, value in options.items() if value not in (None, False)}
    return options | choose_count(page, "record", about, options, f"column count {key}")


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
