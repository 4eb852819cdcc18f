"""Teach on the Points page: two maps in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from dpviz.app.components.panes import Chosen, canvas_failed, panes
from dpviz.app.first_row import NOT_PRIVATE
from dpviz.app.ledger import record_public_look
from dpviz.app.live import LiveRuns
from dpviz.app.live_controls import LiveControls
from dpviz.app.points.scales import public_density_top
from dpviz.app.points.state import POINTS, SECOND, Config, Data, Drawn, config, question_of, run_of
from dpviz.app.points.strip import show_strip, verdict_of
from dpviz.app.points.tabs import QUERY_TAB, key_figures, partition_box, set_query_box, tabs
from dpviz.app.session import is_dark, newest_result, result_slot, show_value, when_chosen
from dpviz.app.words import budget_text, show_verdict
from dpviz.mechanisms import POINT_FAMILY
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds, box_to_domain, box_to_map
from dpviz.view.canvas import Pane, Scene, ground_of, names_of
from dpviz.view.colors import scale_top_of
from dpviz.view.escape import html
from dpviz.view.points_canvas import ERROR, FALSE_POSITIVES, RELEASED, TRUE, ReleaseView
from dpviz.view.points_map import INTERPOLATED, can_show_interpolation, points_map

HEIGHT, TALL = 500, 640  # pixels of the canvas with its legends and tools; of one for a projector
EASY_CELLS = 4096  # partitions that can be told apart on a map at first
MOST_NODES = 600_000  # nodes of all releases that a session keeps
_BEFORE, _RERUN = "errors before", "canvas changed the page"
_FIRST, _SECOND = "drawn Teach", "second run"


class PointRuns(LiveRuns):
    """The runs of the Points page."""


LIVE = LiveControls(page_state=POINTS, kind=PointRuns, weigh=lambda drawn: len(drawn.release.tree), room=MOST_NODES)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the two maps show.

    Attributes:
        first: the run of the controls.
        second: the second run; None if no map shows it.
        fresh: whether both are those of the present settings.
    """

    first: Drawn
    second: Drawn | None
    fresh: bool


def show_teach(data: Data, *, fits: bool) -> None:
    """Show the maps, the strip and the tabs for public data.

    Args:
        data: public data.
        fits: whether all controls hold choices that fit; if not, the last maps stay.
    """
    if not record_public_look(data):
        return
    with st.container():
        LIVE.play()
    works = {question: partial(run_of, data, how) for question, how in _questions(data).items()} if fits else {}
    live = LIVE.follow(works, bundled=data.bundled)
    shown = _find_shown(live, data, list(works))
    with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
        LIVE.show_progress(list(works))
    if shown is None:
        st.caption("The first picture is being made ..." if live.running else "There is no picture yet.")
        return
    _show_result(shown)


def _questions(data: Data) -> dict[Hashable, Config]:
    """Return the configurations of the runs that the maps show, by what identifies them."""
    how = config()
    return {question_of(data, each): each for each in ((how, how.second_run()) if how.shows_second else (how,))}


def _find_shown(live: LiveRuns, data: Data, questions: list[Hashable]) -> Shown | None:
    """Return the results for the questions, or the last ones on the same domain while there are none yet."""
    results = [result for question in questions if (result := live.result(question)) is not None]
    if results and len(results) == len(questions):
        _keep(_FIRST, results[0])
        second = results[1] if len(results) > 1 else results[0] if config().shows_second else None
        if second is not None:
            _keep(_SECOND, second)
        return Shown(first=results[0], second=second, fresh=True)
    first, second = newest_result(_FIRST), newest_result(_SECOND) if config().shows_second else None
    if first is None or first.data.points.domain != data.points.domain or (config().shows_second and second is None):
        return None
    return Shown(first=first, second=second, fresh=False)


def _keep(key: str, drawn: Drawn) -> None:
    """Keep a run as the newest one; the errors of the one before stay for comparison."""
    last = newest_result(key)
    if last is drawn:
        return
    if key == _FIRST:
        st.session_state[_BEFORE] = None if last is None else last.evaluation
    result_slot(key).append(drawn)


