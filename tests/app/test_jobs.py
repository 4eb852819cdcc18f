"""Work in the background of a page: it says how far it is, can be stopped, keeps what is there, and ends with its keeper."""

import math
from threading import Event
from unittest.mock import Mock

import pytest

from dpviz.app import jobs
from dpviz.app.jobs import (
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    CountingJob,
    InverseJob,
    Keeper,
    KnownRows,
    SessionCounts,
    SharedStudies,
    StudyJob,
    study_id,
)
from dpviz.data.counting.job import cancellation
from dpviz.errors import InputError, SettingError
from dpviz.evaluation.compare import compare
from dpviz.mechanisms import Identity, Quadtree
from dpviz.publishing.dry_run import FoundEpsilon, WantedError
from tests.app.browse import until
from tests.evaluation.test_compare import study

FOUND = object()
PATIENCE = 60


def until_stopped(watch):
    assert watch.cancel.wait(30)
    raise cancellation()


class TestCounts:
    def test_a_count_reports_its_progress_and_keeps_what_it_found(self):
        go_on = Event()

        def work(watch):
            watch.report(0.25)
            go_on.wait(30)
            return FOUND

        job = CountingJob("a", work)
        job.start()
        until(lambda: job.done == 0.25, "a report")
        assert (job.state, job.found) == (RUNNING, None)
        go_on.set()
        job.wait()
        assert (job.state, job.found) == (DONE, FOUND)

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (InputError("No file fits."), "No file fits."),
            (MemoryError(), "choose engine duckdb or dask"),
            (ValueError("Rosa"), "The counting failed unexpectedly (ValueError)."),
        ],
    )
    def test_a_failure_has_one_line_without_a_library_s_text(self, error, message):
        job = CountingJob("a", Mock(side_effect=error))
        job.start()
        job.wait()
        assert job.state == FAILED
        assert message in job.error
        assert "Rosa" not in job.error

    def test_a_stopped_count_has_ended_and_found_nothing(self):
        job = CountingJob("a", until_stopped)
        job.start()
        job.stop()
        assert not job._thread.is_alive()
        assert (job.state, job.found) == (STOPPED, None)

    def test_a_count_of_other_files_ends_the_one_that_runs(self):
        counts = SessionCounts()
        first = counts.take("points", CountingJob("a", until_stopped))
        assert counts.of("points", "a") is first
        assert counts.of("trips", "b") is None
        assert first.state == RUNNING
        assert counts.of("points", "b") is None
        first.wait()
        assert first.state == STOPPED

    def test_the_last_two_are_kept_and_those_of_pages_apart(self):
        counts = SessionCounts()
        for key in "abc":
            counts.take("points", CountingJob(key, Mock())).wait()
        assert [counts.of("points", key) is not None for key in "abc"] == [False, True, True]
        assert counts.of("trips", "c") is None
        again = counts.take("points", CountingJob("c", Mock()))
        assert counts.of("points", "c") is again

    def test_letting_go_ends_all(self):
        counts = SessionCounts()
        taken = [counts.take(page, CountingJob("a", until_stopped)) for page in ("points", "trips")]
        counts.stop_all()
        for job in taken:
            job.wait()
        assert [job.state for job in taken] == [STOPPED, STOPPED]
        assert counts.of("points", "a") is None


class TestSearches:
    @pytest.fixture
    def gate(self, monkeypatch):
        """A search that ends at once for the tree, and for the cells looks until the gate is opened."""
        opened = Event()

        def search(mechanism, data, wanted, *, before_attempt):
            before_attempt()
            while isinstance(mechanism, Identity) and not opened.wait(0.01):
                before_attempt()
            if wanted.error < 1:
                raise SettingError("no good")
            return FoundEpsilon(epsilon=0.5, error=1.0, note="found")

        monkeypatch.setattr(jobs, "find_epsilon", search)
        yield opened
        opened.set()

    def search(self, error=2.0):
        return InverseJob("question", None, {"tree": Quadtree(height=2), "cells": Identity()}, WantedError(error=error, level=1))

    def test_answers_come_in_order_and_stopping_keeps_what_is_there(self, gate):
        job = self.search()
        job.start(0.2)
        assert job.running
        assert [row["Configuration"] for row in job.rows] == ["tree"]
        assert job.at == "cells"
        assert 0.5 <= job.share <= 1
        job.stop(wait=True)
        assert (job.running, job.at, len(job.rows)) == (False, "cells", 1)

    @pytest.mark.parametrize(("error", "epsilon", "note"), [(2.0, 0.5, "found"), (0.5, None, "no good")])
    def test_a_finished_search_has_every_answer_and_a_refusal_is_one(self, gate, error, epsilon, note):
        gate.set()
        job = self.search(error)
        job.start(PATIENCE)
        assert [(row["ε"], row["note"]) for row in job.rows] == [(epsilon, note)] * 2
        assert math.isnan(job.rows[0]["error"]) == (epsilon is None)
        assert (job.running, job.share, job.at) == (False, 1.0, "")


