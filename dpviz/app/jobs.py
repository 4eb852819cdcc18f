"""Long work in the background of a page: studies, counts of files, searches for an epsilon, and figures of papers.

Each runs in a thread, which collects the results. Stopping a study ends its workers, and stopping a count removes its temporary files.

A count or a search ends with its session. A study on a sample may be held by several sessions: when the last of them is gone, as for a
moment while a page is loaded anew, it goes on for `SECONDS_WITHOUT_PAGE` and then stops.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import takewhile
from threading import Event, Lock, Thread, Timer
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd

from dpviz.app.class_limits import run_within_limits, study_turn
from dpviz.app.class_mode import is_class
from dpviz.data.counting.job import Progress
from dpviz.errors import DpvizError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Run, Study
from dpviz.evaluation.tables import finished_runs, tidy
from dpviz.mechanisms.base import AnyMechanism
from dpviz.papers.figures import Figure, OneSeed, Paper
from dpviz.papers.figures import Run as FigureRun
from dpviz.publishing.dry_run import MOST_ATTEMPTS, WantedError, find_epsilon
from dpviz.publishing.private_data import OpenedData

RUNNING, STOPPING, STOPPED, DONE, FAILED = "running", "stopping", "stopped", "done", "failed"
SECONDS_TO_STOP = 10.0  # seconds in which stopped work ends
SECONDS_WITHOUT_PAGE = 60.0  # seconds for which a study on a sample goes on after the last page that held it is gone
SECONDS_TO_STOP_COUNT = 30.0  # seconds to wait at most until a stopped count has removed its temporary files
_FEWEST_WORKERS, _MOST_WORKERS = 2, 8
_MOST_RELEASES = 8
_SECONDS_BETWEEN_CHECKS = 0.02
MOST_KNOWN_ROWS = 20_000  # of one sample and seed, about 30 MB


def study_id(study: Study) -> str:
    """Return the fingerprint of a study's rows, and a digest of what the fingerprint leaves out: its runs and their names.

    Two studies of the same id make the same rows, except for the measured seconds.
    """
    first_runs = [(run.label, run.id) for run in study.runs()[: len(study) // study.repeats]]
    digest = hashlib.blake2b(repr((first_runs, study.repeats)).encode(), digest_size=4).hexdigest()
    return f"{study.fingerprint}-{digest}"


class _StoppedError(Exception):
    """Raised inside a job to end it."""


class _ThreadJob:
    """Work in a thread of its own, which ends at its next `_check` once it is stopped.

    Args:
        work: does all of it, and calls `_check` between its steps.
        name: of the work, in the text of an error.
        patience: seconds in which stopped work ends.

    Attributes:
        error: why the work failed; else "".
    """

    def __init__(self, work: Callable[[], None], name: str, patience: float = SECONDS_TO_STOP) -> None:
        self.error, self._name, self._patience = "", name, patience
        self._stop, self._thread = Event(), Thread(target=self._try, args=(work,), name=name, daemon=True)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except _StoppedError:
            return
        except DpvizError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001  (a thread has no caller that could catch it; a library's text could quote a cell)
            self.error = f"The {self._name} failed unexpectedly ({type(error).__name__})."

    def start(self, patience: float = 0.0) -> None:
        """Start the thread; call it once. Wait up to `patience` seconds for its end."""
        self._thread.start()
        self._thread.join(patience)

    def stop(self, *, wait: bool = True) -> None:
        """End the work after its present step; what is done stays. With `wait`, wait for its end, as long as stopped work takes at most."""
        self._stop.set()
        if wait and self._thread.is_alive():
            self._thread.join(self._patience)

    def _check(self) -> None:
        if self._stop.is_set():
            raise _StoppedError


class StudyJob(_ThreadJob):
    """One study and its rows so far. The page reads its state; the job does not use the page.

    Args:
        study: the study.
        config: what the page keeps with the study; the job itself does not use it.
        rows: rows of an earlier part of the same study, or of a study with other mechanisms on the same data; they are not made again.
        known_rows: takes every row that this job makes, but not the earlier ones; None if nothing outside the session may keep them.
        is_shared: whether other sessions may hold this job as well: all of its rows were made by this server, on a sample.

    Attributes:
        id: what `study_id` returns.
        is_waiting: whether it still waits for its turn, as studies of a class do.
    """

    def __init__(
        self, study: Study, config: Any, rows: list[dict[str, Any]], known_rows: KnownRows | None = None, *, is_shared: bool = False
    ) -> None:
        self.study, self.config, self.is_waiting = study, config, is_class()
        self.id, self.is_shared = study_id(study), is_shared
        done = pd.DataFrame(list(rows))
        self.made, self.total = len(finished_runs(study, done) & {run.id for run in study.runs()}) if rows else 0, len(study)
        self.known_rows = known_rows
        self._rows = rows
        self._lock, self._lock_of_releases = Lock(), Lock()
        self._holders: set[Keeper] = set()
        self._timer: Timer | None = None
        self._releases: dict[str, Any] = {}
        self._table: tuple[int, pd.DataFrame] = (-1, pd.DataFrame())
        super().__init__(partial(self._work, done), "study")

    def start(self, patience: float = 0.0) -> None:
        """Start the thread; call it once. Wait up to `patience` seconds for the first rows."""
        super().start()
        self.wait_for_rows(patience)

    def wait_for_rows(self, patience: float) -> None:
        """Wait up to `patience` seconds for the first rows of a job that has been started."""
        until = time.monotonic() + patience
        while self._thread.is_alive() and not self._rows and time.monotonic() < until:
            time.sleep(_SECONDS_BETWEEN_CHECKS)

    def hold(self, keeper: Keeper) -> bool:
        """Let a session hold this job, so that it goes on; return False if it is ending already."""
        with self._lock:
            if self._stop.is_set() and self.state == RUNNING:
                return False
            self._holders.add(keeper)
            self._cancel_timer()
            return True

    def let_go(self, keeper: Keeper, seconds: float = 0.0) -> None:
        """Let a session hold this job no longer. If none holds it, it is stopped; if it is shared, after so many seconds."""
        with self._lock:
            self._holders.discard(keeper)
            if self._holders:
                return
            self._cancel_timer()
            if self.is_shared and seconds:
                self._timer = Timer(seconds, self._stop_unless_held)
                self._timer.daemon = True
                self._timer.start()
            else:
                self._stop.set()

    @property
    def is_held(self) -> bool:
        """Whether any session holds this job."""
        return bool(self._holders)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_unless_held(self) -> None:
        with self._lock:
            if not self._holders:
                self._stop.set()

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
        with self._lock_of_releases:
            if run.id not in self._releases:
                while len(self._releases) >= _MOST_RELEASES:
                    del self._releases[next(iter(self._releases))]
                self._releases[run.id] = self.study.release(run)
            return self._releases[run.id]

    def _work(self, done: pd.DataFrame) -> None:
        workers = _FEWEST_WORKERS if is_class() else max(_FEWEST_WORKERS, min(os.cpu_count() or 1, _MOST_WORKERS))
        with study_turn(self._check) as check:
            self.is_waiting = False
            with closing(compare(self.study, workers=workers, done=done, stop=self._stop, progress=self._count)) as rows:
                for row in rows:
                    self._rows.append(row)
                    if self.known_rows is not None:
                        self.known_rows.add(row)
                    check()

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


class SharedStudies:
    """The studies on samples that run on this server or were completed by it a moment ago, by their ids.

    Nothing is kept alive here: a study is found for as long as a session holds it, and for `SECONDS_WITHOUT_PAGE` after that.
    """

    def __init__(self) -> None:
        self._jobs: WeakValueDictionary[str, StudyJob] = WeakValueDictionary()
        self._lock = Lock()

    def find(self, name: str) -> StudyJob | None:
        """Return the study of an id that is running or complete; None if there is none."""
        with self._lock:
            job = self._jobs.get(name)
        return job if job is not None and job.state in (RUNNING, DONE) else None

    def start(self, job: StudyJob, keeper: Keeper, patience: float) -> StudyJob:
        """Start a job for a session, unless a job of the same study is running: then let the session hold that one. Return the job held."""
        with self._lock:
            running = self._jobs.get(job.id)
            if running is not None and running.state == RUNNING and keeper.take(running):
                return running
            keeper.take(job)
            job.start()
            if job.is_shared:
                self._jobs[job.id] = job
        job.wait_for_rows(patience)
        return job


class Job(Protocol):
    """Work in the background that can be stopped."""

    def stop(self, *, wait: bool = True) -> None:
        """End the work; with `wait`, return only once it has ended."""


class Keeper:
    """The owner of a session's background work: keeps one job of each kind, and lets go of them when the session ends."""

    def __init__(self) -> None:
        self._jobs: dict[type, Job] = {}

    def take(self, job: Job) -> bool:
        """Keep a job, and end the earlier job of the same kind; return False, and keep nothing, if the job is ending already."""
        if isinstance(job, StudyJob) and not job.hold(self):
            return False
        earlier = self._jobs.pop(type(job), None)
        if earlier is not None and earlier is not job:
            self._end(earlier)
        self._jobs[type(job)] = job
        return True

    def end(self, job: Job) -> None:
        """Keep a job no longer; a study that other sessions hold goes on there, everything else is stopped."""
        if self._jobs.get(type(job)) is job:
            del self._jobs[type(job)]
        self._end(job)

    def end_all(self) -> None:
        """Keep no job any longer: see `end`."""
        for job in list(self._jobs.values()):
            self.end(job)

    def stop_all(self) -> None:
        """End all jobs without waiting for them, shared studies after a while: Streamlit calls this where nothing may take long.

        The browser may only be loading the page anew, and then finds its study running.
        """
        for job in self._jobs.values():
            self._end(job, SECONDS_WITHOUT_PAGE)

    def _end(self, job: Job, seconds: float = 0.0) -> None:
        if isinstance(job, StudyJob):
            job.let_go(self, seconds)
        else:
            job.stop(wait=False)


