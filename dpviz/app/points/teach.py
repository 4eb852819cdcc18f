"""Teach on the Points page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

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
from dpviz.app.points.scales import public_density_top
from dpviz.app.points.state import POINTS, Data, Drawn, config, run_of
from dpviz.app.points.strip import EASY_ZOOM, describe_person, show_strip, shown_zoom, verdict_of
from dpviz.app.points.tabs import (
    QUERY_TAB,
    describe_answer,
    keep_box,
    key_figures,
    link_box,
    offer_no_box,
    open_linked_box,
    set_query_box,
    shows_box,
    tabs,
)
from dpviz.app.session import is_dark
from dpviz.app.teach_maps import describe_run, finish_scene, may_be_shown, note_canvas_change, raw_switch, show_canvas
from dpviz.app.two_runs import LEFT_RUN, RIGHT_RUN, ShownRun, TwoRuns, choose_pane, let_maps_come_first, list_code, show_in_rows
from dpviz.app.words import show_detail, show_headline, show_verdict
from dpviz.mechanisms import Quadtree
from dpviz.publishing.dry_run import WantedError
from dpviz.release.squares import level_like
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds, box_to_domain, box_to_map, map_bounds
from dpviz.view.canvas import Pane, Scene, ground_of, names_of
from dpviz.view.masked_area import find_masked_area
from dpviz.view.points_canvas import ERROR, FALSE_POSITIVES, RELEASED, TRUE, ReleaseView, SquaresView, cell_box, has_squares
from dpviz.view.points_map import INTERPOLATED, can_show_interpolation, error_top

HEIGHT, TALL = 450, 440  # pixels of the canvas with its legends and tools; of one for a projector
MOST_NODES = 600_000  # nodes of all releases that a session keeps
View = ReleaseView | SquaresView
_STREETS = "street map"
_QUADTREE_LEVELS = 8  # of the quadtree with which contrasts are compared


class PointRuns(LiveRuns):
    """The runs of the Points page."""


LIVE = LiveControls(page_state=POINTS, kind=PointRuns, weigh=lambda drawn: len(drawn.release.tree), room=MOST_NODES)
RUNS = TwoRuns(live=LIVE, run_of=run_of, has_frame=lambda drawn, data: drawn.data.points.domain == data.points.domain)


def show_teach(data: Data | None, row: DeltaGenerator, protected: str, fits: bool) -> None:
    """Show the maps, the strip and the tabs for public data, see `ShowTeach`."""
    if not may_be_shown(data):
        return
    shown, questions = RUNS.follow(data, fits=fits)
    domain = data.points.domain if shown is None else shown.first.data.points.domain
    open_linked_box(domain)
    keep_box(domain)
    idle = "" if shown is None else f"{_stamp_maps(shown)} {_describe_box(shown)}"
    also = offer_no_box if shown is not None and shows_box() else None
    show_in_rows(LIVE, shown, questions, idle, partial(_show_result, row, protected), also)


def _show_result(row: DeltaGenerator, protected: str, shown: ShownRun, above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Show the maps with their controls, and below the row of the status the strip, the verdict and the tabs."""
    first, result = shown.first, verdict_of(shown.first)
    level, whose = _choose_level(first), RIGHT_RUN if config().shows_second else ""
    views = _make_views(shown, level)
    scene, on_maps = _make_scene(shown, views)
    with row:
        _pane_controls(shown, scene)
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if not first.release.receipt.private:
                st.html(not_private_stamp(type(first.config.build())))
            if config().present and result is not None:
                show_verdict(result.headline, "", result.rule, whose)
        domain = first.data.points.domain
        show_canvas(POINTS, scene, domain, partial(_take_chosen, on_maps), partial(_take_box, domain))
    with below:
        if result is not None and not config().present:
            show_headline(f"{describe_person(first)} {result.headline}".strip(), whose)
        _show_contrasts(shown, level)
        show_strip(shown, level, _title_of_strip(first))
        if not config().present:
            if result is not None:
                show_detail(result.detail, result.rule)
            teach_note(protected)
        let_maps_come_first(POINTS)
        with st.container(key="figures"):
            key_figures(first, first.evaluation, level)
            tabs(first, first.evaluation, level)
    link_box()
    POINTS.write_address()


