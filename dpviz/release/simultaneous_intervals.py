"""Simultaneous confidence intervals: they hold for all numbers of a release together, and so also for the largest of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers, Places
from dpviz.release.flow_release import FlowRelease, sum_pairs
from dpviz.space.regions import ROOT

MISS_PROBABILITY = 0.05
"""The largest probability that any of the intervals misses the number that was counted."""


def count_of_numbers(release: FlowRelease) -> int:
    """Count the numbers, N, that a reader can choose from: all possible pairs."""
    return sum(release.tree.size(stage) for stage in range(release.tree.height + 1))


def pair_intervals(release: FlowRelease, stage: int) -> tuple[Floats, Floats]:
    """Compute intervals for the released pairs of a stage, as `CountRelease.interval` does for nodes.

    Args:
        release: of trips.
        stage: 0 to T.

    Returns:
        (k,) lower and (k,) upper ends in the order of `release.stages[stage]`, whole numbers of at least 0. The upper ends are NaN where
        the numbers are sums that lack pairs: they may be too low by any number.
    """
    counts = release.stages[stage]
    low, high = _make_ends(counts.noisy, _choose_reach(release, release.stddev(stage), count_of_numbers(release)))
    complete = np.isfinite(counts.variance) or has_unbiased_sums(release)
    return low, high if complete else np.full(len(high), np.nan)


def count_of_region_numbers(release: FlowRelease) -> int:
    """Count the numbers of regions: of all levels and both sides, each total and the part of it that is in no listed pair."""
    return 2 * sum(side.size(level) for side in (release.tree.origins, release.tree.destinations) for level in range(1, release.depth + 1))


def region_intervals(release: FlowRelease, level: int, side: str) -> tuple[Floats, Floats]:
    """Compute intervals for the trips that start, or that end, in each region of a level.

    With probability at least 0.95, those of all regions hold at once, with those of `rest_intervals` for regions.

    Where every pair was measured, the centre is a sum of unbiased numbers, and the variance that the release states for it is never too
    small: estimates from nested sums are not positively correlated. Of other releases, which leave pairs out because of their noise, a
    sum has no known error; there, only totals that were measured as one number have an interval, that of `pair_intervals`.

    Args:
        release: of trips.
        level: of the regions, 1 for the coarsest.
        side: "origin" for the trips that start in a region, "destination" for those that end there.

    Returns:
        (n,) lower and (n,) upper ends, whole numbers of at least 0; NaN where no interval is known.
    """
    starts = side == "origin"
    levels = (level, 0) if starts else (0, level)
    regions = release.tree.origins if starts else release.tree.destinations
    index, root, ids = np.arange(regions.size(level), dtype=np.int32), np.zeros(regions.size(level), np.int32), regions.ids_of(level)
    if not has_unbiased_sums(release):
        return _find_measured(release, levels, index)
    count, stddev = release.answer(*_in_order(starts, ids, [ROOT] * len(ids)), levels=levels, spread=True)
    totals = None if release.totals is None else release.totals.at(levels, *_in_order(starts, index, root))
    return _make_ends(count if totals is None else totals, _choose_reach(release, stddev, count_of_region_numbers(release)))


def rest_intervals(
    release: FlowRelease, levels: tuple[int, int], origin: Places, destination: Places, numbers: int, *, most: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute intervals for the trips between larger regions that are in no listed pair of the finest level.

    With probability at least 0.95, all of them hold at once.

    The centre is the unbiased number of the pair minus those of its listed pairs. Listed pairs were chosen by their noise, so that the sum
    of their noise is not that of a fixed set: `bound_chosen_noise` bounds it for every set.

    A rest is a part of its whole. So where an interval of the whole holds, too, its upper end bounds the rest, and the smaller one of two
    upper ends holds (`most`). All of these intervals together miss with probability at most 0.05 if `numbers` counts the wholes, too:
    `count_of_region_numbers` does. `count_of_numbers` counts at least twice as many pairs as have a rest: each pair of two levels above
    the finest, and at least one of the stage that refines it.

    Args:
        release: of trips, with a list.
        levels: level of the origins and level of the destinations; one of them may be 0.
        origin: (q,) indices of origin regions.
        destination: (q,) indices of destination regions.
        numbers: how many such numbers a reader can choose from.
        most: (q,) upper ends for the wholes, by `region_intervals` or `pair_intervals`, infinite where a pair was not released; None for
            rests that are stated alone.

    Returns:
        (q,) lower and (q,) upper ends, whole numbers of at least 0; NaN where no interval is known.
    """
    leaves, tree = release.stages[-1], release.tree
    if not has_unbiased_sums(release) or _has_laplace(release):
        return np.full(len(origin), np.nan), np.full(len(origin), np.nan)
    whole, stddev = _find_unbiased(release, levels, origin, destination)
    of_origins, of_destinations = tree.origins.ancestors(levels[0]), tree.destinations.ancestors(levels[1])
    above, width = (of_origins[leaves.origin], of_destinations[leaves.destination]), tree.destinations.size(levels[1])
    listed = sum_pairs(*above, np.ones(len(leaves.count), np.int64), width).at(origin, destination)
    inside = tree.origins.leaf_count(levels[0])[origin].astype(np.float64) * tree.destinations.leaf_count(levels[1])[destination]
    reach = _bound_rest(stddev, math.sqrt(leaves.variance), listed, inside, numbers)
    rounded = 0.0 if release.totals is None else (listed + 1) / 2  # estimates were rounded to whole numbers
    low, high = _make_ends(whole - sum_pairs(*above, leaves.noisy, width).at(origin, destination), reach + rounded)
    return low, high if most is None else np.maximum(np.fmin(high, most), low)


