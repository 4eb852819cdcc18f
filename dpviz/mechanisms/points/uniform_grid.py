"""A flat grid of equal cells, each with its own noisy count. Read this one first: every mechanism has this shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import RECOMMENDED, Share, setting, shares_of
from dpviz.mechanisms.points.base import PointMechanism, all_on_leaves, declared_total_setting, name_declared, negative_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import grid

MOST_PER_SIDE = 4096


@dataclass(frozen=True, kw_only=True)
class UniformGrid(PointMechanism):
    """UG: m x m cells with m = sqrt(N epsilon / c), which balances noise against the error of assuming uniformity.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie in m cells: they change the counts, and the total, by m in all, and m is the sensitivity of Laplace noise. The squared
    sensitivity of Gaussian noise is m**2, for the cells reached by m records in one cell. For (epsilon, delta) and m = 1, the total and one
    cell change by one each. The cells may depend on the noisy total, but the variance of their noise does not, as the exact accounting
    assumes.

    Mask:
        A wholly masked cell of the grid has no record, whatever the data are. So its count is 0 without noise, and the proof holds for the
        other cells. The size of the grid follows from the mask and from a number that is noisy or declared.

    Source:
        Qardaji, Yang, Li, "Differentially private grids for geospatial data", ICDE 2013, Guideline 1. One cell is the
        baseline "Uniform" of Shaham et al., "HTF: homogeneous tree framework", 2021.

    Deviations:
        The paper takes N as known. Here a small share of the budget buys a noisy N, or N is declared and listed as unprotected. The rule
        uses the epsilon that is left for the cells, divided by the bound of records per person. With rho or (epsilon, delta), noise is
        Gaussian, and the rule uses 2 sqrt(rho), with which continuous Laplace noise has the same variance. N <= 0 gives one cell. The
        number of cells per side is cut to the lattice and to 4,096, and cell edges snap to lattice lines. If only a share s of the domain
        is open, m = sqrt(N epsilon / (c s)), so that N epsilon / c cells are open.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.UniformGrid().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(uniform_grid, 97,344 partitions, epsilon 1, SIMULATION: not private)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "uniform_grid"
    title: ClassVar[str] = "Uniform grid (UG)"
    menu_group: ClassVar[str] = RECOMMENDED
    summary: ClassVar[str] = "Cuts the domain into equal cells, as many as data size and budget can support, and counts each with noise."
    advice: ClassVar[str] = (
        "Least error where records are few (N ε under about 3,000) and fill the land, or lie evenly. Loses where most of the domain is"
        " empty: 3 to 35 times the least error around one crowd, on roads and on routes."
    )

    noise_by_budget: ClassVar[bool] = True

    side: int | None = setting(
        None,
        "Cells per side",
        optional=True,
        low=1,
        high=MOST_PER_SIDE,
        help="Left empty, the rule m = √(N ε / c) decides; 1 gives the Uniform baseline.",
    )
    declared_total: int | None = declared_total_setting(
        "A number of records that is public already. Left empty, a share of the budget buys a noisy one.", when=("side", None)
    )
    total_share: float = setting(
        0.01, "Share for the total", low=0.001, high=0.5, when=("side", None), help="The part of the budget that buys the noisy total."
    )
    c: float = setting(
        10.0,
        "Constant c of the rule",
        low=0.1,
        high=1000,
        when=("side", None),
        help="Larger values give fewer, larger cells; the paper's is 10.",
    )
    negative: str = negative_setting(when=None)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a budget of any kind on `points`; raises `BudgetError` for delta = 0."""
        run = Run.of(self, points, budget, entropy)
        side, amount = self._choose_side(run)
        fitting = min(side, points.domain.side, MOST_PER_SIDE)
        tree = grid(points.domain, fitting, fitting)
        noisy, variance = self.count_levels(run, tree, all_on_leaves(tree, amount))
        return self.make_release(
            run,
            tree,
            noisy,
            variance,
            unprotected=name_declared(self.declared_total) if self.side is None else (),
            notes=(f"The grid has {fitting:,} cells per side, not {side:,}: the lattice or the memory has no room for more.",)
            if fitting < side
            else (),
        )

    def _choose_side(self, run: Run[PointCounts]) -> tuple[int, Fraction]:
        """Return the number of cells per side, and the epsilon, or rho, that is left for counting the cells."""
        *on_total, on_cells = run.split(self._weights)
        if self.side is not None:
            return self.side, on_cells
        total = run.measure_total("total, for the size of the grid", on_total[0]) if on_total else self.declared_total or 0
        epsilon = Fraction(2 * math.sqrt(on_cells)) if run.gaussian else on_cells
        return self.rule(total, epsilon / run.data.contributions, run.data.domain.share_open), on_cells

    @property
    def _weights(self) -> list[float]:
        """Weights of the total, if it is measured, and of the cells."""
        return [self.total_share, 1 - self.total_share] if self._measures_total else [1.0]

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node: finite for the cells alone."""
        return self.plan_variances(release, budget, self._weights, on_leaves=True)

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

    def rule(self, total: int, epsilon: Fraction, share: float = 1.0) -> int:
        """Compute the cells per side, sqrt(N epsilon / (c s)), rounded and at least 1; s is the share of the domain that is open."""
        return max(1, round(math.sqrt(max(total, 0) * float(epsilon) / (self.c * share))))
