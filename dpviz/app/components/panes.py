"""The canvas of maps side by side, and the loader that gives it deck.gl.

deck.gl comes with pydeck, as one bundle of 4 MB, which the browser gets from pydeck's own folder. The bundle would overwrite the deck.gl of
Streamlit's own maps: its global names are saved before it runs and restored afterwards, and ours is kept under a name of its own.

A scene goes out in parts, each an element of its own, which takes no room on the page. Streamlit sends a large message that the browser
still holds as its digest alone: of a scene that changes only the parts that changed are sent, and a page that is loaded anew gets all. The
element of the canvas never changes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v1 import declare_component

from dpviz.app.session.widgets import carry_out
from dpviz.app.state.values import LEAST_CUT, MOST_CUT
from dpviz.view.basemap import MOST_NORTH, Bounds
from dpviz.view.canvas import Scene
from dpviz.view.deck import BUNDLE, CANVAS_HTML, CANVAS_SCRIPT, CANVAS_STYLE, PARTS_SCRIPT, VERSION
from dpviz.view.escape import html
from dpviz.view.scene_svg import draw_svg

FAILED = "canvas failed"  # key of the session's state: whether the browser cannot draw the canvas
KINDS = ("cell", "area", "end", "arc")
"""What can be clicked."""
_LARGEST = 1e12  # of the numbers that the browser sends
_HERE = Path(__file__).parent
_SCRIPTS = ("history.js", "menu_names.js", "loader.js")
_loader = st.components.v2.component("dpviz_loader", js="".join((_HERE / name).read_text("utf-8") for name in _SCRIPTS))
_panes = st.components.v2.component("dpviz_panes", html=CANVAS_HTML, css=CANVAS_STYLE, js=CANVAS_SCRIPT)
_KEEP = "export default ({ data, parentElement }) => keepPart(data, parentElement);\n"
_part = st.components.v2.component("dpviz_part", js=PARTS_SCRIPT + _KEEP)
_STILL = ":orange[This browser cannot draw maps that move (it has no WebGL, or could not load them): they are shown as pictures.]"


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A rectangle, region or arc that was clicked.

    Attributes:
        pane: number of the pane, 0 for the first.
        kind: "cell" for a rectangle, "area" for a region of the pane's first areas, "end" for one of its second areas, or "arc".
        cell: its place in the order of the pane's rectangles, regions or arcs; None where there is none.
        longitude: of the click, in degrees.
        latitude: of the click, in degrees.
    """

    pane: int
    kind: str
    cell: int | None
    longitude: float
    latitude: float


def load_deck(*, ahead: bool = False) -> None:
    """Give the browser deck.gl: call it once on a page that has a canvas, before anything that may change its place.

    Args:
        ahead: whether the page has no canvas, but the next one may: the browser then loads deck.gl once it has nothing else to do.
    """
    folder = declare_component("deck", path=BUNDLE.parent)  # never shown: it makes Streamlit serve the folder
    address = f"component/{folder.name}/{BUNDLE.name}?{VERSION}"
    _loader(key="canvas loader", data={"address": address, "ahead": ahead})


def canvas_failed() -> bool:
    """Return whether the browser of this session has no WebGL, or could not load deck.gl."""
    return bool(st.session_state.get(FAILED))


def _ignore(_: object) -> None:
    """Take no notice of an event of the map."""


def panes(
    scene: Scene,
    *,
    key: str,
    on_box: Callable[[Bounds], None] = _ignore,
    on_chosen: Callable[[Chosen], None] = _ignore,
    on_camera: Callable[[tuple[float, float, float]], None] = _ignore,
    on_swipe: Callable[[float | None], None] = _ignore,
) -> None:
    """Show a scene. If the browser has no WebGL, or cannot load deck.gl, the page runs again and shows the scene as SVG.

    Args:
        scene: the maps.
        key: of the component, unique in the app.
        on_box: called with west, south, east, north in degrees of a box that was dragged.
        on_chosen: called with the rectangle that was clicked.
        on_camera: called with longitude, latitude and zoom once the map has come to rest.
        on_swipe: called with the position of the swipe bar, None for maps side by side, once it has come to rest.
    """
    if canvas_failed():
        code = base64.b64encode(draw_svg(scene).encode()).decode()
        style = "" if scene.may_save else ";pointer-events:none"  # takes no right click, which would save it
        st.caption(_STILL)
        st.html(
            f'<img class="dpviz-still" style="width:100%{style}" alt="{html(scene.description)}" src="data:image/svg+xml;base64,{code}">'
        )
        return

    def receiver(name: str, read: Callable[[object], Any], use: Callable[[Any], None]) -> Callable[[], None]:
        def receive() -> None:
            if (value := read((st.session_state.get(key) or {}).get(name))) is not None:
                use(value)

        return carry_out(receive)

    def receive_failed() -> None:
        st.session_state[FAILED] = True

    _send_parts(scene, key)
    _panes(
        key=key,
        data=key,
        on_box_change=receiver("box", _read_box, on_box),
        on_chosen_change=receiver("chosen", _read_chosen, on_chosen),
        on_camera_change=receiver("camera", _read_camera, on_camera),
        on_swipe_change=receiver("swipe", _read_swipe, lambda at: on_swipe(at or None)),
        on_failed_change=receive_failed,
    )


def _send_parts(scene: Scene, key: str) -> None:
    """Give the browser the parts of a scene for the canvas with this key."""
    with st.container(key=f"parts of {key}"):
        for name, message in scene.pack(key).items():
            _part(key=f"{key} {name}", data=message)


def _numbers(value: object, size: int) -> list[float] | None:
    """Return `size` finite numbers that the browser sent, none of them huge; None if it sent anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != size:
        return None
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in value):
        return None
    if not all(-_LARGEST <= number <= _LARGEST for number in value):
        return None
    return [float(number) for number in value]


def _read_box(value: object) -> Bounds | None:
    box = _numbers(value, 4)
    if box is None or not (-360 <= box[0] < box[2] <= 360 and -90 <= box[1] < box[3] <= 90):
        return None
    return box[0], box[1], box[2], box[3]


def _read_camera(value: object) -> tuple[float, float, float] | None:
    camera = _numbers([value.get(name) for name in ("longitude", "latitude", "zoom")], 3) if isinstance(value, dict) else None
    if camera is None or not (abs(camera[0]) <= 360 and abs(camera[1]) <= MOST_NORTH and 0 <= camera[2] <= 24):
        return None
    return camera[0], camera[1], camera[2]


def _read_swipe(value: object) -> float | None:
    """Return the position of the swipe bar, 0 for maps side by side; None if the browser sent anything else."""
    swipe = _numbers([value], 1)
    return swipe[0] if swipe is not None and (swipe[0] == 0 or LEAST_CUT <= swipe[0] <= MOST_CUT) else None


def _read_chosen(value: object) -> Chosen | None:
    if not isinstance(value, dict):
        return None
    pane, cell, kind = value.get("pane"), value.get("cell"), value.get("kind")
    place = _numbers([value.get("longitude"), value.get("latitude")], 2)
    if type(pane) is not int or type(cell) is not int or pane < 0 or place is None:  # True is an int, too
        return None
    if kind not in KINDS:
        return None
    return Chosen(pane=pane, kind=str(kind), cell=cell if cell >= 0 else None, longitude=place[0], latitude=place[1])
