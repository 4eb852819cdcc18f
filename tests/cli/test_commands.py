"""The command line: results on stdout, messages on stderr, one line per error, and exit codes."""

import json
import os
import signal
from pathlib import Path

import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.cli import commands
from dpviz.errors import DpvizError, RefusedError
from dpviz.mechanisms import UniformGrid
from dpviz.mechanisms.audit_points import Added
from dpviz.release import files
from tests.cli.test_console import POSIX
from tests.publishing.configs import CROWD, FLOWS, POINTS, changed, written

SAMPLES = Path(__file__).parents[2] / "sample_data"


def test_release_publishes_and_tells_the_curator_alone_what_was_left_out(run, tmp_path, ledger):
    code, out, err = run("release", written(tmp_path, POINTS))
    assert code == 0
    assert str(tmp_path / "out") in out
    assert "left: epsilon 0.5" in err
    assert "Curator only: left out 1: 1 outside the domain." in err
    assert "left out" not in (tmp_path / "out" / "manifest.json").read_text("utf-8")
    assert ledger.account("crowd").draws == 1


def test_release_of_trips_as_json(run, tmp_path):
    code, out, _ = run("release", written(tmp_path, FLOWS), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["dataset"]["left"] == {"epsilon": "1", "delta": "9/1000000"}
    assert {"manifest.json", "report.html", "flows.parquet"} <= set(found["files"])
    assert found["release_id"] in (tmp_path / "out" / "manifest.json").read_text("utf-8")


def test_the_cap_refuses_what_would_go_to_a_third_folder(run, tmp_path, ledger, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, POINTS)
    for folder in ("first", "second"):
        assert run("release", path, "--output", folder)[0] == 0
        assert (tmp_path / folder / "manifest.json").is_file()
    code, out, err = run("release", path, "--output", "third")
    assert (code, out) == (1, "")
    assert "left" in err.splitlines()[-1]
    assert ledger.account("crowd").draws == 2
    assert not any((tmp_path / folder).exists() for folder in ("third", "out"))


def test_a_dry_run_spends_nothing_and_prints_expected_errors(run, tmp_path, ledger):
    code, out, _ = run("release", written(tmp_path, POINTS), "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert [level["numbers"] for level in found["levels"]] == [1, 4, 16, 64]
    assert all(level["stddev"] > 0 for level in found["levels"])
    assert "Nothing was spent" in run("release", written(tmp_path, POINTS), "--dry-run")[1]
    assert not ledger.path.exists(), "no account, and no look at the truth"


@pytest.mark.parametrize("words", [("--seed", "7"), ("--seed=7",)])
def test_release_refuses_a_seed_and_says_why(run, tmp_path, words):
    code, out, err = run("release", written(tmp_path, POINTS), *words)
    assert (code, out) == (1, "")
    assert "anyone who knows the seed can subtract the noise" in err
    assert run("release", written(tmp_path, changed(POINTS, "data.seed", 7)))[0] == 1


@pytest.mark.parametrize(
    ("path", "value", "code", "told"),
    [
        ("dataset.unit", "person", 2, "[data] protects one record"),
        ("dataset.unit", None, 2, "Say whom the release protects"),
        ("data.points", "missing.csv", 2, "does it exist"),
        ("data.points", "https://example.test/a.csv", 2, "URLs"),
        ("output.folder", ".", 2, "exists already"),
        ("output.formats", ["csv"], 2, "geoparquet"),
        ("dataset.cap_epsilon", None, 2, "cap"),
        ("budget.epsilon", 5, 1, "left"),
        ("mechanism.key", "exact_kdtree", 1, "NOT PRIVATE"),
        ("lat", 3, 2, "has no key 'lat'"),
    ],
)
def test_exit_codes_tell_refusals_from_mistakes(run, tmp_path, ledger, path, value, code, told):
    found = run("release", written(tmp_path, changed(POINTS, path, value)))
    assert found[:2] == (code, "")
    assert told in found[2].splitlines()[-1]
    assert "Rosa" not in found[2]
    assert sum(account.draws for account in ledger.accounts()) == 0


def test_an_error_is_one_line_or_one_json_object(run, tmp_path):
    code, out, err = run("release", tmp_path / "missing.toml")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    code, out, err = run("release", tmp_path / "missing.toml", "--json")
    assert (code, out) == (2, "")
    assert json.loads(err) == {"error": json.loads(err)["error"], "kind": "InputError", "exit": 2}
    assert json.loads(run("check", "--json")[2])["exit"] == 2, "wrong usage"


@pytest.mark.parametrize("words", ["", "nonsense", "release", "release a --dry", "audit quadtree --runs many", "ledger erase", "app b"])
def test_wrong_usage_is_one_line_that_points_to_help(run, words):
    code, out, err = run(*words.split())
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "--help" in err


def test_help_and_version_name_every_command(capsys):
    for words in (["--help"], ["--version"]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
    told = capsys.readouterr().out
    assert all(f"\n    {name} " in told for name in commands.COMMANDS)
    assert "dpviz " in told.splitlines()[-1]


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (RuntimeError("Rosa"), 2, "RuntimeError"),
        (MemoryError(), 2, "memory"),
        (KeyboardInterrupt(), 130, "Interrupted: nothing was written."),
        (KeyboardInterrupt("It is spent."), 130, "It is spent."),
        (RefusedError("No."), 1, "No."),
        (DpvizError("two\nlines \x1b[31m"), 2, "two lines"),
    ],
)
def test_every_failure_is_one_line_without_a_traceback(run, monkeypatch, raised, code, told):
    def failing(_):
        raise raised

    monkeypatch.setitem(commands.COMMANDS, "check", failing)
    found = run("check", "a.csv")
    assert found[0] == code
    assert told in found[2]
    assert len(found[2].splitlines()) == 1
    assert "Rosa" not in found[2]
    assert "\x1b" not in found[2]


def test_check_shows_columns_that_look_like_ids_and_notes_that_it_looked(run, tmp_path, ledger):
    path = written(tmp_path, POINTS)
    assert run("release", path)[0] == 0
    assert not ledger.account("crowd").truth_seen
    _, out, _ = run("check", tmp_path / "crowd.csv")
    assert "Is one of these columns a person, a household or a vehicle? Then name it under [data] person:" in out
    assert "  secret: 1 value, 5 rows: publishing by record would not hide it" in out
    assert ledger.account("crowd").truth_seen
    assert json.loads(run("check", tmp_path / "crowd.csv", "--json")[1])["may_be_persons"] == [
        {"column": "secret", "values": 1, "rows": 5, "once": 0}
    ]


def test_reading_names_and_types_is_not_recorded(run, tmp_path, ledger):
    path = written(tmp_path, POINTS)
    CROWD[["lon", "lat"]].to_csv(tmp_path / "crowd.csv", index=False)
    assert run("release", path)[0] == 0
    assert "may_be_persons" not in json.loads(run("check", tmp_path / "crowd.csv", "--json")[1])
    assert "person" not in run("check", tmp_path / "towns.csv")[1]
    assert not ledger.account("crowd").truth_seen


def test_columns_are_not_shown_if_the_ledger_cannot_record_it(run, tmp_path, ledger):
    written(tmp_path, POINTS)
    ledger.path.write_bytes(b"not a ledger")
    code, out, err = run("check", tmp_path / "crowd.csv")
    assert (code, "secret: 1 value" in out) == (0, False)
    assert "cannot record" in err


def test_check_and_ledger_show_give_text_and_json(run, tmp_path):
    written(tmp_path, POINTS)
    code, out, _ = run("check", tmp_path / "crowd.csv")
    assert code == 0
    assert out.splitlines()[:2] == ["CSV; columns: lon, lat, secret.", "As points: x = lon, y = lat."]
    assert [line.split(":")[1] for line in out.splitlines()[2:4]] == [" [data] crs", " [domain] bounds and crs"]
    assert run("check", tmp_path / "nothing.csv")[0] == 2
    assert run("ledger", "show")[:2] == (0, "The ledger is empty.\n")
    assert run("ledger", "show", "crowd")[0] == 2
    run("release", tmp_path / "release.toml")
    code, out, _ = run("ledger", "show")
    assert (code, out) == (
        0,
        "crowd: 1 draw, spent epsilon 0.5, left epsilon 0.5; one record, add or remove one; the truth was looked at\n",
    )
    found = json.loads(run("ledger", "show", "crowd", "--json")[1])
    assert (found["spent"]["epsilon"], len(found["entries"])) == ("1/2", 1)
    assert "quadtree  epsilon 0.5  release, published as" in run("ledger", "show", "crowd")[1]
    assert [each["name"] for each in json.loads(run("ledger", "show", "--json")[1])["datasets"]] == ["crowd"]


def test_audit_gives_a_lower_bound_and_fails_on_a_fault(run, monkeypatch):
    monkeypatch.setattr(UniformGrid, "audit_inputs", (Added(order=1),))
    code, out, _ = run("audit", "uniform_grid", "--runs", "100", "--json")
    row = json.loads(out)[0]
    assert code == 0
    assert row["lower_bound"] <= row["epsilon"]
    assert row["passed"]
    assert run("audit", "no such")[0] == 2
    table = pd.DataFrame([{**row, "passed": False}])
    monkeypatch.setattr(commands, "audit_all", lambda *_, **__: table)
    assert run("audit", "uniform_grid", "--runs", "100")[0] == 1


def test_the_bundled_configuration_of_a_release_is_good(run, tmp_path):
    code, out, _ = run("release", SAMPLES / "release.toml", "--dry-run", "--json", "--output", tmp_path / "out")
    assert code == 0
    assert json.loads(out)["levels"][-1]["numbers"] == 4**8


@POSIX
def test_an_interrupted_release_leaves_no_half_and_says_that_it_is_spent(run, tmp_path, ledger, monkeypatch):
    """The interruption comes when all files are written and have no name yet."""
    synced, real = [], files._sync

    def sync(path):
        real(path)
        if path.is_relative_to(tmp_path):
            synced.append(path)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(files, "_sync", sync)
    code, out, err = run("release", written(tmp_path, POINTS), "--json")
    assert (code, out, len(synced)) == (130, "", 1)
    assert "The budget is spent: draw 1" in json.loads(err.splitlines()[-1])["error"]
    assert {path.suffix for path in tmp_path.iterdir()} == {".toml", ".csv"}
    assert [entry.published for entry in ledger.entries("crowd")] == [None]
