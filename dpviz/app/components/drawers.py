"""The drawers beside the maps: a column of icons, of which one is open at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import widget_for

MAP, DATA, METHOD, SPLIT, ASK, NUMBERS = "Map", "Data", "Method", "Split", "Ask", "Numbers"
TEACH_ICONS = {MAP: "map", DATA: "database", METHOD: "tune", SPLIT: "stacked_bar_chart", ASK: "search", NUMBERS: "table_chart"}
_keys = st.components.v2.component("dpviz_drawers", js=Path(__file__).with_suffix(".js").read_text("utf-8"))


def opened_drawer(state: FamilyState) -> str:
    """Return the name of the drawer of Teach that is open; "" if none is, as in large type."""
    return state.view.drawer if state.view.drawer in TEACH_ICONS and not state.view.present else ""


def show_drawer_icons(icons: Mapping[str, str], opened: str, take: Callable[[str], object], turn: int = 0) -> None:
    """Show the icons that open and close the drawers. Escape closes the open one, and two links at the top lead to the map and to ε.

    Args:
        icons: by the names of the drawers.
        opened: the drawer that is open; "" if none is.
        take: takes the name of a drawer that is opened, "" if the open one is closed.
        turn: another number shows the open drawer from its top.
    """
    _keys(key="drawer keys", data={"opened": opened, "turn": turn})
    if icons:
        shown = widget_for("drawer", opened or None, lambda name: take(name or ""))
        labels = {name: f":material/{icon}: {name}" for name, icon in icons.items()}
        st.segmented_control("Drawers", list(icons), format_func=labels.__getitem__, label_visibility="collapsed", **shown)
