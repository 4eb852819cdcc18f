"""The errors of all levels over ε, computed in the background from public data; sessions share those of samples."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpviz.app.jobs.job import Job
from dpviz.app.jobs.results import Results
from dpviz.app.server.class_limits import LONG_RUNS
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.errors_over_epsilon import ErrorsOverEpsilon, levels_over_epsilon
from dpviz.publishing.private_data import PrivateData

SECONDS_FOR_PAGE = 2.0  # that a page gets for its maps and what is under them, before this takes the processor
Curves: TypeAlias = Mapping[int, ErrorsOverEpsilon]
"""Errors over ε by the number of the level."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveQuestion:
    """What is computed.

    Attributes:
        mechanism: with its settings.
        counts: public counts.
        delta: of mechanisms that need it.
        gaussian: whether the budget has this δ where its kind decides the noise.
        slots: of counts by category, the slots that are looked at, together; None for all of them.
        known: the answers so far, by the keys of their jobs; the job adds its own.
    """

    mechanism: AnyMechanism
    counts: PrivateData
    delta: float
    gaussian: bool
    slots: tuple[str, ...] | None = None
    known: Results


CurveJob: TypeAlias = Job[CurveQuestion]


def make_curve_job(key: Hashable, question: CurveQuestion) -> CurveJob:
    """Make the job that answers a question, which `key` identifies; its one result is also kept in `CurveQuestion.known`."""
    return Job(run=_compute, of=question, name="curve", kind="curve", key=key)


def _compute(job: CurveJob) -> None:
    """Compute the curves, unless another session has done so while this waited."""
    of = job.of
    job.stopped.wait(SECONDS_FOR_PAGE)
    job.check()
    with job.turn(LONG_RUNS) as check:

        def compute() -> Curves:
            options: dict[str, Any] = {"delta": of.delta, "gaussian": of.gaussian, "slots": of.slots}
            return levels_over_epsilon(of.mechanism, of.counts, **options, before_run=check)

        job.results.append(of.known.answer(job.key, compute))
    job.report(1)
