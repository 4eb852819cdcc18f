"""Compare on data of one's own: that their truth was looked at is noted, and they go when they are not public in Teach any more."""

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.compare.page import FOUND
from dpviz.app.compare.state import JOB, CompareConfig
from dpviz.app.jobs import STOPPED
from dpviz.app.points_state import Config
from dpviz.app.trips_state import TripsConfig
from tests.app.test_compare_page import answered, charts, finished, started
from tests.app.walk import account, by_record, errors, fine, go, good, infos, labelled, press_draw

REGIONS = b"id,lat,lon,name\nA1,50,8,a\nA2,51,8,b\nB1,50,9,c\nB2,51,9,d\n"
JOURNEYS = b"origin,destination,count\nA1,A2,70\nA1,B1,9\nB2,B1,33\nB2,A2,4\n"


def own_pages():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.compare.page import compare_page  # noqa: PLC0415
    from dpviz.app.points_page import points_page  # noqa: PLC0415
    from dpviz.app.trips_page import trips_page  # noqa: PLC0415

    {"points": points_page, "trips": trips_page, "compare": compare_page}[st.session_state["at"]]()


def at(page, **state):
    app = AppTest.from_function(own_pages, default_timeout=60)
    app.session_state["at"], app.session_state["tab"], app.session_state["trips tab"] = page, "Table", "Consistency"
    for key, value in state.items():
        app.session_state[key.replace("_", " ")] = value
    return good(app.run())


def points_uploaded(mode="Curate"):
    app = at("points", config=Config(mode=mode, source="upload", order=4))
    good(app.file_uploader[0].set_value(("places.csv", BARE, "text/csv")).run())
    app.selectbox(key="frame").set_value("Contiguous United States")
    app.text_input(key="crs").set_value("EPSG:4326")
    return by_record(good(app.run()))


def trips_uploaded(mode="Curate"):
    app = at("trips", trips_config=TripsConfig(mode=mode, source="upload"))
    good(app.file_uploader(key="regions file").set_value(("regions.csv", REGIONS, "text/csv")).run())
    good(app.file_uploader(key="trips file").set_value(("trips.csv", JOURNEYS, "text/csv")).run())
    return by_record(good(labelled(app.text_input, "Group by the first characters of the id").set_value("1").run()))


BARE = b"lon,lat\n-118.2,34.1\n-80.25,25.5\n-100.125,40.5\n"  # without a column whose content could look like ids
UPLOADED = {"Points": points_uploaded, "Trips": trips_uploaded}
MECHANISM = {"Points": "identity", "Trips": "flat_gaussian"}


def declared(kind):
    """An upload that is declared public in Teach; its truth is not looked at yet where the page shows none before a draw."""
    return good(labelled(UPLOADED[kind]("Teach").checkbox, "These data are already public").check().run())


def to_compare(app, kind):
    app.session_state["compare config"] = CompareConfig(kind=kind, source="own", mechanisms=(MECHANISM[kind],), steps=1, repeats=1)
    return fine(go(app, "compare"))


def to_curate(app, kind):
    go(app, kind.lower())
    return by_record(good(app.segmented_control(key="mode").set_value("Curate").run()))


class TestLooks:
    @pytest.mark.parametrize("kind", ["Points", "Trips"])
    def test_a_study_is_a_look_at_the_truth(self, kind):
        app = to_compare(declared(kind), kind)
        app.session_state["looked_at"] = set()
        fine(finished(started(app)))
        assert charts(app)
        fine(press_draw(to_curate(app, kind)))
        assert account().truth_seen

    @pytest.mark.parametrize("kind", ["Points", "Trips"])
    def test_a_study_afterwards_is_recorded_at_once(self, kind):
        fine(press_draw(UPLOADED[kind]()))
        assert not account().truth_seen
        app = to_compare(declared(kind), kind)
        app.session_state["looked_at"] = set()
        fine(finished(started(app)))
        assert account().truth_seen

    def test_the_true_map_before_the_first_draw_is_a_look(self):
        app = declared("Points")
        assert app.get("deck_gl_json_chart")
        fine(press_draw(to_curate(app, "Points")))
        assert account().truth_seen

    def test_it_is_one_after_the_session_is_gone_and_on_another_frame(self):
        assert declared("Points").get("deck_gl_json_chart")
        app = points_uploaded()
        app.selectbox(key="frame").set_value("World")
        fine(press_draw(good(app.run())))
        assert account().truth_seen

    @pytest.mark.parametrize("kind", ["Points", "Trips"])
    def test_where_it_cannot_be_recorded_nothing_is_shown(self, ledger_path, kind):
        ledger_path.write_text("no ledger")
        app = declared(kind)
        assert kind == "Trips" or "The truth is not shown" in errors(app)
        app = press_draw(app)
        assert "The truth is not shown, since the ledger cannot record that it is looked at" in errors(app)
        assert not [each for each in app.metric if "rror" in each.label]
        assert app.session_state["looked_at"] == set()

    def test_trips_show_no_truth_before_the_first_draw(self):
        app = declared("Trips")
        assert not app.get("deck_gl_json_chart")
        fine(press_draw(to_curate(app, "Trips")))
        assert not account().truth_seen

    def test_the_number_of_records_behind_an_epsilon_is_a_look(self):
        app = to_compare(declared("Points"), "Points")
        app.session_state["looked_at"] = set()
        answered(good(app.button(key="find epsilon").click().run()))
        assert FOUND in app.session_state
        fine(press_draw(to_curate(app, "Points")))
        assert account().truth_seen

    @pytest.mark.parametrize(("kind", "sample"), [("Points", "gaussian_cluster"), ("Trips", "us_flights")])
    def test_a_sample_has_the_digest_of_its_page(self, kind, sample):
        config = CompareConfig(kind=kind, sample=sample, mechanisms=(MECHANISM[kind],), steps=1, repeats=1, order=4)
        app = finished(started(at("compare", compare_config=config)))
        assert app.session_state["looked_at"] == {"gaussian_cluster None" if kind == "Points" else "trips us_flights"}


class TestHidden:
    @pytest.mark.parametrize("kind", ["Points", "Trips"])
    def test_a_study_goes_with_the_declaration(self, kind):
        app = finished(started(to_compare(declared(kind), kind)))
        assert charts(app)
        to_curate(app, kind)
        fine(go(app, "compare"))
        assert not charts(app)
        assert not app.get("deck_gl_json_chart")
        assert not app.dataframe
        assert "is not shown any more" in infos(app)
        go(app, kind.lower())
        good(app.segmented_control(key="mode").set_value("Teach").run())
        assert charts(fine(go(app, "compare")))

    def test_one_that_runs_is_stopped(self):
        app = declared("Points")
        to_compare(app, "Points")
        app.session_state["compare config"] = CompareConfig(source="own", mechanisms=("quadtree",), repeats=200)
        started(good(app.run()))
        to_curate(app, "Points")
        fine(go(app, "compare"))
        job = app.session_state[JOB]
        job._thread.join(60)
        assert job.state == STOPPED
