"""What Curate shares on all pages: its places from top to bottom, what a press pays for, and what stands around a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app import drafts
from dpviz.app.bundle import show_bundle
from dpviz.app.cards import RELEASED, Cards, show_cards
from dpviz.app.components.panes import load_deck, panes
from dpviz.app.first_row import curate_row, truth_switch
from dpviz.app.ledger import Draws, LoadedData, find_paid, show_missing_ledger
from dpviz.app.one_release import drawn_slot
from dpviz.app.page_changes import note_change, rerun_if_changed
from dpviz.app.page_config import PageConfig
from dpviz.app.page_state import PageState
from dpviz.app.paid_list import show_waiting
from dpviz.app.session import newest_result, widget_for
from dpviz.app.words import verdict_row
from dpviz.space.regions import Regions
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Scene
from dpviz.view.escape import markdown

ShowRelease = Callable[[Any, bool], None]
"""Shows a draw with its controls, given whether the data on the left are still those of the draw; moving a control draws no noise."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """The places of Curate, from top to bottom. They are always there, so that nothing below them moves in the browser.

    Attributes:
        declared: of the map of what is declared.
        cards: of the questions.
        account: of the account that pays.
        button: of the button that pays.
        release: of what was released last.
        publish: of the way to the bundle.
    """

    declared: DeltaGenerator
    cards: Cards
    account: DeltaGenerator
    button: DeltaGenerator
    release: DeltaGenerator
    publish: DeltaGenerator


def begin_curate(page: PageState, protected: str, where: str) -> Places:
    """Take the choices of a draft, show the first row of the page, and return its places.

    Args:
        page: state of the page.
        protected: what a release protects.
        where: title of the second card.
    """
    drafts.restore(page)
    load_deck()
    curate_row(page, protected)
    with st.container():  # always there, so that nothing below it moves in the browser
        show_missing_ledger()
    declared, cards = st.container(), show_cards(where)
    account, button, release, publish = (st.container() for _ in range(4))
    return Places(declared=declared, cards=cards, account=account, button=button, release=release, publish=publish)


def list_draws(how: PageConfig) -> Draws:
    """Return mechanism and budget of each release that one press makes."""
    return [(mechanism, how.budget_for(mechanism)) for mechanism in how.build_all()]


def end_curate(page: PageState, places: Places, data: LoadedData | None, what: Any, show: ShowRelease) -> None:
    """Show what was released last and the way to its bundle, or releases that wait for it, and keep the draft.

    Args:
        page: state of the page.
        places: from `begin_curate`.
        data: the loaded data; None while something is missing.
        what: the last draw; None before the first.
        show: shows that draw.
    """
    with places.release:
        if what is not None:
            st.subheader("Released", anchor=RELEASED)
            _show_draw(page, what.number, data is not None and what.data.counts is data.counts, show)
    with places.publish:
        if what is not None and (paid := find_paid(what.release)) is not None:
            show_bundle(paid.paid)
        elif what is None and data is not None:
            show_waiting(data.fingerprints)
    drafts.save(page)


@st.fragment
def _show_draw(page: PageState, number: int, same_data: bool, show: ShowRelease) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the last draw; moving one of its controls runs this function alone."""
    what = newest_result(drawn_slot(page))
    if what is not None:
        show(what, same_data)


def begin_release(what: Any, how: PageConfig, *, same_data: bool) -> None:
    """Show what stands above the map of a draw: whether it is that of the controls, verdicts, and the switch to the truth.

    Args:
        what: the draw.
        how: configuration of the page.
        same_data: whether the data on the left are still those of the draw.
    """
    if not (same_data and what.config.same_draw(how)):
        stale = f"The data or settings on the left have changed since draw {what.number}. *Run and pay* again to see their effect."
        st.caption(f":orange[{stale}]")
    for run in what.runs:
        verdict_row(run.release, run.title if len(what.runs) > 1 else "")
    truth_switch(what.data, what.config.mode)


def choose_level(regions: Regions, level: int, key: str, change: Callable[[int], object], place: Any = st) -> None:
    """Ask which level of regions the map of a release shows.

    Args:
        regions: of the release.
        level: that is shown, from 1 on.
        key: of the widget.
        change: shows another level.
        place: where the question stands.
    """
    shown = widget_for(key, regions.levels[level - 1], lambda name: change(regions.levels.index(name) + 1))
    place.segmented_control("Level", regions.levels, required=True, format_func=markdown, label_visibility="collapsed", **shown)


def choose_map(page: PageState, options: Sequence[str], place: Any = st) -> str:
    """Ask what the map of a release shows, and return it; the first option where the configuration has none of them."""
    shown = page.config().shown if page.config().shown in options else options[0]
    widget = widget_for(f"{page.prefix}shown", shown, lambda value: page.change(shown=value))
    place.segmented_control("Map", options, required=True, label_visibility="collapsed", **widget)
    return str(shown)


def show_map_to_drag(page: PageState, scene: Scene, key: str, take: Callable[[Bounds], None]) -> None:
    """Show the map of what is declared. A box that is dragged on it is taken, the draft is saved, and the page runs again.

    Args:
        page: state of the page.
        scene: the map; it asks for a box.
        key: of the map.
        take: declares a box, west, south, east and north in degrees.
    """
    with st.container(key="declared area"):
        panes(scene, key=key, on_box=partial(_take_dragged, page, key, take))
    rerun_if_changed(key)


def _take_dragged(page: PageState, key: str, take: Callable[[Bounds], None], box: Bounds) -> None:
    take(box)
    drafts.save(page)  # at once: a reload may come before the page has run again
    note_change(key)


def show_declared_regions(scene: Scene | None, key: str) -> None:
    """Show the map of declared regions; None if they have no place on it. `key` is that of the map."""
    if scene is None:
        st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
        return
    with st.container(key="declared area"):
        panes(scene, key=key)
