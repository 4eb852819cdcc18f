"""The process that serves the app: Streamlit's own ASGI application, behind a `Door` that asks for the token. `dpviz app` starts it."""

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

from dpviz.app import warm_up
from dpviz.app.door import TOKEN, Door
from dpviz.bundled import app_script
from dpviz.cli.console import say
from dpviz.cli.serve import HOST, settings_of

_PRIVATE_NOTE = "Everyone who has this address can use the app: keep it secret. Other users of this computer cannot. Ctrl-C ends the app."
_SHARED_NOTE = (
    "There is no token: every user of this computer who opens this address acts with your rights, reads your files by their path and"
    " spends your budgets. Ctrl-C ends the app."
)
_REDIRECT = '<!DOCTYPE html><meta charset="utf-8"><title>dpviz</title><meta http-equiv="refresh" content="0; url={}"><p>Opening dpviz ...'


def main() -> None:
    """Serve the app until it is stopped."""
    parser = argparse.ArgumentParser(prog="dpviz app", allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--no-token", action="store_true")
    options = parser.parse_args()
    token = None if options.no_token else secrets.token_urlsafe(32)
    script = app_script()
    sys.argv = [str(script)]  # Streamlit looks for its settings beside this script, as with `streamlit run`
    door = [] if token is None else [Middleware(Door, token=token, name=f"dpviz_{options.port}")]
    app = st.App(script, lifespan=_announce(options.port, token, open_browser=not options.headless and _has_screen()), middleware=door)
    try:
        app.run(config={**settings_of(script), "server.port": options.port, "server.headless": True, "logger.hideWelcomeMessage": True})
    except KeyboardInterrupt:
        return


def _announce(port: int, token: str | None, *, open_browser: bool) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the server's lifespan, which prints the app's address once the app is served, and opens it in a browser if `open_browser`."""
    address = f"http://{HOST}:{port}/" if token is None else f"http://{HOST}:{port}/?{TOKEN}={token}"

    @asynccontextmanager
    async def announce(_: Any) -> AsyncIterator[None]:
        say(f"dpviz: {address}")
        say(_SHARED_NOTE if token is None else _PRIVATE_NOTE)
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
