"""The strip under the maps of regions: levels with their share of the budget, errors and false positives, and what another split gives."""

from __future__ import annotations

import math
from functools import partial

import streamlit as st

from dpviz.app.components.strip import REGIONS, StripLevel, strip
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.modes.strip import end_strip, find_shares, make_parts, strip_options
from dpviz.app.pages.areas.level import change_level
from dpviz.app.pages.areas.state import AREAS, AreasDrawn
from dpviz.release.verdict import verdict
from dpviz.view.escape import line

_ONE_REGION = "It is one number: the maps show the levels below it."


@st.fragment
def show_strip(shown: ShownRun, level: int, title: str) -> None:
    """Show the strip of the run of the controls at a level that the maps show; while a share is dragged, only this function runs."""
    what: AreasDrawn = shown.first
    how = AREAS.draft if shown.fresh else what.draft
    shares = find_shares(how, what.release.regions)
    first = what.release.regions.depth + 1 - len(shares)  # a single part is that of the finest level
    strip(
        _make_levels(what, shown.before),
        make_parts(shares, range(first, first + len(shares))),
        shown=level,
        unit=what.data.unit,
        words=REGIONS,
        **strip_options(AREAS, how.build(), shares, partial(_expect, what), change_level, fresh=shown.fresh),
    )
    end_strip(AREAS, title)


def _expect(what: AreasDrawn, shares: list[float]) -> list[float | None]:
    """Compute the expected error of each level with other shares; no count is looked at."""
    how, areas = AREAS.draft, what.data.counts
    errors = how.build().with_shares(shares).expected_errors(areas.regions, how.budget(), areas.contributions)
    return [error.stddev if math.isfinite(error.stddev) else None for error in errors]


def _make_levels(what: AreasDrawn, before: AreasDrawn | None) -> list[StripLevel]:
    same = before is not None and before.release.regions == what.release.regions
    earlier = before.compared.by_level["rmse"].tolist() if before is not None and same else None
    means = [level.mean for level in verdict(what.release).levels]
    return [
        StripLevel(
            name=line(row["name"]),
            about=f"{row['regions']:,} regions",
            mean=means[level] or None,
            expected=row["expected"] if math.isfinite(row["expected"]) else None,
            measured=row["rmse"],
            before=None if earlier is None else earlier[level],
            base=row["empty"],
            wrong=row["false_positives"],
            there=row["regions"] - row["empty"],
            missed=row["false_negatives"],
            closed="" if level else _ONE_REGION,
        )
        for level, row in enumerate(what.compared.by_level.to_dict("records"))
    ]
