"""The process that serves the app: Streamlit's own ASGI application, behind a `Door` that asks for the token. `dpviz app` starts it.

For one person it listens on 127.0.0.1; for a class, and only then, where its options say, with a `ClassDoor` in front.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware

from dpviz.app.server import class_mode, warm_up
from dpviz.app.server.access import TOKEN, ClassDoor, Door
from dpviz.app.server.class_limits import keep_giving_memory_back, memory_is_full, used_memory
from dpviz.app.server.class_samples import add_class_samples
from dpviz.bundled import app_script
from dpviz.cli.class_options import SHORTEST_CODE, ClassOptions, add_class_arguments, read_code
from dpviz.cli.console import report_error, say
from dpviz.cli.serve import HOST, settings_of
from dpviz.data.reading.sources import memory_bytes
from dpviz.errors import DpvizError

_PRIVATE_NOTE = "Everyone who has this address can use the app: keep it secret. Other users of this computer cannot. Ctrl-C ends the app."
_SHARED_NOTE = (
    "There is no token: every user of this computer who opens this address acts with your rights, reads your files by their path and"
    " spends your budgets. Ctrl-C ends the app."
)
_CLASS_NOTE = (
    "A class, with samples only, for at most {sessions} pages at once. {code} Behind a proxy, its own address stands in place of this one."
    " The server listens on {listen}, and makes no new runs above {memory:,.0f} MiB of memory{known}. Ctrl-C ends the app."
)
_WITH_CODE = "Everyone who has this address, or types its code, can take part."
_WITHOUT_CODE = "There is no code: everyone who reaches this address can take part."
_CODE_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # without l, o, 0 and 1, which look alike
_MIB = 2**20
_REDIRECT = '<!DOCTYPE html><meta charset="utf-8"><title>dpviz</title><meta http-equiv="refresh" content="0; url={}"><p>Opening dpviz ...'


def main() -> None:
    """Serve the app until it is stopped."""
    parser = argparse.ArgumentParser(prog="dpviz app", allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--no-token", action="store_true")
    add_class_arguments(parser)
    options = parser.parse_args()
    of_class = ClassOptions.of(options)
    token = None if options.no_token else secrets.token_urlsafe(32) if of_class is None else code_of_class()
    script = app_script()
    sys.argv = [str(script)]  # Streamlit looks for its settings beside this script, as with `streamlit run`
    settings = {**settings_of(script), "server.port": options.port, "server.headless": True, "logger.hideWelcomeMessage": True}
    doors = [] if token is None else [Middleware(Door, token=token, name=f"dpviz_{options.port}", is_code=of_class is not None)]
    address, note = f"http://{HOST}:{options.port}/", _SHARED_NOTE if token is None else _PRIVATE_NOTE
    if of_class is not None:
        try:
            door = _begin_class(of_class, token)
        except DpvizError as error:
            sys.exit(report_error(error, as_json=False))
        doors, settings = [door, *doors], {**settings, **settings_of_class(of_class)}
        host = f"[{of_class.hosts[0]}]" if ":" in of_class.hosts[0] else of_class.hosts[0]  # IPv6 stands in brackets
        address, note = f"http://{host}:{options.port}/", _describe_class(of_class, token)
    address = address if token is None else f"{address}?{TOKEN}={token}"
    app = st.App(script, lifespan=_announce(address, note, open_browser=not options.headless and _has_screen()), middleware=doors)
    try:
        app.run(config=settings)
    except KeyboardInterrupt:
        return


def _begin_class(options: ClassOptions, code: str | None) -> Middleware:
    """Make this process the server of a class, with the public data that it was given, and return the door in front of it."""
    add_class_samples(options.public)
    class_mode.begin(class_mode.ClassMode(code=code, memory=_memory_of(options)))
    keep_giving_memory_back()
    return Middleware(ClassDoor, hosts=options.hosts, sessions=options.sessions, is_full=memory_is_full)


def _memory_of(options: ClassOptions) -> float:
    return 0.75 * memory_bytes() if options.memory is None else options.memory * _MIB


def settings_of_class(options: ClassOptions) -> dict[str, Any]:
    """Return the Streamlit settings in which the server of a class differs: where it listens, and how much it takes from browsers."""
    return {
        "server.address": options.address(),
        "server.allowedHosts": list(options.hosts),
        "server.maxUploadSize": 1,  # MB; `ClassDoor` takes no uploads at all
        "server.maxMessageSize": 50,  # MB; the largest maps of samples are below 20
        "server.maxWidgetStateSize": 1,  # MB
        "server.disconnectedSessionTTL": 30,  # seconds in which a lost connection finds its session again
    }


def code_of_class() -> str:
    """Return the code of a class: that of the environment, or a new one of 50 bits that can be read aloud and typed."""
    letters = "".join(secrets.choice(_CODE_LETTERS) for _ in range(SHORTEST_CODE))
    return read_code(os.environ) or f"{letters[:3]}-{letters[3:6]}-{letters[6:]}"


def _describe_class(options: ClassOptions, code: str | None) -> str:
    known = "" if used_memory() else ", if this system could say how much is used, which it does not"
    memory, about_code = _memory_of(options) / _MIB, _WITHOUT_CODE if code is None else _WITH_CODE
    return _CLASS_NOTE.format(sessions=options.sessions, code=about_code, listen=options.address(), memory=memory, known=known)


def _announce(address: str, note: str, *, open_browser: bool) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the server's lifespan, which prints the app's address once the app is served, and opens it in a browser if `open_browser`."""

    @asynccontextmanager
    async def announce(_: Any) -> AsyncIterator[None]:
        if class_mode.is_class():
            warm_up.finish()
        say(f"dpviz: {address}")
        say(note)
        warm_up.begin()
        with _open_browser(address) if open_browser else nullcontext():
            yield

    return announce


@contextmanager
def _open_browser(address: str) -> Iterator[None]:
    """Open an address in a browser, through a private file that redirects to it.

    Every user of the computer can read the command line of a browser, so it must not contain the address with the token.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:  # only its owner can enter it
        file = Path(folder) / "open.html"
        file.write_text(_REDIRECT.format(escape(address)), "utf-8")
        webbrowser.open(file.as_uri())
        yield


def _has_screen() -> bool:
    """Return whether this computer seems to have a screen for a browser."""
    return os.name != "posix" or sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


if __name__ == "__main__":
    main()
