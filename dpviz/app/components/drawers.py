"""The drawers beside the maps of Teach: a column of icons, of which one is open at a time."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import widget_for

MAP, DATA, METHOD, SPLIT, ASK, NUMBERS = "Map", "Data", "Method", "Split", "Ask", "Numbers"
_ICONS = {MAP: "map", DATA: "database", METHOD: "tune", SPLIT: "stacked_bar_chart", ASK: "search", NUMBERS: "table_chart"}
_keys = st.components.v2.component("dpviz_drawers", js=Path(__file__).with_suffix(".js").read_text("utf-8"))


def opened_drawer(state: FamilyState) -> str:
    """Return the name of the drawer that is open; "" if none is, as in large type."""
    return state.view.drawer if state.view.drawer in _ICONS and not state.view.present else ""


def show_drawer_icons(state: FamilyState) -> None:
    """Show the icons that open and close the drawers. Escape closes the open one, and two links at the top lead to the map and to ε."""
    _keys(key="drawer keys", data={})
    if not state.view.present:
        shown = widget_for("drawer", opened_drawer(state) or None, lambda name: state.look(drawer=name or ""))
        st.segmented_control("Drawers", list(_ICONS), format_func=_label, label_visibility="collapsed", **shown)


def _label(name: str) -> str:
    return f":material/{_ICONS[name]}: {name}"
