"""A public file of polygons in the drawer *Where*: the box around them becomes the domain of points, and their outline is drawn."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpviz.app.cards.uploads import ask_for_file, kept_file, upload_types
from dpviz.app.pages.points.state import POINTS
from dpviz.app.session import cached
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.app.state.parts import Around
from dpviz.app.state.toml import file_name
from dpviz.app.state.values import IN_A_FILE, SIDES
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds
from dpviz.view.escape import markdown

IsPrivate = Callable[[str, int], bool]
"""Returns whether the private data are a file with this digest and so many bytes."""
Rings = list[list[list[float]]]
OUTLINE = "outline"  # beginning of the slots of the file
_WANTED = "outline wanted"
_PRIVATE = (
    "This is the file of the private data, and a domain around them would tell where they lie: choose a public file of polygons, or drag"
    " a box on the map."
)


def choose_outline(is_private: IsPrivate, declare: Callable[[str, Bounds, Around | None], None]) -> Rings:
    """Ask for a public file of polygons. The box around them is declared once, when the file is chosen.

    Args:
        is_private: says whether a file is that of the private data, which is refused.
        declare: declares the domain by its CRS, its bounds and the file that they are taken from; called before its fields are shown.

    Returns:
        The outline as closed lines in degrees; none without a file.
    """
    text = "The outline of a city, for instance: GeoJSON, GeoPackage, GeoParquet, a zipped Shapefile, or a table with polygons in WKT."
    named = POINTS.draft.outline
    if named and kept_outline() is None:
        st.caption(f"The bounds are those around {markdown(file_name(named))}: choose it again only to see its outline.")
    kept = ask_for_file(POINTS, "A file of polygons", upload_types(), OUTLINE, text, when_chosen=take_outline)
    if kept is None:
        st.caption("Or drop a public file of polygons under *Files*, such as the outline of a city.")
    try:
        _refuse_private(kept, is_private)
        return [] if kept is None else _show_outline(*kept, declare)
    except DpvizError as error:
        show_error(str(error))
        return []


def kept_outline() -> tuple[str, bytes] | None:
    """Return name and bytes of the file of polygons; None without one."""
    return kept_file(OUTLINE)


def take_outline(name: str | None) -> None:
    """Keep the name of the file of polygons, and let the box around them be declared; None once it is removed."""
    POINTS.set("draft", outline=name)
    if name is not None:
        want_box()


def want_box() -> None:
    """Let the box around the polygons be declared when the page runs next."""
    st.session_state[_WANTED] = True


def forget_box() -> None:
    """Leave the polygons aside: other bounds were declared while their CRS was missing."""
    st.session_state.pop(_WANTED, None)


def follow_crs() -> None:
    """Let the box be declared anew in the CRS that was typed, unless other bounds are declared by now."""
    if kept_outline() is not None and _is_declared():
        want_box()


def _refuse_private(kept: tuple[str, bytes] | None, is_private: IsPrivate) -> None:
    """Refuse the file of the private data, also if it was chosen here first; bounds that were taken from it are cleared.

    Raises:
        InputError: the file of polygons is that of the private data.
    """
    around = POINTS.draft.domain.around
    if around is not None and is_private(around.digest, around.size):
        POINTS.set("domain", around=None, **(dict.fromkeys(SIDES) if _is_declared() else {}))
        raise InputError(_PRIVATE)
    if kept is not None and is_private(cached.digest_of(kept[1]), len(kept[1])):
        raise InputError(_PRIVATE)


def _show_outline(name: str, body: bytes, declare: Callable[[str, Bounds, Around | None], None]) -> Rings:
    """Declare the box if that is wanted, and say what is counted.

    Raises:
        DpvizError: the file holds no outline, or its CRS is missing.
    """
    typed = POINTS.draft.domain.typed_crs
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
        declare(crs, bounds, Around(digest=digest, size=len(body), bounds=bounds))
    if _is_declared():
        if POINTS.draft.study_area != IN_A_FILE:
            text = f"Points are counted in the rectangular box around {markdown(name)}, not in its outline, which is drawn on the map."
            st.caption(text)
    else:
        st.button("Take the box around the polygons", key="outline again", on_click=carry_out(want_box))
    return rings


def _is_declared() -> bool:
    """Return whether the declared bounds are still those that were taken; also True while no bounds were taken, for a missing CRS."""
    domain = POINTS.draft.domain
    if domain.around is None:
        return bool(st.session_state.get(_WANTED))
    return (domain.west, domain.south, domain.east, domain.north) == domain.around.bounds
