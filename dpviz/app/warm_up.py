"""What pages need when they are first opened, prepared in the background: modules, the first sample, and the land around it.

It uses public data only, and its results are thrown away: what stays are imported modules and caches of files that come with the app.
"""

from __future__ import annotations

import gc
from importlib import import_module
from threading import Lock, Thread, Timer

from dpviz.app.class_mode import LEFT_OUT, is_class

PAGES = ("points.page", "start_page", "trips.page", "areas.page", "compare.page", "learn_page", "papers_page", "release_page", "help_page")
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


def _prepare() -> None:
    import_module(f"dpviz.app.{PAGES[0]}")
    _run_first_page()
    for page in (page for page in PAGES[1:] if not (is_class() and page.removesuffix("_page") in LEFT_OUT)):
        import_module(f"dpviz.app.{page}")
    gc.collect()
    gc.freeze()  # a search for garbage stops all sessions: it need not look at what stays anyhow


def _run_first_page() -> None:
    """Make the run that the Points page shows first."""
    from dpviz.app.state.kinds import POINTS  # noqa: PLC0415 - this module is imported before any page
    from dpviz.app.state.page import usual_page  # noqa: PLC0415
    from dpviz.evaluation.metrics import evaluate_points  # noqa: PLC0415
    from dpviz.privacy.entropy import Entropy  # noqa: PLC0415
    from dpviz.samples.points import load_point_sample  # noqa: PLC0415
    from dpviz.view.canvas import ground_of, names_of  # noqa: PLC0415

    how = usual_page(POINTS).draft
    points = load_point_sample(str(how.sample))
    ground_of(points.domain)
    names_of(points.domain)
    evaluate_points(how.build().release(points, how.budget(), Entropy.seeded(how.run.seed)), points)
