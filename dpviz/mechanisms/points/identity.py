"""A noisy count for every cell of a fine grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import GRIDS, setting
from dpviz.mechanisms.noisy_counts import Finish, NoisyCounts, PointMechanism, all_on_leaves, level_variances
from dpviz.privacy.budget import Budget, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree


@dataclass(frozen=True, kw_only=True)
class Identity(PointMechanism):
    """Noise on every cell of a 2**order x 2**order grid: the simplest private histogram, unbiased everywhere.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie in m cells. They change the counts by m in total, however they are spread, and m is the sensitivity.

    Source:
        Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity", TCC 2006; "Singular" in Shaham et al., HTF, 2021.

    Deviations:
        With `threshold`, cells whose noisy count is below m ln(cells) / epsilon become 0, where m is the contribution bound. This is
        post-processing. It adds bias, but on sparse data its relative error is smaller than that of most published methods.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Identity(order=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    Release(identity, 256 partitions, epsilon 1, SIMULATION: not private)
    """

    key: ClassVar[str] = "identity"
    title: ClassVar[str] = "Every cell (Identity)"
    menu_group: ClassVar[str] = GRIDS
    summary: ClassVar[str] = "Counts every cell of a fine grid with noise: unbiased, but large areas add up the noise of many cells."

    order: int = setting(
        10,
        "Resolution, 2^n cells per side",
        low=1,
        high=12,
        help="The number n: 8 makes 256 cells per side; never finer than the resolution of the domain.",
    )
    threshold: bool = setting(
        False,
        "Zero small cells",
        help="Cells with a noisy count below m ln(cells)/ε become 0, with m records per person. Biased, but often better on sparse data.",
    )

    def check(self, frame: Domain) -> None:
        """Raise an error if the grid is too large for memory."""
        quadtree(frame, min(self.order, frame.order))

    def count_variances(self, release: Release, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node: finite for the cells alone."""
        epsilons = all_on_leaves(release.tree, require_pure(budget, self.title).epsilon)
        return level_variances(release.tree, epsilons, release.receipt.contributions)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> Release:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget."""
        budget = require_pure(budget, self.title)
        counter = NoisyCounts(points=points, entropy=entropy)
        order = min(self.order, points.domain.order)
        tree = quadtree(points.domain, order)
        noisy, variance = counter.count_levels(tree, all_on_leaves(tree, budget.epsilon))
        notes = (f"The grid has order {order}: the lattice is no finer.",) if order < self.order else ()
        release = counter.make_release(Finish(mechanism=self, budget=budget, notes=notes), tree, noisy, variance)
        return zero_small_cells(release, math.log(4**order) * points.contributions / float(budget.epsilon)) if self.threshold else release


def zero_small_cells(release: Release, threshold: float) -> Release:
    """Set leaves with a count below `threshold` to 0, and every node with children to their sum."""
    tree, count = release.tree, release.count.copy()
    leaves = tree.at_depth(tree.height)
    count[leaves] = np.where(count[leaves] < threshold, 0.0, count[leaves])
    for depth in range(tree.height - 1, -1, -1):
        count[tree.at_depth(depth)] = tree.sum_children(depth, count[tree.at_depth(depth + 1)])
    return replace(
        release,
        count=count,
        unbiased=release.count,
        steps=(*release.steps, f"cells below {threshold:,.1f} set to 0"),
        approximate="the spread is that of the noise before small cells were set to 0, which adds bias",
    )
