"""The controls on the left of Points, Trips and Areas: data, then mechanism and budget.

A choice that does not fit is reported beside its control, and nothing that was typed is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import DATA, Cards, cards_in_place
from dpviz.app.cards.opened_config import show_uploader
from dpviz.app.components.fields import show_lock, start_checks
from dpviz.app.components.mechanism_controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.modes.second_run import choose_run
from dpviz.app.session.advice import advise_in_app
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.saved_config import save_button
from dpviz.app.session.widgets import show_error
from dpviz.errors import BudgetError, DomainError, DpvizError, SettingError
from dpviz.space.domain import Domain


def _nothing() -> None:
    """Ask for nothing more."""


def teach_controls(
    page: FamilyState,
    choose_data: Callable[[Cards], Any],
    frame_of: Callable[[Any], Any],
    *,
    below_data: Callable[[], None] = _nothing,
) -> tuple[Any, bool]:
    """Show the controls of Teach.

    Args:
        page: state of the page.
        choose_data: shows the controls of the data; what it returns has `data`, None while something is missing.
        frame_of: returns the public frame of data.
        below_data: shows what belongs below these controls.

    Returns:
        The data, None while something is missing; and whether all choices fit.
    """
    start_checks()
    data, how = None, page.draft
    try:
        data = choose_data(cards_in_place()).data
    except DpvizError as error:
        show_error(str(error))
    below_data()
    page.offer(data)
    edited = choose_run(page)
    try:
        _choose_mechanism(edited, _nothing, None if data is None else frame_of(data), bar=edited is not page)
        _refuse_mask([how.build(), page.page.draft.of_run(1).build()], None if data is None else frame_of(data))
    except (SettingError, BudgetError, DomainError) as error:
        _show_misfit(edited, error)
        return data, False
    fits = not show_lock()
    if data is not None and fits:
        save_button(data, how, None)
    return data, fits


def curate_controls(
    page: FamilyState,
    cards: Cards,
    choose_data: Callable[[Cards], Any],
    nothing: Any,
    frame_of: Callable[[Any], Any],
    *,
    below_mechanism: Callable[[], None] = _nothing,
) -> tuple[Any, bool]:
    """Show the controls of Curate on the left, under the field that opens a configuration, and write the address.

    Args:
        page: state of the page.
        cards: say what is missing.
        choose_data: shows the controls of the data.
        nothing: what is declared where the data are refused.
        frame_of: returns the public frame of what is declared; None while it is missing.
        below_mechanism: asks what belongs between mechanism and budget.

    Returns:
        What is declared, and whether mechanism and budget fit.
    """
    with st.sidebar:
        show_uploader(page)
        start_checks()
        page.remember(None)
        declared, fits = nothing, False
        try:
            declared = choose_data(cards)
        except DpvizError as error:
            show_error(str(error))
            cards.ask(DATA, f"Correct the data: {advise_in_app(str(error))}")
        page.offer(declared.data)
        try:
            _choose_mechanism(page, below_mechanism, frame_of(declared), bar=True)
            _refuse_mask(page.draft.build_all(), frame_of(declared))
            fits = True
        except (SettingError, BudgetError, DomainError) as error:
            _show_misfit(page, error, cards)
    page.write_address()
    return declared, fits


def _refuse_mask(mechanisms: list[Any], frame: Any) -> None:
    """Raise a `DomainError` if the frame is a domain with a mask that one of the mechanisms does not take."""
    if isinstance(frame, Domain):
        for mechanism in mechanisms:
            mechanism.refuse_mask(frame)


def _choose_mechanism(page: FamilyState, below: Callable[[], None], frame: Any, *, bar: bool) -> None:
    """Ask for mechanism and budget; `bar` says whether the split of the budget has a bar on the left."""
    mechanism_controls(page)
    below()
    privacy_controls(page, frame, bar=bar)


def _show_misfit(page: FamilyState, error: DpvizError, cards: Cards | None = None) -> None:
    """Show why mechanism or budget do not fit, and the way back if the mode offers the mechanism."""
    show_error(str(error))
    if cards is not None:
        cards.ask(DATA, "Correct the mechanism or its settings.")
    if page.draft.run.mechanism in page.offered_mechanisms():
        st.button("Back to the default settings", on_click=without_settings, args=(page,))
