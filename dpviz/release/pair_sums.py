"""Counts added up per pair of regions, ready to be looked up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.space.regions import Places

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSums:
    """Distinct pairs of regions, ordered by origin, then destination.

    Attributes:
        origin: (k,) places.
        destination: (k,) places.
        count: (k,) sums.
        width: how many destination regions there are.
    """

    origin: Places
    destination: Places
    count: Integers
    width: int

    def at(self, origin: Places, destination: Places) -> Integers:
        """(q,) sums of pairs; 0 where a pair is missing."""
        if not len(self.count):
            return np.zeros(len(origin), np.int64)
        known = self.origin * np.int64(self.width) + self.destination
        wanted = origin * np.int64(self.width) + destination
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.count[place], 0)


def pair_sums(origin: Places, destination: Places, count: Integers, width: int) -> PairSums:
    """Add up counts per pair; `width` is the number of destination regions. Sums are exact integers."""
    key = origin * np.int64(width) + destination
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
    sums = np.add.reduceat(count[order], first) if len(first) else np.zeros(0, np.int64)
    one, other = np.divmod(key[first], width)
    return PairSums(origin=one.astype(np.int32), destination=other.astype(np.int32), count=sums, width=width)
