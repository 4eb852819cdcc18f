"""Curate on the Trips page: the levels of its bargain, and the map before and after a payment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dpviz.app.cards.expected_errors import Expected, Levels
from dpviz.app.components.panes import Chosen, panes
from dpviz.app.components.words import show_chart
from dpviz.app.modes.curate import choose_level, choose_map, show_declared_regions
from dpviz.app.modes.tabs import show_title
from dpviz.app.pages.trips.data import Declared
from dpviz.app.pages.trips.filters import change_level, choose_filters, make_settings, shown_level
from dpviz.app.pages.trips.state import TRIPS, TripsDrawn
from dpviz.app.pages.trips.tabs import show_figures, take_chosen
from dpviz.app.session import cached
from dpviz.app.session.widgets import carry_out, is_dark
from dpviz.app.state.values import ALONE
from dpviz.data.trips import TripCounts
from dpviz.evaluation.trip_metrics import TripEvaluation
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.publishing.simulated_errors import USEFUL
from dpviz.release.trip_release import TripRelease
from dpviz.view.declared_regions import regions_scene
from dpviz.view.escape import html
from dpviz.view.trips_canvas import released_scene
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import SHOWN_TRIPS, TripsMapSettings, draw_trips, has_geometry

MAP_HEIGHT = 620  # pixels
DECLARED_HEIGHT = 380  # pixels


def list_levels(trips: TripCounts) -> Levels:
    """Return the levels of pairs of regions."""
    regions, ends = trips.regions, trips.ends
    names = {level: f"{name} to {ends.levels[level - 1]}" for level, name in enumerate(regions.levels, start=1)}
    return Levels(names=names, usual=max(names), part="pair", parts_at=lambda level: regions.size(level) * ends.size(level))


@st.fragment
def show_declared(declared: Declared, expected: Expected | None, unit: str) -> None:
    """Show the declared regions, with the expected error at the level that is looked at; the coarsest level while it is not known."""
    if declared.regions is None:
        st.caption("The map of the regions is shown here once their file is chosen.")
        return
    frames = declared.regions
    digest = tuple(frame.key for frame in frames)
    bounds = cached.declared_bounds(digest, frames)
    level = cached.declared_level(digest, frames, 1 if expected is None else expected.place)
    error, scene = None if expected is None else expected.error, None
    if bounds is not None and level is not None:
        scene = regions_scene(level, bounds, error, unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
    show_declared_regions(scene, "declared regions")


def offer_add_remove(frame: TripCounts | None, expected: Expected | None) -> None:
    """Offer neighbours of whom one has a person more, where replacing a person's trips by as many others promises too much.

    It is a press of its own: what is protected is never chosen without the curator.
    """
    how = TRIPS.draft
    if frame is None or expected is not None or frame.contributions == 1 or frame.exactly or how.build().neighbours != BOUNDED:
        return
    settings = {**how.run.settings, "neighbours": ADD_REMOVE}
    label = "Protect that a person is added or removed"
    st.button(label, key="take add_remove", width="stretch", on_click=carry_out(lambda: TRIPS.change(run={"settings": settings})))


def choose_second() -> None:
    """Ask for a second mechanism, which draws from the same data with the same budget."""
    st.selectbox(
        "Compare with",
        [ALONE, *TRIPS.offered_mechanisms()],
        format_func=lambda key: "Nothing" if key == ALONE else str(TRIPS.mechanisms[key].title),
        help="A second mechanism with its default settings and the same budget. Each draw then spends the budget twice.",
        **TRIPS.widget("draft", "beside"),
    )


def count_useful(release: TripRelease, level: int) -> int:
    """Count the pairs of a level whose error is at most 40 % of their released count."""
    columns = release.stage_columns(2 * level)
    return int((columns["stddev"] <= USEFUL * columns["count"]).sum())


def show_release(what: TripsDrawn, truths: Sequence[TripEvaluation | None]) -> None:
    """Show the maps with their controls, and the tabs."""
    runs, view = what.runs, _choose_view(what, shows_truth=truths[0] is not None)
    with st.container(key="map"):
        for index, (run, truth, column) in enumerate(zip(runs, truths, st.columns(len(runs)), strict=True)):
            with column:
                show_title(run, runs)
                _show_map(run.release, index, view, truth)
    with st.container(key="figures"):
        show_figures(runs, truths, view)


def _choose_view(what: TripsDrawn, *, shows_truth: bool) -> TripsMapSettings:
    """Ask what the maps show (one of `SHOWN_TRIPS`, the level, a region, the number of arcs), and return the settings of the maps."""
    regions = what.release.tree.origins
    level = shown_level(regions)
    options = SHOWN_TRIPS if shows_truth and has_geometry(regions, level) else SHOWN_TRIPS[:1]
    left, middle = st.columns([3, 2], vertical_alignment="center")
    shown = choose_map(TRIPS, options, left)
    choose_level(regions, level, "level", change_level, middle)
    choose_filters(regions, level)
    return replace(make_settings(what, level), shown=shown)


def _show_map(release: TripRelease, index: int, view: TripsMapSettings, truth: TripEvaluation | None) -> None:
    """Show one mechanism's map, or a matrix if the regions have no geometry."""
    if not has_geometry(release.tree.origins, view.level):
        show_chart(matrix_chart(release, view.level, view.unit))
        st.caption(f"These regions have neither outlines nor coordinates: a matrix stands for the map. {MATRIX_CAPTION}")
        return
    drawing = draw_trips(release, view, None if truth is None else truth.true_sums(view.level, view.level))
    scene = released_scene(release, drawing, height=MAP_HEIGHT)

    def take(chosen: Chosen) -> None:
        take_chosen(release.tree.origins, drawing, chosen)

    panes(scene, key=f"trips map {index}", on_chosen=take)
    st.html(f'<div class="dpviz-note">{html(drawing.note)}</div>')