def _show_contrasts(shown: ShownRun, level: int) -> None:
    """Say of each run on the maps that is a contrast why it is not private, and which ε makes the quadtree as useful."""
    for what, whose in ((shown.first, RIGHT_RUN), (shown.second, LEFT_RUN)):
        if what is not None and what.evaluation is not None and (mechanism := type(what.config.build())).attack:
            zoom = min(shown_zoom(what.release, level), _QUADTREE_LEVELS)
            wanted = WantedError(error=float(what.evaluation.by_zoom["rmse"][zoom]), level=zoom)
            useful = compare_with_private(Quadtree(), what.data.points, wanted, f"the squares of level {zoom}", what.data.unit)
            show_contrast(POINTS, mechanism, what.release.receipt, useful, whose if config().shows_second else "")


def _title_of_strip(first: Drawn) -> str:
    """Write of which run the strip is, and what its squares are."""
    whose = f"the right map: {_describe_run(first)}" if config().shows_second else _describe_run(first)
    return f"Budget and error of {whose}. Levels are equal squares of the domain; the map shows the mechanism's own partitions."


def _describe_box(shown: ShownRun) -> str:
    """Write the answer for the box of the range query, while the maps show it; else how to ask for one."""
    if not shows_box():
        return "Box: press Box, or hold Shift, and drag a box on a map to read its count here."
    if shown.second is None:
        return f"Box: {describe_answer(shown.first)}"
    return f"Box, right map: {describe_answer(shown.first)} Left map: {describe_answer(shown.second)}"


def _stamp_maps(shown: ShownRun) -> str:
    """Write what the right map's run is; and if the left map's is not private, that, too."""
    second = shown.second
    return f"{_stamp(shown.first)}{'' if second is None or second.release.receipt.private else ' Left map: NOT PRIVATE.'}"


def _stamp(what: Drawn) -> str:
    if not what.release.states_noise:
        return f"NOT PRIVATE, run {what.number}: a contrast, which must never be published."
    if not what.release.receipt.private:
        return f"NOT PRIVATE, run {what.number}: this reference shows what privacy costs, and must never be published."
    return f"Run {what.number}, seeded: a simulation, not private."


def _choose_level(what: Drawn) -> int:
    """Return the level that is shown: the chosen one, or one whose partitions can be told apart, the same whatever the budget."""
    chosen = config().zoom
    return level_like(what.release, EASY_ZOOM) if chosen is None else min(chosen, what.release.height)


def _pane_controls(shown: ShownRun, scene: Scene) -> None:
    """Ask what each map shows, and offer the next run, play, undo, the code, and more about the maps."""
    what: Drawn = shown.first
    kinds = [RELEASED, TRUE, ERROR, FALSE_POSITIVES, *([INTERPOLATED] if can_show_interpolation(what.release) else [])]
    choose_pane(POINTS, "left", "Left map", [*kinds, SECOND])
    choose_pane(POINTS, "shown", "Right map", kinds)
    LIVE.show_buttons()
    show_release_code(what.data, list_code(shown))
    with st.popover("More"):
        raw_switch(POINTS, ", before post-processing makes the levels agree.")
        more_about_maps(POINTS, scene, _STREETS, on_earth=what.release.domain.crs is not None)


def _describe_run(what: Drawn) -> str:
    return describe_run(what.title, what.config)


