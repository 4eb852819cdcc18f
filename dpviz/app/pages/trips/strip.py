"""The strip under the maps of trips: levels with their share of the budget, errors and false discoveries, and what another split gives."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import streamlit as st

from dpviz.app.components.strip import PAIRS, StripLevel, strip
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.modes.strip import end_strip, find_shares, make_parts, strip_options
from dpviz.app.pages.trips.filters import change_level
from dpviz.app.pages.trips.state import TRIPS, TripsDrawn
from dpviz.release.verdict import verdict
from dpviz.view.escape import line

_ONE_REGION = "It is one number: the maps show the levels below it."
_BETWEEN = "Its pairs join regions of two levels: the maps show the levels beside it."


@st.fragment
def show_strip(shown: ShownRun, level: int, title: str) -> None:
    """Show the strip of the run of the controls at a level that the maps show; while a share is dragged, only this function runs."""
    what: TripsDrawn = shown.first
    release, how = what.release, TRIPS.draft if shown.fresh else what.draft
    shares = find_shares(how, release.tree.origins)
    first = release.tree.height + 1 - len(shares)  # stages before that one are exact, or not paid for on their own
    strip(
        _make_levels(what, shown.before),
        make_parts(shares, range(first, first + len(shares)) if len(shares) > 1 else [None]),
        shown=2 * level,
        unit=what.data.unit,
        words=PAIRS,
        **strip_options(TRIPS, how.build(), shares, partial(_expect, what), lambda stage: change_level(stage // 2), fresh=shown.fresh),
    )
    end_strip(TRIPS, title)


def _expect(what: TripsDrawn, shares: list[float]) -> list[float | None] | None:
    """Compute the expected error of each stage with other shares; no noise is drawn."""
    how, release = TRIPS.draft, what.release
    variances = how.build().with_shares(shares).stage_variances(release.tree, how.budget(), what.data.counts.contributions)
    return None if variances is None else [math.sqrt(variance) if math.isfinite(variance) else None for variance in variances.tolist()]


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
