"""The drop zone of Curate: a file is private until something else is said of it, and nothing of it is shown before."""

import geopandas as gpd
import shapely

from tests.app.parts import page_with
from tests.app.seen import captions, fine, good, labelled, missing, scenes, warnings
from tests.app.start import JOURNEYS, areas_uploaded, pages_app, trips_uploaded
from tests.app.walk import drop

TRIPS, REGIONS = "Private: trips", "Public: regions"


def shapes(**columns):
    squares = [shapely.box(8 + place, 50, 9 + place, 51) for place in range(3)]
    return gpd.GeoDataFrame({"town": ["A1", "A2", "B1"], **columns}, geometry=squares, crs="EPSG:4326").to_json().encode()


def trips_page(mode="Curate"):
    return pages_app("trips", {}, {"trips config": page_with("trips", mode=mode, source="upload")})


def dropped(app, *files):
    (zone,) = [each for each in app.file_uploader if each.label == "Files"]
    return good(zone.set_value([(name, content, "text/plain") for name, content in files]).run())


def answers(app):
    """What is said of each file, the private ones first."""
    return [each.value for each in app.segmented_control if each.label == "What is it?"]


class TestRoles:
    def test_the_first_file_is_private_and_of_a_further_one_it_is_asked_what_it_is(self):
        app = dropped(trips_page(), ("cases.geojson", shapes()))
        assert answers(app) == [TRIPS]
        app = dropped(app, ("towns.geojson", shapes(name=["a", "b", "c"])))
        assert answers(app) == [TRIPS, None]
        assert "Say what towns.geojson is, or remove it." in missing(app)

    def test_nothing_of_a_file_is_drawn_or_listed_before_it_is_said_to_be_public(self):
        app = dropped(trips_page(), ("trips.csv", JOURNEYS), ("towns.geojson", shapes()))
        assert scenes(app) == []
        assert not [each for each in app.multiselect if each.label.startswith("Columns of ids")]
        app = good([each for each in app.segmented_control if each.label == "What is it?"][1].set_value(REGIONS).run())
        assert answers(app) == [TRIPS, REGIONS]
        assert len(scenes(app)) == 1

    def test_two_that_were_taken_for_each_other_change_places(self):
        app = dropped(trips_page(), ("towns.geojson", shapes()), ("trips.csv", JOURNEYS))
        good(next(each for each in app.segmented_control if each.label == "What is it?").set_value(REGIONS).run())
        assert answers(app) == [TRIPS, REGIONS], "the only other file is private again"
        assert app.session_state["trips uploaded"][0] == "trips.csv"

    def test_a_file_is_removed_and_another_takes_its_place(self):
        app = trips_uploaded()
        drop(app, shapes(), "towns.geojson", REGIONS)
        assert app.session_state["regions uploaded"][0] == "towns.geojson"
        (remove,) = [each for each in app.button if str(each.key).startswith("remove trips trips ")]
        good(remove.click().run())
        assert app.session_state["trips uploaded"] is None
        assert "Choose trips.csv again" in captions(app)

    def test_after_a_reload_a_public_file_is_known_by_its_content_alone(self):
        page = trips_uploaded().session_state["trips config"]
        again = pages_app("trips", {}, {"trips config": page})
        name, regions = trips_uploaded().session_state["regions uploaded"]
        again = dropped(again, ("renamed.csv", regions), (name, JOURNEYS))
        assert answers(again) == [TRIPS, REGIONS]
        assert again.session_state["regions uploaded"][0] == "renamed.csv"

    def test_a_file_of_regions_stays_listed_where_hexagons_are_chosen_and_can_be_removed(self):
        app = areas_uploaded()
        assert answers(app)[1] == REGIONS
        good(app.segmented_control(key="areas regions kind").set_value("Squares").run())
        assert answers(app)[1] == f"{REGIONS}, not used"
        (remove,) = [each for each in app.button if str(each.key).startswith("remove areas areas regions ")]
        good(remove.click().run())
        assert len(answers(app)) == 1

    def test_a_public_file_with_a_column_of_persons_is_warned_of(self):
        app = dropped(trips_page(), ("trips.csv", JOURNEYS), ("cases.geojson", shapes(patient=[1, 2, 3])))
        assert "looks like ids of people" not in warnings(app)
        good([each for each in app.segmented_control if each.label == "What is it?"][1].set_value(REGIONS).run())
        assert "It has a column patient, which looks like ids of people" in warnings(app)


def test_in_teach_nothing_of_a_file_of_regions_is_used_before_it_is_said_to_be_public():
    app = trips_page("Teach")
    good(app.file_uploader(key="regions file").set_value(("towns.geojson", shapes(), "text/plain")).run())
    assert not [each for each in app.multiselect if each.label.startswith("Columns of ids")]
    fine(labelled(app.checkbox, "This file is already public").check().run())
    assert [each for each in app.multiselect if each.label.startswith("Columns of ids")]
