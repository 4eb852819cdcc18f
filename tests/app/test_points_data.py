"""Files on the Points page: uploads, paths, what the page must know of them, and everything that is refused."""

import pytest

from tests.app.seen import captions, drawn, entries, errors, fine, good, infos, keys, labelled, missing, released_map
from tests.app.start import CURATE, PLACES, SMALL, STATES, SWAPPED, points_app, uploaded
from tests.app.walk import by_record, choose, press_draw, protect, public, truth_switch

OTHER = PLACES + b"-90,40,more\n"
PAIRS = b"a,b\n34.1,-118.2\n25.5,-80.25\n"


def by_path(path, link=CURATE):
    app = points_app(link)
    app.segmented_control(key="source").set_value("path").run()
    return good(app.text_input(key="path").set_value(str(path)).run())


def declare(app, frame=STATES, crs="EPSG:4326"):
    app.selectbox(key="frame").set_value(frame)
    app.text_input(key="crs").set_value(crs)
    return by_record(good(app.run()))


def bounded(app, *bounds):
    """Type the bounds of the domain: west, south, east, north."""
    for side, value in zip(("west", "south", "east", "north"), bounds, strict=True):
        app.number_input(key=side).set_value(value)
    return good(app.run())


class TestUploads:
    def test_without_a_file_nothing_can_be_drawn_and_a_file_needs_a_crs_and_a_domain(self):
        app = points_app(CURATE)
        for source in ("path", "upload"):
            fine(app.segmented_control(key="source").set_value(source).run())
            assert "Choose a file of points." in f"{missing(app)} {infos(app)}"
            assert app.button(key="draw").disabled
        choose(app, PLACES)
        assert "Say which CRS the coordinates are in." in missing(app)
        assert app.button(key="draw").disabled
        fine(press_draw(fine(declare(app))))
        assert drawn(app).release.domain.bounds == (-125.0, 24.0, -66.0, 50.0)
        assert drawn(app).data.counts.count.sum() == 3

    def test_teach_needs_the_declaration_of_public_data_which_holds_for_one_file_only(self):
        app = uploaded(link=SMALL)
        assert "Confirm that the data are public" in infos(app)
        assert drawn(app) is None
        assert "again" not in keys(app.button)
        fine(public(app).check().run())
        assert drawn(app).data.counts.count.sum() == 3
        choose(app, OTHER, "others.csv")
        assert "Confirm that the data are public" in infos(app)
        assert "again" not in keys(app.button)

    def test_columns_can_be_overridden_and_do_not_stick_to_the_next_file(self):
        app = uploaded(PAIRS)
        labelled(app.selectbox, "Longitude or easting").set_value("b")
        labelled(app.selectbox, "Latitude or northing").set_value("a")
        fine(press_draw(fine(app.run())))
        assert drawn(app).data.counts.count.sum() == 2
        assert labelled(choose(app, PLACES).selectbox, "Longitude or easting").value == "lon"

    @pytest.mark.slow
    def test_a_person_column_is_proposed_and_not_applied_until_it_is_chosen(self):
        app = uploaded(b"lon,lat,person_id\n-118.2,34.1,a\n-118.2,34.1,a\n-80.25,25.5,b\n")
        assert "There is a column *person_id*" in captions(app)
        assert drawn(press_draw(app)).release.receipt.unit == "record"
        fine(press_draw(protect(app := uploaded(PLACES), "note")))
        assert (drawn(app).release.receipt.unit, drawn(app).data.unit) == ("person", "records")

    @pytest.mark.slow
    def test_the_release_and_the_truth_of_one_file_are_not_shown_for_the_next(self):
        app = press_draw(uploaded())
        assert "have changed since draw" not in captions(app)
        fine(truth_switch(app).set_value(True).run())
        assert "released true" in released_map(app)[1]
        choose(app, OTHER, "others.csv")
        assert "have changed since draw" in captions(fine(app))
        assert "have changed since draw" not in captions(fine(press_draw(app)))
        assert not truth_switch(app).value
        assert "released true" not in released_map(app)[1]

    @pytest.mark.slow
    def test_a_domain_may_have_a_crs_of_its_own_or_be_a_plane_that_needs_none(self):
        app = uploaded(frame="Type the bounds")
        app.text_input(key="domain crs").set_value("EPSG:5070")
        fine(press_draw(fine(bounded(app, -3e6, 0.0, 3e6, 4e6))))
        assert drawn(app).release.domain.crs == "EPSG:5070"
        assert drawn(app).data.counts.count.sum() == 3
        app = uploaded(b"x,y\n1,2\n3,4\n", frame="Type the bounds", crs="")
        app.text_input(key="domain crs").set_value("none")
        fine(press_draw(fine(bounded(app, 0.0, 0.0, 8.0, 8.0))))
        assert drawn(app).release.domain.crs is None


