"""Files by path on the Points and Trips pages: globs, folders, engines, counts in the background, and what is refused."""

import tomllib
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import geopandas
import pandas as pd
import pytest
import shapely

from dpviz.app.cards import path_files as path_controls
from dpviz.app.jobs.counting import make_count_job
from dpviz.app.jobs.job import STOPPING
from dpviz.app.jobs.keeper import Keeper
from dpviz.app.jobs.results import Results
from dpviz.data.counting.job import cancellation
from dpviz.errors import DpvizError, InputError
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import from_tables
from tests.app.browse import until
from tests.app.seen import captions, drawn, errors, fine, good, infos, keys, labelled, missing, trips_drawn, warnings
from tests.app.start import CURATE, trips_uploaded
from tests.app.test_points_data import by_path as typed_path
from tests.app.test_points_data import declare
from tests.app.test_saved_config import released, saved
from tests.app.walk import by_record, choose, press_draw, protect
from tests.often import often
from tests.publishing.configs import data_of

HOMES = pd.DataFrame({"lon": [-118.2, -80.25, -100.125, -100.125], "lat": [34.1, 25.5, 40.5, 40.5], "who": list("abcc")})
FAR = pd.DataFrame({"lon": [10.0, -90.0], "lat": [50.0, None], "who": list("de")})


@pytest.fixture
def homes(tmp_path):
    """A folder of two Parquet files."""
    folder = tmp_path / "homes"
    folder.mkdir()
    HOMES.to_parquet(folder / "1.parquet", index=False)
    FAR.to_parquet(folder / "2.parquet", index=False)
    return folder


def by_path(path, link=CURATE):
    """The Points page with a path, bounds and CRS, where bad rows are left out."""
    app = typed_path(path, link)
    if not app.error:
        app.toggle(key="drop").set_value(True)
        protect(declare(app))
    return app


def tables_of(app, key="config"):
    """The saved configuration, read back."""
    return from_tables(tomllib.loads(saved(app, key)))


@pytest.mark.parametrize("pattern", often(["*.parquet", ""], 1))
@pytest.mark.slow
def test_a_glob_and_a_folder_are_counted_and_saved(homes, pattern, tmp_path, capsys):
    app = fine(by_path(homes / pattern))
    assert "2 files, " in captions(app)
    assert "Automatic chose numpy: the files are not larger than an eighth of the memory" in captions(app)
    assert "left out 2" not in captions(app), "the numbers are private"
    fine(labelled(app.toggle, "Show what was left out").set_value(True).run())
    assert "Curator only: left out 2: 1 outside the domain, 1 unreadable." in captions(app)
    protect(app, "who")
    fine(labelled(app.toggle, "Each person once per cell").set_value(True).run())
    assert "left out 3: 1 outside the domain, 1 unreadable, 1 over the bound." in captions(app)
    fine(press_draw(app))
    assert drawn(app).data.counts.count.sum() == 3
    config = tables_of(app)
    assert (config.data.points, config.data.distinct, config.data.engine) == (str(homes / pattern).rstrip("/"), True, "auto")
    release, said = released(saved(app), tmp_path, capsys)
    assert (said["engine"], release.receipt.unit) == ("numpy", "person")
    assert [account.draws for account in Ledger().accounts()] == [2]


def test_copies_by_name_are_refused_and_equal_content_locks_the_button_until_a_tick(homes):
    (homes / "z.parquet").write_bytes((homes / "1.parquet").read_bytes())
    app = fine(by_path(homes))
    assert "'1.parquet' and 'z.parquet' have the same content" in warnings(app)
    assert any(each.startswith("Some files have the same content") for each in missing(app))
    assert app.button(key="draw").disabled
    (homes / "z.parquet").rename(homes / "1 - Copy.parquet")
    app = by_path(homes)
    assert "tick “Count copies, too”" in errors(app)
    fine(labelled(app.checkbox, "Count copies, too").check().run())
    app.toggle(key="drop").set_value(True)
    protect(declare(app))
    fine(press_draw(app))
    assert drawn(app).data.counts.count.sum() == 8
    assert tables_of(app).data.copies


