"""A session keeps its jobs and ends with them; jobs on samples are shared by sessions."""

import pytest

from dpviz.app.jobs import keeper as keeper_module
from dpviz.app.jobs import study as study_module
from dpviz.app.jobs.job import RUNNING, STOPPED, Job
from dpviz.app.jobs.keeper import Keeper, SharedJobs
from dpviz.app.jobs.study import make_study_job
from tests.app.browse import until
from tests.evaluation.test_compare import study

PATIENCE = 60


def job_of(kind):
    return Job(run=lambda job: job.stopped.wait(PATIENCE), of=None, name="work", kind=kind)


def started(keeper, *jobs):
    for job in jobs:
        assert keeper.take(job)
        job.start()
    return jobs


def test_a_newer_job_ends_the_one_of_the_same_kind_and_no_other():
    keeper = Keeper()
    first, other = started(keeper, job_of("count points"), job_of("count trips"))
    (second,) = started(keeper, job_of("count points"))
    first.wait(PATIENCE)
    assert (first.state, other.state, second.state) == (STOPPED, RUNNING, RUNNING)
    assert keeper.find("count points") is second
    keeper.end(second)
    second.wait(PATIENCE)
    assert (second.state, keeper.find("count points")) == (STOPPED, None)
    keeper.end_all()


@pytest.mark.parametrize("end", [Keeper.stop_all, Keeper.end_all])
def test_letting_go_ends_all(end):
    keeper = Keeper()
    jobs = started(keeper, job_of("count points"), job_of("live run trips"))
    end(keeper)
    for job in jobs:
        job.wait(PATIENCE)
    assert [job.state for job in jobs] == [STOPPED, STOPPED]


def test_starting_waits_for_the_first_rows_and_a_keeper_stops_its_studies():
    keeper = Keeper()
    first, second = (make_study_job(study(repeats=4000), None, []) for _ in range(2))
    keeper.take(first)
    first.start()
    first.wait_for_results(PATIENCE)
    assert first.results
    assert first.state == RUNNING
    keeper.take(second)
    second.start()
    keeper.stop_all()
    for job in (first, second):
        job.wait(PATIENCE)
        assert job.state == STOPPED


class TestShared:
    """A study on a sample is followed by several sessions, and goes on for a while when the last of them is gone."""

    @pytest.fixture(autouse=True)
    def one_process(self, monkeypatch):
        monkeypatch.setattr(study_module, "FEWEST_WORKERS", 1)
        monkeypatch.setattr(study_module, "MOST_WORKERS", 1)

    @pytest.fixture
    def studies(self):
        """The registry, and what ends every study that a test leaves."""
        keepers = [Keeper() for _ in range(3)]
        yield SharedJobs(), *keepers
        for keeper in keepers:
            keeper.end_all()

    def job(self, **how):
        return make_study_job(study(**{"repeats": 4000} | how), None, [], is_shared=True)

    def test_a_study_that_runs_is_not_started_again(self, studies):
        shared, first, second, third = studies
        running = shared.start(self.job(), first, PATIENCE)
        assert running.results
        assert shared.start(self.job(), second, 0) is running
        assert shared.find(running.key) is running
        other = shared.start(self.job(repeats=3999), third, 0)
        assert other is not running
        assert other.of.study.fingerprint == running.of.study.fingerprint

    def test_it_ends_at_once_where_nobody_else_follows_it(self, studies):
        shared, first, second, _ = studies
        running = shared.start(self.job(), first, PATIENCE)
        shared.start(self.job(), second, 0)
        assert first.end(running), "another session holds it"
        assert running.state == RUNNING
        second.end_all()
        until(lambda: running.state == STOPPED, "the end", PATIENCE)
        assert shared.find(running.key) is None
        again = shared.start(self.job(), first, PATIENCE)
        assert again is not running
        assert again.state == RUNNING

    def test_a_page_that_is_loaded_anew_finds_it_running_and_one_that_never_comes_back_ends_it(self, studies, monkeypatch):
        shared, first, second, third = studies
        running = shared.start(self.job(), first, PATIENCE)
        first.stop_all()
        assert shared.find(running.key) is running
        assert second.take(running)
        monkeypatch.setattr(keeper_module, "SECONDS_WITHOUT_PAGE", 0.05)
        second.stop_all()
        until(lambda: running.state == STOPPED, "the end", PATIENCE)
        assert shared.start(self.job(), third, PATIENCE) is not running

    def test_one_of_a_single_session_is_not_found_and_ends_with_it(self, studies):
        shared, first, *_ = studies
        own = shared.start(make_study_job(study(repeats=4000), None, []), first, PATIENCE)
        assert shared.find(own.key) is None
        first.stop_all()
        until(lambda: own.state == STOPPED, "the end", PATIENCE)

    def test_one_that_is_ending_is_not_followed(self, studies):
        shared, first, second, _ = studies
        running = shared.start(self.job(), first, PATIENCE)
        running.stop(wait=False)
        assert running.state == STOPPED or not second.take(running)
