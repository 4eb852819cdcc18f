"""The joint distribution of the errors of consistent counts on nested levels, and the variance of any weighted sum of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers, Places


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelSpread:
    """The joint distribution of the errors of counts that add up from level to level, in memory proportional to the number of nodes.

    As for `dpviz.privacy.consistency.Spread`: let e_p be the error of a parent. The error of its child c is
    e_c = share_c e_p + u_c - share_c U, where the u_c are independent with variance slack_c, and U is the sum of u over all children of
    the parent.

    Attributes:
        root: variance of the root's estimate.
        share: per level below the root, (n,) the share of its parent's error that each node gets.
        slack: per level below the root, (n,) variance of the best estimate of each node from measurements at and below it alone.
        parent: per level below the root, (n,) index of each node's parent in the level above, ascending.
    """

    root: float
    share: tuple[Floats, ...]
    slack: tuple[Floats, ...]
    parent: tuple[Places | Integers, ...]

    def variances(self) -> list[Floats]:
        """Compute the variance of every node's estimate: one array per level, the root's first."""
        variances = [np.array([self.root])]
        for share, slack, parent in zip(self.share, self.slack, self.parent, strict=True):
            variances.append(slack - share * slack + share**2 * variances[-1][parent])
        return variances

    def of_sums(self, weights: Any) -> Floats:
        """Compute the variances of weighted sums of leaves, in one pass from the leaves to the root.

        Consider the part of a sum that lies inside a node: `slope` is the change of this part per change of the node's count, and `rest`
        is the variance of the sum if the counts of all nodes of the level are fixed.

        Args:
            weights: (q, leaves) the weight of each leaf in each sum, as a scipy sparse matrix.

        Returns:
            (q,) variances, at least 0.
        """
        slope, rest = scipy.sparse.csr_array(weights, dtype=np.float64), np.zeros(weights.shape[0])
        for share, slack, parent in zip(self.share[::-1], self.slack[::-1], self.parent[::-1], strict=True):
            shape = (len(parent), int(parent[-1]) + 1)
            above = slope @ scipy.sparse.csr_array((share, (np.arange(len(parent)), parent)), shape=shape)
            crossed = (slope @ scipy.sparse.csr_array((slack, (np.arange(len(parent)), parent)), shape=shape)).multiply(above)
            rest += slope.power(2) @ slack - 2 * crossed.sum(axis=1) + above.power(2) @ np.bincount(parent, slack)
            slope = above
        of_root = np.asarray(slope.sum(axis=1)) ** 2 * self.root
        return np.asarray(np.maximum(of_root + rest, 0.0))
