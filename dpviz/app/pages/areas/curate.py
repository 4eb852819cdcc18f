"""Curate on the Areas page: three cards that unlock the button, the map before and after a run, and the way to the bundle."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from dpviz.app.cards.expected_errors import Expected, Levels
from dpviz.app.components.panes import Chosen, panes
from dpviz.app.modes.curate import CurateParts, begin_release, choose_level, choose_map, show_declared_regions, show_map_to_drag
from dpviz.app.modes.header import NO_EXPORT, WATERMARK
from dpviz.app.pages.areas.data import Declared, areas_controls
from dpviz.app.pages.areas.level import asked_regions, change_level, choose_measure, shown_level, shown_rate, toggle_asked
from dpviz.app.pages.areas.regions import asks_for_box, boxes_in_degrees, take_dragged_box
from dpviz.app.pages.areas.state import AREAS, RELEASES, AreasDrawn
from dpviz.app.pages.areas.tabs import ASK_TAB, key_figures, show_tabs
from dpviz.app.session.cached import regions_on_map
from dpviz.app.session.widgets import is_dark
from dpviz.data.areas import AreaCounts
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.families import AREA_FAMILY
from dpviz.space.regions import Regions
from dpviz.view.areas_canvas import declared_scene, released_scene
from dpviz.view.areas_drawing import SHOWN_AREAS, AreasDrawing, AreasMapSettings, draw_areas
from dpviz.view.canvas import Scene
from dpviz.view.declared_canvas import declared_scene as empty_scene

MAP_HEIGHT, DECLARED_HEIGHT = 620, 380  # pixels


def _levels_of(areas: AreaCounts) -> Levels:
    """Return the levels of regions."""
    regions = areas.regions
    return Levels(names=dict(enumerate(regions.levels, start=1)), usual=regions.depth, part="region", parts_at=regions.size)


@st.fragment
def _show_declared(declared: Declared, expected: Expected | None, unit: str) -> None:
    """Show the declared regions, with the expected error at the level of the third card; the coarsest level while it is not known."""
    can_drag = AREAS.draft.source != "sample" and asks_for_box()
    if declared.regions is None:
        if can_drag:
            world = empty_scene(None, None, boxes_in_degrees(), unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
            _show_map_to_drag(replace(world, nothing="Drag a box to declare where the regions are."))
        else:
            st.caption("The map of the regions is shown here once their file is chosen.")
        return
    on_map = regions_on_map(declared.regions.key, declared.regions) if declared.data is None else declared.data.on_map
    level, error = (1, None) if expected is None else (expected.level, expected.error)
    scene = declared_scene(on_map, level, error, unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
    if can_drag and scene is not None:
        _show_map_to_drag(scene)
    else:
        show_declared_regions(scene, "declared areas")


def _show_map_to_drag(scene: Scene) -> None:
    """Show a map on which a box declares where the regions are."""
    scene = replace(scene, asks=True, what_box="Drag a box on the map: the regions are made in it. Shift and drag does the same")
    show_map_to_drag(AREAS, scene, "declared areas", take_dragged_box)


def _show_release(what: AreasDrawn, same_data: bool) -> None:
    """Show the map of a release with its controls, the key figures and the tabs, see `ShowRelease`."""
    begin_release(what, AREAS.draft, same_data=same_data)
    (evaluation,), level = RELEASES.find_truths(what), shown_level(what.release.regions)
    with st.container(horizontal=True, vertical_alignment="center"):
        choose_level(what.release.regions, level, "areas level", change_level)
        shown = choose_map(AREAS, SHOWN_AREAS) if evaluation is not None else SHOWN_AREAS[0]
        choose_measure(what.data)
    st.html(NO_EXPORT if evaluation is None else NO_EXPORT + WATERMARK)
    _show_map(what, evaluation, level, shown)
    with st.container(key="figures"):
        key_figures(what, evaluation, level)
        show_tabs([what], [evaluation], level)


def _show_map(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int, shown: str) -> None:
    """Show one map of the release; the truth only where it may be seen."""
    if what.data.on_map.shapes(level) is None:
        st.caption("These regions have neither outlines nor coordinates: the tab *Table* has their counts.")
        return
    truth, rates = None if evaluation is None else evaluation.truth[level], what.data.denominators
    also = next(iter(rates.values()), None)
    view = AreasMapSettings(level=level, shown=shown, rate=shown_rate(what.data), also=also, unit=what.data.unit, dark=is_dark())
    drawing = draw_areas(what.release, what.data.on_map, view, truth)
    scene = released_scene(what.data.on_map, drawing, asked_regions(what.release.regions), dark=is_dark(), height=MAP_HEIGHT)
    with st.container(key="map"):
        panes(
            scene,
            key="released areas",
            on_chosen=partial(_take_chosen, what.release.regions, drawing),
        )


def _take_chosen(regions: Regions, drawing: AreasDrawing, chosen: Chosen) -> None:
    """Ask for the region that was clicked."""
    if chosen.cell is not None and chosen.kind == "area" and chosen.cell < len(drawing.areas.size):
        toggle_asked(regions, chosen.cell)
        st.session_state["areas tab"] = ASK_TAB


PARTS = CurateParts(
    where="2 In which regions?",
    controls=areas_controls,
    nothing=Declared(),
    frame_of=lambda declared: None if declared.regions is None else declared.regions.regions,
    counts_of=Declared.frame,
    levels_of=_levels_of,
    unit_of=lambda data: AREA_FAMILY.counted if data is None else data.unit,
    releases=RELEASES,
    show_declared=_show_declared,
    show_release=_show_release,
)
