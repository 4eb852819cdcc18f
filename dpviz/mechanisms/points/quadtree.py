"""The quadtree: noisy counts on every level of equal quarters, reconciled by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import TREES, Share, setting, weights_setting
from dpviz.mechanisms.budget_noise import is_gaussian
from dpviz.mechanisms.points.base import (
    PointMechanism,
    fill_setting,
    height_setting,
    join_reasons,
    least_squares_setting,
    negative_setting,
    prune_setting,
    shrink_setting,
    zoom_shares,
)
from dpviz.mechanisms.run import Run
from dpviz.privacy.allocation import STRATEGIES, level_weights, measured_part
from dpviz.privacy.budget import Budget
from dpviz.privacy.consistency import Spread
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree, refuse_too_large
from dpviz.space.tree import remove_descendants


@dataclass(frozen=True, kw_only=True)
class Quadtree(PointMechanism):
    """A complete quadtree whose structure is public; each level gets its share of epsilon, or of rho.

    Protects: adding or removing one record (with a person column: one person's bounded records). A record lies in one
    node per level, so the levels' epsilons, or rhos, add up along its path. A person's m records may lie in m nodes of a level. They change
    the level's counts by m in total, however they are spread, and m is the sensitivity of Laplace noise. Their squared changes add up to
    at most m**2, reached by m records in one node: the squared sensitivity of Gaussian noise (`Sensitivity`). For (epsilon, delta) and
    m = 1, one count per level changes by one: independent unit shifts, one per level, as the exact accounting assumes.

    Mask:
        A wholly masked node has no record, whatever the data are. So its count is 0 without noise, and the proof holds for the other nodes.
        Those that are masked in part are counted as always.

    Source:
        Cormode, Procopiuc, Srivastava, Shen, Yu, "Differentially private spatial decompositions", ICDE 2012: Section IV
        (budgets), V (least squares), VII (pruning). Its quad-baseline is split="uniform", least_squares=False; quad-geo is
        least_squares=False; quad-post is split="uniform"; quad-opt is the default.

    Deviations:
        Noise is exact and discrete. Fan-out 16 halves each side twice in one step; on lattices of odd order the last step halves it
        once. Levels below the deepest measured one are not built, since their counts would only be shares of area. The root's count
        may be left out, and its share given to the other levels. With rho or (epsilon, delta), noise is Gaussian, and the geometric
        split that of this noise (see `level_weights` of `dpviz.privacy.allocation`).

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Quadtree(height=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(quadtree, 256 partitions, epsilon 1, SIMULATION: not private)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "quadtree"
    title: ClassVar[str] = "Quadtree"
    menu_group: ClassVar[str] = TREES
    summary: ClassVar[str] = (
        "Counts nested quarters on every zoom level with noise and makes the levels agree, so that large areas stay accurate."
    )
    advice: ClassVar[str] = (
        "Its partitions are public, so that its errors are the same for all data and known before. It pays for that: up"
        " to 8 times the least error in a city, and up to 92 times where records are few."
    )

    noise_by_budget: ClassVar[bool] = True

    height: int = height_setting()
    fan_out: int = setting(4, "Parts per step", choices=(4, 16), help="4 halves each side per step, 16 halves it twice.")
    split: str = setting("geometric", "Budget over levels", choices=STRATEGIES, help="How the budget is shared between zoom levels.")
    weights: tuple[float, ...] = weights_setting("One per zoom level, whole domain first: shares that add up to 1, or whole numbers.")
    count_root: bool = setting(
        True,
        "Count the whole domain",
        help="Spend a share of the budget on the total. Without effect for custom weights, whose first one is the total's.",
    )
    least_squares: bool = least_squares_setting()
    shrink_small: bool = shrink_setting(default=False)
    negative: str = negative_setting()
    fill: str = fill_setting()
    prune: float = prune_setting()

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a budget of any kind on `points`; raises `BudgetError` for delta = 0, or for custom weights that do not fit."""
        run = Run.of(self, points, budget, entropy)
        weights, notes = self.measured_weights(points.domain, gaussian=run.gaussian)
        tree = quadtree(points.domain, len(weights) - 1, self.fan_out)
        noisy, variance = self.count_levels(run, tree, run.split(weights))
        release = self.make_release(run, tree, noisy, variance, notes=notes)
        return prune(release, self.prune) if self.prune else release

    def measured_weights(self, domain: Domain, *, gaussian: bool = False) -> tuple[list[float], tuple[str, ...]]:
        """Return the weights of the depths, root first, down to the deepest measured level, and notes on what was cut.

        Args:
            domain: the public frame.
            gaussian: whether noise is Gaussian, and weights are of rho; otherwise they are of epsilon.
        """
        weights = self._all_weights(domain, gaussian=gaussian)
        height, measured = len(weights) - 1, measured_part(weights)
        notes = [f"The height is {height}: the lattice is no finer."] if height < self.height else []
        if len(measured) <= height:
            notes.append(f"The tree ends at zoom level {len(measured) - 1}: nothing is measured below.")
        return measured, tuple(notes)

    @property
    def _halvings(self) -> int:
        """How often a step halves each side."""
        return 1 if self.fan_out == 4 else 2

    def _all_weights(self, domain: Domain, *, gaussian: bool = False) -> list[float]:
        height = min(self.height, -(-domain.order // self._halvings))
        weights = level_weights(self.split, height, fan_out=self.fan_out, gaussian=gaussian, custom=self.weights)
        return weights if self.count_root or self.split == "custom" else [0.0, *weights[1:]]

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node; None after pruning, which removes measured nodes."""
        weights, _ = self.measured_weights(release.domain, gaussian=is_gaussian(budget, self.title))
        return None if self.prune else self.plan_variances(release, budget, weights)

    def check(self, frame: Domain) -> None:
        """Raise an error if custom weights do not fit, or the tree is too large for memory."""
        refuse_too_large(len(self.measured_weights(frame)[0]) - 1, self.fan_out)

    def shares(self, frame: Domain) -> list[Share]:
        """List one share of epsilon per zoom level, whole domain first."""
        return zoom_shares(self._all_weights(frame), 2 * self._halvings, frame.order)

    def shares_of_rho(self, frame: Domain) -> list[Share]:
        """List one share of rho per zoom level, whole domain first."""
        return zoom_shares(self._all_weights(frame, gaussian=True), 2 * self._halvings, frame.order)

    def with_shares(self, shares: Sequence[float]) -> Quadtree:
        """Return a copy with custom weights, one per zoom level."""
        return replace(self, split="custom", weights=tuple(shares))


def prune(release: PointRelease, least: float) -> PointRelease:
    """Remove the descendants of nodes whose estimate is under `least`: post-processing of released counts only.

    Source:
        Cormode et al., ICDE 2012, Section VII, after least squares.
    """
    tree, kept = remove_descendants(release.tree, (release.count < least) & (release.tree.children > 0))
    spread = release.spread
    if isinstance(spread, Spread):
        spread = Spread(share=spread.share[kept], slack=spread.slack[kept], root=spread.root)
    return replace(
        release,
        tree=tree,
        noisy=release.noisy[kept],
        noise_variance=release.noise_variance[kept],
        count=release.count[kept],
        unbiased=None if release.unbiased is None else release.unbiased[kept],
        spread=spread,
        steps=(*release.steps, f"pruned below nodes under {least:,g}"),
        approximate=join_reasons(release.approximate, "the spread is that of fixed partitions; pruning looks at the released counts"),
    )