def _show_result(shown: Shown) -> None:
    """Show the maps with their controls, the strip, the verdict and the tabs."""
    first = shown.first
    level = _choose_level(first)
    _pane_controls(first)
    views = _make_views(shown, level)
    with st.container():
        if not first.release.receipt.private:
            st.html(NOT_PRIVATE)
    if canvas_failed():
        _show_without_canvas(shown, level)
    else:
        _show_canvas(shown, views)
    st.html(f'<div class="dpviz-note">{html(_stamp(first))}</div>')
    show_strip(first, level, st.session_state.get(_BEFORE), fresh=shown.fresh)
    result = verdict_of(first)
    if result is not None:
        show_verdict(result.headline, result.detail, result.rule)
    with st.container(key="figures"):
        evaluation = first.evaluation
        key_figures(first, evaluation, level)
        tabs(first, evaluation, level, st.session_state.pop("clicked box", None))
    POINTS.write_address()


def _stamp(what: Drawn) -> str:
    if not what.release.receipt.private:
        return f"NOT PRIVATE, run {what.number}: this reference shows what privacy costs, and must never be published."
    return f"Run {what.number}, seeded: a simulation, not private."


def _choose_level(what: Drawn) -> int:
    """Return the level that is shown: the chosen one, or the finest whose partitions can be told apart."""
    release, chosen = what.release, config().zoom
    if chosen is not None:
        return min(chosen, release.height)
    return max(level for level in range(release.height + 1) if level == 0 or len(release.nodes(level)) <= EASY_CELLS)


def _pane_controls(what: Drawn) -> None:
    """Ask what each map shows, and offer the next run, play, undo and new colour scales."""
    kinds = [RELEASED, TRUE, ERROR, FALSE_POSITIVES, *([INTERPOLATED] if can_show_interpolation(what.release) else [])]
    left, right, more = st.columns([3, 3, 4], vertical_alignment="bottom")
    _pane_control(left, "left", "Left map", [*kinds, SECOND])
    _pane_control(right, "shown", "Right map", kinds)
    with more.container(horizontal=True, vertical_alignment="center"):
        LIVE.show_buttons()
        if ERROR in (config().left, config().shown):
            st.button("Fit scale", key="fit scale", help="Choose the scale of errors for this run.", on_click=_fit_scales)
        show_value("raw", config().raw)
        st.toggle(
            "As measured",
            key="raw",
            help="Counts as first measured, before post-processing makes the levels agree.",
            on_change=when_chosen("raw", lambda value: POINTS.change(raw=value)),
        )


def _fit_scales() -> None:
    POINTS.change_for_good(scales={})


def _pane_control(column: object, name: str, label: str, kinds: list[str]) -> None:
    key = f"pane {name}"
    chosen = getattr(config(), name)
    show_value(key, chosen if chosen in kinds else kinds[0])
    column.selectbox(label, kinds, key=key, on_change=when_chosen(key, partial(_choose_pane, name)))  # type: ignore[attr-defined]


def _choose_pane(name: str, kind: str) -> None:
    """Show something else on a map. The second run starts as a copy of the first."""
    how = config()
    starts_second = kind == SECOND and not how.second
    POINTS.change(**{name: kind}, **({"second": how.as_second()} if starts_second else {}))


def describe_run(what: Drawn) -> str:
    """Write how a run was made: mechanism, budget and number."""
    title = POINT_FAMILY.choices[what.release.mechanism].title
    budget = budget_text(what.config.epsilon, what.config.delta if what.config.build().needs_delta else 0)
    return f"{title}, {budget}, run {what.number}"


def _make_views(shown: Shown, level: int) -> dict[str, ReleaseView]:
    """Prepare the shown level of each run, by the names of the runs."""
    views = {}
    for name, what in (("first", shown.first), ("second", shown.second)):
        if what is None:
            continue
        truth = None if what.evaluation is None else what.evaluation.truth
        at = level if what is shown.first else min(level, what.release.height)
        options = {"unit": what.data.unit, "dark": is_dark(), "truth": truth, "raw": config().raw, "about": describe_run(what)}
        views[name] = ReleaseView.of(what.release, at, **options)  # type: ignore[arg-type]
    return views


def _make_pane(view: ReleaseView, kind: str, cells: str, data: Data) -> Pane:
    shown = RELEASED if kind == SECOND else kind
    pane = view.pane(shown, cells=cells, top=_scale_top(view, shown, data))
    return replace(pane, title=f"{pane.title}, second run") if kind == SECOND else pane


