"""What people do today with areas: small counts suppressed, counts rounded, regions merged. NOT PRIVATE: contrasts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.arrays import Integers
from dpviz.data.areas import AreaCounts
from dpviz.mechanisms.areas.base import AreaMechanism
from dpviz.mechanisms.base import ADD_REMOVE, PUBLIC_REGIONS
from dpviz.mechanisms.contrasts import NO_NOISE, NO_PROOF, ChangedCounts, Contrast, Merged, Rounded, Suppressed, Table
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.release.area_release import AreaRelease
from dpviz.space.hierarchy import Hierarchy


@dataclass(frozen=True, kw_only=True)
class AreaContrast(Contrast, AreaMechanism):
    """Base of the contrasts for areas: a table that is published today without differential privacy. NOT PRIVATE."""

    neighbours: ClassVar[str] = ADD_REMOVE  # type: ignore[misc]  # no settings here: no noise depends on them
    accounting: ClassVar[str] = "exact"  # type: ignore[misc]

    @abstractmethod
    def publish(self, hierarchy: Hierarchy, true: Integers, entropy: Entropy) -> Table:
        """Make the table of the regions of all levels. `entropy` is used only where the method itself is random."""

    def release(self, areas: AreaCounts, budget: Budget, entropy: Entropy) -> AreaRelease:
        """Publish the table. No budget is spent, and the release must not be published."""
        self.check_data(areas)
        table = self.publish(areas.regions.hierarchy, np.concatenate(areas.level_counts()), require_entropy(entropy))
        return AreaRelease(
            regions=areas.regions,
            noisy=table.shown,
            noise_variance=np.full(len(table.shown), np.nan),
            count=table.count,
            spread=None,  # type: ignore[arg-type]  # no noise is stated, and so no spread of it
            **self.release_facts(self.write_receipt(areas, budget, (*PUBLIC_REGIONS, NO_PROOF)), entropy),
            steps=table.steps,
            approximate=NO_NOISE,
        )


@dataclass(frozen=True, kw_only=True)
class SuppressedAreas(Suppressed, ChangedCounts, AreaContrast):
    """Exact counts of regions, of which small ones are not shown. NOT PRIVATE: a total minus its other parts gives a suppressed count.

    Protects: nothing that a proof covers. All other counts are exact, so that two tables which differ by one person show the difference.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 4.2: the minimum frequency rule, primary suppression alone.

    Deviations:
        Larger regions are published, too, and their small counts are suppressed in the same way; `totals="summed"` shows only what the
        published finest regions add up to. No further regions are suppressed to protect the small ones.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> dv.contrasts.SuppressedAreas(threshold=10).release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
    AreaRelease(suppressed_areas, 1,608 block, NOT PRIVATE)
    """

    key: ClassVar[str] = "suppressed_areas"
    title: ClassVar[str] = "Small regions suppressed (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: exact counts of regions, of which small ones are left out, as many offices publish them."


@dataclass(frozen=True, kw_only=True)
class RoundedAreas(Rounded, ChangedCounts, AreaContrast):
    """Counts of regions, rounded to multiples of 3 or 5. NOT PRIVATE: regions and totals together leave few possibilities.

    Protects: nothing that a proof covers. A count is known to within less than the base, and more closely if totals are published, too.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 5.4; Statistics New Zealand rounds to base 3.

    Deviations:
        Larger regions are rounded from their own true counts, as offices do, so that regions need not add up. `totals="summed"` shows the
        sums of rounded regions. Random rounding is drawn anew for each number and each release, with exact probabilities.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> dv.contrasts.RoundedAreas(base=5).release(areas, dv.PureBudget(1), dv.Entropy.seeded(1)).count[0] % 5
    np.float64(0.0)
    """

    key: ClassVar[str] = "rounded_areas"
    title: ClassVar[str] = "Rounded regions (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: counts of regions rounded to multiples of 3 or 5, at random or to the nearest."


@dataclass(frozen=True, kw_only=True)
class MergedAreas(Merged, AreaContrast):
    """Regions with fewer than k records, shown only within the larger region around them. NOT PRIVATE: all is exact.

    Protects: nothing that a proof covers. Every count, and what a larger region has beyond the regions that are shown in it, is 0 or at
    least k; but each is exact, so that one person more changes it.

    Source:
        Samarati, Sweeney, "Protecting privacy when disclosing information: k-anonymity and its enforcement through generalization and
        suppression", 1998, for regions in a hierarchy.

    Deviations:
        From the whole down, regions with fewer than k records are merged: they are shown only as part of the region above. If all merged
        parts of a region together have fewer than k records, its next smallest part is merged, too. Merged regions are not divided
        further, and empty ones are shown as such. If there are fewer than k records in all, nothing is shown.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> release = dv.contrasts.MergedAreas(k=10).release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> bool(((release.count == 0) | (release.count >= 10)).all()), release.count[0] == areas.count.sum()
    (True, np.True_)
    """

    key: ClassVar[str] = "merged_areas"
    title: ClassVar[str] = "Merged regions, k-anonymous (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: regions with fewer than k records are shown only as part of larger regions."
    attack: ClassVar[str] = "every count is exact, so that two tables from before and after a move differ by one person."

    def depends_on_data(self, release: AreaRelease) -> bool:  # noqa: ARG002
        """Return True: which regions are merged follows from the counts."""
        return True
