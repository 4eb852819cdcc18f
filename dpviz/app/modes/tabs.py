"""What the tabs under the maps of Points, Trips and Areas share: only the open one is computed, and a receipt ends with the same notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dpviz.app.components.words import small_print
from dpviz.app.session.ledger import describe_look
from dpviz.app.state.values import CURATE
from dpviz.release.verdict import verdict
from dpviz.view.escape import markdown

MOST_ROWS = 5000  # of a table


def show_open_tab(titles: Sequence[str], key: str, shows: Sequence[Callable[[], object]]) -> None:
    """Show tabs, each with the function that shows what is in it; only that of the open tab is called.

    Args:
        titles: of the tabs.
        key: of the tabs; the session state has the title of the open one.
        shows: one for each title.
    """
    if st.session_state.get(key, titles[0]) not in titles:
        del st.session_state[key]  # that of another drawer, or of Curate
    for tab, show in zip(st.tabs(titles, key=key, on_change="rerun"), shows, strict=True):
        if tab.open:
            with tab:
                show()


def show_title(what: Any, runs: Sequence[Any]) -> None:
    """Show the title of a run's mechanism if it is one of several."""
    if len(runs) > 1:
        st.markdown(f"**{markdown(what.title)}**")


def show_beside(runs: Sequence[Any], evaluations: Sequence[Any], show: Callable[..., object], *view: Any) -> None:
    """Show what is in a tab for each run, one beside the other.

    Args:
        runs: one or more.
        evaluations: of each its comparison with the truth, None where that must not be shown.
        show: called with a run, its evaluation and `view`.
        view: what else is shown, such as the level.
    """
    for what, evaluation, column in zip(runs, evaluations, st.columns(len(runs)), strict=True):
        with column:
            show_title(what, runs)
            show(what, evaluation, *view)


def end_receipt(what: Any) -> None:
    """Say what a run's budget buys in another currency, and show the small print of its receipt.

    In Teach it has the time of the run, and what the release says of itself, beside the chips, which the truth grades; in Curate whether
    the truth was looked at.
    """
    release, receipt = what.release, what.release.receipt
    if receipt.converted is not None:
        alone = " It holds for this release alone: several releases add up by ε and δ, or by ρ." if receipt.conversion == "exact" else ""
        st.caption(f"{receipt.total} buys {receipt.converted} by the {receipt.conversion} conversion.{alone}")
    notes = []
    if what.draft.mode != CURATE:
        notes.append(f"**Time**: {what.seconds:.2f} s on the server.")
        if receipt.private:
            notes.append(
                f"**Verdict**, from released numbers alone: {markdown(verdict(release).headline)} The chips are graded by the truth."
            )
    if what.account is not None:
        notes.append(f"**Truth looked at while tuning**: {describe_look(what.account)}.")
    small_print(receipt, release.steps, release.approximate, notes)
