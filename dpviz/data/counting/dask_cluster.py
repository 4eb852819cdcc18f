"""Connect to the Dask workers that count, and wait for their results. The workers run on this machine, or belong to a running scheduler."""

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

from dpviz.data.cells import check_whole
from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.reading.safety import private_folder
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.job import Progress

CONNECT_SECONDS = 10
START_SECONDS = 60
_END_SECONDS = 20
_WORKER_ENVIRONMENT = {  # workers keep freed memory for later arrays: getting new pages from the system takes longer than counting
    "MALLOC_TRIM_THRESHOLD_": 2**30,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1),
}
NOT_STARTED = (
    "Dask's workers could not be started on this machine: is there memory for them, and room in the folder for temporary files?"
    " Choose fewer workers, or another engine."
)


@dataclass(frozen=True, kw_only=True)
class DaskCluster:
    """The workers that count.

    Attributes:
        scheduler: a running scheduler; None for workers of this machine.
        workers: number of worker processes of this machine, one thread each; the number of its processors if None.

    Raises:
        InputError: the number of workers is under 1, or is given beside a scheduler.
    """

    scheduler: Scheduler | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is None:
            return
        check_whole(self.workers, "workers", 1)
        if self.scheduler is not None:
            raise InputError("The cluster at the address has its own number of workers: leave workers out.")


@contextmanager
def connect(cluster: DaskCluster) -> Iterator[Client]:
    """Open a client of the cluster. At the end the client is closed, and workers that were started on this machine end.

    Raises:
        InputError: the cluster does not start, or does not answer within CONNECT_SECONDS.
    """
    with silence_logging_cmgr("CRITICAL"):  # log texts quote addresses, keys and the arguments of tasks
        if cluster.scheduler is not None:
            with _client(cluster.scheduler.address, None) as client:
                yield client
        else:
            with _start_workers(cluster.workers or os.cpu_count() or 1) as (address, security), _client(address, security) as client:
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
def _start_workers(workers: int) -> Iterator[tuple[str, Security]]:
    """Start a process that starts workers, and yield their address and credentials. The workers end when the caller's process ends or dies.

    The started process shields the workers from the caller's main module, log and signals.
    """
    with private_folder() as folder:
        process = _start_process(folder, workers)
        try:
            address_and_security = _read_first_line(process)
            if address_and_security is None:
                raise InputError(NOT_STARTED)
            yield address_and_security["address"], Security(require_encryption=True, **address_and_security["security"])  # type: ignore[no-untyped-call]
        finally:
            _end_process(process)


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


