"""A DuckDB of one counting pass: shut off from the network and from other files, watched, and gone afterwards with all it spilled."""

from __future__ import annotations

import glob
import inspect
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from dpviz.data.counting.job import CountingPass, Watch, cancelled
from dpviz.data.reading.sources import memory_bytes
from dpviz.errors import DpvizError, InputError

T = TypeVar("T")

NO_ROOM = (
    "There is not enough memory and disk space to count these files: free some in the folder for temporary files, or set TMPDIR"
    " to a folder on a larger disk."
)
_TICK = 0.1
_MEMORY = 2 * 2**30
_MEMORY_SHARE = 1 / 4
_SHUT = {
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
}
_LATER = ("enable_geoparquet_conversion = false", "enable_progress_bar = true", "enable_progress_bar_print = false", "TimeZone = 'UTC'")


class UnreadableError(InputError):
    """DuckDB cannot read the files."""


@dataclass(frozen=True, kw_only=True)
class DuckDBSettings:
    """What DuckDB may take of the machine.

    Attributes:
        memory: bytes, before it spills to disk; 2 GiB if None, or a quarter of the machine's memory where that is less.
        threads: as many as there are processors if None.
        folder: where its private folder for spilling is made, and removed; the system's own for temporary files if None.
    """

    memory: int | None = None
    threads: int | None = None
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """An open DuckDB, and who follows it.

    Attributes:
        connection: shut off from all but the pass's files and the folder.
        folder: where it spills; private data.
        watch: who follows.
        errors: ours, raised within functions that DuckDB calls: it would hand on their text alone.
        damaged: what is said of files that cannot be read.
        read_share: the part of a file table that was read, where DuckDB does not read itself.
    """

    connection: duckdb.DuckDBPyConnection
    folder: Path
    watch: Watch
    damaged: str
    errors: list[DpvizError] = field(default_factory=list)
    read_share: Callable[[], float] | None = None

    def run(self, query: str, part: tuple[float, float]) -> None:
        """Run a statement without result, which is a part of the pass from 0 to 1."""
        self._followed(lambda: self.connection.execute(query) and None, part)

    def columns(self, query: str, part: tuple[float, float]) -> dict[str, Any]:
        """Column -> (n,) NumPy array of a query's result."""
        return self._followed(lambda: self.connection.execute(query).fetchnumpy(), part)

    def row(self, query: str, part: tuple[float, float]) -> tuple[Any, ...]:
        """The first row of a query's result; all of it None where there is none."""
        found = self._followed(lambda: self.connection.execute(query).fetchone(), part)
        return () if found is None else tuple(found)

    def caught(self, work: Callable[..., T]) -> Callable[..., T]:
        """The same function, whose own errors are kept for the caller."""

        def run(*columns: Any) -> T:
            try:
                return work(*columns)
            except DpvizError as error:
                self.errors.append(error)
                raise

        return run

    def define(self, name: str, work: Callable[..., Any], inputs: Sequence[str], output: str) -> None:
        """Give SQL a function of whole Arrow columns, which sees missing cells too.

        Args:
            name: how SQL calls it.
            work: (n,) columns to one of the same length.
            inputs: their types in SQL.
            output: its type.
        """
        run: Any = self.caught(work)
        run.__signature__ = inspect.Signature(
            [inspect.Parameter(f"c{place}", inspect.Parameter.POSITIONAL_ONLY) for place in range(len(inputs))]
        )
        create: Any = self.connection.create_function
        create(name, run, list(inputs), output, type="arrow", null_handling="special")

    def _followed(self, work: Callable[[], T], part: tuple[float, float]) -> T:
        """What `work` gives, in a thread of its own; progress is told, and the end asked for, in the caller's.

        Raises:
            InputError: DuckDB failed: in words of ours, without a cause, because its own may quote cells.
            DpvizError: cancelled.
        """
        self.watch.at(part[0])
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            try:
                while not wait([future], _TICK).done:
                    self.watch.at(part[0] + (part[1] - part[0]) * self._done())
            except BaseException:
                self._end(future)
                raise
        failed = future.exception()
        if failed is not None:
            raise self._told(failed)
        return future.result()

    def _done(self) -> float:
        if self.read_share is not None:
            return self.read_share()
        done = -1.0
        with suppress(Exception):
            done = self.connection.query_progress() / 100
        return min(max(done, 0.0), 1.0)

    def _end(self, future: Future[T]) -> None:
        while not wait([future], _TICK / 2).done:  # an interrupt between two statements is lost
            self.connection.interrupt()

    def _told(self, failed: BaseException) -> DpvizError:

        if self.errors:
            return type(self.errors[0])(*self.errors[0].args)
        if isinstance(failed, duckdb.InterruptException):
            return cancelled()
        text = str(failed)
        spilling = str(self.folder) in text or "temp_directory" in text or "No space left" in text
        if spilling or isinstance(failed, duckdb.OutOfMemoryException | MemoryError):
            return InputError(NO_ROOM)
        return UnreadableError(self.damaged)


@contextmanager
def connected(asked: CountingPass, folder: Path, settings: DuckDBSettings) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in memory that may read the pass's files and spill to a folder, and nothing else.

    Raises:
        InputError: the folder cannot be used.
    """
    connection = None
    with suppress(duckdb.Error):
        connection = duckdb.connect(":memory:", config=_options(folder, settings))
        for option in (*_LATER, f"allowed_paths = {quote_list(allowed(asked))}", "enable_external_access = false"):
            connection.execute(f"SET {option}")
        connection.execute("SET lock_configuration = true")
    if connection is None:
        raise InputError(NO_ROOM)
    try:
        yield connection
    finally:
        connection.close()


def _options(folder: Path, settings: DuckDBSettings) -> dict[str, Any]:
    memory = settings.memory or min(_MEMORY, int(memory_bytes() * _MEMORY_SHARE))
    threads = {} if settings.threads is None else {"threads": settings.threads}
    return _SHUT | threads | {"memory_limit": f"{memory // 1024} KiB", "temp_directory": str(folder)}


def allowed(asked: CountingPass) -> list[str]:
    """Paths that DuckDB opens itself: the files of a pass, also as the patterns that stand for each of them alone."""
    if asked.is_text:
        return []
    return [text for path in asked.files for text in (str(path), glob.escape(str(path)))]


def quote(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def quote_list(texts: list[str]) -> str:
    """A list of texts as SQL writes it."""
    return f"[{', '.join(map(quote, texts))}]"
