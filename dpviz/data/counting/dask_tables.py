"""Tables that Dask's workers hand on: records per place, with the curator's counters as places below zero."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from dpviz.arrays import Integers
from dpviz.data.arrays import MOST_RECORDS, total_of
from dpviz.data.bounding import KEEP, REFUSE, Bound, Holdings, kept_of, person_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


DENSE_PLACES = 2**22
_AT_ONCE = 2**22


class Tally(IntEnum):
    """What a row of a table counts where its place is none: numbers of the curator's, and faults that the client raises."""

    OUTSIDE = -1  # records
    BAD = -2
    INSIDE = -3  # before the bound
    KEPT = -4  # after it
    ROWS = -10  # read; bad lines left out
    PLACE_ROWS = -12
    COUNT_ROWS = -13
    PERSON_ROWS = -14
    OUTSIDE_ROWS = -15
    LONG_LINES = -16  # bad ones, by what is wrong with them
    NOT_UTF8_LINES = -17
    MARKED_LINES = -18
    RAGGED_LINES = -19
    FEWER = -21  # people with fewer records than were declared
    ABSENT = -31  # parts of files
    DAMAGED = -32
    DIFFERENT = -33
    MEMORY = -35
    FAILED = -36


_TEXT = pd.ArrowDtype(pa.large_string())


def table(places: Integers, counts: Integers) -> pd.DataFrame:
    """Places and the records of each, as Dask's frames hold them. PRIVATE."""
    return pd.DataFrame({"place": places.astype(np.int64, copy=False), "count": counts.astype(np.int64, copy=False)})


EMPTY = table(np.zeros(0, np.int64), np.zeros(0, np.int64))


def tallies(numbers: Mapping[Tally, int]) -> pd.DataFrame:
    """A table of counters alone; those that are 0 are left out."""
    some = {int(kind): number for kind, number in sorted(numbers.items()) if number}
    return table(np.fromiter(some.keys(), np.int64, len(some)), np.fromiter(some.values(), np.int64, len(some)))


def counted(places: Integers, weight: Integers | None, size: int) -> pd.DataFrame:
    """A table of (n,) places, ascending, and of the records in each.

    Args:
        places: (n,) at least 0.
        weight: (n,) records of each row; 1 each if None.
        size: how many places there are.
    """
    if weight is not None:
        return summed(table(places, weight))
    if size <= max(DENSE_PLACES, 4 * len(places)):
        total = np.bincount(places, minlength=size)
        some = np.flatnonzero(total)
        return table(some, total[some])
    return table(*np.unique(places, return_counts=True))


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One table of the same rows as several."""
    return pd.concat([EMPTY, *tables], ignore_index=True)


def summed(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table with each place once, ascending; sums are cut to 2**53, in floats, which never wrap around."""
    places, counts = frame["place"].to_numpy(), frame["count"].to_numpy()
    if not len(places):
        return EMPTY
    if (places[1:] > places[:-1]).all() and counts.min() > 0:
        return frame
    if 0 < places.max() < max(DENSE_PLACES, len(places)):
        return _summed_densely(places, counts)
    order = np.argsort(places, kind="stable")  # merges what is in order already
    places = places[order]
    first = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    totals = np.minimum(np.add.reduceat(counts[order].astype(np.float64), first), MOST_RECORDS).astype(np.int64)
    return table(places[first][totals > 0], totals[totals > 0])


def _summed_densely(places: Integers, counts: Integers) -> pd.DataFrame:
    """Sums of places that are few."""
    good = places >= 0
    total = np.minimum(np.bincount(places[good], weights=counts[good]), MOST_RECORDS).astype(np.int64)
    some = np.flatnonzero(total)
    return joined([summed(table(places[~good], counts[~good])), table(some, total[some])])


def by_person(owners: pa.Array, places: Integers, records: Integers, bound: Bound) -> pd.DataFrame:
    """Records of each person in each place, with the keyed hash by which people are brought together. PRIVATE.

    Args:
        owners: (n,) canonical texts, none missing.
        places: (n,) at least 0.
        records: (n,) how many each row stands for, at most m of which take part.
        bound: whether several in one place count once, and by which key people are brought together.
    """
    encoded = owners.dictionary_encode()
    few = np.minimum(records, bound.cap)
    rows = few > 0
    codes, places, few = _grouped(encoded.indices.to_numpy()[rows], places[rows], few[rows], bound)
    hashes = person_hashes(encoded.dictionary, bound.key)
    texts = pd.Series(pd.arrays.ArrowExtensionArray(encoded.dictionary.take(pa.array(codes))))
    return pd.DataFrame({"person": texts, "hash": hashes[codes], "place": places, "count": few})


def nobodys(numbers: pd.DataFrame) -> pd.DataFrame:
    """Counters as rows of nobody, to go along with records of people."""
    blank = pd.Series([""] * len(numbers), dtype=_TEXT)
    return pd.DataFrame({"person": blank, "hash": np.zeros(len(numbers), np.uint64), "place": numbers["place"], "count": numbers["count"]})


NOBODY = nobodys(EMPTY)


def kept(frame: pd.DataFrame, bound: Bound, size: int) -> pd.DataFrame:
    """What the bound leaves of people's records, all of which are in the frame: a table, with the counters that came along."""
    good = frame["place"].to_numpy() >= 0
    codes, texts = pd.factorize(frame["person"][good].to_numpy(dtype=object))
    people, places, records = _grouped(codes.astype(np.int64), frame["place"].to_numpy()[good], frame["count"].to_numpy()[good], bound)
    total = np.bincount(people, weights=records, minlength=len(texts))
    fewer = int((total < bound.most).sum()) if bound.fewer == REFUSE else 0
    lenient = replace(bound, fewer=KEEP) if bound.fewer == REFUSE else bound
    left = np.zeros(len(people), np.int64)
    for part in _slices(people, np.where(total[people] > bound.most, records, 1)):
        start, stop = people[part.start], people[part.stop - 1] + 1
        held = Holdings(codes=people[part] - start, texts=texts[start:stop], places=places[part], records=records[part])
        left[part] = kept_of(held, lenient)
    some = left > 0
    left_in = tallies({Tally.KEPT: total_of(left), Tally.FEWER: fewer})
    tables = (counted(places[some], left[some], size), frame.loc[~good, ["place", "count"]], left_in)
    return summed(joined(tables))


def _grouped(codes: Integers, places: Integers, records: Integers, bound: Bound) -> tuple[Integers, Integers, Integers]:
    """Distinct pairs of person and place, ordered by person, then place, and the records of each."""
    if not len(codes):
        return codes, places, records
    order = np.lexsort((places, codes))
    codes, places = codes[order], places[order]
    first = np.flatnonzero(np.r_[True, (codes[1:] != codes[:-1]) | (places[1:] != places[:-1])])
    number = np.ones(len(first), np.int64) if bound.distinct else np.add.reduceat(records[order], first)
    return codes[first], places[first], number


def _slices(people: Integers, weight: Integers) -> Iterable[slice]:
    """Runs of whole people, ordered by person, of about as many records as are bounded at once."""
    ends = np.r_[np.flatnonzero(people[1:] != people[:-1]) + 1, len(people)][: len(people) and None]
    share = np.cumsum(weight)[ends - 1] // _AT_ONCE if len(people) else ends
    last = ends[np.r_[share[1:] != share[:-1], True]] if len(people) else ends[:0]
    return map(slice, np.r_[0, last[:-1]].tolist() if len(last) else [], last.tolist())
