"""Post-processing that makes noisy counts on a tree agree with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Floats
from dpviz.space.tree import Tree

SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """How the errors of consistent node estimates hang together.

    Given the error e_p of its parent, a node's error is e_c = share_c e_p + u_c - share_c (sum of u over its siblings
    and itself), with independent u_c of variance slack_c. So the variance of any weighted sum of leaves follows from one
    pass up the tree, without a covariance matrix.

    Attributes:
        share: (n,) how much of a change of its parent a node takes up; adds up to 1 over siblings, 1 for the root.
        slack: (n,) variance of the node given only what was measured below and at it; 0 where nothing was.
        root: variance of the root's estimate.
    """

    share: Floats
    slack: Floats
    root: float

    def variances(self, tree: Tree) -> Floats:
        """(n,) variance of every node's estimate."""
        variance = np.full(len(tree), self.root)
        for depth in range(tree.height):
            here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
            share, slack = self.share[below], self.slack[below]
            above = tree.to_children(depth, variance[here])
            variance[below] = share**2 * (above + _siblings(tree, depth, slack)) + (1 - share) ** 2 * slack
        return variance


def _siblings(tree: Tree, depth: int, slack: Floats) -> Floats:
    """(nodes of depth + 1,) sum of the slack of each node's siblings, to full precision also where it dwarfs theirs."""
    total = tree.to_children(depth, tree.sum_children(depth, slack))
    others = total - slack
    dominant = 2 * slack > total
    if dominant.any():
        rest = tree.to_children(depth, tree.sum_children(depth, np.where(dominant, 0.0, slack)))
        others[dominant] = rest[dominant]
    return others


def least_squares(tree: Tree, noisy: Floats, variance: Floats, *, least: float = -np.inf) -> tuple[Floats, Spread]:
    """The consistent counts nearest to the noisy ones, weighted by precision, in linear time.

    Bottom-up, a node's own count and its children's sum are combined by inverse variance; top-down, children share the
    difference to their parent in proportion to their variances. Children about which nothing is known take all of it, in
    proportion to their area (the uniformity assumption).

    Args:
        tree: any tree; children may be many, one or none, leaves may stand on any level.
        noisy: (n,) unbiased noisy counts; ignored (may be NaN) where `variance` is infinite.
        variance: (n,) their variances, independent of each other; floored at 1e-12, infinite where nothing was measured.
        least: what the whole domain's estimate is raised to.

    Returns:
        (n,) counts in which children add up to their parent, and the `Spread` of their errors.

    Source:
        Generalised least squares. On complete trees with one variance per level it is Theorem 5 of Cormode, Procopiuc,
        Srivastava, Shen, Yu, "Differentially private spatial decompositions", ICDE 2012; here for any tree, any variances
        and unmeasured nodes.
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
    """Combine the nodes of one depth with their children's sums, in place; return those sums and their variances."""
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
    """(nodes of depth + 1,) shares by variance among siblings; by area among the unknown ones where there are any."""
    below = tree.at_depth(depth + 1)
    known = np.where(np.isfinite(combined), combined, 0.0)
    unknown = np.where(np.isfinite(combined), 0.0, tree.cells[below])
    area = tree.to_children(depth, tree.sum_children(depth, unknown))
    total = tree.to_children(depth, tree.sum_children(depth, known))
    return np.where(area > 0, unknown / np.maximum(area, 1.0), known / np.where(total > 0, total, 1.0))


def add_up(tree: Tree, noisy: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Noisy counts as they are; inner nodes that were not measured become the sum of their children.

    Args:
        tree: any tree whose leaves were all measured.
        noisy: (n,) noisy counts, ignored where `variance` is infinite.
        variance: (n,) their variances, infinite where nothing was measured.

    Returns:
        (n,) counts, which need not add up, and (n,) their variances.
    """
    count, spread = np.where(np.isfinite(variance), noisy, 0.0), variance.copy()
    for depth in range(tree.height - 1, -1, -1):
        here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
        fill = ~np.isfinite(spread[here])
        count[here] = np.where(fill, tree.sum_children(depth, count[below]), count[here])
        spread[here] = np.where(fill, tree.sum_children(depth, spread[below]), spread[here])
    return count, spread


@dataclass(frozen=True, kw_only=True)
class Zeroing:
    """How noisy counts are drawn towards 0; the numbers were chosen once, for all data.

    Attributes:
        zero: standard deviations below which a count becomes 0.
        full: standard deviations from which it stays as it is; in between it is a growing share of itself.
        rest: the part of its variance that a 0 keeps.
    """

    zero: float = 1.0
    full: float = 2.5
    rest: float = 0.3


def soft_zeroed(tree: Tree, noisy: Floats, variance: Floats, how: Zeroing | None = None) -> tuple[Floats, Floats]:
    """Counts of leaves drawn towards 0 where they are hardly more than noise, and trusted more there: before least squares.

    Single cells are left alone. The measured ancestors and siblings take up the difference, which keeps sums right.

    Args:
        tree: any tree.
        noisy: (n,) noisy counts, NaN where not measured.
        variance: (n,) of the noise, infinite there.
        how: by default, `Zeroing`'s defaults.

    Returns:
        (n,) counts and (n,) variances for `least_squares`: biased, and no statement about the noise.
    """
    how = how or Zeroing()
    may = (tree.children == 0) & (tree.cells > 1) & np.isfinite(variance)
    kept = np.ones(len(tree))
    kept[may] = np.clip((noisy[may] / np.sqrt(variance[may]) - how.zero) / (how.full - how.zero), 0.0, 1.0)
    return np.where(kept < 1, kept * noisy, noisy), (how.rest + (1 - how.rest) * kept) * variance
