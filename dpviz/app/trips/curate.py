"""Curate on the Trips page: three cards that unlock the button, the map before and after a run, and the way to the bundle."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from dpviz.app import cached, drafts
from dpviz.app.advice import advise_in_app
from dpviz.app.bundle import show_bundle
from dpviz.app.cards import DATA, RELEASED, Cards, show_cards
from dpviz.app.components.panes import canvas_failed, load_deck, panes
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.fields import start_checks
from dpviz.app.first_row import NO_EXPORT, WATERMARK, curate_row, truth_switch
from dpviz.app.how_good import Expected, Levels, show_expected
from dpviz.app.ledger import find_paid
from dpviz.app.opened_config import show_uploader
from dpviz.app.page_state import CURATE
from dpviz.app.paid_list import show_waiting
from dpviz.app.pay import show_account, show_button
from dpviz.app.plain_map import show_picture
from dpviz.app.session import (
    carry_out,
    is_dark,
    show_error,
    show_value,
    when_chosen,
)
from dpviz.app.trips.data import Declared, trips_controls
from dpviz.app.trips.filters import change_level, choose_filters, chosen_region, shown_level, toggle_region
from dpviz.app.trips.state import ALONE, TRIPS, TripsData, TripsDrawn, draw, drawn, find_truths
from dpviz.app.trips.tabs import fill_in_pair, key_figures, show_tabs
from dpviz.app.words import show_chart, verdict_row
from dpviz.data.flows import Flows
from dpviz.errors import BudgetError, DpvizError, SettingError
from dpviz.evaluation.flow_metrics import FlowEvaluation
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.release.nouns import TRIPS as TRIPS_NOUN
from dpviz.space.regions import Regions
from dpviz.view.declared_regions import regions_scene
from dpviz.view.escape import markdown
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import SHOWN_TRIPS, TripsMapSettings, has_geometry
from dpviz.view.trips_map import trips_map

MAP_HEIGHT, MAP_WIDTH = 620, 780  # pixels
DECLARED_HEIGHT = 380  # pixels


def show_curate(protected: str) -> None:
    """Show the page; `protected` says what a release protects."""
    drafts.restore(TRIPS)
    load_deck()
    curate_row(TRIPS, protected)
    declared_map, cards = st.container(), show_cards("2 Between which regions?")
    account, button, view, publish = (st.container() for _ in range(4))
    with st.sidebar:
        show_uploader(TRIPS)
        declared, fits = _show_controls(cards)
    data = declared.data
    TRIPS.write_address()
    how = TRIPS.config()
    draws = [(mechanism, how.budget_for(mechanism)) for mechanism in how.build_all()] if fits else []
    with account:
        funding = show_account(data, draws, cards) if fits else None
    with cards.good or st.container():
        frame, unit = declared.frame() if fits else None, TRIPS_NOUN if data is None else data.unit
        expected = show_expected(TRIPS, cards, frame, None if frame is None else _levels_of(frame), unit, funding)
        if frame is not None and expected is None:
            _offer_add_remove(frame)
    with button:
        show_button(TRIPS, data, draws, cards, funding, lambda: draw(cast("TripsData", data), funding))
    what = drawn()
    with declared_map:
        _show_declared(declared, expected, unit)
    with view:
        if what is not None:
            st.subheader("Released", anchor=RELEASED)
            _show_release(what.number, data is not None and what.data.flows is data.flows)
    with publish:
        for release in () if what is None else what.releases[-1:]:
            if (paid := find_paid(release)) is not None:
                show_bundle(paid.paid)
        if what is None and data is not None:
            show_waiting(data.fingerprints)
    drafts.save(TRIPS)


def _show_controls(cards: Cards) -> tuple[Declared, bool]:
    """Show the controls on the left: data, mechanism and budget. Return what is declared, and whether mechanism and budget fit.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.
    """
    start_checks()
    TRIPS.remember(None)
    declared = Declared()
    try:
        declared = trips_controls(cards)
    except DpvizError as error:
        show_error(str(error))
        cards.ask(DATA, f"Correct the data: {advise_in_app(str(error))}")
    TRIPS.offer(declared.data)
    try:
        mechanism_controls(TRIPS)
        _choose_second()
        privacy_controls(TRIPS, declared.regions[0].regions if declared.regions else None, bar=True)
        TRIPS.config().build_all()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        cards.ask(DATA, "Correct the mechanism or its settings.")
        st.button("Back to the default settings", on_click=without_settings, args=(TRIPS,))
        return declared, False
    return declared, True


def _levels_of(flows: Flows) -> Levels:
    """Return the levels of pairs of regions."""
    regions, ends = flows.regions, flows.ends
    names = {level: f"{name} to {ends.levels[level - 1]}" for level, name in enumerate(regions.levels, start=1)}
    return Levels(names=names, usual=min(names), part="pair", parts_at=lambda level: regions.size(level) * ends.size(level))


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
    frames = declared.regions
    digest = tuple(frame.key for frame in frames)
    bounds = cached.declared_bounds(digest, frames)
    level = cached.declared_level(digest, frames, 1 if expected is None else expected.level)
    if bounds is None or level is None:
        st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
        return
    if canvas_failed():
        st.caption("This browser could not load the map library, which would show the regions.")
        return
    error = None if expected is None else expected.error
    scene = regions_scene(level, bounds, error, unit=unit, dark=is_dark(), height=DECLARED_HEIGHT)
    with st.container(key="declared area"):
        panes(scene.pack(), key="declared regions")
    if canvas_failed():
        st.rerun()


def _offer_add_remove(frame: Flows) -> None:
    """Offer neighbours of whom one has a person more, where replacing a person's trips by as many others promises too much.

    It is a press of its own: what is protected is never chosen without the curator.
    """
    how = TRIPS.config()
    if frame.contributions == 1 or frame.exactly or how.build().neighbours != BOUNDED:
        return
    settings = {**how.settings, "neighbours": ADD_REMOVE}
    label = "Protect that a person is added or removed"
    st.button(label, key="take add_remove", width="stretch", on_click=carry_out(lambda: TRIPS.change(settings=settings)))


def _choose_second() -> None:
    """Ask for a second mechanism, which draws from the same data with the same budget."""
    how = TRIPS.config()
    show_value("beside", how.beside)
    st.selectbox(
        "Compare with",
        [ALONE, *TRIPS.mechanisms],
        key="beside",
        format_func=lambda key: "Nothing" if key == ALONE else str(TRIPS.mechanisms[key].title),
        help="A second mechanism with its default settings and the same budget. Each draw then spends the budget twice.",
        on_change=when_chosen("beside", lambda value: TRIPS.change(beside=value)),
    )


@st.fragment
def _show_release(number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the maps with their controls, and the tabs; moving a control draws no noise."""
    what = drawn()
    if what is None:
        return
    if what.config.mode == CURATE and not (same_data and what.config.same_draw(TRIPS.config())):
        stale = f"The data or settings on the left have changed since draw {what.number}. *Run and pay* again to see their effect."
        st.caption(f":orange[{stale}]")
    for title, release in zip(what.titles, what.releases, strict=True):
        verdict_row(release, title if len(what.releases) > 1 else "")
    truth_switch(what.data, what.config.mode)
    truths = find_truths(what)
    view = _choose_view(what, shows_truth=bool(truths))
    if what.config.mode == CURATE:
        st.html(NO_EXPORT + WATERMARK if truths else NO_EXPORT)
    with st.container(key="map"):
        for index, column in enumerate(st.columns(len(what.releases))):
            with column:
                _show_map(what, index, view, truths)
    with st.container(key="figures"):
        for index in range(len(what.releases)):
            key_figures(what, index, truths[index] if truths else None, view.level)
        show_tabs(what, truths, view)


