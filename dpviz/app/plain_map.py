"""A map by Streamlit's own: in place of the canvas where the browser could not load that, and of trips in Curate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import streamlit as st

from dpviz.app.page_state import PageState
from dpviz.view.escape import html


class Picture(Protocol):
    """A map as pydeck draws it; `points_map`, `trips_map` and `areas_map` make one."""

    @property
    def deck(self) -> Any:
        """The map itself."""
        ...

    @property
    def legend(self) -> str:
        """Its legend, as HTML."""
        ...

    @property
    def note(self) -> str | None:
        """What it leaves out, if anything."""
        ...

    @property
    def description(self) -> str:
        """The text for people who cannot see it."""
        ...


def show_picture(picture: Picture, key: str, height: int, *notes: str, alt: str = "", **select: Any) -> None:
    """Show a map, and under it its legend and notes.

    Args:
        picture: the map.
        key: of the map.
        height: of the map, in pixels.
        notes: what else must be said of it; "" for nothing.
        alt: in place of the map's own description.
        select: `on_select` and `selection_mode` of the map.
    """
    st.pydeck_chart(picture.deck, height=height, key=key, alt=alt or picture.description, **select)
    st.html(picture.legend + "".join(f'<div class="dpviz-note">{html(note)}</div>' for note in (picture.note, *notes) if note))


def show_one_by_one(page: PageState, height: int, draw: Callable[[str], Picture]) -> None:
    """Show both maps of Teach side by side, where the browser could not load the canvas.

    Args:
        page: state of the page.
        height: of each map, in pixels.
        draw: draws a map from what it shows.
    """
    st.caption(":orange[This browser could not load the map library: the maps are shown one by one, without a common view.]")
    for name, column in zip(("left", "shown"), st.columns(2), strict=True):
        with column:
            show_picture(draw(getattr(page.config(), name)), f"{page.prefix}map {name}", height)
