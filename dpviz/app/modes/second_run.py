"""Two runs that two maps show in Teach: that of the controls, and a second one with a mechanism, settings and budget of its own."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.modes.live_runs import LiveControls
from dpviz.app.session.ledger import LoadedData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import Releases
from dpviz.app.session.widgets import carry_out, newest_result, result_slot, widget_for
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


@dataclass(frozen=True, kw_only=True)
class TwoRuns:
    """The runs of one page.

    Attributes:
        live: the controls of its runs.
        releases: makes them.
    """

    live: LiveControls
    releases: Releases[Any, Any, Any]

    @property
    def _state(self) -> FamilyState:
        return self.live.page_state

    @property
    def _slots(self) -> tuple[str, str, str]:
        return f"{self._state.key} first run", f"{self._state.key} second run", f"{self._state.key} run before"

    def follow(self, data: Any, *, fits: bool) -> tuple[ShownRun | None, list[Hashable]]:
        """Follow the controls.

        Args:
            data: public data.
            fits: whether all controls hold choices that fit; if not, the last runs stay.

        Returns:
            The runs of the present settings, or the last ones on the same frame, None while there are none; and the questions that the
            page asks, for `LiveControls.show_status`.
        """
        play_next = st.container()  # before the maps, so that nothing below it moves
        page = self._state.page
        wanted = [page.draft.of_run(index) for index in ((0, 1) if page.shows_second else (0,))]
        works: dict[Hashable, Any] = {question_of(data, each): partial(self.releases.run, data, each) for each in wanted} if fits else {}
        runs = self.live.follow(works, bundled=data.bundled)
        results = [result for question in works if (result := runs.result(question)) is not None]
        if not works or len(results) < len(works):
            return self._find_last(data), list(works)
        with play_next:
            self.live.play()
        return self._take(results), list(works)

    def _take(self, results: list[Any]) -> ShownRun:
        """Keep new results; two runs with the same settings are one result."""
        first, second, before = self._slots
        last = newest_result(first)
        if last is not results[0]:
            st.session_state[before] = last
            result_slot(first).append(results[0])
        if self._state.page.shows_second:
            result_slot(second).append(results[-1])
        return ShownRun(
            first=results[0],
            second=results[-1] if self._state.page.shows_second else None,
            before=st.session_state.get(before),
            fresh=True,
        )

    def _find_last(self, data: Any) -> ShownRun | None:
        first, second, before = self._slots
        needs_second = self._state.page.shows_second
        last, other = newest_result(first), newest_result(second) if needs_second else None
        if last is None or last.data.counts.frame != data.counts.frame or (needs_second and other is None):
            return None
        return ShownRun(first=last, second=other, before=st.session_state.get(before), fresh=False)


def question_of(data: LoadedData, how: Draft) -> tuple[object, ...]:
    """Return what identifies a run in Teach: data, mechanism, settings, budget and number.

    The data are identified by the counts themselves, not by their content: one file can be counted in several ways.
    """
    mechanism = how.build()
    return (data.counts, mechanism.key, str(mechanism.chosen()), how.budget(), how.run.seed)


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
