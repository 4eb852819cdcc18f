"""What maps of regions and of trips consist of: regions, arcs that are faint at the origin and strong at the destination, and texts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.view.basemap import RegionShapes
from dpviz.view.colors import Colors

SMALLEST_POINT, LARGEST_POINT = 3.0, 16.0  # radius in pixels
SMALLEST_DOT, LARGEST_DOT = 1.0, 18.0  # radius in pixels, of dots under arcs
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
        dashed: (k,) whether the interval of the number contains 0.
        origin: (k,) indices of the origins, among the first regions of a map.
        destination: (k,) indices of the destinations, among its last regions.
        texts: of the tooltips.
    """

    color: Colors
    width: Floats
    dashed: Mask
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
        color: (n, 4) red, green, blue, alpha; of the dots where there are some.
        dots: (n,) radii in pixels of dots at the centres; (0,) where the regions themselves are coloured.
        texts: of the tooltips.
    """

    shapes: RegionShapes
    color: Colors
    dots: Floats
    texts: TooltipTexts


def fade_at_origins(colors: Colors) -> Colors:
    """Compute the colours of arcs at their origins: the same colours with a seventh of the alpha."""
    return np.column_stack([colors[:, :3], colors[:, 3] // 7]).astype(np.uint8)


def size_points(size: Floats) -> Floats:
    """Choose the (n,) radii in pixels of coloured points, which are all seen, from (n,) sizes, 0 to 1; smaller where there are many."""
    return fit_points(len(size)) * (SMALLEST_POINT + (LARGEST_POINT - SMALLEST_POINT) * size)


def size_dots(share: Floats) -> Floats:
    """Choose the (n,) radii in pixels of dots under arcs, of areas in proportion to (n,) shares, 0 to 1; smaller where there are many."""
    return np.maximum(fit_points(len(share)) * LARGEST_DOT * np.sqrt(share), SMALLEST_DOT)


def fit_points(number: int) -> float:
    """Choose the factor, at most 1, by which points are smaller where there are many."""
    return math.pow(_FEW_POINTS / max(number, _FEW_POINTS), 0.6)
