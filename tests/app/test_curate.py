"""Curate: the cards that unlock the button, the declared map, the expected error from public values, and the way to a bundle."""

import io
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import geopandas as gpd
import pytest
import shapely
from streamlit.testing.v1 import AppTest

import dpviz as dv
from dpviz.amounts import format_decimal
from dpviz.app.pages.points.where import find_boxes, nearest_town
from dpviz.app.payment.release_files import Maker, check_texts
from dpviz.app.session.saved_config import write_configuration
from dpviz.app.state.kinds import POINTS
from dpviz.app.state.parts import Box, Files
from dpviz.errors import DpvizError
from dpviz.mechanisms import run as measure
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import DataKeys
from dpviz.publishing.kept import kept_draws
from dpviz.publishing.public_guess import TOWNS
from dpviz.publishing.publish import note_publication
from dpviz.release.squares import expected_error
from tests.app.parts import change, changed_page, page_of_link, page_with
from tests.app.published import TYPED, payment
from tests.app.seen import (
    as_read,
    captions,
    drawn,
    entries,
    errors,
    fine,
    good,
    keys,
    labelled,
    missing,
    noised,
    scene,
    scenes,
    texts,
    trips_drawn,
)
from tests.app.start import (
    CURATE,
    CURATE_TRIPS,
    PLACES,
    REGIONS,
    STATES,
    SWAPPED,
    box_of,
    pages_app,
    points_app,
    query_of,
    trips_app,
    trips_uploaded,
    uploaded,
)
from tests.app.walk import choose, drop, name_dataset, press_draw, protect, ready_to_pay, say_how_many


class TestMissing:
    def test_it_is_listed_in_the_order_of_the_cards_each_with_a_link(self):
        app = uploaded(unit=None, frame="Type the bounds", crs="")
        assert missing(app) == [
            "Say whom the release protects: nothing is preselected.",
            "Say which CRS the coordinates are in.",
            "Drag a box on the map, or type the bounds of the domain.",
        ]
        assert app.segmented_control(key="drawer").value == "Whom", "the first drawer in which something is missing"
        protect(app)
        assert app.segmented_control(key="drawer").value == "Where"
        good(app.button(key="missing 0").click().run())
        app.text_input(key="crs").set_value("EPSG:4326")
        app.selectbox(key="frame").set_value("World")
        account, guess = missing(good(app.run()))
        assert guess.startswith("Say about how many records there are")
        assert account.startswith("Say the most that may ever be spent on these data")
        assert app.segmented_control(key="drawer").value == "How good"
        app = say_how_many(name_dataset(app))
        assert (missing(app), app.button(key="draw").disabled) == ([], True)
        (known,) = [each for each in app.checkbox if each.label == "I know that most of this is noise"]
        assert not good(known.check().run()).button(key="draw").disabled

    def test_a_column_of_coordinates_that_has_no_usual_name_is_asked_for_at_once(self):
        app = uploaded(b"wo,lat\n-100,40\n", unit=None, frame="World")
        assert missing(app)[0] == "Choose the column of Longitude or easting, under Columns on the left."
        labelled(app.selectbox, "Longitude or easting").set_value("wo")
        assert missing(good(app.run())) == ["Say whom the release protects: nothing is preselected."]

    def test_a_crs_that_is_not_known_is_said_where_it_is_typed(self):
        app = uploaded(frame="World", crs="Lambert 93")
        assert "Say which CRS the coordinates are in." in missing(app)
        assert "The CRS is not known" in " ".join(each.value for each in app.error)
        assert app.text_input(key="crs").value == "Lambert 93"

    def test_trips_wait_for_files_and_for_whom(self):
        app = trips_uploaded(unit=None)
        assert missing(app)[0] == "Say whom the release protects: nothing is preselected."
        assert "Regions: 2 of level" in captions(app)