class TestPaths:
    def test_a_path_stays_off_the_address_and_a_changed_file_is_read_again(self, tmp_path):
        file = tmp_path / "homes.csv"
        file.write_bytes(PLACES)
        app = fine(press_draw(fine(declare(by_path(file)))))
        assert "homes" not in str(app.query_params)
        assert "path" not in app.query_params
        file.write_bytes(PLACES + b"-118.2,34.1,more\n")
        press_draw(fine(app.run()))
        assert drawn(app).data.counts.count.sum() == 4

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            (None, b"", "cannot be read: does it exist"),
            ("homes.kml", b"<kml/>", "ogr2ogr -f GeoJSON new.geojson FILE.kml makes a GeoJSON of it"),
            ("homes.csv", SWAPPED, "swapped"),
            ("homes.csv", b"lon,lat\nsecret,1\nhidden,2\n", "lon"),
            ("homes.parquet", b"PAR1 secret", ""),
        ],
    )
    def test_bad_files_are_refused_without_a_traceback_or_a_cell(self, tmp_path, name, content, words):
        file = tmp_path / (name or "nowhere.csv")
        if name:
            file.write_bytes(content)
        app = by_path(file)
        if not app.error:
            declare(app)
        assert errors(app)
        assert words.lower() in errors(app).lower()
        assert app.button(key="draw").disabled
        assert not any(cell in errors(app) for cell in ("secret", "hidden", "118.2", str(tmp_path)))


class TestRefusals:
    def test_an_unknown_crs_or_a_domain_of_no_area_is_refused(self):
        app = uploaded(frame="Type the bounds")
        for bounds in ((-118.0, 34.0, -118.0, 35.0), (-118.0, 35.0, -119.0, 34.0), (-1000.0, 0.0, 1000.0, 1.0)):
            assert len(bounded(app, *bounds).error) == 1
            assert app.button(key="draw").disabled
        app.selectbox(key="frame").set_value(STATES)
        for crs in ("EPSG:999999", "nonsense", "EPSG:4326; DROP"):
            assert "CRS is not known" in errors(good(app.text_input(key="crs").set_value(crs).run()))
            assert app.button(key="draw").disabled

    def test_what_would_be_a_release_of_nothing_is_stopped_before_a_draw(self, tmp_path):
        content = b"x,y\n385000,3768000\n391000,3771000\n"
        (tmp_path / "a.csv").write_bytes(content)
        for app in (uploaded(content), declare(by_path(tmp_path / "a.csv"))):
            for drop in (False, True):
                app.toggle(key="drop").set_value(drop)
                assert ("are x and y swapped" if drop else "metres of a projected CRS") in errors(good(app.run()))
                assert app.button(key="draw").disabled
        assert entries() == []

    def test_bad_rows_are_refused_or_left_out(self):
        app = uploaded(PLACES + b"far,away,secret\n")
        assert app.error
        fine(press_draw(fine(app.toggle(key="drop").set_value(True).run())))
        assert drawn(app).data.counts.count.sum() == 3

    def test_a_usual_table_may_declare_marks_and_a_text_that_is_not_in_utf8_needs_its_encoding(self):
        app = fine(uploaded(PLACES))
        labelled(app.selectbox, "Thousands mark of counts").set_value(",")
        fine(app.run())
        assert "Confirm how the file is written." in missing(app)
        app = uploaded("lon,lat,ort\n-118.2,34.1,Łódź\n".encode("cp1250"))
        assert "The file is not in UTF-8" in captions(app)
        assert "Choose the file's encoding, or save it as UTF-8." in missing(app)
        labelled(app.selectbox, "Encoding").set_value("windows-1250")
        assert "Confirm how the file is written." in missing(fine(app.run()))
        labelled(app.checkbox, "Read it so: commas between cells, decimal points, Windows-1250 (Central European)").check()
        assert "Confirm how the file is written." not in missing(fine(app.run()))
