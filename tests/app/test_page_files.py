"""Files on the Points page: uploads, paths, and everything that is refused."""

import pytest

from tests.app.walk import (
    CURATE,
    PLACES,
    SMALL,
    SWAPPED,
    by_record,
    captions,
    drawn,
    drawn_layer,
    entries,
    errors,
    fine,
    good,
    infos,
    labelled,
    name_dataset,
    points_app,
    press_draw,
    protect,
)


class TestFiles:
    def by_path(self, path, link=CURATE):
        app = points_app(link)
        app.segmented_control(key="source").set_value("path").run()
        return good(app.text_input(key="path").set_value(str(path)).run())

    def upload(self, content, name="homes.csv", link=CURATE):
        app = points_app(link)
        good(app.segmented_control(key="source").set_value("upload").run())
        return good(app.file_uploader(key="file").set_value((name, content, "text/csv")).run())

    def declare(self, app, frame="Contiguous United States", crs="EPSG:4326"):
        app.selectbox(key="frame").set_value(frame)
        app.text_input(key="crs").set_value(crs)
        return by_record(good(app.run()))

    def public(self, app):
        return next(box for box in app.checkbox if box.label == "These data are already public")

    def test_nothing_is_there_until_a_file_is_chosen(self):
        app = points_app()
        for source in ("upload", "path"):
            fine(app.segmented_control(key="source").set_value(source).run())
            assert app.info
            assert app.button(key="draw").disabled

    def test_an_upload_asks_for_crs_and_domain_and_then_draws(self):
        app = self.upload(PLACES)
        assert "which CRS" in infos(app)
        assert app.button(key="draw").disabled
        fine(self.declare(app))
        fine(press_draw(app))
        release = drawn(app).release
        assert release.domain.bounds == (-125.0, 24.0, -66.0, 50.0)
        assert not release.simulation
        assert drawn(app).data.points.count.sum() == 3

    def test_teach_asks_for_the_public_declaration_first(self):
        app = self.declare(self.upload(PLACES, link=SMALL))
        assert "Confirm that the data are public" in infos(app)
        assert not app.get("deck_gl_json_chart")
        assert app.button(key="draw").disabled
        fine(self.public(app).check().run())
        assert drawn_layer(app)["id"] == "truth"
        fine(press_draw(app))

    def test_a_declaration_holds_for_one_file_only(self):
        app = self.declare(self.upload(PLACES, link=SMALL))
        self.public(app).check().run()
        app.file_uploader(key="file").set_value(("others.csv", PLACES + b"-90,40,more\n", "text/csv")).run()
        assert "Confirm that the data are public" in infos(good(app))
        assert not app.get("deck_gl_json_chart")

    def test_a_path_works_and_stays_off_the_address(self, tmp_path):
        file = tmp_path / "homes.csv"
        file.write_bytes(PLACES)
        app = fine(self.declare(self.by_path(file)))
        fine(press_draw(app))
        assert "homes" not in str(app.query_params)
        assert "path" not in app.query_params

    def test_a_changed_file_is_read_again(self, tmp_path):
        file = tmp_path / "homes.csv"
        file.write_bytes(PLACES)
        app = press_draw(self.declare(self.by_path(file)))
        file.write_bytes(PLACES + b"-118.2,34.1,more\n")
        press_draw(fine(app.run()))
        assert drawn(app).data.points.count.sum() == 4

    def test_columns_can_be_overridden(self):
        app = self.upload(b"a,b\n34.1,-118.2\n25.5,-80.25\n")
        self.declare(app)
        labelled(app.selectbox, "Longitude or easting").set_value("b")
        labelled(app.selectbox, "Latitude or northing").set_value("a")
        fine(app.run())
        fine(press_draw(app))
        assert drawn(app).data.points.count.sum() == 2

    def test_a_person_column_protects_people(self):
        app = self.upload(b"lon,lat,who\n-118.2,34.1,a\n-118.2,34.1,a\n-80.25,25.5,b\n")
        protect(app, "who")
        fine(self.declare(app))
        press_draw(app)
        assert drawn(app).release.receipt.unit == "person"
        assert drawn(app).data.points.count.sum() == 2
        assert drawn(app).data.unit == "records"

    def test_a_person_column_is_proposed_and_not_applied(self):
        app = self.declare(self.upload(b"lon,lat,person_id\n-118.2,34.1,a\n-80.25,25.5,b\n"))
        assert "There is a column *person_id*" in captions(app)
        press_draw(app)
        assert drawn(app).release.receipt.unit == "record"

    def test_the_columns_of_one_file_do_not_stick_to_the_next(self):
        app = self.upload(b"a,b\n34.1,-118.2\n25.5,-80.25\n")
        app.file_uploader(key="file").set_value(("homes.csv", PLACES, "text/csv")).run()
        assert labelled(good(app).selectbox, "Longitude or easting").value == "lon"

    def test_a_release_of_another_file_is_said_to_be_of_another(self):
        app = press_draw(self.declare(self.upload(PLACES)))
        assert "have changed since draw" not in captions(app)
        app.file_uploader(key="file").set_value(("others.csv", PLACES + b"-90,40,more\n", "text/csv")).run()
        assert "have changed since draw" in captions(fine(app))
        assert "have changed since draw" not in captions(fine(press_draw(app)))

    def test_the_truth_of_one_file_is_not_shown_for_the_next(self):
        app = press_draw(self.declare(self.upload(PLACES)))
        fine(labelled(app.toggle, "Show curator-only truth").set_value(True).run())
        assert "t" in drawn_layer(app)["data"][0]
        app.file_uploader(key="file").set_value(("others.csv", PLACES + b"-90,40,more\n", "text/csv")).run()
        fine(press_draw(app))
        assert not labelled(app.toggle, "Show curator-only truth").value
        assert "t" not in drawn_layer(app)["data"][0]

    def test_a_domain_may_have_a_crs_of_its_own(self):
        app = self.upload(PLACES)
        app.text_input(key="crs").set_value("EPSG:4326")
        app.text_input(key="domain crs").set_value("EPSG:5070")
        for side, value in {"west": -3e6, "south": 0.0, "east": 3e6, "north": 4e6}.items():
            app.number_input(key=side).set_value(value)
        fine(press_draw(fine(app.run())))
        assert drawn(app).release.domain.crs == "EPSG:5070"
        assert drawn(app).data.points.count.sum() == 3

    def test_a_plane_without_a_map_needs_no_crs(self):
        app = self.upload(b"x,y\n1,2\n3,4\n")
        app.text_input(key="domain crs").set_value("none")
        for side, value in {"west": 0.0, "south": 0.0, "east": 8.0, "north": 8.0}.items():
            app.number_input(key=side).set_value(value)
        fine(press_draw(fine(app.run())))
        assert drawn(app).release.domain.crs is None

    def test_files_of_one_name_and_other_content_have_other_sums(self):
        app = press_draw(self.declare(self.upload(PLACES)))
        app.file_uploader(key="file").set_value(("homes.csv", PLACES + b"-90,40,more\n", "text/csv")).run()
        assert "ε 0. The next draw makes it ε 0.5" in captions(fine(name_dataset(app)))
        app.file_uploader(key="file").set_value(("other name.csv", PLACES, "text/csv")).run()
        assert "ε 0.5. The next draw makes it ε 1" in captions(fine(app))

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            (None, b"", "cannot be read: does it exist"),
            ("homes.txt", PLACES, "ending"),
            ("homes.csv", b"", "empty"),
            ("homes.csv", b"lon,lat,note\n", ""),
            ("homes.csv", SWAPPED, "swapped"),
            ("homes.csv", b"lon,lat\nsecret,1\nhidden,2\n", "lon"),
            ("homes.csv", b"lon,lat\n1,nan\n2,3\n", "lat"),
            ("homes.parquet", b"PAR1 secret", ""),
            ("homes.zip", b"PK secret", ""),
        ],
    )
    def test_bad_files_are_refused_without_a_traceback_or_a_cell(self, tmp_path, name, content, words):
        file = tmp_path / (name or "nowhere.csv")
        if name:
            file.write_bytes(content)
        app = self.by_path(file)
        if not app.error:
            self.declare(app)
        told = errors(app)
        assert words.lower() in told.lower()
        if content != b"lon,lat,note\n":
            assert told
            assert app.button(key="draw").disabled
        assert not any(cell in told for cell in ("secret", "hidden", "118.2", str(tmp_path)))

    @pytest.mark.parametrize("crs", ["EPSG:999999", "nonsense", "EPSG:4326; DROP"])
    def test_an_unknown_crs_is_refused(self, crs):
        app = self.declare(self.upload(PLACES), crs=crs)
        assert "CRS is not known" in app.error[0].value
        assert app.button(key="draw").disabled

    @pytest.mark.parametrize("bounds", [(-118.0, 34.0, -118.0, 35.0), (-118.0, 35.0, -119.0, 34.0), (-1000.0, 0.0, 1000.0, 1.0)])
    def test_a_domain_of_no_area_is_refused(self, bounds):
        app = self.declare(self.upload(PLACES), frame="Type the bounds")
        for side, value in zip(("west", "south", "east", "north"), bounds, strict=True):
            app.number_input(key=side).set_value(value)
        assert len(good(app.run()).error) == 1
        assert app.button(key="draw").disabled

    @pytest.mark.parametrize("drop", [False, True])
    @pytest.mark.parametrize(
        ("content", "words"),
        [(b"lon,lat\n", "There is no record"), (b"x,y\n385000,3768000\n391000,3771000\n", "are x and y swapped")],
    )
    def test_what_would_be_a_release_of_nothing_is_stopped_before_a_draw(self, tmp_path, content, words, drop):
        (tmp_path / "a.csv").write_bytes(content)
        for app in (self.upload(content), self.by_path(tmp_path / "a.csv")):
            app.toggle(key="drop").set_value(drop)
            assert words in errors(good(self.declare(app)))
            assert app.button(key="draw").disabled
        assert entries() == []

    def test_bad_rows_can_be_left_out(self):
        app = self.declare(self.upload(PLACES + b"far,away,secret\n"))
        assert app.error
        fine(app.toggle(key="drop").set_value(True).run())
        fine(press_draw(app))
        assert drawn(app).data.points.count.sum() == 3


def test_names_in_a_file_are_never_read_as_markdown(tmp_path):
    """A column's name could be a picture of elsewhere, which the browser would ask for."""
    hostile = "![a](http://127.0.0.1:9/zq.png) <b>:red[x]"
    app = TestFiles().upload(f"{hostile},lat\nfar,50\n1,51\n".encode())
    labelled(app.selectbox, "Longitude or easting").set_value(hostile).run()
    TestFiles().declare(app)
    (told,) = [each.value for each in app.error]
    assert "![a](" not in told
    assert "\\!\\[a\\]" in told
    assert "\\<b\\>" in told
