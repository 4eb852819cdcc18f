"""The Compare page without a browser: studies that run beside it, stop, go on, and end with the session."""

import json
import time
from fractions import Fraction

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.compare import state as compare_state
from dpviz.app.compare.page import FOUND, TABS, pick
from dpviz.app.compare.state import COMPARE, JOB, CompareConfig, pickable
from dpviz.app.jobs import DONE, RUNNING, STOPPED, StudyJob
from dpviz.app.points_state import Config
from dpviz.app.session import read_link, to_query
from dpviz.errors import SettingError
from dpviz.mechanisms import Identity, Quadtree
from dpviz.privacy.ledger import Ledger
from tests.app.walk import PLACES, captions, errors, fine, good, infos, labelled
from tests.evaluation.test_compare import study

LINK = {"sample": "gaussian_cluster", "order": "4", "mechanisms": '["quadtree","identity"]', "steps": "2", "repeats": "2"}
PATIENCE = 60
POINTS_KEY = "public config"


def compare():
    from dpviz.app.compare.page import compare_page  # noqa: PLC0415 - only this function's text runs

    compare_page()


def compare_app(link=LINK):
    app = AppTest.from_function(compare, default_timeout=60)
    app.query_params.update(link)
    return good(app.run())


def started(app):
    return good(app.button(key="draw").click().run())


def finished(app):
    job = app.session_state[JOB]
    until = time.monotonic() + PATIENCE
    while job.state == RUNNING and time.monotonic() < until:
        time.sleep(0.05)
    assert job.state == DONE, (job.state, job.error)
    return good(app.run())


def answered(app):
    search = app.session_state[FOUND]
    search._thread.join(PATIENCE)
    assert not search.running
    return good(app.run())


def tab(app, name):
    app.session_state["compare tab"] = name
    return good(app.run())


def charts(app):
    return [json.loads(each.proto.spec) for each in app.get("vega_lite_chart")] or [
        json.loads(each.proto.spec) for each in app.get("arrow_vega_lite_chart")
    ]


@pytest.fixture(scope="module")
def done():
    return finished(started(compare_app()))


class TestBefore:
    def test_it_says_what_to_do_and_what_is_compared(self):
        app = fine(compare_app())
        assert "Start the study" in infos(app)
        assert "8 releases: 2 configurations x 2 ε x 2 repeats" in captions(app)
        assert not app.button(key="draw").disabled
        assert not Ledger().accounts()

    def test_an_impossible_range_is_refused_in_place(self):
        app = compare_app(LINK | {"settings": '{"quadtree":{"height":[2,99]}}'})
        assert "settings" not in app.session_state["compare config"].settings
        app.session_state["compare config"] = CompareConfig(mechanisms=("quadtree",), settings={"quadtree": {"height": [2, 99]}}, order=4)
        good(app.run())
        assert "Height must be from" in errors(app)
        assert app.button(key="draw").disabled

    def test_data_of_ones_own_come_from_teach_only(self):
        app = compare_app()
        app.session_state["compare config"] = CompareConfig(source="own")
        good(app.run())
        assert "confirm there that it is public" in infos(app)
        assert app.button(key="draw").disabled

    def test_the_inverse_question_needs_no_study(self):
        app = compare_app()
        answered(good(app.button(key="find epsilon").click().run()))
        found = fine(app).dataframe[0].value
        assert found["Configuration"].tolist() == ["Quadtree", "Every cell (Identity)"]
        assert (found.iloc[:, 2] <= 20).all()
        assert found.columns[2] == "typical error there, noise alone (records)"
        assert "of the data only the number of records is used, rounded to one digit" in captions(app)

    def test_of_trips_no_number_is_used(self):
        assert "no trip is looked at" in captions(compare_app({"kind": "Trips", "sample": "us_flights"}))

    def test_what_a_link_says_is_what_is_shown_and_run(self):
        app = compare_app(LINK | {"low": "0.001", "high": "100", "delta": "3.5e-7"})
        shown = [labelled(app.selectbox, title).value for title in ("Smallest ε", "Largest ε", "δ")]
        assert shown == [0.001, 100.0, 3.5e-7]
        assert [float(epsilon) for epsilon in app.session_state["compare config"].epsilons()] == shown[:2]
        good(labelled(app.selectbox, "Largest ε").set_value(10.0).run())
        assert app.session_state["compare config"].epsilons()[-1] == 10


