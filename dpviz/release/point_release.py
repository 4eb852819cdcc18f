"""The release of a point mechanism: noisy counts on a tree, answers of range queries with their exact variance, and the receipt."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import geopandas
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats
from dpviz.errors import DomainError, check_choice
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import PRIVATE, Receipt
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.release.flow_release import INTERVAL_STDDEVS as GAUSSIAN_STDDEVS
from dpviz.release.regular_grid import make_dataset
from dpviz.shown import Mapped
from dpviz.space.coverage import check_coverage, is_areas, shapes_of
from dpviz.space.domain import Domain
from dpviz.space.interpolate import INSIDE, UNIFORM, interpolation_sums
from dpviz.space.mask import open_cells
from dpviz.space.ranges import Cumulative, Front, Overlap, area_overlap, batches, block_sums, box_overlap, cumulative
from dpviz.space.tree import Tree

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeErrors:
    """The joint distribution of the errors of consistent counts, prepared for range queries.

    Attributes:
        spread: the distribution, from `least_squares`.
        slack_sums: (n,) the sum of the slack of each node's children.
    """

    spread: Spread
    slack_sums: Floats


Errors = Floats | TreeErrors | WaveletSpread
"""The errors of a tree's counts: (n,) variances if they are independent, else their joint distribution."""


def errors_of(tree: Tree, spread: Spread | WaveletSpread | None, noise_variance: Floats) -> Errors:
    """Prepare the errors of a tree's counts for `variances`.

    Args:
        tree: of the release.
        spread: the joint distribution of the errors; None if they are independent.
        noise_variance: (n,) variances of independent errors.
    """
    if spread is None:
        return noise_variance
    if isinstance(spread, WaveletSpread):
        return spread
    total = np.zeros(len(tree))
    for depth in range(tree.height):
        total[tree.at_depth(depth)] = tree.sum_children(depth, spread.slack[tree.at_depth(depth + 1)])
    return TreeErrors(spread=spread, slack_sums=total)


def variances(tree: Tree, errors: Errors, fronts: list[Front], part: slice) -> Floats:
    """Compute the variances of a batch of answers.

    Args:
        tree: of the release.
        errors: of its counts, from `errors_of`.
        fronts: the decomposition of the queries, from the root down.
        part: the numbers of the batch's queries.

    Returns:
        (queries of the batch,) variances.
    """
    size = part.stop - part.start
    if isinstance(errors, TreeErrors):
        return _consistent_variances(errors, fronts, part)
    if isinstance(errors, WaveletSpread):
        return np.array([errors.sums(_shares(tree, errors.order, fronts, query)) for query in range(part.start, part.stop)])
    terms = (np.bincount(front.query - part.start, front.ends * front.share**2 * errors[front.node], size) for front in fronts)
    return np.asarray(sum(terms, np.zeros(size)))


def _consistent_variances(errors: TreeErrors, fronts: list[Front], part: slice) -> Floats:
    """Compute variances in one pass from the deepest front up to the root.

    Consider the part of a query's answer inside a node: `slope` is the change of this part per change of the node's count, and `rest`
    is the variance of this part if the node's count is fixed.
    """
    slope = rest = np.empty(0)
    below: Front | None = None
    for front in reversed(fronts):
        slope_here, rest_here = front.share.copy(), np.zeros(len(front.share))
        if below is not None:
            _add_children(errors, (front, below), (slope, rest), (slope_here, rest_here))
        slope, rest, below = slope_here, rest_here, front
    variance = np.zeros(part.stop - part.start)
    if below is not None:
        variance[below.query - part.start] = slope**2 * errors.spread.root + rest
    return variance


def _add_children(
    errors: TreeErrors, pair: tuple[Front, Front], child_terms: tuple[Floats, Floats], own_terms: tuple[Floats, Floats]
) -> None:
    """Set slope and rest of each pair of query and node that was divided, from the slopes and rests of the node's children.

    A child outside the query is in no pair, and has slope 0.
    """
    (front, below), (slope, rest), (slope_here, rest_here) = pair, child_terms, own_terms
    size, divided = len(front.node), ~front.ends
    slope_here[divided] = np.bincount(below.origin, errors.spread.share[below.node] * slope, size)[divided]
    added = errors.spread.slack[below.node] * slope * (slope - 2 * slope_here[below.origin])
    rest_here += np.bincount(below.origin, rest + added, size)
    rest_here[divided] += slope_here[divided] ** 2 * errors.slack_sums[front.node[divided]]


