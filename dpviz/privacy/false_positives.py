"""Thresholds below which a noisy count is dropped, because the true count is probably 0. This is post-processing of noisy counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers
from dpviz.errors import SettingError

_LARGEST_SUMMED_VARIANCE = 400.0


def stddev_threshold(variance: Fraction | float, k: float) -> int:
    """The smallest whole number that is at least k standard deviations.

    Args:
        variance: the variance of the noise.
        k: the number of standard deviations, finite, at least 0.

    Raises:
        SettingError: k is out of range.
    """
    if not 0 <= k < np.inf:
        raise SettingError("The threshold must be a number of standard deviations, at least 0.")
    return int(np.ceil(k * np.sqrt(float(variance))))


def discovery_threshold(noisy: Integers, variance: Fraction | float, rate: float) -> int:
    """The smallest threshold with a false discovery rate of at most `rate`.

    Each noisy count is a test of the hypothesis "the true count is 0". The p-values are tail probabilities of the noise, and are
    independent because the noise is. In expectation, at most the share `rate` of the kept counts have a true count of 0.

    Args:
        noisy: (n,) counts with discrete Gaussian noise.
        variance: the parameter of the noise's distribution.
        rate: the false discovery rate, above 0 and below 1.

    Returns:
        A threshold t >= 1: counts of at least t are kept. It is larger than every count if none can be kept.

    Raises:
        SettingError: the rate is out of range.

    Source:
        Benjamini, Hochberg, Journal of the Royal Statistical Society B 57, 1995, Theorem 1. The mechanism then projects the kept
        counts onto their parent's total, which drops some more of them; so in its release the rate holds only roughly.
    """
    if not 0 < rate < 1:
        raise SettingError("The false discovery rate must be above 0 and below 1.")
    if not len(noisy):
        return 1
    values, repetitions = np.unique(noisy[noisy > 0], return_counts=True)
    kept_counts = np.cumsum(repetitions[::-1])[::-1]
    significant = gaussian_tail(values, float(variance)) * len(noisy) <= rate * kept_counts
    if not significant.any():
        return int(noisy.max()) + 1 if noisy.max() > 0 else 1
    return int(values[np.argmax(significant)])


def gaussian_tail(values: Integers, variance: float) -> Floats:
    """(k,) P(noise >= value) of discrete Gaussian noise.

    For variances up to 400 the probabilities are summed. Above 400, the tail of the continuous Gaussian from value - 1/2 is used.

    Args:
        values: (k,) whole numbers.
        variance: the parameter of the distribution.
    """
    if variance > _LARGEST_SUMMED_VARIANCE:
        return np.asarray(scipy.special.ndtr(-(values - 0.5) / np.sqrt(variance)))
    reach = int(40 * np.sqrt(variance)) + 2
    weight = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    tail = np.cumsum((weight / weight.sum())[::-1])[::-1]
    index = values + reach
    return np.where(index < len(tail), tail[np.clip(index, 0, len(tail) - 1)], 0.0)
