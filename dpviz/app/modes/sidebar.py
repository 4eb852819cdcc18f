"""The controls on the left of Points, Trips and Areas: data, then mechanism and budget.

A choice that does not fit is reported beside its control, and nothing that was typed is lost.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.cards.cards import DATA, Cards, cards_in_place
from dpviz.app.cards.opened_config import show_uploader
from dpviz.app.components.fields import show_lock, start_checks
from dpviz.app.components.mechanism_controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.modes.family_page import FamilyPage, Pages
from dpviz.app.modes.second_run import choose_run
from dpviz.app.session.advice import advise_in_app
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.saved_config import save_button
from dpviz.app.session.widgets import show_error
from dpviz.errors import BudgetError, DomainError, DpvizError, SettingError
from dpviz.space.domain import Domain


def teach_controls(page: FamilyPage, others: Pages) -> tuple[Any, bool]:
    """Show the controls of Teach.

    Args:
        page: the page.
        others: the pages to which its buttons lead.

    Returns:
        The data, None while something is missing; and whether all choices fit.
    """
    start_checks()
    state, data, frame = page.state, None, None
    how = state.draft
    try:
        declared = page.controls(cards_in_place())
        data = declared.data
        frame = None if data is None else page.frame_of(declared)
    except DpvizError as error:
        show_error(str(error))
    page.below_data(others)
    state.offer(data)
    edited = choose_run(state)
    try:
        mechanism_controls(edited)
        privacy_controls(edited, frame, bar=edited is not state)
        _refuse_mask([how.build(), state.page.draft.of_run(1).build()], frame)
    except (SettingError, BudgetError, DomainError) as error:
        _show_misfit(edited, error)
        return data, False
    fits = not show_lock()
    if data is not None and fits:
        save_button(data, how, None)
    return data, fits


def curate_controls(page: FamilyPage, cards: Cards) -> tuple[Any, bool]:
    """Show the controls of Curate on the left, under the field that opens a configuration, and write the address.

    Args:
        page: the page.
        cards: say what is missing.

    Returns:
        What is declared, and whether mechanism and budget fit.
    """
    state, declared, fits = page.state, page.nothing, False
    with st.sidebar:
        show_uploader(state)
        start_checks()
        state.remember(None)
        try:
            declared = page.controls(cards)
        except DpvizError as error:
            show_error(str(error))
            cards.ask(DATA, f"Correct the data: {advise_in_app(str(error))}")
        state.offer(declared.data)
        frame = page.frame_of(declared)
        try:
            mechanism_controls(state)
            page.below_mechanism()
            privacy_controls(state, frame, bar=True)
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
        cards.ask(DATA, "Correct the mechanism or its settings.")
    if page.draft.run.mechanism in page.offered_mechanisms():
        st.button("Back to the default settings", on_click=without_settings, args=(page,))
