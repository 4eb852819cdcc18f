"""A flat grid of equal cells, each with its own noisy count. Read this one first: every mechanism has this shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import RECOMMENDED, Share, setting, shares_of
from dpviz.mechanisms.noisy_counts import Finish, NoisyCounts, PointMechanism, all_on_leaves, level_variances
from dpviz.privacy.budget import Budget, PureBudget, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from dpviz.space.grids import grid

MOST_PER_SIDE = 4096


@dataclass(frozen=True, kw_only=True)
class UniformGrid(PointMechanism):
    """UG: m x m cells with m = sqrt(N epsilon / c), which balances noise against the error of assuming uniformity.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie in m cells: they change the counts, and the total, by m in all, and m is the sensitivity.

    Source:
        Qardaji, Yang, Li, "Differentially private grids for geospatial data", ICDE 2013, Guideline 1. One cell is the
        baseline "Uniform" of Shaham et al., "HTF: homogeneous tree framework", 2021.

    Deviations:
        The paper takes N as known. Here a small share of epsilon buys a noisy N, or N is declared and listed as unprotected. The rule
        uses the epsilon that is left for the cells, divided by the bound of records per person. N <= 0 gives one cell. The number of
        cells per side is cut to the lattice and to 4,096, and cell edges snap to lattice lines.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.UniformGrid().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    Release(uniform_grid, 97,344 partitions, epsilon 1, SIMULATION: not private)
    """

    key: ClassVar[str] = "uniform_grid"
    title: ClassVar[str] = "Uniform grid (UG)"
    menu_group: ClassVar[str] = RECOMMENDED
    summary: ClassVar[str] = "Cuts the domain into equal cells, as many as data size and budget can support, and counts each with noise."

    side: int | None = setting(
        None,
        "Cells per side",
        optional=True,
        low=1,
        high=MOST_PER_SIDE,
        help="Left empty, the rule m = √(N ε / c) decides; 1 gives the Uniform baseline.",
    )
    declared_total: int | None = setting(
        None,
        "Declared number of records",
        optional=True,
        low=0,
        high=2**53,
        when=("side", None),
        help="A number of records that is public already. Left empty, a share of ε buys a noisy one.",
    )
    total_share: float = setting(
        0.01, "Share for the total", low=0.001, high=0.5, when=("side", None), help="The part of ε that buys the noisy total."
    )
    c: float = setting(
        10.0,
        "Constant c of the rule",
        low=0.1,
        high=1000,
        when=("side", None),
        help="Larger values give fewer, larger cells; the paper's is 10.",
    )

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> Release:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget."""
        budget = require_pure(budget, self.title)
        counter = NoisyCounts(points=points, entropy=entropy)
        side, epsilon = self._choose_side(counter, budget)
        fitting = min(side, points.domain.side, MOST_PER_SIDE)
        tree = grid(points.domain, fitting, fitting)
        noisy, variance = counter.count_levels(tree, all_on_leaves(tree, epsilon))
        declared = self.side is None and self.declared_total is not None
        finish = Finish(
            mechanism=self,
            budget=budget,
            unprotected=(f"the declared number of records ({self.declared_total:,})",) if declared else (),
            notes=(f"The grid has {fitting:,} cells per side, not {side:,}: the lattice or the memory has no room for more.",)
            if fitting < side
            else (),
        )
        return counter.make_release(finish, tree, noisy, variance)

    def _choose_side(self, counter: NoisyCounts, budget: PureBudget) -> tuple[int, Fraction]:
        """Return the number of cells per side, and the epsilon that is left for counting the cells."""
        bound = counter.points.contributions
        if self.side is not None:
            return self.side, budget.epsilon
        if self.declared_total is not None:
            return self.rule(self.declared_total, budget.epsilon / bound), budget.epsilon
        total_epsilon, cell_epsilon = budget.split([self.total_share, 1 - self.total_share])
        total, _ = counter.count("total, for the size of the grid", np.array([counter.points.count.sum()]), total_epsilon)
        return self.rule(int(total[0]), cell_epsilon / bound), cell_epsilon

    def count_variances(self, release: Release, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node: finite for the cells alone."""
        epsilon = require_pure(budget, self.title).epsilon
        if self._measures_total:
            epsilon = PureBudget(epsilon).split([self.total_share, 1 - self.total_share])[1]
        return level_variances(release.tree, all_on_leaves(release.tree, epsilon), release.receipt.contributions)

    @property
    def _measures_total(self) -> bool:
        """Whether a share of the budget buys a noisy total."""
        return self.side is None and self.declared_total is None

    def shares(self, frame: Domain) -> list[Share]:
        """List the shares of the total and of the cells; one share if no total is measured."""
        if not self._measures_total:
            return super().shares(frame)
        return [
            Share(label="total", share=self.total_share, structure=True),
            Share(label="cells", share=1 - self.total_share),
        ]

    def with_shares(self, shares: Sequence[float]) -> UniformGrid:
        """Return a copy whose share for the total is the first part, limited to its range."""
        return replace(self, total_share=min(max(shares_of(shares)[0], 0.001), 0.5)) if len(shares) == 2 else self

    def rule(self, total: int, epsilon: Fraction) -> int:
        """Compute the cells per side, sqrt(N epsilon / c), rounded and at least 1."""
        return max(1, round(math.sqrt(max(total, 0) * float(epsilon) / self.c)))
