"""The engine "dask": workers count parts of files, and their tables are added up, a few at a time.

With a person column, Dask's shuffle brings all records of a person into one partition, by a keyed hash of the person, and the person's
records are bounded there. A function that workers run never raises, because Dask would log the function's arguments. Instead a fault
becomes a tally in the result, and the client raises an error for it. Results are sums and counters, never an entry of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed

from dpviz.data.bounding import FEWER
from dpviz.data.cell_counts import CellCounts
from dpviz.data.cells import BAD, MOST_RECORDS, OUTSIDE, most_per_cell, total_of
from dpviz.data.counting.dask_cluster import FAILED, NO_MEMORY, DaskCluster, check_workers, connect, result_of
from dpviz.data.counting.dask_tables import (
    DENSE_CELLS,
    EMPTY,
    NO_PEOPLE,
    OTHER_COLUMNS,
    Batch,
    Fault,
    Part,
    Tally,
    batches,
    bound_table,
    by_person,
    count_cells,
    join_tables,
    parquet_parts,
    row_groups,
    sum_tables,
    table,
    tallies,
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

_MOST_ROWS, _LEAST_ROWS = 2**24, 2**17
_ROWS_PER_PARTITION = 2**21  # of people's records after the shuffle
_PARTS_PER_THREAD = 2
_TABLES_AT_ONCE = 16
_RETRIES = 3
_REASONS = {
    Tally.ABSENT: "A Dask worker cannot open the files: every worker must see them at the paths that are given here.",
    Tally.DIFFERENT: OTHER_COLUMNS,
    Tally.MEMORY: NO_MEMORY,
    Tally.FAILED: FAILED,
}


def count_with_dask(job: Job, watch: Progress | None = None, cluster: DaskCluster | None = None) -> CellCounts:
    """Count records per cell with the workers of a Dask cluster.

    Args:
        job: what is counted; every worker must see the files at the same paths.
        watch: reports progress, and can cancel.
        cluster: the workers; if None, new ones on this machine, which end with the count.

    Returns:
        The private counts, the same as those of all engines, even if workers were lost on the way.

    Raises:
        InputError: a file or the cluster cannot be used; a row is bad and refused; the scheduler or all workers are lost.
        DpvizError: the count was cancelled.
    """
    watch = watch or Progress()
    watch.at(0.0)
    with connect(cluster or DaskCluster()) as client:
        return count_with_client(client, job, watch)


def count_with_client(client: Client, job: Job, watch: Progress) -> CellCounts:
    """Count records per cell with the workers of a client; otherwise as `count_with_dask`."""
    threads = check_workers(client, watch)
    parts, rows = _parts(job, threads)
    found = EMPTY
    if parts:
        spread = max(min(len(parts), 2 * threads), -(-rows // _ROWS_PER_PARTITION))
        work = client.compute(_plan(job, parts, spread), retries=_RETRIES)  # type: ignore[no-untyped-call]
        found = result_of(client, work, watch)
    watch.at(1.0)
    return _result(found, job)


def _plan(job: Job, parts: list[Part], spread: int) -> Any:
    """Plan the tables of all parts and their sum; with a person column, people are bounded in `spread` partitions."""
    shipped = delayed(replace(job, files=()), pure=False)
    frame = dd.from_map(part_frame, parts, meta=part_frame(Part("", 0, 0)), enforce_metadata=False)  # type: ignore[no-untyped-call]
    if job.bound is None:
        tables = frame.map_partitions(count_part, shipped, meta=EMPTY, enforce_metadata=False)
    else:
        people = frame.map_partitions(people_of_part, shipped, meta=NO_PEOPLE, enforce_metadata=False)
        apart = people.shuffle(on="hash", npartitions=max(spread, 1), shuffle_method="p2p", ignore_index=True)
        tables = apart.map_partitions(bound_people, job.bound, job.finder.size, meta=EMPTY, enforce_metadata=False)
    return _plan_add_tables(tables.to_delayed(), job.finder.size)


def _plan_add_tables(tables: list[Any], size: int) -> Any:
    """Plan the sum of tables, a few at a time."""
    while len(tables) > 1:
        some = [tables[first : first + _TABLES_AT_ONCE] for first in range(0, len(tables), _TABLES_AT_ONCE)]
        tables = [delayed(add_up)(few, size) for few in some]
    return tables[0]


def _parts(job: Job, threads: int) -> tuple[list[Part], int]:
    """Split all files into parts; return the parts, and about how many rows there are in all."""
    if job.is_text:
        stretches = [part for path in job.files for part in text_parts(path, job)]
        return stretches, len(stretches) * _ROWS_PER_PARTITION
    groups = [row_groups(path) for path in job.files]
    total = sum(map(sum, groups))
    most = _MOST_ROWS if job.bound is None else _ROWS_PER_PARTITION
    rows = min(max(total // (threads * _PARTS_PER_THREAD), _LEAST_ROWS), most)
    return [part for path, held in zip(job.files, groups, strict=True) for part in parquet_parts(path, held, rows)], total


def _result(found: pd.DataFrame, job: Job) -> CellCounts:
    """Turn a table of sums into counts and counters.

    Raises:
        InputError: a tally says that a part could not be counted, or that a row is bad and refused.
    """
    cells, counts = found["cell"].to_numpy(), found["count"].to_numpy()
    some = cells >= 0
    tally = dict(zip(cells[~some].tolist(), counts[~some].tolist(), strict=True))
    damaged = NOT_CUT if job.is_text else "The rows cannot be read as Parquet: the file is damaged."
    for kind, reason in (_REASONS | {Tally.DAMAGED: damaged}).items():
        if kind in tally:
            raise InputError(reason)
    lines = BadLines(
        long=tally.get(Tally.LONG_LINES, 0),
        not_utf8=tally.get(Tally.NOT_UTF8_LINES, 0),
        marks=tally.get(Tally.MARKED_LINES, 0),
        cells=tally.get(Tally.RAGGED_LINES, 0),
    )
    Faults(
        rows=tally.get(Tally.ROWS, 0),
        lines=lines,
        cell=tally.get(Tally.CELL_ROWS, 0),
        count=tally.get(Tally.COUNT_ROWS, 0),
        person=tally.get(Tally.PERSON_ROWS, 0),
        outside=tally.get(Tally.OUTSIDE_ROWS, 0),
    ).refuse(job)
    if Tally.FEWER in tally:
        raise InputError(FEWER)
    kept = np.minimum(counts[some], most_per_cell(job.finder.size))
    left, inside = total_of(kept), tally.get(Tally.INSIDE, 0)
    return CellCounts(
        cells=cells[some],
        counts=kept,
        outside=tally.get(Tally.OUTSIDE, 0),
        bad=tally.get(Tally.BAD, 0) + lines.total,
        over=inside - left,
        beyond=(inside if job.bound is None else tally.get(Tally.KEPT, 0)) - left,
    )


_SUMMED_AT_ONCE = 8


def part_frame(part: Part) -> pd.DataFrame:
    """Make a frame of one row, which names a part."""
    return pd.DataFrame([part], columns=Part._fields)


def count_part(frame: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Count the parts that a frame names: records per cell, and counters. PRIVATE."""
    return _try(lambda: _add_tables(_tables(frame, job), job.finder.size))