def has_unbiased_sums(release: FlowRelease) -> bool:
    """Return whether sums over pairs are known without bias: every pair was measured, and the sums are estimates, or noisy counts."""
    as_measured = all(stage.count is stage.noisy or np.array_equal(stage.count, stage.noisy) for stage in release.stages)
    return release.every_pair and (release.totals is not None or as_measured)


def _find_measured(release: FlowRelease, levels: tuple[int, int], regions: Places) -> tuple[Floats, Floats]:
    """Look up the intervals of totals that were measured as one number; NaN for others."""
    low, high = np.full(len(regions), np.nan), np.full(len(regions), np.nan)
    stage = next((s for s in range(release.tree.height + 1) if release.tree.levels(s) == levels), None)
    if stage is not None and np.isfinite(release.stages[stage].variance):
        known = release.stages[stage].origin if levels[0] else release.stages[stage].destination
        low[known], high[known] = pair_intervals(release, stage)
    return low, high


def _find_unbiased(release: FlowRelease, levels: tuple[int, int], origin: Places, destination: Places) -> tuple[Floats, Floats]:
    """Look up (q,) unbiased numbers of pairs, NaN where none is known, and (q,) their standard deviations."""
    ids = release.tree.origins.ids_of(levels[0])[origin], release.tree.destinations.ids_of(levels[1])[destination]
    count, stddev = release.answer(*ids, levels=levels, spread=True)
    totals = None if release.totals is None else release.totals.at(levels, origin, destination)
    if totals is not None or release.totals is None:
        return (count if totals is None else totals).astype(np.float64), stddev
    stage = next((s for s in range(release.tree.height + 1) if release.tree.levels(s) == levels), None)
    if stage is None:
        return np.full(len(count), np.nan), stddev
    at = release.stages[stage]
    noisy = sum_pairs(at.origin, at.destination, at.noisy, release.tree.destinations.size(levels[1])).at(origin, destination)
    return np.where(count != 0, noisy, np.nan), stddev


