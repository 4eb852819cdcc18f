"""The choice of a street map from outside under the maps of public data: off until a person switches it on, and in no link."""

from __future__ import annotations

import streamlit as st

from dpviz.app.session.widgets import widget_for


def streets_wanted(key: str) -> bool:
    """Return whether the street map was switched on in this visit of the page."""
    return bool(st.session_state.get(f"{key} in visit") == _visit())


def streets_switch(key: str, *, on_earth: bool = True) -> None:
    """Show the switch, with what it reveals.

    Args:
        key: of the switch, for `streets_wanted`.
        on_earth: whether the maps lie somewhere; for a plain plane there are no streets, and no switch.
    """
    if on_earth:
        label = "Street map. The tiles come from openstreetmap.org: it sees which area you look at."
        st.toggle(label, **widget_for(key, streets_wanted(key), lambda wanted: _keep(key, _visit() if wanted else None)))


def _visit() -> int:
    return int(st.session_state.get("visit", 0))


def _keep(key: str, visit: int | None) -> None:
    st.session_state[f"{key} in visit"] = visit
