"""The options of `dpviz app --class`: what they say to the app's process, and what is refused."""

from pathlib import Path

import pytest

from dpviz.__main__ import parser
from dpviz.app.server.process import settings_of_class
from dpviz.cli.class_options import ClassOptions, read_code
from dpviz.cli.serve import HOST, check_port, command, environment_of_class
from dpviz.errors import SettingError


def options(*words):
    return ClassOptions.of(parser().parse_args(["app", *words]))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--host", "lab.example.org"], "--host is for a class.*no login.*SSH tunnel"),
        (["--listen", "0.0.0.0"], "--listen is for a class"),  # noqa: S104
        (["--sessions", "3"], "--sessions is for a class"),
        (["--public", "a.toml"], "--public is for a class"),
        (["--class"], "needs the name or the address"),
        (["--class", "--host", "*"], "without a port"),
        (["--class", "--host", "*.example.org"], "without a port"),
        (["--class", "--host", "lab.example.org:80"], "without a port"),
        (["--class", "--host", "http://lab"], "without a port"),
        (["--class", "--host", "a@lab"], "without a port"),
        (["--class", "--host", "lab", "--listen", "lab"], "--listen takes an address"),
        (["--class", "--host", "lab", "--sessions", "0"], "from 1 to 1,000"),
        (["--class", "--host", "lab", "--memory", "100"], "at least 512"),
    ],
)
def test_other_computers_reach_a_class_only_and_under_names_that_were_given(run, words, reason):
    with pytest.raises(SettingError, match=reason):
        options(*words)
    assert run("app", *words)[0] == 2


def test_without_a_class_the_app_listens_on_this_computer_only():
    assert options() is None
    assert options("--port", "8600", "--no-token") is None
    assert HOST == "127.0.0.1"
    assert not [word for word in command(port=8600)[1:] if "class" in word or "listen" in word]


def test_the_app_s_process_gets_the_same_options():
    names = ["--host", "Lab.Example.org.", "--host", "[::1]", "--host", "127.0.0.1", "--listen", "127.0.0.1"]
    given = options("--class", *names, "--memory", "900", "--public", "a.toml", "--public", "b.toml")
    assert given.hosts == ("lab.example.org", "::1", "127.0.0.1")
    assert given.public == (str(Path("a.toml").absolute()), str(Path("b.toml").absolute()))
    words = command(port=8600, options=given)
    assert options(*words[words.index("--class") :]) == given
    settings = settings_of_class(given)
    assert (settings["server.address"], settings["server.allowedHosts"]) == ("127.0.0.1", list(given.hosts))


def test_it_listens_where_its_name_leads_to():
    assert options("--class", "--host", "127.0.0.1").address() == "127.0.0.1"
    with pytest.raises(SettingError, match=r"no address of this computer.*--listen"):
        check_port(8769, "203.0.113.7")  # of documentation: no computer has it
    with pytest.raises(SettingError, match=r"--listen 0\.0\.0\.0"):
        options("--class", "--host", "nowhere.invalid").address()


def test_neither_ledger_nor_scheduler_reach_its_process():
    found = environment_of_class({"DPVIZ_LEDGER": "/home/a/ledger", "DPVIZ_DASK_ADDRESS": "tcp://a:1", "HOME": "/home/a"})
    assert found["DPVIZ_LEDGER"] == "/dev/null/none"
    assert ("DPVIZ_DASK_ADDRESS" in found, found["HOME"]) == (False, "/home/a")


def test_a_code_of_one_s_own_can_be_typed_and_not_be_guessed():
    assert read_code({}) is None
    assert read_code({"DPVIZ_CLASS_CODE": " Spring-2026-Maps "}) == "spring-2026-maps"
    for code in ("short", "with spaces in it", "ümlaute-sind-schön"):
        with pytest.raises(SettingError, match="at least 10"):
            read_code({"DPVIZ_CLASS_CODE": code})
