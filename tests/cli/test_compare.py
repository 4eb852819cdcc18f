"""The compare command keeps finished runs if it is interrupted, killed or fails; it can be resumed and overwrites nothing.

It records in the ledger, before anything is compared, that the truth is looked at, with or without an account.
"""

import io
import json
import os
import re
import signal
from pathlib import Path

import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.cli import compare as study_command
from dpviz.errors import DpvizError, SettingError
from dpviz.mechanisms import Identity, Quadtree
from dpviz.release.files import read_manifest
from tests.cli.test_console import POSIX
from tests.ledgers import is_empty
from tests.publishing.configs import POINTS, STUDY, changed, written

SAMPLES = Path(__file__).parents[2] / "sample_data"
OWN = {**STUDY, "data": {"points": "crowd.csv", "public": True}, "domain": {"bounds": [0, 0, 128, 128], "crs": "none", "order": 4}}


@pytest.fixture
def config(tmp_path):
    return written(tmp_path, STUDY, "study.toml")


def test_compare_gives_one_tidy_table(run, config):
    code, out, _ = run("compare", config)
    table = pd.read_csv(io.StringIO(out))
    assert (code, len(table)) == (0, 12)
    assert table["label"].unique().tolist() == ["quadtree height=2", "quadtree height=3", "identity"]
    assert {"epsilon", "repeat", "n3", "mae", "seconds"} <= set(table.columns)
    rows = json.loads(run("compare", config, "--json")[1])
    assert [row["mae"] for row in rows] == pytest.approx(table["mae"].tolist())


def test_compare_writes_a_file_in_either_form_and_overwrites_none(run, tmp_path, config):
    assert run("compare", config, "--output", tmp_path / "a.csv")[1] == f"12 runs in {tmp_path / 'a.csv'}.\n"
    assert json.loads(run("compare", config, "--output", tmp_path / "a.json", "--json")[1])["runs"] == 12
    one, other = pd.read_csv(tmp_path / "a.csv"), pd.read_json(tmp_path / "a.json")
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), other.drop(columns="seconds"), check_dtype=False)
    for unfit, message in {"a.txt": "end in .csv or .json", "no/a.csv": "folder that exists", "a.csv": "exists already.*--resume"}.items():
        code, out, err = run("compare", config, "--output", tmp_path / unfit)
        assert (code, out) == (2, "")
        assert re.search(message, err)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv"), one)


@pytest.mark.parametrize(
    ("path", "value", "code", "message"),
    [
        ("data", {"points": "crowd.csv"}, 1, "already public"),
        ("mechanism", {"key": "quadtree"}, 2, "double brackets"),
        ("mechanism", [], 2, "at least one mechanism"),
        ("mechanism", [{"key": "quadtree", "vary": {"height": 3}}], 2, "must be a list of values"),
        ("mechanism", [{"key": "quadtree", "vary": {"height": []}}], 2, "must be a list of values"),
        ("mechanism", [{"key": "quadtree", "settings": {"height": 2}, "vary": {"height": [3]}}], 2, "leave one out"),
        ("mechanism", [{"key": "quadtree"}, {"key": "quadtree", "settings": {"height": 2}}], 2, "another label"),
        ("mechanism", [{"key": "quadtree", "vary": {name: list(range(1, 99)) for name in ("height", "prune", "x")}}], 2, "it knows height"),
        ("epsilons", 0.5, 2, "epsilons must be a list"),
        ("epsilons", None, 2, "lacks epsilons"),
        ("budget", {"epsilon": 1}, 2, "has no key 'budget'"),
    ],
)
def test_invalid_comparisons_are_refused(run, tmp_path, path, value, code, message):
    *result, err = run("compare", written(tmp_path, changed(STUDY, path, value), "study.toml"))
    assert result == [code, ""]
    assert message in err


def test_references_can_be_compared(run, tmp_path):
    code, out, _ = run("compare", written(tmp_path, changed(OWN, "mechanism", [{"key": "exact_kdtree"}])))
    assert (code, len(out.splitlines())) == (0, 5)


