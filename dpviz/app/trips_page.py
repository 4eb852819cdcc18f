"""The Trips page: data, mechanism and budget on the left; on the right, the trips that would be released."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.dataset_block import dataset_block, describe_spent
from dpviz.app.fields import Field, in_range, show_lock, start_checks
from dpviz.app.first_row import NO_EXPORT, WATERMARK, mode_row, show_forgotten, truth_switch
from dpviz.app.ledger import Funding
from dpviz.app.points_state import CURATE
from dpviz.app.saved_config import save_button
from dpviz.app.session import accept_presses, serve_press, show_error, show_refusal
from dpviz.app.trips_data import regions_text, trips_controls
from dpviz.app.trips_state import ALONE, MOST_ARCS, TRIPS, TripsData, TripsDrawn, draw, drawn, truths_of
from dpviz.app.trips_tabs import ask_for_pair, trips_tabs
from dpviz.app.words import verdict_row
from dpviz.errors import BudgetError, DpvizError, SettingError
from dpviz.evaluation.flow_metrics import FlowEvaluation
from dpviz.release.flow_release import FlowRelease
from dpviz.space.regions import Regions
from dpviz.view.escape import html, markdown
from dpviz.view.trips_charts import matrix_chart
from dpviz.view.trips_map import SHOWN_TRIPS, TripsMapSettings, has_geometry, trips_map

MAP_HEIGHT, MAP_WIDTH = 620, 780
EASY_TO_SEE = 400
_PROTECTED = (
    "**Protected:** replacing one trip between the regions by another, or adding or removing it (or all trips of one person, where"
    " that is declared)."
    " **Not protected:** the regions, the mechanism and its settings, and the total where neighbours are *bounded*."
)


def trips_page() -> None:
    """Draw the page."""
    if show_forgotten():
        return
    mode_row(TRIPS, _PROTECTED)
    with st.sidebar:
        data, purse = _left()
    TRIPS.write_address()
    what = drawn()
    if what is not None:
        _result(what.number, data is not None and what.data.flows is data.flows)
    elif data is None:
        st.info("Choose data on the left to begin.")
    else:
        st.markdown(f"**{data.title}**: press *Draw a release* to see what could be published.")
        so_far = describe_spent(purse) if TRIPS.config().mode == CURATE else "Nothing has been drawn yet."
        st.caption(f"{regions_text(data.flows.regions)} {so_far}")
    accept_presses(TRIPS.key)


def _left() -> tuple[TripsData | None, Funding | None]:
    """Show the controls. Return the data, and the account that would pay for draws in Curate.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.
    """
    start_checks()
    data = None
    if TRIPS.config().mode == CURATE:
        TRIPS.remember(None)
    try:
        data = trips_controls()
    except DpvizError as error:
        show_error(str(error))
    TRIPS.offer(data)
    try:
        mechanism_controls(TRIPS)
        _beside()
        privacy_controls(TRIPS, data.flows.regions if data else None)
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        st.button("Back to the default settings", on_click=without_settings, args=(TRIPS,))
        return data, None
    if data is not None:
        return data, _draw_controls(data)
    st.button("Draw a release", type="primary", width="stretch", disabled=True, key="draw")
    return None, None


def _draw_controls(data: TripsData) -> Funding | None:
    """Show the button that draws and, in Curate, the account that pays; return the account."""
    how = TRIPS.config()
    draws = [(mechanism, how.budget_for(mechanism)) for mechanism in how.all_built()]
    purse = dataset_block(data, draws) if how.mode == CURATE else None
    wrong = show_lock()
    if how.mode == CURATE and not wrong:
        TRIPS.remember(data)  # before the draw: the user may open the Release page while the release is made
    locked = wrong or (purse is not None and purse.problem is not None)
    if st.button("Draw a release", type="primary", width="stretch", disabled=locked, key="draw") and not locked:
        serve_press(TRIPS.key, lambda: draw(data, purse), "Drawing ...")
    show_refusal(TRIPS.key)
    if not wrong:
        save_button(data, how, purse)
    return purse


def _beside() -> None:
    """Ask for a second mechanism, which draws from the same data with the same budget."""
    how = TRIPS.config()
    st.session_state["beside"] = how.beside
    st.selectbox(
        "Beside it",
        [ALONE, *TRIPS.mechanisms],
        key="beside",
        format_func=lambda key: "Nothing" if key == ALONE else str(TRIPS.mechanisms[key].title),
        help="A second mechanism with its default settings and the same budget. Each draw then spends the budget twice.",
        on_change=lambda: TRIPS.change(beside=st.session_state["beside"]),
    )


@st.fragment
def _result(number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the maps with their controls, and the tabs; moving a control draws no noise."""
    what = drawn()
    if what is None:
        return
    if not (same_data and what.config.same_draw(TRIPS.config())):
        stale = f"The data or settings on the left have changed since draw {what.number}. Press *Draw a release* to see their effect."
        st.caption(f":orange[{stale}]")
    for title, release in zip(what.titles, what.releases, strict=True):
        verdict_row(release, title if len(what.releases) > 1 else "")
    truth_switch(what.data, what.config.mode)
    truths = truths_of(what)
    view = _view(what, shows_truth=bool(truths))
    if what.config.mode == CURATE:
        st.html(NO_EXPORT + WATERMARK if truths else NO_EXPORT)
    with st.container(key="map"):
        for place, column in enumerate(st.columns(len(what.releases))):
            with column:
                _picture(what, place, view, truths)
    if what.releases[0].simulation:
        st.html(f'<div class="dpviz-note">Seeded draw {what.number}: a simulation, not private.</div>')
    with st.container(key="figures"):
        for place, release in enumerate(what.releases):
            _key_figures(what, release, truths[place] if truths else None, view.level)
        trips_tabs(what, truths, view)


