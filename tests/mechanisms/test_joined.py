"""A mechanism of another package, joined by an entry point, is found wherever one of this package is; on the pages see tests/app."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.errors import SettingError
from dpviz.evaluation.audits import audit_targets
from dpviz.families import FAMILIES
from dpviz.mechanisms import MECHANISMS, Quadtree
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.code import write_mechanism
from tests.mechanisms.joined import install, installed
from tests.often import often
from tests.publishing.configs import FLOWS, POINTS, STUDY, changed, written

ROOT = Path(__file__).parents[2]
KEYS = ("their_halves", "their_pairs")


@pytest.fixture
def joined(tmp_path, monkeypatch):
    monkeypatch.setenv("DPVIZ_LEDGER", str(Ledger.new(tmp_path / "ledger.sqlite").path))
    (tmp_path / "package").mkdir()
    with installed(tmp_path / "package"):
        yield


def said(capsys, *words):
    """What a command that succeeds gives as JSON."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_registries_have_it_last_and_lose_it_again(tmp_path):
    with installed(tmp_path):
        assert ([*MECHANISMS.of("points")][-1], [*MECHANISMS.of("trips")][-1]) == KEYS
        assert MECHANISMS.of("points")["their_halves"].family == "points"
        assert [*MECHANISMS.of("areas")][-1] == "their_areas"
        assert write_mechanism(MECHANISMS.of("areas")["their_areas"](split="uniform")) == 'dv.MECHANISMS["their_areas"](split="uniform")'
        assert FAMILIES["trips"].choices["their_pairs"].title == "Their pairs"
    assert not {*KEYS} & {*MECHANISMS.of("points"), *MECHANISMS.of("trips")}
    assert MECHANISMS.of("points")["quadtree"] is Quadtree


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("[dpviz.mechanisms]\nhalves = their_mechanisms:Pairs\n", "'halves' of dpviz.mechanisms is no mechanism based on PointMechanism"),
        ("[dpviz.mechanisms]\nhalves = their_mechanisms:quadtree\n", "is no mechanism"),
        ("[dpviz.trip_mechanisms]\nflat = dpviz.mechanisms:FlatGaussian\n", "'flat' of dpviz.trip_mechanisms has the key 'flat_gaussian'"),
    ],
)
def test_what_does_not_fit_is_named_at_the_first_look(tmp_path, entries, words):
    with installed(tmp_path, entries), pytest.raises(SettingError, match=words):
        len(MECHANISMS.of("points")) + len(MECHANISMS.of("trips"))


@pytest.mark.parametrize("key", often(KEYS, 1))
def test_the_audit_takes_it_by_its_key(joined, capsys, key):
    assert {*KEYS} <= {*audit_targets()}
    (row,) = said(capsys, "audit", key, "--runs", 100)
    assert (row["mechanism"], row["passed"]) == (key, True)


def test_the_command_line_compares_it_in_this_process_and_in_workers(joined, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "package"), str(ROOT)]))
    tables = changed(STUDY, "mechanism", [{"key": "their_halves", "vary": {"share": [0.3, 0.6]}}, {"key": "identity"}])
    config, found = written(tmp_path, tables, "study.toml"), []
    for workers in (1, 2):
        path = tmp_path / f"{workers}.csv"
        assert main(["compare", str(config), "--workers", str(workers), "--output", str(path)]) == 0
        found.append(pd.read_csv(path).drop(columns="seconds"))
    pd.testing.assert_frame_equal(*found)
    theirs = found[0][found[0]["mechanism"] == "their_halves"]
    assert set(theirs["package"]) == {"their-mechanisms 2.5"}
    assert set(theirs["settings"]) == {'{"share": 0.3}', '{"share": 0.6}'}


@pytest.mark.parametrize(("tables", "key", "levels"), [(POINTS, "their_halves", 2), (FLOWS, "their_pairs", 3)])
def test_the_command_line_rehearses_and_releases_it(joined, tmp_path, capsys, tables, key, levels):
    config = written(tmp_path, changed(tables, "mechanism", {"key": key}))
    assert len(said(capsys, "release", config, "--dry-run")["levels"]) == levels
    assert main(["release", str(config), "--output", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["contents"]["mechanism"] == key


@pytest.mark.slow
def test_it_may_be_imported_before_this_package(tmp_path):
    install(tmp_path)
    code = "import their_mechanisms, dpviz; print([*dpviz.MECHANISMS.of('points')][-1], [*dpviz.MECHANISMS.of('trips')][-1])"
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*KEYS]
