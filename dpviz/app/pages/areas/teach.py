"""The maps of the Areas page: two choropleths in one canvas that follow the controls, with seeded runs on public data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.words import show_table
from dpviz.app.modes.contrasts import show_contrasts
from dpviz.app.modes.family_page import TeachParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.modes.tabs import MOST_ROWS
from dpviz.app.modes.teach import describe_run, draw_maps, keep_error_tops, make_scene
from dpviz.app.pages.areas.level import asked_regions, choose_measure, make_settings, shown_level, shown_measure
from dpviz.app.pages.areas.levels import make_rail
from dpviz.app.pages.areas.slot_maps import make_slot_scene, take_slots
from dpviz.app.pages.areas.slots import counts_slots, name_shown, of_shown_slots, show_profile, shown_slots
from dpviz.app.pages.areas.state import AREAS, AreasDrawn
from dpviz.app.pages.areas.tabs import describe_sum, offer_no_regions, show_figures, show_sums, take_chosen
from dpviz.app.state.values import MEASURES, ORDINALS
from dpviz.app.state.view import Pane as ViewedPane
from dpviz.mechanisms import RegionTree
from dpviz.publishing.dry_run import WantedError
from dpviz.release.verdict import verdict
from dpviz.view.areas_canvas import areas_of, make_pane
from dpviz.view.areas_drawing import (
    SHOWN_AREAS,
    AreasDrawing,
    AreasMapSettings,
    choose_tops,
    draw_areas,
)
from dpviz.view.areas_outline import list_regions
from dpviz.view.canvas import Pane, Scene, on_land
from dpviz.view.escape import markdown


def describe_idle(shown: ShownRuns) -> tuple[str, Callable[[], object] | None]:
    """Write what the run is and the sum of the regions that are asked for, with the button that asks for none."""
    asked = asked_regions(shown.first.data.counts.regions)
    said = "" if counts_slots(shown) else _describe_asked(shown.first)  # of slots, the strip says it
    return f"{_stamp(shown.first)} {said}", offer_no_regions if asked else None


def make_teach(shown: ShownRuns) -> TeachParts:
    """Return what the page shows of its runs."""
    whole, slots, part = shown, shown_slots(shown), name_shown(shown)
    shown, has_slots = of_shown_slots(whole), counts_slots(whole)
    by_slot = has_slots and AREAS.view.by_slot
    first: AreasDrawn = shown.first
    regions = first.data.counts.regions
    level = shown_level(regions)
    rail = make_rail(shown, level, slots, part)
    scene, drawings = None, list[Any]()
    if first.data.on_map.shapes(level) is not None:
        scene, drawings = make_slot_scene(whole, rail.sentence, _stamp(first)) if by_slot else _make_scene(shown, rail.sentence, part)

    def wanted_of(what: AreasDrawn) -> tuple[WantedError, str]:
        row = what.compared.by_level.to_dict("records")[level]
        return WantedError(error=float(row["rmse"]), level=level), f"regions of level {row['name']}"

    return TeachParts(
        kinds=() if by_slot else SHOWN_AREAS,
        part=part,
        has_slots=has_slots,
        strip=partial(show_profile, whole, shown) if has_slots else None,
        choose=lambda: choose_measure(first.data),
        scene=scene,
        drawings=drawings,
        take_chosen=take_slots if by_slot else partial(take_chosen, regions),
        without_map=partial(_show_outline, shown, level),
        contrasts=lambda: show_contrasts(AREAS, shown, RegionTree(), wanted_of),
        ask=lambda: show_sums(shown.different, [what.compared for what in shown.different], level),
        lead=replace(verdict(first.release), counted=first.data.unit).lacks,
        rail=rail,
        figures=lambda: show_figures(shown.different, [what.compared for what in shown.different], level),
    )


def _stamp(what: AreasDrawn) -> str:
    status = "seeded: a simulation, not private" if what.release.receipt.private else "NOT PRIVATE"
    return f"Run {what.number}, {status}."


def _describe_asked(what: AreasDrawn) -> str:
    """Write the sum of the regions that are asked for, or how to ask on a map."""
    regions = what.data.counts.regions
    if asked := asked_regions(regions):
        return describe_sum(what, what.compared, shown_level(regions), list(asked))
    return "" if what.data.on_map.shapes(shown_level(regions)) is None else "Click regions on a map to add them up."


def _show_outline(shown: ShownRuns, level: int) -> None:
    """Show the regions of each run as an indented list, where no map can be drawn."""
    for what, column in zip(shown.different, st.columns(len(shown.different)), strict=True):
        with column:
            st.markdown(f"**{markdown(describe_run(what))}**")
            table = list_regions(what.release, what.compared.truth, level)
            show_table(table.head(MOST_ROWS))
    note = f" The first {MOST_ROWS:,} of {len(table):,} rows." if len(table) > MOST_ROWS else ""
    st.caption(f"These regions have neither outlines nor coordinates: a list stands for the map.{note}")


def _choose_view(what: AreasDrawn, part: str) -> AreasMapSettings:
    """Choose the settings that all maps share; scales are those of the public counts, those of errors are kept."""
    view = replace(make_settings(what.data, shown_level(what.data.counts.regions)), raw=AREAS.view.raw, part=part)
    tops = choose_tops(what.release, view, what.compared.truth[view.level])
    name = f"error {view.level} {MEASURES.index(shown_measure(what.data))}"
    return replace(view, tops=replace(tops, error=keep_error_tops(AREAS, {name: tops.error})[name]))


def _make_pane(drawing: AreasDrawing, what: AreasDrawn, shown: ViewedPane) -> Pane:
    return make_pane(drawing, areas=ORDINALS[shown.run], about=describe_run(what), chosen=asked_regions(what.data.counts.regions))


def _make_scene(shown: ShownRuns, caption: str, part: str) -> tuple[Scene, list[AreasDrawing]]:
    """Return the maps, with all regions in view, and what is drawn on each."""
    first, view = shown.first, _choose_view(shown.first, part)

    def draw(what: AreasDrawn, pane: ViewedPane) -> AreasDrawing:
        return draw_areas(what.release, what.data.on_map, replace(view, shown=pane.shows), what.compared.truth[view.level])

    maps = draw_maps(shown, draw, _make_pane)
    scene = make_scene(
        [each.pane for each in maps],
        f". {maps[AREAS.view.main].drawing.description}",
        bounds=first.data.on_map.bounds,
        areas={each.run: areas_of(each.drawing) for each in maps},
        caption=caption,
        stamp=_stamp(first),
    )
    return on_land(scene), [each.drawing for each in maps]
