"""Simultaneous confidence intervals: they hold for all numbers of a release together, and so also for the largest of them."""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

MISS_PROBABILITY = 0.05
"""The largest probability that any of the intervals misses the number that was counted."""


def count_of_numbers(release: Release | FlowRelease) -> int:
    """Count the numbers, N, that a reader can choose from: for points all measured or released ones, for trips all possible pairs."""
    if isinstance(release, FlowRelease):
        return sum(release.tree.size(stage) for stage in range(release.tree.height + 1))
    return max(len(release.tree), sum(step.counts or 0 for step in release.receipt.steps))


def point_intervals(release: Release, nodes: Integers) -> tuple[Floats, Floats]:
    """Compute intervals for counts of nodes. With probability at least 0.95, they hold for all numbers of the release together.

    By Bonferroni, each interval misses with probability at most 0.05 / N. They cover the noise only. The narrower intervals of
    `Release.interval` hold for a node that was chosen without looking at the counts.

    Args:
        release: of points.
        nodes: (k,) any nodes; they may have been chosen by their counts.

    Returns:
        (k,) lower and (k,) upper ends, whole numbers.
    """
    centre = release.count if release.unbiased is None else release.unbiased
    reach = laplace_reach(release.stddev[nodes], count_of_numbers(release))
    return np.floor(centre[nodes] - reach), np.ceil(centre[nodes] + reach)


def pair_intervals(release: FlowRelease, stage: int) -> tuple[Floats, Floats]:
    """Compute intervals for the released pairs of a stage, as `point_intervals` does for nodes.

    Args:
        release: of trips.
        stage: 0 to T.

    Returns:
        (k,) lower and (k,) upper ends in the order of `release.stages[stage]`, whole numbers of at least 0.
    """
    stddev, numbers = release.stddev(stage), count_of_numbers(release)
    laplace = any("Laplace" in step.noise for step in release.receipt.steps)
    reach = laplace_reach(stddev, numbers) if laplace else gaussian_reach(stddev, numbers)
    centre = release.stages[stage].noisy
    return np.maximum(np.floor(centre - reach), 0.0), np.maximum(np.ceil(centre + reach), 0.0)


def laplace_reach(stddev: Floats, numbers: int) -> Floats:
    """Compute half widths of simultaneous intervals for counts with discrete Laplace noise.

    The half width is ln(N / 0.05) / epsilon, where epsilon follows from the standard deviation 1 / (sqrt(2) sinh(epsilon / 2)). If the
    ends are rounded outwards, one count is outside with probability at most 0.05 / N. For sums of such counts, and for Gaussian noise
    with the same standard deviation, the intervals are wider than necessary.

    Args:
        stddev: (k,) standard deviations.
        numbers: N.

    Returns:
        (k,) half widths, not yet rounded.
    """
    scale = np.zeros(len(stddev))
    noisy = stddev > 0
    scale[noisy] = 0.5 / np.arcsinh(1 / (math.sqrt(2) * stddev[noisy]))
    return scale * math.log(numbers / MISS_PROBABILITY)


def gaussian_reach(stddev: Floats, numbers: int) -> Floats:
    """Compute (k,) half widths of simultaneous intervals, not yet rounded, for N = `numbers` counts with discrete Gaussian noise."""
    return np.asarray(stddev * float(scipy.special.ndtri(1 - MISS_PROBABILITY / (2 * numbers))))