_MOST_KEPT = 2
_NO_MEMORY = "There is not enough memory to count this: choose engine duckdb or dask, or a lower resolution."

Work = Callable[[Progress], OpenedData]


class CountingJob(_ThreadJob):
    """One count in a thread. The page reads its state; the job does not use the page.

    Stopped with `wait`, it has removed its temporary files, but for what takes longer than `SECONDS_TO_STOP_COUNT`.

    Args:
        key: identifies the files and how they are counted.
        work: function that counts; through its argument it reports progress and learns of a cancellation.
    """

    def __init__(self, key: object, work: Work) -> None:
        self.key, self.done = key, 0.0
        self.found: OpenedData | None = None
        super().__init__(partial(self._count, work), "counting", SECONDS_TO_STOP_COUNT)

    def wait(self) -> None:
        """Wait until the count has ended."""
        self._thread.join()

    @property
    def state(self) -> str:
        """The state: running, stopped, done or failed."""
        if self.found is not None:
            return DONE
        if self._stop.is_set():
            return STOPPED
        return FAILED if self.error else RUNNING

    def _count(self, work: Work) -> None:
        try:
            self.found = work(Progress(progress=partial(setattr, self, "done"), cancel=self._stop))
        except MemoryError:
            self.error = _NO_MEMORY


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


