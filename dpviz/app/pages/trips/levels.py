"""The levels of the rail of trips: pairs of regions, what they are worth in a run, and what another split would give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpviz.app.components.rail import RailLevel
from dpviz.app.modes.rail import RailParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.pages.trips.filters import change_level
from dpviz.app.pages.trips.state import TripsDrawn
from dpviz.evaluation.level_worth import PAIRS, weigh_pairs
from dpviz.mechanisms.base import Share
from dpviz.privacy.budget import Budget
from dpviz.view.escape import line

_ONE_REGION = "It is one number: the maps show the levels below it."
_BETWEEN = "Its pairs join regions of two levels: the maps show the levels beside it."


def make_rail(shown: ShownRuns, level: int) -> RailParts:
    """Return the rail of the first run at a level that the maps show."""
    what: TripsDrawn = shown.first
    tree = what.release.tree

    def place_shares(shares: Sequence[Share]) -> Sequence[int | None]:
        first = tree.height + 1 - len(shares)  # stages before that one are exact, or not paid for on their own
        return range(first, first + len(shares)) if len(shares) > 1 else [None]

    return RailParts(
        frame=tree.origins,
        levels=make_levels(what),
        levels_of=make_levels,
        numbers=[None if stage % 2 else stage // 2 for stage in range(tree.height + 1)],
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


def make_levels(what: TripsDrawn) -> list[RailLevel]:
    """Make the levels of the rail, from a run on public data: the stages of the release, those between two levels included."""
    return [
        RailLevel(
            name=line(row["between"]),
            subject=f"A pair ({line(row['between'])})" if stage else "The total",
            about=f"{row['pairs']:,} pairs, {row['released_pairs']:,} of them released",
            worth=worth,
            closed="" if stage and stage % 2 == 0 else _ONE_REGION if stage == 0 else _BETWEEN,
        )
        for stage, (row, worth) in enumerate(zip(what.compared.by_stage.to_dict("records"), weigh_pairs(what.compared), strict=True))
    ]