class TestStudies:
    def test_known_rows_are_those_that_were_made_and_the_oldest_go(self, monkeypatch):
        monkeypatch.setattr(jobs, "_FEWEST_WORKERS", 1)
        monkeypatch.setattr(jobs, "_MOST_WORKERS", 1)
        known, part = KnownRows(), study(repeats=1)
        earlier = list(compare(part))
        job = StudyJob(study(repeats=2), None, earlier, known)
        assert (job.made, job.total) == (len(part), 2 * len(part))
        job.start(PATIENCE)
        job._thread.join(PATIENCE)
        assert job.state == DONE
        assert {row["repeat"] for row in known.rows()} == {2}
        monkeypatch.setattr(jobs, "MOST_KNOWN_ROWS", 3)
        known.add(earlier[0])
        known.add(earlier[0] | {"n3": 0})
        assert len(known.rows()) == 3
        assert known.rows()[-1] == earlier[0]

    def test_starting_waits_for_the_first_rows_and_a_keeper_stops_its_studies(self):
        keeper = Keeper()
        first, second = (StudyJob(study(repeats=4000), None, []) for _ in range(2))
        keeper.take(first)
        first.start(PATIENCE)
        assert first.rows
        assert first.state == RUNNING
        keeper.take(second)
        second.start()
        keeper.stop_all()
        for job in (first, second):
            job._thread.join(PATIENCE)
            assert job.state == STOPPED


class TestShared:
    """A study on a sample is followed by several sessions, and goes on for a while when the last of them is gone."""

    @pytest.fixture(autouse=True)
    def one_process(self, monkeypatch):
        monkeypatch.setattr(jobs, "_FEWEST_WORKERS", 1)
        monkeypatch.setattr(jobs, "_MOST_WORKERS", 1)

    @pytest.fixture
    def studies(self):
        """The registry, and what ends every study that a test leaves."""
        keepers = [Keeper() for _ in range(3)]
        yield SharedStudies(), *keepers
        for keeper in keepers:
            keeper.end_all()

    def job(self, **how):
        return StudyJob(study(**{"repeats": 4000} | how), None, [], is_shared=True)

    def test_a_study_that_runs_is_not_started_again(self, studies):
        shared, first, second, third = studies
        running = shared.start(self.job(), first, PATIENCE)
        assert running.rows
        assert shared.start(self.job(), second, 0) is running
        assert shared.find(running.id) is running
        other = shared.start(self.job(repeats=3999), third, 0)
        assert other is not running
        assert other.study.fingerprint == running.study.fingerprint

    def test_it_ends_at_once_where_nobody_else_follows_it(self, studies):
        shared, first, second, _ = studies
        running = shared.start(self.job(), first, PATIENCE)
        shared.start(self.job(), second, 0)
        first.end(running)
        assert running.state == RUNNING
        assert running.is_held
        second.end_all()
        until(lambda: running.state == STOPPED, "the end", PATIENCE)
        assert shared.find(running.id) is None
        again = shared.start(self.job(), first, PATIENCE)
        assert again is not running
        assert again.state == RUNNING

    def test_a_page_that_is_loaded_anew_finds_it_running_and_one_that_never_comes_back_ends_it(self, studies, monkeypatch):
        shared, first, second, third = studies
        running = shared.start(self.job(), first, PATIENCE)
        first.stop_all()
        assert shared.find(running.id) is running
        assert second.take(running)
        monkeypatch.setattr(jobs, "SECONDS_WITHOUT_PAGE", 0.05)
        second.stop_all()
        until(lambda: running.state == STOPPED, "the end", PATIENCE)
        assert shared.start(self.job(), third, PATIENCE) is not running

    def test_one_of_a_single_session_is_not_found_and_ends_with_it(self, studies):
        shared, first, *_ = studies
        own = shared.start(StudyJob(study(repeats=4000), None, []), first, PATIENCE)
        assert shared.find(own.id) is None
        first.stop_all()
        until(lambda: own.state == STOPPED, "the end", PATIENCE)

    def test_one_that_is_ending_is_not_followed(self, studies):
        shared, first, second, _ = studies
        running = shared.start(self.job(), first, PATIENCE)
        running.stop(wait=False)
        assert running.state == STOPPED or not second.take(running)

    def test_the_id_names_runs_and_labels(self):
        ids = [study_id(study(**how)) for how in ({}, {"repeats": 3}, {"seed": 5}, {"mechanisms": {"other name": Identity()}})]
        assert len(set(ids)) == 4
        assert ids[0] == study_id(study())
        assert ids[0].startswith(study().fingerprint)
