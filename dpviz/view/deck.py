"""deck.gl as pydeck brings it, and the scripts of the canvas that it draws."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pydeck

VERSION: str = pydeck.__version__
BUNDLE = Path(pydeck.__file__).parent / "nbextension" / "static" / "index.js"
"""deck.gl as pydeck brings it: the only thing that is taken from pydeck."""
CANVAS_HTML = """<div class="canvas"><div class="heads"></div>
<div class="map" tabindex="0" role="application" aria-roledescription="map"></div>
<div class="tools" role="toolbar" aria-label="Map tools"></div><div class="live" aria-live="polite"></div></div>"""
CANVAS_STYLE = Path(__file__).with_name("panes.css").read_text("utf-8")
PARTS_SCRIPT = Path(__file__).with_name("parts.js").read_text("utf-8")
CANVAS_SCRIPT = "".join(Path(__file__).with_name(name).read_text("utf-8") for name in ("panes.js", "trips.js")) + PARTS_SCRIPT


@lru_cache(maxsize=1)
def has_hexagon_layer() -> bool:
    """Return whether pydeck's deck.gl can draw H3 cells by their indexes."""
    try:
        return b'"H3HexagonLayer"' in BUNDLE.read_bytes()
    except OSError:
        return False
