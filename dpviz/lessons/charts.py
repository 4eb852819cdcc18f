"""Charts of the Learn page: curves, distributions, running sums, bars and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import altair as alt
import pandas as pd

from dpviz.view.charts import AXIS, CAPTION, DASHES, FORMAT, GREY, add_texts, describe_values, finish, legend, tooltip
from dpviz.view.colors import ACCENT

HEIGHT = 330
AMBER, RED, GREEN = "#c67f00", "#d55e00", "#009e73"
COLORS = (ACCENT, AMBER, GREEN, GREY)
"""Colours of series, in order. Each has a contrast of at least 3 to 1 with the page, in both themes."""
_PHONE, _LETTER, _SYMBOL = 290, 6.3, 40
"""Widths in pixels: of a legend on a phone, of a letter in it, and of a symbol with the gaps around it."""


@dataclass(frozen=True)
class Look:
    """Titles, series and scales of a chart of curves.

    Attributes:
        x: title of the horizontal axis.
        y: title of the vertical axis.
        order: names of the series, as in the legend.
        colors: one colour per series.
        log_x: make the horizontal axis logarithmic (base 2), with a tick per value.
        log_y: make the vertical axis logarithmic.
        top: upper end of the vertical axis; None fits it to the data.
        step: draw lines as steps, for whole numbers.
        height: height of the whole chart, in pixels.
        description: beginning of the alternative text; the values of the series follow.
    """

    title: str
    x: str
    y: str
    _: KW_ONLY
    order: Sequence[str]
    colors: Sequence[str] = COLORS
    log_x: bool = False
    log_y: bool = False
    top: float | None = None
    step: bool = False
    height: int = HEIGHT
    description: str = ""


def curve_chart(table: pd.DataFrame, look: Look, *, dots: pd.DataFrame | None = None, under: Sequence[Any] = ()) -> alt.LayerChart:
    """Draw a line per series, and dots of the same colours.

    Args:
        table: columns x, y, series.
        look: titles, series and scales.
        dots: columns x, y, series of measured values.
        under: layers below the lines, with fields x and y of their own.
    """
    names = {"series": "line", "x": look.x, "y": look.y}
    line = alt.Chart(add_texts(table, list(names))).mark_line(strokeWidth=2.5, interpolate="step" if look.step else "linear")
    channels = {
        "x": x_axis(look, table),
        "y": y_axis(look, table),
        "color": style_channel(alt.Color, "series", look.order, look.colors),
        "tooltip": tooltip(names),
    }
    layers = [*under, line.encode(strokeDash=style_channel(alt.StrokeDash, "series", look.order, DASHES), **channels)]
    if dots is not None and len(dots):
        marks = alt.Chart(add_texts(dots, list(names))).mark_point(filled=True, size=65, opacity=0.85)
        layers.append(marks.encode(**channels))
    return finish(alt.layer(*layers), look.title, f"{look.description} {series_text(table)}".strip(), look.height)


def join_series(x: Any, curves: Mapping[str, Any]) -> pd.DataFrame:
    """Put (n,) values of each curve at the same (n,) places below each other: columns x, y and series, the curve's name."""
    return pd.concat([pd.DataFrame({"x": x, "y": y, "series": name}) for name, y in curves.items()], ignore_index=True)


def style_channel(channel: Any, field: str, order: Sequence[str], looks: Sequence[Any], symbol: str = "stroke") -> Any:
    """Return a channel that gives each of a few names a look of its own, with a legend that fits a phone.

    Args:
        channel: class of the Altair channel.
        field: field that holds the names.
        order: the names.
        looks: a colour, dash or shape per name.
        symbol: symbol in the legend: "stroke" for lines, else a shape.
    """
    legend_of_channel = legend(symbol)
    legend_of_channel["columns"] = columns_for(order)
    if symbol == "stroke":
        legend_of_channel["symbolSize"] = 550
    scale = alt.Scale(domain=list(order), range=list(looks[: len(order)]))
    return channel(field=field, type="nominal", scale=scale, legend=legend_of_channel)


