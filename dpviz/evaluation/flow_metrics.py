"""How far released trips are from the true ones, stage by stage: for the curator's eyes, never for export."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.data.flows import Flows
from dpviz.errors import DomainError
from dpviz.release.flow_release import FlowRelease, interval
from dpviz.release.pair_sums import PairSums, pair_sums

Integers = NDArray[np.int64]

KINDS = ("true positive", "false positive", "false negative")


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowEvaluation:
    """A release of trips beside the truth. CURATOR ONLY: holds the private trips, not exportable.

    A pair is *released* if its released count is above 0, and *present* if it is released or has true trips.

    Attributes:
        release: what was released.
        flows: what it was made from. PRIVATE.
    """

    release: FlowRelease
    flows: Flows

    def __repr__(self) -> str:
        return "FlowEvaluation(curator only: holds true counts)"

    @cached_property
    def by_stage(self) -> pd.DataFrame:
        """One row per stage, the pair of roots first.

        Returns:
            DataFrame with stage, between, level (of both sides; missing at stages between levels), pairs (all of the stage, a
            public number), true_pairs, released_pairs, max_error, mean_error (trips, over all pairs), mean_error_present (over
            present pairs), false_discovery (percent of released pairs without true trips), false_negative (percent of pairs with
            true trips that are not released), false_positives, false_negatives (pairs), false_positive_trips (released on
            pairs without true trips) and coverage (percent of released pairs whose true count lies in the stated 95 %
            interval). Percentages of nothing are 0; a coverage of nothing is NaN.
        """
        table = pd.DataFrame([self._at_stage(stage) for stage in range(self.release.tree.height + 1)])
        return table.astype({"level": "Int64"})

    def true_sums(self, origin_level: int, destination_level: int) -> PairSums:
        """True trips between two levels. PRIVATE.

        Raises:
            DomainError: no such level.
        """
        key = (origin_level, destination_level)
        if key not in self._sums:
            flows = self.flows
            origin = flows.regions.ancestors(origin_level)[flows.origin]
            destination = flows.ends.ancestors(destination_level)[flows.destination]
            self._sums[key] = pair_sums(origin, destination, flows.count, flows.ends.size(destination_level))
        return self._sums[key]

    def true_level(self, level: int) -> PairSums:
        """True trips between the regions of one level. PRIVATE."""
        return self.true_sums(level, level)

    def compare(self, level: int) -> pd.DataFrame:
        """Every present pair of regions of one level, ordered by origin, then destination. PRIVATE.

        Returns:
            DataFrame with origin and destination (places), released, true, error (released - true) and kind: "true positive",
            "false positive" (released without true trips) or "false negative" (true trips that are not released).

        Raises:
            DomainError: no such level.
        """
        truth, released = self.true_level(level), self.release.sums(level, level)
        missed, shown = released.at(truth.origin, truth.destination) <= 0, released.count > 0
        origin = np.concatenate([released.origin[shown], truth.origin[missed]])
        destination = np.concatenate([released.destination[shown], truth.destination[missed]])
        order = np.lexsort((destination, origin))
        origin, destination = origin[order], destination[order]
        count, true = released.at(origin, destination), truth.at(origin, destination)
        kind = np.where(count <= 0, 2, (true == 0).astype(np.int64))
        return pd.DataFrame(
            {
                "origin": origin,
                "destination": destination,
                "released": count,
                "true": true,
                "error": count - true,
                "kind": pd.Categorical(np.array(KINDS)[kind], categories=KINDS),
            }
        )

    @cached_property
    def _sums(self) -> dict[tuple[int, int], PairSums]:
        return {}

    def _at_stage(self, stage: int) -> dict[str, Any]:
        tree, at = self.release.tree, self.release.stages[stage]
        truth = self.true_sums(*tree.levels(stage))
        true = truth.at(at.origin, at.destination)
        error, shown = np.abs(at.count - true) * (at.count != 0), at.count > 0
        given = self.release.sums(*tree.levels(stage)).at(truth.origin, truth.destination)
        hidden, absent = given <= 0, truth.count[given == 0]
        false = shown & (true == 0)
        low, high = interval(at.noisy[shown], self.release.stddev(stage)[shown])
        inside = (low <= true[shown]) & (true[shown] <= high)
        present = int(shown.sum() + hidden.sum())
        present_error = int(error[shown].sum() + (truth.count - given)[hidden].sum())
        return {
            "stage": stage,
            "between": tree.title(stage),
            "level": None if stage % 2 else stage // 2,
            "pairs": tree.size(stage),
            "true_pairs": len(truth.count),
            "released_pairs": int(shown.sum()),
            "max_error": int(max(error.max(initial=0), absent.max(initial=0))),
            "mean_error": float(error.sum() + absent.sum()) / tree.size(stage),
            "mean_error_present": present_error / max(present, 1),
            "false_discovery": 100.0 * int(false.sum()) / max(int(shown.sum()), 1),
            "false_negative": 100.0 * int(hidden.sum()) / max(len(hidden), 1),
            "false_positives": int(false.sum()),
            "false_negatives": int(hidden.sum()),
            "false_positive_trips": int(at.count[false].sum()),
            "coverage": float(100 * inside.mean()) if len(inside) else np.nan,
        }


def evaluate_flows(release: FlowRelease, flows: Flows) -> FlowEvaluation:
    """Compare a release with the trips that it was made from.

    Raises:
        DomainError: the trips are between other regions.
    """
    if flows.regions != release.tree.origins or flows.ends != release.tree.destinations:
        raise DomainError("The release and the trips must be between the same regions.")
    return FlowEvaluation(release=release, flows=flows)
