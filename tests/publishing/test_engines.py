"""Globs, folders and engines, from a configuration and from the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from dpviz.cli import console
from dpviz.data.counting.job import Progress
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import DpvizError, InputError, RefusedError, SettingError
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import private_data as opening
from dpviz.publishing.config import from_tables, read_config, to_toml
from dpviz.publishing.private_data import file_fingerprints, fingerprints_of, left_out, open_data, open_frame
from dpviz.publishing.study_config import read_study
from tests.publishing.configs import CROWD, FLOWS, POINTS, STUDY, changed, per_person, written

PEOPLE = pd.DataFrame({"lon": np.arange(60) % 16 + 0.5, "lat": np.arange(60) // 16 + 0.5, "who": np.arange(60) % 7})


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "ledger").mkdir()
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger" / "ledger.sqlite"))
    return Ledger()


def parts(folder, ending="parquet"):
    """People cut into three files; gives the folder."""
    (folder / "parts").mkdir(exist_ok=True)
    for number, first in enumerate((0, 10, 40)):
        part = PEOPLE.iloc[first : (10, 40, 60)[number]]
        path = folder / "parts" / f"{number}.{ending}"
        part.to_parquet(path, index=False) if ending == "parquet" else part.to_csv(path, index=False)
    return folder / "parts"


def opened(folder, data, tables=POINTS, scheduler=None):
    tables = per_person(tables, data) if "person" in data else changed(tables, "data", data)
    config = read_config(written(folder, tables))
    return open_data(config, open_frame(config), bad_rows="refuse", scheduler=scheduler)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"engine": "spark"}, "[data] engine must be one of auto, numpy, duckdb, dask."),
        ({"engine": "dask", "address": "tls://a:1"}, "whoever runs the scheduler can run code on this computer"),
        ({"distinct": True}, "name the person column, or leave distinct out"),
        ({"points": []}, "[data] points names no file"),
        ({"points": ["a.csv", 3]}, "Each of [data] points must be a text"),
        ({"points": 3}, "[data] points must be a text in quotes"),
        ({"origin": ["a", "b"]}, "[data] origin has no meaning beside points"),
        ({"points": None, "sample": "la_residents", "engine": "duckdb"}, "[data] engine has no meaning beside sample"),
    ],
)
def test_invalid_combinations_are_named_with_their_remedy(data, told):
    data = {name: value for name, value in {"points": "crowd.csv", **data}.items() if value is not None}
    with pytest.raises(SettingError) as refused:
        from_tables(changed(POINTS, "data", data))
    assert told in str(refused.value)


def test_line_ends_within_cells_are_for_studies_only(tmp_path):
    with pytest.raises(RefusedError, match="convert it to Parquet"):
        from_tables(changed(POINTS, "data.quoted_newlines", True))
    study = changed(STUDY, "data", {"points": "across.csv", "public": True, "quoted_newlines": True})
    config = read_study(written(tmp_path, study))
    (tmp_path / "across.csv").write_text('lon,lat,note\n1,2,"of\ntwo lines"\n')
    assert open_data(config, open_frame(config), bad_rows="refuse").data.count.tolist() == [1]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"origin": ["a", "b"]}, "each a pair of coordinates"),
        ({"origin": ["a", "b"], "destination": ["a", "b", "c"]}, "each a pair of coordinates"),
        ({"crs": "EPSG:4326"}, "trips between ids have no coordinates"),
    ],
)
def test_ends_of_trips_are_ids_or_pairs_of_coordinates(data, told):
    with pytest.raises(SettingError) as refused:
        from_tables(changed(FLOWS, "data", {"trips": "trips.csv", **data}))
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("tables", "data"),
    [
        (POINTS, {"points": ["a/*.parquet", "b"], "person": "who", "contributions": 1, "distinct": True, "engine": "dask"}),
        (POINTS, {"points": ["one.csv"], "engine": "duckdb"}),
        (FLOWS, {"trips": "t/*.csv", "origin": ["x", "y"], "destination": ["x2", "y2"], "crs": "EPSG:4326"}),
    ],
)
def test_a_written_configuration_reads_back_equal(tmp_path, tables, data):
    config = from_tables(per_person(tables, data) if "person" in data else changed(tables, "data", data))
    path = tmp_path / "written.toml"
    path.write_text(to_toml(config), "utf-8")
    assert read_config(path) == config


def test_the_command_line_overrides_the_file():
    part = from_tables(changed(POINTS, "data", {"points": "a", "engine": "duckdb"})).data
    assert [part.with_engine(engine, None).engine for engine in (None, "dask", "numpy")] == ["duckdb", "dask", "numpy"]
    scheduler = Scheduler(address="tls://b:2")
    assert part.with_engine("dask", scheduler).engine == "dask"
    for engine in (None, "numpy"):
        with pytest.raises(SettingError, match="Dask scheduler"):
            part.with_engine(engine, scheduler)
    with pytest.raises(SettingError, match="leave it out for a sample"):
        from_tables(changed(POINTS, "data", {"sample": "gaussian_cluster"})).data.with_engine(None, scheduler)


@pytest.mark.parametrize("points", ["parts/*.parquet", "parts", ["parts/2.parquet", "parts/[01].parquet"]])
def test_a_glob_a_folder_and_a_list_are_their_files(tmp_path, points):
    parts(tmp_path)
    found = opened(tmp_path, {"points": points})
    assert (found.data.count.sum(), found.engine) == (60, "numpy")


def test_the_folders_own_name_is_no_pattern(tmp_path):
    folder = tmp_path / "[a]*"
    folder.mkdir()
    parts(folder)
    assert opened(folder, {"points": "parts/*.parquet"}).data.count.sum() == 60
    CROWD.iloc[:2].to_csv(folder / "[b].csv")
    assert opened(folder, {"points": "[b].csv"}).data.count.sum() == 2


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_engines_count_the_same(tmp_path, address, engine):
    parts(tmp_path)
    data = {"points": "parts", "person": "who", "contributions": 60}
    one = opened(tmp_path, data)
    other = opened(tmp_path, data | {"engine": engine}, scheduler=Scheduler(address=address) if engine == "dask" else None)
    assert (one.engine, other.engine) == ("numpy", engine)
    assert np.array_equal(one.data.column, other.data.column)
    assert np.array_equal(one.data.count, other.data.count)
    assert one.fingerprints == other.fingerprints


def test_trips_between_coordinates(tmp_path):
    squares = {"type": "FeatureCollection", "features": [square("a", 0), square("b", 1)]}
    (tmp_path / "squares.geojson").write_text(json.dumps(squares), "utf-8")
    pd.DataFrame({"x": [0.5, 0.5, 1.5], "y": 0.5, "u": [1.5, 1.5, 0.5], "v": 0.5}).to_csv(tmp_path / "moves.csv", index=False)
    tables = changed(FLOWS, "regions", {"file": "squares.geojson", "levels": ["id"]})
    data = {"trips": "moves.csv", "origin": ["x", "y"], "destination": ["u", "v"], "crs": "EPSG:4326"}
    for engine in ("numpy", "duckdb"):
        found = opened(tmp_path, data | {"engine": engine}, tables)
        assert (found.data.origin.tolist(), found.data.destination.tolist(), found.data.count.tolist()) == ([0, 1], [1, 0], [2, 1])


def square(name, west):
    ring = [[west, 0], [west + 1, 0], [west + 1, 1], [west, 1], [west, 0]]
    return {"type": "Feature", "properties": {"id": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


class TestMarks:
    def test_several_files_have_the_fingerprints_of_each(self, tmp_path):
        folder = parts(tmp_path)
        together = set(opened(tmp_path, {"points": "parts/*.parquet"}).fingerprints)
        for path in folder.iterdir():
            alone = set(opened(tmp_path, {"points": f"parts/{path.name}"}).fingerprints)
            assert alone & together == {fingerprints_of(nobody(), path.read_bytes())[0]}

    def test_neither_order_nor_names_matter(self, tmp_path):
        folder = parts(tmp_path)
        names = ["parts/0.parquet", "parts/1.parquet", "parts/2.parquet"]
        one, other = opened(tmp_path, {"points": names}), opened(tmp_path, {"points": names[::-1]})
        (folder / "0.parquet").rename(folder / "9.parquet")
        assert one.fingerprints == other.fingerprints == opened(tmp_path, {"points": "parts"}).fingerprints

    def test_a_part_of_a_released_dataset_has_its_account(self, tmp_path, run, ledger):
        parts(tmp_path)
        assert run("release", written(tmp_path, changed(POINTS, "data.points", "parts/*.parquet")))[0] == 0
        tables = changed(changed(POINTS, "data.points", "parts/1.parquet"), "dataset.name", "a fresh one")
        code, _, err = run("release", written(tmp_path, tables), "--output", tmp_path / "second")
        assert code == 0
        assert "knows these data as 'crowd'" in err
        assert [account.draws for account in ledger.accounts()] == [2]

    def test_large_files_are_read_piece_by_piece(self, tmp_path, monkeypatch):
        path = tmp_path / "large"
        path.write_bytes(bytes(range(256)) * 100)
        monkeypatch.setattr("dpviz.publishing.private_data._PIECE_BYTES", 1000)
        seen = []
        assert file_fingerprints([path], Progress(progress=seen.append)) == fingerprints_of(nobody(), path.read_bytes())[:1]
        assert seen == sorted(seen)
        assert (len(seen), seen[-1]) == (26, 1.0)

    def test_a_file_that_is_written_meanwhile_is_refused(self, tmp_path, monkeypatch):
        folder = parts(tmp_path, "csv")

        def read_points(*given, counted=opening.read_points, **options):
            with (folder / "1.csv").open("a") as file:
                file.write("1,1,1\n")
            return counted(*given, **options)

        monkeypatch.setattr(opening, "read_points", read_points)
        with pytest.raises(InputError, match="changed while it was read"):
            opened(tmp_path, {"points": "parts/*.csv"})


def nobody():
    """Counts that have no fingerprint."""
    return opening.PointCounts(
        domain=from_tables(POINTS).domain.domain(),
        column=np.zeros(0, np.int32),
        row=np.zeros(0, np.int32),
        count=np.zeros(0, np.int64),
        unit="person",
    )


def test_reasons_for_left_out_records_are_listed(tmp_path):
    (tmp_path / "bad.csv").write_text("lon,lat,who\n1,1,a\n2,2,a\n99,1,b\n,1,c\n", "utf-8")
    config = read_config(written(tmp_path, per_person(POINTS, {"points": "bad.csv", "person": "who", "contributions": 1})))
    data = open_data(config, open_frame(config), bad_rows="drop").data
    assert left_out(data) == "left out 3: 1 outside the domain, 1 unreadable, 1 over the bound."


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_release_says_which_engine_counted(run, tmp_path, address, engine, ledger):
    parts(tmp_path)
    words = ["--engine", engine, *(["--address", address] if engine == "dask" else [])]
    code, out, err = run("release", written(tmp_path, changed(POINTS, "data.points", "parts/*.parquet")), *words, "--json")
    assert (code, json.loads(out)["engine"]) == (0, engine)
    assert f"Counted by engine {engine}." in err
    assert not any(word in json.loads(out) for word in ("outside", "bad", "over", "dropped"))
    assert "engine" not in (tmp_path / "out" / "manifest.json").read_text("utf-8")
    assert ledger.account("crowd").draws == 1


def test_compare_counts_public_files_by_any_engine(run, tmp_path):
    parts(tmp_path)
    study = {**STUDY, "data": {"points": "parts", "public": True}, "domain": POINTS["domain"]}
    path = written(tmp_path, study, "study.toml")
    tables = [pd.read_csv(table) for table in (compared(run, path, tmp_path / f"{engine}.csv", engine) for engine in ("numpy", "duckdb"))]
    pd.testing.assert_frame_equal(*[table.drop(columns="seconds", errors="ignore") for table in tables])


def compared(run, config, output, engine):
    assert run("compare", config, "--workers", 1, "--engine", engine, "--output", output)[0] == 0
    return output


@pytest.fixture
def calls(monkeypatch):
    """Addresses that Dask is told to connect to."""
    cluster, seen = pytest.importorskip("dpviz.data.counting.dask_cluster"), []

    def client(address, **_options):
        seen.append(address)
        raise OSError

    monkeypatch.setattr(cluster, "Client", client)
    return seen


@pytest.mark.parametrize("given", [{"address": "tcp://127.0.0.1:1"}, {"address": "tls://a:1", "engine": "dask"}, {"address": ""}])
def test_a_configuration_names_no_scheduler(run, tmp_path, calls, given):
    for command, tables in (("release", POINTS), ("compare", {**STUDY, "data": {**STUDY["data"], "public": True}})):
        path = written(tmp_path, {**tables, "data": {**tables["data"], **given}})
        code, out, err = run(command, path, *(["--dry-run"] if command == "release" else []))
        assert (code, out) == (2, "")
        assert "never taken from a configuration: whoever runs the scheduler can run code on this computer" in err
    assert calls == []


def test_only_the_address_that_was_named_is_called(run, tmp_path, calls):
    dask = pytest.importorskip("dask")
    path = written(tmp_path, changed(POINTS, "data.engine", "dask"))
    elsewhere = {"scheduler-address": "tcp://10.0.0.9:1", "distributed.comm.default-scheme": "tls"}
    with dask.config.set(elsewhere):
        assert run("release", path, "--address", "127.0.0.1:1")[0] == 2
        assert "can run code on this computer" in run("release", path, "--address", "tcp://10.0.0.5:1")[2]
        assert run("release", path, "--address", "tcp://10.0.0.5:1", "--insecure-address")[0] == 2
    assert calls == ["tcp://127.0.0.1:1", "tcp://10.0.0.5:1"]


@pytest.mark.parametrize(
    ("data", "words", "told"),
    [
        ({"points": "nothing/*.parquet"}, (), "No file fits the pattern"),
        ({"points": "crowd.csv"}, ("--engine", "spark"), "engine must be one of auto, numpy, duckdb, dask"),
        ({"points": "crowd.csv"}, ("--engine", "duckdb", "--address", "tcp://127.0.0.1:1"), "give --engine dask"),
        pytest.param(
            {"points": "crowd.csv"},
            ("--engine", "dask", "--address", "tcp://127.0.0.1:1"),
            "No Dask scheduler answers",
            marks=pytest.mark.slow,
        ),
        ({"points": ["crowd.csv", "trips.csv"]}, (), "are of different columns"),
        ({"sample": "gaussian_cluster"}, ("--engine", "duckdb"), "engine has no meaning beside sample"),
    ],
)
def test_errors_are_one_line_and_spend_nothing(run, tmp_path, ledger, data, words, told):
    tables = changed(POINTS, "data", data)
    code, out, err = run("release", written(tmp_path, tables), *words)
    assert (code, out) == (2, "")
    (line,) = [line for line in err.splitlines() if line.startswith("dpviz:")]
    assert told in line
    assert str(tmp_path) not in line
    assert not (tmp_path / "out").exists()
    assert ledger.accounts() == []


class TestInterruptions:
    def test_interrupted_work_is_cancelled_and_waited_for(self):
        ended = []

        def work(watch):
            console_interrupt()
            watch.cancel.wait(10)
            ended.append(watch.cancelled)
            raise DpvizError("cancelled")

        with pytest.raises(KeyboardInterrupt):
            console.run_with_bar("counting", work)
        assert ended == [True]

    def test_exceptions_of_the_work_are_raised(self):
        with pytest.raises(InputError, match="as it is"):
            console.run_with_bar("counting", lambda _: raising(InputError("as it is")))
        assert console.run_with_bar("counting", lambda watch: watch.at(0.5)) is None

    @pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
    @pytest.mark.parametrize("engine", [pytest.param("numpy", marks=pytest.mark.slow), "duckdb"])
    def test_an_interrupted_count_leaves_nothing(self, tmp_path, ledger, engine):
        folder = tmp_path / "large"
        folder.mkdir()
        for number in range(8):
            (folder / f"{number}.csv").write_bytes(b"lon,lat\n" + b"1.5,2.5\n" * (500_000 + number))
        config = written(tmp_path, changed(POINTS, "data.points", "large/*.csv"))
        spill = tmp_path / "spill"
        spill.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "dpviz", "release", str(config), "--engine", engine, "--json"],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(spill)},
        )
        assert process.stderr.readline() == "Reading the data.\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "")
        assert json.loads(err)["error"] == "Interrupted: nothing was written."
        assert not (tmp_path / "out").exists()
        assert [*spill.iterdir()] == []
        assert ledger.accounts() == []


def raising(error):
    raise error


def console_interrupt():
    os.kill(os.getpid(), signal.SIGINT)
