"""Candidates for private tuning: settings of mechanisms whose expected error on boxes can be written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms.box_shares import Asked, Boxes, Cover, Integers, running_sums
from dpviz.mechanisms.grid_bounds import Expected, expected_grid, grid_cover
from dpviz.mechanisms.quadtree import Quadtree
from dpviz.mechanisms.tuning import Candidate
from dpviz.mechanisms.uniform_grid import UniformGrid
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.space.domain import Domain
from dpviz.space.tree import Lines

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class ReleasableCandidate(Candidate, Protocol):
    """A candidate together with the mechanism that it stands for."""

    @property
    def mechanism(self) -> Any:
        """The settings that release it, any point mechanism's."""


@dataclass(frozen=True, kw_only=True)
class GridCandidate:
    """A uniform grid of a fixed size."""

    mechanism: UniformGrid

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """See `expected_grid`, "tight"."""
        return expected_grid(asked, self.mechanism.side or 1, budget)


@dataclass(frozen=True, kw_only=True)
class PublicCandidate:
    """Any mechanism whose partitions are public and form a grid: a quadtree of a fixed height, say.

    Bound: the root of bias**2 + variance, with the bias of the grid without noise, and the variance that the mechanism itself
    states for its answers: that of a release of no records at all, which is public.

    Privacy:
        The partitions and the variance do not depend on the records, so that `expected_grid`'s proof holds as it is.
    """

    mechanism: Any

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """Bounds for every box at once; raises `SettingError` if the partitions do not form a grid."""
        (columns, rows), cover, variance = _of_nobody(self.mechanism, asked.boxes, budget.epsilon, asked.points.contributions)
        bias = cover.weighted(running_sums(asked.points, columns, rows)) - asked.truth
        return Expected(error=np.sqrt(bias**2 + variance), moved=cover.most_cut)


@lru_cache(maxsize=64)
def _of_nobody(mechanism: Any, boxes: Boxes, epsilon: Fraction, contributions: int) -> tuple[tuple[Lines, Lines], Cover, Floats]:
    """The grid of a release of no records, how boxes lie over it and the (q,) variances of their answers. PUBLIC."""
    none = np.zeros(0, np.int32)
    empty = PointCounts(domain=boxes.domain, column=none, row=none, count=none.astype(np.int64), contributions=contributions)
    release = mechanism.release(empty, PureBudget(epsilon), Entropy.seeded(0))
    lines = release.tree.lines
    if lines is None or release.approximate is not None:
        raise SettingError(f"{mechanism.title} cannot be tuned like this: its partitions must be public and form a grid.")
    _, spread = release.answer(boxes.domain.coordinates(boxes.lattice), spread=True)
    return lines, Cover.of(boxes.lattice, *lines), spread**2


