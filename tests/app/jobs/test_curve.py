"""Errors over ε in the background: computed once for all who want them, and ended with the page."""

import pytest

import dpviz as dv
from dpviz.app.jobs.curve import CurveQuestion, make_curve_job
from dpviz.app.jobs.results import Results
from dpviz.mechanisms import RegionTree


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("dpviz.app.jobs.curve.SECONDS_FOR_PAGE", 0.0)


CITY = dv.load_sample("made_up_city")


def question(known):
    return CurveQuestion(mechanism=RegionTree(), counts=CITY, delta=1e-6, gaussian=False, known=known)


def test_a_job_computes_the_curves_of_all_levels_and_another_one_finds_them():
    known = Results(5)
    first, second = (make_curve_job("city", question(known)) for _ in range(2))
    for job in (first, second):
        job.start(60)
        assert job.state == "done"
    (found,), (again,) = first.results, second.results
    assert found is again is known.get("city")
    assert list(found) == [0, 1, 2, 3]
    assert found[3].error_at(0.1) > found[3].error_at(1.0) > found[1].error_at(1.0)


def test_a_job_that_is_stopped_keeps_nothing():
    known = Results(5)
    job = make_curve_job("city", question(known))
    job.stop(wait=False)
    job.start(60)
    assert job.state == "stopped"
    assert known.get("city") is None


def test_a_refusal_is_worded_as_dpviz_words_it():
    refused = CurveQuestion(mechanism=dv.Quadtree(), counts=CITY, delta=1e-6, gaussian=False, known=Results(5))
    job = make_curve_job("city", refused)
    job.start(60)
    assert job.state == "failed"
    assert job.error
