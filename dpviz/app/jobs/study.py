"""A study in the background. Stopping it ends its workers; the rows of its finished releases stay."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pandas as pd

from dpviz.app.jobs.job import Job
from dpviz.app.jobs.results import Results
from dpviz.app.server.class_limits import STUDIES
from dpviz.app.server.class_mode import is_class
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Run, Study
from dpviz.evaluation.tables import finished_runs, tidy

FEWEST_WORKERS, MOST_WORKERS = 2, 8
MOST_RELEASES = 8  # that are kept of those that were repeated
MOST_KNOWN_ROWS = 20_000  # of one sample and seed, about 30 MB
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class PageStudy:
    """A study as a page has it.

    Attributes:
        config: what the page keeps with it; no job uses it.
        known: takes every row that a job of this study makes, by its run and workload; None if nothing outside the session may keep them.
        earlier: rows that are not made again.
    """

    study: Study
    config: Any
    known: Results | None
    earlier: pd.DataFrame
    tables: Results = field(init=False, default_factory=lambda: Results(1))
    releases: Results = field(init=False, default_factory=lambda: Results(MOST_RELEASES))


StudyJob: TypeAlias = Job[PageStudy]


def study_id(study: Study) -> str:
    """Return the fingerprint of a study's rows, and a digest of what the fingerprint leaves out: its runs and their names.

    Two studies of the same id make the same rows, except for the measured seconds.
    """
    first_runs = [(run.label, run.id) for run in study.runs()[: len(study) // study.repeats]]
    digest = hashlib.blake2b(repr((first_runs, study.repeats)).encode(), digest_size=4).hexdigest()
    return f"{study.fingerprint}-{digest}"


def make_study_job(study: Study, config: Any, rows: list[Row], known: Results | None = None, *, is_shared: bool = False) -> StudyJob:
    """Make the job of a study. Its results are rows, its parts are releases, and its key is what `study_id` returns.

    Args:
        study: see `PageStudy`.
        config: see `PageStudy`.
        rows: rows of an earlier part of the same study, or of a study with other mechanisms on the same data; they are not made again.
        known: see `PageStudy`.
        is_shared: whether other sessions may hold the job as well: all of its rows were made by this server, on a sample.
    """
    of = PageStudy(study=study, config=config, known=known, earlier=pd.DataFrame(rows))
    made = len(finished_runs(study, of.earlier) & {run.id for run in study.runs()}) if rows else 0
    return Job(
        run=_make_rows,
        of=of,
        name="study",
        kind="study",
        key=study_id(study),
        total=len(study),
        made=made,
        results=list(rows),
        is_shared=is_shared,
    )


def table_of(job: StudyJob) -> pd.DataFrame:
    """Return the rows so far that belong to the study of a job, in its order."""
    rows = list(job.results)
    return job.of.tables.answer(len(rows), lambda: tidy(job.of.study, rows))


def release_of(job: StudyJob, run: Run) -> Any:
    """Repeat the release that a run measured, from its seed: a simulation, which spends nothing. The last few are kept."""
    return job.of.releases.answer(run.id, lambda: job.of.study.release(run))


def _make_rows(job: StudyJob) -> None:
    workers = FEWEST_WORKERS if is_class() else max(FEWEST_WORKERS, min(os.cpu_count() or 1, MOST_WORKERS))
    study, known = job.of.study, job.of.known
    with job.turn(STUDIES) as check:

        def report(made: int, _total: int) -> None:
            job.report(made)
            check()

        with closing(compare(study, workers=workers, done=job.of.earlier, stop=job.stopped, progress=report)) as rows:
            for row in rows:
                job.results.append(row)
                if known is not None:
                    known.keep((row["run"], row["workload"]), row)
