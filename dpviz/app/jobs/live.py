"""Runs that follow the controls: seeded releases of public data, made in the background while a page waits or shows progress.

A newer question replaces an older one, which ends at its next random number. A run starts at once, but not sooner than a second after the
one before, so that twenty changes in two seconds make at most three runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeAlias

from dpviz.app.jobs.job import Job, StoppedError, describe_failure
from dpviz.app.jobs.results import Results
from dpviz.app.server.class_limits import RUNS, Check

SECONDS_BETWEEN = 1.0  # from the start of one run to the start of the next
FEWEST = 4  # results that are kept whatever their size: two panes, and the same before the last change
Work: TypeAlias = Callable[[Check], Any]
"""A function that makes one result; it calls its argument now and then."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions:
    """What one run answers; the attributes are the arguments of `LiveRuns.ask`."""

    works: Mapping[Hashable, Work]
    shared: Results | None


class LiveRuns:
    """The runs of one page of one session: at most one at a time, and the results of the last few.

    Args:
        room: the largest size of all results that are kept, see `Results`.
        weigh: see `Results`.
        page: key of the page.

    Attributes:
        started: number of runs whose work has begun.
        running: the run under way; None if there is none.
    """

    def __init__(self, room: float = 24, weigh: Callable[[Any], float] = lambda _: 1.0, page: str = "") -> None:
        self.started = 0
        self.running: Job[Questions] | None = None
        self._kind, self._begun = f"live run {page}", -math.inf
        self._results = Results(room, weigh, FEWEST)
        self._errors: dict[Hashable, str] = {}
        self._given_up: set[Hashable] = set()
        self._lock = RLock()

    def ask(self, works: Mapping[Hashable, Work], shared: Results | None = None) -> None:
        """Answer questions that are not yet answered, in one run; a run for other questions ends.

        Args:
            works: what makes the result of each question; a question identifies data and settings completely.
            shared: results that other sessions found already, and where those of this run are kept for them; None without sharing.
        """
        with self._lock:
            for question in works:
                known = None if shared is None else shared.get(question)
                if known is not None and not self._is_closed(question):
                    self._results.keep(question, known)
            open_works = {question: work for question, work in works.items() if not self._is_closed(question)}
            run = self.running
            if run is not None and not run.stopped.is_set():
                if open_works.keys() == {question for question in run.of.works if not self._is_closed(question)}:
                    return
                run.stop(wait=False)
            self.running = None
            if open_works:
                questions = Questions(works=open_works, shared=shared)
                self.running = Job(run=self._serve, of=questions, name="run", kind=self._kind, total=len(open_works))
                self.running.start()

    def wait(self, seconds: float) -> None:
        """Wait until the run under way has ended, at most so many seconds."""
        if (run := self.running) is not None:
            run.wait(seconds)

    def result(self, question: Hashable) -> Any | None:
        """Return the result for a question; None if there is none."""
        return self._results.get(question)

    def refusal(self, question: Hashable) -> str | None:
        """Return why a question was refused; None if it was not."""
        return self._errors.get(question)

    def is_given_up(self, question: Hashable) -> bool:
        """Return whether the run for a question was stopped by hand."""
        return question in self._given_up

    def stop(self) -> None:
        """Stop the run under way; its questions are not answered until `resume`."""
        with self._lock:
            if self.running is not None:
                self._given_up |= self.running.of.works.keys()
                self.running.stop(wait=False)
                self.running = None

    def resume(self) -> None:
        """Let questions be answered whose run was stopped by hand."""
        self._given_up.clear()

    def _is_closed(self, question: Hashable) -> bool:
        return question in self._results or question in self._errors or question in self._given_up

    def _serve(self, run: Job[Questions]) -> None:
        """Work on a run, after a pause if the one before began less than a second ago."""
        try:
            run.stopped.wait(max(self._begun + SECONDS_BETWEEN - time.monotonic(), 0.0))
            with self._lock:
                run.check()
                self._begun, self.started = time.monotonic(), self.started + 1
            for question in run.of.works:
                self._answer(run, question)
        finally:
            with self._lock:
                if self.running is run:
                    self.running = None

    def _answer(self, run: Job[Questions], question: Hashable) -> None:
        """Find the result for a question, or why there is none; keep neither of a run that was stopped meanwhile."""
        result, error = None, ""
        try:
            with run.turn(RUNS) as check:
                result = run.of.works[question](check)
        except StoppedError:
            raise
        except Exception as failure:  # noqa: BLE001 - it ends this question, but not the run
            error = describe_failure(failure, run.name)
        with self._lock:
            run.check()
            if error:
                self._errors[question] = error
            else:
                self._results.keep(question, result if run.of.shared is None else run.of.shared.keep(question, result))
        run.report(run.made + 1)
