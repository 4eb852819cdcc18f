"""Verdicts beside the truth: which levels are called usable, and how far off their squares are, on data by recipe."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas as pd

from dpviz.data.points import PointCounts
from dpviz.mechanisms import MECHANISMS
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.verdict import MOST_USABLE, USABLE, verdict
from tests.evaluation.box_coverage import DOMAIN, SIDE, cells_of

MECHANISMS_JUDGED = ("path_tree", "privtree", "quadtree", "uniform_grid", "adaptive_grid", "htf", "kdtree", "dawa", "tuned", "privelet")
EPSILONS = ("1", "0.5", "0.1", "0.02")


def judge(names: Iterable[str], keys: Iterable[str] = MECHANISMS_JUDGED, seeds: Iterable[int] = (1,)) -> pd.DataFrame:
    """Judge releases with each of four budgets.

    Returns:
        A row per level: set, mechanism, epsilon, seed, level; `usable`, whether it is called so; and `good`, whether its squares are off by
        at most 40 % of an average one (root mean square).
    """
    rows: list[dict[str, object]] = []
    for name in names:
        cells = cells_of(name)
        points = PointCounts.from_matrix(cells, domain=DOMAIN)
        for key, epsilon, seed in product(keys, EPSILONS, seeds):
            release = MECHANISMS.of("points")[key]().release(points, PureBudget(epsilon), Entropy.seeded(seed))
            case = {"set": name, "mechanism": key, "epsilon": float(epsilon), "seed": seed}
            rows += [case | row for row in _judge_levels(release, cells)]
    return pd.DataFrame(rows)


def _judge_levels(release, cells):
    for level in verdict(release).levels:
        side = 1 << level.level
        true = cells.reshape(side, SIDE // side, side, SIDE // side).sum(axis=(1, 3))
        error = np.sqrt(((release.blocks(level.level) - true) ** 2).mean()) / true.mean()
        yield {"level": level.level, "usable": level.grade == USABLE, "good": error <= MOST_USABLE}


def summarise(judged: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Count levels: `usable`, `good`, `wrong` (% of the usable ones that are not good) and `missed` (% of the good ones called less)."""
    marked = judged.assign(wrong=judged["usable"] & ~judged["good"], missed=judged["good"] & ~judged["usable"])
    sums = marked.groupby(by)[["usable", "good", "wrong", "missed"]].sum()
    return sums.assign(wrong=100 * sums["wrong"] / sums["usable"], missed=100 * sums["missed"] / sums["good"])
