"""The two-dimensional Haar wavelet in whole numbers, its inverse, and what noise on it does to sums over boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.space.tree import Tree


def coefficients(counts: Integers) -> Integers:
    """Unnormalised Haar coefficients of a (side, side) table, side a power of two.

    Along each axis: the sum of all, then for every node of the binary tree over the axis, coarsest first, the sum of its lower
    half minus that of its upper half; in two dimensions the products of both. One more record changes one coefficient per pair
    of levels, (1 + log2 side)**2 in all, each by 1 or -1.

    >>> coefficients(np.array([[1, 2], [3, 4]])).tolist()
    [[10, -2], [-4, 0]]
    """
    return np.ascontiguousarray(_forward(np.ascontiguousarray(_forward(counts).T)).T)


def table(noisy: NDArray[np.int64]) -> Floats:
    """The (side, side) table that (side, side) coefficients stand for."""
    return np.ascontiguousarray(_backward(np.ascontiguousarray(_backward(noisy.astype(np.float64)).T)).T)


def _forward(rows: NDArray[Any]) -> NDArray[Any]:
    """Coefficients along the first axis."""
    found, sums = np.empty_like(rows), rows
    while len(sums) > 1:
        lower, upper = sums[0::2], sums[1::2]
        found[len(lower) : 2 * len(lower)] = lower - upper
        sums = lower + upper
    found[0] = sums[0]
    return found


def _backward(rows: Floats) -> Floats:
    """Values along the first axis."""
    sums = rows[:1]
    while len(sums) < len(rows):
        difference = rows[len(sums) : 2 * len(sums)]
        sums = np.stack([(sums + difference) / 2, (sums - difference) / 2], axis=1).reshape(2 * len(sums), -1)
    return sums


@dataclass(frozen=True, kw_only=True)
class WaveletSpread:
    """The spread of sums over boxes where every coefficient has independent noise of one variance.

    A sum over columns x rows weighs the coefficient of two nodes by the product of one weight per axis, so its variance is the
    product of two sums of squares. Along an axis, a node of 2 s places weighs (its lower half's overlap - its upper half's) /
    (2 s), and the total weighs length / side: only nodes that an end of the range cuts count.

    Attributes:
        order: the table has 2**order places per axis.
        variance: of the noise on a coefficient.
        width: lattice cells per place.
    """

    order: int
    variance: float
    width: int

    def variances(self, tree: Tree) -> Floats:
        """(n,) variance of every node's estimate."""
        return self.boxes(tree.rectangles().astype(np.float64))

    def boxes(self, boxes: Floats) -> Floats:
        """(q,) variances of sums over (q, 4) west, south, east, north in lattice units, places cut by share."""
        west, south, east, north = boxes.T / self.width
        return self.variance * self._squares(west, east) * self._squares(south, north)

    def sums(self, share: Floats) -> float:
        """Variance of the sum of (2**order, 2**order) places, [row, column], each counted by its share."""
        levels = np.arange(self.order)
        sizes = np.concatenate([[2.0**self.order], np.repeat(2.0 ** (self.order - levels), 2**levels)])
        weights = _forward(np.ascontiguousarray((_forward(share) / sizes[:, None]).T)) / sizes[:, None]
        return self.variance * float((weights**2).sum())

    def _squares(self, low: Floats, high: Floats) -> Floats:
        """(q,) sums of squared weights of ranges along an axis."""
        total = ((high - low) / (1 << self.order)) ** 2
        for level in range(self.order):
            size = 1 << (self.order - level)
            first, last = low // size, np.minimum(high, (1 << self.order) - 0.5) // size
            at_low, at_high = self._weight(first, size, low, high), self._weight(last, size, low, high)
            total += at_low**2 + np.where(first == last, 0.0, at_high**2)
        return np.asarray(total)

    @staticmethod
    def _weight(node: Floats, size: int, low: Floats, high: Floats) -> Floats:
        begin, middle, end = node * size, node * size + size / 2, (node + 1) * size
        lower = np.maximum(np.minimum(high, middle) - np.maximum(low, begin), 0.0)
        upper = np.maximum(np.minimum(high, end) - np.maximum(low, middle), 0.0)
        return np.asarray((lower - upper) / size)
