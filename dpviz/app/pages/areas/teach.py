"""The maps of the Areas page: two choropleths in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.components.code import show_release_code
from dpviz.app.components.panes import Chosen
from dpviz.app.modes.contrasts import show_contrasts
from dpviz.app.modes.live_runs import LiveControls
from dpviz.app.modes.map_menu import more_about_maps
from dpviz.app.modes.second_run import ShownRun, TwoRuns, choose_pane, list_code, show_in_rows
from dpviz.app.modes.teach import (
    TeachParts,
    describe_run,
    draw_maps,
    keep_error_tops,
    make_scene,
    may_be_shown,
    note_canvas_change,
    raw_switch,
    show_canvas,
    show_parts,
)
from dpviz.app.pages.areas.level import asked_regions, choose_measure, shown_level, shown_measure, shown_rate, toggle_asked
from dpviz.app.pages.areas.state import AREAS, RELEASES, AreasData, AreasDrawn
from dpviz.app.pages.areas.strip import show_strip
from dpviz.app.pages.areas.tabs import ASK_TAB, describe_sum, key_figures, offer_no_regions, show_tabs
from dpviz.app.session.widgets import is_dark
from dpviz.app.state.values import MEASURES, SECOND
from dpviz.mechanisms import RegionTree
from dpviz.publishing.dry_run import WantedError
from dpviz.release.verdict import Verdict, verdict, with_false_positives
from dpviz.space.regions import Regions
from dpviz.view.areas_canvas import areas_of, make_pane
from dpviz.view.areas_drawing import (
    SHOWN_AREAS,
    AreasDrawing,
    AreasMapSettings,
    choose_tops,
    draw_areas,
)
from dpviz.view.canvas import Pane, Scene, on_land

HEIGHT, TALL = 450, 440  # pixels of the canvas with its legends and tools; of one for a projector
MOST_REGIONS = 2_000_000  # regions of all runs that a session keeps
_STREETS = "street map of areas"


LIVE = LiveControls(page_state=AREAS, weigh=lambda what: float(len(what.release.count)), room=MOST_REGIONS)
RUNS = TwoRuns(live=LIVE, run_of=RELEASES.run, has_frame=lambda what, data: what.data.counts.regions == data.counts.regions)


def show_teach(data: AreasData | None, row: DeltaGenerator, protected: str, fits: bool) -> None:
    """Show the maps, the strip and the tabs for public data, see `ShowTeach`."""
    if not may_be_shown(data):
        return
    shown, questions = RUNS.follow(data, fits=fits)
    idle, also = "" if shown is None else f"{_stamp(shown.first)} {_describe_asked(shown.first)}", None
    if shown is not None and asked_regions(shown.first.data.counts.regions):
        also = offer_no_regions
    show_in_rows(LIVE, shown, questions, idle, partial(_show_result, row, protected), also)


def verdict_of(what: AreasDrawn) -> Verdict:
    """Return the verdict on a run, in the words of its data."""
    found, table = replace(verdict(what.release), counted=what.data.unit), what.compared.by_level
    return with_false_positives(found, table["empty"].tolist(), table["false_positives"].tolist())


def _show_result(row: DeltaGenerator, protected: str, shown: ShownRun, above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Show the maps, and what stands around and under them."""
    first: AreasDrawn = shown.first
    result, regions = verdict_of(first), first.data.counts.regions
    level = shown_level(regions)
    scene, drawings = (None, []) if first.data.on_map.shapes(level) is None else _make_scene(shown)

    def show_maps() -> None:
        if scene is None:
            st.caption("These regions have neither outlines nor coordinates: the tab *Table* has their counts.")
        else:
            show_canvas(AREAS, scene, regions, partial(_take_chosen, regions, drawings))

    def wanted_of(what: AreasDrawn) -> tuple[WantedError, str]:
        row = what.compared.by_level.to_dict("records")[level]
        return WantedError(error=float(row["rmse"]), level=level), f"regions of level {row['name']}"

    def show_figures() -> None:
        for what in shown.runs:
            key_figures(what, what.evaluation, level)
        show_tabs(shown.runs, [what.evaluation for what in shown.runs], level)

    parts = TeachParts(
        verdict=result,
        detail=f"{result.detail} {_describe_narrow(first, level)}".strip(),
        controls=lambda: _pane_controls(shown, scene),
        maps=show_maps,
        contrasts=lambda: show_contrasts(AREAS, shown, RegionTree(), wanted_of),
        strip=lambda title: show_strip(shown, level, f"{title} Levels are those of the regions, the whole first."),
        figures=show_figures,
    )
    show_parts(AREAS, first, (row, above, below), protected, parts)


