"""What the popover *More* offers for the maps of Teach: new scales of errors, a picture, and a street map from outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from dpviz.app.streets import streets_switch
from dpviz.view.canvas import Scene
from dpviz.view.scene_svg import draw_svg


def more_about_maps(scene: Scene, streets: str, *, on_earth: bool, shows_error: bool, on_fit: Callable[[], None]) -> None:
    """Offer new scales of errors, the maps as SVG, and the street map.

    Args:
        scene: the maps.
        streets: key of the switch of the street map, for `streets_wanted`.
        on_earth: whether the maps lie somewhere; a plain plane has no streets.
        shows_error: whether one of the maps shows errors.
        on_fit: chooses the scales of errors anew.
    """
    fit_help = "Choose the scale of errors for this run; for maps of errors."
    st.button("Fit scale", key="fit scale", help=fit_help, on_click=on_fit, disabled=not shows_error)
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
