"""Run a study: rows stream as they come, from this process or from workers; stop it, resume it, get the same table."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from threading import Event
from typing import Any

import pandas as pd

from dpviz.answers.rows import Failure, Row, attempt
from dpviz.answers.study import Run, Study
from dpviz.answers.study_table import made_already
from dpviz.answers.workers import MOST_WORKERS, Crew
from dpviz.errors import DpvizError, SettingError

Progress = Callable[[int, int], Any]
Found = Generator[list[Row] | Failure | None, None, None]

PATIENCE = 0.05  # seconds between looks at `stop`


def compare(
    study: Study,
    *,
    workers: int = 1,
    done: pd.DataFrame | None = None,
    stop: Event | None = None,
    progress: Progress | None = None,
) -> Generator[Row, None, None]:
    """Make the runs of a study; give their rows as soon as they are there.

    With workers, rows come in the order in which runs end, and `tidy` brings them into the study's own. To stop, close the generator or
    set `stop`: workers end at once, in the middle of a run.

    Args:
        study: what is compared.
        workers: 1 makes the runs in this process; more in as many processes, which get the data once. While they start, this process
            makes runs itself, so that the first ones are there at once.
        done: rows that are there already, from `read_rows` or from before: their runs are not made again.
        stop: set from another thread, ends the study after the run that this process is at, if any.
        progress: called with how many runs are there and how many there are in all, at the beginning and after each run.

    Yields:
        Rows as `rows_of` gives them, one per run and workload.

    Raises:
        SettingError: a number of workers out of range, rows of another study, or a mechanism that workers cannot import.
        DpvizError: a run failed; says which and why. What was made before it can be resumed from.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise SettingError(f"workers must be a whole number from 1 to {MOST_WORKERS}.")
    runs, there = study.runs(), made_already(study, done)
    left = deque(place for place, run in enumerate(runs) if run.id not in there)
    return _streamed(study, runs, left, workers, (stop or Event(), progress or _silent))


def _streamed(study: Study, runs: list[Run], left: deque[int], workers: int, watch: tuple[Event, Progress]) -> Generator[Row, None, None]:
    stop, progress = watch
    made, total = len(runs) - len(left), len(runs)
    progress(made, total)
    source = _here(study, runs, left) if workers == 1 or len(left) < 2 else _together(study, runs, left, (workers, stop))
    with closing(source):
        for found in source:
            if stop.is_set():
                return
            if found is None:
                continue
            if isinstance(found, Failure):
                raise DpvizError(found.text)
            made += 1
            yield from found
            progress(made, total)
            if stop.is_set():
                return


def _here(study: Study, runs: list[Run], left: deque[int]) -> Found:
    """One run after the other in this process; None before the first, so that a stop is seen."""
    yield None
    while left:
        yield attempt(study, runs[left.popleft()])


def _together(study: Study, runs: list[Run], left: deque[int], how: tuple[int, Event]) -> Found:
    """Runs by workers, and by this process until the first of them is ready; None now and then."""
    workers, stop = how
    awaited = len(left)
    with Crew(study, left, workers) as crew:
        while awaited and not stop.is_set():
            yield None
            if not crew.ready.is_set() and left:
                awaited -= 1
                yield attempt(study, runs[left.popleft()])
            found = crew.next(0 if left and not crew.ready.is_set() else PATIENCE)
            if found is not None:
                awaited -= 1
                yield found[1]


def _silent(made: int, total: int) -> None:
    """No progress is asked for."""
