"""Teach on all pages: maps in one canvas that follow the controls, drawers beside them, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.cards.unit import describe_left_out
from dpviz.app.components.code import show_release_code
from dpviz.app.components.drawers import ASK, MAP, NUMBERS, TEACH_ICONS, opened_drawer, show_drawer_icons
from dpviz.app.components.panes import Chosen, load_deck, panes
from dpviz.app.components.streets import streets_switch, streets_wanted
from dpviz.app.components.words import budget_text
from dpviz.app.modes.controls import teach_controls
from dpviz.app.modes.family_page import FamilyPage, Pages, TeachParts
from dpviz.app.modes.header import describe_unprotected, first_row, not_private_stamp
from dpviz.app.modes.layout import lay_out
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.modes.rail import RailParts, show_rail
from dpviz.app.modes.shown_runs import ShownRuns, choose_number, choose_panes, list_code
from dpviz.app.server.class_link import offer_class_link
from dpviz.app.session.camera import keep_camera, keep_swipe, open_scene
from dpviz.app.session.ledger import record_public_look
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import OneRelease
from dpviz.app.session.widgets import is_dark
from dpviz.app.state.values import ORDINALS, SAMPLE
from dpviz.app.state.view import Pane as ViewedPane
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Pane, Scene
from dpviz.view.escape import markdown
from dpviz.view.points_canvas import ERROR, TRUE
from dpviz.view.scene_svg import draw_svg

_NO_PICTURE = "There is no picture yet. If something is missing or wrong, a message above or below says what."


def show_teach(page: FamilyPage, others: Pages) -> None:
    """Show the first row, the drawers, and beside them the maps and the rail, for public data.

    Args:
        page: the page.
        others: the pages to which its buttons lead.
    """
    state = page.state
    load_deck()
    row, opened = first_row(state), opened_drawer(state)
    icons, drawer, main = lay_out(state.kind.family.title, opened.lower())
    with icons:
        show_drawer_icons({} if state.view.present else TEACH_ICONS, opened, lambda name: state.look(drawer=name))
    with drawer:
        if opened:
            st.header(opened, anchor=False)
    with main:
        messages = st.container()
        declared, fits = teach_controls(page, others, drawer, messages)
        data = declared.data
        state.write_address()
        if data is None:
            st.caption("The drawer *Data* says what is missing before there are counts to show.")
            if state.draft.source != SAMPLE:  # whose frame is its own
                page.show_declared(declared, None, page.unit_of(None))
        elif record_public_look(data):
            with row:
                page.runs.show_buttons()
            _follow(page, data, drawer, fits=fits)


def _follow(page: FamilyPage, data: PageData[Any], drawer: DeltaGenerator, *, fits: bool) -> None:
    """Show the runs of the controls, or the last ones while they are made or do not fit."""
    shown, questions = page.runs.follow(data, fits=fits)
    page.begin(data.counts.frame if shown is None else shown.first.data.counts.frame)
    idle, also = ("", None) if shown is None else page.idle(shown)
    above, status, below = st.container(key="panes"), st.container(), st.container(key="below")
    with status:  # a fragment that runs by itself writes to the place it had
        page.runs.show_status(questions, idle, also)
    if shown is not None:
        _show_result(page, shown, (drawer, above, below))
    else:
        above.caption("The first picture is being made ..." if page.runs.of_session().running else _NO_PICTURE)


def _show_result(page: FamilyPage, shown: ShownRuns, places: tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]) -> None:
    """Show maps and rail above the row of the status, notes below it, and the drawers that are about the runs."""
    drawer, above, below = places
    first, parts, view = shown.first, page.teach(shown), page.state.view
    scene = None if parts.scene is None else _finish_scene(page, shown, parts.scene, parts)
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if not first.release.receipt.private:
                st.html(not_private_stamp(type(first.draft.build())))
        choose_panes(page.state, parts.kinds, parts.part)
        if scene is None:
            parts.without_map()
        else:
            _show_canvas(page.state, scene, first.data.counts.frame, parts)
        if parts.strip is not None:
            with st.container(key="strip"):
                parts.strip()
        if parts.rail is not None:
            with st.container(key="rail"):
                show_rail(page.state, shown, parts.rail, waits=page.runs.of_session().running is not None)
    with below:
        if parts.lead:
            st.markdown(markdown(parts.lead))
        parts.contrasts()
        if not view.present:
            st.caption(_say_protected(page))
        for note in () if first.draft.source == SAMPLE else describe_left_out(first.data.counts):  # of public data
            st.caption(markdown(f"{note[:1].upper()}{note[1:]}"))
    with drawer:
        _fill_drawer(page, shown, parts, scene)
    page.state.write_address()


def _say_protected(page: FamilyPage) -> str:
    """Write what a release of the data would protect, and what not."""
    mechanism = type(page.state.draft.build())
    return f"{page.protected[page.state.protected]} {page.not_protected}" if mechanism.private else describe_unprotected(mechanism)


def _fill_drawer(page: FamilyPage, shown: ShownRuns, parts: TeachParts, scene: Scene | None) -> None:
    """Show what the open drawer says of the runs, or asks of their maps; those of the controls are full already."""
    opened = opened_drawer(page.state)
    if opened == MAP:
        choose_number(page.state, has_slots=parts.has_slots)
        parts.choose()
        st.toggle("As measured", help=f"Counts as first measured{page.raw}", **page.state.widget("view", "raw"))
        if scene is not None:
            _offer_more(page, scene, on_earth=parts.on_earth)
        offer_class_link(page.state.kind.family.title)
    elif opened == ASK:
        parts.ask()
    elif opened == NUMBERS:
        with st.container(key="figures"):
            parts.figures()
        show_release_code(shown.first.data, shown.first.draft, list_code(shown))


def _offer_more(page: FamilyPage, scene: Scene, *, on_earth: bool) -> None:
    """Offer new scales of errors, the maps as SVG, and the street map."""
    fit_help = "Choose the scale of errors for this run; for maps of errors."
    fit = partial(page.state.look, scales={})
    st.button("Fit scale", key="fit scale", help=fit_help, on_click=fit, disabled=not page.state.view.shows(ERROR))
    st.download_button(
        "SVG",
        partial(draw_svg, scene),
        "dpviz.svg",
        "image/svg+xml",
        on_click="ignore",
        key="svg",
        help="The maps with titles, legends, caption and stamp, for print.",
    )
    streets_switch(page.streets, on_earth=on_earth)


def describe_run(what: OneRelease[Any, Any, Any]) -> str:
    """Write how a run was made: the title of its mechanism, its budget and its number; a contrast has no budget."""
    how, run = what.draft, what.draft.run
    budget = budget_text(run.epsilon or 0, (run.delta or 0) if how.takes_delta else 0) if how.build().spends else ""
    return ", ".join(filter(None, (what.title, budget, f"run {run.seed}")))


def stamp_maps(shown: ShownRuns) -> str:
    """Write what the first run is; and of each other map whose run is not private, that, too."""
    what = shown.first
    if what.release.receipt.private:
        stamp = f"Run {what.number}, seeded: a simulation, not private."
    else:
        kind = "this reference shows what privacy costs, and" if what.release.states_noise else "a contrast, which"
        stamp = f"NOT PRIVATE, run {what.number}: {kind} must never be published."
    others = [f"{name}: NOT PRIVATE." for name, other in shown.named()[1:] if not other.release.receipt.private]
    return " ".join([stamp, *others])


@dataclass(frozen=True, kw_only=True)
class DrawnMap:
    """One of the maps.

    Attributes:
        run: name of its run.
        drawing: what is drawn on it.
        pane: the map.
    """

    run: str
    drawing: Any
    pane: Pane


def draw_maps(shown: ShownRuns, draw: Callable[[Any, ViewedPane], Any], make: Callable[[Any, Any, ViewedPane], Pane]) -> list[DrawnMap]:
    """Draw what the maps show, and make their panes, in their order. The title of a pane says which of several runs it shows.

    Args:
        shown: the runs.
        draw: draws a run, given what the map shows of it.
        make: makes the pane of a drawing and its run, given what the map shows.
    """

    def draw_map(pane: ViewedPane) -> DrawnMap:
        what, apart = shown.of_pane(pane), "" if pane.shows == TRUE else shown.tell_apart(pane.run)
        drawing = draw(what, pane)
        made = make(drawing, what, pane)
        return DrawnMap(run=ORDINALS[pane.run], drawing=drawing, pane=replace(made, title=", ".join(filter(None, (made.title, apart)))))

    return [draw_map(pane) for pane in shown.panes]


def keep_error_tops(page: FamilyState, tops: dict[str, float]) -> dict[str, float]:
    """Return tops of the colour scales of errors, by their names, as they were kept; new ones are kept once a map shows errors."""
    view = page.view
    if not view.shows(ERROR):
        return tops
    if missing := {name: top for name, top in tops.items() if name not in view.scales}:
        page.look(scales={**view.scales, **missing})
    return {name: page.view.scales[name] for name in tops}


def make_scene(made: Sequence[Pane], further: str, **parts: Any) -> Scene:
    """Return the scene of the maps.

    Args:
        made: the maps.
        further: how the description goes on after their titles.
        parts: what else the scene has on this page.
    """
    first, *others = [pane.title for pane in made]
    titles = " beside ".join([first, *(title[:1].lower() + title[1:] for title in others)])
    return Scene(panes=tuple(made), description=f"{titles}{further}", dark=is_dark(), **parts)


def _finish_scene(page: FamilyPage, shown: ShownRuns, scene: Scene, parts: TeachParts) -> Scene:
    """Return a scene with the name of its data, as large as the window allows, with streets if wanted."""
    data = shown.first.data
    return replace(
        scene,
        panes=_say_errors(scene.panes, shown, parts.rail) if parts.kinds else scene.panes,
        fills=True,
        titled=not parts.kinds,
        text_size=16 if page.state.view.present else 12,
        title=data.title,
        link=True,
        streets=streets_wanted(page.streets),
    )


def _say_errors(made: tuple[Pane, ...], shown: ShownRuns, rail: RailParts | None) -> tuple[Pane, ...]:
    """Return more than two maps with how far off the shown level of each run is, in place of how the run was made."""
    if rail is None or len(made) <= 2:
        return made
    texts = ["" if pane.shows == TRUE else rail.describe_error(shown.of_pane(pane)) for pane in shown.panes]
    return tuple(replace(pane, about=text) for pane, text in zip(made, texts, strict=True))


@st.fragment
def _show_canvas(state: FamilyState, scene: Scene, frame: object, parts: TeachParts) -> None:
    """Show both maps, with all of the frame in view; a move of the camera runs this function alone."""
    key = f"{state.prefix}canvas"
    with st.container(key="map"):
        panes(
            open_scene(state, scene, frame),
            key=key,
            on_box=partial(_take_box, state, key, parts),
            on_chosen=partial(_take_chosen, state, key, parts),
            on_camera=partial(keep_camera, state),
            on_swipe=partial(keep_swipe, state),
        )
    rerun_if_changed(key)
    state.write_address()


def _take_chosen(state: FamilyState, key: str, parts: TeachParts, chosen: Chosen) -> None:
    if chosen.pane < len(parts.drawings) and parts.take_chosen(parts.drawings[chosen.pane], chosen):
        _show_answer(state, key)


def _take_box(state: FamilyState, key: str, parts: TeachParts, box: Bounds) -> None:
    if parts.take_box(box):
        _show_answer(state, key)


def _show_answer(state: FamilyState, key: str) -> None:
    """Open the drawer that answers what was asked on a map."""
    state.look(drawer=ASK)
    note_change(key)
