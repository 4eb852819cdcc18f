"""A hundred releases of one town, each with the interval that it states for one area: how many hold the true count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

from dpviz.evaluation.metrics import true_answers
from dpviz.lessons.town import TWO, town
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import INTERVAL_WIDTH

ORDER, PEOPLE, REPEATS = 6, 5000, 100
BLOCK, CUTS, SMALL = "a block of partitions", "cuts through partitions", "inside one partition"
AREAS: dict[str, tuple[float, float, float, float]] = {
    BLOCK: (8.0, 32.0, 24.0, 48.0),
    CUTS: (12.0, 37.0, 21.0, 51.0),
    SMALL: (10.0, 40.0, 13.0, 43.0),
}
HELD, MISSED = "holds the true count", "misses it"


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """A hundred intervals for one area.

    Attributes:
        table: release (1 ...), estimate, low, high, and series: `HELD` or `MISSED`.
        truth: people in the area.
        bias: what the assumption of even partitions adds to every estimate.
        stddev: of the noise, as stated.
    """

    table: pd.DataFrame
    truth: float
    bias: float
    stddev: float

    @property
    def held(self) -> int:
        """How many hold the true count."""
        return int((self.table["series"] == HELD).sum())


@lru_cache(maxsize=32)
def intervals(area: str, epsilon: float, height: int, draw: int) -> Intervals:
    """Draw `REPEATS` releases of the town and read the interval of one area from each.

    Args:
        area: one of `AREAS`.
        epsilon: of each release.
        height: of the quadtree; partitions are 64 / 2**height cells wide.
        draw: seed.
    """
    points, box, tree = town(ORDER, PEOPLE, TWO), [AREAS[area]], Quadtree(height=height)
    releases = [tree.release(points, PureBudget(epsilon), stream) for stream in Entropy.seeded(draw).spawn(REPEATS)]
    stddev = float(releases[0].answer(box, spread=True)[1][0])
    estimate = np.array([float(release.answer(box)[0]) for release in releases])
    truth = float(true_answers(points, box)[0])
    low, high = np.floor(estimate - INTERVAL_WIDTH * stddev), np.ceil(estimate + INTERVAL_WIDTH * stddev)
    held = (low <= truth) & (truth <= high)
    table = pd.DataFrame({"release": np.arange(1, REPEATS + 1), "estimate": estimate, "low": low, "high": high})
    table["series"] = np.where(held, HELD, MISSED)
    return Intervals(table=table, truth=truth, bias=even_answer(area, height) - truth, stddev=stddev)


def even_answer(area: str, height: int) -> float:
    """The answer without noise: true counts of the partitions, each taken as evenly filled; what all estimates average to."""
    points = town(ORDER, PEOPLE, TWO)
    width = points.domain.side >> height
    west, south, east, north = AREAS[area]
    edges = np.arange(0, points.domain.side, width, dtype=np.float64)
    across, up = (
        np.clip(np.minimum(edges + width, end) - np.maximum(edges, begin), 0, None) / width for begin, end in ((west, east), (south, north))
    )
    return float(up @ points.blocks(height) @ across)


def usual_range() -> tuple[int, int]:
    """How many of the hundred hold in 19 of 20 such experiments, if each does with probability 0.95 exactly."""
    low, high = stats.binom.interval(0.95, REPEATS, 0.95)
    return int(low), int(high)
