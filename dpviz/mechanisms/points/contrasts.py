"""What people do today with points: small counts suppressed, counts rounded, cells merged. NOT PRIVATE: contrasts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Integers, Mask
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.contrasts import NO_NOISE, NO_PROOF, ChangedCounts, Contrast, Merged, Rounded, Suppressed, Table, is_small
from dpviz.mechanisms.points.base import PointMechanism, describe_mask
from dpviz.mechanisms.points.uniform_grid import MOST_PER_SIDE
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.receipt import Receipt
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import grid, quadtree, refuse_too_large
from dpviz.space.tree import Tree, remove_descendants


@dataclass(frozen=True, kw_only=True)
class PointContrast(Contrast, PointMechanism):
    """Base of the contrasts for points: a table that no central budget pays for. NOT PRIVATE."""

    @abstractmethod
    def tabulate(self, points: PointCounts, entropy: Entropy) -> tuple[Tree, Table]:
        """Make the table that is published. `entropy` is used only where the method itself is random."""

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Publish the table. No budget is spent, and the release must not be published."""
        self.check_data(points)
        tree, table = self.tabulate(points, require_entropy(entropy))
        nothing = np.full(len(tree), np.nan)
        unprotected = (*Receipt.unprotected, *describe_mask(points.domain), NO_PROOF)
        return PointRelease(
            domain=points.domain,
            tree=tree,
            noisy=table.shown,
            noise_variance=nothing,
            count=table.count,
            spread=None,
            **self.release_facts(self.write_receipt(points, budget, unprotected, self.notes(points.domain)), entropy),
            steps=table.steps,
            height=tree.height,
            approximate=NO_NOISE,
        )

    def notes(self, domain: Domain) -> tuple[str, ...]:  # noqa: ARG002
        """Return further notes for the receipt; none by default."""
        return ()


def side_setting() -> Any:
    """Declare the setting `side` of a grid."""
    return setting(128, "Cells per side", low=1, high=MOST_PER_SIDE, help="Cells of the grid that is published; cut to the resolution.")


def fit_grid(domain: Domain, side: int) -> Tree:
    """Make the grid of `side` x `side` cells, or of all cells of the lattice if these are fewer."""
    fitting = min(side, domain.side)
    return grid(domain, fitting, fitting)


@dataclass(frozen=True, kw_only=True)
class ChangedGrid(ChangedCounts, PointContrast):
    """Contrasts that change the counts of a grid."""

    takes_mask: ClassVar[bool] = True

    side: int = side_setting()

    def tabulate(self, points: PointCounts, entropy: Entropy) -> tuple[Tree, Table]:
        """Count the grid exactly, and change the counts."""
        tree = fit_grid(points.domain, self.side)
        return tree, self.publish(tree, tree.sums(points.column, points.row, points.count), entropy)


@dataclass(frozen=True, kw_only=True)
class SuppressedCounts(Suppressed, ChangedGrid):
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
    >>> dv.contrasts.SuppressedCounts(side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(suppressed_counts, 256 partitions, NOT PRIVATE)
    """

    key: ClassVar[str] = "suppressed_counts"
    title: ClassVar[str] = "Small counts suppressed (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: exact counts, of which small ones are left out, as many offices publish them."


@dataclass(frozen=True, kw_only=True)
class RoundedCounts(Rounded, ChangedGrid):
    """Counts of a grid, rounded to multiples of 3 or 5. NOT PRIVATE: cells and totals together leave few possibilities.

    Protects: nothing that a proof covers. A count is known to within less than the base, and more closely if totals are published, too.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 5.4; Statistics New Zealand rounds to base 3.

    Deviations:
        Larger areas are rounded from their own true counts, as offices do, so that cells need not add up. `totals="summed"` shows the sums
        of rounded cells. Random rounding is drawn anew for each number and each release, with exact probabilities.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.contrasts.RoundedCounts(side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1)).count[0] % 3
    np.float64(0.0)
    """

    key: ClassVar[str] = "rounded_counts"
    title: ClassVar[str] = "Rounded counts (NOT PRIVATE)"
    summary: ClassVar[str] = (
        "NOT PRIVATE: counts rounded to multiples of 3 or 5, at random or to the nearest, as some offices publish them."
    )


@dataclass(frozen=True, kw_only=True)
class MergedCells(Merged, PointContrast):
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
    >>> release = dv.contrasts.MergedCells(k=10, height=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> parts = release.count[release.tree.leaves]
    >>> bool(((parts == 0) | (parts >= 10)).all())
    True
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "merged_cells"
    title: ClassVar[str] = "Merged cells, k-anonymous (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: cells are merged until none has fewer than k records, and then counted exactly."
    attack: ClassVar[str] = "counts and borders are exact, so that two tables from before and after a move differ by one person."

    height: int = setting(8, "Height", low=1, high=12, help="Steps from the whole domain to the smallest cells; cut to the resolution.")

    def check(self, frame: Domain) -> None:
        """Raise an error if the tree is too large for memory."""
        refuse_too_large(min(self.height, frame.order), 4)

    @property
    def steps(self) -> tuple[str, ...]:
        """Descriptions of what was done."""
        return (f"quarters merged where one of them had from 1 to {self.k - 1:,} records",)

    def tabulate(self, points: PointCounts, entropy: Entropy) -> tuple[Tree, Table]:  # noqa: ARG002
        """Count all quarters exactly, and merge them bottom-up; nothing is random."""
        fine = quadtree(points.domain, min(self.height, points.domain.order))
        true = fine.sums(points.column, points.row, points.count)
        tree, kept = remove_descendants(fine, has_small_child(fine, true, self.k))
        shown = np.where(is_small(true[kept], self.k), np.nan, true[kept])
        return tree, Table(shown=shown, count=np.nan_to_num(shown, nan=0.0), steps=self.steps)

    def depends_on_data(self, release: PointRelease) -> bool:  # noqa: ARG002
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
