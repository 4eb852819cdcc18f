"""Post-processing that makes noisy counts on a tree consistent: children add up to their parent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Floats
from dpviz.space.tree import Tree

SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """The joint distribution of the errors of consistent counts on a tree, in linear space.

    Let e_p be the error of a parent. The error of its child c is e_c = share_c e_p + u_c - share_c U, where the u_c are independent
    with variance slack_c, and U is the sum of u over all children of the parent. So the variance of any weighted sum of leaves
    follows from one pass up the tree, without a covariance matrix.

    Attributes:
        share: (n,) the part of its parent's error that each node takes over: 1 for the root, adding up to 1 over siblings.
        slack: (n,) variance of the best estimate of each node from measurements at and below it alone; 0 if there are none.
        root: variance of the root's estimate.
    """

    share: Floats
    slack: Floats
    root: float

    def variances(self, tree: Tree) -> Floats:
        """The variance of every node's estimate.

        Args:
            tree: the tree of n nodes that the counts stand on.

        Returns:
            (n,) variances.
        """
        variance = np.full(len(tree), self.root)
        for depth in range(tree.height):
            here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
            share, slack = self.share[below], self.slack[below]
            above = tree.to_children(depth, variance[here])
            variance[below] = share**2 * (above + _siblings(tree, depth, slack)) + (1 - share) ** 2 * slack
        return variance


def _siblings(tree: Tree, depth: int, slack: Floats) -> Floats:
    """(nodes of depth + 1,) sum of the slack of each node's siblings.

    Where a node's own slack dominates, the siblings are summed without it: subtracting it would lose their digits.
    """
    total = tree.to_children(depth, tree.sum_children(depth, slack))
    others = total - slack
    dominant = 2 * slack > total
    if dominant.any():
        others_only = tree.to_children(depth, tree.sum_children(depth, np.where(dominant, 0.0, slack)))
        others[dominant] = others_only[dominant]
    return others


def least_squares(tree: Tree, noisy: Floats, variance: Floats, *, least: float = -np.inf) -> tuple[Floats, Spread]:
    """Weighted least squares: the consistent counts nearest to the noisy ones, in linear time.

    Bottom-up, each node's own count and the sum of its children are averaged, weighted by inverse variance. Top-down, children share
    the difference to their parent in proportion to their variances. If some children have no measurement at or below them, these take
    the whole difference, in proportion to their area (the uniformity assumption).

    Args:
        tree: any tree of n nodes; nodes may have any number of children, and leaves may be on any level.
        noisy: (n,) unbiased noisy counts; ignored (may be NaN) where `variance` is infinite.
        variance: (n,) variances of their errors, which are independent. Infinite where nothing was measured; smaller ones than 1e-12
            count as 1e-12.
        least: lower limit for the estimate of the whole domain.

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
    count = np.array(noisy, np.float64)
    count[~np.isfinite(variance)] = 0.0
    combined = np.maximum(variance, SMALLEST_VARIANCE)
    sums = [_combine(tree, depth, count, combined) for depth in range(tree.height - 1, -1, -1)][::-1]
    count[0] = max(count[0], least)
    share, slack = np.ones(len(tree)), combined
    if not np.isfinite(combined).all():
        slack = np.where(np.isfinite(combined), combined, 0.0)
    for depth, (total, spread) in enumerate(sums):
        here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
        if slack is combined:
            np.divide(combined[below], tree.to_children(depth, spread), out=share[below])
        else:
            share[below] = _shares_with_unknowns(tree, depth, combined[below])
        difference = tree.to_children(depth, count[here] - total)
        difference *= share[below]
        count[below] += difference
    return count, Spread(share=share, slack=slack, root=float(slack[0]))


