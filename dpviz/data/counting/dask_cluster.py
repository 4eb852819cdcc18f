"""The cluster of a Dask job, and the wait for its results. Workers are processes of this machine, or those of a scheduler at an address."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future as ThreadFuture
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster
from distributed.diagnostics.progressbar import ProgressBar
from distributed.security import Security
from distributed.utils import silence_logging_cmgr

from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.reading.safety import private_folder
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.job import Progress

CONNECT_SECONDS = 10
START_SECONDS = 60
_END_SECONDS = 20
_KEEP_MEMORY = {  # freed arrays are used again: asking the system for fresh pages costs more than counting
    "MALLOC_TRIM_THRESHOLD_": 2**30,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1),
}
NOT_STARTED = (
    "Dask's workers could not be started on this machine: is there memory for them, and room in the folder for temporary files?"
    " Take fewer workers, or another engine."
)


@dataclass(frozen=True, kw_only=True)
class DaskCluster:
    """The workers that count.

    Attributes:
        scheduler: a scheduler that runs already; None for workers of this machine.
        workers: number of processes of this machine, of one thread each; the number of its processors if None.

    Raises:
        InputError: the number of workers is under 1, or is given beside a scheduler.
    """

    scheduler: Scheduler | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is None:
            return
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise InputError("workers must be a whole number, at least 1.")
        if self.scheduler is not None:
            raise InputError("workers are those that the cluster at the address has: leave the number out.")


@contextmanager
def connect(cluster: DaskCluster) -> Iterator[Client]:
    """Open a client of the cluster. Afterwards close the client, and end the workers of this machine that were started for it.

    Raises:
        InputError: the cluster does not start, or does not answer within CONNECT_SECONDS.
    """
    with silence_logging_cmgr("CRITICAL"):  # log texts quote addresses, keys and the arguments of tasks
        if cluster.scheduler is not None:
            with _client(cluster.scheduler.address, None) as client:
                yield client
        else:
            with _own_cluster(cluster.workers or os.cpu_count() or 1) as (address, security), _client(address, security) as client:
                yield client


@contextmanager
def _client(address: str, security: Security | None) -> Iterator[Client]:
    client = None
    with suppress(OSError, ValueError, TypeError, ImportError, RuntimeError), dask.config.set({"distributed.comm.retry.count": 0}):
        client = Client(address, timeout=CONNECT_SECONDS, security=security, set_as_default=False)  # type: ignore[no-untyped-call]
    if client is None:
        raise InputError(
            f"No Dask scheduler answers at the address within {CONNECT_SECONDS} seconds: is it running, is the address right,"
            " and may this machine reach it?"
        )
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]


@contextmanager
def _own_cluster(workers: int) -> Iterator[tuple[str, Security]]:
    """Start a process that starts workers, and yield their address and credentials. The workers end with this process, however it ends.

    The process between this one and the workers keeps the caller's main module, log and signals away from the workers.
    """
    with private_folder() as folder:
        process = _start_process(folder, workers)
        try:
            facts = _first_line(process)
            if facts is None:
                raise InputError(NOT_STARTED)
            yield facts["address"], Security(require_encryption=True, **facts["security"])  # type: ignore[no-untyped-call]
        finally:
            _end(process)


def _start_process(folder: Path, workers: int) -> subprocess.Popen[str]:
    paths = os.pathsep.join(dict.fromkeys([str(Path(__file__).parents[3]), *filter(None, sys.path)]))
    with suppress(OSError):
        return subprocess.Popen(  # noqa: S603  (this file, with our own arguments)
            [sys.executable, "-m", __name__, str(folder), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # signals to our process group do not reach the process, so that it can clean up
            env=os.environ | {"PYTHONPATH": paths},
        )
    raise InputError(NOT_STARTED)


def _first_line(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Read the line that the process prints once its workers run; None if the process ended, or took more than START_SECONDS."""
    assert process.stdout is not None  # noqa: S101  (for the type checker: it is a pipe)
    late = threading.Timer(START_SECONDS, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        late.cancel()
    facts: dict[str, Any] | None = json.loads(line) if line.endswith("\n") else None
    return facts


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None  # noqa: S101
    assert process.stdout is not None  # noqa: S101
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # the workers end with the process
        process.wait()
    process.stdout.close()


def _serve(folder: str, workers: int) -> None:
    """Start workers, print their address and credentials, and end them when standard input ends."""
    quiet: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": _KEEP_MEMORY,
        "distributed.comm.timeouts.connect": START_SECONDS,  # on a busy machine a killed worker may take long to restart
    }
    with dask.config.set(quiet):
        security = _credentials()
        cluster = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            local_directory=folder,
            security=security,
        )
        with cluster:
            sys.stdout.write(json.dumps({"address": cluster.scheduler_address, "security": _shown(security)}) + "\n")
            sys.stdout.flush()
            sys.stdin.read()
    shutil.rmtree(folder, ignore_errors=True)


