"""Where people can be: a public file of polygons masks the cells of the domain that do not touch them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpviz.app import cached, drafts
from dpviz.app.class_mode import is_class
from dpviz.app.files import ask_for_file
from dpviz.app.points.outline import TYPES, IsPrivate
from dpviz.app.session import show_error
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.view.escape import markdown

ONLY_INSIDE = "only inside"
"""Key of the switch that takes the polygons of Curate as the study area."""
MISSING = "Choose the file of polygons again: nobody can be outside them."
_ROLE = "study area"
_PRIVATE = "This is the file of the data, and where people can be must not be taken from it: choose a public file of polygons."
_HELP = (
    "Declared in public, never taken from the data. Cells that do not touch the polygons are known to be empty: they cost nothing and get"
    " no noise, and records there count as outside the domain. Some mechanisms cannot use this, and say so."
)


@dataclass(frozen=True, kw_only=True)
class Masked:
    """A domain with the mask of a study area.

    Attributes:
        domain: the domain; None if the study area is missing or wrong.
        file: name of the file of polygons; None without a study area.
    """

    domain: Domain | None
    file: str | None = None


def switch_study_area(domain: Domain | None, kept: tuple[str, bytes] | None, is_private: IsPrivate) -> Masked:
    """Ask in Curate whether nobody can be outside the polygons around which the domain was declared.

    Args:
        domain: the declared domain; None while it is missing.
        kept: name and bytes of the file of polygons; None without one.
        is_private: says whether a file is that of the data, which is refused.
    """
    if kept is None and not st.session_state.get(ONLY_INSIDE):
        return Masked(domain=domain)
    if not st.toggle("Nobody can be outside these polygons", key=ONLY_INSIDE, persist_state="session", help=_HELP):
        return Masked(domain=domain)
    if kept is None:
        st.caption(f":orange[{MISSING}]")
        return Masked(domain=None)
    return _mask(domain, *kept, is_private)


def ask_study_area(domain: Domain | None, is_private: IsPrivate = lambda _digest, _size: False) -> Masked:
    """Ask in Teach, and for samples, for a public file of polygons in which all people are; a class has no files.

    Args:
        domain: the declared domain; None while it is missing.
        is_private: says whether a file is that of the data, which is refused.
    """
    if is_class():
        return Masked(domain=domain)
    with st.expander("Where people can be", expanded=st.session_state.get(f"{_ROLE} uploaded") is not None):
        kept = ask_for_file("A public file of polygons", TYPES, _ROLE, _HELP)
        if kept is None:
            st.caption("Everywhere in the domain. Choose an outline of land, or of a city, if nobody can be outside it.")
            return Masked(domain=domain)
        return _mask(domain, *kept, is_private)


def is_missing() -> bool:
    """Return whether the switch of Curate is on while its file of polygons is not there, as after a reload."""
    return bool(st.session_state.get(ONLY_INSIDE)) and st.session_state.get(drafts.OUTLINE) is None


def _mask(domain: Domain | None, name: str, body: bytes, is_private: IsPrivate) -> Masked:
    """Mask the domain, and say how much of it; an error is shown."""
    digest = cached.digest_of(body)
    if domain is None:
        return Masked(domain=None, file=name)
    try:
        if is_private(digest, len(body)):
            raise InputError(_PRIVATE)
        masked = cached.mask_domain(digest, name, body, domain)
    except DpvizError as error:
        show_error(str(error))
        return Masked(domain=None, file=name)
    st.caption(f"People can be in {100 * masked.share_open:.3g} % of the cells, those that touch {markdown(name)}.")
    return Masked(domain=masked, file=name)