def _shares(tree: Tree, order: int, fronts: list[Front], query: int) -> Floats:
    """Compute the (2**order, 2**order) shares of each cell of a grid that lie in a query, [row, column]."""
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

INTERVAL_STDDEVS = math.log(20) / math.sqrt(2)  # half the width of a 95 % interval, in standard deviations of Laplace noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Release(Mapped):
    """Noisy counts on a tree of partitions. PUBLIC: everything in it was released by a mechanism.

    Attributes:
        mechanism: the key of the mechanism, for example "quadtree".
        settings: the mechanism's settings.
        domain: the public frame.
        tree: the partitions: a tree of n nodes.
        noisy: (n,) counts as first measured; NaN for nodes that were not measured, such as those that the domain's mask covers.
        noise_variance: (n,) variance of the noise on each count, of both measurements together if there were two; infinite if the node
            was not measured, 0 if the domain's mask covers it. Without least squares, an unmeasured inner node has the sum of its
            children's variances.
        count: (n,) counts after post-processing.
        spread: the joint distribution of the errors of `count`; None if they are independent, with variances `noise_variance`.
        receipt: how the budget was spent.
        steps: descriptions of the post-processing steps, in order.
        simulation: True if the noise came from a seed: not private, and never written as a publication.
        height: the finest level of the tree as it was built; level 0 is the whole domain. After pruning, `tree` may be less deep.
        approximate: why the stated standard deviations are only approximate; None if they are exact.
        unbiased: (n,) counts before a biased step, on which intervals are centred; None if there was no such step.
        inside: the assumption about records inside a partition that a query cuts, unless the query says otherwise: "uniform",
            "interpolated" or "log-linear".
        again: (n,) second measurements, NaN where there was none; None for mechanisms that never measure twice. `count` uses both.
        nonnegative: whether no count is below 0, because negative ones were spread. Then no interval reaches below 0.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1, 2, 9], [1, 3, 9], domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(10), dv.Entropy.seeded(1))
    >>> release
    Release(quadtree, 16 partitions, epsilon 10, SIMULATION: not private)
    >>> count, stddev = release.answer([[0, 0, 8, 8]], spread=True)
    >>> bool(abs(count[0] - 2) < 4 * stddev[0])
    True
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
    inside: str = UNIFORM
    again: Floats | None = None
    nonnegative: bool = False

    def __repr__(self) -> str:
        stamp = "" if self.status == PRIVATE else f", {self.status}"
        return f"Release({self.mechanism}, {len(self.tree.leaves):,} partitions{self.receipt.describe_total()}{stamp})"

    @property
    def status(self) -> str:
        """The status that every table of the release states: "private release", "SIMULATION: not private" or "NOT PRIVATE"."""
        return self.receipt.status(simulation=self.simulation)

    def refuse_unpublishable(self) -> None:
        """Raise an error if the release must not be published.

        Raises:
            RefusedError: the release is a simulation, or was made by a reference that is not private.
        """
        self.receipt.refuse_unpublishable(simulation=self.simulation)

    @property
    def states_noise(self) -> bool:
        """Whether the noise of any count is stated; if not, as in contrasts, standard deviations and ends of intervals are NaN."""
        return bool(np.isfinite(self.noise_variance).any())

    @property
    def has_gaussian(self) -> bool:
        """Whether the noise is discrete Gaussian noise; otherwise it is discrete Laplace, or there is none."""
        return any("Gaussian" in step.noise for step in self.receipt.steps)

    @property
    def reach(self) -> float:
        """Half the width of a 95 % interval, in standard deviations: 2.12 for Laplace and 1.96 for Gaussian noise."""
        return GAUSSIAN_STDDEVS if self.has_gaussian else INTERVAL_STDDEVS

    @cached_property
    def open_cells(self) -> Floats:
        """(n,) number of lattice cells of each node in which records can be; 0 for nodes that the domain's mask covers, which are empty."""
        return open_cells(self.tree, self.domain.mask)

    @cached_property
    def stddev(self) -> Floats:
        """(n,) standard deviation of the noise in each node's `count`, in records. The error of assuming uniformity is not included."""
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
        """Estimate counts in boxes.

        Args:
            boxes: (q, 4) west, south, east, north in the domain's CRS; (4,) for one box.
            spread: also give the standard deviations.
            inside: how partitions that a box cuts are counted: "uniform" (by the share of their area) or "interpolated" (with more
                records near fuller neighbours) or "log-linear" (likewise, more steeply); None for the release's own `inside`.
                Where the domain has a mask, only open cells get records.
            outside: what to do with boxes that are partly outside the domain, where nothing was counted: "refuse" raises an error,
                "inside_part" answers the part inside and also gives the coverage.

        Returns:
            (q,) estimates, in records. With `spread` also (q,) standard deviations of the noise in the uniform answer; the error of the
            assumption inside partitions is not included. With "inside_part" also, last, (q,) the share of each box that lies inside
            the domain (see `coverage`).

        Raises:
            DomainError: malformed boxes, more than 1e-9 of a box outside the domain, or an unknown `inside` or `outside`.
        """
        share = check_coverage(self.domain, boxes, outside)
        estimates = self._answer_boxes(self.domain.lattice(boxes), self._interpolation(inside), spread)
        return _pack_result(estimates, share if outside == "inside_part" else None, spread)

    @overload
    def answer_interval(self, boxes: ArrayLike, *, outside: Literal["refuse"] = "refuse") -> tuple[Floats, Floats]: ...
    @overload
    def answer_interval(self, boxes: ArrayLike, *, outside: Literal["inside_part"]) -> tuple[Floats, Floats, Floats]: ...
    def answer_interval(self, boxes: ArrayLike, *, outside: str = "refuse") -> tuple[Floats, ...]:
        """Compute intervals for counts in boxes, as `interval` does for nodes: with probability at least 0.95, for the noise only.

        Each interval is centred on the estimate before any biased step; partitions that a box cuts count by the share of their area. So
        the result of `answer` may lie off the middle if small counts were shrunk towards 0, or if it interpolates. Each interval holds
        for a box that was chosen without looking at the counts, so not for the fullest box of many.

        Args:
            boxes: (q, 4) as for `answer`.
            outside: as for `answer`.

        Returns:
            (q,) lower and (q,) upper ends, whole numbers; with "inside_part" also (q,) the share of each box that lies inside.

        Raises:
            DomainError: as for `answer`.
        """
        share = check_coverage(self.domain, boxes, outside)
        unbiased = self if self.unbiased is None else replace(self, count=self.unbiased, unbiased=None, nonnegative=False)
        centre, stddev = unbiased.answer(boxes, spread=True, inside="uniform", outside="inside_part")[:2]
        ends = self.make_ends(centre, self.reach * stddev)
        return (*ends, share) if outside == "inside_part" else ends

    @overload
    def answer_areas(self, areas: Areas, *, spread: Literal[False] = False, outside: Literal["refuse"] = "refuse") -> Floats: ...
    @overload
    def answer_areas(self, areas: Areas, *, spread: Literal[True], outside: str = "refuse") -> tuple[Floats, ...]: ...
    @overload
    def answer_areas(self, areas: Areas, *, spread: bool = False, outside: Literal["inside_part"]) -> tuple[Floats, ...]: ...
    def answer_areas(self, areas: Areas, *, spread: bool = False, outside: str = "refuse") -> Floats | tuple[Floats, ...]:
        """Estimate counts in polygons. Partitions that a polygon cuts always count by the share of their area.

        Args:
            areas: (q,) polygons; reprojected to the domain's CRS. Or one polygon in this CRS.
            spread: also give the standard deviations.
            outside: as for `answer`.

        Returns:
            As for `answer`.

        Raises:
            DomainError: polygons without CRS although the domain has one; invalid or missing geometry; or more than 1e-9 of a polygon
                outside the domain.
        """
        shapes = shapes_of(self.domain, areas)
        share = check_coverage(self.domain, shapes, outside)
        estimates = self._answer(area_overlap(self.tree, self.domain, shapes), len(shapes), spread)
        return _pack_result(estimates, share if outside == "inside_part" else None, spread)

    def coverage(self, queries: ArrayLike | Areas) -> Floats:
        """Compute the share of each query that lies inside the domain. Nothing was counted outside.

        What the domain's mask covers lies inside: it is known to be empty.

        Args:
            queries: (q, 4) boxes in the domain's CRS, or (q,) polygons, which are reprojected.

        Returns:
            (q,) 0 to 1: the share of the area, planar in the domain's CRS; of the length if a box is a line; 1 or 0 if it is a point.

        Raises:
            DomainError: malformed boxes or polygons.
        """
        comparable = shapes_of(self.domain, queries) if is_areas(queries) else queries
        return check_coverage(self.domain, comparable, "inside_part")

    def blocks(self, zoom: int) -> Floats:
        """Estimate counts in equal blocks of the domain.

        Args:
            zoom: there are 2**zoom blocks per side; at most the lattice's order.

        Returns:
            (2**zoom, 2**zoom) estimates, in records, [row, column], row 0 in the south.
        """
        sums = block_sums(self.tree, self.count, zoom, self.domain.mask)
        difference = self._interpolation(None)
        return self._at_least_0(sums + difference.blocks(1 << zoom, self.domain.side)) if difference else sums

    def _interpolation(self, inside: str | None) -> Cumulative | None:
        """Compute the cumulative difference between interpolated and uniform answers; None if answers are uniform."""
        way = inside or self.inside
        check_choice(way, INSIDE, "inside", DomainError)
        if way != UNIFORM and way not in self._interpolation_sums:
            self._interpolation_sums[way] = interpolation_sums(self.tree, self.count, way, self.domain.mask)
        return self._interpolation_sums.get(way)

    @cached_property
    def _interpolation_sums(self) -> dict[str, Cumulative]:
        """What `_interpolation` has computed so far, by the way of interpolation."""
        return {}

    def to_frame(self, level: int | None = None) -> geopandas.GeoDataFrame:
        """Make a table of the partitions of a level.

        Args:
            level: 0 for the whole domain, to `height` for the finest partitions; None also gives the finest.

        Returns:
            GeoDataFrame with partition_id; level (of the partition itself, which may be coarser, since a partition that was not divided
            is part of all finer levels); count_noisy (as first measured, NaN if not measured); count; stddev; ci_low and ci_high (whole
            numbers, with probability at least 0.95 for the noise); if the release is `nonnegative`, count_outside (whether the count
            lies outside this interval); status (the same in every row); and geometry. Its `attrs` state whether it is "private" and
            whether it is a "simulation".

        Raises:
            DomainError: no such level.
        """
        nodes = self.nodes(level)
        columns = {"partition_id": nodes, "level": self.tree.depth[nodes], **self._make_columns(nodes), "status": self.status}
        geometry = self.domain.boxes(self.tree.rectangles(nodes))
        frame = geopandas.GeoDataFrame(columns, geometry=geometry, crs=self.domain.crs)
        frame.attrs = {"private": self.receipt.private and not self.simulation, "simulation": self.simulation}
        return frame

    def to_xarray(self, level: int | None = None) -> xarray.Dataset:
        """Make an xarray Dataset of a level whose partitions form a grid, such as those of a quadtree or a uniform grid.

        Needs xarray, which `pip install "dpviz[plot]"` brings.

        Args:
            level: as for `to_frame`.

        Returns:
            Dataset with dimensions y and x (centres of the partitions, ascending, in the domain's CRS), and the numbers of `to_frame` as
            variables. Its attributes are crs ("" for a plain plane), mechanism, level and status.

        Raises:
            DomainError: no such level, or partitions that form no grid.
            SettingError: xarray is not installed.
        """
        nodes = self.nodes(level)
        facts = {"mechanism": self.mechanism, "level": self.height if level is None else int(level), "status": self.status}
        return make_dataset(self.domain, self.tree.rectangles(nodes), self._make_columns(nodes), facts)

    def _make_columns(self, nodes: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Make the columns of numbers of (k,) nodes, by name."""
        low, high = self.interval(nodes)
        outside = {"count_outside": self.lies_outside(nodes)} if self.nonnegative else {}
        numbers = {"count_noisy": self.noisy[nodes], "count": self.count[nodes], "stddev": self.stddev[nodes]}
        return {**numbers, "ci_low": low, "ci_high": high, **outside}

    def nodes(self, level: int | None = None) -> NDArray[np.int64]:
        """Return the nodes that tile the domain at a level: the nodes of this level, and coarser leaves.

        Args:
            level: 0 to `height`; None gives the leaves.

        Returns:
            (k,) indices of nodes.

        Raises:
            DomainError: no such level.
        """
        if level is not None and level not in range(self.height + 1):
            raise DomainError(f"The release has levels 0 to {self.height}; 0 is the whole domain.")
        return self.tree.leaves if level is None or level >= self.tree.height else self.tree.cut(int(level))

    def open_nodes(self, level: int | None = None) -> NDArray[np.int64]:
        """Return (k,) the nodes of a level, as `nodes` does, without those that the domain's mask covers."""
        nodes = self.nodes(level)
        return nodes[self.open_cells[nodes] > 0]

    def interval(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Compute intervals that contain the true count of a node with probability at least 0.95, for the noise only.

        The half width is ln(20) / sqrt(2) = 2.12 standard deviations, rounded outwards to whole numbers. That is exact for one Laplace
        count; for sums of them the probability is larger. For Gaussian noise it is 1.96 standard deviations. If the release is
        `approximate`, so is the probability: estimates that reuse the counts by which the structure was chosen can be biased, most of
        all for large areas. (For the whole domain, 0.79 to 0.90 was measured with HTF, and 0.86 to 0.93 with the path-budget tree.)

        Intervals stand around the estimate before any biased step, and are cut at 0 if the release is `nonnegative`. So the count itself
        may lie outside: see `lies_outside`.

        Args:
            nodes: (k,) indices of nodes, chosen without looking at the counts.

        Returns:
            (k,) lower and (k,) upper ends.
        """
        centre = self.count if self.unbiased is None else self.unbiased
        return self.make_ends(centre[nodes], self.reach * self.stddev[nodes])

    def make_ends(self, centre: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """Make the ends of intervals: rounded outwards to whole numbers, and at least 0 if the release is `nonnegative`.

        Args:
            centre: (k,) estimates before any biased step.
            reach: (k,) half the widths of the intervals.

        Returns:
            (k,) lower and (k,) upper ends.
        """
        low, high = np.floor(centre - reach), np.ceil(centre + reach)
        return (np.maximum(low, 0.0), np.maximum(high, 0.0)) if self.nonnegative else (low, high)

    def lies_outside(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the counts of (k,) nodes lie outside of their own intervals, because a biased step moved them."""
        low, high = self.interval(nodes)
        return (self.count[nodes] < low) | (self.count[nodes] > high)

    @cached_property
    def _cumulative(self) -> Cumulative | None:
        return None if self.spread is None else cumulative(self.tree, self.count, self.domain.mask)

    @cached_property
    def _errors(self) -> Errors:
        return errors_of(self.tree, self.spread, self.noise_variance)

    def _answer_boxes(self, lattice: Floats, interpolation: Cumulative | None, spread: bool) -> tuple[Floats, Floats]:
        """Compute (q,) estimates in (q, 4) boxes in lattice units, and (q,) standard deviations, which are 0 unless `spread`."""
        difference = np.zeros(len(lattice)) if interpolation is None else interpolation.boxes(lattice)
        if not spread and self._cumulative is not None:
            return self._at_least_0(self._cumulative.boxes(lattice) + difference), np.zeros(len(lattice))
        if isinstance(self.spread, WaveletSpread) and self._cumulative is not None:
            return self._cumulative.boxes(lattice) + difference, np.sqrt(self.spread.boxes(lattice))
        estimate, stddev = self._answer(box_overlap(self.tree, lattice, self.domain.mask), len(lattice), spread)
        return self._at_least_0(estimate + difference), stddev

    def _at_least_0(self, estimate: Floats) -> Floats:
        """Return estimates without the negative ones that rounding makes where no count is negative."""
        return np.maximum(estimate, 0.0) if self.nonnegative else estimate

    def _answer(self, overlap: Overlap, queries: int, spread: bool) -> tuple[Floats, Floats]:
        estimate, variance = np.zeros(queries), np.zeros(queries)
        for part, fronts in batches(self.tree, overlap, queries):
            for front in fronts:
                share = np.where(front.ends, front.share, 0.0)
                estimate[part] += np.bincount(front.query - part.start, share * self.count[front.node], part.stop - part.start)
            if spread:
                variance[part] = variances(self.tree, self._errors, fronts, part)
        return estimate, np.sqrt(np.maximum(variance, 0.0))


def _pack_result(estimates: tuple[Floats, Floats], coverage: Floats | None, spread: bool) -> Floats | tuple[Floats, ...]:
    """Return estimates, followed by standard deviations if `spread`, and by the shares inside if these are given."""
    parts = (*estimates[: 2 if spread else 1], *(() if coverage is None else (coverage,)))
    return parts if len(parts) > 1 else parts[0]
