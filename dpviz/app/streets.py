"""The choice of a street map from outside under the maps of public data: off until a person switches it on, and in no link."""

from __future__ import annotations

import streamlit as st

from dpviz.space.domain import Domain


def streets_wanted(key: str) -> bool:
    """Return whether the street map was switched on. It goes off when the page is left, since nothing keeps the switch's value."""
    return bool(st.session_state.get(key, False))


def streets_switch(key: str, domain: Domain) -> None:
    """Show the switch, with what it reveals; not for a plain plane, which lies nowhere.

    Args:
        key: of the switch, for `streets_wanted`.
        domain: of the maps.
    """
    if domain.crs is not None:
        st.toggle("Street map. The tiles come from openstreetmap.org: it sees which area you look at.", key=key)
