"""Tables of records per cell, and per person and cell, which Dask's workers hand to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum

import numpy as np
import pandas as pd
import pyarrow as pa

from dpviz.arrays import Integers
from dpviz.data.bounding import REFUSE, Bound, factorize_objects, group_pairs, keep_records, person_hashes
from dpviz.data.cell_counts import CellSums, Totals
from dpviz.data.cells import MOST_RECORDS
from dpviz.data.reading.text_rows import BadLines


class Tally(IntEnum):
    """Keys of counters and faults in the column `cell` of a table. The keys are negative, unlike numbers of cells.

    Counters are for the curator. For a fault the client raises an error.
    """

    INSIDE = -1  # from here on: what rows add up to, the fields of `Totals`
    OUTSIDE = -2
    BAD = -3
    ROWS = -4
    CELL = -5
    COUNT = -6
    PERSON = -7
    ELSEWHERE = -8
    LONG = -16  # from here on: numbers of bad lines, the fields of `BadLines`
    NOT_UTF8 = -17
    MARKS = -18
    CELLS = -19
    FEWER = -21  # people with fewer records than was declared for every person
    ABSENT = -31  # from here on: numbers of parts that were not counted, by the reason
    DAMAGED = -32
    DIFFERENT = -33
    MEMORY = -35
    FAILED = -36


def table(cells: Integers, counts: Integers) -> pd.DataFrame:
    """Make a table of the columns `cell` and `count`: cells, and the records of each. PRIVATE."""
    return pd.DataFrame({"cell": cells.astype(np.int64, copy=False), "count": counts.astype(np.int64, copy=False)})


EMPTY = table(np.zeros(0, np.int64), np.zeros(0, np.int64))


def tally_table(numbers: Mapping[Tally, int]) -> pd.DataFrame:
    """Make a table of counters, cut to 2**53; counters of 0 are left out."""
    nonzero = {int(kind): min(number, MOST_RECORDS) for kind, number in sorted(numbers.items()) if number}
    return table(np.fromiter(nonzero.keys(), np.int64, len(nonzero)), np.fromiter(nonzero.values(), np.int64, len(nonzero)))


@dataclass(kw_only=True, eq=False)
class TableSums:
    """Adds up tables of records per cell, and their counters. PRIVATE.

    Attributes:
        cells: the sums of cells.
        tallies: the sums of counters.
    """

    cells: CellSums
    tallies: Counter[Tally] = field(default_factory=Counter, repr=False)

    def add(self, summand: pd.DataFrame) -> None:
        """Add a table."""
        cells, counts = summand["cell"].to_numpy(), summand["count"].to_numpy()
        is_tally = cells < 0
        for kind, number in zip(cells[is_tally].tolist(), counts[is_tally].tolist(), strict=True):
            self.tallies[Tally(kind)] += number
        self.cells.add(cells[~is_tally], counts[~is_tally])

    def add_totals(self, totals: Totals, bad: BadLines) -> None:
        """Add what the rows of a block add up to, and its bad lines."""
        self.tallies.update({Tally[name.upper()]: number for name, number in (vars(totals) | vars(bad)).items()})

    def numbers(self, kind: type[Totals | BadLines]) -> dict[str, int]:
        """Return the sums of counters by the fields of a class."""
        return {each.name: self.tallies[Tally[each.name.upper()]] for each in fields(kind)}

    def table(self) -> pd.DataFrame:
        """Return the sums as one table, ascending: counters, which are negative, before cells."""
        return pd.concat([tally_table(self.tallies), table(*self.cells.result())], ignore_index=True)


def count_by_person(owners: pa.Array, cells: Integers, records: Integers | None, bound: Bound) -> pd.DataFrame:
    """Count the records of each person in each cell, and add the person's keyed hash, by which Dask groups the rows. PRIVATE.

    Args:
        owners: (n,) persons, as canonical texts or numbers of 64 bits, none missing.
        cells: (n,) the cell of each row, at least 0.
        records: (n,) records that each row stands for, of which at most m can count; if None, each row is one record.
        bound: the bound of each person's records; its key is the key of the hash.
    """
    encoded = owners.dictionary_encode()
    persons = encoded.dictionary.to_numpy() if pa.types.is_integer(owners.type) else encoded.dictionary
    codes = encoded.indices.to_numpy().astype(np.int64)
    if records is not None:
        counted = records > 0
        codes, cells, records = codes[counted], cells[counted], np.minimum(records[counted], bound.cap)
    holdings = group_pairs(codes, persons, cells, records, bound)
    hashes = person_hashes(persons, bound.key)[holdings.codes]
    people = persons[holdings.codes] if isinstance(persons, np.ndarray) else _text_column(persons.take(pa.array(holdings.codes)))
    return pd.DataFrame({"person": people, "hash": hashes, "cell": holdings.cells, "count": holdings.records})


def without_person(numbers: pd.DataFrame, *, as_numbers: bool = False) -> pd.DataFrame:
    """Turn counters into rows without a person, with the columns of `count_by_person`, where people are texts or numbers."""
    nobody = np.zeros(len(numbers), np.int64) if as_numbers else _text_column(pa.array([""] * len(numbers), pa.large_string()))
    return pd.DataFrame({"person": nobody, "hash": np.zeros(len(numbers), np.uint64), "cell": numbers["cell"], "count": numbers["count"]})


def _text_column(texts: pa.Array) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(texts))


def bound_table(rows: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """Bound the records of people, all of whose records must be in `rows`. Return the kept records per cell, and the counters."""
    is_cell = rows["cell"].to_numpy() >= 0
    persons = rows["person"][is_cell]
    are_numbers = persons.dtype == np.int64
    codes, distinct = pd.factorize(persons.to_numpy()) if are_numbers else factorize_objects(persons.to_numpy(dtype=object))
    cells, records = (rows[name].to_numpy()[is_cell] for name in ("cell", "count"))
    holdings = group_pairs(codes.astype(np.int64), distinct, cells, records, bound)
    kept_records, fewer = keep_records(holdings, bound)
    is_kept = kept_records > 0
    sums = TableSums(cells=CellSums(size=size))
    sums.add(rows.loc[~is_cell, ["cell", "count"]])
    sums.add(table(holdings.cells[is_kept], kept_records[is_kept]))
    sums.tallies[Tally.FEWER] += fewer if bound.fewer == REFUSE else 0
    return sums.table()