def test_an_engine_can_be_chosen_and_is_saved(homes):
    app = by_path(homes)
    fine(app.selectbox(key="engine").set_value("duckdb").run())
    assert "Engine duckdb, as chosen. It reads the files in blocks" in captions(app)
    assert drawn(fine(press_draw(app))).data.counts.count.sum() == 4
    config = tables_of(app)
    assert config.data.engine == "duckdb"
    again = data_of(config)
    assert again.engine == "duckdb"
    assert again.fingerprints == drawn(app).data.fingerprints


def test_a_path_has_the_account_of_the_upload_and_of_each_file(homes):
    app = press_draw(by_path(homes))
    by_record(app.text_input(key="path").set_value(str(homes / "1.parquet")).run())
    assert "ε 0.5. The next draw makes it ε 1," in captions(fine(app))
    app.segmented_control(key="source").set_value("upload").run()
    by_record(choose(app, (homes / "1.parquet").read_bytes(), "renamed.parquet"))
    assert "ε 0.5. The next draw makes it ε 1," in captions(fine(app))


def test_dask_waits_for_the_button_and_its_scheduler_is_set_where_the_app_is_started(homes, monkeypatch):
    app = by_path(homes, CURATE | {"address": "tls://far.org:1"})
    app.selectbox(key="engine").set_value("dask").run()
    assert "Count the records" in [button.label for button in fine(app).button]
    assert app.button(key="draw").disabled
    assert "Workers of this computer." in captions(app)
    assert "far.org" not in captions(app)
    monkeypatch.setenv("DPVIZ_DASK_ADDRESS", "tls://far.org:1")
    assert "Scheduler tls://far.org:1, as set when the app was started." in captions(fine(app.run()))
    monkeypatch.setenv("DPVIZ_DASK_ADDRESS", "tcp://far.org:1")
    assert "the operator of the scheduler can run code on this computer" in errors(good(app.run()))


def test_the_last_two_counts_of_a_page_are_kept_and_one_that_fails_takes_no_place(monkeypatch):
    kept, keeper, made = {"points": Results(2), "trips": Results(2)}, Keeper(), []
    monkeypatch.setattr(path_controls.cached, "file_counts", kept.__getitem__)
    monkeypatch.setattr(path_controls.cached, "keeper", lambda: keeper)
    files = SimpleNamespace(digest="digest", counting="numpy", found=None, at_once=True)

    def count(_found, request, _watch):
        made.append(request)
        if request == "bad":
            raise InputError("Nothing fits.")
        return f"count of {request}"

    def counted(request, page="points"):
        return path_controls.count_by_path(page, files, request, request)

    monkeypatch.setattr(path_controls, "count_files", count)
    assert [counted(each) for each in "abcbc"] == [f"count of {each}" for each in "abcbc"]
    assert made == ["a", "b", "c"]
    for _ in range(2):
        with pytest.raises(DpvizError, match="Nothing fits"):
            counted("bad")
    assert [counted(each) for each in "bc"] == ["count of b", "count of c"]
    assert made == ["a", "b", "c", "bad", "bad"]
    assert counted("c", "trips") == "count of c"
    assert counted("a") == "count of a"
    assert made[5:] == ["c", "a"], "a page knows no count of another one, and of its own the last two"


def test_large_files_are_counted_in_the_background_and_can_be_cancelled(homes, monkeypatch):
    watches = []

    def slow(found, request, watch):
        watches.append(watch)
        assert watch.cancel.wait(60)
        raise cancellation()

    counted = path_controls.count_files
    monkeypatch.setattr(path_controls, "SMALL", 0)
    monkeypatch.setattr(path_controls, "count_files", slow)
    app = fine(by_path(homes))
    assert not watches
    fine(app.button(key="count").click().run())
    assert app.button(key="cancel").label == "Cancel"
    assert app.button(key="draw").disabled
    fine(app.select_slider(key="order").set_value(7).run())
    assert watches[0].cancelled, "a count of other settings is ended"
    fine(app.button(key="count").click().run())
    fine(app.button(key="cancel").click().run())
    assert watches[1].cancelled
    assert "The count was cancelled; nothing of it was kept." in captions(good(app.run()))
    monkeypatch.setattr(path_controls, "count_files", counted)
    fine(app.button(key="count").click().run())
    until(lambda: "Name of the dataset" in [each.label for each in good(app.run()).text_input], "the end of the count")
    assert drawn(fine(press_draw(app))).data.counts.count.sum() == 4