def _view(what: TripsDrawn, *, shows_truth: bool) -> TripsMapSettings:
    """Ask what the maps show: one of `SHOWN_TRIPS`, the level, a region, and the number of arcs."""
    how, regions = TRIPS.config(), what.releases[0].tree.origins
    level = min(how.level or _overview(regions), regions.depth)
    options = SHOWN_TRIPS if shows_truth and has_geometry(regions, level) else SHOWN_TRIPS[:1]
    shown = how.shown if how.shown in options else SHOWN_TRIPS[0]
    left, middle = st.columns([3, 2], vertical_alignment="center")
    st.session_state["trips shown"] = shown
    left.segmented_control(
        "Map",
        options,
        key="trips shown",
        required=True,
        label_visibility="collapsed",
        on_change=lambda: TRIPS.change(shown=st.session_state["trips shown"]),
    )
    st.session_state["level"] = regions.levels[level - 1]
    middle.segmented_control(
        "Level",
        regions.levels,
        key="level",
        required=True,
        format_func=markdown,
        label_visibility="collapsed",
        on_change=lambda: TRIPS.change(level=regions.levels.index(st.session_state["level"]) + 1),
    )
    chosen, top, least = _filters(regions, level)
    width = MAP_WIDTH // len(what.releases)
    return TripsMapSettings(level=level, shown=shown, top=top, least=least, chosen=chosen, unit=what.data.unit, dark=_dark(), width=width)


def _filters(regions: Regions, level: int) -> tuple[int | None, int, int]:
    """Ask for a region, the most arcs, and the fewest trips of an arc; the region is an index at its level, None for all regions."""
    how, key = TRIPS.config(), f"region at {level}"
    names = regions.names_of(level)
    left, middle, right = st.columns([3, 1, 1])
    st.session_state.setdefault(key, None)
    if st.session_state[key] is not None and st.session_state[key] >= regions.size(level):
        st.session_state[key] = None
    left.selectbox(
        "Trips from and to",
        range(regions.size(level)),
        key=key,
        format_func=lambda place: str(names[place]),
        placeholder=f"every {regions.levels[level - 1]}; click one on the map, or choose it here",
        persist_state="session",
    )
    most, least = "Arcs at most", "From ... trips on"
    top = Field(key="top", label=most, value=how.top, problem=in_range(most, 1, MOST_ARCS), use=lambda typed: TRIPS.change(top=typed))
    top.show(middle.number_input, value=None, step=100)
    smallest = "Pairs with fewer released trips are not drawn."
    fewest = Field(key="least", label=least, value=how.least, problem=in_range(least, 1), use=lambda typed: TRIPS.change(least=typed))
    fewest.show(right.number_input, value=None, step=1, help=smallest)
    return st.session_state[key], how.top, how.least


def _overview(regions: Regions) -> int:
    """Return the finest level with at most `EASY_TO_SEE` regions; 1 if every level has more."""
    return max((level for level in range(1, regions.depth + 1) if regions.size(level) <= EASY_TO_SEE), default=1)


def _picture(what: TripsDrawn, place: int, view: TripsMapSettings, truths: tuple[FlowEvaluation, ...]) -> None:
    """Show one mechanism's map, or a matrix if the regions have no geometry."""
    release, truth = what.releases[place], truths[place].true_sums(view.level, view.level) if truths else None
    if len(what.releases) > 1:
        st.markdown(f"**{what.titles[place]}**")
    if not has_geometry(release.tree.origins, view.level):
        st.altair_chart(matrix_chart(release, view.level, view.unit), width="stretch")
        st.caption("These regions have neither outlines nor coordinates: a matrix stands for the map.")
        return
    picture = trips_map(release, view, truth)
    key = f"trips map {place}"
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
        ask_for_pair(regions, level, arcs[0].get("o"), arcs[0].get("z"))
        return
    clicked, slot = objects.get("regions"), f"region at {level}"
    place = clicked[0].get("i") if clicked else None
    st.session_state[slot] = place if isinstance(place, int) and place != st.session_state.get(slot) else None


def _key_figures(what: TripsDrawn, release: FlowRelease, evaluation: FlowEvaluation | None, level: int) -> None:
    """Show four numbers that sum one release up at the level shown."""
    at, title = release.stages[2 * level], what.titles[what.releases.index(release)]
    columns = st.columns(4)
    pairs = int((at.count > 0).sum())
    possible = release.tree.size(2 * level)
    columns[0].metric("Pairs released", f"{pairs:,}", help=f"{title}: pairs of this level with trips, out of {possible:,} possible ones.")
    table = release.stage(2 * level, spread=True)
    noise = float(table["stddev"].median()) if len(table) else 0.0
    columns[1].metric("Typical noise", f"± {noise:,.1f}", help="Median standard deviation of a released pair; known without the truth.")
    if evaluation is None:
        columns[2].metric("Released total", f"{int(release.stages[0].count.sum()):,}", help=f"All {what.data.unit}.")
        columns[3].metric("Budget of this draw", f"ε {float(what.config.epsilon):g}", help="See the Receipt tab.")
        return
    row = evaluation.by_stage.to_dict("records")[2 * level]
    columns[2].metric("Largest error", f"{row['max_error']:,}", help=f"Of any pair of this level, in {what.data.unit}.")
    wrong = f"{row['false_positives']:,} released pairs have no trips in truth; {row['false_negatives']:,} true ones are missing."
    columns[3].metric("False discovery rate", f"{row['false_discovery']:.1f} %", help=wrong)


def _dark() -> bool:
    return st.context.theme.type == "dark"
