"""Teach on the Points page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from dpviz.app.modes.contrasts import show_contrasts
from dpviz.app.modes.family_page import TeachParts
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.modes.teach import describe_run, keep_error_tops, make_scene, name_second, stamp_maps
from dpviz.app.pages.points.levels import EASY_ZOOM, describe_person, make_rail, shown_zoom
from dpviz.app.pages.points.scales import public_density_top
from dpviz.app.pages.points.state import POINTS, Data, Drawn
from dpviz.app.pages.points.tabs import (
    ask_in_box,
    ask_in_cell,
    describe_answer,
    keep_box,
    key_figures,
    link_box,
    offer_no_box,
    open_linked_box,
    show_query,
    shows_box,
    tabs,
)
from dpviz.app.session.widgets import is_dark
from dpviz.app.state.values import SECOND
from dpviz.mechanisms import Quadtree
from dpviz.publishing.dry_run import WantedError
from dpviz.release.squares import level_like
from dpviz.space.domain import Domain
from dpviz.view.basemap import box_to_map, map_bounds
from dpviz.view.canvas import Pane, Scene, ground_of, names_of
from dpviz.view.masked_area import find_masked_area
from dpviz.view.points_canvas import ERROR, FALSE_POSITIVES, RELEASED, TRUE, ReleaseView, SquaresView, has_squares
from dpviz.view.points_map import INTERPOLATED, can_show_interpolation, error_top

View = ReleaseView | SquaresView
_QUADTREE_LEVELS = 8  # of the quadtree with which contrasts are compared


def begin(domain: Domain) -> None:
    """Open the box of a link, and keep that of the range query within the domain."""
    open_linked_box(domain)
    keep_box(domain)
    link_box()


def describe_idle(shown: ShownRun) -> tuple[str, Callable[[], object] | None]:
    """Write what the runs are and what lies in the box, with the button that removes it."""
    if not shows_box():
        return stamp_maps(shown), None
    return f"{stamp_maps(shown)} {_describe_box(shown)}", offer_no_box


def make_teach(shown: ShownRun) -> TeachParts:
    """Return what the page shows of its runs."""
    first: Drawn = shown.first
    domain = first.data.counts.domain
    chosen = POINTS.view.level  # else a level whose partitions can be told apart, the same whatever the budget
    level = level_like(first.release, EASY_ZOOM) if chosen is None else min(chosen, first.release.height)
    rail = make_rail(shown, level)
    scene, on_maps = _make_scene(shown, _make_views(shown, level), rail.sentence)

    def show_figures() -> None:
        key_figures(first, level)
        tabs(first, first.evaluation, level)

    def wanted_of(what: Drawn) -> tuple[WantedError, str]:
        zoom = min(shown_zoom(what.release, level), _QUADTREE_LEVELS)
        return WantedError(error=float(what.compared.by_zoom["rmse"][zoom]), level=zoom), f"the squares of level {zoom}"

    interpolated = [INTERPOLATED] if can_show_interpolation(first.release) else []
    return TeachParts(
        kinds=[RELEASED, TRUE, ERROR, FALSE_POSITIVES, *interpolated],
        lead=describe_person(first),
        scene=scene,
        on_earth=domain.crs is not None,
        drawings=on_maps,
        take_chosen=ask_in_cell,
        take_box=partial(ask_in_box, domain),
        contrasts=lambda: show_contrasts(POINTS, shown, Quadtree(), wanted_of),
        ask=lambda: show_query(first, first.evaluation),
        rail=rail,
        figures=show_figures,
    )


def _describe_box(shown: ShownRun) -> str:
    """Write the answer for the box of the range query."""
    if shown.second is None:
        return f"Box: {describe_answer(shown.first)}"
    return f"Box, right map: {describe_answer(shown.first)} Left map: {describe_answer(shown.second)}"


def _make_views(shown: ShownRun, level: int) -> dict[str, View]:
    """Prepare the shown level of each run, by the names of the runs, and the squares of false positives, if a map shows them."""
    views: dict[str, View] = {}
    for name, what in (("first", shown.first), ("second", shown.second)):
        if what is None:
            continue
        truth = None if what.evaluation is None else what.evaluation.truth
        at = level if what is shown.first else min(level, what.release.height)
        options = {"unit": what.data.unit, "dark": is_dark(), "truth": truth, "raw": POINTS.view.raw, "about": describe_run(what)}
        views[name] = ReleaseView.of(what.release, at, **options)
    if FALSE_POSITIVES in (POINTS.view.left, POINTS.view.shown):
        release, zoom = shown.first.release, shown_zoom(shown.first.release, level)
        views["squares"] = SquaresView.of(release, shown.first.data.counts.blocks, zoom, dark=is_dark(), about=describe_run(shown.first))
    if TRUE in (POINTS.view.left, POINTS.view.shown):
        release, zoom = shown.first.release, shown_zoom(shown.first.release, level)
        if not has_squares(release, level, zoom):
            views["truth"] = SquaresView.of(release, shown.first.data.counts.blocks, zoom, dark=is_dark())
    return views


def _make_pane(view: ReleaseView | SquaresView, kind: str, cells: str, data: Data) -> Pane:
    if isinstance(view, SquaresView):
        if kind == FALSE_POSITIVES:
            return view.pane(cells=cells)
        return view.truth_pane(cells=cells, unit=data.unit, top=public_density_top(data.counts, view.release, data.unit))
    shown = RELEASED if kind == SECOND else kind
    return name_second(view.pane(shown, cells=cells, top=_scale_top(view, shown, data)), kind)


def _scale_top(view: ReleaseView, shown: str, data: Data) -> float | None:
    """Return the top of a map's colour scale, which stays the same: of densities by the public data, of errors by the first run."""
    if shown != ERROR:
        return public_density_top(data.counts, view.release, data.unit)
    name = f"error {view.level}"
    return keep_error_tops(POINTS, {name: error_top(view.release, view.nodes, view.truth)})[name]


def _make_scene(shown: ShownRun, views: dict[str, View], caption: str) -> tuple[Scene, list[View]]:
    """Return both maps, with the whole domain in view, and which run is on each."""
    view, data = POINTS.view, shown.first.data
    views_of_kinds = {SECOND: "second", FALSE_POSITIVES: "squares", TRUE: "truth"}
    names = [name if (name := views_of_kinds.get(kind, "first")) in views else "first" for kind in (view.left, view.shown)]
    made = [_make_pane(views[name], kind, name, data) for name, kind in zip(names, (view.left, view.shown), strict=True)]
    domain = data.counts.domain
    used = {pane.cells for pane in made if pane.cells}
    scene = make_scene(
        made,
        f", {len(views['first'].rectangles):,} partitions.",
        bounds=map_bounds(domain),
        cells={name: view.cells() for name, view in views.items() if name in used},
        caption=caption,
        stamp=stamp_maps(shown),
        asks=True,
        ground=ground_of(domain),
        masked=find_masked_area(domain),
        places=names_of(domain),
        box=box_to_map(domain, st.session_state["query box"]) if shows_box() else None,
    )
    return scene, [views[name] for name in names]
