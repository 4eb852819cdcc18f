"""A search in the background of a page for the epsilon that gives a wanted error: answers come one by one, and it can be stopped."""

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
    """The search for the epsilon of each of several mechanisms. It does not know the page; the page reads its state.

    Args:
        asked: the question that the answers belong to; the job itself does not use it.
        data: points or trips; only their frame, unit and bound per person are used.
        mechanisms: mechanisms by their name on screen.
        wanted: the wanted error, and the level at which it is wanted.
    """

    def __init__(self, asked: object, data: Any, mechanisms: dict[str, AnyMechanism], wanted: WantedError) -> None:
        self.asked, self.rows = asked, list[dict[str, Any]]()
        self._data, self._mechanisms, self._wanted = data, mechanisms, wanted
        self._looks, self._stop = 0, Event()
        self._thread = Thread(target=self._work, name="inverse", daemon=True)

    def start(self, patience: float = 0.0) -> None:
        """Start the search, and wait up to `patience` seconds, in which most searches end."""
        self._thread.start()
        self._thread.join(patience)

    def stop(self, *, wait: bool = False) -> None:
        """End the search after the release that it is making; answers stay. With `wait`, return only once it has ended."""
        self._stop.set()
        if wait:
            self._thread.join()

    @property
    def running(self) -> bool:
        """Whether the search goes on."""
        return self._thread.is_alive() and not self._stop.is_set()

    @property
    def share(self) -> float:
        """The part of the search that is done, 0 to 1; the search may end earlier."""
        total = max(len(self._mechanisms), 1)
        return min((len(self.rows) + min(self._looks / MOST_LOOKS, 1.0)) / total, 1.0)

    @property
    def at(self) -> str:
        """The name of the mechanism whose epsilon is being searched; empty at the end."""
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
