"""Lesson: visits by hour of a district, a tract and a block of one city, with noise that is equally wide in each hour of a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd
import scipy

from dpviz.arrays import Floats
from dpviz.data.areas import AreaCounts
from dpviz.lessons.charts import RED, style_channel
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.mechanisms.areas.cross_tree import CrossTree
from dpviz.mechanisms.base import setting
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.cross_release import CrossRelease
from dpviz.release.intervals import half_widths
from dpviz.samples.load import load_sample
from dpviz.view.charts import CAPTION, DASHES, FORMAT, GREY, add_texts, finish, tooltip
from dpviz.view.colors import ACCENT

PLACES = ("district", "tract", "block")
HOUR, PART = "hour", "part of day"
CLEAR, UNCLEAR = "not an even day", "noise could explain it"
FILLS = (ACCENT, "#a9b4ba")


@dataclass(frozen=True, kw_only=True)
class Day(Lesson):
    """The day of a district, of its busiest tract, and of that tract's busiest block."""

    key: ClassVar[str] = "day"
    title: ClassVar[str] = "A district has a day, a block has none"
    text: ClassVar[str] = (
        "Every count of a block by hour gets the same noise, so that whiskers are equally tall all day: over a district they are short"
        " beside its visits, and over a block they hide when people come. The noise of its blocks adds up in a district, but far more"
        " slowly than their visits do."
    )
    task: ClassVar[str] = "take parts of the day in place of hours, then raise ε: from where on does the block have a day?"
    question: ClassVar[str] = (
        "A city publishes its visits by block and hour, with ε = 0.2. In the busiest hour, one block has 9 of them, and its district"
        " 1,183. In how many of the 24 hours does the release tell whether this block is busier or quieter than over the day?"
    )
    choices: ClassVar[tuple[str, ...]] = ("in few or none", "in about half", "in nearly all")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "In 0 of 24. Each count of a block has whiskers of ± 17 visits, at noon and at night, more than the block ever has. In its district"
        " they are ten times as wide, but there are 1,183 visits: 19 of 24 hours stand out, of which chance alone would give one. It turns"
        " with more budget, at ε = 2 for 15 of 24 hours, and in blocks with far more people."
    )
    in_class: ClassVar[str] = (
        "Let them draw the day of the district from the left chart, and then that of the block from the right one. The wrong belief is that"
        " noise is a percentage: it is a number of people, the same at noon and at night, in the centre and at the edge. Then choose parts"
        " of the day: four counts in place of 24 are each six times as large. What to remember: ask for as many hours as the place has"
        " people."
    )

    epsilon: float = epsilon_setting(0.2)
    by: str = setting(HOUR, "By", choices=(HOUR, PART), help="24 hours, or four parts of the day of six hours each.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        days = {level: read_day(level, self.by, self.epsilon, self.draw) for level in PLACES}
        charts = tuple(_draw(day, level, self.by) for level, day in days.items())
        return LessonFigure(
            asked=(charts[:1],),
            rows=(charts,),
            figures=tuple(
                Figure(
                    f"The {level} has a day in",
                    f"{day['clear'].sum()} of {len(day)}",
                    f"So many {self.by}s are busier or quieter than over the day by more than noise alone could explain.",
                )
                for level, day in days.items()
            ),
            note="Bars: released counts. Whiskers: 95 % intervals of the noise. Line: the truth, shown because the city is made up."
            f" Dashed: an even day, with as many visits in each {self.by}.",
        )


@lru_cache(maxsize=1)
def city() -> AreaCounts:
    """Return the made-up visits of a city by block and hour."""
    visits: AreaCounts = load_sample("city_by_hour")
    return visits


@lru_cache(maxsize=16)
def release_city(epsilon: float, draw: int) -> CrossRelease:
    """Release the visits on every pair of levels, with unbiased counts."""
    return CrossTree(lean=False).release(city(), PureBudget(epsilon), Entropy.seeded(draw))  # type: ignore[return-value]


@lru_cache(maxsize=1)
def usual_places() -> tuple[int, ...]:
    """Return the indices of a district with as many visits as the median one, of such a tract of it, and of such a block of that."""
    regions, totals, path = city().regions, city().level_counts(), [0]
    for level in range(1, len(PLACES) + 1):
        inside = np.flatnonzero((regions.parent[level - 1] == path[-1]) & (totals[level] > 0))
        path.append(int(inside[np.argsort(totals[level][inside])[len(inside) // 2]]))
    return tuple(path[1:])


@lru_cache(maxsize=64)
def read_day(level: str, by: str, epsilon: float, draw: int) -> pd.DataFrame:
    """Return the day of one of the `usual_places`.

    Args:
        level: one of `PLACES`.
        by: `HOUR` or `PART`.
        epsilon: of the release.
        draw: seed of the noise.

    Returns:
        A row per hour or part of the day: slot (its name), count, low and high (the 95 % interval), truth, even (the released mean of all),
        and clear: whether the 95 % interval of count - even leaves out 0.
    """
    release = release_city(epsilon, draw)
    place, slots = release.regions.level_number(level), release.categories.level_number(by)
    region = usual_places()[place - 1]
    count, low, high, _ = release.profile([release.regions.ids_of(place)[region]], level=level, slot_level=by)
    columns = release.slot_hierarchy.at_depth(slots)
    truth = city().cross_counts()[release.nodes(level)][region, columns]
    half = _contrast_half_width(release, int(release.nodes(level)[region]), columns)
    return pd.DataFrame(
        {"slot": release.categories.ids_of(slots), "count": count, "low": low, "high": high, "truth": truth, "even": count.mean()}
    ).assign(clear=np.abs(count - count.mean()) > half)


def _contrast_half_width(release: CrossRelease, node: int, columns: slice) -> Floats:
    """Return (k,) half widths of 95 % intervals of a place's count in each category of a level, less their mean."""
    width = columns.stop - columns.start
    weights = np.zeros((width, len(release.slot_hierarchy)))
    weights[:, columns] = np.eye(width) - 1 / width
    place = scipy.sparse.csr_array((np.ones(width), (np.arange(width), np.full(width, node))), shape=(width, len(release.hierarchy)))
    return half_widths(release.noise, np.sqrt(release.spread.of_ranges(place, weights)))


def _draw(day: pd.DataFrame, level: str, by: str) -> alt.LayerChart:
    """Draw the day of a place: bars with whiskers, the truth as a line, and an even day as a dashed one."""
    table = day.assign(series=np.where(day["clear"], CLEAR, UNCLEAR))
    names = {"slot": by, "count": "released", "low": "from", "high": "to", "truth": "true", "series": "beside an even day"}
    base = alt.Chart(add_texts(table, list(names))).encode(tooltip=tooltip(names))
    x: dict[str, Any] = {"x": alt.X(field="slot", type="ordinal", sort=None, title=by, axis=alt.Axis(labelAngle=0, labelOverlap=True))}
    y: dict[str, Any] = {"type": "quantitative", "title": "visits", "axis": alt.Axis(format=FORMAT, tickCount=5)}
    color, dash = (
        style_channel(channel, "series", (CLEAR, UNCLEAR), looks, "square")
        for channel, looks in ((alt.Color, FILLS), (alt.StrokeDash, DASHES))
    )
    bars = base.mark_bar(stroke=CAPTION, strokeWidth=0.8).encode(**x, y=alt.Y(field="count", **y), color=color, strokeDash=dash)
    whiskers = base.mark_rule(color=CAPTION, strokeWidth=1.3, aria=False).encode(**x, y=alt.Y(field="low", **y), y2=alt.Y2(field="high"))
    truth = base.mark_line(color=RED, strokeWidth=2.2, interpolate="step").encode(**x, y=alt.Y(field="truth", **y))
    even = base.mark_rule(color=GREY, strokeDash=[4, 4], aria=False).encode(y=alt.Y(field="even", **y))
    description = f"{day['clear'].sum()} of {len(day)} {by}s differ from an even day by more than noise; {_say_hours(day)}"
    return finish(alt.layer(bars, whiskers, truth, even), f"One {level}: visits by {by}", description, 330)


def _say_hours(day: pd.DataFrame) -> str:
    said: Sequence[str] = [f"{row['slot']}: {row['count']:,.0f} (true {row['truth']:,})" for row in day.to_dict("records")]
    return f"{', '.join(said)}."
