"""The maps of the Areas page: two choropleths in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.areas.level import (
    asked_regions,
    choose_measure,
    shown_level,
    shown_measure,
    shown_rate,
    toggle_asked,
)
from dpviz.app.areas.state import AREAS, MEASURES, AreasData, AreasDrawn, config, evaluation_of, question_of, run_of
from dpviz.app.areas.strip import show_strip
from dpviz.app.areas.tabs import ASK_TAB, describe_sum, key_figures, offer_no_regions, show_tabs
from dpviz.app.code import show_release_code
from dpviz.app.components.panes import Chosen, canvas_failed, panes
from dpviz.app.first_row import teach_note
from dpviz.app.ledger import record_public_look
from dpviz.app.live import LiveRuns
from dpviz.app.live_controls import LiveControls
from dpviz.app.more_about_maps import more_about_maps
from dpviz.app.opening import keep_camera, keep_swipe, open_scene
from dpviz.app.page_config import SECOND
from dpviz.app.session import is_dark, show_value, when_chosen
from dpviz.app.streets import streets_wanted
from dpviz.app.two_runs import RIGHT_RUN, Shown, TwoRuns, choose_pane, let_maps_come_first, list_code, show_in_rows
from dpviz.app.words import budget_text, show_detail, show_headline, show_verdict
from dpviz.arrays import Integers
from dpviz.release.verdict import Verdict, verdict, with_false_positives
from dpviz.space.regions import Regions
from dpviz.view.areas_canvas import areas_of, make_pane
from dpviz.view.areas_drawing import (
    ERROR,
    RELEASED,
    SHOWN_AREAS,
    AreasDrawing,
    AreasMapSettings,
    AreaTops,
    choose_tops,
    draw_areas,
)
from dpviz.view.areas_map import areas_map
from dpviz.view.canvas import Pane, Scene, ground_in, names_in
from dpviz.view.escape import html

HEIGHT, TALL = 450, 440  # pixels of the canvas with its legends and tools; of one for a projector
MOST_REGIONS = 2_000_000  # regions of all runs that a session keeps
_STREETS = "street map of areas"
_RERUN = "canvas of areas changed the page"


class AreaRuns(LiveRuns):
    """The runs of the Areas page."""


def _weigh(what: AreasDrawn) -> float:
    """Return the number of regions that a run keeps, over all levels."""
    return float(sum(map(len, what.release.count)))


LIVE = LiveControls(page_state=AREAS, kind=AreaRuns, weigh=_weigh, room=MOST_REGIONS)
RUNS = TwoRuns(
    live=LIVE,
    question_of=question_of,
    run_of=run_of,
    has_frame=lambda what, data: what.data.areas.regions == data.areas.regions,
)


def show_teach(data: AreasData | None, row: DeltaGenerator, protected: str, *, fits: bool) -> None:
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
    idle, also = "" if shown is None else f"{_stamp(shown.first)} {_describe_asked(shown.first)}", None
    if shown is not None and asked_regions(shown.first.data.areas.regions):
        also = offer_no_regions
    show_in_rows(LIVE, shown, questions, idle, partial(_show_result, row, protected), also)


def true_counts(what: AreasDrawn, level: int) -> Integers:
    """Return the true counts of a level; runs in Teach have them."""
    return evaluation_of(what).truth[level]


def verdict_of(what: AreasDrawn) -> Verdict:
    """Return the verdict on a run, in the words of its data."""
    found, table = replace(verdict(what.release), counted=what.data.unit), evaluation_of(what).by_level
    return with_false_positives(found, table["empty"].tolist(), table["false_positives"].tolist())


def _show_result(row: DeltaGenerator, protected: str, shown: Shown, above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Show the maps with their controls, and below the row of the status the strip, the verdict and the tabs."""
    first: AreasDrawn = shown.first
    result, whose = verdict_of(first), RIGHT_RUN if config().shows_second else ""
    level = shown_level(first.data.areas.regions)
    made = None if first.data.on_map.shapes(level) is None else _make_scene(shown)
    with row:
        _pane_controls(shown, None if made is None else made[0])
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if config().present:
                show_verdict(result.headline, "", result.rule, whose)
        if made is None:
            st.caption("These regions have neither outlines nor coordinates: the tab *Table* has their counts.")
        elif canvas_failed():
            _show_without_canvas(shown)
        else:
            _show_canvas(made[0], first.data, made[1])
    with below:
        if not config().present:
            show_headline(result.headline, whose)
        _show_strip(shown, level, whose)
        if not config().present:
            show_detail(f"{result.detail} {_describe_narrow(first, level)}", result.rule)
            teach_note(protected)
        let_maps_come_first(AREAS)
        with st.container(key="figures"):
            runs = [first] if shown.second is None or shown.second is first else [first, shown.second]
            for what in runs:
                key_figures(what, what.evaluation, level)
            show_tabs(runs, [what.evaluation for what in runs], level)
    AREAS.write_address()


