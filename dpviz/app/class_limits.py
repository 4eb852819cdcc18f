"""The limits of a class: how many runs work at once, how long each may take, how large it may be, and when the memory is full.

Without a class, nothing here waits or refuses. A student who meets a limit reads a sentence in the place of the result.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Condition
from typing import TypeVar

from dpviz.app.class_mode import class_mode, is_class
from dpviz.errors import RefusedError, SettingError

RUNS_AT_ONCE = max(2, os.cpu_count() or 1)
STUDIES_AT_ONCE = 1
SECONDS_OF_RUN, SECONDS_OF_STUDY = 20.0, 120.0  # from the end of the wait for a turn
MOST_NODES = 250_000  # partitions of one release, about 130 bytes each
MOST_RELEASES = 500  # of one study
PATIENCE_OF_CLASS, TICK_OF_CLASS = 5.0, 2.0  # seconds that a page waits for its run, and between two looks: each look costs all others time
_SESSION_SHARE = 6  # part of the earlier results that a session of a class keeps
_SECONDS_BETWEEN_CHECKS = 0.1
_SECONDS_BETWEEN_TRIMS = 10.0
_MEMORY_OF_PROCESS = Path("/proc/self/statm")
_RUN_TOO_LONG = (
    f"This run took longer than the {SECONDS_OF_RUN:g} seconds that a class allows. Choose a lower resolution or a smaller sample."
)
FIGURE_TOO_LONG = f"A run of a class takes at most {SECONDS_OF_RUN:g} seconds, since others wait. Its seeds are kept: the button goes on."
_STUDY_TOO_LONG = (
    f"A study of a class runs for {SECONDS_OF_STUDY:g} seconds, since others wait. Its releases are kept: the button goes on with it."
)
_FULL = "The memory of this server is used up, so it makes no new runs for a while. Close pages that you do not need, and try again."
Check = Callable[[], None]
Result = TypeVar("Result")


class Turns:
    """Turns of work, first come, first served.

    Args:
        most: how many work at once.
    """

    def __init__(self, most: int) -> None:
        self._most, self._working = most, 0
        self._waiting: deque[object] = deque()
        self._changed = Condition()

    @contextmanager
    def take(self, check: Check) -> Iterator[None]:
        """Wait for a turn, and hold it; what `check` raises ends the wait."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or self._working >= self._most:
                    self._changed.wait(_SECONDS_BETWEEN_CHECKS)
                    check()
                self._working += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()


_runs, _studies = Turns(RUNS_AT_ONCE), Turns(STUDIES_AT_ONCE)


def run_within_limits(work: Callable[[Check], Result], check: Check, *, too_long: str = _RUN_TOO_LONG) -> Result:
    """Do some work. In a class it waits for a turn, and ends when its time is over.

    Args:
        work: calls its argument now and then, which raises once the work must end.
        check: raises once the work is stopped.
        too_long: what is said when its time is over.

    Raises:
        RefusedError: the memory is full, or the time is over.
    """
    if not is_class():
        return work(check)
    with _runs.take(check):
        refuse_full_memory()
        end = time.monotonic() + SECONDS_OF_RUN

        def check_both() -> None:
            check()
            _refuse_after(end, too_long)

        return work(check_both)


@contextmanager
def study_turn(check: Check) -> Iterator[Check]:
    """Hold a turn for a study, in a class, and give a function that raises when its time is over.

    Args:
        check: ends the wait by what it raises.
    """
    if not is_class():
        yield lambda: None
        return
    with _studies.take(check):
        refuse_full_memory()
        yield partial(_refuse_after, time.monotonic() + SECONDS_OF_STUDY, _STUDY_TOO_LONG)


def _refuse_after(end: float, text: str) -> None:
    if time.monotonic() > end:
        raise RefusedError(text)


def in_class(otherwise: float, value: float) -> float:
    """Return the larger of two numbers of seconds in a class, and the first one without."""
    return max(otherwise, value) if is_class() else otherwise


def room_of_session(room: float) -> float:
    """Return the largest size of the earlier results that a session keeps, where it would be `room` without a class."""
    return room / _SESSION_SHARE if is_class() else room


def refuse_large_release(nodes: int) -> None:
    """Raise `SettingError` if a release has more partitions than a class keeps."""
    if is_class() and nodes > MOST_NODES:
        raise SettingError(f"This release has {nodes:,} partitions; a class keeps at most {MOST_NODES:,}. Choose a lower resolution.")


def refuse_large_study(releases: int) -> None:
    """Raise `SettingError` if a study makes more releases than a class allows."""
    if is_class() and releases > MOST_RELEASES:
        raise SettingError(
            f"These are {releases:,} releases; a class makes at most {MOST_RELEASES:,} in one study. Choose fewer repeats or ε."
        )


def refuse_full_memory() -> None:
    """Raise `RefusedError` if the server of a class uses more memory than it may."""
    if memory_is_full():
        raise RefusedError(_FULL)


def memory_is_full() -> bool:
    """Return whether the server of a class uses more memory than it may, also after it has given back what it can."""
    mode = class_mode()
    if mode is None or used_memory() <= mode.memory:
        return False
    give_memory_back()
    return used_memory() > mode.memory


def used_memory() -> float:
    """Return the bytes of memory of this process; 0 where the system does not say, as on macOS and Windows."""
    try:
        return int(_MEMORY_OF_PROCESS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


_last_trim = -_SECONDS_BETWEEN_TRIMS


def give_memory_back() -> None:
    """Collect garbage, and give free memory back to the system, unless that was done a moment ago."""
    global _last_trim  # noqa: PLW0603
    if time.monotonic() < _last_trim + _SECONDS_BETWEEN_TRIMS:
        return
    _last_trim = time.monotonic()
    gc.collect()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
