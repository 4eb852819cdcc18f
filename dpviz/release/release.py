"""What a point mechanism hands out: noisy counts on a tree, their spread and the receipt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import geopandas
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.errors import BudgetError, DomainError
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import Receipt
from dpviz.space.domain import Domain
from dpviz.space.ranges import Cumulative, Front, Overlap, area_overlap, batches, block_sums, box_overlap, cumulative
from dpviz.space.tree import Tree

Floats = NDArray[np.float64]

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
        noise_variance: (n,) variance of the noise on each; infinite where not measured. Without least squares, unmeasured
            inner nodes have the sum of their children's.
        count: (n,) counts after post-processing.
        spread: how the errors of `count` hang together; None if they are independent, with `noise_variance`.
        receipt: what was spent on what.
        steps: post-processing, in order.
        height: steps from the root to level 0 as the tree was built; pruning may leave `tree` less deep. level = height - depth.
        unbiased: (n,) counts before a biased step, on which intervals are centred; None if there was none.
        simulation: drawn from a seed, so not private; refused by export.
        approximate: why the stated spread is only approximate; None if it is exact.
    """

    mechanism: str
    settings: dict[str, Any]
    domain: Domain
    tree: Tree
    noisy: Floats
    noise_variance: Floats
    count: Floats
    spread: Spread | None
    receipt: Receipt
    steps: tuple[str, ...]
    simulation: bool
    height: int
    approximate: str | None = None
    unbiased: Floats | None = None

    def __repr__(self) -> str:
        stamp = ", SIMULATION: not private" if self.simulation else ""
        stamp = stamp if self.receipt.private else ", NOT PRIVATE"
        return f"Release({self.mechanism}, {len(self.tree.leaves):,} partitions, {self.receipt.total}{stamp})"

    def refuse_unpublishable(self) -> None:
        """Raise what forbids publishing: exact counts or structure, or noise that a seed can subtract.

        Raises:
            BudgetError: the release is a simulation, or made by a reference that is not private.
        """
        if not self.receipt.private:
            raise BudgetError("NOT PRIVATE: this is a reference that shows what privacy costs; it must not be published.")
        if self.simulation:
            raise BudgetError("A simulation must not be published: whoever knows the seed can subtract the noise.")

    @cached_property
    def stddev(self) -> Floats:
        """(n,) standard deviation of each node's `count`: noise only, not the error of assuming uniformity."""
        return np.sqrt(self.noise_variance if self.spread is None else self.spread.variances(self.tree))

    @overload
    def answer(self, boxes: ArrayLike, *, spread: Literal[False] = False) -> Floats: ...
    @overload
    def answer(self, boxes: ArrayLike, *, spread: Literal[True]) -> tuple[Floats, Floats]: ...
    def answer(self, boxes: ArrayLike, *, spread: bool = False) -> Floats | tuple[Floats, Floats]:
        """Estimated counts in boxes.

        Args:
            boxes: (q, 4) west, south, east, north in the domain's CRS; parts outside the domain count nothing.
            spread: also give the standard deviations.

        Returns:
            (q,) estimates; with `spread` also (q,) standard deviations of the noise in them. Partitions that a box cuts
            count by the share of their area (the uniformity assumption), whose error is not in the deviation.

        Raises:
            DomainError: malformed boxes.
        """
        lattice = self.domain.lattice(boxes)
        if self._cumulative is not None and not spread:
            return self._cumulative.boxes(lattice)
        return self._answer(box_overlap(self.tree, lattice), len(lattice), spread)

    @overload
    def answer_areas(self, areas: geopandas.GeoDataFrame | geopandas.GeoSeries, *, spread: Literal[False] = False) -> Floats: ...
    @overload
    def answer_areas(self, areas: geopandas.GeoDataFrame | geopandas.GeoSeries, *, spread: Literal[True]) -> tuple[Floats, Floats]: ...
    def answer_areas(self, areas: geopandas.GeoDataFrame | geopandas.GeoSeries, *, spread: bool = False) -> Floats | tuple[Floats, Floats]:
        """Estimated counts in polygons, as `answer` does for boxes; leaves count by the share of their area.

        Args:
            areas: (q,) polygons; reprojected to the domain's CRS.
            spread: also give the standard deviations.

        Raises:
            DomainError: no CRS on polygons whose domain has one, or invalid or missing geometry.
        """
        if not isinstance(areas, geopandas.GeoDataFrame | geopandas.GeoSeries):
            raise DomainError("Areas must be a GeoDataFrame or a GeoSeries of polygons.")
        geometry = areas.geometry
        if self.domain.crs is not None:
            if geometry.crs is None:
                raise DomainError("The areas have no CRS; set it with set_crs(...), it is never guessed.")
            geometry = geometry.to_crs(self.domain.crs)
        if geometry.isna().any() or not geometry.is_valid.all() or not geometry.geom_type.isin(["Polygon", "MultiPolygon"]).all():
            raise DomainError("Areas must be valid polygons; repair them with make_valid() first.")
        return self._answer(area_overlap(self.tree, self.domain, geometry.to_numpy()), len(geometry), spread)

    def blocks(self, zoom: int) -> Floats:
        """(2**zoom, 2**zoom) estimates in equal blocks of the domain, [row, column], row 0 in the south."""
        if self._cumulative is not None:
            return self._cumulative.blocks(1 << zoom, self.domain.side)
        return block_sums(self.tree, self.count, zoom)

    def to_frame(self, level: int = 0) -> geopandas.GeoDataFrame:
        """The partitions of a level as a table; see `nodes`.

        Args:
            level: 0 gives the leaves, `height` the whole domain.

        Returns:
            GeoDataFrame with partition_id, level, depth, count_noisy (as first measured, NaN if not measured), count, stddev,
            ci_low, ci_high (whole numbers, at least 95 % for the noise) and geometry. Its `attrs` say whether it is "private" and a
            "simulation"; whoever writes it to a file must call `refuse_unpublishable` first.

        Raises:
            DomainError: no such level.
        """
        nodes = self.nodes(level)
        low, high = self.interval(nodes)
        columns = {
            "partition_id": nodes,
            "level": self.height - self.tree.depth[nodes],
            "depth": self.tree.depth[nodes],
            "count_noisy": self.noisy[nodes],
            "count": self.count[nodes],
            "stddev": self.stddev[nodes],
            "ci_low": low,
            "ci_high": high,
        }
        geometry = self.domain.boxes(self.tree.rectangles(nodes))
        frame = geopandas.GeoDataFrame(columns, geometry=geometry, crs=self.domain.crs)
        frame.attrs = {"private": self.receipt.private and not self.simulation, "simulation": self.simulation}
        return frame

    def nodes(self, level: int) -> NDArray[np.int64]:
        """(k,) nodes that tile the domain at a level, leaves that stand above it included; level 0 gives the leaves.

        Raises:
            DomainError: no such level.
        """
        if level not in range(self.height + 1):
            raise DomainError(f"The release has levels 0 to {self.height}.")
        depth = self.height - int(level)
        return self.tree.leaves if depth >= self.tree.height else self.tree.cut(depth)

    def interval(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """(k,) lower and upper ends of an interval that holds the true count of each node with probability 0.95 at least.

        ln(20) / sqrt(2) = 2.12 standard deviations, which is exact for one Laplace count and cautious for sums of them,
        rounded outwards to whole numbers. Covers noise only.
        """
        width, centre = INTERVAL_WIDTH * self.stddev[nodes], self.count if self.unbiased is None else self.unbiased
        return np.floor(centre[nodes] - width), np.ceil(centre[nodes] + width)

    @cached_property
    def _cumulative(self) -> Cumulative | None:
        return None if self.spread is None else cumulative(self.tree, self.count)

    def _answer(self, overlap: Overlap, queries: int, spread: bool) -> Floats | tuple[Floats, Floats]:
        estimate, variance = np.zeros(queries), np.zeros(queries)
        for part, fronts in batches(self.tree, overlap, queries):
            for front in fronts:
                share = np.where(front.ends, front.share, 0.0)
                estimate[part] += np.bincount(front.query - part.start, share * self.count[front.node], part.stop - part.start)
            if spread:
                variance[part] = self._variance(fronts, part)
        return (estimate, np.sqrt(np.maximum(variance, 0.0))) if spread else estimate

    def _variance(self, fronts: list[Front], part: slice) -> Floats:
        """Variances of a batch of answers, by one pass from the deepest front up to the root.

        For the part of a query inside a node, slope is its change per change of the node's count and rest the variance
        that is left when the node's count is fixed.
        """
        size = part.stop - part.start
        if self.spread is None:
            terms = (np.bincount(f.query - part.start, f.ends * f.share**2 * self.noise_variance[f.node], size) for f in fronts)
            return np.asarray(sum(terms))
        slope = rest = np.empty(0)
        below: Front | None = None
        for front in reversed(fronts):
            slope_here, rest_here = front.share.copy(), np.zeros(len(front.share))
            if below is not None:
                self._collect(front, below, (slope, rest), (slope_here, rest_here))
            slope, rest, below = slope_here, rest_here, front
        variance = np.zeros(size)
        if below is not None:
            variance[below.query - part.start] = slope**2 * self.spread.root + rest
        return variance

    def _collect(self, front: Front, below: Front, known: tuple[Floats, Floats], here: tuple[Floats, Floats]) -> None:
        """Slopes and rests of the pairs that go on below, from those of their children; untouched children have slope 0."""
        assert self.spread is not None  # noqa: S101
        (slope, rest), (slope_here, rest_here) = known, here
        size, on = len(front.node), ~front.ends
        slope_here[on] = np.bincount(below.origin, self.spread.share[below.node] * slope, size)[on]
        own = self.spread.slack[below.node] * slope * (slope - 2 * slope_here[below.origin])
        rest_here += np.bincount(below.origin, rest + own, size)
        rest_here[on] += slope_here[on] ** 2 * self._slack_sums[front.node[on]]

    @cached_property
    def _slack_sums(self) -> Floats:
        """(n,) sum of the children's slack of each node."""
        assert self.spread is not None  # noqa: S101
        total = np.zeros(len(self.tree))
        for depth in range(self.tree.height):
            total[self.tree.at_depth(depth)] = self.tree.sum_children(depth, self.spread.slack[self.tree.at_depth(depth + 1)])
        return total
