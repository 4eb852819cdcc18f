"""Charts of the Learn page: curves, distributions, running sums, bars and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from dpviz.amounts import format_count
from dpviz.view.charts import AXIS, FORMAT, GREY, finish, legend, readable, told_by, tooltip, with_texts
from dpviz.view.colors import ACCENT
from dpviz.view.figure_charts import DASHES

__all__ = ["IN", "LARGEST_GAP", "OUT", "beliefs", "by_step", "icicle", "interval_rows", "two_laws"]

HEIGHT = 330
AMBER, RED, GREEN = "#c67f00", "#d55e00", "#009e73"
COLORS = (ACCENT, AMBER, GREEN, GREY)
"""Of series in their order: each at least three times as light or dark as the page, in both themes."""
_PHONE, _LETTER, _SYMBOL = 290, 6.3, 40
"""Pixels: room for a legend on a phone, a letter of it, and a symbol with the gaps around it."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a chart of curves looks.

    Attributes:
        title: of the chart.
        x: title of the axis along.
        y: title of the axis upwards.
        order: names of the series, as in the legend.
        colors: one per series.
        log_x: logarithmic, base 2, with a tick per value.
        log_y: logarithmic.
        top: upper end of the axis upwards; fitting if None.
        step: drawn as steps, for whole numbers.
        height: of the whole chart, in pixels.
        told: what the alternative text adds.
    """

    title: str
    x: str
    y: str
    order: Sequence[str]
    colors: Sequence[str] = COLORS
    log_x: bool = False
    log_y: bool = False
    top: float | None = None
    step: bool = False
    height: int = HEIGHT
    told: str = ""


def curves(table: pd.DataFrame, look: Look, *, dots: pd.DataFrame | None = None, under: Sequence[Any] = ()) -> alt.LayerChart:
    """A line per series, and dots of the same colours.

    Args:
        table: columns x, y, series.
        look: titles, series and scales.
        dots: the same columns, for what was drawn or measured.
        under: layers below the lines, with fields x and y of their own.
    """
    names = {"series": "line", "x": look.x, "y": look.y}
    line = alt.Chart(with_texts(table, list(names))).mark_line(strokeWidth=2.5, interpolate="step" if look.step else "linear")
    channels = {
        "x": x_axis(look, table),
        "y": y_axis(look, table=table),
        "color": apart(alt.Color, "series", look.order, look.colors),
        "tooltip": tooltip(names),
    }
    layers = [*under, line.encode(strokeDash=apart(alt.StrokeDash, "series", look.order, DASHES), **channels)]
    if dots is not None and len(dots):
        marks = alt.Chart(with_texts(dots, list(names))).mark_point(filled=True, size=65, opacity=0.85)
        layers.append(marks.encode(**channels))
    return finish(alt.layer(*layers), look.title, f"{look.told} {told_of(table)}".strip(), look.height)


def apart(channel: Any, field: str, order: Sequence[str], ways: Sequence[Any], symbol: str = "stroke") -> Any:
    """A channel that gives each of a few names a look of its own; its legend shows dashes and has room on a phone.

    Args:
        channel: of Altair.
        field: of the names.
        order: the names.
        ways: one per name.
        symbol: of the legend: "stroke" for lines, else a shape.
    """
    shown = legend(symbol)
    shown["columns"] = columns_for(order)
    if symbol == "stroke":
        shown["symbolSize"] = 550
    return channel(field=field, type="nominal", scale=alt.Scale(domain=list(order), range=list(ways[: len(order)])), legend=shown)


def columns_for(names: Sequence[str]) -> int:
    """How many columns a legend may have on a phone.

    >>> columns_for(("home", "work")), columns_for(("your split", "uniform", "geometric", "leaf"))
    (2, 2)
    """
    widths = [_SYMBOL + _LETTER * len(name) for name in names]
    fitting = [n for n in range(1, len(names) + 1) if sum(max(widths[place::n]) for place in range(n)) <= _PHONE]
    lines = -(-len(names) // max(fitting, default=1))
    return -(-len(names) // lines)


def x_axis(look: Look, table: pd.DataFrame) -> Any:
    """The axis along."""
    if look.log_x:
        scale, axis = alt.Scale(type="log", base=2, nice=False), alt.Axis(format=FORMAT, values=sorted(set(table["x"])), labelOverlap=True)
    else:
        scale, axis = alt.Scale(zero=False, nice=False), alt.Axis(format=FORMAT, tickCount=6)
    return alt.X(field="x", type="quantitative", title=look.x, scale=scale, axis=axis)


def y_axis(look: Look, field: str = "y", table: pd.DataFrame | None = None) -> Any:
    """The axis upwards; a logarithmic one has ticks at 1, 2 and 5 over the range of `table`."""
    if look.log_y and table is not None:
        low, high = (math.floor(math.log10(end)) for end in (table[field].min(), table[field].max()))
        ticks = [step * 10.0**power for power in range(low, high + 1) for step in (1, 2, 5)]
        scale, axis = alt.Scale(type="log", nice=False), alt.Axis(format=FORMAT, values=ticks)
    else:
        scale = alt.Scale(zero=True) if look.top is None else alt.Scale(domain=[0, look.top])
        axis = alt.Axis(format=FORMAT, tickCount=5)
    return alt.Y(field=field, type="quantitative", title=look.y, scale=scale, axis=axis)


def told_of(table: pd.DataFrame, most: int = 12) -> str:
    """The series of a table in words, thinned out where they are long."""
    parts = []
    for name, rows in table.groupby("series", sort=False):
        some = rows if len(rows) <= most else rows.iloc[:: -(-len(rows) // most)]
        parts.append(f"{name}: {told_by(some, 'x', 'y')}")
    return "; ".join(parts) + "."


def upright(x: float, name: str, *, left: bool = False) -> Any:
    """A dashed line from bottom to top with its name at the top, to the right of it or to the `left`."""
    base = alt.Chart(pd.DataFrame({"x": [x], "what": [name]})).encode(x=alt.X(field="x", type="quantitative"))
    rule = base.mark_rule(color=GREY, strokeDash=[5, 4], strokeWidth=2, aria=False)
    text = base.mark_text(color=GREY, align="right" if left else "left", dx=-5 if left else 5, fontSize=11, aria=False)
    return rule + text.encode(y=alt.value(7), text=alt.Text(field="what", type="nominal"))


def level(y: float, name: str) -> Any:
    """A dashed line from left to right with its name at the left."""
    base = alt.Chart(pd.DataFrame({"y": [y], "what": [name]})).encode(y=alt.Y(field="y", type="quantitative"))
    rule = base.mark_rule(color=GREY, strokeDash=[2, 3], strokeWidth=1.5, aria=False)
    text = base.mark_text(color=GREY, align="left", dy=-8, fontSize=11, aria=False)
    return rule + text.encode(x=alt.value(5), text=alt.Text(field="what", type="nominal"))


def band(table: pd.DataFrame, color: str = GREY) -> Any:
    """A shaded band between the columns low and high over x."""
    area = alt.Chart(table).mark_area(color=color, opacity=0.22, aria=False)
    return area.encode(x=alt.X(field="x", type="quantitative"), y=alt.Y(field="low", type="quantitative"), y2=alt.Y2(field="high"))


LARGEST_GAP = 1e-6
_FITS, _OFF, _INK = "#d6e6ec", "#f7d3b5", "#1d282e"


def icicle(table: pd.DataFrame, levels: Sequence[str], title: str, *, height: int = 260) -> alt.LayerChart:
    """Nested parts of a street, one row per level, with their counts and what their own parts add up to.

    Args:
        table: level, west, east, count, gap, true.
        levels: from the whole to the smallest parts.
        title: of the chart.
        height: of the whole chart, in pixels.
    """
    rows = _placed(table, levels)
    names = {"level": "level", "count": "count", "true": "true", "gap": "own count minus the sum of its parts"}
    base = alt.Chart(with_texts(rows, list(names))).encode(tooltip=tooltip(names))
    up = alt.Scale(domain=[0, len(levels)], reverse=True, nice=False)
    boxes = base.mark_rect(stroke=GREY, strokeWidth=1, cornerRadius=2).encode(
        x=alt.X(field="west", type="quantitative", axis=None, scale=alt.Scale(nice=False)),
        x2=alt.X2(field="east"),
        y=alt.Y(field="y", type="quantitative", axis=None, scale=up),
        y2=alt.Y2(field="y2"),
        color=alt.Color(field="off", type="nominal", scale=alt.Scale(domain=[False, True], range=[_FITS, _OFF]), legend=None),
    )
    middle = alt.X(field="middle", type="quantitative")
    texts = [
        base.mark_text(fontSize=size, fontWeight=700 if size > 12 else 400, color=_INK, aria=False).encode(
            x=middle, y=alt.Y(field=f"{text} y", type="quantitative", scale=up), text=alt.Text(field=text, type="nominal")
        )
        for text, size in (("label", 13), ("parts", 10))
    ]
    told = "; ".join(f"{level}: {', '.join(rows.loc[rows['level'] == level, 'label'])}" for level in levels)
    return finish(alt.layer(boxes, *texts), title, f"{told}. {int(rows['off'].sum())} counts differ from the sum of their parts.", height)


def _placed(table: pd.DataFrame, levels: Sequence[str]) -> pd.DataFrame:
    """The parts with their places and texts."""
    rows = table.assign(label=[format_count(count) for count in table["count"]], off=table["gap"].abs() > LARGEST_GAP)
    inner = rows["level"] != levels[-1]
    rows["parts"] = [f"parts {format_count(total)}" if has else "" for total, has in zip(rows["count"] - rows["gap"], inner, strict=True)]
    rows["y"] = [levels.index(level) for level in rows["level"]]
    rows = rows.assign(y2=rows["y"] + 0.92, middle=(rows["west"] + rows["east"]) / 2)
    return rows.assign(**{"label y": rows["y"] + 0.36, "parts y": rows["y"] + 0.72})


def by_step(table: pd.DataFrame, look: Look, *, dots: pd.DataFrame | None = None, spread: bool = False) -> alt.LayerChart:
    """A line per series over a few named steps, with dots for what was drawn or bars for the spread of draws.

    Args:
        table: x (names in order), y, series; with `spread` also low and high.
        look: titles and series.
        dots: x, y, series.
        spread: draw low to high.
    """
    names = {"series": "line", "x": look.x, "y": look.y}
    channels: dict[str, Any] = {
        "x": alt.X(field="x", type="ordinal", sort=None, title=look.x, axis=alt.Axis(labelAngle=0)),
        "color": apart(alt.Color, "series", look.order, look.colors),
    }
    y = alt.Y(field="y", type="quantitative", title=look.y, axis=AXIS, scale=alt.Scale(zero=True))
    base = alt.Chart(with_texts(table, list(names))).encode(**channels, tooltip=tooltip(names))
    layers = []
    if spread:
        low = alt.Y(field="low", type="quantitative", title=look.y)
        layers.append(base.mark_rule(strokeWidth=6, opacity=0.25, aria=False).encode(y=low, y2=alt.Y2(field="high")))
    dash = apart(alt.StrokeDash, "series", look.order, DASHES)
    layers.append(base.mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=40, filled=True)).encode(y=y, strokeDash=dash))
    if dots is not None:
        drawn = alt.Chart(with_texts(dots, list(names))).mark_point(size=90, opacity=0.9, strokeWidth=2)
        layers.append(drawn.encode(**channels, y=y, tooltip=tooltip(names)))
    return finish(alt.layer(*layers), look.title, f"{look.told} {told_of(table)}".strip(), look.height)


def interval_rows(table: pd.DataFrame, truth: float, kinds: Sequence[str], *, height: int = 380) -> alt.LayerChart:
    """Intervals side by side, coloured by whether they hold the truth.

    Args:
        table: release, estimate, low, high, series (one of `kinds`).
        truth: the true count.
        kinds: holding, missing.
        height: of the whole chart, in pixels.
    """
    names = {"release": "release", "estimate": "estimate", "low": "from", "high": "to", "series": "interval"}
    x = alt.X(
        field="release",
        type="quantitative",
        title="release",
        scale=alt.Scale(nice=False, domain=[0, len(table) + 1]),
        axis=alt.Axis(tickCount=10),
    )
    title = "people in the area"
    base = alt.Chart(with_texts(table, list(names))).encode(x=x, tooltip=tooltip(names))
    color = apart(alt.Color, "series", kinds, (ACCENT, RED), "circle")
    scale, axis = alt.Scale(zero=False), alt.Axis(format=FORMAT, tickCount=5)
    bars = base.mark_rule(strokeWidth=1.6).encode(
        y=alt.Y(field="low", type="quantitative", title=title, scale=scale, axis=axis), y2=alt.Y2(field="high"), color=color
    )
    shape = apart(alt.Shape, "series", kinds, ("circle", "cross"), "circle")
    dots = base.mark_point(filled=True, size=34, opacity=1).encode(
        y=alt.Y(field="estimate", type="quantitative", scale=scale), color=color, shape=shape
    )
    line = alt.Chart(pd.DataFrame({"y": [truth], "what": ["true count"]})).mark_rule(color=GREY, strokeWidth=2)
    line = line.encode(y=alt.Y(field="y", type="quantitative"), tooltip=[alt.Tooltip(field="what", type="nominal", title="line")])
    number = table["series"].value_counts()
    told = f"True count {readable(truth)}. {', '.join(f'{int(number.get(kind, 0))} {kind}' for kind in kinds)}."
    return finish(alt.layer(bars, dots, line), "A hundred intervals; line: the true count", told, height)


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
