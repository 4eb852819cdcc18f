"""What the maps of Teach share on all pages: two maps in one canvas that follow the controls, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.components.code import show_release_code
from dpviz.app.components.panes import Chosen, panes
from dpviz.app.components.streets import streets_switch, streets_wanted
from dpviz.app.components.words import budget_text
from dpviz.app.modes.family_page import FamilyPage, TeachParts
from dpviz.app.modes.header import not_private_stamp
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.modes.rail import show_rail
from dpviz.app.modes.second_run import ShownRun, choose_pane, let_maps_come_first, list_code
from dpviz.app.session.camera import keep_camera, keep_swipe, open_scene
from dpviz.app.session.ledger import record_public_look
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import OneRelease
from dpviz.app.session.widgets import is_dark
from dpviz.app.state.values import SECOND
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Pane, Scene
from dpviz.view.escape import markdown
from dpviz.view.points_canvas import ERROR, RELEASED
from dpviz.view.scene_svg import draw_svg

_NO_PICTURE = "There is no picture yet. If something is missing or wrong, a message on the left or below says what."


def show_teach(page: FamilyPage, data: PageData[Any] | None, row: DeltaGenerator, protected: str, fits: bool) -> None:
    """Show the maps, the rail and the tabs for public data.

    Args:
        page: the page.
        data: the data; None while something is missing.
        row: the first row of the page, for the controls of the maps.
        protected: what a release would protect.
        fits: whether all controls fit; if not, the last maps stay.
    """
    if data is None:
        st.info("Choose data on the left to begin.")
        return
    if not record_public_look(data):
        return
    shown, questions = page.runs.follow(data, fits=fits)
    page.begin(data.counts.frame if shown is None else shown.first.data.counts.frame)
    idle, also = ("", None) if shown is None else page.idle(shown)
    above, status, below = st.container(), st.container(), st.container()  # a fragment that runs by itself writes to the place it had
    with status:
        page.runs.live.show_status(questions, idle, also)
    if shown is not None:
        _show_result(page, shown, protected, (row, above, below))
    else:
        above.caption("The first picture is being made ..." if page.runs.live.runs().running else _NO_PICTURE)


def _show_result(page: FamilyPage, shown: ShownRun, protected: str, places: tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]) -> None:
    """Show the controls of the maps in the first row, maps and rail above the row of the status, and notes and tabs below it."""
    row, above, below = places
    first, parts, view = shown.first, page.teach(shown), page.state.view
    scene = None if parts.scene is None else _finish_scene(page, parts.scene, first.data)
    with row:
        _show_controls(page, shown, parts, scene)
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if not first.release.receipt.private:
                st.html(not_private_stamp(type(first.draft.build())))
        if scene is None:
            parts.without_map()
        else:
            _show_canvas(page.state, scene, first.data.counts.frame, parts)
        if parts.rail is not None:
            with st.container(key="rail"):
                show_rail(page.state, shown, parts.rail, waits=page.runs.live.runs().running is not None)
    with below:
        if parts.lead:
            st.markdown(markdown(parts.lead))
        parts.contrasts()
        if not view.present:
            parts.notes()
            st.caption(f"Public data, seeded noise, truth beside the release: nothing here is private. {protected}")
        let_maps_come_first(page.state)
        with st.container(key="figures"):
            parts.figures()
    page.state.write_address()


def _show_controls(page: FamilyPage, shown: ShownRun, parts: TeachParts, scene: Scene | None) -> None:
    """Ask what each map shows, and offer the next run, play, undo, the code, and more about the maps."""
    state = page.state
    choose_pane(state, "left", "Left map", [*parts.kinds, SECOND])
    choose_pane(state, "shown", "Right map", list(parts.kinds))
    parts.choose()
    page.runs.live.show_buttons()
    show_release_code(shown.first.data, list_code(shown))
    with st.popover("More"):
        parts.choose_more()
        st.toggle("As measured", help=f"Counts as first measured{page.raw}", **state.widget("view", "raw"))
        if scene is not None:
            _offer_more(page, scene, on_earth=parts.on_earth)


def _offer_more(page: FamilyPage, scene: Scene, *, on_earth: bool) -> None:
    """Offer new scales of errors, the maps as SVG, and the street map."""
    fit_help = "Choose the scale of errors for this run; for maps of errors."
    shows_error, fit = ERROR in (page.state.view.left, page.state.view.shown), partial(page.state.look, scales={})
    st.button("Fit scale", key="fit scale", help=fit_help, on_click=fit, disabled=not shows_error)
    st.download_button(
        "SVG",
        partial(draw_svg, scene),
        "dpviz.svg",
        "image/svg+xml",
        on_click="ignore",
        key="svg",
        help="Both maps with titles, legends, caption and stamp, for print.",
    )
    streets_switch(page.streets, on_earth=on_earth)


def describe_run(what: OneRelease[Any, Any, Any]) -> str:
    """Write how a run was made: the title of its mechanism, its budget and its number; a contrast has no budget."""
    how, run = what.draft, what.draft.run
    budget = budget_text(run.epsilon or 0, (run.delta or 0) if how.takes_delta else 0) if how.build().spends else ""
    return ", ".join(filter(None, (what.title, budget, f"run {run.seed}")))


def stamp_maps(shown: ShownRun) -> str:
    """Write what the right map's run is; and if the left map's is not private, that, too."""
    what, second = shown.first, shown.second
    if what.release.receipt.private:
        stamp = f"Run {what.number}, seeded: a simulation, not private."
    else:
        kind = "this reference shows what privacy costs, and" if what.release.states_noise else "a contrast, which"
        stamp = f"NOT PRIVATE, run {what.number}: {kind} must never be published."
    return stamp if second is None or second.release.receipt.private else f"{stamp} Left map: NOT PRIVATE."


@dataclass(frozen=True, kw_only=True)
class DrawnMap:
    """One of the two maps.

    Attributes:
        run: name of its run, "first" or "second".
        drawing: what is drawn on it.
        pane: the map.
    """

    run: str
    drawing: Any
    pane: Pane


def draw_maps(
    page: FamilyState, shown: ShownRun, draw: Callable[[Any, str], Any], make: Callable[[Any, Any, str], Pane]
) -> tuple[DrawnMap, DrawnMap]:
    """Draw what both maps show, and make their panes, the left one first.

    Args:
        page: state of the page.
        shown: the runs.
        draw: draws a run, given what the map shows of it.
        make: makes the pane of a drawing, a run and its name.
    """

    def draw_map(kind: str) -> DrawnMap:
        run, what = ("second", shown.second) if kind == SECOND and shown.second is not None else ("first", shown.first)
        drawing = draw(what, RELEASED if kind == SECOND else kind)
        return DrawnMap(run=run, drawing=drawing, pane=name_second(make(drawing, what, run), kind))

    return draw_map(page.view.left), draw_map(page.view.shown)


def name_second(pane: Pane, kind: str) -> Pane:
    """Return the pane of a map that shows a kind of counts; the title of the second run says that it is one."""
    return replace(pane, title=f"{pane.title}, second run") if kind == SECOND else pane


def keep_error_tops(page: FamilyState, tops: dict[str, float]) -> dict[str, float]:
    """Return tops of the colour scales of errors, by their names, as they were kept; new ones are kept once a map shows errors."""
    view = page.view
    if ERROR not in (view.left, view.shown):
        return tops
    if missing := {name: top for name, top in tops.items() if name not in view.scales}:
        page.look(scales={**view.scales, **missing})
    return {name: page.view.scales[name] for name in tops}


def make_scene(made: Sequence[Pane], further: str, **parts: Any) -> Scene:
    """Return the scene of both maps.

    Args:
        made: the maps.
        further: how the description goes on after their titles.
        parts: what else the scene has on this page.
    """
    return Scene(panes=tuple(made), description=f"{made[0].title} beside {made[1].title.lower()}{further}", dark=is_dark(), **parts)


def _finish_scene(page: FamilyPage, scene: Scene, data: PageData[Any]) -> Scene:
    """Return a scene with the name of its data, in the size of the page, with streets if wanted."""
    is_large = page.state.view.present
    return replace(
        scene,
        height=page.heights[is_large],
        text_size=16 if is_large else 12,
        title=data.title,
        link=data.bundled,
        streets=streets_wanted(page.streets),
    )


@st.fragment
def _show_canvas(state: FamilyState, scene: Scene, frame: object, parts: TeachParts) -> None:
    """Show both maps, with all of the frame in view; a move of the camera runs this function alone."""
    key = f"{state.prefix}canvas"
    with st.container(key="map"):
        panes(
            open_scene(state, scene, frame),
            key=key,
            on_box=partial(_take_box, key, parts),
            on_chosen=partial(_take_chosen, key, parts),
            on_camera=partial(keep_camera, state),
            on_swipe=partial(keep_swipe, state),
        )
    rerun_if_changed(key)
    state.write_address()


def _take_chosen(key: str, parts: TeachParts, chosen: Chosen) -> None:
    if chosen.pane < len(parts.drawings) and parts.take_chosen(parts.drawings[chosen.pane], chosen):
        note_change(key)


def _take_box(key: str, parts: TeachParts, box: Bounds) -> None:
    if parts.take_box(box):
        note_change(key)
