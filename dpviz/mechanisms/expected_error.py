"""The expected error of a noisy grid on query boxes, and how much one record changes this error."""

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


def largest_overlap(rectangles: Integers, weight: Integers | None = None) -> int:
    """Find the largest sum of the weights of rectangles that share a point; at least 0.

    A line sweeps over the columns. A binary tree divides the rows. For every node of this tree, a list holds the columns at which the
    node's largest sum changes. The sum of a node counts the rectangles that cover only a part of the node's rows, or all of them but
    not all rows of the node's parent. The lists of a level are made from the lists of the level below, for all nodes at once. A
    rectangle has at most eight entries per level, so time grows like n log(n)**2 and memory like n, whatever the coordinates.

    Args:
        rectangles: (n, 4) west, south, east, north, half-open; rectangles of zero area share no point.
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
        changes = np.stack(
            [np.concatenate(pair) for pair in ((low[first], high[last] - 1), *((c[first], c[last]) for c in (column, step)))]
        )
        lists = _merge_lists(lists, changes)
        low, high = (low + first) // 2, (high - last) // 2
    return max(int(lists[2].max()), 0)


def _merge_lists(child_lists: Integers, changes: Integers) -> Integers:
    """Make the lists of one level of nodes.

    Args:
        child_lists: (3, k) the lists of the children: node, column, and the largest sum from this column on.
        changes: (3, l) node, column, and by how much the weight of the rectangles over the whole node changes at this column.

    Returns:
        (3, m) node, column, and the largest sum from this column on, sorted by node and column.
    """
    source = np.concatenate([child_lists[0] % 2, np.full(changes.shape[1], 2)])
    node, column, value = np.concatenate([np.stack([child_lists[0] // 2, *child_lists[1:]]), changes], axis=1)
    order = np.lexsort((column, node))
    node, column, value, source = node[order], column[order], value[order], source[order]
    index, fresh = np.arange(len(node)), np.diff(node, prepend=-1) > 0
    start = np.maximum.accumulate(np.where(fresh, index, 0))
    over = np.concatenate([[0], np.cumsum(np.where(source == 2, value, 0))])
    latest = (np.maximum.accumulate(np.where(source == side, index, -1)) for side in (0, 1))
    left, right = (np.where(seen >= start, value[seen], 0) for seen in latest)
    merged = np.stack([node, column, over[1:] - over[start] + np.maximum(left, right)])
    ends = np.append((node[1:] != node[:-1]) | (column[1:] != column[:-1]), True)
    return merged[:, ends]


Sums = Callable[[Integers, Integers], Integers]
"""A function of row and column lines of a grid: the sum of the cells south of the row line and west of the column line.

If every cell has the value 1, this function is `np.multiply`.
"""

MOST_BOXES = 2**14


@dataclass(frozen=True, kw_only=True, eq=False)
class Boxes:
    """Boxes on which candidates for tuning are compared. PUBLIC.

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
        """Distinct columns and rows of all corners, and their indices for each box: (q, 2) west and east, (q, 2) south and north."""
        distinct = [np.unique(self.lattice[:, [axis, axis + 2]], return_inverse=True) for axis in (0, 1)]
        (columns, i), (rows, j) = distinct
        return columns.astype(np.int32), rows.astype(np.int32), i.reshape(-1, 2), j.reshape(-1, 2)

    @cached_property
    def most_inside(self) -> int:
        """Largest number of boxes that share a point."""
        return largest_overlap(self.lattice)


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
        """Exact number of records in each box, (q,)."""
        columns, rows, i, j = self.boxes.corners
        sums = CornerCounts(points=self.points, columns=columns, rows=rows).at(j[:, :, None], i[:, None, :])
        return np.asarray(sums[:, 1, 1] - sums[:, 0, 1] - sums[:, 1, 0] + sums[:, 0, 0])


