"""Counts of regions for tests: small builders, and the slow definitions that fast code is held against."""

import numpy as np

from dpviz.data.areas import AreaCounts
from dpviz.space.regions import Regions
from tests.trip_cases import random_regions


def areas_of(regions: Regions, count, **options) -> AreaCounts:
    """Counts from an array with one number per leaf."""
    count = np.asarray(count, np.int64)
    leaf = np.flatnonzero(count)
    return AreaCounts(regions=regions, leaf=leaf.astype(np.int32), count=count[leaf], **options)


def records_of(number: int, depth: int = 3, **options) -> AreaCounts:
    """So many records over an uneven hierarchy, always the same for the same number and depth."""
    regions = random_regions(np.random.default_rng(depth), depth, 4 if depth < 5 else 2)
    leaves = regions.size(depth)
    where = (leaves * np.random.default_rng([number, depth]).random(number) ** 2).astype(int)
    return areas_of(regions, np.bincount(where, minlength=leaves), **options)


def true_sums(areas: AreaCounts, level: int) -> np.ndarray:
    """(n,) true counts of a level, region by region."""
    above, sums = areas.regions.ancestors(level), np.zeros(areas.regions.size(level), np.int64)
    for leaf, count in zip(areas.leaf.tolist(), areas.count.tolist(), strict=True):
        sums[above[leaf]] += count
    return sums


def membership(regions: Regions) -> np.ndarray:
    """(nodes, leaves) 1 where a leaf lies in a node, the whole first, then level by level."""
    rows = [np.arange(regions.size(level))[:, None] == regions.ancestors(level)[None, :] for level in range(regions.depth + 1)]
    return np.concatenate(rows).astype(float)


def dense_fit(release) -> tuple[np.ndarray, np.ndarray]:
    """Least squares and its covariance by dense matrices: (leaves,) estimates and (leaves, leaves) covariance."""
    weighted, wanted = _weighted(release)
    return np.linalg.lstsq(weighted, wanted, rcond=None)[0], dense_covariance(release)


def dense_covariance(release) -> np.ndarray:
    """The (leaves, leaves) covariance alone, which takes much less time."""
    weighted, _ = _weighted(release)
    return np.linalg.inv(weighted.T @ weighted)


def _weighted(release) -> tuple[np.ndarray, np.ndarray]:
    """The measured sums of leaves and their noisy values, each divided by its standard deviation."""
    nodes = membership(release.regions)
    variance = np.maximum(release.noise_variance, 1e-12)
    measured = np.isfinite(variance)
    spread = np.sqrt(variance[measured])
    return nodes[measured] / spread[:, None], release.noisy[measured] / spread
