"""Which noisy counts are too small to be believed: the false-positive dial, pure post-processing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers
from dpviz.errors import SettingError

_SUMMED_VARIANCE = 400.0


def dial_threshold(variance: Fraction | float, k: float) -> int:
    """The least whole number that is at least k standard deviations.

    Raises:
        SettingError: k is negative or not finite.
    """
    if not 0 <= k < np.inf:
        raise SettingError("The dial must be a number of standard deviations, at least 0.")
    return int(np.ceil(k * np.sqrt(float(variance))))


def discovery_threshold(noisy: Integers, variance: Fraction | float, rate: float) -> int:
    """The least threshold under which, in expectation, at most `rate` of what stays is noise around a true 0.

    Each noisy count is tested against "the true count is 0"; the p-values are exact tails of the noise, and
    independent, since the noise is.

    Args:
        noisy: (n,) counts with discrete Gaussian noise.
        variance: of the noise, as the law's parameter.
        rate: the false discovery rate aimed at, above 0 and below 1.

    Returns:
        A threshold t >= 1: counts of at least t stay. Larger than every count where none can stay.

    Raises:
        SettingError: a rate out of range.

    Source:
        Benjamini, Hochberg, Journal of the Royal Statistical Society B 57, 1995, Theorem 1. What follows (the projection)
        keeps it only roughly: it drops some of what stays.
    """
    if not 0 < rate < 1:
        raise SettingError("The false discovery rate must be above 0 and below 1.")
    if not len(noisy):
        return 1
    values, number = np.unique(noisy[noisy > 0], return_counts=True)
    staying = np.cumsum(number[::-1])[::-1]
    believed = gaussian_tail(values, float(variance)) * len(noisy) <= rate * staying
    if not believed.any():
        return int(noisy.max()) + 1 if noisy.max() > 0 else 1
    return int(values[np.argmax(believed)])


def gaussian_tail(values: Integers, variance: float) -> Floats:
    """(k,) P(noise >= value) of discrete Gaussian noise; summed for small variances, else a continuous tail half a step below."""
    if variance > _SUMMED_VARIANCE:
        return np.asarray(scipy.special.ndtr(-(values - 0.5) / np.sqrt(variance)))
    reach = int(40 * np.sqrt(variance)) + 2
    weight = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    tail = np.cumsum((weight / weight.sum())[::-1])[::-1]
    place = values + reach
    return np.where(place < len(tail), tail[np.clip(place, 0, len(tail) - 1)], 0.0)
