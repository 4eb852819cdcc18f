"""What people do today with trips: small flows suppressed, flows rounded, pairs merged. NOT PRIVATE: contrasts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.arrays import Integers, Mask
from dpviz.data.flows import Flows
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.disclosure_control import (
    NO_NOISE,
    PUBLISHED,
    Contrast,
    base_setting,
    is_small,
    round_counts,
    rounding_setting,
    threshold_setting,
    totals_setting,
)
from dpviz.mechanisms.trips.base import FlowMechanism, add_coarser_stages, make_summed_stage
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.release.flow_release import FlowRelease, StageCounts
from dpviz.space.pair_tree import PairTree


@dataclass(frozen=True, kw_only=True)
class FlowContrast(Contrast, FlowMechanism):
    """Base of the contrasts for trips: a table that is published today without differential privacy. NOT PRIVATE.

    Protects: nothing that a proof covers. No noise is stated: standard deviations and intervals are NaN. The budget is passed on unused.
    """

    @property
    def needs_delta(self) -> bool:
        """False: no budget is spent, of any kind."""
        return False

    @abstractmethod
    def tabulate(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> tuple[list[StageCounts], tuple[str, ...]]:
        """Make the published stages from the true ones, and describe what was done.

        Args:
            tree: of pairs.
            stages: T + 1 stages of true counts. PRIVATE.
            entropy: used only where the method itself is random.
        """

    def release(self, flows: Flows, budget: Budget, entropy: Entropy) -> FlowRelease:
        """Publish the table. No budget is spent, and the release must not be published."""
        self.check_data(flows)
        tree = PairTree(origins=flows.regions, destinations=flows.ends)
        true = add_coarser_stages(tree, make_summed_stage(flows.origin, flows.destination, flows.count), tree.height)
        stages, steps = self.tabulate(tree, true, require_entropy(entropy))
        unprotected = ("the regions and their levels", "the mechanism and its settings", "the trips themselves: NOT PRIVATE")
        return FlowRelease(
            mechanism=self.key,
            settings=self.chosen(),
            tree=tree,
            stages=tuple(stages),
            receipt=self.write_receipt(flows, budget, unprotected),
            steps=steps,
            simulation=entropy.simulation,
            approximate=NO_NOISE,
        )


def _select(stage: StageCounts, kept: Mask) -> StageCounts:
    """Return a stage with some of its pairs."""
    return make_summed_stage(stage.origin[kept], stage.destination[kept], stage.count[kept])


def _publish(
    tree: PairTree, stages: list[StageCounts], totals: str, change: Callable[[StageCounts], StageCounts]
) -> tuple[list[StageCounts], str]:
    """Change every stage by itself, or only the finest one, of which the coarser ones are then sums; and say which."""
    if totals == PUBLISHED:
        return [change(stage) for stage in stages], "larger regions are tables of their own and need not add up"
    return add_coarser_stages(tree, change(stages[-1]), tree.height), "larger regions are sums of published pairs"


@dataclass(frozen=True, kw_only=True)
class SuppressedFlows(FlowContrast):
    """Exact trips between regions, of which small numbers are not shown. NOT PRIVATE: a total minus its other parts gives a missing one.

    Protects: nothing that a proof covers. All other numbers are exact.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 4.2: the minimum frequency rule, primary suppression alone.

    Deviations:
        Larger regions are published, too, and their small numbers are suppressed in the same way; `totals="summed"` shows only sums of
        published pairs. A suppressed pair looks like one without trips.

    >>> import dpviz as dv
    >>> flows = dv.load_flow_sample("us_flights")
    >>> release = dv.SuppressedFlows(threshold=10).release(flows, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> bool(release.stages[-1].count.min() >= 10), release.status
    (True, 'NOT PRIVATE')
    """

    key: ClassVar[str] = "suppressed_flows"
    title: ClassVar[str] = "Small flows suppressed (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: exact trips between regions, of which small numbers are left out."
    attack: ClassVar[str] = "subtract two such tables from each other, or from a total its other parts, and what is left is one trip."
    lesson: ClassVar[str] = "differencing"

    threshold: int = threshold_setting("trips")
    totals: str = totals_setting("suppressed")

    def tabulate(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> tuple[list[StageCounts], tuple[str, ...]]:  # noqa: ARG002
        """Leave out numbers from 1 to `threshold` - 1; nothing is random."""
        published, summed = _publish(tree, stages, self.totals, lambda stage: _select(stage, ~is_small(stage.count, self.threshold)))
        return published, (f"numbers from 1 to {self.threshold - 1:,} left out, and taken as 0", summed)


@dataclass(frozen=True, kw_only=True)
class RoundedFlows(FlowContrast):
    """Trips between regions, rounded to multiples of 3 or 5. NOT PRIVATE: pairs and totals together leave few possibilities.

    Protects: nothing that a proof covers. A number is known to within less than the base, and more closely if totals are published, too.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 5.4.

    Deviations:
        Larger regions are rounded from their own true numbers, so that pairs need not add up; `totals="summed"` shows the sums of rounded
        pairs. Random rounding is drawn anew for each number and each release, with exact probabilities.

    >>> import dpviz as dv
    >>> flows = dv.load_flow_sample("us_flights")
    >>> release = dv.RoundedFlows(base=5).release(flows, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> int((release.stages[-1].count % 5).max()), release.status
    (0, 'NOT PRIVATE')
    """

    key: ClassVar[str] = "rounded_flows"
    title: ClassVar[str] = "Rounded flows (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: trips rounded to multiples of 3 or 5, at random or to the nearest."
    attack: ClassVar[str] = "pairs and totals that are rounded apart from each other leave few possibilities for the true numbers."
    lesson: ClassVar[str] = "reconstruction"

    base: int = base_setting()
    rounding: str = rounding_setting()
    totals: str = totals_setting("rounded")

    def tabulate(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> tuple[list[StageCounts], tuple[str, ...]]:
        """Round every number by itself."""

        def rounded(stage: StageCounts) -> StageCounts:
            return make_summed_stage(stage.origin, stage.destination, round_counts(stage.count, self.base, self.rounding, entropy))

        published, summed = _publish(tree, stages, self.totals, rounded)
        return published, (f"numbers rounded to multiples of {self.base} ({self.rounding})", summed)


@dataclass(frozen=True, kw_only=True)
class MergedFlows(FlowContrast):
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
    >>> flows = dv.load_flow_sample("us_flights")
    >>> release = dv.MergedFlows(k=10).release(flows, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> bool(release.stages[-1].count.min() >= 10), release.stages[0].count[0] == flows.count.sum()
    (True, np.True_)
    """

    key: ClassVar[str] = "merged_flows"
    title: ClassVar[str] = "Merged pairs, k-anonymous (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: pairs of regions with fewer than k trips are shown only as part of pairs of larger regions."
    attack: ClassVar[str] = "every number is exact, so that two tables from before and after a trip differ by it."
    lesson: ClassVar[str] = "differencing"

    k: int = setting(10, "Least trips of a pair, k", low=2, high=10**6, help="Pairs with fewer trips are merged into larger regions.")

    def tabulate(self, tree: PairTree, stages: list[StageCounts], entropy: Entropy) -> tuple[list[StageCounts], tuple[str, ...]]:  # noqa: ARG002
        """Merge small pairs stage by stage, from the whole down; nothing is random."""
        published = [_select(stages[0], ~is_small(stages[0].count, self.k))]
        for stage in range(1, tree.height + 1):
            parent = _find_parents(tree, stage, stages[stage], published[-1])
            known = np.flatnonzero(parent >= 0)
            merged = are_merged(parent[known], stages[stage].count[known], self.k)
            published.append(_select(stages[stage], np.isin(np.arange(len(parent)), known[~merged])))
        return published, (f"pairs with fewer than {self.k:,} trips shown only as part of larger regions",)


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


def are_merged(parent: Integers, count: Integers, k: int) -> Mask:
    """Find which parts of larger pairs are merged, so that no part that is shown, and no merged rest, has from 1 to k - 1 trips.

    Args:
        parent: (n,) number of the larger pair of each part.
        count: (n,) trips of each part, at least 1; those of a larger pair add up to at least k.
        k: the least number.

    Returns:
        (n,) True for parts with fewer than k trips, and for the smallest other part where these have fewer than k together.

    >>> are_merged(np.array([0, 0, 0, 1, 1, 1]), np.array([2, 50, 12, 6, 6, 20]), k=10).tolist()
    [True, False, True, True, True, False]
    """
    order = np.lexsort((count, parent))
    sorted_parent, sorted_count = parent[order], count[order]
    before = np.cumsum(sorted_count) - sorted_count
    first = np.flatnonzero(np.r_[True, np.diff(sorted_parent) != 0]) if len(order) else np.zeros(0, np.int64)
    before -= np.repeat(before[first], np.diff(np.r_[first, len(order)]))
    merged = np.zeros(len(order), np.bool_)
    merged[order] = (sorted_count < k) | ((before > 0) & (before < k))
    return merged