def _choose_view(what: TripsDrawn, *, shows_truth: bool) -> TripsMapSettings:
    """Ask what the maps show (one of `SHOWN_TRIPS`, the level, a region, the number of arcs), and return the settings of the maps."""
    how, regions = TRIPS.config(), what.releases[0].tree.origins
    level = shown_level(regions)
    options = SHOWN_TRIPS if shows_truth and has_geometry(regions, level) else SHOWN_TRIPS[:1]
    shown = how.shown if how.shown in options else SHOWN_TRIPS[0]
    left, middle = st.columns([3, 2], vertical_alignment="center")
    show_value("trips shown", shown)
    left.segmented_control(
        "Map",
        options,
        key="trips shown",
        required=True,
        label_visibility="collapsed",
        on_change=when_chosen("trips shown", lambda value: TRIPS.change(shown=value)),
    )
    show_value("level", regions.levels[level - 1])
    middle.segmented_control(
        "Level",
        regions.levels,
        key="level",
        required=True,
        format_func=markdown,
        label_visibility="collapsed",
        on_change=when_chosen("level", lambda name: change_level(regions.levels.index(name) + 1)),
    )
    top, least, pairs = choose_filters(regions, level)
    width = MAP_WIDTH // len(what.releases)
    return TripsMapSettings(
        level=level,
        shown=shown,
        top=top,
        least=least,
        pairs=pairs,
        chosen=chosen_region(regions, level),
        unit=what.data.unit,
        dark=is_dark(),
        width=width,
    )


def _show_map(what: TripsDrawn, index: int, view: TripsMapSettings, truths: tuple[FlowEvaluation, ...]) -> None:
    """Show one mechanism's map, or a matrix if the regions have no geometry."""
    release, truth = what.releases[index], truths[index].true_sums(view.level, view.level) if truths else None
    if len(what.releases) > 1:
        st.markdown(f"**{what.titles[index]}**")
    if not has_geometry(release.tree.origins, view.level):
        show_chart(matrix_chart(release, view.level, view.unit))
        st.caption(f"These regions have neither outlines nor coordinates: a matrix stands for the map. {MATRIX_CAPTION}")
        return
    picture = trips_map(release, view, truth)
    key = f"trips map {index}"
    show_picture(
        picture,
        key,
        MAP_HEIGHT,
        on_select=lambda: _take_click(key, release.tree.origins, view.level),
        selection_mode="single-object",
    )


def _take_click(key: str, regions: Regions, level: int) -> None:
    """Handle a click on the map: choose a region, or let it go if it was chosen; put the ends of an arc into the tab of pairs."""
    state: Any = st.session_state.get(key)
    objects = ((state or {}).get("selection") or {}).get("objects", {})
    if arcs := objects.get("arcs"):
        fill_in_pair(regions, level, arcs[0].get("o"), arcs[0].get("z"))
        return
    clicked = objects.get("regions")
    region = clicked[0].get("i") if clicked else None
    toggle_region(region if isinstance(region, int) else None)
