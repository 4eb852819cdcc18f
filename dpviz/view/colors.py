"""Colours that mean the same everywhere, and scales from numbers to colours with their legends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats

Colors = NDArray[np.uint8]

ACCENT = "#0b6e8f"
FALSE_POSITIVE = (213, 94, 0)
FALSE_NEGATIVE = (0, 114, 178)
DECLARED_FILL = {False: (11, 110, 143, 40), True: (79, 176, 206, 55)}  # of declared regions, on light and on dark pages
PAPER = {False: (255, 255, 255), True: (16, 21, 24)}  # under maps, on light and on dark pages: what is pale tends to it

DENSITY = np.array(
    [
        (253, 245, 208),
        (230, 234, 146),
        (164, 214, 104),
        (72, 182, 108),
        (0, 148, 134),
        (0, 116, 160),
        (20, 76, 162),
        (30, 38, 120),
        (16, 12, 56),
    ]
)
"""Of densities and counts, from few to many: sand, green, teal, ink. Lightness falls for every kind of colour vision; no step is grey."""
ERRORS = np.array([(255, 240, 232), (254, 204, 178), (246, 152, 126), (226, 92, 92), (186, 40, 78), (130, 12, 68), (74, 4, 44)])
"""Of errors without a sign, measured or expected, from small to large: rose to wine."""
_BELOW_ZERO = {
    False: np.array([(255, 214, 246), (250, 150, 236), (250, 120, 235)]),
    True: np.array([(245, 110, 225), (250, 130, 232), (250, 150, 236)]),
}
"""On light and on dark pages; lighter than the blues of densities, so that they differ without colour vision for red."""
_ORANGES = np.array([(253, 208, 162), (230, 130, 50), (140, 50, 4)])
_BLUES = np.array([(222, 235, 247), (107, 174, 214), (8, 69, 148)])
_BUSIER = {
    False: np.array([(253, 208, 162), (230, 130, 50), (140, 50, 4)]),
    True: np.array([(150, 84, 30), (226, 128, 48), (255, 176, 84)]),
}
_QUIETER = {
    False: np.array([(218, 218, 235), (128, 105, 190), (63, 0, 125)]),
    True: np.array([(84, 60, 140), (132, 98, 214), (190, 160, 255)]),
}
"""Of ratios above and below 1, on light and on dark pages, where the strongest are the lightest."""
TOP_QUANTILE = 0.995
_LEAST_TOP = 1e-300
_PALE, _PALE_RATIO = 0.4, 0.16  # of the colour itself, where something is pale


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A colour scale: numbers to colours, with its legend. Its colours are opaque: what lies under them does not change what they mean.

    Attributes:
        kind: "density" (`DENSITY` by the square root, magenta below zero), "error" (`ERRORS` in the same way), "signed" (orange to blue
            through zero, which is like paper), "ratio" (purple to orange in the same way, for logarithms) or "marks" (values 0 for
            correct, 1 for a false positive, 2 for a false negative).
        top: the value from which on the colour is the strongest; above 0.
        title: what is shown, with its unit.
        dark: whether the page is dark; densities and errors are then reversed, so that large values stand out.
    """

    kind: str
    top: float
    title: str
    dark: bool = False

    @property
    def goes_below(self) -> bool:
        """Whether numbers below zero are as usual as those above."""
        return self.kind in ("signed", "ratio")

    def colors(self, values: ArrayLike) -> Colors:
        """Convert values to colours.

        Args:
            values: (k,) numbers; of the kind "marks" 0, 1 and 2.

        Returns:
            (k, 4) red, green, blue, alpha, 0 to 255; alpha is 255.

        >>> Scale(kind="density", top=9.0, title="people per km²").colors([0, 9]).tolist()
        [[253, 245, 208, 255], [16, 12, 56, 255]]
        """
        values = np.asarray(values, np.float64)
        if self.kind == "marks":
            return _opaque(np.array([PAPER[self.dark], FALSE_POSITIVE, FALSE_NEGATIVE], np.float64)[values.astype(np.int64)])
        strength = np.sqrt(np.minimum(np.abs(values) / self.top, 1.0))
        above = {"density": DENSITY, "error": ERRORS, "signed": _BLUES, "ratio": _BUSIER[self.dark]}[self.kind]
        below = {"signed": _ORANGES, "ratio": _QUIETER[self.dark]}.get(self.kind, _BELOW_ZERO[self.dark])
        if self.dark and not self.goes_below:
            above = above[::-1]
        mixed = np.where((values < 0)[:, None], _interpolate(below, strength), _interpolate(above, strength))
        if self.goes_below:
            mixed = self._on_paper(mixed, 0.08 + 0.84 * np.minimum(1.6 * strength, 1.0))
        return _opaque(mixed)

    def make_pale(self, colors: Colors) -> Colors:
        """Return (k, 4) colours in pale, for what may be nothing: nearer to the paper, so that tone and hue are still seen."""
        return _opaque(
            self._on_paper(colors[:, :3].astype(np.float64), np.full(len(colors), _PALE_RATIO if self.kind == "ratio" else _PALE))
        )

    def _on_paper(self, colors: Floats, share: Floats) -> Floats:
        """Mix (k, 3) colours with the paper under the map, by (k,) shares of their own, 0 to 1."""
        paper = np.array(PAPER[self.dark])
        return np.asarray(paper + share[:, None] * (colors - paper))


