"""How far answers may be off because records do not lie evenly inside the partitions that a box cuts: an assumption, not a guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Lines
from dpviz.release.intervals import STDDEVS, Noise, add_skewness
from dpviz.space.mask import CellMask
from dpviz.space.ranges import Front, batches, box_overlap, cumulative
from dpviz.space.tree import Tree

TOLD_APART = 3.0
"""Families of siblings are looked at if their count is above this many standard deviations of its noise."""
MOST_EMPTY = 1 / 3
"""An empty box may take this share of a partition, however even the released counts are."""
LEAST_CORRELATION = 0.1
"""How much alike the errors of two partitions that the same box cuts are at least. On seventeen made-up sets, cut by eight mechanisms,
their mean correlation was 0.08 to 0.12 by kind of box: near 0 in most, 0.9 along streets that run straight along the sides of boxes."""
FEWEST_FAMILIES = 10
"""From fewer families of siblings than these, nothing is learned."""
FAMILIES_ALIKE = 5
"""As if as many more families were seen, in which all errors are alike: this counts where few are seen."""
MOST_UNEVEN = 0.75
"""From this degree on, most records of a partition may lie in one place, so that a variance says too little: nothing is learned."""
STEPS_APART = 4
"""How far apart two partitions of a row that a box cuts are on average, in partitions: (10 + 1) / 3 of ten in a row, rounded."""
MOST_SKEWED = 1.0
"""Skewness up to which ends are moved: above it, the expansion gives too much, and the quantiles of skewed distributions (Gamma) hardly
grow any more."""
CUT = 1e-9
"""A partition is cut if a larger share of it lies inside the box, and a larger share outside: less is rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Unevenness:
    """How unevenly records may lie inside the leaves of a tree, from released numbers alone.

    Of a leaf with n records, let a box contain the share f of the area. It is assumed that the number of these records in the box has the
    variance f (1 - f) (k n**2 + n), as if records fell into parts by a Dirichlet distribution: with k = 0 evenly, by chance alone; with
    k = 1 all into one part. How uneven leaves are inside is not known, but how uneven the nodes just above them are is: k is taken from
    these.

    A strip that is e times as long as wide averages over its length. It counts as e / 2 independent pieces, each twice as long as wide,
    as halves are: so k becomes 2 k / e if e is above 2.

    The errors of two partitions that the same box cuts are alike where a street runs straight through both. How alike neighbours are is
    taken from the released counts, too: r, if the contrast between the left and the right half of a node is about the same in its upper
    and its lower half. Their correlation is r**4, that of neighbours four steps apart, but at least 0.1.

    If m nodes just above leaves have counts that noise does not hide, the correlation is at least 5 / (5 + m). Nothing is learned if m is
    below 10, as in quadtrees of height 1 and 2, or with few records and a small budget, or if k is at least 0.75, as with records at few
    addresses: a box may have all of the records of the partitions that it cuts, or none. No end lies further out than these, ever.

    One village in even land is not seen: where a single partition holds a small crowd and the others are even, k is small, and boxes at
    the crowd's edge hold far less often than said.

    Attributes:
        tree: of n nodes.
        degree: k, 0 to 1.
        correlation: of the errors of any two partitions that the same box cuts.
        families: m.
        size: (n,) numbers of records, at least 0. A count that noise hides is taken to be as large as its standard deviation.
        unbiased: (n,) unbiased counts.
        variance: (n,) of the noise in these; 0 where none is stated.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> cells = {"even": np.full((16, 16), 40), "uneven": 640 * np.eye(16, dtype=int)}
    >>> for name, matrix in cells.items():
    ...     points = dv.PointCounts.from_matrix(matrix, domain=domain)
    ...     release = dv.Quadtree(height=3).release(points, dv.PureBudget(10), dv.Entropy.seeded(1))
    ...     print(name, *(end.tolist() for end in release.answer_interval([(0, 0, 1, 1), (0, 0, 2, 2)])))
    even [0.0, 159.0] [101.0, 161.0]
    uneven [0.0, 1279.0] [1281.0, 1281.0]
    """

    tree: Tree
    degree: float
    correlation: float
    families: int
    size: Floats
    unbiased: Floats
    variance: Floats

    @classmethod
    def of(cls, tree: Tree, cells: Floats, counts: tuple[Floats, Floats], stddev: Floats, noise: Noise) -> Unevenness:
        """Estimate it from released numbers.

        Args:
            tree: of n nodes.
            cells: (n,) number of cells of each node in which records can be.
            counts: (n,) counts after post-processing, and (n,) unbiased ones.
            stddev: (n,) standard deviations of the noise in the latter.
            noise: the kind of noise.
        """
        known = np.where(np.isfinite(stddev), stddev, 0.0)
        reach = STDDEVS[noise]
        least = MOST_EMPTY / ((1 - MOST_EMPTY) * reach**2)  # so that f n is at most `reach` deviations for f = MOST_EMPTY
        families = _families_above_leaves(tree, cells, counts[1], known)
        degree = (1 + families.sum()) / (1 + len(families))
        alike = _likeness_of_neighbours(tree, cells, counts[1], known)
        return cls(
            tree=tree,
            degree=float(np.clip(degree, least, 1.0)),
            correlation=max(LEAST_CORRELATION, alike**STEPS_APART, FAMILIES_ALIKE / (FAMILIES_ALIKE + len(families))),
            families=len(families),
            size=np.maximum(counts[0], known),
            unbiased=counts[1],
            variance=known**2,
        )

    @property
    def is_learned(self) -> bool:
        """Whether enough families are seen, not too uneven; if not, boxes may have all of the records of what they cut, or none."""
        return self.families >= FEWEST_FAMILIES and self.degree < MOST_UNEVEN

    def moments(self, node: NDArray[np.int64] | slice) -> Floats:
        """Return (5, k) sizes, their squares and cubes, unbiased counts and variances of their noise, of k nodes."""
        n = self.size[node]
        return np.stack([n, n**2, n**3, self.unbiased[node], self.variance[node]])

    @cached_property
    def sums(self) -> list[Floats]:
        """Of a tree whose leaves are one grid, the 5 sums of `moments` over all leaves south-west of each crossing of lines."""
        return [corners.sums for values in self.moments(slice(None)) if (corners := cumulative(self.tree, values))]


