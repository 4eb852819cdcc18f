"""The Trips page: data, mechanism and budget on the left; on the right, the trips that would be released, with the tabs under the map."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.components.panes import load_deck
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.dataset_block import dataset_block, describe_spent
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import NO_EXPORT, WATERMARK, curate_row, show_forgotten, show_refused, teach_row, truth_switch
from dpviz.app.ledger import Funding
from dpviz.app.page_state import CURATE, TEACH
from dpviz.app.saved_config import save_button
from dpviz.app.session import (
    accept_presses,
    is_dark,
    serve_press,
    show_error,
    show_refusal,
    show_value,
    when_chosen,
)
from dpviz.app.trips.data import describe_regions, trips_controls
from dpviz.app.trips.filters import change_level, choose_filters, chosen_region, shown_level, toggle_region
from dpviz.app.trips.state import ALONE, SECOND_RUN, TRIPS, TripsData, TripsDrawn, draw, drawn, find_truths
from dpviz.app.trips.tabs import fill_in_pair, key_figures, show_tabs
from dpviz.app.trips.teach import show_teach
from dpviz.app.two_runs import choose_run
from dpviz.app.words import show_chart, verdict_row
from dpviz.errors import BudgetError, DpvizError, SettingError
from dpviz.evaluation.flow_metrics import FlowEvaluation
from dpviz.space.regions import Regions
from dpviz.view.escape import html, markdown
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import SHOWN_TRIPS, TripsMapSettings, has_geometry
from dpviz.view.trips_map import trips_map

MAP_HEIGHT, MAP_WIDTH = 620, 780  # pixels
EASY_TO_SEE = 400  # regions on a map
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
    teaches = TRIPS.config().mode == TEACH
    if teaches:
        load_deck()
        row = teach_row(TRIPS)
    else:
        curate_row(TRIPS, _describe_protected(""))  # the data of this run are not known yet
    with st.sidebar:
        data, funding, fits = _show_controls()
    TRIPS.write_address()
    if teaches:
        show_teach(data, row, _describe_protected(TRIPS.protected), fits=fits)
    elif data is None:
        st.info("Choose data on the left to begin.")
    elif (what := drawn()) is not None:
        _show_result(what.number, what.data.flows is data.flows)
    else:
        st.markdown(f"**{data.title}**: press *Draw a release* to see what could be published.")
        st.caption(f"{describe_regions(data.flows.regions)} {describe_spent(funding)}")
    accept_presses(TRIPS.key)


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "trip" or "person", or "" where it is not known."""
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls() -> tuple[TripsData | None, Funding | None, bool]:
    """Show the controls.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.

    Returns:
        The data, None while something is missing; the account that would pay for draws in Curate; and whether all choices fit.
    """
    start_checks()
    data, how = None, TRIPS.config()
    if how.mode == CURATE:
        TRIPS.remember(None)
    try:
        data = trips_controls()
    except DpvizError as error:
        show_error(str(error))
    TRIPS.offer(data)
    page_state = choose_run(TRIPS, SECOND_RUN)
    try:
        mechanism_controls(page_state)
        if how.mode == CURATE:
            _choose_second()
        strip_has_split = how.mode == TEACH and page_state is TRIPS
        privacy_controls(page_state, data.flows.regions if data else None, bar=not strip_has_split)
        how.second_run().build()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        st.button("Back to the default settings", on_click=without_settings, args=(page_state,))
        return data, None, False
    if how.mode == TEACH:
        fits = not show_lock()
        if data is not None and fits:
            save_button(data, how, None)
        return data, None, fits
    if data is not None:
        return data, _draw_controls(data), True
    st.button("Draw a release", type="primary", width="stretch", disabled=True, key="draw")
    return None, None, True


def _draw_controls(data: TripsData) -> Funding | None:
    """Show the button that draws in Curate, and the account that pays; return the account."""
    how = TRIPS.config()
    funding = dataset_block(data, [(mechanism, how.budget_for(mechanism)) for mechanism in how.build_all()])
    wrong = show_lock()
    if not wrong:
        TRIPS.remember(data)  # before the draw: the user may open the Release page while the release is made
    locked = wrong or funding is None or funding.problem is not None
    if st.button("Draw a release", type="primary", width="stretch", disabled=locked, key="draw") and not locked:
        serve_press(TRIPS.key, lambda: draw(data, funding), "Drawing ...")
    show_refusal(TRIPS.key)
    if not wrong:
        save_button(data, how, funding)
    return funding


