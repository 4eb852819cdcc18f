"""Where Dask works: worker processes of this machine that end with the pass, or a cluster that runs at an address."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.security import Security
from distributed.utils import silence_logging_cmgr

from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.reading.safety import private_folder
from dpviz.errors import InputError

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
    """Which workers count.

    Attributes:
        scheduler: that runs already; None for workers of this machine.
        workers: processes of this machine, of one thread each; as many as it has processors if None.

    Raises:
        InputError: a number of workers under 1 or beside a scheduler.
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
def connected(cluster: DaskCluster) -> Iterator[Client]:
    """A client of the cluster, whose workers all have this version of dpviz; nothing is left of it afterwards.

    Raises:
        InputError: it does not start, or answer within CONNECT_SECONDS; a worker has another dpviz or none.
    """
    with silence_logging_cmgr("CRITICAL"):  # its texts quote addresses, keys and what tasks were called with
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
    """Address and credentials of workers that a process of ours starts, and ends with us however we end.

    A process between keeps the callers' main module, their log and their signals apart from the workers.
    """
    with private_folder() as folder:
        process = _started(folder, workers)
        try:
            facts = _first_line(process)
            if facts is None:
                raise InputError(NOT_STARTED)
            yield facts["address"], Security(require_encryption=True, **facts["security"])  # type: ignore[no-untyped-call]
        finally:
            _end(process)


def _started(folder: Path, workers: int) -> subprocess.Popen[str]:
    paths = os.pathsep.join(dict.fromkeys([str(Path(__file__).parents[3]), *filter(None, sys.path)]))
    with suppress(OSError):
        return subprocess.Popen(  # noqa: S603  (this very file, with our own arguments)
            [sys.executable, "-m", __name__, str(folder), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a signal to our group leaves it the time to clean up after us
            env=os.environ | {"PYTHONPATH": paths},
        )
    raise InputError(NOT_STARTED)


def _first_line(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """What the process says once the workers are there; None if it ended, or took more than START_SECONDS."""
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
        process.kill()  # the workers watch it, and end too
        process.wait()
    process.stdout.close()


def _serve(folder: str, workers: int) -> None:
    """Start workers, say where, and end them when standard input ends."""
    quiet: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": _KEEP_MEMORY,
        "distributed.comm.timeouts.connect": START_SECONDS,  # a worker that was killed may take long to come back on a busy machine
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
    """Fresh certificates, so that nobody else on this machine can speak to the workers, which run what they are sent."""
    return Security.temporary()  # type: ignore[no-untyped-call,no-any-return]


def _shown(security: Security) -> dict[str, str]:
    return {name: str(getattr(security, name)) for name in ("tls_ca_file", "tls_client_key", "tls_client_cert")}


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
