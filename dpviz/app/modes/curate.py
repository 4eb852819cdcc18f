"""What Curate shares on all pages: its drawers, the map, the bar with what a press pays for, and what stands around a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.cards.cards import FILES, GOOD, METHOD, WHERE, WHOM, Cards, show_cards
from dpviz.app.cards.expected_errors import Expected, show_expected
from dpviz.app.components.drawers import show_drawer_icons
from dpviz.app.components.panes import load_deck, panes
from dpviz.app.components.scroll import scroll_to
from dpviz.app.components.words import verdict_row
from dpviz.app.modes.controls import curate_controls
from dpviz.app.modes.family_page import FamilyPage
from dpviz.app.modes.header import NO_EXPORT, WATERMARK, first_row, forget_button, truth_switch
from dpviz.app.modes.layout import lay_out
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.payment.paid_list import show_releases
from dpviz.app.payment.pay import show_account, show_bar, show_files
from dpviz.app.session import drafts
from dpviz.app.session.ledger import show_missing_ledger
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import widget_for
from dpviz.app.state.values import CURATE
from dpviz.space.regions import Regions
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Scene
from dpviz.view.escape import markdown

RELEASED = "released"  # anchor of the map of a release
_ICONS = {FILES: "folder_open", WHOM: "group", WHERE: "map", GOOD: "speed", METHOD: "tune"}
_CLOSED = "none"


def show_curate(page: FamilyPage, protected: str) -> None:
    """Take the choices of a draft, and show the page: its places are always there, so that nothing below them moves in the browser.

    Args:
        page: the page.
        protected: what a release protects.
    """
    state = page.state
    drafts.save(state)  # what was just answered: a reload may come before the errors to expect are computed
    load_deck()
    first_row(state)
    with st.container(key="curate"):
        icons, drawers, main = lay_out(state.kind.family.title, "curate")
        bar = st.container(key="bar")
    with drawers:
        cards = show_cards()
    with main:
        messages, declared_map, released, below = (st.container() for _ in range(4))
    with messages:
        show_missing_ledger()
    declared, expected = _ask(page, cards, bar)
    unit, data = page.unit_of(declared.data), declared.data
    with declared_map:
        page.show_declared(declared, expected, unit)
    what = page.releases.newest()
    with released:
        if what is not None:
            st.subheader("Released", anchor=RELEASED)
            scroll_to(RELEASED, f"{state.key} {what.number}")
            _show_draw(page, what.number, data is not None and what.data.counts is data.counts)
    below.caption(f"Private data, noise from the operating system: every draw is counted in the ledger. {protected}")
    with icons:
        _show_drawers(state, cards, 0 if what is None else what.number)
    drafts.save(state)


def _ask(page: FamilyPage, cards: Cards, bar: DeltaGenerator) -> tuple[Any, Expected | None]:
    """Ask all questions in their drawers, and show the bar; return what is declared and what is expected."""
    state = page.state
    with cards.good or st.container():
        publish, guess, account, files, earlier = (st.container() for _ in range(5))
    declared, fits = curate_controls(page, cards)
    with cards.files:
        forget_button(state.key)
    data, how = declared.data, state.draft
    draws = [(mechanism, how.budget_for(mechanism)) for mechanism in how.build_all()] if fits else []  # of one press
    with account:
        funding = show_account(state, data, draws, cards) if fits else None
    with guess:
        counts, unit = page.counts_of(declared) if fits else None, page.unit_of(data)
        levels, coarser = None if counts is None else page.levels_of(counts), page.coarser_of(declared)
        expected = show_expected(state, cards, counts, levels, unit, funding, coarser)
        page.below_errors(counts, expected)
    bargain = None if expected is None else expected.bargain
    pay = partial(page.releases.pay, data, funding, None if bargain is None else (bargain.level, bargain.shown.text))
    with bar:
        fits = show_bar(state, data, draws, cards, funding, bargain, pay, promise=page.promise_of(declared)) and fits
    with files:
        if data is not None and fits:
            show_files(state, data, draws, funding)
    with earlier:
        show_releases(publish, page.releases.newest_payments(), "" if funding is None or funding.account is None else funding.account.name)
    return declared, expected


def _show_drawers(state: FamilyState, cards: Cards, turn: int) -> None:
    """Show the icons, and of the drawers the one that was opened, or else the first in which something is missing.

    Args:
        state: state of the page.
        cards: say what is missing.
        turn: number of payments of this session, each of which shows the drawer that publishes, from its top.
    """
    opened = _choose_drawer(state, cards)
    show_drawer_icons(_ICONS, opened, lambda name: state.look(drawer=name or _CLOSED), turn=turn)
    hidden = f'[class*="st-key-card-"]:not(.st-key-card-{opened.lower().replace(" ", "-")})' if opened else ".st-key-opened-curate"
    st.html(f"<style>:has(> {hidden}) {{ display: none; }}</style>")


def _choose_drawer(state: FamilyState, cards: Cards) -> str:
    """Return the drawer that is open, "" if all are closed. One in which nothing is missing any more gives way to the next."""
    chosen, slot = state.view.drawer, f"{state.key} answered in"
    if chosen in {drawer for drawer, _ in cards.missing}:
        st.session_state[slot] = chosen
    elif st.session_state.pop(slot, None) == chosen and chosen:
        state.look(drawer="")
        return cards.first_missing
    return "" if chosen == _CLOSED else chosen if chosen in _ICONS else cards.first_missing


@st.fragment
def _show_draw(page: FamilyPage, number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the last draw; moving one of its controls runs this function alone."""
    what = page.releases.newest()
    if what is None:
        return
    _begin_release(page, what, same_data=same_data)
    truths = page.releases.find_truths(what)
    st.html(NO_EXPORT if truths[0] is None else NO_EXPORT + WATERMARK)
    page.show_release(what, truths)


