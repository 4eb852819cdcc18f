"""Charts of a study: error against epsilon with bands and the frontier, its parts, and what releases take; tables are summaries."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.view.chart_parts import (
    AXIS,
    FORMAT,
    FRAME,
    GREY,
    LEAST_SHARE,
    ROW,
    entry_width,
    finish,
    legend,
    log_y,
    on_log_axis,
    readable,
    told_apart,
    told_by,
    tooltip,
    with_texts,
)
from dpviz.view.colors import ACCENT
from dpviz.view.figure_charts import MARKS
from dpviz.view.htf_charts import MORE_COLORS, MORE_DASHES

FIGURES = {
    "n3": "mean relative error, smoothing N/1000 (%)",
    "mae": "mean absolute error ({unit})",
    "mean20": "mean relative error, smoothing 20 (%)",
    "median20": "median relative error, smoothing 20 (%)",
}
PICKED = "picked"
PARTS = {"noise": "noise", "uniformity": "uniformity", "suppression": "suppression"}

_MOST_TICKS = 12
_USUAL_WIDTH, _MOST_COLUMNS = 900, 3
_LEGEND_ROW, _ROWS_INCLUDED = 20, 2


def legend_height(labels: list[str], height: int) -> int:
    """The height of a chart whose plot stays as large, however many rows its legend has on a page of the usual width."""
    columns = min(max(_USUAL_WIDTH // entry_width(labels), 1), _MOST_COLUMNS)
    return height + _LEGEND_ROW * max(math.ceil(len(labels) / columns) - _ROWS_INCLUDED, 0)


def under_axis(rows: pd.DataFrame) -> str:
    """What a caption says of means that are too small for the logarithmic axis; empty without any."""
    means = rows["mean"][np.isfinite(rows["mean"])]
    if not len(means) or means.min() >= means.max() * LEAST_SHARE:
        return ""
    return " Errors of 0, and those under a millionth of the largest, are drawn at the lower end of the axis."


def error_by_epsilon(rows: pd.DataFrame, best: pd.DataFrame, what: str, about: str, *, height: int = 400) -> alt.LayerChart:
    """The error of every configuration against epsilon: mean, band over the repeats, and the frontier behind. Points can be clicked.

    Args:
        rows: of `dpviz.evaluation.tables.summary`, of one workload and one figure. Made from the truth of public data.
        best: those of them that nothing beats, from `frontier`.
        what: the figure with its unit.
        about: the workload, for the title.
        height: of the whole chart, in pixels; more where the legend is long.
    """
    drawn, ticks = on_log_axis(rows, ["mean", "p10", "p90"])
    names = {"label": "configuration", "epsilon": "ε", "mean": what, "low": "mean: 95 % from", "high": "mean: 95 % to"}
    names |= {"p10": "runs: 10 % under", "p90": "runs: 10 % over", "runs": "runs"}
    order, drawn = rows["label"].unique().tolist(), with_texts(drawn, list(names))
    color = _look(alt.Color, order, MORE_COLORS)
    base = alt.Chart(drawn).encode(x=_epsilon(rows), color=color, tooltip=tooltip(names))
    band = base.mark_area(opacity=0.18, aria=False).encode(y=log_y(what, ticks, "p10 drawn"), y2="p90 drawn")
    dash = _look(alt.StrokeDash, order, MORE_DASHES)
    line = base.mark_line(strokeWidth=2.2, aria=False).encode(y=log_y(what, ticks, "mean drawn"), strokeDash=dash)
    picked = alt.selection_point(name=PICKED, fields=["label", "epsilon"], empty=True)
    marks = base.mark_point(filled=True, size=110, cursor="pointer").encode(
        y=log_y(what, ticks, "mean drawn"),
        shape=_look(alt.Shape, order, MARKS),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.55)),
    )
    front = alt.Chart(drawn.loc[drawn.index.intersection(best.index)].sort_values("epsilon"))
    front = front.mark_line(strokeWidth=9, color=GREY, opacity=0.35, strokeCap="round", strokeJoin="round", aria=False)
    front = front.encode(x=_epsilon(rows), y=log_y(what, ticks, "mean drawn"))
    told = f"{what}: {_told(rows, 'epsilon')}. On the frontier: {_named(best)}.{under_axis(rows)}"
    return finish(alt.layer(front, band, line, marks.add_params(picked)), f"Error against ε, {about}", told, legend_height(order, height))


def parts_by_label(rows: pd.DataFrame, epsilon: float, unit: str, about: str) -> alt.LayerChart:
    """What the errors of the configurations are made of: noise, and what is assumed or left out.

    Args:
        rows: of a summary: one workload, one epsilon, the figures that are parts.
        epsilon: which.
        unit: what one record or trip is.
        about: the workload, for the title.
    """
    what, names = f"mean size ({unit})", {"label": "configuration", "figure": "part"}
    names |= {"mean": what, "low": "95 % from", "high": "95 % to", "runs": "runs"}
    parts, order = rows["figure"].unique().tolist(), rows["label"].unique().tolist()
    base = alt.Chart(with_texts(rows, list(names))).encode(y=_labels(order), yOffset=_apart(parts), tooltip=tooltip(names))
    scale = alt.Scale(domain=parts, range=list(MORE_COLORS[:2]))
    color = alt.Color(field="figure", type="nominal", scale=scale, legend=legend("square"))
    bars = base.mark_bar(cornerRadiusEnd=2).encode(x=_length("mean", what), color=color)
    spread = base.mark_rule(strokeWidth=1.5, color=GREY, aria=False).encode(x=_length("p10", what), x2="p90")
    told = "; ".join(f"{part}: {told_by(each, 'label', 'mean')}" for part, each in rows.groupby("figure", sort=False))
    height = FRAME + 20 + 2 * ROW * len(order)
    return finish(alt.layer(bars, spread), f"Parts of the error at ε {epsilon:g}, {about}", f"{what}: {told}.", height)


def seconds_by_label(rows: pd.DataFrame, epsilon: float) -> alt.LayerChart:
    """How long drawing a release took, without measuring it.

    Args:
        rows: of a summary: figure seconds, one workload, one epsilon.
        epsilon: which.
    """
    what, order = "seconds per release, on this computer while the study ran", rows["label"].unique().tolist()
    names = {"label": "configuration", "mean": "mean (s)", "p10": "10 % under (s)", "p90": "10 % over (s)", "runs": "runs"}
    base = alt.Chart(with_texts(rows, list(names))).encode(y=_labels(order), tooltip=tooltip(names))
    bars = base.mark_bar(cornerRadiusEnd=2, color=ACCENT).encode(x=_length("mean", what))
    spread = base.mark_rule(strokeWidth=1.5, color=GREY, aria=False).encode(x=_length("p10", what), x2="p90")
    told = f"Seconds: {told_by(rows, 'label', 'mean')}."
    return finish(alt.layer(bars, spread), f"Time of a release at ε {epsilon:g}", told, FRAME + 10 + ROW * len(order))


def _epsilon(rows: pd.DataFrame) -> Any:
    values = sorted(rows["epsilon"].unique().tolist())
    ends = [values[0], values[-1]] if len(values) > 1 else [values[0] / 2, values[0] * 2]
    scale = alt.Scale(type="log", domain=ends, nice=False, padding=18)
    shown = values if len(values) <= _MOST_TICKS else values[:: len(values) // _MOST_TICKS + 1]
    axis = alt.Axis(values=shown, format=FORMAT, labelOverlap="greedy")
    return alt.X(field="epsilon", type="quantitative", title="privacy budget ε", scale=scale, axis=axis)


def _labels(order: list[str]) -> Any:
    return alt.Y(field="label", type="ordinal", sort=order, title=None, axis=alt.Axis(labelLimit=320))


def _apart(parts: list[str]) -> Any:
    return alt.YOffset(field="figure", type="ordinal", sort=parts)


def _length(field: str, what: str) -> Any:
    return alt.X(field=field, type="quantitative", title=what, axis=AXIS, scale=alt.Scale(domainMin=0))


def _look(channel: Any, order: list[str], ways: tuple[Any, ...]) -> Any:
    """A channel that tells configurations apart, from the first look again where there are more of them; one legend of plain marks."""
    made = told_apart(channel, "label", order, [ways[place % len(ways)] for place in range(len(order))])
    made["legend"]["symbolStrokeWidth"] = 1
    return made


def _told(rows: pd.DataFrame, where: str) -> str:
    return "; ".join(f"{label}: {told_by(each, where, 'mean')}" for label, each in rows.groupby("label", sort=False))


def _named(best: pd.DataFrame) -> str:
    pairs = zip(best["label"], best["epsilon"], strict=True)
    return ", ".join(f"{label} at {readable(epsilon)}" for label, epsilon in pairs) or "none"


__all__ = ["FIGURES", "PARTS", "PICKED", "error_by_epsilon", "legend_height", "parts_by_label", "seconds_by_label", "under_axis"]
