"""A press counts once: the second click of a double click comes while the first is still being served, and is not taken."""

from __future__ import annotations

import streamlit as st


def take(page: str) -> bool:
    """Whether a press is the first since the page was drawn to its end; if so, the next ones are not until `settle`.

    A second click interrupts the run that serves the first one, and arrives in a new run as a press of the same button.
    """
    first = not st.session_state.get(f"pressed {page}", False)
    st.session_state[f"pressed {page}"] = True
    return first


def settle(page: str) -> None:
    """The page stands as it is after the last press: from here on a press is another one."""
    st.session_state.pop(f"pressed {page}", None)
