"""The shape of the pages of all families: a page with two modes, Teach and Curate."""

from __future__ import annotations

from types import MappingProxyType

from dpviz.app.modes.curate import show_curate
from dpviz.app.modes.family_page import FamilyPage, Pages
from dpviz.app.modes.header import show_forgotten
from dpviz.app.modes.teach import show_teach
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session import drafts
from dpviz.app.session.widgets import accept_presses, show_refused_link
from dpviz.app.state.values import TEACH
from dpviz.families import Family

_ALONE: Pages = MappingProxyType({})


def family_page(family: Family, others: Pages = _ALONE) -> None:
    """Show the page of a family in its present mode.

    Args:
        family: the family.
        others: the pages of all families, to which its buttons lead.
    """
    if show_forgotten():
        return
    page: FamilyPage = family.page
    state = page.state
    drafts.restore(state)
    show_refused_link(state.refused)
    if state.draft.mode == TEACH:
        show_teach(page, others)
    else:
        refuse_in_class("Curate")
        show_curate(page, f"{page.protected['']} {page.not_protected}")  # the data of this run are not known yet
    accept_presses(state.key)