class TestLinks:
    def test_a_configuration_survives_its_link(self):
        config = CompareConfig(
            mechanisms=("quadtree", "htf"), settings={"quadtree": {"height": [4, 6]}}, low=0.2, repeats=5, picked=(("HTF", 0.5),)
        )
        assert read_link(CompareConfig, to_query(config)) == config
        assert "source" not in to_query(CompareConfig(source="own"))

    @pytest.mark.parametrize(
        "query",
        [
            {"kind": "People", "order": "99", "repeats": "-1", "seed": "1e99", "figure": "best"},
            {"mechanisms": '["rm"]', "settings": "[1]", "picked": "{}"},
            {"mechanisms": "[[]]", "settings": '{"quadtree":{"height":5}}', "picked": '[["a"]]'},
            {"settings": '{"quadtree":{"nonsense":[1]}}', "low": "nan", "high": "inf"},
        ],
    )
    def test_what_makes_no_sense_is_the_default(self, query):
        assert read_link(CompareConfig, query) == CompareConfig()

    def test_mechanisms_and_samples_of_the_other_kind_are_passed_over(self):
        config = read_link(CompareConfig, {"kind": "Trips", "mechanisms": '["quadtree"]', "sample": "la_residents"})
        assert config.chosen == compare_state.FAMILY["Trips"].usual
        assert config.chosen_sample == "northeast_commuters"
        assert [mechanism.key for mechanism in config.built().values()] == ["top_down", "flat_gaussian", "stability_histogram"]

    def test_epsilons_are_exact_and_ends_may_be_swapped(self):
        assert CompareConfig(low=2.0, high=0.1, steps=3).epsilons() == (Fraction("0.1"), Fraction("0.45"), Fraction(2))
        assert CompareConfig(low=1.0, high=1.0).epsilons() == (1,)
        assert CompareConfig(low=2.0, high=0.1, steps=1).epsilons() == (Fraction("0.1"),)

    def test_more_configurations_than_can_be_told_apart_are_refused(self):
        with pytest.raises(SettingError, match="At most 24"):
            CompareConfig(settings={"uniform_grid": {"c": [float(c) for c in range(1, 40)]}}).built()


