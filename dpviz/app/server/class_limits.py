"""The limits of a class: how many runs work at once, how long each may take, how large it may be, and when the memory is full.

Without a class, nothing here waits or refuses. A student who meets a limit reads a sentence in the place of the result.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, Thread

from dpviz.app.server.class_mode import class_mode, is_class
from dpviz.errors import RefusedError, SettingError

RUNS_AT_ONCE = max(2, os.cpu_count() or 1)
STUDIES_AT_ONCE, LONG_RUNS_AT_ONCE = 1, 1
SECONDS_OF_RUN, SECONDS_OF_STUDY = 20.0, 120.0
MOST_NODES = 250_000  # partitions of one release, about 130 bytes each
MOST_RELEASES = 500  # of one study
PATIENCE_OF_CLASS, TICK_OF_CLASS = 5.0, 2.0  # seconds that a page waits for its run, and between two looks: each look costs all others time
_SESSION_SHARE = 6  # part of the earlier results that a session of a class keeps
_SECONDS_BETWEEN_CHECKS = 0.1
SECONDS_BETWEEN_TRIMS = 20.0
_MEMORY_OF_PROCESS = Path("/proc/self/statm")
_RUN_TOO_LONG = (
    f"This run took longer than the {SECONDS_OF_RUN:g} seconds that a class allows. Choose a lower resolution or a smaller sample."
)
_TOO_LONG = f"This took longer than the {SECONDS_OF_STUDY:g} seconds that a class allows. Try again when fewer others work."
_STUDY_TOO_LONG = (
    f"A study of a class runs for {SECONDS_OF_STUDY:g} seconds, since others wait. Its releases are kept: the button goes on with it."
)
_FULL = "The memory of this server is used up, so it makes no new runs for a while. Close pages that you do not need, and try again."
Check = Callable[[], None]
"""A function that raises once work must end; the work calls it now and then."""


class Turns:
    """Turns of one kind of work, first come, first served.

    Args:
        most: how many work at once.
        seconds: that each may take, from the end of its wait.
        text: of the refusal when that time is over.
    """

    def __init__(self, most: int, seconds: float = math.inf, text: str = "") -> None:
        self.seconds, self.text = seconds, text
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


RUNS = Turns(RUNS_AT_ONCE, SECONDS_OF_RUN, _RUN_TOO_LONG)
LONG_RUNS = Turns(LONG_RUNS_AT_ONCE, SECONDS_OF_STUDY, _TOO_LONG)
STUDIES = Turns(STUDIES_AT_ONCE, SECONDS_OF_STUDY, _STUDY_TOO_LONG)


@contextmanager
def hold_turn(turns: Turns, check: Check) -> Iterator[Check]:
    """Hold a turn for some work, and give what the work calls now and then: it raises once the work must end.

    In a class, the work waits for its turn first, and ends when its time is over.

    Args:
        turns: of this kind of work.
        check: raises once the work is stopped; this also ends the wait.

    Raises:
        RefusedError: the memory is full, or the time is over.
    """
    if not is_class():
        yield check
        return
    with turns.take(check):
        refuse_full_memory()
        end = time.monotonic() + turns.seconds

        def check_both() -> None:
            check()
            if time.monotonic() > end:
                raise RefusedError(turns.text)

        yield check_both


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


def give_memory_back() -> None:
    """Give memory that is free within this process back to the system; only with glibc, which keeps hundreds of MiB after a class."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_giving_memory_back() -> None:
    """Look for what ended sessions left, and give memory back, every `SECONDS_BETWEEN_TRIMS`, in the background."""

    def repeat() -> None:
        while True:
            time.sleep(SECONDS_BETWEEN_TRIMS)
            gc.collect()
            give_memory_back()

    Thread(target=repeat, name="give memory back", daemon=True).start()
