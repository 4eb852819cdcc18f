"""A DuckDB session for one counting job: it opens no network and no other files, and can be cancelled."""

from __future__ import annotations

import glob
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from dpviz.data.counting.job import Job, Progress, cancellation
from dpviz.data.reading.sources import memory_bytes
from dpviz.errors import DpvizError, InputError

T = TypeVar("T")

NO_ROOM = (
    "There is not enough memory and disk space to count these files: free space in the folder for temporary files, or set TMPDIR"
    " to a folder on a larger disk."
)
_WAIT_SECONDS = 0.1
_BATCH_ROWS = 2**17
_MEMORY = 2 * 2**30
_MEMORY_TO_SORT = 640 * 2**20  # a sort that spills is hardly faster with more
_MEMORY_SHARE = 1 / 4
_CLOSED_SETTINGS = {
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
}
_SESSION_SETTINGS = (
    "enable_geoparquet_conversion = false",
    "enable_progress_bar = true",
    "enable_progress_bar_print = false",
    "TimeZone = 'UTC'",
)


class UnreadableError(InputError):
    """DuckDB cannot read the files."""


@dataclass(frozen=True, kw_only=True)
class DuckDBSettings:
    """What DuckDB may use of the machine.

    Attributes:
        memory: bytes that DuckDB uses before it spills to disk; if None, 2 GiB, or 640 MiB to sort people, or a quarter of the machine's
            memory where that is less.
        threads: number of threads; the number of processors if None.
        folder: the folder in which a private folder for spilling is made, and later removed; the system's temporary folder if None.
    """

    memory: int | None = None
    threads: int | None = None
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """An open DuckDB.

    Attributes:
        connection: a connection that may open the job's files and the folder, and nothing else.
        folder: the folder to which DuckDB spills private data.
        progress: reports progress, and can cancel.
        damaged: the error text for files that cannot be read.
        errors: dpviz errors raised in functions that DuckDB calls. DuckDB would pass on only their texts.
        read_share: a function that returns the share of the files that was read, 0 to 1; None where DuckDB reads the files itself.
        stopped: is set once the job was cancelled.
    """

    connection: duckdb.DuckDBPyConnection
    folder: Path
    progress: Progress
    damaged: str
    errors: list[DpvizError] = field(default_factory=list)
    read_share: Callable[[], float] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def columns(self, query: str, part: tuple[float, float]) -> dict[str, Any]:
        """Return the result of a query: column -> (n,) NumPy array.

        Args:
            query: SQL.
            part: the progress of the whole job before and after the query, from 0 to 1.
        """
        return self._run_watched(lambda: self.connection.execute(query).fetchnumpy(), part)

    def stream(self, query: str, take: Callable[[pa.RecordBatch], object], part: tuple[float, float]) -> None:
        """Call a function with the rows of a query's result, a batch at a time; arguments otherwise as for `columns`."""

        def take_all() -> None:
            for batch in self.connection.sql(query).to_arrow_reader(_BATCH_ROWS):
                if self.stopped.is_set():
                    raise cancellation()
                take(batch)

        self._run_watched(take_all, part)

    def keep_errors(self, function: Callable[..., T]) -> Callable[..., T]:
        """Wrap a function, so that the dpviz errors that it raises are added to `errors`."""

        def run(*columns: Any) -> T:
            try:
                return function(*columns)
            except DpvizError as error:
                self.errors.append(error)
                raise

        return run

    def define(self, name: str, function: Callable[..., Any], inputs: Sequence[str], output: str) -> None:
        """Define a function of SQL by a Python function of whole Arrow columns, which may have missing entries.

        Args:
            name: the function's name in SQL.
            function: takes (n,) Arrow columns, and returns a (n,) Arrow array.
            inputs: the types of the arguments in SQL.
            output: the type of the result in SQL.
        """
        run: Any = self.keep_errors(function)
        run.__signature__ = inspect.Signature(
            [inspect.Parameter(f"c{index}", inspect.Parameter.POSITIONAL_ONLY) for index in range(len(inputs))]
        )
        create: Any = self.connection.create_function
        create(name, run, list(inputs), output, type="arrow", null_handling="special")

    def _run_watched(self, work: Callable[[], T], part: tuple[float, float]) -> T:
        """Run `work` in another thread, while this thread reports progress and checks whether the job was cancelled.

        Raises:
            InputError: DuckDB failed. The error has our text and no cause, because DuckDB's own text may quote entries.
            DpvizError: the job was cancelled.
        """
        done = part[0]
        self.progress.report(done)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            try:
                while not wait([future], _WAIT_SECONDS).done:
                    done = max(done, part[0] + (part[1] - part[0]) * self._share_done())
                    self.progress.report(done)
            except BaseException:
                self._interrupt(future)
                raise
        failed = future.exception()
        if failed is not None:
            raise self._convert_error(failed)
        return future.result()

    def _share_done(self) -> float:
        if self.read_share is not None:
            return self.read_share()
        done = 0.0  # DuckDB itself reports -1 while it does not know
        with suppress(Exception):
            done = self.connection.query_progress() / 100
        return min(max(done, 0.0), 1.0)

    def _interrupt(self, future: Future[T]) -> None:
        self.stopped.set()
        while not wait([future], _WAIT_SECONDS / 2).done:  # repeatedly, because an interrupt between two statements has no effect
            self.connection.interrupt()

    def _convert_error(self, error: BaseException) -> DpvizError:
        """Return the dpviz error for an error that DuckDB raised."""
        if self.errors:
            return type(self.errors[0])(*self.errors[0].args)
        if isinstance(error, duckdb.InterruptException):
            return cancellation()
        text = str(error)
        no_room = any(words in text for words in (str(self.folder), "temp_directory", "No space left", "Out of Memory"))
        if no_room or isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            return InputError(NO_ROOM)
        return UnreadableError(self.damaged)


@contextmanager
def connect(job: Job, folder: Path, settings: DuckDBSettings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB in memory that may read the job's files and spill to a folder, and open nothing else.

    Raises:
        InputError: the folder cannot be used.
    """
    connection = None
    with suppress(duckdb.Error):
        connection = duckdb.connect(":memory:", config=_options(folder, settings, _MEMORY if job.person is None else _MEMORY_TO_SORT))
        for option in (*_SESSION_SETTINGS, f"allowed_paths = {quote_list(allowed_paths(job))}", "enable_external_access = false"):
            connection.execute(f"SET {option}")
        connection.execute("SET lock_configuration = true")
    if connection is None:
        raise InputError(NO_ROOM)
    try:
        yield connection
    finally:
        connection.close()


def _options(folder: Path, settings: DuckDBSettings, usual_memory: int) -> dict[str, Any]:
    memory = settings.memory or min(usual_memory, int(memory_bytes() * _MEMORY_SHARE))
    threads = {} if settings.threads is None else {"threads": settings.threads}
    return _CLOSED_SETTINGS | threads | {"memory_limit": f"{memory // 1024} KiB", "temp_directory": str(folder)}


def allowed_paths(job: Job) -> list[str]:
    """Return the paths that DuckDB may open: each of the job's files as its path, and as the glob pattern that matches only this path."""
    if job.is_text:
        return []
    return [text for path in job.files for text in (str(path), glob.escape(str(path)))]


def quote(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_list(texts: list[str]) -> str:
    """Return a list of texts as an SQL literal."""
    return f"[{', '.join(map(quote, texts))}]"
