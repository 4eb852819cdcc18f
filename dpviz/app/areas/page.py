"""The Areas page: data, mechanism and budget on the left; on the right, the counts of regions that would be released."""

from __future__ import annotations

import streamlit as st

from dpviz.app.areas.data import areas_controls
from dpviz.app.areas.state import AREAS, NOISES, SECOND_RUN, AreasData, config
from dpviz.app.areas.teach import show_teach
from dpviz.app.components.panes import load_deck
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import show_forgotten, show_refused
from dpviz.app.session import accept_presses, show_error, show_value, when_chosen
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
    load_deck()
    row = st.container(horizontal=True, vertical_alignment="center", key="first row")
    with st.sidebar:
        data, fits = _show_controls()
    AREAS.write_address()
    show_teach(data, row, f"{_PROTECTED[AREAS.protected]} {_NOT_PROTECTED}", fits=fits)
    accept_presses(AREAS.key)


def _show_controls() -> tuple[AreasData | None, bool]:
    """Show the controls of Teach.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.

    Returns:
        The data, None while something is missing; and whether all choices fit.
    """
    start_checks()
    data, how = None, config()
    try:
        data = areas_controls()
    except DpvizError as error:
        show_error(str(error))
    AREAS.offer(data)
    page_state = choose_run(AREAS, SECOND_RUN)
    try:
        mechanism_controls(page_state)
        _choose_noise()
        privacy_controls(page_state, data.areas.regions if data else None, bar=page_state is not AREAS)
        how.second_run().build()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        st.button("Back to the default settings", on_click=without_settings, args=(page_state,))
        return data, False
    return data, not show_lock()


def _choose_noise() -> None:
    """Ask for the distribution of the noise, of both runs."""
    show_value("noise", config().noise)
    st.segmented_control(
        "Noise",
        NOISES,
        key="noise",
        required=True,
        help="Laplace noise spends ε alone. Gaussian noise spends ε and δ: less of it where a release has many levels.",
        on_change=when_chosen("noise", lambda value: AREAS.change(noise=value)),
    )
