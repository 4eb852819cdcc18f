"""Charts of two laws that are one person apart, and of what is concluded from an output."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dpviz.lessons.charts import COLORS, RED, Look, apart, band, curves, level, told_of, upright, x_axis, y_axis
from dpviz.view.chart_parts import finish, readable, tooltip, with_texts

OUT, IN = "without the person", "with the person"


def two_laws(table: pd.DataFrame, seen: int, *, height: int = 330) -> alt.LayerChart:
    """Probabilities of every released count with and without one person.

    Args:
        table: columns x (released count), y (probability in percent), series (`OUT` or `IN`).
        seen: the output that is looked at.
        height: of the whole chart, in pixels.
    """
    look = Look(title="Which count is released?", x="released count", y="probability (%)", order=(OUT, IN), colors=COLORS)
    names = {"series": "law", "x": look.x, "y": look.y}
    color = apart(alt.Color, "series", look.order, look.colors)
    base = alt.Chart(with_texts(table, list(names))).encode(x=x_axis(look, table), color=color, tooltip=tooltip(names))
    area = base.mark_area(opacity=0.18, interpolate="step", aria=False).encode(y=alt.Y(field="y", type="quantitative", stack=None))
    line = base.mark_line(strokeWidth=2.2, interpolate="step").encode(
        y=y_axis(look), strokeDash=apart(alt.StrokeDash, "series", look.order, ([1, 0], [6, 3]))
    )
    told = f"The output looked at is {seen}. {told_of(table)}"
    return finish(alt.layer(area, line, upright(seen, f"seen: {seen}", left=_right_half(table, seen))), look.title, told, height)


def beliefs(table: pd.DataFrame, bounds: tuple[float, float, float], seen: int, *, height: int = 330) -> alt.LayerChart:
    """What the attacker believes after each output, within the bounds of differential privacy.

    Args:
        table: columns x (released count), y (percent), low, high (the bounds in percent) and series, one name.
        bounds: the belief before, and the belief at `seen` and its upper bound, in percent.
        seen: the output that is looked at.
        height: of the whole chart, in pixels.
    """
    before, after, most = bounds
    name = str(table["series"].iloc[0])
    told = f"Before: {readable(before)} %. After seeing {seen}: {readable(round(after, 2))} %. Bound: {readable(round(most, 2))} %."
    look = Look(
        title="What does the attacker believe?",
        x="released count",
        y="belief that the person is in (%)",
        order=(name,),
        step=True,
        top=100,
        height=height,
        told=told,
    )
    mark = alt.Chart(pd.DataFrame({"x": [seen], "y": [after]})).mark_point(size=130, filled=True, color=RED, opacity=1)
    mark = mark.encode(x=alt.X(field="x", type="quantitative"), y=alt.Y(field="y", type="quantitative"))
    line = upright(seen, f"seen: {seen}", left=_right_half(table, seen))
    return curves(table, look, under=(band(table), level(before, f"before: {before:g} %"), line, mark))


def _right_half(table: pd.DataFrame, x: float) -> bool:
    return bool(2 * x > table["x"].min() + table["x"].max())


__all__ = ["IN", "OUT", "beliefs", "two_laws"]
