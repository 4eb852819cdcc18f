"""What the tabs under the maps of Points, Trips and Areas share: only the open one is computed, and a receipt ends with the same notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dpviz.app.ledger import describe_look
from dpviz.app.page_state import CURATE
from dpviz.app.words import small_print
from dpviz.privacy.receipt import Receipt

MOST_ROWS = 5000  # of a table
MOST_PERCENT = 999  # a larger error says only that noise is all there is, as in the strip


def show_open_tab(titles: Sequence[str], key: str, shows: Sequence[Callable[[], object]]) -> None:
    """Show tabs, each with the function that shows what is in it; only that of the open tab is called.

    Args:
        titles: of the tabs.
        key: of the tabs; the session state has the title of the open one.
        shows: one for each title.
    """
    for tab, show in zip(st.tabs(titles, key=key, on_change="rerun"), shows, strict=True):
        if tab.open:
            with tab:
                show()


def note_conversion(receipt: Receipt) -> None:
    """Say what the budget buys in another currency, where it was converted."""
    if receipt.converted is not None:
        alone = " It holds for this release alone: several releases add up by ε and δ, or by ρ." if receipt.conversion == "exact" else ""
        st.caption(f"{receipt.total} buys {receipt.converted} by the {receipt.conversion} conversion.{alone}")


def end_receipt(what: Any, release: Any, seconds: float) -> None:
    """Show the small print of a receipt, with the time of a run in Teach, or whether the truth was looked at in Curate.

    Args:
        what: the draw.
        release: the one of its releases whose receipt it is.
        seconds: that this release took.
    """
    notes = [] if what.config.mode == CURATE else [f"**Time**: {seconds:.2f} s on the server."]
    if what.account is not None:
        notes.append(f"**Truth looked at while tuning**: {describe_look(what.account)}.")
    small_print(release.receipt, release.steps, release.approximate, notes)