@pytest.mark.slow
def test_the_bundled_configuration_of_a_comparison_is_good(run, tmp_path):
    assert run("compare", SAMPLES / "compare.toml", "--output", tmp_path / "a.csv")[0] == 0


@POSIX
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupted_comparison_can_be_resumed(run, tmp_path, monkeypatch, name):
    config = written(tmp_path, changed(STUDY, "repeats", 10), "study.toml")
    added, add = [], study_command._Table.add

    def interrupting(table, row):
        add(table, row)
        added.append(row)
        if len(added) == 20:
            os.kill(os.getpid(), getattr(signal, name))

    monkeypatch.setattr(study_command._Table, "add", interrupting)
    words = ("compare", config, "--output", tmp_path / "a.csv", "--workers", 2 if name == "SIGINT" else 1)
    code, out, err = run(*words, "--json")
    error = json.loads(err.splitlines()[-1])
    assert (code, out, error["exit"], error["kind"]) == (130, "", 130, "Interrupted")
    assert error["error"].endswith(f"finished runs are in {tmp_path / 'a.csv'}: the same command with --resume continues from there.")
    assert [path.name for path in tmp_path.iterdir() if "a.csv" in path.name] == ["a.csv"]
    assert len(pd.read_csv(tmp_path / "a.csv")) == 20
    code, out, err = run(*words[:-2], "--resume")
    assert (code, out) == (0, f"60 runs in {tmp_path / 'a.csv'}.\n")
    assert "Making 40 runs. 20 are there already." in err
    table = pd.read_csv(tmp_path / "a.csv")
    assert len(table) == table["run"].nunique() == 60
    assert table["repeat"].is_monotonic_increasing


def test_only_the_table_of_the_same_comparison_is_resumed(run, tmp_path, config):
    assert "needs --output" in run("compare", config, "--resume")[2]
    assert run("compare", config, "--output", tmp_path / "a.json", "--workers", 1)[0] == 0
    other = written(tmp_path, changed(STUDY, "seed", 8), "other.toml")
    code, _, err = run("compare", other, "--output", tmp_path / "a.json", "--resume")
    assert (code, "another study" in err) == (2, True)
    assert "Making 0 runs. 12 are there already." in run("compare", config, "--output", tmp_path / "a.json", "--resume")[2]
    assert "workers must be" in run("compare", config, "--workers", 0)[2]


def interrupted_at(monkeypatch, number, error):
    """Make the n-th release of the quadtree raise an error."""
    real, made = Quadtree.release, []

    def release(*given):
        made.append(given)
        if len(made) == number:
            raise error
        return real(*given)

    monkeypatch.setattr(Quadtree, "release", release)


def test_rows_are_kept_however_it_ends(run, tmp_path, config, monkeypatch, capsys):
    words = ["compare", str(config), "--output", str(tmp_path / "a.csv"), "--workers", "1"]
    with monkeypatch.context() as patch:
        interrupted_at(patch, 3, SystemExit(3))
        with pytest.raises(SystemExit):
            main(words)
    assert "--resume continues from there" in capsys.readouterr().err
    assert len(pd.read_csv(tmp_path / "a.csv")) == 2
    assert "Making 10 runs. 2 are there already." in run(*words, "--resume")[2]
    assert len(pd.read_csv(tmp_path / "a.csv")) == 12


def test_no_file_is_left_if_no_run_was_made(run, tmp_path, config, monkeypatch):
    interrupted_at(monkeypatch, 1, KeyboardInterrupt())
    found = run("compare", config, "--output", tmp_path / "a.csv", "--workers", 1)
    assert found[2].endswith("dpviz: Interrupted. No run was made.\n")
    assert not (tmp_path / "a.csv").exists()


def test_an_interrupted_comparison_prints_its_finished_rows(run, config, monkeypatch):
    interrupted_at(monkeypatch, 3, KeyboardInterrupt())
    code, out, err = run("compare", config, "--workers", 1)
    assert (code, len(pd.read_csv(io.StringIO(out)))) == (130, 2)
    assert "with --output they could be resumed" in err


