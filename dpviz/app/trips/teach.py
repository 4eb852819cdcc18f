"""Teach on the Trips page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.code import show_release_code
from dpviz.app.components.panes import Chosen
from dpviz.app.contrasts import compare_with_private, show_contrast
from dpviz.app.first_row import not_private_stamp, teach_note
from dpviz.app.live import LiveRuns
from dpviz.app.live_controls import LiveControls
from dpviz.app.more_about_maps import more_about_maps
from dpviz.app.page_config import SECOND
from dpviz.app.session import is_dark
from dpviz.app.teach_maps import describe_run, finish_scene, may_be_shown, note_canvas_change, raw_switch, run_of_pane, show_canvas
from dpviz.app.trips.filters import choose_filters, chosen_name, chosen_region, offer_all_regions, shown_level
from dpviz.app.trips.state import TRIPS, TripsData, TripsDrawn, join_runs, run_of
from dpviz.app.trips.strip import show_strip
from dpviz.app.trips.tabs import key_figures, show_tabs, take_chosen
from dpviz.app.two_runs import LEFT_RUN, RIGHT_RUN, ShownRun, TwoRuns, choose_pane, let_maps_come_first, list_code, show_in_rows
from dpviz.app.words import show_chart, show_detail, show_headline, show_verdict
from dpviz.mechanisms import TopDown
from dpviz.publishing.dry_run import WantedError
from dpviz.release.verdict import verdict
from dpviz.space.regions import Regions
from dpviz.view.canvas import Pane, Scene, on_land
from dpviz.view.escape import html, markdown
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

HEIGHT, TALL = 408, 420  # pixels of the canvas with its legends and tools; of one for a projector
MOST_PAIRS = 3_000_000  # pairs of all runs that a session keeps
_STREETS = "street map of trips"


class TripRuns(LiveRuns):
    """The runs of the Trips page."""


def _weigh(what: TripsDrawn) -> float:
    """Return the number of pairs that a run keeps, over all stages."""
    return float(sum(len(stage.count) for release in what.releases for stage in release.stages))


LIVE = LiveControls(page_state=TRIPS, kind=TripRuns, weigh=_weigh, room=MOST_PAIRS)
RUNS = TwoRuns(
    live=LIVE,
    run_of=run_of,
    has_frame=lambda what, data: what.data.trips.regions == data.trips.regions and what.data.trips.ends == data.trips.ends,
)


def show_teach(data: TripsData | None, row: DeltaGenerator, protected: str, fits: bool) -> None:
    """Show the maps, the strip and the tabs for public data, see `ShowTeach`."""
    if not may_be_shown(data):
        return
    shown, questions = RUNS.follow(data, fits=fits)
    idle, also = "" if shown is None else _stamp_maps(shown), None
    if shown is not None and (name := chosen_name(shown.first.releases[0].tree.origins)):
        idle, also = f"{idle} Only {shown.first.data.unit} from and to {name}.", offer_all_regions
    show_in_rows(LIVE, shown, questions, idle, partial(_show_result, row, protected), also)


def _show_result(row: DeltaGenerator, protected: str, shown: ShownRun, above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Show the maps with their controls, and below the row of the status the strip, the verdict and the tabs."""
    first: TripsDrawn = shown.first
    regions = first.data.trips.regions
    release = first.releases[0]
    result = replace(verdict(release), counted=first.data.unit) if release.states_noise else None
    level, whose = shown_level(release.tree.origins), RIGHT_RUN if TRIPS.config().shows_second else ""
    view = _choose_view(first, level)
    maps = _make_maps(shown, view) if all(has_geometry(ends, level) for ends in (release.tree.origins, release.tree.destinations)) else None
    with row:
        _pane_controls(shown, level, None if maps is None else maps.scene)
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if not release.receipt.private:
                st.html(not_private_stamp(type(first.config.build())))
            if TRIPS.config().present and result is not None:
                show_verdict(result.headline, "", result.rule, whose)
        if maps is None:
            _show_matrices(shown, view)
        else:
            show_canvas(TRIPS, maps.scene, (regions, first.data.trips.ends), partial(_take_chosen, regions, maps.drawings))
    with below:
        if not TRIPS.config().present and result is not None:
            show_headline(result.headline, whose)
        _show_contrasts(shown, level)
        _show_strip(shown, level, whose)
        if not TRIPS.config().present:
            if result is None:
                st.markdown(markdown(_describe_false(first, level)))
            else:
                show_detail(f"{_describe_false(first, level)} {result.detail}", result.rule)
            _show_notes(maps)
            teach_note(protected)
        let_maps_come_first(TRIPS)
        _show_figures(shown, view)
    TRIPS.write_address()


def _show_contrasts(shown: ShownRun, level: int) -> None:
    """Say of each run on the maps that is a contrast why it is not private, and which ε makes TopDown as useful."""
    for what, whose in ((shown.first, RIGHT_RUN), (shown.second, LEFT_RUN)):
        if what is not None and (mechanism := type(what.config.build())).attack:
            row = what.evaluations[0].by_stage.to_dict("records")[2 * level]
            wanted = WantedError(error=float(row["rms_error_present"]), level=level, delta=float(what.config.delta))
            where = f"pairs from {row['between']}"
            show_contrast(
                TRIPS,
                mechanism,
                what.releases[0].receipt,
                compare_with_private(TopDown(), what.data.trips, wanted, where, what.data.unit),
                whose if TRIPS.config().shows_second else "",
            )


