"""A search in the background for the epsilon of each of several mechanisms at which a count has a wanted error."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dpviz.app.class_limits import LONG_RUN
from dpviz.app.jobs.job import Job
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.dry_run import MOST_ATTEMPTS, WantedError, find_epsilon


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """What is searched.

    Attributes:
        data: points or trips; only their frame, unit and bound per person are used.
        mechanisms: mechanisms by their name on screen.
        wanted: the wanted error, and the level at which it is wanted.
        gaussian: names of mechanisms with Gaussian noise, where the kind of the budget decides.
    """

    data: Any
    mechanisms: Mapping[str, AnyMechanism]
    wanted: WantedError
    gaussian: Collection[str] = ()


SearchJob: TypeAlias = Job[Search]


def make_search_job(key: Hashable, search: Search) -> SearchJob:
    """Make the job of a search; its results are one row per mechanism, in their order. `key` is the question that they belong to."""
    return Job(run=_search, of=search, name="inverse", kind="search", key=key, total=len(search.mechanisms))


def searched_label(job: SearchJob) -> str:
    """Return the name of the mechanism whose epsilon is being searched; "" at the end."""
    return [*job.of.mechanisms, ""][job.made]


def _search(job: SearchJob) -> None:
    for made, label in enumerate(job.of.mechanisms, start=1):
        try:
            row = _find(job, label)
        except DpvizError as refusal:  # of the mechanism, or of a class
            row = {"Configuration": label, "ε": None, "error": np.nan, "note": str(refusal)}
        job.results.append(row)
        job.report(made)


def _find(job: SearchJob, label: str) -> dict[str, Any]:
    search = job.of
    with job.turn(LONG_RUN) as check:

        def before_attempt() -> None:
            check()
            job.report(job.made, min(job.step + 1 / MOST_ATTEMPTS, 1.0))

        wanted = replace(search.wanted, gaussian=label in search.gaussian)
        found = find_epsilon(search.mechanisms[label], search.data, wanted, before_attempt=before_attempt)
    return {"Configuration": label, "ε": found.epsilon, "error": found.error, "note": found.note}
