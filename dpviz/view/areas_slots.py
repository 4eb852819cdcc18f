"""Small maps of slots: where a part of the day, say, is busier or quieter than it is in the whole."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from dpviz.amounts import format_count, format_signed
from dpviz.arrays import Integers
from dpviz.release.cross_release import CrossRelease
from dpviz.space.categories import Categories
from dpviz.view.areas_drawing import NO_NUMBER, AreasMapSettings, RegionsOnMap, name_regions
from dpviz.view.canvas import Pane, choose_shades, make_legend, make_palette, to_css
from dpviz.view.colors import Scale, occupied_top
from dpviz.view.escape import deck, line
from dpviz.view.trips_layers import size_points

MOST_MAPS = 8
AREAS = "regions"
"""Name of the regions in a scene of small maps, which share them."""
_TOP = 1.0  # doublings: twice as busy as usual, or half
Slots = tuple[str, int, int]
"""The name of some slots that follow one another, and the indices of the first and the last one."""


def list_groups(categories: Categories, level: int) -> list[Slots]:
    """List the categories of a level.

    >>> list_groups(Categories.hours(), 1)[:2]
    [('night', 0, 5), ('morning', 6, 11)]
    """
    sizes = categories.leaf_count(level)
    firsts = np.cumsum(sizes) - sizes
    return list(zip(map(str, categories.names_of(level)), firsts.tolist(), (firsts + sizes - 1).tolist(), strict=True))


def choose_groups(categories: Categories) -> list[Slots]:
    """Choose what has a small map: the coarsest level with two to eight categories, or else at most eight equal ranges of slots.

    >>> [name for name, _, _ in choose_groups(Categories.months("2026-01", "2026-12"))][:3]
    ['2026-01', '2026-02 to 2026-03', '2026-04']
    """
    for level in range(1, categories.depth + 1):
        if 2 <= categories.size(level) <= MOST_MAPS:
            return list_groups(categories, level)
    number = min(MOST_MAPS, categories.slots)
    ends = [place * categories.slots // number for place in range(number + 1)]
    return [(name_range(categories, (first, end - 1)), first, end - 1) for first, end in itertools.pairwise(ends)]


def name_range(categories: Categories, slots: tuple[int, int]) -> str:
    """Name the slots from a first to a last one: as a category, if they are one, or else as "07 to 09".

    >>> hours = Categories.hours()
    >>> name_range(hours, (7, 9)), name_range(hours, (6, 11)), name_range(hours, (7, 7))
    ('07 to 09', 'morning', '07')
    """
    for level in range(1, categories.depth + 1):
        group = list_groups(categories, level)[int(categories.ancestors(level)[slots[0]])]
        if group[1:] == slots:
            return group[0]
    names = categories.names_of(categories.depth)
    return f"{names[slots[0]]} to {names[slots[1]]}"


def slots_in(categories: Categories, slots: tuple[int, int]) -> tuple[str, ...]:
    """Return the ids of the slots from a first to a last one."""
    return tuple(map(str, categories.ids_of(categories.depth)[slots[0] : slots[1] + 1]))


def make_slot_pane(
    release: CrossRelease, on_map: RegionsOnMap, view: AreasMapSettings, slots: Slots, truth: Integers, chosen: tuple[int, ...] = ()
) -> Pane:
    """Make the small map of some slots: regions are orange where these slots are busier than in the whole, and purple where quieter.

    They are pale where noise alone could explain it: where the 95 % interval of the difference from the count that the whole's share says
    contains 0 (see `CrossRelease.compare_with_whole`).

    Args:
        release: public.
        on_map: where its regions lie, with outlines or points.
        view: the level, the unit, and whether the page is dark.
        slots: which.
        truth: (k,) true counts of the level's regions in these slots. CURATOR ONLY.
        chosen: numbers of regions that are outlined.
    """
    name, first, last = slots
    of_region = release.count[release.nodes(view.level)]
    share, count, low, high = release.compare_with_whole(slots_in(release.categories, (first, last)), view.level)
    usual, known = share * of_region, of_region * share > 0
    doublings = np.log2(np.clip(np.where(known, count, 1.0) / np.where(known, usual, 1.0), 2.0**-_TOP, 2.0**_TOP))
    scale = Scale(kind="ratio", top=_TOP, title=f"{view.unit}, against the whole's share", dark=view.dark)
    pale = (low <= 0) & (high >= 0)
    color = make_palette(scale)[choose_shades(scale, doublings, pale)]
    color[~known] = NO_NUMBER
    shapes = on_map.shapes(view.level)
    sizes = np.sqrt(np.clip(of_region / occupied_top(of_region), 0.0, 1.0))
    legend = make_legend(scale, negatives=False, pale="noise alone could explain it")
    if not known.all():
        legend = replace(legend, marks=(*legend.marks, (to_css(np.array([NO_NUMBER], np.uint8)), "nothing released")))
    titles = name_regions(release.regions, view.level)
    rows = zip(titles, *(column.tolist() for column in (count, usual, low, high, pale, truth)), strict=True)
    return Pane(
        title=f"{line(name)}, {100 * share:.0f} % of all",
        about="",
        words="",
        legend=replace(legend, low="half", top="twice"),
        areas=(AREAS,),
        fills=(color,),
        dots=(size_points(sizes) if shapes is not None and shapes.are_dots else np.zeros(0),),
        chosen=chosen,
        texts=[_describe(deck(name), deck(view.unit), *row) for row in rows],
    )


def _describe(name: str, unit: str, title: str, count: float, usual: float, low: float, high: float, pale: bool, true: int) -> str:
    """Write what a small map says of a region."""
    counts = f"{name}: released {format_count(count)} {unit}, as in the whole {format_count(usual)}"
    difference = f"difference {format_signed(count - usual)}, 95 %: {format_signed(low)} to {format_signed(high)}"
    return "\n".join([title, counts, difference, *(["noise alone could explain it"] if pale else []), f"true {true:,}"])
