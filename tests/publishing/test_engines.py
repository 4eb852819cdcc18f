"""Engines and files in parts, from a configuration and from the command line."""

import json
import os
import signal

import geopandas
import pandas as pd
import pytest
import shapely

from dpviz.errors import DpvizError
from dpviz.publishing import private_data as opening
from tests.publishing.configs import FLOWS, POINTS, STUDY, changed, counted, parts, written


def test_trips_between_coordinates(tmp_path):
    squares = [shapely.box(west, 0, west + 1, 1) for west in (0, 1)]
    geopandas.GeoDataFrame({"id": ["a", "b"]}, geometry=squares, crs="EPSG:4326").to_file(tmp_path / "squares.geojson")
    pd.DataFrame({"x": [0.5, 0.5, 1.5], "y": 0.5, "u": [1.5, 1.5, 0.5], "v": 0.5}).to_csv(tmp_path / "moves.csv", index=False)
    tables = changed(FLOWS, "regions", {"file": "squares.geojson", "levels": ["id"]})
    data = {"trips": "moves.csv", "origin": ["x", "y"], "destination": ["u", "v"], "crs": "EPSG:4326", "engine": "duckdb"}
    found = counted(tmp_path, data, tables).data
    assert (found.origin.tolist(), found.destination.tolist(), found.count.tolist()) == ([0, 1], [1, 0], [2, 1])


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
    tables, made = {**STUDY, "data": {"points": "parts", "public": True}, "domain": POINTS["domain"]}, []
    for engine in ("numpy", "duckdb"):
        assert run("compare", written(tmp_path, tables), "--workers", 1, "--engine", engine, "--output", tmp_path / f"{engine}.csv")[0] == 0
        made.append(pd.read_csv(tmp_path / f"{engine}.csv").drop(columns="seconds"))
    pd.testing.assert_frame_equal(*made)


@pytest.fixture
def calls(monkeypatch):
    """Addresses that Dask connects to."""
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


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_count_is_cancelled_and_waited_for(run, tmp_path, ledger, monkeypatch):
    cancelled = []

    def read_points(*_, cancel, **__):
        os.kill(os.getpid(), signal.SIGINT)
        cancelled.append(cancel.wait(10))
        raise DpvizError("cancelled")

    monkeypatch.setattr(opening, "read_points", read_points)
    code, out, err = run("release", written(tmp_path, POINTS), "--json")
    assert (code, out, cancelled) == (130, "", [True])
    assert json.loads(err.splitlines()[-1])["error"] == "Interrupted: nothing was written."
    assert ledger.accounts() == []
