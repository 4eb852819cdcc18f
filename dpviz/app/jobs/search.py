"""A search in the background for the epsilon of each of several mechanisms at which a count has a wanted error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpviz.app.jobs.job import Job
from dpviz.app.server.class_limits import LONG_RUNS, Check
from dpviz.errors import DpvizError
from dpviz.publishing.dry_run import MOST_ATTEMPTS, FoundEpsilon

Find: TypeAlias = Callable[[str, Check], FoundEpsilon]
"""A function that finds the epsilon of the mechanism of a name, and calls its second argument before each attempt."""
SearchJob: TypeAlias = Job[tuple[str, ...]]


def make_search_job(key: Hashable, labels: Iterable[str], find: Find) -> SearchJob:
    """Make the job of a search; its results are one row per mechanism, in their order.

    Args:
        key: the question that they belong to.
        labels: names of the mechanisms on screen.
        find: finds the epsilon of one of them.
    """
    of = tuple(labels)
    return Job(run=partial(_search, find), of=of, name="inverse", kind="search", key=key, total=len(of))


def searched_label(job: SearchJob) -> str:
    """Return the name of the mechanism whose epsilon is being searched; "" at the end."""
    return (*job.of, "")[job.made]


def _search(find: Find, job: SearchJob) -> None:
    for label in job.of:
        row: dict[str, Any] = {"Configuration": label, "ε": None, "error": np.nan, "note": ""}
        try:
            with job.turn(LONG_RUNS) as check:
                found = find(label, partial(_before_attempt, job, check))
            row |= {"ε": found.epsilon, "error": found.error, "note": found.note}
        except DpvizError as refusal:  # of the mechanism, or of a class
            row["note"] = str(refusal)
        job.results.append(row)
        job.report(job.made + 1)


def _before_attempt(job: SearchJob, check: Check) -> None:
    check()
    job.report(job.made, min(job.step + 1 / MOST_ATTEMPTS, 1.0))
