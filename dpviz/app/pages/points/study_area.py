"""Where people can be: on land, or in a public file of polygons; cells of the domain that touch neither are masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.app.cards.uploads import ask_for_file, upload_types
from dpviz.app.pages.points.outline import IsPrivate
from dpviz.app.pages.points.state import POINTS
from dpviz.app.server.class_mode import is_class
from dpviz.app.session import cached
from dpviz.app.session.widgets import show_error
from dpviz.app.state.values import EVERYWHERE, IN_A_FILE, ON_LAND
from dpviz.data.reading.outline import LAND
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.view.escape import markdown

MISSING = "Choose the file of polygons again: nobody can be outside them."
MISSING_OF_LINK = (
    "Nobody can be outside a public file of polygons, and a link does not carry the file: choose it under Where people can be, or say there"
    " that people can be anywhere."
)
_ROLE = "study area"
_NAMES = {EVERYWHERE: "anywhere in the domain", ON_LAND: "on land", IN_A_FILE: "in the polygons of a file"}
_PRIVATE = "This is the file of the data, and where people can be must not be taken from it: choose a public file of polygons."
_NO_LINK = "A link does not carry this file: who opens one is asked for it."
_NO_LAND = "A plain plane has no land: people can be everywhere in the domain."
_HELP = (
    "Declared in public, never taken from the data. Cells that do not touch the polygons are known to be empty: they cost nothing and get"
    " no noise, and records there count as outside the domain. Some mechanisms cannot use this, and say so."
)


@dataclass(frozen=True, kw_only=True)
class Masked:
    """A domain with the mask of a study area.

    Attributes:
        domain: the domain; None if the study area is missing or wrong.
        file: name of the file of polygons, or "land"; None without a study area.
        asks: what is to be done while the domain is None.
    """

    domain: Domain | None
    file: str | None = None
    asks: str = "Correct the study area, in which all people are."


def switch_study_area(domain: Domain | None, kept: tuple[str, bytes] | None, is_private: IsPrivate) -> Masked:
    """Ask in Curate whether nobody can be outside the polygons around which the domain was declared.

    Args:
        domain: the declared domain; None while it is missing.
        kept: name and bytes of the file of polygons; None without one.
        is_private: says whether a file is that of the data, which is refused.
    """
    is_chosen = POINTS.draft.study_area == IN_A_FILE
    if kept is None and not is_chosen:
        return Masked(domain=domain)
    use = {"show": lambda area: area == IN_A_FILE, "take": lambda on: IN_A_FILE if on else EVERYWHERE}
    shown: dict[str, Any] = POINTS.widget("draft", "study_area", "only inside", **use)
    if not st.toggle("Nobody can be outside these polygons", help=_HELP, **shown):
        return Masked(domain=domain)
    if kept is None:
        st.caption(f":orange[{MISSING}]")
        return Masked(domain=None, asks=MISSING)
    return _mask_by_file(domain, *kept, is_private)


def ask_study_area(
    chosen: str, shown: Mapping[str, Any], domain: Domain | None, is_private: IsPrivate = lambda _digest, _size: False
) -> Masked:
    """Ask in Teach, for samples and on the Compare page where all people are; a class has no files.

    Args:
        chosen: the answer, one of `STUDY_AREAS`; a link has it, but never the file.
        shown: arguments of the widget that shows it, as of `FamilyState.widget`.
        domain: the declared domain; None while it is missing.
        is_private: says whether a file is that of the data, which is refused.
    """
    with st.expander("Where people can be", expanded=chosen != EVERYWHERE):
        kinds = [name for name in _NAMES if not (is_class() and name == IN_A_FILE)]
        st.selectbox("All people are", kinds, format_func=_NAMES.__getitem__, help=_HELP, **shown)
        if chosen == ON_LAND:
            return _mask_to_land(domain)
        if chosen != IN_A_FILE:
            return Masked(domain=domain)
        kept = ask_for_file(None, "A file of polygons", upload_types(), _ROLE, _HELP)
        if kept is None:
            return Masked(domain=None, asks=MISSING_OF_LINK)
        st.caption(_NO_LINK)
        return _mask_by_file(domain, *kept, is_private)


def _mask_to_land(domain: Domain | None) -> Masked:
    if domain is None:
        return Masked(domain=None)
    if domain.crs is None:
        st.caption(_NO_LAND)
        return Masked(domain=domain)
    return _mask(LAND, "the land, whose outline is coarse", lambda: cached.mask_to_land(domain))


def _mask_by_file(domain: Domain | None, name: str, body: bytes, is_private: IsPrivate) -> Masked:
    if domain is None:
        return Masked(domain=None, file=name)
    digest = cached.digest_of(body)

    def mask() -> Domain:
        if is_private(digest, len(body)):
            raise InputError(_PRIVATE)
        return cached.mask_domain(digest, name, body, domain)

    return _mask(name, name, mask)


def _mask(file: str, words: str, mask: Callable[[], Domain]) -> Masked:
    """Mask the domain, and say how much of it; an error is shown."""
    try:
        masked = mask()
    except DpvizError as error:
        show_error(str(error))
        return Masked(domain=None, file=file)
    st.caption(f"People can be in {100 * masked.share_open:.3g} % of the cells, those that touch {markdown(words)}.")
    return Masked(domain=masked, file=file)
