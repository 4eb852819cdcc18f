"""The expected error of a noisy grid on given boxes, and how much one record changes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpviz.arrays import Floats, Integers, Lines
from dpviz.data.indexes import CornerCounts
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import laplace_variance
from dpviz.space.domain import Domain
from dpviz.space.grids import snap_lines
from dpviz.space.workloads import area_share


def deepest(rectangles: Integers, weight: Integers | None = None) -> int:
    """The largest sum of the weights of rectangles that share a point; at least 0.

    A line sweeps over the columns. A binary tree over the rows keeps, for every node, the largest sum of what lies under it and not
    over all of it, as a list of the columns where that changes; the lists of a level are made from those below, all at once. A
    rectangle has at most eight entries per level: time grows like n log(n)**2 and memory like n, whatever the coordinates.

    Args:
        rectangles: (n, 4) west, south, east, north, half-open; those without an inside count nowhere.
        weight: (n,) whole weights of either sign; 1 each if None.
    """
    solid = (rectangles[:, :2] < rectangles[:, 2:]).all(axis=1)
    weight = (np.ones(len(rectangles), np.int64) if weight is None else weight)[solid]
    if not len(weight):
        return 0
    west, south, east, north = rectangles[solid].T
    edges, rows = np.unique(np.concatenate([south, north]), return_inverse=True)
    low, high = (np.tile(part, 2) for part in rows.reshape(2, -1))
    column, step = np.concatenate([west, east]), np.concatenate([weight, -weight])
    lists = np.zeros((3, 0), np.int64)
    for _ in range((len(edges) - 2).bit_length() + 1):
        first, last = (low < high) & (low % 2 == 1), (low < high) & (high % 2 == 1)
        whole = np.stack([np.concatenate(pair) for pair in ((low[first], high[last] - 1), *((c[first], c[last]) for c in (column, step)))])
        lists = _level(lists, whole)
        low, high = (low + first) // 2, (high - last) // 2
    return max(int(lists[2].max()), 0)


def _level(below: Integers, whole: Integers) -> Integers:
    """The lists of one level of nodes.

    Args:
        below: (3, k) node, column, largest sum from there on: the lists of the children.
        whole: (3, l) node, column, by how much the weight of what lies over all of the node changes.

    Returns:
        (3, m) node, column, largest sum from there on, in this order.
    """
    kind = np.concatenate([below[0] % 2, np.full(whole.shape[1], 2)])
    node, column, value = np.concatenate([np.stack([below[0] // 2, *below[1:]]), whole], axis=1)
    order = np.lexsort((column, node))
    node, column, value, kind = node[order], column[order], value[order], kind[order]
    index, fresh = np.arange(len(node)), np.diff(node, prepend=-1) > 0
    start = np.maximum.accumulate(np.where(fresh, index, 0))
    over = np.concatenate([[0], np.cumsum(np.where(kind == 2, value, 0))])
    latest = (np.maximum.accumulate(np.where(kind == side, index, -1)) for side in (0, 1))
    left, right = (np.where(seen >= start, value[seen], 0) for seen in latest)
    found = np.stack([node, column, over[1:] - over[start] + np.maximum(left, right)])
    ends = np.append((node[1:] != node[:-1]) | (column[1:] != column[:-1]), True)
    return found[:, ends]


Sums = Callable[[Integers, Integers], Integers]
"""Rows and columns of a grid to the sum of the values of all cells south of the one and west of the other; `np.multiply` for cells of 1."""

MOST_BOXES = 2**14


@dataclass(frozen=True, kw_only=True, eq=False)
class Boxes:
    """Boxes to tune by. PUBLIC.

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
        """The largest number of boxes that share a point."""
        return deepest(self.lattice)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoxQueries:
    """Public boxes and the private points whose records they count. PRIVATE.

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
    boxes = [area_share(domain, size**2, per_size, seed + index) for index, size in enumerate(sizes)]
    return Boxes(domain=domain, lattice=domain.lattice(np.concatenate(boxes)).astype(np.int64))


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


BOUNDS = ("tight", "paper")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Expected:
    """What a candidate is expected to do on q boxes. PRIVATE, but for `moved`.

    Attributes:
        error: (q,) bounds on the expected absolute error, computed without cancellation (see `clipped_scores`).
        moved: public bound on how much one added or removed record changes `error`, summed over all boxes.
    """

    error: Floats
    moved: float


def expected_grid(queries: BoxQueries, side: int, budget: PureBudget, *, bound: str = "tight") -> Expected:
    """Bounds on the expected absolute error of a side x side grid of noisy counts.

    "paper" is |sum alpha c - d| + lambda sum alpha, with alpha the share of each cell in the box, c its count, d the true
    answer and lambda = m / epsilon. It adds up the sizes of all noises as if none cancelled, and so grows with the number of
    cells in a box where the true error grows with its root. On data of the paper's three sizes, with its candidates and epsilon
    1, its mean is 4 to 98 times that of "tight", nearly all of it noise, and least for the smallest candidate on all three sets,
    which "tight" and measured errors say of none: it is TOO LOOSE TO TUNE BY.
    "tight" is the root of (sum alpha c - d)**2 + v sum alpha**2, with v the variance of the noise: the root mean square error,
    which the mean error cannot exceed (Jensen's inequality).

    Args:
        queries: the boxes, and the points.
        side: cells per side, at most the lattice's.
        budget: for the counts.
        bound: "tight" or "paper".

    Privacy:
        Write b for |sum alpha c - d|. A record in a cell with share alpha of a box changes b by |alpha - 1| if the box holds the
        record, else by alpha: by at most 1 for a box that cuts the cell, and not at all for one that wholly covers it (alpha =
        1, and the record is inside) or does not touch it. Noise parts are public constants, and b + n as well as the root of
        b**2 + n**2 change by no more than b does. So the sum over boxes changes by at most the number of boxes that cut one cell.

    Source:
        Fanaeepour, Rubinstein, 2017, Theorem 7.1 (i); "tight" is ours.
    """
    cover = grid_cover(queries.boxes, side)
    noise = noise_part(cover, budget, queries.points.contributions, bound)
    return Expected(error=combined(grid_bias(queries, side), noise, bound), moved=cover.most_cut)


@lru_cache(maxsize=64)
def grid_cover(boxes: Boxes, side: int) -> Cover:
    """How boxes lie over a side x side grid. PUBLIC, so it may be kept."""
    lines = snap_lines(side, boxes.domain.side)
    return Cover.of(boxes.lattice, lines, lines)


def grid_bias(queries: BoxQueries, side: int) -> Floats:
    """(q,) error of a grid without noise, |sum alpha c - d|: that of assuming uniformity inside cells. PRIVATE."""
    lines = snap_lines(side, queries.points.domain.side)
    answer = grid_cover(queries.boxes, side).weighted(CornerCounts(points=queries.points, columns=lines, rows=lines).at)
    return np.asarray(np.abs(answer - queries.truth))


def combined(bias: Floats, noise: Floats, bound: str) -> Floats:
    """The error bound from its two parts: their sum ("paper") or the root of the sum of squares ("tight")."""
    return bias + noise if bound == "paper" else np.sqrt(bias**2 + noise**2)


def noise_part(cover: Cover, budget: PureBudget, contributions: int, bound: str) -> Floats:
    """(q,) what the noise adds: lambda sum alpha ("paper"), or its standard deviation ("tight"). PUBLIC."""
    scale = contributions / budget.epsilon
    return float(scale) * cover.area if bound == "paper" else np.sqrt(laplace_variance(scale) * cover.squares)


def response_sensitivity(total: float, sanity: float, noise: Floats) -> Floats:
    """(c,) how much one record changes the mean relative error bound of each candidate, rho = sanity x total.

    Args:
        total: |D|, declared in public, at least 100.
        sanity: delta, above 0 and at most 0.5.
        noise: (c, q) noise parts, lambda sum alpha in the paper.

    Privacy:
        For rho and |D| fixed in public and b = |sum alpha c - d| cut at |D|. In one box the bound is u / v, u = min(b, |D|) + n,
        v = max(d, rho). A record changes u by 1 at most. If v does not change, u / v changes by 1 / rho at most, which is no more
        than the first term if |D| (1 - sanity) >= 1, as it is for all that is allowed above. Else v grows by e <= 1, and u / v
        changes by u e / (v (v + e)) + 1 / (v + e) at most, which goes one way with e: it is between its values 1 / v <= 1 / rho
        for e = 0 and u / (v (v + 1)) + 1 / (v + 1) <= (|D| + n) / (rho (rho + 1)) + 1 / (rho + 1) for e = 1. The three terms are
        no less than either. In the paper rho and |D| are those of the private data, and then so are these sensitivities, which
        noise must not be scaled by: that is why |D| must be declared.

    Source:
        Fanaeepour, Rubinstein, 2017, Corollary 7.9.
    """
    return _three_terms(total, sanity, noise.mean(axis=1))


def overlap_sensitivity(total: float, sanity: float, noise: Floats) -> float:
    """The same for all candidates, with the largest noise part of each box; arguments as for `response_sensitivity`.

    Source:
        Fanaeepour, Rubinstein, 2017, Equation 7.
    """
    return float(_three_terms(total, sanity, noise.max(axis=0).mean()))


def largest_grid_sensitivity(total: float, sanity: float, scale: float, sides: Sequence[int]) -> float:
    """The same for all candidates and any boxes: as if a box covered all cells of the finest grid.

    Args:
        total: |D|.
        sanity: delta.
        scale: lambda.
        sides: cells per side.

    Source:
        Fanaeepour, Rubinstein, 2017, Equation 8.
    """
    return float(_three_terms(total, sanity, np.float64(scale * max(sides) ** 2)))


def _three_terms(total: float, sanity: float, noise: Floats | np.float64) -> Floats:
    rho = sanity * total
    return np.asarray(1 / (sanity * (rho + 1)) + noise / (rho * (rho + 1)) + 1 / (rho + sanity))