def _show_strip(shown: Shown, level: int, whose: str) -> None:
    run = describe_run(shown.first)
    title = f"Budget and error of {f'the right map: {run}' if whose else run}. Levels are those of the regions, the whole first."
    show_strip(shown.first, level, shown.before, fresh=shown.fresh, title=title)


def _describe_narrow(what: AreasDrawn, level: int) -> str:
    """Write for how many regions of a level the count is well known, which the noise on an average region does not say."""
    row = evaluation_of(what).by_level.to_dict("records")[level]
    return f"Of its regions, {row['narrow']:.3g} % have an interval narrower than half their count."


def _stamp(what: AreasDrawn) -> str:
    return f"Run {what.number}, seeded: a simulation, not private."


def _describe_asked(what: AreasDrawn) -> str:
    """Write the sum of the regions that are asked for, or how to ask."""
    regions = what.data.areas.regions
    asked = asked_regions(regions)
    return describe_sum(what, evaluation_of(what), shown_level(regions), list(asked)) if asked else "Click regions on a map to add them up."


def _pane_controls(shown: Shown, scene: Scene | None) -> None:
    """Ask what each map shows, and offer the next run, play, undo, the code, and more about the maps."""
    data: AreasData = shown.first.data
    choose_pane(AREAS, "left", "Left map", [*SHOWN_AREAS, SECOND])
    choose_pane(AREAS, "shown", "Right map", list(SHOWN_AREAS))
    choose_measure(data)
    LIVE.show_buttons()
    show_release_code(data, list_code(shown))
    with st.popover("More"):
        show_value("raw", config().raw)
        st.toggle(
            "As measured",
            key="raw",
            help="Counts as first measured, before least squares makes the levels agree.",
            on_change=when_chosen("raw", lambda value: AREAS.change(raw=value)),
        )
        if scene is not None:
            shows_error = ERROR in (config().left, config().shown)
            more_about_maps(scene, _STREETS, on_earth=True, shows_error=shows_error, on_fit=_fit_scales)


def _fit_scales() -> None:
    AREAS.change_for_good(scales={})


def describe_run(what: AreasDrawn) -> str:
    """Write how a run was made: mechanism, budget and number."""
    how = what.config
    return f"{what.title}, {budget_text(how.epsilon, how.delta if how.takes_delta else 0)}, run {what.number}"


def _choose_view(what: AreasDrawn) -> AreasMapSettings:
    """Choose the settings that all maps share; scales are those of the public counts, those of errors are kept."""
    rate = shown_rate(what.data)
    view = AreasMapSettings(
        level=shown_level(what.data.areas.regions),
        rate=rate,
        also=next(iter(what.data.denominators.values()), None),
        raw=config().raw,
        unit=what.data.unit,
        dark=is_dark(),
    )
    tops = choose_tops(what.release, view, true_counts(what, view.level))
    return replace(view, tops=_keep_error_top(tops, f"error {view.level} {MEASURES.index(shown_measure(what.data))}"))


def _keep_error_top(tops: AreaTops, name: str) -> AreaTops:
    """Return the tops with the one of errors that was kept; a new one is kept once a map shows errors."""
    if ERROR not in (config().left, config().shown):
        return tops
    if name not in config().scales:
        AREAS.change_for_good(scales={**config().scales, name: tops.error})
    return replace(tops, error=config().scales[name])


