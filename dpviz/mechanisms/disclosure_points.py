"""What people do today with points: small counts suppressed, counts rounded, cells merged, points jittered. NOT PRIVATE: contrasts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.amounts import format_decimal
from dpviz.arrays import Floats, Integers, Mask, Places
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.mechanisms.base import TODAY, Share, setting
from dpviz.mechanisms.disclosure_control import (
    NO_BUDGET,
    NO_NOISE,
    PUBLISHED,
    base_setting,
    is_small,
    round_counts,
    rounding_setting,
    threshold_setting,
    totals_setting,
)
from dpviz.mechanisms.noisy_counts import PointMechanism, describe_mask
from dpviz.mechanisms.points.uniform_grid import MOST_PER_SIDE
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.receipt import Receipt
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from dpviz.space.grids import grid, quadtree, refuse_too_large
from dpviz.space.lengths import cell_lengths
from dpviz.space.tree import Tree, remove_descendants

MOST_MOVED = 2**25
"""The most records that are moved one by one."""
_USUAL_SHARE = 1 / 50  # of the domain's shorter side: the radius that is taken if none is given
NO_PROOF = "the records themselves: NOT PRIVATE"


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """What a contrast publishes.

    Attributes:
        tree: the partitions, n nodes.
        shown: (n,) counts as published; NaN where a count is suppressed, or only the sum of others.
        count: (n,) counts that answers and maps use: 0 where a count is suppressed, sums where it is one.
        steps: descriptions of what was done.
    """

    tree: Tree
    shown: Floats
    count: Floats
    steps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PointContrast(PointMechanism):
    """Base of the contrasts for points: a table that no central budget pays for. NOT PRIVATE.

    Protects: nothing that a proof covers. No noise is stated: standard deviations and intervals are NaN. The budget is passed on unused.
    """

    menu_group: ClassVar[str] = TODAY
    private: ClassVar[bool] = False
    spends: ClassVar[bool] = False
    whole_budget: ClassVar[str] = NO_BUDGET

    @abstractmethod
    def tabulate(self, points: PointCounts, entropy: Entropy) -> Table:
        """Make the table that is published. `entropy` is used only where the method itself is random."""

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> Release:
        """Publish the table. No budget is spent, and the release must not be published."""
        self.check_data(points)
        table = self.tabulate(points, require_entropy(entropy))
        nothing = np.full(len(table.tree), np.nan)
        return Release(
            mechanism=self.key,
            settings=self.chosen(),
            domain=points.domain,
            tree=table.tree,
            noisy=table.shown,
            noise_variance=nothing,
            count=table.count,
            spread=None,
            receipt=Receipt(
                total=budget,
                steps=(),
                unit=points.unit,
                contributions=points.contributions,
                unprotected=(*Receipt.unprotected, *describe_mask(points.domain), NO_PROOF),
                notes=(f"NOT PRIVATE: {self.attack}", NO_BUDGET, *self.notes(points.domain)),
                private=False,
            ),
            steps=table.steps,
            simulation=entropy.simulation,
            height=table.tree.height,
            approximate=NO_NOISE,
        )

    def notes(self, domain: Domain) -> tuple[str, ...]:  # noqa: ARG002
        """Return further notes for the receipt; none by default."""
        return ()

    def shares(self, frame: Domain) -> list[Share]:  # noqa: ARG002
        """List one share: nothing is spent."""
        return [Share(label="nothing: no budget is spent", share=1.0)]


def side_setting() -> Any:
    """Declare the setting `side` of a grid."""
    return setting(128, "Cells per side", low=1, high=MOST_PER_SIDE, help="Cells of the grid that is published; cut to the resolution.")


def radius_setting(label: str) -> Any:
    """Declare the setting `radius` of a method that moves records."""
    return setting(
        None,
        label,
        optional=True,
        low=1e-6,
        high=1e8,
        help="In metres; on a plane without a map, in its units. Left empty: a fiftieth of the domain's shorter side.",
    )


def _grid_of(points: PointCounts, side: int) -> tuple[Tree, Integers]:
    """Count points exactly on a grid: return its tree, and (n,) true counts of the nodes. PRIVATE."""
    fitting = min(side, points.domain.side)
    tree = grid(points.domain, fitting, fitting)
    return tree, tree.sums(points.column, points.row, points.count)


def _sum_leaves(tree: Tree, count: Floats) -> Floats:
    """Return (n,) counts in which every node with children is the sum of its children."""
    count = count.copy()
    for depth in range(tree.height - 1, -1, -1):
        parents = tree.at_depth(depth)
        inner = tree.children[parents] > 0
        count[parents] = np.where(inner, tree.sum_children(depth, count[tree.at_depth(depth + 1)]), count[parents])
    return count


def _publish(tree: Tree, shown: Floats, totals: str, steps: tuple[str, ...]) -> Table:
    """Make a table of (n,) shown counts, NaN where suppressed; with summed totals, only the leaves' are used."""
    count = np.nan_to_num(shown, nan=0.0)
    if totals == PUBLISHED:
        return Table(tree=tree, shown=shown, count=count, steps=(*steps, "larger areas are tables of their own and need not add up"))
    shown = np.where(tree.children == 0, shown, np.nan)
    return Table(tree=tree, shown=shown, count=_sum_leaves(tree, count), steps=(*steps, "larger areas are sums of published cells"))


