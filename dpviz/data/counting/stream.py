"""The engine "duckdb": it counts files that need not fit in memory, block by block.

Blocks are read by several threads, and added up. With a person column, DuckDB sorts their rows by person, on disk if they do not fit in
memory, and each person's records are bounded while the sorted rows stream by; DuckDB opens no file of its own.
"""

from __future__ import annotations

import os

from dpviz.data.cell_counts import CellCounts, CellSums
from dpviz.data.counting.block import BlockStream, StreamSettings
from dpviz.data.counting.job import Job, Progress

DEFAULT_SETTINGS = StreamSettings()


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
