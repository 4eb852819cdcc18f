"""What splits cost and what they gain: a kd-tree's error by the share of epsilon that finds its splits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.evaluation.metrics import true_answers
from dpviz.lessons.town import town
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.space.workloads import random_rectangles

ORDER, HEIGHT, PEOPLE, QUESTIONS, REPEATS = 6, 4, 2000, 100, 4
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95)
TOTAL, NOISE, UNIFORMITY = "kd-tree", "its noise", "its uniformity"
PARTS = (TOTAL, NOISE, UNIFORMITY)
_SEED = 3


@lru_cache(maxsize=4)
def _asked(kind: str) -> tuple[Floats, Floats]:
    """(q, 4) random rectangles and (q,) how many live in each."""
    points = town(ORDER, PEOPLE, kind)
    boxes = random_rectangles(points.domain, QUESTIONS, _SEED)
    return boxes, true_answers(points, boxes).astype(np.float64)


def released(kind: str, share: float, epsilon: float, entropy: Entropy) -> Release:
    """One kd-tree of the town with a share of epsilon for its splits."""
    return Kdtree(height=HEIGHT, median_share=share).release(town(ORDER, PEOPLE, kind), PureBudget(epsilon), entropy)


def errors(release: Release, kind: str) -> dict[str, float]:
    """Root mean square error of the questions, and its two parts: the noise, and the assumption of even partitions."""
    boxes, truth = _asked(kind)
    points = town(ORDER, PEOPLE, kind)
    even = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(np.float64)).answer(boxes)
    answer = release.answer(boxes)
    parts = zip(PARTS, (answer - truth, answer - even, even - truth), strict=True)
    return {name: float(np.sqrt((error**2).mean())) for name, error in parts}


@lru_cache(maxsize=64)
def by_share(kind: str, epsilon: float, draw: int) -> pd.DataFrame:
    """`errors` for all `SHARES`, over `REPEATS` draws: share (%), series, error (root mean square over draws)."""
    streams = iter(Entropy.seeded(draw).spawn(len(SHARES) * REPEATS))
    rows = [
        {"share": round(100 * share, 6), **errors(released(kind, share, epsilon, next(streams)), kind)}
        for share in SHARES
        for _ in range(REPEATS)
    ]
    table = pd.DataFrame(rows)
    table[list(PARTS)] **= 2
    means = table.groupby("share", as_index=False).mean().set_index("share") ** 0.5
    return means.melt(ignore_index=False, var_name="series", value_name="error").reset_index()


@lru_cache(maxsize=64)
def of_quadtree(kind: str, epsilon: float, draw: int) -> float:
    """The error of a quadtree of the same height, whose splits are free."""
    tree, points = Quadtree(height=HEIGHT), town(ORDER, PEOPLE, kind)
    runs = [errors(tree.release(points, PureBudget(epsilon), stream), kind)[TOTAL] for stream in Entropy.seeded(draw).spawn(REPEATS)]
    return float(np.sqrt(np.mean(np.square(runs))))
