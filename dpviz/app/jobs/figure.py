"""A run of a figure of a paper in the background, seed by seed; sessions share the seeds that any of them has measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import TypeAlias

import pandas as pd

from dpviz.app.jobs.job import Job
from dpviz.app.jobs.results import Results
from dpviz.app.server.class_limits import LONG_RUNS
from dpviz.papers.figures import Figure, OneSeed, Paper, Run


@dataclass(frozen=True, kw_only=True, eq=False)
class PageFigure:
    """A figure of a paper in one of its sizes, as a page has it.

    Attributes:
        known: the rows of each seed that any session has measured. A job measures no seed that is there, and adds its own; of a seed that
            two sessions measure at once, the first rows count for both.
    """

    paper: Paper
    figure: Figure
    size: str
    known: Results
    runs: Results = field(init=False, default_factory=lambda: Results(1))


FigureJob: TypeAlias = Job[PageFigure]


def make_figure_job(paper: Paper, figure: Figure, size: str, seeds: int, known: Results) -> FigureJob:
    """Make the job of a figure; its results are the rows of each seed, 1 to `seeds`. The other arguments are those of `PageFigure`."""
    of = PageFigure(paper=paper, figure=figure, size=size, known=known)
    parts = list(takewhile(lambda part: part is not None, map(known.get, range(1, seeds + 1))))
    return Job(
        run=measure_seeds,
        of=of,
        name="run",
        kind="figure",
        key=(paper.key, figure.key, size, seeds),
        total=seeds,
        made=len(parts),
        results=parts,
    )


def run_of(job: FigureJob) -> Run | None:
    """Return the run with the seeds that are done, once the job has ended; None before that, or if no seed is done."""
    parts, of = list(job.results), job.of
    if not parts or not job.has_ended:
        return None
    make = partial(Run, paper=of.paper, figure=of.figure, size=of.size, seconds=job.seconds)
    return of.runs.answer(len(parts), lambda: make(table=pd.concat(parts, ignore_index=True)))


def measure_seeds(job: FigureJob) -> None:
    """Measure the seeds that are not known; others may have measured some while this waited."""
    of = job.of
    measure: OneSeed | None = None
    with job.turn(LONG_RUNS) as check:
        for seed in range(job.made + 1, job.total + 1):
            check()
            rows = of.known.get(seed)
            if rows is None:
                measure = measure or of.figure.one_seed(of.size)
                rows = of.known.keep(seed, measure(seed))
            job.results.append(rows)
            job.report(seed)
