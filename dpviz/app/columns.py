"""Which columns of a file are read. What an opened configuration names is preset, or else what has a usual name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpviz.app.saved_config import NONE
from dpviz.data.reading.points import PointsFile
from dpviz.view.escape import markdown

_AXES = {"x": "Longitude or easting", "y": "Latitude or northing"}


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


def choose_point_columns(about: PointsFile, digest: str) -> dict[str, Any]:
    """Ask which columns of a file of points to read; those with usual names are preset."""
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    with st.expander("Columns", expanded=not about.has_geometry and about.geometry is None and (about.x is None or about.y is None)):
        if about.has_geometry:
            text = "Each polygon counts as one record at its centroid. Off: a file with polygons is refused."
            options["centroids"] = st.toggle("Polygons by their centroid", key=f"centroids {digest}", persist_state="session", help=text)
        else:
            wkt = None if about.x is not None and about.y is not None else about.geometry
            text = "Texts such as POINT (13.4 52.5), in place of two columns of coordinates."
            options["geometry"] = pick("Points as text (WKT)", names, wkt, f"column geometry {digest}", text)
        if not (about.has_geometry or options["geometry"]):
            for axis, title in _AXES.items():
                options[axis] = pick(title, names, getattr(about, axis), f"column {axis} {digest}")
        count_help = "Whole numbers; without it each row is one record."
        options["count"] = pick("Records per row", names, None, f"column count {digest}", count_help)
    if about.count is not None and options["count"] is None:
        st.caption(f":orange[There is a column *{markdown(about.count)}*: choose it under Columns to count several records per row.]")
    return {name: value for name, value in options.items() if value not in (None, False)}


def lacking_column(about: PointsFile, options: dict[str, Any]) -> str | None:
    """Return which column of coordinates is not chosen; None if the points can be read."""
    if about.has_geometry or options.get("geometry"):
        return None
    return next((title for axis, title in _AXES.items() if not options.get(axis)), None)
