"""The map of a release that was paid for before the page was loaded: what is published is seen first. Nothing private is used."""

from __future__ import annotations

import streamlit as st

from dpviz.app.components.panes import panes
from dpviz.app.session.widgets import is_dark
from dpviz.errors import DomainError
from dpviz.release.base import NoisyRelease
from dpviz.view.escape import html
from dpviz.view.levels import make_map

HEIGHT = 460


@st.fragment
def show_paid_map(release: NoisyRelease, key: int) -> None:
    """Show a release on a map, at the finest level that can be read; nothing if it has no place on one. The page has called `load_deck`.

    Args:
        release: the release.
        key: number of its payment, which makes another map of another release.
    """
    try:
        scene, note = make_map(release, None, dark=is_dark(), height=HEIGHT)
    except DomainError:
        return
    panes(scene, key=f"kept map {key:d}")
    if note:
        st.html(f'<div class="dpviz-note">{html(note)}</div>')