def occupied_top(density: ArrayLike, area: ArrayLike | None = None, *, quantile: float = TOP_QUANTILE) -> float:
    """Choose the top of a scale of densities or counts: the 99.5 % point of what is above 0, rounded up to two digits.

    Empty parts do not count: where most of a map is empty, they would take the whole scale. Of public data it can be taken from them, so
    that it stays whatever is released; else from released numbers.

    Args:
        density: (k,) of the parts that are shown, in any unit; those at or below 0 and those that are not finite are empty.
        area: (k,) of the parts: the share is that of the occupied area, since a tiny part may be dense by noise alone; None for equal ones.
        quantile: the share of what is occupied that the scale tells apart; more has the strongest colour.

    Returns:
        A number above 0; 1 if no part is occupied.

    >>> occupied_top([0, 0, 0, 10, 20, 213.4])
    220.0
    """
    values = np.asarray(density, np.float64)
    weights = np.ones(values.shape) if area is None else np.asarray(area, np.float64)
    occupied = np.isfinite(values) & (values > _LEAST_TOP) & (weights > 0)
    if not occupied.any():
        return 1.0
    top = float(np.quantile(values[occupied], quantile, weights=weights[occupied], method="inverted_cdf"))
    step = 10.0 ** (np.floor(np.log10(top)) - 1)
    return float(f"{np.ceil(round(top / step, 6)) * step:.3g}")


def scale_top_of(values: ArrayLike, *, quantile: float = TOP_QUANTILE) -> float:
    """Choose the top of a scale for released values: a high percentile of them, rounded up to 1, 2 or 5 times a power of ten.

    Args:
        values: (k,) released values.
        quantile: the share of the values that the scale tells apart; larger ones have the strongest colour.

    Returns:
        A number above 0; 1 if no value is above 0.
    """
    sizes = np.abs(np.asarray(values, np.float64))
    sizes = sizes[np.isfinite(sizes)]
    largest = float(np.quantile(sizes, quantile, method="inverted_cdf")) if len(sizes) else 0.0
    if not largest > _LEAST_TOP:
        return 1.0
    power = 10.0 ** np.floor(np.log10(largest))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= largest))


def _opaque(colors: Floats) -> Colors:
    return np.column_stack([np.rint(colors), np.full(len(colors), 255)]).astype(np.uint8)


def _interpolate(colors: NDArray[np.int64], strength: Floats) -> Floats:
    position = strength * (len(colors) - 1)
    return np.stack([np.interp(position, np.arange(len(colors)), colors[:, channel]) for channel in range(3)], axis=-1)
