"""One piece of work in the background of a page: it says how far it is, can be stopped, and keeps what it has made.

A page reads a job; a job does not use the page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread, Timer
from typing import Any, Generic, TypeVar

from dpviz.app.server.class_limits import Check, Turns, hold_turn
from dpviz.app.server.class_mode import is_class
from dpviz.errors import DpvizError

WAITING, RUNNING, STOPPING, STOPPED, DONE, FAILED = "waiting", "running", "stopping", "stopped", "done", "failed"
SECONDS_TO_STOP = 10.0  # seconds in which stopped work ends
_SECONDS_BETWEEN_LOOKS = 0.02
Of = TypeVar("Of")


class StoppedError(Exception):
    """Raised inside a job, at the next check, to end it."""


@dataclass(kw_only=True, eq=False)
class Job(Generic[Of]):
    """Work in a thread of its own, which does not keep the server from ending.

    Attributes:
        run: does all of the work. It calls `check` between its steps, adds to `results`, and calls `report` for its progress.
        of: what the work is about; the job itself does not use it.
        name: of the work, in the text of an error.
        kind: a session keeps one job of each kind.
        key: identifies what is made.
        total: number of parts, such as releases; with all of them the job is done.
        made: number of parts that are made.
        step: how much of the next part is made, from 0 to 1.
        results: of the work so far; at first those of an earlier part of it.
        is_shared: whether other sessions may hold this job as well.
        patience: seconds to wait at most for the end of stopped work.
        error: why the work failed, without any text of a library; else "".
        stopped: set once the work is to end; what waits within the work may wait for it.

    >>> def run(job):
    ...     job.results.append("result")
    ...     job.report(1)
    >>> job = Job(run=run, of=None, name="example", kind="example")
    >>> job.start(patience=10.0)
    >>> job.state, job.results
    ('done', ['result'])
    """

    run: Callable[[Job[Of]], object]
    of: Of
    name: str
    kind: str
    key: Any = None
    total: int = 1
    made: int = 0
    step: float = 0.0
    results: list[Any] = field(default_factory=list)
    is_shared: bool = False
    patience: float = SECONDS_TO_STOP
    error: str = field(init=False, default="")
    stopped: Event = field(init=False, default_factory=Event)
    _waits: bool = field(init=False, default=False)
    _began: float = field(init=False, default_factory=time.monotonic)
    _ended: float | None = field(init=False, default=None)
    _holders: set[object] = field(init=False, default_factory=set)
    _left: object = field(init=False, default=None)  # stands for the last time when the last holder let go
    _lock: Any = field(init=False, default_factory=Lock)

    def __post_init__(self) -> None:
        self._thread = Thread(target=self._work, name=self.name, daemon=True)

    def start(self, patience: float = 0.0) -> None:
        """Start the thread; call it once. Wait up to `patience` seconds for its end."""
        self._thread.start()
        self._thread.join(patience)

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the end of a job that has been started, at most so many seconds."""
        self._thread.join(seconds)

    def wait_for_results(self, seconds: float) -> None:
        """Wait for the first results, or the end, at most so many seconds."""
        until = time.monotonic() + seconds
        while self._thread.is_alive() and not self.results and time.monotonic() < until:
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def stop(self, *, wait: bool = True) -> None:
        """End the work at its next check; what is made stays. With `wait`, wait for the end, as long as stopped work takes at most."""
        self.stopped.set()
        if wait and self._thread.is_alive():
            self._thread.join(self.patience)

    @property
    def state(self) -> str:
        """The state: waiting (for a turn in a class), running, stopping, stopped, done or failed; before the start, stopped or done."""
        if self.error:
            return FAILED
        if self._thread.is_alive():
            return STOPPING if self.stopped.is_set() else WAITING if self._waits else RUNNING
        return DONE if self.made >= self.total else STOPPED

    @property
    def is_running(self) -> bool:
        """Whether the work goes on: it is under way or waits for its turn, and is not to end."""
        return self.state in (WAITING, RUNNING)

    @property
    def has_ended(self) -> bool:
        """Whether nothing of the work is under way."""
        return self.state in (STOPPED, DONE, FAILED)

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        return min((self.made + self.step) / max(self.total, 1), 1.0)

    @property
    def seconds(self) -> float:
        """Seconds since the job was made; once the work has ended, until its end."""
        return (time.monotonic() if self._ended is None else self._ended) - self._began

    def report(self, made: int, step: float = 0.0) -> None:
        """Say how many parts are made, and how much of the next one; called by the work."""
        self.made, self.step = made, step

    def check(self) -> None:
        """Raise `StoppedError` once the work is to end; called by the work."""
        if self.stopped.is_set():
            raise StoppedError

    @contextmanager
    def turn(self, turns: Turns) -> Iterator[Check]:
        """Hold a turn of a class for a part of the work, see `hold_turn`; until it comes, the job is waiting."""
        self._waits = is_class()
        with hold_turn(turns, self.check) as check:
            self._waits = False
            yield check

    def hold(self, holder: object) -> bool:
        """Let a session hold this job, so that it goes on; return False if it is ending already."""
        with self._lock:
            if self.state == STOPPING:
                return False
            self._holders.add(holder)
            return True

    def let_go(self, holder: object, seconds: float = 0.0) -> bool:
        """Let a session hold this job no longer. If none holds it, it is stopped; if it is shared, after so many seconds.

        Returns:
            Whether other sessions hold it.
        """
        with self._lock:
            self._holders.discard(holder)
            if self._holders:
                return True
            if not (self.is_shared and seconds):
                self.stopped.set()
                return False
            self._left = object()
            timer = Timer(seconds, self._stop_unless_held, (self._left,))
            timer.daemon = True
            timer.start()
            return False

    def _stop_unless_held(self, left: object) -> None:
        with self._lock:
            if not self._holders and left is self._left:
                self.stopped.set()

    def _work(self) -> None:
        try:
            self.run(self)
        except StoppedError:
            pass
        except Exception as error:  # noqa: BLE001 - a thread has no caller that could catch it
            if not self.stopped.is_set():
                self.error = describe_failure(error, self.name)
        finally:
            self._ended = time.monotonic()


def describe_failure(error: Exception, name: str) -> str:
    """Say why some work failed: as dpviz words it; of another error only the type, since the text of a library could quote a cell.

    >>> describe_failure(ValueError("Rosa"), "study")
    'The study failed unexpectedly (ValueError).'
    """
    return str(error) if isinstance(error, DpvizError) else f"The {name} failed unexpectedly ({type(error).__name__})."
