"""Intervals that hold for all numbers of a release at once, and so for the largest of them, too."""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

MISSED = 0.05
"""The probability that any of the intervals misses the number before the noise."""


def how_many(release: Release | FlowRelease) -> int:
    """N: how many numbers may have been chosen from. All that were measured or released; for trips every possible pair."""
    if isinstance(release, FlowRelease):
        return sum(release.tree.size(stage) for stage in range(release.tree.height + 1))
    return max(len(release.tree), sum(step.counts or 0 for step in release.receipt.steps))


def point_intervals(release: Release, nodes: Integers) -> tuple[Floats, Floats]:
    """Ends of intervals for counts of nodes that hold for all numbers of the release at once, with probability 0.95 at least.

    Bonferroni: each misses with probability 0.05 / N. Noise only. `Release.interval` gives the narrower ones that hold for
    a node that was chosen without a look at the counts.

    Args:
        release: public.
        nodes: (k,) whichever, chosen by their counts if you like.

    Returns:
        (k,) lower and (k,) upper ends, whole numbers.
    """
    centre = release.count if release.unbiased is None else release.unbiased
    reach = laplace_reach(release.stddev[nodes], how_many(release))
    return np.floor(centre[nodes] - reach), np.ceil(centre[nodes] + reach)


def pair_intervals(release: FlowRelease, stage: int) -> tuple[Floats, Floats]:
    """The same for the released pairs of a stage, in the order of `stages`; no end is under 0."""
    stddev, numbers = release.stddev(stage), how_many(release)
    laplace = any("Laplace" in step.noise for step in release.receipt.steps)
    reach = laplace_reach(stddev, numbers) if laplace else gaussian_reach(stddev, numbers)
    centre = release.stages[stage].noisy
    return np.maximum(np.floor(centre - reach), 0.0), np.maximum(np.ceil(centre + reach), 0.0)


def laplace_reach(stddev: Floats, numbers: int) -> Floats:
    """(k,) half widths, before they are rounded outwards, for one of `numbers` counts with discrete Laplace noise.

    ln(N / 0.05) times the scale 1 / epsilon, which follows from the standard deviation 1 / (sqrt(2) sinh(epsilon / 2)): rounded
    outwards, a count of noise of this scale is beyond with probability 0.05 / N at most. Cautious for sums of such noise and for
    Gaussian noise of the same standard deviation.
    """
    scale = np.zeros(len(stddev))
    some = stddev > 0
    scale[some] = 0.5 / np.arcsinh(1 / (math.sqrt(2) * stddev[some]))
    return scale * math.log(numbers / MISSED)


def gaussian_reach(stddev: Floats, numbers: int) -> Floats:
    """(k,) half widths, before they are rounded outwards, for one of `numbers` counts with discrete Gaussian noise."""
    return np.asarray(stddev * float(scipy.special.ndtri(1 - MISSED / (2 * numbers))))