def _credentials() -> Security:
    """Make fresh certificates. Workers run any code that they are sent, so no other process of this machine may connect to them."""
    return Security.temporary()  # type: ignore[no-untyped-call,no-any-return]


def _shown(security: Security) -> dict[str, str]:
    return {name: str(getattr(security, name)) for name in ("tls_ca_file", "tls_client_key", "tls_client_cert")}


SILENT_SECONDS = 60
_LOOK_SECONDS = 0.05
_BEAT_SECONDS = 2.0
LOST = "The connection to the Dask scheduler was lost, and nothing was kept: check the cluster, then count again."
NO_WORKERS = f"The Dask cluster has had no worker for {SILENT_SECONDS} seconds: start workers, then count again."
_DIED = "Workers of the Dask cluster ended over one part of the data, several times: give each of them more memory."
_NO_DISK = "A Dask worker has no room left on its disk for intermediate data: free some, or give the workers another folder."
NO_MEMORY = "A Dask worker has too little memory for its part of the data: give each worker more, or start fewer of them."
_NO_DPVIZ = "A Dask worker has no dpviz: install the version that is installed here, with its extra 'scale', on every worker."
_OTHER_DPVIZ = "A Dask worker has another version of dpviz: install the one that is installed here on every worker."
FAILED = "A Dask worker failed at its part of the data. Are Dask, pandas, pyarrow and dpviz of one version everywhere?"


def check_workers(client: Client, watch: Progress) -> int:
    """Wait for a worker, check that all have the same code as this process, and return how many threads they have.

    Raises:
        InputError: no worker came within SILENT_SECONDS, or a worker has no dpviz or another version of it.
        DpvizError: the count was cancelled.
    """
    end = time.monotonic() + SILENT_SECONDS
    while not (threads := _answer_of(client, _threads(client))):
        watch.at(0.0)
        if time.monotonic() > end:
            raise InputError(NO_WORKERS)
        time.sleep(_LOOK_SECONDS)
    there = _answer_of(client, _everywhere(client, find_spec, "dpviz"))
    if not all(there.values()):
        raise InputError(_NO_DPVIZ)
    code, own = _answer_of(client, _everywhere(client, code_digest)), _own_digest()
    if any(digest != own for digest in code.values()):
        raise InputError(_OTHER_DPVIZ)
    return sum(threads.values())


def code_digest() -> str:
    """Return a digest of the code that decides what is counted."""
    rooms = Path(__file__).parents[2]
    texts = [path.read_bytes() for room in ("data", "space") for path in sorted((rooms / room).rglob("*.py"))]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()


_own_digest = code_digest  # workers look up `code_digest` by its name; a test can change this one alone


