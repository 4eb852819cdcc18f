"""The Release page: what was spent, a dry run, the words, and one button; no truth anywhere on it."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.dataset_block import dataset_block
from dpviz.app.fields import start_checks, stopped
from dpviz.app.forget import forget_button, forgotten
from dpviz.app.ledger import Kept, Loaded, Purse, in_currency, kept, order_of, till
from dpviz.app.outcome import Outcome, publish_kept, publish_new, show_outcome
from dpviz.app.points_state import POINTS, Desk
from dpviz.app.release_parts import dry_run_block, words_form
from dpviz.app.saved_config import save_button
from dpviz.app.session import newest, said, serve, settle, shelf
from dpviz.app.trips_state import TRIPS
from dpviz.app.verdict_row import verdict_row
from dpviz.app.words import budget_words
from dpviz.mechanisms.base import AnyMechanism
from dpviz.view.escape import markdown

DESKS: dict[str, Desk] = {"Points": POINTS, "Trips": TRIPS}
PAGE = "release"
NEW, PAID = "A new draw", "A draw that is already paid for"
_NEVER = "Draws in Teach are simulations, whose seed is known, and references are not private: neither can ever be chosen here."


def release_page(points: StreamlitPage | None = None, trips: StreamlitPage | None = None) -> None:
    """Draw the page; `points` and `trips` are where its buttons lead."""
    if forgotten():
        return
    _first_row()
    outcome: Outcome | None = newest("outcome")
    if outcome is not None:
        show_outcome(outcome)
    else:
        _preparation(points, trips)
    settle(PAGE)


def _first_row() -> None:
    left, right = st.columns([19, 3], vertical_alignment="center")
    left.caption(
        "**What leaves the app.** A release is drawn with noise from the operating system after the ledger has counted it, and comes with"
        " a manifest and a report. No truth is shown or used on this page; settings are those of the Points and Trips pages in Curate."
    )
    with right:
        forget_button("release")


def _preparation(points: StreamlitPage | None, trips: StreamlitPage | None) -> None:
    """Everything before the button: data, draw, sums, dry run and words."""
    start_checks()
    ready = {title: found for title, desk in DESKS.items() if (found := desk.loaded()) is not None}
    earlier = kept()
    if not ready and not earlier:
        _nothing_yet(points, trips)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        chosen = _choose(ready, earlier)
    if chosen is None:
        return
    data, how, made = chosen
    mechanism, budget = (made.mechanism, _budget_of(made)) if made is not None else (how.built(), how.budget())
    with left:
        words = words_form()
    with right:
        purse = _sums(data, mechanism, budget, made)
        handed = in_currency(mechanism, budget, purse.account.terms.cap if purse.account else purse.cap)
        dry_run_block(data, mechanism, handed)
        if made is None:
            st.caption(f"One press: the ledger counts {budget_words(handed)}, noise is drawn once, and the files are made.")
        locked = stopped() or purse.problem is not None
        if st.button("Publish", type="primary", disabled=locked, key="publish", width="stretch") and not locked:
            serve(PAGE, lambda: _publish((data, mechanism, budget), purse, made, words), "Publishing ...")
        said(PAGE)
        if made is None:
            save_button(data, how, purse)


def _nothing_yet(points: StreamlitPage | None, trips: StreamlitPage | None) -> None:
    st.info("Nothing can be released yet: load private data on the Points or Trips page in *Curate*, then come back.")
    st.caption(_NEVER)
    with st.container(horizontal=True):
        for title, page in (("Open the map", points), ("Open the trips", trips)):
            if page is not None and st.button(title):
                st.switch_page(page)


def _choose(ready: dict[str, tuple[Loaded, Any]], earlier: list[Kept]) -> tuple[Loaded, Any, Kept | None] | None:
    """The data with their configuration for a new draw, or a draw that is there."""
    st.markdown("##### 1 What")
    options = [*([NEW] if ready else []), *([PAID] if earlier else [])]
    if st.session_state.get("release what") not in options:
        st.session_state["release what"] = options[0]
    what = st.segmented_control("What", options, key="release what", required=True, persist_state="session", label_visibility="collapsed")
    st.caption(_NEVER)
    if what == PAID:
        places = range(len(earlier) - 1, -1, -1)
        place = st.selectbox("Draw", places, key="release draw", format_func=lambda each: _title(earlier[each]))
        verdict_row(earlier[place].paid.release)
        st.caption("It is published as it was drawn, and costs nothing more. The manifest says how many draws there were in all.")
        return earlier[place].data, None, earlier[place]
    desk = st.segmented_control("Data", list(ready), default=next(iter(ready)), key="release data", required=True, persist_state="session")
    if desk not in ready:
        return None
    data, how = ready[desk]
    st.markdown(f"{markdown(data.title)}: {_in_short(how.built(), how.budget())}")
    st.caption(f"Chosen on the {desk} page, where it can be changed.")
    return data, how, None


def _in_short(mechanism: AnyMechanism, budget: Any) -> str:
    """A mechanism with the settings that differ from its defaults, and the budget."""
    usual = type(mechanism)().chosen()
    other = [
        f"{rule.label} {mechanism.chosen()[rule.name]}" for rule in mechanism.rules() if mechanism.chosen()[rule.name] != usual[rule.name]
    ]
    return f"**{mechanism.title}**, {budget_words(budget)}" + (f" ({markdown(', '.join(other))})" if other else "")


def _budget_of(made: Kept) -> Any:
    return made.paid.release.receipt.total


def _title(made: Kept) -> str:
    """A draw in one line: when, with what, for how much, from what."""
    published = st.session_state.get("published entries", ())
    time = made.time.astimezone().strftime("%H:%M:%S")
    again = ", published" if made.paid.entry in published else ""
    return f"{time}, {made.mechanism.title}, {budget_words(_budget_of(made))}, {made.paid.account.name}{again}"


def _sums(data: Loaded, mechanism: AnyMechanism, budget: Any, made: Kept | None) -> Purse:
    """What is spent and left; a draw that is paid for takes nothing more."""
    return dataset_block(data, [] if made is not None else [(mechanism, budget)], title="##### What is spent")


def _publish(wanted: tuple[Loaded, Any, Any], purse: Purse, made: Kept | None, words: dict[str, Any]) -> None:
    """Publish, and keep what was published; where that fails, nothing is lost.

    Args:
        wanted: data, mechanism and budget of a new draw.
        purse: what it is paid from.
        made: the draw that is there, instead.
        words: of the publication.
    """
    outcomes, place = shelf("outcome"), till()  # from here on no call into Streamlit: it could lose what is published
    if made is not None:
        outcomes.append(publish_kept(made, words, place))
    else:
        outcomes.append(publish_new(order_of(*wanted, purse), wanted[0], words, place))
