"""Least squares on the product of two trees: counts of every pair of a place and a slot add up in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpviz.arrays import Floats
from dpviz.privacy.consistency import SMALLEST_VARIANCE, least_squares
from dpviz.space.hierarchy import Hierarchy

_MOST_NUMBERS = 2**22  # of weights that are held at once


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeFit:
    """The least squares fit of a tree, a linear map from noisy counts to consistent ones, if each level has one variance.

    It is the map of `dpviz.privacy.consistency.least_squares`, without counts. Bottom-up, the estimate of a node from its subtree is
    z = own y + (1 - own) S, where y is its noisy count and S the sum of its children's z. Top-down, its final estimate is
    z + share (f - S), where f is that of its parent and S the sum of z over the parent's children.

    Attributes:
        hierarchy: of n nodes, all leaves at one depth.
        own: (n,) weight of a node's own noisy count: 1 for a leaf, 0 where the level is not measured.
        share: (n,) the share that a node gets of its parent's difference: 1 for the root.
    """

    hierarchy: Hierarchy
    own: Floats
    share: Floats

    @classmethod
    def of_variances(cls, hierarchy: Hierarchy, variances: Floats | Sequence[float]) -> TreeFit:
        """Make the fit for one variance per depth, root first; only their ratios matter.

        Args:
            hierarchy: of n nodes, all leaves at one depth.
            variances: at least 0, of which those below 1e-12 are raised to it; infinite for a depth that is not measured. Leaves are
                measured.
        """
        known = np.maximum(np.asarray(variances, np.float64), SMALLEST_VARIANCE)
        of_nodes = (known / known.min())[hierarchy.depth]
        _, spread = least_squares(hierarchy, np.zeros(len(hierarchy)), of_nodes)
        return cls(hierarchy=hierarchy, own=spread.slack / of_nodes, share=spread.share)

    def fit(self, noisy: Floats) -> Floats:
        """Return (n, k) consistent counts of k columns of (n, k) noisy ones, which are finite (and ignored where not measured)."""
        tree, count, sums = self.hierarchy, noisy * self.own[:, None], []
        for depth in range(tree.height - 1, -1, -1):
            parents = tree.at_depth(depth)
            sums.append(tree.sum_children(depth, count[tree.at_depth(depth + 1)]))
            count[parents] += (1 - self.own[parents])[:, None] * sums[-1]
        for depth, total in enumerate(reversed(sums)):
            children = tree.at_depth(depth + 1)
            difference = tree.to_children(depth, count[tree.at_depth(depth)] - total)
            difference *= self.share[children][:, None]
            count[children] += difference
        return count

    def squares_of_nodes(self) -> Floats:
        """Return (n, levels) the sums of squared weights with which the noise of each level enters each node's estimate.

        For noise of variance 1 on one level alone, this is the variance of the estimate. Let c be the variance of z, C its sum over
        siblings, and h the derivative of the parent's estimate f by S. Then cov(f, z) = h c, which gives the variance of z + share (f - S).
        """
        tree = self.hierarchy
        c = np.zeros((len(tree), tree.height + 1))
        c[np.arange(len(tree)), tree.depth] = self.own**2
        sums = [np.zeros(0)] * tree.height
        for depth in range(tree.height - 1, -1, -1):
            parents = tree.at_depth(depth)
            sums[depth] = tree.sum_children(depth, c[tree.at_depth(depth + 1)])
            c[parents] += (1 - self.own[parents])[:, None] ** 2 * sums[depth]
        variance, by_z = c.copy(), np.ones(1)  # `by_z`: the derivative of the final estimate by z
        for depth in range(tree.height):
            parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
            share, h = self.share[children], tree.to_children(depth, (1 - self.own[parents]) * by_z)
            of_parent, total = tree.to_children(depth, variance[parents]), tree.to_children(depth, sums[depth])
            s, twice = share[:, None], (2 * share * h)[:, None]
            variance[children] = (
                s**2 * of_parent + (1 - s) ** 2 * c[children] + s**2 * (total - c[children]) + twice * (c[children] - s * total)
            )
            by_z = 1 - share * (1 - h)
        return variance

    def squares_of_sums(self, weights: Floats) -> Floats:
        """Return (q, levels) the same of q weighted sums of estimates.

        The map is run backwards: `pull` is the weight of a final estimate in the sum, `on_z` that of the estimate from the subtree.

        Args:
            weights: (n, q) the weight of each node in each sum.
        """
        tree = self.hierarchy
        pull, passed = weights.copy(), np.zeros_like(weights)  # `passed`: the part of `pull` that comes from the children
        for depth in range(tree.height - 1, -1, -1):
            parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
            passed[parents] = tree.sum_children(depth, self.share[children][:, None] * pull[children])
            pull[parents] += passed[parents]
        on_z = pull
        for depth in range(tree.height):
            parents, children = tree.at_depth(depth), tree.at_depth(depth + 1)
            on_z[children] += tree.to_children(depth, (1 - self.own[parents])[:, None] * on_z[parents] - passed[parents])
        squares = (self.own[:, None] * on_z) ** 2
        return np.stack([squares[tree.at_depth(depth)].sum(axis=0) for depth in range(tree.height + 1)], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductSpread:
    """The variances of all estimates of `fit_product`, for noise of any variance on each pair of levels.

    An estimate is a sum over pairs of levels of (weights of places) x (weights of slots) x noisy counts, so that its variance is the sum
    over pairs of levels of their noise's variance times the two sums of squared weights. That holds for whatever variances the fit was
    made with; it is best if these are a product, place level by slot level.

    Attributes:
        places: the fit along places, n nodes of L levels.
        slots: the fit along slots, s nodes of K levels.
        noise: (L, K) variance of the noise on each count of a pair of levels; 0 where the pair is not measured.
    """

    places: TreeFit
    slots: TreeFit
    noise: Floats

    @classmethod
    def of_noise(cls, places: Hierarchy, slots: Hierarchy, noise: Floats) -> ProductSpread:
        """Make both fits for (L, K) variances of the noise, infinite where a pair is not measured; the pair of the finest levels is.

        If the variances are a product, the fits are the best. Else their weights are those of the product that has the same last row and
        column, and the variances of the estimates are exact all the same.
        """
        fits = TreeFit.of_variances(places, noise[:, -1]), TreeFit.of_variances(slots, noise[-1])
        return cls(places=fits[0], slots=fits[1], noise=np.where(np.isfinite(noise), noise, 0.0))

    def with_slots_weighed(self, weights: Floats) -> ProductSpread:
        """Return the spread of places alone, each with the sum of its slots by (s,) weights, of either sign: noise per level of places."""
        noise = self.noise @ self.slots.squares_of_sums(weights[:, None])[0]
        return replace(self, slots=TreeFit.of_variances(Hierarchy.of_levels(()), [1.0]), noise=noise[:, None])

    def of_nodes(self) -> Floats:
        """Return the (n, s) variances of every place by every slot."""
        return np.asarray(self.places.squares_of_nodes() @ self.noise @ self.slots.squares_of_nodes().T)

    def of_ranges(self, places: Any, slots: Floats) -> Floats:
        """Return the (q,) variances of sums over places and slots: sum of place weight x slot weight x count.

        Args:
            places: (q, n) weights of places, a sparse matrix.
            slots: (q, s) weights of slots, of either sign.
        """
        by_slots = self.slots.squares_of_sums(np.ascontiguousarray(slots.T)) @ self.noise.T  # (q, L)
        rows, at_once = scipy.sparse.csr_array(places), max(_MOST_NUMBERS // len(self.places.own), 1)
        parts = [rows[start : start + at_once].toarray().T for start in range(0, rows.shape[0], at_once)]
        by_places = np.concatenate(
            [self.places.squares_of_sums(np.ascontiguousarray(part)) for part in parts] or [np.zeros((0, len(self.noise)))]
        )
        return np.asarray((by_places * by_slots).sum(axis=1))

    def variances(self, tree: Hierarchy) -> Floats:  # noqa: ARG002
        """Return the (n,) variances of places, all slots together, as `Spread.variances` does."""
        return np.asarray(self.places.squares_of_nodes() @ self.noise @ self.slots.squares_of_nodes()[0])

    def of_sums(self, tree: Hierarchy, weights: Any) -> Floats:  # noqa: ARG002
        """Return the (q,) variances of sums of places, all slots together, from (q, n) weights, as `Spread.of_sums` does."""
        whole = np.zeros((weights.shape[0], len(self.slots.own)))
        whole[:, 0] = 1
        return self.of_ranges(weights, whole)


def fit_product(places: TreeFit, slots: TreeFit, noisy: Floats) -> Floats:
    """Find the consistent counts nearest to noisy counts of every pair of a place and a slot, by weighted least squares in linear time.

    Let S stack the sums of places and R those of slots: row (p, c) of the Kronecker product S x R adds up the cells of place p and slot c.
    If pair (l, k) of levels has the variance a_l b_k, the weights are a Kronecker product W x V, too, and the best estimates are
    ((S'WS)^-1 S'W) x ((R'VR)^-1 R'V) applied to the noisy counts, since ((S x R)' (W x V) (S x R))^-1 = (S'WS)^-1 x (R'VR)^-1. That is
    the fit along places, for each slot by itself, and then the fit along slots, for each place by itself.

    Args:
        places: the fit along places, n nodes.
        slots: the fit along slots, s nodes.
        noisy: (n, s) unbiased noisy counts; NaN where a pair of levels is not measured, which is where one of the two levels is not.

    Returns:
        (n, s) counts that add up along places and along slots.

    >>> halves = Hierarchy.of_levels((np.zeros(2, int),))
    >>> fit = TreeFit.of_variances(halves, [1.0, 1.0])
    >>> fit_product(fit, fit, np.array([[9.0, 4.0, 5.0], [4.0, 1.0, 3.0], [5.0, 3.0, 2.0]])).round(9).tolist()
    [[9.0, 4.0, 5.0], [4.0, 1.0, 3.0], [5.0, 3.0, 2.0]]
    """
    by_place = places.fit(np.where(np.isnan(noisy), 0.0, noisy))
    return np.ascontiguousarray(slots.fit(np.ascontiguousarray(by_place.T)).T)
