"""The kd-tree: nodes are halved at private medians, so that partitions follow the data; every level is counted with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpviz.arrays import Integers, Mask
from dpviz.data.points import PointCounts
from dpviz.mechanisms.audit import ACROSS, Numbers, pair_of
from dpviz.mechanisms.base import TREES, SettingSpec, Share, setting
from dpviz.mechanisms.points.base import fill_setting
from dpviz.mechanisms.points.median_tree import Grown, Halving, MedianTree, Spending, Splitter, grow
from dpviz.mechanisms.run import Run
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, exact, require_approx, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import cell_medians, noisy_mean_medians
from dpviz.privacy.node_values import OUTSIDE
from dpviz.privacy.sampling import delta_before_sampling, epsilon_before_sampling, sample_records
from dpviz.privacy.smooth import smooth_medians
from dpviz.space.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class CellGrid:
    """Noisy counts of the cells of a fixed grid. PUBLIC: the counts were paid for.

    Attributes:
        sums: (c + 1, c + 1) noisy number of records south-west of each crossing of grid lines, [row, column].
        width: width of a grid cell, in lattice cells.
    """

    sums: Integers
    width: int

    @classmethod
    def of(cls, noisy: Integers, width: int) -> CellGrid:
        """Make the grid from (c, c) noisy counts, [row, column], row 0 in the south."""
        side = len(noisy)
        sums = np.zeros((side + 1, side + 1), np.int64)
        np.cumsum(np.cumsum(noisy, axis=0), axis=1, out=sums[1:, 1:])
        return cls(sums=sums, width=width)

    def medians(self, rectangles: Integers, across: Mask) -> Integers:
        """Find (n,) median lines of (n, 4) rectangles: columns where `across`, else rows; the middle if no grid line is inside."""
        low, high = (np.where(across, rectangles[:, side], rectangles[:, side + 1]) for side in (0, 2))
        first, last = low // self.width, -(-high // self.width)
        sizes = last - first - 1
        start = np.concatenate([[0], np.cumsum(sizes)])
        line = np.arange(start[-1]) + np.repeat(first + 1 - start[:-1], sizes)
        node = np.repeat(np.arange(len(rectangles)), sizes)
        below = self._below(rectangles[node], across[node], line) - np.repeat(self._below(rectangles, across, first), sizes)
        total = self._below(rectangles, across, last) - self._below(rectangles, across, first)
        return cell_medians((low, high), start, line * self.width, below.astype(np.float64), total.astype(np.float64))

    def _below(self, rectangles: Integers, across: Mask, line: Integers) -> Integers:
        """Count (k,) noisy records below a grid line, in the grid cells that each rectangle touches along the other axis."""
        near = np.where(across, rectangles[:, 1], rectangles[:, 0]) // self.width
        far = -(-np.where(across, rectangles[:, 3], rectangles[:, 2]) // self.width)
        low = self.sums[np.where(across, near, line), np.where(across, line, near)]
        high = self.sums[np.where(across, far, line), np.where(across, line, far)]
        return high - low


VARIANTS = ("standard", "hybrid", "cell", "noisy-mean", "smooth-sensitivity")
SAMPLED = ("standard", "hybrid", "smooth-sensitivity")
MATTERS = {"exponent": ("standard", "hybrid"), "sample": SAMPLED}


@dataclass(frozen=True, kw_only=True)
class Kdtree(MedianTree):
    """A kd-tree with private splits: each binary level halves its nodes at private medians of their columns or rows.

    Protects: adding or removing one record (with a person column: one person's bounded records). A record lies in one node
    per level, so the epsilons of splits and counts add up along its path. Splits may fall on any lattice line, and empty nodes
    are split too. The "smooth-sensitivity" variant is (epsilon, delta)-DP, all others are pure.
    A person's m records may lie in m nodes of a level. Pure steps cost epsilon / m per record, wherever the record lies. Smooth medians
    have an epsilon and a delta for one record; `smooth_medians` derives and proves the values for m records, in one node or in many.

    Source:
        Cormode, Procopiuc, Srivastava, Shen, Yu, "Differentially private spatial decompositions", ICDE 2012, Sections VI and
        VIII: kd-standard, kd-hybrid, kd-cell (after Xiao, Xiong, Yuan, SDM at VLDB 2010), kd-noisymean (after Inan et al., EDBT
        2010); flattening (fan-out 4) is Section VI-B. Its kd-true and kd-pure are not private: see `ExactKdtree`.

    Deviations:
        The exponential mechanism measures ranks against n/2 itself and so may use all of epsilon, not half ("sharp"). Distributions of
        noise and choices are exact. A noisy mean or smooth median outside its node is replaced by the node's middle, or with
        outside="nearest" by the nearest line, which wastes a level each time. outside="nearest" is our reading of the paper's
        kd-noisymean, since the paper does not say what happens in this case. A node one cell wide is halved along its other axis. A
        single cell is a leaf, and its count also spends what the levels below would have spent. Sampling uses the tight amplification
        bound, not that of Theorem 7. The cell variant counts on all levels and makes them agree, as the paper's experiments do for all
        trees; split="leaf" is the original method.

    Measured:
        In the setting of the paper's Figure 5 (1.63 million made-up road crossings, height 8, pruned at 32, epsilon 0.5; mean over 5 seeds
        of the median relative error) "cell" is the worst variant on every shape of queries, on small squares too, where the paper found it
        good: 4.7 % on 1 x 1 degrees ("hybrid" 2.2 %, "standard" 3.0 %), 6.5 % on 5 x 5 (0.3 %, 1.3 %). Deep nodes have more cells than
        records, and the noise of their cells is larger than what they hold. "hybrid" is the most reliable of the paper's variants, as it
        says; "noisy-mean" with outside="middle" is better still: 1.5 % on 1 x 1. `dpviz paper psd 5` repeats this on a smaller scale.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Kdtree(height=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(kdtree, 256 partitions, epsilon 1, SIMULATION: not private)
    """

    key: ClassVar[str] = "kdtree"
    title: ClassVar[str] = "kd-tree"
    menu_group: ClassVar[str] = TREES
    summary: ClassVar[str] = "Halves crowded places again and again at private medians, so that partitions hold about equally many records."
    advice: ClassVar[str] = "Its partitions hold about equally many records. Private medians are dear: 2 to 70 times the least error."

    variant: str = setting(
        "standard", "Medians", choices=VARIANTS, help="How splits are found; hybrid halves evenly below its switch level."
    )
    switch: int | None = setting(
        None,
        "Switch level",
        low=1,
        high=24,
        optional=True,
        when=("variant", "hybrid"),
        help="Steps with private splits; half of them if empty.",
    )
    cell_order: int = setting(
        8, "Grid order", low=1, high=11, when=("variant", "cell"), help="The noisy grid has 2^order columns; cut to the resolution."
    )

    outside: str = setting(
        "middle",
        "Splits that miss",
        choices=OUTSIDE,
        when=("variant", ("noisy-mean", "smooth-sensitivity")),
        help="A split outside its node is replaced by the node's middle, or by its nearest line, which wastes a level.",
    )

    fill: str = fill_setting()

    @classmethod
    def rules(cls) -> Iterator[SettingSpec]:
        """Iterate over the rules, with the variant and its own settings first, since the variant decides which other settings matter."""
        rules = (replace(rule, when=("variant", MATTERS[rule.name])) if rule.name in MATTERS else rule for rule in super().rules())
        return iter(sorted(rules, key=lambda rule: rule.name not in ("variant", "switch", "cell_order", "outside")))

    @property
    def needs_delta(self) -> bool:
        """Whether the budget must have a delta: only with smooth sensitivity."""
        return self.variant == "smooth-sensitivity"

    def require_budget(self, budget: object) -> PureBudget | ApproxBudget:
        """Return the budget unchanged; raises `BudgetError` if the variant takes another kind."""
        return require_approx(budget, f"{self.title}, {self.variant},") if self.needs_delta else require_pure(budget, self.title)

    def binary_levels(self, height: int, wanted: int) -> int:
        """Count the binary levels that pay for private medians: those above the switch level for "hybrid", 1 for "cell"."""
        if self.variant == "cell":
            return 1
        steps = height if self.variant != "hybrid" else min(height, self.switch or max(1, wanted // 2))
        return steps * self.cuts

    def grow(self, run: Run[PointCounts], spending: Spending) -> Grown:
        """Halve nodes at private medians from the top, and in the middle below the levels that have a budget."""
        return grow(run.data, spending.height, self.cuts, self.splitter(run, spending))

    def splitter(self, run: Run[PointCounts], spending: Spending) -> Splitter:
        """Return the function that chooses the lines of a binary level and pays for them with the level's part of the budget."""
        if self.variant == "cell":
            order = min(self.cell_order, run.data.domain.order)
            noisy, _ = run.measure("grid of cells", run.data.blocks(order).ravel(), spending.medians[0])
            grid = CellGrid.of(noisy.reshape(1 << order, 1 << order), run.data.domain.side >> order)
            return lambda _, nodes: grid.medians(nodes.rectangles, nodes.across)

        def lines(binary: int, nodes: Halving) -> Integers:
            if binary >= len(spending.medians):
                return nodes.middles()
            depth = binary // self.cuts
            if self.variant == "noisy-mean":
                return self._choose_at_means(run, nodes, spending.medians[binary], depth)
            if self.variant == "smooth-sensitivity":
                budget = ApproxBudget(spending.medians[binary], spending.deltas[binary])
                return self._choose_smooth_medians(run, nodes, budget, depth)
            return self.median(run, nodes.values(), spending.medians[binary], depth)

        return lines

    def _choose_at_means(self, run: Run[PointCounts], nodes: Halving, epsilon: Fraction, depth: int) -> Integers:
        """Choose lines at noisy means: half of epsilon is spent on sums, in units of the node's width, half on numbers of records."""
        bound, values = Fraction(run.data.contributions), nodes.values()
        for purpose, noise in (("sums of places, in node widths", "rounded Laplace"), ("numbers for means", "discrete Laplace")):
            run.add_step(purpose, epsilon / 2, bound, noise, 2 * bound / epsilon, level=depth, counts=len(values))
        return noisy_mean_medians(values, epsilon, run.entropy, run.data.contributions, outside=self.outside)

    def _choose_smooth_medians(self, run: Run[PointCounts], nodes: Halving, budget: ApproxBudget, depth: int) -> Integers:
        bound, rate = run.data.contributions, exact(self.sample, "The sampling rate")
        inner = epsilon_before_sampling(budget.epsilon, rate, bound)
        noise, facts = "Laplace, smooth sensitivity" + self.describe_sample(budget.epsilon, inner), {"delta": budget.delta, "level": depth}
        purpose = "medians, in smooth sensitivities of the node"
        run.add_step(purpose, budget.epsilon, bound, noise, 2 * bound / inner, counts=len(nodes.rectangles), **facts)
        inner_budget = ApproxBudget(inner, delta_before_sampling(budget.delta, rate, bound))
        return smooth_medians(sample_records(nodes.values(), rate, run.entropy), inner_budget, run.entropy, bound, outside=self.outside)

    def notes(self, domain: Domain) -> tuple[str, ...]:
        """Write the receipt's notes on settings that were cut and settings without effect."""
        notes = list(super().notes(domain))
        if self.variant == "hybrid" and (self.switch or 0) >= self.wanted_height(domain):
            notes.append("Nothing is halved evenly: the switch level is not above the lowest one.")
        if self.variant == "cell" and self.cell_order > domain.order:
            notes.append(f"The grid of cells has order {domain.order}: the lattice is no finer.")
        if self.sample < 1 and self.variant not in SAMPLED:
            notes.append(f"Nothing is sampled: {self.variant} medians look at all records.")
        return tuple(notes)

    def shares(self, frame: Domain) -> list[Share]:
        """List the share of the medians (or of the noisy grid that gives the medians), then one share per zoom level."""
        first, *counts = super().shares(frame)
        return [Share(label="grid of cells", share=first.share, structure=True) if self.variant == "cell" else first, *counts]

    def audit_pairs(self, budget: Budget) -> list[Neighbours]:
        """List the pairs of the base, and a pair where a person's records lie in many nodes of one level, for the medians of this level."""
        pairs = super().audit_pairs(budget)
        return pairs if self.variant == "cell" else [*pairs, _one_level_pair(self, budget)]


def _one_level_pair(mechanism: Kdtree, budget: Budget) -> Neighbours:
    """Make the pair for the medians of one level of 16 nodes.

    These medians spend the whole budget. The levels above are halved in the middle, and nothing is counted.
    """
    above = 4
    nothing = [Fraction(0)] * above
    deltas = [*nothing, budget.delta] if isinstance(budget, ApproxBudget) else []
    steps = -(-(above + 1) // mechanism.cuts)
    spending = Spending(medians=[*nothing, mechanism.require_budget(budget).epsilon], counts=[Fraction(0)] * (steps + 1), deltas=deltas)

    def observe(points: PointCounts, entropy: Entropy) -> Observation:
        choose_lines = mechanism.splitter(Run.of(mechanism, points, budget, entropy), spending)
        chosen: list[Integers] = []

        def lines(level: int, nodes: Halving) -> Integers:
            if level == above:
                chosen.append(choose_lines(level, nodes))
            return nodes.middles()

        grow(points, steps, mechanism.cuts, lines)
        numbers: Numbers = {("line in node", node): line for node, line in enumerate((chosen[0] % 16).tolist())}
        return Observation(numbers=numbers | {"lines in the upper half": int((chosen[0] % 16 > 8).sum())})

    return pair_of(f"{ACROSS.words}; medians of one level alone", ACROSS.inputs(), observe)
