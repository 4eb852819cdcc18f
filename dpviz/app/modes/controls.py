"""The controls of Points, Trips and Areas, in the drawers of Teach and of Curate: data, then mechanism and budget.

A choice that does not fit is reported beside its control, and nothing that was typed is lost.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.cards.cards import FILES, Cards, cards_in_place
from dpviz.app.cards.cards import METHOD as METHOD_CARD
from dpviz.app.cards.opened_config import show_uploader
from dpviz.app.components.drawers import DATA, METHOD, SPLIT, opened_drawer
from dpviz.app.components.fields import PROBLEMS, start_checks
from dpviz.app.components.mechanism_controls import mechanism_controls, privacy_controls, split_controls, without_settings
from dpviz.app.modes.family_page import FamilyPage, Pages
from dpviz.app.modes.shown_runs import choose_run
from dpviz.app.session.advice import advise_in_app
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.saved_config import save_button
from dpviz.app.session.widgets import show_error
from dpviz.errors import BudgetError, DomainError, DpvizError, SettingError
from dpviz.space.domain import Domain


def teach_controls(page: FamilyPage, others: Pages, drawer: DeltaGenerator, messages: DeltaGenerator) -> tuple[Any, bool]:
    """Show the controls of the open drawer of Teach; what the closed ones hold stays as it is.

    Args:
        page: the page.
        others: the pages to which its buttons lead.
        drawer: place of the open drawer.
        messages: place of what does not fit, which is seen whichever drawer is open.

    Returns:
        What is declared, whose data are None while something is missing; and whether all choices fit.
    """
    start_checks()
    state, opened = page.state, opened_drawer(page.state)
    declared = _declare(page, others, drawer)
    state.offer(declared.data)
    frame = None if declared.data is None else page.frame_of(declared)
    edited = replace(state, index=state.page.edited)
    try:
        with drawer:
            if opened in (METHOD, SPLIT):
                choose_run(state)
            if opened == METHOD:
                mechanism_controls(edited)
                privacy_controls(edited)
            elif opened == SPLIT and frame is not None:
                split_controls(edited, frame)
        _check(state, frame)
    except (SettingError, BudgetError, DomainError) as error:
        with messages:
            _show_misfit(edited, error)
        return declared, False
    fits = not st.session_state.get(PROBLEMS)  # a field says itself what is wrong with it
    if opened == METHOD and declared.data is not None and fits:
        with drawer:
            save_button(declared.data, state.draft, None)
    return declared, fits


def _declare(page: FamilyPage, others: Pages, drawer: DeltaGenerator) -> Any:
    """Return what is declared of the data. While their drawer is closed, it is what was declared last.

    The widgets load the data: if there is nothing yet for what the page holds, they run unseen once, and while something is missing the
    drawer opens by itself.
    """
    state, slot = page.state, _slot(page.state)
    question = (st.session_state.get("visit", 0), replace(state.draft, runs=()))
    known, declared = st.session_state.get(slot, (None, page.nothing))
    is_open = opened_drawer(state) == DATA
    with st.container(key="unseen"):  # always there: nothing below it moves
        if is_open or known != question:
            with drawer if is_open else nullcontext():
                declared = _show_data(page)
                page.below_data(others)
            st.session_state[slot] = (question if declared.data is not None else None, declared)
    if declared.data is None and not is_open and not state.view.present:
        state.look(drawer=DATA)
        st.rerun()
    return declared


def _show_data(page: FamilyPage) -> Any:
    try:
        return page.controls(cards_in_place())
    except DpvizError as error:
        show_error(str(error))
        return page.nothing


def _slot(state: FamilyState) -> str:
    """Return the key under which the session keeps what is declared in Teach, with the choices for which it was."""
    return f"{state.key} declared"


def _check(state: FamilyState, frame: Any) -> None:
    """Raise the error of a mechanism, budget or split that does not fit the frame, whether its controls are shown or not."""
    runs = [state.page.draft.of_run(index) for index in range(len(state.page.draft.runs))]
    _refuse_mask([run.build() for run in runs], frame)
    if frame is not None:
        for run in runs:
            run.shares(frame)
            run.slot_shares(frame)


def curate_controls(page: FamilyPage, cards: Cards) -> tuple[Any, bool]:
    """Show the controls of Curate in its drawers, under the field that opens a configuration, and write the address.

    Args:
        page: the page.
        cards: the drawers, which say what is missing.

    Returns:
        What is declared, and whether mechanism and budget fit.
    """
    state, declared, fits = page.state, page.nothing, False
    st.session_state.pop(_slot(state), None)  # the files may be others when Teach comes back
    with cards.files:
        show_uploader(state)
        start_checks()
        try:
            declared = page.controls(cards)
        except DpvizError as error:
            show_error(str(error))
            cards.ask(FILES, f"Correct the data: {advise_in_app(str(error))}")
        state.offer(declared.data)
    frame = page.frame_of(declared)
    with cards.method or st.container():
        try:
            mechanism_controls(state)
            page.below_mechanism()
            privacy_controls(state)
            if frame is not None:
                split_controls(state, frame)
            _refuse_mask(state.draft.build_all(), frame)
            fits = True
        except (SettingError, BudgetError, DomainError) as error:
            _show_misfit(state, error, cards)
    state.write_address()
    return declared, fits


def _refuse_mask(mechanisms: list[Any], frame: Any) -> None:
    """Raise a `DomainError` if the frame is a domain with a mask that one of the mechanisms does not take."""
    if isinstance(frame, Domain):
        for mechanism in mechanisms:
            mechanism.refuse_mask(frame)


def _show_misfit(page: FamilyState, error: DpvizError, cards: Cards | None = None) -> None:
    """Show why mechanism or budget do not fit, and the way back if the mode offers the mechanism."""
    show_error(str(error))
    if cards is not None:
        cards.ask(METHOD_CARD, "Correct the mechanism or its settings.")
    if page.draft.run.mechanism in page.offered_mechanisms():
        st.button("Back to the default settings", on_click=without_settings, args=(page,))
