"""The runs of Teach, which follow the controls: the wait for a run, its progress, the next run, playing runs, and undo."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.jobs.live import FEWEST, LiveRuns, Work
from dpviz.app.jobs.results import Results
from dpviz.app.modes.header import present_button
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.server.class_limits import PATIENCE_OF_CLASS, TICK_OF_CLASS, in_class, room_of_session
from dpviz.app.session.cached import keeper
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import Releases
from dpviz.app.session.widgets import carry_out, newest_result, result_slot, show_error
from dpviz.app.state.draft import Draft
from dpviz.app.state.page import Page
from dpviz.app.state.run import Run
from dpviz.app.state.values import ORDINALS
from dpviz.view.escape import html

PATIENCE = 0.9  # seconds for which a page waits for a run before it shows the last picture with the progress
TICK, PLAY_TICK = 0.4, 0.9  # seconds between two looks at a run, and between two runs that are played
PLAYED = 20  # runs that *Play* shows in turn


def _with_next_seeds(page: Page) -> dict[str, tuple[Run, ...]]:
    """Return the runs of a page with the seeds that follow theirs, as a change of the draft."""
    return {"runs": tuple(replace(run, seed=run.seed + 1) for run in page.draft.runs)}


@dataclass(frozen=True, kw_only=True)
class TeachRuns:
    """The runs of one page in Teach, and their controls.

    Attributes:
        releases: makes them.
        weigh: returns the size of a result.
        room: the largest size of all results that a session keeps; less in a class.
        shared: results on bundled samples, which all sessions share: the same size of them is kept for all.
    """

    releases: Releases[Any, Any, Any]
    weigh: Callable[[Any], float]
    room: float
    shared: Results = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shared", Results(self.room, self.weigh, FEWEST))

    @property
    def _state(self) -> FamilyState:
        return self.releases.page

    def of_session(self) -> LiveRuns:
        """Return the runs of this session."""
        if self._slot not in st.session_state:
            st.session_state[self._slot] = LiveRuns(room_of_session(self.room), self.weigh, self._state.key)
        return st.session_state[self._slot]  # type: ignore[no-any-return]

    def follow(self, data: Any, *, fits: bool) -> tuple[ShownRuns | None, list[Hashable]]:
        """Follow the controls.

        Args:
            data: public data; all sessions share the results on bundled samples.
            fits: whether all controls hold choices that fit; if not, what runs is ended, and the last runs stay.

        Returns:
            The runs of the present settings, or the last ones on the same frame, None while there are none; and the questions that the
            page asks, for `show_status`.
        """
        play_next = st.container()  # before the maps, so that nothing below it moves
        page = self._state.page
        drafts = {index: page.draft.of_run(index) for index in page.shown_runs} if fits else {}
        questions = {index: _question_of(data, draft) for index, draft in drafts.items()}
        works: dict[Hashable, Work] = {questions[index]: partial(self.releases.run, data, draft) for index, draft in drafts.items()}
        runs = self._wait_for(works, self.shared if data.bundled else None)
        results = {index: result for index, question in questions.items() if (result := runs.result(question)) is not None}
        if not works or len(results) < len(questions):
            return self._find_last(data), list(works)
        with play_next:
            self._play_on()
        return self._take(results), list(works)

    def _wait_for(self, works: Mapping[Hashable, Work], shared: Results | None) -> LiveRuns:
        """Ask for results and wait a little for them; the session keeps the job. A newer event ends this run of the page while it waits."""
        runs = self.of_session()
        runs.ask(works, shared)
        if (run := runs.running) is not None:
            keeper().take(run)
        while (run := runs.running) is not None and run.seconds < in_class(PATIENCE, PATIENCE_OF_CLASS):
            runs.wait(in_class(0.03, 0.1))
            st.session_state.get(self._state.key)  # Streamlit ends the script here if a newer event has arrived
        return runs

    def _take(self, results: dict[int, Any]) -> ShownRuns:
        """Keep new results."""
        for index, result in results.items():
            result_slot(self._slot_of(index)).append(result)
        return ShownRuns(results=results, panes=self._state.view.panes, fresh=True)

    def _find_last(self, data: Any) -> ShownRuns | None:
        results = {index: newest_result(self._slot_of(index)) for index in self._state.page.shown_runs}
        if any(last is None or last.data.counts.frame != data.counts.frame for last in results.values()):
            return None
        return ShownRuns(results=results, panes=self._state.view.panes, fresh=False)

    def show_status(self, questions: list[Hashable], idle: str, also: Callable[[], object] | None = None) -> None:
        """Show in a row of fixed height what `show_progress` shows, or else a text, so that nothing below it moves.

        Args:
            questions: of the runs that are shown.
            idle: a text while nothing runs.
            also: shows a small button after that text.
        """
        with st.container(key="status"):
            if not self.show_progress(questions, idle):
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.html(f'<div class="dpviz-note">{html(idle)}</div>', width="content")
                    if also is not None:
                        also()

    def show_progress(self, questions: list[Hashable], idle: str) -> bool:
        """Show that a run takes longer, with a button that stops it, or why there is no result; return whether there is any of this.

        While runs are played, a run that takes longer is no news: the text for no run stays.
        """
        runs = self.of_session()
        refusals = [refusal for question in questions if (refusal := runs.refusal(question))]
        if refusals:
            show_error(refusals[0])
        elif any(runs.is_given_up(question) for question in questions):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(":orange[Stopped: the maps show the settings before.]", width="stretch")
                st.button("Run again", key="resume", on_click=runs.resume)
        elif runs.running is not None:
            st.fragment(self._tick, run_every=in_class(TICK, TICK_OF_CLASS))(idle)
        else:
            return False
        return True

    def _tick(self, idle: str) -> None:
        run = self.of_session().running
        if run is None:
            st.rerun()
        if self._left_to_play > 0:
            st.html(f'<div class="dpviz-note">{html(idle)}</div>')
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            text = f"Running for {run.seconds:.1f} s; the maps show the settings before ..."
            st.progress(min(0.95, run.seconds / (run.seconds + 2)), text, width="stretch")
            if st.button("Stop", key="stop run"):
                self.of_session().stop()
                st.rerun()

    def _play_on(self) -> None:
        """While runs are played, take the next one about a second after the last one is shown; call it once that is ready."""
        if self._left_to_play > 0:
            with st.container(key="play next"):
                st.fragment(self._play_next, run_every=in_class(PLAY_TICK, TICK_OF_CLASS))(self._state.draft.run.seed)

    def _play_next(self, shown_run: int) -> None:
        if self._left_to_play <= 0 or self._state.draft.run.seed != shown_run or self.of_session().running is not None:
            return
        if st.session_state.pop(self._pause, None) != shown_run:  # the first call comes at once: the picture stays for one tick
            st.session_state[self._pause] = shown_run
            return
        st.session_state[self._play] = self._left_to_play - 1
        self._state.change_for_good(draft=_with_next_seeds(self._state.page))
        st.rerun()

    def show_buttons(self) -> None:
        """Show the buttons for the next run, for playing runs, for undo, and for a projector."""
        st.button("Again", key="again", help="Another run: the same settings, new noise.", on_click=carry_out(self._run_again))
        left = self._left_to_play
        label = f"Stop ({left:d})" if left > 0 else "Play"
        played = f"{PLAYED} runs in turn: what stays is the data, what moves is noise."
        st.button(label, key="play", help=played, on_click=carry_out(self._switch_play))
        state = self._state
        st.button("Undo", key="undo", on_click=carry_out(self._undo), disabled=not state.can_undo, help="Take the last change back.")
        present_button(state)

    def _undo(self) -> None:
        """Take the last change back, and end playing."""
        st.session_state[self._play] = 0
        self._state.undo()

    def _run_again(self) -> None:
        self._state.change(draft=_with_next_seeds(self._state.page))

    def _switch_play(self) -> None:
        """Start or stop playing; *Undo* then goes back to the run before all that were played."""
        if self._left_to_play > 0:
            st.session_state[self._play] = 0
            return
        self._run_again()  # the first of them
        st.session_state[self._play] = PLAYED - 1

    def _slot_of(self, index: int) -> str:
        return f"{self._state.key} {ORDINALS[index]} run"

    @property
    def _slot(self) -> str:
        return f"live runs {self._state.key}"

    @property
    def _play(self) -> str:
        return f"runs to play {self._state.key}"

    @property
    def _pause(self) -> str:
        return f"play waits {self._state.key}"

    @property
    def _left_to_play(self) -> int:
        return int(st.session_state.get(self._play, 0))


def _question_of(data: Any, how: Draft) -> tuple[object, ...]:
    """Return what identifies a run in Teach: data, mechanism, settings, budget and number.

    The data are identified by the counts themselves, not by their content: one file can be counted in several ways.
    """
    mechanism = how.build()
    return (data.counts, mechanism.key, str(mechanism.chosen()), how.budget(), how.run.seed)