def _combine(tree: Tree, depth: int, count: Floats, combined: Floats) -> tuple[Floats, Floats]:
    """Average the counts of one depth with their children's sums, in place; return those sums and their variances."""
    here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
    total, spread = tree.sum_children(depth, count[below]), tree.sum_children(depth, combined[below])
    if not tree.fan_outs[depth]:
        spread = np.where(tree.children[here] > 0, spread, np.inf)
    own = combined[here]
    weight = np.ones_like(own)
    np.divide(spread, own + spread, out=weight, where=np.isfinite(spread))
    count[here] = weight * count[here] + (1 - weight) * total
    combined[here] = np.where(np.isfinite(own), weight * np.where(np.isfinite(own), own, 0.0), spread)
    return total, spread


def _shares_with_unknowns(tree: Tree, depth: int, combined: Floats) -> Floats:
    """(nodes of depth + 1,) shares in the parent's difference: by variance; by area if some siblings have infinite variance."""
    below = tree.at_depth(depth + 1)
    known = np.where(np.isfinite(combined), combined, 0.0)
    unknown = np.where(np.isfinite(combined), 0.0, tree.cells[below])
    area = tree.to_children(depth, tree.sum_children(depth, unknown))
    total = tree.to_children(depth, tree.sum_children(depth, known))
    return np.where(area > 0, unknown / np.maximum(area, 1.0), known / np.where(total > 0, total, 1.0))


def add_up(tree: Tree, noisy: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Leave noisy counts as they are, and give inner nodes that were not measured the sum of their children.

    Args:
        tree: any tree whose leaves were all measured.
        noisy: (n,) noisy counts, ignored where `variance` is infinite.
        variance: (n,) their variances, infinite where nothing was measured.

    Returns:
        (n,) counts, in which children of measured nodes need not add up to them, and (n,) variances.
    """
    count, spread = np.where(np.isfinite(variance), noisy, 0.0), variance.copy()
    for depth in range(tree.height - 1, -1, -1):
        here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
        unmeasured = ~np.isfinite(spread[here])
        count[here] = np.where(unmeasured, tree.sum_children(depth, count[below]), count[here])
        spread[here] = np.where(unmeasured, tree.sum_children(depth, spread[below]), spread[here])
    return count, spread


@dataclass(frozen=True, kw_only=True)
class Shrinkage:
    """How small noisy counts are shrunk towards 0. The defaults were chosen once, without looking at any user's data.

    Attributes:
        zero: counts below this many standard deviations become 0.
        full: counts of at least this many standard deviations stay as they are. In between, a count is multiplied by a factor that
            grows linearly from 0 to 1.
        rest: the part of its variance that a count keeps when it becomes 0.
    """

    zero: float = 1.0
    full: float = 2.5
    rest: float = 0.3


def shrink_small_counts(tree: Tree, noisy: Floats, variance: Floats, how: Shrinkage | None = None) -> tuple[Floats, Floats]:
    """Shrink counts of leaves towards 0 where they are hardly more than noise, as input to `least_squares`.

    Shrunk counts also get a smaller variance, so that least squares keeps them near 0. Leaves of a single lattice cell are not
    changed. Least squares then moves the difference to measured ancestors and siblings, so sums over large areas stay right.

    Args:
        tree: any tree of n nodes.
        noisy: (n,) noisy counts, NaN where not measured.
        variance: (n,) variances of the noise, infinite where not measured.
        how: the thresholds; `Zeroing()` if None.

    Returns:
        (n,) counts and (n,) variances for `least_squares`. The counts are biased, and the variances are weights: they do not
        describe the noise.
    """
    how = how or Shrinkage()
    shrinkable = (tree.children == 0) & (tree.cells > 1) & np.isfinite(variance)
    kept = np.ones(len(tree))
    kept[shrinkable] = np.clip((noisy[shrinkable] / np.sqrt(variance[shrinkable]) - how.zero) / (how.full - how.zero), 0.0, 1.0)
    return np.where(kept < 1, kept * noisy, noisy), (how.rest + (1 - how.rest) * kept) * variance
