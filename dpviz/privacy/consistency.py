"""Post-processing that makes noisy counts on a tree consistent: children add up to their parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpviz.arrays import Floats
from dpviz.space.hierarchy import Hierarchy
from dpviz.space.ranges import Front, fronts_of_weights

SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """The joint distribution of the errors of consistent counts on a tree, in memory proportional to the number of nodes.

    Let e_p be the error of a parent. The error of its child c is e_c = share_c e_p + u_c - share_c U, where the u_c are independent
    with variance slack_c, and U is the sum of u over all children of the parent. So the variance of any weighted sum of leaves
    follows from one pass up the tree, without a covariance matrix.

    Attributes:
        share: (n,) the share of its parent's error that each node gets: 1 for the root, adding up to 1 over siblings.
        slack: (n,) variance of the best estimate of each node from measurements at and below it alone; 0 if there are none.
        root: variance of the root's estimate.
    """

    share: Floats
    slack: Floats
    root: float

    def variances(self, tree: Hierarchy) -> Floats:
        """The variance of every node's estimate.

        Args:
            tree: the tree of n nodes to which the counts belong.

        Returns:
            (n,) variances.
        """
        variance = np.full(len(tree), self.root)
        for depth in range(tree.height):
            parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
            share, slack = self.share[children], self.slack[children]
            parent_variance = tree.to_children(depth, variance[parents])
            variance[children] = share**2 * (parent_variance + _sum_siblings(tree, depth, slack)) + (1 - share) ** 2 * slack
        return variance

    def of_sums(self, tree: Hierarchy, weights: Any) -> Floats:
        """Compute the (q,) variances of weighted sums of counts.

        Args:
            tree: of n nodes.
            weights: (q, n) the weight of each node in each sum, a sparse matrix.
        """
        return self.of_fronts(tree, fronts_of_weights(tree, weights), slice(0, weights.shape[0]))

    def of_fronts(self, tree: Hierarchy, fronts: Sequence[Front], part: slice) -> Floats:
        """Compute the variances of weighted sums of counts, in one pass from the deepest front up to the root.

        Consider the part of a sum that lies inside a node: `slope` is the change of this part per change of the node's count, and `rest`
        is the variance of the sum if the counts of all nodes of the front are fixed. A child in no front has slope 0.

        Args:
            tree: of n nodes.
            fronts: the nodes of the sums, and those above them, from the root down; where a front ends, its share is the node's weight.
            part: the numbers of the queries in the fronts.

        Returns:
            (queries of the part,) variances, at least 0.
        """
        rest, slope, below = np.zeros(part.stop - part.start), np.zeros(0), None
        for front in reversed(fronts):
            above: Floats = np.zeros(len(front.node))
            if below is not None:
                share, slack = self.share[below.node], self.slack[below.node]
                above = np.bincount(below.origin, share * slope, len(above)).astype(np.float64, copy=False)
                rest += np.bincount(below.query - part.start, slack * slope * (slope - 2 * above[below.origin]), len(rest))
                rest += np.bincount(front.query - part.start, above**2 * self._sum_slack(tree)[front.node], len(rest))
            slope, below = above + np.where(front.ends, front.share, 0.0), front
        if below is not None:
            rest[below.query - part.start] += slope**2 * self.root
        return np.maximum(rest, 0.0)

    def _sum_slack(self, tree: Hierarchy) -> Floats:
        """(n,) the sum of the slack of each node's children, computed once."""
        if "slack_of_children" not in self.__dict__:
            inner = [tree.sum_children(depth, self.slack[tree.at_depth(depth + 1)]) for depth in range(tree.height)]
            self.__dict__["slack_of_children"] = np.concatenate([*inner, np.zeros(len(tree) - tree.starts[-2])])
        return np.asarray(self.__dict__["slack_of_children"])


