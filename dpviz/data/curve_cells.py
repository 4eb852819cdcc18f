"""Occupied cells along the Z-order curve, on which the records of every quadtree node are contiguous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts
from dpviz.space.morton import morton

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveCells:
    """Places of occupied cells on the Z-order curve, sorted once. PRIVATE.

    Attributes:
        place: (k,) in ascending order.
        below: (k + 1,) records before each, and all of them.
        order: of the lattice.
    """

    place: Integers
    below: Integers
    order: int

    def __repr__(self) -> str:
        return f"CurveCells(order {self.order})"

    @classmethod
    def of(cls, points: PointCounts) -> Self:
        """All occupied cells of a lattice."""
        place = morton(points.column.astype(np.int64), points.row.astype(np.int64))
        sort = np.argsort(place)
        below = np.concatenate([[0], np.cumsum(points.count[sort])])
        return cls(place=place[sort], below=below, order=points.domain.order)

    def records(self, node: Integers, depth: int) -> Integers:
        """(n,) records in nodes of a quadtree, given by their places on the curve of 2**depth columns; ascending is fastest."""
        shift = 2 * (self.order - depth)
        begin, end = np.searchsorted(self.place, [node << shift, (node + 1) << shift])
        return np.asarray(self.below[end] - self.below[begin])
