"""Whom a release protects: in Curate nothing is preselected, and columns that look like ids are shown before anything is drawn."""

import pytest

from dpviz.privacy.ledger import Ledger
from tests.app.walk import (
    CURATE,
    FLIGHTS,
    SMALL,
    account,
    captions,
    drawn,
    fine,
    good,
    infos,
    labelled,
    name_dataset,
    points_app,
    press_draw,
    protect,
    trips_app,
    warnings,
)

TRACKS = b"lon,lat,Fahrzeug-ID,v\n" + b"".join(f"-1{n % 10}0,40,B-{n % 3},{n}.5\n".encode() for n in range(30))
BARE = b"lon,lat\n-118.2,34.1\n-80.25,25.5\n"
REGIONS = b"id,lat,lon,name\nA1,50,8,Aberg\nA2,51,9,Bdorf\nB1,52,9,Cburg\n"
JOURNEYS = b"origin,dest,count,rider\nA1,A2,500,r1\nA2,B1,40,r1\nB1,B1,900,r2\n"


def points_file(content=TRACKS, link=CURATE):
    app = points_app(link)
    app.segmented_control(key="source").set_value("upload").run()
    good(app.file_uploader(key="file").set_value(("tracks.csv", content, "text/csv")).run())
    app.selectbox(key="frame").set_value("World")
    return good(app.text_input(key="crs").set_value("EPSG:4326").run())


def trips_file(mode="Curate"):
    app = trips_app(FLIGHTS | {"mode": mode})
    app.session_state["regions uploaded"], app.session_state["trips uploaded"] = ("regions.csv", REGIONS), ("trips.csv", JOURNEYS)
    app.segmented_control(key="trips source").set_value("upload").run()
    return good(labelled(app.text_input, "Group by the first characters of the id").set_value("1").run())


@pytest.mark.parametrize("start", [points_file, trips_file])
def test_nothing_is_preselected_in_curate_and_the_button_waits(start):
    app = start()
    assert labelled(app.radio, "Whom to protect").value is None
    assert "Say whom the release protects: nothing is preselected." in infos(app)
    assert app.button(key="draw").disabled
    good(labelled(app.radio, "Whom to protect").set_value("person").run())
    assert labelled(app.selectbox, "Person").value is None
    (bound,) = [number for number in app.number_input if number.label.endswith("per person, at most")]
    assert bound.value is None
    assert app.button(key="draw").disabled
    bound.set_value(2).run()
    assert "Choose the column of persons, and say the most" in infos(app)
    assert app.button(key="draw").disabled


def test_a_choice_holds_for_one_file_and_one_mode_only():
    app = protect(points_file(BARE))
    good(app.file_uploader(key="file").set_value(("others.csv", BARE + b"1,2\n", "text/csv")).run())
    assert labelled(app.radio, "Whom to protect").value is None
    teach = points_file(BARE, SMALL)
    assert labelled(teach.radio, "Whom to protect").value == "each"
    good(teach.segmented_control(key="mode").set_value("Curate").run())
    assert labelled(teach.radio, "Whom to protect").value is None


def test_persons_are_protected_with_the_bound_that_was_typed():
    app = fine(press_draw(protect(points_file(), "Fahrzeug-ID", 4)))
    receipt = drawn(app).release.receipt
    assert (receipt.unit, receipt.contributions, drawn(app).data.points.count.sum()) == ("person", 4, 12)
    assert not account().truth_seen
    assert "Curator only: is one of" not in warnings(app)


def test_a_column_that_looks_like_ids_is_shown_with_its_consequence_and_recorded():
    app = fine(protect(points_file()))
    assert "is one of these columns a person, a household or a vehicle? Then choose it above." in warnings(app)
    assert "*Fahrzeug-ID*: 3 values, 30 rows: publishing by record would not hide any of them" in warnings(app)
    assert "*v*" not in warnings(app)
    fine(press_draw(app))
    assert account().truth_seen
    assert "*rider*: 2 values, 3 rows" in warnings(fine(press_draw(protect(trips_file()))))
    assert all(each.truth_seen for each in Ledger().accounts())


def test_a_look_that_finds_nothing_is_a_look_and_names_and_types_alone_are_none():
    app = fine(protect(points_file(b"lon,lat,note\n1,2,a\n3,4,b\n")))
    assert "no other column's values repeat as ids do. That the data were looked at is recorded." in captions(app)
    fine(press_draw(app))
    assert account().truth_seen
    bare = fine(press_draw(name_dataset(protect(points_file(BARE)), name="Bare")))
    assert "looked at" not in captions(bare).replace("The truth was looked at", "")
    assert not Ledger().account("Bare").truth_seen


def test_a_bound_of_trips_that_the_curator_vouches_for():
    app = trips_file()
    good(labelled(app.radio, "Whom to protect").set_value("vouched").run())
    assert app.button(key="draw").disabled
    good(labelled(app.number_input, "Trips per person, at most").set_value(900).run())
    flows = app.session_state["loaded trips config"][0].flows
    assert (flows.unit, flows.contributions, flows.enforced) == ("person", 900, False)


def test_a_bound_out_of_range_stays_and_locks():
    app = protect(points_file(), "Fahrzeug-ID", 0)
    assert labelled(app.number_input, "Records per person, at most").value == 0
    assert "must be a number from 1 to 1,000" in " ".join(error.value for error in app.error)
    assert app.button(key="draw").disabled