class TestStudy:
    def test_it_runs_beside_the_page_and_is_shown(self, done):
        app = fine(done)
        assert "Done: 8 of 8 releases" in app.get("progress")[0].proto.text
        assert len(app.session_state[JOB].table()) == 8 * len(app.session_state[JOB].study.questions.names())
        (chart, *_) = charts(app)
        assert chart["title"]["text"].startswith("Error against ε, random boxes")
        assert "On the frontier" in chart["description"]

    @pytest.mark.parametrize("name", TABS)
    def test_every_tab_is_drawn(self, done, name):
        app = fine(tab(done, name))
        if name in ("By level", "By size", "Parts of the error", "Time"):
            assert len(charts(app)) == 2
        if name == "Table":
            assert app.dataframe[0].value["Runs"].unique().tolist() == [2]

    def test_up_to_four_releases_stand_side_by_side_with_one_zoom(self, done):
        app = tab(done, "On the map")
        config = app.session_state["compare config"]
        app.session_state["compare config"] = compare_state.replace(config, picked=(("Quadtree", 2.0), ("Every cell (Identity)", 0.1)))
        fine(app.run())
        maps = app.get("deck_gl_json_chart")
        assert len(maps) == 2
        assert [slider.label for slider in app.slider].count("Zoom level") == 1
        counts = [len(layer["data"]) for each in maps for layer in json.loads(each.proto.json)["layers"] if layer["id"] == "partitions"]
        assert counts == [256, 256]
        labelled(app.slider, "Zoom level").set_value(2)
        fine(app.run())
        maps = app.get("deck_gl_json_chart")
        assert [len(layer["data"]) for layer in json.loads(maps[0].proto.json)["layers"] if layer["id"] == "partitions"] == [16]
        assert json.loads(app.query_params["picked"]) == [["Quadtree", 2.0], ["Every cell (Identity)", 0.1]]

    def test_a_map_is_the_very_release_that_was_measured(self, done):
        job = done.session_state[JOB]
        run = job.study.runs()[0]
        (row,) = (row for row in job.rows if row["run"] == run.id and row["workload"] == "random")
        figures = job.study.questions.rows(job.study.release(run), parts=False)
        assert next(each for each in figures if each["workload"] == "random")["mae"] == row["mae"]

    def test_nothing_is_spent_and_nothing_private_is_kept(self, done):
        assert not Ledger().accounts()

    def test_changed_settings_are_said_and_what_is_there_is_not_made_again(self):
        app = finished(started(compare_app()))
        before = {row["run"] for row in app.session_state[JOB].rows}
        labelled(app.number_input, "Repeats of each").set_value(3)
        good(app.run())
        assert "have changed since this study" in captions(app)
        finished(started(app))
        assert app.session_state[JOB].total == 12
        assert before < {row["run"] for row in app.session_state[JOB].rows}
        assert set(app.session_state[JOB].table().groupby("run").size()) == {len(app.session_state[JOB].study.questions.names())}

    def test_trips_too(self):
        app = finished(started(compare_app({"kind": "Trips", "sample": "us_flights", "steps": "1", "repeats": "2"})))
        for name in TABS:
            fine(tab(app, name))
        config = app.session_state["compare config"]
        app.session_state["compare config"] = compare_state.replace(config, picked=tuple(pickable(app.session_state[JOB]))[:2])
        fine(tab(app, "On the map"))
        assert len(app.get("deck_gl_json_chart")) == 2
        fine(tab(app, "Parts of the error"))
        assert "Suppression" in captions(app)

    def test_forgetting_ends_the_study(self):
        app = started(compare_app(LINK | {"repeats": "200", "order": "8"}))
        job = app.session_state[JOB]
        fine(app.button(key="forget compare").click().run())
        assert JOB not in app.session_state
        until = time.monotonic() + PATIENCE
        while job.state == RUNNING and time.monotonic() < until:
            time.sleep(0.05)
        assert job.state == STOPPED


def points_and_compare():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.compare.page import compare_page  # noqa: PLC0415
    from dpviz.app.points_page import points_page  # noqa: PLC0415

    (compare_page if st.session_state.get("second page") else points_page)()


def test_uploads_declared_public_in_teach_are_offered_and_taken_back():
    app = AppTest.from_function(points_and_compare, default_timeout=60)
    app.session_state["config"] = Config(source="upload", order=4)
    good(app.run())
    app.file_uploader[0].set_value(("places.csv", PLACES, "text/csv"))
    good(app.run())
    app.selectbox(key="frame").set_value("Contiguous United States")
    app.text_input(key="crs").set_value("EPSG:4326")
    good(app.run())
    assert POINTS_KEY not in app.session_state
    labelled(app.checkbox, "These data are already public").check()
    good(app.run())
    assert app.session_state[POINTS_KEY].points.count.sum() == 3
    app.session_state["second page"] = True
    app.session_state["compare config"] = CompareConfig(source="own", mechanisms=("identity",), steps=1, repeats=1)
    fine(app.run())
    assert "declared to be already public" in captions(app)
    assert not app.button(key="draw").disabled
    app.session_state["second page"] = False
    app.session_state["config"] = Config(mode="Curate", source="upload", order=4)
    good(app.run())
    assert POINTS_KEY not in app.session_state


def test_a_click_is_put_beside_the_others(monkeypatch):
    made = StudyJob(study(mechanisms={f"m{height}": Quadtree(height=height) for height in (1, 2, 3)} | {"cells": Identity()}), None, [])
    state = {}
    monkeypatch.setattr(type(COMPARE), "config", lambda self: state.get("config", CompareConfig()))
    monkeypatch.setattr(type(COMPARE), "change", lambda self, **new: state.update(config=compare_state.replace(self.config(), **new)))
    options = list(pickable(made))
    for each in [*options[:5], options[3]]:
        pick(made, each)
    assert state["config"].picked == (*options[1:3], options[4], options[3])
    pick(made, ("nothing", 1.0))
    pick(made, None)
    assert len(state["config"].picked) == 4
    assert isinstance(made.table(), pd.DataFrame)
