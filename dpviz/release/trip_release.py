"""The release of a trip mechanism: noisy counts of trips per pair of regions, stage by stage, with their errors and the receipt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpviz.arrays import Floats, Integers, Mask, Places
from dpviz.errors import DomainError
from dpviz.privacy.receipt import PRIVATE
from dpviz.release.base import Level, LevelNumbers, NoisyRelease, Rows
from dpviz.release.intervals import COVERS, NO_UPPER_ENDS, OF_RELEASED_PAIRS, count_ends, half_widths, half_widths_of_released
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import NO_GEOMETRY, Regions, drawable_levels

ESTIMATED = "best unbiased estimates from all noisy counts, which count_noisy states"
"""The step of post-processing after which `StageCounts.noisy` are estimates, not single measurements."""
"""A level of regions, by its number or its name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSums:
    """Counts of distinct pairs of regions, ordered by origin, then destination.

    Attributes:
        origin: (k,) index of the origin region in its level.
        destination: (k,) index of the destination region in its level.
        count: (k,) counts.
        width: the number of destination regions in their level.
    """

    origin: Places
    destination: Places
    count: Integers
    width: int

    def at(self, origin: Places, destination: Places) -> Integers:
        """Look up the counts of pairs.

        Args:
            origin: (q,) indices of origin regions.
            destination: (q,) indices of destination regions.

        Returns:
            (q,) counts; 0 for a pair that is missing.
        """
        if not len(self.count):
            return np.zeros(len(origin), np.int64)
        known = self.origin * np.int64(self.width) + self.destination
        wanted = origin * np.int64(self.width) + destination
        index = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[index] == wanted, self.count[index], 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class StageCounts:
    """The released counts of one stage of the tree of pairs. PUBLIC.

    A pair that is missing was released as 0; in the finest stage of a release with a list (`TripRelease.half_step_sums`), it is not listed.

    Attributes:
        origin: (k,) index of the origin region in the stage's level of origins.
        destination: (k,) index of the destination region in its level of destinations.
        count: (k,) trips after post-processing.
        noisy: (k,) trips as first measured, or as estimated without bias from all measured stages (`ESTIMATED` is then a step of the
            release); equal to `count` if the stage was neither measured nor estimated.
        variance: variance of the noise in each number of `noisy`; 0 if the stage is exact, infinite if it was neither measured nor
            estimated.
        measured: how many numbers were measured, including those dropped afterwards; 0 if the stage was not measured. If the number is
            private, how many were released.
    """

    origin: Places
    destination: Places
    count: Integers
    noisy: Integers
    variance: float
    measured: int

    @property
    def order(self) -> Integers:
        """(k,) the pairs by origin, then destination, which is the order of tables."""
        return np.lexsort((self.destination, self.origin))


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionTotals:
    """Unbiased estimates of the trips from each region to anywhere, and from anywhere to each region. PUBLIC.

    Sums of released counts that were raised to 0 are biased; these are sums over all pairs of a stage, negative estimates included.

    Attributes:
        leaving: (n,) trips from each region of a level of origins; level 1 first.
        arriving: (n,) trips to each region of a level of destinations; level 1 first.
    """

    leaving: tuple[Integers, ...]
    arriving: tuple[Integers, ...]

    def at(self, levels: tuple[int, int], origin: Places, destination: Places) -> Integers | None:
        """Look up (q,) totals of regions; None unless one of the two levels is the root's, and the other one is not."""
        if levels[1] == 0 and levels[0] > 0:
            return self.leaving[levels[0] - 1][origin]
        return self.arriving[levels[1] - 1][destination] if levels[0] == 0 and levels[1] > 0 else None


