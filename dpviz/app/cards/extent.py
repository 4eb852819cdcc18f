"""The box that Teach declares around public data: the domain of points, or the box of hexagons and squares. Curate forgets it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.values import SIDES
from dpviz.view.basemap import Bounds


def take_extent(page: FamilyState, holder: str, digest: str, extent: Bounds | None, **others: Any) -> bool:
    """Declare the box around public data, unless a side is declared by now; return whether it was.

    Args:
        page: state of the page.
        holder: of the box: "domain" or "grid".
        digest: identifies the files. The box around other files gives way to that of these.
        extent: west, south, east and north; None if there is none.
        others: what else is declared of the box.
    """
    drop_extent(page, holder, unless=digest)
    if extent is None or any(side is not None for side in _sides(page, holder)):
        return False
    st.session_state[_slot(page)] = (digest, extent)
    page.set(holder, **dict(zip(SIDES, extent, strict=True)), **others)
    return True


def drop_extent(page: FamilyState, holder: str, unless: str = "") -> bool:
    """Forget the sides of the box around public data, but for that of files with the digest `unless`; return whether one was declared.

    A side that was typed since then stays.
    """
    digest, extent = st.session_state.get(_slot(page), ("", None))
    if extent is None or digest == unless:
        return False
    st.session_state.pop(_slot(page))
    taken = [side for side, now, found in zip(SIDES, _sides(page, holder), extent, strict=True) if now == found]
    page.set(holder, **dict.fromkeys(taken))
    return bool(taken)


def _sides(page: FamilyState, holder: str) -> tuple[float | None, ...]:
    return tuple(page.part(holder, side) for side in SIDES)


def _slot(page: FamilyState) -> str:
    """Return the key under which the session keeps the digest of the files and their box."""
    return f"{page.key} extent"
