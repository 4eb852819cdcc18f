"""Teach with public data of one's own: the page always shows a map, bounds come from the data, and what is missing is said in its place."""

from dataclasses import replace

import pytest

from dpviz.app.session.cached import digest_of
from dpviz.app.state.parts import ChosenRegions
from dpviz.app.state.values import SIDES
from tests.app.parts import change, files_with, page_with
from tests.app.seen import captions, drawn, fine, good, infos, newest, scene, scenes
from tests.app.start import AREA_REGIONS, BARE, SMALL, pages_app, trips_uploaded, uploaded
from tests.app.walk import choose, public, to_mode

EAST = b"lon,lat\n4.71,45.61\n5.04,45.9\n"
UMLAUTS = "Länge,Breite\n9.25,50.5\n8.5,49.5\n".encode()


def teach(content=BARE, *, crs="EPSG:4326", frame=None, **more):
    return uploaded(content, link=SMALL | {"mode": "Teach"}, frame=frame, crs=crs, **more)


def bounds(app):
    return [getattr(app.session_state["config"].draft.domain, side) for side in SIDES]


def test_before_the_data_are_said_to_be_public_nothing_of_them_is_used_and_a_map_is_there():
    app = teach()
    assert bounds(app) == [None] * 4
    assert "Confirm that the data are public" in infos(app)
    assert scene(app)[0]["asks"]


def test_bounds_come_from_public_data_and_can_be_changed():
    app = fine(public(teach()).check().run())
    assert bounds(app) == [-119.0, 25.0, -79.0, 41.0]
    assert drawn(app).data.counts.count.sum() == 3
    fine(app.number_input(key="west").set_value(-130.0).run())
    assert bounds(app) == [-130.0, 25.0, -79.0, 41.0]
    fine(app.text_input(key="place").set_value("Lyon").run())
    assert [button for button in app.button if "Lyon" in button.label]


def test_rows_that_are_left_out_are_said_under_the_maps_without_a_press():
    app = fine(public(teach()).check().run())
    assert "outside the domain" not in captions(app)
    fine(app.number_input(key="west").set_value(-100.0).run())
    assert "Left out 2: 2 outside the domain." in captions(app)


def test_other_public_data_have_bounds_of_their_own_and_typed_ones_stay():
    app = fine(public(teach()).check().run())
    fine(public(choose(app, EAST, "east.csv")).check().run())
    assert bounds(app) == [4.7, 45.6, 5.05, 45.91]
    fine(app.number_input(key="west").set_value(4.0).run())
    good(public(choose(app, BARE)).check().run())
    assert bounds(app)[0] == 4.0


def test_a_crs_that_the_file_does_not_state_is_offered_by_where_the_box_would_lie():
    app = good(public(teach(EAST, crs=None)).check().run())
    assert "Say which CRS the coordinates are in." in infos(app)
    assert "With each of these, the box would lie here" in captions(app)
    fine(app.button(key="candidate EPSG:4326").click().run())
    assert drawn(app).data.counts.count.sum() == 2


def test_bounds_that_were_taken_from_data_do_not_reach_curate():
    app = to_mode(fine(public(teach()).check().run()), "Curate")
    assert bounds(app) == [None] * 4


def test_sides_of_the_box_that_were_not_typed_do_not_reach_curate_either():
    app = fine(public(teach()).check().run())
    good(app.number_input(key="west").set_value(-20.0).run())
    assert bounds(to_mode(app, "Curate")) == [-20.0, None, None, None]


def test_names_of_elsewhere_are_found():
    app = teach(UMLAUTS, name="orte.csv")
    data = app.session_state["config"].draft.files.data
    assert (data.x, data.y) == ("Länge", "Breite")


@pytest.mark.parametrize("family", ["trips", "areas"])
def test_regions_are_not_asked_for_again_where_their_columns_are_missing(family):
    slots = {"trips": "regions uploaded", "areas": "areas regions uploaded"}
    state = {f"{family} config": page_with(family, mode="Teach", source="upload"), slots[family]: ("regions.csv", AREA_REGIONS)}
    state[f"public {slots[family].removesuffix(' uploaded')} file {digest_of(AREA_REGIONS)}"] = True
    app = good(pages_app(family, {}, state))
    change(app, f"{family} config", regions=replace(app.session_state[f"{family} config"].draft.regions, levels=()))
    good(app.run())
    assert "Say which columns hold the ids of the regions" in infos(app)
    assert "public file of regions" not in infos(app)
    assert "Choose a file of" in infos(app)


def test_declared_regions_are_drawn_before_there_are_counts():
    app = trips_uploaded("Teach")
    assert scenes(app)
    assert newest(app, "trips config first run") is None


@pytest.mark.parametrize(("kind", "levels"), [("Hexagons", {"h3": (3, 4)}), ("Squares", {"squares": (2, 4)})])
def test_hexagons_and_squares_lie_around_public_points(kind, levels):
    files = files_with("east.csv", EAST, mode="Teach", crs="EPSG:4326")
    parts = {"regions_from": kind, "regions": ChosenRegions(**levels), "uploaded": files}
    state = {"areas config": page_with("areas", mode="Teach", source="upload", **parts), "areas uploaded": ("east.csv", EAST)}
    app = fine(public(pages_app("areas", {}, state)).check().run())
    assert app.session_state["areas config"].draft.grid.bounds() == (4.7, 45.6, 5.05, 45.91)
    assert newest(app, "areas config first run").data.counts.count.sum() == 2
    good(app.file_uploader(key="areas file").set_value(("west.csv", EAST.replace(b"4.71", b"4.01"), "text/csv")).run())
    assert app.session_state["areas config"].draft.grid.bounds() is None
    good(public(app).check().run())
    change(app, "areas config", mode="Curate")
    assert good(app.run()).session_state["areas config"].draft.grid.bounds() is None
