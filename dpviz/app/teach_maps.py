"""What the maps of Teach share on all pages: two maps in one canvas that follow the controls, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.camera import keep_camera, keep_swipe, open_scene
from dpviz.app.components.panes import Chosen, panes
from dpviz.app.ledger import record_public_look
from dpviz.app.page_changes import note_change, rerun_if_changed
from dpviz.app.page_config import SECOND, PageConfig
from dpviz.app.page_data import PageData
from dpviz.app.page_state import PageState
from dpviz.app.streets import streets_wanted
from dpviz.app.two_runs import ShownRun
from dpviz.app.words import budget_text
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Scene

Data = TypeVar("Data", bound=PageData)
ShowTeach = Callable[[Any, DeltaGenerator, str, bool], None]
"""Shows the maps, the strip and the tabs for public data; None while something is missing. The other arguments are the first row of the
page, for the controls of the maps; what a release would protect; and whether all controls fit: if not, the last maps stay."""


def may_be_shown(data: Data | None) -> TypeGuard[Data]:
    """Return whether the truth of public data may be shown; if not, say why."""
    if data is None:
        st.info("Choose data on the left to begin.")
        return False
    return record_public_look(data)


def describe_run(title: str, how: PageConfig) -> str:
    """Write how a run was made: the title of its mechanism, its budget and its number; a contrast has no budget."""
    if not how.family.choices[how.mechanism].spends:
        return f"{title}, run {how.run}"
    return f"{title}, {budget_text(how.epsilon, how.delta if how.takes_delta else 0)}, run {how.run}"


def run_of_pane(shown: ShownRun, kind: str) -> tuple[str, Any]:
    """Return the name of the run that a map shows, "first" or "second", and the run."""
    return ("second", shown.second) if kind == SECOND and shown.second is not None else ("first", shown.first)


def raw_switch(page: PageState, text: str) -> None:
    """Show the switch of counts as first measured; `text` says what post-processing does to them."""
    st.toggle("As measured", help=f"Counts as first measured{text}", **page.widget("raw"))


def finish_scene(page: PageState, scene: Scene, data: PageData, streets: str) -> Scene:
    """Return the scene of both maps as the page shows it: with the name of its data, larger names for a projector, and streets if wanted.

    Args:
        page: state of the page.
        scene: both maps.
        data: of the right map.
        streets: key of the switch of the street map.
    """
    size = 16 if page.config().present else 12
    return replace(scene, text_size=size, title=data.title, link=data.bundled, streets=streets_wanted(streets))


@st.fragment
def show_canvas(
    page: PageState,
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


def note_canvas_change(page: PageState) -> None:
    """Note that a click on the maps has changed the page, which runs again."""
    note_change(_key(page))


def _key(page: PageState) -> str:
    return f"{page.prefix}canvas"
