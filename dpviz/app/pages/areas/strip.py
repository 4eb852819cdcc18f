"""The strip under the maps of regions: levels with their share of the budget, errors and false positives, and what another split gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from dpviz.app.components.strip import REGIONS, StripLevel
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.modes.strip import StripParts
from dpviz.app.pages.areas.level import change_level
from dpviz.app.pages.areas.state import AreasDrawn
from dpviz.data.areas import AreaCounts
from dpviz.mechanisms.base import Share
from dpviz.privacy.budget import Budget
from dpviz.release.verdict import verdict
from dpviz.view.escape import line

_ONE_REGION = "It is one number: the maps show the levels below it."


def make_strip(shown: ShownRun, level: int) -> StripParts:
    """Return the strip of the run of the right map at a level that the maps show."""
    what: AreasDrawn = shown.first
    regions = what.release.regions

    def place_shares(shares: Sequence[Share]) -> range:
        first = regions.depth + 1 - len(shares)  # a single part is that of the finest level
        return range(first, first + len(shares))

    return StripParts(
        about="Levels are those of the regions, the whole first.",
        frame=regions,
        levels=_make_levels(what, shown.before),
        shown=level,
        place_shares=place_shares,
        expect=partial(expect, what.data.counts),
        choose=change_level,
        words=REGIONS,
    )


def expect(areas: AreaCounts, mechanism: Any, budget: Budget) -> list[float]:
    """Compute the expected error of each level; no count is looked at."""
    return [error.stddev for error in mechanism.expected_errors(areas.regions, budget, areas.contributions)]


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
