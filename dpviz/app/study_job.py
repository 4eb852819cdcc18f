"""A study in the background of a page: a thread collects its rows as they come; stopping the study ends its workers."""

from __future__ import annotations

import os
import time
from threading import Event, Thread
from typing import Any, Protocol

import pandas as pd

from dpviz.errors import DpvizError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Run, Study
from dpviz.evaluation.tables import tidy

RUNNING, STOPPED, DONE, FAILED = "running", "stopped", "done", "failed"
PATIENCE = 10.0
_FEWEST, _MOST = 2, 8
_MOST_DRAWN = 8
_MOMENT = 0.02


class StudyJob:
    """One study and the rows that it has so far. It does not know the page; the page reads its state.

    Args:
        study: the study.
        config: what the page keeps with the study; the job itself does not use it.
        rows: rows of an earlier part of the same study, or of a study with other mechanisms on the same data; they are not made again.
    """

    def __init__(self, study: Study, config: Any, rows: list[dict[str, Any]]) -> None:
        self.study, self.config, self.error = study, config, ""
        self.made, self.total = 0, len(study)
        self._rows = rows
        self._stop = Event()
        self._drawn: dict[str, Any] = {}
        self._table: tuple[int, pd.DataFrame] = (-1, pd.DataFrame())
        self._thread = Thread(target=self._work, args=(pd.DataFrame(list(rows)),), name="study", daemon=True)

    def start(self, patience: float = 0.0) -> None:
        """Start the thread; call it once. Wait up to `patience` seconds for the first rows."""
        self._thread.start()
        until = time.monotonic() + patience
        while self._thread.is_alive() and not self._rows and time.monotonic() < until:
            time.sleep(_MOMENT)

    def stop(self, *, wait: bool = True) -> None:
        """End the study and its workers; rows stay. With `wait`, return when the thread has ended, at most `PATIENCE` seconds later."""
        self._stop.set()
        if wait and self._thread.is_alive():
            self._thread.join(PATIENCE)

    @property
    def state(self) -> str:
        """The state: running, stopped, done or failed."""
        if self._thread.is_alive():
            return RUNNING
        return FAILED if self.error else DONE if self.made >= self.total else STOPPED

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A copy of all rows so far, those of earlier parts too."""
        return list(self._rows)

    def table(self) -> pd.DataFrame:
        """Return the rows so far that belong to this study, in its order."""
        count = len(self._rows)
        if self._table[0] != count:
            self._table = (count, tidy(self.study, self._rows[:count]))
        return self._table[1]

    def release(self, run: Run) -> Any:
        """Repeat the release that a run measured, from its seed: a simulation, which spends nothing. The last few are kept."""
        if run.id not in self._drawn:
            while len(self._drawn) >= _MOST_DRAWN:
                del self._drawn[next(iter(self._drawn))]
            self._drawn[run.id] = self.study.release(run)
        return self._drawn[run.id]

    def _work(self, done: pd.DataFrame) -> None:
        workers = max(_FEWEST, min(os.cpu_count() or 1, _MOST))
        try:
            for row in compare(self.study, workers=workers, done=done, stop=self._stop, progress=self._count):
                self._rows.append(row)
        except DpvizError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001  (a thread has no caller that could catch it; data of studies are public)
            self.error = f"The study failed that should not ({type(error).__name__})."

    def _count(self, made: int, total: int) -> None:
        self.made, self.total = made, total


class Job(Protocol):
    """Work in the background that can be stopped."""

    def stop(self, *, wait: bool = True) -> None:
        """End the work; with `wait`, return only once it has ended."""


class Keeper:
    """Holds a session's work in the background, one job of each kind, and stops it when the session ends."""

    def __init__(self) -> None:
        self._jobs: dict[type, Job] = {}

    def take(self, job: Job) -> None:
        """Hold another job, and stop an earlier one of the same kind."""
        before = self._jobs.pop(type(job), None)
        if before is not None:
            before.stop(wait=False)
        self._jobs[type(job)] = job

    def let_go(self) -> None:
        """Stop all jobs without waiting for them: Streamlit calls this where nothing may take long."""
        for job in self._jobs.values():
            job.stop(wait=False)
