"""Teach on the Trips page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.components.panes import Chosen, canvas_failed, panes
from dpviz.app.ledger import record_public_look
from dpviz.app.live import LiveRuns
from dpviz.app.live_controls import LiveControls
from dpviz.app.opening import keep_camera, keep_swipe, opening
from dpviz.app.page_config import SECOND
from dpviz.app.session import is_dark, show_value, when_chosen
from dpviz.app.streets import streets_switch, streets_wanted
from dpviz.app.trips.filters import choose_filters, chosen_region, shown_level, toggle_region
from dpviz.app.trips.state import TRIPS, TripsData, TripsDrawn, join_runs, question_of, run_of
from dpviz.app.trips.strip import show_strip
from dpviz.app.trips.tabs import PAIR_TAB, fill_in_pair, key_figures, show_tabs
from dpviz.app.two_runs import RIGHT_RUN, Shown, TwoRuns, choose_pane, show_in_rows
from dpviz.app.words import budget_text, show_verdict
from dpviz.release.verdict import verdict
from dpviz.space.regions import Regions
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Pane, Scene, ground_in, names_in
from dpviz.view.escape import html
from dpviz.view.scene_svg import draw_svg
from dpviz.view.trips_canvas import areas_of, bounds_of, make_pane, names_of_dots
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import (
    ERROR,
    MARKS,
    NOT_LISTED,
    RELEASED,
    SHOWN_TRIPS,
    ScaleTops,
    TripsDrawing,
    TripsMapSettings,
    as_measured,
    choose_public_tops,
    draw_trips,
    has_geometry,
)
from dpviz.view.trips_map import trips_map

HEIGHT, TALL = 450, 560  # pixels of the canvas with its legends and tools; of one for a projector
MAP_WIDTH = 390  # pixels of one of two maps without the canvas
MOST_PAIRS = 3_000_000  # pairs of all runs that a session keeps
_STREETS = "street map of trips"
_RERUN = "canvas of trips changed the page"


class TripRuns(LiveRuns):
    """The runs of the Trips page."""


def _weigh(what: TripsDrawn) -> float:
    """Return the number of pairs that a run keeps, over all stages."""
    return float(sum(len(stage.count) for release in what.releases for stage in release.stages))


LIVE = LiveControls(page_state=TRIPS, kind=TripRuns, weigh=_weigh, room=MOST_PAIRS)
RUNS = TwoRuns(
    live=LIVE,
    question_of=question_of,
    run_of=run_of,
    has_frame=lambda what, data: what.data.flows.regions == data.flows.regions and what.data.flows.ends == data.flows.ends,
)


def show_teach(data: TripsData, *, fits: bool) -> None:
    """Show the maps, the strip and the tabs for public data.

    Args:
        data: public data.
        fits: whether all controls hold choices that fit; if not, the last maps stay.
    """
    if not record_public_look(data):
        return
    shown, questions = RUNS.follow(data, fits=fits)
    idle = "" if shown is None else _stamp(shown.first)
    show_in_rows(LIVE, shown, questions, idle, _show_result)


def _show_result(shown: Shown, above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Show the maps with their controls, and below the row of the status the strip, the verdict and the tabs."""
    first: TripsDrawn = shown.first
    release, present = first.releases[0], TRIPS.config().present
    regions, result = release.tree.origins, replace(verdict(release), counted=first.data.unit)
    level, whose = shown_level(regions), RIGHT_RUN if TRIPS.config().shows_second else ""
    drawable, view = has_geometry(regions, level) and has_geometry(release.tree.destinations, level), _choose_view(first, level)
    with above:
        _pane_controls(first, level, drawable=drawable)
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if present:
                show_verdict(result.headline, "", result.rule, whose)
        if not drawable:
            _show_matrices(shown, view)
        elif canvas_failed():
            _show_without_canvas(shown, view)
        else:
            _show_canvas(shown, view)
    both = first if shown.second is None or shown.second is first else join_runs(first, shown.second)
    with below:
        title = f"Budget and error of {f'the right map: {describe_run(first)}' if whose else describe_run(first)}."
        show_strip(
            first, level, shown.before, fresh=shown.fresh, title=f"{title} Levels are pairs of regions, from the whole to the finest."
        )
        if not present:
            show_verdict(result.headline, f"{_describe_false(first, level)} {result.detail}", result.rule, whose)
        with st.container(key="figures"):
            for index, evaluation in enumerate(both.evaluations):
                key_figures(both, index, evaluation, level)
            show_tabs(both, both.evaluations, view)
    TRIPS.write_address()


