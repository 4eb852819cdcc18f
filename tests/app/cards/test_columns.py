"""Columns on Points, Trips and Areas: what the registry finds is preset, and what it leaves open is asked for."""

import io
import json

import numpy as np
import pyogrio
import pytest
import shapely

from dpviz.app.cards import uploads
from tests.app.seen import captions, drawn, errors, fine, good, infos, labelled, missing, trips_drawn
from tests.app.start import BARE, JOURNEYS, SMALL, areas_uploaded, trips_uploaded, uploaded
from tests.app.test_areas_page import areas_drawn
from tests.app.walk import press_draw, protect, public

TRIPS = b"origin,destination,volume\nA1,A2,100\nA2,B1,101\nB1,B1,102\n"
PAIRS = b"stop,easting,northing,longitude,latitude\na,359000,173000,-118.2,34.1\nb,359100,173100,-80.25,25.5\n"
E7 = b"longitudeE7,latitudeE7\n-1181000000,340000000\n"
IN_ONE_CELL = b'id,location\n1,"34.05,-118.24"\n'
HOW_MANY = "How many {}s does a row stand for?"


def trips_of(content, mode="Curate"):
    return trips_uploaded(mode, trips=("trips.csv", content))


def count_field(app, noun="record"):
    return labelled(app.selectbox, HOW_MANY.format(noun))


def total_of(data):
    return int(data.counts.count.sum())


ROWS_OF = {
    "points": (lambda: uploaded(b"lon,lat,volume\n-118.2,34.1,100\n-80.25,25.5,101\n-100.125,40.5,101\n"), "record", drawn, 302),
    "trips": (lambda: trips_of(TRIPS), "trip", trips_drawn, 303),
    "areas": (lambda: areas_uploaded(points=b"tract,volume\nA1,100\nA2,101\nB1,102\n", count=None), "record", areas_drawn, 303),
}


class TestRecordsOfARow:
    """Three rows of each kind stand for other numbers of records than three."""

    @pytest.mark.parametrize("kind", ROWS_OF)
    def test_curate_wants_an_answer_where_a_column_may_hold_them(self, kind):
        make, noun, draws, total = ROWS_OF[kind]
        for answer, records in (("volume", total), ("none", 3)):
            app = fine(make())
            assert missing(app)[0] == f"Say how many {noun}s a row stands for, on the left. 'volume' may hold the number."
            assert app.button(key="draw").disabled
            count_field(app, noun).set_value(answer)
            assert total_of(draws(fine(press_draw(good(app.run())))).data) == records

    def test_teach_says_in_one_sentence_that_each_row_counts_once(self):
        app = fine(trips_of(TRIPS, "Teach"))
        assert "Each row counts as one trip; not read: 'volume'." in captions(app)
        fine(public(app).check().run())
        assert trips_drawn(app).data.counts.count.sum() == 3
        count_field(app, "trip").set_value("volume")
        app = fine(app.run())
        assert "not read" not in captions(app)
        assert trips_drawn(app).data.counts.count.sum() == 303

    def test_a_usual_name_is_preset_and_each_row_may_be_one_all_the_same(self):
        app = fine(trips_of(JOURNEYS))
        assert count_field(app, "trip").value == "count"
        count_field(app, "trip").set_value("none")
        assert trips_drawn(fine(press_draw(fine(app.run())))).data.counts.count.sum() == 3

    def test_a_column_of_persons_is_no_number_of_records(self):
        assert "Say how many" not in " ".join(missing(fine(trips_of(b"origin,destination\nA1,A2\n"))))
        app = areas_uploaded(count=None)
        assert "'visitor' may hold the number" in missing(app)[0]
        assert "Say how many" not in " ".join(missing(protect(app, "visitor", 2)))

    def test_thousands_marks_are_refused_with_the_control_that_declares_them(self):
        app = trips_of(b'origin,destination,count\nA1,A2,"1,200"\nA2,B1,50\n')
        assert "choose “Thousands mark of counts”, or the decimal mark, under “How the file is written”" in errors(app)
        labelled(app.selectbox, "Thousands mark of counts").set_value(",")
        app = good(app.run())
        next(each for each in app.checkbox if each.label.startswith("Read it so: ")).check()
        assert trips_drawn(fine(press_draw(fine(app.run())))).data.counts.count.sum() == 1250


class TestCoordinates:
    def test_one_of_two_pairs_is_asked_for_and_none_is_preset(self):
        app = fine(uploaded(PAIRS))
        assert (
            missing(app)[0]
            == "Say which columns hold the coordinates, on the left: 'easting' and 'northing', or 'longitude' and 'latitude'."
        )
        which = labelled(app.radio, "Which columns hold the coordinates?")
        assert (which.value, which.options) == (None, ["easting and northing", "longitude and latitude"])
        which.set_value(1)
        count_field(app).set_value("none")
        assert drawn(fine(press_draw(fine(app.run())))).data.counts.count.sum() == 2
        labelled(app.selectbox, "Longitude or easting").set_value("(none)")
        assert labelled(good(app.run()).radio, "Which columns hold the coordinates?").value is None

    def test_metres_in_place_of_degrees_are_refused_with_the_controls_that_help(self):
        app = uploaded(PAIRS)
        labelled(app.radio, "Which columns hold the coordinates?").set_value(0)
        count_field(app).set_value("none")
        assert "Then type that one as the CRS of the coordinates, or choose other columns" in errors(good(app.run()))

    def test_areas_ask_for_the_pair_too(self):
        app = areas_uploaded(points=PAIRS)
        assert "Say which columns hold the coordinates, on the left" in missing(app)[0]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (E7, "look like degrees times 10,000,000: divide them"),
            (IN_ONE_CELL, "A column with both in one cell must be split in the file first."),
        ],
    )
    def test_what_the_registry_says_of_other_coordinates_is_shown(self, content, words):
        assert words in missing(uploaded(content))[0]
        assert words in infos(fine(public(uploaded(content, link=SMALL)).check().run()))


def flatgeobuf():
    body, shapes = io.BytesIO(), shapely.to_wkb(shapely.points([[-118.2, 34.1], [-80.25, 25.5], [-100.125, 40.5]]))
    pyogrio.raw.write(body, shapes, [np.arange(3)], ["id"], geometry_type="Point", crs="EPSG:4326", driver="FlatGeobuf")
    return body.getvalue()


def lines():
    points = ({"type": "Point", "coordinates": [float(lon), 34.0]} for lon in (-118, -80, -100))
    return b"".join(json.dumps({"type": "Feature", "properties": {}, "geometry": each}).encode() + b"\n" for each in points)


@pytest.mark.parametrize(
    ("name", "make"), [("homes.txt", lambda: BARE), ("homes.geojsonl", lines), ("homes.ndjson", lines), ("homes.fgb", flatgeobuf)]
)
def test_all_formats_that_are_read_may_be_uploaded(name, make):
    ending = name.rpartition(".")[2]
    assert ending in uploads.upload_types()
    assert {"kml", "gpx", "topojson", "gz"}.isdisjoint(uploads.upload_types())
    assert {"txt"} <= {*uploads.upload_types(tables=True)} <= {*uploads.upload_types()}
    assert drawn(fine(press_draw(fine(uploaded(make(), name))))).data.counts.count.sum() == 3
