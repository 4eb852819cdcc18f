"""Interactive maps as whole HTML pages, for notebooks and files: the canvas, its library and the data are in the page, which loads nothing.

Where there is no WebGL, and in print, the page shows the same scene as SVG.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from functools import cache

from dpviz.cards import MapPage
from dpviz.privacy.receipt import PRIVATE
from dpviz.release.base import Level, NoisyRelease
from dpviz.view.deck import BUNDLE, CANVAS_HTML, CANVAS_SCRIPT, CANVAS_STYLE
from dpviz.view.levels import make_map
from dpviz.view.report import load_template
from dpviz.view.scene_svg import draw_svg

HEIGHT = 420
"""About the height of a map in a notebook, in pixels."""


def explore(release: NoisyRelease, level: Level | None = None) -> MapPage:
    """Make an interactive map of a level.

    Args:
        release: of any family.
        level: number or name; None for the finest one that is not mostly noise.

    Raises:
        DomainError: no such level, regions without geometry, or a family without maps.
    """
    scene, note = make_map(release, level, dark=False, height=HEIGHT)
    scene = replace(scene, may_save=True, stamp="" if release.status == PRIVATE else f"{release.status}. Not for publication.")
    page = load_template("explore.html.jinja").render(
        description=scene.description,
        note=note,
        status=scene.stamp,
        outlines=bool(scene.ground["land"]),
        canvas=CANVAS_HTML,
        style=CANVAS_STYLE,
        script=CANVAS_SCRIPT.replace("export default ", "", 1),
        still=draw_svg(scene),
        messages=[base64.b64encode(message).decode() for message in scene.pack().values()],
        library=_pack_library(),
    )
    return MapPage(html=page, description=scene.description)


@cache
def _pack_library() -> str:
    """Pack deck.gl, as pydeck brings it: gzip in base64, a third of its size, which the page unpacks."""
    return base64.b64encode(gzip.compress(BUNDLE.read_bytes(), mtime=0)).decode()
