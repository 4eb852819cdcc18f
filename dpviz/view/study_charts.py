"""Charts of studies: error against epsilon with bands and the frontier, its parts and times; and the HTF paper's figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.amounts import format_budget_symbols
from dpviz.view.charts import (
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
from dpviz.view.figure_charts import COLORS, DASHES, MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpviz.evaluation.split_objective import ObjectiveCurve

__all__ = ["FIGURES", "PARTS", "PICKED", "error_by_epsilon", "legend_height", "parts_by_label", "seconds_by_label", "under_axis"]

MEASURES = {
    "mre": "mean relative error, smoothing 20 (%)",
    "n3": "mean relative error, smoothing N/1000 (%)",
    "mae": "mean absolute error (records)",
}
MORE_COLORS = (*COLORS, "#8888ff", "#9900bb")
MORE_DASHES = (*DASHES, [6, 2, 6, 2, 1, 2], [10, 5])

_LOOKS = {"HTF (ours)": 0, "HTF (5e-4)": 1, "HTF (1e-3)": 2, "Quadtree (geo)": 3, "Quadtree (uniform)": 4}
_LOOKS |= {"KdTree (geo)": 5, "KdTree (uniform)": 6, "UG": 4, "AG": 5, "Singular": 6, "Uniform": 7, "Privelet": 8}

Columns = tuple[str, str, str, str]

_BEST, _SEEN, _TRIED, _END = "best line of all", "looked at by the paper's search", "tried by default", "where the search ends"
_KINDS = {_SEEN: ("#e69f00", "circle"), _END: ("#d55e00", "diamond"), _TRIED: ("#cc79a7", "triangle-up"), _BEST: ("#009e73", "cross")}


def figure_3(table: pd.DataFrame, epsilon: float, queries: str = "random", measure: str = "mre", *, height: int = 340) -> alt.LayerChart:
    """HTF against kd-trees by height; a large mark is where HTF found the height itself.

    Args:
        table: of `dpviz.papers.htf.figure_3`. CURATOR ONLY: errors are measured against the truth.
        epsilon: a budget of the table.
        queries: a workload of the table.
        measure: a column, one of `MEASURES`.
        height: of the whole chart, in pixels.
    """
    return _by_height(table, (epsilon, queries, measure), "HTF and kd-trees", height)


def figure_4(table: pd.DataFrame, stop: int, queries: str = "random", measure: str = "mre", *, height: int = 340) -> alt.LayerChart:
    """HTF with one stop count against grids by budget.

    Args:
        table: of `dpviz.papers.htf.figure_4`. CURATOR ONLY.
        stop: a stop count of the table; methods that have none are shown with each.
        queries: a workload of the table.
        measure: a column, one of `MEASURES`.
        height: of the whole chart, in pixels.
    """
    rows = table[(table["queries"] == queries) & (table["stop"].isna() | table["stop"].eq(stop).fillna(value=False))]
    names = _names(measure) | {"epsilon": "privacy budget ε"}
    title = f"HTF and grids by budget, stop count {stop}, {_asked(queries)}"
    return lines_with_spread(rows.drop(columns="stop"), ("epsilon", "method", measure, f"{measure}_spread"), names, title, height)


def figure_5(table: pd.DataFrame, epsilon: float, queries: str = "random", measure: str = "mre", *, height: int = 340) -> alt.LayerChart:
    """HTF against quadtrees by height, a quadtree's step counted as two levels; arguments as for `figure_3`.

    Args:
        table: of `dpviz.papers.htf.figure_5`. CURATOR ONLY.
        epsilon: a budget of the table.
        queries: a workload of the table.
        measure: a column, one of `MEASURES`.
        height: of the whole chart, in pixels.
    """
    return _by_height(table, (epsilon, queries, measure), "HTF and quadtrees", height)


def figure_6(table: pd.DataFrame, measure: str = "mre") -> alt.LayerChart:
    """Every method on every data set: a row per method, a mark per set.

    Args:
        table: of `dpviz.papers.htf.figure_6`. CURATOR ONLY.
        measure: a column, one of `MEASURES`.
    """
    drawn, ticks = on_log_axis(table, [measure])
    names, order = _names(measure) | {"data": "data"}, table["data"].unique().tolist()
    scale = alt.Scale(type="log", domainMin=ticks[0], nice=False)
    axis = alt.Axis(format=FORMAT, values=ticks)
    marks = (
        alt.Chart(with_texts(drawn, list(names)))
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X(field=f"{measure} drawn", type="quantitative", title=MEASURES[measure], scale=scale, axis=axis),
            y=alt.Y(field="method", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220, grid=True)),
            color=told_apart(alt.Color, "data", order, MORE_COLORS),
            shape=told_apart(alt.Shape, "data", order, MARKS),
            tooltip=tooltip(names),
        )
    )
    title = f"All methods on all data, {_budget(table['epsilon'].iloc[0])}"
    told = f"{MEASURES[measure]} by method. {_values_in_words(table, ('method', 'data', measure))}."
    return finish(alt.layer(marks), title, told, FRAME + 50 + ROW * table["method"].nunique())


def objective_chart(curve: ObjectiveCurve, unit: str, *, height: int = 320) -> alt.LayerChart:
    """How unevenly both parts are filled, by where the domain is split, and what a search can tell through the noise.

    Unevenness is the sum of all cells' deviations from the mean of their part: the split objective. The band is one standard
    deviation of the noise up and down, dashed is the domain as one part.

    Args:
        curve: of `dpviz.evaluation.split_objective.objective_curve`. CURATOR ONLY.
        unit: what one record is, in the plural.
        height: of the whole chart, in pixels.
    """
    names = {"place": _axis_title(curve), "objective": f"unevenness ({unit})", "gain": "less than without a split (%)"}
    x = alt.X(field="place", type="quantitative", title=names["place"], scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=6))
    y = f"unevenness of both parts ({unit})"
    line = _curve_rows(curve, curve.lines, curve.objective)
    line = line.assign(low=line["objective"] - curve.noise, high=line["objective"] + curve.noise)
    base = alt.Chart(with_texts(line, list(names))).encode(x=x, tooltip=tooltip(names))
    band = base.mark_area(color=GREY, opacity=0.25, aria=False).encode(y=_plain_y("low", y), y2="high")
    drawn = base.mark_line(color=ACCENT, strokeWidth=2.5).encode(y=_plain_y("objective", y))
    whole = alt.Chart(pd.DataFrame({"objective": [curve.unsplit]})).mark_rule(color=GREY, strokeDash=[6, 4])
    names = {"kind": "line", "turn": "turn"} | names
    marks = alt.Chart(with_texts(_marks(curve), list(names))).mark_point(filled=True, size=90)
    marks = marks.encode(
        x=x,
        y=_plain_y("objective", y),
        color=told_apart(alt.Color, "kind", list(_KINDS), [color for color, _ in _KINDS.values()]),
        shape=told_apart(alt.Shape, "kind", list(_KINDS), [mark for _, mark in _KINDS.values()]),
        tooltip=tooltip(names),
    )
    layers = alt.layer(band, whole.encode(y=_plain_y("objective", y)), drawn, marks)
    parts = "left and right" if curve.across else "lower and upper"
    return finish(layers, f"How evenly the {parts} parts are filled", _curve_told(curve, unit), height)


def lines_with_spread(
    table: pd.DataFrame, columns: Columns, names: Mapping[str, str], title: str, height: int, *, extra: Any = None
) -> alt.LayerChart:
    """A line per series on a logarithmic axis, with its spread over the runs.

    Args:
        table: tidy, CURATOR ONLY if it has errors.
        columns: along the axis, of the series, of the measure, and of the measure's standard deviation, which may be NaN.
        names: columns by their names on screen.
        title: of the chart.
        height: of the whole chart, in pixels.
        extra: further rows of the table, each drawn as a large mark of its series.
    """
    where, series, what, spread = columns
    rows = table if extra is None else pd.concat([table, extra], ignore_index=True)
    deviation = rows[spread].fillna(0.0)
    rows = rows.assign(low=np.maximum(rows[what] - deviation, rows[what] / 10), high=rows[what] + deviation)
    drawn, ticks = on_log_axis(rows, [what, "low", "high"])
    drawn, order = with_texts(drawn, list(names)), rows[series].unique().tolist()
    x = alt.X(field=where, type="ordinal", title=names[where], sort=sorted(rows[where].unique().tolist()), axis=alt.Axis(labelAngle=0))
    colors, dashes = (
        [ways[_LOOKS.get(name, place) % len(ways)] for place, name in enumerate(order)] for ways in (MORE_COLORS, MORE_DASHES)
    )
    color, y = told_apart(alt.Color, series, order, colors), log_y(names[what], ticks, f"{what} drawn")
    lined, large = drawn.iloc[: len(table)], drawn.iloc[len(table) :]
    base = alt.Chart(lined).encode(x=x, color=color, tooltip=tooltip(dict(names)))
    spreads = base.mark_rule(strokeWidth=1.5, opacity=0.6, aria=False).encode(y=log_y(names[what], ticks, "low drawn"), y2="high drawn")
    lines = base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2.5, opacity=0.9)
    layers = [spreads, lines.encode(y=y, strokeDash=told_apart(alt.StrokeDash, series, order, dashes))]
    if len(large):
        marks = alt.Chart(large).mark_point(shape="diamond", size=170, strokeWidth=2.5)
        layers.append(marks.encode(x=x, y=y, color=color, tooltip=tooltip(dict(names))))
    told = f"{names[what]} by {names[where]}. {_values_in_words(table, (series, where, what))}."
    if len(large):
        told += f" Large marks: {_values_in_words(large, (series, where, what))}."
    return finish(alt.layer(*layers), title, told, height)


def _by_height(table: pd.DataFrame, panel: tuple[float, str, str], what: str, height: int) -> alt.LayerChart:
    epsilon, queries, measure = panel
    rows = table[(table["epsilon"] == epsilon) & (table["queries"] == queries)]
    names = _names(measure) | {"height": "height in binary levels (large marks: found by HTF)"}
    title = f"{what} by height, {_budget(epsilon)}, {_asked(queries)}"
    columns = ("height", "method", measure, f"{measure}_spread")
    return lines_with_spread(rows[~rows["estimated"]], columns, names, title, height, extra=rows[rows["estimated"]])


def _names(measure: str) -> dict[str, str]:
    """What tooltips say, the drawn measure first."""
    rest = {column: name for column, name in MEASURES.items() if column != measure}
    return {"method": "method", measure: MEASURES[measure], f"{measure}_spread": "spread over runs", **rest}


def _asked(queries: str) -> str:
    words = {"random": "queries of random shape and size", "mixed": "mixed queries"}
    return words.get(queries, f"squares of {queries} of the area")


def _values_in_words(table: pd.DataFrame, columns: tuple[str, str, str]) -> str:
    """Every group of the first column in words: the third by the second."""
    group, where, what = columns
    return "; ".join(f"{name}: {told_by(rows, where, what)}" for name, rows in table.groupby(group, sort=False))


def _plain_y(field: str, title: str) -> Any:
    """An axis that need not begin at 0."""
    return alt.Y(field=field, type="quantitative", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(format=FORMAT, tickCount=5))


def _axis_title(curve: ObjectiveCurve) -> str:
    if curve.domain.is_geographic:
        return f"{'longitude' if curve.across else 'latitude'} of the line (degrees)"
    return f"{'x' if curve.across else 'y'} of the line"


def _curve_rows(curve: ObjectiveCurve, lines: Any, objective: Any) -> pd.DataFrame:
    gain = 100 * (1 - np.asarray(objective) / curve.unsplit) if curve.unsplit else 0.0
    return pd.DataFrame({"place": curve.places(lines), "objective": objective, "gain": gain})


def _marks(curve: ObjectiveCurve) -> Any:
    """The lines that a search looks at, in turn, and the best one."""
    visited = _curve_rows(curve, curve.visited, curve.visited_objective).assign(kind=_SEEN, turn=np.arange(len(curve.visited)) + 1)
    end = visited[curve.visited == curve.closes_in_on].assign(kind=_END)
    tried = _curve_rows(curve, curve.tried, curve.tried_objective).assign(kind=_TRIED, turn=np.nan)
    best = _curve_rows(curve, np.array([curve.best]), [curve.least]).assign(kind=_BEST, turn=np.nan)
    return pd.concat([visited, end, tried, best], ignore_index=True)


def _curve_told(curve: ObjectiveCurve, unit: str) -> str:
    marks = _marks(curve)
    told = f"Unevenness, the sum of deviations from the means of both parts, by the {_axis_title(curve)}: "
    told += f"{readable(curve.unsplit)} {unit} without a split, dashed. "
    told += "; ".join(f"{kind}: {told_by(rows, 'place', 'objective')}" for kind, rows in marks.groupby("kind", sort=False))
    told += f". The grey band is the spread of the noise of one look, {readable(curve.noise)} {unit};"
    return told + f" that of the default's choice is {readable(curve.choice_noise)}."


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
    told = f"{what}: {_means_in_words(rows, 'epsilon')}. On the frontier: {_named(best)}.{under_axis(rows)}"
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
    return finish(alt.layer(bars, spread), f"Parts of the error at {_budget(epsilon)}, {about}", f"{what}: {told}.", height)


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
    return finish(alt.layer(bars, spread), f"Time of a release at {_budget(epsilon)}", told, FRAME + 10 + ROW * len(order))


def _budget(epsilon: float) -> str:
    return format_budget_symbols({"epsilon": epsilon})


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


def _means_in_words(rows: pd.DataFrame, where: str) -> str:
    return "; ".join(f"{label}: {told_by(each, where, 'mean')}" for label, each in rows.groupby("label", sort=False))


def _named(best: pd.DataFrame) -> str:
    pairs = zip(best["label"], best["epsilon"], strict=True)
    return ", ".join(f"{label} at {readable(epsilon)}" for label, epsilon in pairs) or "none"