def _sum_siblings(tree: Hierarchy, depth: int, slack: Floats) -> Floats:
    """(nodes of depth + 1,) sum of the slack of each node's siblings.

    Where a node's own slack is most of the sum, the siblings are summed without it, because subtracting it would lose their digits.
    """
    total = tree.to_children(depth, tree.sum_children(depth, slack))
    siblings_sum = total - slack
    dominant = 2 * slack > total
    if dominant.any():
        siblings_only = tree.to_children(depth, tree.sum_children(depth, np.where(dominant, 0.0, slack)))
        siblings_sum[dominant] = siblings_only[dominant]
    return siblings_sum


def least_squares(
    tree: Hierarchy, noisy: Floats, variance: Floats, *, least: float = -np.inf, cells: Floats | None = None
) -> tuple[Floats, Spread]:
    """Find the consistent counts nearest to noisy counts by weighted least squares, in linear time.

    Bottom-up, each node's own count and the sum of its children are averaged, weighted by inverse variance. Top-down, children share
    the difference to their parent in proportion to their variances. If some children have no measurement at or below them, these take
    the whole difference, in proportion to their area (the uniformity assumption). Nodes without cells are known to be 0: they are left
    out of all sums, and take no difference.

    Args:
        tree: any tree of n nodes; nodes may have any number of children, and leaves may be on any level.
        noisy: (n,) unbiased noisy counts; ignored (may be NaN) where `variance` is infinite.
        variance: (n,) variances of their errors, which are independent; infinite where nothing was measured. Variances below 1e-12
            are raised to 1e-12.
        least: lower limit for the estimate of the whole domain.
        cells: (n,) number of cells of each node in which records can be: see `open_cells`. If None, all of its lattice cells.

    Returns:
        (n,) counts in which children add up to their parent, and the joint distribution of their errors.

    Source:
        Generalised least squares. On complete trees with one variance per level it is Theorem 5 of Cormode, Procopiuc,
        Srivastava, Shen, Yu, "Differentially private spatial decompositions", ICDE 2012; here for any tree, any variances
        and unmeasured nodes.

    >>> from dpviz.space.domain import Domain
    >>> from dpviz.space.grids import quadtree
    >>> tree = quadtree(Domain(bounds=(0, 0, 2, 2), crs=None, order=1), height=1)
    >>> counts, spread = least_squares(tree, np.array([10.0, 1.0, 2.0, 3.0, 0.0]), np.ones(5))
    >>> counts.round(2).tolist()
    [9.2, 1.8, 2.8, 3.8, 0.8]
    >>> spread.variances(tree).round(2).tolist()
    [0.8, 0.8, 0.8, 0.8, 0.8]
    """
    count, combined = np.where(np.isfinite(variance), noisy, 0.0), np.maximum(variance, SMALLEST_VARIANCE)
    if cells is not None:
        count[cells == 0] = combined[cells == 0] = 0.0
    sums = [_combine(tree, depth, count, combined) for depth in range(tree.height - 1, -1, -1)][::-1]
    count[0] = max(count[0], least)
    share, slack = np.zeros(len(tree)), combined
    share[0] = 1.0
    if not np.isfinite(combined).all():
        slack, cells = np.where(np.isfinite(combined), combined, 0.0), tree.cells if cells is None else cells
    for depth, (total, variance_of_total) in enumerate(sums):
        parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
        if slack is combined:
            of_parent = tree.to_children(depth, variance_of_total)
            np.divide(combined[children], of_parent, out=share[children], where=of_parent > 0)
        else:
            share[children] = _shares_with_unknowns(tree, depth, combined[children], cells[children])  # type: ignore[index]
        difference = tree.to_children(depth, count[parents] - total)
        difference *= share[children]
        count[children] += difference
    return count, Spread(share=share, slack=slack, root=float(slack[0]))


def _combine(tree: Hierarchy, depth: int, count: Floats, combined: Floats) -> tuple[Floats, Floats]:
    """Average the counts of one depth with the sums of their children, in place. Return these sums and their variances."""
    parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
    total, variance = tree.sum_children(depth, count[children]), tree.sum_children(depth, combined[children])
    if not tree.fan_outs[depth]:
        variance = np.where(tree.children[parents] > 0, variance, np.inf)
    own_variance = combined[parents]
    weight = np.ones_like(own_variance)
    np.divide(variance, own_variance + variance, out=weight, where=np.isfinite(variance) & (variance > 0))
    count[parents] = weight * count[parents] + (1 - weight) * total
    combined[parents] = np.where(np.isfinite(own_variance), weight * np.where(np.isfinite(own_variance), own_variance, 0.0), variance)
    return total, variance


