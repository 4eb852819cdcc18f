"""Search in the background of a page for the epsilon that gives a wanted error: answers come one by one, and it can be stopped."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import numpy as np

from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.dry_run import MOST_LOOKS, WantedError, wanted_epsilon


class _StoppedError(Exception):
    """Ends the search from within."""


class InverseJob:
    """The search for the epsilon of several mechanisms. Nothing in it knows the page: the page looks at it.

    Args:
        asked: the question that its answers belong to; for the page's own use.
        data: give the frame, the unit and the bound.
        mechanisms: by their name on screen.
        wanted: the error, and where.
    """

    def __init__(self, asked: object, data: Any, mechanisms: dict[str, AnyMechanism], wanted: WantedError) -> None:
        self.asked, self.rows = asked, list[dict[str, Any]]()
        self._data, self._mechanisms, self._wanted = data, mechanisms, wanted
        self._looks, self._stop = 0, Event()
        self._thread = Thread(target=self._work, name="inverse", daemon=True)

    def start(self, patience: float = 0.0) -> None:
        """Begin; give it some seconds, in which most searches are over."""
        self._thread.start()
        self._thread.join(patience)

    def stop(self, *, wait: bool = False) -> None:
        """End the search after the release that it is at; answers stay. With `wait`, until it has ended."""
        self._stop.set()
        if wait:
            self._thread.join()

    @property
    def running(self) -> bool:
        """Whether the search goes on."""
        return self._thread.is_alive() and not self._stop.is_set()

    @property
    def share(self) -> float:
        """How much of the search is done, 0 to 1; it may end earlier."""
        total = max(len(self._mechanisms), 1)
        return min((len(self.rows) + min(self._looks / MOST_LOOKS, 1.0)) / total, 1.0)

    @property
    def at(self) -> str:
        """The mechanism whose epsilon is being searched."""
        return [*self._mechanisms, ""][len(self.rows)]

    def _work(self) -> None:
        for label in self._mechanisms:
            try:
                self.rows.append(self._answer(label))
            except _StoppedError:
                return
            self._looks = 0

    def _answer(self, label: str) -> dict[str, Any]:
        try:
            found = wanted_epsilon(self._mechanisms[label], self._data, self._wanted, look=self._look)
        except DpvizError as refused:
            return {"Configuration": label, "ε": None, "error": np.nan, "note": str(refused)}
        return {"Configuration": label, "ε": found.epsilon, "error": found.error, "note": found.note}

    def _look(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self._looks += 1