def _choose_second() -> None:
    """Ask for a second mechanism, which draws from the same data with the same budget."""
    how = TRIPS.config()
    show_value("beside", how.beside)
    st.selectbox(
        "Compare with",
        [ALONE, *TRIPS.mechanisms],
        key="beside",
        format_func=lambda key: "Nothing" if key == ALONE else str(TRIPS.mechanisms[key].title),
        help="A second mechanism with its default settings and the same budget. Each draw then spends the budget twice.",
        on_change=when_chosen("beside", lambda value: TRIPS.change(beside=value)),
    )


@st.fragment
def _show_result(number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the maps with their controls, and the tabs; moving a control draws no noise."""
    what = drawn()
    if what is None:
        return
    if what.config.mode == CURATE and not (same_data and what.config.same_draw(TRIPS.config())):
        stale = f"The data or settings on the left have changed since draw {what.number}. Press *Draw a release* to see their effect."
        st.caption(f":orange[{stale}]")
    for title, release in zip(what.titles, what.releases, strict=True):
        verdict_row(release, title if len(what.releases) > 1 else "")
    truth_switch(what.data, what.config.mode)
    truths = find_truths(what)
    view = _choose_view(what, shows_truth=bool(truths))
    if what.config.mode == CURATE:
        st.html(NO_EXPORT + WATERMARK if truths else NO_EXPORT)
    with st.container(key="map"):
        for index, column in enumerate(st.columns(len(what.releases))):
            with column:
                _show_map(what, index, view, truths)
    with st.container(key="figures"):
        for index in range(len(what.releases)):
            key_figures(what, index, truths[index] if truths else None, view.level)
        show_tabs(what, truths, view)


def _choose_view(what: TripsDrawn, *, shows_truth: bool) -> TripsMapSettings:
    """Ask what the maps show (one of `SHOWN_TRIPS`, the level, a region, the number of arcs), and return the settings of the maps."""
    how, regions = TRIPS.config(), what.releases[0].tree.origins
    level = shown_level(regions)
    options = SHOWN_TRIPS if shows_truth and has_geometry(regions, level) else SHOWN_TRIPS[:1]
    shown = how.shown if how.shown in options else SHOWN_TRIPS[0]
    left, middle = st.columns([3, 2], vertical_alignment="center")
    show_value("trips shown", shown)
    left.segmented_control(
        "Map",
        options,
        key="trips shown",
        required=True,
        label_visibility="collapsed",
        on_change=when_chosen("trips shown", lambda value: TRIPS.change(shown=value)),
    )
    show_value("level", regions.levels[level - 1])
    middle.segmented_control(
        "Level",
        regions.levels,
        key="level",
        required=True,
        format_func=markdown,
        label_visibility="collapsed",
        on_change=when_chosen("level", lambda name: change_level(regions.levels.index(name) + 1)),
    )
    top, least, pairs = choose_filters(regions, level)
    width = MAP_WIDTH // len(what.releases)
    return TripsMapSettings(
        level=level,
        shown=shown,
        top=top,
        least=least,
        pairs=pairs,
        chosen=chosen_region(regions, level),
        unit=what.data.unit,
        dark=is_dark(),
        width=width,
    )


def _show_map(what: TripsDrawn, index: int, view: TripsMapSettings, truths: tuple[FlowEvaluation, ...]) -> None:
    """Show one mechanism's map, or a matrix if the regions have no geometry."""
    release, truth = what.releases[index], truths[index].true_sums(view.level, view.level) if truths else None
    if len(what.releases) > 1:
        st.markdown(f"**{what.titles[index]}**")
    if not has_geometry(release.tree.origins, view.level):
        show_chart(matrix_chart(release, view.level, view.unit))
        st.caption(f"These regions have neither outlines nor coordinates: a matrix stands for the map. {MATRIX_CAPTION}")
        return
    picture = trips_map(release, view, truth)
    key = f"trips map {index}"
    st.pydeck_chart(
        picture.deck,
        height=MAP_HEIGHT,
        key=key,
        on_select=lambda: _take_click(key, release.tree.origins, view.level),
        selection_mode="single-object",
        alt=picture.description,
    )
    st.html(picture.legend + (f'<div class="dpviz-note">{html(picture.note)}</div>' if picture.note else ""))


def _take_click(key: str, regions: Regions, level: int) -> None:
    """Handle a click on the map: choose a region, or let it go if it was chosen; put the ends of an arc into the tab of pairs."""
    state: Any = st.session_state.get(key)
    objects = ((state or {}).get("selection") or {}).get("objects", {})
    if arcs := objects.get("arcs"):
        fill_in_pair(regions, level, arcs[0].get("o"), arcs[0].get("z"))
        return
    clicked = objects.get("regions")
    region = clicked[0].get("i") if clicked else None
    toggle_region(region if isinstance(region, int) else None)