class TestFilesAsTheyCome:
    def test_a_file_with_a_header_alone_is_refused_at_once(self):
        for content in (b"lon,lat\r\n", "lon;lat\n\n".encode("utf-16")):
            app = uploaded(content, unit=None, crs="")
            assert missing(app)[0].startswith("The file has a line of column names and no other line")

    def test_columns_that_are_the_wrong_way_round_are_swapped_by_a_button(self):
        app = uploaded(SWAPPED)
        assert "are x and y swapped?" in " ".join(missing(app))
        (swap,) = [each for each in app.button if each.label == "Swap the columns of longitude and latitude"]
        good(swap.click().run())
        assert "No record lies" not in " ".join(missing(app))
        assert [labelled(app.selectbox, label).value for label in ("Longitude or easting", "Latitude or northing")] == ["lat", "lon"]


class TestExpectedError:
    def test_it_is_that_of_the_release_and_no_noise_falls_on_a_record(self, monkeypatch):
        monkeypatch.setattr(measure, "discrete_laplace", Mock(wraps=measure.discrete_laplace))
        app = fine(points_app(CURATE))
        assert not noised(measure.discrete_laplace)
        said = texts(app)
        error = format_decimal(expected_error(drawn(fine(press_draw(app))).release, 6), 2)
        assert f"**± {error} records** in a square of level 6" in said

    def test_a_guess_tells_where_noise_buries_the_counts(self):
        app = points_app(CURATE | {"sample": "la_residents", "order": "8", "settings": '{"height":8}', "epsilon": "0.01"})
        labelled(app.number_input, "How many records, about?").set_value(1000)
        app.select_slider(key="good level config").set_value(7)
        good(app.run())
        assert re.search(r":red.*About 0 useful squares of 16,384 at level 7 .* an average one, ε 0\.01", texts(app))
        assert app.button(key="draw").disabled, "mostly noise wants a tick"
        header, arrays = scene(app)
        assert header["panes"][0]["legend"]["title"] == "± in % of the guessed count"
        assert arrays["squares guess"].sum() == 1000
        labelled(app.number_input, "How many records, about?").set_value(1_000_000)
        (size,) = [each for each in good(app.run()).button if each.key == "suggest level config"]
        assert re.fullmatch(r"Suggest a size: level [1-6] .{0,2}[\d.]+ km.{0,2}", size.label.replace("\\", ""))
        table = dv.expected_errors(
            dv.Quadtree(height=8), dv.load_sample("la_residents", size=256).domain, dv.PureBudget("0.01"), records=1_000_000, spread=TOWNS
        ).by_level
        assert f"**± {format_decimal(table['error'][7], 2)} records** in a square of level 7" in texts(app), "one source of these numbers"

    def test_the_first_choice_of_a_mechanism_follows_the_typed_number_and_never_the_data(self):
        app = fine(points_app(CURATE | {"sample": "la_residents", "order": "8", "epsilon": "0.5"}))
        assert "is under 3,000" in texts(app)
        assert "N ε is about" not in texts(app)
        labelled(app.number_input, "How many records, about?").set_value(1000)
        assert "N ε is about 500, under 3,000: begin with a grid" in texts(good(app.run().run()))

    def test_squares_that_are_finer_than_the_partitions_are_said_to_be_parts_of_them(self):
        app = fine(points_app(CURATE))
        words = "The partitions of this mechanism end at level 4"
        assert words in captions(app)
        app.select_slider(key="good level config").set_value(4)
        assert words not in captions(good(app.run()))

    def test_what_an_adaptive_mechanism_makes_of_nothing_is_not_shown(self):
        app = points_app(CURATE | {"sample": "la_residents", "order": "8", "mechanism": "path_tree", "settings": "{}"})
        assert "once it is said how many there are" in captions(app)
        assert "± " not in texts(app)

    def test_the_epsilon_of_a_wanted_error_is_found_and_used(self):
        app = points_app(CURATE)
        labelled(app.number_input, "Wanted: at most ± records").set_value(5.0)
        good(app.run())
        good(app.button(key="good find config").click().run())
        (use,) = [each for each in app.button if each.key == "good use config"]
        fine(use.click().run())
        epsilon = float(app.session_state["config"].draft.run.epsilon)
        assert use.label == f"Use ε {epsilon:g}"
        assert app.button(key="draw").label == f"Run and pay ε {epsilon:g}"

    @pytest.mark.slow
    def test_an_earlier_release_says_how_many_records_there_are_and_how_they_lie(self):
        app = points_app(CURATE | {"sample": "la_residents", "order": "8", "mechanism": "path_tree", "settings": "{}"})
        labelled(app.selectbox, "They lie").set_value("as in an earlier release")
        good(app.run())
        assert "Choose the earlier release" in captions(app)
        points = dv.load_sample("la_residents", size=4096)
        app.session_state["good release config"] = dv.PathTree().release(points, dv.PureBudget(20), dv.Entropy.system())
        assert "of an average one (1)" in texts(good(app.run()))
        trips, budget = dv.load_sample("us_flights"), dv.ApproxBudget(1, "1e-6")
        app.session_state["good release config"] = dv.FlatGaussian().release(trips, budget, dv.Entropy.system())
        assert "This is a release of trips" in " ".join(each.value for each in app.run().error)

    def test_trips_may_be_guessed_over_some_of_the_pairs(self):
        app = fine(trips_app(CURATE_TRIPS))
        labelled(app.number_input, "How many flights, about?").set_value(100_000)
        everything = texts(good(app.run()))
        labelled(app.number_input, "On how many pairs of the finest level, about?").set_value(2)
        assert "of an average one (50,000)" in texts(good(app.run())) != everything

    def test_there_is_none_before_it_is_said_whom_a_release_protects(self):
        app = uploaded(unit=None, frame="World")
        assert "The expected error is shown here once whom and where are said." in captions(app)
        assert "± " not in texts(app)
        assert "squares error" not in scene(app)[1]

    def test_an_epsilon_above_the_cap_is_not_offered(self):
        app = name_dataset(uploaded(), cap=1)
        labelled(app.number_input, "Wanted: at most ± records").set_value(0.01)
        good(good(app.run()).button(key="good find config").click().run())
        assert "more than the cap leaves" in captions(app)
        assert "good use config" not in keys(app.button)

    def test_trips_have_levels_of_pairs(self):
        assert "in a pair of airport to airport" in texts(fine(trips_app(CURATE_TRIPS)))


