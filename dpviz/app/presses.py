"""A press counts once: the second click of a double click comes while the first is still being served, and is not taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from dpviz.errors import DpvizError
from dpviz.view.escape import markdown


@dataclass
class Press:
    """What became of the last press; a plain object, which can be written where the session state cannot (see `shelves`).

    Attributes:
        taken: no other press is taken until the page was drawn to its end.
        busy: its action has not ended yet.
        refused: why nothing came of it.
    """

    taken: bool = False
    busy: bool = False
    refused: str = ""

    def serve(self, action: Callable[[], object]) -> None:
        """Do it, once; a refusal is kept."""
        if self.taken:
            return
        self.taken = self.busy = True
        try:
            action()
        except DpvizError as error:
            self.refused = str(error)
        finally:
            self.busy = False


def serve(page: str, action: Callable[[], object], waiting: str) -> None:
    """Do what a press asks for, once, and draw the page anew; a refusal is then said by `said`.

    A second click interrupts the run that serves the first one, and arrives in a new run as a press of the same button. So after a press
    none is taken until the page was drawn to its end.

    Args:
        page: whose button it is.
        action: what to do; it must keep its result itself, without a call into Streamlit once something is spent.
        waiting: shown meanwhile.
    """
    press: Press = st.session_state.setdefault(f"press {page}", Press())
    if press.taken:
        return
    with st.spinner(waiting):
        press.serve(action)
    st.rerun()


def said(page: str) -> None:
    """Say in place what the last press was refused for; it may quote a dataset's name, which is never read as Markdown."""
    press: Press | None = st.session_state.get(f"press {page}")
    if press is None:
        return
    if press.busy:
        st.info("Still at work on the last press. What comes of it is kept, and shown after the next click.")
    if press.refused:
        refusal(press.refused)


def settle(page: str) -> None:
    """The page stands as it is after the last press: from here on a press is another one, unless that one is still served."""
    press: Press | None = st.session_state.get(f"press {page}")
    if press is not None and not press.busy:
        st.session_state.pop(f"press {page}", None)


def refusal(text: str) -> None:
    """A refusal; its text is never read as Markdown."""
    st.error(markdown(text))