def _shares_with_unknowns(tree: Hierarchy, depth: int, combined: Floats, cells: Floats) -> Floats:
    """(nodes of depth + 1,) each child's share in its parent's difference: by variance, or by area if a sibling has infinite variance."""
    known_variance = np.where(np.isfinite(combined), combined, 0.0)
    unknown_cells = np.where(np.isfinite(combined), 0.0, cells)
    area = tree.to_children(depth, tree.sum_children(depth, unknown_cells))
    total = tree.to_children(depth, tree.sum_children(depth, known_variance))
    return np.where(area > 0, unknown_cells / np.maximum(area, 1.0), known_variance / np.where(total > 0, total, 1.0))


def add_up(tree: Hierarchy, noisy: Floats, variance: Floats, cells: Floats | None = None) -> tuple[Floats, Floats]:
    """Leave noisy counts as they are, and give inner nodes that were not measured the sum of their children.

    Args:
        tree: any tree whose leaves with cells were all measured.
        noisy: (n,) noisy counts, ignored where `variance` is infinite.
        variance: (n,) their variances, infinite where nothing was measured.
        cells: as for `least_squares`; nodes without cells are known to be 0.

    Returns:
        (n,) counts and (n,) variances. Children of measured nodes need not add up to them.
    """
    count, summed = np.where(np.isfinite(variance), noisy, 0.0), variance.copy()
    if cells is not None:
        count[cells == 0] = summed[cells == 0] = 0.0
    for depth in range(tree.height - 1, -1, -1):
        parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
        unmeasured = ~np.isfinite(summed[parents])
        count[parents] = np.where(unmeasured, tree.sum_children(depth, count[children]), count[parents])
        summed[parents] = np.where(unmeasured, tree.sum_children(depth, summed[children]), summed[parents])
    return count, summed


@dataclass(frozen=True, kw_only=True)
class Shrinkage:
    """How small noisy counts are shrunk towards 0. The defaults do not depend on anyone's data.

    Attributes:
        zero: counts below this many standard deviations become 0.
        full: counts of at least this many standard deviations stay as they are. In between, a count is multiplied by a factor that
            grows linearly from 0 to 1.
        variance_at_zero: the share of its variance that a count keeps if it becomes 0.
    """

    zero: float = 1.0
    full: float = 2.5
    variance_at_zero: float = 0.3


def shrink_small_counts(tree: Hierarchy, noisy: Floats, variance: Floats, shrinkage: Shrinkage | None = None) -> tuple[Floats, Floats]:
    """Shrink counts of leaves towards 0 where they are hardly more than noise, as input to `least_squares`.

    Shrunk counts also get a smaller variance, so that least squares keeps them near 0. Leaves of a single lattice cell are not
    changed. Least squares then moves the difference to siblings, so that sums over large areas still follow measured ancestors.

    Args:
        tree: any tree of n nodes.
        noisy: (n,) noisy counts, NaN where not measured.
        variance: (n,) variances of the noise, infinite where not measured.
        shrinkage: the thresholds; `Shrinkage()` if None.

    Returns:
        (n,) counts and (n,) variances for `least_squares`. The counts are biased, and the variances are weights: they do not
        describe the noise.
    """
    shrinkage = shrinkage or Shrinkage()
    shrinkable = (tree.children == 0) & (tree.cells > 1) & np.isfinite(variance)
    factor = np.ones(len(tree))
    factor[shrinkable] = np.clip(
        (noisy[shrinkable] / np.sqrt(variance[shrinkable]) - shrinkage.zero) / (shrinkage.full - shrinkage.zero), 0.0, 1.0
    )
    return np.where(factor < 1, factor * noisy, noisy), (shrinkage.variance_at_zero + (1 - shrinkage.variance_at_zero) * factor) * variance
