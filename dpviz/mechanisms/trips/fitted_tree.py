"""FittedTree: noise on the levels of the tree of pairs, and the non-negative counts that fit all of it best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Mask, Places
from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED, Share, setting, weights_setting
from dpviz.mechanisms.budget_noise import accounting_setting
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.trips.base import (
    TripMechanism,
    false_discovery_setting,
    first_side_setting,
    neighbours_setting,
    plan_variances,
    stage_shares,
)
from dpviz.mechanisms.trips.true_stages import sum_true_stages
from dpviz.privacy.allocation import custom_weights, minimax_shares
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.false_positives import list_nonzero
from dpviz.privacy.nonnegative_fit import NoisyStage, Root, fit_nonnegative, fit_unbiased, round_to_whole
from dpviz.release.trip_release import ESTIMATED, PairSums, RegionTotals, StageCounts, TripRelease, sum_pairs
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import Regions

MOST_MEASURED_LEAVES = 2**21  # pairs of leaves; in a larger tree only children of kept nodes are measured
_ABOVE_ZERO = 1e-7  # a fitted count up to this is 0 but for rounding
_SMALLEST_VARIANCE = 1e-9  # of a stage in the fit, whose weights are inverse variances; the noise of huge budgets has a variance of 0
_PRUNED = (
    "the spread is that of the noise in the one level that gives the smallest; which nodes were measured depends on earlier noise, and"
    " pairs that are left out have an unknown error; on a made-up country 96 to 100 % of the true numbers of released pairs were in their"
    " 95 % intervals"
)
_ALL_MEASURED = (
    "spread and intervals are those of the best unbiased estimates; released counts are non-negative and add up, so that large ones are too"
    " low on average where most pairs around them are empty, by about one standard deviation on the US flights sample; there, 95 to 100 %"
    " of the true sums of all pairs of regions were in their intervals, and 97 to 100 % of those of the released finest pairs"
)


@dataclass(kw_only=True, eq=False)
class _Nodes:
    """The nodes of the stages so far, from the root down, and what was measured there.

    Attributes:
        origin: per stage, (n,) index of each node's origin region.
        destination: per stage, (n,) index of each node's destination region.
        stages: stages 1 onwards with their noisy counts, so that `stages[0]` is stage 1.
        measured_nodes: per stage, how many nodes were measured, those that were dropped included.
    """

    origin: list[Places]
    destination: list[Places]
    stages: list[NoisyStage] = field(default_factory=list)
    measured_nodes: list[int] = field(default_factory=lambda: [1])


@dataclass(frozen=True, kw_only=True)
class FittedTree(TripMechanism):
    """Noisy counts of every level of pairs, and the non-negative counts that add up and fit all of them best by least squares.

    Protects: replacing one trip between the regions by another one (with a person column or a declared bound: one person's
    m trips), or adding or removing them.

    Proof: a stage adds independent discrete Gaussian noise to the counts of disjoint sets of trips. Which nodes are measured is a function
    of the noisy counts of coarser stages, and each stage's share of the budget follows from the settings and the public numbers of
    regions. So the stages compose adaptively, and everything after the noise is post-processing. A person's m trips change the counts of
    a stage by vectors with a sum of squares of at most 2 m**2 (bounded) or m**2 (add/remove): the worst case is m trips in one node. With
    m = 1, at most two counts (or one) change by one each, as the exact accounting assumes; for m > 1 rho comes from the tight conversion.

    Source:
        Our own. Least squares on a tree of noisy counts: Hay, Rastogi, Miklau, Suciu, VLDB 2010, Section 4; non-negative:
        `dpviz.privacy.nonnegative_fit`. Composition: Canonne, Kamath, Steinke, NeurIPS 2020; exact accounting:
        `dpviz.privacy.exact_accounting`. The list: `dpviz.privacy.false_positives.list_nonzero`. The problem and the tree of pairs are
        those of Boninsegna, Silvestri, 2025, whose algorithm is `TopDown`.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> FittedTree().release(trips, dv.ApproxBudget(1, 1e-6), dv.Entropy.seeded(1))
    TripRelease(fitted_tree, 12,945 pairs, epsilon 1, delta 1e-06, SIMULATION: not private)
    """

    key: ClassVar[str] = "fitted_tree"
    title: ClassVar[str] = "Fitted tree"
    summary: ClassVar[str] = (
        "Adds noise to the pairs of every level, and releases the non-negative counts that add up and fit all the noisy counts best."
    )
    advice: ClassVar[str] = (
        "Take it by default, with its list: on a made-up country (ε = 1) the largest error of a finest pair is half of TopDown's (48 trips"
        " instead of 96). Weak where it is used without the list (45 to 62 % of the finest pairs that it releases on our samples have no"
        " trip, TopDown 29 to 42 %) and for pairs of regions of two levels, such as all to region (up to 5 times TopDown's error)."
    )
    page_settings: ClassVar[Mapping[str, Any]] = {"false_discovery": 0.05}

    false_discovery: float | None = false_discovery_setting(
        "False pairs at the finest level, at most",
        "List only pairs of the finest level that noise hardly explains: on average, at most this share (0 to 1) of the listed"
        " pairs has no trip. All other trips are published as a rest of the pair above; coarser levels have no such list. Left empty,"
        " every pair above 0 is listed.",
        name="share",
        empty="every pair is listed",
    )
    neighbours: str = neighbours_setting()
    tree: str = first_side_setting()
    split: str = setting(
        "minimax",
        "Budget over levels",
        choices=("minimax", "custom"),
        help="minimax: the level that loses most against simpler methods loses as little as possible. custom: your weights.",
    )
    weights: tuple[float, ...] = weights_setting(
        "One per level, the first one first (the total first under add_remove); 0 for a level that is not measured."
        " Shares that add up to 1, or whole numbers.",
    )
    between: bool = setting(
        False,
        "Measure levels in between",
        when=("split", "minimax"),
        help="Also measure pairs such as state to county, with a tenth of the budget of the level that follows. Their errors"
        " are up to 5 times TopDown's without it, and up to 3.5 times with it.",
    )
    accounting: str = accounting_setting("exact")

    def release(self, trips: TripCounts, budget: Budget, entropy: Entropy) -> TripRelease:
        """Spend (epsilon, delta) or rho on `trips`.

        Returns:
            The release: unbiased estimates and whole, non-negative counts of every stage; if `false_discovery` is set, with a list.

        Raises:
            BudgetError: a pure budget, delta = 0, or custom weights that do not fit.
            InputError: m > 1 under "bounded" without the declaration that everybody has exactly m trips.
        """
        run = Run.of(self, trips, budget, entropy, gaussian=True)
        tree = PairTree(origins=trips.regions, destinations=trips.ends, first=self.tree)
        parts = run.split(self._compute_shares(tree))
        root = Root(count=float(run.data.total))  # exact under bounded
        if self.neighbours == ADD_REMOVE:
            noisy, variance = run.measure("total", np.array([run.data.total], np.int64), parts[0], 0)
            root = Root(count=float(noisy[0]), variance=max(variance, _SMALLEST_VARIANCE))
        nodes = self._measure(run, tree, root, parts)
        listed = self._choose_listed(nodes, root, run.sensitivity.scale(parts[-1], gaussian=True))
        counts = round_to_whole(nodes.stages, _fit_counts(nodes, root, listed, pruned=self._is_pruned(tree)))
        estimates = None if self._is_pruned(tree) else fit_unbiased(root, nodes.stages)
        stages = _release_stages(nodes, root, counts, estimates)
        across = None
        if listed is not None:
            across = _sum_across(tree, nodes, counts[-1])
            stages[-1] = _select_listed(stages[-1], counts[-1], listed)
        return self.make_release(
            run,
            tree,
            stages,
            exact_total=True,
            steps=self._describe_steps(pruned=self._is_pruned(tree)),
            every_pair=not self._is_pruned(tree),
            approximate=_PRUNED if self._is_pruned(tree) else _ALL_MEASURED,
            half_step_sums=across,
            totals=None if estimates is None else _sum_region_totals(tree, nodes, estimates[0]),
        )

    def _measure(self, run: Run[TripCounts], tree: PairTree, root: Root, parts: Sequence[Fraction]) -> _Nodes:
        """Measure the stages from the top down: all nodes, or in a pruned tree only the children of the nodes that were kept."""
        nodes = _Nodes(origin=[np.zeros(1, np.int32)], destination=[np.zeros(1, np.int32)])
        truth, pruned = sum_true_stages(run.data, tree), self._is_pruned(tree)
        index = np.zeros(len(truth[0].count), np.int64)
        for stage in range(1, tree.height + 1):
            children = tree.children(stage, nodes.origin[-1], nodes.destination[-1])
            index, true = truth[stage].among(children, index)
            noisy, variance = None, 0.0
            if parts[stage]:
                found, variance = run.measure(tree.title(stage), true, parts[stage], stage)
                noisy, variance = found.astype(np.float64), max(variance, _SMALLEST_VARIANCE)
            nodes.stages.append(NoisyStage(starts=children.starts, noisy=noisy, variance=variance, size=len(true)))
            nodes.measured_nodes.append(len(true))
            kept = np.ones(len(true), np.bool_)
            if pruned and parts[stage] and stage < tree.height:
                kept = _choose_kept(fit_nonnegative(root, nodes.stages, selected=True)[-1], nodes.stages[-1])
                nodes.stages[-1] = _select_nodes(nodes.stages[-1], kept)
            nodes.origin.append(children.origin[kept])
            nodes.destination.append(children.destination[kept])
            kept_index = np.where(kept, np.cumsum(kept) - 1, -1)
            index = np.append(kept_index, -1)[index]  # the appended -1 is what a true node without an index (-1) finds
        return nodes

    def _choose_listed(self, nodes: _Nodes, root: Root, variance: Fraction) -> Integers | None:
        """Choose the pairs of leaves that are listed, from their noisy counts and from a fit of the coarser stages.

        Returns:
            (k,) indices of these pairs in the last stage; None if every pair above 0 is listed.
        """
        if self.false_discovery is None:
            return None
        leaves = nodes.stages[-1]
        assert leaves.noisy is not None  # noqa: S101  (for the type checker: the leaves are always measured)
        expected = _fit_above_leaves(nodes.stages[:-1], root)[leaves.parent]
        most = max(round(root.count), 0)
        return list_nonzero(leaves.noisy.astype(np.int64), expected, float(variance), self.false_discovery, most)

    def _is_pruned(self, tree: PairTree) -> bool:
        """Return whether the tree is too large to measure every pair, so that children of dropped nodes are not measured."""
        return tree.size(tree.height) > MOST_MEASURED_LEAVES

    def _compute_shares(self, tree: PairTree) -> list[float]:
        """Return (T + 1,) shares of rho, the root's first."""
        root = self.neighbours == ADD_REMOVE
        if self.split == "custom":
            weights = custom_weights(self.weights, tree.height + root, "total" if root else "first level")
            if weights[-1] == 0 or (root and weights[0] == 0):
                raise BudgetError("Custom weights of the finest level, and of the total under add_remove, must be greater than 0.")
            return ([] if root else [0.0]) + weights
        sizes = [tree.size(stage) for stage in range(tree.height + 1)]
        fan_outs = [below / above for above, below in pairwise(sizes)]
        return minimax_shares(fan_outs, root=root, between=self.between, pruned=self._is_pruned(tree))

    def _describe_steps(self, *, pruned: bool) -> tuple[str, ...]:
        """Describe the steps of post-processing, in order."""
        fitted = (*(() if pruned else (ESTIMATED,)), "non-negative least squares on the whole tree", "whole numbers that add up")
        if self.false_discovery is None:
            return *fitted, "zeros dropped"
        chosen = f"pairs of the finest level listed for a false discovery rate of at most {self.false_discovery:g}"
        return chosen, *fitted, "zeros and pairs that are not listed dropped from the finest level"

    def check(self, frame: Regions) -> None:
        """Raise an error if custom weights do not fit the levels."""
        self._compute_shares(PairTree(origins=frame, destinations=frame, first=self.tree))

    def stage_variances(self, tree: PairTree, budget: Budget, contributions: int) -> Floats | None:
        """Compute the stated variances without a run: of the unbiased estimates, or of the noise where the tree is pruned."""
        planned = plan_variances(self, tree, budget, contributions, self._compute_shares(tree))
        planned[0] = 0.0 if self.neighbours == BOUNDED else max(planned[0], _SMALLEST_VARIANCE)
        if self._is_pruned(tree):
            return planned
        stages, ends = [], (np.zeros(1, np.int32), np.zeros(1, np.int32))
        for stage, variance in enumerate(planned[1:].tolist(), start=1):
            children = tree.children(stage, *ends)
            ends, size = (children.origin, children.destination), len(children.origin)
            known = np.isfinite(variance)
            noisy = np.zeros(size) if known else None
            stages.append(
                NoisyStage(starts=children.starts, noisy=noisy, variance=max(variance, _SMALLEST_VARIANCE) if known else 0.0, size=size)
            )
        return np.array([float(of_nodes.max()) for of_nodes in fit_unbiased(Root(count=0.0, variance=planned[0]), stages)[1]])

    def shares(self, frame: Regions) -> list[Share]:
        """List one part per stage that can be measured."""
        tree = PairTree(origins=frame, destinations=frame, first=self.tree)
        return stage_shares(tree, self._compute_shares(tree)[0 if self.neighbours == ADD_REMOVE else 1 :])

    def with_shares(self, shares: Sequence[float]) -> FittedTree:
        """Return a copy with custom weights, one per stage; 0 leaves a stage out."""
        return replace(self, split="custom", weights=tuple(shares))


