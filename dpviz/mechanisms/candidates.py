"""Candidates for private tuning: settings of mechanisms whose expected error on boxes can be written down."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.data.corner_counts import CornerCounts
from dpviz.mechanisms.base import PointMechanism
from dpviz.mechanisms.box_shares import Asked, Integers, Sums
from dpviz.mechanisms.grid_bounds import Expected, expected_grid, grid_bias, grid_cover
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.mechanisms.points.uniform_grid import UniformGrid
from dpviz.mechanisms.tree_noise import TreeNoise, answer_variance, canonical_variance, tree_sides
from dpviz.mechanisms.tuning import Candidate
from dpviz.privacy.budget import PureBudget
from dpviz.space.domain import Domain

Mask = NDArray[np.bool_]


class ReleasableCandidate(Candidate, Protocol):
    """A candidate together with the mechanism that it stands for."""

    @property
    def mechanism(self) -> PointMechanism:
        """The settings that release it."""

    @property
    def value(self) -> float:
        """What is tuned."""

    def nodes(self, domain: Domain) -> int:
        """How many nodes its release has at most."""


@dataclass(frozen=True, kw_only=True)
class GridCandidate:
    """A uniform grid of a fixed size."""

    mechanism: UniformGrid

    @property
    def value(self) -> int:
        """Cells per side."""
        return self.mechanism.side or 1

    def nodes(self, domain: Domain) -> int:  # noqa: ARG002
        """Its cells, and the groups of 2 x 2 above them."""
        return sum((-(-self.value >> level)) ** 2 for level in range(max(1, (self.value - 1).bit_length()) + 1))

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """See `expected_grid`, "tight"."""
        return expected_grid(asked, self.value, budget)


@dataclass(frozen=True, kw_only=True)
class TreeCandidate:
    """A quadtree.

    Attributes:
        mechanism: its settings.
    """

    mechanism: Quadtree

    def nodes(self, domain: Domain) -> int:
        """As many as the complete tree has."""
        return sum(side**2 for side in tree_sides(self.mechanism, domain))


@dataclass(frozen=True, kw_only=True)
class HeightCandidate(TreeCandidate):
    """A quadtree of a fixed height, of which nothing is pruned.

    Bound: the root of bias**2 + variance, with the bias of its leaves without noise, and the variance that its release would
    state for its answers, which follows from its settings.

    Privacy:
        Neither partitions nor variances depend on the records, so that `expected_grid`'s proof holds as it is.
    """

    @property
    def value(self) -> int:
        """The height."""
        return self.mechanism.height

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """Bounds for every box at once."""
        noise = TreeNoise.of(self.mechanism, asked.points.domain, budget, asked.points.contributions)
        error = np.sqrt(grid_bias(asked, noise.sides[-1]) ** 2 + answer_variance(asked.boxes, noise))
        return Expected(error=error, moved=grid_cover(asked.boxes, noise.sides[-1]).most_cut)


@dataclass(frozen=True, kw_only=True)
class PruningCandidate(TreeCandidate):
    """A quadtree of a fixed height, pruned or not.

    Bound: the root of bias**2 + variance. The bias is that of the tree without noise, where nodes with fewer than `prune` true
    records are leaves. The variance is that of the canonical answer, every node with the variance that it has from its own and
    all counts below it; least squares does at least as well (Gauss-Markov), and without it a node has its own count alone.
    That pruning looks at noisy counts is left out.

    Privacy:
        Without pruning the tree is public, so variances are, and a record changes the bias by at most 1 in a box that cuts its
        leaf (see `expected_grid`). With pruning below t (rounded up to T >= 1), one more record can turn one node from a leaf
        into an inner node, at T - 1 records; only in boxes that cut it does this change anything. The parts of its T records that are
        counted in a box lie between 0 and T before and after, so that the bias changes by T at most. The variance loses z of
        this node or gains what new leaves add: below it only a node that holds all T records is split again, so at most the
        nodes of one family per depth are added: W = max(z, f sum of z over depths), with f parts per step. The root of
        b**2 + V is the length of (b, root of V), so it changes by at most T + root of W; by 1 if no leaf is split.
    """

    @property
    def value(self) -> float:
        """The threshold."""
        return self.mechanism.prune

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """Bounds for every box at once, level by level."""
        noise = TreeNoise.of(self.mechanism, asked.points.domain, budget, asked.points.contributions)
        counts = _counts(asked, noise.sides)
        levels = _kept(counts, self.mechanism.prune)
        ends = [_sums(np.where(leaf, count, 0)) for count, (_, leaf) in zip(counts, levels, strict=True)]
        answer = np.sum([grid_cover(asked.boxes, side).weighted(each) for side, each in zip(noise.sides, ends, strict=True)], axis=0)
        masks = ((_sums(kept), _sums(leaf)) for kept, leaf in levels)
        known = ((side, each, *sums) for side, each, sums in zip(noise.sides, noise.variance, masks, strict=True))
        error = np.sqrt((answer - asked.truth) ** 2 + canonical_variance(asked.boxes, known))
        return Expected(error=error, moved=self._moved(asked, noise))

    def _moved(self, asked: Asked, noise: TreeNoise) -> float:
        if not self.mechanism.prune:
            return grid_cover(asked.boxes, noise.sides[-1]).most_cut
        cut = max(grid_cover(asked.boxes, side).most_cut for side in noise.sides)
        return cut * (max(math.ceil(self.mechanism.prune), 1) + math.sqrt(max(noise.added, *noise.variance)))


def _counts(asked: Asked, sides: tuple[int, ...]) -> list[Integers]:
    """Per depth, (side, side) true counts of the nodes of a complete tree. PRIVATE."""
    lines = np.arange(0, asked.points.domain.side + 1, asked.points.domain.side // sides[-1], dtype=np.int32)
    sums = CornerCounts(points=asked.points, columns=lines, rows=lines).table
    return [np.diff(np.diff(sums[::step, ::step], axis=0), axis=1) for step in (sides[-1] // side for side in sides)]


def _kept(counts: list[Integers], prune: float) -> list[tuple[Mask, Mask]]:
    """Per depth, (side, side) which nodes a tree pruned at true counts has, and which of these are leaves. PRIVATE."""
    levels, kept = [], np.ones(counts[0].shape, np.bool_)
    for depth, count in enumerate(counts):
        last = depth == len(counts) - 1
        leaf = kept if last else kept & (count < prune)
        levels.append((kept, leaf))
        if not last:
            fan = len(counts[depth + 1]) // len(count)
            kept = np.kron(kept & ~leaf, np.ones((fan, fan), np.bool_))
    return levels


def _sums(cells: NDArray[Any]) -> Sums:
    """Sums of (r, c) whole values."""
    sums = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), np.int64)
    np.cumsum(np.cumsum(cells, axis=0, dtype=np.int64), axis=1, out=sums[1:, 1:])
    return lambda row, column: sums[row, column]


def quadtree_height(value: float, domain: Domain) -> HeightCandidate:
    """A quadtree of this height, or the largest that the lattice has room for."""
    return HeightCandidate(mechanism=Quadtree(height=min(int(value), domain.order)))


def grid_size(value: float, domain: Domain) -> GridCandidate:
    """A uniform grid of so many cells per side, or as many as the lattice has."""
    return GridCandidate(mechanism=UniformGrid(side=min(int(value), domain.side)))


def pruning_threshold(value: float, domain: Domain) -> PruningCandidate:  # noqa: ARG001
    """The default quadtree, pruned below this estimate; 0 is off."""
    return PruningCandidate(mechanism=Quadtree(prune=value))


@dataclass(frozen=True, kw_only=True)
class Family:
    """One setting that can be tuned.

    Attributes:
        values: to choose from unless said otherwise.
        candidate: from a value and a domain.
        whole: values must be whole numbers.
    """

    values: tuple[float, ...]
    candidate: Callable[[float, Domain], ReleasableCandidate]
    whole: bool = True


FAMILIES: dict[str, Family] = {
    "quadtree height": Family(values=tuple(range(2, 11)), candidate=quadtree_height),
    "grid size": Family(values=tuple(1 << step for step in range(2, 10)), candidate=grid_size),
    "pruning threshold": Family(values=(0, 8, 16, 32, 64), candidate=pruning_threshold, whole=False),
}
"""What can be tuned, by name. A new one is one candidate and one line here."""
