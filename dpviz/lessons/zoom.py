"""Lesson: on a real map, the finer the squares the smaller their error in people, and the larger their error in percent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.lessons.charts import Look, curve_chart, horizontal_line, vertical_line
from dpviz.lessons.city import (
    DEEPEST,
    FINEST_SHOWN,
    city_release,
    merge_runs,
    side_km,
    square_layer,
    true_squares,
    typical_noise,
)
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import FILL
from dpviz.lessons.real_map import INK, LOS_ANGELES, real_map
from dpviz.mechanisms.base import setting
from dpviz.view.charts import format_cell

KNOWN, DROWNED = "known", "drowned in noise"
DROWNS = 50
"""Percent: a square whose noise is typically more than this part of its people is drowned."""
_ERROR = "error of a square"
_COARSE = 3
"""The zoom level of the map that is shown with the question."""
_FAINTEST = 0.25
ORANGE = "#d9a441"


@dataclass(frozen=True, kw_only=True)
class Zoom(Lesson):
    """The squares of a zoom level on a real map, and the relative error by zoom level."""

    key: ClassVar[str] = "zoom"
    title: ClassVar[str] = "How fine can a map be?"
    text: ClassVar[str] = (
        "One release of 200,000 made-up residents of Los Angeles counts the squares of every zoom level, each of which cuts the squares of"
        " the one before into four. A square is drowned if its noise is typically more than half of the people who live in it."
    )
    task: ClassVar[str] = (
        "move the zoom level from 3 to 6 and watch the orange spread from the sea to the city; then raise ε until zoom 6 is blue again."
    )
    question: ClassVar[str] = (
        "You zoom in from squares of 8.7 km to squares of 1.1 km. The noise of a square falls from ± 135 to ± 70 people. What happens to"
        " its error in percent of the people who live there?"
    )
    choices: ClassVar[tuple[str, ...]] = ("it falls, too", "it stays about the same", "it grows")
    right: ClassVar[int] = 2
    answer: ClassVar[str] = (
        "It grows from 4 % to 113 %: the noise halves, but a square of 1.1 km has 55 times fewer people. At ε = 0.1, 72 of 100 people"
        " live in a square that drowns. It turns with more budget: at ε = 1 the same squares are off by 11 %, and 2 in 100 people are in"
        " one that drowns."
    )
    in_class: ClassVar[str] = (
        "The wrong belief is that a finer map is a more accurate one, because the error in people falls; the numbers beside the dots say"
        " so, and they are right. Ask what ± 70 people mean for a square with 60 residents. Let each group find the finest zoom level"
        " that it would print for its ε: a third of the ε costs about one level. From level 3 on the sea is orange, whatever ε is: where"
        " nobody lives, the map can only say that few do."
    )

    zoom: int = setting(6, "Zoom level", low=1, high=FINEST_SHOWN, help="Each level cuts every square into four; 0 is the whole map.")
    epsilon: float = epsilon_setting(0.1)
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        table = errors_by_zoom(self.epsilon, self.draw)
        row = table[table["x"] == self.zoom].to_dict("records")[0]
        share = drowned_share(self.zoom, self.epsilon)
        percent = f"{row['y']:.2g} %" if row["y"] < 10 else f"{row['y']:.0f} %"
        return LessonFigure(
            rows=((_map(self), _curve(table, self.zoom)),),
            asked=((_map(replace(self, zoom=_COARSE)),),),
            figures=(
                Figure("Side of a square", f"{side_km(self.zoom):.1f} km", f"{4**self.zoom:,} squares at this zoom level."),
                Figure("Error in people", f"± {row['noise']:.0f}", "Standard deviation of the noise of a square, by theory."),
                Figure("Error in percent", percent, f"Of the {row['people']:,.0f} people of an average square that is not empty."),
                Figure(
                    "People who drown",
                    f"{100 * share:.0f} of 100",
                    "Those who live in an orange square. Known here, because the residents are made up.",
                ),
            ),
            note="The stronger the blue, the more people are released. Line: error by theory; dots: this run. Beside them: the error in"
            " people. The release is a quadtree with a geometric split and least squares.",
        )


def errors_by_zoom(epsilon: float, draw: int) -> pd.DataFrame:
    """Compute the errors of the squares at each zoom level.

    Returns:
        A row per zoom level: x (the level), noise (standard deviation by theory, people), people (in an average square that is not
        empty), y (noise in percent of these), error (root mean square over squares that are not empty, in this run, people) and measured
        (the same in percent).
    """
    release, noise, rows = city_release(epsilon, draw), typical_noise(epsilon), []
    for zoom in range(1, DEEPEST + 1):
        true = true_squares(zoom)
        occupied = true > 0
        error = math.sqrt(float(((release.blocks(zoom) - true)[occupied] ** 2).mean()))
        people = float(true[occupied].mean())
        rows.append((zoom, noise[zoom], people, 100 * noise[zoom] / people, error, 100 * error / people))
    return pd.DataFrame(rows, columns=["x", "noise", "people", "y", "error", "measured"])


def drowned_squares(zoom: int, epsilon: float) -> NDArray[np.bool_]:
    """Return (2**zoom, 2**zoom) whether the noise is typically more than `DROWNS` percent of the people in each square."""
    return np.asarray(typical_noise(epsilon)[zoom] > DROWNS / 100 * true_squares(zoom))


def drowned_share(zoom: int, epsilon: float) -> float:
    """Return the share of the people who live in squares that are drowned."""
    people = true_squares(zoom)
    return float(people[drowned_squares(zoom, epsilon)].sum() / people.sum())


def _map(lesson: Zoom) -> alt.LayerChart:
    """Draw the squares: drowned ones in one colour, the others the stronger the more people are released for them."""
    share = drowned_share(lesson.zoom, lesson.epsilon)
    drowned, released = drowned_squares(lesson.zoom, lesson.epsilon), city_release(lesson.epsilon, lesson.draw).blocks(lesson.zoom)
    rows = merge_runs(drowned.astype(np.int64), alone=~drowned)
    known = (rows["kind"] == 0).to_numpy()
    count = np.maximum(released[rows["row"], rows["column"]], 0) * known
    strength = _FAINTEST + (0.99 - _FAINTEST) * np.sqrt(count / max(float(count.max()), 1.0))
    rows = rows.assign(
        what=np.where(known, KNOWN, DROWNED),
        strength=np.where(known, strength.round(2), 1.0),
        released=[format_cell(round(value)) if is_known else "drowned" for value, is_known in zip(count, known, strict=True)],
    ).drop(columns="kind")
    tooltips = [alt.Tooltip(field="what", type="nominal", title="square"), alt.Tooltip(field="released", type="nominal", title="people")]
    layer = square_layer(rows, lesson.zoom, ((KNOWN, DROWNED), (FILL, ORANGE)), tooltips)
    text = f"{int(drowned.sum()):,} of {drowned.size:,} squares drown in noise, with {100 * share:.0f} of 100 people."
    return real_map(LOS_ANGELES, [layer], f"Squares of {side_km(lesson.zoom):.1f} km", text)


def _curve(table: pd.DataFrame, zoom: int) -> alt.LayerChart:
    look = Look(
        "Error by zoom level",
        "zoom level",
        "error (% of the people in a square)",
        order=(_ERROR,),
        log_y=True,
        height=LOS_ANGELES.height,
        description=f"Zoom {zoom} is on the map.",
    )
    dots = pd.DataFrame({"x": table["x"], "y": table["measured"], "series": _ERROR})
    under = (vertical_line(zoom, "on the map", left=zoom > 3), horizontal_line(DROWNS, f"{DROWNS} %: drowns"), *_labels(table))
    return curve_chart(table[["x", "y"]].assign(series=_ERROR), look, dots=dots, under=under)


def _labels(table: pd.DataFrame) -> list[Any]:
    """Return layers of the errors in people, above the line; that of the first level is below it, where there is room."""
    rows = pd.DataFrame({"x": table["x"], "y": table["y"], "label": [f"± {each:,.0f}" for each in table["noise"]]})
    first, later = (alt.Chart(part) for part in (rows[:1], rows[1:]))
    style: dict[str, Any] = {"fontSize": 11, "color": alt.ExprRef(INK), "aria": False}
    marks = (first.mark_text(align="left", dx=8, dy=8, **style), later.mark_text(align="right", dx=-7, dy=-6, **style))
    x, y = (alt.X(field="x", type="quantitative"), alt.Y(field="y", type="quantitative"))
    return [mark.encode(x=x, y=y, text=alt.Text(field="label", type="nominal")) for mark in marks]