class InverseJob(_ThreadJob):
    """The search for the epsilon of each of several mechanisms. The page reads its state; the job does not use the page.

    Args:
        question: the question that the answers belong to; the job itself does not use it.
        data: points or trips; only their frame, unit and bound per person are used.
        mechanisms: mechanisms by their name on screen.
        wanted: the wanted error, and the level at which it is wanted.
        gaussian: names of mechanisms with Gaussian noise, where the kind of the budget decides.
    """

    def __init__(
        self, question: object, data: Any, mechanisms: dict[str, AnyMechanism], wanted: WantedError, gaussian: Collection[str] = ()
    ) -> None:
        self.question, self.rows = question, list[dict[str, Any]]()
        self._data, self._mechanisms, self._wanted, self._gaussian = data, mechanisms, wanted, gaussian
        self._attempts = 0
        super().__init__(self._work, "inverse")

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
                self.rows.append(run_within_limits(partial(self._answer, label), self._check, is_long=True))
            except _StoppedError:
                return
            except DpvizError as refusal:  # a limit of a class
                self.rows.append(_no_answer(label, refusal))
            self._attempts = 0

    def _answer(self, label: str, check: Callable[[], None]) -> dict[str, Any]:
        def before_attempt() -> None:
            check()
            self._attempts += 1

        try:
            wanted = replace(self._wanted, gaussian=label in self._gaussian)
            result = find_epsilon(self._mechanisms[label], self._data, wanted, before_attempt=before_attempt)
        except DpvizError as refusal:
            return _no_answer(label, refusal)
        return {"Configuration": label, "ε": result.epsilon, "error": result.error, "note": result.note}


