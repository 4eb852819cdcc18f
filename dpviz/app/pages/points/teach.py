"""Teach on the Points page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.modes.contrasts import show_contrasts
from dpviz.app.modes.family_page import TeachParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.modes.teach import describe_run, draw_maps, keep_error_tops, make_scene, stamp_maps
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
from dpviz.app.state.values import ORDINALS
from dpviz.app.state.view import Pane as ViewedPane
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


def describe_idle(shown: ShownRuns) -> tuple[str, Callable[[], object] | None]:
    """Write what the runs are and what lies in the box, with the button that removes it."""
    if not shows_box():
        return stamp_maps(shown), None
    return f"{stamp_maps(shown)} {_describe_box(shown)}", offer_no_box


def make_teach(shown: ShownRuns) -> TeachParts:
    """Return what the page shows of its runs."""
    first: Drawn = shown.first
    domain = first.data.counts.domain
    chosen = POINTS.view.level  # else a level whose partitions can be told apart, the same whatever the budget
    level = level_like(first.release, EASY_ZOOM) if chosen is None else min(chosen, first.release.height)
    rail = make_rail(shown, level)
    scene, on_maps = _make_scene(shown, level, rail.sentence)

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


def _describe_box(shown: ShownRuns) -> str:
    """Write the answer for the box of the range query."""
    return " ".join(f"{f'Box, {name.lower()}' if name else 'Box'}: {describe_answer(what)}" for name, what in shown.named())


@dataclass(frozen=True, kw_only=True)
class _Views:
    """The partitions and squares of the maps, each prepared once.

    Attributes:
        level: of the tree of the first run, which the maps show.
        zoom: the zoom level of about this size.
        made: the views, by what they show of which run.
    """

    level: int
    zoom: int
    made: dict[str, View] = field(default_factory=dict)

    def find(self, what: Drawn, pane: ViewedPane) -> View:
        """Return what a map shows of a run: its partitions; equal squares for false positives, and for the truth of uneven partitions."""
        about, release, blocks, run = describe_run(what), what.release, what.data.counts.blocks, ORDINALS[pane.run]
        if pane.shows == FALSE_POSITIVES:
            return self._keep(
                f"squares of the {run}", partial(SquaresView.of, release, blocks, shown_zoom(release, self.level), about=about)
            )
        if pane.shows == TRUE and not has_squares(release, self.level, self.zoom):
            return self._keep("truth", partial(SquaresView.of, release, blocks, self.zoom))
        truth = None if what.evaluation is None else what.evaluation.truth
        options: dict[str, Any] = {"unit": what.data.unit, "truth": truth, "raw": POINTS.view.raw, "about": about}
        return self._keep(run, partial(ReleaseView.of, release, min(self.level, release.height), **options))

    def _keep(self, name: str, make: Callable[..., View]) -> View:
        if name not in self.made:
            self.made[name] = make(dark=is_dark())
        return self.made[name]

    def name(self, view: View) -> str:
        """Return the name of a view."""
        return next(name for name, made in self.made.items() if made is view)


def _make_pane(view: View, kind: str, cells: str, data: Data, zoom: int) -> Pane:
    """Make a pane. Tops of colour scales stay the same: of densities by the public data at the shown zoom, of errors by the first run."""
    if isinstance(view, SquaresView) and kind == FALSE_POSITIVES:
        return view.pane(cells=cells)
    density = public_density_top(data.counts, view.release, data.unit, zoom)
    if isinstance(view, SquaresView):
        return view.truth_pane(cells=cells, unit=data.unit, top=density)
    name = f"error {view.level}"
    errors = keep_error_tops(POINTS, {name: error_top(view.release, view.nodes, view.truth)}) if kind == ERROR else {}
    return view.pane(kind, cells=cells, top=errors.get(name, density))


def _make_scene(shown: ShownRuns, level: int, caption: str) -> tuple[Scene, list[View]]:
    """Return the maps, with the whole domain in view, and what is drawn on each."""
    data = shown.first.data
    domain, views = data.counts.domain, _Views(level=level, zoom=shown_zoom(shown.first.release, level))
    maps = draw_maps(shown, views.find, lambda view, _, pane: _make_pane(view, pane.shows, views.name(view), data, views.zoom))
    first = views.find(shown.first, ViewedPane())
    used = {each.pane.cells for each in maps if each.pane.cells}
    scene = make_scene(
        [each.pane for each in maps],
        f", {len(first.rectangles):,} partitions.",
        bounds=map_bounds(domain),
        cells={name: view.cells() for name, view in views.made.items() if name in used},
        caption=caption,
        stamp=stamp_maps(shown),
        asks=True,
        ground=ground_of(domain),
        masked=find_masked_area(domain),
        places=names_of(domain),
        box=box_to_map(domain, st.session_state["query box"]) if shows_box() else None,
    )
    return scene, [each.drawing for each in maps]