def _choose_kept(fitted: Floats, stage: NoisyStage) -> Mask:
    """Choose the nodes whose children are measured.

    Args:
        fitted: (n,) fitted counts of the nodes of a stage.
        stage: the nodes with their noisy counts.

    Returns:
        (n,) True for a node with a fitted count above 0; where no child of a parent has one, for those with the largest noisy count.
    """
    assert stage.noisy is not None  # noqa: S101  (for the type checker)
    above = fitted > _ABOVE_ZERO
    largest = np.maximum.reduceat(stage.noisy, stage.starts)
    all_zero = np.add.reduceat(above, stage.starts, dtype=np.int64) == 0
    return np.asarray(above | (all_zero[stage.parent] & (stage.noisy == largest[stage.parent])))


def _select_nodes(stage: NoisyStage, kept: Mask) -> NoisyStage:
    """Return the stage with its kept nodes only."""
    assert stage.noisy is not None  # noqa: S101  (for the type checker)
    number = np.add.reduceat(kept, stage.starts, dtype=np.int64)
    return NoisyStage(starts=np.cumsum(number) - number, noisy=stage.noisy[kept], variance=stage.variance, size=int(kept.sum()))


def _fit_above_leaves(stages: Sequence[NoisyStage], root: Root) -> Floats:
    """Fit non-negative counts to the stages above the leaves.

    Returns:
        (n,) counts of the last of these stages. Where a stage was not measured, siblings have equal parts of their parent's count.
    """
    last = max((number for number, stage in enumerate(stages) if stage.noisy is not None), default=-1)
    expected = fit_nonnegative(root, stages[: last + 1])[-1] if last >= 0 else np.array([max(root.count, 0.0)])
    for stage in stages[last + 1 :]:
        sizes = np.diff(stage.starts, append=stage.size)
        expected = (expected / sizes)[stage.parent]
    return expected


