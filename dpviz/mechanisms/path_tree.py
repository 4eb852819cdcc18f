"""The path-budget tree: what was released decides the splits, and every path from the root to a leaf spends exactly epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.data.curve_cells import CurveCells
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import Settings, setting
from dpviz.mechanisms.measure import Plan, Study
from dpviz.privacy.budget import GRAIN, PureBudget, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace, laplace_variance
from dpviz.privacy.receipt import Step
from dpviz.release.release import Release
from dpviz.space.domain import Domain
from dpviz.space.quarters import parts, quarter_tree

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

PHI_BITS = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One depth of the tree as it was released.

    Attributes:
        node: (n,) places on the Z-order curve of this depth.
        split: (n,) whether it has four children.
        value: (n,) noisy counts, NaN where skipped; of leaves that were measured twice, the weighted mean.
        variance: (n,) of the noise, infinite where skipped.
        first: (n,) the first measurement, NaN where skipped.
    """

    node: Integers
    split: Mask
    value: Floats
    variance: Floats
    first: Floats


@dataclass(frozen=True, kw_only=True)
class PathTree(Settings[Domain]):
    """A quadtree that spends nothing on its structure: the counts that are released decide what is split."""

    key: ClassVar[str] = "path_tree"
    title: ClassVar[str] = "Path-budget tree"
    summary: ClassVar[str] = "Splits where the released counts say that it pays; what a path has not used measures its leaf again."

    growth: float = setting(
        1.26, "Growth of ε per level", low=1, high=4, help="Deeper levels get this many times the budget of the one above."
    )
    mix: float = setting(0.2, "Even part", low=0, high=1, help="Part of the budget that is spread evenly over the levels.")
    tau: float = setting(3.0, "Split above", low=0, high=100, help="Times the noise scale that a count must exceed to be split.")
    grow: float = setting(1.03, "Rise per level", low=0.5, high=2, help="Deeper levels must exceed more.")
    big: float = setting(8.0, "Skip above", low=1, high=1e6, help="Times the threshold from which the next level is skipped.")
    uniform_below: float = setting(2.0, "Uniform below", low=0, high=100, help="Four siblings whose spread is below this look uniform.")
    uniform_factor: float = setting(2.0, "Threshold if uniform", low=1, high=100, help="How much more such siblings must exceed.")

    def release(self, points: PointCounts, budget: PureBudget, entropy: Entropy) -> Release:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget."""
        budget, study = require_pure(budget, self.title), Study(points=points, entropy=entropy)
        bound = points.contributions
        study.steps.append(
            Step(
                purpose="counts along every path",
                amount=budget.epsilon,
                sensitivity=Fraction(bound),
                noise="discrete Laplace",
                scale=bound / budget.epsilon,
            )
        )
        levels = self._measured(study, budget.epsilon / bound)
        order = points.domain.order
        tree = quarter_tree([lev.node for lev in levels], [np.where(lev.split, 4, 0) for lev in levels], list(range(len(levels))), order)
        value, variance, first = (np.concatenate([getattr(lev, name) for lev in levels]) for name in ("value", "variance", "first"))
        return study.hand_out(Plan(mechanism=self, budget=budget, zero=True, inside="interpolated"), tree, value, variance)

    def schedule(self, order: int) -> list[int]:
        """Phi of depths 1..order in units of 2**-30: the part of its rest that a node spends if it is measured."""
        growth = [self.growth**depth for depth in range(1, order + 1)]
        weights = [(1 - self.mix) * each / sum(growth) + self.mix / order for each in growth]
        return [int(weight / sum(weights[depth:]) * 2**PHI_BITS) for depth, weight in enumerate(weights[:-1])] + [2**PHI_BITS]

    def _measured(self, study: Study, epsilon: Fraction) -> list[Measured]:
        order, cells = study.points.domain.order, CurveCells.of(study.points)
        phi = self.schedule(order)
        nan, inf = np.full(1, np.nan), np.full(1, np.inf)
        levels = [Measured(node=np.zeros(1, np.int64), split=np.ones(1, bool), value=nan, variance=inf, first=nan)]
        node, rest, skip = parts(levels[0].node), np.full(4, GRAIN, np.int64), np.zeros(4, np.bool_)
        for depth in range(1, order + 1):
            true = cells.records(node, depth)
            part = np.where(skip, 0, rest * phi[depth - 1] >> PHI_BITS)
            value, variance = _noisy(study, true, part, epsilon)
            first, rest = value.copy(), rest - part
            threshold = self._threshold(value, variance, part * float(epsilon / GRAIN), depth)
            split = (skip | (value > threshold)) & (depth < order)
            ends = np.flatnonzero(~split & (rest > 0))
            again, spread = _noisy(study, true[ends], rest[ends], epsilon)
            weight = spread / (spread + variance[ends])
            value[ends], variance[ends] = weight * value[ends] + (1 - weight) * again, weight * variance[ends]
            levels.append(Measured(node=node, split=split, value=value, variance=variance, first=first))
            skipped = split & ~skip & (value > self.big * threshold) & (depth + 2 <= order)
            node, rest, skip = parts(node[split]), np.repeat(rest[split], 4), np.repeat(skipped[split], 4)
            if not len(node):
                break
        return levels

    def _threshold(self, value: Floats, variance: Floats, parameter: Floats, depth: int) -> Floats:
        with np.errstate(divide="ignore"):
            threshold = self.tau * self.grow**depth / parameter
        if depth >= 2:
            block = value.reshape(-1, 4)
            spread = ((block - block.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / 3
            uniform = np.repeat(spread, 4) < self.uniform_below * variance
            threshold = np.where(uniform, self.uniform_factor * threshold, threshold)
        return threshold


def _noisy(study: Study, true: Integers, part: Integers, epsilon: Fraction) -> tuple[Floats, Floats]:
    """(n,) noisy counts and their variances for parameters that are multiples of epsilon / 2**32; NaN and infinite for 0."""
    value, variance = np.full(len(true), np.nan), np.full(len(true), np.inf)
    for units in np.unique(part[part > 0]).tolist():
        here = np.flatnonzero(part == units)
        parameter = epsilon * units / GRAIN
        value[here] = discrete_laplace(true[here], PureBudget(parameter), study.entropy)
        variance[here] = laplace_variance(1 / parameter)
    return value, variance
