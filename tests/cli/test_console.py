"""Terminals that are closed or lack characters, and signals: paid releases are finished, temporary files are removed."""

import io
import os
import signal
import subprocess
import sys

import pytest

from dpviz.__main__ import main
from dpviz.cli import commands
from dpviz.release.files import read_release
from tests.publishing.configs import POINTS, STUDY, changed, written

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def started(*words, stderr=subprocess.PIPE):
    """The command line in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "dpviz", *words], stdout=subprocess.PIPE, stderr=stderr, text=True)


@POSIX
def test_a_reader_who_closes_the_pipe_does_not_lose_the_release(tmp_path, ledger):
    process = started("release", written(tmp_path, POINTS), stderr=subprocess.STDOUT)
    assert process.stdout.readline() == "Reading the data.\n"
    process.stdout.close()
    process.wait(timeout=240)
    (entry,) = ledger.entries("crowd")
    assert entry.published is not None
    assert read_release(tmp_path / "out").receipt.total == entry.budget


def test_a_closed_pipe_gives_no_traceback(tmp_path, ledger):
    process = started("compare", written(tmp_path, STUDY, "study.toml"))
    process.stdout.close()
    assert process.stderr.read() == "Making 12 runs.\n"
    process.stderr.close()
    assert process.wait(timeout=240) == 2


def test_characters_that_a_terminal_lacks_are_escaped(tmp_path, ledger, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert main(["release", str(written(tmp_path, POINTS)), "--output", str(tmp_path / "ünï")]) == 0
    out.flush()
    assert b"Published in" in out.buffer.getvalue()
    assert b"\\xfcn\\xef." in out.buffer.getvalue()
    assert ledger.account("crowd").draws == 1
    assert read_release(tmp_path / "ünï")


@POSIX
@pytest.mark.parametrize(("before", "within"), [(signal.SIG_DFL, signal.default_int_handler), (signal.SIG_IGN, signal.SIG_IGN)])
def test_signals_are_as_they_were_afterwards_and_what_is_ignored_stays_ignored(monkeypatch, before, within):
    both, seen = (signal.SIGTERM, signal.SIGHUP), []
    monkeypatch.setitem(commands.COMMANDS, "check", lambda _: seen.extend(map(signal.getsignal, both)))
    was = [signal.signal(each, before) for each in both]
    try:
        assert main(["check", "a"]) == 0
        assert [signal.getsignal(each) for each in both] == [before] * 2
    finally:
        for each, handler in zip(both, was, strict=True):
            signal.signal(each, handler)
    assert seen == [within] * 2


def test_no_label_is_a_formula(run, tmp_path):
    mechanisms = [{"key": "quadtree", "label": "=1+1"}, {"key": "identity", "label": "@me"}]
    out = run("compare", written(tmp_path, changed(STUDY, "mechanism", mechanisms), "study.toml"))[1]
    labels = {cell for line in out.splitlines() for cell in line.split(",") if "=1+1" in cell or "@me" in cell}
    assert labels == {"'=1+1", "'@me"}
