"""95 % intervals of released counts: how wide they are by the kind of noise, for one number or for many at once, and where they end."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.privacy.receipt import Receipt

Noise = Literal["laplace", "gaussian"]
"""The kind of noise on counts: discrete Laplace, or discrete Gaussian."""
MISS_PROBABILITY = 0.05
"""The largest probability that an interval, or any of several that hold at once, misses the number that was counted."""
STDDEVS: dict[Noise, float] = {"laplace": math.log(1 / MISS_PROBABILITY) / math.sqrt(2), "gaussian": 1.959963984540054}
"""Half the width of an interval of one number, in standard deviations of its noise."""


def noise_of(receipt: Receipt) -> Noise:
    """Return the kind of noise on the counts of a release: Gaussian if any step drew it."""
    return "gaussian" if any("Gaussian" in step.noise for step in receipt.steps) else "laplace"


def half_widths(noise: Noise, stddev: Floats, numbers: int = 1) -> Floats:
    """Compute the half widths of intervals, of one number or of N = `numbers` numbers at once by Bonferroni.

    With Laplace noise the half width of N numbers is ln(N / 0.05) / epsilon, where epsilon follows from the standard deviation
    1 / (sqrt(2) sinh(epsilon / 2)). If the ends are rounded outwards, one count is outside with probability at most 0.05 / N. For sums
    of such counts these intervals are wider than necessary. Gaussian noise is taken as normal, which is too narrow for many numbers at once
    where its standard deviation is below about one record.

    Args:
        noise: the kind of noise.
        stddev: (k,) standard deviations; NaN where none is stated.
        numbers: N, how many numbers a reader can choose from; 1 for a number that was chosen without looking at the counts.

    Returns:
        (k,) half widths, not yet rounded.
    """
    if numbers == 1:
        return np.asarray(STDDEVS[noise] * stddev)
    if noise == "gaussian":
        return np.asarray(stddev * float(scipy.special.ndtri(1 - MISS_PROBABILITY / (2 * numbers))))
    scale = 0 * stddev  # NaN stays
    noisy = stddev > 0
    scale[noisy] = 0.5 / np.arcsinh(1 / (math.sqrt(2) * stddev[noisy]))
    return np.asarray(scale * math.log(numbers / MISS_PROBABILITY))


def add_skewness(half_width: Floats, stddev: Floats, skewness: Floats) -> Floats:
    """Widen the upper half of intervals for errors that are skewed to the right, by the first term of the Cornish-Fisher expansion.

    The quantile z of a normal error becomes z + (z**2 - 1) s / 6, in standard deviations, where s is the skewness.

    Args:
        half_width: (k,) z times the standard deviation.
        stddev: (k,) standard deviations.
        skewness: (k,) of at least 0.

    Returns:
        (k,) distances from the centre to the upper end, not yet rounded.

    Source:
        Cornish, Fisher, "Moments and cumulants in the specification of distributions", Revue de l'Institut International de Statistique
        5, 1938.

    >>> add_skewness(np.array([20.0]), np.array([10.0]), np.array([1.0])).tolist()
    [25.0]
    """
    squared = np.divide(half_width**2, stddev, out=np.zeros_like(stddev), where=stddev > 0)
    return np.asarray(half_width + np.maximum(squared - stddev, 0.0) * skewness / 6)


def count_ends(centre: NDArray[Any], half_width: Floats, upper: Floats | None = None) -> tuple[Floats, Floats]:
    """Compute the ends of intervals of counts: rounded outwards to whole numbers, and cut at 0, since no count is below it.

    Args:
        centre: (k,) counts.
        half_width: (k,) of the intervals, from `half_widths`; NaN where none is known.
        upper: (k,) distances to the upper ends; the half widths if None.

    Returns:
        (k,) lower and (k,) upper ends; NaN stays.
    """
    above = half_width if upper is None else upper
    return np.maximum(np.floor(centre - half_width), 0.0), np.maximum(np.ceil(centre + above), 0.0)
