"""The choice of a street map from outside under the maps of public data: off until a person switches it on, and in no link."""

from __future__ import annotations

import streamlit as st


def streets_wanted(key: str) -> bool:
    """Return whether the street map was switched on. It goes off when the page is left, since nothing keeps the switch's value."""
    return bool(st.session_state.get(key, False))


def streets_switch(key: str, *, on_earth: bool = True) -> None:
    """Show the switch, with what it reveals.

    Args:
        key: of the switch, for `streets_wanted`.
        on_earth: whether the maps lie somewhere; for a plain plane there are no streets, and no switch.
    """
    if on_earth:
        st.toggle("Street map. The tiles come from openstreetmap.org: it sees which area you look at.", key=key)
