"""The engine "duckdb": it counts files that need not fit in memory, block by block.

Blocks are read by several threads, and added up. With a person column, DuckDB sorts their rows by person, on disk if they do not fit in
memory, and each person's records are bounded while the sorted rows stream by; DuckDB opens no file of its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from dpviz.data.cell_counts import CellCounts, CellSums, Totals
from dpviz.data.counting.block import NO_PARQUET, Block, Part, blocks_of, parquet_parts, row_groups, text_parts
from dpviz.data.counting.job import Job, Progress
from dpviz.data.reading.text_rows import NO_BAD_LINES, NOT_CUT, BadLines
from dpviz.errors import DpvizError, InputError

_PART_ROWS = 2**20  # of Parquet files


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """What the engine may use of the machine.

    Attributes:
        memory: bytes that DuckDB uses before it spills to disk; if None, 640 MiB, or a quarter of the machine's memory where that is less.
        threads: number of threads; the number of processors if None.
        folder: the folder in which a private folder for spilling is made, and later removed; the system's temporary folder if None.
    """

    memory: int | None = None
    threads: int | None = None
    folder: Path | None = None


DEFAULT_SETTINGS = StreamSettings()


@dataclass(kw_only=True, eq=False)
class BlockStream:
    """The blocks of all files of a job, which several threads read. It can be read once. PRIVATE.

    Attributes:
        job: what is counted.
        threads: number of threads.
        totals: what the rows that were read so far add up to.
        bad: their bad lines.
        read: how many bytes were read so far, about.
    """

    job: Job
    threads: int
    totals: Totals = field(default_factory=Totals, repr=False)
    bad: BadLines = field(default=NO_BAD_LINES, repr=False)
    read: float = field(default=0, repr=False)

    @property
    def share(self) -> float:
        """The approximate share of all bytes that was read, from 0 to 1."""
        return min(self.read / self.job.size, 1.0) if self.job.size else 0.0

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, a few of which are read ahead.

        Raises:
            InputError: a file cannot be read.
        """
        with ThreadPoolExecutor(self.threads) as pool:
            parts = self._parts()
            ahead = deque[tuple[Iterator[Block], Future[Block | None]]]()
            while True:
                while len(ahead) <= self.threads and (part := next(parts, None)) is not None:
                    blocks = blocks_of(part, self.job)
                    ahead.append((blocks, pool.submit(next, blocks, None)))
                if not ahead:
                    return
                blocks, future = ahead.popleft()
                if (block := self._result(future)) is not None:
                    ahead.append((blocks, pool.submit(next, blocks, None)))
                    self.totals, self.bad, self.read = self.totals + block.totals, self.bad + block.bad, self.read + block.read
                    yield block

    def _result(self, future: Future[Block | None]) -> Block | None:
        """Return a block once it was read. An error of a library gets our text and no cause, because its own may quote entries."""
        error = future.exception()
        if isinstance(error, DpvizError | MemoryError) or (error is not None and not isinstance(error, Exception)):
            raise error
        if error is not None:
            raise InputError(NOT_CUT if self.job.is_text else NO_PARQUET)
        return future.result()

    def _parts(self) -> Iterator[Part]:
        for path in self.job.files:
            if self.job.is_text:
                yield from text_parts(path, self.job)
            else:
                yield from parquet_parts(path, row_groups(path), _PART_ROWS)


def count_stream(job: Job, progress: Progress, settings: StreamSettings = DEFAULT_SETTINGS) -> CellCounts:
    """Count all rows of some files. Data that are spilled to disk are removed, even if the count fails.

    Args:
        job: the files, Parquet, CSV or TSV, and what is counted in them.
        progress: reports progress, and can cancel.
        settings: the threads, and the memory and folder of DuckDB.

    Raises:
        InputError: the files cannot be read, a row is bad and bad rows are refused, or there is no room to spill.
        DpvizError: the count was cancelled.
    """
    progress.report(0.0)
    stream = BlockStream(job=job, threads=settings.threads or os.cpu_count() or 1)
    sums = CellSums(size=job.finder.size)
    if job.bound is None:
        for block in stream.blocks():
            sums.add(block.cells, block.records)
            progress.report(stream.share)
        job.refuse(stream.totals, stream.bad)
    else:
        from dpviz.data.counting.duckdb import add_people  # noqa: PLC0415  (DuckDB is an extra)

        add_people(stream, sums, progress, settings)
    progress.report(1.0)
    return sums.counts(stream.totals, stream.bad.total)
