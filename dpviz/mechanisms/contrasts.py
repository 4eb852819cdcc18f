"""Statistical disclosure control as offices practise it, without differential privacy: small counts suppressed, counts rounded.

NOT PRIVATE: these rules bound what one table shows, not what several tables together, or what is known already, reveal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.mechanisms.base import TODAY, Share, setting
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.receipt import Receipt
from dpviz.space.hierarchy import Hierarchy

AnyCounts = PointCounts | TripCounts | AreaCounts

NO_PROOF = "the records themselves: NOT PRIVATE"
PUBLISHED, SUMMED = "published", "summed"
TOTALS = (PUBLISHED, SUMMED)
RANDOM, NEAREST = "random", "nearest"
ROUNDINGS = (RANDOM, NEAREST)
NO_NOISE = "the error of this method is not stated, so that no interval can be given"
"""Why a release of this kind has neither standard deviations nor intervals."""
NO_BUDGET = "No budget is spent: this method has no ε."


class Contrast:
    """What every contrast declares beside its family's base, which comes after it: a table that no budget pays for. NOT PRIVATE.

    Protects: nothing that a proof covers. No noise is stated: standard deviations and intervals are NaN. The budget is passed on unused.
    """

    menu_group: ClassVar[str] = TODAY
    private: ClassVar[bool] = False
    spends: ClassVar[bool] = False
    noise_by_budget: ClassVar[bool] = False
    whole_budget: ClassVar[str] = NO_BUDGET
    attack: ClassVar[str]

    @property
    def needs_delta(self) -> bool:
        """False: no budget is spent, of any kind."""
        return False

    def shares(self, frame: Any) -> list[Share]:  # noqa: ARG002
        """List one share: nothing is spent."""
        return [Share(label="nothing: no budget is spent", share=1.0)]

    def write_receipt(self, data: AnyCounts, budget: Budget, unprotected: tuple[str, ...], notes: tuple[str, ...] = ()) -> Receipt:
        """Write a receipt without steps. `unprotected` lists what is public; `notes` follow those on the attack and the budget."""
        return Receipt(
            total=budget,
            steps=(),
            unit=data.unit,
            contributions=data.contributions,
            unprotected=unprotected,
            notes=(f"NOT PRIVATE: {self.attack}", NO_BUDGET, *notes),
            private=False,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """What a contrast publishes of a hierarchy of n nodes.

    Attributes:
        shown: (n,) counts as published; NaN where a count is not shown, or only the sum of others.
        count: (n,) counts that answers and maps use: 0 where a count is not shown, sums where it is one.
        steps: descriptions of what was done.
    """

    shown: Floats
    count: Floats
    steps: tuple[str, ...]


class ChangedCounts(Contrast):
    """A contrast that changes the counts of every level by themselves, or those of the finest alone, of which larger ones are sums."""

    totals: str

    def change(self, counts: Integers, entropy: Entropy) -> Floats:
        """Return (n,) counts as published, NaN where one is not shown; `entropy` is used only where the method itself is random."""
        raise NotImplementedError

    @property
    def step(self) -> str:
        """Description of the change."""
        raise NotImplementedError

    @property
    def steps(self) -> tuple[str, str]:
        """Descriptions of the change, and of where larger counts come from."""
        published = "larger areas are tables of their own and need not add up"
        return self.step, published if self.totals == PUBLISHED else "larger areas are sums of what is published below"

    def publish(self, hierarchy: Hierarchy, true: Integers, entropy: Entropy) -> Table:
        """Change the (n,) true counts of a hierarchy."""
        shown = self.change(true, entropy)
        count = np.nan_to_num(shown, nan=0.0)
        if self.totals == SUMMED:
            leaves = hierarchy.children == 0
            shown, count = np.where(leaves, shown, np.nan), hierarchy.sum_up(np.where(leaves, count, 0.0))
        return Table(shown=shown, count=count, steps=self.steps)


def totals_setting() -> Any:
    """Declare the setting `totals`: whether larger areas are tables of their own."""
    return setting(
        PUBLISHED,
        "Larger areas",
        choices=TOTALS,
        help="published: counted and changed by themselves like the small ones, as offices do. summed: sums of what is published below.",
    )


@dataclass(frozen=True, kw_only=True)
class Suppressed(ChangedCounts):
    """Exact counts, of which small ones are not shown; a 0 is shown, and a suppressed count is taken as 0."""

    attack: ClassVar[str] = "subtract two such tables from each other, or from a total its other parts, and what is left is one person."
    lesson: ClassVar[str] = "differencing"

    threshold: int = setting(
        5, "Smallest count shown", low=2, high=10**6, help="Smaller counts, but for 0, are not shown. 5, 10 and 11 are usual."
    )

    totals: str = totals_setting()

    def change(self, counts: Integers, entropy: Entropy) -> Floats:  # noqa: ARG002
        """Leave out counts from 1 to `threshold` - 1; nothing is random."""
        return np.where(is_small(counts, self.threshold), np.nan, counts)

    @property
    def step(self) -> str:
        """Description of the change."""
        return f"counts from 1 to {self.threshold - 1:,} left out, and taken as 0"


@dataclass(frozen=True, kw_only=True)
class Rounded(ChangedCounts):
    """Counts rounded to multiples of 3 or 5, each by itself, at random or to the nearest."""

    attack: ClassVar[str] = "counts and totals that are rounded apart from each other leave few possibilities for the true counts."
    lesson: ClassVar[str] = "reconstruction"

    base: int = setting(3, "Round to multiples of", choices=(3, 5), help="3 and 5 are what statistical offices use.")
    rounding: str = setting(
        RANDOM,
        "Rounding",
        choices=ROUNDINGS,
        help="random: up or down at random, so that the count is right on average. nearest: to the nearest multiple.",
    )

    totals: str = totals_setting()

    def change(self, counts: Integers, entropy: Entropy) -> Floats:
        """Round every count by itself."""
        return round_counts(counts, self.base, self.rounding, entropy).astype(np.float64)

    @property
    def step(self) -> str:
        """Description of the change."""
        return f"counts rounded to multiples of {self.base} ({self.rounding})"


@dataclass(frozen=True, kw_only=True)
class Merged(Contrast):
    """Exact counts; parts with fewer than k are shown only within the larger part around them."""

    lesson: ClassVar[str] = "differencing"

    k: int = setting(10, "Least records of a part, k", low=2, high=10**6, help="Parts with fewer, but for 0, are merged into larger ones.")

    @property
    def steps(self) -> tuple[str, ...]:
        """Descriptions of what was done."""
        return (f"parts with fewer than {self.k:,} shown only within larger ones",)

    def publish(self, hierarchy: Hierarchy, true: Integers, entropy: Entropy) -> Table:  # noqa: ARG002
        """Merge small parts of a hierarchy level by level, from the whole down, see `are_merged`; nothing is random."""
        shown = np.where(is_small(true, self.k), np.nan, true)
        for depth in range(1, hierarchy.height + 1):
            nodes = hierarchy.at_depth(depth)
            parent, of_level = hierarchy.parent[nodes], shown[nodes]
            of_level[np.isnan(shown[parent])] = np.nan
            parts = np.flatnonzero(~np.isnan(shown[parent]) & (true[nodes] > 0))
            of_level[parts[are_merged(parent[parts].astype(np.int64), true[nodes][parts], self.k)]] = np.nan
        return Table(shown=shown, count=np.nan_to_num(shown, nan=0.0), steps=self.steps)


def is_small(counts: Integers, threshold: int) -> Mask:
    """Return (n,) whether whole counts are from 1 to `threshold` - 1: these are suppressed; a 0 is shown.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 4.2: the minimum frequency rule.

    >>> import numpy as np
    >>> is_small(np.array([0, 1, 4, 5]), 5).tolist()
    [False, True, True, False]
    """
    return (counts > 0) & (counts < threshold)


def round_counts(counts: Integers, base: int, rounding: str, entropy: Entropy) -> Integers:
    """Round whole counts to multiples of a base.

    Args:
        counts: (n,) whole counts, at least 0.
        base: 3 or 5, say.
        rounding: "random" rounds r above a multiple up with probability r / base, exactly, so that the mean is the count. "nearest"
            rounds to the nearest multiple, and halves up.
        entropy: the stream from which random rounding is drawn.

    Returns:
        (n,) multiples of the base, less than `base` away from the counts; for "nearest", at most half of it.

    Source:
        Hundepool et al., "Statistical disclosure control", Wiley, 2012, Section 5.4; random rounding to base 3 is that of Statistics
        New Zealand.

    >>> import numpy as np
    >>> round_counts(np.array([0, 1, 2, 3, 4]), 3, "nearest", Entropy.seeded(1)).tolist()
    [0, 0, 3, 3, 3]
    >>> round_counts(np.full(9000, 4), 3, "random", Entropy.seeded(1)).mean().round(1)
    np.float64(4.0)
    """
    above = counts % base
    up = require_entropy(entropy).below(base, len(counts)) < above if rounding == RANDOM else 2 * above >= base
    return counts - above + base * up


def are_merged(parent: Integers, count: Integers, k: int) -> Mask:
    """Find which of several parts are merged, so that no part that is shown, and no merged rest, has from 1 to k - 1 trips.

    Args:
        parent: (n,) number of the larger part in which each part lies.
        count: (n,) counts of the parts, at least 1; those in a larger part add up to at least k.
        k: the least number.

    Returns:
        (n,) True for parts with fewer than k, and for the smallest other part where these have fewer than k together.

    >>> are_merged(np.array([0, 0, 0, 1, 1, 1]), np.array([2, 50, 12, 6, 6, 20]), k=10).tolist()
    [True, False, True, True, True, False]
    """
    order = np.lexsort((count, parent))
    sorted_parent, sorted_count = parent[order], count[order]
    before = np.cumsum(sorted_count) - sorted_count
    first = np.flatnonzero(np.r_[True, np.diff(sorted_parent) != 0]) if len(order) else np.zeros(0, np.int64)
    before -= np.repeat(before[first], np.diff(np.r_[first, len(order)]))
    merged = np.zeros(len(order), np.bool_)
    merged[order] = (sorted_count < k) | ((before > 0) & (before < k))
    return merged
