"""The process that serves the app: Streamlit's own ASGI application behind a door, started by `dpviz app`."""

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

from dpviz.app.door import TOKEN, Door
from dpviz.bundled import app_script
from dpviz.cli.console import say
from dpviz.cli.serve import HOST, settings_of

_KEPT_OUT = "Whoever has this address gets in: keep it to yourself. Other users of this computer are kept out. Ctrl-C ends the app."
_OPEN = (
    "There is no token: every user of this computer who opens this address acts with your rights, reads your files by their path and"
    " spends your budgets. Ctrl-C ends the app."
)
_ONWARD = '<!DOCTYPE html><meta charset="utf-8"><title>dpviz</title><meta http-equiv="refresh" content="0; url={}"><p>Opening dpviz ...'


def main() -> None:
    """Serve the app until it is stopped."""
    words = argparse.ArgumentParser(prog="dpviz app", allow_abbrev=False)
    words.add_argument("--port", type=int, required=True)
    words.add_argument("--headless", action="store_true")
    words.add_argument("--no-token", action="store_true")
    asked = words.parse_args()
    token = None if asked.no_token else secrets.token_urlsafe(32)
    script = app_script()
    sys.argv = [str(script)]  # settings beside the script are read, as they are by `streamlit run`
    door = [] if token is None else [Middleware(Door, token=token, name=f"dpviz_{asked.port}")]
    app = st.App(script, lifespan=_announced(asked.port, token, opens=not asked.headless and _has_screen()), middleware=door)
    try:
        app.run(config={**settings_of(script), "server.port": asked.port, "server.headless": True, "logger.hideWelcomeMessage": True})
    except KeyboardInterrupt:
        return


def _announced(port: int, token: str | None, *, opens: bool) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Say where the app is once it is there, and open it in a browser."""
    address = f"http://{HOST}:{port}/" if token is None else f"http://{HOST}:{port}/?{TOKEN}={token}"

    @asynccontextmanager
    async def announced(_: Any) -> AsyncIterator[None]:
        say(f"dpviz: {address}")
        say(_OPEN if token is None else _KEPT_OUT)
        with _in_browser(address) if opens else nullcontext():
            yield

    return announced


@contextmanager
def _in_browser(address: str) -> Iterator[None]:
    """Open an address through a private file that leads to it: every user can read the words that a browser is started with."""
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:  # only its owner can enter it
        file = Path(folder) / "open.html"
        file.write_text(_ONWARD.format(escape(address)), "utf-8")
        webbrowser.open(file.as_uri())
        yield


def _has_screen() -> bool:
    """Whether a browser can be seen, as far as that can be known."""
    return os.name != "posix" or sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


if __name__ == "__main__":
    main()
