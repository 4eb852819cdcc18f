"""Worker processes for studies: each gets the data once, makes runs one after the other, and ends when the process that started it ends.

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
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Self

from dpviz.errors import SettingError
from dpviz.evaluation.rows import Failure, Row, attempt, run_name
from dpviz.evaluation.study import Study

MOST_WORKERS = 64
RUNS_PER_WORKER = 2
"""Runs that a worker has at the same time: the current one, and the next one, so that it does not wait between them."""
_START = (
    "import pickle, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = pickle.load(sys.stdin.buffer);"
    " from dpviz.evaluation.workers import serve; serve()"
)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_ADVICE = "perhaps there is not enough memory: resume with fewer workers."
_NOT_STARTED = f"A worker of the study could not be started, or ended before its first run; {_ADVICE}"
NO_RUN = -1
"""The number of a failure outside of any run."""

Result = list[Row] | Failure


class WorkerPool:
    """Worker processes and the runs that they still have to make. The end of the `with` block kills the workers, whatever they are doing.

    If a worker ends in the middle of a run, this run counts as failed, and a fresh worker takes the ended one's place.

    Args:
        study: pickled once and sent to each worker.
        waiting: numbers of the runs in `study.runs()` that are still to be made. Workers take from the left end; other threads may, too.
        workers: number of workers.
        skipped: numbers of runs that are not made when their turn comes; other threads may add numbers.

    Raises:
        SettingError: a mechanism that no other process can import.
    """

    def __init__(self, study: Study, waiting: deque[int], workers: int, skipped: set[int]) -> None:
        self.ready = Event()
        self._waiting, self._skipped, self._results = waiting, skipped, SimpleQueue[tuple[int, Result | None]]()
        _refuse_unimportable(study)
        self._names = [run_name(run) for run in study.runs()]
        self._lock, self._closed = Lock(), False
        self._processes: list[subprocess.Popen[bytes]] = []
        pickled_study = pickle.dumps(study, pickle.HIGHEST_PROTOCOL)
        number = min(workers, MOST_WORKERS, max(len(waiting), 1))
        self._threads = [Thread(target=self._serve_one, args=(self._start_worker(), pickled_study), daemon=True) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._waiting.clear()
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):  # closing sends what is still buffered, and the worker that would read it has ended
                    stream.close()  # type: ignore[union-attr]

    def next(self, seconds: float) -> tuple[int, Result | None] | None:
        """Return the next finished run's number and result (None for a skipped run); None if no run finishes within some seconds."""
        try:
            return self._results.get(timeout=seconds)
        except Empty:
            return None

    def _start_worker(self) -> subprocess.Popen[bytes] | None:
        """Start a worker; return None if the pool is closed, or if the system cannot start a process."""
        with self._lock:
            if self._closed:
                return None
            try:
                self._processes.append(_start_process())
            except OSError:
                self._results.put((NO_RUN, Failure(text=_NOT_STARTED)))
                return None
            return self._processes[-1]

    def _serve_one(self, process: subprocess.Popen[bytes] | None, pickled_study: bytes) -> None:
        """Keep one worker busy, and replace it if it ends unexpectedly, until no run is left."""
        while process is not None:
            assigned: deque[int] = deque()
            try:
                self._feed_worker(process, pickled_study, assigned)
                process = None
            except (OSError, EOFError, pickle.UnpicklingError, ValueError):  # the worker was killed by `__exit__` or by the system
                process = self._start_worker() if self._fail_and_requeue(assigned) else None

    def _fail_and_requeue(self, assigned: deque[int]) -> bool:
        """Count the first run assigned to an ended worker as failed, and put its other runs back.

        Returns:
            Whether to start another worker: False if the worker ended before its first run.
        """
        if not assigned:
            self._results.put((NO_RUN, Failure(text=_NOT_STARTED)))
            return False
        number = assigned.popleft()
        self._results.put((number, Failure(text=f"{self._names[number]}: its worker ended unexpectedly; {_ADVICE}")))
        self._waiting.extendleft(reversed(assigned))
        return True

    def _feed_worker(self, process: subprocess.Popen[bytes], pickled_study: bytes, assigned: deque[int]) -> None:
        """Send one worker the study, then numbers of runs, and collect the results."""
        _send_message(process, sys.path)
        process.stdin.write(pickled_study)  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        _read_message(process)
        self.ready.set()
        while self._assign_runs(process, assigned):
            result = _read_message(process)
            self._results.put((assigned.popleft(), result))

    def _assign_runs(self, process: subprocess.Popen[bytes], assigned: deque[int]) -> bool:
        """Send runs until the worker holds `RUNS_PER_WORKER` runs; return whether it holds any."""
        while len(assigned) < RUNS_PER_WORKER:
            try:
                number = self._waiting.popleft()
            except IndexError:
                break
            if number in self._skipped:
                self._results.put((number, None))
                continue
            assigned.append(number)
            _send_message(process, number)
        return bool(assigned)


def serve() -> None:
    """Do the work of a worker process: read a study from standard input, then numbers of runs; write the rows of each run.

    A worker runs at a lower priority than the program that started it, so that a page stays responsive while its study runs.
    """
    if hasattr(os, "nice"):
        os.nice(10)
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a mechanism that prints must not write between the rows
    try:
        study: Study = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process that started this one)
        runs = study.runs()
        _write_message(stream, "ready")
        while True:
            _write_message(stream, attempt(study, runs[pickle.load(sys.stdin.buffer)]))  # noqa: S301
    except (EOFError, BrokenPipeError):  # the process that started this one has ended
        os._exit(0)


def _write_message(stream: Any, message: object) -> None:
    pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _start_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_ONE_THREAD},
    )


def _send_message(process: subprocess.Popen[bytes], message: object) -> None:
    _write_message(process.stdin, message)


def _read_message(process: subprocess.Popen[bytes]) -> Any:
    return pickle.load(process.stdout)  # type: ignore[arg-type]  # noqa: S301


def _refuse_unimportable(study: Study) -> None:
    for label, mechanism in study.mechanisms.items():
        kind = type(mechanism)
        if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
            raise SettingError(
                f"{label[:80]}: a mechanism that is defined in the running script cannot be imported by workers. Put it into a module,"
                " or compare with workers=1."
            )
