"""A count of files in the background: it says how far it is, and stopped it has found nothing."""

from threading import Event
from unittest.mock import Mock

import pytest

from dpviz.app.jobs.counting import make_count_job
from dpviz.app.jobs.job import DONE, FAILED, RUNNING, STOPPED
from dpviz.data.counting.job import cancellation
from dpviz.errors import InputError
from tests.app.browse import until

FOUND = object()


def until_stopped(watch):
    assert watch.cancel.wait(30)
    raise cancellation()


def found(job):
    return job.results[0] if job.results else None


def test_a_count_reports_its_progress_and_keeps_what_it_found():
    go_on = Event()

    def work(watch):
        watch.report(0.25)
        go_on.wait(30)
        return FOUND

    job = make_count_job("points", "a", work)
    job.start()
    until(lambda: job.share == 0.25, "a report")
    assert (job.state, found(job)) == (RUNNING, None)
    go_on.set()
    job.wait()
    assert (job.state, found(job)) == (DONE, FOUND)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("No file fits."), "No file fits."),
        (MemoryError(), "choose engine duckdb or dask"),
        (ValueError("Rosa"), "The counting failed unexpectedly (ValueError)."),
    ],
)
def test_a_failure_has_one_line_without_a_library_s_text(error, message):
    job = make_count_job("points", "a", Mock(side_effect=error))
    job.start()
    job.wait()
    assert job.state == FAILED
    assert message in job.error
    assert "Rosa" not in job.error


def test_a_stopped_count_has_ended_and_found_nothing():
    job = make_count_job("points", "a", until_stopped)
    job.start()
    job.stop()
    assert job.has_ended
    assert (job.state, found(job)) == (STOPPED, None)
