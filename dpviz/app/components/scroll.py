"""Scrolling to what a press has made."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_scroll = st.components.v2.component("dpviz_scroll", js=Path(__file__).with_suffix(".js").read_text("utf-8"))


def scroll_to(anchor: str, once: str) -> None:
    """Scroll to a heading, once for each word.

    Args:
        anchor: of the heading.
        once: the word; while it stays the same, the page stays where the person has put it.
    """
    _scroll(key=f"scroll to {anchor}", data={"anchor": anchor, "once": once})