def names_on(app):
    """What controls, their choices and headings are called, as a person reads it."""
    controls = [
        each
        for kind in (
            "segmented_control",
            "file_uploader",
            "radio",
            "selectbox",
            "text_input",
            "number_input",
            "button",
            "toggle",
            "download_button",
        )
        for each in app.get(kind)
    ]
    choices = [str(option) for each in controls for option in getattr(each, "options", ())]
    return [
        *(str(getattr(each, "label", "")) for each in controls),
        *choices,
        *map(as_read, (*app.header, *app.subheader)),
        *map(as_read, app.markdown),
    ]


def test_the_steps_on_the_first_page_of_help_name_what_is_on_the_page():
    steps = re.findall(r"^[1-5]\. (.*)", (Path(dv.__file__).parent / "docs" / "start.md").read_text("utf-8"), re.MULTILINE)
    named = [name for step in steps for name in re.findall(r"\*([^*]+)\*", step)]
    homes = b"lon,lat,resident\n-118.2,34.1,a\n-118.3,34.2,b\n"
    app = uploaded(homes, unit=None, frame="Type the bounds", crs="")
    seen = names_on(app)
    protect(app, "resident")
    labelled(app.text_input, "CRS of the coordinates").set_value("EPSG:4326")
    for side, value in zip(("West", "South", "East", "North"), (-118.7, 33.7, -117.8, 34.4), strict=True):
        labelled(app.number_input, side).set_value(value)
    app = name_dataset(fine(app.run()), cap=3)
    seen += names_on(app)
    seen += names_on(press_draw(app))
    assert len(steps) == 5
    assert [name for name in named if not any(name in each for each in seen)] == []


def dragged():
    from dpviz.app.pages.points.where import take_box  # noqa: PLC0415 - only this function's text runs

    take_box((4.61234567, 45.5, 5.0, 45.9))


