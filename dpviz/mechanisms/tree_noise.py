"""The variance of a quadtree's answers, from public facts alone: which nodes a box has, and how depths share the budget."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpviz.mechanisms.box_shares import Boxes, Integers, Sums
from dpviz.mechanisms.grid_bounds import grid_cover
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import laplace_variance
from dpviz.space.domain import Domain

Floats = NDArray[np.float64]
Level = tuple[int, float, Sums, Sums]
"""Nodes per side of one depth, the variance of each, and which of them there are and which of these are leaves, as sums of 0 and 1."""


def tree_sides(mechanism: Quadtree, domain: Domain) -> tuple[int, ...]:
    """Nodes per side of the complete tree, per depth."""
    halvings = 1 if mechanism.fan_out == 4 else 2
    return tuple(1 << min(halvings * depth, domain.order) for depth in range(len(mechanism.level_weights(domain)[0])))


@dataclass(frozen=True, kw_only=True)
class TreeNoise:
    """Variances in a complete quadtree. PUBLIC.

    Attributes:
        sides: nodes per side, per depth.
        variance: of a node's count, per depth: by least squares from its own and all deeper measurements, or from its own.
        consistent: whether it is by least squares.
    """

    sides: tuple[int, ...]
    variance: tuple[float, ...]
    consistent: bool

    @classmethod
    def of(cls, mechanism: Quadtree, domain: Domain, budget: PureBudget, contributions: int) -> TreeNoise:
        """What a mechanism would have with a budget; nodes without a measurement have the sum of their children's variances."""
        weights, _ = mechanism.level_weights(domain)
        own = [laplace_variance(contributions / epsilon) if epsilon else math.inf for epsilon in budget.split(weights)]
        sides, consistent = tree_sides(mechanism, domain), mechanism.least_squares or math.isinf(own[-1])
        variance = own[-1:]
        for each, parts in zip(own[-2::-1], list(_fans(sides))[::-1], strict=True):
            below = parts * variance[0]
            variance.insert(0, 1 / (1 / each + 1 / below) if consistent or math.isinf(each) else each)
        return cls(sides=sides, variance=tuple(variance), consistent=consistent)

    @property
    def added(self) -> float:
        """The most variance that the descendants of one node add, one family per depth."""
        return sum(parts * each for parts, each in zip(_fans(self.sides), self.variance[1:], strict=True))


def _fans(sides: tuple[int, ...]) -> Iterable[int]:
    """Children of a node, per depth."""
    return ((below // side) ** 2 for side, below in pairwise(sides))


@lru_cache(maxsize=64)
def answer_variance(boxes: Boxes, noise: TreeNoise) -> Floats:
    """(q,) variance of the noise in the answers of a complete tree. PUBLIC, so it may be kept.

    With least squares the error of a child is 1/f of its parent's, plus u - (mean of u over its f siblings and itself), with an
    independent u of variance V_d (see `Spread`). If a is the share of a node's area that lies in a box, which is the mean of its
    children's, then the error of the answer is the root's times its a, plus the sum of (a - the parent's a) u over all other
    nodes. Its variance is V_0 S_0 + sum over d > 0 of V_d (S_d - f S_(d - 1)), with S_d the sum of a**2 over the nodes of depth d.
    """
    if not noise.consistent:
        ends = [_none] * (len(noise.sides) - 1) + [np.multiply]
        levels = zip(noise.sides, noise.variance, [np.multiply] * len(ends), ends, strict=True)
        return canonical_variance(boxes, levels)
    squares = [grid_cover(boxes, side).squares for side in noise.sides]
    found = noise.variance[0] * squares[0]
    for parts, each, (above, here) in zip(_fans(noise.sides), noise.variance[1:], pairwise(squares), strict=True):
        found = found + (each if math.isfinite(each) else 0.0) * np.maximum(here - parts * above, 0)
    return np.asarray(found)


def canonical_variance(boxes: Boxes, levels: Iterable[Level]) -> Floats:
    """(q,) variance of canonical answers, root first: whole nodes under no whole node, and cut leaves by their squared share."""
    noise, above, size = np.zeros(len(boxes)), np.zeros((len(boxes), 4), np.int64), 1
    for side, variance, kept, leaves in levels:
        cover = grid_cover(boxes, side)
        above, size, whole = above * (side // size), side, cover.whole()
        noise += variance * (_inside(kept, whole) - _inside(kept, above) + cover.cut(leaves))
        above = whole
    return noise


def _none(row: Integers, column: Integers) -> Integers:
    return np.zeros(np.broadcast_shapes(row.shape, column.shape), np.int64)


def _inside(sums: Sums, rectangles: Integers) -> Integers:
    """(q,) sums of values in (q, 4) rectangles of whole cells."""
    west, south, east, north = rectangles.T
    return np.asarray(sums(north, east) - sums(south, east) - sums(north, west) + sums(south, west))
