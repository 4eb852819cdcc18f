"""What the maps of Teach share on all pages: two maps in one canvas that follow the controls, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.components.panes import Chosen, panes
from dpviz.app.components.streets import streets_wanted
from dpviz.app.components.words import budget_text, show_detail, show_headline, show_verdict
from dpviz.app.modes.header import not_private_stamp, teach_note
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.modes.second_run import RIGHT_RUN, ShownRun, let_maps_come_first
from dpviz.app.session.camera import keep_camera, keep_swipe, open_scene
from dpviz.app.session.ledger import record_public_look
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import OneRelease
from dpviz.app.session.widgets import is_dark
from dpviz.app.state.values import SECOND
from dpviz.release.verdict import Verdict
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Pane, Scene
from dpviz.view.escape import markdown
from dpviz.view.points_canvas import ERROR, RELEASED

Data = TypeVar("Data", bound=PageData[Any])
ShowTeach = Callable[[Any, DeltaGenerator, str, bool], None]
"""Shows the maps, the strip and the tabs for public data; None while something is missing. The other arguments are the first row of the
page, for the controls of the maps; what a release would protect; and whether all controls fit: if not, the last maps stay."""


def may_be_shown(data: Data | None) -> TypeGuard[Data]:
    """Return whether the truth of public data may be shown; if not, say why."""
    if data is None:
        st.info("Choose data on the left to begin.")
        return False
    return record_public_look(data)


@dataclass(frozen=True, kw_only=True)
class TeachParts:
    """What differs between the pages around and under their maps.

    Attributes:
        verdict: on the run of the right map; None if it has none.
        lead: what stands before its headline.
        detail: what stands under the strip, where the page is not for a projector; it is the whole text without a verdict.
        controls: shows the controls of the maps.
        maps: shows the maps.
        contrasts: says what is to be known of runs that are contrasts.
        strip: shows the strip under a title, whose first sentence it gets.
        notes: shows what else stands under the strip.
        figures: shows the key figures and the tabs.
    """

    verdict: Verdict | None
    lead: str = ""
    detail: str = ""
    controls: Callable[[], object]
    maps: Callable[[], object]
    contrasts: Callable[[], object]
    strip: Callable[[str], object]
    notes: Callable[[], object] = lambda: None
    figures: Callable[[], object]


def show_parts(
    page: FamilyState, first: OneRelease[Any, Any, Any], places: tuple[DeltaGenerator, ...], protected: str, parts: TeachParts
) -> None:
    """Show the maps with their controls, and below the row of the status the strip, the verdict and the tabs.

    Args:
        page: state of the page.
        first: the run of the right map.
        places: the first row of the page, and what is above and below the row of the status.
        protected: what a release would protect.
        parts: of the page.
    """
    (row, above, below), verdict, view = places, parts.verdict, page.view
    whose = RIGHT_RUN if page.page.shows_second else ""
    with row:
        parts.controls()
    with above:
        with st.container():  # always there: if what follows changed its place, the browser would build the maps anew
            if not first.release.receipt.private:
                st.html(not_private_stamp(type(first.draft.build())))
            if view.present and verdict is not None:
                show_verdict(verdict.headline, "", verdict.rule, whose)
        parts.maps()
    with below:
        if not view.present and verdict is not None:
            show_headline(f"{parts.lead} {verdict.headline}".strip(), whose)
        parts.contrasts()
        run = describe_run(first)
        parts.strip(f"Budget and error of {f'the right map: {run}' if whose else run}.")
        if not view.present:
            if verdict is not None:
                show_detail(parts.detail, verdict.rule)
            elif parts.detail:
                st.markdown(markdown(parts.detail))
            parts.notes()
            teach_note(protected)
        let_maps_come_first(page)
        with st.container(key="figures"):
            parts.figures()
    page.write_address()


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


def raw_switch(page: FamilyState, text: str) -> None:
    """Show the switch of counts as first measured; `text` says what post-processing does to them."""
    st.toggle("As measured", help=f"Counts as first measured{text}", **page.widget("view", "raw"))


def make_scene(
    page: FamilyState, data: PageData[Any], made: Sequence[Pane], further: str, *, streets: str, heights: tuple[int, int], **parts: Any
) -> Scene:
    """Return the scene of both maps, with the name of its data, and streets if wanted.

    Args:
        page: state of the page.
        data: of the right map.
        made: the maps.
        further: how the description goes on after their titles.
        streets: key of the switch of the street map.
        heights: in pixels, of the canvas with its legends and tools; and for a projector, where names are larger.
        parts: what else the scene has on this page.
    """
    is_large = page.view.present
    return Scene(
        panes=tuple(made),
        description=f"{made[0].title} beside {made[1].title.lower()}{further}",
        dark=is_dark(),
        height=heights[is_large],
        text_size=16 if is_large else 12,
        title=data.title,
        link=data.bundled,
        streets=streets_wanted(streets),
        **parts,
    )


@st.fragment
def show_canvas(
    page: FamilyState,
    scene: Scene,
    frame: object,
    on_chosen: Callable[[Chosen], None],
    on_box: Callable[[Bounds], None] = lambda _: None,
) -> None:
    """Show both maps; a move of the camera runs this function alone.

    Args:
        page: state of the page.
        scene: the maps, with all of the frame in view.
        frame: the public frame of the maps: a domain, or regions.
        on_chosen: called with what was clicked; `note_canvas_change` says that the page has changed.
        on_box: called with a box that was dragged, likewise.
    """
    with st.container(key="map"):
        panes(
            open_scene(page, scene, frame),
            key=_key(page),
            on_box=on_box,
            on_chosen=on_chosen,
            on_camera=partial(keep_camera, page),
            on_swipe=partial(keep_swipe, page),
        )
    rerun_if_changed(_key(page))
    page.write_address()


def note_canvas_change(page: FamilyState) -> None:
    """Note that a click on the maps has changed the page, which runs again."""
    note_change(_key(page))


def _key(page: FamilyState) -> str:
    return f"{page.prefix}canvas"
