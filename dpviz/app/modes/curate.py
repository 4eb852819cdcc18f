"""What Curate shares on all pages: its places from top to bottom, what a press pays for, and what stands around a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import RELEASED, Cards, show_cards
from dpviz.app.cards.expected_errors import Expected, Levels, show_expected
from dpviz.app.components.panes import load_deck, panes
from dpviz.app.components.words import verdict_row
from dpviz.app.modes.header import curate_row, truth_switch
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.modes.sidebar import curate_controls
from dpviz.app.payment.paid_list import show_waiting
from dpviz.app.payment.pay import show_account, show_button
from dpviz.app.payment.release_files import show_bundle
from dpviz.app.session import drafts
from dpviz.app.session.ledger import find_paid, show_missing_ledger
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import Releases, drawn_slot
from dpviz.app.session.widgets import newest_result, widget_for
from dpviz.app.state.draft import Draft
from dpviz.publishing.private_data import PrivateData
from dpviz.space.regions import Regions
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Scene
from dpviz.view.escape import markdown

ShowRelease = Callable[[Any, bool], None]
"""Shows a draw with its controls, given whether the data on the left are still those of the draw; moving a control draws no noise."""


def _nothing(*_: Any) -> None:
    """Show nothing more."""


@dataclass(frozen=True, kw_only=True)
class CurateParts:
    """What differs between the pages in Curate.

    Attributes:
        where: title of the second card.
        controls: shows the controls of the data, and returns what is declared, with `data`, None while something is missing.
        nothing: what is declared where the data are refused.
        frame_of: returns the public frame of what is declared; None while it is missing.
        counts_of: returns frame, unit and bound of what is declared without a single record; None while one of them is missing.
        levels_of: returns the levels of such counts.
        unit_of: returns what is counted, in the plural, from the data, None while they are missing.
        releases: makes the releases of the page.
        show_declared: shows the map of what is declared, with what is expected, None while that is not known, and the unit.
        show_release: shows the last draw.
        below_mechanism: asks what belongs between mechanism and budget.
        below_errors: shows what belongs under the expected errors, given the counts of `counts_of` and what is expected.
    """

    where: str
    controls: Callable[[Cards], Any]
    nothing: Any
    frame_of: Callable[[Any], Any]
    counts_of: Callable[[Any], PrivateData | None]
    levels_of: Callable[[Any], Levels]
    unit_of: Callable[[Any], str]
    releases: Releases[Any, Any, Any]
    show_declared: Callable[[Any, Expected | None, str], object]
    show_release: ShowRelease
    below_mechanism: Callable[[], None] = _nothing
    below_errors: Callable[[Any, Expected | None], None] = _nothing


def show_curate(parts: CurateParts, protected: str) -> None:
    """Take the choices of a draft, and show the page: its places are always there, so that nothing below them moves in the browser.

    Args:
        parts: what differs between the pages.
        protected: what a release protects.
    """
    page = parts.releases.page
    drafts.restore(page)
    load_deck()
    curate_row(page, protected)
    with st.container():
        show_missing_ledger()
    declared_map, cards = st.container(), show_cards(parts.where)
    account, button, released, publish = (st.container() for _ in range(4))
    declared, fits = curate_controls(page, cards, parts.controls, parts.nothing, parts.frame_of, below_mechanism=parts.below_mechanism)
    data, how = declared.data, page.draft
    draws = [(mechanism, how.budget_for(mechanism)) for mechanism in how.build_all()] if fits else []  # of one press
    with account:
        funding = show_account(data, draws, cards) if fits else None
    with cards.good or st.container():
        counts, unit = parts.counts_of(declared) if fits else None, parts.unit_of(data)
        expected = show_expected(page, cards, counts, None if counts is None else parts.levels_of(counts), unit, funding)
        parts.below_errors(counts, expected)
    with button:
        show_button(page, data, draws, cards, funding, lambda: parts.releases.pay(data, funding))
    with declared_map:
        parts.show_declared(declared, expected, unit)
    what = parts.releases.newest()
    with released:
        if what is not None:
            st.subheader("Released", anchor=RELEASED)
            _show_draw(page, what.number, data is not None and what.data.counts is data.counts, parts.show_release)
    with publish:  # the way to the bundle, or releases that wait for it
        if what is not None and (paid := find_paid(what.release)) is not None:
            show_bundle(paid.paid)
        elif what is None and data is not None:
            show_waiting(data.fingerprints)
    drafts.save(page)


@st.fragment
def _show_draw(page: FamilyState, number: int, same_data: bool, show: ShowRelease) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the last draw; moving one of its controls runs this function alone."""
    what = newest_result(drawn_slot(page))
    if what is not None:
        show(what, same_data)


def begin_release(what: Any, how: Draft, *, same_data: bool) -> None:
    """Show what stands above the map of a draw: whether it is that of the controls, verdicts, and the switch to the truth.

    Args:
        what: the draw.
        how: what is chosen on the page.
        same_data: whether the data on the left are still those of the draw.
    """
    if not (same_data and what.draft.same_draw(how)):
        stale = f"The data or settings on the left have changed since draw {what.number}. *Run and pay* again to see their effect."
        st.caption(f":orange[{stale}]")
    for run in what.runs:
        verdict_row(run.release, run.title if len(what.runs) > 1 else "")
    truth_switch(what.data, what.draft.mode)


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


def choose_map(page: FamilyState, options: Sequence[str], place: Any = st) -> str:
    """Ask what the map of a release shows, and return it; the first option where the configuration has none of them."""
    shown = page.view.shown if page.view.shown in options else options[0]
    widget = widget_for(f"{page.prefix}shown", shown, lambda value: page.change(view={"panes": page.view.with_shown(value)}))
    place.segmented_control("Map", options, required=True, label_visibility="collapsed", **widget)
    return str(shown)


def show_map_to_drag(page: FamilyState, scene: Scene, key: str, take: Callable[[Bounds], None]) -> None:
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


def _take_dragged(page: FamilyState, key: str, take: Callable[[Bounds], None], box: Bounds) -> None:
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
