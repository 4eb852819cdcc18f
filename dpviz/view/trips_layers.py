"""What maps of regions and of trips consist of: regions, arcs that are faint at the origin and strong at the destination, and texts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.view.basemap import RegionShapes
from dpviz.view.colors import Colors

SMALLEST_POINT, LARGEST_POINT = 3.0, 16.0  # radius in pixels
_FEW_POINTS = 300  # with more points each is smaller


@dataclass(frozen=True, kw_only=True)
class TooltipTexts:
    """Texts of tooltips, one per object, without markup; names must have passed `escape.deck`.

    Attributes:
        title: names of the objects.
        text: released numbers, one a line.
        truth: sentences with true numbers; None where the truth must not be shown.
    """

    title: list[str]
    text: list[str]
    truth: list[str] | None

    def lines(self) -> list[str]:
        """Write each object's texts as one, in lines."""
        truth = [""] * len(self.title) if self.truth is None else [f"\n{text}" for text in self.truth]
        return [f"{title}\n{text}{true}" for title, text, true in zip(self.title, self.text, truth, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Arcs:
    """Arcs from the centre of one region to that of another; later ones are drawn over earlier ones.

    Attributes:
        color: (k, 4) red, green, blue, alpha at the destinations.
        width: (k,) pixels, at most 25.
        origin: (k,) indices of the origins, among the first regions of a map.
        destination: (k,) indices of the destinations, among its last regions.
        texts: of the tooltips.
    """

    color: Colors
    width: Floats
    origin: Integers
    destination: Integers
    texts: TooltipTexts

    @property
    def start_color(self) -> Colors:
        """(k, 4) the colours at the origins."""
        return fade_at_origins(self.color)


@dataclass(frozen=True, kw_only=True)
class Areas:
    """The look of the regions of a level.

    Attributes:
        shapes: polygons or centres.
        color: (n, 4) red, green, blue, alpha.
        size: (n,) 0 to 1, for the radius of regions that are drawn as points.
        texts: of the tooltips.
    """

    shapes: RegionShapes
    color: Colors
    size: Floats
    texts: TooltipTexts


def fade_at_origins(colors: Colors) -> Colors:
    """Compute the colours of arcs at their origins: the same colours with a seventh of the alpha."""
    return np.column_stack([colors[:, :3], colors[:, 3] // 7]).astype(np.uint8)


def choose_radius(areas: Areas) -> Floats:
    """Choose the (n,) radii of points in pixels; smaller where there are many points."""
    factor = math.pow(_FEW_POINTS / max(len(areas.size), _FEW_POINTS), 0.6)
    return factor * (SMALLEST_POINT + (LARGEST_POINT - SMALLEST_POINT) * areas.size)
