"""Noise on every pair of a level of regions and a level of categories, and exact least squares on the product of their trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.areas import AreaCounts
from dpviz.mechanisms.areas.base import SAME_NUMBER, AreaMechanism
from dpviz.mechanisms.audit import AREAS, CROSS, MEANS, Added
from dpviz.mechanisms.base import BOUNDED, PUBLIC_REGIONS, LevelError, Share, setting, split_shares
from dpviz.mechanisms.run import Run
from dpviz.privacy.allocation import region_weights
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.lean import make_lean
from dpviz.privacy.tree_product import ProductSpread, fit_product
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.mean_release import MeanRelease
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross, categories_of, regions_of
from dpviz.space.nested import Nested
from dpviz.space.regions import Regions
from dpviz.space.summed import Summed

_SPLITS = ("balanced", "minimax", "uniform", "geometric", "custom")
_HELP = (
    "balanced: the finest level counts most, and levels that help little get nothing. minimax: the level that loses most against the whole"
    " budget loses as little as possible. uniform: equal shares. geometric: more for levels with more {parts}. custom: your weights."
)
_WEIGHTS = (
    "One per level, the whole first; 0 for a level that is not measured, but not for the finest. Shares that add up to 1, or whole numbers."
)
_PUBLIC_SLOTS, _PUBLIC_BOUNDS = "the categories and their levels", "the bounds of the values and their grid"
_PER_SLOT = "Of one person at most {most:,} records count in all, and at most {per_slot:,} in each slot, over all regions."
_SUMS = (
    "The values between {low:,.15g} and {high:,.15g} are added up in steps of {step:.15g}. A record adds {steps:,} steps to its two slots"
    " together, by which counts and noise are divided: they are in records."
)
_BIASED = (
    "spread and intervals are those of the best unbiased estimates; released counts are at least 0 and lean: in places with few records,"
    " slots are split much as in the larger region around"
)


@dataclass(frozen=True, kw_only=True)
class CrossTree(AreaMechanism):
    """Noisy counts of regions by categories, such as hours, on every pair of their levels, which add up along regions and along categories.

    Protects: adding or removing one record, or replacing it by another (with a person column: all that one person did, at most m records,
    of which at most b lie in one slot). What is counted beside the place, its levels and bins are public.

    Proof: regions, categories and shares are public. A record lies in one region and one slot, so that it is in one count of every pair of
    levels. The counts of a pair are disjoint, and a unit changes them by at most m in all; the sum of squares is at most
    floor(m / c) c**2 + (m mod c)**2, where c = min(m, b w) and w is the largest number of slots in a category of that level (see
    `Sensitivity`). If records are replaced, both are at most twice as large. Each pair has independent noise for its part of the budget,
    and the parts add up: epsilons by basic composition, rhos by that of zCDP. Least squares, lean counts and sums see noisy counts alone.
    For (epsilon, delta) and m = 1, one count of each pair changes by one (two, if replaced), as the exact accounting assumes; for m > 1 rho
    comes from the tight conversion. With `Summed`, a record lies in both slots, and adds w steps to them in all: sums and squares are at
    most w and w**2 times as large, and rho comes from the tight conversion.

    Source:
        Least squares on trees: Hay, Rastogi, Miklau, Suciu, VLDB 2010, Section 4. On the product of two trees it is one fit along each (see
        `dpviz.privacy.tree_product`). The shares: `dpviz.privacy.allocation.balanced_shares`. Lean counts: `dpviz.privacy.lean`.

    Deviations:
        The part of a pair is the share of its level of regions times that of its level of categories; free parts were measured to gain at
        most 0.3 %. Where rounding makes the noise no exact product, the fit's weights are those of a product close to it, and the stated
        variances are exact. b lowers no noise under epsilon. Under "bounded", the whole costs more than it has to, as in a region tree,
        but its slots do not, so that it keeps its share. Of `Summed`, "balanced" measures the two slots
        alone: their sum says nothing of a mean.

    Without categories, regions alone are counted, as by a region tree.

    >>> import dpviz as dv
    >>> import pandas as pd
    >>> regions = dv.Regions.from_table(pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]}), levels=["state", "town"])
    >>> visits = pd.DataFrame({"region": ["a"] * 900 + ["c"] * 400, "day": ["Monday"] * 700 + ["Sunday"] * 600})
    >>> areas = dv.AreaCounts.from_table(visits, regions=regions, categories=dv.Categories.weekdays(), slot="day", count="none")
    >>> release = dv.CrossTree().release(areas, dv.PureBudget(2), dv.Entropy.seeded(1))
    >>> release.to_frame(("state", "part of week"))["count"].round(-2).tolist()
    [700.0, 200.0, 0.0, 400.0]
    """

    key: ClassVar[str] = "cross_tree"
    title: ClassVar[str] = "Cross tree"
    summary: ClassVar[str] = "Counts regions by category, such as the hour, on every pair of levels; counts add up in both directions."
    by_category: ClassVar[bool] = True
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = (*AREAS, *CROSS, *MEANS)
    advice: ClassVar[str] = "For counts by place and hour, mode or group. Regions alone are better counted by a region tree."

    split: str = setting("balanced", "Budget over levels of regions", choices=_SPLITS, help=_HELP.format(parts="regions"))
    weights: tuple[float, ...] = setting((), "Custom weights", low=0, when=("split", "custom"), help=_WEIGHTS)
    slot_split: str = setting("balanced", "Budget over levels of categories", choices=_SPLITS, help=_HELP.format(parts="categories"))
    slot_weights: tuple[float, ...] = setting((), "Custom weights of categories", low=0, when=("slot_split", "custom"), help=_WEIGHTS)
    lean: bool = setting(
        True,
        "Lean counts",
        help="Release counts of at least 0 that add up, in which slots of places with few records are split much as in the region around"
        " them: far less error in small counts, and a bias.",
    )

    def release(self, areas: AreaCounts, budget: Budget, entropy: Entropy) -> AreaRelease:
        """Spend a budget on `areas`: epsilon for Laplace noise; rho, or (epsilon, delta) with delta above 0, for Gaussian noise.

        Raises:
            BudgetError: something else than a budget, delta = 0, or a split that does not fit the levels.
            InputError: not AreaCounts.
        """
        self.check_type(areas)
        run, categories = Run.of(self, areas, budget, entropy, weight=areas.per_record), areas.categories
        if categories is None:
            return self.make_release(run, *self.count_levels(run, self.level_weights(areas.regions, gaussian=run.gaussian)))
        frame = Cross(areas.regions, categories)
        places, slots = areas.regions.hierarchy, categories.hierarchy
        noisy, noise = self._measure(run, frame)
        spread = ProductSpread.of_noise(places, slots, noise)
        unbiased = fit_product(spread.places, spread.slots, noisy)
        count = make_lean(places, slots, unbiased, spread.of_nodes()) if self.lean else unbiased
        kind: type[CrossRelease] = MeanRelease if isinstance(categories, Summed) else CrossRelease
        public_slots, notes = _describe_slots(areas)
        public_total = (SAME_NUMBER,) if self.neighbours == BOUNDED else ()
        return kind(
            regions=areas.regions,
            categories=categories,
            noisy=noisy[:, 0],
            noise_variance=noise[places.depth, 0],
            unbiased=unbiased[:, 0] if self.lean else None,
            count=count[:, 0],
            spread=spread,
            cross_noisy=noisy,
            cross_unbiased=unbiased if self.lean else None,
            cross_count=count,
            **self.release_facts(run.receipt((*PUBLIC_REGIONS, public_slots, *public_total), (*run.notes, *notes)), run.entropy),
            steps=("least squares", *(("lean counts",) if self.lean else ())),
            approximate=_BIASED if self.lean else None,
        )

    def _measure(self, run: Run[AreaCounts], frame: Cross) -> tuple[Floats, Floats]:
        """Count every pair of levels that has a part of the budget.

        Returns:
            (n, s) noisy counts in records, NaN where they are not measured, and the (levels, levels) variance of each pair, infinite there.
        """
        places, slots = frame.regions.hierarchy, frame.categories.hierarchy
        of_regions, of_slots = self.level_weights(frame, gaussian=run.gaussian), self.slot_level_weights(frame, gaussian=run.gaussian)
        amounts = run.split([Fraction(str(a)) * Fraction(str(b)) for a, b in product(of_regions, of_slots)])
        true = run.data.cross_counts()
        noisy, noise = np.full(true.shape, np.nan), np.full((len(of_regions), len(of_slots)), np.inf)
        for (level, slot_level), amount in zip(np.ndindex(noise.shape), amounts, strict=True):
            if amount:
                here = np.s_[places.at_depth(level), slots.at_depth(slot_level)]
                of_pair = run.with_most(_most_in_category(run.data.per_slot, frame.categories, slot_level))
                counts, noise[level, slot_level] = of_pair.measure(_purpose(frame, level, slot_level), true[here].ravel(), amount, level)
                noisy[here] = counts.reshape(true[here].shape)
        return noisy / run.data.per_record, noise / run.data.per_record**2

    def level_weights(self, frame: Regions | Cross, *, gaussian: bool) -> list[float]:
        """Return the weights of the levels of regions, the whole's first: of rho if noise is Gaussian, else of epsilon.

        Raises:
            BudgetError: a split that does not fit the levels.
        """
        return _weights_of(regions_of(frame), self.split, self.weights, gaussian=gaussian)

    def slot_level_weights(self, frame: Regions | Cross, *, gaussian: bool) -> list[float]:
        """Return the weights of the levels of categories, the whole's first, as `level_weights` does; one without categories."""
        return _weights_of(categories_of(frame), self.slot_split, self.slot_weights, gaussian=gaussian)

    def check(self, frame: Regions | Cross) -> None:
        """Raise an error if a split does not fit the levels."""
        self.level_weights(frame, gaussian=False)
        self.slot_level_weights(frame, gaussian=False)

    def shares(self, frame: Regions | Cross) -> list[Share]:
        """List one part of epsilon per level of regions, the whole first; parts of rho may differ (see `level_weights`)."""
        return _list_shares(regions_of(frame), self.level_weights(frame, gaussian=False))

    def shares_of_rho(self, frame: Regions | Cross) -> list[Share]:
        """List one part of rho per level of regions, the whole first."""
        return _list_shares(regions_of(frame), self.level_weights(frame, gaussian=True))

    def slot_shares(self, frame: Cross, *, gaussian: bool) -> list[Share]:
        """List one part of rho, or of epsilon, per level of categories, the whole first; a pair of levels gets the product of its parts."""
        return _list_shares(frame.categories, self.slot_level_weights(frame, gaussian=gaussian))

    def with_shares(self, shares: Sequence[float]) -> CrossTree:
        """Return a copy with custom weights, one per level of regions."""
        return replace(self, split="custom", weights=tuple(shares))

    def with_slot_shares(self, shares: Sequence[float]) -> CrossTree:
        """Return a copy with custom weights, one per level of categories."""
        return replace(self, slot_split="custom", slot_weights=tuple(shares))

    def level_errors(self, release: AreaRelease) -> list[LevelError]:
        """List the root mean square deviation of each level, or of counts by category as `pair_errors` does."""
        return self.pair_errors(release) if isinstance(release, CrossRelease) else super().level_errors(release)

    def pair_errors(self, release: CrossRelease) -> list[LevelError]:
        """List the root mean square deviation of each pair of a level of regions and one of categories."""
        pairs = product(range(release.regions.depth + 1), range(release.categories.depth + 1))
        return [LevelError.of_noise(pair, release.name_pair(pair), release.stddev(pair).ravel(), release.noise) for pair in pairs]

    def expected_pair_errors(self, frame: Cross, budget: Budget, contributions: int = 1, per_slot: int | None = None) -> list[LevelError]:
        """List the noise that a release of any counts would have on each pair of levels; arguments and errors as for `expected_errors`."""
        release = self.release_nothing(frame, budget, contributions, per_slot)
        return self.pair_errors(release) if isinstance(release, CrossRelease) else []


