"""The strip under the maps of trips: levels with their share of the budget, errors and false discoveries, and what another split gives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpviz.app.components.strip import PAIRS, StripLevel
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.modes.strip import StripParts
from dpviz.app.pages.trips.filters import change_level
from dpviz.app.pages.trips.state import TripsDrawn
from dpviz.mechanisms.base import Share
from dpviz.privacy.budget import Budget
from dpviz.release.verdict import verdict
from dpviz.view.escape import line

_ONE_REGION = "It is one number: the maps show the levels below it."
_BETWEEN = "Its pairs join regions of two levels: the maps show the levels beside it."


def make_strip(shown: ShownRun, level: int) -> StripParts:
    """Return the strip of the run of the right map at a level that the maps show."""
    what: TripsDrawn = shown.first
    tree = what.release.tree

    def place_shares(shares: Sequence[Share]) -> Sequence[int | None]:
        first = tree.height + 1 - len(shares)  # stages before that one are exact, or not paid for on their own
        return range(first, first + len(shares)) if len(shares) > 1 else [None]

    return StripParts(
        about="Levels are pairs of regions, from the whole to the finest.",
        frame=tree.origins,
        levels=_make_levels(what, shown.before),
        shown=2 * level,
        place_shares=place_shares,
        expect=partial(expect, what),
        choose=lambda stage: change_level(stage // 2),
        words=PAIRS,
    )


def expect(what: TripsDrawn, mechanism: Any, budget: Budget) -> list[float] | None:
    """Compute the expected error of each stage; no noise is drawn."""
    variances = mechanism.stage_variances(what.release.tree, budget, what.data.counts.contributions)
    return None if variances is None else np.sqrt(variances).tolist()


def _make_levels(what: TripsDrawn, before: TripsDrawn | None) -> list[StripLevel]:
    release, rows = what.release, what.compared.by_stage.to_dict("records")
    earlier: list[float | None] = [None] * len(rows)
    if before is not None and before.release.tree == release.tree:
        earlier = before.compared.by_stage["rms_error_present"].tolist()
    means = [level.mean for level in verdict(release).stages]
    return [
        StripLevel(
            name=line(row["between"]),
            about=f"{row['pairs']:,} pairs, {row['released_pairs']:,} of them released",
            mean=means[stage] or None,
            expected=float(np.sqrt(np.mean(stddev**2))) if len(stddev) and release.states_noise else None,
            measured=row["rms_error_present"],
            before=earlier[stage],
            base=row["released_pairs"],
            wrong=row["false_positives"],
            there=row["true_pairs"],
            missed=row["false_negatives"],
            closed="" if stage and stage % 2 == 0 else _ONE_REGION if stage == 0 else _BETWEEN,
        )
        for stage, (row, stddev) in enumerate(zip(rows, map(release.stage_stddev, range(len(rows))), strict=True))
    ]