def test_while_a_count_is_being_cancelled_the_page_says_so_and_it_cannot_be_cancelled_twice(homes, monkeypatch):
    go_on, jobs = Event(), []

    def held(found, request, watch):
        watch.report(0.4)
        go_on.wait(60)
        raise cancellation()

    def make(*args):
        jobs.append(make_count_job(*args))
        jobs[-1].patience = 0.0
        return jobs[-1]

    monkeypatch.setattr(path_controls, "SMALL", 0)
    monkeypatch.setattr(path_controls, "count_files", held)
    monkeypatch.setattr(path_controls, "make_count_job", make)
    app = by_path(homes)
    good(app.button(key="count").click().run())
    try:
        good(app.button(key="cancel").click().run())
        assert jobs[-1].state == STOPPING
        assert "Cancelling the count" in app.get("progress")[0].proto.text
        assert app.button(key="cancel").disabled
        assert "count" not in keys(app.button)
    finally:
        go_on.set()
    jobs[-1].wait()
    assert "The count was cancelled; nothing of it was kept." in captions(good(app.run()))
    assert not app.button(key="count").disabled


@pytest.mark.parametrize(
    ("name", "words"),
    [("*.csv", "No file fits the pattern '*.csv'"), ("3.parquet", "is damaged or cut short"), ("http://127.0.0.1/a.parquet", "local file")],
)
def test_what_cannot_be_counted_has_one_line_of_error(homes, name, words):
    (homes / "3.parquet").write_bytes((homes / "1.parquet").read_bytes()[:-20])
    app = by_path(name if "://" in name else homes / name)
    assert words in errors(app)
    assert len(app.error) == 1
    assert str(homes) not in errors(app)
    assert app.button(key="draw").disabled


def test_too_large_for_memory_names_the_engines_that_take_it(homes, monkeypatch):
    monkeypatch.setattr(path_controls, "DEFAULT_LIMITS", replace(path_controls.DEFAULT_LIMITS, file_bytes=100))
    app = by_path(homes)
    assert "Automatic chose duckdb" in captions(fine(app))
    app.selectbox(key="engine").set_value("numpy").run()
    assert "Choose duckdb or dask." in errors(app)


@pytest.mark.slow
def test_trips_between_coordinates_are_found_and_saved(tmp_path):
    boxes = [shapely.box(west, 0, west + 1, 1) for west in (0, 1)]
    squares = geopandas.GeoDataFrame({"id": ["A", "B"]}, geometry=boxes).to_json().encode()
    moves = pd.DataFrame(
        {"start_lon": [0.5, 0.5, 1.5, 9], "start_lat": 0.5, "end_lon": [1.5, 1.5, 0.5, 0], "end_lat": 0.5, "who": list("aabc")}
    )
    moves.to_parquet(tmp_path / "moves.parquet")
    app = trips_uploaded(regions=("squares.geojson", squares))
    app.segmented_control(key="trips source").set_value("path").run()
    by_record(good(app.text_input(key="trips path").set_value(str(tmp_path / "*.parquet")).run()))
    assert app.error or "CRS" in infos(app)
    app.text_input(key="trips crs").set_value("EPSG:4326").run()
    fine(labelled(app.toggle, "Show what was left out").set_value(True).run())
    assert "left out 1: 1 in no region." in captions(app)
    protect(app, "who")
    fine(labelled(app.toggle, "Each person once per pair").set_value(True).run())
    data = trips_drawn(fine(press_draw(app))).data
    assert data.counts.count.tolist() == [1, 1]
    part = data.source.data_part
    assert (part.origin, part.destination, part.crs, part.distinct) == (
        ("start_lon", "start_lat"),
        ("end_lon", "end_lat"),
        "EPSG:4326",
        True,
    )
    assert trips_drawn(fine(press_draw(app))) is not None