def _make_views(shown: ShownRun, level: int) -> dict[str, View]:
    """Prepare the shown level of each run, by the names of the runs, and the squares of false positives, if a map shows them."""
    views: dict[str, View] = {}
    for name, what in (("first", shown.first), ("second", shown.second)):
        if what is None:
            continue
        truth = None if what.evaluation is None else what.evaluation.truth
        at = level if what is shown.first else min(level, what.release.height)
        options = {"unit": what.data.unit, "dark": is_dark(), "truth": truth, "raw": config().raw, "about": _describe_run(what)}
        views[name] = ReleaseView.of(what.release, at, **options)
    if FALSE_POSITIVES in (config().left, config().shown):
        release, zoom = shown.first.release, shown_zoom(shown.first.release, level)
        views["squares"] = SquaresView.of(release, shown.first.data.points.blocks, zoom, dark=is_dark(), about=_describe_run(shown.first))
    if TRUE in (config().left, config().shown):
        release, zoom = shown.first.release, shown_zoom(shown.first.release, level)
        if not has_squares(release, level, zoom):
            views["truth"] = SquaresView.of(release, shown.first.data.points.blocks, zoom, dark=is_dark())
    return views


def _view_of(kind: str, views: dict[str, View]) -> str:
    """Return the name of the view that a map of some kind shows."""
    name = {SECOND: "second", FALSE_POSITIVES: "squares", TRUE: "truth"}.get(kind, "first")
    return name if name in views else "first"


def _make_pane(view: ReleaseView | SquaresView, kind: str, cells: str, data: Data) -> Pane:
    if isinstance(view, SquaresView):
        if kind == FALSE_POSITIVES:
            return view.pane(cells=cells)
        return view.truth_pane(cells=cells, unit=data.unit, top=public_density_top(data.points, view.release, data.unit))
    shown = RELEASED if kind == SECOND else kind
    pane = view.pane(shown, cells=cells, top=_scale_top(view, shown, data))
    return replace(pane, title=f"{pane.title}, second run") if kind == SECOND else pane


def _scale_top(view: ReleaseView, shown: str, data: Data) -> float | None:
    """Return the top of a map's colour scale, which stays the same: of densities by the public data, of errors by the first run."""
    if shown != ERROR:
        return public_density_top(data.points, view.release, data.unit)
    name = f"error {view.level}"
    scales = config().scales
    if name not in scales:
        top = error_top(view.release, view.nodes, view.truth)
        POINTS.change_for_good(scales={**scales, name: top})
        return top
    return scales[name]


def _make_scene(shown: ShownRun, views: dict[str, View]) -> tuple[Scene, list[View]]:
    """Return both maps, with the whole domain in view, and which run is on each."""
    how, data = config(), shown.first.data
    names = [_view_of(kind, views) for kind in (how.left, how.shown)]
    made = [_make_pane(views[name], kind, name, data) for name, kind in zip(names, (how.left, how.shown), strict=True)]
    domain, result = data.points.domain, verdict_of(shown.first)
    used = {pane.cells for pane in made if pane.cells}
    scene = Scene(
        bounds=map_bounds(domain),
        cells={name: view.cells() for name, view in views.items() if name in used},
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}, {len(views['first'].rectangles):,} partitions.",
        dark=is_dark(),
        height=TALL if how.present else HEIGHT,
        caption="" if result is None else result.headline,
        stamp=_stamp_maps(shown),
        asks=True,
        ground=ground_of(domain),
        masked=find_masked_area(domain),
        places=names_of(domain),
        box=box_to_map(domain, st.session_state["query box"]) if shows_box() else None,
    )
    return finish_scene(POINTS, scene, data, _STREETS), [views[name] for name in names]


def _take_box(domain: Domain, box: Bounds) -> None:
    """Ask the range query for a box that was dragged on the map."""
    set_query_box(box_to_domain(domain, box))
    st.session_state["tab"] = QUERY_TAB
    note_canvas_change(POINTS)


def _take_chosen(views: list[View], chosen: Chosen) -> None:
    """Keep the rectangle that was clicked; two of them set the box of the range query."""
    if chosen.cell is None or chosen.pane >= len(views):
        return
    view = views[chosen.pane]
    box = cell_box(view, chosen.cell)
    if box is not None:
        keep_box(view.release.domain, box)
        note_canvas_change(POINTS)
