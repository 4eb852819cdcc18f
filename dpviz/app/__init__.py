"""The Streamlit app: its pages and their tabs, session state, and the server. The only room that imports Streamlit.

Computations, charts and files belong in the other rooms, where they are tested without a page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.server import warm_up
from dpviz.app.server.class_link import offer_class_link
from dpviz.app.server.class_mode import is_class
from dpviz.app.session.widgets import begin_run, end_run
from dpviz.bundled import folder
from dpviz.families import FAMILIES

_STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding: 4.2rem 1.4rem 1rem; max-width: none; }
[data-testid="stSidebarHeader"] { padding-bottom: 0; margin-bottom: 0; }
[data-testid="stSidebarContent"] { scroll-padding-bottom: 5rem; }
.st-key-figures [role="tab"]:not(:focus-visible) { scroll-margin-bottom: -3000px; }
.dpviz-note { font-size: 0.82rem; line-height: 1.5; }
.dpviz-note { opacity: 0.75; }
[data-testid="stCaptionContainer"] { opacity: 0.85; }
.dpviz-note.row { height: 1.5em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.st-key-map { transition: opacity 0.15s; }
.st-key-map.dimmed { opacity: 0.5; }
[data-testid="stLayoutWrapper"]:has(> .st-key-play-next) { position: absolute; }
[data-testid="stLayoutWrapper"]:has(> [class*="st-key-parts-of"]) { display: none; }
.st-key-status { min-height: 2.8rem; justify-content: center; margin: -0.6rem 0; }
.st-key-status [data-testid="stHorizontalBlock"], .st-key-status > div { gap: 0.2rem 1rem; }
:is(.st-key-all-regions, .st-key-remove-box, .st-key-no-region) button { min-height: 1.8rem; padding: 0 0.6rem; font-size: 0.85rem; }
@media (pointer: coarse) { .st-key-status { min-height: 44px; }
  :is(.st-key-all-regions, .st-key-remove-box, .st-key-no-region) button { min-height: 44px; } }
@media (max-width: 640px) { .dpviz-note.row { height: 4.5em; white-space: normal; } .st-key-status { min-height: 5.4rem; } }
[class*="st-key-picture"] { position: relative; }
[class*="st-key-picture"] [data-testid="stButton"] button::after { content: ""; position: absolute; inset: 0; cursor: pointer; }
[class*="st-key-picture"] :is([data-testid="stElementContainer"], [data-testid="stButton"], button) { position: static; }
.dpviz-budget { display: flex; height: 0.8rem; border-radius: 3px; overflow: hidden; outline: 1px solid rgba(128,128,128,.45); }
.dpviz-dot { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 2px; margin-right: 0.3em; }
@media (max-width: 768px) { [data-testid="stExpandSidebarButton"]::after, [data-testid="stSidebarCollapseButton"] button::after {
  font-size: 1rem; margin-left: 0.3rem; } [data-testid="stExpandSidebarButton"]::after { content: "Menu"; }
  [data-testid="stSidebarCollapseButton"] button::after { content: "Close"; } }
@media (max-width: 640px) { .st-key-learn-steps-top > :has(h2) { order: 9; flex-basis: 100% !important; } }
@media (prefers-reduced-motion: reduce) { .st-key-map { transition: none; } }
@page { margin: 15mm; }
@media print {
  [data-testid="stApp"] :is([data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stButton"], [data-testid="stDownloadButton"],
    [data-testid="stPopover"], [data-testid="stExpander"]:has(details:not([open]))) { display: none; }
  [data-testid="stApp"] [data-testid="stMainBlockContainer"] { padding: 0; }
  tr, [data-testid="stVegaLiteChart"] { break-inside: avoid; }
  :is(h1, h2, h3) { break-after: avoid; } }
</style>"""


def main() -> None:
    """Run the page that the navigation selects."""
    families: dict[str, StreamlitPage] = {}  # each page gets all of them, to which its buttons lead
    for family in FAMILIES.values():
        families[family.name] = st.Page(_page("family", family, families), title=family.title, url_path=family.name)
    others = ("compare", "learn", "papers", "help")
    compare, learn, papers, help_entry = (st.Page(_page(name), title=name.capitalize(), url_path=name) for name in others)
    release = [] if is_class() else [st.Page(_page("release", families), title="Release", url_path="release", visibility="hidden")]
    opened = {**families, "compare": compare, "learn": learn}
    start = st.Page(_page("start", opened), title="Start", url_path="", default=True)
    named = st.Page(lambda: st.switch_page(start), title="Start", url_path="start", visibility="hidden")  # the start page lives at /
    page = st.navigation([start, *opened.values(), papers, *release, help_entry, named], position="top")
    if st.session_state.get("page") != page.title:
        st.session_state["page"], st.session_state["visit"] = page.title, st.session_state.get("visit", 0) + 1
    begin_run()
    title = "dpviz" if page is start else f"{page.title} - dpviz"
    st.set_page_config(page_title=title, page_icon=str(folder("assets") / "logo.svg"), layout="wide")
    st.logo(folder("assets") / "logo.svg", size="small")
    st.html(_STYLE)
    page.run()
    if page in (compare, learn, papers):
        with st.sidebar:
            offer_class_link(page.title)
    end_run()
    warm_up.begin(seconds=5.0)


def _page(page: str, *arguments: Any) -> Callable[[], None]:
    """Return a function that shows a page. Its modules are imported when it is first shown: those of all pages take two seconds."""

    def show() -> None:
        getattr(warm_up.import_page(page), f"{page}_page")(*arguments)

    return show
