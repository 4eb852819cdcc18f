"""Privelet: noise on the coefficients of a wavelet, so that sums over any range meet only a few of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import GRIDS
from dpviz.mechanisms.points.base import PointMechanism, order_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.wavelet import WaveletSpread, coefficients, table
from dpviz.release.point_release import PointRelease
from dpviz.space.grids import quadtree
from dpviz.space.morton import cells_at
from dpviz.space.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Privelet(PointMechanism):
    """Noise on the two-dimensional Haar wavelet of a 2**order x 2**order grid.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie in m cells. Each record changes equally many coefficients by 1, so m times the sensitivity of one record covers all of them.

    Privacy:
        One more record changes k = (1 + order)**2 of the whole-number coefficients, one per pair of levels of columns and rows, by 1 or
        -1 each. All coefficients have noise of the same distribution. m records change them by a sum of m such vectors: by at most
        m k in all, the sensitivity of Laplace noise; and with a Euclidean norm of at most m sqrt(k), so that the squared sensitivity of
        Gaussian noise is m**2 k. Both are reached by m records in one cell. Discrete Gaussian noise with the parameter sigma**2 =
        m**2 k / (2 rho) on every coefficient is rho-zCDP (Canonne, Kamath, Steinke, NeurIPS 2020, Theorem 4, whose proof for one number
        adds up over numbers). For (epsilon, delta) and m = 1, the two output distributions are exactly those of k independent unit shifts,
        up to signs, and the noise is symmetric: the exact accounting of k changes holds. For m > 1 the tight conversion is used.

    Source:
        Xiao, Wang, Gehrke, "Differential privacy via wavelet transforms", ICDE 2010 (TKDE 2011), Sections IV and VI. Its weights
        give every unnormalised coefficient, a plain difference of sums, noise of the same scale. The noise is added here in this form.

    Deviations:
        Noise is exact and discrete; with rho or (epsilon, delta) it is Gaussian. The side of the grid is a power of two. No count is
        measured by itself, so the release has no measured counts. The released counts are the noisy coefficients, transformed back
        without further post-processing.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Privelet(order=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(privelet, 256 partitions, epsilon 1, SIMULATION: not private)
    """

    key: ClassVar[str] = "privelet"
    title: ClassVar[str] = "Privelet"
    menu_group: ClassVar[str] = GRIDS
    summary: ClassVar[str] = "Puts noise on a wavelet of a fine grid: sums over large areas stay accurate, single cells are noisier."
    advice: ClassVar[str] = (
        "Never close to the least error on 256 x 256 cells (3 to 369 times). Under ε and δ its Gaussian noise has a third of this error."
    )
    whole_budget: ClassVar[str] = "This mechanism splits the budget itself: all of it buys differences of all levels at once."

    noise_by_budget: ClassVar[bool] = True

    order: int = order_setting(11)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a budget of any kind on `points`; raises `BudgetError` for delta = 0."""
        self.check_data(points)
        order = min(self.order, points.domain.order)
        run = Run.of(self, points, budget, entropy, ones=(1 + order) ** 2)
        (amount,) = run.split([1.0])
        true = coefficients(points.blocks(order)).ravel()
        noisy, variance = run.measure("counts as wavelet coefficients", true, amount)
        spread = WaveletSpread(order=order, variance=variance, width=points.domain.side >> order)
        notes = (f"The grid has order {order}: the lattice is no finer.",) if order < self.order else ()
        tree = quadtree(points.domain, order)
        count = _sum_at_nodes(tree, table(noisy.reshape(1 << order, -1)))
        release = self.make_release(run, tree, count, np.ones(len(tree)), notes=notes, least_squares=False)
        unknown, infinite = np.full(len(tree), np.nan), np.full(len(tree), np.inf)
        return replace(release, noisy=unknown, noise_variance=infinite, spread=spread, steps=("inverse wavelet",))


def _sum_at_nodes(tree: Tree, cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up (side, side) cells to (n,) sums at the nodes of the complete quadtree over them."""
    count = np.empty(len(tree))
    for depth in range(tree.height, -1, -1):
        column, row = cells_at(np.arange(4**depth))
        count[tree.at_depth(depth)] = cells[row, column]
        if depth:
            cells = cells[0::2] + cells[1::2]
            cells = cells[:, 0::2] + cells[:, 1::2]
    return count
