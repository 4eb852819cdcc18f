"""The link that gives a whole class the page as it is on the screen: the same sample, settings and seed of the noise."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from dpviz.app.server.access import TOKEN
from dpviz.app.server.class_mode import class_mode
from dpviz.app.state.draft import Draft
from dpviz.app.state.page import Page
from dpviz.app.state.values import EVERYWHERE, IN_A_FILE
from dpviz.families import FAMILIES

_SAME = "Whoever opens this address sees the same: sample, settings, what is shown, and the noise, by its seed."
_WITH_CODE = " It holds the code of the class."
_OWN_COMPUTER = " It leads to this computer only: for a class, start dpviz app --class --host NAME on a server, and take the link there."
_NO_LINK = (
    "Links for a class have samples in Teach only. Public data of your own become a sample where the class is started with"
    " dpviz app --class --public FILE.toml: see Hosting in Help."
)
_NO_POLYGONS = "Links do not carry the polygons of a file: for a class, say that people can be on land, or anywhere."
_SETTINGS_OF_LESSONS, _LESSON = "learn knobs", "learn at"
_SEEDS = frozenset({"seed", "draw"})  # what the pages call the seed of the noise
_OF_ONE_PERSON = frozenset({"present", "draft"})


@st.fragment
def offer_class_link(page: str) -> None:
    """Show the button that shows the whole address of a page, `page` its title; it is written when the button is pressed."""
    with st.expander("Link for a class", key="class link", on_change="rerun") as expander:
        if expander.open:
            _show_link(page)


def _show_link(page: str) -> None:
    kept = st.session_state
    config = kept[_SETTINGS_OF_LESSONS][kept[_LESSON]] if page == "Learn" else kept.get(key_of(page))
    config = config.draft if isinstance(config, Page) else config
    if config is None:  # right after the session has forgotten it
        return
    if getattr(config, "source", "sample") != "sample" or getattr(config, "mode", "Teach") != "Teach":
        st.caption(_NO_LINK)
        return
    if getattr(config, "study_area", EVERYWHERE) == IN_A_FILE:
        st.caption(_NO_POLYGONS)
        return
    mode = class_mode()
    code = None if mode is None else mode.code
    st.code(write_class_link(st.context.url or "", st.query_params.to_dict() | seed_of(config), code), language=None, wrap_lines=True)
    st.caption(_SAME + (_OWN_COMPUTER if mode is None else "" if code is None else _WITH_CODE))


def key_of(page: str) -> str:
    """Return the key of a page in the session's state; `page` is its title."""
    family = FAMILIES.get(page.lower())
    return f"{page.lower()} config" if family is None else str(family.page_kind.key)


def seed_of(config: Any) -> dict[str, str]:
    """Return the seed of what a page shows as a parameter of a link, which leaves out the usual one: another version may have another."""
    if isinstance(config, Draft):
        return {"run": str(config.run.seed)}
    return {field.name: str(getattr(config, field.name)) for field in fields(config) if field.name in _SEEDS}


def write_class_link(url: str, query: dict[str, str], code: str | None) -> str:
    """Return the address of a page for others.

    Args:
        url: the page's address in the browser.
        query: the parameters of the page.
        code: of the class; None without one.

    >>> write_class_link("http://lab.example.org:8501/points", {"mechanism": "quadtree", "run": "3"}, "abc-def-ghij")
    'http://lab.example.org:8501/points?mechanism=quadtree&run=3&token=abc-def-ghij'
    """
    parts = urlsplit(url)
    parameters = {name: value for name, value in query.items() if name not in _OF_ONE_PERSON} | ({} if code is None else {TOKEN: code})
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?' if parameters else ''}{urlencode(parameters)}"
