"""What Dask's workers do: places and sums of a part of the files, and the bound of people who were brought together.

Nothing here raises, for a worker would log what it was called with: what goes wrong is a tally, which the client raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from dpviz.arrays import Integers
from dpviz.data.cells import BAD, MOST_RECORDS, OUTSIDE, total_of
from dpviz.data.counting.dask_tables import (
    DENSE_PLACES,
    EMPTY,
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
    summed,
    table,
    tallies,
)
from dpviz.data.counting.job import CountingPass

if TYPE_CHECKING:
    from dpviz.data.bounding import Bound


_TABLES_AT_ONCE = 8


def part_frame(part: Part) -> pd.DataFrame:
    """One row that names a part."""
    return pd.DataFrame([part], columns=Part._fields)


def count_part(frame: pd.DataFrame, asked: CountingPass) -> pd.DataFrame:
    """Records per place of the parts that a frame names, and counters. PRIVATE."""
    return _safely(lambda: _sums(_tables(frame, asked), asked.placing.size))


def people_of_part(frame: pd.DataFrame, asked: CountingPass) -> pd.DataFrame:
    """Records per person and place of the parts that a frame names, and counters as rows of nobody. PRIVATE."""
    held = []

    def people() -> pd.DataFrame:
        numbers = [EMPTY]
        for part in _parts(frame):
            for batch in batches(part, asked):
                some, left = _counted(batch, asked)
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


def _parts(frame: pd.DataFrame) -> Iterator[Part]:
    columns: list[list[Any]] = [frame[name].tolist() for name in Part._fields]
    return map(Part, *columns)


def _tables(frame: pd.DataFrame, asked: CountingPass) -> Iterator[pd.DataFrame | Integers]:
    for part in _parts(frame):
        for batch in batches(part, asked):
            yield from reversed(_counted(batch, asked))  # counters stand first, as their places do


def _sums(tables: Iterable[pd.DataFrame | Integers], size: int) -> pd.DataFrame:
    """One table of the sums of tables and of plain places, which are put down where they belong if there is room for all."""
    held: list[pd.DataFrame] = []
    dense = np.zeros(size if size <= DENSE_PLACES else 0, np.int64)
    for each in tables:
        if not isinstance(each, pd.DataFrame):
            if len(dense):
                dense += np.bincount(each, minlength=size)
                continue
            held.append(counted(each, None, size))
        else:
            held.append(_put_down(each, dense) if len(dense) else each)
        if len(held) >= _TABLES_AT_ONCE:
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


def _counted(batch: Batch, asked: CountingPass) -> tuple[pd.DataFrame | Integers, pd.DataFrame]:
    """Records of the good rows inside, a place for each, per place or per person and place; and the counters."""
    places = asked.placing.places(batch.columns)
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
            Tally.PLACE_ROWS: int(unplaced.sum()),
            Tally.COUNT_ROWS: int((~unplaced & miscounted).sum()),
            Tally.PERSON_ROWS: int((~unplaced & ~miscounted & nobody).sum()),
            Tally.OUTSIDE_ROWS: int(outside.sum()),
        }
    )
    if owners is None or asked.bound is None:
        return places[inside] if asked.count is None else counted(places[inside], weight[inside], asked.placing.size), left
    return by_person(owners.combine_chunks().filter(inside), places[inside], amount[inside], asked.bound), left
