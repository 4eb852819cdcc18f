"""What people do today with trips: small counts suppressed, counts rounded, pairs merged. NOT PRIVATE: contrasts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.arrays import Integers, Mask
from dpviz.data.trips import TripCounts
from dpviz.mechanisms.base import PUBLIC_REGIONS
from dpviz.mechanisms.contrasts import NO_NOISE, SUMMED, ChangedCounts, Contrast, Merged, Rounded, Suppressed, are_merged, is_small
from dpviz.mechanisms.trips.base import TripMechanism, add_coarser_stages, make_summed_stage
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.release.trip_release import StageCounts, TripRelease
from dpviz.space.pair_tree import PairTree


@dataclass(frozen=True, kw_only=True)
class TripContrast(Contrast, TripMechanism):
    """Base of the contrasts for trips: a table that is published today without differential privacy. NOT PRIVATE."""

    @property
    @abstractmethod
    def steps(self) -> tuple[str, ...]:
        """Descriptions of what was done."""

    @abstractmethod
    def publish_stages(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> list[StageCounts]:
        """Make the published stages from the T + 1 stages of true counts, which are PRIVATE."""

    def release(self, trips: TripCounts, budget: Budget, entropy: Entropy) -> TripRelease:
        """Publish the table. No budget is spent, and the release must not be published."""
        self.check_data(trips)
        tree = PairTree(origins=trips.regions, destinations=trips.ends)
        true = add_coarser_stages(tree, make_summed_stage(trips.origin, trips.destination, trips.count), tree.height)
        return TripRelease(
            tree=tree,
            stages=tuple(self.publish_stages(tree, true, require_entropy(entropy))),
            **self.release_facts(self.write_receipt(trips, budget, (*PUBLIC_REGIONS, "the trips themselves: NOT PRIVATE")), entropy),
            steps=self.steps,
            approximate=NO_NOISE,
        )


class ChangedTrips(ChangedCounts, TripContrast):
    """Contrasts for trips that change the counts of every stage, or of the finest."""

    def publish_stages(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> list[StageCounts]:
        """Change every stage by itself, or only the finest one, of which the coarser ones are then sums."""
        if self.totals == SUMMED:
            return add_coarser_stages(tree, self._change(stages[-1], entropy), tree.height)
        return [self._change(stage, entropy) for stage in stages]

    def _change(self, stage: StageCounts, entropy: Entropy) -> StageCounts:
        shown = self.change(stage.count, entropy)
        kept = ~np.isnan(shown)
        return make_summed_stage(stage.origin[kept], stage.destination[kept], shown[kept].astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class SuppressedTrips(Suppressed, ChangedTrips):
    """Exact trips between regions, of which small numbers are not shown. NOT PRIVATE: a total minus its other parts gives a missing one.

    Protects: nothing that a proof covers. All other numbers are exact.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 4.2: the minimum frequency rule, primary suppression alone.

    Deviations:
        Larger regions are published, too, and their small numbers are suppressed in the same way; `totals="summed"` shows only sums of
        published pairs. A suppressed pair looks like one without trips.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> release = dv.contrasts.SuppressedTrips(threshold=10).release(trips, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> bool(release.stages[-1].count.min() >= 10), release.status
    (True, 'NOT PRIVATE')
    """

    key: ClassVar[str] = "suppressed_trips"
    title: ClassVar[str] = "Small pairs suppressed (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: exact trips between regions, of which small numbers are left out."
    attack: ClassVar[str] = "subtract two such tables from each other, or from a total its other parts, and what is left is one trip."


@dataclass(frozen=True, kw_only=True)
class RoundedTrips(Rounded, ChangedTrips):
    """Trips between regions, rounded to multiples of 3 or 5. NOT PRIVATE: pairs and totals together leave few possibilities.

    Protects: nothing that a proof covers. A number is known to within less than the base, and more closely if totals are published, too.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 5.4.

    Deviations:
        Larger regions are rounded from their own true numbers, so that pairs need not add up; `totals="summed"` shows the sums of rounded
        pairs. Random rounding is drawn anew for each number and each release, with exact probabilities.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> release = dv.contrasts.RoundedTrips(base=5).release(trips, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> int((release.stages[-1].count % 5).max()), release.status
    (0, 'NOT PRIVATE')
    """

    key: ClassVar[str] = "rounded_trips"
    title: ClassVar[str] = "Rounded pairs (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: trips rounded to multiples of 3 or 5, at random or to the nearest."


@dataclass(frozen=True, kw_only=True)
class MergedTrips(Merged, TripContrast):
    """Trips between regions; pairs with fewer than k trips are merged into the pair of larger regions above. NOT PRIVATE: all is exact.

    Protects: nothing that a proof covers. Every number, and what a larger pair has beyond the pairs that are shown in it, is 0 or at least
    k; but each is exact, so that one trip more changes it.

    Source:
        Samarati, Sweeney, "Protecting privacy when disclosing information: k-anonymity and its enforcement through generalization and
        suppression", 1998, for pairs of regions in a hierarchy.

    Deviations:
        From the whole down, the pairs of a stage with fewer than k trips are merged: they are shown only as part of the pair above. If all
        merged parts of a pair together have fewer than k trips, its next smallest part is merged, too. Merged pairs are not divided
        further. If there are fewer than k trips in all, nothing is shown.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> release = dv.contrasts.MergedTrips(k=10).release(trips, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> bool(release.stages[-1].count.min() >= 10), release.stages[0].count[0] == trips.count.sum()
    (True, np.True_)
    """

    key: ClassVar[str] = "merged_trips"
    title: ClassVar[str] = "Merged pairs, k-anonymous (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: pairs of regions with fewer than k trips are shown only as part of pairs of larger regions."
    attack: ClassVar[str] = "every number is exact, so that two tables from before and after a trip differ by it."

    def publish_stages(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> list[StageCounts]:  # noqa: ARG002
        """Merge small pairs stage by stage, from the whole down; nothing is random."""
        published = [_select(stages[0], ~is_small(stages[0].count, self.k))]
        for stage in range(1, tree.height + 1):
            parent = _find_parents(tree, stage, stages[stage], published[-1])
            known = np.flatnonzero(parent >= 0)
            merged = are_merged(parent[known], stages[stage].count[known], self.k)
            published.append(_select(stages[stage], np.isin(np.arange(len(parent)), known[~merged])))
        return published


def _select(stage: StageCounts, kept: Mask) -> StageCounts:
    """Return a stage with some of its pairs."""
    return make_summed_stage(stage.origin[kept], stage.destination[kept], stage.count[kept])


def _find_parents(tree: PairTree, stage: int, children: StageCounts, parents: StageCounts) -> Integers:
    """Return (k,) the index of the pair of the stage above in which each pair of a stage lies; -1 if that one is not shown."""
    (a, b), finer = tree.levels(stage - 1), tree.levels(stage)
    width = tree.destinations.size(b)
    wanted = tree.origins.ancestors(a, finer[0])[children.origin] * np.int64(width)
    wanted += tree.destinations.ancestors(b, finer[1])[children.destination]
    known = parents.origin * np.int64(width) + parents.destination
    if not len(known):
        return np.full(len(wanted), -1)
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)]
    return np.where(known[place] == wanted, place, -1)
