"""The questions of Curate, in drawers that open in order. What they do not say yet keeps the button locked, and is listed at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.session.widgets import carry_out
from dpviz.view.escape import markdown

FILES, WHOM, WHERE, GOOD, METHOD = "Files", "Whom", "Where", "How good", "Method"
ORDER = (FILES, METHOD, WHOM, WHERE, GOOD)
"""The drawers, in the order in which they open while something is missing in them."""


@dataclass(frozen=True, kw_only=True)
class Cards:
    """Where a page asks its questions, and what is still missing.

    Attributes:
        files: place of the questions about the data.
        whom: place of the question whom a release protects.
        where: place of the questions on coordinates and the public frame.
        good: place of the expected errors, the account and the bundle; None in Teach.
        method: place of mechanism and budget; None in Teach.
        missing: what is missing, in the order in which it was found: its drawer, and a sentence.
    """

    files: DeltaGenerator
    whom: DeltaGenerator
    where: DeltaGenerator
    good: DeltaGenerator | None = None
    method: DeltaGenerator | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)

    @property
    def curates(self) -> bool:
        """Whether these are the drawers of Curate; in Teach, questions stand one below the other in one drawer."""
        return self.good is not None

    def ask(self, drawer: str, text: str) -> None:
        """Say what is missing: in Curate at the button, in Teach where the question stands."""
        if self.curates:
            st.html(f'<div class="dpviz-question-{len(self.missing)}"></div>')  # the press on the sentence leads here
            self.missing.append((drawer, text))
        else:
            place: Any = {WHOM: self.whom, WHERE: self.where}.get(drawer, st)
            place.info(markdown(text))

    @property
    def first_missing(self) -> str:
        """The drawer in which something is missing, the first in order; the last drawer if nothing is."""
        return min((drawer for drawer, _ in self.missing), key=ORDER.index, default=GOOD)


def cards_in_place() -> Cards:
    """Return places one below the other, right here."""
    return Cards(files=st.container(), whom=st.container(), where=st.container())


def show_cards() -> Cards:
    """Show the drawers of Curate, all of them: which one is seen is said once it is known what is missing."""
    places: dict[str, Any] = {}
    for name, drawer in (("files", FILES), ("whom", WHOM), ("where", WHERE), ("good", GOOD), ("method", METHOD)):
        places[name] = st.container(key=f"card {drawer.lower()}")
        places[name].header(drawer, anchor=False)
    return Cards(**places)


def show_missing(cards: Cards, open_drawer: Callable[[str], object]) -> None:
    """Say at the button what is missing, in order; each sentence opens its drawer."""
    if not cards.missing:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="missing"):
        st.markdown("**Before you can run:**", width="content")
        numbered = [(number, *each) for number, each in enumerate(cards.missing)]
        for number, drawer, text in sorted(numbered, key=lambda each: ORDER.index(each[1])):
            go = carry_out(lambda drawer=drawer: open_drawer(drawer))  # type: ignore[misc]
            st.button(markdown(text), type="tertiary", key=f"missing {number}", on_click=go)