class TestWhere:
    def test_a_box_on_the_map_is_the_domain(self):
        app = AppTest.from_function(dragged)
        domain = good(app.run()).session_state["config"].draft.domain
        assert domain == Box(west=4.6123, south=45.5, east=5.0, north=45.9, crs="EPSG:4326")
        change(app, "config", domain=replace(domain, crs="EPSG:32631"))
        domain = good(app.run()).session_state["config"].draft.domain
        assert 600_000 < domain.west < domain.east < 700_000

    def test_a_place_that_is_typed_gives_a_square_around_it(self):
        app = uploaded(unit=None, frame="Type the bounds", crs="")
        good(app.text_input(key="place").set_value("Lyon").run())
        (button,) = [each for each in app.button if each.label.startswith("Lyon (")]
        good(button.click().run())
        west, east = (app.number_input(key=side).value for side in ("west", "east"))
        assert west < 4.85 < east
        assert "Drag a box" not in " ".join(missing(app))
        good(app.text_input(key="place").set_value("Nowhere at all").run())
        assert "No town is called Nowhere at all." in captions(app)

    def test_candidates_show_where_typed_corners_would_lie_and_none_is_selected(self):
        app = uploaded(unit=None, frame="Type the bounds", crs="")
        for side, value in zip(("west", "south", "east", "north"), (635_000, 5_060_000, 655_000, 5_080_000), strict=True):
            app.number_input(key=side).set_value(value)
        good(app.text_input(key="place").set_value("Lyon").run())
        offered = [each for each in app.button if str(each.key).startswith("candidate")]
        assert [each.label.split(": near ")[0] for each in offered] == ["EPSG:32631", "EPSG:25831"]
        assert app.text_input(key="crs").value == ""
        assert {"EPSG:32631", "EPSG:25831"} <= {name for name, *_ in scene(app)[0]["places"]}
        good(offered[0].click().run())
        assert app.text_input(key="crs").value == "EPSG:32631"

    def test_with_a_box_candidates_say_which_numbers_lie_in_it(self):
        app = uploaded(unit=None, frame="Type the bounds", crs="")
        good(app.text_input(key="place").set_value("Lyon").run())
        good(next(each for each in app.button if each.label.startswith("Lyon (")).click().run())
        offered = [each.label.replace("\\", "") for each in app.button if str(each.key).startswith("candidate")]
        assert [label.partition(": ")[0] for label in offered][:3] == ["EPSG:4326", "EPSG:32631", "EPSG:25831"]
        assert re.match(r"EPSG:32631: 62\d,\d{3} to 66\d,\d{3}, 5,0\d\d,\d{3} to ", offered[1])
        assert app.text_input(key="crs").value == ""

    def test_where_a_box_would_lie(self):
        assert find_boxes((1e12, 1e12, 2e12, 2e12), None) == ()
        assert nearest_town(2.35, 48.86) == "Paris"


def choose_polygons(app, shapes=None, name="city.geojson", *, content=None):
    content = shapes.to_json().encode() if content is None else content
    return drop(app, content, name, "Public: where to count")


def bounds_of(app):
    return [app.number_input(key=side).value for side in ("west", "south", "east", "north")]


def wkt(shape):
    return f'wkt\n"{shape.wkt}"\n'.encode()


