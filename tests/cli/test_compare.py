"""The compare command keeps finished runs if it is interrupted, killed or fails; it can be resumed and overwrites nothing."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.cli import compare as study_command
from dpviz.errors import DpvizError, SettingError
from dpviz.mechanisms import Identity, Quadtree
from tests.often import often
from tests.publishing.configs import STUDY, changed, written

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def started(*words):
    """The command line in a process of its own."""
    line = [sys.executable, "-m", "dpviz", *map(str, words)]
    return subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@POSIX
@pytest.mark.parametrize("name", often(["SIGINT", "SIGTERM"], 1))
def test_an_interrupted_comparison_can_be_resumed(run, tmp_path, name):
    config = written(tmp_path, changed(STUDY, "repeats", 300), "study.toml")
    process = started("compare", config, "--output", tmp_path / "a.csv", "--workers", 2, "--json")
    assert process.stderr.readline() == "Making 1,800 runs.\n"
    time.sleep(1)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    told = json.loads(err)
    assert (process.returncode, out, told["exit"]) == (130, "", 130)
    assert (
        told["error"] == f"Interrupted. The finished runs are in {tmp_path / 'a.csv'}: the same command with --resume continues from there."
    )
    assert sorted(path.name for path in tmp_path.iterdir() if "a.csv" in path.name) == ["a.csv"]
    made = len(pd.read_csv(tmp_path / "a.csv"))
    assert 0 < made < 1800
    code, out, err = run("compare", config, "--output", tmp_path / "a.csv", "--resume")
    assert (code, out) == (0, f"1,800 runs in {tmp_path / 'a.csv'}.\n")
    assert f"Making {1800 - made:,} runs. {made:,} are there already." in err
    table = pd.read_csv(tmp_path / "a.csv")
    assert len(table) == table["run"].nunique() == 1800
    assert table["repeat"].is_monotonic_increasing


def test_only_the_table_of_the_same_comparison_is_resumed(run, tmp_path):
    config = written(tmp_path, STUDY, "study.toml")
    assert "needs --output" in run("compare", config, "--resume")[2]
    assert run("compare", config, "--output", tmp_path / "a.json", "--workers", 1)[0] == 0
    other = written(tmp_path, changed(STUDY, "seed", 8), "other.toml")
    found = run("compare", other, "--output", tmp_path / "a.json", "--resume")
    assert found[0] == 2
    assert "another study" in found[2]
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


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (SystemExit(3), 3)])
def test_rows_are_kept_however_it_ends(run, tmp_path, monkeypatch, capsys, error, code):
    config = written(tmp_path, STUDY, "study.toml")
    interrupted_at(monkeypatch, 3, error)
    words = ["compare", str(config), "--output", str(tmp_path / "a.csv"), "--workers", "1"]
    if code == 130:
        assert run(*words)[0] == code
    else:
        with pytest.raises(SystemExit):
            main(words)
        assert "--resume continues from there" in capsys.readouterr().err
    assert len(pd.read_csv(tmp_path / "a.csv")) == 2
    monkeypatch.undo()
    assert "Making 10 runs. 2 are there already." in run(*words, "--resume")[2]
    assert len(pd.read_csv(tmp_path / "a.csv")) == 12


def test_no_file_is_left_if_no_run_was_made(run, tmp_path, monkeypatch):
    interrupted_at(monkeypatch, 1, KeyboardInterrupt())
    found = run("compare", written(tmp_path, STUDY, "study.toml"), "--output", tmp_path / "a.csv", "--workers", 1)
    assert found[2].endswith("dpviz: Interrupted. No run was made.\n")
    assert not (tmp_path / "a.csv").exists()


def test_an_interrupted_comparison_prints_its_finished_rows(run, tmp_path, monkeypatch):
    interrupted_at(monkeypatch, 3, KeyboardInterrupt())
    code, out, err = run("compare", written(tmp_path, STUDY, "study.toml"), "--workers", 1)
    assert (code, len(pd.read_csv(io.StringIO(out)))) == (130, 2)
    assert "with --output they could be resumed" in err


@pytest.mark.parametrize("output", [True, False])
def test_failed_runs_are_named_and_the_others_are_written(run, tmp_path, monkeypatch, output):
    config = written(tmp_path, STUDY, "study.toml")
    interrupted_at(monkeypatch, 1, SettingError("this one cannot be drawn."))
    words = ["--output", tmp_path / "a.csv"] if output else []
    code, out, err = run("compare", config, "--workers", 1, *words)
    assert code == 2
    assert "quadtree height=2, epsilon 0.5, repeat 1: this one cannot be drawn." in err.splitlines()[-1]
    table = pd.read_csv(tmp_path / "a.csv" if output else io.StringIO(out))
    assert len(table) == 10
    assert not len(table.query("label == 'quadtree height=2' and epsilon == 0.5"))


def test_the_table_is_written_from_time_to_time(run, tmp_path, monkeypatch):
    seen, real = [], Identity.release
    monkeypatch.setattr(study_command, "SECONDS_BETWEEN_WRITES", 0)
    monkeypatch.setattr(study_command, "PAUSE_PER_WRITE", 0)
    output = tmp_path / "a.csv"
    monkeypatch.setattr(Identity, "release", lambda *given: seen.append(len(pd.read_csv(output))) or real(*given))
    assert run("compare", written(tmp_path, STUDY, "study.toml"), "--output", output, "--workers", 1)[0] == 0
    assert seen == [4, 5, 10, 11]


def test_a_disk_that_is_full_for_a_while_costs_no_row(run, tmp_path, monkeypatch):
    monkeypatch.setattr(study_command, "SECONDS_BETWEEN_WRITES", 0)
    monkeypatch.setattr(study_command, "PAUSE_PER_WRITE", 0)
    real, failed = study_command.write_table, []

    def write(*given):
        if len(failed) < 5:
            failed.append(given)
            raise DpvizError("no room")
        real(*given)

    monkeypatch.setattr(study_command, "write_table", write)
    assert run("compare", written(tmp_path, STUDY, "study.toml"), "--output", tmp_path / "a.csv", "--workers", 1)[0] == 0
    assert len(pd.read_csv(tmp_path / "a.csv")) == 12


def test_a_table_is_never_overwritten(run, tmp_path):
    config = written(tmp_path, STUDY, "study.toml")
    (tmp_path / "a.csv").write_text("mine")
    code, out, err = run("compare", config, "--output", tmp_path / "a.csv")
    assert (code, out) == (2, "")
    assert "exists already" in err
    assert "--resume" in err
    assert (tmp_path / "a.csv").read_text() == "mine"


def test_a_mechanism_that_prints_does_not_spoil_the_table(run, tmp_path, monkeypatch):
    real = Identity.release
    monkeypatch.setattr(Identity, "release", lambda *given: print("a mechanism may print") or real(*given))
    code, out, err = run("compare", written(tmp_path, changed(STUDY, "repeats", 1), "study.toml"), "--workers", 1)
    assert (code, len(pd.read_csv(io.StringIO(out)))) == (0, 6)
    assert "may print" not in out
    assert "may print" in err
