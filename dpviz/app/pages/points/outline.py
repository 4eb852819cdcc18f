"""A public file of polygons on the card *Where?*: the box around them becomes the domain of points, and their outline is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpviz.app.cards.path_files import ask_for_file, upload_types
from dpviz.app.session import cached, drafts
from dpviz.app.session.saved_config import SIDES
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds
from dpviz.view.escape import markdown

IsPrivate = Callable[[str, int], bool]
"""Returns whether the private data are a file with this digest and so many bytes."""
Rings = list[list[list[float]]]
_WANTED, _TAKEN = "outline wanted", "outline taken"
_PRIVATE = (
    "This is the file of the private data, and a domain around them would tell where they lie: choose a public file of polygons, or drag"
    " a box on the map."
)


def choose_outline(is_private: IsPrivate, declare: Callable[[str, Bounds], None]) -> Rings:
    """Ask for a public file of polygons. The box around them is declared once, when the file is chosen.

    Args:
        is_private: says whether a file is that of the private data, which is refused.
        declare: declares the domain by its CRS and bounds; called before the fields of the bounds are shown.

    Returns:
        The outline as closed lines in degrees; none without a file.
    """
    text = "The outline of a city, for instance: GeoJSON, GeoPackage, GeoParquet, a zipped Shapefile, or a table with polygons in WKT."
    kept = ask_for_file("A file of polygons", upload_types(), "outline", text, when_chosen=want_box)
    if kept is None:
        st.caption("Public, as the domain is: the outline of a city, for instance, never the private data.")
    try:
        _refuse_private(kept, is_private)
        return [] if kept is None else _show_outline(*kept, declare)
    except DpvizError as error:
        show_error(str(error))
        return []


def want_box() -> None:
    """Let the box around the polygons be declared when the page runs next."""
    st.session_state[_WANTED] = True


def forget_box() -> None:
    """Leave the polygons aside: other bounds were declared while their CRS was missing."""
    st.session_state.pop(_WANTED, None)


def follow_crs() -> None:
    """Let the box be declared anew in the CRS that was typed, unless other bounds are declared by now."""
    if st.session_state.get(drafts.OUTLINE) is not None and _is_declared():
        want_box()


def _refuse_private(kept: tuple[str, bytes] | None, is_private: IsPrivate) -> None:
    """Refuse the file of the private data, also if it was chosen here first; bounds that were taken from it are cleared.

    Raises:
        InputError: the file of polygons is that of the private data.
    """
    taken = _read_taken()
    if taken and is_private(taken["digest"], taken["size"]):
        if _is_declared():
            for side in SIDES:
                st.session_state[side] = None
        st.session_state[_TAKEN] = None
        raise InputError(_PRIVATE)
    if kept is not None and is_private(cached.digest_of(kept[1]), len(kept[1])):
        raise InputError(_PRIVATE)


def _show_outline(name: str, body: bytes, declare: Callable[[str, Bounds], None]) -> Rings:
    """Declare the box if that is wanted, and say what is counted.

    Raises:
        DpvizError: the file holds no outline, or its CRS is missing.
    """
    typed = str(st.session_state.get("domain crs", "") or "").strip()
    if typed.lower() == "none":
        raise InputError("A plain plane has no map for polygons: clear the CRS of the domain, or remove the file.")
    if typed:
        Domain(bounds=(0, 0, 1, 1), crs=typed)
    digest = cached.digest_of(body)
    outline, rings = cached.read_outline_file(digest, name, body, typed or None)
    if st.session_state.get(_WANTED):
        crs = typed or outline.code
        bounds = outline.bounds_in(crs)
        st.session_state[_WANTED] = False
        st.session_state[_TAKEN] = [digest, len(body), *bounds]
        declare(crs, bounds)
    if _is_declared():
        if not st.session_state.get("only inside"):
            text = f"Points are counted in the rectangular box around {markdown(name)}, not in its outline, which is drawn on the map."
            st.caption(text)
    else:
        st.button("Take the box around the polygons", key="outline again", on_click=carry_out(want_box))
    return rings


def _read_taken() -> dict[str, Any]:
    """Return which file the bounds were taken from, and these bounds; a draft may hold anything in its place."""
    taken = st.session_state.get(_TAKEN)
    if not isinstance(taken, list) or len(taken) != 2 + len(SIDES):
        return {}
    return {"digest": taken[0], "size": taken[1], "bounds": taken[2:]}


def _is_declared() -> bool:
    """Return whether the declared bounds are still those that were taken; also True while no bounds were taken, for a missing CRS."""
    taken = _read_taken()
    if not taken:
        return bool(st.session_state.get(_WANTED))
    return bool([st.session_state.get(side) for side in SIDES] == taken["bounds"])
