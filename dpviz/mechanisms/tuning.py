"""Private tuning in two phases: choose one of a few candidates by its expected error, then release it with the remaining budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.indexes import CornerCounts
from dpviz.data.points import PointCounts
from dpviz.mechanisms.audit import TUNING, Added
from dpviz.mechanisms.base import Share, setting, shares_of
from dpviz.mechanisms.expected_error import Boxes, BoxQueries, Expected, Sums, expected_grid, grid_bias, grid_cover, tuning_boxes
from dpviz.mechanisms.points.base import PointMechanism, declared_total_setting, name_declared
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.mechanisms.points.uniform_grid import UniformGrid
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import laplace_variance
from dpviz.privacy.selection import LAWS, Scores, choice_step, choose, clipped_scores
from dpviz.space.domain import Domain

Level = tuple[int, float, Sums, Sums]
"""One depth of a tree: nodes per side, variance of a node's count, and sums of two 0/1 grids: the nodes of the tree, and its leaves."""


def tree_sides(mechanism: Quadtree, domain: Domain) -> tuple[int, ...]:
    """Return the number of nodes per side at each depth of the complete tree, root first."""
    halvings = 1 if mechanism.fan_out == 4 else 2
    return tuple(1 << min(halvings * depth, domain.order) for depth in range(len(mechanism.measured_weights(domain)[0])))


@dataclass(frozen=True, kw_only=True)
class TreeNoise:
    """Variances in a complete quadtree. PUBLIC.

    Attributes:
        sides: number of nodes per side at each depth.
        variance: variance of a node's count at each depth. With least squares the count follows from the node's own measurement and all
            measurements below it; else from its own measurement alone.
        consistent: whether counts are estimated by least squares.
    """

    sides: tuple[int, ...]
    variance: tuple[float, ...]
    consistent: bool

    @classmethod
    def of(cls, mechanism: Quadtree, domain: Domain, budget: PureBudget, contributions: int) -> TreeNoise:
        """Compute the variances of a quadtree's counts for a budget; an unmeasured node has the sum of its children's variances."""
        weights, _ = mechanism.measured_weights(domain)
        measured = [laplace_variance(contributions / epsilon) if epsilon else math.inf for epsilon in budget.split(weights)]
        sides, consistent = tree_sides(mechanism, domain), mechanism.least_squares or math.isinf(measured[-1])
        variance = measured[-1:]
        for own, parts in zip(measured[-2::-1], list(_children_per_node(sides))[::-1], strict=True):
            below = parts * variance[0]
            variance.insert(0, 1 / (1 / own + 1 / below) if consistent or math.isinf(own) else own)
        return cls(sides=sides, variance=tuple(variance), consistent=consistent)

    @property
    def added(self) -> float:
        """Largest variance that the descendants of one node add, if one set of siblings per depth is added."""
        return sum(parts * variance for parts, variance in zip(_children_per_node(self.sides), self.variance[1:], strict=True))


