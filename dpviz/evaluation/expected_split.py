"""The expected errors of a release if its budget had been split in another way; no noise is drawn and no true count is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.base import PointMechanism, PostProcessing, post_settings, reconcile
from dpviz.privacy.budget import Budget
from dpviz.release.point_release import PointRelease
from dpviz.release.squares import expected_error
from dpviz.space.mask import open_cells
from dpviz.space.ranges import Cumulative


@dataclass(frozen=True, kw_only=True, eq=False)
class _OtherNoise(PointRelease):
    """A release whose counts are unknown, so that it can state the deviations of answers alone."""

    @cached_property
    def _cumulative(self) -> Cumulative | None:
        """None: sums of counts are not prepared."""
        return None


def expected_of_split(
    release: PointRelease, mechanism: PointMechanism, budget: Budget, zooms: Sequence[int], points: PointCounts | None = None
) -> Floats | None:
    """Compute the expected errors of blocks if the budget of a release were split as `mechanism` says.

    The partitions stay as they are, unless another split has others and public counts say which.

    Args:
        release: made by the same mechanism with the same settings, except for the split of the budget.
        mechanism: the mechanism with the split that is tried.
        budget: the budget of the release.
        points: the counts of the release, if they are public: partitions that depend on counts are then chosen anew, as without noise.
            That is close where few counts are near a threshold.
        zooms: (z,) zoom levels, 0 to the domain's order; there are 2**zoom x 2**zoom equal blocks.

    Returns:
        (z,) root mean square errors of a block from noise alone, in records, as by `expected_error`. None if the mechanism cannot say
        without a run (see `PointMechanism.count_variances`), or if another mechanism made the release.

    Raises:
        BudgetError: another kind of budget than the mechanism takes, or a split that does not fit the domain.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> all_on_finest = dv.Quadtree(height=2, split="leaf")
    >>> expected_of_split(release, all_on_finest, dv.PureBudget(5), [0, 2]).round(2).tolist()
    [0.47, 0.12]
    """
    if release.mechanism != mechanism.key:
        return None
    chosen = None if points is None else mechanism.partition_exactly(points, budget)
    tree, variance = (release.tree, mechanism.count_variances(release, budget)) if chosen is None else chosen
    if variance is None:
        return None
    by_least_squares = bool(post_settings(mechanism).get("least_squares", PostProcessing.least_squares))
    cells = open_cells(tree, release.domain.mask)
    count, variance, spread = reconcile(tree, np.zeros(len(tree)), variance, by_least_squares=by_least_squares, cells=cells)
    changed = {"tree": tree, "noise_variance": variance, "count": count, "noisy": count, "spread": spread, "fill": "uniform"}
    other = _OtherNoise(**{field.name: getattr(release, field.name) for field in fields(release)} | changed)
    return np.array([expected_error(other, zoom) for zoom in zooms])
