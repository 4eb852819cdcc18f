"""A noisy count for every cell of a fine grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import GRIDS, setting
from dpviz.mechanisms.points.base import KEEP, PointMechanism, all_on_leaves, negative_setting, order_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Step
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree, refuse_too_large


@dataclass(frozen=True, kw_only=True)
class Identity(PointMechanism):
    """Noise on every cell of a 2**order x 2**order grid: the simplest private histogram, unbiased everywhere.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie in m cells. They change the counts by m in total, however they are spread, and m is the sensitivity of Laplace noise. Their
    squared changes add up to at most m**2, reached by m records in one cell: this is the squared sensitivity of Gaussian noise. For
    (epsilon, delta) and m = 1, one count changes by one, as the exact accounting assumes.

    Mask:
        A masked cell has no record, whatever the data are. So its count is 0 without noise, and the proof holds for the other cells.

    Source:
        Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity", TCC 2006; "Singular" in Shaham et al., HTF, 2021.

    Deviations:
        With rho or (epsilon, delta), noise is Gaussian. With `threshold`, cells whose noisy count is below the noise that one of all cells
        is likely to have become 0: m ln(cells) / epsilon, where m is the contribution bound, or sigma sqrt(2 ln(cells)) for Gaussian noise
        of variance sigma**2; masked cells do not count. This is post-processing. It adds bias, but on sparse data its relative error is
        smaller than that of most published methods.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Identity(order=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(identity, 256 partitions, epsilon 1, SIMULATION: not private)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "identity"
    title: ClassVar[str] = "Every cell (Identity)"
    menu_group: ClassVar[str] = GRIDS
    summary: ClassVar[str] = "Counts every cell of a fine grid with noise: unbiased, but large areas add up the noise of many cells."
    advice: ClassVar[str] = (
        "Counts each cell on its own, without bias: close to the least error on small boxes that are full, with much"
        " budget. Loses where cells are empty or are added up, up to 46 times."
    )

    noise_by_budget: ClassVar[bool] = True

    order: int = order_setting(12)
    threshold: bool = setting(
        False,
        "Zero small cells",
        help="Cells with a noisy count below m ln(cells)/ε become 0, with m records per person (Gaussian noise: σ √(2 ln(cells))). Biased,"
        " but often better on sparse data.",
    )
    negative: str = negative_setting(when=("threshold", False))

    def check(self, frame: Domain) -> None:
        """Raise an error if the grid is too large for memory."""
        refuse_too_large(min(self.order, frame.order), 4)

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node: finite for the cells alone."""
        return self.plan_variances(release, budget, [1.0], on_leaves=True)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a budget of any kind on `points`; raises `BudgetError` for delta = 0."""
        run = Run.of(self, points, budget, entropy)
        order = min(self.order, points.domain.order)
        tree = quadtree(points.domain, order)
        (amount,) = run.split([1.0])
        noisy, variance = self.count_levels(run, tree, all_on_leaves(tree, amount))
        notes = (f"The grid has order {order}: the lattice is no finer.",) if order < self.order else ()
        negative = KEEP if self.threshold else self.negative
        release = self.make_release(run, tree, noisy, variance, notes=notes, negative=negative)
        cells = int(np.count_nonzero(release.open_cells[tree.leaves]))
        return zero_small_cells(release, largest_noise(run.steps[0], cells)) if self.threshold else release


def largest_noise(step: Step, cells: int) -> float:
    """Return about how large the largest noise of many cells is: b ln(cells) for the scale b, or sigma sqrt(2 ln(cells))."""
    if "Gaussian" in step.noise:
        return math.sqrt(2 * float(step.scale) * math.log(cells))  # the scale is sigma squared
    return math.log(cells) * int(step.sensitivity) / float(step.amount)


def zero_small_cells(release: PointRelease, threshold: float) -> PointRelease:
    """Set leaves with a count below `threshold` to 0, and every node with children to their sum."""
    tree, count = release.tree, release.count
    return replace(
        release,
        count=tree.sum_up(np.where((tree.children > 0) | (count < threshold), 0.0, count)),
        unbiased=count,
        steps=(*release.steps, f"cells below {threshold:,.1f} set to 0"),
        approximate="the spread is that of the noise before small cells were set to 0, which adds bias",
    )