def _fit_counts(nodes: _Nodes, root: Root, listed: Integers | None, *, pruned: bool) -> list[Floats]:
    """Fit non-negative counts to all stages; those of listed pairs of leaves are at least 1.

    To that end, the least count that each node must have is subtracted from the noisy counts before the fit, and added again afterwards.

    Returns:
        T + 1 arrays of counts, the root's first.
    """
    if listed is None:
        return fit_nonnegative(root, nodes.stages, selected=pruned)
    least = np.zeros(nodes.stages[-1].size)
    least[listed] = 1
    least_by_stage = [least]
    for stage in reversed(nodes.stages):
        least_by_stage.insert(0, stage.sums(least_by_stage[0]))
    lowered = [
        replace(stage, noisy=None if stage.noisy is None else stage.noisy - below)
        for stage, below in zip(nodes.stages, least_by_stage[1:], strict=True)
    ]
    fitted = fit_nonnegative(replace(root, count=root.count - float(least_by_stage[0][0])), lowered, selected=pruned)
    return [counts + below for counts, below in zip(fitted, least_by_stage, strict=True)]


def _release_stages(
    nodes: _Nodes, root: Root, counts: list[Integers], estimates: tuple[list[Floats], list[Floats]] | None
) -> list[StageCounts]:
    """Make the released stages.

    Args:
        nodes: what was measured.
        root: the count of the root.
        counts: T + 1 arrays of whole counts to release.
        estimates: T + 1 arrays of unbiased estimates and T + 1 of their variances, which the release states as `noisy` and `variance`;
            None to state the noisy counts and the variance of their noise instead.
    """
    noisy: Sequence[Floats | None] = [np.array([root.count]), *(stage.noisy for stage in nodes.stages)]
    variance = [root.variance, *(stage.variance if stage.noisy is not None else np.inf for stage in nodes.stages)]
    measured = [number * (found is not None) for number, found in zip(nodes.measured_nodes, noisy, strict=True)]
    if estimates is not None:
        noisy, variance = estimates[0], [float(of_nodes.max()) for of_nodes in estimates[1]]
    released = []
    for stage, count in enumerate(counts):
        positive, found = count > 0, noisy[stage]
        released.append(
            StageCounts(
                origin=nodes.origin[stage][positive],
                destination=nodes.destination[stage][positive],
                count=count[positive],
                noisy=count[positive] if found is None else np.rint(found[positive]).astype(np.int64),
                variance=variance[stage],
                measured=measured[stage],
            )
        )
    return released


