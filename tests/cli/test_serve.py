"""The app keeps its own settings, whatever else is configured where it is started."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib

import pytest

from dpviz.bundled import app_script
from dpviz.cli.serve import check_port, command, serve, settings_of, without_streamlit_variables
from dpviz.errors import SettingError

SETTINGS = tomllib.loads((app_script().parent / ".streamlit" / "config.toml").read_text("utf-8"))
HOSTILE = """
[server]
address = "10.0.0.1"
enableXsrfProtection = false
corsAllowedOrigins = ["https://elsewhere.test"]
allowedHosts = ["elsewhere.test"]
[client]
showErrorDetails = "full"
[theme]
font = "https://elsewhere.test/font.woff2"
"""
PROBE = """
import json, sys
from streamlit import config
from streamlit.web.server.starlette import starlette_server
from dpviz.app.server.process import main
def run(_):
    print(json.dumps({name: option.value for name, option in config.get_config_options().items()}, default=str))
starlette_server.UvicornRunner.run = run
main()
"""


def flat(settings, before=""):
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


@pytest.mark.slow
def test_hostile_settings_at_home_in_the_folder_and_in_the_environment_change_nothing(tmp_path):
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(HOSTILE, "utf-8")
    words = command(port=8599, headless=True)
    hostile = {"STREAMLIT_SERVER_ADDRESS": "10.0.0.1", "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full", "HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PROBE, *words[words.index("dpviz.app.server.process") + 1 :]],
        cwd=tmp_path,
        env=without_streamlit_variables({**os.environ, **hostile, "USERPROFILE": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(ran.stdout)
    found["client.showErrorLinks"] = found["client.showErrorLinks"] not in (False, "false")  # Streamlit takes either
    ours = dict(flat(SETTINGS))
    assert {name: found[name] for name in ours} == ours
    assert (found["server.port"], found["server.headless"]) == (8599, True)
    assert "elsewhere" not in json.dumps({name: value for name, value in found.items() if not name.startswith("theme")})


def test_the_app_starts_without_the_ledger_that_was_named_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "lefger.sqlite"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 7))
    monkeypatch.setattr(os, "execve", lambda *_: None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert serve(port=port) == 7
    assert f"dpviz ledger new {tmp_path / 'lefger.sqlite'} Until then Curate refuses" in capsys.readouterr().err


def test_the_app_runs_with_this_python_and_its_own_modules():
    assert command(port=8599) == [sys.executable, "-P", "-m", "dpviz.app.server.process", "--port=8599"]
    assert command(port=8599, headless=True, token=False)[-2:] == ["--headless", "--no-token"]


def test_every_setting_but_the_theme_is_passed():
    found = settings_of(app_script())
    assert (found["server.address"], found["server.enableXsrfProtection"], found["client.showErrorDetails"]) == ("127.0.0.1", True, "none")
    assert not [each for each in found if each.startswith("theme")]


def test_other_variables_stay():
    given = {"STREAMLIT_SERVER_PORT": "1", "DPVIZ_LEDGER": "a", "streamlit_theme_base": "b"}
    assert without_streamlit_variables(given) == {"DPVIZ_LEDGER": "a"}


def test_a_port_in_use_is_reported_in_one_line(run):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        code, out, err = run("app", "--port", port)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert re.search(f"Port {port} is taken.*--port", err)
    check_port(port)


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_ports_that_do_not_exist(port):
    with pytest.raises(SettingError, match="from 1 to 65535"):
        check_port(port)
