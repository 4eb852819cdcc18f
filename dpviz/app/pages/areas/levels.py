"""The levels of the rail of regions: what they are worth in a run, and what another split would give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dpviz.app.components.rail import RailLevel
from dpviz.app.modes.rail import RailParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.pages.areas.level import change_level
from dpviz.app.pages.areas.state import AreasDrawn
from dpviz.data.areas import AreaCounts
from dpviz.evaluation.level_worth import weigh_regions
from dpviz.mechanisms.base import Share
from dpviz.privacy.budget import Budget
from dpviz.view.escape import line

_ONE_REGION = "It is one number: the maps show the levels below it."


def make_rail(shown: ShownRuns, level: int, slots: tuple[str, ...] | None, part: str) -> RailParts:
    """Return the rail of the first run at a level that the maps show.

    Args:
        shown: the runs, in the slots that are shown.
        level: which level.
        slots: ids of these slots; None for all.
        part: their name; "" for all.
    """
    what: AreasDrawn = shown.first
    regions = what.release.regions

    def place_shares(shares: Sequence[Share]) -> range:
        first = regions.depth + 1 - len(shares)  # a single part is that of the finest level
        return range(first, first + len(shares))

    return RailParts(
        frame=regions,
        levels=make_levels(part, what),
        levels_of=partial(make_levels, part),
        numbers=range(regions.depth + 1),
        shown=level,
        place_shares=place_shares,
        expect=partial(expect, what.data.counts, slots),
        choose=change_level,
        slots=slots,
    )


def expect(areas: AreaCounts, slots: tuple[str, ...] | None, mechanism: Any, budget: Budget) -> list[float]:
    """Compute the expected error of each level, in some slots together, None for all; no count is looked at."""
    release = mechanism.release_nothing(areas.frame, budget, areas.contributions, areas.per_slot)
    return [error.stddev for error in mechanism.level_errors(release if slots is None else release.in_slots(slots))]


def make_levels(part: str, what: AreasDrawn) -> list[RailLevel]:
    """Make the levels of the rail, from a run on public data; `part` names the slots that it is about, if these are not all."""
    return [
        RailLevel(
            name=line(row["name"]),
            subject=f"A region ({', '.join(filter(None, (line(row['name']), line(part))))})" if level else "The whole",
            about=f"{row['regions']:,} regions",
            worth=worth,
            closed="" if level else _ONE_REGION,
        )
        for level, (row, worth) in enumerate(zip(what.compared.by_level.to_dict("records"), weigh_regions(what.compared), strict=True))
    ]