def _families_above_leaves(tree: Tree, cells: Floats, count: Floats, stddev: Floats) -> Floats:
    """Estimate (k,) unevenness of the nodes just above leaves, each without bias, so that some are below 0.

    Of a node with n records, let c be the count of a child with the share s of its cells. The sum of (c - s n)**2 over children has the
    expectation k n**2 + n times the sum of s (1 - s), plus the variance of noise, in which siblings are taken as independent. Nodes whose
    count is hardly more than noise are left out.
    """
    child, parent = np.arange(1, len(tree)), tree.parent[1:]
    total, area, noise = (np.bincount(parent, values[1:], len(tree)) for values in (count, cells, stddev**2))
    share = np.divide(cells[child], area[parent], out=np.zeros(len(child)), where=area[parent] > 0)
    off = (count[child] - share * total[parent]) ** 2 - (1 - 2 * share) * stddev[child] ** 2 - share**2 * noise[parent]
    excess, evenly = np.bincount(parent, off, len(tree)), np.bincount(parent, share * (1 - share), len(tree))
    node = _just_above_leaves(tree)
    node = node[(evenly[node] > 0) & (total[node] > np.maximum(TOLD_APART * np.sqrt(noise[node]), 1.0))]
    return np.asarray(excess[node] / (evenly[node] * total[node] ** 2) - 1 / total[node])


