"""What the popover *More* offers for the maps of Teach: new scales of errors, a picture, and a street map from outside."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dpviz.app.components.streets import streets_switch
from dpviz.app.session.page_state import FamilyState
from dpviz.view.canvas import Scene
from dpviz.view.points_canvas import ERROR
from dpviz.view.scene_svg import draw_svg


def more_about_maps(page: FamilyState, scene: Scene, streets: str, *, on_earth: bool = True) -> None:
    """Offer new scales of errors, the maps as SVG, and the street map.

    Args:
        page: state of the page.
        scene: the maps.
        streets: key of the switch of the street map, for `streets_wanted`.
        on_earth: whether the maps lie somewhere; a plain plane has no streets.
    """
    fit_help = "Choose the scale of errors for this run; for maps of errors."
    shows_error = ERROR in (page.view.left, page.view.shown)
    st.button("Fit scale", key="fit scale", help=fit_help, on_click=partial(page.look, scales={}), disabled=not shows_error)
    st.download_button(
        "SVG",
        partial(draw_svg, scene),
        "dpviz.svg",
        "image/svg+xml",
        on_click="ignore",
        key="svg",
        help="Both maps with titles, legends, caption and stamp, for print.",
    )
    streets_switch(streets, on_earth=on_earth)
