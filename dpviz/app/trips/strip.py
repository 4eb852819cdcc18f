"""The strip under the maps of trips: levels with their share of the budget, errors and false discoveries, and what another split gives."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import streamlit as st

from dpviz.app.components.strip import PAIRS, StripLevel, StripPart, strip
from dpviz.app.controls import share_locks, use_shares
from dpviz.app.trips.filters import change_level
from dpviz.app.trips.state import TRIPS, TripsDrawn
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import Share
from dpviz.release.flow_release import FlowRelease
from dpviz.release.verdict import verdict
from dpviz.view.escape import html, line

_RERUN = "strip of trips changed the page"
_ONE_REGION = "It is one number: the maps show the levels below it."
_BETWEEN = "Its pairs join regions of two levels: the maps show the levels beside it."


@st.fragment
def show_strip(what: TripsDrawn, level: int, before: TripsDrawn | None, *, fresh: bool, title: str) -> None:
    """Show the strip; while a share is dragged, only this function runs.

    Args:
        what: the run that is shown, with its evaluation.
        level: the level of the regions that the maps show.
        before: the run before, for comparison; None if there was none.
        fresh: whether the run is that of the controls; if not, the strip shows its split and cannot change it.
        title: of which run the strip is.
    """
    release, mechanism = what.releases[0], (TRIPS.config() if fresh else what.config).build()
    try:
        shares = mechanism.shares(release.tree.origins)
    except DpvizError:
        shares = [Share(label="counts", share=1.0)]
    locks = share_locks(len(shares)) if len(shares) > 1 else [False]
    first = release.tree.height + 1 - len(shares)  # stages before that one are exact, or not paid for on their own
    parts = [
        StripPart(label=share.label, share=share.share, locked=locked, level=first + index if len(shares) > 1 else None)
        for index, (share, locked) in enumerate(zip(shares, locks, strict=True))
    ]
    changes = fresh and len(shares) > 1
    strip(
        _make_levels(what, before),
        parts,
        shown=2 * level,
        unit=what.data.unit,
        relative=TRIPS.config().relative,
        key="trips strip",
        on_level=_choose_stage,
        on_unit=partial(_change, "relative"),
        on_shares=partial(_use_shares, shares) if changes else None,
        on_drag=partial(_expect, what) if changes else None,
        words=PAIRS,
        whole=mechanism.whole_budget if len(shares) == 1 else "",
    )
    st.html(f'<div class="dpviz-note row">{html(title)}</div>')
    if st.session_state.pop(_RERUN, False):
        st.rerun()


def _choose_stage(stage: int) -> None:
    """Show the level of a stage."""
    change_level(stage // 2)
    st.session_state[_RERUN] = True


def _change(name: str, value: object) -> None:
    TRIPS.change(**{name: value})
    st.session_state[_RERUN] = True


def _use_shares(parts: list[Share], shares: list[float]) -> None:
    use_shares(TRIPS, parts, shares)
    st.session_state[_RERUN] = True


def _expect(what: TripsDrawn, shares: list[float]) -> list[float | None] | None:
    """Compute the expected error of each stage with other shares; no noise is drawn."""
    how, release = TRIPS.config(), what.releases[0]
    variances = how.build().with_shares(shares).stage_variances(release.tree, how.budget(), what.data.flows.contributions)
    return None if variances is None else [math.sqrt(variance) if math.isfinite(variance) else None for variance in variances.tolist()]


def _make_levels(what: TripsDrawn, before: TripsDrawn | None) -> list[StripLevel]:
    release, rows = what.releases[0], what.evaluations[0].by_stage.to_dict("records")
    earlier = _find_earlier(what, before)
    means = [level.mean for level in verdict(release).stages]
    return [
        StripLevel(
            name=line(row["between"]),
            about=f"{row['pairs']:,} pairs, {row['released_pairs']:,} of them released",
            mean=means[stage] or None,
            expected=_expected_error(release, stage),
            measured=row["rms_error_present"],
            before=earlier.get(stage),
            base=row["released_pairs"],
            wrong=row["false_positives"],
            there=row["true_pairs"],
            missed=row["false_negatives"],
            closed="" if stage and stage % 2 == 0 else _ONE_REGION if stage == 0 else _BETWEEN,
        )
        for stage, row in enumerate(rows)
    ]


def _find_earlier(what: TripsDrawn, before: TripsDrawn | None) -> dict[int, float]:
    """Return the errors of the run before by stage, if it is of the same tree of pairs."""
    if before is None or before.releases[0].tree != what.releases[0].tree:
        return {}
    return dict(enumerate(before.evaluations[0].by_stage["rms_error_present"].tolist()))


def _expected_error(release: FlowRelease, stage: int) -> float | None:
    """Return the root mean square standard deviation of a stage's released counts; None if none was released."""
    stddev = release.stddev(stage)
    return float(np.sqrt(np.mean(stddev**2))) if len(stddev) else None
