"""A study in the background of a page: rows come, it stops and goes on, and it ends with whoever keeps it."""

import time

from dpviz.app import jobs
from dpviz.app.jobs import DONE, RUNNING, STOPPED, Keeper, StudyJob
from dpviz.errors import SettingError
from tests.evaluation.test_compare import study

PATIENCE = 60


def test_a_stopped_job_goes_on_where_it_was():
    which = study(repeats=500)
    job = StudyJob(which, None, [])
    job.start()
    until = time.monotonic() + PATIENCE
    while len(job.rows) < 10 and time.monotonic() < until:
        time.sleep(0.01)
    job.stop()
    assert job.state == STOPPED
    made = len(job.rows)
    assert 10 <= made < len(which)
    few = study(repeats=3)
    rest = StudyJob(few, None, job.rows)
    rest.start()
    rest._thread.join(PATIENCE)
    assert rest.state == DONE
    assert len(rest.table()) == len(few)
    assert rest.made == rest.total == 12


def test_a_failed_run_is_told(monkeypatch):
    def failing(*args, **options):
        raise SettingError("no good")
        yield

    monkeypatch.setattr(jobs, "compare", failing)
    job = StudyJob(study(), None, [])
    job.start()
    job._thread.join(PATIENCE)
    assert (job.state, job.error) == ("failed", "no good")


def test_whoever_keeps_a_job_stops_it_by_letting_go():
    keeper = Keeper()
    keeper.stop_all()
    jobs = [StudyJob(study(repeats=4000), None, []) for _ in range(2)]
    for job in jobs:
        keeper.take(job)
        job.start()
    keeper.stop_all()
    for job in jobs:
        job._thread.join(PATIENCE)
        assert job.state == STOPPED


def test_starting_waits_for_the_first_rows_and_no_longer():
    job = StudyJob(study(repeats=4000), None, [])
    job.start(PATIENCE)
    assert job.rows
    assert job.state == RUNNING
    job.stop()
