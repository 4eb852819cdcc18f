"""Engines and files in parts, from a configuration and from the command line."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

from dpviz.cli import console
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import DpvizError, InputError
from dpviz.publishing import private_data as opening
from tests.often import rarely
from tests.publishing.configs import FLOWS, POINTS, STUDY, changed, counted, parts, written


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_engines_count_the_same(tmp_path, address, engine):
    parts(tmp_path)
    data = {"points": "parts", "person": "who", "contributions": 60}
    one = counted(tmp_path, data)
    other = counted(tmp_path, data | {"engine": engine}, scheduler=Scheduler(address=address) if engine == "dask" else None)
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
        found = counted(tmp_path, data | {"engine": engine}, tables)
        assert (found.data.origin.tolist(), found.data.destination.tolist(), found.data.count.tolist()) == ([0, 1], [1, 0], [2, 1])


def square(name, west):
    ring = [[west, 0], [west + 1, 0], [west + 1, 1], [west, 1], [west, 0]]
    return {"type": "Feature", "properties": {"id": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def test_a_part_of_a_released_dataset_has_its_account(tmp_path, run, ledger):
    parts(tmp_path)
    assert run("release", written(tmp_path, changed(POINTS, "data.points", "parts/*.parquet")))[0] == 0
    tables = changed(changed(POINTS, "data.points", "parts/1.parquet"), "dataset.name", "a fresh one")
    code, _, err = run("release", written(tmp_path, tables), "--output", tmp_path / "second")
    assert code == 0
    assert "knows these data as 'crowd'" in err
    assert [account.draws for account in ledger.accounts()] == [2]


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
    for engine in ("numpy", "duckdb"):
        assert run("compare", path, "--workers", 1, "--engine", engine, "--output", tmp_path / f"{engine}.csv")[0] == 0
    one, other = (pd.read_csv(tmp_path / f"{engine}.csv").drop(columns="seconds") for engine in ("numpy", "duckdb"))
    pd.testing.assert_frame_equal(one, other)


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
        assert "never taken from a configuration: the operator of the scheduler can run code on this computer" in err
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
        rarely(({"points": "crowd.csv"}, ("--engine", "dask", "--address", "tcp://127.0.0.1:1"), "No Dask scheduler answers")),
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


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_interrupted_work_is_cancelled_and_waited_for():
    ended = []

    def work(watch):
        interrupt()
        watch.cancel.wait(10)
        ended.append(watch.cancelled)
        raise DpvizError("cancelled")

    with pytest.raises(KeyboardInterrupt):
        console.run_with_bar("counting", work)
    assert ended == [True]


def test_exceptions_of_the_work_are_raised():
    def raising(_):
        raise InputError("as it is")

    with pytest.raises(InputError, match="as it is"):
        console.run_with_bar("counting", raising)
    assert console.run_with_bar("counting", lambda watch: watch.report(0.5)) is None


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_an_interrupted_count_leaves_nothing(run, tmp_path, ledger, monkeypatch, engine):
    for folder in ("large", "spill"):
        (tmp_path / folder).mkdir()
    for number in range(8):
        (tmp_path / "large" / f"{number}.csv").write_bytes(b"lon,lat\n" + b"1.5,2.5\n" * (100_000 + number))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))

    def read_points(*given, real=opening.read_points, **options):
        interrupt()
        return real(*given, **options)

    monkeypatch.setattr(opening, "read_points", read_points)
    config = written(tmp_path, changed(POINTS, "data.points", "large/*.csv"))
    code, out, err = run("release", config, "--engine", engine, "--json")
    assert (code, out) == (130, "")
    assert json.loads(err.splitlines()[-1])["error"] == "Interrupted: nothing was written."
    assert not (tmp_path / "out").exists()
    assert [*(tmp_path / "spill").iterdir()] == []
    assert ledger.accounts() == []
