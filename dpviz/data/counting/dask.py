"""The engine "dask": workers count parts of files, and their tables are added up, a few at a time.

With a person column, Dask's shuffle brings all records of a person into one partition, by a keyed hash of the person, and the person's
records are bounded there. Functions that workers run never raise, because Dask would log their arguments: they return a fault as a
counter, and the client raises an error for it. Workers return sums and counters, never an entry of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from dask.delayed import delayed

from dpviz.data.bounding import FEWER
from dpviz.data.cell_counts import CellCounts
from dpviz.data.cells import BAD, MOST_RECORDS, OUTSIDE, most_per_cell, total_of
from dpviz.data.counting.dask_cluster import FAILED, NO_MEMORY, DaskCluster, check_workers, connect, wait_for_result
from dpviz.data.counting.dask_tables import (
    DENSE_CELLS,
    EMPTY,
    OTHER_COLUMNS,
    Batch,
    Fault,
    Part,
    Tally,
    batches,
    bound_table,
    count_by_person,
    count_cells,
    join_tables,
    parquet_parts,
    row_groups,
    sum_tables,
    table,
    tally_table,
    text_parts,
    without_person,
)
from dpviz.data.counting.job import Faults, Job, Progress
from dpviz.data.reading.text_rows import NOT_CUT, BadLines
from dpviz.errors import InputError

__all__ = ["DaskCluster", "count_with_dask"]

if TYPE_CHECKING:
    from distributed import Client

    from dpviz.arrays import Integers
    from dpviz.data.bounding import Bound

_MOST_ROWS_PER_PART, _LEAST_ROWS_PER_PART = 2**24, 2**17  # of Parquet files
_ROWS_PER_PARTITION = 2**21  # of people's records after the shuffle; also an estimate of the rows of a text part
_PARTS_PER_THREAD = 2
_TABLES_PER_TASK = 16  # that one Dask task adds up
_TABLES_IN_MEMORY = 8  # that a worker holds before it adds them up
_RETRIES = 3
_NO_SIZE_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 GB"}  # polygons of many regions are sent once, and are large
_BAD_LINES = {"long": Tally.LONG_LINES, "not_utf8": Tally.NOT_UTF8_LINES, "marks": Tally.BADLY_QUOTED_LINES, "cells": Tally.RAGGED_LINES}
_FAULTS = {
    "rows": Tally.ROWS,
    "cell": Tally.CELL_ROWS,
    "count": Tally.COUNT_ROWS,
    "person": Tally.PERSON_ROWS,
    "outside": Tally.OUTSIDE_ROWS,
}
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
    cells, counts = sums["cell"].to_numpy(), sums["count"].to_numpy()
    is_cell = cells >= 0
    tally = dict(zip(cells[~is_cell].tolist(), counts[~is_cell].tolist(), strict=True))
    damaged = NOT_CUT if job.is_text else "The rows cannot be read as Parquet: the file is damaged."
    for kind, reason in (_REASONS | {Tally.DAMAGED: damaged}).items():
        if kind in tally:
            raise InputError(reason)
    lines = BadLines(**{rule: tally.get(kind, 0) for rule, kind in _BAD_LINES.items()})
    Faults(lines=lines, **{fault: tally.get(kind, 0) for fault, kind in _FAULTS.items()}).refuse(job)
    if Tally.FEWER in tally:
        raise InputError(FEWER)
    capped = np.minimum(counts[is_cell], most_per_cell(job.finder.size))
    counted, inside = total_of(capped), tally.get(Tally.INSIDE, 0)
    return CellCounts(
        cells=cells[is_cell],
        counts=capped,
        outside=tally.get(Tally.OUTSIDE, 0),
        bad=tally.get(Tally.BAD, 0) + lines.total,
        over=inside - counted,
        beyond=(inside if job.bound is None else tally.get(Tally.KEPT, 0)) - counted,
    )


def part_frame(part: Part) -> pd.DataFrame:
    """Make a DataFrame of one row that describes a part."""
    return pd.DataFrame([part], columns=Part._fields)


def count_part(part_rows: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Count the parts that the rows of a table describe. Return records per cell, and counters. PRIVATE."""
    counted = (table for batch in _counted_batches(part_rows, job) for table in reversed(batch))  # counters first: their cells are negative
    return _count_or_tally(lambda: _add_tables(counted, job.finder.size))


