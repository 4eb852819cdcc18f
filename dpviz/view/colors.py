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

_CIVIDIS = np.array(
    [
        (0, 34, 78),
        (18, 53, 112),
        (59, 73, 108),
        (87, 93, 109),
        (112, 113, 115),
        (138, 134, 120),
        (165, 156, 116),
        (195, 179, 105),
        (225, 204, 85),
        (254, 232, 56),
    ]
)
_BELOW_ZERO = np.array(
    [(250, 195, 240), (240, 105, 225), (215, 0, 195)]
)  # lighter than the dark blue of cividis, so that they differ without colour vision for red
_ORANGES = np.array([(253, 208, 162), (230, 130, 50), (140, 50, 4)])
_BLUES = np.array([(222, 235, 247), (107, 174, 214), (8, 69, 148)])
_TOP_QUANTILE = 0.995


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A colour scale: numbers to colours, with its legend.

    Attributes:
        kind: "density" (cividis, square root, faint at zero, magenta below), "signed" (orange to blue through zero)
            or "marks" (values 0 for correct, 1 for a false positive, 2 for a false negative).
        top: the value from which on the colour is the strongest; above 0.
        title: what is shown, with its unit.
        dark: whether the page is dark; the density scale is then reversed, so that large values stand out.
    """

    kind: str
    top: float
    title: str
    dark: bool = False

    def colors(self, values: ArrayLike) -> Colors:
        """Convert values to colours.

        Args:
            values: (k,) numbers; of the kind "marks" 0, 1 and 2.

        Returns:
            (k, 4) red, green, blue, alpha, 0 to 255.
        """
        values = np.asarray(values, np.float64)
        if self.kind == "marks":
            faint = (128, 128, 128, 25)
            return np.array([faint, (*FALSE_POSITIVE, 215), (*FALSE_NEGATIVE, 200)], np.uint8)[values.astype(np.int64)]
        strength = np.sqrt(np.minimum(np.abs(values) / self.top, 1.0))
        density = _CIVIDIS if self.dark else _CIVIDIS[::-1]
        above, below = (_BLUES, _ORANGES) if self.kind == "signed" else (density, _BELOW_ZERO)
        mixed = np.where((values < 0)[:, None], _interpolate(below, strength), _interpolate(above, strength))
        alpha = 20 + 215 * np.minimum(1.6 * strength, 1.0)
        return np.column_stack([mixed, alpha]).astype(np.uint8)


def scale_top_of(values: ArrayLike, weights: ArrayLike | None = None, *, quantile: float = _TOP_QUANTILE) -> float:
    """Choose the top of a scale for released values: a high percentile of them, rounded up to 1, 2 or 5 times a power of ten.

    Args:
        values: (k,) released values.
        weights: (k,) the area of the map that each value covers; None for equal weights.
        quantile: the share of the values that the scale tells apart; larger ones have the strongest colour.

    Returns:
        A number above 0; 1 if no value is above 0.
    """
    sizes = np.abs(np.asarray(values, np.float64))
    areas = np.ones(sizes.shape) if weights is None else np.asarray(weights, np.float64)
    usable = np.isfinite(sizes) & (areas > 0)
    if not usable.any():
        return 1.0
    largest = float(np.quantile(sizes[usable], quantile, weights=areas[usable], method="inverted_cdf"))
    if not largest > 1e-300:
        return 1.0
    power = 10.0 ** np.floor(np.log10(largest))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= largest))


def _interpolate(colors: NDArray[np.int64], strength: Floats) -> Floats:
    position = strength * (len(colors) - 1)
    return np.stack([np.interp(position, np.arange(len(colors)), colors[:, channel]) for channel in range(3)], axis=-1)