def columns_for(names: Sequence[str]) -> int:
    """Return how many columns a legend may have on a phone.

    >>> columns_for(("home", "work")), columns_for(("your split", "uniform", "geometric", "leaf"))
    (2, 2)
    """
    widths = [_SYMBOL + _LETTER * len(name) for name in names]
    fitting = [n for n in range(1, len(names) + 1) if sum(max(widths[column::n]) for column in range(n)) <= _PHONE]
    lines = -(-len(names) // max(fitting, default=1))
    return -(-len(names) // lines)


def x_axis(look: Look, table: pd.DataFrame) -> Any:
    """Return the horizontal axis."""
    if look.log_x:
        scale, axis = alt.Scale(type="log", base=2, nice=False), alt.Axis(format=FORMAT, values=sorted(set(table["x"])), labelOverlap=True)
    else:
        least_step = 1 if table["x"].dtype.kind in "iu" else alt.Undefined
        scale, axis = alt.Scale(zero=False, nice=False), alt.Axis(format=FORMAT, tickCount=6, tickMinStep=least_step)
    return alt.X(field="x", type="quantitative", title=look.x, scale=scale, axis=axis)


def y_axis(look: Look, table: pd.DataFrame | None = None) -> Any:
    """Return the vertical axis; a logarithmic one has ticks at 1, 2 and 5 over the range of `table`."""
    if look.log_y and table is not None:
        low, high = (math.floor(math.log10(end)) for end in (table["y"].min(), table["y"].max()))
        ticks = [step * 10.0**power for power in range(low, high + 1) for step in (1, 2, 5)]
        scale, axis = alt.Scale(type="log", nice=False), alt.Axis(format=FORMAT, values=ticks)
    else:
        scale = alt.Scale(zero=True) if look.top is None else alt.Scale(domain=[0, look.top])
        axis = alt.Axis(format=FORMAT, tickCount=5)
    return alt.Y(field="y", type="quantitative", title=look.y, scale=scale, axis=axis)


def series_text(table: pd.DataFrame, most: int = 12) -> str:
    """Write the series of a table as a text; of a series with more than `most` points, only some evenly spaced ones."""
    parts = []
    for name, rows in table.groupby("series", sort=False):
        shown_rows = rows if len(rows) <= most else rows.iloc[:: -(-len(rows) // most)]
        parts.append(f"{name}: {describe_values(shown_rows, 'x', 'y')}")
    return "; ".join(parts) + "."


def vertical_line(x: float, name: str, *, left: bool = False) -> Any:
    """Draw a dashed line from bottom to top with its name at the top, to the right of the line or to the `left`."""
    base = alt.Chart(pd.DataFrame({"x": [x], "what": [name]})).encode(x=alt.X(field="x", type="quantitative"))
    rule = base.mark_rule(color=GREY, strokeDash=[5, 4], strokeWidth=2, aria=False)
    text = base.mark_text(color=CAPTION, align="right" if left else "left", dx=-5 if left else 5, fontSize=11, aria=False)
    return rule + text.encode(y=alt.value(7), text=alt.Text(field="what", type="nominal"))


def horizontal_line(y: float, name: str) -> Any:
    """Draw a dashed line from left to right with its name at the left."""
    base = alt.Chart(pd.DataFrame({"y": [y], "what": [name]})).encode(y=alt.Y(field="y", type="quantitative"))
    rule = base.mark_rule(color=GREY, strokeDash=[2, 3], strokeWidth=1.5, aria=False)
    text = base.mark_text(color=CAPTION, align="left", dy=-8, fontSize=11, aria=False)
    return rule + text.encode(x=alt.value(5), text=alt.Text(field="what", type="nominal"))


def band(table: pd.DataFrame) -> Any:
    """Draw a shaded band between the columns low and high over x."""
    area = alt.Chart(table).mark_area(color=GREY, opacity=0.22, aria=False)
    return area.encode(x=alt.X(field="x", type="quantitative"), y=alt.Y(field="low", type="quantitative"), y2=alt.Y2(field="high"))


def step_chart(table: pd.DataFrame, look: Look, *, dots: pd.DataFrame | None = None, spread: bool = False) -> alt.LayerChart:
    """Draw a line per series over a few named steps, with dots for measured values or bars for the spread of runs.

    Args:
        table: columns x (names in order), y, series; with `spread` also low and high.
        look: titles and series.
        dots: columns x, y, series of measured values.
        spread: draw a bar from low to high.
    """
    names = {"series": "line", "x": look.x, "y": look.y}
    channels: dict[str, Any] = {
        "x": alt.X(field="x", type="ordinal", sort=None, title=look.x, axis=alt.Axis(labelAngle=0)),
        "color": style_channel(alt.Color, "series", look.order, look.colors),
    }
    y = alt.Y(field="y", type="quantitative", title=look.y, axis=AXIS, scale=alt.Scale(zero=True))
    base = alt.Chart(add_texts(table, list(names))).encode(**channels, tooltip=tooltip(names))
    layers = []
    if spread:
        low = alt.Y(field="low", type="quantitative", title=look.y)
        layers.append(base.mark_rule(strokeWidth=6, opacity=0.25, aria=False).encode(y=low, y2=alt.Y2(field="high")))
    dash = style_channel(alt.StrokeDash, "series", look.order, DASHES)
    layers.append(base.mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=40, filled=True)).encode(y=y, strokeDash=dash))
    if dots is not None:
        marks = alt.Chart(add_texts(dots, list(names))).mark_point(size=90, opacity=0.9, strokeWidth=2)
        layers.append(marks.encode(**channels, y=y, tooltip=tooltip(names)))
    return finish(alt.layer(*layers), look.title, f"{look.description} {series_text(table)}".strip(), look.height)