def _run_of_pane(shown: Shown, kind: str) -> tuple[str, AreasDrawn]:
    """Return the name of the run that a map shows, and the run."""
    return ("second", shown.second) if kind == SECOND and shown.second is not None else ("first", shown.first)


def _draw_pane(what: AreasDrawn, kind: str, view: AreasMapSettings) -> AreasDrawing:
    seen = replace(view, shown=RELEASED if kind == SECOND else kind)
    return draw_areas(what.release, what.data.on_map, seen, true_counts(what, view.level))


def _make_pane(drawing: AreasDrawing, kind: str, run: str, what: AreasDrawn) -> Pane:
    pane = make_pane(drawing, areas=run, about=describe_run(what), chosen=asked_regions(what.data.areas.regions))
    return replace(pane, title=f"{pane.title}, second run") if kind == SECOND else pane


def _make_scene(shown: Shown) -> tuple[Scene, list[AreasDrawing]]:
    """Return both maps, with all regions in view, and what is drawn on each."""
    how, first = config(), shown.first
    view, kinds = _choose_view(first), (how.left, how.shown)
    runs = [_run_of_pane(shown, kind) for kind in kinds]
    drawings = [_draw_pane(what, kind, view) for (_, what), kind in zip(runs, kinds, strict=True)]
    made = [_make_pane(drawing, kind, *run) for drawing, kind, run in zip(drawings, kinds, runs, strict=True)]
    bounds = first.data.on_map.bounds
    scene = Scene(
        bounds=bounds,
        areas={run: areas_of(drawing) for drawing, (run, _) in zip(drawings, runs, strict=True)},
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}. {drawings[1].description}",
        dark=is_dark(),
        height=TALL if how.present else HEIGHT,
        text_size=16 if how.present else 12,
        edge=False,
        nothing="No region is here.",
        title=first.data.title,
        caption=verdict_of(first).headline,
        stamp=_stamp(first),
        link=first.data.bundled,
        ground=ground_in(bounds),
        places=names_in(bounds),
        streets=streets_wanted(_STREETS),
    )
    return scene, drawings


@st.fragment
def _show_canvas(scene: Scene, data: AreasData, drawings: list[AreasDrawing]) -> None:
    """Show the canvas; a move of the camera runs this function alone."""
    with st.container(key="map"):
        panes(
            open_scene(AREAS, scene, data.areas.regions),
            key="areas canvas",
            on_chosen=partial(_take_chosen, data.areas.regions, drawings),
            on_camera=partial(keep_camera, AREAS),
            on_swipe=partial(keep_swipe, AREAS),
        )
    if st.session_state.pop(_RERUN, False) or canvas_failed():
        st.rerun()
    AREAS.write_address()


def _take_chosen(regions: Regions, drawings: list[AreasDrawing], chosen: Chosen) -> None:
    """Ask for the region that was clicked."""
    if chosen.cell is None or chosen.kind != "area" or chosen.pane >= len(drawings):
        return
    if chosen.cell < len(drawings[chosen.pane].areas.size):
        toggle_asked(regions, chosen.cell)
        st.session_state["areas tab"] = ASK_TAB
        st.session_state[_RERUN] = True


def _show_without_canvas(shown: Shown) -> None:
    """Show the same maps by Streamlit's own map, where the browser could not load the canvas."""
    st.caption(":orange[This browser could not load the map library: the maps are shown one by one, without a common view.]")
    view = _choose_view(shown.first)
    for name, column in zip(("left", "shown"), st.columns(2), strict=True):
        kind = getattr(config(), name)
        what = _run_of_pane(shown, kind)[1]
        seen = replace(view, shown=RELEASED if kind == SECOND else kind)
        picture = areas_map(what.release, seen, true_counts(what, view.level), what.data.on_map)
        with column:
            st.pydeck_chart(picture.deck, height=HEIGHT, key=f"areas map {name}", alt=picture.description)
            st.html(picture.legend + (f'<div class="dpviz-note">{html(picture.note)}</div>' if picture.note else ""))
