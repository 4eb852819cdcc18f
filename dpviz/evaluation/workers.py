"""Worker processes for studies: they get the data once, make runs one after the other, and end when the process that started them ends.

Each worker is a fresh interpreter that imports dpviz and the modules of the mechanisms, but never the program that started it. The pools
of the standard library import that program again, which in an app is the page itself. With these workers no program needs an
`if __name__ == "__main__"`, on any system.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Self

from dpviz.errors import SettingError
from dpviz.evaluation.rows import Failure, Row, attempt, run_name
from dpviz.evaluation.study import Study

MOST_WORKERS = 64
AHEAD = 2  # runs that a worker holds, so that it never waits for the next one
_START = (
    "import pickle, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = pickle.load(sys.stdin.buffer);"
    " from dpviz.evaluation.workers import serve; serve()"
)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_AGAIN = "perhaps there is not enough memory: resume with fewer workers."
_UNSTARTED = f"A worker of the study ended unexpectedly before its first run; {_AGAIN}"
NO_RUN = -1  # stands for a run's number in a failure outside of any run

Result = list[Row] | Failure


class Crew:
    """Worker processes and the runs that they still have to make. The end of the `with` block kills the workers, whatever they are doing.

    If a worker ends in the middle of a run, this run counts as failed, and a fresh worker takes the ended one's place.

    Args:
        study: pickled once and sent to each worker.
        left: numbers of the runs in `study.runs()` that are still to be made. Workers take from the left end; other threads may, too.
        workers: number of workers.
        skipped: numbers of runs that are not made when their turn comes; other threads may add numbers.

    Raises:
        SettingError: a mechanism that no other process can import.
    """

    def __init__(self, study: Study, left: deque[int], workers: int, skipped: set[int]) -> None:
        self.ready = Event()
        self._left, self._skipped, self._found = left, skipped, SimpleQueue[tuple[int, Result | None]]()
        _refuse_local(study)
        self._names = [run_name(run) for run in study.runs()]
        self._lock, self._closed = Lock(), False
        self._processes: list[subprocess.Popen[bytes]] = []
        sent = pickle.dumps(study, pickle.HIGHEST_PROTOCOL)
        many = min(workers, MOST_WORKERS, max(len(left), 1))
        self._threads = [Thread(target=self._serve_one, args=(self._started(), sent), daemon=True) for _ in range(many)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._left.clear()
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.wait()
            _close_pipes(process)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are alive."""
        return [process.pid for process in self._processes if process.poll() is None]

    def next(self, seconds: float) -> tuple[int, Result | None] | None:
        """Return the next finished run's number and result (None for a skipped run); None if no run finishes within some seconds."""
        try:
            return self._found.get(timeout=seconds)
        except Empty:
            return None

    def _started(self) -> subprocess.Popen[bytes] | None:
        """Start a worker; returns None if the crew has ended, or if the system cannot start a process."""
        with self._lock:
            if self._closed:
                return None
            try:
                self._processes.append(_started())
            except OSError:
                self._found.put((NO_RUN, Failure(text=_UNSTARTED)))
                return None
            return self._processes[-1]

    def _serve_one(self, process: subprocess.Popen[bytes] | None, sent: bytes) -> None:
        """Keep one worker busy, and replace it if it ends unexpectedly, until no run is left."""
        while process is not None:
            held: deque[int] = deque()
            try:
                self._feed_worker(process, sent, held)
                process = None
            except (OSError, EOFError, pickle.UnpicklingError, ValueError):  # it was killed, by us or by the system
                process = self._started() if self._give_back(held) else None

    def _give_back(self, held: deque[int]) -> bool:
        """Count the first run that an ended worker held as failed, and put its other runs back.

        Returns:
            Whether to start another worker: False if the worker ended before its first run.
        """
        if not held:
            self._found.put((NO_RUN, Failure(text=_UNSTARTED)))
            return False
        number = held.popleft()
        self._found.put((number, Failure(text=f"{self._names[number]}: its worker ended unexpectedly; {_AGAIN}")))
        self._left.extendleft(reversed(held))
        return True

    def _feed_worker(self, process: subprocess.Popen[bytes], sent: bytes, held: deque[int]) -> None:
        """Send one worker the study, then numbers of runs, and collect the results."""
        _send(process, sys.path)
        process.stdin.write(sent)  # type: ignore[union-attr]
        _receive(process)
        self.ready.set()
        while self._take(process, held):
            found = _receive(process)
            self._found.put((held.popleft(), found))

    def _take(self, process: subprocess.Popen[bytes], held: deque[int]) -> bool:
        """Send runs until the worker holds `AHEAD` runs; return whether it holds any."""
        while len(held) < AHEAD:
            try:
                number = self._left.popleft()
            except IndexError:
                break
            if number in self._skipped:
                self._found.put((number, None))
                continue
            held.append(number)
            _send(process, number)
        return bool(held)


def serve() -> None:
    """Do the work of a worker process: read a study from standard input, then numbers of runs; write the rows of each run.

    A worker runs at a lower priority than the program that started it, so that a page stays responsive while its study runs.
    """
    if hasattr(os, "nice"):
        os.nice(10)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a mechanism that prints must not write between the rows
    try:
        study: Study = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process that started this one)
        runs = study.runs()
        _answer(out, "ready")
        while True:
            _answer(out, attempt(study, runs[pickle.load(sys.stdin.buffer)]))  # noqa: S301
    except (EOFError, BrokenPipeError):  # the owner is gone
        os._exit(0)


def _answer(out: Any, what: object) -> None:
    pickle.dump(what, out, pickle.HIGHEST_PROTOCOL)
    out.flush()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_ONE_THREAD},
    )


def _send(process: subprocess.Popen[bytes], what: object) -> None:
    _answer(process.stdin, what)


def _receive(process: subprocess.Popen[bytes]) -> Any:
    return pickle.load(process.stdout)  # type: ignore[arg-type]  # noqa: S301


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        try:
            stream.close()  # type: ignore[union-attr]
        except OSError:  # what was still to be sent has no reader any more
            continue


def _refuse_local(study: Study) -> None:
    for label, mechanism in study.mechanisms.items():
        kind = type(mechanism)
        if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
            raise SettingError(
                f"{label[:80]}: a mechanism that is defined in the running script cannot be imported by workers. Put it into a module,"
                " or compare with workers=1."
            )
