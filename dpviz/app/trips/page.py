"""The Trips page: data, mechanism and budget on the left; on the right, the trips that would be released, with the tabs under the map."""

from __future__ import annotations

import streamlit as st

from dpviz.app.cards import cards_in_place
from dpviz.app.components.panes import load_deck
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import show_forgotten, show_refused, teach_row
from dpviz.app.page_state import TEACH
from dpviz.app.saved_config import save_button
from dpviz.app.session import (
    accept_presses,
    show_error,
)
from dpviz.app.trips.curate import show_curate
from dpviz.app.trips.data import trips_controls
from dpviz.app.trips.state import SECOND_RUN, TRIPS, TripsData
from dpviz.app.trips.teach import show_teach
from dpviz.app.two_runs import choose_run
from dpviz.errors import BudgetError, DpvizError, SettingError

_ONE_TRIP = "**Protected:** replacing one trip between the regions by another, or adding or removing it"
_PROTECTED = {
    "trip": f"{_ONE_TRIP}.",
    "person": "**Protected:** replacing one person, with all trips of this person, by another, or adding or removing one.",
    "": f"{_ONE_TRIP} (or all trips of one person, where that is declared).",
}
_NOT_PROTECTED = "**Not protected:** the regions, the mechanism and its settings, and the total where neighbours are *bounded*."


def trips_page() -> None:
    """Draw the page."""
    if show_forgotten():
        return
    show_refused(TRIPS)
    if TRIPS.config().mode == TEACH:
        _show_teach()
    else:
        show_curate(_describe_protected(""))  # the data of this run are not known yet
    accept_presses(TRIPS.key)


def _show_teach() -> None:
    load_deck()
    row = teach_row(TRIPS)
    with st.sidebar:
        data, fits = _show_controls()
    TRIPS.write_address()
    show_teach(data, row, _describe_protected(TRIPS.protected), fits)


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "trip" or "person", or "" where it is not known."""
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls() -> tuple[TripsData | None, bool]:
    """Show the controls of Teach.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.

    Returns:
        The data, None while something is missing; and whether all choices fit.
    """
    start_checks()
    data, how = None, TRIPS.config()
    try:
        data = trips_controls(cards_in_place()).data
    except DpvizError as error:
        show_error(str(error))
    TRIPS.offer(data)
    page_state = choose_run(TRIPS, SECOND_RUN)
    try:
        mechanism_controls(page_state)
        privacy_controls(page_state, data.flows.regions if data else None, bar=page_state is not TRIPS)
        how.second_run().build()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        st.button("Back to the default settings", on_click=without_settings, args=(page_state,))
        return data, False
    fits = not show_lock()
    if data is not None and fits:
        save_button(data, how, None)
    return data, fits