def _answer_of(client: Client, question: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a coroutine on the client's loop.

    Raises:
        InputError: the coroutine fails, or has no result within SILENT_SECONDS.
    """
    answer = _start(client, question)
    with suppress(Exception):
        found: dict[str, Any] = answer.result(SILENT_SECONDS)
        return found
    answer.cancel()
    raise InputError(LOST)


def _start(client: Client, question: Coroutine[Any, Any, Any]) -> ThreadFuture[Any]:
    """Start a coroutine on the client's loop, which runs in a thread of its own."""
    loop: Any = client.loop
    return asyncio.run_coroutine_threadsafe(question, loop.asyncio_loop)


def _scheduler(client: Client) -> Any:
    """Return the client's proxy of the scheduler, whose methods are coroutines."""
    return client.scheduler


async def _everywhere(client: Client, question: Callable[..., Any], *given: Any) -> dict[str, Any]:
    """Return the result of a function on each worker, None where the function failed."""
    found = await client.run(question, *given, on_error="return")
    return {worker: None if isinstance(answer, BaseException) else answer for worker, answer in found.items()}


def result_of(client: Client, work: Future[Any], watch: Progress, share: float = 1.0) -> Any:
    """Wait for the result of a future.

    Args:
        client: a client of the cluster.
        work: the future.
        watch: reports progress, and can cancel.
        share: the part of the whole job that this work is.

    Raises:
        InputError: the work failed; the connection to the scheduler broke; the scheduler was silent, or had no worker, for
            SILENT_SECONDS.
        DpvizError: the count was cancelled.
    """
    pulse = _Pulse(client)
    try:
        with _bar(client, work) as bar:
            while work.status == "pending":
                pulse.check()
                watch.at(share * bar.done)
                time.sleep(_LOOK_SECONDS)
        return _outcome(client, work)
    finally:
        pulse.stop()
        with suppress(Exception):
            work.release()  # type: ignore[no-untyped-call]


def _outcome(client: Client, work: Future[Any]) -> Any:
    error: BaseException | None = None
    if work.status in ("finished", "error"):
        try:
            return work.result(timeout=SILENT_SECONDS)
        except Exception as found:  # noqa: BLE001  (errors of workers have no common root; their texts could quote an entry)
            error = found
    raise InputError(_reason(client, error))


def _reason(client: Client, error: BaseException | None) -> str:
    if client.status != "running" or error is None or type(error).__name__.endswith("CancelledError"):
        return LOST
    if isinstance(error, KilledWorker):
        return _DIED
    if isinstance(error, MemoryError):
        return NO_MEMORY
    return _NO_DISK if isinstance(error, OSError) else FAILED


class _Bar(ProgressBar):
    """Dask's progress bar, which draws nothing and keeps in `done` the share of all tasks that are done, from 0 to 1."""

    done = 0.0

    def _draw_bar(self, remaining: int, all: int, **_rest: Any) -> None:  # noqa: A002  (the caller's name)
        self.done = max(self.done, 1 - remaining / all if all else 0.0)


@contextmanager
def _bar(client: Client, work: Future[Any]) -> Iterator[_Bar]:
    bar = _Bar([work], scheduler=_scheduler(client).address)  # type: ignore[no-untyped-call]
    listening = _start(client, _quiet(bar))
    try:
        yield bar
    finally:
        listening.cancel()


async def _quiet(bar: _Bar) -> None:
    try:
        with suppress(Exception):
            await bar.listen()  # type: ignore[no-untyped-call]
    finally:
        with suppress(AttributeError):
            bar.comm.abort()


class _Pulse:
    """A question to the scheduler every few seconds: how many threads its workers have."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._request: ThreadFuture[Any] | None = None
        self._heard = self._staffed = self._sent = time.monotonic()

    def check(self) -> None:
        """Read the last answer, and ask again if it is time.

        Raises:
            InputError: there was no answer or no worker for SILENT_SECONDS, or the connection is lost.
        """
        now = time.monotonic()
        if self._client.status != "running":
            raise InputError(LOST)
        if self._request is not None and self._request.done():
            with suppress(Exception):
                self._heard, workers = now, self._request.result()
                self._staffed = now if workers else self._staffed
            self._request = None
        if self._request is None and now - self._sent > _BEAT_SECONDS:
            self._sent = now
            self._request = _start(self._client, _threads(self._client))
        if now - self._heard > SILENT_SECONDS:
            raise InputError(LOST)
        if now - self._staffed > SILENT_SECONDS:
            raise InputError(NO_WORKERS)

    def stop(self) -> None:
        """Cancel a question that has no answer yet."""
        if self._request is not None:
            self._request.cancel()


async def _threads(client: Client) -> dict[str, int]:
    found: dict[str, int] = await _scheduler(client).ncores(workers=None)
    return found


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