def _bound_rest(whole: Floats, stddev: float, listed: Integers, inside: Floats, numbers: int) -> Floats:
    """Bound (q,) the errors of rests, of all `numbers` at once with probability at least 0.95.

    A rest is the whole minus the listed pairs, or the sum of all other pairs: the smaller of the two bounds holds.

    Args:
        whole: (q,) standard deviations of the wholes.
        stddev: of the number of a pair of the finest level.
        listed: (q,) how many of these pairs are listed.
        inside: (q,) how many there are.
        numbers: N.
    """
    by_listed = gaussian_reach(whole, 2 * numbers) + stddev * bound_chosen_noise(listed, inside, 2 * numbers)
    return np.asarray(np.minimum(by_listed, stddev * bound_chosen_noise(inside - listed, inside, 2 * numbers)))


def bound_chosen_noise(chosen: Floats | Integers, inside: Floats, numbers: int) -> Floats:
    """Bound (q,) the sum of k of n standard Gaussian noises, whichever k were chosen; of all N = `numbers`, and for all k, at once.

    The noises are not positively correlated. The expected sum of the k largest is at most n phi(c), where phi is the Gaussian density
    and c is exceeded with probability k / n: the sum is at most k c plus the parts of all noises above c. The largest sum over all
    choices of k is a supremum of Gaussians with a variance of at most k, so that it exceeds its expectation by r sqrt(k) with probability
    at most exp(-r**2 / 2) (Borell, Tsirelson, Ibragimov, Sudakov). Both signs and n + 1 values of k share 0.05 / N.
    """
    density = np.exp(-(scipy.special.ndtri(chosen / inside) ** 2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(inside * density + np.sqrt(2 * chosen * np.log(2 * (inside + 1) * numbers / MISS_PROBABILITY)))


def _in_order(starts: bool, region: Any, root: Any) -> tuple[Any, Any]:
    """Return origins and destinations of the totals of regions."""
    return (region, root) if starts else (root, region)


def _has_laplace(release: FlowRelease) -> bool:
    return any("Laplace" in step.noise for step in release.receipt.steps)


def _choose_reach(release: FlowRelease, stddev: Floats, numbers: int) -> Floats:
    """Compute half widths of intervals of N = `numbers` counts, by the noise of the release."""
    return laplace_reach(stddev, numbers) if _has_laplace(release) else gaussian_reach(stddev, numbers)


def _make_ends(centre: Floats | Integers, reach: Floats) -> tuple[Floats, Floats]:
    """Round intervals outwards to whole numbers of at least 0; NaN stays."""
    return np.maximum(np.floor(centre - reach), 0.0), np.maximum(np.ceil(centre + reach), 0.0)


def laplace_reach(stddev: Floats, numbers: int) -> Floats:
    """Compute half widths of simultaneous intervals for counts with discrete Laplace noise.

    The half width is ln(N / 0.05) / epsilon, where epsilon follows from the standard deviation 1 / (sqrt(2) sinh(epsilon / 2)). If the
    ends are rounded outwards, one count is outside with probability at most 0.05 / N. For sums of such counts, and for Gaussian noise
    with the same standard deviation, the intervals are wider than necessary.

    Args:
        stddev: (k,) standard deviations; NaN where none is stated.
        numbers: N.

    Returns:
        (k,) half widths, not yet rounded.
    """
    scale = 0 * stddev  # NaN stays
    noisy = stddev > 0
    scale[noisy] = 0.5 / np.arcsinh(1 / (math.sqrt(2) * stddev[noisy]))
    return scale * math.log(numbers / MISS_PROBABILITY)


def gaussian_reach(stddev: Floats, numbers: int) -> Floats:
    """Compute (k,) half widths of simultaneous intervals, not yet rounded, for N = `numbers` counts with discrete Gaussian noise."""
    return np.asarray(stddev * float(scipy.special.ndtri(1 - MISS_PROBABILITY / (2 * numbers))))
