"""Start the app, with its own settings wherever it is started from and whatever else is configured there."""

from __future__ import annotations

import errno
import importlib.util
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpviz.data.counting.scheduler import scheduler_of_app
from dpviz.errors import DpvizError, SettingError

HOST, PORT = "127.0.0.1", 8501
_LOOKS = "theme"


def serve(*, port: int = PORT, headless: bool = False, token: bool = True) -> int:
    """Run the app until it is stopped; give its exit code (where processes can be replaced, this one becomes the app).

    Args:
        port: on 127.0.0.1, the only address that it answers on.
        headless: open no browser.
        token: whether a browser must show the token of the printed address: every user of this computer reaches 127.0.0.1. The new
            process makes it itself, since others can read the words and may read the environment that a process is started with.

    Raises:
        DpvizError: the port is taken, or the app's own dependencies are not installed.
        SettingError: a port out of range.
        InputError: the environment names a Dask scheduler that may not be called.
    """
    check_port(port)
    scheduler_of_app()
    if importlib.util.find_spec("streamlit") is None or importlib.util.find_spec("pydeck") is None:
        raise DpvizError("The app is not installed. Install it with: pip install 'dpviz[app]'")
    words, surroundings = command(port=port, headless=headless, token=token), without_settings(os.environ)
    if os.name == "posix":
        os.execve(words[0], words, surroundings)  # noqa: S606  (no shell; signals reach the app itself)
    return subprocess.run(words, env=surroundings, check=False).returncode  # noqa: S603


def check_port(port: int) -> None:
    """Refuse a port that the app could not listen on, before Streamlit looks for another one."""
    if not 1 <= port <= 65_535:
        raise SettingError("The port must be a whole number from 1 to 65535.")
    refused = _refusal(port)
    if refused is not None:
        why = "is taken, perhaps by another dpviz" if refused == errno.EADDRINUSE else "may not be used on this computer"
        raise DpvizError(f"Port {port} {why}. Choose another one: dpviz app --port {port + 1 if port < 65_535 else PORT}")


def _refusal(port: int) -> int | None:
    """Why the operating system does not let this port be listened on; None if it does."""
    with socket.socket() as trial:
        if os.name == "posix":
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            return error.errno or errno.EACCES
    return None


def command(*, port: int, headless: bool = False, token: bool = True) -> list[str]:
    """The words that start the app's own process; with -P, nothing that lies in the working directory is imported.

    Args:
        port: on 127.0.0.1.
        headless: open no browser.
        token: whether the app has a door.
    """
    flags = [*(["--headless"] if headless else []), *([] if token else ["--no-token"])]
    return [sys.executable, "-P", "-m", "dpviz.app.server", f"--port={port}", *flags]


def settings_of(script: Path) -> dict[str, Any]:
    """All settings beside a script that are not mere looks, by their names in Streamlit.

    Streamlit 1.67 reads ~/.streamlit/config.toml, then that of the working directory, then that beside the script, then
    environment variables, then what it is handed; later ones win. So these are handed over as well.

    Args:
        script: with .streamlit/config.toml beside it.
    """
    settings = tomllib.loads((script.parent / ".streamlit" / "config.toml").read_text("utf-8"))
    return {f"{section}.{name}": value for section, values in settings.items() if section != _LOOKS for name, value in values.items()}


def without_settings(surroundings: Mapping[str, str]) -> dict[str, str]:
    """The environment without Streamlit's variables: they would overrule the app's settings file."""
    return {name: value for name, value in surroundings.items() if not name.upper().startswith("STREAMLIT_")}
