"""Non-negative least squares on a tree of noisy counts, and rounding to whole numbers that add up.

A tree is a list of stages, the finest last. The children of one node are a family. The nodes of a stage stand family by family, in the
order of their parents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpviz.arrays import Floats, Integers

_NEGATIVE = 1e-7  # a leaf counts as negative only below minus this, because of rounding
_WHOLE = 1e-9  # a count so little below a whole number is this number
_SMALL_BIN = 8  # fewer nodes than this say little about the size of their errors


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyStage:
    """The nodes of one stage below the root.

    Attributes:
        starts: (parents,) index of each parent's first child in this stage; every parent has a child.
        noisy: (n,) noisy counts; None if the stage was not measured.
        variance: variance of the noise of each count; unused if the stage was not measured.
        size: n, the number of nodes.
    """

    starts: Integers
    noisy: Floats | None
    variance: float
    size: int

    @cached_property
    def parent(self) -> Integers:
        """(n,) index of each node's parent in the stage above."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=self.size))

    def sums(self, values: Floats) -> Floats:
        """Add up (n,) values per parent. Return (parents,) sums."""
        return np.add.reduceat(values, self.starts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Root:
    """The count of the root, and the variance of its noise: 0 if the count is exact, infinite if the root was not measured."""

    count: float
    variance: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _SubtreeEstimates:
    """Estimates of the (n,) nodes of a stage, each from its own subtree.

    Attributes:
        estimate: (n,) estimates from the node's own noisy count and its subtree.
        variance: (n,) their variances.
        sum: (n,) sums of the children's estimates, without the node's own noisy count.
        sum_variance: (n,) their variances.
    """

    estimate: Floats
    variance: Floats
    sum: Floats
    sum_variance: Floats


def fit_nonnegative(root: Root, stages: Sequence[NoisyStage], *, selected: bool = False) -> list[Floats]:
    """Fit counts that add up, with leaves of at least 0, to noisy counts by least squares, weighted by inverse variances.

    Leaves whose best estimate is negative are set to 0, and the rest is fitted again until no estimate is negative. A leaf that was
    set to 0 never has to be raised again: the Hessian of the objective in the leaves is strictly ultrametric, so that its inverse is an
    M-matrix (Martinez, Michon, San Martin, SIAM J. Matrix Anal. Appl. 15, 1994), for every subset of the leaves. So the best values of
    the leaves that stay only fall when others are raised to 0, and this is the exact minimum, after 5 to 11 rounds of O(n) in our
    measurements.

    Args:
        root: the root's count, exact or noisy.
        stages: stages 1 to T; the last one was measured.
        selected: whether nodes were dropped because of their noisy counts. Sums of the nodes that stay err more than their
            variances say, and are trusted less: see `_estimate_inflation`.

    Returns:
        T + 1 arrays of counts of at least 0, the root's first.

    >>> family = NoisyStage(starts=np.array([0]), noisy=np.array([9.0, 4.0, -4.0]), variance=1.0, size=3)
    >>> [counts.round(6).tolist() for counts in fit_nonnegative(Root(count=10), [family])]
    [[10.0], [7.5, 2.5, 0.0]]
    """
    leaves = stages[-1]
    active, parent = np.arange(leaves.size), leaves.parent
    noisy = np.zeros(leaves.size) if leaves.noisy is None else leaves.noisy
    while True:
        total: Floats = np.bincount(parent, noisy, len(leaves.starts)).astype(np.float64, copy=False)
        sum_variance: Floats = leaves.variance * np.bincount(parent, minlength=len(leaves.starts)).astype(np.float64)
        fitted, gap = _fit_above(_estimate_from_subtrees(root, stages, total, sum_variance, selected=selected), stages)
        values = noisy + leaves.variance * gap[parent]
        kept = np.flatnonzero(values >= -_NEGATIVE)
        if len(kept) == len(values):
            break
        active, parent, noisy = active[kept], parent[kept], noisy[kept]
    counts = np.zeros(leaves.size)
    counts[active] = values
    return [np.maximum(count, 0) for count in (*fitted, counts)]


def fit_unbiased(root: Root, stages: Sequence[NoisyStage]) -> tuple[list[Floats], list[Floats]]:
    """Fit counts that add up by weighted least squares without a bound: unbiased estimates, each with its exact variance.

    Returns:
        T + 1 arrays of counts, and T + 1 arrays of their variances.

    >>> family = NoisyStage(starts=np.array([0]), noisy=np.array([9.0, 4.0]), variance=1.0, size=2)
    >>> counts, variances = fit_unbiased(Root(count=10), [family])
    >>> counts[1].tolist(), variances[1].tolist()
    ([7.5, 2.5], [0.5, 0.5])
    """
    leaves = stages[-1]
    noisy = np.zeros(leaves.size) if leaves.noisy is None else leaves.noisy
    variance = np.full(leaves.size, leaves.variance)
    below = _estimate_from_subtrees(root, stages, leaves.sums(noisy), leaves.sums(variance), selected=False)
    own = [*((node.estimate, node.variance) for node in below), (noisy, variance)]
    counts, variances = [own[0][0]], [own[0][1]]
    for stage, above, (estimate, slack) in zip(stages, below, own[1:], strict=True):
        share = divide(slack, above.sum_variance[stage.parent])
        counts.append(estimate + share * (counts[-1] - above.sum)[stage.parent])
        variances.append(slack - share * slack + share**2 * variances[-1][stage.parent])
    return counts, variances


def _fit_above(below: Sequence[_SubtreeEstimates], stages: Sequence[NoisyStage]) -> tuple[list[Floats], Floats]:
    """Fit the nodes above the leaves, from the root down.

    Args:
        below: T estimates from subtrees, the root's first.
        stages: stages 1 to T.

    Returns:
        T arrays of fitted counts, the root's first; and for each parent of leaves the number that, times its variance, is added to each
        leaf's noisy count so that the leaves add up to their parent (see `_divide_gap`).
    """
    fitted = [below[0].estimate]
    for stage, above, here in zip(stages, below, below[1:], strict=False):
        fitted.append(here.estimate + here.variance * _divide_gap(fitted[-1], above)[stage.parent])
    return fitted, _divide_gap(fitted[-1], below[-1])


def _divide_gap(fitted: Floats, above: _SubtreeEstimates) -> Floats:
    """Return (n,) each fitted count minus the sum of its children's estimates, divided by the variance of this sum."""
    return divide(fitted - above.sum, above.sum_variance)


def _estimate_from_subtrees(
    root: Root, stages: Sequence[NoisyStage], total: Floats, sum_variance: Floats, *, selected: bool
) -> list[_SubtreeEstimates]:
    """Estimate every node above the leaves from its own subtree, from the bottom up; the root from all.

    Args:
        root: the root's count.
        stages: stages 1 to T.
        total: for each parent of leaves, the sum of its leaves' noisy counts.
        sum_variance: likewise of their variances.
        selected: see `fit_nonnegative`.

    Returns:
        T estimates, of the root first.
    """
    found: list[_SubtreeEstimates] = []
    for here in stages[-2::-1]:
        found.append(_combine(total, sum_variance, here.noisy, here.variance, selected=selected))
        total, sum_variance = here.sums(found[-1].estimate), here.sums(found[-1].variance)
    measured = np.array([root.count]) if math.isfinite(root.variance) else None
    found.append(_combine(total, sum_variance, measured, root.variance, selected=False))
    return found[::-1]


def _combine(total: Floats, sum_variance: Floats, noisy: Floats | None, variance: float, *, selected: bool) -> _SubtreeEstimates:
    """Combine the sums of children with the noisy counts of their parents, each weighted by the other's variance.

    Args:
        total: (n,) sums of the children's estimates.
        sum_variance: (n,) their variances.
        noisy: (n,) noisy counts of the parents; None if their stage was not measured.
        variance: of these noisy counts.
        selected: see `fit_nonnegative`.
    """
    if noisy is None:
        return _SubtreeEstimates(estimate=total, variance=sum_variance, sum=total, sum_variance=sum_variance)
    inflated = sum_variance * _estimate_inflation(noisy - total, sum_variance, variance) if selected else sum_variance
    weight = divide(inflated, inflated + variance)
    estimate = np.where((sum_variance > 0) | (variance == 0), total + weight * (noisy - total), 0.0)
    return _SubtreeEstimates(estimate=estimate, variance=weight * variance, sum=total, sum_variance=sum_variance)


def _estimate_inflation(gap: Floats, sum_variance: Floats, variance: float) -> Floats:
    """Estimate by which factor the variances of sums of selected nodes are too small, from the gaps to the parents' own noisy counts.

    A gap's expected square is f * sum_variance + variance, with a factor f of at least 1. Nodes are grouped by their `sum_variance`,
    between powers of 4, and each group has one f. A group of few nodes has at least the f that is estimated from all nodes.
    """
    factor, noisy_sums = np.ones(len(gap)), sum_variance > 0
    if not noisy_sums.any():
        return factor
    bins = np.floor(np.log2(sum_variance[noisy_sums]) / 2).astype(np.int64)
    bins -= bins.min()
    excess, size = gap[noisy_sums] ** 2 - variance, sum_variance[noisy_sums]
    overall = max(1.0, float(excess.sum() / size.sum()))
    number, total = np.bincount(bins), np.bincount(bins, size).astype(np.float64)
    own = np.maximum(1.0, divide(np.bincount(bins, excess).astype(np.float64), total))
    factor[noisy_sums] = np.where(number < _SMALL_BIN, np.maximum(own, overall), own)[bins]
    return factor


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def round_to_whole(stages: Sequence[NoisyStage], fitted: Sequence[Floats]) -> list[Integers]:
    """Round fitted counts to whole numbers that add up, from the root down.

    The root is rounded to the nearest number. Every other count is rounded down, and then the counts of a family with the largest
    fractions are raised by one until the family adds up to its parent. Counts whose floor is at least 1 come first, so that few counts
    become 1 that would have been 0.

    Args:
        stages: stages 1 to T.
        fitted: T + 1 arrays of counts of at least 0 that add up.

    Returns:
        T + 1 arrays of whole numbers of at least 0 that add up.

    >>> family = NoisyStage(starts=np.array([0]), noisy=None, variance=0.0, size=3)
    >>> round_to_whole([family], [np.array([10.0]), np.array([7.4, 2.0, 0.6])])[1].tolist()
    [8, 2, 0]
    """
    whole = [np.rint(fitted[0]).astype(np.int64)]
    for stage, counts in zip(stages, fitted[1:], strict=True):
        floor = np.floor(counts + _WHOLE).astype(np.int64)
        missing = whole[-1] - np.add.reduceat(floor, stage.starts)
        floor[_choose_raised(counts - floor, floor, stage, missing)] += 1
        whole.append(floor)
    return whole


def _choose_raised(fraction: Floats, floor: Integers, stage: NoisyStage, missing: Integers) -> Integers:
    """Choose the nodes to be raised by one: in each family as many as it lacks of its parent's count.

    Args:
        fraction: (n,) fitted counts minus `floor`.
        floor: (n,) fitted counts, rounded down.
        stage: the nodes.
        missing: (parents,) the parents' counts minus the sums of `floor`.

    Returns:
        (k,) indices of nodes.
    """
    parent = stage.parent
    candidates = np.flatnonzero((missing[parent] > 0) & ((fraction > _WHOLE) | (floor > 0)))
    order = candidates[np.lexsort((-fraction[candidates], floor[candidates] < 1, parent[candidates]))]
    family = parent[order]
    position = np.arange(len(order))
    first = np.maximum.accumulate(np.where(np.diff(family, prepend=-1) > 0, position, 0))
    return order[position - first < missing[family]]
