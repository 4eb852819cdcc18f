"""Errors of released trips by stage (CURATOR ONLY), and public bounds on these errors.

The bounds need no true counts: they follow from the receipt of a release, or are the asymptotic formulas of the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.cards import HtmlCard
from dpviz.data.trips import TripCounts
from dpviz.errors import DomainError, SettingError
from dpviz.families import TRIP_FAMILY
from dpviz.release.trip_release import PairSums, TripRelease, sum_pairs

KINDS = ("true positive", "false positive", "false negative")


@dataclass(frozen=True, kw_only=True, eq=False)
class TripEvaluation(HtmlCard):
    """A release of trips compared with the true trips. CURATOR ONLY: holds private data, must not be exported.

    A pair is *released* if its released count is above 0, and *present* if it is released or has true trips.

    Attributes:
        release: of trips.
        trips: the private trips that it was made from.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [90]}), regions=regions)
    >>> release = dv.TopDown().release(trips, dv.ApproxBudget(1, 1e-6), dv.Entropy.seeded(1))
    >>> dv.evaluate(release, trips).true_level(1).count.tolist()
    [90]
    """

    release: TripRelease
    trips: TripCounts

    def __repr__(self) -> str:
        return "TripEvaluation(curator only: holds true counts)"

    @cached_property
    def by_stage(self) -> pd.DataFrame:
        """Errors of each stage, the pair of roots first.

        Returns:
            DataFrame with stage, between (name of the stage), level (of both sides; missing at stages between levels), pairs (number
            of all pairs of the stage, public), true_pairs, released_pairs, max_error, mean_error (trips, over all pairs),
            mean_error_present (over present pairs), false_discovery (percent of released pairs without true trips), false_negative
            (percent of pairs with true trips that are not released), false_positives, false_negatives (pairs), false_positive_trips
            (released on pairs without true trips), rest (released trips that are in no pair of the stage: 0 unless the stage is a list)
            and coverage (percent of released pairs whose true count lies in the stated 95 % interval). Percentages of nothing are 0; a
            coverage of nothing, or of intervals without an upper end, is NaN.
        """
        table = pd.DataFrame([self._compute_stage_errors(stage) for stage in range(self.release.tree.height + 1)])
        return table.astype({"level": "Int64"})

    def true_sums(self, origin_level: int, destination_level: int) -> PairSums:
        """Add up the true trips between the regions of two levels. PRIVATE.

        Raises:
            DomainError: no such level.
        """
        key = (origin_level, destination_level)
        if key not in self._sums:
            trips = self.trips
            origin = trips.regions.ancestors(origin_level)[trips.origin]
            destination = trips.ends.ancestors(destination_level)[trips.destination]
            self._sums[key] = sum_pairs(origin, destination, trips.count, trips.ends.size(destination_level))
        return self._sums[key]

    def true_level(self, level: int) -> PairSums:
        """Add up the true trips between the regions of one level. PRIVATE."""
        return self.true_sums(level, level)

    def compare(self, level: int) -> pd.DataFrame:
        """List every present pair of regions of one level, sorted by origin, then destination. PRIVATE.

        Returns:
            DataFrame with origin and destination (indices of regions), released, true, error (released - true) and kind: "true positive",
            "false positive" (released without true trips) or "false negative" (true trips that are not released).

        Raises:
            DomainError: no such level.
        """
        truth, released = self.true_level(level), self.release.sums(level, level)
        missed, positive = released.at(truth.origin, truth.destination) <= 0, released.count > 0
        origin = np.concatenate([released.origin[positive], truth.origin[missed]])
        destination = np.concatenate([released.destination[positive], truth.destination[missed]])
        order = np.lexsort((destination, origin))
        origin, destination = origin[order], destination[order]
        count, true = released.at(origin, destination), truth.at(origin, destination)
        kind = np.where(count <= 0, 2, (true == 0).astype(np.int64))
        table = pd.DataFrame({"origin": origin, "destination": destination, "released": count, "true": true, "error": count - true})
        return table.assign(kind=pd.Categorical(np.array(KINDS)[kind], categories=KINDS))

    def largest_error(self, stage: int) -> int:
        """Find the largest |released - true| of all pairs of a stage, in trips; pairs that are not released count as 0. PRIVATE.

        Args:
            stage: 0 to T; stage 2k pairs the regions of level k.
        """
        levels = self.release.tree.levels(stage)
        truth, released = self.true_sums(*levels), self.release.sums(*levels)
        error = np.abs(released.count - truth.at(released.origin, released.destination))
        absent = truth.count[released.at(truth.origin, truth.destination) == 0]
        return int(max(error.max(initial=0), absent.max(initial=0)))

    @cached_property
    def _sums(self) -> dict[tuple[int, int], PairSums]:
        return {}

    def _compute_stage_errors(self, stage: int) -> dict[str, Any]:
        """Compute the row of `by_stage` for one stage."""
        tree, counts = self.release.tree, self.release.stages[stage]
        truth = self.true_sums(*tree.levels(stage))
        true = truth.at(counts.origin, counts.destination)
        error, positive = np.abs(counts.count - true) * (counts.count != 0), counts.count > 0
        released = self.release.sums(*tree.levels(stage)).at(truth.origin, truth.destination)
        missing, absent = released <= 0, truth.count[released == 0]
        wrong = positive & (true == 0)
        low, high = (ends[positive] for ends in self.release.stage_interval(stage))
        inside = (low <= true[positive]) & (true[positive] <= high)
        present = int(positive.sum() + missing.sum())
        missed = (truth.count - released)[missing]
        present_error = int(error[positive].sum() + missed.sum())
        squared = float((error[positive].astype(np.float64) ** 2).sum() + (missed.astype(np.float64) ** 2).sum())
        return {
            "stage": stage,
            "between": tree.title(stage),
            "level": None if stage % 2 else stage // 2,
            "pairs": tree.size(stage),
            "true_pairs": len(truth.count),
            "released_pairs": int(positive.sum()),
            "max_error": self.largest_error(stage),
            "mean_error": float(error.sum() + absent.sum()) / tree.size(stage),
            "mean_error_present": present_error / max(present, 1),
            "rms_error_present": math.sqrt(squared / max(present, 1)),
            "false_discovery": 100.0 * int(wrong.sum()) / max(int(positive.sum()), 1),
            "false_negative": 100.0 * int(missing.sum()) / max(len(missing), 1),
            "false_positives": int(wrong.sum()),
            "false_negatives": int(missing.sum()),
            "false_positive_trips": int(counts.count[wrong].sum()),
            "rest": int(self.release.unlisted_trips(0, 0).count.sum()) if stage == tree.height else 0,
            "coverage": float(100 * inside.mean()) if len(inside) and not np.isnan(high).any() else np.nan,
        }


def error_bounds(release: TripRelease, beta: float = 0.05) -> Floats:
    """Bound the errors of all pairs of each stage; each stage's bound holds with probability at least 1 - beta.

    Args:
        release: of trips. Only its settings, its receipt and the sizes of its tree are used.
        beta: probability that a bound fails, above 0 and below 1.

    Returns:
        (T + 1,) bounds in trips, the pair of roots first; NaN where the mechanism knows no bound.

    Raises:
        SettingError: beta is out of range.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [90]}), regions=regions)
    >>> release = dv.TopDown().release(trips, dv.ApproxBudget(1, 1e-6), dv.Entropy.seeded(1))
    >>> dv.evaluation.trip_metrics.error_bounds(release).shape
    (3,)
    """
    if not 0 < beta < 1:
        raise SettingError("beta must be above 0 and below 1.")
    mechanism = TRIP_FAMILY.mechanisms.get(release.mechanism)
    if mechanism is None:
        return np.full(release.tree.height + 1, np.nan)
    bounds: Floats = mechanism.from_settings(release.settings).error_bounds(release, beta)
    return bounds


def theorem_4(stage: int, height: int, rho: float, fan_out: float, beta: float) -> float:
    """Compute the asymptotic error of TopDown, up to a constant: sqrt(l**3 T / rho ln(b l / beta)).

    Args:
        stage: l, 0 to T.
        height: T, the number of stages below the root.
        rho: budget.
        fan_out: b.
        beta: probability that the bound fails.

    Source:
        Boninsegna, Silvestri, 2025, Theorem 4, for a tree with b children per node.
    """
    return math.sqrt(stage**3 * height / rho * math.log(fan_out * stage / beta)) if stage else 0.0


def evaluate_trips(release: TripRelease, trips: TripCounts) -> TripEvaluation:
    """Compare a release with the trips that it was made from. CURATOR ONLY.

    Args:
        release: of trips, by any mechanism.
        trips: the private trips.

    Raises:
        DomainError: the trips are between other regions.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [90]}), regions=regions)
    >>> release = dv.TopDown().release(trips, dv.ApproxBudget(1, 1e-6), dv.Entropy.seeded(1))
    >>> dv.evaluate(release, trips).by_stage["true_pairs"].tolist()
    [1, 1, 1]
    """
    if trips.regions != release.tree.origins or trips.ends != release.tree.destinations:
        raise DomainError("The release and the trips must be between the same regions.")
    return TripEvaluation(release=release, trips=trips)