def _describe_false(what: TripsDrawn, level: int) -> str:
    """Write how many released pairs of a level have no trips, which the noise alone does not say."""
    row = what.evaluations[0].by_stage.to_dict("records")[2 * level]
    return (
        f"Of the {row['released_pairs']:,} pairs released from {row['between']}, {row['false_discovery']:.3g} % have no {what.data.unit}."
    )


def _stamp(what: TripsDrawn) -> str:
    return f"Run {what.number}, seeded: a simulation, not private."


def _pane_controls(what: TripsDrawn, level: int, *, drawable: bool) -> None:
    """Ask what each map shows, and offer the next run, play, undo and new colour scales."""
    release = what.releases[0]
    listed = release.across is not None and level == release.depth
    kinds = [RELEASED, *SHOWN_TRIPS[1:], *([NOT_LISTED] if listed else [])]
    left, right, more = st.columns([3, 3, 6], vertical_alignment="bottom")
    choose_pane(TRIPS, left, "left", "Left map", [*kinds, SECOND])
    choose_pane(TRIPS, right, "shown", "Right map", kinds)
    with more.container(horizontal=True, vertical_alignment="center"):
        LIVE.show_buttons()
        if drawable:
            show_value("marks", TRIPS.config().marks)
            st.segmented_control(
                "Trips as",
                MARKS,
                key="marks",
                required=True,
                label_visibility="collapsed",
                on_change=when_chosen("marks", lambda value: TRIPS.change(marks=value)),
            )
        st.button(
            "Fit scale",
            key="fit scale",
            help="Choose the scale of errors for this run.",
            on_click=_fit_scales,
            disabled=ERROR not in (TRIPS.config().left, TRIPS.config().shown),
        )
        with st.popover("Filter"):
            choose_filters(release.tree.origins, level, stacked=True)
            show_value("raw", TRIPS.config().raw)
            st.toggle(
                "As measured",
                key="raw",
                help="Counts as first measured or estimated, before post-processing makes them whole and the levels agree.",
                on_change=when_chosen("raw", lambda value: TRIPS.change(raw=value)),
            )


def _fit_scales() -> None:
    TRIPS.change_for_good(scales={})


def _choose_view(what: TripsDrawn, level: int) -> TripsMapSettings:
    """Choose the settings that all maps share; scales are those of the public trips, those of errors are kept."""
    how, release = TRIPS.config(), what.releases[0]
    view = TripsMapSettings(
        level=level,
        marks=how.marks,
        top=how.top,
        least=how.least,
        pairs=how.pairs,
        chosen=chosen_region(release.tree.origins, level),
        unit=what.data.unit,
        dark=is_dark(),
        width=MAP_WIDTH,
        height=HEIGHT,
    )
    return replace(view, tops=_keep_tops(choose_public_tops(release, what.evaluations[0].true_level(level), view), level))


def _keep_tops(tops: ScaleTops, level: int) -> ScaleTops:
    """Return the tops with those of errors that were kept for the level; new ones are kept."""
    names, scales = {"error": f"error {level}", "area_error": f"area error {level}"}, TRIPS.config().scales
    missing = {name: getattr(tops, part) for part, name in names.items() if name not in scales}
    if missing:
        scales = {**scales, **missing}
        TRIPS.change_for_good(scales=scales)
    return replace(tops, **{part: scales[name] for part, name in names.items()})


def _run_of_pane(shown: Shown, kind: str) -> tuple[str, TripsDrawn]:
    """Return the name of the run that a map shows, and the run."""
    return ("second", shown.second) if kind == SECOND and shown.second is not None else ("first", shown.first)


def _draw_pane(what: TripsDrawn, kind: str, view: TripsMapSettings) -> TripsDrawing:
    release, truth = what.releases[0], what.evaluations[0].true_level(view.level)
    shown = RELEASED if kind == SECOND else kind
    return draw_trips(as_measured(release) if TRIPS.config().raw else release, replace(view, shown=shown), truth)


def describe_run(what: TripsDrawn) -> str:
    """Write how a run was made: mechanism, budget and number."""
    how = what.config
    return f"{what.titles[0]}, {budget_text(how.epsilon, how.delta if how.build().needs_delta else 0)}, run {what.number}"


def _make_pane(drawing: TripsDrawing, kind: str, run: str, what: TripsDrawn) -> Pane:
    pane = make_pane(drawing, areas=run, about=describe_run(what))
    return replace(pane, title=f"{pane.title}, second run") if kind == SECOND else pane


