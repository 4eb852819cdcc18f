"""Start the app with its own Streamlit settings, which override those of the user, the folder and the environment."""

from __future__ import annotations

import errno
import importlib.util
import os
import socket
import subprocess
import sys
import tomllib
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpviz.cli.class_options import ClassOptions, read_code
from dpviz.cli.console import say
from dpviz.data.counting.scheduler import ADDRESS_VARIABLE, INSECURE_VARIABLE, scheduler_of_app
from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.privacy.ledger import Ledger

HOST, PORT = "127.0.0.1", 8501
_THEME = "theme"
_NO_LEDGER = {"DPVIZ_LEDGER": f"{os.devnull}/none"}
_FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}  # glibc keeps less memory of threads that have ended


def run_app(arguments: Namespace) -> int:
    """Start the app; return its exit code."""
    options = ClassOptions.of(arguments)
    return serve(port=arguments.port, headless=arguments.headless, token=not arguments.no_token, options=options)


def serve(*, port: int = PORT, headless: bool = False, token: bool = True, options: ClassOptions | None = None) -> int:
    """Run the app until it is stopped. On POSIX systems the app replaces this process.

    Args:
        port: on 127.0.0.1, the only address that the app listens on, unless it is for a class.
        headless: whether to open no browser.
        token: whether the app asks for the token in the printed address: every user of this computer can connect to 127.0.0.1. The
            app's process makes the token itself, since other users can read the arguments of a process, and perhaps its environment.
        options: those of a class; None for the app of one person.

    Returns:
        The exit code of the app.

    Raises:
        DpvizError: the port is in use, or the dependencies of the app are not installed.
        SettingError: the port is out of range, or an option of a class or its code does not fit.
        InputError: the environment names a Dask scheduler that is not allowed.
    """
    check_port(port, HOST if options is None else options.address())
    if options is None:
        scheduler_of_app()
        try:
            Ledger().exists()
        except RefusedError as error:
            say(f"{error} Until then Curate refuses; Teach works with data that are public.")
    else:
        read_code(os.environ)
    if importlib.util.find_spec("streamlit") is None or importlib.util.find_spec("pydeck") is None:
        raise DpvizError("The app is not installed. Install it with: pip install 'dpviz[app]'")
    arguments = command(port=port, headless=headless, token=token, options=options)
    environment = without_streamlit_variables(os.environ)
    if options is not None:
        environment = environment_of_class(environment)
    if os.name == "posix":
        os.execve(arguments[0], arguments, environment)  # noqa: S606  (no shell; signals reach the app itself)
    return subprocess.run(arguments, env=environment, check=False).returncode  # noqa: S603


def check_port(port: int, address: str = HOST) -> None:
    """Refuse a port that the app cannot listen on; Streamlit would silently choose another one.

    Raises:
        SettingError: the port is out of range, or the address is none of this computer.
        DpvizError: the port is in use, or may not be used.
    """
    if not 1 <= port <= 65_535:
        raise SettingError("The port must be a whole number from 1 to 65535.")
    error_number = _bind_error(port, address)
    if error_number == errno.EADDRNOTAVAIL:
        raise SettingError(
            f"{address} is no address of this computer. Say where to listen: --listen 0.0.0.0 for all of its addresses, as in a container,"
            " --listen 127.0.0.1 behind a proxy on it."
        )
    if error_number is not None:
        reason = "is taken, perhaps by another dpviz" if error_number == errno.EADDRINUSE else "may not be used on this computer"
        raise DpvizError(f"Port {port} {reason}. Choose another one: dpviz app --port {port + 1 if port < 65_535 else PORT}")


def _bind_error(port: int, address: str) -> int | None:
    """Return the error number if the operating system refuses to listen on this port; else None."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as trial:
        if os.name == "posix":
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError as error:
            return error.errno or errno.EACCES
    return None


def command(*, port: int, headless: bool = False, token: bool = True, options: ClassOptions | None = None) -> list[str]:
    """Return the command that starts the app's process. With -P, Python imports nothing from the working directory.

    Args:
        port: see `serve`.
        headless: whether to open no browser.
        token: whether the app asks for a token.
        options: those of a class.
    """
    flags = [*(["--headless"] if headless else []), *([] if token else ["--no-token"]), *([] if options is None else options.words())]
    return [sys.executable, "-P", "-m", "dpviz.app.server.process", f"--port={port}", *flags]


def settings_of(script: Path) -> dict[str, Any]:
    """Read the Streamlit settings beside a script, without its theme.

    Streamlit 1.67 reads config.toml in ~/.streamlit, then in the working directory, then beside the script, then environment
    variables, then arguments; later ones win. So the settings beside the script are passed as arguments, too.

    Args:
        script: path of the script, with .streamlit/config.toml beside it.

    Returns:
        Values by full name, such as "server.port".
    """
    settings = tomllib.loads((script.parent / ".streamlit" / "config.toml").read_text("utf-8"))
    return {f"{section}.{name}": value for section, values in settings.items() if section != _THEME for name, value in values.items()}


def environment_of_class(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the Dask scheduler, and with a ledger that cannot be opened: a class has neither."""
    kept = {name: value for name, value in environment.items() if name not in (ADDRESS_VARIABLE, INSECURE_VARIABLE)}
    return {**kept, **_NO_LEDGER, **_FEW_ARENAS}


def without_streamlit_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without Streamlit's variables, which would override the app's settings file."""
    return {name: value for name, value in environment.items() if not name.upper().startswith("STREAMLIT_")}
