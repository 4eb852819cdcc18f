"""Teach on the Trips page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.words import show_chart
from dpviz.app.modes.contrasts import show_contrasts
from dpviz.app.modes.family_page import TeachParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.modes.teach import describe_run, draw_maps, keep_error_tops, make_scene, stamp_maps
from dpviz.app.pages.trips.filters import choose_filters, chosen_name, make_settings, offer_all_regions, shown_level
from dpviz.app.pages.trips.levels import make_rail
from dpviz.app.pages.trips.state import TRIPS, TripsDrawn
from dpviz.app.pages.trips.tabs import show_figures, show_questions, take_chosen
from dpviz.app.state.values import ORDINALS
from dpviz.app.state.view import Pane as ViewedPane
from dpviz.mechanisms import TopDown
from dpviz.publishing.dry_run import WantedError
from dpviz.release.verdict import verdict
from dpviz.space.regions import Regions
from dpviz.view.canvas import Pane, Scene, on_land
from dpviz.view.escape import html
from dpviz.view.trips_canvas import areas_of, bounds_of, make_pane, names_of_dots
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import (
    MARKS,
    NOT_LISTED,
    RELEASED,
    SHOWN_TRIPS,
    TRUE,
    TripsDrawing,
    TripsMapSettings,
    as_measured,
    choose_public_tops,
    draw_trips,
    has_geometry,
)


def describe_idle(shown: ShownRuns) -> tuple[str, Callable[[], object] | None]:
    """Write what the runs are, of which region alone the maps show trips, with the button that shows those of all, and what counts lack."""
    release, unit = shown.first.release, shown.first.data.unit
    name = chosen_name(release.tree.origins)
    lacks = replace(verdict(release), counted=unit).lacks if release.states_noise else ""
    only = f"Only {unit} from and to {name}." if name else ""
    return " ".join(filter(None, [stamp_maps(shown), only, lacks])), offer_all_regions if name else None


def make_teach(shown: ShownRuns) -> TeachParts:
    """Return what the page shows of its runs."""
    first: TripsDrawn = shown.first
    release = first.release
    tree = release.tree
    level = shown_level(tree.origins)
    rail = make_rail(shown, level)
    view = _choose_view(first, level)
    on_map = all(has_geometry(ends, level) for ends in (tree.origins, tree.destinations))
    scene, drawings = _make_scene(shown, view, rail.sentence) if on_map else (None, [])
    listed = release.half_step_sums is not None and level == release.depth

    def wanted_of(what: TripsDrawn) -> tuple[WantedError, str]:
        row = what.compared.by_stage.to_dict("records")[2 * level]
        wanted = WantedError(error=float(row["rms_error_present"]), level=level, delta=float(what.draft.run.delta or 0))
        return wanted, f"pairs from {row['between']}"

    return TeachParts(
        kinds=[RELEASED, *SHOWN_TRIPS[1:], *([NOT_LISTED] if listed else [])],
        choose=partial(_choose_trips, tree.origins, level, scene, drawings),
        scene=scene,
        drawings=drawings,
        take_chosen=partial(take_chosen, first.data.counts.regions),
        without_map=lambda: _show_matrices(shown, view),
        contrasts=lambda: show_contrasts(TRIPS, shown, TopDown(), wanted_of),
        rail=rail,
        ask=lambda: show_questions(shown.different, [run.compared for run in shown.different], view),
        figures=lambda: show_figures(shown.different, [run.compared for run in shown.different], view),
    )


def _choose_trips(regions: Regions, level: int, scene: Scene | None, drawings: list[TripsDrawing]) -> None:
    """Ask how trips are drawn, and which, and write what each map leaves out."""
    if scene is not None:
        st.segmented_control("Trips as", MARKS, required=True, label_visibility="collapsed", **TRIPS.widget("view", "marks"))
    choose_filters(regions, level, stacked=True)
    if scene is not None:
        pairs = zip(scene.panes, drawings, strict=True)
        notes = [f"<b>{html(pane.title)}</b>: {html(drawing.note)}" for pane, drawing in pairs if drawing.note]
        st.html(f'<div class="dpviz-note">{"<br>".join(notes)}</div>')


def _choose_view(what: TripsDrawn, level: int) -> TripsMapSettings:
    """Choose the settings that all maps share; scales are those of the public trips, those of errors are kept."""
    view = replace(make_settings(what, level), marks=TRIPS.view.marks)
    tops = choose_public_tops(what.release, what.compared.true_level(level), view)
    names = {"error": f"error {level}", "area_error": f"area error {level}"}
    kept = keep_error_tops(TRIPS, {name: getattr(tops, part) for part, name in names.items()})
    return replace(view, tops=replace(tops, error=kept[names["error"]], area_error=kept[names["area_error"]]))


def _draw(what: TripsDrawn, view: TripsMapSettings, kind: str) -> TripsDrawing:
    release = as_measured(what.release) if TRIPS.view.raw else what.release
    return draw_trips(release, replace(view, shown=kind), what.compared.true_level(view.level))


def _make_pane(drawing: TripsDrawing, what: TripsDrawn, shown: ViewedPane) -> Pane:
    leaves_out = drawing.view.shown in (RELEASED, TRUE) and 0 < drawing.drawn < drawing.total
    some = f"{drawing.drawn:,} largest of {drawing.total:,} pairs" if leaves_out else ""
    pane = make_pane(drawing, areas=ORDINALS[shown.run], about=describe_run(what))
    return replace(pane, about=", ".join(filter(None, [pane.about, some])))


def _make_scene(shown: ShownRuns, view: TripsMapSettings, caption: str) -> tuple[Scene, list[TripsDrawing]]:
    """Return the maps, with all regions in view, and what is drawn on each."""
    release = shown.first.release
    maps = draw_maps(shown, lambda what, pane: _draw(what, view, pane.shows), _make_pane)
    areas: dict[str, Any] = {}
    for each in maps:
        areas |= areas_of(each.drawing, each.run)
    main = maps[TRIPS.view.main].drawing
    scene = on_land(
        make_scene(
            [each.pane for each in maps],
            f". {main.description}",
            bounds=bounds_of(release),
            areas=areas,
            caption=caption,
            stamp=stamp_maps(shown),
        )
    )
    return replace(scene, places=names_of_dots(main) or scene.places), [each.drawing for each in maps]


def _show_matrices(shown: ShownRuns, view: TripsMapSettings) -> None:
    """Show each run as a matrix, for regions without geometry."""
    for what, column in zip(shown.different, st.columns(len(shown.different)), strict=True):
        with column:
            st.markdown(f"**{describe_run(what)}**")
            show_chart(matrix_chart(what.release, view.level, view.unit))
    st.caption(f"These regions have neither outlines nor coordinates: a matrix stands for the map. {MATRIX_CAPTION}")
