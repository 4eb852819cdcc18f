"""The first row of a page: Teach or Curate, and what is protected in it."""

from __future__ import annotations

import streamlit as st

from dpviz.app.forget import forget_button
from dpviz.app.ledger import Loaded
from dpviz.app.points_state import CURATE, TEACH, Desk, truth_key, truth_wanted

_STAMP = """<style>
.st-key-map [data-testid="stDeckGlJsonChart"] { position: relative; }
.st-key-map [data-testid="stDeckGlJsonChart"]::after { content: "STAMP"; position: absolute; inset: 0; z-index: 1;
  pointer-events: none; display: flex; align-items: center; justify-content: center; font-size: 5rem; font-weight: 700;
  letter-spacing: 0.3rem; rotate: -20deg; opacity: 0.3; }
.st-key-figures { border-left: 4px dashed #d55e00; padding-left: 0.8rem; }
.st-key-figures::before { content: "STAMP: WHY"; font-size: 0.8rem; font-weight: 700; color: #d55e00; }
</style>"""
WATERMARK = _STAMP.replace("STAMP", "CURATOR ONLY").replace("WHY", "what follows holds the truth")
NOT_PRIVATE = _STAMP.replace("STAMP", "NOT PRIVATE").replace("WHY", "a reference that shows what privacy costs; never to be published")
NO_EXPORT = """<style>:is(.st-key-figures, .st-key-map) [data-testid="stElementToolbar"]:not(:has([aria-label*="ullscreen"])) {
  display: none; }</style>"""


def mode_row(desk: Desk, protected: str) -> None:
    """Switch the mode; `protected` says what is protected on this page and what is not."""
    left, right, end = st.columns([4, 15, 3], vertical_alignment="center")
    st.session_state["mode"] = desk.config().mode
    left.segmented_control(
        "Mode",
        (TEACH, CURATE),
        key="mode",
        required=True,
        label_visibility="collapsed",
        on_change=lambda: desk.change(mode=st.session_state["mode"]),
    )
    if desk.config().mode == TEACH:
        text = "Public data, seeded noise, truth beside the release: nothing here is private."
    else:
        text = "Private data, noise from the operating system: every draw is counted in the ledger, and nothing leaves this page."
        with end:
            forget_button(desk.key)
    right.caption(f"{text} {protected}")


def truth_switch(data: Loaded, mode: str) -> None:
    """In Curate, the switch that shows a dataset's truth, and what it costs; in Teach nothing."""
    if mode != CURATE:
        return
    left, right = st.columns([1, 4], vertical_alignment="center")
    left.toggle("Show curator-only truth", key=truth_key(data), persist_state="session")
    if truth_wanted(data):
        warning = "**CURATOR ONLY.** Choosing settings by the truth leaks: it is not covered by ε. That it was looked at is recorded."
        right.caption(f":orange[{warning}]")
