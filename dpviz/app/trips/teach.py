"""Teach on the Trips page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.code import show_release_code
from dpviz.app.components.panes import Chosen, canvas_failed, panes
from dpviz.app.first_row import teach_note
from dpviz.app.ledger import record_public_look
from dpviz.app.live import LiveRuns
from dpviz.app.live_controls import LiveControls
from dpviz.app.more_about_maps import more_about_maps
from dpviz.app.one_release import question_of
from dpviz.app.opening import keep_camera, keep_swipe, open_scene
from dpviz.app.page_config import SECOND
from dpviz.app.session import is_dark, show_value, when_chosen
from dpviz.app.streets import streets_wanted
from dpviz.app.trips.filters import choose_filters, chosen_name, chosen_region, offer_all_regions, shown_level, toggle_region
from dpviz.app.trips.state import TRIPS, TripsData, TripsDrawn, join_runs, run_of
from dpviz.app.trips.strip import show_strip
from dpviz.app.trips.tabs import PAIR_TAB, REGION_TAB, fill_in_pair, key_figures, show_tabs
from dpviz.app.two_runs import RIGHT_RUN, Shown, TwoRuns, choose_pane, let_maps_come_first, list_code, show_in_rows
from dpviz.app.words import budget_text, show_chart, show_detail, show_headline, show_verdict
from dpviz.release.verdict import verdict
from dpviz.space.regions import Regions
from dpviz.view.canvas import Pane, Scene, ground_in, names_in
from dpviz.view.escape import html
from dpviz.view.trips_canvas import areas_of, bounds_of, make_pane, names_of_dots
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import (
    ERROR,
    MARKS,
    NOT_LISTED,
    RELEASED,
    SHOWN_TRIPS,
    TRUE,
    ScaleTops,
    TripsDrawing,
    TripsMapSettings,
    as_measured,
    choose_public_tops,
    draw_trips,
    has_geometry,
)
from dpviz.view.trips_map import trips_map

HEIGHT, TALL = 408, 420  # pixels of the canvas with its legends and tools; of one for a projector
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


def show_teach(data: TripsData | None, row: DeltaGenerator, protected: str, *, fits: bool) -> None:
    """Show the maps, the strip and the tabs for public data.

    Args:
        data: public data; None while something is missing.
        row: the first row of the page, for the controls of the maps.
        protected: what a release would protect.
        fits: whether all controls hold choices that fit; if not, the last maps stay.
    """
    if data is None:
        st.info("Choose data on the left to begin.")
        return
    if not record_public_look(data):
        return
    shown, questions = RUNS.follow(data, fits=fits)
    idle, also = "" if shown is None else _stamp(shown.first), None
    if shown is not None and (name := chosen_name(shown.first.releases[0].tree.origins)):
        idle, also = f"{idle} Only {shown.first.data.unit} from and to {name}.", offer_all_regions
    show_in_rows(LIVE, shown, questions, idle, partial(_show_result, row, protected), also)


def _show_result(row: DeltaGenerator, protected: str, shown: Shown, above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Show the maps with their controls, and below the row of the status the strip, the verdict and the tabs."""
    first: TripsDrawn = shown.first
    release = first.releases[0]
    result = replace(verdict(release), counted=first.data.unit)
    level, whose = shown_level(release.tree.origins), RIGHT_RUN if TRIPS.config().shows_second else ""
    view = _choose_view(first, level)
    maps = _make_maps(shown, view) if all(has_geometry(ends, level) for ends in (release.tree.origins, release.tree.destinations)) else None
    with row:
        _pane_controls(shown, level, None if maps is None else maps.scene)
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if TRIPS.config().present:
                show_verdict(result.headline, "", result.rule, whose)
        if maps is None:
            _show_matrices(shown, view)
        elif canvas_failed():
            _show_without_canvas(shown, view)
        else:
            _show_canvas(maps, first.data)
    with below:
        if not TRIPS.config().present:
            show_headline(result.headline, whose)
        _show_strip(shown, level, whose)
        if not TRIPS.config().present:
            show_detail(f"{_describe_false(first, level)} {result.detail}", result.rule)
            _show_notes(maps)
            teach_note(protected)
        let_maps_come_first(TRIPS)
        _show_figures(shown, view)
    TRIPS.write_address()


def _show_strip(shown: Shown, level: int, whose: str) -> None:
    run = describe_run(shown.first)
    title = f"Budget and error of {f'the right map: {run}' if whose else run}."
    title = f"{title} Levels are pairs of regions, from the whole to the finest."
    show_strip(shown.first, level, shown.before, fresh=shown.fresh, title=title)


def _show_notes(maps: Maps | None) -> None:
    """Write what each map leaves out."""
    if maps is not None:
        pairs = zip(maps.scene.panes, maps.drawings, strict=True)
        notes = [f"<b>{html(pane.title)}</b>: {html(drawing.note)}" for pane, drawing in pairs if drawing.note]
        st.html(f'<div class="dpviz-note">{"<br>".join(notes)}</div>')


def _show_figures(shown: Shown, view: TripsMapSettings) -> None:
    first = shown.first
    both = first if shown.second is None or shown.second is first else join_runs(first, shown.second)
    with st.container(key="figures"):
        for index, evaluation in enumerate(both.evaluations):
            key_figures(both, index, evaluation, view.level)
        show_tabs(both, both.evaluations, view)


