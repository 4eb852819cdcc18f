"""The one job behind all work of pages: its states, what it has made, and how it ends."""

from threading import Event

import pytest

from dpviz.app.jobs.job import DONE, FAILED, RUNNING, STOPPED, STOPPING, Job, StoppedError
from dpviz.errors import SettingError
from tests.app.browse import until

PATIENCE = 60


class Steps:
    """Work of two steps, the second of which begins when the gate is opened."""

    def __init__(self):
        self.gate, self.began = Event(), Event()

    def __call__(self, job):
        job.results.append(1)
        job.report(1)
        self.began.set()
        assert self.gate.wait(PATIENCE)
        job.check()
        job.results.append(2)
        job.report(2)


@pytest.fixture
def steps():
    made = Steps()
    yield made
    made.gate.set()


def job_of(run, **how):
    return Job(run=run, of=None, name="work", kind="work", **{"total": 2} | how)


def test_a_job_is_running_until_all_of_its_parts_are_made(steps):
    job = job_of(steps)
    assert (job.state, job.has_ended, job.share) == (STOPPED, True, 0)
    job.start()
    job.wait_for_results(PATIENCE)
    until(lambda: job.made, "the first step")
    assert (job.state, job.is_running, job.share) == (RUNNING, True, 0.5)
    steps.gate.set()
    job.wait(PATIENCE)
    assert (job.state, job.results, job.share) == (DONE, [1, 2], 1)
    assert job.seconds == job.seconds


def test_a_stop_takes_effect_at_the_next_check_and_what_is_made_stays(steps):
    job = job_of(steps)
    job.start()
    assert steps.began.wait(PATIENCE)
    job.stop(wait=False)
    assert (job.state, job.is_running, job.has_ended) == (STOPPING, False, False)
    assert not job.hold("a session")
    steps.gate.set()
    job.wait(PATIENCE)
    assert (job.state, job.results, job.error) == (STOPPED, [1], "")


def test_the_last_part_counts_although_a_stop_came_meanwhile(steps):
    job = job_of(steps, made=1, total=1)
    job.start()
    job.stop(wait=False)
    steps.gate.set()
    job.wait(PATIENCE)
    assert job.state == DONE


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (SettingError("The height is too large."), "The height is too large."),
        (ValueError("Rosa"), "The work failed unexpectedly (ValueError)."),
        (MemoryError("Rosa"), "The work failed unexpectedly (MemoryError)."),
    ],
)
def test_a_failure_is_described_without_the_text_of_a_library(failure, text):
    def fail(job):
        job.results.append(1)
        raise failure

    job = job_of(fail)
    job.start(PATIENCE)
    assert (job.state, job.error, job.results) == (FAILED, text, [1])


def test_what_a_stopped_job_raises_is_no_failure():
    def cancelled(job):
        job.stopped.wait(PATIENCE)
        raise SettingError("It was cancelled.")

    job = job_of(cancelled)
    job.start()
    job.stop()
    assert (job.state, job.error) == (STOPPED, "")
    with pytest.raises(StoppedError):
        job.check()
