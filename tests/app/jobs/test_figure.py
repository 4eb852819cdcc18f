"""A figure of a paper in the background: sessions share its seeds, and what is measured stays after a stop."""

import math
import threading
from dataclasses import replace
from itertools import count

import pandas as pd

from dpviz.app.jobs.figure import make_figure_job, run_of
from dpviz.app.jobs.job import DONE, FAILED, STOPPED, STOPPING
from dpviz.app.jobs.results import Results
from dpviz.app.server.class_limits import LONG_RUNS
from dpviz.app.server.class_mode import ClassMode
from dpviz.papers.catalogue import find_figure
from tests.app.browse import until


def test_a_job_measures_seed_by_seed_and_keeps_those_that_are_done():
    paper, figure = find_figure("psd", "2")
    job = make_figure_job(paper, figure, "small", 1, Results(1))
    assert (job.state, run_of(job)) == (STOPPED, None)
    job.start(20)
    assert (job.state, run_of(job).verdicts[0].answer) == (DONE, "holds")
    failed = make_figure_job(paper, figure, "none", 1, Results(1))
    failed.start(20)
    assert (failed.state, failed.error) == (FAILED, "This figure has no size 'none'; it has small.")


class Measured:
    """A figure whose rows are numbered in the order of their measuring; two jobs measure their first seeds at the same time."""

    def __init__(self, jobs=2):
        self.numbers, self.together = count(), threading.Barrier(jobs)
        paper, figure = find_figure("psd", "2")
        self.figure = paper, replace(figure, exact=False, prepare=lambda: self.measure)

    def measure(self, seed):
        if seed == 1:
            self.together.wait(20)
        return pd.DataFrame({"number": [next(self.numbers)]})


def test_sessions_that_measure_at_once_show_the_same_rows_and_each_seed_once():
    known, measured = Results(math.inf), Measured()
    jobs = [make_figure_job(*measured.figure, "small", 30, known) for _ in range(2)]
    for job in jobs:
        job.start()
    until(lambda: all(job.state == DONE for job in jobs), "both runs")
    first, second = (run_of(job).table for job in jobs)
    assert first["seed"].tolist() == list(range(1, 31))
    pd.testing.assert_frame_equal(first, second)
    third = make_figure_job(*measured.figure, "small", 20, known)
    assert third.state == DONE  # it measures nothing
    pd.testing.assert_frame_equal(run_of(third).table, first[:20])


def test_a_stopped_run_keeps_the_seed_that_it_measured_and_another_goes_on_from_it():
    known, measured = Results(math.inf), Measured()
    job = make_figure_job(*measured.figure, "small", 3, known)
    job.start()
    job.stop(wait=False)
    assert (job.state, run_of(job)) == (STOPPING, None)
    measured.together.wait(20)
    until(lambda: job.state == STOPPED, "the end of the seed")
    assert run_of(job).table["seed"].tolist() == [1]
    job = make_figure_job(*measured.figure, "small", 3, known)
    job.start(20)
    assert run_of(job).table["number"].tolist() == [0, 1, 2]


def test_in_a_class_a_run_that_takes_too_long_keeps_its_seeds_and_says_so(monkeypatch):
    monkeypatch.setattr("dpviz.app.server.class_mode._mode", ClassMode(code=None, memory=math.inf))
    monkeypatch.setattr(LONG_RUNS, "seconds", 0.0)
    known = Results(math.inf)
    known.keep(1, Measured(1).figure[1].one_seed()(1))
    job = make_figure_job(*Measured(1).figure, "small", 3, known)
    job.start(20)
    assert (job.state, job.made) == (FAILED, 1)
    assert "that a class allows" in job.error
    assert run_of(job).table["seed"].tolist() == [1]
