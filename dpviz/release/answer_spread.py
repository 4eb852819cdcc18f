"""The exact variance of the noise in an answer, from the nodes that it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.privacy.consistency import Spread
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.space.ranges import Front
from dpviz.space.tree import Tree

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeErrors:
    """Errors of consistent counts.

    Attributes:
        spread: how they hang together.
        slack_sums: (n,) sum of the children's slack of each node.
    """

    spread: Spread
    slack_sums: Floats


Errors = Floats | TreeErrors | WaveletSpread
"""(n,) variances of independent counts, or how errors hang together."""


def errors_of(tree: Tree, spread: Spread | WaveletSpread | None, noise_variance: Floats) -> Errors:
    """What is known about the errors of a tree's counts."""
    if spread is None:
        return noise_variance
    if isinstance(spread, WaveletSpread):
        return spread
    total = np.zeros(len(tree))
    for depth in range(tree.height):
        total[tree.at_depth(depth)] = tree.sum_children(depth, spread.slack[tree.at_depth(depth + 1)])
    return TreeErrors(spread=spread, slack_sums=total)


def variances(tree: Tree, errors: Errors, fronts: list[Front], part: slice) -> Floats:
    """Variances of a batch of answers.

    Args:
        tree: of the release.
        errors: of its counts.
        fronts: the nodes that the queries touch, depth by depth from the root.
        part: the queries' numbers.
    """
    size = part.stop - part.start
    if isinstance(errors, TreeErrors):
        return _consistent(errors, fronts, part)
    if isinstance(errors, WaveletSpread):
        return np.array([errors.sums(_shares(tree, errors.order, fronts, query)) for query in range(part.start, part.stop)])
    terms = (np.bincount(front.query - part.start, front.ends * front.share**2 * errors[front.node], size) for front in fronts)
    return np.asarray(sum(terms, np.zeros(size)))


def _consistent(errors: TreeErrors, fronts: list[Front], part: slice) -> Floats:
    """One pass from the deepest front up to the root.

    For the part of a query inside a node, slope is its change per change of the node's count and rest the variance
    that is left when the node's count is fixed.
    """
    slope = rest = np.empty(0)
    below: Front | None = None
    for front in reversed(fronts):
        slope_here, rest_here = front.share.copy(), np.zeros(len(front.share))
        if below is not None:
            _collect(errors, (front, below), (slope, rest), (slope_here, rest_here))
        slope, rest, below = slope_here, rest_here, front
    variance = np.zeros(part.stop - part.start)
    if below is not None:
        variance[below.query - part.start] = slope**2 * errors.spread.root + rest
    return variance


def _collect(errors: TreeErrors, pair: tuple[Front, Front], known: tuple[Floats, Floats], here: tuple[Floats, Floats]) -> None:
    """Slopes and rests of the pairs that go on below, from those of their children; untouched children have slope 0."""
    (front, below), (slope, rest), (slope_here, rest_here) = pair, known, here
    size, on = len(front.node), ~front.ends
    slope_here[on] = np.bincount(below.origin, errors.spread.share[below.node] * slope, size)[on]
    own = errors.spread.slack[below.node] * slope * (slope - 2 * slope_here[below.origin])
    rest_here += np.bincount(below.origin, rest + own, size)
    rest_here[on] += slope_here[on] ** 2 * errors.slack_sums[front.node[on]]


def _shares(tree: Tree, order: int, fronts: list[Front], query: int) -> Floats:
    """(2**order, 2**order) share of each place of a grid in a query, [row, column]."""
    shift, side = tree.order - order, 1 << order
    steps = np.zeros((side + 1, side + 1))
    for front in fronts:
        here = np.flatnonzero((front.query == query) & front.ends)
        node, share = front.node[here], front.share[here]
        west, south, east, north = (line[node] >> shift for line in (tree.west, tree.south, tree.east, tree.north))
        for row, column, sign in ((south, west, 1.0), (north, east, 1.0), (south, east, -1.0), (north, west, -1.0)):
            np.add.at(steps, (row, column), sign * share)
    return np.asarray(steps.cumsum(0).cumsum(1)[:-1, :-1])