def _no_answer(label: str, refusal: DpvizError) -> dict[str, Any]:
    return {"Configuration": label, "ε": None, "error": np.nan, "note": str(refusal)}


class FigureJob(_ThreadJob):
    """One run of a figure of a paper in a thread. The page reads its state; the job does not use the page.

    Args:
        paper: the paper.
        figure: one of its figures.
        size: the name of a size of the figure.
        seeds: how many.
        known: the rows of each seed that any session has measured. The job measures no seed that is there, and adds its own; of a seed
            that two sessions measure at once, the first rows count for both.

    Attributes:
        total: all seeds.
    """

    def __init__(self, paper: Paper, figure: Figure, size: str, seeds: int, known: dict[int, pd.DataFrame]) -> None:
        self.paper, self.figure, self.size, self.total = paper, figure, size, seeds
        self._known = known
        self._parts = [known[seed] for seed in takewhile(known.__contains__, range(1, seeds + 1))]
        self._start, self._seconds = time.monotonic(), 0.0
        self._run: FigureRun | None = None
        super().__init__(self._work, "run")

    @property
    def made(self) -> int:
        """The number of seeds that are done."""
        return len(self._parts)

    @property
    def state(self) -> str:
        """The state: running, stopping (until the seed that it measures is done), stopped, done or failed."""
        if self.error:
            return FAILED
        if self.made >= self.total:
            return DONE
        if not self._stop.is_set():
            return RUNNING
        return STOPPING if self._thread.is_alive() else STOPPED

    def run(self) -> FigureRun | None:
        """Return the run with the seeds that are done, once it has ended; None before that, or if no seed is done."""
        if self.state not in (RUNNING, STOPPING) and self.made and self._run is None:
            parts = self._parts[: self.made]
            self._run = FigureRun(
                paper=self.paper, figure=self.figure, size=self.size, table=pd.concat(parts, ignore_index=True), seconds=self._seconds
            )
        return self._run

    def _work(self) -> None:
        run_within_limits(self._measure, self._check, is_long=True)

    def _measure(self, check: Callable[[], None]) -> None:
        """Measure the seeds that are not known; others may have measured some while this waited."""
        measure: OneSeed | None = None
        for seed in range(self.made + 1, self.total + 1):
            check()
            if seed not in self._known:
                measure = measure or self.figure.one_seed(self.size)
                self._known.setdefault(seed, measure(seed))
            self._seconds = time.monotonic() - self._start
            self._parts.append(self._known[seed])
