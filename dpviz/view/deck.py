"""deck.gl as pydeck brings it, the scripts of the canvas that it draws, and grids of blocks as pictures on a web map."""

from __future__ import annotations

import io
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import pydeck
from numpy.typing import NDArray
from PIL import Image

from dpviz.space.domain import Domain
from dpviz.view.basemap import map_bounds
from dpviz.view.colors import Colors

VERSION: str = pydeck.__version__
BUNDLE = Path(pydeck.__file__).parent / "nbextension" / "static" / "index.js"
"""deck.gl as pydeck brings it: the only thing that is taken from pydeck."""
CANVAS_HTML = """<div class="canvas"><div class="heads"></div>
<div class="map" tabindex="0" role="application" aria-roledescription="map"></div>
<div class="tools" role="toolbar" aria-label="Map tools"></div><div class="live" aria-live="polite"></div></div>"""
CANVAS_STYLE = Path(__file__).with_name("panes.css").read_text("utf-8")
CANVAS_SCRIPT = "".join(Path(__file__).with_name(name).read_text("utf-8") for name in ("panes.js", "trips.js"))
MOST_FEATURES = 20_000  # partitions that are shown at once where nobody chose the level
_PICTURE_ROWS = 1024


@lru_cache(maxsize=1)
def has_hexagon_layer() -> bool:
    """Return whether pydeck's deck.gl can draw H3 cells by their indexes."""
    try:
        return b'"H3HexagonLayer"' in BUNDLE.read_bytes()
    except OSError:
        return False


def draw_picture(domain: Domain, colors: Colors) -> bytes:
    """Draw a grid of blocks as a PNG in the web map's projection.

    Args:
        domain: the public domain, in degrees or on a plain plane.
        colors: (rows, columns, 4) colours of equal blocks, row 0 in the south.
    """
    _, south, _, north = map_bounds(domain)
    shares = _latitude_shares(south, north, max(len(colors), _PICTURE_ROWS))
    image = colors[np.clip(shares * len(colors), 0, len(colors) - 1).astype(np.int64)]
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", compress_level=2)
    return file.getvalue()


def _latitude_shares(south: float, north: float, rows: int) -> NDArray[np.float64]:
    """Compute, for each of the bitmap's rows from the top, its latitude as a share of the range of latitudes from south to north."""
    top, bottom = (math.asinh(math.tan(math.radians(latitude))) for latitude in (north, south))
    middle = top - (np.arange(rows) + 0.5) / rows * (top - bottom)
    return (np.degrees(np.arctan(np.sinh(middle))) - south) / (north - south)
