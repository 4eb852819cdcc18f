"""Curate on the Areas page: three cards that unlock the button, the map before and after a run, and the way to the bundle."""

from __future__ import annotations

from functools import partial
from typing import cast

import streamlit as st

from dpviz.app import drafts
from dpviz.app.advice import advise_in_app
from dpviz.app.areas.data import Declared, areas_controls
from dpviz.app.areas.level import (
    asked_regions,
    change_level,
    choose_measure,
    shown_level,
    shown_rate,
    toggle_asked,
)
from dpviz.app.areas.state import AREAS, AreasData, AreasDrawn, config, draw, drawn, truth_of
from dpviz.app.areas.tabs import ASK_TAB, key_figures, show_tabs
from dpviz.app.bundle import show_bundle
from dpviz.app.cached import regions_on_map
from dpviz.app.cards import DATA, RELEASED, Cards, show_cards
from dpviz.app.components.panes import Chosen, canvas_failed, load_deck, panes
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.fields import start_checks
from dpviz.app.first_row import NO_EXPORT, WATERMARK, curate_row, truth_switch
from dpviz.app.how_good import Expected, Levels, show_expected
from dpviz.app.ledger import find_paid
from dpviz.app.opened_config import show_uploader
from dpviz.app.paid_list import show_waiting
from dpviz.app.pay import show_account, show_button
from dpviz.app.session import is_dark, show_error, show_value, when_chosen
from dpviz.app.words import verdict_row
from dpviz.errors import BudgetError, DpvizError, SettingError
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.release.nouns import RECORDS
from dpviz.space.regions import Regions
from dpviz.view.areas_canvas import declared_scene, released_scene
from dpviz.view.areas_drawing import SHOWN_AREAS, AreasDrawing, AreasMapSettings, draw_areas
from dpviz.view.areas_map import areas_map
from dpviz.view.escape import html, markdown

MAP_HEIGHT, DECLARED_HEIGHT = 620, 380  # pixels


def show_curate(protected: str) -> None:
    """Show the page; `protected` says what a release protects."""
    drafts.restore(AREAS)
    load_deck()
    curate_row(AREAS, protected)
    declared_map, cards = st.container(), show_cards("2 In which regions?")
    account, button, view, publish = (st.container() for _ in range(4))
    with st.sidebar:
        show_uploader(AREAS)
        declared, fits = _show_controls(cards)
    data = declared.data
    AREAS.write_address()
    draws = [(config().build(), config().budget())] if fits else []
    with account:
        funding = show_account(data, draws, cards) if fits else None
    with cards.good or st.container():
        frame, unit = declared.frame() if fits else None, RECORDS if data is None else data.unit
        expected = show_expected(AREAS, cards, frame, None if frame is None else _levels_of(frame.regions), unit, funding)
    with button:
        show_button(AREAS, data, draws, cards, funding, lambda: draw(cast("AreasData", data), funding))
    what = drawn()
    with declared_map:
        _show_declared(declared, expected, unit)
    with view:
        if what is not None:
            st.subheader("Released", anchor=RELEASED)
            _show_release(what.number, data is not None and what.data.areas is data.areas)
    with publish:
        if what is not None and (paid := find_paid(what.release)) is not None:
            show_bundle(paid.paid)
        elif what is None and data is not None:
            show_waiting(data.fingerprints)
    drafts.save(AREAS)


def _show_controls(cards: Cards) -> tuple[Declared, bool]:
    """Show the controls on the left: data, mechanism and budget. Return what is declared, and whether mechanism and budget fit.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.
    """
    start_checks()
    AREAS.remember(None)
    declared = Declared()
    try:
        declared = areas_controls(cards)
    except DpvizError as error:
        show_error(str(error))
        cards.ask(DATA, f"Correct the data: {advise_in_app(str(error))}")
    AREAS.offer(declared.data)
    try:
        mechanism_controls(AREAS)
        privacy_controls(AREAS, declared.regions.regions if declared.regions else None, bar=True)
        config().build()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        cards.ask(DATA, "Correct the mechanism or its settings.")
        st.button("Back to the default settings", on_click=without_settings, args=(AREAS,))
        return declared, False
    return declared, True


def _levels_of(regions: Regions) -> Levels:
    """Return the levels of regions."""
    return Levels(names=dict(enumerate(regions.levels, start=1)), usual=regions.depth, part="region", parts_at=regions.size)


