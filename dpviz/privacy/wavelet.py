"""The two-dimensional Haar wavelet transform in whole numbers, its inverse, and the variance of sums over boxes after noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.space.tree import Tree


def coefficients(counts: Integers) -> Integers:
    """The unnormalised Haar coefficients of a table of counts.

    Along one axis, the first coefficient is the sum of all entries. The other ones belong to the nodes of the binary tree over the axis,
    coarsest first: each is the sum of the node's lower half minus the sum of its upper half. In two dimensions, the transform is
    applied along both axes. Adding a record changes one coefficient per pair of levels, (1 + log2 side)**2 in all, each by 1 or -1.

    Args:
        counts: (side, side) whole numbers; side is a power of two.

    Returns:
        (side, side) coefficients.

    >>> coefficients(np.array([[1, 2], [3, 4]])).tolist()
    [[10, -2], [-4, 0]]
    """
    return np.ascontiguousarray(_forward(np.ascontiguousarray(_forward(counts).T)).T)


def table(noisy: NDArray[np.int64]) -> Floats:
    """The inverse of `coefficients`.

    Args:
        noisy: (side, side) coefficients.

    Returns:
        (side, side) the table with these coefficients; its entries need not be whole.

    >>> table(np.array([[10, -2], [-4, 0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return np.ascontiguousarray(_backward(np.ascontiguousarray(_backward(noisy.astype(np.float64)).T)).T)


def _forward(rows: NDArray[Any]) -> NDArray[Any]:
    """Coefficients along the first axis."""
    result, sums = np.empty_like(rows), rows
    while len(sums) > 1:
        lower, upper = sums[0::2], sums[1::2]
        result[len(lower) : 2 * len(lower)] = lower - upper
        sums = lower + upper
    result[0] = sums[0]
    return result


def _backward(rows: Floats) -> Floats:
    """Values along the first axis."""
    sums = rows[:1]
    while len(sums) < len(rows):
        difference = rows[len(sums) : 2 * len(sums)]
        sums = np.stack([(sums + difference) / 2, (sums - difference) / 2], axis=1).reshape(2 * len(sums), -1)
    return sums


@dataclass(frozen=True, kw_only=True)
class WaveletSpread:
    """The variance of sums over boxes, when every wavelet coefficient has independent noise of the same variance.

    A sum over a box of columns x rows is a weighted sum of the coefficients, in which the weight of a pair of nodes is the product
    of one weight per axis. So its variance is `variance` times the product, over the two axes, of the sum of squared weights. Along
    an axis, the coefficient of a node of 2 s entries has the weight (overlap of the range with its lower half - overlap with its
    upper half) / (2 s), and the total has the weight (length of the range) / side. So only nodes that contain an end of the range
    have a weight other than 0.

    Attributes:
        order: the table has 2**order entries per axis.
        variance: variance of the noise of each coefficient.
        width: lattice cells per table entry, along an axis.
    """

    order: int
    variance: float
    width: int

    def variances(self, tree: Tree) -> Floats:
        """(n,) variance of the estimate of every node of a tree of n nodes."""
        return self.boxes(tree.rectangles().astype(np.float64))

    def boxes(self, boxes: Floats) -> Floats:
        """(q,) variances of sums over boxes; a table entry that a box covers in part counts by the covered share of its area.

        Args:
            boxes: (q, 4) west, south, east, north in lattice units.
        """
        west, south, east, north = boxes.T / self.width
        return self.variance * self._squares(west, east) * self._squares(south, north)

    def of_sums(self, tree: Tree, weights: Any) -> Floats:
        """Compute the (q,) variances of weighted sums of nodes.

        Args:
            tree: of n nodes.
            weights: (q, n) the weight of each node in each sum, a sparse matrix.
        """
        weights = scipy.sparse.csr_array(weights)
        queries = (slice(start, end) for start, end in pairwise(weights.indptr.tolist()))
        return np.array([self._of_sum(tree, weights.indices[query], weights.data[query]) for query in queries])

    def _of_sum(self, tree: Tree, nodes: Integers, weight: Floats) -> float:
        """Variance of one sum over (k,) nodes, by the steps of the weights of all entries of the table, [row, column]."""
        side, shift = 1 << self.order, tree.order - self.order
        west, south, east, north = (tree.rectangles(nodes) >> shift).T
        steps = np.zeros((side + 1, side + 1))
        for row, column, sign in ((south, west, 1.0), (north, east, 1.0), (south, east, -1.0), (north, west, -1.0)):
            np.add.at(steps, (row, column), sign * weight)
        share, levels = steps.cumsum(0).cumsum(1)[:-1, :-1], np.arange(self.order)
        sizes = np.concatenate([[2.0**self.order], np.repeat(2.0 ** (self.order - levels), 2**levels)])
        weights = _forward(np.ascontiguousarray((_forward(share) / sizes[:, None]).T)) / sizes[:, None]
        return self.variance * float((weights**2).sum())

    def _squares(self, low: Floats, high: Floats) -> Floats:
        """(q,) sums of the squared weights of ranges along one axis."""
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