def _begin_release(page: FamilyPage, what: Any, *, same_data: bool) -> None:
    """Show what stands above the map of a draw: whether it is that of the controls, verdicts, and the switch to the truth.

    Args:
        page: the page.
        what: the draw.
        same_data: whether the data on the left are still those of the draw.
    """
    if not (same_data and what.draft.same_draw(page.state.draft)):
        stale = f"The data or settings on the left have changed since draw {what.number}. *Run and pay* again to see their effect."
        st.caption(f":orange[{stale}]")
    if what.bought is not None:
        level, text = what.bought
        useful = page.count_useful(what.release, level) if len(what.runs) == 1 else None
        has = "" if useful is None else f" The release has {useful:,}."
        st.markdown(f"You expected {markdown(text)}.{has} It says of itself:")
    for run in what.runs:
        verdict_row(run.release, run.title if len(what.runs) > 1 else "")
    truth_switch(what.data)


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
    """Show the map of what is declared. A box that is dragged on it is taken, a draft of Curate is saved, and the page runs again.

    Args:
        page: state of the page.
        scene: the map; it asks for a box.
        key: of the map.
        take: declares a box, west, south, east and north in degrees.
    """
    with st.container(key="declared area"):
        panes(replace(scene, fills=True), key=key, on_box=partial(_take_dragged, page, key, take))
    rerun_if_changed(key)


def _take_dragged(page: FamilyState, key: str, take: Callable[[Bounds], None], box: Bounds) -> None:
    take(box)
    if page.draft.mode == CURATE:
        drafts.save(page)  # at once: a reload may come before the page has run again
    note_change(key)


def show_declared_regions(scene: Scene | None, key: str) -> None:
    """Show the map of declared regions; None if they have no place on it. `key` is that of the map."""
    if scene is None:
        st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
        return
    with st.container(key="declared area"):
        panes(replace(scene, fills=True), key=key)
