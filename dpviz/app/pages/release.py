"""The address /release: it leads to the part of Curate that publishes."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.cards.cards import GOOD
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.values import CURATE
from dpviz.families import FAMILIES


def release_page(pages: Mapping[str, StreamlitPage]) -> None:
    """Go to the page that paid for a release last, or else to the first one in Curate, with the drawer open that publishes.

    Args:
        pages: of the families, by their names.
    """
    refuse_in_class("Curate")
    curating = [name for name, family in FAMILIES.items() if family.page.state.draft.mode == CURATE]
    payments = {name: max(family.page.releases.newest_payments(), default=0) for name, family in FAMILIES.items()}
    name = max(payments, key=payments.__getitem__) if any(payments.values()) else next(iter(curating), next(iter(FAMILIES)))
    state: FamilyState = FAMILIES[name].page.state
    state.change(draft={"mode": CURATE})
    state.look(drawer=GOOD)
    st.switch_page(pages[name])
