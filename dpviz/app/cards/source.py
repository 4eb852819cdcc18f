"""The first questions about the data of Points, Trips and Areas: where they come from, and which sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import Cards
from dpviz.app.server.class_mode import is_class
from dpviz.app.session import cached
from dpviz.app.session.ledger import Source
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.values import SOURCES
from dpviz.samples.points import SampleInfo


def choose_source(page: FamilyState) -> str:
    """Ask where the data come from, and return it; a class has samples alone."""
    if is_class():
        return str(page.draft.source)
    shown = page.widget("draft", "source", f"{page.prefix}source")
    st.segmented_control("Where from", SOURCES, required=True, format_func=str.capitalize, label_visibility="collapsed", **shown)
    return str(page.draft.source)


def choose_sample(page: FamilyState, samples: Mapping[str, Any]) -> None:
    """Ask for a sample, one of `samples` by key."""
    shown = page.widget("draft", "sample", f"{page.prefix}sample")
    st.selectbox("Sample", list(samples), format_func=lambda sample: samples[sample].title, **shown)


def data_of_sample(
    cards: Cards,
    about: SampleInfo,
    counts: Any,
    source: Source,
    key: str,
    *,
    frame: tuple[object, ...] = (),
    make: Callable[..., Any] = PageData,
    **more: Any,
) -> Any:
    """Return a sample as the data of a page; in Curate say whom it protects.

    Args:
        cards: of Curate or Teach.
        about: the sample.
        counts: of the sample.
        source: where they come from.
        key: identifies the content.
        frame: identifies the public frame, where a sample has several.
        make: makes the data, a `PageData`.
        more: what the data of the page have beside that.
    """
    if cards.curates:
        bound = f", of whom at most {counts.contributions:,} {about.unit} count" if counts.contributions > 1 else ""
        cards.whom.markdown(f"The sample says it: one {counts.unit}{bound}.")
    fingerprints = cached.fingerprints(key, frame, counts)
    return make(counts=counts, digest=key, fingerprints=fingerprints, title=about.title, unit=about.unit, source=source, **more)
