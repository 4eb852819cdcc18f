"""Which columns of a trips file are read: ids of regions or coordinates, and counts."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.points_data import NONE, pick
from dpviz.data.reading.flows import FlowsFile
from dpviz.data.reading.inspect import coordinate_columns

IDS, COORDINATES = "Ids of regions", "Coordinates"


def trips_columns(about: FlowsFile, digest: str) -> dict[str, Any]:
    """What is read: found by name, and every choice can be overridden.

    Args:
        about: what the files say about themselves.
        digest: stands for them in the keys of widgets.

    Returns:
        Options of `read_flows`; what has its default is left out.
    """
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    pairs = coordinate_columns(about.columns)
    unclear = not about.matrix and (about.origin is None or about.destination is None)
    if pairs is not None:
        kinds = [IDS, COORDINATES]
        usual = COORDINATES if unclear else IDS
        found = st.segmented_control("Trips run between", kinds, default=usual, key=f"trips ends {digest}", persist_state="session")
        pairs = pairs if (found or usual) == COORDINATES else None
    with st.expander("Columns", expanded=unclear and pairs is None):
        if pairs is not None:
            options |= _coordinates(names, pairs, digest)
        elif not about.matrix:
            for role, title, known in (("origin", "Origin", about.origin), ("destination", "Destination", about.destination)):
                options[role] = pick(title, names, known, f"trips column {role} {digest}")
        if pairs is not None or not about.matrix:
            each = "Whole numbers; without it each row is one trip."
            options["count"] = pick("Trips per row", names, about.count, f"trips column count {digest}", each)
    if pairs is not None:
        asked = "It is never guessed. EPSG:4326 is longitude and latitude in degrees. Left empty: that of the regions, if they have none."
        crs = st.text_input("CRS of the coordinates", placeholder="EPSG:4326", key="trips crs", persist_state="session", help=asked)
        options["crs"] = crs.strip() or None
    return {role: value for role, value in options.items() if value not in (None, False)}


def _coordinates(names: list[str], found: tuple[tuple[str, str], tuple[str, str]], digest: str) -> dict[str, Any]:
    """Two columns for each end, which are looked up in the polygons of the leaves; an end is left out until both are named."""
    ends: dict[str, Any] = {}
    for role, title, (x, y) in (("origin", "Origin", found[0]), ("destination", "Destination", found[1])):
        left, right = st.columns(2)
        with left:
            east = pick(f"{title}: x", names, x, f"trips column {role} x {digest}", "Longitude or easting.")
        with right:
            north = pick(f"{title}: y", names, y, f"trips column {role} y {digest}", "Latitude or northing.")
        ends[role] = None if east is None or north is None else (east, north)
    return ends
