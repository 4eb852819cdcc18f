"""Lesson: a hundred releases of one town state an interval for the count of one area each; how many contain the true count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import altair as alt
import numpy as np
import pandas as pd
from scipy import stats

from dpviz.arrays import Integers
from dpviz.evaluation.metrics import true_answers
from dpviz.lessons.charts import RED, style_channel
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import Cells, cell_map
from dpviz.lessons.town import TWO_CROWDS, town
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.intervals import count_ends, half_widths
from dpviz.view.charts import FORMAT, GREY, add_texts, finish, format_cell, tooltip, write_signed
from dpviz.view.colors import ACCENT

ORDER, PEOPLE, REPEATS = 6, 5000, 100
FINE = 5  # level of the squares on the map
BLOCK, CUTS, SMALL = "a block of partitions", "cuts through partitions", "inside one partition"
AREAS: dict[str, tuple[float, float, float, float]] = {
    BLOCK: (8.0, 32.0, 24.0, 48.0),
    CUTS: (12.0, 37.0, 21.0, 51.0),
    SMALL: (10.0, 40.0, 13.0, 43.0),
}
CONTAINS, MISSES = "contains the true count", "misses it"


@dataclass(frozen=True, kw_only=True)
class Interval(Lesson):
    """A hundred intervals for one area, and how many of them contain the true count."""

    key: ClassVar[str] = "interval"
    title: ClassVar[str] = "Reading an interval"
    text: ClassVar[str] = (
        "The 95 % is about the procedure: of many releases of the same data, at least 95 in 100 on average state an interval that contains"
        " the true count; one interval contains it or does not. Here it covers the noise only: where an area cuts through partitions,"
        " assuming that people are spread evenly in them adds a bias that these intervals do not show."
    )
    task: ClassVar[str] = (
        "choose the block of partitions; then go back to the area that cuts through them, and make the tree higher (smaller partitions):"
        " how do bias, noise and the number of intervals that contain the true count change?"
    )
    question: ClassVar[str] = (
        "A release has a count for every partition (thin lines). For the framed area, which cuts through them, it states a 95 % interval"
        " of the number of people, for the noise only. It is made a hundred times from the same data. How many of the intervals contain the"
        " true count?"
    )
    choices: ClassVar[tuple[str, ...]] = ("none", "about half", "about 95")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "The noise is only ± 18 people, but taking people as evenly spread inside the partitions that are cut moves every estimate by"
        " about −89 people, and none of these intervals knows of that. The 95 % covers the noise and nothing else. It turns for an area"
        " that is made of whole partitions, where 98 of 100 contain the true count, and in smaller partitions, where the bias is smaller"
        " and the noise larger."
    )
    in_class: ClassVar[str] = (
        "Nearly everybody says 95, and that is what the words promise. Show the area on the map first: its edges run through"
        " partitions, and the crowd is on one side of them. Then choose the block of partitions, and let them count the misses. What to"
        " remember: 95 % is about the procedure and about the noise; it says nothing of an area that the release does not know."
    )

    area: str = setting(CUTS, "Area", choices=tuple(AREAS), help="The area whose count is read from every release.")
    epsilon: float = epsilon_setting(0.5)
    height: int = setting(4, "Height of the tree", low=3, high=5, help="Higher: smaller partitions, less bias, more noise on each.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        result = intervals(self.area, self.epsilon, self.height, self.draw)
        low, high = expected_range()
        width = 1 << (FINE - self.height)
        area = _map(self)
        return LessonFigure(
            asked=((area,),),
            rows=((area, interval_chart(result.table, result.truth, (CONTAINS, MISSES))),),
            figures=(
                Figure("Contain the true count", f"{result.containing} of {REPEATS}", f"At exactly 95 %, {low} to {high} would be usual."),
                Figure("Standard deviation, as stated", f"{result.stddev:.3g}", "Of the noise, known without the truth."),
                Figure(
                    "Bias",
                    write_signed(round(result.bias, 1)) if round(result.bias, 1) else "0",
                    "Of assuming that partitions are evenly filled; in none of these intervals.",
                ),
                Figure("True count", f"{result.truth:,.0f}", "Shown here because the town is made up."),
            ),
            note=f"Frame: the area. A partition is {width} × {width} squares of the map. Intervals reach 2.12 standard deviations to both"
            " sides and are rounded outwards: at least 95 % for one Laplace count, cautious for sums of many."
            " Releases widen intervals of boxes that cut partitions, under an assumption on what lies inside.",
        )


def _map(lesson: Interval) -> object:
    """Draw the town, more finely than it is released, with the partitions and the area."""
    blocks = town(ORDER, PEOPLE, TWO_CROWDS).blocks(FINE)
    people = np.argwhere(blocks > 0)
    cells = _squares(people, FINE).assign(value=blocks[blocks > 0])
    partitions = _squares(np.argwhere(np.ones((1 << lesson.height, 1 << lesson.height))), lesson.height)
    look = Cells(
        table=cells,
        title="The town, its partitions and the area",
        value="people per square",
        low=0.0,
        high=float(blocks.max()),
        description=f"The area is {lesson.area}; {len(partitions):,} partitions.",
    )
    return cell_map(look, outlines=partitions, frames=pd.DataFrame([AREAS[lesson.area]], columns=["x", "y", "x2", "y2"]))


def _squares(cells: Integers, level: int) -> pd.DataFrame:
    """Return columns x, y, x2, y2 of squares of the town: (n, 2) rows and columns of 2**level squares each way."""
    width = (1 << ORDER) >> level
    return pd.DataFrame(np.hstack([cells[:, ::-1], cells[:, ::-1] + 1]) * width, columns=["x", "y", "x2", "y2"])


def interval_chart(table: pd.DataFrame, truth: float, kinds: Sequence[str]) -> alt.LayerChart:
    """Draw intervals side by side, coloured by whether they contain the true count.

    Args:
        table: columns release, estimate, low, high, series (one of `kinds`).
        truth: the true count.
        kinds: the name of intervals that contain the true count, and the name of intervals that miss it.
    """
    names = {"release": "release", "estimate": "estimate", "low": "from", "high": "to", "series": "interval"}
    across, title = alt.Scale(nice=False, domain=[0, len(table) + 1]), "people in the area"
    x = alt.X(field="release", type="quantitative", title="release", scale=across, axis=alt.Axis(tickCount=10))
    base = alt.Chart(add_texts(table, list(names))).encode(x=x, tooltip=tooltip(names))
    color = style_channel(alt.Color, "series", kinds, (ACCENT, RED), "circle")
    scale, axis = alt.Scale(zero=False), alt.Axis(format=FORMAT, tickCount=5)
    y = alt.Y(field="low", type="quantitative", title=title, scale=scale, axis=axis)
    bars = base.mark_rule(strokeWidth=1.6).encode(y=y, y2=alt.Y2(field="high"), color=color)
    shape = style_channel(alt.Shape, "series", kinds, ("circle", "cross"), "circle")
    y = alt.Y(field="estimate", type="quantitative", scale=scale)
    dots = base.mark_point(filled=True, size=34, opacity=1).encode(y=y, color=color, shape=shape)
    line = alt.Chart(pd.DataFrame({"y": [truth], "what": ["true count"]})).mark_rule(color=GREY, strokeWidth=2)
    line = line.encode(y=alt.Y(field="y", type="quantitative"), tooltip=[alt.Tooltip(field="what", type="nominal", title="line")])
    number = table["series"].value_counts()
    description = f"True count {format_cell(truth)}. {', '.join(f'{int(number.get(kind, 0))} {kind}' for kind in kinds)}."
    return finish(alt.layer(bars, dots, line), "A hundred intervals; line: the true count", description, 380)


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """A hundred intervals for one area.

    Attributes:
        table: columns release (1 ...), estimate, low, high, and series: `CONTAINS` or `MISSES`.
        truth: people in the area.
        bias: error of every estimate from the assumption that people are spread evenly inside partitions.
        stddev: standard deviation of the noise, as the release states it.
    """

    table: pd.DataFrame
    truth: float
    bias: float
    stddev: float

    @property
    def containing(self) -> int:
        """The number of intervals that contain the true count."""
        return int((self.table["series"] == CONTAINS).sum())


@lru_cache(maxsize=32)
def intervals(area: str, epsilon: float, height: int, draw: int) -> Intervals:
    """Make `REPEATS` releases of the town and read the interval of one area from each.

    Args:
        area: one of `AREAS`.
        epsilon: epsilon of each release.
        height: height of the quadtree; partitions are 64 / 2**height cells wide.
        draw: seed of the noise.
    """
    points, box, tree = town(ORDER, PEOPLE, TWO_CROWDS), [AREAS[area]], Quadtree(height=height)
    releases = [tree.release(points, PureBudget(epsilon), stream) for stream in Entropy.seeded(draw).spawn(REPEATS)]
    stddev = float(releases[0].answer(box, spread=True)[1][0])
    estimate = np.array([float(release.answer(box)[0]) for release in releases])
    truth = float(true_answers(points, box)[0])
    low, high = count_ends(estimate, half_widths(releases[0].noise, np.full(REPEATS, stddev)))
    containing = (low <= truth) & (truth <= high)
    table = pd.DataFrame({"release": np.arange(1, REPEATS + 1), "estimate": estimate, "low": low, "high": high})
    table["series"] = np.where(containing, CONTAINS, MISSES)
    return Intervals(table=table, truth=truth, bias=noiseless_answer(area, height) - truth, stddev=stddev)


def noiseless_answer(area: str, height: int) -> float:
    """Return the answer without noise, which is the mean of all estimates: true counts of partitions, each taken as evenly filled."""
    points = town(ORDER, PEOPLE, TWO_CROWDS)
    width = points.domain.side >> height
    west, south, east, north = AREAS[area]
    edges = np.arange(0, points.domain.side, width, dtype=np.float64)
    sides = ((west, east), (south, north))
    across, up = (np.clip(np.minimum(edges + width, end) - np.maximum(edges, begin), 0, None) / width for begin, end in sides)
    return float(up @ points.blocks(height) @ across)


def expected_range() -> tuple[int, int]:
    """Return the least and most intervals that contain the truth in 19 of 20 such experiments, if each does with probability 0.95."""
    low, high = stats.binom.interval(0.95, REPEATS, 0.95)
    return int(low), int(high)
