"""A study in the background: rows that are there are not made again, and sessions learn of those that are made."""

from dpviz.app.jobs import study as study_module
from dpviz.app.jobs.job import DONE
from dpviz.app.jobs.results import Results
from dpviz.app.jobs.study import make_study_job, release_of, study_id, table_of
from dpviz.evaluation.compare import compare
from dpviz.mechanisms import Identity
from tests.evaluation.test_compare import study

PATIENCE = 60


def test_known_rows_are_those_that_were_made_and_the_oldest_go(monkeypatch):
    monkeypatch.setattr(study_module, "FEWEST_WORKERS", 1)
    monkeypatch.setattr(study_module, "MOST_WORKERS", 1)
    known, part = Results(100_000), study(repeats=1)
    earlier = list(compare(part))
    job = make_study_job(study(repeats=2), None, earlier, known)
    assert (job.made, job.total) == (len(part), 2 * len(part))
    job.start(PATIENCE)
    assert job.state == DONE
    assert {row["repeat"] for row in known.values()} == {2}
    assert len(known.values()) == len(job.results) - len(earlier)


def test_the_table_follows_the_rows_and_a_release_is_repeated_once():
    job = make_study_job(study(repeats=1), None, list(compare(study(repeats=1))))
    assert job.state == DONE
    table, run = table_of(job), job.of.study.runs()[0]
    assert table_of(job) is table
    assert release_of(job, run) is release_of(job, run)
    job.results.pop()
    assert len(table_of(job)) == len(table) - 1


def test_the_id_names_runs_and_labels():
    ids = [study_id(study(**how)) for how in ({}, {"repeats": 3}, {"seed": 5}, {"mechanisms": {"other name": Identity()}})]
    assert len(set(ids)) == 4
    assert ids[0] == study_id(study())
    assert ids[0].startswith(study().fingerprint)