def _children_per_node(sides: tuple[int, ...]) -> Iterable[int]:
    """Return the number of children of a node at each depth."""
    return ((below // side) ** 2 for side, below in pairwise(sides))


@lru_cache(maxsize=64)
def answer_variance(boxes: Boxes, noise: TreeNoise) -> Floats:
    """Compute (q,) variances of the noise in the answers of a complete tree. PUBLIC, so the result may be cached.

    With least squares the error of a child is 1/f of its parent's error, plus u - (mean of u over the parent's f children). Each node
    has an independent u of variance V_d (see `Spread`). Let a be the share of a node's area that lies in a box; a is the mean of the
    children's a. Then the error of the answer is the root's error times the root's a, plus the sum of (a - the parent's a) u over all
    other nodes. The variance of the answer is V_0 S_0 + sum over d > 0 of V_d (S_d - f S_(d - 1)), where S_d is the sum of a**2 over
    the nodes of depth d.
    """
    if not noise.consistent:
        ends = [lambda row, column: np.zeros(np.broadcast_shapes(row.shape, column.shape), np.int64)] * (len(noise.sides) - 1) + [
            np.multiply
        ]
        levels = zip(noise.sides, noise.variance, [np.multiply] * len(ends), ends, strict=True)
        return canonical_variance(boxes, levels)
    squares = [grid_cover(boxes, side).squares for side in noise.sides]
    total = noise.variance[0] * squares[0]
    for parts, variance, (above, own) in zip(_children_per_node(noise.sides), noise.variance[1:], pairwise(squares), strict=True):
        total = total + (variance if math.isfinite(variance) else 0.0) * np.maximum(own - parts * above, 0)
    return np.asarray(total)


def canonical_variance(boxes: Boxes, levels: Iterable[Level]) -> Floats:
    """Compute (q,) variances of canonical answers.

    The canonical answer to a box adds up the largest nodes that lie wholly inside the box, and the share of each leaf that the box cuts.
    A whole node adds its variance, a cut leaf its variance times its squared share. `levels` begin with the root.
    """
    noise, above, size = np.zeros(len(boxes)), np.zeros((len(boxes), 4), np.int64), 1
    for side, variance, kept, leaves in levels:
        cover = grid_cover(boxes, side)
        above, size, whole = above * (side // size), side, cover.whole()
        noise += variance * (_sum_inside(kept, whole) - _sum_inside(kept, above) + cover.cut(leaves))
        above = whole
    return noise


def _sum_inside(sums: Sums, rectangles: Integers) -> Integers:
    """Return (q,) sums of values in (q, 4) rectangles of whole cells."""
    west, south, east, north = rectangles.T
    return np.asarray(sums(north, east) - sums(south, east) - sums(north, west) + sums(south, west))


SMALLEST_TOTAL = 100
PAPER_SIZES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.8)


class Candidate(Protocol):
    """A way to release the counts, with a formula for its expected error on boxes."""

    @property
    def mechanism(self) -> PointMechanism:
        """The mechanism that releases this candidate."""

    @property
    def value(self) -> float:
        """Value of the setting that is tuned."""

    def nodes(self, domain: Domain) -> int:
        """Return the largest number of nodes that the candidate's release can have."""

    def expected(self, queries: BoxQueries, budget: PureBudget) -> Expected:
        """Bound the candidate's absolute errors on boxes with `budget`; also return how much one record changes these bounds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The result of tuning.

    Attributes:
        index: index of the chosen candidate in the list of candidates.
        remaining: epsilon that is left for the release.
        unprotected: facts that tuning took as public, as texts for the receipt.
    """

    index: int
    remaining: Fraction
    unprotected: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tuning(PointMechanism):
    """Settings and first phase of private tuning; the subclasses `TunedGrid` and `Tuned` choose the setting that is tuned."""

    audit_inputs: ClassVar[tuple[Added[Any], ...]] = TUNING

    tuning_share: float = setting(
        0.2, "Share for tuning", low=0.01, high=0.8, help="The part of ε that pays for the choice; what is left pays for the release."
    )
    declared_total: int | None = declared_total_setting(
        "A number of records, or a guess of it, that is public already. Left empty, a share of ε buys a noisy one."
    )
    total_share: float = setting(
        0.02,
        "Share for the total",
        low=0.001,
        high=0.1,
        when=("declared_total", None),
        help="The part of ε that buys the noisy total, which the sanity bound is a share of.",
    )
    sanity: float = setting(
        0.1, "Sanity bound δ", low=1e-4, high=0.5, help="Answers under this share of the total count as this share in relative errors."
    )
    clip: float = setting(0.25, "Clip errors at", low=0.01, high=100, help="Relative errors above it count as this; lower is less noise.")
    sizes: tuple[float, ...] = setting(
        PAPER_SIZES,
        "Sizes of tuning boxes",
        low=0.001,
        high=1,
        help="Shares of the domain's width and height: the sizes of the areas that matter to you.",
    )
    per_size: int = setting(100, "Boxes per size", low=1, high=1000, help="How many boxes of each size, anywhere in the domain.")
    seed: int = setting(7, "Seed of the boxes", low=0, high=2**31, help="Public: the boxes are random, but never drawn from the data.")
    law: str = setting(
        LAWS[0], "Distribution of the choice", choices=LAWS, help="Permute-and-flip is never worse; the paper has the other."
    )

    def boxes(self, domain: Domain) -> Boxes:
        """Make the public boxes on which candidates are compared; raises `SettingError` if there are none or too many."""
        return tuning_boxes(domain, self.sizes, self.per_size, self.seed)

    def tune_by(self, run: Run[PointCounts], purpose: str, candidates: Sequence[Candidate]) -> Choice:
        """Run the first phase: measure a noisy total if none is declared, then choose a candidate; a single candidate costs nothing.

        Privacy:
            The total is a count with noise. Everything else that determines the sensitivities of the scores is public: boxes,
            candidates, budget, and rho, which follows from the noisy or the declared total. See `clipped_scores` for the choice.
        """
        if len(candidates) == 1:
            return Choice(index=0, remaining=run.epsilon)
        *on_total, amount, remaining = run.split([share.share for share in self._parts()])
        total = run.measure_total("total, for the sanity bound", on_total[0]) if on_total else self.declared_total or 0
        step = choice_step(purpose, amount, self.law, run.data.contributions, len(candidates))
        scores = self.scores(run.data, PureBudget(remaining), total, candidates)
        run.steps.append(step)
        index = choose(scores, step, run.data.contributions, run.entropy)
        return Choice(index=index, remaining=remaining, unprotected=name_declared(self.declared_total))

    def scores(self, points: PointCounts, budget: PureBudget, total: int, candidates: Sequence[Candidate]) -> Scores:
        """Score the candidates by their clipped relative errors with `budget`. PRIVATE."""
        queries = BoxQueries(points=points, boxes=self.boxes(points.domain))
        expected = [candidate.expected(queries, budget) for candidate in candidates]
        errors, moved = np.stack([bounds.error for bounds in expected]), [bounds.sensitivity for bounds in expected]
        return clipped_scores(errors, queries.truth, self.rho(total), self.clip, moved, queries.boxes.most_inside)

    def rho(self, total: int) -> float:
        """Return the sanity bound, in records: delta times the total; a total below 100 is taken as 100."""
        return self.sanity * max(total, SMALLEST_TOTAL)

    def _parts(self) -> list[Share]:
        declared = self.declared_total is not None
        total = [] if declared else [Share(label="total", share=self.total_share, structure=True)]
        remaining = 1 - self.tuning_share - sum(part.share for part in total)
        return [*total, Share(label="tuning", share=self.tuning_share, structure=True), Share(label="counts", share=remaining)]

    def check(self, frame: Domain) -> None:
        """Raise if there are no boxes to tune by, or too many."""
        self.boxes(frame)
        super().check(frame)

    def shares(self, frame: Domain) -> list[Share]:
        """List the shares of the total (if it is measured), of tuning and of counts."""
        return self._parts() if len(self.candidates(frame)) > 1 else super().shares(frame)

    def with_shares(self, shares: Sequence[float]) -> Self:
        """Return a copy with the first of `shares` for the total (if it is measured) and for tuning, limited to their ranges."""
        if len(shares) < 2:
            return self
        parts = shares_of(shares)
        tuned = replace(self, tuning_share=min(max(parts[-2], 0.01), 0.8))
        return replace(tuned, total_share=min(max(parts[0], 0.001), 0.1)) if len(shares) == 3 else tuned

    def candidates(self, domain: Domain) -> Sequence[Candidate]:
        """List the different candidates for a domain; values are cut to the lattice."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class GridCandidate:
    """A uniform grid of a fixed size; `bound` is that of `expected_grid`."""

    mechanism: UniformGrid
    bound: str = "tight"

    @property
    def value(self) -> int:
        """Number of cells per side."""
        return self.mechanism.side or 1

    def nodes(self, domain: Domain) -> int:  # noqa: ARG002
        """Count the grid's cells, and the groups of 2 x 2 on each level above them."""
        return sum((-(-self.value >> level)) ** 2 for level in range(max(1, (self.value - 1).bit_length()) + 1))

    def expected(self, queries: BoxQueries, budget: PureBudget) -> Expected:
        """Compute the bounds of `expected_grid`."""
        return expected_grid(queries, self.value, budget, bound=self.bound)


@dataclass(frozen=True, kw_only=True)
class TreeCandidate:
    """A quadtree.

    Attributes:
        mechanism: the quadtree with its settings.
    """

    mechanism: Quadtree

    def nodes(self, domain: Domain) -> int:
        """Count the nodes of the complete tree."""
        return sum(side**2 for side in tree_sides(self.mechanism, domain))


@dataclass(frozen=True, kw_only=True)
class HeightCandidate(TreeCandidate):
    """A quadtree of a fixed height without pruning.

    Bound: the square root of bias**2 + variance. The bias is the error of the tree's answers without noise. The variance is the one that
    the release would state for its answers; it follows from the settings.

    Privacy:
        Neither partitions nor variances depend on the records, so the proof of `expected_grid` holds without change.
    """

    @property
    def value(self) -> int:
        """Height of the tree."""
        return self.mechanism.height

    def expected(self, queries: BoxQueries, budget: PureBudget) -> Expected:
        """Compute the bounds of all boxes at once."""
        noise = TreeNoise.of(self.mechanism, queries.points.domain, budget, queries.points.contributions)
        error = np.sqrt(grid_bias(queries, noise.sides[-1]) ** 2 + answer_variance(queries.boxes, noise))
        return Expected(error=error, sensitivity=grid_cover(queries.boxes, noise.sides[-1]).most_cut)


@dataclass(frozen=True, kw_only=True)
class PruningCandidate(TreeCandidate):
    """A quadtree of a fixed height, pruned or not.

    Bound: the square root of bias**2 + variance. The bias is the error of a tree without noise, where nodes with fewer than `prune`
    true records are leaves. The variance is the canonical answer's (see `canonical_variance`). With least squares each node has the
    variance of the estimate from its own count and all counts below it; the released answers are at least as accurate (Gauss-Markov).
    Without least squares each node has the variance of its own count. The bound ignores that the release prunes by noisy counts.

    Privacy:
        Without pruning the tree and its variances are public, and a record changes the bias by at most 1 in a box that cuts the
        record's leaf (see `expected_grid`). With pruning below t (rounded up to T >= 1), one more record can turn one node with T - 1
        records from a leaf into an inner node. This changes only the answers to boxes that cut the node. The part of the node's T
        records that is counted in a box lies between 0 and T before and after, so the bias changes by at most T. The variance either
        loses z, the variance of this node, or gains the variances of the new leaves. Below the node, only a node that holds all T
        records is split again, so at most one set of siblings per depth is added. Hence the variance changes by at most W = max(z, f
        sum of z over depths), with f parts per step. The square root of b**2 + V is the length of the vector (b, square root of V), so
        it changes by at most T + square root of W. If no leaf is split, it changes by at most 1.
    """

    @property
    def value(self) -> float:
        """Threshold of pruning, in records."""
        return self.mechanism.prune

    def expected(self, queries: BoxQueries, budget: PureBudget) -> Expected:
        """Compute the bounds of all boxes at once, level by level."""
        noise = TreeNoise.of(self.mechanism, queries.points.domain, budget, queries.points.contributions)
        counts = _count_nodes(queries, noise.sides)
        levels = _prune(counts, self.mechanism.prune)
        ends = [_corner_sums(np.where(leaf, count, 0)) for count, (_, leaf) in zip(counts, levels, strict=True)]
        answer = np.sum(
            [grid_cover(queries.boxes, side).weighted(count_sums) for side, count_sums in zip(noise.sides, ends, strict=True)], axis=0
        )
        masks = ((_corner_sums(kept), _corner_sums(leaf)) for kept, leaf in levels)
        details = ((side, count_sums, *sums) for side, count_sums, sums in zip(noise.sides, noise.variance, masks, strict=True))
        error = np.sqrt((answer - queries.truth) ** 2 + canonical_variance(queries.boxes, details))
        return Expected(error=error, sensitivity=self._sensitivity(queries, noise))

    def _sensitivity(self, queries: BoxQueries, noise: TreeNoise) -> float:
        if not self.mechanism.prune:
            return grid_cover(queries.boxes, noise.sides[-1]).most_cut
        cut = max(grid_cover(queries.boxes, side).most_cut for side in noise.sides)
        return cut * (max(math.ceil(self.mechanism.prune), 1) + math.sqrt(max(noise.added, *noise.variance)))


def _count_nodes(queries: BoxQueries, sides: tuple[int, ...]) -> list[Integers]:
    """Count the records in the nodes of a complete tree: one (side, side) table per depth. PRIVATE."""
    lines = np.arange(0, queries.points.domain.side + 1, queries.points.domain.side // sides[-1], dtype=np.int32)
    sums = CornerCounts(points=queries.points, columns=lines, rows=lines).table
    return [np.diff(np.diff(sums[::step, ::step], axis=0), axis=1) for step in (sides[-1] // side for side in sides)]


def _prune(counts: list[Integers], prune: float) -> list[tuple[Mask, Mask]]:
    """Prune a complete tree by true counts: per depth, (side, side) whether a node is kept, and whether a kept node is a leaf. PRIVATE."""
    levels, kept = [], np.ones(counts[0].shape, np.bool_)
    for depth, count in enumerate(counts):
        last = depth == len(counts) - 1
        leaf = kept if last else kept & (count < prune)
        levels.append((kept, leaf))
        if not last:
            fan = len(counts[depth + 1]) // len(count)
            kept = np.kron(kept & ~leaf, np.ones((fan, fan), np.bool_))
    return levels


def _corner_sums(cells: NDArray[Any]) -> Sums:
    """Build the function that adds up (r, c) whole values from the south-west corner (see `Sums`)."""
    sums = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), np.int64)
    np.cumsum(np.cumsum(cells, axis=0, dtype=np.int64), axis=1, out=sums[1:, 1:])
    return lambda row, column: sums[row, column]


@dataclass(frozen=True, kw_only=True)
class Tunable:
    """One setting that can be tuned.

    Attributes:
        values: the values to choose from by default.
        candidate: makes a candidate from a value and a domain, whose lattice limits heights and sides.
        whole: whether values must be whole numbers.
    """

    values: tuple[float, ...]
    candidate: Callable[[float, Domain], Candidate]
    whole: bool = True


TUNABLE: dict[str, Tunable] = {
    "quadtree height": Tunable(
        values=tuple(range(2, 11)),
        candidate=lambda value, domain: HeightCandidate(mechanism=Quadtree(height=min(int(value), domain.order))),
    ),
    "grid size": Tunable(
        values=tuple(1 << step for step in range(2, 10)),
        candidate=lambda value, domain: GridCandidate(mechanism=UniformGrid(side=min(int(value), domain.side))),
    ),
    "pruning threshold": Tunable(
        values=(0, 8, 16, 32, 64), candidate=lambda value, _: PruningCandidate(mechanism=Quadtree(prune=value)), whole=False
    ),
}
"""The settings that can be tuned, by name. A new one needs a class of candidates and a line here."""
