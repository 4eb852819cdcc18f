"""The counting pass on Dask: parts of files are counted where a worker is free, and their tables added up as a tree.

With a person column, records per person and place are brought together by a keyed hash of the person; each person is then in one
partition, and is bounded there. Workers hand on sums and counters, never an error with a cell in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed

from dpviz.data.bounding import FEWER
from dpviz.data.cells import most_per_place, total_of
from dpviz.data.counted import Counted
from dpviz.data.counting.dask_cluster import DaskCluster, connected
from dpviz.data.counting.dask_tables import EMPTY, NOBODY, OTHER_COLUMNS, Part, Tally, parquet_parts, row_groups, text_parts
from dpviz.data.counting.dask_watch import FAILED, NO_MEMORY, check_workers, result_of
from dpviz.data.counting.dask_work import add_up, count_part, keep_bounded, part_frame, people_of_part
from dpviz.data.counting.job import Faults, Watch
from dpviz.data.reading.text_rows import NOT_CUT, BadLines
from dpviz.errors import InputError

__all__ = ["DaskCluster", "count_with_dask"]

if TYPE_CHECKING:
    from distributed import Client

    from dpviz.data.counting.job import CountingPass

_MOST_ROWS, _LEAST_ROWS = 2**24, 2**17
_ROWS_PER_PARTITION = 2**21  # of people, who are brought together
_PARTS_PER_THREAD = 2
_TABLES_AT_ONCE = 16
_RETRIES = 3
_REASONS = {
    Tally.ABSENT: "A Dask worker cannot open the files: every worker must see them at the paths that are given here.",
    Tally.DIFFERENT: OTHER_COLUMNS,
    Tally.MEMORY: NO_MEMORY,
    Tally.FAILED: FAILED,
}


def count_with_dask(asked: CountingPass, watch: Watch | None = None, cluster: DaskCluster | None = None) -> Counted:
    """Count records per place with the workers of a Dask cluster.

    Args:
        asked: what is counted; every worker must see the files at the same paths.
        watch: who is told of progress, and may end the pass.
        cluster: which workers; those of this machine if None, which end with the pass.

    Returns:
        The private counts, the same as those of all engines, however often a worker was lost on the way.

    Raises:
        InputError: a file or the cluster cannot be used, a row is bad and refused; the scheduler or all workers are lost.
        DpvizError: the pass was cancelled.
    """
    watch = watch or Watch()
    watch.at(0.0)
    with connected(cluster or DaskCluster()) as client:
        return counted_by(client, asked, watch)


def counted_by(client: Client, asked: CountingPass, watch: Watch) -> Counted:
    """Count records per place with the workers of a client; otherwise as `count_with_dask`."""
    threads = check_workers(client, watch)
    parts, rows = _parts(asked, threads)
    found = EMPTY
    if parts:
        spread = max(min(len(parts), 2 * threads), -(-rows // _ROWS_PER_PARTITION))
        work = client.compute(_planned(asked, parts, spread), retries=_RETRIES)  # type: ignore[no-untyped-call]
        found = result_of(client, work, watch)
    watch.at(1.0)
    return _counted(found, asked)


def _planned(asked: CountingPass, parts: list[Part], spread: int) -> Any:
    """The tables of all parts, bounded in `spread` partitions where people are known, and added up."""
    task = delayed(replace(asked, files=()), pure=False)
    frame = dd.from_map(part_frame, parts, meta=part_frame(Part("", 0, 0)), enforce_metadata=False)  # type: ignore[no-untyped-call]
    if asked.bound is None:
        tables = frame.map_partitions(count_part, task, meta=EMPTY, enforce_metadata=False)
    else:
        people = frame.map_partitions(people_of_part, task, meta=NOBODY, enforce_metadata=False)
        apart = people.shuffle(on="hash", npartitions=max(spread, 1), shuffle_method="p2p", ignore_index=True)
        tables = apart.map_partitions(keep_bounded, asked.bound, asked.placing.size, meta=EMPTY, enforce_metadata=False)
    return _added_up(tables.to_delayed(), asked.placing.size)


def _added_up(tables: list[Any], size: int) -> Any:
    """The sums of tables, a few at once."""
    while len(tables) > 1:
        some = [tables[first : first + _TABLES_AT_ONCE] for first in range(0, len(tables), _TABLES_AT_ONCE)]
        tables = [delayed(add_up)(few, size) for few in some]
    return tables[0]


def _parts(asked: CountingPass, threads: int) -> tuple[list[Part], int]:
    """Parts of all files, and about how many rows they hold."""
    if asked.is_text:
        stretches = [part for path in asked.files for part in text_parts(path, asked)]
        return stretches, len(stretches) * _ROWS_PER_PARTITION
    groups = [row_groups(path) for path in asked.files]
    total = sum(map(sum, groups))
    most = _MOST_ROWS if asked.bound is None else _ROWS_PER_PARTITION
    rows = min(max(total // (threads * _PARTS_PER_THREAD), _LEAST_ROWS), most)
    return [part for path, held in zip(asked.files, groups, strict=True) for part in parquet_parts(path, held, rows)], total


def _counted(found: pd.DataFrame, asked: CountingPass) -> Counted:
    """The sums, unless a counter says that they cannot be had."""
    places, counts = found["place"].to_numpy(), found["count"].to_numpy()
    some = places >= 0
    tally = dict(zip(places[~some].tolist(), counts[~some].tolist(), strict=True))
    damaged = NOT_CUT if asked.is_text else "The rows cannot be read as Parquet: the file is damaged."
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
        place=tally.get(Tally.PLACE_ROWS, 0),
        count=tally.get(Tally.COUNT_ROWS, 0),
        person=tally.get(Tally.PERSON_ROWS, 0),
        outside=tally.get(Tally.OUTSIDE_ROWS, 0),
    ).refuse(asked)
    if Tally.FEWER in tally:
        raise InputError(FEWER)
    kept = np.minimum(counts[some], most_per_place(asked.placing.size))
    left, inside = total_of(kept), tally.get(Tally.INSIDE, 0)
    return Counted(
        places=places[some],
        counts=kept,
        outside=tally.get(Tally.OUTSIDE, 0),
        bad=tally.get(Tally.BAD, 0) + lines.total,
        over=inside - left,
        beyond=(inside if asked.bound is None else tally.get(Tally.KEPT, 0)) - left,
    )