@dataclass(frozen=True, kw_only=True)
class QuadtreeCandidate:
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

    mechanism: Quadtree

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """Bounds for every box at once, level by level."""
        sides, variance = self._levels(asked.points.domain, budget, asked.points.contributions)
        lines = _lines(asked.points.domain, sides[-1])
        sums = running_sums(asked.points, lines, lines)
        if self.mechanism.prune:
            counts = [np.diff(np.diff(sums[::step, ::step], axis=0), axis=1) for step in (sides[-1] // side for side in sides)]
            levels = _kept(counts, self.mechanism.prune)
            parts = [
                grid_cover(asked.boxes, len(kept)).weighted(_sums(np.where(leaf, count, 0)))
                for count, (kept, leaf) in zip(counts, levels, strict=True)
            ]
            answer, noise = np.sum(parts, axis=0), _noise(asked.boxes, variance, levels)
        else:
            answer, noise = grid_cover(asked.boxes, sides[-1]).weighted(sums), _public_noise(asked.boxes, sides, variance)
        error = np.sqrt((answer - asked.truth) ** 2 + noise)
        return Expected(error=error, moved=self._moved(asked.boxes, sides, variance))

    def _levels(self, domain: Domain, budget: PureBudget, contributions: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Nodes per side and variance of a node from its own and all deeper counts, per depth. PUBLIC."""
        weights, _ = self.mechanism.level_weights(domain)
        own = [laplace_variance(contributions / epsilon) if epsilon else math.inf for epsilon in budget.split(weights)]
        halvings = 1 if self.mechanism.fan_out == 4 else 2
        sides = [1 << min(halvings * depth, domain.order) for depth in range(len(weights))]
        variance = [own[-1]]
        for each, (side, below) in zip(own[-2::-1], list(pairwise(sides))[::-1], strict=True):
            parts = (below // side) ** 2 * variance[0]
            pooled = 1 / (1 / each + 1 / parts) if self.mechanism.least_squares or math.isinf(each) else each
            variance.insert(0, pooled)
        return tuple(sides), tuple(variance)

    def _moved(self, boxes: Boxes, sides: tuple[int, ...], variance: tuple[float, ...]) -> float:
        if not self.mechanism.prune:
            return grid_cover(boxes, sides[-1]).most_cut
        added = sum((below // side) ** 2 * each for (side, below), each in zip(pairwise(sides), variance[1:], strict=True))
        cut = max(grid_cover(boxes, side).most_cut for side in sides)
        return cut * (max(math.ceil(self.mechanism.prune), 1) + math.sqrt(max(added, *variance)))


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


def _noise(boxes: Boxes, variance: Sequence[float], levels: list[tuple[Mask, Mask]]) -> Floats:
    """(q,) variance of canonical answers: whole nodes under no whole node, and cut leaves by their squared share."""
    noise, above, size = np.zeros(len(boxes)), np.zeros((len(boxes), 4), np.int64), 1
    for each, (kept, leaf) in zip(variance, levels, strict=True):
        cover, here = grid_cover(boxes, len(kept)), _sums(kept)
        above, size = above * (len(kept) // size), len(kept)
        whole = cover.whole()
        noise += each * (_inside(here, whole) - _inside(here, above) + cover.cut(_sums(leaf)))
        above = whole
    return noise


@lru_cache(maxsize=64)
def _public_noise(boxes: Boxes, sides: tuple[int, ...], variance: tuple[float, ...]) -> Floats:
    """The same for a tree that nothing is pruned from; public, so it may be kept."""
    kept = [np.ones((side, side), np.bool_) for side in sides]
    return _noise(boxes, variance, [(each, each if each is kept[-1] else ~each) for each in kept])


def _lines(domain: Domain, side: int) -> Lines:
    """(side + 1,) evenly spaced lattice lines; side a power of two."""
    return np.arange(0, domain.side + 1, domain.side // side, dtype=np.int32)


def _sums(cells: NDArray[Any]) -> Integers:
    """(r + 1, c + 1) running sums of (r, c) whole values."""
    sums = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), np.int64)
    np.cumsum(np.cumsum(cells, axis=0, dtype=np.int64), axis=1, out=sums[1:, 1:])
    return sums


def _inside(sums: Integers, rectangles: Integers) -> Integers:
    """(q,) sums of values in (q, 4) rectangles of whole cells."""
    west, south, east, north = rectangles.T
    return np.asarray(sums[north, east] - sums[south, east] - sums[north, west] + sums[south, west])


def quadtree_height(value: float, domain: Domain) -> PublicCandidate:
    """A quadtree of this height, or the largest that the lattice has room for."""
    return PublicCandidate(mechanism=Quadtree(height=min(int(value), domain.order)))


def grid_size(value: float, domain: Domain) -> GridCandidate:
    """A uniform grid of so many cells per side, or as many as the lattice has."""
    return GridCandidate(mechanism=UniformGrid(side=min(int(value), domain.side)))


def pruning_threshold(value: float, domain: Domain) -> QuadtreeCandidate:  # noqa: ARG001
    """The default quadtree, pruned below this estimate; 0 is off."""
    return QuadtreeCandidate(mechanism=Quadtree(prune=value))


@dataclass(frozen=True, kw_only=True)
class Family:
    """One setting that can be tuned.

    Attributes:
        setting: its name.
        values: to choose from unless said otherwise.
        candidate: from a value and a domain.
        whole: values must be whole numbers.
    """

    setting: str
    values: tuple[float, ...]
    candidate: Callable[[float, Domain], ReleasableCandidate]
    whole: bool = True


FAMILIES: dict[str, Family] = {
    "quadtree height": Family(setting="height", values=tuple(range(2, 11)), candidate=quadtree_height),
    "grid size": Family(setting="side", values=tuple(1 << step for step in range(2, 10)), candidate=grid_size),
    "pruning threshold": Family(setting="prune", values=(0, 8, 16, 32, 64), candidate=pruning_threshold, whole=False),
}
"""What can be tuned, by name. A new one is one candidate and one line here."""
