"""The exact law of PrivTree's splits, and what the worst chain of counts or the worst tree tells apart.

A node splits if b + X > theta. Everything follows from s = b - theta, a whole number if theta and delta are; these functions
work on reals as well, to show what would go wrong with the paper's real-valued delta.
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The numbers of a mechanism on a budget: scale of the noise, bias per step, threshold, parts."""

    scale: float
    delta: float
    theta: float = 0
    fan_out: int = 4

    @property
    def declared(self) -> float:
        return (2 * self.fan_out - 1) / (self.fan_out - 1) / self.scale

    def surplus(self, count, depth: int):
        """(k,) b - theta of nodes with (k,) true counts."""
        return np.maximum(count - depth * self.delta, self.theta - self.delta) - self.theta

    def splits(self, count, depth: int):
        """(k,) logarithm of P(X > -s), X discrete Laplace."""
        return self._log_tail(np.floor(-self.surplus(count, depth)) + 1)

    def stays(self, count, depth: int):
        """(k,) logarithm of P(X <= -s) = P(X >= s)."""
        return self._log_tail(-np.floor(-self.surplus(count, depth)))

    def _log_tail(self, least):
        """(k,) logarithm of P(X >= least): q**least / (1 + q) above 0, 1 - q**(1 - least) / (1 + q) up to 0."""
        rate = 1 / self.scale
        whole, over = math.log1p(math.exp(-rate)), np.maximum(1 - least, 1)
        return np.where(least >= 1, -least * rate - whole, np.log1p(-np.exp(-over * rate - whole)))


def worst_chain(rule: Rule, depth: int) -> float:
    """The largest log-ratio either way between a chain of counts and the same with one record less, over all chains c_0 >= c_1 >= ...

    by dynamic programming from the deepest tested depth up to the root: with c records here, the best of at most c below. A path ends
    at the lattice, untested, or in a node that stays whole.
    """
    count = np.arange(1, int(abs(rule.theta) + (depth + 1) * math.ceil(rule.delta) + 50 * max(rule.scale, 1)) + 2)
    more, fewer = np.zeros(len(count)), np.full(len(count), 0.0)
    for here in range(depth - 1, -1, -1):
        split = rule.splits(count, here) - rule.splits(count - 1, here)
        stay = rule.stays(count - 1, here) - rule.stays(count, here)
        more = np.maximum(split + np.maximum.accumulate(more), -stay)
        fewer = np.maximum(-split + np.maximum.accumulate(fewer), stay)
    return float(max(more.max(), fewer.max()))


def worst_tree(rule: Rule, one: np.ndarray, other: np.ndarray, depth: int = 0) -> float:
    """The largest logarithm of P(tree | one) / P(tree | other) over all trees, exactly: two (side, side) matrices, side a power of 2."""
    if len(one) == 1 or (one == other).all():
        return 0.0
    side, half = len(one), len(one) // 2
    quarters = [(slice(row, row + half), slice(column, column + half)) for row in range(0, side, half) for column in range(0, side, half)]
    split = float(rule.splits(one.sum(), depth) - rule.splits(other.sum(), depth))
    stay = float(rule.stays(one.sum(), depth) - rule.stays(other.sum(), depth))
    return max(stay, split + sum(worst_tree(rule, one[quarter], other[quarter], depth + 1) for quarter in quarters))
