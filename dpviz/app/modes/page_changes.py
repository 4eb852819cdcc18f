"""Changes that a component within a fragment makes to the page: its callback notes them, and the fragment runs the whole page again."""

from __future__ import annotations

import streamlit as st


def note_change(component: str) -> None:
    """Note that a component has changed the page; `component` is its key."""
    st.session_state[f"{component} changed the page"] = True


def rerun_if_changed(component: str) -> None:
    """Run the page again if its component has changed it."""
    if st.session_state.pop(f"{component} changed the page", False):
        st.rerun()
