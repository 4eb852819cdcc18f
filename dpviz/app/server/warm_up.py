"""What pages need when they are first opened, prepared in the background: modules, the first sample, and the land around it.

It uses public data only, and its results are thrown away: what stays are imported modules and caches of files that come with the app.
"""

from __future__ import annotations

import gc
from importlib import import_module
from threading import Lock, Thread, Timer
from types import ModuleType

from dpviz.app.server.class_mode import LEFT_OUT, is_class
from dpviz.families import FAMILIES

PAGES = {
    "family": "modes.page",
    "start": "pages.start",
    "compare": "pages.compare.page",
    "learn": "pages.learn.page",
    "papers": "pages.papers",
    "release": "pages.release",
    "help": "pages.help",
}
"""The module of each page, in the order in which they are prepared; its function is called `family_page`, `start_page` and so on."""
_begun: list[Thread] = []
_lock = Lock()


def begin(seconds: float = 0.0) -> None:
    """Prepare the pages, once in this process: `dpviz app` does so before a browser asks, other servers after the first page.

    Args:
        seconds: how long it waits before it begins, so that a browser can draw its page.
    """
    with _lock:
        if not _begun:
            _begun.append(Timer(seconds, _prepare))
            _begun[0].daemon = True
            _begun[0].start()


def finish() -> None:
    """Prepare the pages, and wait until that is done, before a class is served.

    What is there at the end is never searched for garbage again: a session that had begun by then would keep its memory for ever.
    """
    begin()
    _begun[0].join()


def import_page(page: str) -> ModuleType:
    """Return the module of a page: one of `PAGES`."""
    return import_module(f"dpviz.app.{PAGES[page]}")


def _prepare() -> None:
    for family in tuple(FAMILIES.values()):
        family.page.prepare()
    for page in (page for page in PAGES if not (is_class() and page in LEFT_OUT)):
        import_page(page)
    gc.collect()
    gc.freeze()  # a search for garbage stops all sessions: it need not look at what stays anyhow
