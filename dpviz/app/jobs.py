"""Long work in the background of a page: studies, counts of files, and searches for an epsilon.

Each runs in a thread, which collects the results. Stopping a study ends its workers, and stopping a count removes its temporary files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any, Protocol

import numpy as np
import pandas as pd

from dpviz.data.counting.job import Progress
from dpviz.errors import DpvizError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Run, Study
from dpviz.evaluation.tables import finished_runs, tidy
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.dry_run import MOST_ATTEMPTS, WantedError, find_epsilon
from dpviz.publishing.private_data import OpenedData

RUNNING, STOPPED, DONE, FAILED = "running", "stopped", "done", "failed"
SECONDS_TO_STOP = 10.0  # seconds in which a stopped study or search ends
SECONDS_TO_STOP_COUNT = 30.0  # seconds to wait at most until a stopped count has removed its temporary files
_FEWEST_WORKERS, _MOST_WORKERS = 2, 8
_MOST_RELEASES = 8
_SECONDS_BETWEEN_CHECKS = 0.02
MOST_KNOWN_ROWS = 20_000  # of one sample and seed, about 30 MB


class StudyJob:
    """One study and its rows so far. The page reads its state; the job does not use the page.

    Args:
        study: the study.
        config: what the page keeps with the study; the job itself does not use it.
        rows: rows of an earlier part of the same study, or of a study with other mechanisms on the same data; they are not made again.
        known_rows: takes every row that this job makes, but not the earlier ones; None if nothing outside the session may keep them.
    """

    def __init__(self, study: Study, config: Any, rows: list[dict[str, Any]], known_rows: KnownRows | None = None) -> None:
        self.study, self.config, self.error = study, config, ""
        done = pd.DataFrame(list(rows))
        self.made, self.total = len(finished_runs(study, done) & {run.id for run in study.runs()}) if rows else 0, len(study)
        self._known_rows = known_rows
        self._rows = rows
        self._stop = Event()
        self._releases: dict[str, Any] = {}
        self._table: tuple[int, pd.DataFrame] = (-1, pd.DataFrame())
        self._thread = Thread(target=self._work, args=(done,), name="study", daemon=True)

    def start(self, patience: float = 0.0) -> None:
        """Start the thread; call it once. Wait up to `patience` seconds for the first rows."""
        self._thread.start()
        until = time.monotonic() + patience
        while self._thread.is_alive() and not self._rows and time.monotonic() < until:
            time.sleep(_SECONDS_BETWEEN_CHECKS)

    def stop(self, *, wait: bool = True) -> None:
        """End the study and its workers; its rows are kept. With `wait`, wait until the thread has ended, at most `SECONDS_TO_STOP`."""
        self._stop.set()
        if wait and self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)

    @property
    def state(self) -> str:
        """The state: running, stopped, done or failed."""
        if self._thread.is_alive():
            return RUNNING
        return FAILED if self.error else DONE if self.made >= self.total else STOPPED

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A copy of all rows so far, including the rows of earlier parts."""
        return list(self._rows)

    def table(self) -> pd.DataFrame:
        """Return the rows so far that belong to this study, in its order."""
        count = len(self._rows)
        if self._table[0] != count:
            self._table = (count, tidy(self.study, self._rows[:count]))
        return self._table[1]

    def release(self, run: Run) -> Any:
        """Repeat the release that a run measured, from its seed: a simulation, which spends nothing. The last few are kept."""
        if run.id not in self._releases:
            while len(self._releases) >= _MOST_RELEASES:
                del self._releases[next(iter(self._releases))]
            self._releases[run.id] = self.study.release(run)
        return self._releases[run.id]

    def _work(self, done: pd.DataFrame) -> None:
        workers = max(_FEWEST_WORKERS, min(os.cpu_count() or 1, _MOST_WORKERS))
        try:
            for row in compare(self.study, workers=workers, done=done, stop=self._stop, progress=self._count):
                self._rows.append(row)
                if self._known_rows is not None:
                    self._known_rows.add(row)
        except DpvizError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001  (a thread has no caller that could catch it; data of studies are public)
            self.error = f"The study failed unexpectedly ({type(error).__name__})."

    def _count(self, made: int, total: int) -> None:
        self.made, self.total = made, total


class KnownRows:
    """Rows of studies on one public sample with one seed, which sessions share; the oldest go when there are too many.

    Only rows that a study of this server has made are kept here, never those of a loaded table.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = Lock()

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, unless the row of this run and workload is kept already."""
        with self._lock:
            self._rows.setdefault((row["run"], row["workload"]), row)
            while len(self._rows) > MOST_KNOWN_ROWS:
                del self._rows[next(iter(self._rows))]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows, oldest first."""
        with self._lock:
            return list(self._rows.values())


class Job(Protocol):
    """Work in the background that can be stopped."""

    def stop(self, *, wait: bool = True) -> None:
        """End the work; with `wait`, return only once it has ended."""


class Keeper:
    """The owner of a session's background work: keeps one job of each kind, and stops them when the session ends."""

    def __init__(self) -> None:
        self._jobs: dict[type, Job] = {}

    def take(self, job: Job) -> None:
        """Keep a job, and stop the earlier job of the same kind."""
        earlier = self._jobs.pop(type(job), None)
        if earlier is not None:
            earlier.stop(wait=False)
        self._jobs[type(job)] = job

    def stop_all(self) -> None:
        """Stop all jobs without waiting for them: Streamlit calls this where nothing may take long."""
        for job in self._jobs.values():
            job.stop(wait=False)


