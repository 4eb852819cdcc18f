"""The release of a point mechanism: noisy counts on a tree, answers of range queries with their exact variance, and the receipt."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, overload

import geopandas
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import DomainError, check_choice
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import PRIVATE, Step
from dpviz.privacy.wavelet import WaveletSpread, coefficients
from dpviz.release.base import Rows
from dpviz.release.count_release import CountRelease
from dpviz.release.intervals import ASSUMED, NONE_TO_ALL
from dpviz.release.regular_grid import make_dataset
from dpviz.release.unevenness import CutSums, Unevenness
from dpviz.space.coverage import check_coverage, is_areas, shapes_in
from dpviz.space.domain import Domain
from dpviz.space.interpolate import FILLS, UNIFORM, interpolation_sums
from dpviz.space.mask import open_cells
from dpviz.space.ranges import Cumulative, Front, Overlap, area_overlap, batches, block_sums, box_overlap, cumulative
from dpviz.space.tree import Tree

if TYPE_CHECKING:
    import xarray


Areas: TypeAlias = geopandas.GeoDataFrame | geopandas.GeoSeries


@dataclass(frozen=True, kw_only=True, eq=False)
class PointRelease(CountRelease):
    """Noisy counts on a tree of partitions. PUBLIC: everything in it was released by a mechanism.

    Attributes:
        domain: the public frame.
        tree: the partitions: a tree of n nodes. Those that the domain's mask covers are known to be empty.
        height: the finest level of the tree as it was built; level 0 is the whole domain. After pruning, `tree` may be less deep.
        fill: the assumption about records inside a partition that a query cuts, unless the query says otherwise: "uniform",
            "interpolated" or "log-linear".
        second_measurement: (n,) second measurements, NaN where there was none; None for mechanisms that never measure twice. `count` uses
            both.
        nonnegative: whether no count is below 0, because negative ones were spread.

    The other attributes are those of `CountRelease`.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1, 2, 9], [1, 3, 9], domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(10), dv.Entropy.seeded(1))
    >>> release
    PointRelease(quadtree, 16 partitions, epsilon 10, SIMULATION: not private)
    >>> count, stddev = release.answer([[0, 0, 8, 8]], spread=True)
    >>> bool(abs(count[0] - 2) < 4 * stddev[0])
    True
    """

    family: ClassVar[str] = "points"
    coarse_level: ClassVar[int] = 2

    domain: Domain
    tree: Tree
    height: int
    fill: str = UNIFORM
    second_measurement: Floats | None = None
    nonnegative: bool = False

    @property
    def hierarchy(self) -> Tree:
        """The tree."""
        return self.tree

    def level_number(self, level: int | None) -> int:
        """Return the number of a level, 0 for the whole domain to `height`; None is the finest.

        Raises:
            DomainError: no such level.
        """
        if level is not None and level not in range(self.height + 1):
            raise DomainError(f"The release has levels 0 to {self.height}; 0 is the whole domain.")
        return self.height if level is None else int(level)

    def drawable_levels(self) -> dict[int, int]:
        """Return how many partitions each level has, by its number."""
        return {level: len(self.nodes(level)) for level in range(self.height + 1)}

    def __repr__(self) -> str:
        stamp = "" if self.status == PRIVATE else f", {self.status}"
        return f"PointRelease({self.mechanism}, {len(self.tree.leaves):,} partitions{self.receipt.describe_total()}{stamp})"

    @cached_property
    def open_cells(self) -> Floats:
        """(n,) number of lattice cells of each node in which records can be; 0 for nodes that the domain's mask covers, which are empty."""
        return open_cells(self.tree, self.domain.mask)

    @overload
    def answer(
        self, boxes: ArrayLike, *, spread: Literal[False] = False, fill: str | None = None, outside: Literal["refuse"] = "refuse"
    ) -> Floats: ...
    @overload
    def answer(
        self, boxes: ArrayLike, *, spread: Literal[True], fill: str | None = None, outside: str = "refuse"
    ) -> tuple[Floats, ...]: ...
    @overload
    def answer(
        self, boxes: ArrayLike, *, spread: bool = False, fill: str | None = None, outside: Literal["inside_part"]
    ) -> tuple[Floats, ...]: ...
    def answer(
        self, boxes: ArrayLike, *, spread: bool = False, fill: str | None = None, outside: str = "refuse"
    ) -> Floats | tuple[Floats, ...]:
        """Estimate counts in boxes.

        Args:
            boxes: (q, 4) west, south, east, north in the domain's CRS; (4,) for one box.
            spread: also give the standard deviations.
            fill: how partitions that a box cuts are counted: "uniform" (by the share of their area) or "interpolated" (with more
                records near fuller neighbours) or "log-linear" (likewise, more steeply); None for the release's own `fill`.
                Where the domain has a mask, only open cells get records.
            outside: what to do with boxes that are partly outside the domain, where nothing was counted: "refuse" raises an error,
                "inside_part" answers the part inside and also gives the coverage.

        Returns:
            (q,) estimates, in records. With `spread` also (q,) standard deviations of the noise in the uniform answer; the error of the
            assumption inside partitions is not included (`answer_interval` allows for it). With "inside_part" also, last, (q,) the share
            of each box that lies inside the domain (see `coverage`).

        Raises:
            DomainError: malformed boxes, more than 1e-9 of a box outside the domain, or an unknown `fill` or `outside`.
        """
        share = check_coverage(self.domain, boxes, outside)
        estimates = self._answer_boxes(self.domain.lattice(boxes), self._interpolation(fill), spread)
        return _pack_result(estimates, share if outside == "inside_part" else None, spread)

    @overload
    def answer_interval(self, boxes: ArrayLike, *, joint: bool = False, outside: Literal["refuse"] = "refuse") -> tuple[Floats, Floats]: ...
    @overload
    def answer_interval(
        self, boxes: ArrayLike, *, joint: bool = False, outside: Literal["inside_part"]
    ) -> tuple[Floats, Floats, Floats]: ...
    def answer_interval(self, boxes: ArrayLike, *, joint: bool = False, outside: str = "refuse") -> tuple[Floats, ...]:
        """Compute intervals for counts in boxes, each for a box that was chosen without looking at the counts.

        The interval of a box that is made of whole partitions is as in `interval`: it holds with probability at least 0.95, covers the
        noise only, and is centred on the estimate before any biased step, so that the result of `answer` may lie off the middle.

        The interval of a box that cuts partitions (see `cuts`) stands around the result of `answer`, and holds in about 95 %, under an
        assumption on what lies inside partitions: that records lie there as unevenly as released counts do just above the finest
        partitions. It is wider, most of all above the answer, since a small box can have most of a partition's records; `Unevenness` has
        the formulas. Where fewer than ten partitions just above the finest rise above the noise, or where most of their records lie in
        one part, it reaches from none to all of the records of the partitions that the box cuts. Over seventeen made-up sets at epsilon
        0.1 and 1, and over eighteen of 800 records, such intervals held on average in 90 to 100 % of boxes, by mechanism and kind of box;
        on single sets in 15 (thin boxes on straight streets) to 100 %. It is no guarantee, and no lower bound. None of them may hold where
        boxes follow a regular pattern that is finer than the partitions, such as blocks, streets, the edge of empty land or one heavy
        cell, or around a single village in even land.

        Args:
            boxes: (q, 4) as for `answer`.
            joint: whether the intervals hold at once, by Bonferroni with N = `numbers`, or the number of boxes if this is more: either for
                all of these boxes, or, as those of `interval`, for boxes that are partitions and were chosen by their counts; not for
                both together. What lies inside cut partitions is allowed for with the same multiple, but not for all boxes at once.
            outside: as for `answer`.

        Returns:
            (q,) lower and (q,) upper ends, whole numbers of at least 0; with "inside_part" also (q,) the share of each box that lies
            inside.

        Raises:
            DomainError: as for `answer`.
        """
        share, lattice = check_coverage(self.domain, boxes, outside), self.domain.lattice(boxes)
        cut = CutSums(self.unevenness, lattice)
        centre, stddev = self._sum_boxes(lattice, self.centre, cut=cut)
        low, high = self._ends(centre, stddev, joint=joint)
        if cut.is_cut.any():
            answer, _ = self._answer_boxes(lattice, self._interpolation(None), spread=False)
            ends = cut.ends(answer, centre, stddev, partial(self._half_widths, joint=joint))
            low, high = (np.where(cut.is_cut, *pair) for pair in zip(ends, (low, high), strict=True))
        return (low, high, share) if outside == "inside_part" else (low, high)

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
        shapes = shapes_in(self.domain.crs, areas)
        share = check_coverage(self.domain, shapes, outside)
        estimates = self._sum_shares(area_overlap(self.tree, self.domain, shapes), len(shapes), self.count, spread=spread)
        return _pack_result(estimates, share if outside == "inside_part" else None, spread)

    def cuts(self, boxes: ArrayLike) -> NDArray[np.bool_]:
        """Return (q,) whether each box cuts a partition, so that its interval needs an assumption; (q, 4) boxes inside the domain.

        >>> import dpviz as dv
        >>> points = dv.PointCounts.from_matrix(np.ones((16, 16), int), domain=dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4))
        >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
        >>> release.cuts([(0, 0, 8, 4), (0, 0, 8, 3)]).tolist()
        [False, True]
        """
        lattice = self.domain.lattice(boxes)
        cut = CutSums(self.unevenness, lattice)
        cut.add_all(self.domain.mask)
        return cut.is_cut

    def error_parts(self, boxes: ArrayLike) -> tuple[Floats, CutSums]:
        """Return (q,) standard deviations of the noise in (q, 4) boxes inside the domain, and what the partitions that they cut may add."""
        lattice = self.domain.lattice(boxes)
        cut = CutSums(self.unevenness, lattice)
        return self._sum_boxes(lattice, self.centre, cut=cut)[1], cut

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
        comparable = shapes_in(self.domain.crs, queries) if is_areas(queries) else queries
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

    def _interpolation(self, fill: str | None) -> Cumulative | None:
        """Compute the cumulative difference between interpolated and uniform answers; None if answers are uniform."""
        way = fill or self.fill
        check_choice(way, FILLS, "fill", DomainError)
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
            is part of all finer levels); count; count_noisy (as first measured, NaN if not measured); stddev; ci_low and ci_high, all_low
            and all_high (see `interval`; the latter joint); if the release is `nonnegative`, count_outside (whether the count lies outside
            of ci_low to ci_high); status (the same in every row); and geometry. Its `attrs` are those of the release.

        Raises:
            DomainError: no such level.
        """
        nodes = self.nodes(level)
        columns = {"partition_id": nodes, "level": self.tree.depth[nodes], **self.node_columns(nodes), "status": self.status}
        geometry = self.domain.boxes(self.tree.rectangles(nodes))
        frame = geopandas.GeoDataFrame(columns, geometry=geometry, crs=self.domain.crs)
        frame.attrs = self.attrs
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
        facts = {"mechanism": self.mechanism, "level": self.level_number(level), "status": self.status}
        return make_dataset(self.domain, self.tree.rectangles(nodes), self.node_columns(nodes), facts)

    def node_columns(self, nodes: Integers | slice) -> dict[str, Any]:
        """Make the columns of numbers of (k,) nodes that every table has, by name."""
        return super().node_columns(nodes) | ({"count_outside": self.lies_outside(nodes)} if self.nonnegative else {})

    def open_nodes(self, level: int | None = None) -> NDArray[np.int64]:
        """Return (k,) the nodes of a level, as `nodes` does, without those that the domain's mask covers."""
        nodes = self.nodes(level)
        return nodes[self.open_cells[nodes] > 0]

    def lies_outside(self, nodes: Integers | slice) -> NDArray[np.bool_]:
        """Return whether the counts of (k,) nodes lie outside of their own intervals, because a biased step moved them."""
        low, high = self.node_interval(nodes)
        return (self.count[nodes] < low) | (self.count[nodes] > high)

    @property
    def frame(self) -> Domain:
        """The domain."""
        return self.domain

    def name_level(self, level: int) -> str:
        """Name a level for readers: "whole area", or its number."""
        return "whole area" if level == 0 else f"level {level}, the finest" if level == self.height else f"level {level}"

    def typical_size(self, level: int) -> float:
        """Return the median area of a level's partitions, in km2 or square units of a plane."""
        return float(np.nanmedian(self.domain.areas_km2(self.tree.rectangles(self.open_nodes(level)))))

    def describe_intervals(self) -> str:
        """Say how its intervals are made, and what they cover; of boxes, too, where the noise is stated."""
        if not self.states_noise:
            return super().describe_intervals()
        cut = f"Of boxes that cut partitions, intervals (PointRelease.answer_interval) hold in {self.says_of_cut_boxes}."
        return f"{super().describe_intervals()} {cut}"

    def is_structure(self, step: Step) -> bool:
        """Return whether a step chose the structure (splits, medians, sizes); else it measured counts that are published."""
        return not step.purpose.startswith("counts")

    def path_to(self, leaf: int) -> Integers:
        """Return the (k,) nodes that contain a cell of the lattice, root first."""
        tree, (row, column) = self.tree, divmod(leaf, self.domain.side)
        if tree.curve is not None:
            position = int(tree.curve.positions(np.array([column]), np.array([row]), self.domain.order)[0])
            return np.flatnonzero((tree.curve.first <= position) & (position < tree.curve.last))
        return np.flatnonzero((tree.west <= column) & (column < tree.east) & (tree.south <= row) & (row < tree.north))

    def observe(self, leaves: tuple[int, ...]) -> tuple[list[Rows], Floats]:
        """Return what `CountRelease.observe` does, and of a wavelet its coefficients, which alone have independent noise."""
        rows, variances = super().observe(leaves)
        if not isinstance(self.spread, WaveletSpread):
            return rows, variances
        values = coefficients(self.blocks(self.spread.order)).ravel().round()  # type: ignore[arg-type]
        rows.append(Rows([(number,) for number in range(len(values))], {"coefficient": values}))
        return rows, np.full(4**self.spread.order, self.spread.variance)

    def _observe_path(self, path: Integers) -> dict[str, Floats]:
        second = self.noisy if self.second_measurement is None else self.second_measurement
        sides = dict(zip(("west", "south", "east", "north"), self.tree.rectangles(path).T, strict=True))
        counts = {"noisy count": self.noisy[path], "count": self.count[path], "second count": second[path]}
        return counts | super()._observe_path(path) | sides

    def _label_nodes(self) -> list[tuple[Hashable, ...]]:
        return [tuple(box) for box in self.tree.rectangles().tolist()]

    @cached_property
    def _cumulative(self) -> Cumulative | None:
        return None if self.spread is None else cumulative(self.tree, self.count, self.domain.mask)

    def _answer_boxes(self, lattice: Floats, interpolation: Cumulative | None, spread: bool) -> tuple[Floats, Floats]:
        """Compute (q,) estimates in (q, 4) boxes in lattice units, and (q,) standard deviations, which are 0 unless `spread`."""
        difference = np.zeros(len(lattice)) if interpolation is None else interpolation.boxes(lattice)
        if not spread and self._cumulative is not None:
            return self._at_least_0(self._cumulative.boxes(lattice) + difference), np.zeros(len(lattice))
        estimate, stddev = self._sum_boxes(lattice, self.count, spread=spread)
        return self._at_least_0(estimate + difference), stddev

    def _at_least_0(self, estimate: Floats) -> Floats:
        """Return estimates without the negative ones that rounding makes where no count is negative."""
        return np.maximum(estimate, 0.0) if self.nonnegative else estimate

    @cached_property
    def unevenness(self) -> Unevenness:
        """How uneven records may lie inside partitions, from released numbers alone."""
        return Unevenness.of(self.tree, self.open_cells, (self.count, self.centre), self.node_stddev, self.noise)

    @property
    def says_of_cut_boxes(self) -> str:
        """How often intervals of boxes that cut partitions hold, and under which assumption; of a release whose noise is stated."""
        return ASSUMED if self.unevenness.is_learned else NONE_TO_ALL

    def _sum_boxes(self, lattice: Floats, counts: Floats, *, spread: bool = True, cut: CutSums | None = None) -> tuple[Floats, Floats]:
        """Add up (n,) counts in (q, 4) boxes, uniformly; also compute (q,) standard deviations, which are 0 unless `spread`.

        What cut partitions may add is added to `cut`, if it is given.
        """
        if isinstance(self.spread, WaveletSpread):
            sums = self._cumulative if counts is self.count else cumulative(self.tree, counts, self.domain.mask)
            assert sums is not None  # noqa: S101  (for the type checker: the leaves are one grid)
            if cut is not None:
                cut.add_all(self.domain.mask)
            return sums.boxes(lattice), np.sqrt(self.spread.boxes(lattice))
        overlap = box_overlap(self.tree, lattice, self.domain.mask)
        return self._sum_shares(overlap, len(lattice), counts, spread=spread, cut=cut)

    def _sum_shares(
        self, overlap: Overlap, queries: int, counts: Floats, *, spread: bool, cut: CutSums | None = None
    ) -> tuple[Floats, Floats]:
        """Add up (n,) counts by the shares of nodes in queries, as `_sum_boxes` does."""
        estimate, stddev = np.zeros(queries), np.zeros(queries)
        for part, fronts in batches(self.tree, overlap, queries):
            for front in fronts:
                share = np.where(front.ends, front.share, 0.0)
                estimate[part] += np.bincount(front.query - part.start, share * counts[front.node], part.stop - part.start)
            if spread:
                stddev[part] = self._front_stddev(fronts, part)
            if cut is not None:
                cut.add(part, fronts)
        return estimate, stddev

    def _front_stddev(self, fronts: list[Front], part: slice) -> Floats:
        """Compute standard deviations of the queries of a part, from their fronts."""
        if isinstance(self.spread, Spread):
            return np.sqrt(self.spread.of_fronts(self.tree, fronts, part))
        ended = [(front.query[front.ends], front.node[front.ends], front.share[front.ends]) for front in fronts]
        query, node, share = (np.concatenate(each) for each in zip(*ended, strict=True))
        return self.sum_stddev(scipy.sparse.csr_array((share, (query - part.start, node)), (part.stop - part.start, len(self.tree))))


def _pack_result(estimates: tuple[Floats, Floats], coverage: Floats | None, spread: bool) -> Floats | tuple[Floats, ...]:
    """Return estimates, followed by standard deviations if `spread`, and by the shares inside if these are given."""
    parts = (*estimates[: 2 if spread else 1], *(() if coverage is None else (coverage,)))
    return parts if len(parts) > 1 else parts[0]
