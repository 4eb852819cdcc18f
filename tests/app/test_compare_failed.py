"""A study of the Compare page that fails: what is there stays, the rest can be tried again."""

from contextlib import suppress

import pytest

from dpviz.app import jobs
from dpviz.app.compare.state import JOB, pickable, replace
from dpviz.app.jobs import FAILED
from dpviz.errors import DpvizError
from dpviz.evaluation import compare as real
from dpviz.mechanisms import Identity
from tests.app.test_compare_page import charts, compare_app, finished, started
from tests.app.walk import captions, errors, fine, good


def failing_after(rows, monkeypatch):
    """Studies fail once that many rows are there."""

    def failing(study, **options):
        source = real.compare(study, **options | {"workers": 1})
        with suppress(StopIteration):
            for _ in range(rows):
                yield next(source)
        raise DpvizError("Every cell, ε 2: no good")

    monkeypatch.setattr(jobs, "compare", failing)


def failed(rows, monkeypatch):
    with monkeypatch.context() as patch:
        failing_after(rows, patch)
        app = started(compare_app())
        app.session_state[JOB]._thread.join(60)
        good(app.run())
    assert app.session_state[JOB].state == FAILED
    assert "no good" in errors(app)
    return app


def test_what_was_drawn_stays_and_the_rest_can_be_tried_again(monkeypatch):
    app = failed(40, monkeypatch)
    assert charts(app)
    assert app.button(key="draw").label == "Resume the study"
    before = {row["run"] for row in app.session_state[JOB].rows}
    fine(finished(started(app)))
    assert before < {row["run"] for row in app.session_state[JOB].rows}


def test_without_a_row_nothing_is_said_to_come(monkeypatch):
    app = failed(0, monkeypatch)
    assert "being made" not in captions(app)
    assert "No release was made yet" in captions(app)
    assert app.button(key="draw").label == "Start the study"
    fine(finished(started(app)))
    assert charts(app)


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_release_that_fails_on_the_map_is_said_beside_the_others(monkeypatch, wrong):
    app = finished(started(compare_app()))
    app.session_state["compare tab"] = "On the map"
    options = tuple(pickable(app.session_state[JOB]))
    chosen = tuple(each for each in options if each[0].startswith("Every"))[:1] + options[: 2 - wrong]
    app.session_state["compare config"] = replace(app.session_state["compare config"], picked=chosen)

    def refused(*_):
        raise DpvizError("does not fit")

    monkeypatch.setattr(Identity, "release", refused)
    good(app.run())
    assert "does not fit" in errors(app)
    assert len(app.get("deck_gl_json_chart")) == 2 - wrong
