"""Which slots of counts by category are shown, such as some hours of the day, and the strip of slots under the maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpviz.app.components.profile import Bar, profile
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.pages.areas.level import asked_regions, shown_level
from dpviz.app.pages.areas.state import AREAS, AreasDrawn
from dpviz.app.session.widgets import is_dark
from dpviz.evaluation.area_metrics import evaluate_areas
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.mean_release import MeanRelease
from dpviz.space.categories import Categories
from dpviz.view.areas_slots import list_groups, name_range, slots_in

MOST_BARS = 168  # the hours of a week
_HINT = ". Press a bar, or drag over several"


def counts_slots(shown: ShownRuns) -> bool:
    """Return whether all runs that the maps show are by category; sums of values have no slots to choose from."""
    return all(isinstance(what.release, CrossRelease) and not isinstance(what.release, MeanRelease) for what in shown.different)


def shown_range(shown: ShownRuns) -> tuple[int, int] | None:
    """Return the first and the last of the slots that are shown; None for all of them, and where a run is not by category."""
    if AREAS.view.slots is None or not counts_slots(shown):
        return None
    slots = shown.first.release.categories.slots
    first, last = AREAS.view.slots[0], min(AREAS.view.slots[1], slots - 1)
    return None if first > last or (first, last) == (0, slots - 1) else (first, last)


def shown_slots(shown: ShownRuns) -> tuple[str, ...] | None:
    """Return the ids of the slots that are shown; None for all of them."""
    chosen = shown_range(shown)
    return None if chosen is None else slots_in(shown.first.release.categories, chosen)


def name_shown(shown: ShownRuns) -> str:
    """Name the slots that are shown; "" for all of them."""
    chosen = shown_range(shown)
    return "" if chosen is None else name_range(shown.first.release.categories, chosen)


def of_shown_slots(shown: ShownRuns) -> ShownRuns:
    """Return the runs as they are in the slots that are shown: releases of the regions alone, compared with the truth if they were."""
    slots = shown_slots(shown)
    if slots is None:
        return shown
    narrowed = {id(what): narrow(what, slots) for what in shown.different}
    return replace(shown, results={index: narrowed[id(what)] for index, what in shown.results.items()})


def narrow(what: AreasDrawn, slots: tuple[str, ...] | None) -> AreasDrawn:
    """Return a run as it is in some slots, of any level; None is all of them."""
    if slots is None:
        return what
    release: Any = what.release
    alone: AreaRelease = release.in_slots(slots)
    evaluation = None if what.evaluation is None else evaluate_areas(alone, what.data.counts.in_slots(slots))
    return replace(what, release=alone, evaluation=evaluation)


def show_profile(shown: ShownRuns, narrowed: ShownRuns) -> None:
    """Show the counts of each slot in the regions that are asked for, or in the whole: a press or a drag chooses slots.

    Args:
        shown: runs by category.
        narrowed: the same in the slots that are shown.
    """
    what: AreasDrawn = shown.first
    release: Any = what.release
    categories: Categories = release.categories
    level = max(level for level in range(1, categories.depth + 1) if categories.size(level) <= MOST_BARS or level == 1)
    ids, of_level, name = _find_asked(what)
    counts, lows, highs, _ = release.profile(ids, level=of_level, slot_level=level)
    nodes = release.hierarchy.starts[of_level] + release.regions.find(ids, of_level)
    true: list[int | None] = [None] * len(counts)
    if what.evaluation is not None:
        true = what.data.counts.cross_counts()[nodes][:, release.slot_hierarchy.at_depth(level)].sum(axis=0).tolist()
    numbers = zip(list_groups(categories, level), counts.tolist(), lows.tolist(), highs.tolist(), true, strict=True)
    profile(
        [
            Bar(name=group[0], first=group[1], last=group[2], count=count, low=low, high=high, true=truth)
            for group, count, low, high, truth in numbers
        ],
        [list_groups(categories, above) for above in range(1, level)],
        key=f"{AREAS.prefix}profile",
        chosen=shown_range(shown),
        on_slots=lambda slots: AREAS.change(view={"slots": slots}),
        said=_describe(narrowed.first, ids, of_level, name, name_shown(shown)) + ("" if shown_range(shown) else _HINT),
        unit=what.data.unit,
        every="All day" if categories.levels[-1] == "hour" else "All slots",
        by=categories.levels[level - 1],
        dark=is_dark(),
    )


def _find_asked(what: AreasDrawn) -> tuple[list[str], int, str]:
    """Return the ids of the regions that are asked for, their level, and what they are called; the whole if none is."""
    regions = what.release.regions
    asked, level = list(asked_regions(regions)), shown_level(regions)
    if not asked:
        return regions.ids_of(0).tolist(), 0, "the whole"
    name = f"{regions.levels[level - 1]} {regions.names_of(level)[asked[0]]}" if len(asked) == 1 else f"{len(asked):,} regions together"
    return regions.ids_of(level)[asked].tolist(), level, name


def _describe(what: AreasDrawn, ids: list[str], level: int, name: str, slots: str) -> str:
    """Write the released count of regions in the slots that are shown, with its interval, and the truth where it may be seen."""
    (count,), (low,), (high,) = what.release.answer([ids], level=level), *what.release.answer_interval([ids], level=level)
    where = f"{slots} in {name}" if slots else name
    said = f"{where[:1].upper()}{where[1:]}: {count:,.0f} {what.data.unit}, 95 % interval {low:,.0f} to {high:,.0f}"
    truth = what.evaluation
    return said if truth is None else f"{said}, true {truth.truth[level][what.release.regions.find(ids, level)].sum():,}"
