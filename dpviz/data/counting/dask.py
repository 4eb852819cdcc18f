"""The engine "dask": workers count parts of files, and their tables are added up, a few at a time.

With a person column, Dask's shuffle brings all records of a person into one partition, by a keyed hash of the person, and the person's
records are bounded there. Functions that workers run never raise, because Dask would log their arguments: they return a fault as a
counter, and the client raises an error for it. Workers return sums and counters, never an entry of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dask
import dask.dataframe as dd
import pandas as pd
from dask.delayed import delayed

from dpviz.data.bounding import FEWER
from dpviz.data.cell_counts import CellCounts, CellSums, Totals
from dpviz.data.counting.block import (
    NO_PARQUET,
    OTHER_COLUMNS,
    Block,
    Part,
    UnreadPartError,
    blocks_of,
    parquet_parts,
    row_groups,
    text_parts,
)
from dpviz.data.counting.dask_cluster import FAILED, NO_MEMORY, DaskCluster, check_workers, connect, wait_for_result
from dpviz.data.counting.dask_tables import EMPTY, TableSums, Tally, bound_table, count_by_person, tally_table, without_person
from dpviz.data.counting.job import Job, Progress
from dpviz.data.reading.text_rows import NOT_CUT, BadLines
from dpviz.errors import InputError

__all__ = ["DaskCluster", "count_with_dask"]

if TYPE_CHECKING:
    from distributed import Client

    from dpviz.data.bounding import Bound

_MOST_ROWS_PER_PART, _LEAST_ROWS_PER_PART = 2**24, 2**17  # of Parquet files
_ROWS_PER_PARTITION = 2**21  # of people's records after the shuffle; also an estimate of the rows of a text part
_PARTS_PER_THREAD = 2
_TABLES_PER_TASK = 16  # that one Dask task adds up
_RETRIES = 3
_NO_SIZE_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 GB"}  # polygons of many regions are sent once, and are large
_REASONS = {
    Tally.ABSENT: "A Dask worker cannot open the files: every worker must see them at the paths that are given here.",
    Tally.DIFFERENT: OTHER_COLUMNS,
    Tally.MEMORY: NO_MEMORY,
    Tally.FAILED: FAILED,
}


def count_with_dask(job: Job, progress: Progress | None = None, cluster: DaskCluster | None = None) -> CellCounts:
    """Count records per cell with the workers of a Dask cluster.

    Args:
        job: what is counted; every worker must see the files at the same paths.
        progress: reports progress, and can cancel.
        cluster: the workers; if None, new ones on this machine, which end with the count.

    Returns:
        The private counts, the same as from every other engine, even if a worker was lost and its work was done again.

    Raises:
        InputError: a file or the cluster cannot be used; a row is bad and bad rows are refused; the scheduler or all workers are lost.
        DpvizError: the count was cancelled.
    """
    progress = progress or Progress()
    progress.report(0.0)
    with connect(cluster or DaskCluster()) as client:
        return count_with_client(client, job, progress)


def count_with_client(client: Client, job: Job, progress: Progress) -> CellCounts:
    """Count as `count_with_dask` does, with the workers of an open client."""
    threads = check_workers(client, progress)
    parts, rows = _split_files(job, threads)
    sums = EMPTY
    if parts:
        partitions = max(min(len(parts), 2 * threads), -(-rows // _ROWS_PER_PARTITION))
        with dask.config.set(_NO_SIZE_WARNING):
            future = client.compute(_plan_count(job, parts, partitions), retries=_RETRIES)  # type: ignore[no-untyped-call]
        sums = wait_for_result(client, future, progress)
    progress.report(1.0)
    return _make_result(sums, job)


def _plan_count(job: Job, parts: list[Part], partitions: int) -> Any:
    """Plan the counting of all parts, and the sum of their tables. With a person column, people are bounded in `partitions` partitions."""
    sent_job = delayed(replace(job, files=()), pure=False)
    part_rows = dd.from_map(part_frame, parts, meta=part_frame(Part("", 0, 0)), enforce_metadata=False)  # type: ignore[no-untyped-call]
    if job.bound is None:
        tables = part_rows.map_partitions(count_part, sent_job, meta=EMPTY, enforce_metadata=False)
    else:
        no_people = without_person(EMPTY, as_numbers=job.persons_are_numbers)
        people = part_rows.map_partitions(count_people_of_part, sent_job, meta=no_people, enforce_metadata=False)
        grouped = people.shuffle(on="hash", npartitions=max(partitions, 1), shuffle_method="p2p", ignore_index=True)
        tables = grouped.map_partitions(bound_people, job.bound, job.finder.size, meta=EMPTY, enforce_metadata=False)
    summands = tables.to_delayed()
    while len(summands) > 1:  # they are added up a few at a time
        groups = [summands[first : first + _TABLES_PER_TASK] for first in range(0, len(summands), _TABLES_PER_TASK)]
        summands = [delayed(add_up)(group, job.finder.size) for group in groups]
    return summands[0]


def _split_files(job: Job, threads: int) -> tuple[list[Part], int]:
    """Split all files into parts. Return the parts, and the approximate number of all rows."""
    if job.is_text:
        parts = [part for path in job.files for part in text_parts(path, job)]
        return parts, len(parts) * _ROWS_PER_PARTITION
    groups = [row_groups(path) for path in job.files]
    total = sum(map(sum, groups))
    most = _MOST_ROWS_PER_PART if job.bound is None else _ROWS_PER_PARTITION
    part_rows = min(max(total // (threads * _PARTS_PER_THREAD), _LEAST_ROWS_PER_PART), most)
    return [part for path, group_rows in zip(job.files, groups, strict=True) for part in parquet_parts(path, group_rows, part_rows)], total


def _make_result(sums: pd.DataFrame, job: Job) -> CellCounts:
    """Turn a table of sums into counts and counters; counters stand in rows with a negative `cell`, a `Tally`.

    Raises:
        InputError: a part could not be counted, or a row is bad and bad rows are refused.
    """
    summed = TableSums(cells=CellSums(size=job.finder.size))
    summed.add(sums)
    tally = summed.tallies
    for kind, reason in (_REASONS | {Tally.DAMAGED: NOT_CUT if job.is_text else NO_PARQUET}).items():
        if kind in tally:
            raise InputError(reason)
    totals, lines = Totals(**summed.numbers(Totals)), BadLines(**summed.numbers(BadLines))
    job.refuse(totals, lines)
    if Tally.FEWER in tally:
        raise InputError(FEWER)
    return summed.cells.counts(totals, lines.total)


def part_frame(part: Part) -> pd.DataFrame:
    """Make a DataFrame of one row that describes a part."""
    return pd.DataFrame([part], columns=Part._fields)


def count_part(part_rows: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Count the parts that the rows of a table describe. Return records per cell, and counters. PRIVATE."""

    def count() -> pd.DataFrame:
        sums = TableSums(cells=CellSums(size=job.finder.size))
        for block in _blocks(part_rows, job):
            sums.cells.add(block.cells, block.records)
            sums.add_totals(block.totals, block.bad)
        return sums.table()

    return _count_or_tally(count)


