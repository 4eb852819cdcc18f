"""The shape of Points, Trips and Areas: a page with two modes, Teach and Curate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dpviz.app.components.panes import load_deck
from dpviz.app.modes.curate import CurateParts, show_curate
from dpviz.app.modes.header import describe_unprotected, show_forgotten, teach_row
from dpviz.app.modes.teach import ShowTeach
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import accept_presses, show_refused_link
from dpviz.app.state.values import TEACH


def show_in_mode(
    page: FamilyState,
    controls: Callable[[], tuple[Any, bool]],
    teach: ShowTeach,
    curate: CurateParts,
    protected: Mapping[str, str],
    not_protected: str,
) -> None:
    """Show a page in its present mode.

    Args:
        page: state of the page.
        controls: shows the controls of Teach, and returns the data and whether all choices fit.
        teach: shows the other parts of Teach.
        curate: what Curate shows.
        protected: what a release protects, by what it protects one of, as of `FamilyState.protected`; "" where that is not known yet.
        not_protected: what it does not protect.
    """
    if show_forgotten():
        return
    show_refused_link(page.refused)
    if page.draft.mode == TEACH:
        load_deck()
        row = teach_row(page)
        with st.sidebar:
            data, fits = controls()
        page.write_address()
        mechanism = type(page.draft.build())
        about = f"{protected[page.protected]} {not_protected}" if mechanism.private else describe_unprotected(mechanism)
        teach(data, row, about, fits)
    else:
        refuse_in_class("Curate")
        show_curate(curate, f"{protected['']} {not_protected}")  # the data of this run are not known yet
    accept_presses(page.key)
