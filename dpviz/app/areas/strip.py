"""The strip under the maps of regions: levels with their share of the budget, errors and false positives, and what another split gives."""

from __future__ import annotations

import math
from functools import partial

import streamlit as st

from dpviz.app.areas.level import change_level
from dpviz.app.areas.state import AREAS, AreasConfig, AreasDrawn, config, evaluation_of
from dpviz.app.components.strip import REGIONS, StripLevel, StripPart, strip
from dpviz.app.controls import share_locks, use_shares
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import Share
from dpviz.release.verdict import verdict
from dpviz.view.escape import html, line

_RERUN = "strip of areas changed the page"
_ONE_REGION = "It is one number: the maps show the levels below it."


@st.fragment
def show_strip(what: AreasDrawn, level: int, before: AreasDrawn | None, *, fresh: bool, title: str) -> None:
    """Show the strip; while a share is dragged, only this function runs.

    Args:
        what: the run that is shown, with its evaluation.
        level: the level of the regions that the maps show.
        before: the run before, for comparison; None if there was none.
        fresh: whether the run is that of the controls; if not, the strip shows its split and cannot change it.
        title: of which run the strip is.
    """
    mechanism = (config() if fresh else what.config).build()
    shares = _list_shares(config() if fresh else what.config, what)
    changes = fresh and len(shares) > 1
    strip(
        _make_levels(what, before),
        _make_parts(shares, what),
        shown=level,
        unit=what.data.unit,
        relative=config().relative,
        key="areas strip",
        on_level=_choose_level,
        on_unit=partial(_change, "relative"),
        on_shares=partial(_use_shares, shares) if changes else None,
        on_drag=partial(_expect, what) if changes else None,
        words=REGIONS,
        whole=mechanism.whole_budget if len(shares) == 1 else "",
    )
    st.html(f'<div class="dpviz-note row">{html(title)}</div>')
    if st.session_state.pop(_RERUN, False):
        st.rerun()


def _list_shares(how: AreasConfig, what: AreasDrawn) -> list[Share]:
    """Return the shares of the budget, as on the left: of Gaussian noise those of ρ."""
    try:
        return how.shares(what.release.regions)
    except DpvizError:
        return [Share(label="counts", share=1.0)]


def _make_parts(shares: list[Share], what: AreasDrawn) -> list[StripPart]:
    """Return the parts of the budget, each at its level; a single part is that of the finest level."""
    locks = share_locks(len(shares)) if len(shares) > 1 else [False]
    depth = what.release.regions.depth
    first = depth + 1 - len(shares)
    return [
        StripPart(label=share.label, share=share.share, locked=locked, level=first + index)
        for index, (share, locked) in enumerate(zip(shares, locks, strict=True))
    ]


def _choose_level(level: int) -> None:
    change_level(level)
    st.session_state[_RERUN] = True


def _change(name: str, value: object) -> None:
    AREAS.change(**{name: value})
    st.session_state[_RERUN] = True


def _use_shares(parts: list[Share], shares: list[float]) -> None:
    use_shares(AREAS, parts, shares)
    st.session_state[_RERUN] = True


def _expect(what: AreasDrawn, shares: list[float]) -> list[float | None]:
    """Compute the expected error of each level with other shares; no count is looked at."""
    how, areas = config(), what.data.areas
    errors = how.build().with_shares(shares).expected_errors(areas.regions, how.budget(), areas.contributions)
    return [error.stddev if math.isfinite(error.stddev) else None for error in errors]


def _make_levels(what: AreasDrawn, before: AreasDrawn | None) -> list[StripLevel]:
    same = before is not None and before.release.regions == what.release.regions
    earlier = evaluation_of(before).by_level["rmse"].tolist() if before is not None and same else None
    means = [level.mean for level in verdict(what.release).levels]
    return [
        StripLevel(
            name=line(row["name"]),
            about=f"{row['regions']:,} regions",
            mean=means[level] or None,
            expected=row["expected"],
            measured=row["rmse"],
            before=None if earlier is None else earlier[level],
            base=row["empty"],
            wrong=row["false_positives"],
            there=row["regions"] - row["empty"],
            missed=row["false_negatives"],
            closed="" if level else _ONE_REGION,
        )
        for level, row in enumerate(evaluation_of(what).by_level.to_dict("records"))
    ]
