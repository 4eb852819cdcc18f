"""The Areas page: data, mechanism and budget on the left; on the right, the counts of regions that would be released."""

from __future__ import annotations

import streamlit as st

from dpviz.app.areas.curate import show_curate
from dpviz.app.areas.data import areas_controls
from dpviz.app.areas.state import AREAS, SECOND_RUN, AreasData, config
from dpviz.app.areas.teach import show_teach
from dpviz.app.cards import cards_in_place
from dpviz.app.components.panes import load_deck
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import show_forgotten, show_refused, teach_row
from dpviz.app.page_state import TEACH
from dpviz.app.saved_config import save_button
from dpviz.app.session import accept_presses, show_error
from dpviz.app.two_runs import choose_run
from dpviz.errors import BudgetError, DpvizError, SettingError

_PROTECTED = {
    "record": "**Protected:** adding or removing one record, or replacing it by another.",
    "person": "**Protected:** adding or removing one person, with all records that count, or replacing one by another.",
    "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
}
_NOT_PROTECTED = (
    "**Not protected:** the regions and their levels, the mechanism and its settings, and the total where neighbours are *bounded*."
)


def areas_page() -> None:
    """Draw the page."""
    if show_forgotten():
        return
    show_refused(AREAS)
    if config().mode == TEACH:
        _show_teach()
    else:
        show_curate(_describe_protected(""))  # the data of this run are not known yet
    accept_presses(AREAS.key)


def _show_teach() -> None:
    load_deck()
    row = teach_row(AREAS)
    with st.sidebar:
        data, fits = _show_controls()
    AREAS.write_address()
    show_teach(data, row, _describe_protected(AREAS.protected), fits=fits)


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "record" or "person", or "" where it is not known."""
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls() -> tuple[AreasData | None, bool]:
    """Show the controls of Teach.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.

    Returns:
        The data, None while something is missing; and whether all choices fit.
    """
    start_checks()
    data, how = None, config()
    try:
        data = areas_controls(cards_in_place()).data
    except DpvizError as error:
        show_error(str(error))
    AREAS.offer(data)
    page_state = choose_run(AREAS, SECOND_RUN)
    try:
        mechanism_controls(page_state)
        privacy_controls(page_state, data.areas.regions if data else None, bar=page_state is not AREAS)
        how.second_run().build()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        st.button("Back to the default settings", on_click=without_settings, args=(page_state,))
        return data, False
    fits = not show_lock()
    if data is not None and fits:
        save_button(data, how, None)
    return data, fits
