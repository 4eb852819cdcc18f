"""Charts of the Learn page about one split: how even the parts are, and which line a private choice takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from dpviz.lessons.charts import AMBER, GREEN, apart, band, level
from dpviz.view.chart_parts import AXIS, FORMAT, GREY, finish, readable, told_by, tooltip, with_texts
from dpviz.view.colors import ACCENT

if TYPE_CHECKING:
    from dpviz.evaluation.split_objective import ObjectiveCurve

TRIED, BEST = "tried line", "best of all"


def split_curve(curve: ObjectiveCurve, where: str, *, height: int = 380) -> alt.LayerChart:
    """How unevenly both parts are filled, by where the line is; the band is one standard deviation of the choice's noise.

    Args:
        curve: of a made-up town.
        where: title of the axis along.
        height: of the whole chart, in pixels.
    """
    names = {"kind": "mark", "x": where, "y": "unevenness (people)"}
    rows = pd.DataFrame({"x": curve.lines, "y": curve.objective, "kind": "any line"})
    rows = rows.assign(low=rows["y"] - curve.choice_noise, high=rows["y"] + curve.choice_noise)
    marked = pd.DataFrame({"x": [*curve.tried, curve.best], "y": [*curve.tried_objective, curve.least]})
    marked["kind"] = [TRIED] * len(curve.tried) + [BEST]
    x = alt.X(field="x", type="quantitative", title=where, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6))
    y = alt.Y(field="y", type="quantitative", title=names["y"], scale=alt.Scale(zero=False), axis=alt.Axis(format=FORMAT, tickCount=5))
    line = alt.Chart(with_texts(rows, list(names))).mark_line(color=ACCENT, strokeWidth=2.5).encode(x=x, y=y, tooltip=tooltip(names))
    marks = alt.Chart(with_texts(marked, list(names))).mark_point(filled=True, size=110, opacity=1)
    marks = marks.encode(x=x, y=y, tooltip=tooltip(names), **_kinds())
    told = f"Unevenness without a split: {readable(curve.unsplit)}. At the lines that are tried: {told_by(marked[:-1], 'x', 'y')}."
    told += f" Best of all: {readable(curve.best)}, with {readable(curve.least)}. Noise: {readable(curve.choice_noise)} up and down."
    whole = level(curve.unsplit, "without a split")
    return finish(alt.layer(band(rows), whole, line, marks), "How uneven are both parts?", told, height)


def _kinds() -> dict[str, Any]:
    kinds = (TRIED, BEST)
    return {
        "color": apart(alt.Color, "kind", kinds, (AMBER, GREEN), "circle"),
        "shape": apart(alt.Shape, "kind", kinds, ("triangle-up", "cross"), "circle"),
    }


def chosen(table: pd.DataFrame, where: str, *, height: int = 220) -> alt.LayerChart:
    """How often each line was chosen.

    Args:
        table: place, times (percent).
        where: title of the axis.
        height: of the whole chart, in pixels.
    """
    names = {"place": where, "times": "chosen (%)"}
    rows = table.assign(place=table["place"].astype(int).astype(str))
    base = alt.Chart(with_texts(rows, list(names))).encode(
        x=alt.X(field="place", type="ordinal", sort=None, title=where, axis=alt.Axis(labelAngle=0)),
        y=alt.Y(field="times", type="quantitative", title="chosen (%)", scale=alt.Scale(domain=[0, 110]), axis=AXIS),
        tooltip=tooltip(names),
    )
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2, size=26)
    texts = base.mark_text(color=GREY, dy=-8, aria=False).encode(text=alt.Text(field="times shown", type="nominal"))
    return finish(alt.layer(bars, texts), "Where private choices fall", f"Chosen (%): {told_by(rows, 'place', 'times')}.", height)
