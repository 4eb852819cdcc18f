"""Two runs that two maps show in Teach: that of the controls, and a second one with a mechanism, settings and budget of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out, widget_for
from dpviz.app.state.draft import Draft
from dpviz.publishing.code import CodeRun

LEFT_RUN, RIGHT_RUN = "Left map", "Right map"


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """What the two maps show.

    Attributes:
        first: the run of the controls.
        second: the second run; None if no map shows it.
        before: the run of the controls before that one; None if there was none.
        fresh: whether the runs are those of the present settings.
    """

    first: Any
    second: Any | None
    before: Any | None
    fresh: bool

    @property
    def runs(self) -> list[Any]:
        """The different runs, that of the controls first."""
        return [self.first] if self.second is None or self.second is self.first else [self.first, self.second]


def list_code(shown: ShownRun) -> list[CodeRun]:
    """Return what the code of a page makes: the run of the right map, and that of the left one if it has its own."""
    if shown.second is None:
        return [_code_of(shown.first.draft, "")]
    return [_code_of(shown.first.draft, RIGHT_RUN), _code_of(shown.second.draft, LEFT_RUN)]


def _code_of(how: Draft, title: str) -> CodeRun:
    return CodeRun(mechanism=how.build(), budget=how.budget(), seed=how.run.seed, title=title)


def choose_run(state: FamilyState) -> None:
    """Where the maps show two runs, ask whose settings the controls are."""
    page = state.page
    if not page.shows_second:
        return
    shown = widget_for(
        "editing", LEFT_RUN if page.edited else RIGHT_RUN, lambda value: state.change(view={"edited": int(value == LEFT_RUN)})
    )
    st.segmented_control("Settings of", (LEFT_RUN, RIGHT_RUN), required=True, **shown)
    other, about = "right" if page.edited else "left", "Mechanism, settings and budget of the other map's run."
    st.button(f"Copy from the {other} map", key="copy run", help=about, on_click=carry_out(partial(_copy_run, state)))


def _copy_run(state: FamilyState) -> None:
    """Give the run that is edited the settings of the other run; each keeps its seed."""
    page = state.page
    other = page.draft.runs[0 if page.edited else 1]
    parts = {name: getattr(other, name) for name in ("mechanism", "settings", "epsilon", "delta", "noise")}
    replace(state, index=page.edited).change(run=parts, view={"level": page.view.level})


def choose_pane(state: FamilyState, name: str, label: str, kinds: list[str]) -> None:
    """Ask what a map shows; the answer is the title of the map.

    Args:
        state: state of the page.
        name: "left" or "shown", the map on the right.
        label: of the question.
        kinds: the answers; the first one is taken where the configuration has another.
    """
    chosen = getattr(state.view, name)
    st.selectbox(
        label,
        kinds,
        label_visibility="collapsed",
        **widget_for(f"pane {name}", chosen if chosen in kinds else kinds[0], partial(_change_pane, state, name)),
    )


def _change_pane(state: FamilyState, name: str, kind: str) -> None:
    """Show something else on a map."""
    view = state.view
    state.change(view={"panes": view.with_left(kind) if name == "left" else view.with_shown(kind)})