def count_people_of_part(part_rows: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Count the parts that the rows of a table describe. Return records per person and cell, and counters without a person. PRIVATE."""
    people_tables = []

    def fill_people_tables() -> pd.DataFrame:
        counters = TableSums(cells=CellSums(size=0))
        for block in _blocks(part_rows, job):
            assert block.persons is not None  # noqa: S101  (for the type checker: the job has a bound)
            assert job.bound is not None  # noqa: S101
            people_tables.append(count_by_person(block.persons, block.cells, block.records, job.bound))
            counters.add_totals(block.totals, block.bad)
        return counters.table()

    counters = _count_or_tally(fill_people_tables)
    return pd.concat([*people_tables, without_person(counters, as_numbers=job.persons_are_numbers)], ignore_index=True)


def bound_people(rows: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """Bound the records of people, all of whose records must be in `rows`. Return records per cell, and counters. PRIVATE."""
    return _count_or_tally(lambda: bound_table(rows, bound, size))


def add_up(tables: list[pd.DataFrame], size: int) -> pd.DataFrame:
    """Add up several tables."""

    def add() -> pd.DataFrame:
        sums = TableSums(cells=CellSums(size=size))
        for summand in tables:
            sums.add(summand)
        return sums.table()

    return _count_or_tally(add)


def _count_or_tally(work: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return the result of `work`; if it fails, a table with a counter for the reason."""
    try:
        return work()
    except UnreadPartError as error:
        kind = Tally[error.kind.upper()]
    except MemoryError:
        kind = Tally.MEMORY
    except Exception:  # noqa: BLE001  (the error could quote an entry)
        kind = Tally.FAILED
    return tally_table({kind: 1})


def _blocks(part_rows: pd.DataFrame, job: Job) -> Iterator[Block]:
    """Yield the blocks of the parts that the rows of a table describe."""
    columns: list[list[Any]] = [part_rows[name].tolist() for name in Part._fields]
    return (block for part in map(Part, *columns) for block in blocks_of(part, job))
