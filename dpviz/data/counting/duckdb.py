"""DuckDB as the sort that spills to disk: rows stream in, and come out in the order of their persons.

It opens no network and no file but its own folder, and can be cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from dpviz.data.bounding import FEWER, REFUSE
from dpviz.data.counting.job import Progress, cancellation
from dpviz.data.counting.sorted_people import SortedPeople
from dpviz.data.reading.safety import private_folder
from dpviz.data.reading.sources import memory_bytes
from dpviz.errors import DpvizError, InputError

if TYPE_CHECKING:
    from dpviz.data.bounding import Bound
    from dpviz.data.cell_counts import CellSums
    from dpviz.data.counting.block import BlockStream, StreamSettings

NO_ROOM = (
    "There is not enough memory and disk space to count these files: free space in the folder for temporary files, or set TMPDIR"
    " to a folder on a larger disk."
)
_FAILED = "The rows could not be sorted by person."
_ROWS = "rows"
_SHARE_OF_READING = 0.7  # of the time that a count by person takes
_WAIT_SECONDS = 0.1
_BATCH_ROWS = 2**17
_MEMORY = 640 * 2**20  # a sort that spills is hardly faster with more
_MEMORY_SHARE = 1 / 4
_INT32 = 2**31
_CLOSED_SETTINGS = {
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
}


def add_people(stream: BlockStream, bound: Bound, sums: CellSums, progress: Progress, settings: StreamSettings) -> None:
    """Bound each person's records in the blocks of a job, and add up those that are kept.

    Args:
        stream: the blocks.
        bound: that of the job.
        sums: where kept records are added.
        progress: reports progress, and can cancel.
        settings: DuckDB's memory, threads and folder.

    Raises:
        InputError: the files cannot be read, or there is no room to spill; a row is bad and bad rows are refused; or a person has fewer
            records than was declared, and such people are refused.
        DpvizError: the count was cancelled.
    """
    job = stream.job
    people = SortedPeople(bound=bound, sums=sums)
    kinds = {"person": pa.int64() if job.persons_are_numbers else pa.large_string()}
    kinds |= {"cell": pa.int32() if sums.size <= _INT32 else pa.int64()} | ({} if job.count is None else {"amount": pa.int64()})
    schema = pa.schema(kinds)

    def batches() -> Iterator[pa.RecordBatch]:
        for block in stream.blocks():
            columns = [block.persons, block.cells.astype(schema.field("cell").type.to_pandas_dtype(), copy=False), block.records]
            yield pa.record_batch([pa.array(column) for column in columns if column is not None], schema=schema)

    def take(batch: pa.RecordBatch) -> None:
        cells, *amounts = (batch.column(name).to_numpy().astype(np.int64, copy=False) for name in batch.schema.names[1:])
        people.add(batch.column(0), cells, *(amounts or [None]))

    with private_folder(settings.folder) as folder, connect(folder, settings) as connection:
        session = Session(connection=connection, folder=folder, progress=progress.part(0.0, _SHARE_OF_READING), share=lambda: stream.share)
        connection.register(_ROWS, pa.RecordBatchReader.from_batches(schema, session.keep_errors(batches())))
        session.stream(f"FROM {_ROWS} ORDER BY person, cell", take)
    people.finish()
    job.refuse(stream.totals, stream.bad)
    if people.fewer and bound.fewer == REFUSE:
        raise InputError(FEWER)


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """An open DuckDB.

    Attributes:
        connection: a connection that may open the folder, and nothing else.
        folder: the folder to which DuckDB spills private data.
        progress: reports progress, and can cancel.
        share: a function that returns the share of the rows that was read, 0 to 1.
        errors: errors raised where DuckDB reads rows. DuckDB would pass on only their texts.
        stopped: is set once the job was cancelled.
    """

    connection: duckdb.DuckDBPyConnection
    folder: Path
    progress: Progress
    share: Callable[[], float]
    errors: list[DpvizError] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def keep_errors(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches, and add a dpviz error that ends them to `errors`."""
        try:
            yield from batches
        except DpvizError as error:
            self.errors.append(error)
            raise

    def stream(self, query: str, take: Callable[[pa.RecordBatch], object]) -> None:
        """Call a function with the rows of a query's result, a batch at a time, in another thread; this one reports and can cancel.

        Raises:
            InputError: DuckDB failed. The error has our text and no cause, because DuckDB's own text may quote entries.
            DpvizError: the job was cancelled.
        """

        def take_all() -> None:
            for batch in self.connection.sql(query).to_arrow_reader(_BATCH_ROWS):
                if self.stopped.is_set():
                    raise cancellation()
                take(batch)

        self.progress.report(0.0)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(take_all)
            try:
                while not wait([future], _WAIT_SECONDS).done:
                    self.progress.report(self.share())
            except BaseException:
                self.stopped.set()
                while not wait([future], _WAIT_SECONDS / 2).done:  # repeatedly, because an interrupt between two statements has no effect
                    self.connection.interrupt()
                raise
        failed = future.exception()
        if failed is not None:
            raise self._convert_error(failed)

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
        return InputError(_FAILED)


@contextmanager
def connect(folder: Path, settings: StreamSettings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB in memory that may spill to a folder, and open nothing else.

    Raises:
        InputError: the folder cannot be used.
    """
    connection = None
    memory = settings.memory or min(_MEMORY, int(memory_bytes() * _MEMORY_SHARE))
    threads = {} if settings.threads is None else {"threads": settings.threads}
    options: dict[str, Any] = _CLOSED_SETTINGS | threads | {"memory_limit": f"{memory // 1024} KiB", "temp_directory": str(folder)}
    with suppress(duckdb.Error):
        connection = duckdb.connect(":memory:", config=options)
        for option in ("TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true"):
            connection.execute(f"SET {option}")
    if connection is None:
        raise InputError(NO_ROOM)
    try:
        yield connection
    finally:
        connection.close()