def count_people_of_part(part_rows: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Count the parts that the rows of a table describe. Return records per person and cell, and counters without a person. PRIVATE."""
    people_tables = []

    def fill_people_tables() -> pd.DataFrame:
        counter_tables = [EMPTY]
        for people_table, counters in _counted_batches(part_rows, job):
            people_tables.append(cast("pd.DataFrame", people_table))
            counter_tables.append(counters)
        return sum_tables(join_tables(counter_tables))

    counters = _count_or_tally(fill_people_tables)
    return pd.concat([*people_tables, without_person(counters, as_numbers=job.persons_are_numbers)], ignore_index=True)


def bound_people(rows: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """Bound the records of people, all of whose records must be in `rows`. Return records per cell, and counters. PRIVATE."""
    return _count_or_tally(lambda: bound_table(rows, bound, size))


def add_up(tables: list[pd.DataFrame], size: int) -> pd.DataFrame:
    """Add up several tables, each with one row per cell."""
    return _count_or_tally(lambda: _add_tables(tables, size))


def _count_or_tally(work: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return the result of `work`; if it fails, a table with a counter for the reason."""
    try:
        return work()
    except Fault as fault:
        kind = fault.kind
    except MemoryError:
        kind = Tally.MEMORY
    except Exception:  # noqa: BLE001  (the error could quote an entry)
        kind = Tally.FAILED
    return tally_table({kind: 1})


def _counted_batches(part_rows: pd.DataFrame, job: Job) -> Iterator[tuple[pd.DataFrame | Integers, pd.DataFrame]]:
    """Yield the counts and the counters of each batch of the parts that the rows of a table describe."""
    columns: list[list[Any]] = [part_rows[name].tolist() for name in Part._fields]
    for part in map(Part, *columns):
        for batch in batches(part, job):
            yield _count_batch(batch, job)


def _add_tables(tables: Iterable[pd.DataFrame | Integers], size: int) -> pd.DataFrame:
    """Add up tables, and arrays of cells with one record each. If `size` is small, they are summed in an array of all cells."""
    tables_to_join: list[pd.DataFrame] = []
    dense = np.zeros(size if size <= DENSE_CELLS else 0, np.int64)
    for summand in tables:
        if not isinstance(summand, pd.DataFrame):
            if len(dense):
                dense += np.bincount(summand, minlength=size)
                continue
            tables_to_join.append(count_cells(summand, None, size))
        else:
            tables_to_join.append(_add_to_dense(summand, dense) if len(dense) else summand)
        if len(tables_to_join) >= _TABLES_IN_MEMORY:
            tables_to_join = [sum_tables(join_tables(tables_to_join))]
    occupied = np.flatnonzero(dense)
    return sum_tables(join_tables([*tables_to_join, table(occupied, dense[occupied])]))


def _add_to_dense(summand: pd.DataFrame, dense: Integers) -> pd.DataFrame:
    """Add the counts of a table to the array of sums; return its counters. The table is ascending, so that counters are before cells."""
    cells = summand["cell"].to_numpy()
    first_cell = int(np.searchsorted(cells, 0))
    occupied = cells[first_cell:]
    dense[occupied] = np.minimum(dense[occupied] + summand["count"].to_numpy()[first_cell:], MOST_RECORDS)
    return summand.iloc[:first_cell]


def _count_batch(batch: Batch, job: Job) -> tuple[pd.DataFrame | Integers, pd.DataFrame]:
    """Count a batch. Return the counts, and the counters.

    The counts are an array of cells with one record each, a table of records per cell, or one of records per person and cell.
    """
    cells = job.finder.cells(batch.columns)
    if job.count is None and job.person is None and not batch.bad.total and len(cells) and cells.min() >= 0:
        return cells, tally_table({Tally.INSIDE: len(cells), Tally.ROWS: len(cells)})
    weight = np.ones(len(cells), np.int64) if job.count is None else job.weights(batch.columns[job.count])
    owners = None if job.person is None else job.persons(batch.columns[job.person])
    no_cell, miscounted = cells == BAD, weight < 0
    no_person = np.zeros(len(cells), bool) if owners is None else owners.is_null().to_numpy()
    bad = no_cell | miscounted | no_person
    amount = np.abs(weight)  # a bad count is -1: one record
    inside, outside = ~bad & (cells >= 0), ~bad & (cells == OUTSIDE)
    counters = tally_table(
        {
            Tally.INSIDE: total_of(amount[inside]),
            Tally.OUTSIDE: total_of(amount[outside]),
            Tally.BAD: total_of(amount[bad]),
            Tally.ROWS: batch.rows,
            **{kind: getattr(batch.bad, rule) for rule, kind in _BAD_LINES.items()},
            Tally.CELL_ROWS: int(no_cell.sum()),
            Tally.COUNT_ROWS: int((~no_cell & miscounted).sum()),
            Tally.PERSON_ROWS: int((~no_cell & ~miscounted & no_person).sum()),
            Tally.OUTSIDE_ROWS: int(outside.sum()),
        }
    )
    if owners is None or job.bound is None:
        return cells[inside] if job.count is None else count_cells(cells[inside], weight[inside], job.finder.size), counters
    return count_by_person(owners.combine_chunks().filter(pa.array(inside)), cells[inside], amount[inside], job.bound), counters