class TestPolygons:
    TOWN = shapely.Polygon([(-118.50006, 34.00004), (-118.1, 34.05), (-118.2, 34.30001)])
    BOX = (-118.5001, 34.0, -118.1, 34.3001)

    def open(self, **given):
        return uploaded(**{"frame": STATES, "crs": "EPSG:4326"} | given)

    def test_the_box_around_them_is_the_domain_and_their_outline_is_drawn(self):
        app = choose_polygons(self.open(), gpd.GeoSeries([self.TOWN], crs="EPSG:4326"))
        assert bounds_of(app) == list(self.BOX)
        assert (app.selectbox(key="frame").value, app.text_input(key="domain crs").value) == ("Type the bounds", "EPSG:4326")
        assert "Points are counted in the rectangular box around city.geojson" in captions(app)
        (ring,) = scene(app)[0]["outline"]
        assert sorted(map(tuple, ring[:-1])) == [(-118.50006, 34.00004), (-118.2, 34.30001), (-118.1, 34.05)]
        assert "squares error" not in scene(app)[1]
        assert drawn(fine(press_draw(app))).release.domain.bounds == self.BOX

    def test_the_file_says_the_crs_of_the_domain_and_another_one_that_is_typed_moves_the_box(self, tmp_path):
        gpd.GeoSeries([self.TOWN], crs="EPSG:4326").to_crs("EPSG:32611").to_file(tmp_path / "city.gpkg")
        app = choose_polygons(self.open(), name="city.gpkg", content=(tmp_path / "city.gpkg").read_bytes())
        assert app.text_input(key="domain crs").value == "EPSG:32611"
        metres = bounds_of(app)
        assert all(float(side).is_integer() and side > 300_000 for side in metres)
        good(app.text_input(key="domain crs").set_value("EPSG:4326").run())
        assert bounds_of(app) == pytest.approx(self.BOX, abs=2e-4)
        good(app.number_input(key="west").set_value(-119.0).run())
        assert "Take the box around the polygons" in [each.label for each in app.button]
        assert scene(app)[0]["outline"]
        good(app.button(key="outline again").click().run())
        assert bounds_of(app) == pytest.approx(self.BOX, abs=2e-4)

    def test_without_a_crs_it_is_asked_for_and_never_guessed(self):
        app = choose_polygons(self.open(frame="Type the bounds"), name="city.csv", content=wkt(self.TOWN))
        assert "does not state its CRS, which is never guessed: type it as CRS of the domain" in errors(app)
        assert bounds_of(app) == [None] * 4
        good(app.text_input(key="domain crs").set_value("EPSG:4326").run())
        assert bounds_of(app) == list(self.BOX)

    @pytest.mark.slow
    def test_a_switch_says_that_nobody_can_be_outside_them(self):
        app = choose_polygons(self.open(), gpd.GeoSeries([self.TOWN], crs="EPSG:4326"))
        assert scene(app)[0]["masked"] == []
        app = fine(app.toggle(key="only inside").set_value(True).run())
        assert "People can be in 4" in captions(app)
        assert scene(app)[0]["masked"]
        release = drawn(fine(press_draw(app))).release
        assert release.domain.share_open == pytest.approx(0.45, abs=0.02)
        assert 'study_area = "city.geojson"' in write_configuration(drawn(app).data, drawn(app).draft, None)
        app.select_slider(key="good level config").set_value(4)
        labelled(app.number_input, "How many records, about?").set_value(release.domain.count_open_blocks(4) * 1000)
        assert "of an average one (1,000)" in texts(good(app.run()))
        good(app.selectbox(key="mechanism").set_value("htf").run())
        assert "HTF cannot take a study area into account" in errors(app)
        app.session_state["outline uploaded"] = None
        assert missing(good(app.run())) == ["Choose the file of polygons again: nobody can be outside them."]

    def test_a_box_that_is_dragged_meanwhile_stays(self):
        app = AppTest.from_function(dragged)
        app.session_state["outline wanted"] = True
        assert "outline wanted" not in good(app.run()).session_state

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"wkt\n", "has no polygon"),
            (b"lon,lat\n1,2\n", "has no polygons: choose one"),
            (wkt(shapely.box(0, 0, 1, 1)) + b'"POLYGON ((0 0, 1 0, 1 1, 0 0))"\n' * 5000, "more than 5,000 polygons"),
            (b"wkt\nPOINT (1 2)\n", "no polygon in WKT"),
        ],
    )
    def test_what_is_no_outline_is_refused_and_nothing_is_declared(self, content, said):
        app = self.open(frame="Type the bounds")
        good(app.text_input(key="domain crs").set_value("EPSG:4326").run())
        app = choose_polygons(app, name="city.csv", content=content)
        assert said in errors(app)
        assert bounds_of(app) == [None] * 4
        assert scene(app)[0]["outline"] == []

    def test_the_file_of_the_private_data_is_refused_in_either_order(self):
        homes = b"wkt,lon,lat\n" + b'"POLYGON ((-118 34, -117 34, -117 35, -118 34))",-117.5,34.5\n' * 3
        app = choose_polygons(self.open(content=homes), name="city.csv", content=homes)
        assert "This is the file of the private data" in errors(app)
        assert app.selectbox(key="frame").value == STATES
        app = choose_polygons(uploaded(frame="Type the bounds", crs="EPSG:4326"), name="city.csv", content=homes)
        good(app.text_input(key="domain crs").set_value("EPSG:4326").run())
        assert bounds_of(app) == [-118.0, 34.0, -117.0, 35.0]
        choose(app, homes)
        assert "This is the file of the private data" in errors(app)
        assert bounds_of(app) == [None] * 4
        assert scene(app)[0]["outline"] == []

    def test_a_private_file_that_is_named_by_its_path_is_refused_as_well(self, tmp_path):
        homes = b"wkt,lon,lat\n" + b'"POLYGON ((-118 34, -117 34, -117 35, -118 34))",-117.5,34.5\n' * 3
        (tmp_path / "homes.csv").write_bytes(homes)
        files = Files(data=DataKeys(crs="EPSG:4326"))
        parts = {"source": "path", "path": str(tmp_path / "homes.csv"), "by_path": files, "domain": box_of(STATES)}
        app = pages_app("points", {}, {"config": changed_page(page_of_link(POINTS, CURATE), **parts)})
        app = choose_polygons(app, name="city.csv", content=homes)
        assert "This is the file of the private data" in errors(app)
        app = choose_polygons(app, gpd.GeoSeries([self.TOWN], crs="EPSG:4326"))
        assert bounds_of(app) == list(self.BOX)

    def test_after_a_reload_the_bounds_are_there_and_the_refusal_as_well(self):
        app = choose_polygons(self.open(), gpd.GeoSeries([self.TOWN], crs="EPSG:4326"), "secret city.geojson")
        again = fine(pages_app("points", query_of(app)))
        assert bounds_of(again) == list(self.BOX)
        assert "The bounds are those around secret city.geojson" in captions(again)
        again.session_state["uploaded"] = ("homes.geojson", gpd.GeoSeries([self.TOWN], crs="EPSG:4326").to_json().encode())
        again = good(again.run())
        (centroids,) = [each for each in again.toggle if each.label == "Polygons by their centroid"]
        good(centroids.set_value(True).run())
        assert bounds_of(again) == [None] * 4

    def test_names_of_files_are_escaped(self):
        app = choose_polygons(self.open(), gpd.GeoSeries([self.TOWN], crs="EPSG:4326"), "a*b*.geojson")
        assert r"around a\*b\*\.geojson" in " ".join(each.value for each in app.caption)