@st.fragment
def _show_canvas(shown: Shown, view: TripsMapSettings) -> None:
    """Show the canvas; a move of the camera runs this function alone."""
    how, data = TRIPS.config(), shown.first.data
    kinds = (how.left, how.shown)
    runs = [_run_of_pane(shown, kind) for kind in kinds]
    drawings = [_draw_pane(what, kind, view) for (_, what), kind in zip(runs, kinds, strict=True)]
    made = [_make_pane(drawing, kind, *run) for drawing, kind, run in zip(drawings, kinds, runs, strict=True)]
    areas: dict[str, Any] = {}
    for drawing, (run, _) in zip(drawings, runs, strict=True):
        areas |= areas_of(drawing, run)
    bounds, opens = bounds_of(shown.first.releases[0]), opening(TRIPS, (data.flows.regions, data.flows.ends))
    dots = names_of_dots(drawings[-1])
    scene = Scene(
        bounds=bounds,
        areas=areas,
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}. {drawings[1].description}",
        dark=is_dark(),
        height=TALL if how.present else HEIGHT,
        text_size=16 if how.present else 12,
        camera=opens.camera,
        swipe=opens.swipe,
        visit=opens.visit,
        edge=False,
        nothing="No region is here.",
        title=data.title,
        caption=verdict(shown.first.releases[0]).headline,
        stamp=_stamp(shown.first),
        link=data.bundled,
        ground=ground_in(bounds),
        places=dots or names_in(bounds),
        streets=streets_wanted(_STREETS),
    )
    clicked = partial(_take_chosen, data.flows.regions, drawings)
    with st.container(key="map"):
        panes(
            scene.pack(),
            key="trips canvas",
            on_box=_ignore,
            on_chosen=clicked,
            on_camera=partial(keep_camera, TRIPS),
            on_swipe=partial(keep_swipe, TRIPS),
        )
    notes = [f"<b>{html(pane.title)}</b>: {html(drawing.note)}" for pane, drawing in zip(made, drawings, strict=True)]
    with st.container(horizontal=True, vertical_alignment="center"):
        streets_switch(_STREETS)
        st.html(f'<div class="dpviz-note">{"<br>".join(notes)}</div>', width="stretch")
        st.download_button(
            "SVG",
            partial(draw_svg, scene),
            "dpviz.svg",
            "image/svg+xml",
            on_click="ignore",
            key="svg",
            help="Both maps with titles, legends, caption and stamp, for print.",
        )
    if st.session_state.pop(_RERUN, False) or canvas_failed():
        st.rerun()
    TRIPS.write_address()


def _ignore(_: Bounds) -> None:
    """Take no notice of a box: trips are not asked for by boxes."""


def _take_chosen(regions: Regions, drawings: list[TripsDrawing], chosen: Chosen) -> None:
    """Choose the region that was clicked, or put the ends of an arc into the tab of pairs."""
    if chosen.cell is None or chosen.pane >= len(drawings):
        return
    drawing = drawings[chosen.pane]
    st.session_state[_RERUN] = True
    if chosen.kind == "arc" and chosen.cell < len(drawing.arcs.origin):
        origin, destination = (int(ends[chosen.cell]) for ends in (drawing.arcs.origin, drawing.arcs.destination))
        fill_in_pair(regions, drawing.view.level, origin, destination)
        st.session_state["trips tab"] = PAIR_TAB
    elif chosen.kind == "area" and chosen.cell < len(drawing.areas[0].size):
        toggle_region(chosen.cell)


def _show_matrices(shown: Shown, view: TripsMapSettings) -> None:
    """Show each run as a matrix, for regions without geometry."""
    runs = [shown.first, *([] if shown.second is None else [shown.second])]
    for what, column in zip(runs, st.columns(len(runs)), strict=True):
        with column:
            st.markdown(f"**{describe_run(what)}**")
            st.altair_chart(matrix_chart(what.releases[0], view.level, view.unit), width="stretch")
    st.caption(f"These regions have neither outlines nor coordinates: a matrix stands for the map. {MATRIX_CAPTION}")


def _show_without_canvas(shown: Shown, view: TripsMapSettings) -> None:
    """Show the same maps by Streamlit's own map, where the browser could not load the canvas."""
    st.caption(":orange[This browser could not load the map library: the maps are shown one by one, without a common view.]")
    how = TRIPS.config()
    for name, column in zip(("left", "shown"), st.columns(2), strict=True):
        kind = getattr(how, name)
        what = _run_of_pane(shown, kind)[1]
        seen = replace(view, shown=RELEASED if kind == SECOND else kind)
        picture = trips_map(what.releases[0], seen, what.evaluations[0].true_level(view.level))
        with column:
            st.pydeck_chart(picture.deck, height=HEIGHT, key=f"trips map {name}", alt=picture.description)
            st.html(picture.legend + f'<div class="dpviz-note">{html(picture.note)}</div>')
