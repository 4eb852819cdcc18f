"""Charts of the Learn page that stand on steps or in rows: parts of a street, levels, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from dpviz.lessons.charts import RED, Look, apart, told_of
from dpviz.view.chart_parts import AXIS, FORMAT, GREY, finish, readable, tooltip, with_texts
from dpviz.view.colors import ACCENT
from dpviz.view.figure_charts import DASHES

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
    rows = table.assign(label=[_whole(count) for count in table["count"]], off=table["gap"].abs() > LARGEST_GAP)
    inner = rows["level"] != levels[-1]
    rows["parts"] = [f"parts {_whole(total)}" if has else "" for total, has in zip(rows["count"] - rows["gap"], inner, strict=True)]
    rows["y"] = [levels.index(level) for level in rows["level"]]
    rows = rows.assign(y2=rows["y"] + 0.92, middle=(rows["west"] + rows["east"]) / 2)
    return rows.assign(**{"label y": rows["y"] + 0.36, "parts y": rows["y"] + 0.72})


def _whole(count: float) -> str:
    """A count rounded, with a real minus sign.

    >>> _whole(-3.4), _whole(1200.0), _whole(-0.2)
    ('−3', '1,200', '0')
    """
    return f"{round(count):,}".replace("-", "−")


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


__all__ = ["LARGEST_GAP", "by_step", "icicle", "interval_rows"]