def _likeness_of_neighbours(tree: Tree, cells: Floats, count: Floats, stddev: Floats) -> float:
    """Estimate r, 0 to 1: how alike the contrasts between halves of a node are in its two other halves; 0 where no node has four quarters.

    Let a, b and c be the squares, without what chance and noise add, of the contrasts between left and right, bottom and top, and the two
    diagonals. With streets along the sides c is 0; if quarters are independent, all three are equal: r is (a + b - 2 c) / (a + b + 2 c),
    of sums over nodes. As for k, one more node is added, wholly uneven, whose quarters are independent.
    """
    node = _just_above_leaves(tree)
    child = tree.first_child[node[tree.children[node] == 4]][:, None] + np.arange(4)
    x, y = tree.west[child] + tree.east[child].astype(np.int64), tree.south[child] + tree.north[child].astype(np.int64)
    right, top = (np.sign(4 * middle - middle.sum(axis=1, keepdims=True)) for middle in (x, y))
    balanced = [signs.sum(axis=1) == 0 for signs in (right, top, right * top)]
    quartered = np.all([*balanced, np.abs(right * top).sum(axis=1) == 4], axis=0)
    total, area, noise = count[child].sum(axis=1), cells[child].sum(axis=1), (stddev[child] ** 2).sum(axis=1)
    used = quartered & (area > 0) & (total > np.maximum(TOLD_APART * np.sqrt(noise), 1.0))
    child, right, top, total, area, noise = (values[used] for values in (child, right, top, total, area, noise))
    off = count[child] / total[:, None] - cells[child] / area[:, None]
    a, b, c = (((off * sign).sum(axis=1) ** 2 - noise / total**2 - 1 / total).sum() for sign in (right, top, right * top))
    return float(np.clip((a + b - 2 * c) / (max(a + b + 2 * c, 0.0) + 4), 0.0, 1.0))


def _just_above_leaves(tree: Tree) -> NDArray[np.int64]:
    """Return (k,) the nodes that were divided into leaves; those with one child are passed over."""
    above = np.unique(tree.parent[tree.leaves[tree.leaves > 0]]).astype(np.int64)
    for _ in range(tree.height):
        above = np.where((tree.children[above] == 1) & (above > 0), tree.parent[above], above)
    return np.unique(above)


