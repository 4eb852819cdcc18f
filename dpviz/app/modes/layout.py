"""Where things stand on the page of a family: the first row, icons and drawers at the left, and the maps."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.view.escape import html

_STYLE = f"<style>{Path(__file__).with_suffix('.css').read_text('utf-8')}</style>"


def lay_out(title: str, drawers: str) -> tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]:
    """Show the title of a page to readers of headings, and return the places of its icons, its drawers and its main part.

    Args:
        title: of the page.
        drawers: names the drawers in the keys of containers.
    """
    st.html(_STYLE)
    st.html(f'<h1 class="dpviz-unseen">{html(title)}</h1>')
    with st.container(key="page"):
        return st.container(key="drawers"), st.container(key=f"opened {drawers}"), st.container(key="main")