def _read_first_line(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Read the address and credentials that the process prints once its workers run; None if it ends, or needs more than START_SECONDS."""
    assert process.stdout is not None  # noqa: S101  (for the type checker: it is a pipe)
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    address_and_security: dict[str, Any] | None = json.loads(line) if line.endswith("\n") else None
    return address_and_security


def _end_process(process: subprocess.Popen[str]) -> None:
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
    config: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": _WORKER_ENVIRONMENT,
        "distributed.comm.timeouts.connect": START_SECONDS,  # on a busy machine a killed worker may take long to restart
    }
    with dask.config.set(config):
        security = Security.temporary()  # type: ignore[no-untyped-call]  # so that no other process of this machine can connect to workers
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
            credentials = {name: str(getattr(security, name)) for name in ("tls_ca_file", "tls_client_key", "tls_client_cert")}
            sys.stdout.write(json.dumps({"address": cluster.scheduler_address, "security": credentials}) + "\n")
            sys.stdout.flush()
            sys.stdin.read()
    shutil.rmtree(folder, ignore_errors=True)


SILENT_SECONDS = 60  # a scheduler that does not answer, or has no worker, for so long counts as lost
_POLL_SECONDS = 0.05
_HEARTBEAT_SECONDS = 2.0
LOST = "The connection to the Dask scheduler was lost, and nothing was kept: check the cluster, then count again."
NO_WORKERS = f"The Dask cluster has had no worker for {SILENT_SECONDS} seconds: start workers, then count again."
_DIED = "Several workers of the Dask cluster ended while they counted the same part of the data: give each worker more memory."
_NO_DISK = "A Dask worker has no room left on its disk for intermediate data: free space, or give the workers another folder."
NO_MEMORY = "A Dask worker has too little memory for its part of the data: give each worker more, or start fewer workers."
_NO_DPVIZ = "A Dask worker has no dpviz: install the version that is installed here, with its extra 'scale', on every worker."
_OTHER_DPVIZ = "A Dask worker has another version of dpviz: install the one that is installed here on every worker."
FAILED = "A Dask worker failed at its part of the data. Have all machines the same versions of Dask, pandas, pyarrow and dpviz?"


def check_workers(client: Client, progress: Progress) -> int:
    """Wait for a worker, check that all workers have the code of this process, and return how many threads they have in all.

    Raises:
        InputError: there is no worker within SILENT_SECONDS, or a worker has no dpviz or another version of it.
        DpvizError: the count was cancelled.
    """
    end = time.monotonic() + SILENT_SECONDS
    while not (threads := _await_result(client, _count_threads(client))):
        progress.report(0.0)
        if time.monotonic() > end:
            raise InputError(NO_WORKERS)
        time.sleep(_POLL_SECONDS)
    installed = _await_result(client, _run_on_workers(client, find_spec, "dpviz"))
    if not all(installed.values()):
        raise InputError(_NO_DPVIZ)
    digests, own_digest = _await_result(client, _run_on_workers(client, code_digest)), _own_digest()
    if any(digest != own_digest for digest in digests.values()):
        raise InputError(_OTHER_DPVIZ)
    return sum(threads.values())


def code_digest() -> str:
    """Return a digest of the code that decides what is counted."""
    rooms = Path(__file__).parents[2]
    texts = [path.read_bytes() for room in ("data", "space") for path in sorted((rooms / room).rglob("*.py"))]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()


# A second name, which a test replaces to change the digest in this process only: workers call `code_digest`.
_own_digest = code_digest


def _await_result(client: Client, coroutine: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run a coroutine on the client's event loop, and wait for its result.

    Raises:
        InputError: the coroutine fails, or has no result within SILENT_SECONDS.
    """
    future = _start_coroutine(client, coroutine)
    with suppress(Exception):
        result: dict[str, Any] = future.result(SILENT_SECONDS)
        return result
    future.cancel()
    raise InputError(LOST)


def _start_coroutine(client: Client, coroutine: Coroutine[Any, Any, Any]) -> ThreadFuture[Any]:
    """Start a coroutine on the client's event loop, which runs in another thread."""
    loop: Any = client.loop
    return asyncio.run_coroutine_threadsafe(coroutine, loop.asyncio_loop)


def _scheduler(client: Client) -> Any:
    """Return the client's proxy of the scheduler, whose methods are coroutines."""
    return client.scheduler


async def _run_on_workers(client: Client, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Run a function on every worker. Return its result by the worker's address, None where it failed."""
    answers = await client.run(function, *arguments, on_error="return")
    return {worker: None if isinstance(answer, BaseException) else answer for worker, answer in answers.items()}


def wait_for_result(client: Client, future: Future[Any], progress: Progress) -> Any:
    """Wait for the result of a future.

    Args:
        client: a client of the cluster.
        future: what the workers compute.
        progress: reports progress, and can cancel.

    Raises:
        InputError: the workers failed; the connection to the scheduler broke; or the scheduler did not answer, or had no worker, for
            SILENT_SECONDS.
        DpvizError: the count was cancelled.
    """
    heartbeat = _Heartbeat(client)
    try:
        with _open_bar(client, future) as bar:
            while future.status == "pending":
                heartbeat.check()
                progress.report(bar.done)
                time.sleep(_POLL_SECONDS)
        return _get_result(client, future)
    finally:
        heartbeat.stop()
        with suppress(Exception):
            future.release()  # type: ignore[no-untyped-call]


def _get_result(client: Client, future: Future[Any]) -> Any:
    error: BaseException | None = None
    if future.status in ("finished", "error"):
        try:
            return future.result(timeout=SILENT_SECONDS)
        except Exception as failure:  # noqa: BLE001  (errors of workers have no common root; their texts could quote an entry)
            error = failure
    if client.status != "running" or error is None or type(error).__name__.endswith("CancelledError"):
        raise InputError(LOST)
    if isinstance(error, KilledWorker):
        raise InputError(_DIED)
    if isinstance(error, MemoryError):
        raise InputError(NO_MEMORY)
    raise InputError(_NO_DISK if isinstance(error, OSError) else FAILED)


class _Bar(ProgressBar):
    """Dask's progress bar without a picture: `done` is the share of all tasks that are done, from 0 to 1."""

    done = 0.0

    def _draw_bar(self, remaining: int, all: int, **_rest: Any) -> None:  # noqa: A002  (the caller's name)
        self.done = max(self.done, 1 - remaining / all if all else 0.0)


@contextmanager
def _open_bar(client: Client, future: Future[Any]) -> Iterator[_Bar]:
    bar = _Bar([future], scheduler=_scheduler(client).address)  # type: ignore[no-untyped-call]
    listening = _start_coroutine(client, _listen(bar))
    try:
        yield bar
    finally:
        listening.cancel()


async def _listen(bar: _Bar) -> None:
    try:
        with suppress(Exception):
            await bar.listen()  # type: ignore[no-untyped-call]
    finally:
        with suppress(AttributeError):
            bar.comm.abort()


class _Heartbeat:
    """Regular requests to the scheduler for the number of its workers' threads, which show when it or all workers are lost."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._request: ThreadFuture[Any] | None = None
        self._answered_at = self._had_workers_at = self._asked_at = time.monotonic()

    def check(self) -> None:
        """Read the last answer, and send the next request if `_HEARTBEAT_SECONDS` have passed.

        Raises:
            InputError: there was no answer or no worker for SILENT_SECONDS, or the connection is lost.
        """
        now = time.monotonic()
        if self._client.status != "running":
            raise InputError(LOST)
        if self._request is not None and self._request.done():
            with suppress(Exception):
                self._answered_at, workers = now, self._request.result()
                self._had_workers_at = now if workers else self._had_workers_at
            self._request = None
        if self._request is None and now - self._asked_at > _HEARTBEAT_SECONDS:
            self._asked_at = now
            self._request = _start_coroutine(self._client, _count_threads(self._client))
        if now - self._answered_at > SILENT_SECONDS:
            raise InputError(LOST)
        if now - self._had_workers_at > SILENT_SECONDS:
            raise InputError(NO_WORKERS)

    def stop(self) -> None:
        """Cancel a request that has no answer yet."""
        if self._request is not None:
            self._request.cancel()


async def _count_threads(client: Client) -> dict[str, int]:
    threads: dict[str, int] = await _scheduler(client).ncores(workers=None)
    return threads


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
