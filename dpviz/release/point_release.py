"""The release of a point mechanism: noisy counts on a tree, their spread, answers with their exact variance, and the receipt."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, overload

import geopandas
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats
from dpviz.errors import DomainError
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import PRIVATE, Receipt
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.space.coverage import checked_coverage, is_areas, shapes_of
from dpviz.space.domain import Domain
from dpviz.space.interpolate import INSIDE, leaning
from dpviz.space.ranges import Cumulative, Front, Overlap, area_overlap, batches, block_sums, box_overlap, cumulative
from dpviz.space.tree import Tree


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


Areas: TypeAlias = geopandas.GeoDataFrame | geopandas.GeoSeries

INTERVAL_WIDTH = math.log(20) / math.sqrt(2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noisy counts on a tree of partitions. PUBLIC: everything here was released by a mechanism.

    Attributes:
        mechanism: the key of the mechanism, for example "quadtree".
        settings: the mechanism's settings.
        domain: the public frame.
        tree: the partitions.
        noisy: (n,) counts as first measured; NaN for nodes that were not measured.
        noise_variance: (n,) variance of the noise on each, with its second measurement where there is one; infinite where not
            measured. Without least squares, unmeasured inner nodes have the sum of their children's.
        count: (n,) counts after post-processing.
        spread: how the errors of `count` hang together; None if they are independent, with `noise_variance`.
        receipt: what was spent on what.
        steps: post-processing, in order.
        height: the finest level of the tree as it was built; pruning may leave `tree` less deep. Level 0 is the whole domain.
        unbiased: (n,) counts before a biased step, on which intervals are centred; None if there was none.
        again: (n,) second measurements, NaN where there was none; None for mechanisms that never measure twice. `count` rests
            on both.
        simulation: drawn from a seed, so not private; refused by export.
        approximate: why the stated spread is only approximate; None if it is exact.
        inside: how answers fill a partition that is cut, unless asked otherwise: "uniform" or "interpolated".
    """

    mechanism: str
    settings: dict[str, Any]
    domain: Domain
    tree: Tree
    noisy: Floats
    noise_variance: Floats
    count: Floats
    spread: Spread | WaveletSpread | None
    receipt: Receipt
    steps: tuple[str, ...]
    simulation: bool
    height: int
    approximate: str | None = None
    unbiased: Floats | None = None
    inside: str = "uniform"
    again: Floats | None = None

    def __repr__(self) -> str:
        stamp = "" if self.status == PRIVATE else f", {self.status}"
        return f"Release({self.mechanism}, {len(self.tree.leaves):,} partitions, {self.receipt.total}{stamp})"

    @property
    def status(self) -> str:
        """What every table of the release says: "private release", "SIMULATION: not private" or "NOT PRIVATE"."""
        return self.receipt.status(simulation=self.simulation)

    def refuse_unpublishable(self) -> None:
        """Raise what forbids publishing: exact counts or structure, or noise that a seed can subtract.

        Raises:
            RefusedError: the release is a simulation, or made by a reference that is not private.
        """
        self.receipt.refuse_unpublishable(simulation=self.simulation)

    @cached_property
    def stddev(self) -> Floats:
        """(n,) standard deviation of each node's `count`: noise only, not the error of assuming uniformity."""
        return np.sqrt(self.noise_variance if self.spread is None else self.spread.variances(self.tree))

    @overload
    def answer(
        self, boxes: ArrayLike, *, spread: Literal[False] = False, inside: str | None = None, outside: Literal["refuse"] = "refuse"
    ) -> Floats: ...
    @overload
    def answer(
        self, boxes: ArrayLike, *, spread: Literal[True], inside: str | None = None, outside: str = "refuse"
    ) -> tuple[Floats, ...]: ...
    @overload
    def answer(
        self, boxes: ArrayLike, *, spread: bool = False, inside: str | None = None, outside: Literal["inside_part"]
    ) -> tuple[Floats, ...]: ...
    def answer(
        self, boxes: ArrayLike, *, spread: bool = False, inside: str | None = None, outside: str = "refuse"
    ) -> Floats | tuple[Floats, ...]:
        """Estimated counts in boxes.

        Args:
            boxes: (q, 4) west, south, east, north in the domain's CRS.
            spread: also give the standard deviations.
            inside: how partitions that a box cuts are filled: "uniform" (by the share of their area) or "interpolated" (leaning
                towards fuller neighbours); None for the release's own way.
            outside: what is done with boxes that reach outside the domain, where nothing was counted: "refuse" raises, "inside_part"
                answers the part inside and also gives the coverage.

        Returns:
            (q,) estimates; with `spread` also (q,) standard deviations of the noise in the uniform answer; with "inside_part" also,
            last, (q,) the share of each box that lies inside, see `coverage`. The error of what is assumed inside partitions is not
            in the deviation.

        Raises:
            DomainError: malformed boxes, more than 1e-9 of one outside the domain, or another way than those.
        """
        share = checked_coverage(self.domain, boxes, outside)
        found = self._answer_boxes(self.domain.lattice(boxes), self._lean(inside), spread)
        return _answered(found, share if outside == "inside_part" else None, spread)

    @overload
    def answer_interval(self, boxes: ArrayLike, *, outside: Literal["refuse"] = "refuse") -> tuple[Floats, Floats]: ...
    @overload
    def answer_interval(self, boxes: ArrayLike, *, outside: Literal["inside_part"]) -> tuple[Floats, Floats, Floats]: ...
    def answer_interval(self, boxes: ArrayLike, *, outside: str = "refuse") -> tuple[Floats, ...]:
        """Ends of intervals for counts in boxes, as `interval` gives them for nodes: at least 95 %, for the noise only.

        They stand around the estimate before any biased step, with partitions that are cut counted by the share of their area: where
        small counts were drawn towards 0, or answers lean towards fuller neighbours, `answer` may lie off their middle. Each holds
        for a box chosen without a look at the counts: not for the fullest of many.

        Args:
            boxes: (q, 4) as for `answer`.
            outside: likewise.

        Returns:
            (q,) lower and (q,) upper ends, whole numbers; with "inside_part" also (q,) the share of each box that lies inside.

        Raises:
            DomainError: as for `answer`.
        """
        share = checked_coverage(self.domain, boxes, outside)
        plain = self if self.unbiased is None else replace(self, count=self.unbiased, unbiased=None)
        centre, stddev = plain.answer(boxes, spread=True, inside="uniform", outside="inside_part")[:2]
        ends = np.floor(centre - INTERVAL_WIDTH * stddev), np.ceil(centre + INTERVAL_WIDTH * stddev)
        return (*ends, share) if outside == "inside_part" else ends

    @overload
    def answer_areas(self, areas: Areas, *, spread: Literal[False] = False, outside: Literal["refuse"] = "refuse") -> Floats: ...
    @overload
    def answer_areas(self, areas: Areas, *, spread: Literal[True], outside: str = "refuse") -> tuple[Floats, ...]: ...
    @overload
    def answer_areas(self, areas: Areas, *, spread: bool = False, outside: Literal["inside_part"]) -> tuple[Floats, ...]: ...
    def answer_areas(self, areas: Areas, *, spread: bool = False, outside: str = "refuse") -> Floats | tuple[Floats, ...]:
        """Estimated counts in polygons, as `answer` does for boxes; leaves always count by the share of their area.

        Args:
            areas: (q,) polygons; reprojected to the domain's CRS.
            spread: also give the standard deviations.
            outside: as for `answer`.

        Returns:
            As `answer`.

        Raises:
            DomainError: no CRS on polygons whose domain has one, invalid or missing geometry, or more than 1e-9 of one outside the
                domain.
        """
        shapes = shapes_of(self.domain, areas)
        share = checked_coverage(self.domain, shapes, outside)
        found = self._answer(area_overlap(self.tree, self.domain, shapes), len(shapes), spread)
        return _answered(found, share if outside == "inside_part" else None, spread)

    def coverage(self, queries: ArrayLike | Areas) -> Floats:
        """The share of each query that lies inside the domain; outside of it nothing was counted.

        Args:
            queries: (q, 4) boxes in the domain's CRS, or (q,) polygons, which are reprojected.

        Returns:
            (q,) 0 to 1: of the area, planar in the domain's CRS; of the length where a box is a line; 1 or 0 where it is a point.

        Raises:
            DomainError: malformed boxes or polygons.
        """
        wanted = shapes_of(self.domain, queries) if is_areas(queries) else queries
        return checked_coverage(self.domain, wanted, "inside_part")

    def blocks(self, zoom: int) -> Floats:
        """(2**zoom, 2**zoom) estimates in equal blocks of the domain, [row, column], row 0 in the south."""
        sums = block_sums(self.tree, self.count, zoom)
        lean = self._lean(None)
        return sums + lean.blocks(1 << zoom, self.domain.side) if lean else sums

    def _lean(self, inside: str | None) -> Cumulative | None:
        """What interpolation adds; None where it is not asked for."""
        if (inside or self.inside) not in INSIDE:
            raise DomainError(f"inside must be one of {', '.join(INSIDE)}.")
        return self._leaning if (inside or self.inside) == "interpolated" else None

    @cached_property
    def _leaning(self) -> Cumulative:
        return leaning(self.tree, self.count)

    def to_frame(self, level: int | None = None) -> geopandas.GeoDataFrame:
        """The partitions of a level as a table; see `nodes`.

        Args:
            level: 0 gives the whole domain, `height` the finest partitions; None gives these, too.

        Returns:
            GeoDataFrame with partition_id, level (of the partition itself: one that was not divided stands for itself on all finer
            levels), count_noisy (as first measured, NaN if not measured), count, stddev, ci_low, ci_high (whole numbers, at least
            95 % for the noise), status (the release's own, in every row) and geometry. Its `attrs` say whether it is "private" and
            a "simulation".

        Raises:
            DomainError: no such level.
        """
        nodes = self.nodes(level)
        low, high = self.interval(nodes)
        columns = {
            "partition_id": nodes,
            "level": self.tree.depth[nodes],
            "count_noisy": self.noisy[nodes],
            "count": self.count[nodes],
            "stddev": self.stddev[nodes],
            "ci_low": low,
            "ci_high": high,
            "status": self.status,
        }
        geometry = self.domain.boxes(self.tree.rectangles(nodes))
        frame = geopandas.GeoDataFrame(columns, geometry=geometry, crs=self.domain.crs)
        frame.attrs = {"private": self.receipt.private and not self.simulation, "simulation": self.simulation}
        return frame

    def nodes(self, level: int | None = None) -> NDArray[np.int64]:
        """(k,) nodes that tile the domain at a level, leaves that stand above it included; None gives the leaves.

        Raises:
            DomainError: no such level.
        """
        if level is not None and level not in range(self.height + 1):
            raise DomainError(f"The release has levels 0 to {self.height}; 0 is the whole domain.")
        return self.tree.leaves if level is None or level >= self.tree.height else self.tree.cut(int(level))

    def interval(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """(k,) lower and upper ends of an interval that holds the true count of each node with probability 0.95 at least.

        ln(20) / sqrt(2) = 2.12 standard deviations, which is exact for one Laplace count and cautious for sums of them,
        rounded outwards to whole numbers. Covers noise only. Where the release is `approximate`, the probability is approximate, too:
        estimates that reuse the counts that decided the structure can be biased, most of all for large areas (measured at the whole:
        0.79 to 0.90 with HTF, 0.86 to 0.93 with the path-budget tree).
        """
        width, centre = INTERVAL_WIDTH * self.stddev[nodes], self.count if self.unbiased is None else self.unbiased
        return np.floor(centre[nodes] - width), np.ceil(centre[nodes] + width)

    @cached_property
    def _cumulative(self) -> Cumulative | None:
        return None if self.spread is None else cumulative(self.tree, self.count)

    @cached_property
    def _errors(self) -> Errors:
        return errors_of(self.tree, self.spread, self.noise_variance)

    def _answer_boxes(self, lattice: Floats, leaning: Cumulative | None, spread: bool) -> tuple[Floats, Floats]:
        """Estimates in (q, 4) boxes in lattice units, and their standard deviations; those are 0 unless `spread`."""
        lean = np.zeros(len(lattice)) if leaning is None else leaning.boxes(lattice)
        if self._cumulative is not None and not spread:
            return self._cumulative.boxes(lattice) + lean, np.zeros(len(lattice))
        if self._cumulative is not None and isinstance(self.spread, WaveletSpread):
            return self._cumulative.boxes(lattice) + lean, np.sqrt(self.spread.boxes(lattice))
        estimate, stddev = self._answer(box_overlap(self.tree, lattice), len(lattice), spread)
        return estimate + lean, stddev

    def _answer(self, overlap: Overlap, queries: int, spread: bool) -> tuple[Floats, Floats]:
        estimate, variance = np.zeros(queries), np.zeros(queries)
        for part, fronts in batches(self.tree, overlap, queries):
            for front in fronts:
                share = np.where(front.ends, front.share, 0.0)
                estimate[part] += np.bincount(front.query - part.start, share * self.count[front.node], part.stop - part.start)
            if spread:
                variance[part] = variances(self.tree, self._errors, fronts, part)
        return estimate, np.sqrt(np.maximum(variance, 0.0))


def _answered(found: tuple[Floats, Floats], share: Floats | None, spread: bool) -> Floats | tuple[Floats, ...]:
    """Estimates, with their standard deviations and shares inside where these are wanted."""
    parts = (*found[: 2 if spread else 1], *(() if share is None else (share,)))
    return parts if len(parts) > 1 else parts[0]
