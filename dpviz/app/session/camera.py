"""How the canvas of a page opens: its camera and its swipe bar, which links carry.

The browser keeps both while the page is shown. If each of their moves changed the message to the browser, all numbers would be sent again;
so the message says how the visit of the page began, and moves only go into the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpviz.app.session.page_state import PageState
from dpviz.app.state.readers import Camera
from dpviz.view.canvas import Scene


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How a canvas looks when a visit of its page begins.

    Attributes:
        camera: None for the whole domain.
        swipe: position of the swipe bar; None for maps side by side.
        visit: number of the visit.
    """

    visit: int = 0
    camera: Camera | None = None
    swipe: float | None = None


def opening(page: PageState, frame: object) -> Opening:
    """Return how the canvas of a page opens in this visit. Once the frame has changed, the camera is forgotten.

    Args:
        page: what its `looks` hold has a `camera`, and may have a `swipe`.
        frame: the public frame of the maps: a domain, or regions.
    """
    key, visit = f"{page.key} opening", st.session_state.get("visit", 0)
    known_visit, known_frame, opens = st.session_state.get(key, (None, frame, Opening()))
    if known_frame != frame:
        page.look(camera=None)
        opens = Opening(visit=visit, swipe=opens.swipe)
    elif known_visit != visit:
        opens = Opening(visit=visit, camera=page.looks.camera, swipe=getattr(page.looks, "swipe", None))
    st.session_state[key] = (visit, frame, opens)
    return opens  # type: ignore[no-any-return]


def open_scene(page: PageState, scene: Scene, frame: object) -> Scene:
    """Return a scene as the visit of the page began.

    Args:
        page: as of `opening`.
        scene: the maps, with all of the frame in view.
        frame: the public frame of the maps.
    """
    opens = opening(page, frame)
    return replace(scene, camera=opens.camera, swipe=opens.swipe, visit=opens.visit)


def keep_camera(page: PageState, camera: Camera) -> None:
    """Put a camera that has come to rest into the configuration."""
    longitude, latitude, zoom = camera
    page.look(camera=(round(longitude, 5), round(latitude, 5), round(zoom, 4)))


def keep_swipe(page: PageState, at: float | None) -> None:
    """Put the position of the swipe bar into the configuration; None for maps side by side."""
    page.look(swipe=at)
