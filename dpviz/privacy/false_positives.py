"""Post-processing that drops noisy counts whose true count may be 0: by a threshold, or by a list with few false entries."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers
from dpviz.errors import SettingError

_LARGEST_SUMMED_VARIANCE = 400.0  # with more variance, tails are computed by the continuous Gaussian
_LEAST_EXPECTED, _MOST_EXPECTED, _POWER = 0.5, 5_000.0, 0.75  # weights grow with this power of the expected count, cut to these limits


def stddev_threshold(variance: Fraction | float, k: float) -> int:
    """Compute the smallest whole number that is at least k standard deviations.

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
    """Find the smallest threshold with a false discovery rate of at most `rate`.

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
        Benjamini, Hochberg, Journal of the Royal Statistical Society B 57, 1995, Theorem 1. A mechanism that then changes
        the kept counts, so that they add up to a total, holds the rate only roughly.
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


def list_nonzero(noisy: Integers, expected: Floats, variance: float, rate: float, most: int) -> Integers:
    """Choose counts so that, in expectation, at most the share `rate` of those that are chosen have a true count of 0.

    A weighted Benjamini-Hochberg procedure with an estimate of the share of true zeros. Each count x_i is a test of "the true count is
    0", with the p-value p_i = P(noise >= x_i) and a weight w_i > 0, which grows with what coarser counts let expect there; the mean
    of the weights is 1. For m counts, let

        pi0 = (max w + sum of all w_i with p_i > 1/2) / (m / 2).

    The list has the k counts with the smallest p_i / w_i, for the largest k <= `most` whose k-th smallest p_i / w_i is at most rate k /
    (m pi0); counts with p_i > 1/2 do not take part.

    Proof: the weights and `most` depend on other noise than that of the counts. Given these, the p_i are independent, and for a true zero
    P(p_i <= t) <= t and P(p_i > 1/2) >= 1/2, since the noise is whole and symmetric. Take one true zero i, and let k_i and z_i be the
    length of the list and pi0 if p_i were 0; both are functions of the other p_j alone. If i is on the list, the list has length k_i and
    pi0 = z_i: lowering p_i to 0 changes neither pi0 nor any condition for ranks from k on. So i is on the list only if p_i <= w_i rate k_i
    / (m z_i), and E[1(i is listed) / k] <= w_i rate / m E[1 / z_i]. The expected share of true zeros is the sum of this over the true
    zeros, and it remains to show that the sum of w_i E[1 / z_i] is at most m. Let B_j say whether p_j > 1/2, and S be the sum of w_j B_j
    over the true zeros. Then z_i m / 2 >= w_i + S - w_i B_i, and since B_i is independent of the others, E[w_i / (w_i + S - w_i B_i)] =
    E[w_i B_i / S] / P(B_i = 1) <= 2 E[w_i B_i / S], with 0 / 0 = 0. The sum over i is at most 2 P(S > 0) <= 2. The estimate must not be
    capped at 1: on a tree of a few empty counts the cap breaks this inequality.

    Args:
        noisy: (m,) counts with independent discrete Gaussian noise.
        expected: (m,) what to expect of each count, of at least 0, from other noisy numbers.
        variance: the parameter of the noise.
        rate: the bound of the expected share of true zeros on the list, above 0 and below 1.
        most: the longest list, independent of the noise of `noisy`.

    Returns:
        (k,) indices of the counts on the list, ascending.

    Raises:
        SettingError: a rate out of range.

    Source:
        Genovese, Roeder, Wasserman, Biometrika 93, 2006 (weights); Storey, Taylor, Siegmund, JRSS B 66, 2004, and Habiger, 2014
        (estimate of the share of true zeros, with weights). The weights' formula is our own.

    >>> list_nonzero(np.array([90, -3, 2, 1]), np.array([50.0, 1, 1, 1]), 16.0, 0.05, most=4).tolist()
    [0]
    """
    if not 0 < rate < 1:
        raise SettingError("The false discovery rate must be above 0 and below 1.")
    size = len(noisy)
    if not size:
        return np.zeros(0, np.int64)
    weight = np.clip(expected, _LEAST_EXPECTED, _MOST_EXPECTED) ** _POWER
    weight /= weight.mean()
    tail = gaussian_tail(noisy, variance)
    share_of_zeros = (weight.max() + weight[noisy <= 0].sum()) / (size / 2)
    candidates = np.flatnonzero(noisy > 0)
    scaled = tail[candidates] / weight[candidates]
    order = np.argsort(scaled, kind="stable")[: max(most, 0)]
    ranks = np.arange(1, len(order) + 1)
    small_enough = np.flatnonzero(scaled[order] <= rate * ranks / (size * share_of_zeros))
    return np.sort(candidates[order[: small_enough[-1] + 1]]) if len(small_enough) else np.zeros(0, np.int64)


def gaussian_tail(values: Integers, variance: float) -> Floats:
    """Compute P(noise >= value) of discrete Gaussian noise for each of (k,) values.

    For variances up to 400 the probabilities are summed. Above 400, the tail of the continuous Gaussian from value - 1/2 is used, raised
    by 1 / (12 variance) of itself so that it is never below the sum: by the midpoint rule it is at most 1 / (24 variance) too small.

    Args:
        values: (k,) whole numbers.
        variance: the parameter of the distribution.

    Returns:
        (k,) probabilities.
    """
    if variance > _LARGEST_SUMMED_VARIANCE:
        return np.asarray(scipy.special.ndtr(-(values - 0.5) / np.sqrt(variance)) * (1 + 1 / (12 * variance)))
    reach = int(40 * np.sqrt(variance)) + 2
    weight = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    tail = np.cumsum((weight / weight.sum())[::-1])[::-1]
    index = values + reach
    return np.where(index < len(tail), tail[np.clip(index, 0, len(tail) - 1)], 0.0)