def people_of_part(frame: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Count the parts that a frame names: records per person and cell, and counters as rows without a person. PRIVATE."""
    held = []

    def people() -> pd.DataFrame:
        numbers = [EMPTY]
        for part in _named_parts(frame):
            for batch in batches(part, job):
                some, left = _count_batch(batch, job)
                held.append(cast("pd.DataFrame", some))
                numbers.append(left)
        return sum_tables(join_tables(numbers))

    left = _try(people)
    return pd.concat([*held, without_person(left)], ignore_index=True)


def bound_people(frame: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """Bound the records of the people in a frame, all of whose records are in it: records per cell, and counters. PRIVATE."""
    return _try(lambda: bound_table(frame, bound, size))


def add_up(tables: list[pd.DataFrame], size: int) -> pd.DataFrame:
    """Add up several tables, each with one row per cell."""
    return _try(lambda: _add_tables(tables, size))


def _try(work: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return the result of `work`, or a tally of why it failed."""
    try:
        return work()
    except Fault as fault:
        kind = fault.kind
    except MemoryError:
        kind = Tally.MEMORY
    except Exception:  # noqa: BLE001  (the error could quote an entry)
        kind = Tally.FAILED
    return tallies({kind: 1})


def _named_parts(frame: pd.DataFrame) -> Iterator[Part]:
    columns: list[list[Any]] = [frame[name].tolist() for name in Part._fields]
    return map(Part, *columns)


def _tables(frame: pd.DataFrame, job: Job) -> Iterator[pd.DataFrame | Integers]:
    for part in _named_parts(frame):
        for batch in batches(part, job):
            yield from reversed(_count_batch(batch, job))  # counters come first, because their numbers are below those of cells


def _add_tables(tables: Iterable[pd.DataFrame | Integers], size: int) -> pd.DataFrame:
    """Add up tables and arrays of cells, one record each. The sums are kept in one array of all cells if that is small enough."""
    held: list[pd.DataFrame] = []
    dense = np.zeros(size if size <= DENSE_CELLS else 0, np.int64)
    for each in tables:
        if not isinstance(each, pd.DataFrame):
            if len(dense):
                dense += np.bincount(each, minlength=size)
                continue
            held.append(count_cells(each, None, size))
        else:
            held.append(_add_to(each, dense) if len(dense) else each)
        if len(held) >= _SUMMED_AT_ONCE:
            held = [sum_tables(join_tables(held))]
    some = np.flatnonzero(dense)
    return sum_tables(join_tables([*held, table(some, dense[some])]))


def _add_to(each: pd.DataFrame, dense: Integers) -> pd.DataFrame:
    """Add the counts of a table to the array of sums, and return its counters. Cells are ascending, none twice; counters come first."""
    cells = each["cell"].to_numpy()
    begin = int(np.searchsorted(cells, 0))
    here = cells[begin:]
    dense[here] = np.minimum(dense[here] + each["count"].to_numpy()[begin:], MOST_RECORDS)
    return each.iloc[:begin]


def _count_batch(batch: Batch, job: Job) -> tuple[pd.DataFrame | Integers, pd.DataFrame]:
    """Count a batch: the good rows inside as an array of cells, or as records per cell or per person and cell; and the counters."""
    cells = job.finder.cells(batch.columns)
    if job.count is None and job.person is None and not batch.bad.total and len(cells) and cells.min() >= 0:
        return cells, tallies({Tally.INSIDE: len(cells), Tally.ROWS: len(cells)})
    weight = np.ones(len(cells), np.int64) if job.count is None else job.weights(batch.columns[job.count])
    owners = None if job.person is None else job.persons(batch.columns[job.person])
    no_cell, miscounted = cells == BAD, weight < 0
    no_person = np.zeros(len(cells), bool) if owners is None else owners.is_null().to_numpy()
    bad, amount = no_cell | miscounted | no_person, np.abs(weight)
    inside, outside = ~bad & (cells >= 0), ~bad & (cells == OUTSIDE)
    left = tallies(
        {
            Tally.INSIDE: total_of(amount[inside]),
            Tally.OUTSIDE: total_of(amount[outside]),
            Tally.BAD: total_of(amount[bad]),
            Tally.ROWS: batch.rows,
            Tally.LONG_LINES: batch.bad.long,
            Tally.NOT_UTF8_LINES: batch.bad.not_utf8,
            Tally.MARKED_LINES: batch.bad.marks,
            Tally.RAGGED_LINES: batch.bad.cells,
            Tally.CELL_ROWS: int(no_cell.sum()),
            Tally.COUNT_ROWS: int((~no_cell & miscounted).sum()),
            Tally.PERSON_ROWS: int((~no_cell & ~miscounted & no_person).sum()),
            Tally.OUTSIDE_ROWS: int(outside.sum()),
        }
    )
    if owners is None or job.bound is None:
        return cells[inside] if job.count is None else count_cells(cells[inside], weight[inside], job.finder.size), left
    return by_person(owners.combine_chunks().filter(inside), cells[inside], amount[inside], job.bound), left
