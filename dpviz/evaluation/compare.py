"""Run a study in this process or in workers, and yield its rows; a study that is stopped and resumed gives the same table.

A study takes time for three things: making the releases; answering the study's questions and measuring the errors; and everything else,
such as rows, order and progress, which costs about 0 to 3 % of the other two. The `seconds` of a row include only the making of the
release, so the seconds of all rows need not add up to the time that a study takes. tests/benchmarks/test_studies.py measures all three.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pandas as pd

from dpviz.errors import DpvizError, SettingError
from dpviz.evaluation.rows import Failure, Row, attempt
from dpviz.evaluation.study import Run, Study
from dpviz.evaluation.tables import finished_runs
from dpviz.evaluation.workers import MOST_WORKERS, NO_RUN, Result, WorkerPool

Progress = Callable[[int, int], Any]
Results = Generator[tuple[int, Result] | None, None, None]

SECONDS_PER_LOOK = 0.05
"""Seconds between two checks of `stop`."""
MOST_LISTED = 20


@dataclass(kw_only=True)
class _Work:
    """The runs of a study that are still to be made, and the failed ones.

    Attributes:
        runs: all runs of the study.
        waiting: numbers of the runs that have not begun; workers take from this queue, too.
        skipped: numbers of the runs whose configuration and epsilon have failed already.
        failures: the first failure of each configuration and epsilon, as a text.
    """

    study: Study
    runs: list[Run]
    waiting: deque[int]
    skipped: set[int] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    def fail(self, number: int, failure: Failure) -> None:
        """Keep the failure, and skip the other runs of the same configuration and epsilon."""
        if number in self.skipped:
            return
        self.failures.append(failure.text)
        plans = len(self.runs) // self.study.repeats
        self.skipped.update(range(number % plans, len(self.runs), plans))

    def raise_failures(self) -> None:
        """Raise one error that lists the failures, if there are any."""
        if not self.failures:
            return
        listed, unlisted_number = self.failures[:MOST_LISTED], len(self.failures) - MOST_LISTED
        failed_ones = "One configuration" if len(self.failures) == 1 else f"{len(self.failures):,} configurations"
        unlisted = f"; and {unlisted_number:,} more" if unlisted_number > 0 else ""
        done = "the rows of all others are complete, and a resumed study tries these again."
        raise DpvizError(f"{failed_ones} of the study failed; {done} {'; '.join(listed)}{unlisted}")


def compare(
    study: Study,
    *,
    workers: int = 1,
    done: pd.DataFrame | None = None,
    stop: Event | None = None,
    progress: Progress | None = None,
) -> Generator[Row, None, None]:
    """Make the runs of a study, and yield the rows of each run when it ends.

    With workers, rows come in the order in which runs end; `tidy` sorts them into the study's order. If a run fails, the other runs of
    the same configuration and epsilon are left out, and the study goes on with all others.

    To stop the study, close the generator or set `stop`. Runs in workers are killed at once. A run in this process cannot be interrupted.
    With one worker, a stop waits for the current run to end. With several workers, this process makes runs itself only until the first
    worker is ready, mostly for a second or two; a stop waits for a run that this process has begun, however long the run takes.

    Args:
        study: the study.
        workers: 1 makes the runs in this process; a larger number makes them in this many processes, which get the data once. While
            the processes start, this process makes runs itself, so that the first rows come at once.
        done: rows of finished runs, from `read_rows` or from an earlier call; these runs are not made again.
        stop: ends the study as described above when another thread sets it; failures until then are not raised.
        progress: called with the number of finished runs and the number of all runs, at the beginning and after each run.

    Yields:
        Rows of `make_rows`, one per run and workload.

    Raises:
        SettingError: no study, a number of workers out of range, rows of another study, or a mechanism that workers cannot import.
        DpvizError: after all other rows, if runs failed; the text names their configurations and epsilons, and the reasons. A resumed
            study tries the failed runs again. Raised at once if a worker cannot start.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> study = dv.Study(data=points, public=True, mechanisms={"quad": dv.Quadtree(height=2)}, epsilons=(1,), repeats=3)
    >>> first = next(dv.compare(study))
    >>> first["mechanism"], first["workload"]
    ('quadtree', 'random')

    A study that was stopped after its first run is resumed:

    >>> rest = list(dv.compare(study, done=pd.DataFrame([first])))
    >>> len(study), len(rest)
    (3, 2)
    """
    if not isinstance(study, Study):
        raise SettingError("compare takes a Study: see dpviz.Study.")
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise SettingError(f"workers must be a whole number from 1 to {MOST_WORKERS}.")
    runs, finished = study.runs(), finished_runs(study, done)
    work = _Work(study=study, runs=runs, waiting=deque(number for number, run in enumerate(runs) if run.id not in finished))
    yield from _stream_rows(work, workers, stop or Event(), progress or (lambda *_: None))


def _stream_rows(work: _Work, workers: int, stop: Event, progress: Progress) -> Generator[Row, None, None]:
    finished, total = len(work.runs) - len(work.waiting), len(work.runs)
    progress(finished, total)
    results = _run_here(work) if workers == 1 or len(work.waiting) < 2 else _run_with_workers(work, workers, stop)
    with closing(results):
        for item in results:
            if stop.is_set():
                return
            if item is None:
                continue
            number, rows = item
            if isinstance(rows, Failure):
                if number == NO_RUN:
                    raise DpvizError(rows.text)
                work.fail(number, rows)
                continue
            finished += 1
            yield from rows
            progress(finished, total)
            if stop.is_set():
                return
    work.raise_failures()


def _run_here(work: _Work) -> Results:
    """Make one run after the other in this process; yield None before each run, so that the caller can react to a stop."""
    while work.waiting:
        yield None
        number = work.waiting.popleft()
        if number not in work.skipped:
            yield number, attempt(work.study, work.runs[number])


def _run_with_workers(work: _Work, workers: int, stop: Event) -> Results:
    """Make runs in workers, and in this process until the first worker is ready; yield None between results to allow for a stop."""
    unfinished = len(work.waiting)
    with WorkerPool(work.study, work.waiting, workers, work.skipped) as crew:
        while unfinished and not stop.is_set():
            yield None
            number_here = None if crew.ready.is_set() else _take_next(work.waiting)
            if number_here is not None:
                unfinished -= 1
                if number_here not in work.skipped:
                    yield number_here, attempt(work.study, work.runs[number_here])
            result = crew.next(SECONDS_PER_LOOK if number_here is None else 0)
            if result is None:
                continue
            number, rows = result
            unfinished -= 1
            if rows is not None:
                yield number, rows


def _take_next(waiting: deque[int]) -> int | None:
    try:
        return waiting.popleft()
    except IndexError:  # a worker has taken the last run
        return None
