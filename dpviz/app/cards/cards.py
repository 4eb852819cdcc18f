"""The cards of Curate: whom to protect, where, how good. What they do not say yet keeps the button locked, and is listed at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.view.escape import markdown

WHOM, WHERE, GOOD, ACCOUNT, DATA, RELEASED = "whom", "where", "good", "account", "data", "released"
_ORDER = (DATA, WHOM, WHERE, GOOD, ACCOUNT, RELEASED)
_TITLES = {WHOM: "1 Whom to protect?", WHERE: "2 Where?", GOOD: "3 How good?"}


@dataclass(frozen=True, kw_only=True)
class Cards:
    """Where a page asks its questions, and what is still missing.

    Attributes:
        whom: place of the question whom a release protects.
        where: place of the questions on coordinates and the public frame.
        good: place of the expected errors; None in Teach.
        missing: what is missing, in the order of the questions: the anchor of its card, and a sentence.
    """

    whom: DeltaGenerator
    where: DeltaGenerator
    good: DeltaGenerator | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)

    @property
    def curates(self) -> bool:
        """Whether these are the cards of Curate; in Teach, questions stand one below the other in a drawer."""
        return self.good is not None

    def ask(self, card: str, text: str) -> None:
        """Say what is missing: in Curate at the button, in Teach where the question stands."""
        if self.curates:
            self.missing.append((card, text))
        else:
            place: Any = {WHOM: self.whom, WHERE: self.where}.get(card, st)
            place.info(markdown(text))


def cards_in_place() -> Cards:
    """Return places one below the other, right here."""
    return Cards(whom=st.container(), where=st.container())


def show_cards(where: str) -> Cards:
    """Show the three cards of Curate side by side.

    Args:
        where: title of the second card, after its number.
    """
    titles = {**_TITLES, WHERE: where}
    places: dict[str, Any] = {}
    for name, column in zip(titles, st.columns(3, gap="small"), strict=True):
        with column:
            places[name] = st.container(border=True, key=f"card {name}")
        places[name].subheader(titles[name], anchor=name)
    return Cards(**places)


def show_missing(cards: Cards) -> None:
    """Say at the button what is missing, in order, each sentence a link to its card."""
    if not cards.missing:
        return
    in_order = sorted(cards.missing, key=lambda each: _ORDER.index(each[0]))
    links = [f"[{markdown(text)}](#{card})" for card, text in in_order]
    st.markdown(" ".join(["**Before you can run:**", *links]))