def _sum_across(tree: PairTree, nodes: _Nodes, count: Integers) -> PairSums:
    """Add up the counts of all pairs of leaves, listed or not, to the `half_step_sums` of a release, at its `half_step_levels`."""
    depth, (destination_level, origin_level) = tree.origins.depth, tree.levels(tree.height - 1)
    origin = tree.origins.ancestors(origin_level, depth)[nodes.origin[-1]]
    destination = tree.destinations.ancestors(destination_level, depth)[nodes.destination[-1]]
    return sum_pairs(origin, destination, count, tree.destinations.size(destination_level))


def _sum_region_totals(tree: PairTree, nodes: _Nodes, estimates: Sequence[Floats]) -> RegionTotals:
    """Add up the unbiased estimates of all pairs, per region and level, from the coarsest stage that has the level."""
    sides: dict[str, list[Integers]] = {"origin": [], "destination": []}
    for level in range(1, tree.origins.depth + 1):
        for side, regions in (("origin", tree.origins), ("destination", tree.destinations)):
            stage = next(s for s in range(tree.height + 1) if tree.levels(s)[side == "destination"] == level)
            sums = np.bincount(getattr(nodes, side)[stage], estimates[stage], regions.size(level))
            sides[side].append(np.rint(sums).astype(np.int64))
    return RegionTotals(leaving=tuple(sides["origin"]), arriving=tuple(sides["destination"]))


def _select_listed(stage: StageCounts, count: Integers, listed: Integers) -> StageCounts:
    """Leave only the listed pairs in the finest stage."""
    chosen = np.zeros(len(count), np.bool_)
    chosen[listed] = True
    kept = chosen[count > 0]
    return replace(stage, origin=stage.origin[kept], destination=stage.destination[kept], count=stage.count[kept], noisy=stage.noisy[kept])
