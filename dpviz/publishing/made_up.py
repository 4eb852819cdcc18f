"""What stands for private data before they are used: no record at all, or made-up ones. PUBLIC."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.data.areas import AreaCounts
from dpviz.data.cells import leave_masked_out
from dpviz.data.counts import Counts
from dpviz.data.fingerprints import UNKNOWN
from dpviz.data.trips import TripCounts

if TYPE_CHECKING:
    from dpviz.publishing.private_data import PrivateData

C = TypeVar("C", bound=Counts)
RECORDS_PER_CELL = np.int64(10_000)  # enough to pass the thresholds of mechanisms


def without_records(data: C) -> C:
    """Return the data without any record; domain or regions, unit and bounds are unchanged. The result is public."""
    nowhere: dict[str, Any] = {name: np.zeros(0, np.int32) for name in data.places}
    notes: dict[str, Any] = {"notes": ()} if isinstance(data, TripCounts) else {}
    none_left_out: dict[str, Any] = dict.fromkeys(("dropped", "outside", "bad", "over"), 0)
    return replace(data, **nowhere, **notes, **none_left_out, count=np.zeros(0, np.int64), fingerprints=UNKNOWN)


def make_up_records(data: PrivateData) -> PrivateData:
    """Replace the records by made-up ones: 10,000 in each of up to 1,000 cells, regions or pairs. The result is public."""
    empty = without_records(data)
    if isinstance(empty, TripCounts):
        ends = empty.ends.size(empty.ends.depth)
        pair = _evenly_spaced(empty.regions.size(empty.regions.depth) * ends)
        origin, destination = (pair // ends).astype(np.int32), (pair % ends).astype(np.int32)
        return replace(empty, origin=origin, destination=destination, count=np.full(len(pair), RECORDS_PER_CELL))
    if isinstance(empty, AreaCounts):
        leaf = _evenly_spaced(empty.regions.size(empty.regions.depth)).astype(np.int32)
        return replace(empty, leaf=leaf, count=np.full(len(leaf), RECORDS_PER_CELL))
    cell = _evenly_spaced(empty.domain.side**2)
    leave_masked_out(cell, empty.domain)
    cell = cell[cell >= 0]
    row, column = (cell // empty.domain.side).astype(np.int32), (cell % empty.domain.side).astype(np.int32)
    return replace(empty, column=column, row=row, count=np.full(len(cell), RECORDS_PER_CELL))


def _evenly_spaced(size: int) -> NDArray[np.int64]:
    """Return up to 1,000 whole numbers below `size`, evenly spaced."""
    return np.unique(np.linspace(0, size - 1, min(size, 1000)).astype(np.int64))
