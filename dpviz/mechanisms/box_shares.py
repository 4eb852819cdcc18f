"""How boxes lie over grids: true counts, answers by share of area and squared shares, for all boxes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.data.corner_counts import CornerCounts
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.space.deepest import deepest
from dpviz.space.domain import Domain
from dpviz.space.tree import Lines
from dpviz.space.workloads import area_share

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Sums = Callable[[Integers, Integers], Integers]
"""Rows and columns of a grid to the sum of the values of all cells south of the one and west of the other; `np.multiply` for cells of 1."""

MOST_BOXES = 2**14


@dataclass(frozen=True, kw_only=True, eq=False)
class Boxes:
    """Questions to tune by. PUBLIC.

    Attributes:
        domain: the public frame.
        lattice: (q, 4) west, south, east, north as lattice lines.
    """

    domain: Domain
    lattice: Integers

    def __len__(self) -> int:
        return len(self.lattice)

    @cached_property
    def corners(self) -> tuple[Lines, Lines, Integers, Integers]:
        """The different columns and rows of all corners, and which of them each box has: (q, 2) west and east, south and north."""
        found = [np.unique(self.lattice[:, [axis, axis + 2]], return_inverse=True) for axis in (0, 1)]
        (columns, i), (rows, j) = found
        return columns.astype(np.int32), rows.astype(np.int32), i.reshape(-1, 2), j.reshape(-1, 2)

    @cached_property
    def most_inside(self) -> int:
        """The largest number of boxes that hold one and the same place."""
        return deepest(self.lattice)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Asked:
    """Questions asked of private points. PRIVATE.

    Attributes:
        points: private.
        boxes: public.
    """

    points: PointCounts
    boxes: Boxes

    @cached_property
    def truth(self) -> Integers:
        """(q,) exact records in each box."""
        columns, rows, i, j = self.boxes.corners
        sums = CornerCounts(points=self.points, columns=columns, rows=rows).at(j[:, :, None], i[:, None, :])
        return np.asarray(sums[:, 1, 1] - sums[:, 0, 1] - sums[:, 1, 0] + sums[:, 0, 0])


@lru_cache(maxsize=16)
def tuning_boxes(domain: Domain, sizes: tuple[float, ...], per_size: int, seed: int) -> Boxes:
    """Random boxes with the domain's proportions to tune by; PUBLIC, they come from a seed and never from data.

    Args:
        domain: the public frame.
        sizes: shares of the domain's width and height, above 0 and at most 1.
        per_size: how many boxes of each.
        seed: the same seed gives the same boxes.

    Raises:
        SettingError: no size, or more than 16,384 boxes.

    Source:
        Fanaeepour, Rubinstein, 2017, Section 8.4: 100 random positions for each size.
    """
    if not 1 <= len(sizes) * per_size <= MOST_BOXES:
        raise SettingError(f"Tuning needs from 1 to {MOST_BOXES:,} boxes.")
    drawn = [area_share(domain, size**2, per_size, seed + place) for place, size in enumerate(sizes)]
    return Boxes(domain=domain, lattice=domain.lattice(np.concatenate(drawn)).astype(np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cover:
    """How (q,) boxes lie over the cells of a grid: per axis a cut cell, a run of whole ones, a cut cell.

    Attributes:
        edges: (q, 4) first and last + 1 of the cells that a box touches: west, south, east, north.
        low: (q, 2, 3) where the three parts begin, along columns and rows.
        high: (q, 2, 3) where they end; a part may be empty.
        share: (q, 2, 3) how much of its cells lies in the box, 0 to 1.
    """

    edges: Integers
    low: Integers
    high: Integers
    share: Floats

    @classmethod
    def of(cls, boxes: Integers, columns: Lines, rows: Lines) -> Cover:
        """Of (q, 4) boxes on lattice lines over the grid between (c + 1,) columns and (r + 1,) rows."""
        parts = [_along(lines.astype(np.int64), boxes[:, axis], boxes[:, axis + 2]) for axis, lines in ((0, columns), (1, rows))]
        low, high, share = (np.stack(each, axis=1) for each in zip(*parts, strict=True))
        edges = np.concatenate([low[:, :, 0], high.max(axis=2)], axis=1)
        return cls(edges=edges, low=low, high=high, share=share)

    def weighted(self, sums: Sums, power: int = 1) -> Floats:
        """(q,) sum over cells of share**power x value.

        All nine terms are products of an exact whole number and of rounded shares, none negative, so that the relative error is
        below 16 x 2**-53 whatever the values.

        Args:
            sums: of the cells' values, whole and at least 0.
            power: 1 for the answer by share of area, 2 for the squared shares that weigh variances.
        """
        return np.asarray((self.blocks(sums) * self._shares(power)).sum(axis=(1, 2)))

    def cut(self, sums: Sums) -> Floats:
        """(q,) sum of share**2 x value over the cells that a box does not wholly cover."""
        share = self._shares(2)
        return np.asarray((self.blocks(sums) * np.where(share < 1, share, 0)).sum(axis=(1, 2)))

    def whole(self) -> Integers:
        """(q, 4) first and last + 1 of the cells wholly inside a box: west, south, east, north; empty where none is."""
        inside = self.share == 1
        low = np.where(inside, self.low, np.iinfo(np.int64).max).min(axis=2)
        high = np.where(inside, self.high, -1).max(axis=2)
        none = high <= low
        return np.concatenate([np.where(none, 0, low), np.where(none, 0, high)], axis=1)

    def blocks(self, sums: Sums) -> Integers:
        """(q, 3, 3) exact sums of the cells' values in each part, [rows, columns]."""
        (i0, j0), (i1, j1) = ((edge[:, 0, None, :], edge[:, 1, :, None]) for edge in (self.low, self.high))
        return sums(j1, i1) - sums(j0, i1) - sums(j1, i0) + sums(j0, i0)

    @cached_property
    def most_cut(self) -> int:
        """The largest number of boxes that cut one and the same cell: touch it, but do not wholly cover it."""
        return deepest(np.concatenate([self.edges, self.whole()]), np.repeat([1, -1], len(self.edges)))

    @cached_property
    def area(self) -> Floats:
        """(q,) sum of shares: how many cells a box covers."""
        return self.weighted(np.multiply)

    @cached_property
    def squares(self) -> Floats:
        """(q,) sum of squared shares: how many times the variance of one cell's noise an answer has."""
        return self.weighted(np.multiply, 2)

    def _shares(self, power: int) -> Floats:
        return np.asarray(self.share[:, 1, :, None] ** power * self.share[:, 0, None, :] ** power)


def _along(lines: Integers, low: Integers, high: Integers) -> tuple[Integers, Integers, Floats]:
    """(q, 3) beginnings, ends and shares of the three parts of (q,) ranges along one axis."""
    first, last = np.searchsorted(lines, low, side="right") - 1, np.searchsorted(lines, high, side="left") - 1
    wide = first < last
    left = (np.minimum(high, lines[first + 1]) - low) / (lines[first + 1] - lines[first])
    right = np.where(wide, (high - lines[last]) / (lines[last + 1] - lines[last]), 0.0)
    begin = np.stack([first, first + 1, np.where(wide, last, first + 1)], axis=1)
    end = np.stack([first + 1, np.where(wide, last, first + 1), np.where(wide, last + 1, first + 1)], axis=1)
    return begin, end, np.stack([left, np.ones(len(low)), right], axis=1)
