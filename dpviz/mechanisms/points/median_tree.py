"""Trees that split at private medians: settings, the split of the budget, growing the tree level by level, and the release.

A step down such a tree halves its nodes once or twice. Each halving is a binary level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.indexes import NodeCells
from dpviz.data.points import PointCounts
from dpviz.mechanisms.audit import MEDIANS, Added
from dpviz.mechanisms.base import Share, setting, weights_setting
from dpviz.mechanisms.points.base import (
    PointMechanism,
    drag_structure,
    height_setting,
    least_squares_setting,
    negative_setting,
    prune_setting,
    shrink_setting,
    structure_setting,
    zoom_shares,
)
from dpviz.mechanisms.points.quadtree import prune
from dpviz.mechanisms.run import Run, level_variances
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.allocation import STRATEGIES, level_weights, measured_part
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, exact, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import EXPONENTS, exponential_medians
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.sampling import epsilon_before_sampling, epsilon_before_sampling_in_paper, sample_records
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import refuse_too_large, tree_of
from dpviz.space.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The parts of the budget that a tree spends on its splits and on its counts.

    Attributes:
        medians: epsilon of each binary level of private splits, from the top; for the variant "cell" of `Kdtree` a single entry, the
            epsilon of the noisy grid.
        counts: epsilon of the counts of each depth, root first.
        deltas: delta of each binary level of private splits; empty for a pure budget.
    """

    medians: list[Fraction]
    counts: list[Fraction]
    deltas: list[Fraction]

    @property
    def height(self) -> int:
        """Number of steps below the root."""
        return len(self.counts) - 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Grown:
    """A tree whose splits are paid for, and (n,) true counts of its nodes, which are PRIVATE."""

    tree: Tree
    true: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class MedianTree(PointMechanism):
    """Base of trees that split nodes at private medians and count them with noise."""

    audit_inputs: ClassVar[tuple[Added[Any], ...]] = MEDIANS

    height: int = height_setting()
    fan_out: int = setting(4, "Parts per step", choices=(4, 2), help="4 splits twice per step and counts only then; 2 counts every half.")
    median_share: float = structure_setting(0.3, "Share for medians", "Part of ε that finds the splits; what is left pays for the counts.")
    split: str = setting("geometric", "Budget over levels", choices=STRATEGIES, help="How the ε for counts is shared between zoom levels.")
    weights: tuple[float, ...] = weights_setting()
    exponent: str = setting("sharp", "Exponent", choices=EXPONENTS, help="Sharp uses all of ε for a median, the paper's form half of it.")
    sample: float = setting(
        1.0, "Sample for medians", low=0.0001, high=1, help="Find medians on a random part of the records, which lets them use more ε."
    )
    least_squares: bool = least_squares_setting()
    shrink_small: bool = shrink_setting(default=False)
    negative: str = negative_setting()
    prune: float = prune_setting()

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a budget on `points`; raises `BudgetError` for the wrong kind, or for custom weights that do not fit."""
        run, spending = Run.of(self, points, budget, entropy), self.spending(points.domain, self.require_budget(budget))
        grown = self.grow(run, spending)
        noisy, variance = self.count_levels(run, grown.tree, spending.counts, grown.true)
        release = self.make_release(run, grown.tree, noisy, variance, notes=self.notes(points.domain))
        return prune(release, self.prune) if self.prune else release

    def require_budget(self, budget: object) -> PureBudget | ApproxBudget:
        """Return the budget unchanged; raises `BudgetError` if it is of the wrong kind."""
        return require_pure(budget, self.title)

    def grow(self, run: Run[PointCounts], spending: Spending) -> Grown:
        """Split the domain, and write every private split to the receipt."""
        raise NotImplementedError

    def binary_levels(self, height: int, wanted: int) -> int:  # noqa: ARG002
        """Count the binary levels that split at private medians, from the top.

        Args:
            height: steps of the tree, down to the deepest measured level.
            wanted: steps by the settings, cut to the lattice.
        """
        return height * self.cuts

    @property
    def cuts(self) -> int:
        """Number of binary splits per step."""
        return 2 if self.fan_out == 4 else 1

    def most_steps(self, domain: Domain) -> int:
        """Return the largest height that a domain's lattice allows."""
        return 2 * domain.order // self.cuts

    def spending(self, domain: Domain, budget: PureBudget | ApproxBudget) -> Spending:
        """Divide the budget between splits and counts; the parts add up to the budget exactly.

        Raises:
            BudgetError: custom weights that do not fit.
        """
        weights = measured_part(self._weights(domain))
        levels = self.binary_levels(len(weights) - 1, self.wanted_height(domain))
        share, total = exact(self.median_share, "The share for medians"), sum(map(Fraction, weights))
        parts = [share / levels] * levels + [(1 - share) * Fraction(weight) / total for weight in weights]
        epsilons = PureBudget(budget.epsilon).split(parts)
        delta = getattr(budget, "delta", Fraction(0))
        return Spending(medians=epsilons[:levels], counts=epsilons[levels:], deltas=[delta / levels] * levels if delta else [])

    def _weights(self, domain: Domain) -> list[float]:
        """Return the weights of all depths, root first."""
        return level_weights(self.split, self.wanted_height(domain), fan_out=self.fan_out, custom=self.weights)

    def wanted_height(self, domain: Domain) -> int:
        """Return the height of the settings, cut to the lattice."""
        return min(self.height, self.most_steps(domain))

    def notes(self, domain: Domain) -> tuple[str, ...]:
        """Write the receipt's notes on a height that was cut."""
        most, height = self.most_steps(domain), len(measured_part(self._weights(domain))) - 1
        notes = [f"The height is {most}: the lattice is no finer."] if self.height > most else []
        if height < min(self.height, most):
            notes.append(f"The tree ends at zoom level {height}: nothing is measured below.")
        return tuple(notes)

    def median(self, run: Run[PointCounts], nodes: NodeValues, epsilon: Fraction, depth: int) -> NDArray[np.int64]:
        """Choose (n,) lines by the exponential mechanism, on a sample if the settings say so, and write the step to the receipt."""
        bound, rate = run.data.contributions, exact(self.sample, "The sampling rate")
        epsilon_on_sample = epsilon_before_sampling(epsilon, rate, bound)
        noise = "exponential mechanism" + self.describe_sample(epsilon, epsilon_on_sample)
        scale = bound / epsilon_on_sample * (1 if self.exponent == "sharp" else 2)
        run.add_step("medians", epsilon, Fraction(bound, 2), noise, scale, level=depth, counts=len(nodes))
        return exponential_medians(sample_records(nodes, rate, run.entropy), epsilon_on_sample, run.entropy, bound, self.exponent)

    def describe_sample(self, epsilon: Fraction, epsilon_on_sample: Fraction) -> str:
        """Describe the sample for the receipt: epsilon of the medians on it, and epsilon by the paper's bound; "" without a sample."""
        if self.sample == 1:
            return ""
        looser = epsilon_before_sampling_in_paper(float(epsilon), self.sample)
        return f" with ε {float(epsilon_on_sample):.4g} on a sample of {self.sample:.2%} (by the paper's bound {looser:.4g})"

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node; None after pruning, which removes measured nodes."""
        spending = self.spending(release.domain, self.require_budget(budget))
        sensitivity = Sensitivity(contributions=release.receipt.contributions)
        return None if self.prune else level_variances(release.tree, spending.counts, sensitivity, release.open_cells)

    def check(self, frame: Domain) -> None:
        """Raise an error if custom weights do not fit, or the tree is too large for memory."""
        refuse_too_large(len(measured_part(self._weights(frame))) - 1, self.fan_out)

    def shares(self, frame: Domain) -> list[Share]:
        """List the share of the medians, then one share per zoom level, whole domain first."""
        counts = zoom_shares(self._weights(frame), self.cuts, frame.order, 1 - self.median_share)
        return [Share(label="medians", share=self.median_share, structure=True), *counts]

    def with_shares(self, shares: Sequence[float]) -> Self:
        """Return a copy with another share for medians and custom weights, one per zoom level."""
        return drag_structure(self, "median_share", shares)


@dataclass(frozen=True, kw_only=True, eq=False)
class Halving:
    """The n nodes of one binary level that are about to be halved. PRIVATE, except for the attributes that are named public.

    Attributes:
        rectangles: (n, 4) west, south, east, north as lattice lines; public.
        across: (n,) whether a node is halved by a line between columns; else by a line between rows; public.
        cells: the occupied cells of all nodes of the level, also of nodes that are not halved.
        halved: mask of the level's nodes that are halved: all but single cells; public.
    """

    rectangles: Integers
    across: Mask
    cells: NodeCells
    halved: Mask

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """(n,) first and (n,) end of each node's columns or rows."""
        west, south, east, north = self.rectangles.T
        return np.where(self.across, west, south), np.where(self.across, east, north)

    def middles(self) -> Integers:
        """Return (n,) lines in the middle of the nodes; they do not depend on the data."""
        low, high = self.ends
        return (low + high) // 2

    def values(self) -> NodeValues:
        """Return the columns or rows of the records, along the axis on which their node is halved."""
        cells = self.cells.filter_nodes(self.halved)
        (value, count), (low, high) = cells.along(self.across), self.ends
        return NodeValues(value=value, count=count, start=cells.start, low=low, high=high)


