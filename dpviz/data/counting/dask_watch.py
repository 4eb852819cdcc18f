"""Wait for a cluster: what is done, whether it is to end, and whether anybody is left to do it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future as ThreadFuture
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Client, Future, KilledWorker
from distributed.diagnostics.progressbar import ProgressBar

from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.job import Watch

SILENT_SECONDS = 60
_LOOK_SECONDS = 0.05
_BEAT_SECONDS = 2.0
LOST = "The connection to the Dask scheduler was lost, and nothing was kept: look after the cluster, then count again."
NO_WORKERS = f"The Dask cluster has had no worker for {SILENT_SECONDS} seconds: start workers, then count again."
_DIED = "Workers of the Dask cluster ended over one part of the data, several times: give each of them more memory."
_NO_DISK = "A Dask worker has no room left on its disk for intermediate data: free some, or give the workers another folder."
NO_MEMORY = "A Dask worker has too little memory for its part of the data: give each worker more, or start fewer of them."
_NO_DPVIZ = "A Dask worker has no dpviz: install the version that is installed here, with its extra 'scale', on every worker."
_OTHER_DPVIZ = "A Dask worker has another version of dpviz: install the one that is installed here on every worker."
FAILED = "A Dask worker failed at its part of the data. Are Dask, pandas, pyarrow and dpviz of one version everywhere?"


def check_workers(client: Client, watch: Watch) -> int:
    """Wait for a worker, and see that all have this very code; how many threads they have.

    Raises:
        InputError: no worker came within SILENT_SECONDS, or one has another dpviz or none.
        DpvizError: the pass was cancelled.
    """
    end = time.monotonic() + SILENT_SECONDS
    while not (threads := _asked(client, _threads(client))):
        watch.at(0.0)
        if time.monotonic() > end:
            raise InputError(NO_WORKERS)
        time.sleep(_LOOK_SECONDS)
    there = _asked(client, _everywhere(client, find_spec, "dpviz"))
    if not all(there.values()):
        raise InputError(_NO_DPVIZ)
    code, own = _asked(client, _everywhere(client, code_digest)), _own_digest()
    if any(digest != own for digest in code.values()):
        raise InputError(_OTHER_DPVIZ)
    return sum(threads.values())


def code_digest() -> str:
    """A digest of the code that decides what is counted."""
    rooms = Path(__file__).parents[2]
    texts = [path.read_bytes() for room in ("data", "space") for path in sorted((rooms / room).rglob("*.py"))]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()


_own_digest = code_digest  # a name of its own, which no worker looks up


def _asked(client: Client, question: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What a coroutine gives on the client's loop.

    Raises:
        InputError: nothing within SILENT_SECONDS.
    """
    answer = _running(client, question)
    with suppress(Exception):
        found: dict[str, Any] = answer.result(SILENT_SECONDS)
        return found
    answer.cancel()
    raise InputError(LOST)


def _running(client: Client, question: Coroutine[Any, Any, Any]) -> ThreadFuture[Any]:
    """A coroutine on the client's loop, which runs in a thread of its own."""
    loop: Any = client.loop
    return asyncio.run_coroutine_threadsafe(question, loop.asyncio_loop)


def _scheduler(client: Client) -> Any:
    """Where the scheduler answers questions."""
    return client.scheduler


async def _everywhere(client: Client, question: Callable[..., Any], *given: Any) -> dict[str, Any]:
    """Answers of all workers; None where one could not even read the question."""
    found = await client.run(question, *given, on_error="return")
    return {worker: None if isinstance(answer, BaseException) else answer for worker, answer in found.items()}


def result_of(client: Client, work: Future[Any], watch: Watch, share: float = 1.0) -> Any:
    """What a future gives.

    Args:
        client: of the cluster.
        work: the future.
        watch: who is told of progress, and may end the work.
        share: of the whole progress.

    Raises:
        InputError: the work failed; the scheduler is lost, at once where the connection broke, after SILENT_SECONDS where it is
            silent; there was no worker for SILENT_SECONDS.
        DpvizError: the pass was cancelled.
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
        except Exception as found:  # noqa: BLE001  (what workers raise has no common root; its text could quote a cell)
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
    """The part of all tasks that is done."""

    done = 0.0

    def _draw_bar(self, remaining: int, all: int, **_rest: Any) -> None:  # noqa: A002  (the caller's name)
        self.done = max(self.done, 1 - remaining / all if all else 0.0)


@contextmanager
def _bar(client: Client, work: Future[Any]) -> Iterator[_Bar]:
    bar = _Bar([work], scheduler=_scheduler(client).address)  # type: ignore[no-untyped-call]
    listening = _running(client, _quiet(bar))
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
    """Asks the scheduler now and then how many threads there are."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: ThreadFuture[Any] | None = None
        self._heard = self._staffed = self._sent = time.monotonic()

    def check(self) -> None:
        """Look at the last answer, and ask again if it is time.

        Raises:
            InputError: no answer or no worker for too long, or the connection is lost.
        """
        now = time.monotonic()
        if self._client.status != "running":
            raise InputError(LOST)
        if self._asked is not None and self._asked.done():
            with suppress(Exception):
                self._heard, workers = now, self._asked.result()
                self._staffed = now if workers else self._staffed
            self._asked = None
        if self._asked is None and now - self._sent > _BEAT_SECONDS:
            self._sent = now
            self._asked = _running(self._client, _threads(self._client))
        if now - self._heard > SILENT_SECONDS:
            raise InputError(LOST)
        if now - self._staffed > SILENT_SECONDS:
            raise InputError(NO_WORKERS)

    def stop(self) -> None:
        """Ask no more."""
        if self._asked is not None:
            self._asked.cancel()


async def _threads(client: Client) -> dict[str, int]:
    found: dict[str, int] = await _scheduler(client).ncores(workers=None)
    return found
