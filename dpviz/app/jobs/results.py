"""Results by their questions, such as rows of studies, seeds of figures and runs of pages; sessions may share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

Result = TypeVar("Result")
_NONE = object()  # stands for no result; a result may be None


class Results:
    """Results by their questions. Those used longest ago are dropped once all together are larger than `room`.

    Args:
        room: see above.
        weigh: returns the size of a result, always the same for the same one; without it, each has the size 1.
        fewest: number of results that are kept whatever their size.
    """

    def __init__(self, room: float, weigh: Callable[[Any], float] = lambda _: 1.0, fewest: int = 1) -> None:
        self._room, self._weigh, self._fewest = room, weigh, fewest
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._size = 0.0
        self._lock = Lock()

    def __contains__(self, question: Hashable) -> bool:
        return question in self._results

    def get(self, question: Hashable, default: Any = None) -> Any:
        """Return the result for a question; the default if there is none."""
        with self._lock:
            if question in self._results:
                self._results.move_to_end(question)
            return self._results.get(question, default)

    def keep(self, question: Hashable, result: Result) -> Result:
        """Keep a result, unless one for this question is kept already; return the one that is kept, the same for all who share it."""
        with self._lock:
            if question not in self._results:
                self._results[question] = result
                self._size += self._weigh(result)
            self._results.move_to_end(question)
            kept: Result = self._results[question]
            while len(self._results) > self._fewest and self._size > self._room:
                self._size -= self._weigh(self._results.popitem(last=False)[1])
            return kept

    def answer(self, question: Hashable, make: Callable[[], Result]) -> Result:
        """Return the result for a question; make and keep it first if there is none."""
        kept = self.get(question, _NONE)
        return self.keep(question, make()) if kept is _NONE else kept

    def drop(self, question: Hashable) -> None:
        """Drop the result for a question, if there is one."""
        with self._lock:
            if question in self._results:
                self._size -= self._weigh(self._results.pop(question))

    def values(self) -> list[Any]:
        """Return the results, the one used longest ago first."""
        with self._lock:
            return list(self._results.values())

    def clear(self) -> None:
        """Drop all results."""
        with self._lock:
            self._results.clear()
            self._size = 0.0