@lru_cache(maxsize=16)
def tuning_boxes(domain: Domain, sizes: tuple[float, ...], per_size: int, seed: int) -> Boxes:
    """Make random boxes with the domain's proportions for tuning. PUBLIC: they come from a seed and never from data.

    Args:
        domain: the public frame.
        sizes: shares of the domain's width and height, above 0 and at most 1.
        per_size: number of boxes of each size.
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
    """The cells of a grid that each of (q,) boxes covers.

    Along each axis a box covers three parts of the grid: a cell that it may cut, a run of whole cells, and another cell that it may cut.

    Attributes:
        edges: (q, 4) first column, first row, last column + 1 and last row + 1 of the cells that a box touches.
        low: (q, 2, 3) cell at which each of the three parts begins, along columns and rows.
        high: (q, 2, 3) cell before which each part ends; a part may be empty.
        share: (q, 2, 3) share of the width or height of the part's cells that lies in the box, 0 to 1.
    """

    edges: Integers
    low: Integers
    high: Integers
    share: Floats

    @classmethod
    def of(cls, boxes: Integers, columns: Lines, rows: Lines) -> Cover:
        """Compute the cover of (q, 4) boxes on lattice lines over the grid with (c + 1,) column lines and (r + 1,) row lines."""
        parts = [_cover_axis(lines.astype(np.int64), boxes[:, axis], boxes[:, axis + 2]) for axis, lines in ((0, columns), (1, rows))]
        low, high, share = (np.stack(axes, axis=1) for axes in zip(*parts, strict=True))
        edges = np.concatenate([low[:, :, 0], high.max(axis=2)], axis=1)
        return cls(edges=edges, low=low, high=high, share=share)

    def weighted(self, sums: Sums, power: int = 1) -> Floats:
        """Compute (q,) the sum over cells of share**power x value.

        The sum has nine terms. Each one is a product of an exact whole number and rounded shares, and none is negative. So the relative
        error of the sum is below 16 x 2**-53, whatever the values.

        Args:
            sums: sums of the cells' values, which are whole numbers of at least 0.
            power: 1 for answers in proportion to area, 2 for the squared shares that weight variances.
        """
        return np.asarray((self.blocks(sums) * self._shares(power)).sum(axis=(1, 2)))

    def cut(self, sums: Sums) -> Floats:
        """Compute (q,) the sum of share**2 x value over the cells that a box touches but does not wholly cover."""
        share = self._shares(2)
        return np.asarray((self.blocks(sums) * np.where(share < 1, share, 0)).sum(axis=(1, 2)))

    def whole(self) -> Integers:
        """Return (q, 4) the cells wholly inside a box: first column, first row, last column + 1, last row + 1; all 0 if there are none."""
        inside = self.share == 1
        low = np.where(inside, self.low, np.iinfo(np.int64).max).min(axis=2)
        high = np.where(inside, self.high, -1).max(axis=2)
        none = high <= low
        return np.concatenate([np.where(none, 0, low), np.where(none, 0, high)], axis=1)

    def blocks(self, sums: Sums) -> Integers:
        """Return (q, 3, 3) exact sums of the cells' values in each part, indexed by parts of rows, then parts of columns."""
        (i0, j0), (i1, j1) = ((edge[:, 0, None, :], edge[:, 1, :, None]) for edge in (self.low, self.high))
        return sums(j1, i1) - sums(j0, i1) - sums(j1, i0) + sums(j0, i0)

    @cached_property
    def most_cut(self) -> int:
        """Largest number of boxes that cut the same cell. A box cuts a cell that it touches but does not wholly cover."""
        return largest_overlap(np.concatenate([self.edges, self.whole()]), np.repeat([1, -1], len(self.edges)))

    @cached_property
    def area(self) -> Floats:
        """Number of cells that a box covers, (q,): the sum of the shares of its cells."""
        return self.weighted(np.multiply)

    @cached_property
    def squares(self) -> Floats:
        """Variance of a box's answer in multiples of the variance of one cell's noise, (q,): the sum of squared shares."""
        return self.weighted(np.multiply, 2)

    def _shares(self, power: int) -> Floats:
        return np.asarray(self.share[:, 1, :, None] ** power * self.share[:, 0, None, :] ** power)


def _cover_axis(lines: Integers, low: Integers, high: Integers) -> tuple[Integers, Integers, Floats]:
    """Return (q, 3) beginnings, ends and shares of the three parts of (q,) ranges along one axis."""
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
    """Expected errors of a candidate on q boxes. PRIVATE, except for `sensitivity`.

    Attributes:
        error: (q,) bounds on the expected absolute error in records, computed without cancellation (see `clipped_scores`).
        sensitivity: public bound on the sum over all boxes of the change of `error` by one added or removed record, in records.
    """

    error: Floats
    sensitivity: float


def expected_grid(queries: BoxQueries, side: int, budget: PureBudget, *, bound: str = "tight") -> Expected:
    """Bound the expected absolute errors of a side x side grid of noisy counts.

    "paper" is |sum alpha c - d| + lambda sum alpha, where alpha is the share of each cell that lies in the box, c the cell's count, d the
    true answer and lambda = m / epsilon. This bound adds up the sizes of all noises as if no two of them cancelled. So it grows with the
    number of cells in a box, while the true error grows with the square root of this number. The "paper" bound is TOO LOOSE TO TUNE BY:
    on data of the paper's three sizes, with the paper's candidates and epsilon 1, its mean is 4 to 98 times the mean of "tight", and
    nearly all of it is noise. On all three data sets its mean is smallest for the smallest candidate, while by "tight" and by measured
    errors the smallest candidate is the best one on none of them.
    "tight" is the square root of (sum alpha c - d)**2 + v sum alpha**2, where v is the variance of the noise. This is the root mean
    square error, which the mean absolute error cannot exceed (Jensen's inequality).

    Args:
        queries: the boxes and the points.
        side: cells per side, at most as many as the lattice has.
        budget: the budget of the counts.
        bound: "tight" or "paper".

    Privacy:
        Write b for |sum alpha c - d|. A record in a cell with share alpha of a box changes b by |alpha - 1| if the box holds the
        record, else by alpha. So b changes by at most 1 if the box cuts the cell. It does not change if the box wholly covers the cell
        (then alpha = 1 and the record is inside) or does not touch it. The noise part n is a public constant, and b + n as well as the
        square root of b**2 + n**2 change by no more than b does. So the sum over boxes changes by at most the largest number of boxes
        that cut the same cell.

    Source:
        Fanaeepour, Rubinstein, 2017, Theorem 7.1 (i); "tight" is our own.
    """
    cover = grid_cover(queries.boxes, side)
    noise = noise_part(cover, budget, queries.points.contributions, bound)
    return Expected(error=combined(grid_bias(queries, side), noise, bound), sensitivity=cover.most_cut)


