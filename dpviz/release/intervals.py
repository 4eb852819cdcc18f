"""95 % intervals of released counts: how wide they are by the kind of noise, for one number or for many at once, and where they end."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.privacy.false_positives import gaussian_tail
from dpviz.privacy.noise import gaussian_variance
from dpviz.privacy.receipt import Receipt

Noise = Literal["laplace", "gaussian"]
"""The kind of noise on counts: discrete Laplace, or discrete Gaussian."""
MISS_PROBABILITY = 0.05
"""The largest probability that an interval, or any of several that hold at once, misses the number that was counted."""
STDDEVS: dict[Noise, float] = {"laplace": math.log(1 / MISS_PROBABILITY) / math.sqrt(2), "gaussian": 1.959963984540054}
"""Half the width of an interval of one number, in standard deviations of its noise."""
ASSUMED = "about 95 %, under an assumption on what lies inside partitions"
NONE_TO_ALL = "95 %, from none to all of what is cut"
"""What pages and files say of the interval of a box that cuts partitions: `PointRelease.says_of_cut_boxes` has the one that holds."""
_EQUAL_VARIANCE = 9.0  # from here on, the variance of discrete Gaussian noise is its parameter up to rounding
OF_RELEASED_PAIRS = (
    "Each interval holds at the level 1 - 0.05 R / m, where R of the m possible pairs of a level are released: on average at least 95 % of"
    " the intervals of released pairs contain the true number, although pairs are released because of their noise."
)
"""What files, manifests, reports, notebooks and pages say of the intervals of pairs."""
NO_UPPER_ENDS = (
    "missing for larger regions, whose numbers are sums that lack the pairs that were left out, and so may be too low by any number."
)
"""Why numbers of trips have no upper ends."""
MADE: dict[Noise, str] = {
    "laplace": "{centre} ± ln(20) / √2 ≈ 2.12 stddev, rounded outwards and not under 0.",
    "gaussian": "{centre} ± 1.96 stddev, rounded outwards and not under 0. Those that hold at once take tails as normal: they miss more"
    " often than stated where stddev is below about 1.",
}
"""How manifests say that intervals around a column are made."""
COVERS = "Covers the noise only: neither what is assumed inside partitions nor what was wrong in the data."


def noise_of(receipt: Receipt) -> Noise:
    """Return the kind of noise on the counts of a release: Gaussian if any step drew it."""
    return "gaussian" if any("Gaussian" in step.noise for step in receipt.steps) else "laplace"


def half_widths(noise: Noise, stddev: Floats, numbers: int = 1) -> Floats:
    """Compute the half widths of intervals, of one number or of N = `numbers` numbers at once by Bonferroni.

    With Laplace noise the half width of N numbers is ln(N / 0.05) / epsilon, where epsilon follows from the standard deviation
    1 / (sqrt(2) sinh(epsilon / 2)). If the ends are rounded outwards, one count is outside with probability at most 0.05 / N. Sums of
    such counts, as all best estimates are, have lighter tails: 2.12 standard deviations are exceeded with probability 0.05 by one Laplace
    number, 0.045 by the sum of two, and 0.034 in the limit. Gaussian noise is taken as normal, which is too narrow for many numbers at once
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


def half_widths_of_released(noise: Noise, stddev: Floats, released: int, possible: int) -> Floats:
    """Compute the half widths of intervals of R = `released` of m = `possible` whole numbers, which were chosen by their noise.

    Each is the least whole r that discrete noise X exceeds with P(abs(X) > r) <= 0.05 R / m, and nothing wider. Then, in expectation, at
    most 5 % of the R intervals miss (the false coverage rate; no released number counts as no miss). That is proved for numbers with
    independent noise, each released by a rule for which R does not depend on its own noise as long as it is released. It was measured for
    best estimates and for what fits, lists and thresholds choose: `tests/benchmarks/test_coverage.py` prints how often intervals hold.

    Args:
        noise: the kind of noise.
        stddev: (k,) standard deviations; NaN where none is stated.
        released: R, how many of the m numbers are released.
        possible: m, how many could be released, those whose noise was never drawn included.

    Returns:
        (k,) half widths, whole numbers.

    Source:
        Benjamini, Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected parameters", JASA 100, 2005,
        Section 3.1 and Theorem 1.

    >>> [half_widths_of_released("gaussian", np.array([10.0]), released, 1000).tolist() for released in (1000, 50, 1)]
    [[20.0], [30.0], [41.0]]
    """
    miss = MISS_PROBABILITY * max(released, 1) / possible
    sizes, index = np.unique(stddev, return_inverse=True)
    reach = _laplace_reach if noise == "laplace" else _gaussian_reach
    return np.array([reach(size, miss) if size > 0 else 0 * size for size in sizes.tolist()])[index]


def _laplace_reach(stddev: float, miss: float) -> float:
    """Find the least whole r that discrete Laplace noise exceeds, on either side, with a probability of at most `miss`."""
    rate = 2 * math.asinh(1 / (math.sqrt(2) * stddev))
    return float(max(math.ceil(math.log(2 / (miss * (1 + math.exp(-rate)))) / rate - 1), 0))


def _gaussian_reach(stddev: float, miss: float) -> float:
    """Find the least whole r that discrete Gaussian noise exceeds, on either side, with a probability of at most `miss`."""
    if stddev**2 <= miss:  # noise that is not 0 is at least 1, so that its probability is at most the variance
        return 0.0
    parameter = _find_parameter(stddev**2)
    near = max(math.floor(-stddev * float(scipy.special.ndtri(miss / 2))) - 2, 0) + np.arange(8)
    return float(near[np.argmax(2 * gaussian_tail(near + 1, parameter) <= miss)])


@lru_cache(maxsize=4096)
def _find_parameter(variance: float) -> float:
    """Find the parameter of discrete Gaussian noise with a variance."""
    if variance >= _EQUAL_VARIANCE:
        return variance
    return float(scipy.optimize.brentq(lambda parameter: gaussian_variance(parameter) - variance, 0.01, variance + 1))


def count_ends(centre: NDArray[Any], half_width: Floats) -> tuple[Floats, Floats]:
    """Compute the ends of intervals of counts: rounded outwards to whole numbers, and cut at 0, since no count is below it.

    Args:
        centre: (k,) counts.
        half_width: (k,) of the intervals, from `half_widths`; NaN where none is known.

    Returns:
        (k,) lower and (k,) upper ends; NaN stays.
    """
    return np.maximum(np.floor(centre - half_width), 0.0), np.maximum(np.ceil(centre + half_width), 0.0)
