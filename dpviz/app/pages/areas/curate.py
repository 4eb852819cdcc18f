"""Curate on the Areas page: the levels of its bargain, and the map before and after a payment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import streamlit as st

from dpviz.app.cards.expected_errors import Coarser, Expected, Levels
from dpviz.app.components.panes import Chosen, panes
from dpviz.app.modes.curate import choose_level, choose_map, show_declared_regions, show_map_to_drag
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.pages.areas.data import Declared
from dpviz.app.pages.areas.level import asked_regions, change_level, choose_measure, make_settings, shown_level
from dpviz.app.pages.areas.regions import asks_for_box, boxes_in_degrees, make_coarser_cells, take_dragged_box
from dpviz.app.pages.areas.slots import counts_slots, name_shown, of_shown_slots, show_profile
from dpviz.app.pages.areas.state import AREAS, AreasDrawn
from dpviz.app.pages.areas.tabs import NO_PLACES, show_figures, take_chosen
from dpviz.app.session.cached import regions_on_map
from dpviz.app.session.widgets import is_dark
from dpviz.app.state.view import Pane
from dpviz.data.areas import AreaCounts
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.mechanisms.base import AnyLevel
from dpviz.publishing.simulated_errors import USEFUL, count_readable
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.space.summed import Summed
from dpviz.view.areas_canvas import declared_scene, released_scene
from dpviz.view.areas_drawing import SHOWN_AREAS, AreasMapSettings, draw_areas
from dpviz.view.canvas import Scene
from dpviz.view.declared_canvas import declared_scene as empty_scene

MAP_HEIGHT, DECLARED_HEIGHT = 620, 380  # pixels


def list_levels(areas: AreaCounts) -> Levels:
    """Return the levels of regions, and where the mechanism counts by category also those of categories: they are what is paid for."""
    regions, categories = areas.regions, areas.categories
    levels = Levels(names=dict(enumerate(regions.levels, start=1)), usual=regions.depth, part="region", parts_at=regions.size)
    if categories is None or isinstance(categories, Summed) or not AREAS.mechanisms[str(AREAS.draft.run.mechanism)].by_category:
        return levels
    return replace(levels, slots=dict(enumerate(categories.levels, start=1)), slots_at=categories.size)


def coarser_cells(declared: Declared) -> Callable[[], Iterator[Coarser]] | None:
    """Return larger hexagons or squares that could be declared; None for regions of a file."""
    cells = declared.regions
    if cells is None or cells.part is None:
        return None

    def make() -> Iterator[Coarser]:
        for made, take in make_coarser_cells(cells):
            frame = replace(declared, data=None, regions=made).frame()
            if frame is not None:
                yield Coarser(frame=frame, levels=list_levels(frame), take=take)

    return make


@st.fragment
def show_declared(declared: Declared, expected: Expected | None, unit: str) -> None:
    """Show the declared regions, with the expected error at the level that is looked at; the coarsest level while it is not known."""
    can_drag = AREAS.draft.source != "sample" and asks_for_box()
    if declared.regions is None:
        if can_drag:
            world = empty_scene(None, None, boxes_in_degrees(), unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
            _show_map_to_drag(replace(world, nothing="Drag a box to declare where the regions are."))
        else:
            st.caption("The map of the regions is shown here once their file is chosen.")
        return
    on_map = regions_on_map(declared.regions.key, declared.regions) if declared.data is None else declared.data.on_map
    level, error = (1, None) if expected is None else (expected.place, expected.error)
    scene = declared_scene(on_map, level, error, unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
    if can_drag and scene is not None:
        _show_map_to_drag(scene)
    else:
        show_declared_regions(scene, "declared areas")


def _show_map_to_drag(scene: Scene) -> None:
    """Show a map on which a box declares where the regions are."""
    scene = replace(scene, asks=True, what_box="Drag a box on the map: the regions are made in it. Shift and drag does the same")
    show_map_to_drag(AREAS, scene, "declared areas", take_dragged_box)


def count_useful(release: AreaRelease, level: AnyLevel) -> int:
    """Count the regions of a level whose error is at most 40 % of their released count, or of a pair those with a readable profile."""
    if isinstance(level, tuple) and isinstance(release, CrossRelease):
        return count_readable(release.stddev(level), release.of_pair(release.cross_count, level))
    return int((release.stddev(level) <= USEFUL * release.count[release.nodes(level)]).sum())


def show_release(what: AreasDrawn, truths: Sequence[AreaEvaluation | None]) -> None:
    """Show the map of a release with its controls, of counts by category the strip of slots, the key figures and the tabs."""
    whole = ShownRuns(results={0: replace(what, evaluation=truths[0])}, panes=(Pane(),), fresh=True)
    narrowed = of_shown_slots(whole)
    what, part, level = narrowed.first, name_shown(whole), shown_level(what.release.regions)
    evaluation = what.evaluation
    with st.container(horizontal=True, vertical_alignment="center"):
        choose_level(what.release.regions, level, "areas level", change_level)
        shown = choose_map(AREAS, SHOWN_AREAS) if evaluation is not None else SHOWN_AREAS[0]
        choose_measure(what.data)
    _show_map(what, replace(make_settings(what.data, level), shown=shown, part=part))
    if counts_slots(whole):
        show_profile(whole, narrowed)
    with st.container(key="figures"):
        show_figures([what], [evaluation], level)


def _show_map(what: AreasDrawn, settings: AreasMapSettings) -> None:
    """Show one map of the release; the truth only where it may be seen."""
    level, evaluation = settings.level, what.evaluation
    if what.data.on_map.shapes(level) is None:
        st.caption(NO_PLACES)
        return
    truth = None if evaluation is None else evaluation.truth[level]
    drawing = draw_areas(what.release, what.data.on_map, settings, truth)
    scene = released_scene(what.data.on_map, drawing, asked_regions(what.release.regions), dark=is_dark(), height=MAP_HEIGHT)

    def take(chosen: Chosen) -> None:
        take_chosen(what.release.regions, drawing, chosen)

    with st.container(key="map"):
        panes(scene, key="released areas", on_chosen=take)