def test_failed_runs_are_named_and_the_others_are_written(run, tmp_path, config, monkeypatch):
    interrupted_at(monkeypatch, 1, SettingError("this one cannot be drawn."))
    code, _, err = run("compare", config, "--workers", 1, "--output", tmp_path / "a.csv")
    assert code == 2
    assert "quadtree height=2, epsilon 0.5, repeat 1: this one cannot be drawn." in err.splitlines()[-1]
    table = pd.read_csv(tmp_path / "a.csv")
    assert len(table) == 10
    assert not len(table.query("label == 'quadtree height=2' and epsilon == 0.5"))


@pytest.fixture
def no_pause(monkeypatch):
    """The table is written after each row."""
    monkeypatch.setattr(study_command, "SECONDS_BETWEEN_WRITES", 0)
    monkeypatch.setattr(study_command, "PAUSE_PER_WRITE", 0)


def test_the_table_is_written_from_time_to_time(run, tmp_path, config, monkeypatch, no_pause):
    seen, real, output = [], Identity.release, tmp_path / "a.csv"
    monkeypatch.setattr(Identity, "release", lambda *given: seen.append(len(pd.read_csv(output))) or real(*given))
    assert run("compare", config, "--output", output, "--workers", 1)[0] == 0
    assert seen == [4, 5, 10, 11]


def test_a_disk_that_is_full_for_a_while_costs_no_row(run, tmp_path, config, monkeypatch, no_pause):
    real, failed = study_command.write_file, []

    def write(*given):
        if len(failed) < 5:
            failed.append(given)
            raise DpvizError("no room")
        real(*given)

    monkeypatch.setattr(study_command, "write_file", write)
    assert run("compare", config, "--output", tmp_path / "a.csv", "--workers", 1)[0] == 0
    assert len(pd.read_csv(tmp_path / "a.csv")) == 12


def test_a_mechanism_that_prints_does_not_spoil_the_table(run, tmp_path, monkeypatch):
    real = Identity.release
    monkeypatch.setattr(Identity, "release", lambda *given: print("a mechanism may print") or real(*given))
    code, out, err = run("compare", written(tmp_path, changed(STUDY, "repeats", 1), "study.toml"), "--workers", 1)
    assert (code, len(pd.read_csv(io.StringIO(out)))) == (0, 6)
    assert "may print" not in out
    assert "may print" in err


@pytest.fixture
def own(tmp_path):
    """A comparison on the file of which POINTS makes a release, on another domain."""
    return written(tmp_path, OWN, "study.toml")


def test_a_comparison_on_a_file_makes_later_releases_say_that_the_truth_was_seen(run, ledger, tmp_path, own):
    code, _, err = run("compare", own, "--workers", 1)
    assert (code, f"The ledger {ledger.path} records that the true data are looked at." in err) == (0, True)
    assert ledger.accounts() == []
    assert run("release", written(tmp_path, POINTS))[0] == 0
    assert read_manifest(tmp_path / "out")["implementation"]["tuning"]["truth_seen"]
    assert json.loads(run("ledger", "show", "--json")[1])["datasets"][0]["truth_seen"]


def test_it_is_recorded_before_anything_is_compared(run, ledger, own, monkeypatch):
    seen = []
    monkeypatch.setattr(study_command, "compare", lambda *_, **__: seen.append(not is_empty(ledger)) or iter(()))
    run("compare", own, "--workers", 1)
    assert seen == [True]


def test_nothing_is_compared_if_it_cannot_be_recorded(run, ledger, tmp_path, own):
    ledger.path.write_text("no ledger")
    code, out, err = run("compare", own, "--workers", 1)
    assert (code, out) == (1, "")
    assert "Nothing is compared, since the ledger cannot record that the true data are looked at." in err
    assert run("compare", written(tmp_path, STUDY, "study.toml"), "--workers", 1)[0] == 0, "samples are public"