def _describe_narrow(what: AreasDrawn, level: int) -> str:
    """Write for how many regions of a level the count is well known, which the noise on an average region does not say."""
    if not what.release.states_noise:
        return ""
    row = what.compared.by_level.to_dict("records")[level]
    return f"Of its regions, {row['narrow']:.3g} % have an interval narrower than half their count."


def _stamp(what: AreasDrawn) -> str:
    status = "seeded: a simulation, not private" if what.release.receipt.private else "NOT PRIVATE"
    return f"Run {what.number}, {status}."


def _describe_asked(what: AreasDrawn) -> str:
    """Write the sum of the regions that are asked for, or how to ask."""
    regions = what.data.counts.regions
    asked = asked_regions(regions)
    return describe_sum(what, what.compared, shown_level(regions), list(asked)) if asked else "Click regions on a map to add them up."


def _pane_controls(shown: ShownRun, scene: Scene | None) -> None:
    """Ask what each map shows, and offer the next run, play, undo, the code, and more about the maps."""
    data: AreasData = shown.first.data
    choose_pane(AREAS, "left", "Left map", [*SHOWN_AREAS, SECOND])
    choose_pane(AREAS, "shown", "Right map", list(SHOWN_AREAS))
    choose_measure(data)
    LIVE.show_buttons()
    show_release_code(data, list_code(shown))
    with st.popover("More"):
        raw_switch(AREAS, ", before least squares makes the levels agree.")
        if scene is not None:
            more_about_maps(AREAS, scene, _STREETS)


def _choose_view(what: AreasDrawn) -> AreasMapSettings:
    """Choose the settings that all maps share; scales are those of the public counts, those of errors are kept."""
    rate = shown_rate(what.data)
    view = AreasMapSettings(
        level=shown_level(what.data.counts.regions),
        rate=rate,
        also=next(iter(what.data.denominators.values()), None),
        raw=AREAS.view.raw,
        unit=what.data.unit,
        dark=is_dark(),
    )
    tops = choose_tops(what.release, view, what.compared.truth[view.level])
    name = f"error {view.level} {MEASURES.index(shown_measure(what.data))}"
    return replace(view, tops=replace(tops, error=keep_error_tops(AREAS, {name: tops.error})[name]))


def _make_pane(drawing: AreasDrawing, what: AreasDrawn, run: str) -> Pane:
    return make_pane(drawing, areas=run, about=describe_run(what), chosen=asked_regions(what.data.counts.regions))


def _make_scene(shown: ShownRun) -> tuple[Scene, list[AreasDrawing]]:
    """Return both maps, with all regions in view, and what is drawn on each."""
    first, view = shown.first, _choose_view(shown.first)

    def draw(what: AreasDrawn, kind: str) -> AreasDrawing:
        return draw_areas(what.release, what.data.on_map, replace(view, shown=kind), what.compared.truth[view.level])

    maps = draw_maps(AREAS, shown, draw, _make_pane)
    scene = make_scene(
        AREAS,
        first.data,
        [each.pane for each in maps],
        f". {maps[1].drawing.description}",
        streets=_STREETS,
        heights=(HEIGHT, TALL),
        bounds=first.data.on_map.bounds,
        areas={each.run: areas_of(each.drawing) for each in maps},
        caption=verdict_of(first).headline,
        stamp=_stamp(first),
    )
    return on_land(scene), [each.drawing for each in maps]


def _take_chosen(regions: Regions, drawings: list[AreasDrawing], chosen: Chosen) -> None:
    """Ask for the region that was clicked."""
    if chosen.cell is None or chosen.kind != "area" or chosen.pane >= len(drawings):
        return
    if chosen.cell < len(drawings[chosen.pane].areas.size):
        toggle_asked(regions, chosen.cell)
        st.session_state["areas tab"] = ASK_TAB
        note_canvas_change(AREAS)
