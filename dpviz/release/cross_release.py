"""The release of counts by place and slot: every region of every level by every category of every level, which add up both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import pandas as pd
import scipy

from dpviz.arrays import Floats, Integers, Mask
from dpviz.privacy.tree_product import ProductSpread
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import Level, Rows
from dpviz.release.intervals import count_ends
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross
from dpviz.space.hierarchy import Hierarchy

Pair: TypeAlias = tuple[Level, Level]
"""A level of the regions and one of the categories, each by its number, 0 for the whole, or by its name."""
_MOST_SHOWN = 400
"""If a release has at most so many pairs of nodes, `observe` returns the numbers of all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossRelease(AreaRelease):
    """Noisy counts of nested regions by nested categories. PUBLIC: everything in it was released by a mechanism.

    As an `AreaRelease` it has the counts of regions, all slots together; with `slots`, or a pair of levels in place of a level, its methods
    give those of slots.

    Attributes:
        categories: the public categories.
        spread: the joint distribution of the errors of all unbiased counts.
        cross_noisy: (n, s) counts of regions by categories of all levels as first measured; NaN where they were not measured.
        cross_count: (n, s) counts after post-processing.
        cross_unbiased: (n, s) counts before a biased step; None if there was no such step.

    The other attributes are those of `AreaRelease`: the first columns of these tables.

    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]}), levels=["district", "tract"])
    >>> visits = pd.DataFrame({"region": ["a"] * 90 + ["c"] * 40, "hour": [8] * 50 + [17] * 80})
    >>> areas = dv.AreaCounts.from_table(visits, regions=regions, categories=dv.Categories.hours(), slot="hour", count="none")
    >>> release = dv.CrossTree().release(areas, dv.PureBudget(100), dv.Entropy.seeded(1))
    >>> release
    CrossRelease(cross_tree, 3 tract by 24 hour, epsilon 100, SIMULATION: not private)
    >>> release.answer(["A", "B"], slots=["morning", "17"]).round().tolist()
    [90.0, 40.0]
    >>> low, high = release.answer_interval(["A"], slots=["17"], minus=["08"])
    >>> bool(low[0] <= -10 <= high[0])
    True
    """

    categories: Categories
    spread: ProductSpread  # type: ignore[assignment]  # of all slots together, it is used as a `Spread`
    cross_noisy: Floats
    cross_count: Floats
    cross_unbiased: Floats | None = None

    def __repr__(self) -> str:
        size, slots = self.regions.size(self.regions.depth), self.categories.slots
        by = f"{size:,} {self.regions.levels[-1]} by {slots:,} {self.categories.levels[-1]}"
        return f"CrossRelease({self.mechanism}, {by}{self._stamp})"

    @property
    def frame(self) -> Any:
        """Regions by categories."""
        return Cross(self.regions, self.categories)

    @property
    def slot_hierarchy(self) -> Hierarchy:
        """The s categories of all levels, the whole first."""
        return self.categories.hierarchy

    @property
    def numbers(self) -> int:
        """How many numbers a reader can choose from: all regions by all categories, or all that were measured if these are more."""
        return max(self.cross_count.size, sum(step.counts or 0 for step in self.receipt.steps))

    @property
    def cross_centre(self) -> Floats:
        """(n, s) best unbiased counts, on which intervals are centred."""
        return self.cross_count if self.cross_unbiased is None else self.cross_unbiased

    @cached_property
    def cross_stddev(self) -> Floats:
        """(n, s) standard deviations of the noise in `cross_centre`, in records."""
        return np.sqrt(self.spread.of_nodes())

    def pair_numbers(self, pair: Pair) -> tuple[int, int]:
        """Return the numbers of a pair of levels.

        Raises:
            DomainError: no such level.
        """
        return self.level_number(pair[0]), self.categories.level_number(pair[1])

    def name_pair(self, pair: Pair) -> str:
        """Name a pair of levels for readers, such as "district by hour"."""
        place, slot = self.pair_numbers(pair)
        return (
            self.name_level(place)
            if self.categories is None or not slot
            else f"{self.name_level(place)} by {self.categories.levels[slot - 1]}"
        )

    def of_pair(self, table: Floats, pair: Pair) -> Floats:
        """Return the (regions, categories) part of an (n, s) table that belongs to a pair of levels."""
        place, slot = self.pair_numbers(pair)
        return table[self.hierarchy.at_depth(place), self.slot_hierarchy.at_depth(slot)]

    def stddev(self, level: Any = None) -> Floats:
        """Return the standard deviations of a level's regions, all slots together, or (regions, categories) ones of a pair of levels."""
        return self.of_pair(self.cross_stddev, level) if isinstance(level, tuple) else super().stddev(level)

    def interval(self, level: Any = None, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Compute intervals as `CountRelease.interval` does, of a level's regions, or (regions, categories) ones of a pair of levels."""
        if not isinstance(level, tuple):
            return super().interval(level, joint=joint)
        return self._ends(self.of_pair(self.cross_centre, level), self.stddev(level), joint=joint)

    def pair_interval(self, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Compute the (n, s) lower and (n, s) upper ends of intervals of all pairs, as `interval` does."""
        return self._ends(self.cross_centre, self.cross_stddev, joint=joint)

    def to_frame(self, level: Any = None) -> Any:
        """Make a table of the regions of a level, as `AreaRelease.to_frame` does, or of a pair of levels.

        Args:
            level: a level, or a pair of a level of regions and one of categories, such as ("town", "hour"); by number or name.

        Returns:
            For a pair: DataFrame with region (id), name, slot (id), count, count_noisy (as first measured, NaN if not measured), stddev,
            ci_low and ci_high, all_low and all_high (see `interval`; the latter joint), and status. Regions one after the other.

        Raises:
            DomainError: no such level.
        """
        if not isinstance(level, tuple):
            return super().to_frame(level)
        place, slot = self.pair_numbers(level)
        slots = self.categories.ids_of(slot)
        (low, high), (all_low, all_high) = self.interval(level), self.interval(level, joint=True)
        numbers = {
            "count": self.of_pair(self.cross_count, level),
            "count_noisy": self.of_pair(self.cross_noisy, level),
            "stddev": self.stddev(level),
            "ci_low": low,
            "ci_high": high,
            "all_low": all_low,
            "all_high": all_high,
        }
        columns: dict[str, Any] = {
            "region": np.repeat(self.regions.ids_of(place), len(slots)),
            "name": np.repeat(self.regions.names_of(place), len(slots)),
            "slot": np.tile(slots, self.regions.size(place)),
        }
        frame = pd.DataFrame(columns | {name: values.ravel() for name, values in numbers.items()} | {"status": self.status})
        frame.attrs = self.attrs
        return frame

    @overload
    def answer(
        self,
        regions: Sequence[str | Sequence[str]],
        *,
        level: Level | None = None,
        spread: Literal[False] = False,
        slots: Sequence[str] | None = None,
        minus: Sequence[str] | None = None,
    ) -> Floats: ...
    @overload
    def answer(
        self,
        regions: Sequence[str | Sequence[str]],
        *,
        level: Level | None = None,
        spread: Literal[True],
        slots: Sequence[str] | None = None,
        minus: Sequence[str] | None = None,
    ) -> tuple[Floats, Floats]: ...
    def answer(
        self,
        regions: Sequence[str | Sequence[str]],
        *,
        level: Level | None = None,
        spread: bool = False,
        slots: Sequence[str] | None = None,
        minus: Sequence[str] | None = None,
    ) -> Floats | tuple[Floats, Floats]:
        """Add up the counts of regions in some slots, as `AreaRelease.answer` does for all slots together.

        Args:
            regions: q entries, each the id of a region, or a list of ids.
            level: level of the regions; None for the finest that has the id.
            spread: also give the standard deviations.
            slots: ids of categories of any level: all that lies in any of them counts once. None for all slots.
            minus: likewise, what is subtracted; None for nothing.

        Returns:
            (q,) counts, or differences, in records. With `spread` also (q,) standard deviations of the noise in the unbiased ones.

        Raises:
            DomainError: an unknown id or level.
        """
        weights, of_slots = self._select(regions, level)[0], self._weigh_slots(slots, minus)
        answers = np.asarray(weights @ (self.cross_count @ of_slots))
        return (answers, self._stddev_of_ranges(weights, of_slots)) if spread else answers

    def answer_interval(
        self,
        regions: Sequence[str | Sequence[str]],
        *,
        level: Level | None = None,
        joint: bool = False,
        slots: Sequence[str] | None = None,
        minus: Sequence[str] | None = None,
    ) -> tuple[Floats, Floats]:
        """Compute intervals that each contain the true answer with probability at least 0.95; see `interval`.

        Args:
            regions: as for `answer`.
            level: as for `answer`.
            joint: as for `AreaRelease.answer_interval`.
            slots: as for `answer`.
            minus: as for `answer`.

        Returns:
            (q,) lower and (q,) upper ends, at least 0 but for differences, which may be below.

        Raises:
            DomainError: an unknown id or level.
        """
        weights, of_slots = self._select(regions, level)[0], self._weigh_slots(slots, minus)
        centre = np.asarray(weights @ (self.cross_centre @ of_slots))
        half_width = self._half_widths(self._stddev_of_ranges(weights, of_slots), joint=joint)
        return count_ends(centre, half_width) if minus is None else (np.floor(centre - half_width), np.ceil(centre + half_width))

    def _stddev_of_ranges(self, weights: Any, of_slots: Floats) -> Floats:
        return np.sqrt(self.spread.of_ranges(weights, np.tile(of_slots, (weights.shape[0], 1))))

    def _weigh_slots(self, slots: Sequence[str] | None, minus: Sequence[str] | None) -> Floats:
        """Return (s,) weights of the categories of all levels: 1 for finest ones that count, -1 for those that are subtracted."""
        weights = np.zeros(len(self.slot_hierarchy))
        weights[self._finest] = self.categories.mask_of(slots)
        weights[self._finest] -= 0 if minus is None else self.categories.mask_of(minus)
        return weights

    @property
    def _finest(self) -> slice:
        """Where the finest categories stand among those of all levels."""
        return self.slot_hierarchy.at_depth(self.slot_hierarchy.height)

    def in_slots(self, slots: Sequence[str] | None) -> AreaRelease:
        """Return the release of the regions alone: the counts of some slots together, with their errors, as `answer` gives them.

        What was measured of a category itself is the noisy count of its slots; of other sets of slots it is their sum.

        Args:
            slots: ids of categories of any level, as for `answer`; None for all slots.

        Raises:
            DomainError: an unknown id.
        """
        weights = self._weigh_slots(slots, None)
        measured = self._find_measured(self.categories.mask_of(slots))
        noisy, variance = (
            self.cross_noisy[:, measured],
            self.spread.noise[np.ix_(self.hierarchy.depth, self.slot_hierarchy.depth[measured])],
        )
        kept: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(AreaRelease)}
        kept |= {
            "noisy": noisy.sum(axis=1),
            "noise_variance": np.where(np.isnan(noisy), np.inf, variance).sum(axis=1),
            "count": self.cross_count @ weights,
            "unbiased": None if self.cross_unbiased is None else self.cross_unbiased @ weights,
            "spread": self.spread.with_slots_weighed(weights),
        }
        return SlotsRelease(**kept, choices=self.numbers)

    def _find_measured(self, inside: Mask) -> Integers:
        """Return the category that is exactly the slots of a (slots,) mask, if it was measured; else these slots, each by itself."""
        for level in range(self.categories.depth):
            above = self.categories.ancestors(level)
            here = np.unique(above[inside])
            column: Integers = self.slot_hierarchy.starts[level] + here.astype(np.int64)
            if len(here) == 1 and np.isin(above, here).sum() == inside.sum() and not np.isnan(self.cross_noisy[:, column]).all():
                return column
        return np.asarray(self._finest.start + np.flatnonzero(inside))

    def profile(
        self, regions: Sequence[str], *, level: Level | None = None, slot_level: Level | None = None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Add up regions in each category of a level, with the errors of these sums.

        Args:
            regions: ids of regions; what lies in any of them counts once.
            level: of the regions, as for `answer`.
            slot_level: of the categories; None for the finest.

        Returns:
            Of each of k categories the (k,) released count, (k,) lower and (k,) upper end of the 95 % interval of the best unbiased
            estimate, which is not cut at 0, and (k,) this estimate.

        Raises:
            DomainError: an unknown id or level.
        """
        weights = self._select([list(regions)], level)[0]
        columns = self.slot_hierarchy.at_depth(self.categories.level_number(self.categories.depth if slot_level is None else slot_level))
        of_slots = np.eye(len(self.slot_hierarchy))[columns]
        stddev = np.sqrt(self.spread.of_ranges(scipy.sparse.vstack([weights] * len(of_slots)), of_slots))
        count, centre = ((weights @ table[:, columns])[0] for table in (self.cross_count, self.cross_centre))
        half_width = self._half_widths(stddev, joint=False)
        return count, centre - half_width, centre + half_width, centre

    def compare_with_whole(self, slots: Sequence[str], level: Level | None = None) -> tuple[float, Floats, Floats, Floats]:
        """Compare what regions have in some slots with what they would have if they were split over slots as the whole is.

        Noise alone could explain a difference whose interval contains 0. The interval is exact for the whole's released share, which is
        taken as known: its own noise is that of two totals.

        Args:
            slots: ids of categories, as for `answer`.
            level: of the regions.

        Returns:
            The whole's share, 0 to 1; of each of k regions the (k,) released count in these slots; and the (k,) lower and (k,) upper end of
            the 95 % interval of its difference from this share of all that is counted in the region.

        Raises:
            DomainError: an unknown id or level.
        """
        nodes, inside = self.nodes(level), self._weigh_slots(slots, None)
        share = float(np.clip(self.cross_centre[0] @ inside / max(self.centre[0], 1.0), 0.0, 1.0))
        weights = inside - share * self._weigh_slots(None, None)
        difference = self.cross_centre[nodes] @ weights
        stddev = np.sqrt(self.spread.with_slots_weighed(weights).variances(self.hierarchy))[nodes]
        half_width = self._half_widths(stddev, joint=False)
        return share, self.cross_count[nodes] @ inside, difference - half_width, difference + half_width

    def observe(self, leaves: tuple[int, ...]) -> tuple[list[Rows], Floats]:
        """Return the numbers of all pairs of nodes on the paths to some leaves of the frame, and of all pairs if they are few."""
        slots = self.categories.slots
        rows, _ = super().observe(tuple(leaf // slots for leaf in leaves))
        place, slot = self.hierarchy, self.slot_hierarchy
        paths = [np.ix_(self.path_to(leaf // slots), _path_to(slot, leaf % slots)) for leaf in dict.fromkeys(leaves)]
        if self.cross_count.size <= _MOST_SHOWN:
            paths.append(np.ix_(np.arange(len(place)), np.arange(len(slot))))
        shown = np.zeros(self.cross_count.shape, np.bool_)
        for number, path in enumerate(paths):
            labels = [("path", number, *map(int, at)) for at in np.ndindex(shown[path].shape)]
            tables = {
                "noisy pair": self.cross_noisy,
                "pair": self.cross_count,
                "unbiased pair": self.cross_centre,
                "deviation": self.cross_stddev,
            }
            rows.append(Rows(labels, {name: table[path].ravel() for name, table in tables.items()}))
            shown[path] = True
        variance = self.spread.noise[np.ix_(place.depth, slot.depth)]
        return rows, variance[shown & ~np.isnan(self.cross_noisy)]


@dataclass(frozen=True, kw_only=True, eq=False)
class SlotsRelease(AreaRelease):
    """The counts of regions in some slots together, from a `CrossRelease`.

    Attributes:
        choices: how many numbers a reader of that release can choose from.
    """

    choices: int

    @property
    def numbers(self) -> int:
        """How many numbers a reader can choose from: those of the whole release."""
        return self.choices


def _path_to(hierarchy: Hierarchy, leaf: int) -> Integers:
    """Return the (k,) nodes that contain a leaf, root first."""
    path = [int(hierarchy.leaves[leaf])]
    while path[0]:
        path.insert(0, int(hierarchy.parent[path[0]]))
    return np.array(path)
