"""The same noise on every finest region, empty ones included; larger regions are sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpviz.data.areas import AreaCounts
from dpviz.mechanisms.areas.base import AreaMechanism
from dpviz.mechanisms.base import least_count_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_release import AreaRelease


@dataclass(frozen=True, kw_only=True)
class FlatAreas(AreaMechanism):
    """Discrete noise on the count of every public leaf region; larger regions are sums of noisy leaves.

    Protects: adding or removing one record, or replacing it by another (with a person column: one person's at most m records).

    Proof: the leaves are public and disjoint, so that a unit's m records change their counts by at most m in all: the sum of absolute
    changes is at most m, and the sum of squared changes at most m**2, with m records in one leaf. If m records are replaced by at most m
    others, these are 2 m and 2 m**2 (see `Sensitivity`). Every leaf gets independent noise of this sensitivity, empty ones too, so that the
    set of released regions says nothing. Sums, and the hiding of counts under a public threshold, look at noisy counts alone: they are
    post-processing, and need no delta.

    Source:
        Ghosh, Roughgarden, Sundararajan, STOC 2009 (discrete Laplace); Canonne, Kamath, Steinke, NeurIPS 2020, Theorem 4 (discrete
        Gaussian).

    Deviations:
        None.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> dv.FlatAreas().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
    AreaRelease(flat, 1,608 block, epsilon 1, SIMULATION: not private)
    """

    key: ClassVar[str] = "flat"
    title: ClassVar[str] = "Flat counts"
    summary: ClassVar[str] = "Adds the same noise to the count of every finest region, empty ones too; larger regions are sums."

    threshold: int | None = least_count_setting(
        "Smallest count shown",
        "Finest regions with a smaller noisy count are not shown; larger regions include them. Left empty, all are shown.",
    )

    def release(self, areas: AreaCounts, budget: Budget, entropy: Entropy) -> AreaRelease:
        """Spend a budget on `areas`: epsilon for Laplace noise; rho, or (epsilon, delta) with delta above 0, for Gaussian noise.

        Raises:
            BudgetError: something else than a budget, or delta = 0.
            InputError: not AreaCounts.
        """
        run = Run.of(self, areas, budget, entropy)
        return self.make_release(run, *self.count_levels(run, [0.0] * areas.regions.depth + [1.0]), least=self.threshold)