@dataclass(frozen=True, kw_only=True, eq=False)
class TripRelease(NoisyRelease):
    """Noisy counts of trips on every stage of a tree of pairs. PUBLIC: everything in it was released by a mechanism.

    `NoisyRelease` has the attributes of every release.

    Attributes:
        tree: the public tree of pairs.
        stages: T + 1 stages, the pair of roots first.
        every_pair: True if a measured stage measured all pairs, including empty ones; False if only the children of released nodes.
        half_step_sums: counts at `half_step_levels`. They are needed only if the finest stage lists some pairs, and trips of the others are
            still part of coarser sums (see `unlisted_trips`); otherwise they follow from the stages, and `half_step_sums` is None.
        totals: centres of the intervals of what leaves and arrives, if the sums of the released counts are biased; None if they are not,
            or if no better estimate is known.
        for_released: whether intervals hold on average for the pairs that are released, although these were chosen by their noise (see
            `half_widths_of_released`). False for releases that manifests before version 2.5 describe: their intervals say what they said,
            and hold for a pair that was chosen without a look at the counts.

    >>> import dpviz as dv
    >>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["state", "town"])
    >>> trips = pd.DataFrame({"origin": ["a", "b", "c"], "destination": ["c", "c", "a"], "count": [900, 40, 500]})
    >>> trip_counts = dv.TripCounts.from_table(trips, regions=regions)
    >>> release = dv.TopDown().release(trip_counts, dv.ApproxBudget(2.0, 1e-6), dv.Entropy.seeded(7))
    >>> release.to_frame("state")["count"].sum()
    np.int64(1440)
    >>> release.answer(["A"], ["B"], levels=("state", "state")).shape
    (1,)
    """

    family: ClassVar[str] = "trips"
    no_map: ClassVar[str] = NO_GEOMETRY

    tree: PairTree
    stages: tuple[StageCounts, ...]
    every_pair: bool = False
    half_step_sums: PairSums | None = None
    totals: RegionTotals | None = None
    for_released: bool = True

    def __repr__(self) -> str:
        stamp = "" if self.status == PRIVATE else f", {self.status}"
        return f"TripRelease({self.mechanism}, {len(self.stages[-1].count):,} pairs{self.receipt.describe_total()}{stamp})"

    @property
    def states_noise(self) -> bool:
        """Whether the noise of any stage is stated; if not, as in contrasts, standard deviations and ends of intervals are NaN."""
        return any(np.isfinite(stage.variance) for stage in self.stages)

    @property
    def numbers(self) -> int:
        """How many numbers a reader can choose from: all possible pairs of all stages."""
        return sum(self.tree.size(stage) for stage in range(self.tree.height + 1))

    @cached_property
    def has_unbiased_sums(self) -> bool:
        """Whether sums over pairs are known without bias: every pair was measured, and the sums are estimates, or noisy counts."""
        return self.every_pair and (self.totals is not None or all(np.array_equal(stage.count, stage.noisy) for stage in self.stages))

    @property
    def lacks_pairs(self) -> bool:
        """Whether coarser stages are sums of released pairs alone, too low by any number: neither all pairs nor the total were measured."""
        return not self.every_pair and not np.isfinite(self.stages[0].variance)

    @property
    def depth(self) -> int:
        """The number of geographic levels below the root, g."""
        return self.tree.origins.depth

    @property
    def most_false(self) -> float | None:
        """The bound q of a list: in expectation, at most this share of its pairs has no trips; None without such a list.

        It holds for the pairs of the finest level alone. Nothing bounds the share at coarser levels.
        """
        bound = self.settings.get("false_discovery")
        return None if self.half_step_sums is None or bound is None else float(bound)

    @property
    def half_step_levels(self) -> tuple[int, int]:
        """Levels of the regions in `half_step_sums`: stage T - 1 has leaves on one side, these levels have them on the other."""
        origin_level, destination_level = self.tree.levels(self.tree.height - 1)
        return destination_level, origin_level

    def to_frame(self, level: Level | None = None) -> pd.DataFrame:
        """Make a table of the trips between the regions of a level, nonzero pairs only.

        Args:
            level: 0 (everything) to g (leaves), or a level's name; None for the leaves.

        Returns:
            DataFrame with origin and destination (ids), count, count_noisy (as first measured), stddev, ci_low and ci_high (on average,
            at least 95 % of the intervals of released pairs hold: see `stage_interval`), all_low and all_high (intervals that hold for
            all pairs of all stages at once), all in trips, and status (the same in every row), ordered by origin, then destination. Its
            `attrs` state whether it is "private", and whether it is a "simulation".

        Raises:
            DomainError: no such level.
        """
        return self.stage(2 * self.level_number(level))

    def stage(self, stage: int) -> pd.DataFrame:
        """Make the table of `to_frame` for a stage, 0 to T. Stage 2k is level k; an odd stage pairs regions of two consecutive levels.

        Raises:
            DomainError: no such stage.
        """
        (origin_level, destination_level), released = self.tree.levels(stage), self.stages[stage]
        columns = {
            "origin": self.tree.origins.ids_of(origin_level)[released.origin],
            "destination": self.tree.destinations.ids_of(destination_level)[released.destination],
            **self.stage_columns(stage),
            "status": np.full(len(released.count), self.status, object),
        }
        table = pd.DataFrame(columns).take(released.order).reset_index(drop=True)
        table.attrs = self.attrs
        return table

    def stage_columns(self, stage: int) -> dict[str, Any]:
        """Return the counts of a stage, their errors and both intervals, as columns of tables, in the order of `StageCounts`."""
        counts, (low, high), (all_low, all_high) = self.stages[stage], self.stage_interval(stage), self.stage_interval(stage, joint=True)
        numbers = {"count": counts.count, "count_noisy": counts.noisy, "stddev": self.stage_stddev(stage)}
        return {**numbers, "ci_low": low, "ci_high": high, "all_low": all_low, "all_high": all_high}

    def stddev(self, level: Level | None = None) -> Floats:
        """Return (k,) standard deviations of the noise on the counts of a level, in trips, in the order of `to_frame`.

        Args:
            level: as for `to_frame`.

        Raises:
            DomainError: no such level.
        """
        stage = 2 * self.level_number(level)
        return self.stage_stddev(stage)[self.stages[stage].order]

    def interval(self, level: Level | None = None, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Compute 95 % intervals for the pairs of a level, in the order of `to_frame`; see `stage_interval`.

        Args:
            level: as for `to_frame`.
            joint: as for `stage_interval`.

        Raises:
            DomainError: no such level.
        """
        stage = 2 * self.level_number(level)
        low, high = (ends[self.stages[stage].order] for ends in self.stage_interval(stage, joint=joint))
        return low, high

    def level_numbers(self, level: int) -> LevelNumbers:
        """Return the numbers of the released pairs of a level, in the order of `to_frame`."""
        counts = self.stages[2 * level]
        return LevelNumbers(counts.count[counts.order].astype(np.float64), self.stddev(level), *self.interval(level))

    @property
    def frame(self) -> tuple[Regions, Regions]:
        """Where trips begin, and where they end."""
        return self.tree.origins, self.tree.destinations

    @property
    def total(self) -> int:
        """How many trips it has in all."""
        return int(self.stages[0].count.sum())

    @property
    def finest_numbers(self) -> int:
        """How many pairs of its finest level are released."""
        return len(self.stages[-1].count)

    @property
    def lists_pairs(self) -> bool:
        """Whether the finest level lists only some pairs, and the trips of the others are in coarser levels."""
        return self.half_step_sums is not None

    def is_sum(self, level: int) -> bool:
        """Return whether a level is a sum of finer pairs, and not measured itself."""
        return 1 <= level <= self.depth and not np.isfinite(self.stages[2 * level].variance)

    def name_level(self, level: int) -> str:
        """Name a level for readers, such as "state to state"."""
        return self.between(level) if level else "all trips"

    def name_step(self, level: int) -> str:
        """Name a stage, which is what steps of the receipt number."""
        return self.tree.title(level)

    def between(self, level: int) -> str:
        """Return the name of a level in the manifest, such as "state to state"."""
        return self.tree.title(2 * level)

    @property
    def centred_on(self) -> str:
        """The column of its tables on which intervals are centred."""
        return "count_noisy"

    def describe_intervals(self) -> str:
        """Say how its intervals are made, and what they cover, in the words of the manifest."""
        if not self.for_released:
            return super().describe_intervals()
        made = f"count_noisy ± the least whole number that the noise exceeds with probability 0.05 R / m at most. {OF_RELEASED_PAIRS}"
        upper = f" Upper ends are {NO_UPPER_ENDS}" if self.lacks_pairs else ""
        return f"{made}{upper} {COVERS}"

    @property
    def interval_note(self) -> str:
        """What intervals of released pairs hold for."""
        return OF_RELEASED_PAIRS if self.for_released and self.states_noise else ""

    def add_up_errors(self) -> tuple[Floats, float, float]:
        """Return how the errors of the released pairs of leaves stand to that of the whole, as `NoisyRelease.add_up_errors` says."""
        listed, unlisted = self.stages[-1].count.sum(), self.unlisted_trips(0, 0).count.sum()
        return self.stddev(), float(self.stddev(0).max(initial=0.0)), float(listed + unlisted - self.stages[0].count.sum())

    def observe(self, leaves: tuple[int, ...]) -> tuple[list[Rows], Floats]:  # noqa: ARG002
        """Return the pairs of all stages, whatever the leaves are; see `NoisyRelease.observe`."""
        measured = np.array([stage.measured for stage in self.stages])
        rows = [Rows([(stage,) for stage in range(len(self.stages))], {"numbers measured in stage": measured})]
        for number, stage in enumerate(self.stages):
            pairs = zip(stage.origin.tolist(), stage.destination.tolist(), strict=True)
            rows.append(Rows([(number, *pair) for pair in pairs], {"noisy trips": stage.noisy, "trips": stage.count}))
        return rows, np.concatenate([np.full(len(stage.count), stage.variance) for stage in self.stages])

    def stage_stddev(self, stage: int) -> Floats:
        """Return (k,) standard deviations of the noise on the counts of a stage (0 to T), in trips, in the order of `stages[stage]`."""
        released = self.stages[stage]
        if np.isfinite(released.variance):
            return np.full(len(released.count), np.sqrt(released.variance))
        return np.sqrt(self._compute_variance(self.tree.levels(stage), released.origin, released.destination))

    def stage_interval(self, stage: int, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Compute 95 % intervals for the released pairs of a stage (0 to T), in the order of `stages[stage]`.

        They cover the noise only, and are centred on the numbers as measured, or as estimated without bias. Each holds at the level
        1 - 0.05 R / m, where R of the m possible pairs of the stage are released: on average at least 95 % of the intervals of released
        pairs contain the true number, although pairs are released because of their noise (see `half_widths_of_released`).

        The interval of a listed pair may contain 0. A list bounds how many of its pairs have no trips, not which: the number of a pair with
        trips may be as uncertain as its noise.

        Args:
            stage: 0 to T.
            joint: with probability at least 0.95, the intervals of all pairs of all stages hold at once, so also for a pair that was
                chosen by its count.

        Returns:
            (k,) lower and (k,) upper ends, whole numbers of at least 0. The upper ends are NaN where the numbers are sums that lack pairs
            (`lacks_pairs`), and with `joint` for all sums that are not measured and not known without bias: these may be too low by any
            number.
        """
        counts, stddev = self.stages[stage], self.stage_stddev(stage)
        low, high = count_ends(counts.noisy, half_widths(self.noise, stddev, self.numbers) if joint else self._reach(stage, stddev))
        return low, high if self._has_upper_ends(stage, joint=joint) else np.full(len(high), np.nan)

    def _reach(self, stage: int | None, stddev: Floats) -> Floats:
        """Compute half widths of intervals of numbers of a stage, or of sums that are in none, from (k,) standard deviations."""
        if stage is None or not self.for_released:
            return half_widths(self.noise, stddev)
        return half_widths_of_released(self.noise, stddev, len(self.stages[stage].count), self.tree.size(stage))

    def _has_upper_ends(self, stage: int | None, *, joint: bool) -> bool:
        """Return whether intervals of numbers of a stage, or of sums that are in none, have an upper end."""
        if stage is not None and np.isfinite(self.stages[stage].variance):
            return True
        return self.has_unbiased_sums if joint else not (self.for_released and self.lacks_pairs)

    def stddev_by_pair(self, stage: int) -> Floats:
        """Return (k,) bounds of the standard deviations of `StageCounts.noisy`, in trips, each for its own pair.

        `stage_stddev` states one number for a stage, that of its noisiest pair. Where the numbers are best estimates (`ESTIMATED`), none is
        noisier than the sum of the finer numbers in its pair.

        Args:
            stage: 0 to T.
        """
        released, stated = self.stages[stage], self.stage_stddev(stage)
        if ESTIMATED not in self.steps:
            return stated
        return np.minimum(stated, np.sqrt(self._compute_variance(self.tree.levels(stage), released.origin, released.destination)))

    @overload
    def answer(
        self, origins: ArrayLike, destinations: ArrayLike, *, levels: tuple[Level, Level] | None = None, spread: Literal[False] = False
    ) -> Integers: ...
    @overload
    def answer(
        self, origins: ArrayLike, destinations: ArrayLike, *, levels: tuple[Level, Level] | None = None, spread: Literal[True]
    ) -> tuple[Integers, Floats]: ...
    def answer(
        self, origins: ArrayLike, destinations: ArrayLike, *, levels: tuple[Level, Level] | None = None, spread: bool = False
    ) -> Integers | tuple[Integers, Floats]:
        """Add up trips from regions of any level to regions of any level.

        Args:
            origins: (q,) ids of origin regions; the root's is "all".
            destinations: (q,) ids of destination regions.
            levels: level of the origins and level of the destinations, as numbers or names; None for the level of the leaves.
            spread: also give the standard deviations.

        Returns:
            (q,) trips; 0 for pairs of leaves that are not listed (see `is_unlisted`). With `spread` also (q,) standard deviations of the
            noise, in trips; NaN for pairs that are not listed. For a released pair of a stage it is that of `stage`. For other sums it is
            that of adding up the numbers of one stage, of the stage for which it is smallest. The effect of post-processing is not
            included (see `approximate`).

        Raises:
            DomainError: unknown ids or levels, or lengths that differ.
        """
        level_numbers, *pairs = self._find_pairs(origins, destinations, levels)
        count = self.sums(*level_numbers).at(*pairs)
        return (count, self.estimates(level_numbers, *pairs)[1]) if spread else count

    def answer_interval(
        self, origins: ArrayLike, destinations: ArrayLike, *, levels: tuple[Level, Level] | None = None, joint: bool = False
    ) -> tuple[Floats, Floats]:
        """Compute 95 % intervals for the sums of `answer`.

        For a released pair of a stage the interval is that of `to_frame`: its centre is the number as measured, or as estimated without
        bias. For all that leaves or arrives, the centre is that of `totals`. For other sums, and without `totals`, it is the released
        count, so that the interval is approximate after post-processing.

        Args:
            origins: as for `answer`.
            destinations: as for `answer`.
            levels: as for `answer`.
            joint: with probability at least 0.95, the intervals of all pairs of all stages hold at once; for sums that are in no stage,
                those of all pairs of regions of any two levels.

        Returns:
            (q,) lower and (q,) upper ends, in trips, at least 0; NaN for pairs of leaves that are not listed. With `joint` also where no
            unbiased number is known; upper ends are NaN for sums that lack pairs (`lacks_pairs`), and for the pairs that these lack.

        Raises:
            DomainError: unknown ids or levels, or lengths that differ.
        """
        level_numbers, *pairs = self._find_pairs(origins, destinations, levels)
        centre, stddev = self.estimates(level_numbers, *pairs)
        stage, numbers = self._find_stage(level_numbers), self.numbers
        if stage is None:
            sizes = [sum(side.size(level) for level in range(self.depth + 1)) for side in (self.tree.origins, self.tree.destinations)]
            numbers = sizes[0] * sizes[1]
        if not joint:
            centre = np.where(np.isnan(centre), self.sums(*level_numbers).at(*pairs), centre)
        low, high = count_ends(centre, half_widths(self.noise, stddev, numbers) if joint else self._reach(stage, stddev))
        if stage is not None and self.lacks_pairs:  # what was dropped may be as large as the threshold
            high = np.where(self.sums(*level_numbers).at(*pairs) == 0, np.nan, high)
        return low, high if self._has_upper_ends(stage, joint=joint) else np.full(len(high), np.nan)

    def is_unlisted(self, levels: tuple[Level, Level], origin: Places, destination: Places) -> Mask:
        """Find which pairs of regions have no number of their own, because the finest level is a list that they are not in.

        Args:
            levels: level of the origins and level of the destinations, 0 to g, or their names.
            origin: (q,) indices of origin regions, as `Regions.find` gives them for ids.
            destination: (q,) indices of destination regions.

        Returns:
            (q,) True for pairs of leaves that are not listed; their trips are part of the `unlisted_trips` of coarser pairs.

        Raises:
            DomainError: no such level, or something else than indices.
        """
        numbers = self._number_levels(*levels)
        if not all(np.issubdtype(np.asarray(indices).dtype, np.integer) for indices in (origin, destination)):
            raise DomainError("Pairs are given by the indices of their regions; regions.find(ids, level) finds them.")
        if self.half_step_sums is None or numbers != self.tree.levels(self.tree.height):
            return np.zeros(len(origin), np.bool_)
        return np.asarray(self.sums(*numbers).at(np.asarray(origin), np.asarray(destination)) == 0)

    def _find_pairs(
        self, origins: ArrayLike, destinations: ArrayLike, levels: tuple[Level, Level] | None
    ) -> tuple[tuple[int, int], Places, Places]:
        """Find the numbers of two levels, and the (q,) indices of regions with the given ids."""
        level_pair = (self.depth, self.depth) if levels is None else levels
        if not isinstance(level_pair, tuple | list) or len(level_pair) != 2:
            raise DomainError("levels must be a pair: the level of the origins and the level of the destinations.")
        level_numbers = self._number_levels(*level_pair)
        origin, destination = np.atleast_1d(np.asarray(origins, object)), np.atleast_1d(np.asarray(destinations, object))
        if origin.shape != destination.shape or origin.ndim != 1:
            raise DomainError("origins and destinations must be lists of the same length.")
        origin_index = self.tree.origins.find(origin, level_numbers[0])
        destination_index = self.tree.destinations.find(destination, level_numbers[1])
        if min(origin_index.min(initial=0), destination_index.min(initial=0)) < 0:
            raise DomainError("There is an id that is not a region of the given level.")
        return level_numbers, origin_index, destination_index

    def estimates(self, levels: tuple[int, int], u: Places, v: Places) -> tuple[Floats, Floats]:
        """Look up (q,) unbiased numbers of pairs, and (q,) standard deviations of their noise, in trips.

        Args:
            levels: level of the origins and level of the destinations.
            u: (q,) indices of origin regions.
            v: (q,) indices of destination regions.

        Returns:
            Numbers, NaN where none is known: the number of a released pair of a stage, as measured or estimated; else that of `totals`; or
            the count, if nothing was changed after measuring. And the standard deviations; NaN for pairs that are not listed.
        """
        count, stddev = self.sums(*levels).at(u, v), np.sqrt(self._compute_variance(levels, u, v))
        totals, stage = None if self.totals is None else self.totals.at(levels, u, v), self._find_stage(levels)
        if totals is not None:
            centre = totals.astype(np.float64)
        else:
            centre = count.astype(np.float64) if self.has_unbiased_sums and self.totals is None else np.full(len(u), np.nan)
        if stage is not None:
            centre = np.where(count != 0, self._sum_pairs(stage, levels, self.stages[stage].noisy).at(u, v), centre)
            if np.isfinite(self.stages[stage].variance):
                stddev = np.where(count != 0, np.sqrt(self.stages[stage].variance), stddev)
        return centre, np.where(self.is_unlisted(levels, u, v), np.nan, stddev)

    def _find_stage(self, levels: tuple[int, int]) -> int | None:
        """Return the stage of pairs of two levels; None if there is none."""
        return next((stage for stage in range(self.tree.height + 1) if self.tree.levels(stage) == levels), None)

    def sums(self, origin_level: int, destination_level: int) -> PairSums:
        """Add up the released trips between all regions of two levels, from the coarsest stage that is fine enough.

        Args:
            origin_level: 0 to g.
            destination_level: 0 to g.
        """
        key = (origin_level, destination_level)
        if key not in self._sums:
            stage = next(s for s in range(self.tree.height + 1) if _is_as_fine(self.tree.levels(s), key))
            needs_leaves = stage == self.tree.height and key != self.tree.levels(stage)
            if self.half_step_sums is not None and needs_leaves:
                self._sums[key] = self._sum_across(self.half_step_sums, key)
            else:
                self._sums[key] = self._sum_pairs(stage, key, self.stages[stage].count)
        return self._sums[key]

    def unlisted_trips(self, origin_level: Level, destination_level: Level) -> PairSums:
        """Count the released trips between regions of two levels that are in no listed pair of the finest level.

        A release with a list says nothing about a pair of leaves that is not listed; its trips are part of the rest of every coarser
        pair that it lies in.

        Args:
            origin_level: 0 to g, or a level's name.
            destination_level: the same; not both the level of the leaves.

        Returns:
            The pairs with a rest other than 0. There is none if the release has no list. It is never below 0 where all counts are at
            least 0.

        Raises:
            DomainError: no such level, or both levels are those of the leaves.
        """
        levels = self._number_levels(origin_level, destination_level)
        if levels == self.tree.levels(self.tree.height):
            raise DomainError("A rest is part of pairs of larger regions; choose a coarser level for one side at least.")
        if self.half_step_sums is None:
            nothing = np.zeros(0, np.int32)
            return sum_pairs(nothing, nothing, np.zeros(0, np.int64), self.tree.destinations.size(levels[1]))
        released, minus_listed = self.sums(*levels), self._sum_pairs(self.tree.height, levels, -self.stages[-1].count)
        origin = np.concatenate([released.origin, minus_listed.origin])
        destination = np.concatenate([released.destination, minus_listed.destination])
        rest = sum_pairs(origin, destination, np.concatenate([released.count, minus_listed.count]), released.width)
        nonzero = rest.count != 0
        return PairSums(origin=rest.origin[nonzero], destination=rest.destination[nonzero], count=rest.count[nonzero], width=rest.width)

    def inconsistencies(self) -> pd.DataFrame:
        """Compare each stage with the sums of the next one and its rest.

        Returns:
            DataFrame with one row per stage but the last: stage, between (the kind of pairs), pairs (how many), rest (trips that are in
            no pair of the next stage, because that stage is a list), mismatches (how many pairs differ), largest_gap (in trips) and
            status.
        """
        return pd.DataFrame([self._compare_with_next(stage) for stage in range(self.tree.height)])

    def _compare_with_next(self, stage: int) -> dict[str, Any]:
        """Compare a stage with the sums of the next one; if that one is a list, with `half_step_sums`, at the next coarser level."""
        listed = self.half_step_sums is not None and stage == self.tree.height - 1
        levels = self.tree.levels(stage - 1 if listed else stage)
        if listed and self.half_step_sums is not None:
            below = self._sum_across(self.half_step_sums, levels)
        else:
            below = self._sum_pairs(stage + 1, levels, self.stages[stage + 1].count)
        here = self._sum_pairs(stage, levels, self.stages[stage].count)
        gap = np.abs(here.count - below.at(here.origin, here.destination))
        missing = np.abs(below.count[here.at(below.origin, below.destination) == 0])
        return {
            "stage": stage,
            "between": self.tree.title(stage),
            "pairs": len(self.stages[stage].count),
            "rest": int(self.unlisted_trips(*levels).count.sum()) if listed else 0,
            "mismatches": int((gap > 0).sum() + (missing > 0).sum()),
            "largest_gap": int(max(gap.max(initial=0), missing.max(initial=0))),
            "status": self.status,
        }

    @cached_property
    def _sums(self) -> dict[tuple[int, int], PairSums]:
        return {}

    @cached_property
    def _measured_counts(self) -> dict[tuple[int, int, int], PairSums]:
        return {}

    def level_number(self, level: Level | None) -> int:
        """Return the number of a level of origins, 0 for everything to g, by its number or name; None is the finest.

        Raises:
            DomainError: no such level.
        """
        return self.depth if level is None else self.tree.origins.level_number(level)

    def drawable_levels(self) -> dict[int, int]:
        """Return how many regions each level has, at the end that has more, by its number, if all have a place on a map."""
        return drawable_levels(self.tree.origins, self.tree.destinations)

    def _number_levels(self, origin_level: Level, destination_level: Level) -> tuple[int, int]:
        return self.tree.origins.level_number(origin_level), self.tree.destinations.level_number(destination_level)

    def _sum_across(self, across: PairSums, levels: tuple[int, int]) -> PairSums:
        """Add up the half step's sums to counts between regions of two levels that are not finer."""
        return self._sum_finer(across, self.half_step_levels, levels, across.count)

    def _sum_pairs(self, stage: int, levels: tuple[int, int], weight: Integers) -> PairSums:
        """Add up the weights of a stage's nodes per pair of regions of two levels that are not finer than the stage."""
        return self._sum_finer(self.stages[stage], self.tree.levels(stage), levels, weight)

    def _sum_finer(self, pairs: StageCounts | PairSums, finer: tuple[int, int], levels: tuple[int, int], weight: Integers) -> PairSums:
        """Add up a weight per pair of two finer levels for the pairs of regions of two levels."""
        origin = self.tree.origins.ancestors(levels[0], finer[0])[pairs.origin]
        destination = self.tree.destinations.ancestors(levels[1], finer[1])[pairs.destination]
        return sum_pairs(origin, destination, weight, self.tree.destinations.size(levels[1]))

    def _compute_variance(self, levels: tuple[int, int], u: Places, v: Places) -> Floats:
        """Compute (q,) variances of answers, each by the stage for which it is smallest.

        The variance by a stage is that of the noise on one of its numbers, times how many of them are added up. If no stage measured a
        number inside the pair, because coarser pairs were dropped, the result is the smallest variance of one number. If no stage measured
        anything, no noise is stated, and the result is NaN.
        """
        best, smallest = np.full(len(u), np.inf), np.inf
        for stage, released in enumerate(self.stages):
            if np.isfinite(released.variance) and _is_as_fine(self.tree.levels(stage), levels):
                measured = self._count_measured(stage, levels, u, v)
                best = np.where(measured > 0, np.minimum(best, released.variance * measured), best)
                smallest = min(smallest, released.variance)
        return np.where(np.isfinite(best), best, smallest if np.isfinite(smallest) else np.nan)

    def _count_measured(self, stage: int, levels: tuple[int, int], u: Places, v: Places) -> Integers:
        """Count (q,) how many numbers a stage measured between origins u and destinations v, which are regions of two levels."""
        origin_level, destination_level = self.tree.levels(stage)
        if stage == 0 or self.every_pair:
            origins = self.tree.origins.ancestors(levels[0], origin_level)
            destinations = self.tree.destinations.ancestors(levels[1], destination_level)
            counts = np.bincount(origins)[u] * np.bincount(destinations)[v]
            return np.asarray(counts, np.int64)
        above, only_released = self.tree.levels(stage - 1), self.stages[stage].measured == len(self.stages[stage].count)
        lookup_levels = levels if only_released else (min(levels[0], above[0]), min(levels[1], above[1]))
        if (stage, *levels) not in self._measured_counts:
            if only_released:
                measured_counts = self._sum_pairs(stage, levels, np.ones(len(self.stages[stage].count), np.int64))
            else:
                measured_counts = self._sum_pairs(stage - 1, lookup_levels, self._count_children_in_pair(stage, levels))
            self._measured_counts[(stage, *levels)] = measured_counts
        pair = self.tree.origins.ancestors(lookup_levels[0], levels[0])[u], self.tree.destinations.ancestors(lookup_levels[1], levels[1])[v]
        return self._measured_counts[(stage, *levels)].at(*pair)

    def _count_children_in_pair(self, stage: int, levels: tuple[int, int]) -> Integers:
        """Count (n,) how many children of each of the n nodes of stage - 1 lie in one pair of regions of two levels.

        If these levels are finer than stage - 1 on the side that the stage refines, each child of a node lies in a pair of its own: 1.
        Otherwise all children of a node lie in the same pair.
        """
        above, side = self.tree.levels(stage - 1), 0 if self.tree.refined_side(stage) == "origin" else 1
        released = self.stages[stage - 1]
        if above[side] < levels[side]:
            return np.ones(len(released.count), np.int64)
        regions, index = (self.tree.origins, released.origin) if side == 0 else (self.tree.destinations, released.destination)
        return np.diff(regions.first_child(above[side]))[index]


def sum_pairs(origin: Places, destination: Places, count: Integers, width: int) -> PairSums:
    """Add up counts per pair of regions, exactly.

    Args:
        origin: (n,) indices of origin regions; pairs may be repeated.
        destination: (n,) indices of destination regions.
        count: (n,) whole numbers.
        width: the number of destination regions in their level.
    """
    key = origin * np.int64(width) + destination
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
    sums = np.add.reduceat(count[order], first) if len(first) else np.zeros(0, np.int64)
    origins, destinations = np.divmod(key[first], width)
    return PairSums(origin=origins.astype(np.int32), destination=destinations.astype(np.int32), count=sums, width=width)


def _is_as_fine(finer: tuple[int, int], coarser: tuple[int, int]) -> bool:
    """Return whether both levels of `finer` are at least as fine as the levels of `coarser`."""
    return finer[0] >= coarser[0] and finer[1] >= coarser[1]