class TestRegionsMap:
    def pane(self, app):
        (pane,) = scene(app)[0]["panes"]
        return pane

    def test_it_shows_the_level_of_the_third_card_with_its_expected_error_and_keeps_the_view(self):
        app = fine(trips_app(CURATE_TRIPS))
        first, bounds = self.pane(app), scene(app)[0]["bounds"]
        said = next(each.value for each in app.markdown if "in a pair of airport to airport" in each.value)
        error = said.split("**")[1]
        assert first["title"] == f"Expected error: {error} in each pair of airport to airport"
        assert first["arcs"] is None
        good(app.select_slider(key="good level trips config").set_value(2).run())
        second = self.pane(app)
        assert second["title"].endswith("in each pair of state to state")
        assert len(scene(app)[0]["areas"][second["areas"][0]]["texts"]) == 51
        assert scene(app)[0]["bounds"] == bounds

    def test_it_needs_no_trip_and_shows_none(self, monkeypatch):
        monkeypatch.setattr(measure, "discrete_gaussian", Mock(wraps=measure.discrete_gaussian))
        quiet = scenes(fine(trips_uploaded(trips=("trips.csv", b"origin,dest,count\nA1,A2,1\n"))))
        assert quiet == scenes(fine(trips_uploaded(trips=("trips.csv", b"origin,dest,count\nA1,A2,900\nB1,B1,7\n"))))
        assert not noised(measure.discrete_gaussian)

    def test_regions_are_drawn_before_the_trips_are_there(self):
        app = pages_app(
            "trips", {}, {"trips config": page_with("trips", mode="Curate", source="upload"), "regions uploaded": ("homes.csv", REGIONS)}
        )
        assert self.pane(app)["title"] == "The declared regions, id to id"
        assert scene(app)[0]["areas"]["regions 0"]["texts"] == ["Aberg", "Bdorf", "Cburg"]
        assert "Choose a file of trips between them" in missing(app)[0]

    def test_names_from_files_are_escaped(self):
        named = b"id,lat,lon,name\nA1,50,8,<b>{x}\nA2,51,9,@@=1\nB1,52,9,C\n"
        app = trips_uploaded(regions=("homes.csv", named))
        shown = " ".join(scene(app)[0]["areas"]["regions 0"]["texts"])
        assert not [bad for bad in ("<b", "{x", "@@") if bad in shown]

    def test_without_outlines_or_points_a_sentence_says_so(self):
        app = trips_uploaded(regions=("homes.csv", b"town\nA1\nA2\nB1\n"), unit=None)
        (levels,) = [each for each in app.multiselect if each.label.startswith("Columns of ids")]
        good(levels.set_value(["town"]).run())
        assert "These regions have neither outlines nor coordinates: there is no map of them." in captions(app)
        assert scenes(app) == []

    def test_without_regions_it_says_when_it_comes(self):
        app = pages_app("trips", {}, {"trips config": page_with("trips", mode="Curate", source="upload")})
        assert "The map of the regions is shown here once their file is chosen." in captions(app)

    def test_a_person_of_several_trips_is_offered_neighbours_that_fit_and_none_is_chosen(self):
        app = protect(trips_uploaded(unit=None), "rider", 3)
        assert "switch on “Everybody has exactly that many”, in Whom or Data, or choose add_remove under “Neighbours”, in Method" in errors(
            app
        )
        assert app.session_state["trips config"].draft.build().neighbours == "bounded"
        good(app.button(key="take add_remove").click().run())
        assert app.session_state["trips config"].draft.build().neighbours == "add_remove"
        assert errors(app) == ""
        assert "Expected error" in self.pane(app)["title"]

    def test_columns_of_ends_and_counts_are_not_offered_as_persons(self):
        app = trips_uploaded(unit=None)
        good(labelled(app.radio, "Whom to protect").set_value("person").run())
        assert labelled(app.selectbox, "Person").options == ["rider"]
        assert labelled(app.selectbox, "Person").value == "rider"


