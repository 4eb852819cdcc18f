"""Terminals that are closed or lack characters, and signals: paid releases are finished, temporary files are removed."""

import io
import json
import os
import signal
import subprocess
import sys

import pytest

from dpviz.__main__ import main
from dpviz.cli import commands, console
from dpviz.privacy.ledger import Ledger
from dpviz.release.files import read_release
from tests.publishing.configs import POINTS, STUDY, changed, written

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger.sqlite"))
    return Ledger()


def started(*words, **options):
    line = [sys.executable, "-m", "dpviz", *map(str, words)]
    return subprocess.Popen(line, **{"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, **options})


class Gone(io.StringIO):
    def write(self, _):
        raise BrokenPipeError


def test_closed_streams_stop_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Gone())
    console.say("Drawing.")
    assert console.report_error(KeyboardInterrupt(), as_json=True) == 130
    assert console.report_error(ValueError(), as_json=False) == 2


@POSIX
def test_a_reader_who_closes_the_pipe_does_not_lose_the_release(tmp_path, ledger):
    process = started("release", written(tmp_path, POINTS), stderr=subprocess.STDOUT)
    assert process.stdout.readline() == "Reading the data.\n"
    process.stdout.close()
    process.wait(timeout=60)
    (entry,) = ledger.entries("crowd")
    assert entry.published is not None
    assert read_release(tmp_path / "out").receipt.total == entry.budget


def test_characters_that_a_terminal_lacks_are_escaped(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    folder = tmp_path / "ünï"
    process = started("release", written(tmp_path, POINTS), "--output", folder)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (0, False)
    assert "Published in" in out
    assert "\\xfcn\\xef." in out
    assert json.loads(started("ledger", "show", "--json").communicate(timeout=60)[0])["datasets"][0]["draws"] == 1
    assert read_release(folder)


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_sigterm_is_an_interruption(tmp_path, name):
    long = changed(changed(STUDY, "repeats", 5000), "data.size", 500)
    process = started("compare", written(tmp_path, long, "study.toml"), "--output", tmp_path / "a.csv", "--json")
    assert process.stderr.readline() == "Making 30,000 runs.\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, json.loads(err)["kind"]) == ("", "Interrupted")
    assert [path.name for path in tmp_path.iterdir() if "a.csv" in path.name] in ([], ["a.csv"])


@POSIX
def test_signals_are_as_they_were_afterwards_and_what_is_ignored_stays_ignored(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    seen = []
    monkeypatch.setitem(
        commands.COMMANDS, "check", lambda _: seen.append([signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)])
    )
    was = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["check", "a"]) == 0
    finally:
        signal.signal(signal.SIGHUP, was)
    assert seen == [[signal.default_int_handler, signal.SIG_IGN]]
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_label_is_a_formula(tmp_path, capsys):
    mechanisms = [{"key": "quadtree", "label": "=1+1"}, {"key": "identity", "label": "@me"}]
    assert main(["compare", str(written(tmp_path, changed(STUDY, "mechanism", mechanisms), "study.toml"))]) == 0
    out = capsys.readouterr().out
    cells = {cell for line in out.splitlines() for cell in line.split(",")}
    assert cells >= {"'=1+1", "'@me"}
    assert not cells & {"=1+1", "@me"}


def test_names_with_commas_are_distinguishable(capsys):
    assert main(["audit", "nope"]) == 2
    assert "; " in capsys.readouterr().err