_MOST_KEPT = 2
_NO_MEMORY = "There is not enough memory to count this: choose engine duckdb or dask, or a lower resolution."

Work = Callable[[Progress], OpenedData]


class CountingJob:
    """One count in a thread. The page reads its state; the job does not use the page.

    Args:
        key: identifies the files and how they are counted.
        work: function that counts; through its argument it reports progress and learns of a cancellation.
    """

    def __init__(self, key: object, work: Work) -> None:
        self.key, self.done, self.error = key, 0.0, ""
        self.found: OpenedData | None = None
        self._work, self._cancel, self._ended = work, Event(), Event()
        self._thread = Thread(target=self._run, name="counting", daemon=True)

    def start(self) -> None:
        """Start the thread; call it once."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until the count has ended."""
        self._ended.wait()

    def stop(self, *, wait: bool = True) -> None:
        """Cancel the count; with `wait`, wait until it has removed its files, at most `SECONDS_TO_STOP_COUNT` seconds."""
        self._cancel.set()
        if wait and self._thread.is_alive():
            self._ended.wait(SECONDS_TO_STOP_COUNT)

    @property
    def state(self) -> str:
        """The state: running, stopped, done or failed."""
        if self.found is not None:
            return DONE
        if self._cancel.is_set():
            return STOPPED
        return FAILED if self.error else RUNNING

    def _run(self) -> None:
        try:
            self.found = self._work(Progress(progress=self._report, cancel=self._cancel))
        except DpvizError as error:
            self.error = str(error)
        except MemoryError:
            self.error = _NO_MEMORY
        except Exception as error:  # noqa: BLE001  (a library's text could quote a cell)
            self.error = f"The counting failed unexpectedly ({type(error).__name__})."
        finally:
            self._ended.set()

    def _report(self, done: float) -> None:
        self.done = done


class SessionCounts:
    """The counts of a session, by page: the running one, and the last few that are done.

    A count that runs is cancelled by `stop_all`.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, list[CountingJob]] = {}

    def of(self, page: str, key: object) -> CountingJob | None:
        """Return the page's count with that key, running or ended; None if there is none.

        A running count with another key is cancelled, because no page needs it.
        """
        jobs = self._jobs.get(page, [])
        for job in jobs:
            if job.key != key and job.state == RUNNING:
                job.stop(wait=False)
        return next((job for job in jobs if job.key == key), None)

    def take(self, page: str, job: CountingJob) -> CountingJob:
        """Keep a count and start it."""
        others = [other for other in self._jobs.get(page, []) if other.key != job.key and other.state == DONE]
        self._jobs[page] = [*others, job][-_MOST_KEPT:]
        job.start()
        return job

    def stop_all(self) -> None:
        """Cancel the running counts. Streamlit calls this, and waits for it, so it must be quick."""
        for job in [job for jobs in self._jobs.values() for job in jobs]:
            job.stop(wait=False)
        self._jobs.clear()


class _StoppedError(Exception):
    """Raised inside a search to end it."""


class InverseJob:
    """The search for the epsilon of each of several mechanisms. The page reads its state; the job does not use the page.

    Args:
        question: the question that the answers belong to; the job itself does not use it.
        data: points or trips; only their frame, unit and bound per person are used.
        mechanisms: mechanisms by their name on screen.
        wanted: the wanted error, and the level at which it is wanted.
    """

    def __init__(self, question: object, data: Any, mechanisms: dict[str, AnyMechanism], wanted: WantedError) -> None:
        self.question, self.rows = question, list[dict[str, Any]]()
        self._data, self._mechanisms, self._wanted = data, mechanisms, wanted
        self._attempts, self._stop = 0, Event()
        self._thread = Thread(target=self._work, name="inverse", daemon=True)

    def start(self, patience: float = 0.0) -> None:
        """Start the search, and wait up to `patience` seconds, in which most searches end."""
        self._thread.start()
        self._thread.join(patience)

    def stop(self, *, wait: bool = False) -> None:
        """End the search after the release that it is making; answers stay. With `wait`, return only once it has ended."""
        self._stop.set()
        if wait:
            self._thread.join()

    @property
    def running(self) -> bool:
        """Whether the search is still running."""
        return self._thread.is_alive() and not self._stop.is_set()

    @property
    def share(self) -> float:
        """The part of the search that is done, 0 to 1; the search may end earlier."""
        total = max(len(self._mechanisms), 1)
        return min((len(self.rows) + min(self._attempts / MOST_ATTEMPTS, 1.0)) / total, 1.0)

    @property
    def at(self) -> str:
        """The name of the mechanism whose epsilon is being searched; empty at the end."""
        return [*self._mechanisms, ""][len(self.rows)]

    def _work(self) -> None:
        for label in self._mechanisms:
            try:
                self.rows.append(self._answer(label))
            except _StoppedError:
                return
            self._attempts = 0

    def _answer(self, label: str) -> dict[str, Any]:
        try:
            result = find_epsilon(self._mechanisms[label], self._data, self._wanted, before_attempt=self._before_attempt)
        except DpvizError as refusal:
            return {"Configuration": label, "ε": None, "error": np.nan, "note": str(refusal)}
        return {"Configuration": label, "ε": result.epsilon, "error": result.error, "note": result.note}

    def _before_attempt(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self._attempts += 1