class TestBundle:
    def test_it_is_made_once_and_published_when_it_is_downloaded(self, tmp_path):
        app = fine(press_draw(name_dataset(uploaded(PLACES))))
        paid = payment(app)
        assert paid.kept is not None
        assert "Nothing is published yet." in captions(app)
        assert [entry.id for _, entry in kept_draws(Ledger())] == [1]
        maker = Maker(paid, TYPED)
        bundle = maker.make()
        assert maker.make() is bundle
        assert not entries()[0].published
        (tmp_path / "a.zip").write_bytes(bundle.archive)
        assert (dv.read_release(tmp_path / "a.zip").noisy == paid.release.noisy).all()
        with zipfile.ZipFile(io.BytesIO(bundle.archive)) as archive:
            assert any(name.endswith("report.html") for name in archive.namelist())
        note_publication(paid, bundle.manifest["identity"]["release_id"], Ledger())
        assert entries()[0].published == bundle.manifest["identity"]["release_id"]
        assert kept_draws(Ledger()) == []

    def test_texts_that_are_missing_are_named_and_the_name_is_proposed(self):
        app = fine(press_draw(name_dataset(uploaded(PLACES))))
        assert "Still missing: curator, description." in captions(app)
        assert app.text_input(key="publication name").value == "Homes 1"
        with pytest.raises(DpvizError, match="Still missing: curator"):
            check_texts({**TYPED, "curator": " "})

    def test_discarding_needs_two_presses_and_spends_nothing_back(self):
        app = fine(press_draw(points_app(CURATE)))
        fine(app.button(key="discard 1 first").click().run())
        assert kept_draws(Ledger())
        fine(app.button(key="discard 1 second").click().run())
        assert kept_draws(Ledger()) == []
        assert drawn(app) is None
        assert len(entries()) == 1

    def test_after_a_reload_it_is_found_by_the_name_of_its_dataset_alone(self):
        first = fine(press_draw(points_app(CURATE)))
        app = good(trips_app(CURATE_TRIPS))
        name = Ledger().accounts()[0].name
        assert name not in " ".join([*captions(app), *(str(frame.value) for frame in app.dataframe)])
        fine(app.text_input(key="earlier dataset").set_value("Another dataset").run())
        assert "Paid for, and kept on this computer" not in captions(app)
        fine(app.text_input(key="earlier dataset").set_value(name).run())
        assert "Paid for, and kept on this computer" in captions(app)
        assert (app.session_state["recovered draws"][1].release.noisy == drawn(first).release.noisy).all()
        (table,) = [frame.value for frame in app.dataframe if "published" in frame.value.columns]
        assert table["published"].tolist() == ["no, kept on this computer"]

    def test_a_draw_whose_process_was_killed_while_it_was_kept_is_named_and_its_remains_go(self):
        fine(press_draw(points_app(CURATE)))
        folder = next(Path(f"{Ledger().path}.paid").iterdir())
        folder.rename(folder.with_name(f".{folder.name}.{'0' * 16}.partial"))
        app = good(trips_app(CURATE_TRIPS))
        for _ in range(2):  # also once the remains are gone
            fine(app.text_input(key="earlier dataset").set_value(Ledger().accounts()[0].name).run())
            assert "was paid for and interrupted while it was kept: nothing can be recovered" in captions(app)
            (table,) = [frame.value for frame in app.dataframe if "published" in frame.value.columns]
            assert table["published"].tolist() == ["no, interrupted: nothing can be recovered"]
        assert list(folder.parent.iterdir()) == []

    def test_paying_twice_needs_a_second_choice(self):
        app = fine(press_draw(points_app(CURATE)))
        assert app.button(key="draw").disabled
        assert "one release counts groups by category" in captions(app), "another group is no second payment"
        fine(ready_to_pay(app).button(key="draw").click().run())
        assert len(entries()) == 2
        assert app.button(key="draw").disabled, "a third one is asked for again"

    def test_after_a_reload_a_second_payment_is_still_a_second_choice(self):
        fine(press_draw(points_app(CURATE)))
        app = good(points_app(CURATE))
        assert app.button(key="draw").disabled
        assert "1 release of these data is paid for and waits on this computer" in captions(app)
        assert "Paid for, and kept on this computer" in captions(app)

    def test_after_a_reload_it_is_published_on_the_same_page_once_its_data_are_there_again(self, tmp_path):
        first = fine(press_draw(name_dataset(uploaded(PLACES))))
        app = uploaded(PLACES)
        assert "Paid for, and kept on this computer" in captions(app)
        assert len(scenes(app)) == 2, "the declared map, and the one of what waits"
        assert app.button(key="draw").disabled, "a second payment is a second choice"
        recovered = app.session_state["recovered draws"][1]
        assert (recovered.release.noisy == drawn(first).release.noisy).all()
        bundle = Maker(recovered, TYPED).make()
        note_publication(recovered, bundle.manifest["identity"]["release_id"], Ledger())
        app.session_state["bundles"] = {1: bundle}
        assert "Published: " in " ".join(each.value for each in good(app.run()).success)
        assert "Paid for, and kept" not in captions(good(uploaded(PLACES)))

    def test_other_data_show_nothing_that_waits(self):
        fine(press_draw(name_dataset(uploaded(PLACES))))
        app = uploaded(PLACES + b"-100,40,new\n")
        assert "Paid for, and kept on this computer" not in captions(app)

    def test_of_two_mechanisms_the_last_one_can_be_published_here(self):
        app = fine(press_draw(trips_app(CURATE_TRIPS | {"beside": "flat_gaussian"})))
        assert len(trips_drawn(app).runs) == 2
        assert "Paid for, and kept on this computer" in captions(app)
        assert len(kept_draws(Ledger())) == 2
        assert app.selectbox(key="kept draw").options[0].startswith("Draw 2, ")
