"""The path-budget tree: released counts decide the splits, and every path from the root to a leaf spends exactly epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.indexes import CurveCells
from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms.base import RECOMMENDED, Share, setting, shares_of, split_shares, weights_setting
from dpviz.mechanisms.points.base import SPREAD, PointMechanism, fill_setting, least_squares_setting, negative_setting, shrink_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.allocation import custom_weights
from dpviz.privacy.budget import GRAIN, Budget, PureBudget, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace, laplace_variance
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import have_open_cells, quarter_tree, split_nodes
from dpviz.space.interpolate import LOG_LINEAR
from dpviz.space.tree import Tree

PHI_BITS = 30
GROWING = "growing"
_SMALLEST_SHARE, _LEAST_WEIGHT = 1e-3, 1e-6  # of a level: what a drag leaves it, and what a curator may give it
AddNoise = Callable[[Run[PointCounts], Integers, Integers, Fraction], tuple[Floats, Floats]]
"""A function such as `_add_noise`."""
APPROXIMATE = "the counts that decided what is split are part of the estimates, which biases them, sums over large areas most"


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One depth of the tree as it was released.

    Attributes:
        node: (n,) positions of the nodes on the Z-order curve of this depth.
        split: (n,) whether a node has four children.
        mean: (n,) weighted mean of all measurements of a node, NaN where there is none.
        variance: (n,) variance of the noise of this mean, infinite where there is no measurement.
        first: (n,) first measurement, NaN where there is none.
        second_measurement: (n,) second measurement, NaN where there is none.
    """

    node: Integers
    split: Mask
    mean: Floats
    variance: Floats
    first: Floats
    second_measurement: Floats

    @classmethod
    def of(cls, node: Integers, split: Mask, first: tuple[Floats, Floats], again: tuple[Floats, Floats]) -> Self:
        """Combine two measurements of each node by inverse variance; `first` and `again` are values and variances of the noise."""
        (value, variance), (second, second_variance) = first, again
        both = np.flatnonzero(np.isfinite(second_variance))
        mean, combined = value.copy(), variance.copy()
        weight = second_variance[both] / (second_variance[both] + variance[both])
        mean[both] = weight * value[both] + (1 - weight) * second[both]
        combined[both] = weight * variance[both]
        return cls(node=node, split=split, mean=mean, variance=combined, first=value, second_measurement=second)


