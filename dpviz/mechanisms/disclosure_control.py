"""Statistical disclosure control as offices practise it, without differential privacy: small counts suppressed, counts rounded.

NOT PRIVATE: these rules bound what one table shows, not what several tables together, or what is known already, reveal.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dpviz.arrays import Integers, Mask
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import TODAY, Share, setting
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.receipt import Receipt

PUBLISHED, SUMMED = "published", "summed"
TOTALS = (PUBLISHED, SUMMED)
RANDOM, NEAREST = "random", "nearest"
ROUNDINGS = (RANDOM, NEAREST)
NO_NOISE = "the error of this method is not stated, so that no interval can be given"
"""Why a release of this kind has neither standard deviations nor intervals."""
NO_BUDGET = "No budget is spent: this method has no ε."


class Contrast:
    """What every contrast declares beside its family's base, which comes after it: a table that no budget pays for. NOT PRIVATE."""

    menu_group: ClassVar[str] = TODAY
    private: ClassVar[bool] = False
    spends: ClassVar[bool] = False
    whole_budget: ClassVar[str] = NO_BUDGET
    attack: ClassVar[str]

    def shares(self, frame: Any) -> list[Share]:  # noqa: ARG002
        """List one share: nothing is spent."""
        return [Share(label="nothing: no budget is spent", share=1.0)]

    def write_receipt(
        self, data: PointCounts | Flows, budget: Budget, unprotected: tuple[str, ...], notes: tuple[str, ...] = ()
    ) -> Receipt:
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


def totals_setting(done: str) -> Any:
    """Declare the setting `totals`: whether larger areas are tables of their own; `done` says what happens to their counts."""
    return setting(
        PUBLISHED,
        "Larger areas",
        choices=TOTALS,
        help=f"published: counted by themselves, and {done} like the small ones, as offices do. summed: sums of what is published below.",
    )


def threshold_setting(noun: str) -> Any:
    """Declare the setting `threshold`; `noun` is what is counted."""
    return setting(
        5, "Smallest count shown", low=2, high=10**6, help=f"Fewer {noun}, but at least one, are not shown. 5, 10 and 11 are usual."
    )


def base_setting() -> Any:
    """Declare the setting `base` of rounding."""
    return setting(3, "Round to multiples of", choices=(3, 5), help="3 and 5 are what statistical offices use.")


def rounding_setting() -> Any:
    """Declare the setting `rounding`."""
    return setting(
        RANDOM,
        "Rounding",
        choices=ROUNDINGS,
        help="random: up or down at random, so that the count is right on average. nearest: to the nearest multiple.",
    )


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
