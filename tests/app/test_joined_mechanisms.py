"""Mechanisms of another package are offered, drawn, compared and handed to the Release page like those of this one."""

import pytest

from dpviz.app.jobs.study import table_of
from dpviz.app.pages.points.tabs import EXTRA_TABS
from dpviz.families import POINT_FAMILY
from tests.app.published import at_payment, made, payment
from tests.app.seen import drawn, fine, scene, trips_drawn
from tests.app.start import CURATE_TRIPS, FLIGHTS, points_app, trips_app
from tests.app.test_compare_page import LINK, compare_app, finished, started
from tests.app.walk import open_drawer, press_draw
from tests.mechanisms.joined import installed

TOP_DOWN = '{"mechanism":"top_down","settings":{},"epsilon":"1.0","delta":1e-8}'
HALVES = {"sample": "gaussian_cluster", "order": "6", "mechanism": "their_halves", "settings": '{"share":0.3}'}


@pytest.fixture(autouse=True)
def joined(tmp_path):
    with installed(tmp_path):
        yield


def test_the_points_page_offers_and_draws_it_with_its_settings():
    app = fine(open_drawer(points_app(HALVES), "Method"))
    assert "Their halves" in app.selectbox(key="mechanism").options
    assert app.number_input(key="setting their_halves share").value == 0.3
    fine(press_draw(app))
    assert (drawn(app).release.mechanism, drawn(app).release.settings) == ("their_halves", {"share": 0.3})


def test_the_trips_page_offers_and_draws_it_alone_and_beside_another_one():
    app = fine(open_drawer(trips_app(FLIGHTS | {"mechanism": "their_pairs", "left": "Second run", "second": TOP_DOWN}), "Method"))
    assert "Their pairs" in app.selectbox(key="mechanism").options
    assert [run.release.mechanism for run in trips_drawn(app).runs] == ["their_pairs"]
    assert [pane["about"].split(",")[0] for pane in scene(app)[0]["panes"]] == ["TopDown (InfTDA)", "Their pairs"]
    app = fine(press_draw(trips_app(CURATE_TRIPS | {"mechanism": "their_pairs", "beside": "top_down"})))
    assert "Their pairs" in app.selectbox(key="beside").options
    assert [run.release.mechanism for run in trips_drawn(app).runs] == ["their_pairs", "top_down"]


def test_the_compare_page_compares_it():
    app = finished(started(compare_app(LINK | {"mechanisms": '["their_halves","identity"]'})))
    assert "Their halves" in app.multiselect(key="compare mechanisms Points").options
    table = table_of(app.session_state["study"])
    assert {*table["mechanism"]} == {"their_halves", "identity"}
    assert "their-mechanisms 2.5" in {*table["package"]}


def test_curate_publishes_a_draw_of_it():
    app = at_payment(HALVES | {"mode": "Curate", "size": "1000"})
    assert made(payment(app)).manifest["contents"]["mechanism"] == "their_halves"


def test_every_tab_that_a_mechanism_names_has_something_that_draws_it():
    named = {kind.extra_tab for kind in POINT_FAMILY.choices.values()} - {""}
    assert named == {"Split objective"} == {*EXTRA_TABS}