Splitter = Callable[[int, Halving], Integers]
"""A function of a binary level (0 at the root) and its nodes that returns (n,) lines, strictly inside the nodes."""


def grow(points: PointCounts, height: int, cuts: int, choose_lines: Splitter) -> Grown:
    """Halve every node `cuts` times per step, columns first, then rows and so on.

    A node one cell wide is halved along its other axis. A single cell stays whole; a node that is a single cell at the beginning of a
    step becomes a leaf.

    Args:
        points: private.
        height: number of steps.
        cuts: number of binary levels per step.
        choose_lines: chooses the lines at which nodes are halved, and spends budget on the choice.
    """
    side = points.domain.side
    rectangles, cells = np.array([[0, 0, side, side]]), NodeCells.of(points)
    levels, children, true = [rectangles], [], [cells.records()]
    for step in range(height):
        divisible = _sides(rectangles).prod(axis=1) > 1
        rectangles, cells = rectangles[divisible], cells.filter_nodes(divisible)
        parent = np.flatnonzero(divisible)
        for cut in range(cuts):
            level = step * cuts + cut
            rectangles, cells, parent = _halve(rectangles, cells, parent, level, choose_lines)
        children.append(np.bincount(parent, minlength=len(divisible)))
        levels.append(rectangles)
        true.append(cells.records())
    children.append(np.zeros(len(rectangles), np.int64))
    return Grown(tree=tree_of(levels, children), true=np.concatenate(true))


def _sides(rectangles: Integers) -> Integers:
    """Return (n, 2) widths and heights, in lattice cells."""
    return rectangles[:, 2:] - rectangles[:, :2]


def _halve(
    rectangles: Integers, cells: NodeCells, parent: Integers, level: int, choose_lines: Splitter
) -> tuple[Integers, NodeCells, Integers]:
    """Halve all nodes but single cells; return the rectangles, cells and parents of the parts."""
    width, height = _sides(rectangles).T
    halved = width * height > 1
    across = (height == 1) | ((width > 1) & (level % 2 == 0))
    line = np.zeros(len(rectangles), np.int64)
    line[halved] = choose_lines(level, Halving(rectangles=rectangles[halved], across=across[halved], cells=cells, halved=halved))
    parts = np.repeat(rectangles, 1 + halved, axis=0)
    second_half = np.cumsum(1 + halved)[halved] - 1  # where the second half of each halved node is in `parts`
    axis = np.where(across[halved], 0, 1)
    parts[second_half - 1, axis + 2] = line[halved]
    parts[second_half, axis] = line[halved]
    return parts, cells.cut(across, line, halved), np.repeat(parent, 1 + halved)