@dataclass(frozen=True, kw_only=True)
class SuppressedCounts(PointContrast):
    """Exact counts of a grid, of which small ones are not shown. NOT PRIVATE: a total minus its other parts gives a suppressed count.

    Protects: nothing that a proof covers. All other counts are exact, so that two tables which differ by one person show the difference.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 4.2: the minimum frequency rule, primary suppression alone.

    Deviations:
        Larger areas (two by two cells, and so on to the whole domain) are published, too, and their small counts are suppressed in the same
        way: offices publish totals. `totals="summed"` shows only what the published cells add up to. No further cells are suppressed to
        protect the small ones. A suppressed cell counts as 0 on maps and in sums; `noisy` is NaN there. An empty cell is shown as 0.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.SuppressedCounts(side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    Release(suppressed_counts, 256 partitions, NOT PRIVATE)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "suppressed_counts"
    title: ClassVar[str] = "Small counts suppressed (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: exact counts, of which small ones are left out, as many offices publish them."
    attack: ClassVar[str] = "subtract two such tables from each other, or from a total its other parts, and what is left is one person."
    lesson: ClassVar[str] = "differencing"

    side: int = side_setting()
    threshold: int = threshold_setting("records")
    totals: str = totals_setting("suppressed")

    def tabulate(self, points: PointCounts, entropy: Entropy) -> Table:  # noqa: ARG002
        """Count the grid exactly, and leave out counts from 1 to `threshold` - 1; nothing is random."""
        tree, true = _grid_of(points, self.side)
        shown = np.where(is_small(true, self.threshold), np.nan, true)
        return _publish(tree, shown, self.totals, (f"counts from 1 to {self.threshold - 1:,} left out, and taken as 0",))


@dataclass(frozen=True, kw_only=True)
class RoundedCounts(PointContrast):
    """Counts of a grid, rounded to multiples of 3 or 5. NOT PRIVATE: cells and totals together leave few possibilities.

    Protects: nothing that a proof covers. A count is known to within less than the base, and more closely if totals are published, too.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 5.4; Statistics New Zealand rounds to base 3.

    Deviations:
        Larger areas are rounded from their own true counts, as offices do, so that cells need not add up. `totals="summed"` shows the sums
        of rounded cells. Random rounding is drawn anew for each number and each release, with exact probabilities.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.RoundedCounts(side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1)).count[0] % 3
    np.float64(0.0)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "rounded_counts"
    title: ClassVar[str] = "Rounded counts (NOT PRIVATE)"
    summary: ClassVar[str] = (
        "NOT PRIVATE: counts rounded to multiples of 3 or 5, at random or to the nearest, as some offices publish them."
    )
    attack: ClassVar[str] = "cells and totals that are rounded apart from each other leave few possibilities for the true counts."
    lesson: ClassVar[str] = "reconstruction"

    side: int = side_setting()
    base: int = base_setting()
    rounding: str = rounding_setting()
    totals: str = totals_setting("rounded")

    def tabulate(self, points: PointCounts, entropy: Entropy) -> Table:
        """Count the grid exactly, and round every count by itself."""
        tree, true = _grid_of(points, self.side)
        shown = round_counts(true, self.base, self.rounding, entropy).astype(np.float64)
        return _publish(tree, shown, self.totals, (f"counts rounded to multiples of {self.base} ({self.rounding})",))


