"""Whom a release protects: in Curate nothing is preselected, and columns that look like ids are shown before anything is drawn."""

import pytest

from dpviz.privacy.ledger import Ledger
from tests.app.seen import account, captions, drawn, errors, fine, good, labelled, missing, trips_drawn, warnings
from tests.app.start import BARE, SMALL, trips_uploaded, uploaded
from tests.app.walk import choose, name_dataset, press_draw, protect, to_mode
from tests.ledgers import is_empty

TRACKS = b"lon,lat,Fahrzeug-ID,note\n" + b"".join(f"-1{n % 10}0,40,B-{n % 3},{n}.5\n".encode() for n in range(30))


def tracks(content=TRACKS, **how):
    return uploaded(content, "tracks.csv", frame="World", **how)


def rides(**how):
    return trips_uploaded(trips=("rides.csv", b"origin,dest,count,rider,bike\nA1,A2,500,r1,b1\nB1,B1,900,r2,b1\n"), **how)


@pytest.mark.parametrize("start", [tracks, rides])
def test_nothing_is_preselected_in_curate_and_the_button_waits(start):
    app = start(unit=None)
    assert labelled(app.radio, "Whom to protect").value is None
    assert "Say whom the release protects: nothing is preselected." in missing(app)
    assert app.button(key="draw").disabled
    good(labelled(app.radio, "Whom to protect").set_value("person").run())
    assert labelled(app.selectbox, "Person").value is None
    (bound,) = [number for number in app.number_input if number.label.endswith("per person, at most")]
    assert bound.value is None
    assert app.button(key="draw").disabled
    bound.set_value(2).run()
    assert any(text.startswith("Choose the column of persons, and say the most") for text in missing(app))
    assert app.button(key="draw").disabled


def test_a_choice_holds_for_one_file_and_one_mode_only():
    app = choose(protect(tracks(BARE, unit=None)), BARE + b"1,2\n", "others.csv")
    assert labelled(app.radio, "Whom to protect").value is None
    teach = tracks(BARE, link=SMALL)
    assert labelled(teach.radio, "Whom to protect").value == "each"
    assert labelled(to_mode(teach, "Curate").radio, "Whom to protect").value is None


def test_persons_are_protected_with_the_bound_that_was_typed_and_fits():
    app = protect(tracks(unit=None), "Fahrzeug-ID", 0)
    bound = labelled(app.number_input, "Records per person, at most")
    assert bound.value == 0
    assert "must be a number from 1 to 1,000" in errors(app)
    assert app.button(key="draw").disabled
    fine(press_draw(fine(bound.set_value(4).run())))
    receipt = drawn(app).release.receipt
    assert (receipt.unit, receipt.contributions, drawn(app).data.counts.count.sum()) == ("person", 4, 12)
    assert not account().truth_seen
    assert "Curator only: is one of" not in warnings(app)


def searched(app):
    """Ask for the search of the other columns for persons."""
    return fine(labelled(app.toggle, "Search the other columns for persons").set_value(True).run())


def test_a_column_that_looks_like_ids_is_shown_with_its_consequence_once_it_is_asked_for_and_recorded():
    app = fine(tracks())
    assert "is one of these columns" not in warnings(app)
    assert is_empty(Ledger())
    app = searched(app)
    assert "is one of these columns a person, a household or a vehicle? Then choose it above." in warnings(app)
    assert "*Fahrzeug-ID*: 3 values, 30 rows: publishing by record would not hide any of them" in warnings(app)
    assert "*note*" not in warnings(app)
    fine(press_draw(app))
    assert (account().persons_searched, account().truth_seen) == (True, False)
    assert "Columns were searched for persons." in captions(app)
    assert "*rider*: 2 values, 3 rows" in warnings(searched(fine(press_draw(trips_uploaded()))))
    assert all(each.persons_searched and not each.truth_seen for each in Ledger().accounts())


def test_a_search_that_finds_nothing_is_a_search_and_without_one_nothing_is_recorded():
    app = searched(tracks(b"lon,lat,note\n1,2,a\n3,4,b\n"))
    assert "no other column's values repeat as ids do. That the columns were searched is recorded." in captions(app)
    fine(press_draw(app))
    assert account().persons_searched
    fine(press_draw(name_dataset(tracks(BARE), name="Bare")))
    assert not Ledger().account("Bare").persons_searched


def test_a_bound_of_trips_that_the_curator_vouches_for():
    app = trips_uploaded(unit="vouched")
    assert app.button(key="draw").disabled
    good(labelled(app.number_input, "Trips per person, at most").set_value(900).run())
    good(app.button(key="take add_remove").click().run())
    trips = trips_drawn(fine(press_draw(app))).data.counts
    assert (trips.unit, trips.contributions, trips.enforced) == ("person", 900, False)
