"""Stages of a release that measured pairs of leaves only: everything above is a sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpviz.release.flow_release import StageCounts
from dpviz.release.pair_sums import pair_sums
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import Places

Integers = NDArray[np.int64]


def with_sums_above(tree: PairTree, finest: StageCounts, stage: int) -> list[StageCounts]:
    """Stages 0 to `stage`: the finest one that is known, and sums of it above."""
    stages = [finest]
    for above in range(stage - 1, -1, -1):
        (a, b), finer, below = tree.levels(above), tree.levels(above + 1), stages[0]
        sums = pair_sums(
            tree.origins.ancestors(a, finer[0])[below.origin],
            tree.destinations.ancestors(b, finer[1])[below.destination],
            below.count,
            tree.destinations.size(b),
        )
        stages.insert(0, summed_stage(sums.origin, sums.destination, sums.count))
    return stages


def measured_stage(origin: Places, destination: Places, noisy: Integers, variance: float, measured: int) -> StageCounts:
    """A stage that is released as it was measured."""
    return StageCounts(origin=origin, destination=destination, count=noisy, noisy=noisy, variance=variance, measured=measured)


def summed_stage(origin: Places, destination: Places, count: Integers) -> StageCounts:
    """A stage that was not measured itself; sums of 0 are left out."""
    some = count != 0
    return StageCounts(
        origin=origin[some], destination=destination[some], count=count[some], noisy=count[some], variance=np.inf, measured=0
    )
