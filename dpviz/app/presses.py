"""A press counts once: the second click of a double click comes while the first is still being served, and is not taken."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpviz.errors import DpvizError


def serve(page: str, action: Callable[[], object], waiting: str) -> None:
    """Do what a press asks for, once, and draw the page anew; a refusal is then said by `said`.

    A second click interrupts the run that serves the first one, and arrives in a new run as a press of the same button. So after a press
    none is taken until the page was drawn to its end.

    Args:
        page: whose button it is.
        action: what to do; it must keep its result itself.
        waiting: shown meanwhile.
    """
    if st.session_state.get(f"pressed {page}", False):
        return
    st.session_state[f"pressed {page}"] = True
    try:
        with st.spinner(waiting):
            action()
    except DpvizError as error:
        st.session_state[f"refused {page}"] = str(error)
    st.rerun()


def said(page: str) -> None:
    """Say in place what the last press was refused for; it may quote a dataset's name, which is never read as Markdown."""
    if text := st.session_state.get(f"refused {page}"):
        refusal(text)


def settle(page: str) -> None:
    """The page stands as it is after the last press: from here on a press is another one."""
    st.session_state.pop(f"pressed {page}", None)
    st.session_state.pop(f"refused {page}", None)


def refusal(text: str) -> None:
    """A refusal; its text is never read as Markdown."""
    st.error("".join(f"\\{letter}" if letter in "\\`*[]<>$~!" else letter for letter in text))
