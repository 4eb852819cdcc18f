"""Lesson: how even both sides of a split are, and where HTF's private choices of a split fall over many runs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.evaluation.split_objective import DEFAULTS, ObjectiveCurve, objective_curve, split_objectives
from dpviz.lessons.charts import AMBER, GREEN, band, horizontal_line, style_channel
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting
from dpviz.lessons.maps import Cells, cell_map
from dpviz.lessons.town import TOWNS, TWO_CROWDS, town
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.htf import SENSITIVITY, UNITS_PER_RECORD, candidates
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import permute_and_flip
from dpviz.view.charts import AXIS, CAPTION, FORMAT, add_texts, describe_values, finish, format_cell, tooltip
from dpviz.view.colors import ACCENT

REPEATS = 200
ORDER, PEOPLE, ZOOM = 5, 20_000, 5
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
COLUMNS, ROWS = "left and right", "lower and upper"
TRIED, BEST = "tried line", "best of all"


@dataclass(frozen=True, kw_only=True)
class Homogeneity(Lesson):
    """The unevenness for every possible line, a map of the town with its best line, and where private choices fall."""

    key: ClassVar[str] = "homogeneity"
    title: ClassVar[str] = "Homogeneity"
    text: ClassVar[str] = (
        "The count of an evenly filled part says all there is, so HTF looks for the split that makes both parts as even as possible: the"
        " least sum of all cells' distances from the mean of their part. One person changes that sum by at most 2, so noise of a known size"
        " makes the choice private, and where the noise is larger than the dip of the curve at its best line, the choice is mostly chance."
    )
    task: ClassVar[str] = "lower ε to 0.001 in every town: where is the choice still better than by chance?"
    question: ClassVar[str] = (
        "HTF, a tree that follows the data, looks for the line that splits a town of 20,000 people into two parts that are as even as"
        " possible, and spends ε = 0.01 on it: noise of ± 400 people. How often is its line at least half as good as the best one?"
    )
    choices: ClassVar[tuple[str, ...]] = ("in most runs", "about half of the time", "hardly ever: ε is tiny")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "In 87 % of the runs: HTF tries three lines, and the curve dips at one of them by more than twice the noise. It turns where the"
        " dip is shallower than the noise: at ε = 0.001 it is 42 % of the runs, little more than one in three, which is chance."
    )
    in_class: ClassVar[str] = (
        "For those who know trees. The wrong belief is that a tiny ε always means chance: what counts is the noise against the depth of"
        " the dip. Lower ε step by step, and let them say beforehand when the bars become flat. An even town has hardly a dip,"
        " and nothing to find: two of its three lines are good by chance."
    )

    town: str = setting(TWO_CROWDS, "Town", choices=TOWNS, help=f"{PEOPLE:,} made-up people.")
    parts: str = setting(COLUMNS, "Split into", choices=(COLUMNS, ROWS), help="Which way the line runs.")
    epsilon: float = setting(0.01, "ε for this split", choices=EPSILONS, help="HTF spends little on each split: the paper 0.0005 or 0.001.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        points, across = town(ORDER, PEOPLE, self.town), self.parts == COLUMNS
        curve = objective_curve(points, PureBudget(self.epsilon), across=across)
        choices = chosen_lines(points, self.epsilon, self.draw, across=across)
        gain, good = 100 * (1 - curve.least / curve.unsplit), len(lines_near_best(curve))
        best = _map(self, curve)
        return LessonFigure(
            asked=((best,),),
            rows=((best, unevenness_chart(curve, curve_axis(across))), (chosen(choices, curve_axis(across)),)),
            figures=(
                Figure("Best line", f"{curve.best} of {points.domain.side}", "Where unevenness is least, without noise."),
                Figure("The best line removes", f"{gain:.1f} %", "Of the unevenness without a split."),
                Figure(
                    "Noise of the choice",
                    f"± {curve.choice_noise:,.0f}",
                    "The choice is as if exponential noise of this standard deviation, 4/ε people, were on each line that is tried.",
                ),
                Figure(
                    f"Good choices; by chance {100 * good / len(curve.tried):.0f} %",
                    f"{percent_near_best(curve, choices):.0f} %",
                    "Runs whose line removes at least half as much unevenness as the best tried line:"
                    f" {good} of the {len(curve.tried)} tried lines do.",
                ),
            ),
            note="Unevenness: how far each cell is from the mean of its part, added up. Grey band: the noise of the choice. Bars: where"
            f" permute-and-flip, the default, falls among the few evenly spaced lines that it tries, in {REPEATS} seeded runs.",
            source="Shaham et al., HTF: Homogeneous Tree Framework for Differentially-Private Release of Location Data, SIGSPATIAL 2021,"
            " Equation 5.",
        )


def curve_axis(across: bool) -> str:
    """Return the title of the axis of a line's position."""
    return f"{'x' if across else 'y'} of the line"


def _map(lesson: Homogeneity, curve: ObjectiveCurve) -> object:
    side = 1 << ORDER
    width = side >> ZOOM
    blocks = town(ORDER, PEOPLE, lesson.town).blocks(ZOOM)
    row, column = (width * part.ravel() for part in np.indices(blocks.shape))
    cells = pd.DataFrame({"x": column, "y": row, "x2": column + width, "y2": row + width, "value": blocks.ravel()})
    best = curve.best
    left, right = ((0, 0, best, side), (best, 0, side, side)) if curve.across else ((0, 0, side, best), (0, best, side, side))
    parts = pd.DataFrame([left, right], columns=["x", "y", "x2", "y2"])
    look = Cells(
        table=cells[cells["value"] > 0],
        title="The town, and the best line",
        value="people per cell",
        low=0.0,
        high=max(float(blocks.max()), 1.0),
        description=f"The best line is at {curve_axis(curve.across)[0]} = {best} of {side}.",
    )
    return cell_map(look, frames=parts)


