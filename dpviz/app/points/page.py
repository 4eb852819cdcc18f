"""The Points page: data, mechanism and budget on the left; on the right, what would be released, with the tabs under the map."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.cards import cards_in_place
from dpviz.app.components.panes import load_deck
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import show_forgotten, show_refused, teach_row
from dpviz.app.page_state import TEACH
from dpviz.app.points.curate import show_curate
from dpviz.app.points.data import points_controls
from dpviz.app.points.state import POINTS, SECOND_RUN, Data, config
from dpviz.app.points.teach import show_teach
from dpviz.app.saved_config import save_button
from dpviz.app.session import accept_presses, show_error
from dpviz.app.two_runs import choose_run
from dpviz.errors import BudgetError, DomainError, DpvizError, SettingError

_PROTECTED = {
    "record": "**Protected:** adding or removing one record.",
    "person": "**Protected:** adding or removing one person, with all records that count.",
    "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
}
_NOT_PROTECTED = "**Not protected:** the domain, its resolution, the mechanism and its settings, totals that you declare."
_UNPROTECTED = "**NOT PRIVATE:** the chosen reference protects nothing. It shows what privacy costs."


def points_page(areas: StreamlitPage | None = None) -> None:
    """Draw the page; `areas` is the page of points that are counted in regions, to which a button beside the data leads."""
    if show_forgotten():
        return
    show_refused(POINTS)
    if config().mode == TEACH:
        _show_teach(areas)
    else:
        show_curate(_describe_protected(""))  # the data of this run are not known yet
    accept_presses(POINTS.key)


def _show_teach(areas: StreamlitPage | None) -> None:
    load_deck()
    row = teach_row(POINTS)
    with st.sidebar:
        data, fits = _show_controls(areas)
    POINTS.write_address()
    protected = _describe_protected(POINTS.protected) if POINTS.mechanisms[config().mechanism].private else _UNPROTECTED
    show_teach(data, row, protected, fits=fits)


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "record" or "person", or "" where it is not known."""
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls(areas: StreamlitPage | None) -> tuple[Data | None, bool]:
    """Show the controls of Teach.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.

    Args:
        areas: as of `points_page`.

    Returns:
        The data, None while something is missing; and whether all choices fit.
    """
    start_checks()
    data, how = None, config()
    try:
        data = points_controls(cards_in_place()).data
    except DpvizError as error:
        show_error(str(error))
    _offer_areas(areas)
    POINTS.offer(data)
    page_state = choose_run(POINTS, SECOND_RUN)
    try:
        mechanism_controls(page_state)
        privacy_controls(page_state, data.points.domain if data else None, bar=page_state is not POINTS)
        for mechanism in (how.build(), how.second_run().build()):
            if data is not None:
                mechanism.refuse_mask(data.points.domain)
    except (SettingError, BudgetError, DomainError) as error:
        show_error(str(error))
        if page_state.config().mechanism in POINTS.offered_mechanisms():
            st.button("Back to the default settings", on_click=without_settings, args=(page_state,))
        return data, False
    fits = not show_lock()
    if data is not None and fits:
        save_button(data, how, None)
    return data, fits


def _offer_areas(areas: StreamlitPage | None) -> None:
    """Show a button that leads to the page of points in regions."""
    help_text = "Points counted in counties, blocks, hexagons or other declared regions, in place of squares."
    if areas is not None and st.button("Points in regions", key="to areas", type="tertiary", icon=":material/hexagon:", help=help_text):
        st.switch_page(areas)
