"""A count of files in the background. Stopping it removes its temporary files."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeAlias

from dpviz.app.jobs.job import Job
from dpviz.data.counting.job import Progress
from dpviz.errors import DpvizError
from dpviz.publishing.private_data import OpenedData

SECONDS_TO_STOP_COUNT = 30.0  # seconds to wait at most until a stopped count has removed its temporary files
_NO_MEMORY = "There is not enough memory to count this: choose engine duckdb or dask, or a lower resolution."
CountingJob: TypeAlias = Job[Callable[[Progress], OpenedData]]


def make_count_job(kind: str, key: Hashable, count: Callable[[Progress], OpenedData]) -> CountingJob:
    """Make the job of a count, whose one result is what was counted. Through its argument, `count` reports and learns of a cancellation."""
    return Job(run=_count, of=count, name="counting", kind=kind, key=key, patience=SECONDS_TO_STOP_COUNT)


def _count(job: CountingJob) -> None:
    try:
        job.results.append(job.of(Progress(progress=lambda done: job.report(0, done), cancel=job.stopped)))
    except MemoryError:
        raise DpvizError(_NO_MEMORY) from None
    job.report(1)
