"""DAWA: evenly filled squares become buckets, chosen by noisy costs; then the buckets are counted under a hierarchy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.points import PointCounts
from dpviz.mechanisms.audit import BUCKETS, Added
from dpviz.mechanisms.base import DATA_DEPENDENT, Share, setting, weights_setting
from dpviz.mechanisms.points.base import (
    PointMechanism,
    drag_structure,
    fill_setting,
    negative_setting,
    order_setting,
    shrink_setting,
    structure_setting,
    zoom_shares,
)
from dpviz.mechanisms.run import Run, level_variances
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.allocation import STRATEGIES, level_weights, measured_part
from dpviz.privacy.budget import Budget, PureBudget, exact, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import tree_of
from dpviz.space.hilbert import Curve, boxes, hilbert
from dpviz.space.interpolate import INTERPOLATED
from dpviz.space.mask import open_cells
from dpviz.space.tree import Tree

FINEST = 11
GRAIN = 2**16
SENSITIVITY = 2 * GRAIN + 1
PRICES = {4: 1.35, 2: 2.1}
"""The price of a bucket by parts per step, in scales of the noise on costs; below about 1.3 and 2, noise shatters empty areas."""

_LARGEST_COST, _LARGEST_PRICE, _LARGEST_EXCESS = 2**58, 2**59, 2**42
_LOW_BITS = 30


@dataclass(frozen=True, kw_only=True)
class Dawa(PointMechanism):
    """A partition into evenly filled squares, found by the smallest of noisy costs, whose squares are counted, and all those above them.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie in m buckets: the noise on costs and on counts has m times the scale of one record, so each record costs epsilon / m.

    Privacy:
        Cells lie in a row, along the Hilbert curve. The candidates are the intervals that result from cutting the row into equal parts
        again and again, down to single cells. A candidate costs floor(2**16 dev) + price + Z. Here dev is the sum of |count - mean| over
        its cells, the price is public, and Z is discrete Laplace noise of scale 2 m D / epsilon_1 with D = 2**17 + 1, drawn for every
        candidate, empty ones and single cells, too. Released is the partition B of the row into candidates with the smallest sum of
        costs; of several, the one that comes first in a fixed order.

        Add one record to a cell j. In an interval of L cells that contains j, |count - mean| changes by at most 1 - 1 / L in j, and by
        at most 1 / L in each other cell. So dev changes by less than 2, and floor(2**16 dev) by at most 2**17 < D. Let I be the interval
        of B that contains j, and fix the noise of all other candidates. Consider another partition. If it contains I, no other of its
        intervals contains j. So the record and Z_I change its sum just as they change that of B, and do not decide which one is chosen.
        If it does not contain I, its sum does not depend on Z_I, and the record changes it by at most D, since one of its intervals
        contains j. B is preferred to it if and only if Z_I <= t, where t is the difference of its sum and that of B without Z_I, less 1
        if it comes before B in the fixed order. The record changes t by at most 2 D. So B is chosen if and only if Z_I <= u, the smallest
        such t, and the record changes u by at most 2 D. All these numbers are whole, and P(Z <= u + 2 D) <= exp(2 D / scale) P(Z <= u)
        for every whole u. So one record changes the probability of B by a factor of at most exp(2 D / scale) = exp(epsilon_1 / m), and m
        records, one after the other, by a factor of at most exp(epsilon_1).

        The proof shifts the noise of whichever interval of B contains the record. So it needs noise on single cells, although their dev is
        always 0, and noisy costs that are not cut off from below. Costs and their sums are computed exactly. A node that costs no more than
        the best partition of its parts stays whole. That is a fixed order: of two partitions, the first is the one that keeps the first
        node whole on which they differ, from the top down and along the curve. The second stage counts the nodes of a tree that is public
        by then; the epsilons of its depths add up along a path.

    Mask:
        A masked cell has no record, whatever the data are. So dev and L are over the open cells of an interval. An interval without open
        cells is no candidate: it gets neither a price nor noise, costs 0, stays whole, and its count is 0. Which intervals these are is
        public. Whatever partition is chosen, exactly one of its intervals contains the record's cell j. It has an open cell, so that its
        cost has noise. In it, |count - mean| changes by at most 1 - 1 / L in j, and by at most 1 / L in each other open cell. This is all
        that the proof uses. A cell of this mechanism's grid is open if a part of it is.

    Source:
        Li, Hay, Miklau, "A data- and workload-aware algorithm for range queries under differential privacy", VLDB 2014: cost and noisy
        partition, with intervals whose lengths are powers of two, along the Hilbert curve in two dimensions.

    Deviations:
        Intervals begin at multiples of their length. So they are squares of the map (with two parts per step, also halves of squares),
        and there are few of them: a third more than cells, where all starts would be log(cells) times as many. The fewer noisy
        costs compete, the fewer win by their noise. The price of a bucket is the paper's m / epsilon_2 plus a multiple of the scale of the
        noise on costs, without which noise would shatter empty areas. (The authors' code has about half of our scale and no noise on
        single cells, and cuts costs off from below.) The second stage is not fitted to a workload: every level above the buckets is
        measured, and least squares combines them. Small buckets are drawn towards 0, and answers inside a bucket lean towards fuller
        neighbours; both can be switched off. Counts are whole numbers, and noise is exact and discrete.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Dawa().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(dawa, 2,956 partitions, epsilon 1, SIMULATION: not private)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "dawa"
    title: ClassVar[str] = "DAWA"
    menu_group: ClassVar[str] = DATA_DEPENDENT
    summary: ClassVar[str] = (
        "Finds evenly filled squares, crowded or empty ones alike, by noisy costs, and counts them and the squares above with noise."
    )
    advice: ClassVar[str] = (
        "Least error with little budget on small boxes, on even data and around one crowd. Loses on large boxes, up to 8 times."
    )
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = BUCKETS

    order: int = order_setting(FINEST, " A step needs four times the memory.")
    fan_out: int = setting(4, "Parts per step", choices=tuple(PRICES), help="4 makes squares only; 2 also halves of squares.")
    structure_share: float = structure_setting(
        0.55, "Share for the partition", "Part of ε that finds the partition; what is left pays for the counts."
    )
    price: float | None = setting(
        None,
        "Price of a partition",
        optional=True,
        low=0,
        high=100,
        help="More gives fewer, larger partitions; in scales of the noise. Left empty, 1.35 with four parts per step and 2.1 with two.",
    )
    split: str = setting("geometric", "Budget over levels", choices=STRATEGIES, help="How the ε for counts is shared between zoom levels.")
    weights: tuple[float, ...] = weights_setting()
    shrink_small: bool = shrink_setting(default=True, when=None)
    negative: str = negative_setting(when=None)
    fill: str = fill_setting(INTERPOLATED)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget, or for custom weights that do not fit."""
        run, epsilons = Run.of(self, points, budget, entropy), self._epsilons(points.domain, budget)
        tree = self._choose(run, epsilons)
        noisy, variance = self.count_levels(run, tree, _end_with(epsilons[1:], tree.height))
        return self.make_release(run, tree, noisy, variance, notes=self._notes(points.domain))

    def _choose(self, run: Run[PointCounts], epsilons: list[Fraction]) -> Tree:
        """Choose the partition with the smallest noisy cost, and write the step to the receipt."""
        points, epsilon = run.data, epsilons[0]
        sensitivity, levels = points.contributions * SENSITIVITY, list(self._costs(points, epsilons))
        for cost, is_candidate in levels:
            cost[is_candidate] = discrete_laplace(cost[is_candidate], PureBudget(epsilon), run.entropy, 2 * sensitivity)
        candidates = sum(int(np.count_nonzero(is_candidate)) for _, is_candidate in levels)
        run.add_step("partition", epsilon, sensitivity, "noisy minimum, discrete Laplace", 2 * sensitivity / epsilon, counts=candidates)
        return self._tree(cheapest([cost for cost, _ in levels]), points.domain)

    def _costs(self, points: PointCounts, epsilons: list[Fraction]) -> Iterator[tuple[Integers, Mask]]:
        """Compute the costs of all intervals without noise, depth by depth, the whole row first, and which are candidates. PRIVATE.

        The price of a bucket, in units of 2**-16 records, is m / epsilon_2 and a multiple of the scale of the noise on costs. It is cut at
        2**59, so that costs fit 64 bits; only budgets for which noise is refused come there.
        """
        order, domain = self._order(points.domain), points.domain
        coarser = domain.order - order
        position = hilbert(points.column >> coarser, points.row >> coarser, order)
        count = np.bincount(position, weights=points.count, minlength=4**order).astype(np.int64)
        m, structure, counts = points.contributions, epsilons[0], sum(epsilons[1:], Fraction(0))
        multiple = exact(PRICES[self.fan_out] if self.price is None else self.price, "The price")
        price = min(int(GRAIN * m / counts + multiple * 2 * m * SENSITIVITY / structure), _LARGEST_PRICE)
        for cells in self._open_cells(domain, len(epsilons) - 1):
            yield np.where(cells > 0, deviations(count, cells) + price, 0), cells > 0

    def _open_cells(self, domain: Domain, depths: int) -> Iterator[Integers]:
        """Count the open cells of all intervals, depth by depth, the whole row first."""
        order = self._order(domain)
        mask = None if domain.mask is None else domain.mask.coarsened(order)
        for depth in range(depths):
            length = 4**order // self.fan_out**depth
            first = np.arange(0, 4**order, length)
            curve = Curve(order=order, first=first, last=first + length)
            yield np.full(len(first), length) if mask is None else mask.positions_in(curve)

    def _tree(self, whole: list[Mask], domain: Domain) -> Tree:
        """Build the tree of a partition, given per depth which nodes stay whole where no node above does."""
        order, node = self._order(domain), np.zeros(1, np.int64)
        levels: list[Integers] = []
        children: list[Integers] = []
        for depth, kept in enumerate(whole):
            length, cut = 4**order // self.fan_out**depth, ~kept[node]
            levels.append(boxes(node * length, (node + 1) * length, order) << (domain.order - order))
            children.append(np.where(cut, self.fan_out, 0))
            node = (node[cut, None] * self.fan_out + np.arange(self.fan_out)).ravel()
            if not len(node):
                break
        return tree_of(levels, children)

    def _order(self, domain: Domain) -> int:
        return min(self.order, domain.order)

    @property
    def _cuts(self) -> int:
        """How often a step halves a node."""
        return 2 if self.fan_out == 4 else 1

    def _weights(self, domain: Domain) -> list[float]:
        """Return the weights of all depths, root first; geometric ones grow by the cube root of the parts per step."""
        return level_weights(self.split, 2 * self._order(domain) // self._cuts, fan_out=self.fan_out**2, custom=self.weights)

    def _epsilons(self, domain: Domain, budget: Budget) -> list[Fraction]:
        """Divide the budget: epsilon of the partition, then of the counts of each depth, root first, down to the deepest measured one."""
        measured, share = measured_part(self._weights(domain)), exact(self.structure_share, "The share for the partition")
        counts = [(1 - share) * Fraction(weight) / sum(map(Fraction, measured)) for weight in measured]
        return require_pure(budget, self.title).split([share, *counts])

    def _notes(self, domain: Domain) -> tuple[str, ...]:
        """Write the receipt's notes on an order or a height that was cut."""
        weights = self._weights(domain)
        notes = [f"The grid has order {domain.order}: the lattice is no finer."] if domain.order < self.order else []
        if (measured := measured_part(weights)) != weights:
            notes.append(f"The tree ends at zoom level {len(measured) - 1}: nothing is measured below.")
        return tuple(notes)

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node, where the released partition stays as it is."""
        epsilons = self._epsilons(release.domain, budget)[1:]
        sensitivity = Sensitivity(contributions=release.receipt.contributions)
        return level_variances(release.tree, _end_with(epsilons, release.tree.height), sensitivity, release.open_cells)

    def partition_exactly(self, points: PointCounts, budget: Budget) -> tuple[Tree, Floats] | None:
        """Choose the partition by costs that have no noise, and state the noise that its counts would have. NOT PRIVATE."""
        epsilons = self._epsilons(points.domain, budget)
        tree = self._tree(cheapest([cost for cost, _ in self._costs(points, epsilons)]), points.domain)
        cells = open_cells(tree, points.domain.mask)
        variance = level_variances(tree, _end_with(epsilons[1:], tree.height), Sensitivity(contributions=points.contributions), cells)
        return None if variance is None else (tree, variance)

    def shares(self, frame: Domain) -> list[Share]:
        """List the share of the partition, then one share per zoom level, whole domain first."""
        counts = zoom_shares(self._weights(frame), self._cuts, frame.order, 1 - self.structure_share)
        return [Share(label="partition", share=self.structure_share, structure=True), *counts]

    def with_shares(self, shares: Sequence[float]) -> Dawa:
        """Return a copy with another share for the partition and custom weights, one per zoom level."""
        return drag_structure(self, "structure_share", shares)


def deviations(count: Integers, cells: Integers) -> Integers:
    """Compute floor(2**16 dev) of equally long intervals, dev the sum of |count - mean| over the open cells; at most 2**58.

    With k cells above the mean q + r / L, dev = 2 (the sum of max(count - q, 0) over all cells - k r / L), since as much lies above the
    mean as below it. This is computed in whole numbers. Masked cells add nothing to the sum, nor to k, as they have count 0.

    Args:
        count: (n,) counts of cells, at least 0, at most 2**53 in all; 0 for masked cells.
        cells: (intervals,) L, the number of open cells of each interval, at most 2**22; 0 gives dev = 0. There are n / intervals cells,
            open and masked ones, in each.

    Returns:
        (intervals,) whole numbers.

    >>> (deviations(np.array([3, 0, 0, 0, 2, 2, 2, 0]), np.array([4, 3])) / GRAIN).tolist()
    [4.5, 0.0]
    """
    by_interval, length = count.reshape(len(cells), -1), np.maximum(cells, 1)
    mean, rest = np.divmod(by_interval.sum(axis=1), length)
    above = np.maximum(by_interval - mean[:, None], 0)
    excess = np.minimum(above.sum(axis=1), _LARGEST_EXCESS)
    too_much = -(-2 * GRAIN * np.count_nonzero(above, axis=1) * rest // length)
    return np.asarray(np.minimum(2 * GRAIN * excess - too_much, _LARGEST_COST))


def cheapest(costs: list[Integers]) -> list[Mask]:
    """Find the partition of a complete tree with the smallest sum of costs.

    A node stays whole if it costs no more than the best partition of its parts. Sums are exact: they consist of 30 low bits and the rest,
    and exceed 64 bits only together.

    Args:
        costs: whole numbers within 2**62 of 0, one array per depth, root first; all nodes have equally many parts.

    Returns:
        Per depth which nodes stay whole, if no node above them does. The nodes of the last depth all do.

    >>> [whole.tolist() for whole in cheapest([np.array([5]), np.array([1, 3]), np.array([1, 1, 1, 1])])]
    [[False], [True, False], [True, True, True, True]]
    """
    low_bits = (1 << _LOW_BITS) - 1
    high, low, whole = costs[-1] >> _LOW_BITS, costs[-1] & low_bits, [np.ones(len(costs[-1]), np.bool_)]
    for cost in costs[-2::-1]:
        low = low.reshape(len(cost), -1).sum(axis=1)
        high, low = high.reshape(len(cost), -1).sum(axis=1) + (low >> _LOW_BITS), low & low_bits
        own_high, own_low = cost >> _LOW_BITS, cost & low_bits
        whole.append((own_high < high) | ((own_high == high) & (own_low <= low)))
        high, low = np.where(whole[-1], own_high, high), np.where(whole[-1], own_low, low)
    return whole[::-1]


def _end_with(epsilons: list[Fraction], height: int) -> list[Fraction]:
    """Give the last depth of a tree, 0 to `height`, the epsilons of all depths below, which it does not have."""
    return [*epsilons[:height], sum(epsilons[height:], Fraction(0))]
