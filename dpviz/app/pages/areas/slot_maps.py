"""The small maps of the Areas page: one for each of a few categories, such as the parts of a day."""

from __future__ import annotations

from typing import Any

from dpviz.app.components.panes import Chosen
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.modes.teach import make_scene
from dpviz.app.pages.areas.level import asked_regions, make_settings, shown_level
from dpviz.app.pages.areas.state import AREAS, AreasDrawn
from dpviz.view.areas_slots import AREAS as SHARED
from dpviz.view.areas_slots import Slots, choose_groups, make_slot_pane, slots_in
from dpviz.view.canvas import Areas, Pane, Scene, on_land


def make_slot_scene(shown: ShownRuns, caption: str, stamp: str) -> tuple[Scene, list[Slots]]:
    """Return the maps of the first run, and the slots that each of them shows.

    Args:
        shown: runs by category, in all slots, of regions that lie on a map.
        caption: a sentence under a saved picture.
        stamp: what must be said of the numbers.
    """
    what: AreasDrawn = shown.first
    release: Any = what.release
    regions, on_map, groups = release.regions, what.data.on_map, choose_groups(release.categories)
    level = shown_level(regions)
    view, chosen = make_settings(what.data, level), asked_regions(regions)

    def make_pane(slots: Slots) -> Pane:
        true = what.data.counts.in_slots(slots_in(release.categories, slots[1:])).level_counts()[level]
        return make_slot_pane(release, on_map, view, slots, true, chosen)

    shapes: Any = on_map.shapes(level)
    scene = make_scene(
        [make_pane(slots) for slots in groups],
        ". Orange: busier than the whole's usual share; purple: quieter.",
        bounds=on_map.bounds,
        areas={SHARED: Areas(shapes=shapes, texts=[""] * regions.size(level))},
        caption=caption,
        stamp=stamp,
    )
    return on_land(scene), groups


def take_slots(slots: Slots, chosen: Chosen) -> bool:
    """Ask for the region that was clicked, in the slots of its map; return whether it was one."""
    if chosen.cell is None or chosen.kind != "area":
        return False
    AREAS.change(view={"asked": (chosen.cell,), "slots": slots[1:]})
    return True