def unevenness_chart(curve: ObjectiveCurve, axis_title: str) -> alt.LayerChart:
    """Draw the unevenness of both parts by the position of the line, with a band of one standard deviation of the choice's noise.

    Args:
        curve: split objective of a made-up town.
        axis_title: title of the horizontal axis.
    """
    names = {"kind": "mark", "x": axis_title, "y": "unevenness (people)"}
    rows = pd.DataFrame({"x": curve.lines, "y": curve.objective, "kind": "any line"})
    rows = rows.assign(low=rows["y"] - curve.choice_noise, high=rows["y"] + curve.choice_noise)
    points = pd.DataFrame({"x": [*curve.tried, curve.best], "y": [*curve.tried_objective, curve.least]})
    points["kind"] = [TRIED] * len(curve.tried) + [BEST]
    x = alt.X(field="x", type="quantitative", title=axis_title, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6))
    y = alt.Y(field="y", type="quantitative", title=names["y"], scale=alt.Scale(zero=False), axis=alt.Axis(format=FORMAT, tickCount=5))
    line = alt.Chart(add_texts(rows, list(names))).mark_line(color=ACCENT, strokeWidth=2.5).encode(x=x, y=y, tooltip=tooltip(names))
    marks = alt.Chart(add_texts(points, list(names))).mark_point(filled=True, size=110, opacity=1)
    marks = marks.encode(
        x=x,
        y=y,
        color=style_channel(alt.Color, "kind", (TRIED, BEST), (AMBER, GREEN), "circle"),
        shape=style_channel(alt.Shape, "kind", (TRIED, BEST), ("triangle-up", "cross"), "circle"),
        tooltip=tooltip(names),
    )
    description = f"Unevenness without a split: {format_cell(curve.unsplit)}."
    description += f" At the lines that are tried: {describe_values(points[:-1], 'x', 'y')}."
    description += f" Best of all: {format_cell(curve.best)}, with {format_cell(curve.least)}."
    description += f" Noise: {format_cell(curve.choice_noise)} up and down."
    unsplit_line = horizontal_line(curve.unsplit, "without a split")
    return finish(alt.layer(band(rows), unsplit_line, line, marks), "How uneven are both parts?", description, 380)


def chosen(table: pd.DataFrame, axis_title: str) -> alt.LayerChart:
    """Draw how often each line was chosen.

    Args:
        table: columns place (coordinate of the line), percent (of the runs).
        axis_title: title of the horizontal axis.
    """
    names = {"place": axis_title, "percent": "chosen (%)"}
    rows = table.assign(place=table["place"].astype(int).astype(str))
    base = alt.Chart(add_texts(rows, list(names))).encode(
        x=alt.X(field="place", type="ordinal", sort=None, title=axis_title, axis=alt.Axis(labelAngle=0)),
        y=alt.Y(field="percent", type="quantitative", title="chosen (%)", scale=alt.Scale(domain=[0, 110]), axis=AXIS),
        tooltip=tooltip(names),
    )
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2, size=26)
    texts = base.mark_text(color=CAPTION, dy=-8, aria=False).encode(text=alt.Text(field="percent shown", type="nominal"))
    return finish(alt.layer(bars, texts), "Where private choices fall", f"Chosen (%): {describe_values(rows, 'place', 'percent')}.", 220)


def chosen_lines(points: PointCounts, epsilon: float, draw: int, *, across: bool) -> pd.DataFrame:
    """Count how often HTF's default (permute-and-flip over evenly spaced lines) chooses each line in `REPEATS` runs.

    Returns:
        Columns place (coordinate of the line), percent (of the runs).
    """
    side = points.domain.side
    tried, valid = candidates(np.zeros(1, np.int64), np.full(1, side), DEFAULTS.lines, DEFAULTS.inner)
    value = np.floor(UNITS_PER_RECORD * split_objectives(points, across=across)[tried]).astype(np.int64)
    repeated_values = np.broadcast_to(-value, (REPEATS, value.shape[1])).copy()
    allowed = np.broadcast_to(valid, repeated_values.shape).copy()
    sensitivity = SENSITIVITY * points.contributions
    indices = permute_and_flip(repeated_values, allowed, PureBudget(Fraction(str(epsilon))), Entropy.seeded(draw), sensitivity)
    runs = np.bincount(indices, minlength=tried.shape[1])[valid[0]]
    return pd.DataFrame({"place": tried[0][valid[0]], "percent": 100 * runs / REPEATS})


def percent_near_best(curve: ObjectiveCurve, chosen: pd.DataFrame) -> float:
    """Return the percentage of runs whose line is one of `lines_near_best`."""
    return float(chosen.loc[chosen["place"].isin(lines_near_best(curve).tolist()), "percent"].sum())


def lines_near_best(curve: ObjectiveCurve) -> Integers:
    """Return the tried lines that gain, over no split, at least half of what the best tried line gains."""
    gain = curve.unsplit - curve.tried_objective
    return np.asarray(curve.tried[gain >= gain.max() / 2])
