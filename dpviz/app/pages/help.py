"""The Help page: the pages of `dpviz/docs`, a search over them, and links between them that stay in the session.

The address states what is shown: `page` and `section`, or `search`. So every page and every search can be linked, and the browser's back
button works.
"""

from __future__ import annotations

import streamlit as st

from dpviz.app.session.widgets import show_refused_link
from dpviz.app.state.readers import describe_refused
from dpviz.view.escape import html, line, markdown
from dpviz.view.help import LONGEST_QUERY, MOST_HITS, Link, Page, Section, pages, search

_PAGE, _SEARCH = "help page", "help search"
_NO_SECTION = "This page has no section of the name that the link asks for: it is shown from its beginning."
_STYLE = """<style>
.dpviz-hit { font-size: 0.92rem; line-height: 1.5; max-width: 52rem; overflow-wrap: anywhere; }
.dpviz-hit mark { background: rgba(230, 159, 0, 0.35); color: inherit; border-radius: 2px; padding: 0 0.1em; }
.st-key-help-text { max-width: 60rem; }
.st-key-help-text [data-testid="stBaseButton-tertiary"] p { text-decoration: underline; text-underline-offset: 0.2em; }
[class*="st-key-help-section-"] { scroll-margin-top: 4.5rem; }
@media print { .st-key-help-text { max-width: none; } .st-key-help-section-for-the-teacher { break-before: page; }
  [class*="st-key-help-section-stop-"] { break-inside: avoid; }
  html, body, [data-testid="stApp"], [data-testid="stApp"] * { color: black !important; background-color: white !important; } }
</style>"""
_SCROLL = """<script>document.querySelector(".st-key-help-section-SECTION")?.scrollIntoView();  // of PAGE</script>"""


def help_page() -> None:
    """Show the page."""
    query = line(st.query_params.get("search", ""))[:LONGEST_QUERY]
    all_pages = pages()
    page = all_pages.get(st.query_params.get("page", ""), next(iter(all_pages.values())))
    with st.sidebar:
        _sidebar(page, query)
    st.html(_STYLE)
    with st.container(key="help-text"):
        if query:
            _show_results(query)
        else:
            show_refused_link(_describe_refused(page))
            for section in page.sections:
                with st.container(key=f"help-section-{section.key}"):
                    (st.header if section.key else st.title)(section.title, anchor=False)
                    st.markdown(section.body, anchors=False)
                    if section.links:
                        with st.container(horizontal=True, key=f"help-links-{section.key}"):
                            for link in section.links:
                                _link_button(page, section, link)
            wanted = st.query_params.get("section", "")
            key = next((section.key for section in page.sections if section.key == wanted), "")
            st.html(_SCROLL.replace("SECTION", key).replace("PAGE", page.key), unsafe_allow_javascript=True)


def _describe_refused(page: Page) -> str:
    """Write what of the address was not understood: a page that is not there, or a section that this page does not have."""
    if st.query_params.get("page", page.key) != page.key:
        return describe_refused({"page": page.key})
    section = st.query_params.get("section", "")
    return "" if section in ("", *(each.key for each in page.sections)) else _NO_SECTION


def _sidebar(page: Page, query: str) -> None:
    """Show the search box and the list of pages."""
    st.session_state[_SEARCH], st.session_state[_PAGE] = query, None if query else page.key
    st.text_input(
        "Search",
        key=_SEARCH,
        max_chars=LONGEST_QUERY,
        placeholder="such as: person, delta, dask",
        on_change=lambda: _go_to({"search": st.session_state[_SEARCH]}),
    )
    st.radio(
        "Pages",
        list(pages()),
        key=_PAGE,
        index=None,
        format_func=lambda key: pages()[key].title,
        on_change=lambda: _go_to({"page": st.session_state[_PAGE] or page.key}),
    )


def _go_to(query: dict[str, str]) -> None:
    """Go to another page, section or search by changing the address; empty parameters are left out."""
    st.query_params.from_dict({name: value for name, value in query.items() if value})


def _show_results(query: str) -> None:
    """Show the sections that a search found."""
    hits = search(query)
    st.header(f"Search: {markdown(query)}", anchor=False)
    if not hits:
        st.info("No section holds all of these words. Try fewer or shorter words: a part of a word is enough.")
        return
    st.caption(f"The {MOST_HITS} best sections with all of these words." if len(hits) == MOST_HITS else f"Sections found: {len(hits)}.")
    for number, hit in enumerate(hits):
        title = " ".join(f"**{markdown(word)}**" if is_found else markdown(word) for word, is_found in hit.title)
        target = {"page": hit.page.key, "section": hit.section.key}
        pieces = "".join(f"<mark>{html(piece)}</mark>" if is_found else html(piece) for piece, is_found in hit.excerpt)
        with st.container(gap=None):
            st.button(title, key=f"help hit {number}", type="tertiary", on_click=_go_to, args=(target,))
            st.html(f'<div class="dpviz-hit">{pieces}</div>')


def _link_button(page: Page, section: Section, link: Link) -> None:
    """Show a button that leads to another page or section."""
    target_page = pages()[link.page]
    title = (
        next((section_of_page.title for section_of_page in target_page.sections if section_of_page.key == link.section), "")
        if link.section
        else ""
    )
    label = f"{target_page.title}: {title}" if title else target_page.title
    target = {"page": link.page, "section": link.section}
    key = f"help link {page.key} {section.key} {link.page} {link.section}"
    st.button(label, key=key, icon=":material/arrow_forward:", type="tertiary", on_click=_go_to, args=(target,))