@dataclass(frozen=True, kw_only=True)
class PathTree(PointMechanism):
    """A quadtree that spends nothing on its structure: the counts that are released decide what is split.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie on m paths: each costs epsilon / m on its own, since every noise has m times the scale of one record.

    Privacy:
        Every node has a remaining budget R per record; the root's R is epsilon / m. A measured node spends e = phi R and passes R - e on
        to its children. A leaf spends its remaining R - e on a second measurement. A skipped node is not measured and passes on R. The
        transcript, which is all that was released so far, determines which nodes are measured next and with what parameter. The measured
        nodes that contain a given record lie on one path, and their parameters add up to the root's R for any transcript. One more record
        changes the distribution of each of these measurements by a factor of at most exp(e), and does not change any other measurement.
        So the probability of a whole transcript changes by a factor of at most exp(epsilon / m) for one of m records, and exp(epsilon)
        for all m. True counts enter no comparison, and the number of records is never used. Whether a tree outgrows memory, and therefore
        ends, is a function of the transcript. R and e are whole numbers of units of (epsilon / m) / 2**32, and e is rounded down, so the
        parts add up exactly in the computation, too.

    Mask:
        A wholly masked node has no record, whatever the data are: it is neither measured nor split, and its count is 0. The measured nodes
        that contain a given record are not wholly masked, and for them the proof holds. Which nodes are masked is public, so that the
        transcript still determines what is measured next.

    Source:
        Own. Nodes are split by noisy counts as in Shaham et al., HTF, SIGSPATIAL 2021 (whose leaves also spend the remaining budget) and
        Zhang, Xiao, Xie, PrivTree, SIGMOD 2016.

    Deviations:
        None: this is the definition. Small leaves are drawn towards 0 before least squares, quarters are drawn towards a log-linear
        interpolation of their surroundings, negative counts are spread over their siblings, and answers inside a partition follow the
        same interpolation. All of this is post-processing that any tree may use, and can be switched off.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.PathTree().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(path_tree, 42,775 partitions, epsilon 1, SIMULATION: not private)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "path_tree"
    title: ClassVar[str] = "Path-budget tree"
    menu_group: ClassVar[str] = RECOMMENDED
    summary: ClassVar[str] = (
        "Splits quarters where the released counts are large enough; the budget that a path has left counts its leaf again."
    )
    advice: ClassVar[str] = (
        "Least error, or close to it, wherever records gather: in cities, around crowds, on roads and routes. Up to"
        " twice the least where they lie evenly. Begin with it."
    )

    split: str = setting(
        GROWING,
        "Budget over levels",
        choices=(GROWING, "custom"),
        help="Shares on a path down to single cells; a leaf spends what is left.",
    )
    weights: tuple[float, ...] = weights_setting(
        "One above 0 per zoom level, the first quarters first: shares that add up to 1, or whole numbers."
    )
    growth: float = setting(
        1.26,
        "Growth of ε per level",
        low=1,
        high=4,
        when=("split", GROWING),
        help="A level gets this many times the budget of the level above it.",
    )
    mix: float = setting(
        0.2, "Even part", low=0.01, high=1, when=("split", GROWING), help="Part of the budget that is spread evenly over the levels."
    )
    tau: float = setting(3.0, "Split above", low=0, high=100, help="Times the noise scale that a count must exceed to be split.")
    rise: float = setting(1.03, "Rise per level", low=0.5, high=2, help="Factor on this threshold for each level further down.")
    big: float = setting(8.0, "Skip above", low=1, high=1e6, help="Times the threshold from which a level is skipped: 16 parts at once.")
    calm: float = setting(
        2.0,
        "Uniform below",
        low=0,
        high=100,
        help="Four siblings look uniform if their variance is less than this many times the noise's variance.",
    )
    doubt: float = setting(2.0, "Threshold if uniform", low=1, high=100, help="Factor on the threshold of siblings that look uniform.")
    least_squares: bool = least_squares_setting()
    shrink_small: bool = shrink_setting(default=True)
    negative: str = negative_setting(SPREAD)
    fill: str = fill_setting(LOG_LINEAR)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget, or for custom weights that do not fit."""
        run = Run.of(self, points, budget, entropy)
        run.record("counts along every path", run.epsilon)
        levels = self._measure(run)
        tree = _make_tree(levels, points.domain.order)
        value, variance = (np.concatenate([getattr(level, name) for level in levels]) for name in ("mean", "variance"))
        first, again = (np.concatenate([getattr(level, name) for level in levels]) for name in ("first", "second_measurement"))
        notes = ("Every path spends all of ε, in parts that depend on what was released; the step stands for their sum.",)
        release = self.make_release(run, tree, value, variance, notes=notes, approximate=APPROXIMATE)
        return replace(release, noisy=first, second_measurement=again)

    def shares(self, frame: Domain) -> list[Share]:
        """List the shares of the levels, the first quarters first, on a path down to single cells on which no level is skipped."""
        levels = range(1, frame.order + 1)
        return split_shares([f"zoom {level}" for level in levels], self._weights(frame.order), levels)

    def with_shares(self, shares: Sequence[float]) -> PathTree:
        """Return a copy with custom weights, one per level, each at least a thousandth: a level without a count could decide no split."""
        raised = [max(share, _SMALLEST_SHARE) for share in shares_of(shares)]
        return replace(self, split="custom", weights=tuple(shares_of(raised)))

    def _weights(self, order: int) -> list[float]:
        """Compute the shares of depths 1 to `order` on such a path; they add up to 1.

        Raises:
            BudgetError: custom weights that are not one number per depth, each at least a millionth of their sum.
        """
        if self.split == "custom":
            weights = custom_weights(self.weights, order, "the first quarters")
            if min(weights) < _LEAST_WEIGHT * sum(weights):
                raise BudgetError("Custom weights of the path-budget tree must each be at least a millionth of their sum.")
            return [weight / sum(weights) for weight in weights]
        growth = [self.growth**depth for depth in range(1, order + 1)]
        return [(1 - self.mix) * value / sum(growth) + self.mix / order for value in growth]

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node, where the released tree and its skipped levels stay as they are."""
        epsilon, tree = require_pure(budget, self.title).epsilon / release.receipt.contributions, release.tree
        phi, measured = self.schedule(release.domain.order), ~np.isnan(release.noisy)
        variance, remaining = np.full(len(tree), np.inf), np.full(len(tree), GRAIN, np.int64)
        for depth in range(1, tree.height + 1):
            nodes = tree.at_depth(depth)
            inherited = remaining[tree.parent[nodes]]
            spent = np.where(measured[nodes], inherited * phi[depth - 1] >> PHI_BITS, 0)
            remaining[nodes] = inherited - spent
            again = np.where(tree.children[nodes] == 0, remaining[nodes], 0)
            precision = 1 / _noise_variances(spent, epsilon) + 1 / _noise_variances(again, epsilon)
            variance[nodes] = np.divide(1.0, precision, out=np.full(len(precision), np.inf), where=precision > 0)
        return np.where(release.open_cells > 0, variance, np.inf)

    def partition_exactly(self, points: PointCounts, budget: Budget) -> tuple[Tree, Floats] | None:
        """Choose partitions as with counts that have no noise, and state the noise that they would have. NOT PRIVATE."""
        run = Run.of(self, points, budget, Entropy.seeded(0))
        levels = self._measure(run, _add_none)
        return _make_tree(levels, points.domain.order), np.concatenate([level.variance for level in levels])

    def schedule(self, order: int) -> list[int]:
        """Compute phi for depths 1 to `order`, in units of 2**-30: the part of its remaining budget that a measured node spends."""
        weights = self._weights(order)
        return [int(weight / sum(weights[depth:]) * 2**PHI_BITS) for depth, weight in enumerate(weights[:-1])] + [2**PHI_BITS]

    def _measure(self, run: Run[PointCounts], add_noise: AddNoise | None = None) -> list[Measured]:
        """Measure all depths, one after the other; `add_noise` is `_add_noise` if it is None."""
        add_noise = add_noise or _add_noise
        domain, cells, epsilon = run.data.domain, CurveCells.of(run.data), run.epsilon / run.data.contributions
        order = domain.order
        phi = self.schedule(order)
        unmeasured = np.full(1, np.nan), np.full(1, np.inf)
        levels = [Measured.of(np.zeros(1, np.int64), np.ones(1, np.bool_), unmeasured, unmeasured)]
        node, remaining, skip, nodes = split_nodes(levels[0].node), np.full(4, GRAIN, np.int64), np.zeros(4, np.bool_), 5
        for depth in range(1, order + 1):
            true, is_open = cells.records(node, depth), have_open_cells(node, depth, domain)
            remaining = np.where(is_open, remaining, 0)
            spent = np.where(skip, 0, remaining * phi[depth - 1] >> PHI_BITS)
            first, variance = add_noise(run, true, spent, epsilon)
            threshold, remaining = self._threshold(first, variance, spent * float(epsilon / GRAIN), depth), remaining - spent
            split = (skip | (first > threshold)) & is_open & (depth < order)
            split &= skip | run.has_room(nodes + 4 * int(split.sum()))
            again = add_noise(run, true, np.where(split, 0, remaining), epsilon)
            levels.append(Measured.of(node, split, (first, variance), again))
            skipped = split & (first > self.big * threshold) & (depth + 2 <= order)
            node, remaining, skip = split_nodes(node[split]), np.repeat(remaining[split], 4), np.repeat(skipped[split], 4)
            nodes += len(node)
            if not len(node):
                break
        return levels

    def _threshold(self, value: Floats, variance: Floats, parameter: Floats, depth: int) -> Floats:
        """Compute (n,) thresholds that a noisy count must exceed for the node to be split.

        The entries of four siblings follow each other, and those that are measured have the same parameter. Siblings without a measurement
        are wholly masked, unless all four were skipped; a node without measured siblings does not look uniform.
        """
        threshold = self.tau * self.rise**depth / np.where(parameter > 0, parameter, 1.0)
        if depth == 1:
            return threshold
        block = value.reshape(-1, 4)
        known = ~np.isnan(block)
        number = known.sum(axis=1, keepdims=True)
        mean = np.where(known, block, 0.0).sum(axis=1, keepdims=True) / np.maximum(number, 1)
        of_siblings = np.where(known, (block - mean) ** 2, 0.0).sum(axis=1) / np.maximum(number[:, 0] - 1, 1)
        calm = self.calm * np.where(np.isfinite(variance), variance, 0.0)
        return np.where((np.repeat(of_siblings, 4) < calm) & np.repeat(number[:, 0] > 1, 4), self.doubt * threshold, threshold)


def _make_tree(levels: list[Measured], order: int) -> Tree:
    return quarter_tree([level.node for level in levels], [np.where(level.split, 4, 0) for level in levels], range(len(levels)), order)


def _add_none(run: Run[PointCounts], true: Integers, units: Integers, epsilon: Fraction) -> tuple[Floats, Floats]:  # noqa: ARG001
    """Return (n,) the true counts in place of noisy ones, with the variances of the noise. NOT PRIVATE."""
    variance = _noise_variances(units, epsilon)
    return np.where(np.isfinite(variance), true, np.nan), variance


def _add_noise(run: Run[PointCounts], true: Integers, units: Integers, epsilon: Fraction) -> tuple[Floats, Floats]:
    """Return (n,) noisy counts and their variances; (n,) `units` are the epsilons of the counts in units of epsilon / 2**32.

    Where units are 0, the count is NaN and the variance infinite.
    """
    value = np.full(len(true), np.nan)
    for number in np.unique(units[units > 0]).tolist():
        here = np.flatnonzero(units == number)
        value[here] = discrete_laplace(true[here], PureBudget(epsilon * number / GRAIN), run.entropy)
    return value, _noise_variances(units, epsilon)


def _noise_variances(units: Integers, epsilon: Fraction) -> Floats:
    """Return (n,) variances of the noise of counts with (n,) `units` of epsilon / 2**32; infinite where units are 0."""
    numbers, place = np.unique(units, return_inverse=True)
    return np.array([laplace_variance(GRAIN / (epsilon * number)) if number else np.inf for number in numbers.tolist()])[place]
