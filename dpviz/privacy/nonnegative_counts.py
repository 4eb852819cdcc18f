"""A finish for noisy counts on a tree: none is negative, children add up to their parent, and the total is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Floats, Mask
from dpviz.privacy.consistency import Shrinkage, Spread, least_squares, shrink_small_counts
from dpviz.privacy.nonnegative_fit import divide
from dpviz.space.interpolate import FINEST_ORDER, accumulate_blocks, divide_log_linearly
from dpviz.space.mask import CellMask, open_cells
from dpviz.space.ranges import block_sums
from dpviz.space.tree import Tree

_NEAR = Shrinkage(zero=1.0, full=2.3, variance_at_zero=0.4)
_FAR = Shrinkage(zero=2.0, full=3.8, variance_at_zero=0.1)  # leaves with nothing around them
_FAR_BELOW = 0.7  # standard deviations of a leaf's count that a leaf of its size would have by the density around it
_PULL_PER_DEGREE = 0.5  # of freedom, of which four counts with a given sum have 3; James and Stein have 3 - 2 in place of 1.5
_UNKNOWN = 1e12  # times the largest variance: the weight of a cell of a node that nothing was measured of


def nonnegative_counts(
    tree: Tree,
    noisy: Floats,
    variance: Floats,
    *,
    total: float,
    zero: bool = False,
    smooth: bool = False,
    mask: CellMask | None = None,
) -> Floats:
    """Estimate counts of at least 0 that add up to a total, from noisy counts of a tree.

    Least squares, and then `spread_negatives`. Both are post-processing of released counts. The result is biased: where little is, counts
    come out too large on average, and as much too small in fuller places beside them.

    Args:
        tree: any tree of n nodes.
        noisy: (n,) noisy counts, ignored where nothing was measured.
        variance: (n,) variances of their errors, infinite where nothing was measured.
        total: the count of the whole domain, which is kept; 0 if it is negative.
        zero: whether small counts of leaves are drawn towards 0 before, and more strongly where the leaves around them have nothing,
            either, by a first estimate.
        smooth: see `spread_negatives`.
        mask: of the domain, if it has one; nodes without open cells are known to be 0, and take no part.

    Returns:
        (n,) counts of at least 0; children add up to their parent.
    """
    near = shrink_small_counts(tree, noisy, variance, _NEAR) if zero else (noisy, variance)
    cells = open_cells(tree, mask)
    count, spread = least_squares(tree, *near, cells=cells)
    if zero:
        far = find_far_leaves(tree, spread_negatives(tree, count, spread, total=total, mask=mask), variance, mask)
        shrunk = shrink_small_counts(tree, noisy, variance, _FAR)
        count, spread = least_squares(tree, *(np.where(far, *pair) for pair in zip(shrunk, near, strict=True)), cells=cells)
    return spread_negatives(tree, count, spread, total=total, smooth=smooth, mask=mask)


def find_far_leaves(tree: Tree, count: Floats, variance: Floats, mask: CellMask | None = None) -> Mask:
    """Find leaves with so little around them that their own small counts are likely to be noise.

    Around a leaf lies the rectangle of three times its width and height, without the leaf. The leaf is far if a leaf of its size with the
    density around it would have less than 0.7 standard deviations of the noise in its count.

    Args:
        tree: any tree of n nodes.
        count: (n,) a first estimate, in which children add up to their parent.
        variance: (n,) variances of the noise.
        mask: of the domain, if it has one; sizes are then those of open cells.

    Returns:
        (n,) whether a node is such a leaf.
    """
    sums = accumulate_blocks(tree, block_sums(tree, count, min(tree.block_order, FINEST_ORDER), mask))
    own, side = tree.rectangles(tree.leaves).astype(np.float64), float(tree.east[0])
    size = own[:, 2:] - own[:, :2]
    ring = np.hstack([own[:, :2] - size, own[:, 2:] + size]).clip(0, side)
    cells, area = size.prod(axis=1), (ring[:, 2:] - ring[:, :2]).prod(axis=1)
    if mask is not None:
        cells, area = (mask.cells_in(boxes, tree.order) for boxes in (own, ring))
    area = area - cells
    around = (sums.boxes(ring) - sums.boxes(own)) * cells
    far = np.zeros(len(tree), np.bool_)
    far[tree.leaves] = (area > 0) & (around < _FAR_BELOW * np.sqrt(variance[tree.leaves]) * np.maximum(area, 1.0))
    return far


def spread_negatives(
    tree: Tree, count: Floats, spread: Spread, *, total: float, smooth: bool = False, mask: CellMask | None = None
) -> Floats:
    """Raise negative counts to 0 and lower their siblings by as much, from the root down.

    The children of a node become the nearest counts of at least 0 that add up to the node's own count, which was found before: nearest
    by least squares, weighted by the inverse variances of the children's estimates. If no count is negative, nothing changes.

    Args:
        tree: any tree of n nodes.
        count: (n,) counts by `least_squares`.
        spread: their errors.
        total: the count of the whole domain, which is kept; 0 if it is negative.
        smooth: whether four quarters are drawn towards those that log-linear interpolation between the neighbours of their parent gives,
            more strongly the better they fit what noise alone would make of these: by 1.5 over the sum of squared differences over
            variances, at most 1 (as by James and Stein, Proc. 4th Berkeley Symposium, 1961). On quadtrees alone, down to 2**11 blocks per
            side; without effect on other trees.
        mask: of the domain, if it has one. Nodes without open cells stay 0; of four quarters with k open ones, (k - 1) / 2 takes the
            place of 1.5.

    Returns:
        (n,) counts of at least 0; children add up to their parent.

    >>> from dpviz.space.domain import Domain
    >>> from dpviz.space.grids import quadtree
    >>> tree = quadtree(Domain(bounds=(0, 0, 2, 2), crs=None, order=1), height=1)
    >>> found = least_squares(tree, np.array([10.0, -3.0, 2.0, 3.0, 8.0]), np.ones(5))
    >>> spread_negatives(tree, *found, total=10).round(2).tolist()
    [10.0, 0.0, 1.0, 2.0, 7.0]
    """
    weight = np.where(spread.slack > 0, spread.slack, open_cells(tree, mask) * (_UNKNOWN * max(spread.slack.max(), 1.0)))
    result = np.full(len(tree), max(total, 0.0), np.float64)
    blocks = result[:1].reshape(1, 1) if smooth and _is_quartered(tree) else None
    for depth in range(tree.height):
        parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
        families = _Families(tree=tree, depth=depth, weight=weight[children], total=result[parents])
        near = families.add_up(count[children])
        blocks = divide_log_linearly(blocks, mask=mask) if blocks is not None and depth < FINEST_ORDER else None
        if blocks is not None:
            cell = tree.order - depth - 1
            place = tree.south[children] >> cell, tree.west[children] >> cell
            near = families.draw_towards(near, blocks[place])
        result[children] = families.project(near)
        if blocks is not None:
            blocks[place] = result[children]
    return result


def _is_quartered(tree: Tree) -> bool:
    """Return whether all nodes of depth d are blocks of a 2**d x 2**d grid."""
    size = int(tree.east[0]) >> tree.depth.astype(np.int64)
    return bool((tree.east - tree.west == size).all() and (tree.north - tree.south == size).all())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Families:
    """The children of the nodes of one depth.

    Attributes:
        tree: the tree.
        depth: the depth of the parents.
        weight: (children,) variances of the children's estimates.
        total: (parents,) the parents' counts, at least 0.
    """

    tree: Tree
    depth: int
    weight: Floats
    total: Floats

    def sums(self, values: Floats) -> Floats:
        """Return (parents,) sums over the children."""
        return self.tree.sum_children(self.depth, values)

    def repeat(self, values: Floats) -> Floats:
        """Return (children,) the values of (parents,)."""
        return self.tree.to_children(self.depth, values)

    def add_up(self, values: Floats) -> Floats:
        """Find the (children,) numbers nearest to `values` that add up to the parents' counts."""
        return values + self.weight * self.repeat(divide(self.total - self.sums(values), self.sums(self.weight)))

    def draw_towards(self, values: Floats, expected: Floats) -> Floats:
        """Draw (children,) values towards expected ones with the same sums; every node has four children, or none."""
        difference = values - expected
        unlike = self.sums(divide(difference**2, self.weight))
        pull = _PULL_PER_DEGREE * np.maximum(self.sums((self.weight > 0).astype(np.float64)) - 1, 0.0)
        kept = divide(np.maximum(unlike - pull, 0.0), unlike)
        return expected + self.repeat(kept) * difference

    def project(self, values: Floats) -> Floats:
        """Find the nearest (children,) numbers of at least 0 that add up to the parents' counts, given values that add up.

        The optimum is max(0, value + weight level), with one level per family that makes it add up. Where a number is negative it becomes
        0, and the level of those that stay falls. So what was negative stays so, and after at most one round per child the optimum is
        found.
        """
        found, active = values.copy(), np.arange(len(values))
        parent = self.tree.parent[self.tree.at_depth(self.depth + 1)].astype(np.int64) - self.tree.starts[self.depth]
        while (negative := found[active] < 0).any():
            found[active[negative]] = 0.0
            open_families = np.bincount(parent[active], negative, len(self.total)) > 0
            active = active[open_families[parent[active]] & ~negative]
            family, weight = parent[active], self.weight[active]
            total, size = (np.bincount(family, each, len(self.total)).astype(np.float64) for each in (values[active], weight))
            level = divide(self.total - total, size)
            found[active] = values[active] + weight * level[family]
        return found