def _show_strip(shown: ShownRun, level: int, whose: str) -> None:
    run = _describe_run(shown.first)
    title = f"Budget and error of {f'the right map: {run}' if whose else run}."
    title = f"{title} Levels are pairs of regions, from the whole to the finest."
    show_strip(shown, level, title)


def _show_notes(maps: Maps | None) -> None:
    """Write what each map leaves out."""
    if maps is not None:
        pairs = zip(maps.scene.panes, maps.drawings, strict=True)
        notes = [f"<b>{html(pane.title)}</b>: {html(drawing.note)}" for pane, drawing in pairs if drawing.note]
        st.html(f'<div class="dpviz-note">{"<br>".join(notes)}</div>')


def _show_figures(shown: ShownRun, view: TripsMapSettings) -> None:
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


def _stamp_maps(shown: ShownRun) -> str:
    """Write what the right map's run is; and if the left map's is not private, that, too."""
    second = shown.second
    return f"{_stamp(shown.first)}{'' if second is None or second.releases[0].receipt.private else ' Left map: NOT PRIVATE.'}"


def _stamp(what: TripsDrawn) -> str:
    if not what.releases[0].receipt.private:
        return f"NOT PRIVATE, run {what.number}: a contrast, which must never be published."
    return f"Run {what.number}, seeded: a simulation, not private."


def _pane_controls(shown: ShownRun, level: int, scene: Scene | None) -> None:
    """Ask what each map shows, and offer the next run, play, undo, the code, and more about the maps."""
    release = shown.first.releases[0]
    listed = release.half_step_sums is not None and level == release.depth
    kinds = [RELEASED, *SHOWN_TRIPS[1:], *([NOT_LISTED] if listed else [])]
    choose_pane(TRIPS, "left", "Left map", [*kinds, SECOND])
    choose_pane(TRIPS, "shown", "Right map", kinds)
    if scene is not None:
        st.segmented_control("Trips as", MARKS, required=True, label_visibility="collapsed", **TRIPS.widget("marks"))
    LIVE.show_buttons()
    show_release_code(shown.first.data, list_code(shown))
    with st.popover("More"):
        choose_filters(release.tree.origins, level, stacked=True)
        raw_switch(TRIPS, " or estimated, before post-processing makes them whole and the levels agree.")
        if scene is not None:
            more_about_maps(TRIPS, scene, _STREETS)


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


def _draw_pane(what: TripsDrawn, kind: str, view: TripsMapSettings) -> TripsDrawing:
    release, truth = what.releases[0], what.evaluations[0].true_level(view.level)
    shown = RELEASED if kind == SECOND else kind
    return draw_trips(as_measured(release) if TRIPS.config().raw else release, replace(view, shown=shown), truth)


def _describe_run(what: TripsDrawn) -> str:
    return describe_run(what.titles[0], what.config)


def _make_pane(drawing: TripsDrawing, kind: str, run: str, what: TripsDrawn) -> Pane:
    leaves_out = drawing.view.shown in (RELEASED, TRUE) and 0 < drawing.drawn < drawing.total
    some = f"the {drawing.drawn:,} largest of {drawing.total:,} pairs" if leaves_out else ""
    pane = make_pane(drawing, areas=run, about=_describe_run(what))
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


def _make_maps(shown: ShownRun, view: TripsMapSettings) -> Maps:
    how, release = TRIPS.config(), shown.first.releases[0]
    kinds = (how.left, how.shown)
    runs = [run_of_pane(shown, kind) for kind in kinds]
    drawings = [_draw_pane(what, kind, view) for (_, what), kind in zip(runs, kinds, strict=True)]
    made = [_make_pane(drawing, kind, *run) for drawing, kind, run in zip(drawings, kinds, runs, strict=True)]
    areas: dict[str, Any] = {}
    for drawing, (run, _) in zip(drawings, runs, strict=True):
        areas |= areas_of(drawing, run)
    scene = Scene(
        bounds=bounds_of(release),
        areas=areas,
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}. {drawings[1].description}",
        dark=is_dark(),
        height=TALL if how.present else HEIGHT,
        caption=verdict(release).headline if release.states_noise else "",
        stamp=_stamp_maps(shown),
    )
    scene = on_land(scene)
    scene = replace(scene, places=names_of_dots(drawings[-1]) or scene.places)
    return Maps(scene=finish_scene(TRIPS, scene, shown.first.data, _STREETS), drawings=drawings)


def _take_chosen(regions: Regions, drawings: list[TripsDrawing], chosen: Chosen) -> None:
    """Take what was clicked on one of the maps."""
    if chosen.pane < len(drawings) and take_chosen(regions, drawings[chosen.pane], chosen):
        note_canvas_change(TRIPS)


def _show_matrices(shown: ShownRun, view: TripsMapSettings) -> None:
    """Show each run as a matrix, for regions without geometry."""
    runs = [shown.first, *([] if shown.second is None else [shown.second])]
    for what, column in zip(runs, st.columns(len(runs)), strict=True):
        with column:
            st.markdown(f"**{_describe_run(what)}**")
            show_chart(matrix_chart(what.releases[0], view.level, view.unit))
    st.caption(f"These regions have neither outlines nor coordinates: a matrix stands for the map. {MATRIX_CAPTION}")
