"""The command line: results on stdout, messages on stderr, one line per error, and exit codes."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.cli import commands
from dpviz.errors import DpvizError, RefusedError
from dpviz.privacy.ledger import Ledger
from dpviz.release.files import read_release
from tests.publishing.configs import CROWD, FLOWS, POINTS, STUDY, changed, written

SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger" / "ledger.sqlite"))
    (tmp_path / "ledger").mkdir()
    return Ledger()


def test_release_writes_what_a_fresh_process_opens(run, tmp_path, ledger):
    code, out, err = run("release", written(tmp_path, POINTS))
    assert code == 0
    assert str(tmp_path / "out") in out
    assert "left: epsilon 0.5" in err
    assert "Curator only: left out 1: 1 outside the domain." in err
    assert "left out" not in (tmp_path / "out" / "manifest.json").read_text("utf-8")
    asked = f"from dpviz.release.files import read_release; print(read_release({str(tmp_path / 'out')!r}).answer([[0, 0, 16, 16]])[0])"
    fresh = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert float(fresh.stdout) == read_release(tmp_path / "out").answer([[0, 0, 16, 16]])[0]
    assert ledger.account("crowd").draws == 1


def test_release_of_trips_as_json(run, tmp_path):
    code, out, _ = run("release", written(tmp_path, FLOWS), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["dataset"]["left"] == {"epsilon": "1", "delta": "9/1000000"}
    assert {"manifest.json", "report.html", "flows.parquet"} <= set(found["files"])
    assert found["release_id"] in (tmp_path / "out" / "manifest.json").read_text("utf-8")


def test_output_says_another_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("release", written(tmp_path, POINTS), "--output", "elsewhere")[0] == 0
    assert (tmp_path / "elsewhere" / "manifest.json").is_file()
    assert not (tmp_path / "out").exists()


def test_the_cap_refuses_and_names_the_remaining_budget(run, tmp_path, ledger):
    path = written(tmp_path, POINTS)
    for number in range(2):
        assert run("release", path, "--output", tmp_path / f"{number}")[0] == 0
    code, out, err = run("release", path, "--output", tmp_path / "third")
    assert (code, out) == (1, "")
    assert "left" in err.splitlines()[-1]
    assert ledger.account("crowd").draws == 2
    assert not (tmp_path / "third").exists()


def test_a_dry_run_spends_nothing_and_prints_expected_errors(run, tmp_path, ledger):
    code, out, _ = run("release", written(tmp_path, POINTS), "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert [level["numbers"] for level in found["levels"]] == [1, 4, 16, 64]
    assert all(level["stddev"] > 0 for level in found["levels"])
    assert ledger.accounts() == []
    assert "Nothing was spent" in run("release", written(tmp_path, POINTS), "--dry-run")[1]


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


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nonsense",),
        ("release",),
        ("release", "a", "--dry"),
        ("audit", "quadtree", "--runs", "many"),
        ("ledger", "erase"),
        ("app", "b"),
    ],
)
def test_wrong_usage_is_one_line_that_points_to_help(run, words):
    code, out, err = run(*words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "--help" in err


def test_wrong_usage_as_json(run):
    code, _, err = run("check", "--json")
    assert code == 2
    assert json.loads(err)["exit"] == 2


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


def test_compare_gives_one_tidy_table(run, tmp_path):
    path = written(tmp_path, STUDY, "study.toml")
    code, out, _ = run("compare", path)
    table = pd.read_csv(io.StringIO(out))
    assert code == 0
    assert len(table) == 12
    assert table["label"].unique().tolist() == ["quadtree height=2", "quadtree height=3", "identity"]
    assert {"epsilon", "repeat", "n3", "mae", "seconds"} <= set(table.columns)
    rows = json.loads(run("compare", path, "--json")[1])
    assert [row["mae"] for row in rows] == pytest.approx(table["mae"].tolist())


def test_compare_writes_a_file_in_either_form(run, tmp_path):
    path = written(tmp_path, STUDY, "study.toml")
    assert run("compare", path, "--output", tmp_path / "a.csv")[1] == f"12 runs in {tmp_path / 'a.csv'}.\n"
    assert json.loads(run("compare", path, "--output", tmp_path / "a.json", "--json")[1])["runs"] == 12
    seconds = pd.read_csv(tmp_path / "a.csv").drop(columns="seconds")
    pd.testing.assert_frame_equal(seconds, pd.read_json(tmp_path / "a.json").drop(columns="seconds"), check_dtype=False)
    assert run("compare", path, "--output", tmp_path / "a.txt")[0] == 2
    assert run("compare", path, "--output", tmp_path / "no" / "a.csv")[0] == 2


@pytest.mark.parametrize(
    ("path", "value", "code", "told"),
    [
        ("data", {"points": "crowd.csv"}, 1, "already public"),
        ("mechanism", {"key": "quadtree"}, 2, "double brackets"),
        ("mechanism", [], 2, "at least one mechanism"),
        ("mechanism", [{"key": "quadtree", "vary": {"height": 3}}], 2, "must be a list of values"),
        ("mechanism", [{"key": "quadtree", "vary": {"height": []}}], 2, "must be a list of values"),
        ("mechanism", [{"key": "quadtree", "vary": {"heigth": [3]}}], 2, "it knows height"),
        ("mechanism", [{"key": "quadtree", "settings": {"height": 2}, "vary": {"height": [3]}}], 2, "leave one out"),
        ("mechanism", [{"key": "quadtree"}, {"key": "quadtree", "settings": {"height": 2}}], 2, "another label"),
        ("mechanism", [{"key": "quadtree", "vary": {name: list(range(1, 99)) for name in ("height", "prune", "x")}}], 2, "it knows height"),
        ("epsilons", 0.5, 2, "epsilons must be a list"),
        ("epsilons", None, 2, "lacks epsilons"),
        ("repeats", 0, 2, "repeats"),
        ("workloads", ["county"], 2, "there are random, small"),
        ("workloads", "random", 2, "workloads must be a list"),
        ("budget", {"epsilon": 1}, 2, "has no key 'budget'"),
    ],
)
def test_invalid_comparisons_are_refused(run, tmp_path, path, value, code, told):
    tables = changed(STUDY, path, value)
    if "points" in tables["data"]:
        tables["domain"] = POINTS["domain"]
    found = run("compare", written(tmp_path, tables, "study.toml"))
    assert found[:2] == (code, "")
    assert told in found[2]


def test_public_files_and_references_can_be_compared(run, tmp_path):
    tables = {**STUDY, "data": {"points": "crowd.csv", "public": True}, "domain": POINTS["domain"], "mechanism": [{"key": "exact_kdtree"}]}
    code, out, _ = run("compare", written(tmp_path, tables, "study.toml"))
    assert code == 0
    assert len(out.splitlines()) == 5


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
    code, out, _ = run("audit", "uniform_grid", "--runs", "200", "--json")
    row = json.loads(out)[0]
    assert code == 0
    assert row["lower_bound"] <= row["epsilon"]
    assert row["passed"]
    assert run("audit", "no such")[0] == 2
    table = pd.DataFrame([{**row, "passed": False}])
    monkeypatch.setattr(commands, "audit_all", lambda *_, **__: table)
    assert run("audit", "uniform_grid", "--runs", "200")[0] == 1


def test_a_taken_port_is_one_line(run):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        code, out, err = run("app", "--port", listening.getsockname()[1])
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "is taken" in err


def test_the_bundled_configuration_of_a_release_is_good(run, tmp_path):
    code, out, _ = run("release", SAMPLES / "release.toml", "--dry-run", "--json", "--output", tmp_path / "out")
    assert code == 0
    assert json.loads(out)["levels"][-1]["numbers"] == 4**8


@pytest.mark.slow
def test_the_bundled_configuration_of_a_comparison_is_good(run, tmp_path):
    assert run("compare", SAMPLES / "compare.toml", "--output", tmp_path / "a.csv")[0] == 0


def started(*words):
    """The command line in a process of its own."""
    line = [sys.executable, "-m", "dpviz", *map(str, words)]
    return subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_release_leaves_no_half_and_says_that_it_is_spent(tmp_path, ledger):
    process = started("release", SAMPLES / "release.toml", "--output", tmp_path / "out", "--json")
    while (line := process.stderr.readline()) and not line.startswith("Writing"):
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "The budget is spent: draw 1" in json.loads(err)["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]
    assert [entry.published for entry in ledger.entries("residents of Los Angeles")] == [None]


def test_a_closed_pipe_gives_no_traceback(tmp_path):
    process = started("compare", written(tmp_path, STUDY, "study.toml"))
    process.stdout.close()
    assert process.stderr.read() == "Making 12 runs.\n"
    process.stderr.close()
    assert process.wait(timeout=60) == 2
