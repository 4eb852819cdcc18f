"""The shape of Points, Trips and Areas: a page with two modes, Teach and Curate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpviz.app.class_mode import refuse_in_class
from dpviz.app.components.panes import load_deck
from dpviz.app.first_row import show_forgotten, teach_row
from dpviz.app.page_state import TEACH, PageState
from dpviz.app.session import accept_presses, show_refused_link
from dpviz.app.teach_maps import ShowTeach


def show_in_mode(
    page: PageState,
    controls: Callable[[], tuple[Any, bool]],
    teach: ShowTeach,
    curate: Callable[[str], None],
    protected: Callable[[str], str],
) -> None:
    """Show a page in its present mode.

    Args:
        page: state of the page.
        controls: shows the controls of Teach, and returns the data and whether all choices fit.
        teach: shows the other parts of Teach.
        curate: shows Curate, with what a release protects.
        protected: writes what a release protects, and what not; its argument is as of `PageState.protected`, "" where it is not known yet.
    """
    if show_forgotten():
        return
    show_refused_link(page.refused)
    if page.config().mode == TEACH:
        load_deck()
        row = teach_row(page)
        with st.sidebar:
            data, fits = controls()
        page.write_address()
        teach(data, row, protected(page.protected), fits)
    else:
        refuse_in_class("Curate")
        curate(protected(""))  # the data of this run are not known yet
    accept_presses(page.key)
