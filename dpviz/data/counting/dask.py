"""The counting pass on Dask: parts of files are counted where a worker is free, and their tables added up as a tree.

With a person column, records per person and place are brought together by a keyed hash of the person; each person is then in one
partition, and is bounded there. Workers hand on sums and counters, never an error with a cell in it.
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
from dpviz.data.counting.dask_cluster import FAILED, NO_MEMORY, DaskCluster, check_workers, connected, result_of
from dpviz.data.counting.dask_tables import (
    DENSE_CELLS,
    EMPTY,
    NOBODY,
    OTHER_COLUMNS,
    Batch,
    Fault,
    Part,
    Tally,
    batches,
    by_person,
    counted,
    joined,
    kept,
    nobodys,
    parquet_parts,
    row_groups,
    summed,
    table,
    tallies,
    text_parts,
)
from dpviz.data.counting.job import CountingPass, Faults, Watch
from dpviz.data.reading.text_rows import NOT_CUT, BadLines
from dpviz.errors import InputError

__all__ = ["DaskCluster", "count_with_dask"]

if TYPE_CHECKING:
    from distributed import Client

    from dpviz.arrays import Integers
    from dpviz.data.bounding import Bound

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


def count_with_dask(asked: CountingPass, watch: Watch | None = None, cluster: DaskCluster | None = None) -> CellCounts:
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
        return count_with_client(client, asked, watch)


def count_with_client(client: Client, asked: CountingPass, watch: Watch) -> CellCounts:
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
        tables = apart.map_partitions(keep_bounded, asked.bound, asked.finder.size, meta=EMPTY, enforce_metadata=False)
    return _added_up(tables.to_delayed(), asked.finder.size)


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


def _counted(found: pd.DataFrame, asked: CountingPass) -> CellCounts:
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
        place=tally.get(Tally.CELL_ROWS, 0),
        count=tally.get(Tally.COUNT_ROWS, 0),
        person=tally.get(Tally.PERSON_ROWS, 0),
        outside=tally.get(Tally.OUTSIDE_ROWS, 0),
    ).refuse(asked)
    if Tally.FEWER in tally:
        raise InputError(FEWER)
    kept = np.minimum(counts[some], most_per_cell(asked.finder.size))
    left, inside = total_of(kept), tally.get(Tally.INSIDE, 0)
    return CellCounts(
        places=places[some],
        counts=kept,
        outside=tally.get(Tally.OUTSIDE, 0),
        bad=tally.get(Tally.BAD, 0) + lines.total,
        over=inside - left,
        beyond=(inside if asked.bound is None else tally.get(Tally.KEPT, 0)) - left,
    )


_SUMMED_AT_ONCE = 8


def part_frame(part: Part) -> pd.DataFrame:
    """One row that names a part."""
    return pd.DataFrame([part], columns=Part._fields)


def count_part(frame: pd.DataFrame, asked: CountingPass) -> pd.DataFrame:
    """Records per place of the parts that a frame names, and counters. PRIVATE."""
    return _safely(lambda: _sums(_tables(frame, asked), asked.finder.size))


def people_of_part(frame: pd.DataFrame, asked: CountingPass) -> pd.DataFrame:
    """Records per person and place of the parts that a frame names, and counters as rows of nobody. PRIVATE."""
    held = []

    def people() -> pd.DataFrame:
        numbers = [EMPTY]
        for part in _named_parts(frame):
            for batch in batches(part, asked):
                some, left = _counted_batch(batch, asked)
                held.append(cast("pd.DataFrame", some))
                numbers.append(left)
        return summed(joined(numbers))

    left = _safely(people)
    return pd.concat([*held, nobodys(left)], ignore_index=True)


def keep_bounded(frame: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """Records per place that the bound leaves of the people in a frame, who are in no other, and counters. PRIVATE."""
    return _safely(lambda: kept(frame, bound, size))


def add_up(tables: list[pd.DataFrame], size: int) -> pd.DataFrame:
    """One table of the sums of several, in each of which a place comes once."""
    return _safely(lambda: _sums(tables, size))


def _safely(work: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """What the work gives, or why it gives nothing."""
    try:
        return work()
    except Fault as fault:
        kind = fault.kind
    except MemoryError:
        kind = Tally.MEMORY
    except Exception:  # noqa: BLE001  (its text could quote a cell)
        kind = Tally.FAILED
    return tallies({kind: 1})


def _named_parts(frame: pd.DataFrame) -> Iterator[Part]:
    columns: list[list[Any]] = [frame[name].tolist() for name in Part._fields]
    return map(Part, *columns)


def _tables(frame: pd.DataFrame, asked: CountingPass) -> Iterator[pd.DataFrame | Integers]:
    for part in _named_parts(frame):
        for batch in batches(part, asked):
            yield from reversed(_counted_batch(batch, asked))  # counters stand first, as their places do


def _sums(tables: Iterable[pd.DataFrame | Integers], size: int) -> pd.DataFrame:
    """One table of the sums of tables and of plain places, which are put down where they belong if there is room for all."""
    held: list[pd.DataFrame] = []
    dense = np.zeros(size if size <= DENSE_CELLS else 0, np.int64)
    for each in tables:
        if not isinstance(each, pd.DataFrame):
            if len(dense):
                dense += np.bincount(each, minlength=size)
                continue
            held.append(counted(each, None, size))
        else:
            held.append(_put_down(each, dense) if len(dense) else each)
        if len(held) >= _SUMMED_AT_ONCE:
            held = [summed(joined(held))]
    some = np.flatnonzero(dense)
    return summed(joined([*held, table(some, dense[some])]))


def _put_down(each: pd.DataFrame, dense: Integers) -> pd.DataFrame:
    """Add a table's places, which come once and ascending, to the sums; its counters are left."""
    places = each["place"].to_numpy()
    begin = int(np.searchsorted(places, 0))
    here = places[begin:]
    dense[here] = np.minimum(dense[here] + each["count"].to_numpy()[begin:], MOST_RECORDS)
    return each.iloc[:begin]


def _counted_batch(batch: Batch, asked: CountingPass) -> tuple[pd.DataFrame | Integers, pd.DataFrame]:
    """Records of the good rows inside, a place for each, per place or per person and place; and the counters."""
    places = asked.finder.places(batch.columns)
    if asked.count is None and asked.person is None and not batch.bad.total and len(places) and places.min() >= 0:
        return places, tallies({Tally.INSIDE: len(places), Tally.ROWS: len(places)})
    weight = np.ones(len(places), np.int64) if asked.count is None else asked.weights(batch.columns[asked.count])
    owners = None if asked.person is None else asked.persons(batch.columns[asked.person])
    unplaced, miscounted = places == BAD, weight < 0
    nobody = np.zeros(len(places), bool) if owners is None else owners.is_null().to_numpy()
    bad, amount = unplaced | miscounted | nobody, np.abs(weight)
    inside, outside = ~bad & (places >= 0), ~bad & (places == OUTSIDE)
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
            Tally.CELL_ROWS: int(unplaced.sum()),
            Tally.COUNT_ROWS: int((~unplaced & miscounted).sum()),
            Tally.PERSON_ROWS: int((~unplaced & ~miscounted & nobody).sum()),
            Tally.OUTSIDE_ROWS: int(outside.sum()),
        }
    )
    if owners is None or asked.bound is None:
        return places[inside] if asked.count is None else counted(places[inside], weight[inside], asked.finder.size), left
    return by_person(owners.combine_chunks().filter(inside), places[inside], amount[inside], asked.bound), left