def _describe_false(what: TripsDrawn, level: int) -> str:
    """Write how many released pairs of a level have no trips, which the noise alone does not say."""
    row = what.evaluations[0].by_stage.to_dict("records")[2 * level]
    return (
        f"Of the {row['released_pairs']:,} pairs released from {row['between']}, {row['false_discovery']:.3g} % have no {what.data.unit}."
    )


def _stamp(what: TripsDrawn) -> str:
    return f"Run {what.number}, seeded: a simulation, not private."


def _pane_controls(shown: Shown, level: int, scene: Scene | None) -> None:
    """Ask what each map shows, and offer the next run, play, undo, the code, and more about the maps."""
    release = shown.first.releases[0]
    listed = release.across is not None and level == release.depth
    kinds = [RELEASED, *SHOWN_TRIPS[1:], *([NOT_LISTED] if listed else [])]
    choose_pane(TRIPS, "left", "Left map", [*kinds, SECOND])
    choose_pane(TRIPS, "shown", "Right map", kinds)
    if scene is not None:
        show_value("marks", TRIPS.config().marks)
        st.segmented_control(
            "Trips as",
            MARKS,
            key="marks",
            required=True,
            label_visibility="collapsed",
            on_change=when_chosen("marks", lambda value: TRIPS.change(marks=value)),
        )
    LIVE.show_buttons()
    show_release_code(shown.first.data, list_code(shown))
    with st.popover("More"):
        choose_filters(release.tree.origins, level, stacked=True)
        show_value("raw", TRIPS.config().raw)
        st.toggle(
            "As measured",
            key="raw",
            help="Counts as first measured or estimated, before post-processing makes them whole and the levels agree.",
            on_change=when_chosen("raw", lambda value: TRIPS.change(raw=value)),
        )
        if scene is not None:
            shows_error = ERROR in (TRIPS.config().left, TRIPS.config().shown)
            more_about_maps(scene, _STREETS, on_earth=True, shows_error=shows_error, on_fit=_fit_scales)


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
    """Return the tops with those of errors that were kept for the level; new ones are kept once a map shows errors."""
    if ERROR not in (TRIPS.config().left, TRIPS.config().shown):
        return tops
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
    leaves_out = drawing.view.shown in (RELEASED, TRUE) and 0 < drawing.drawn < drawing.total
    some = f"the {drawing.drawn:,} largest of {drawing.total:,} pairs" if leaves_out else ""
    pane = make_pane(drawing, areas=run, about=describe_run(what))
    pane = replace(pane, about=", ".join(filter(None, [pane.about, some])))
    return replace(pane, title=f"{pane.title}, second run") if kind == SECOND else pane


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Both maps of the page.

    Attributes:
        scene: with all regions in view.
        drawings: what is drawn on the left and on the right.
    """

    scene: Scene
    drawings: list[TripsDrawing]


def _make_maps(shown: Shown, view: TripsMapSettings) -> Maps:
    how, release = TRIPS.config(), shown.first.releases[0]
    kinds = (how.left, how.shown)
    runs = [_run_of_pane(shown, kind) for kind in kinds]
    drawings = [_draw_pane(what, kind, view) for (_, what), kind in zip(runs, kinds, strict=True)]
    made = [_make_pane(drawing, kind, *run) for drawing, kind, run in zip(drawings, kinds, runs, strict=True)]
    areas: dict[str, Any] = {}
    for drawing, (run, _) in zip(drawings, runs, strict=True):
        areas |= areas_of(drawing, run)
    bounds = bounds_of(release)
    scene = Scene(
        bounds=bounds,
        areas=areas,
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}. {drawings[1].description}",
        dark=is_dark(),
        height=TALL if how.present else HEIGHT,
        text_size=16 if how.present else 12,
        edge=False,
        nothing="No region is here.",
        title=shown.first.data.title,
        caption=verdict(release).headline,
        stamp=_stamp(shown.first),
        link=shown.first.data.bundled,
        ground=ground_in(bounds),
        places=names_of_dots(drawings[-1]) or names_in(bounds),
        streets=streets_wanted(_STREETS),
    )
    return Maps(scene=scene, drawings=drawings)


@st.fragment
def _show_canvas(maps: Maps, data: TripsData) -> None:
    """Show the canvas; a move of the camera runs this function alone."""
    with st.container(key="map"):
        panes(
            open_scene(TRIPS, maps.scene, (data.flows.regions, data.flows.ends)),
            key="trips canvas",
            on_chosen=partial(_take_chosen, data.flows.regions, maps.drawings),
            on_camera=partial(keep_camera, TRIPS),
            on_swipe=partial(keep_swipe, TRIPS),
        )
    if st.session_state.pop(_RERUN, False) or canvas_failed():
        st.rerun()
    TRIPS.write_address()


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
        st.session_state["trips tab"] = REGION_TAB


def _show_matrices(shown: Shown, view: TripsMapSettings) -> None:
    """Show each run as a matrix, for regions without geometry."""
    runs = [shown.first, *([] if shown.second is None else [shown.second])]
    for what, column in zip(runs, st.columns(len(runs)), strict=True):
        with column:
            st.markdown(f"**{describe_run(what)}**")
            show_chart(matrix_chart(what.releases[0], view.level, view.unit))
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