@lru_cache(maxsize=64)
def grid_cover(boxes: Boxes, side: int) -> Cover:
    """Compute how boxes cover a side x side grid. PUBLIC, so the result may be cached."""
    lines = snap_lines(side, boxes.domain.side)
    return Cover.of(boxes.lattice, lines, lines)


def grid_bias(queries: BoxQueries, side: int) -> Floats:
    """Compute (q,) absolute errors of a grid without noise, |sum alpha c - d|, from assuming uniformity inside cells. PRIVATE."""
    lines = snap_lines(side, queries.points.domain.side)
    answer = grid_cover(queries.boxes, side).weighted(CornerCounts(points=queries.points, columns=lines, rows=lines).at)
    return np.asarray(np.abs(answer - queries.truth))


def combined(bias: Floats, noise: Floats, bound: str) -> Floats:
    """Combine the two parts of an error bound: by their sum ("paper"), or by the square root of the sum of squares ("tight")."""
    return bias + noise if bound == "paper" else np.sqrt(bias**2 + noise**2)


def noise_part(cover: Cover, budget: PureBudget, contributions: int, bound: str) -> Floats:
    """Compute (q,) the noise part of the error bound: lambda sum alpha ("paper"), or the noise's standard deviation ("tight"). PUBLIC."""
    scale = contributions / budget.epsilon
    return float(scale) * cover.area if bound == "paper" else np.sqrt(laplace_variance(scale) * cover.squares)


def response_sensitivity(total: float, sanity: float, noise: Floats) -> Floats:
    """Bound (c,) the change of each candidate's mean relative error bound by one record, with rho = sanity x total.

    Args:
        total: |D|, declared in public, at least 100.
        sanity: delta, above 0 and at most 0.5.
        noise: (c, q) noise parts, lambda sum alpha in the paper.

    Privacy:
        The proof takes rho and |D| as fixed public numbers and b = |sum alpha c - d| as cut at |D|. In one box the bound is u / v with
        u = min(b, |D|) + n and v = max(d, rho). One record changes u by at most 1. If v does not change, u / v changes by at most
        1 / rho. This is no more than the first of the three terms if |D| (1 - sanity) >= 1, which holds for all arguments allowed above.
        Otherwise v grows by e <= 1, and u / v changes by at most u e / (v (v + e)) + 1 / (v + e). This expression is monotone in e, so it
        lies between its value for e = 0, which is 1 / v <= 1 / rho, and its value for e = 1, which is u / (v (v + 1)) + 1 / (v + 1) <=
        (|D| + n) / (rho (rho + 1)) + 1 / (rho + 1). The sum of the three terms is no less than either value. In the paper rho and |D|
        follow from the private data. Then these sensitivities are private too, and noise must not be scaled by private numbers: this
        is why |D| must be declared.

    Source:
        Fanaeepour, Rubinstein, 2017, Corollary 7.9.
    """
    return _sum_three_terms(total, sanity, noise.mean(axis=1))


def overlap_sensitivity(total: float, sanity: float, noise: Floats) -> float:
    """Bound the same change for all candidates at once, with the largest noise part of each box; arguments as in `response_sensitivity`.

    Source:
        Fanaeepour, Rubinstein, 2017, Equation 7.
    """
    return float(_sum_three_terms(total, sanity, noise.max(axis=0).mean()))


def largest_grid_sensitivity(total: float, sanity: float, scale: float, sides: Sequence[int]) -> float:
    """Bound the same change for all candidates and any boxes, as if each box covered all cells of the finest grid.

    Args:
        total: |D|.
        sanity: delta.
        scale: lambda, the scale of the noise on one count.
        sides: cells per side of each candidate.

    Source:
        Fanaeepour, Rubinstein, 2017, Equation 8.
    """
    return float(_sum_three_terms(total, sanity, np.float64(scale * max(sides) ** 2)))


def _sum_three_terms(total: float, sanity: float, noise: Floats | np.float64) -> Floats:
    rho = sanity * total
    return np.asarray(1 / (sanity * (rho + 1)) + noise / (rho * (rho + 1)) + 1 / (rho + sanity))