@st.fragment
def _show_declared(declared: Declared, expected: Expected | None, unit: str) -> None:
    """Show the declared regions of the level of the third card, with the expected error; nothing private is used.

    Args:
        declared: its regions are drawn.
        expected: the expected error of that level; None while it is not known: the coarsest level is shown then.
        unit: what is counted, in the plural.
    """
    if declared.regions is None:
        st.caption("The map of the regions is shown here once their file is chosen.")
        return
    on_map = regions_on_map(declared.regions.key, declared.regions) if declared.data is None else declared.data.on_map
    level, error = (1, None) if expected is None else (expected.level, expected.error)
    scene = declared_scene(on_map, level, error, unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
    if scene is None:
        st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
        return
    if canvas_failed():
        st.caption("This browser could not load the map library, which would show the regions.")
        return
    with st.container(key="declared area"):
        panes(scene.pack(), key="declared areas")
    if canvas_failed():
        st.rerun()


@st.fragment
def _show_release(number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the map of a release in Curate with its controls, the key figures and the tabs; moving a control draws no noise.

    Args:
        number: number of the draw.
        same_data: whether the data on the left are still those of the draw.
    """
    what = drawn()
    if what is None:
        return
    if not (same_data and what.config.same_draw(config())):
        stale = f"The data or settings on the left have changed since draw {what.number}. *Run and pay* again to see their effect."
        st.caption(f":orange[{stale}]")
    verdict_row(what.release)
    truth_switch(what.data, what.config.mode)
    evaluation = truth_of(what)
    with st.container(horizontal=True, vertical_alignment="center"):
        level = _choose_level(what.release.regions)
        shown = _choose_shown() if evaluation is not None else SHOWN_AREAS[0]
        choose_measure(what.data)
    st.html(NO_EXPORT if evaluation is None else NO_EXPORT + WATERMARK)
    _show_map(what, evaluation, level, shown)
    with st.container(key="figures"):
        key_figures(what, evaluation, level)
        show_tabs([what], [evaluation], level)


def _choose_level(regions: Regions) -> int:
    """Ask which level the map shows."""
    level = shown_level(regions)
    show_value("areas level", regions.levels[level - 1])
    st.segmented_control(
        "Level",
        regions.levels,
        key="areas level",
        required=True,
        format_func=markdown,
        label_visibility="collapsed",
        on_change=when_chosen("areas level", lambda name: change_level(regions.levels.index(name) + 1)),
    )
    return level


def _show_map(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int, shown: str) -> None:
    """Show one map of the release; the truth only where it may be seen."""
    if what.data.on_map.shapes(level) is None:
        st.caption("These regions have neither outlines nor coordinates: the tab *Table* has their counts.")
        return
    truth, rates = None if evaluation is None else evaluation.truth[level], what.data.denominators
    also = next(iter(rates.values()), None)
    view = AreasMapSettings(level=level, shown=shown, rate=shown_rate(what.data), also=also, unit=what.data.unit, dark=is_dark())
    if canvas_failed():
        picture = areas_map(what.release, view, truth, what.data.on_map)
        st.pydeck_chart(picture.deck, height=MAP_HEIGHT, key="areas map", alt=picture.description)
        st.html(picture.legend + (f'<div class="dpviz-note">{html(picture.note)}</div>' if picture.note else ""))
        return
    drawing = draw_areas(what.release, what.data.on_map, view, truth)
    scene = released_scene(what.data.on_map, drawing, asked_regions(what.release.regions), dark=is_dark(), height=MAP_HEIGHT)
    with st.container(key="map"):
        panes(
            scene.pack(),
            key="released areas",
            on_chosen=partial(_take_chosen, what.release.regions, drawing),
        )


def _choose_shown() -> str:
    """Ask what the map shows, once the truth may be seen."""
    shown = config().shown if config().shown in SHOWN_AREAS else SHOWN_AREAS[0]
    show_value("areas shown", shown)
    st.segmented_control(
        "Map",
        SHOWN_AREAS,
        key="areas shown",
        required=True,
        label_visibility="collapsed",
        on_change=when_chosen("areas shown", lambda value: AREAS.change(shown=value)),
    )
    return shown


def _take_chosen(regions: Regions, drawing: AreasDrawing, chosen: Chosen) -> None:
    """Ask for the region that was clicked."""
    if chosen.cell is not None and chosen.kind == "area" and chosen.cell < len(drawing.areas.size):
        toggle_asked(regions, chosen.cell)
        st.session_state["areas tab"] = ASK_TAB
