"""What every chart is made of: frames, log axes, legends, tooltips and texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.view.escape import line

if TYPE_CHECKING:
    from collections.abc import Sequence

GREY = "#8a8f94"
ROW, FRAME = 22, 100
FORMAT = ",.6~r"
AXIS = alt.Axis(format=FORMAT, tickCount=5)
_LEGEND_ENTRY, _LETTER, _SYMBOL = 155, 6, 45  # pixels of an entry, more or less, of its letters, and of what else is in it
LEAST_SHARE = 1e-6  # of the largest value: what is less is drawn at the lower end of a log axis
POINT = alt.OverlayMarkDef(size=55, filled=True)


def finish(chart: Any, title: str, told: str, height: int) -> alt.LayerChart:
    """The chart with its title and alternative text; it fills its container, and `height` includes title, legend and axes."""
    finished: alt.LayerChart = chart.properties(
        title=alt.Title(line(title), offset=6),
        description=line(f"{title}. {told}"),
        height=height,
        width="container",
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        padding={"left": 5, "top": 5, "right": 16, "bottom": 5},
    )
    return finished


def legend(symbol: str = "stroke") -> alt.Legend:
    """A legend above the chart, of lines or of squares."""
    return alt.Legend(
        title=None, orient="top", offset=4, padding=0, symbolType=symbol, symbolOpacity=1, symbolStrokeWidth=3 if symbol == "stroke" else 0
    )


def told_apart(channel: Any, field: str, order: Sequence[str], ways: Sequence[Any]) -> Any:
    """A channel that gives each of a few names a look of its own, with a legend."""
    shown, entry = legend(), entry_width(order)
    shown["columns"] = alt.ExprRef(f"clamp(floor(width / {entry}), 1, {4 if len(order) <= 4 else 3})")
    shown["labelLimit"] = alt.ExprRef(f"max(width - {_SYMBOL}, {_LEGEND_ENTRY})")
    return channel(field=field, type="nominal", scale=alt.Scale(domain=list(order), range=list(ways[: len(order)])), legend=shown)


def entry_width(names: Sequence[str]) -> int:
    """Pixels that the longest name takes in a legend, more or less."""
    return max(_LEGEND_ENTRY, _SYMBOL + _LETTER * max(map(len, names), default=0))


def on_log_axis(table: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, list[float]]:
    """The table with a drawable copy of each column, zeros and next to nothing raised to the axis' lower end, and the ticks from there."""
    values = table[list(columns)].to_numpy(np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    ends = (max(positive.min(), positive.max() * LEAST_SHARE), positive.max()) if positive.size else (0.1, 1.0)
    low, high = (math.floor(math.log10(end)) for end in ends)
    steps = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    return table.assign(**{f"{column} drawn": np.maximum(table[column], ticks[0]) for column in columns}), ticks


def log_y(title: str, ticks: list[float], field: str) -> Any:
    """A logarithmic axis with given ticks for a column that was made drawable."""
    axis = alt.Axis(format=FORMAT, values=ticks)
    return alt.Y(field=field, type="quantitative", title=title, scale=alt.Scale(type="log", domainMin=ticks[0], nice=False), axis=axis)


def with_texts(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table with a readable copy of each column, for tooltips."""
    return table.assign(**{f"{column} shown": table[column].map(readable) for column in columns})


def tooltip(names: dict[str, str]) -> list[alt.Tooltip]:
    """The tooltip of columns by their names on screen."""
    return [alt.Tooltip(field=f"{column} shown", type="nominal", title=name) for column, name in names.items()]


def readable(value: object) -> str:
    """A number as a person writes it; a text as one clean line."""
    if isinstance(value, str):
        return line(value)
    number = float(value)  # type: ignore[arg-type]
    if math.isnan(number):
        return "–"
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 1000 else f"{number:,.4g}"


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{'−' if value < 0 else '+'}{readable(abs(value))}"


def told_by(table: pd.DataFrame, where: str, what: str) -> str:
    """A table in words: what, by where."""
    pairs = zip(table[where], table[what], strict=True)
    return ", ".join(f"{readable(place)}: {readable(value)}" for place, value in pairs)


def distinct(names: Sequence[str]) -> list[str]:
    """The names as clean lines, with a number behind those that came before: two bars of one name would lie on each other."""
    names = [line(name) for name in names]
    return [name if name not in names[:place] else f"{name} ({names[:place].count(name) + 1})" for place, name in enumerate(names)]


def hex_of(color: tuple[int, int, int]) -> str:
    """A colour as the web writes it."""
    return "#{:02x}{:02x}{:02x}".format(*color)
