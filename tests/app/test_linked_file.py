"""Links of Points, Trips and Areas to a file of one's own: it is named only while it is declared public, and asked for by that name."""

import pytest

from dpviz.app.state.links import LINKED_FILES
from tests.app.seen import errors, fine, good, scenes, warnings
from tests.app.start import BARE, SMALL, areas_uploaded, pages_app, query_of, trips_uploaded, uploaded
from tests.app.walk import public, to_mode
from tests.often import each_often, named
from tests.scenes import unpack

FILES = {
    "points": ({"file": "homes.csv"}, lambda: uploaded(BARE, link=SMALL | {"mode": "Teach"})),
    "trips": ({"file": "trips.csv", "regions": "homes.csv"}, lambda: trips_uploaded("Teach")),
    "areas": ({"file": "visits.csv", "regions": "regions.csv"}, lambda: areas_uploaded("Teach")),
}


@pytest.mark.parametrize(("names", "upload"), each_often(FILES, 1))
def test_a_link_names_files_while_they_are_declared_public_in_teach(names, upload):
    app = upload()
    assert not LINKED_FILES.keys() & query_of(app).keys()
    good(public(app).check().run())
    assert {name: text for name, text in query_of(app).items() if name in LINKED_FILES} == names
    assert all(unpack(scene)[0]["link"] for scene in scenes(app)), "it can be copied"
    good(public(app).uncheck().run())
    assert not LINKED_FILES.keys() & query_of(app).keys()
    good(public(app).check().run())
    address = str(query_of(to_mode(app, "Curate")))
    assert not [name for name in names.values() if name in address]


@pytest.mark.parametrize("page", named({page: page for page in FILES}, 1))
def test_a_link_asks_for_its_file_in_the_words_of_its_author_and_shows_no_sample(page):
    link = {"file": "*stops* <b>.csv"}
    app = fine(pages_app(page, link))
    assert "The link says that its data are in “*stops* <b>.csv”: choose that file under Data" in warnings(app)
    assert "\\*stops\\*" in app.warning[0].value
    titles = {each["title"] for scene in scenes(app) for each in unpack(scene)[0]["panes"]}
    assert titles <= {"Drag a box over the area that is counted"}, "no map of data"
    assert query_of(app)["file"] == link["file"], "a page that is loaded anew asks again"


def test_a_link_to_files_of_areas_asks_for_both():
    link = {"file": "visits.csv", "regions": "*tracts*.zip"}
    app = fine(pages_app("areas", link))
    assert warnings(app).startswith(
        "The link says that its data are in “visits.csv” and the regions are in “*tracts*.zip”: choose these files"
    )
    assert any("Choose \\*tracts\\*" in each.value for each in app.caption)
    assert {name: query_of(app)[name] for name in link} == link


def test_what_a_link_says_goes_once_a_file_of_that_name_is_declared_public_and_stays_with_another():
    app = uploaded(BARE, link=SMALL | {"mode": "Teach"})
    page = app.session_state["config"]
    for name, says in (("homes.csv", ""), ("stops.csv", "The link says that its data are in “stops.csv”")):
        other = pages_app("points", {"file": name})
        other.session_state["config"] = page
        other.session_state["uploaded"] = app.session_state["uploaded"]
        good(public(good(other.run())).check().run())
        assert query_of(other)["file"] == "homes.csv"
        assert warnings(good(other.run())).startswith(says)
        assert says or not warnings(other)


def test_a_class_shows_a_sample_and_says_so(monkeypatch):
    monkeypatch.setattr("dpviz.app.session.page_state.is_class", lambda: True)
    app = pages_app("points", {"file": "stops.csv"})
    assert "a class has samples only: a sample is shown instead" in warnings(app)
    assert not errors(app)
