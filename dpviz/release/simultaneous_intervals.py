"""Simultaneous confidence intervals of trips: they hold for all regions of a release together, and so also for the largest of them."""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers, Places
from dpviz.release.intervals import MISS_PROBABILITY, count_ends, half_widths
from dpviz.release.trip_release import TripRelease, sum_pairs


def count_of_region_numbers(release: TripRelease) -> int:
    """Count the numbers of regions: of all levels and both sides, each total and the part of it that is in no listed pair."""
    return 2 * sum(side.size(level) for side in (release.tree.origins, release.tree.destinations) for level in range(1, release.depth + 1))


def pairs_of_regions(release: TripRelease, level: int, side: str) -> tuple[tuple[int, int], tuple[Places, Places]]:
    """Return the pairs of each region of a level with the whole, as "origin" or "destination": their levels, and (n,) indices of both."""
    size = (release.tree.origins if side == "origin" else release.tree.destinations).size(level)
    index, root = np.arange(size, dtype=np.int32), np.zeros(size, np.int32)
    return ((level, 0), (index, root)) if side == "origin" else ((0, level), (root, index))


def region_intervals(release: TripRelease, level: int, side: str) -> tuple[Floats, Floats]:
    """Compute intervals for the trips that start, or that end, in each region of a level.

    With probability at least 0.95, those of all regions hold at once, with those of `rest_intervals` for regions.

    Where every pair was measured, the centre is a sum of unbiased numbers, and the variance that the release states for it is never too
    small: estimates from nested sums are not positively correlated. Of other releases, which leave pairs out because of their noise, a
    sum has no known error; there, only totals that were measured as one number have an interval, that of `TripRelease.stage_interval`.

    Args:
        release: of trips.
        level: of the regions, 1 for the coarsest.
        side: "origin" for the trips that start in a region, "destination" for those that end there.

    Returns:
        (n,) lower and (n,) upper ends, whole numbers of at least 0; NaN where no interval is known.
    """
    levels, pairs = pairs_of_regions(release, level, side)
    centre, stddev = release.estimates(levels, *pairs)
    if release.has_unbiased_sums:
        return count_ends(centre, half_widths(release.noise, stddev, count_of_region_numbers(release)))
    measured = any(release.tree.levels(stage) == levels and np.isfinite(at.variance) for stage, at in enumerate(release.stages))
    return count_ends(centre if measured else np.full(len(centre), np.nan), half_widths(release.noise, stddev, release.numbers))


def rest_intervals(
    release: TripRelease, levels: tuple[int, int], origin: Places, destination: Places, numbers: int, *, most: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute intervals for the trips between larger regions that are in no listed pair of the finest level.

    With probability at least 0.95, all of them hold at once.

    The centre is the unbiased number of the pair minus those of its listed pairs. Listed pairs were chosen by their noise, so that the sum
    of their noise is not that of a fixed set: `bound_chosen_noise` bounds it for every set.

    A rest is a part of its whole. So where an interval of the whole holds, too, its upper end bounds the rest, and the smaller one of two
    upper ends holds (`most`). All of these intervals together miss with probability at most 0.05 if `numbers` counts the wholes, too:
    `count_of_region_numbers` does. `TripRelease.numbers` counts at least twice as many pairs as have a rest: each pair of two levels above
    the finest, and at least one of the stage that refines it.

    Args:
        release: of trips, with a list.
        levels: level of the origins and level of the destinations; one of them may be 0.
        origin: (q,) indices of origin regions.
        destination: (q,) indices of destination regions.
        numbers: how many such numbers a reader can choose from.
        most: (q,) upper ends for the wholes, by `region_intervals` or `TripRelease.stage_interval`, infinite where a pair was not
            released; None for rests that are stated alone.

    Returns:
        (q,) lower and (q,) upper ends, whole numbers of at least 0; NaN where no interval is known.
    """
    leaves, tree = release.stages[-1], release.tree
    if not release.has_unbiased_sums or release.noise == "laplace":
        return np.full(len(origin), np.nan), np.full(len(origin), np.nan)
    whole, stddev = release.estimates(levels, origin, destination)
    of_origins, of_destinations = tree.origins.ancestors(levels[0]), tree.destinations.ancestors(levels[1])
    above, width = (of_origins[leaves.origin], of_destinations[leaves.destination]), tree.destinations.size(levels[1])
    listed = sum_pairs(*above, np.ones(len(leaves.count), np.int64), width).at(origin, destination)
    inside = tree.origins.leaf_count(levels[0])[origin].astype(np.float64) * tree.destinations.leaf_count(levels[1])[destination]
    reach = _bound_rest(stddev, math.sqrt(leaves.variance), listed, inside, numbers)
    rounded = 0.0 if release.totals is None else (listed + 1) / 2  # estimates were rounded to whole numbers
    low, high = count_ends(whole - sum_pairs(*above, leaves.noisy, width).at(origin, destination), reach + rounded)
    return low, high if most is None else np.maximum(np.fmin(high, most), low)


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
    by_listed = half_widths("gaussian", whole, 2 * numbers) + stddev * bound_chosen_noise(listed, inside, 2 * numbers)
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