class CutSums:
    """What cut partitions may add to the errors of q boxes, added up from the fronts of their decompositions.

    Attributes:
        is_cut: (q,) whether the box cuts any partition.
    """

    def __init__(self, unevenness: Unevenness, boxes: Floats) -> None:
        """Start at 0, for (q, 4) boxes: west, south, east, north in lattice units."""
        self._unevenness, self._edges = unevenness, np.ascontiguousarray(boxes.T)
        self.is_cut = np.zeros(len(boxes), np.bool_)
        self._sums = np.zeros((7, len(boxes)))

    def add(self, part: slice, fronts: list[Front]) -> None:
        """Add the fronts of the boxes of a part, which `batches` yields."""
        tree, (west, south, east, north) = self._unevenness.tree, self._edges
        for front in fronts:
            cut = np.flatnonzero(front.ends & _is_cut(front.share))
            if len(cut):
                query, node = front.query[cut], front.node[cut]
                across = _common_share(tree.west[node], tree.east[node], west[query], east[query])
                up = _common_share(tree.south[node], tree.north[node], south[query], north[query])
                self._add(part, query, front.share[cut], (across, up), self._unevenness.moments(node))

    def add_all(self, mask: CellMask | None) -> None:
        """Add what all boxes cut; `mask` is that of the domain."""
        tree, boxes = self._unevenness.tree, self._edges.T
        if tree.lines is not None and mask is None:
            self._add_patches(*tree.lines)
        else:
            for part, fronts in batches(tree, box_overlap(tree, boxes, mask), len(boxes)):
                self.add(part, fronts)

    def _add_patches(self, columns: Lines, rows: Lines) -> None:
        """Add what boxes cut of a grid, in eight patches around what is whole: a patch has one share, and its sums take four look-ups."""
        west, south, east, north = self._edges
        for across, first, last in _runs(columns, west, east):
            for up, bottom, top in _runs(rows, south, north):
                query = np.flatnonzero(_is_cut(across * up) & (first < last) & (bottom < top))
                if len(query):
                    i, j, low, high = first[query], last[query], bottom[query], top[query]
                    sums = [each[high, j] - each[low, j] - each[high, i] + each[low, i] for each in self._unevenness.sums]
                    sides = across[query], up[query]
                    self._add(slice(0, len(west)), query, sides[0] * sides[1], sides, np.stack([*np.maximum(sums[:3], 0.0), *sums[3:]]))

    def _add(self, part: slice, query: Integers, share: Floats, sides: tuple[Floats, Floats], moments: Floats) -> None:
        """Add cut partitions, or patches of them: their shares in the box, those of their sides, and (5, k) sums of `moments`.

        A strip, whose sides have shares in the ratio e, has the unevenness 2 k / e if e is above 2.
        """
        k = self._unevenness.degree * np.minimum(2 * np.minimum(*sides) / np.maximum(*sides), 1.0)
        (n, squares, cubes, unbiased, noise), spread = moments, share * (1 - share)
        third = spread * (1 - 2 * share) * (n + 3 * k * squares + 2 * k**2 / (1 + k) * cubes)
        terms = spread * n, spread * k * squares, np.sqrt(spread * k) * n, third, share * unbiased, (1 - share) * unbiased, noise
        boxes = part.stop - part.start
        self._sums[:, part] += [np.bincount(query - part.start, term, boxes) for term in terms]
        self.is_cut[part] |= np.bincount(query - part.start, minlength=boxes) > 0

    @property
    def variance(self) -> Floats:
        """(q,) variances of what lies inside cut partitions."""
        alike, (chance, squares, deviations, *_) = self._unevenness.correlation, self._sums
        return np.asarray(chance + (1 - alike) * squares + alike * deviations**2)

    def skewness(self, stddev: Floats) -> Floats:
        """Compute the (q,) skewness of errors of (q,) standard deviations in all, noise included: 0 to `MOST_SKEWED`.

        Few of the boxes in a partition have most of its records: so a box rather has far more than the answer than far less.
        """
        skewness = np.divide(self._sums[3], stddev**3, out=np.zeros_like(stddev), where=stddev > 0)
        return np.asarray(np.clip(skewness, 0.0, MOST_SKEWED))

    def ends(self, answer: Floats, uniform: Floats, stddev: Floats, half_widths: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """Compute the ends of the intervals of boxes that cut partitions, which stand around the answer.

        Args:
            answer: (q,) what is released.
            uniform: (q,) unbiased counts, where partitions that are cut count by the share of their area.
            stddev: (q,) standard deviations of the noise in them.
            half_widths: of intervals, from (q,) standard deviations.

        Returns:
            (q,) lower and (q,) upper ends, whole numbers of at least 0; NaN stays.
        """
        inside, outside, noise = self._sums[4:]
        reach = half_widths(np.sqrt(stddev**2 + noise))  # that all of the noise of cut partitions is added makes it rather too wide
        low, high = uniform - inside - reach, uniform + outside + reach
        if self._unevenness.is_learned:
            spread = np.sqrt(stddev**2 + self.variance)
            wide = half_widths(spread)
            low, high = np.maximum(low, answer - wide), np.minimum(high, answer + add_skewness(wide, spread, self.skewness(spread)))
        low, high = np.floor(np.minimum(low, answer)), np.ceil(np.maximum(high, answer))
        return np.maximum(low, 0.0), np.maximum(high, 0.0)


def _is_cut(share: Floats) -> NDArray[np.bool_]:
    return (share > CUT) & (share < 1 - CUT)


def _runs(lines: Lines, start: Floats, stop: Floats) -> list[tuple[Floats, Integers, Integers]]:
    """Return the runs of intervals between lines of which (q,) ranges have one share: the first, those between, and the last.

    Returns:
        Three runs: the (q,) shares, and (q,) indices of the lines where the run begins and ends; the same line if it is empty.
    """
    first = np.clip(np.searchsorted(lines, start, side="right") - 1, 0, len(lines) - 2)
    last = np.maximum(np.searchsorted(lines, stop, side="left") - 1, first)
    after = np.maximum(last, first + 1)
    ends = [np.maximum(_common_share(lines[at], lines[at + 1], start, stop), 0.0) for at in (first, last)]
    return [(ends[0], first, first + 1), (np.ones_like(start), first + 1, after), (ends[1], after, last + 1)]


def _common_share(low: NDArray[np.int32], high: NDArray[np.int32], start: Floats, stop: Floats) -> Floats:
    """Compute the (k,) shares of the ranges from `low` to `high` that lie between `start` and `stop`."""
    return np.asarray((np.minimum(high, stop) - np.maximum(low, start)) / (high - low))
