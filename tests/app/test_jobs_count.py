"""Counting in the background: how far it is, how it ends, and that nobody is left who counts for nobody."""

from threading import Event

import pytest

from dpviz.app.jobs import DONE, FAILED, RUNNING, STOPPED, CountingJob, SessionCounts
from dpviz.data.counting.job import cancellation
from dpviz.errors import InputError

FOUND = object()


def made(work, key="a"):
    job = CountingJob(key, work)
    job.start()
    job.wait()
    return job


def until_stopped(watch):
    assert watch.cancel.wait(30)
    raise cancellation()


def raising(error):
    def work(watch):
        raise error

    return work


def test_a_count_says_how_far_it_is_and_keeps_what_it_found():
    here, on = Event(), Event()

    def work(watch):
        watch.at(0.25)
        here.set()
        on.wait(30)
        return FOUND

    job = CountingJob("a", work)
    assert (job.state, job.done) == (RUNNING, 0.0)
    job.start()
    assert here.wait(30)
    assert (job.state, job.done, job.found) == (RUNNING, 0.25, None)
    on.set()
    job.wait()
    assert (job.state, job.found) == (DONE, FOUND)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("No file fits."), "No file fits."),
        (MemoryError(), "choose engine duckdb or dask"),
        (ValueError("Rosa"), "The counting failed unexpectedly (ValueError)."),
    ],
)
def test_what_fails_is_one_line_without_a_library_s_text(error, told):
    job = made(raising(error))
    assert job.state == FAILED
    assert told in job.error
    assert "Rosa" not in job.error


def test_a_stopped_count_has_ended_and_found_nothing():
    job = CountingJob("a", until_stopped)
    job.start()
    job.stop()
    assert not job._thread.is_alive() or job._ended.is_set()
    assert (job.state, job.found) == (STOPPED, None)


def test_a_count_of_other_files_ends_the_one_that_runs():
    counts = SessionCounts()
    first = counts.take("points", CountingJob("a", until_stopped))
    assert counts.of("points", "a") is first
    assert counts.of("trips", "b") is None
    assert first.state == RUNNING
    assert counts.of("points", "b") is None
    first.wait()
    assert first.state == STOPPED


def test_the_last_two_are_kept_and_those_of_pages_apart():
    counts = SessionCounts()
    for key in "abc":
        counts.take("points", CountingJob(key, lambda _: FOUND)).wait()
    assert [counts.of("points", key) is not None for key in "abc"] == [False, True, True]
    assert counts.of("trips", "c") is None
    again = counts.take("points", CountingJob("c", lambda _: FOUND))
    assert counts.of("points", "c") is again


def test_letting_go_ends_everything():
    counts = SessionCounts()
    jobs = [counts.take(page, CountingJob("a", until_stopped)) for page in ("points", "trips")]
    counts.stop_all()
    for job in jobs:
        job.wait()
    assert [job.state for job in jobs] == [STOPPED, STOPPED]
    assert counts.of("points", "a") is None
