"""Noise on every level of nested regions, and exact least squares on their tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dpviz.data.areas import AreaCounts
from dpviz.mechanisms.areas.base import AreaMechanism
from dpviz.mechanisms.base import BOUNDED, Share, setting, split_shares, weights_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.allocation import REGION_STRATEGIES, region_weights
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_release import AreaRelease
from dpviz.space.cross import Cross, regions_of
from dpviz.space.regions import Regions


@dataclass(frozen=True, kw_only=True)
class RegionTree(AreaMechanism):
    """Noisy counts of the regions of every level, made consistent by exact least squares on the tree of regions.

    Protects: adding or removing one record, or replacing it by another (with a person column: one person's at most m records).

    Proof: regions, levels and shares are public. The regions of a level are disjoint, so that a unit's m records change their counts by at
    most m in all, with a sum of squares of at most m**2; if they are replaced by at most m others, by at most 2 m and 2 m**2 (see
    `Sensitivity`). Each level has independent noise for its share of the budget, and the shares add up: epsilons by basic composition,
    rhos by that of zCDP. Least squares, non-negative counts and rounding see noisy counts alone. For (epsilon, delta) and m = 1, one count
    of each level changes by one (two, if replaced), as the exact accounting assumes; for m > 1 rho comes from the tight conversion.

    Source:
        Hay, Rastogi, Miklau, Suciu, VLDB 2010, Section 4, for any tree: least squares on a tree of noisy counts. With rho and shares per
        level, the first step of the TopDown algorithm of the US Census of 2020 (Abowd et al., Harvard Data Science Review, 2022).
        Non-negative counts: `dpviz.privacy.nonnegative_fit`. The shares: `dpviz.privacy.allocation.region_weights`.

    Deviations:
        One fit on the whole tree in place of the Census's fits from level to level. The total of all regions is not measured
        unless `count_root` is on or the split is balanced: it is the sum of the coarsest level. Under "bounded", a share for the total
        costs more than it has to, since replacing a person changes the total least where it changes the regions most: a balanced split
        gives it none there.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> dv.RegionTree().release(areas, dv.ZcdpBudget("0.1"), dv.Entropy.seeded(1))
    AreaRelease(region_tree, 1,608 block, rho 0.1, SIMULATION: not private)
    """

    key: ClassVar[str] = "region_tree"
    title: ClassVar[str] = "Region tree"
    summary: ClassVar[str] = "Counts the regions of every level with noise and makes the levels agree, so that large regions stay accurate."

    split: str = setting(
        "minimax",
        "Budget over levels",
        choices=REGION_STRATEGIES,
        help="minimax: the level that loses most against the whole budget loses as little as possible; its finest level has more noise than"
        " flat counts, 2 to 3 times as much under ε and 1.4 to 1.6 times under ρ in the samples of two and three levels, and larger"
        " regions far less. balanced: the finest level counts most and has little more noise than flat counts, the whole has a share of its"
        " own (none if neighbours are bounded), and levels between have more noise. uniform: equal shares. geometric: more for levels with"
        " more regions. census: the published shares of the US Census of 2020, for six levels. custom: your weights.",
    )
    weights: tuple[float, ...] = weights_setting(
        "One per level, coarsest first (the whole first, if it is counted); 0 for a level that is not measured, but not for the"
        " finest. Shares that add up to 1, or whole numbers.",
    )
    count_root: bool = setting(False, "Count the whole", help="Spend a share of the budget on the total of all regions.")
    nonnegative: bool = setting(
        False, "Non-negative counts", help="Release whole numbers of at least 0 that add up and fit the noisy counts best; biased."
    )

    def release(self, areas: AreaCounts, budget: Budget, entropy: Entropy) -> AreaRelease:
        """Spend a budget on `areas`: epsilon for Laplace noise; rho, or (epsilon, delta) with delta above 0, for Gaussian noise.

        Raises:
            BudgetError: something else than a budget, delta = 0, or a split that does not fit the levels.
            InputError: not AreaCounts.
        """
        run = Run.of(self, areas, budget, entropy)
        weights = self.level_weights(areas.regions, gaussian=run.gaussian)
        return self.make_release(run, *self.count_levels(run, weights), nonnegative=self.nonnegative)

    @property
    def counts_whole(self) -> bool:
        """Whether the total of all regions has a share: with `count_root`, or if a balanced split gives it one."""
        return self.count_root or (self.split == "balanced" and self.neighbours != BOUNDED)

    def level_weights(self, regions: Regions, *, gaussian: bool) -> list[float]:
        """Return the g + 1 weights of the levels, the whole's first.

        Args:
            regions: the public regions.
            gaussian: whether noise is Gaussian, and weights are of rho; otherwise they are of epsilon.

        Raises:
            BudgetError: a split that does not fit the levels.
        """
        first = 0 if self.counts_whole else 1
        sizes = [regions.size(level) for level in range(first, regions.depth + 1)]
        weights = region_weights(self.split, sizes, gaussian=gaussian, custom=self.weights, root=self.counts_whole)
        return [0.0] * first + weights

    def check(self, frame: Regions | Cross) -> None:
        """Raise an error if the split does not fit the levels."""
        self.level_weights(regions_of(frame), gaussian=False)

    def shares(self, frame: Regions | Cross) -> list[Share]:
        """List one part of epsilon per level that can be measured, coarsest first; parts of rho may differ (see `level_weights`)."""
        return self._list_shares(regions_of(frame), gaussian=False)

    def shares_of_rho(self, frame: Regions | Cross) -> list[Share]:
        """List one part of rho per level that can be measured, coarsest first."""
        return self._list_shares(regions_of(frame), gaussian=True)

    def _list_shares(self, regions: Regions, *, gaussian: bool) -> list[Share]:
        first = 0 if self.counts_whole else 1
        weights = self.level_weights(regions, gaussian=gaussian)[first:]
        return split_shares(("the whole", *regions.levels)[first:], weights, range(first, regions.depth + 1))

    def with_shares(self, shares: Sequence[float]) -> RegionTree:
        """Return a copy with custom weights, one per level."""
        return replace(self, split="custom", weights=tuple(shares), count_root=self.counts_whole)