@dataclass(frozen=True, kw_only=True)
class MergedCells(PointContrast):
    """Quarters of quarters, merged until each part has no record or at least k. NOT PRIVATE: the parts and their counts are exact.

    Protects: nothing that a proof covers. Every record shares its part with k - 1 others, of the same person perhaps; counts and borders
    are exact functions of the data, so that one person more changes them.

    Source:
        Samarati, Sweeney, "Protecting privacy when disclosing information: k-anonymity and its enforcement through generalization and
        suppression", 1998; the quadtree of Gruteser, Grunwald, "Anonymous usage of location-based services through spatial and temporal
        cloaking", MobiSys 2003, Section 4.

    Deviations:
        A table of parts in place of a cloak for each message: four quarters become one part if any of them has from 1 to k - 1 records.
        Empty parts are shown as such. If there are fewer than k records in all, their number is suppressed.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> release = dv.MergedCells(k=10, height=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> parts = release.count[release.tree.leaves]
    >>> bool(((parts == 0) | (parts >= 10)).all())
    True
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "merged_cells"
    title: ClassVar[str] = "Merged cells, k-anonymous (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: cells are merged until none has fewer than k records, and then counted exactly."
    attack: ClassVar[str] = "counts and borders are exact, so that two tables from before and after a move differ by one person."
    lesson: ClassVar[str] = "differencing"

    k: int = setting(
        10, "Least records of a part, k", low=2, high=10**6, help="Cells are merged until each has none or at least k records."
    )
    height: int = setting(8, "Height", low=1, high=12, help="Steps from the whole domain to the smallest cells; cut to the resolution.")

    def check(self, frame: Domain) -> None:
        """Raise an error if the tree is too large for memory."""
        refuse_too_large(min(self.height, frame.order), 4)

    def tabulate(self, points: PointCounts, entropy: Entropy) -> Table:  # noqa: ARG002
        """Count all quarters exactly, and merge them bottom-up; nothing is random."""
        fine = quadtree(points.domain, min(self.height, points.domain.order))
        true = fine.sums(points.column, points.row, points.count)
        tree, kept = remove_descendants(fine, has_small_child(fine, true, self.k))
        shown = np.where(is_small(true[kept], self.k), np.nan, true[kept])
        steps = (f"quarters merged where one of them had from 1 to {self.k - 1:,} records",)
        return Table(tree=tree, shown=shown, count=np.nan_to_num(shown, nan=0.0), steps=steps)

    def depends_on_data(self, release: Release) -> bool:  # noqa: ARG002
        """Return True: which cells are merged follows from the counts."""
        return True


def has_small_child(tree: Tree, count: Integers, k: int) -> Mask:
    """Return (n,) whether a node has a child with from 1 to k - 1 records, so that its children are merged.

    Args:
        tree: any tree of n nodes.
        count: (n,) true counts.
        k: the least number of records of a part that has any.
    """
    small, merge = is_small(count, k), np.zeros(len(tree), np.bool_)
    merge[tree.parent[1:][small[1:]]] = True
    return merge


@dataclass(frozen=True, kw_only=True)
class JitteredPoints(PointContrast):
    """Each record is moved to a random place within a fixed radius, and then counted. NOT PRIVATE: no one leaves the circle.

    Protects: nothing that a proof covers. A moved point shows a circle that surely holds the true one; several points of one person,
    moved independently, show it ever more closely.

    Source:
        Random perturbation within a disc, a geographic mask: Kwan, Casas, Schmitz, "Protection of geoprivacy and accuracy of spatial
        information", Cartographica 39(2), 2004.

    Deviations:
        Records are known by their cell of the lattice, from whose middle they are moved, evenly within the disc and independently of each
        other. Cells have the width of their row of the map. Records that would leave the domain go to its nearest cell. Counts are shown on
        a grid. Without a radius, it is a fiftieth of the shorter side of the domain.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster", size=1000)
    >>> release = dv.JitteredPoints(side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> release.count[0] == points.count.sum()
    np.True_
    """

    key: ClassVar[str] = "jittered_points"
    title: ClassVar[str] = "Jittered points (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: each point is moved at random within a fixed radius, as shared research data often are."
    attack: ClassVar[str] = "the mean of one person's moved points is near the true place, and no point leaves its circle."
    lesson: ClassVar[str] = "finding_home"

    radius: float | None = radius_setting("Radius (m)")
    side: int = side_setting()

    def tabulate(self, points: PointCounts, entropy: Entropy) -> Table:
        """Move every record, and count the grid."""
        columns, rows = self.move(points, entropy)
        return count_moved(
            points.domain, self.side, columns, rows, f"every record moved at random by at most {format_decimal(self._radius(points), 3)}"
        )

    def notes(self, domain: Domain) -> tuple[str, ...]:
        """Note a lattice that is too coarse for the radius."""
        return note_coarse_lattice(domain, usual_radius(domain) if self.radius is None else self.radius)

    def move(self, points: PointCounts, entropy: Entropy) -> tuple[Places, Places]:
        """Move every record.

        Args:
            points: n records. PRIVATE.
            entropy: the stream from which directions and distances are drawn.

        Returns:
            (n,) columns and (n,) rows of the moved records, in the order of the cells.
        """
        column, row = each_record(points)
        angle, reach = 2 * np.pi * uniform(len(row), entropy), self._radius(points) * np.sqrt(uniform(len(row), entropy))
        width, height = cell_lengths(points.domain, row)
        east, north = np.floor(0.5 + reach * np.cos(angle) / width), np.floor(0.5 + reach * np.sin(angle) / height)
        return into_domain(points.domain, column + east, row + north)

    def _radius(self, points: PointCounts) -> float:
        return usual_radius(points.domain) if self.radius is None else self.radius


def note_coarse_lattice(domain: Domain, radius: float) -> tuple[str, ...]:
    """Return a note for the receipt if cells of the lattice are larger than a radius: records are moved from cell to cell."""
    widths, heights = cell_lengths(domain, np.array([domain.side // 2]))
    if radius >= max(widths[0], heights[0]):
        return ()
    return ("The cells of the lattice are larger than the radius, so that few records leave theirs: choose a finer resolution.",)


def into_domain(domain: Domain, column: NDArray[Any], row: NDArray[Any]) -> tuple[Places, Places]:
    """Return the nearest cell in the domain of each (n,) column and (n,) row, which may lie outside."""
    last = domain.side - 1
    return np.clip(column, 0, last).astype(np.int32), np.clip(row, 0, last).astype(np.int32)


def count_moved(domain: Domain, side: int, column: Places, row: Places, step: str) -> Table:
    """Count (n,) moved records on a grid; `step` describes how they were moved."""
    fitting = min(side, domain.side)
    tree = grid(domain, fitting, fitting)
    shown = tree.sums(column, row, np.ones(len(row), np.int64)).astype(np.float64)
    return Table(tree=tree, shown=shown, count=shown, steps=(step,))


def usual_radius(domain: Domain) -> float:
    """Return a fiftieth of the domain's shorter side, in metres (or units of the plane).

    >>> usual_radius(Domain(bounds=(0, 0, 100, 200), crs=None, order=4))
    2.0
    """
    widths, heights = cell_lengths(domain, np.array([domain.side // 2]))
    return float(min(widths[0], heights[0])) * domain.side * _USUAL_SHARE


def each_record(points: PointCounts) -> tuple[Places, Places]:
    """Return the (n,) columns and (n,) rows of all records, one by one. PRIVATE.

    Raises:
        DomainError: there are more records than are moved one by one.
    """
    if int(points.count.sum()) > MOST_MOVED:
        raise DomainError(f"At most {MOST_MOVED:,} records are moved one by one; take a sample of them.")
    return np.repeat(points.column, points.count), np.repeat(points.row, points.count)


def uniform(n: int, entropy: Entropy) -> Floats:
    """Return (n,) random numbers from 0 up to 1, with 53 bits. Good enough where nothing is proved."""
    return (require_entropy(entropy).words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
