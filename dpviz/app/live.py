"""Runs that follow the controls: seeded releases of public data, made in the background while a page waits or shows progress.

A newer question replaces an older one, which ends at its next random number. A run starts at once, but not sooner than a second after the
one before, so that twenty changes in two seconds make at most three runs.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from threading import Condition, Event, Lock, Thread
from typing import Any

from dpviz.app.class_limits import run_within_limits
from dpviz.errors import DpvizError

SECONDS_BETWEEN = 1.0  # from the start of one run to the start of the next
_FEWEST = 4  # results that are kept whatever their size: two panes, and the same before the last change


class StoppedError(Exception):
    """A run was stopped, or replaced by a newer one."""


Check = Callable[[], None]
"""A function that raises `StoppedError` once a run is stopped; work calls it now and then."""
Work = Callable[[Check], Any]
"""A function that makes one result."""


class Results:
    """Results by their questions. Those asked for longest ago are dropped once all together are larger than `room`.

    Args:
        weigh: returns the size of a result.
        room: see above.
    """

    def __init__(self, weigh: Callable[[Any], float], room: float) -> None:
        self._weigh, self._room = weigh, room
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, question: Hashable) -> bool:
        return question in self._results

    def get(self, question: Hashable) -> Any | None:
        """Return the result for a question; None if there is none."""
        with self._lock:
            if question in self._results:
                self._results.move_to_end(question)
            return self._results.get(question)

    def keep(self, question: Hashable, result: Any) -> None:
        """Keep a result."""
        with self._lock:
            self._results[question] = result
            while len(self._results) > _FEWEST and sum(map(self._weigh, self._results.values())) > self._room:
                self._results.popitem(last=False)

    def clear(self) -> None:
        """Drop all results."""
        with self._lock:
            self._results.clear()


@dataclass(eq=False)
class Run:
    """One run in the background.

    Attributes:
        works: what makes the result of each question.
        shared: where the results are kept for other sessions as well; None if they are this session's own.
        asked: time of the request, by the monotonic clock.
        stopped: whether the run was stopped, or replaced by a newer one.
    """

    works: dict[Hashable, Work]
    shared: Results | None = None
    asked: float = field(default_factory=time.monotonic)
    stopped: Event = field(default_factory=Event)

    def check(self) -> None:
        """Raise `StoppedError` once the run is stopped."""
        if self.stopped.is_set():
            raise StoppedError

    @property
    def seconds(self) -> float:
        """Seconds since the request."""
        return time.monotonic() - self.asked


class LiveRuns:
    """The runs of one page of one session: at most one at a time, and the results of the last few.

    Args:
        weigh: see `Results`.
        room: see `Results`.

    Attributes:
        started: number of runs whose work has begun.
    """

    def __init__(self, weigh: Callable[[Any], float] = lambda _: 1, room: float = 24) -> None:
        self.started = 0
        self._changed = Condition()
        self._results = Results(weigh, room)
        self._errors: dict[Hashable, str] = {}
        self._given_up: set[Hashable] = set()
        self._run: Run | None = None
        self._begun = -math.inf

    def ask(self, works: Mapping[Hashable, Work], shared: Results | None = None) -> None:
        """Answer questions that are not yet answered, in one run; a run for other questions ends.

        Args:
            works: what makes the result of each question; a question identifies data and settings completely.
            shared: results that other sessions found already, and where those of this run are kept for them; None without sharing.
        """
        with self._changed:
            for question in works:
                known = None if shared is None else shared.get(question)
                if known is not None and not self._is_closed(question):
                    self._results.keep(question, known)
            open_works = {question: work for question, work in works.items() if not self._is_closed(question)}
            if self._run is not None:
                if open_works.keys() == {question for question in self._run.works if not self._is_closed(question)}:
                    return
                self._end_run()
            if open_works:
                self._run = Run(works=open_works, shared=shared)
                Thread(target=self._serve, args=(self._run,), name="live run", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Wait until no run is under way, at most so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._run is None, seconds)

    def result(self, question: Hashable) -> Any | None:
        """Return the result for a question; None if there is none."""
        with self._changed:
            return self._results.get(question)

    def refusal(self, question: Hashable) -> str | None:
        """Return why a question was refused; None if it was not."""
        return self._errors.get(question)

    def is_given_up(self, question: Hashable) -> bool:
        """Return whether the run for a question was stopped by hand."""
        return question in self._given_up

    @property
    def running(self) -> Run | None:
        """The run under way; None if there is none."""
        return self._run

    def stop(self, *, wait: bool = True) -> None:  # noqa: ARG002 - all jobs are stopped alike
        """Stop the run under way; its questions are not answered until `resume`."""
        with self._changed:
            if self._run is not None:
                self._given_up |= self._run.works.keys()
                self._end_run()

    def resume(self) -> None:
        """Let questions be answered whose run was stopped by hand."""
        self._given_up.clear()

    def _is_closed(self, question: Hashable) -> bool:
        return question in self._results or question in self._errors or question in self._given_up

    def _end_run(self) -> None:
        if self._run is not None:
            self._run.stopped.set()
        self._run = None
        self._changed.notify_all()

    def _serve(self, run: Run) -> None:
        """Work on a run, after a pause if the one before began less than a second ago."""
        if run.stopped.wait(max(self._begun + SECONDS_BETWEEN - time.monotonic(), 0.0)):
            return
        with self._changed:
            if run.stopped.is_set():
                return
            self._begun, self.started = time.monotonic(), self.started + 1
        for question, work in run.works.items():
            result, error = _try_work(work, run.check)
            with self._changed:
                if run.stopped.is_set():
                    return
                if error:
                    self._errors[question] = error
                else:
                    self._results.keep(question, result)
                    if run.shared is not None:
                        run.shared.keep(question, result)
        with self._changed:
            if self._run is run:
                self._end_run()


def _try_work(work: Work, check: Check) -> tuple[Any, str]:
    """Return the result of some work and "", or None and why there is none."""
    try:
        return run_within_limits(work, check), ""
    except StoppedError:
        return None, "stopped"
    except DpvizError as refusal:
        return None, str(refusal)
    except Exception as failure:  # noqa: BLE001 - a thread has no caller that could catch it; the data are public
        return None, f"The run failed unexpectedly ({type(failure).__name__})."
