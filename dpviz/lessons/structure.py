"""Lesson: the cost and the gain of private splits: a kd-tree's error by the share of epsilon that finds its splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.evaluation.metrics import true_answers
from dpviz.evaluation.study import with_true_counts
from dpviz.lessons.charts import Look, curve_chart, vertical_line
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import Cells, cell_map
from dpviz.lessons.town import TIGHT, TWO_CROWDS, town, town_cells
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.workloads import random_rectangles

ORDER, HEIGHT, PEOPLE, QUESTIONS, REPEATS = 6, 4, 2000, 100, 4
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95)
TOTAL, NOISE, UNIFORMITY = "kd-tree", "its noise", "its uniformity"
PARTS = (TOTAL, NOISE, UNIFORMITY)
_SEED = 3
QUADTREE = "quadtree"
PERCENTS = tuple(round(100 * share) for share in SHARES)


@dataclass(frozen=True, kw_only=True)
class Structure(Lesson):
    """A kd-tree's error by the share of its splits, and the partitions of one share."""

    key: ClassVar[str] = "structure"
    title: ClassVar[str] = "Structure against counts"
    text: ClassVar[str] = (
        "A tree that follows the data must pay for finding its splits, and what it pays is missing for its counts. With too small a share"
        " the splits fall nearly at random and crowds are smeared over large partitions; with too large a share the counts drown in noise."
    )
    task: ClassVar[str] = (
        "move the share from 2 % to 95 % and watch the partitions; then choose *two crowds*: does following the data still pay?"
    )
    question: ClassVar[str] = (
        "A kd-tree spends a part of ε on finding out where people are, so that its partitions follow the crowd; a quadtree cuts blindly"
        " into quarters and spends all of ε on counts. The town is one tight crowd. How much better is the kd-tree with its best share?"
    )
    choices: ClassVar[tuple[str, ...]] = ("its error is less than half", "hardly better", "much worse")
    right: ClassVar[int] = 1
    answer: ClassVar[str] = (
        "Its least error is ± 66.3 people, at a share of 55 %, against ± 68.4 of the quadtree. What it gains by fitting the crowd it"
        " pays for with noisier counts. It turns into a clear loss for two crowds, ± 55.1 against ± 25.8, and for a share that is too"
        " small or too large."
    )
    in_class: ClassVar[str] = (
        "The wrong belief is that adapting to the data is free. Move the share from 2 % to 95 % and watch the map: at first the lines"
        " fall anywhere, at last they fit and nothing is left for counting. Then choose *two crowds*. Warn that choosing the share by"
        " such a chart of private data would leak."
    )

    share: int = setting(
        35, "Share of ε for splits, %", choices=PERCENTS, help="What is left counts. The map shows the tree of this share."
    )
    epsilon: float = epsilon_setting(0.5)
    town: str = setting(TIGHT, "Town", choices=(TIGHT, TWO_CROWDS), help=f"{PEOPLE:,} made-up people.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        table = errors_by_share(self.town, self.epsilon, self.draw)
        quad = quadtree_error(self.town, self.epsilon, self.draw)
        look = Look(
            "Error by what the splits take",
            "share of ε for splits (%)",
            "typical error (people)",
            order=(*PARTS, QUADTREE),
            log_y=True,
            height=380,
        )
        flat = pd.DataFrame({"share": [PERCENTS[0], PERCENTS[-1]], "series": QUADTREE, "error": quad})
        rows = pd.concat([table, flat], ignore_index=True).rename(columns={"share": "x", "error": "y"})
        under = (vertical_line(self.share, f"the map: {self.share} %", left=self.share > PERCENTS[-1] / 2),)
        errors = table[table["series"] == TOTAL].set_index("share")["error"]
        best = float(errors.index[int(errors.argmin())])
        tree = _map(self)
        return LessonFigure(
            asked=((tree,),),
            rows=((curve_chart(rows, look, under=under), tree),),
            figures=(
                Figure(f"Error at {self.share} %", f"± {errors[float(self.share)]:.3g}", "Typical error, in people."),
                Figure("Least error", f"± {errors[best]:.3g}", "Of the shares tried; it differs from run to run."),
                Figure("Best share", f"{best:.0f} %", "Where the least error was found in these runs."),
                Figure("Quadtree", f"± {quad:.3g}", "Equal quarters need no data, so all of ε counts."),
            ),
            note=f"{QUESTIONS} random rectangles, {REPEATS} seeded runs per share, kd-trees of height {HEIGHT}. Noise and uniformity"
            " (taking people as evenly spread in every partition) are the two parts of the kd-tree's error. Choosing a share by looking at"
            " such a chart of private data would leak.",
        )


def _map(lesson: Structure) -> object:
    release = release_town(lesson.town, lesson.share / 100, lesson.epsilon, Entropy.seeded(lesson.draw))
    leaves = release.tree.leaves
    boxes = pd.DataFrame(release.tree.rectangles(leaves), columns=["x", "y", "x2", "y2"])
    area = (boxes["x2"] - boxes["x"]) * (boxes["y2"] - boxes["y"])
    boxes["value"] = (release.count[leaves].clip(min=0) / area).astype(float)
    column, row = town_cells(ORDER, PEOPLE, lesson.town)
    every_eighth = slice(None, None, 8)
    marks = pd.DataFrame({"x": column[every_eighth] + 0.5, "y": row[every_eighth] + 0.5, "what": "one person in eight", "shape": "dot"})
    cells = Cells(
        table=boxes,
        title=f"Partitions at {lesson.share} %",
        value="released people per cell",
        low=0.0,
        high=max(float(boxes["value"].max()), 1.0),
        description=f"{len(boxes)} partitions; {'small' if area.median() < 16 else 'large'} ones in the middle of the range.",
    )
    return cell_map(cells, marks=marks, outlines=boxes)


@lru_cache(maxsize=4)
def _make_queries(kind: str) -> tuple[Floats, Floats]:
    """Return (q, 4) random rectangles and (q,) numbers of people who live in each."""
    points = town(ORDER, PEOPLE, kind)
    boxes = random_rectangles(points.domain, QUESTIONS, _SEED)
    return boxes, true_answers(points, boxes).astype(np.float64)


def release_town(kind: str, share: float, epsilon: float, entropy: Entropy) -> PointRelease:
    """Release one kd-tree of the town, with a share of epsilon for its splits."""
    return Kdtree(height=HEIGHT, median_share=share).release(town(ORDER, PEOPLE, kind), PureBudget(epsilon), entropy)


def errors(release: PointRelease, kind: str) -> dict[str, float]:
    """Return the root mean square error of the queries, and its two parts: the noise, and the assumption of even partitions."""
    boxes, truth = _make_queries(kind)
    answer, even = release.answer(boxes), with_true_counts(release, town(ORDER, PEOPLE, kind)).answer(boxes)
    parts = zip(PARTS, (answer - truth, answer - even, even - truth), strict=True)
    return {name: float(np.sqrt((error**2).mean())) for name, error in parts}


@lru_cache(maxsize=64)
def errors_by_share(kind: str, epsilon: float, draw: int) -> pd.DataFrame:
    """Return `errors` for all `SHARES`, over `REPEATS` runs: columns share (%), series, error (root mean square over runs)."""
    streams = iter(Entropy.seeded(draw).spawn(len(SHARES) * REPEATS))
    rows = [
        {"share": round(100 * share, 6), **errors(release_town(kind, share, epsilon, next(streams)), kind)}
        for share in SHARES
        for _ in range(REPEATS)
    ]
    table = pd.DataFrame(rows)
    table[list(PARTS)] **= 2
    means = table.groupby("share", as_index=False).mean().set_index("share") ** 0.5
    return means.melt(ignore_index=False, var_name="series", value_name="error").reset_index()


@lru_cache(maxsize=64)
def quadtree_error(kind: str, epsilon: float, draw: int) -> float:
    """Return the error of a quadtree of the same height, whose splits are free."""
    tree, points = Quadtree(height=HEIGHT), town(ORDER, PEOPLE, kind)
    runs = [errors(tree.release(points, PureBudget(epsilon), stream), kind)[TOTAL] for stream in Entropy.seeded(draw).spawn(REPEATS)]
    return float(np.sqrt(np.mean(np.square(runs))))