def _describe_slots(areas: AreaCounts) -> tuple[str, tuple[str, ...]]:
    """Return what is public of the slots of some counts, and what the receipt notes of them."""
    if isinstance(areas.categories, Summed):
        bounds = {"low": areas.categories.low, "high": areas.categories.high, "step": areas.categories.step}
        return _PUBLIC_BOUNDS, (_SUMS.format(**bounds, steps=areas.per_record),)
    return _PUBLIC_SLOTS, () if areas.per_slot is None else (_PER_SLOT.format(most=areas.contributions, per_slot=areas.per_slot),)


def _most_in_category(per_slot: int | None, categories: Categories, level: int) -> int | None:
    """Return how many records of one person lie in one category of a level at most; None for m."""
    return None if per_slot is None else per_slot * int(categories.leaf_count(level).max())


def _weights_of(nested: Nested | None, split: str, custom: tuple[float, ...], *, gaussian: bool) -> list[float]:
    if nested is None:
        return [1.0]
    if isinstance(nested, Summed) and split == "balanced":
        return [0.0, 1.0]  # of sums, the whole of both slots says nothing of the mean
    sizes = [nested.size(level) for level in range(nested.depth + 1)]
    return region_weights(split, sizes, gaussian=gaussian, custom=custom, root=True)


def _list_shares(nested: Nested, weights: Sequence[float]) -> list[Share]:
    return split_shares(("the whole", *nested.levels), weights, range(nested.depth + 1))


def _purpose(frame: Cross, level: int, slot_level: int) -> str:
    where = frame.regions.levels[level - 1] if level else "the whole"
    return f"{where} by {frame.categories.levels[slot_level - 1]}" if slot_level else where