def _scale_top(view: ReleaseView, shown: str, data: Data) -> float | None:
    """Return the top of a map's colour scale, which stays the same: of densities by the public data, of errors by the first run."""
    if shown == FALSE_POSITIVES:
        return None
    if shown != ERROR:
        return public_density_top(data.points, view)
    name = f"error {view.level}"
    scales = config().scales
    if name not in scales:
        top = scale_top_of(3 * view.release.stddev[view.nodes])
        POINTS.change_for_good(scales={**scales, name: top})
        return top
    return scales[name]


@st.fragment
def _show_canvas(shown: Shown, views: dict[str, ReleaseView]) -> None:
    """Show the canvas; a move of the camera runs this function alone."""
    how, data = config(), shown.first.data
    names = ["second" if kind == SECOND and "second" in views else "first" for kind in (how.left, how.shown)]
    made = [_make_pane(views[name], kind, name, data) for name, kind in zip(names, (how.left, how.shown), strict=True)]
    domain, result = data.points.domain, verdict_of(shown.first)
    used = {pane.cells for pane in made if pane.cells}
    scene = Scene(
        domain=domain,
        cells={name: view.cells() for name, view in views.items() if name in used},
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}, {len(views['first'].nodes):,} partitions.",
        dark=is_dark(),
        height=TALL if how.present else HEIGHT,
        text_size=16 if how.present else 12,
        camera=_camera_of_visit(domain),
        title=data.title,
        caption="" if result is None else result.headline,
        stamp=_stamp(shown.first),
        link=data.bundled,
        asks=True,
        ground=ground_of(domain),
        places=names_of(domain),
        box=box_to_map(domain, st.session_state["query box"]) if st.session_state.get("tab") == QUERY_TAB else None,
    )
    clicked = partial(_take_chosen, [views[name] for name in names])
    with st.container(key="map"):
        panes(scene.pack(), key="canvas", on_box=partial(_take_box, domain), on_chosen=clicked, on_camera=_take_camera)
    if st.session_state.pop(_RERUN, False) or canvas_failed():
        st.rerun()
    POINTS.write_address()


def _camera_of_visit(domain: Domain) -> tuple[float, float, float] | None:
    """Return the camera with which this visit of the page began; None, for the whole domain, once the domain has changed.

    The browser keeps the camera itself. If each of its moves changed the message, all numbers would be sent again.
    """
    visit = st.session_state.get("visit", 0)
    known_visit, known_domain, camera = st.session_state.get("camera of visit", (None, domain, None))
    if known_visit != visit and known_domain == domain:
        camera = config().camera
    elif known_domain != domain:
        camera = None
        POINTS.change_for_good(camera=None)
    st.session_state["camera of visit"] = (visit, domain, camera)
    return camera  # type: ignore[no-any-return]


def _take_camera(camera: tuple[float, float, float]) -> None:
    longitude, latitude, zoom = camera
    POINTS.change_for_good(camera=(round(longitude, 5), round(latitude, 5), round(zoom, 2)))


def _take_box(domain: Domain, box: Bounds) -> None:
    """Ask the range query for a box that was dragged on the map."""
    set_query_box(box_to_domain(domain, box))
    st.session_state["tab"] = QUERY_TAB
    st.session_state[_RERUN] = True


def _take_chosen(views: list[ReleaseView], chosen: Chosen) -> None:
    """Keep the partition that was clicked; two of them set the box of the range query."""
    if chosen.cell is None or chosen.pane >= len(views) or chosen.cell >= len(views[chosen.pane].nodes):
        return
    view = views[chosen.pane]
    st.session_state["clicked box"] = partition_box(view.release, int(view.nodes[chosen.cell]))
    st.session_state[_RERUN] = True


def _show_without_canvas(shown: Shown, level: int) -> None:
    """Show the same maps by Streamlit's own map, where the browser could not load the canvas."""
    st.caption(":orange[This browser could not load the map library: the maps are shown one by one, without a common view.]")
    how = config()
    for name, column in zip(("left", "shown"), st.columns(2), strict=True):
        kind = getattr(how, name)
        what = shown.second if kind == SECOND and shown.second is not None else shown.first
        truth = None if what.evaluation is None else what.evaluation.truth
        at, seen = min(level, what.release.height), RELEASED if kind == SECOND else kind
        picture = points_map(what.release, at, seen, unit=what.data.unit, dark=is_dark(), truth=truth)
        with column:
            st.pydeck_chart(picture.deck, height=HEIGHT, key=f"map {name}", alt=picture.description)
            st.html(picture.legend + (f'<div class="dpviz-note">{html(picture.note)}</div>' if picture.note else ""))
