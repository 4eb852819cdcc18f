"""Charts of studies (error against epsilon, parts of the error, run times), and of the split objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    MARKS,
    ROW,
    add_texts,
    category_channel,
    describe_series,
    describe_values,
    entry_width,
    finish,
    format_cell,
    legend,
    tooltip,
)
from dpviz.view.colors import ACCENT
from dpviz.view.error_axis import LOG, axis_ends, error_axis
from dpviz.view.looks import MORE_COLORS, MORE_DASHES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dpviz.evaluation.split_objective import ObjectiveCurve
    from dpviz.view.error_axis import Scale
    from dpviz.view.looks import Look

    Looks = Mapping[str, Look]

__all__ = [
    "PARTS",
    "PICKED",
    "Band",
    "Target",
    "choose_band",
    "ends_with_target",
    "error_by_epsilon",
    "legend_height",
    "parts_by_label",
    "seconds_by_label",
    "tiny_means_note",
]

Columns = tuple[str, str, str, str]

_BEST, _VISITED, _TRIED, _END = "best line", "visited by the paper's search", "tried by default", "end of the paper's search"
_KINDS = {_VISITED: ("#e69f00", "circle"), _END: ("#d55e00", "diamond"), _TRIED: ("#cc79a7", "triangle-up"), _BEST: ("#009e73", "cross")}


def objective_chart(curve: ObjectiveCurve, unit: str) -> alt.LayerChart:
    """Draw the split objective of HTF by the position of the split, with the noise on the values that a private search compares.

    The objective ("unevenness") is the sum of all cells' absolute deviations from the mean of their part. The band is one standard
    deviation of the noise each way; the dashed line is the value without a split.

    Args:
        curve: of `dpviz.evaluation.split_objective.objective_curve`. CURATOR ONLY.
        unit: what is counted, in the plural.
    """
    names = {"place": _axis_title(curve), "objective": f"unevenness ({unit})", "gain": "less than without a split (%)"}
    x = alt.X(field="place", type="quantitative", title=names["place"], scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=6))
    y = f"unevenness of both parts ({unit})"
    line = _curve_rows(curve, curve.lines, curve.objective)
    line = line.assign(low=line["objective"] - curve.noise, high=line["objective"] + curve.noise)
    base = alt.Chart(add_texts(line, list(names))).encode(x=x, tooltip=tooltip(names))
    band = base.mark_area(color=GREY, opacity=0.25, aria=False).encode(y=_plain_y("low", y), y2="high")
    drawn = base.mark_line(color=ACCENT, strokeWidth=2.5).encode(y=_plain_y("objective", y))
    whole = alt.Chart(pd.DataFrame({"objective": [curve.unsplit]})).mark_rule(color=GREY, strokeDash=[6, 4])
    names = {"kind": "line", "turn": "turn"} | names
    marks = alt.Chart(add_texts(_marks(curve), list(names))).mark_point(filled=True, size=90)
    marks = marks.encode(
        x=x,
        y=_plain_y("objective", y),
        color=category_channel(alt.Color, "kind", list(_KINDS), [color for color, _ in _KINDS.values()]),
        shape=category_channel(alt.Shape, "kind", list(_KINDS), [mark for _, mark in _KINDS.values()]),
        tooltip=tooltip(names),
    )
    layers = alt.layer(band, whole.encode(y=_plain_y("objective", y)), drawn, marks)
    parts = "left and right" if curve.across else "lower and upper"
    return finish(layers, f"How evenly the {parts} parts are filled", _curve_text(curve, unit), 320)


def lines_with_spread(
    table: pd.DataFrame,
    columns: Columns,
    names: Mapping[str, str],
    title: str,
    height: int,
    *,
    extra: Any = None,
    scale: Scale = LOG,
    looks: Looks | None = None,
    ends: tuple[str, str] | None = None,
) -> alt.LayerChart:
    """Draw a line per series, with bars of one standard deviation over the runs, or between two columns.

    Args:
        table: one row per point. CURATOR ONLY if it has errors.
        columns: the names of four columns: x axis, series, measure, and standard deviation of the measure (may be NaN).
        names: labels of the columns.
        title: of the chart.
        height: of the whole chart, in pixels.
        extra: further rows, each drawn as a large mark in the colour of its series.
        scale: of the axis of the measure, see `dpviz.view.error_axis`.
        looks: the look of each series; None for looks by their order.
        ends: the columns between which the bars reach; None for one standard deviation each way.
    """
    x_column, series, measure, spread = columns
    rows = table if extra is None else pd.concat([table, extra], ignore_index=True)
    if ends is None:
        deviation, least = rows[spread].fillna(0.0), rows[measure] / 10 if scale == LOG else 0.0
        rows = rows.assign(low=np.maximum(rows[measure] - deviation, least), high=rows[measure] + deviation)
    else:
        rows = rows.assign(low=rows[ends[0]], high=rows[ends[1]])
    drawn, make_y = error_axis(rows, [measure, "low", "high"], names[measure], scale)
    drawn, order = add_texts(drawn, list(names)), rows[series].unique().tolist()
    values = sorted(rows[x_column].unique().tolist())
    x = alt.X(field=x_column, type="ordinal", title=names[x_column], sort=values, axis=alt.Axis(labelAngle=0))
    colors, dashes, _ = _looks_of(order, looks)
    color, y = category_channel(alt.Color, series, order, colors), make_y(f"{measure} drawn")
    lined, large = drawn.iloc[: len(table)], drawn.iloc[len(table) :]
    base = alt.Chart(lined).encode(x=x, color=color, tooltip=tooltip(dict(names)))
    spreads = base.mark_rule(strokeWidth=1.5, opacity=0.6, aria=False).encode(y=make_y("low drawn"), y2="high drawn")
    lines = base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2.5, opacity=0.9)
    layers = [spreads, lines.encode(y=y, strokeDash=category_channel(alt.StrokeDash, series, order, dashes))]
    if len(large):
        marks = alt.Chart(large).mark_point(shape="diamond", size=170, strokeWidth=2.5)
        layers.append(marks.encode(x=x, y=y, color=color, tooltip=tooltip(dict(names))))
    text = f"{names[measure]} by {names[x_column]}. {describe_series(table, series, x_column, measure)}."
    if len(large):
        text += f" Large marks: {describe_series(large, series, x_column, measure)}."
    return finish(alt.layer(*layers), title, text, height)


def _plain_y(field: str, title: str) -> Any:
    """Make a y axis that need not begin at 0."""
    return alt.Y(field=field, type="quantitative", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(format=FORMAT, tickCount=5))


def _axis_title(curve: ObjectiveCurve) -> str:
    if curve.domain.is_geographic:
        return f"{'longitude' if curve.across else 'latitude'} of the line (degrees)"
    return f"{'x' if curve.across else 'y'} of the line"


def _curve_rows(curve: ObjectiveCurve, lines: Any, objective: Any) -> pd.DataFrame:
    gain = 100 * (1 - np.asarray(objective) / curve.unsplit) if curve.unsplit else 0.0
    return pd.DataFrame({"place": curve.places(lines), "objective": objective, "gain": gain})


def _marks(curve: ObjectiveCurve) -> Any:
    """Make a table of the lines that the search looks at, in order, and of the best line."""
    visited = _curve_rows(curve, curve.visited, curve.visited_objective).assign(kind=_VISITED, turn=np.arange(len(curve.visited)) + 1)
    end = visited[curve.visited == curve.last_visited].assign(kind=_END)
    tried = _curve_rows(curve, curve.tried, curve.tried_objective).assign(kind=_TRIED, turn=np.nan)
    best = _curve_rows(curve, np.array([curve.best]), [curve.least]).assign(kind=_BEST, turn=np.nan)
    return pd.concat([visited, end, tried, best], ignore_index=True)


def _curve_text(curve: ObjectiveCurve, unit: str) -> str:
    text = f"Unevenness, the sum of deviations from the means of both parts, by the {_axis_title(curve)}: "
    text += f"{format_cell(curve.unsplit)} {unit} without a split, dashed. "
    text += describe_series(_marks(curve), "kind", "place", "objective")
    text += f". The grey band is one standard deviation of the noise on one value, {format_cell(curve.noise)} {unit};"
    return text + f" for the default's choice it is {format_cell(curve.choice_noise)}."


PICKED = "picked"
FEWEST_FOR_SHARES = 10  # repeats from which the middle 80 % of them are shown
PARTS = {"noise": "noise", "uniformity": "uniformity", "suppression": "suppression"}

_PART_OPACITIES = (1.0, 0.45)
_MOST_TICKS = 12
_USUAL_WIDTH, _MOST_COLUMNS = 900, 3
_SIDES = {"p10": "10 % under", "p90": "10 % over", "least": "least", "most": "largest"}
_LEGEND_ROW, _ROWS_INCLUDED = 20, 2


@dataclass(frozen=True, kw_only=True)
class Band:
    """What a band around means shows.

    Attributes:
        low: the column of its lower side.
        high: the column of its upper side.
        about: what lies between them, in words.
    """

    low: str
    high: str
    about: str


def choose_band(rows: pd.DataFrame) -> Band:
    """Choose what the bands of a chart show: the middle 80 % of the repeats, or, of fewer than `FEWEST_FOR_SHARES`, the range of all.

    >>> choose_band(pd.DataFrame({"runs": [3, 3]})).about
    'the least to the largest of 3 repeats, too few to say where most others would lie'

    Args:
        rows: from `dpviz.evaluation.tables.summary`, all those of the chart.
    """
    fewest, most = int(rows["runs"].min()), int(rows["runs"].max())
    if fewest >= FEWEST_FOR_SHARES:
        return Band(low="p10", high="p90", about="the middle 80 % of the repeats")
    if most == 1:
        return Band(low="least", high="most", about="none, since one repeat has no spread")
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return Band(low="least", high="most", about=f"the least to the largest of {number} repeats, too few to say where most others would lie")


def legend_height(labels: list[str], height: int) -> int:
    """Enlarge the height of a chart for each row of a long legend, so that the plot keeps its size.

    Args:
        labels: entries of the legend.
        height: of the chart with a legend of two rows, in pixels.
    """
    columns = min(max(_USUAL_WIDTH // entry_width(labels), 1), _MOST_COLUMNS)
    return height + _LEGEND_ROW * max(math.ceil(len(labels) / columns) - _ROWS_INCLUDED, 0)


@dataclass(frozen=True, kw_only=True)
class Target:
    """An error that is wanted.

    Attributes:
        error: in the unit of the chart.
        epsilons: by label, from which ε on the line of a configuration lies under it: 0 if it does at every ε, infinite if at none.
    """

    error: float
    epsilons: Mapping[str, float]

    @property
    def reached(self) -> pd.DataFrame:
        """The columns label and epsilon: where lines come down to it within the chart."""
        pairs = [(label, epsilon) for label, epsilon in self.epsilons.items() if 0 < epsilon < math.inf]
        return pd.DataFrame(pairs, columns=["label", "epsilon"])


def tiny_means_note(rows: pd.DataFrame, scale: Scale = LOG) -> str:
    """Write the sentence about means too small for the logarithmic axis; "" if there are none, or if the axis is another one."""
    means = rows["mean"][np.isfinite(rows["mean"])]
    if scale != LOG or not len(means) or means.min() >= means.max() * LEAST_SHARE:
        return ""
    return " Errors of 0, and those under a millionth of the largest, are drawn at the lower end of the axis."


def error_by_epsilon(
    rows: pd.DataFrame,
    best: pd.DataFrame,
    what: str,
    workload: str,
    *,
    height: int = 400,
    scale: Scale = LOG,
    looks: Looks | None = None,
    target: Target | None = None,
) -> alt.LayerChart:
    """Draw the error of all configurations against epsilon: means, bands, the frontier and a target. Points can be clicked.

    Args:
        rows: from `dpviz.evaluation.tables.summary`, for one workload and one metric; of public data.
        best: the rows of the frontier, from `dpviz.evaluation.tables.frontier`.
        what: the metric with its unit.
        workload: the workload, for the title.
        height: of the whole chart, in pixels; more where the legend is long.
        scale: of the axis of the metric, see `dpviz.view.error_axis`.
        looks: the look of each configuration; None for looks by their order.
        target: a dashed line across the chart, with marks where the means come down to it; None for no line.
    """
    band_of = choose_band(rows)
    rows = rows if target is None else rows.assign(target=target.error)
    drawn, make_y = error_axis(rows, _columns_drawn(rows), what, scale)
    names = {"label": "configuration", "epsilon": "ε", "mean": what, "low": "mean: 95 % from", "high": "mean: 95 % to"}
    names |= {band_of.low: f"runs: {_SIDES[band_of.low]}", band_of.high: f"runs: {_SIDES[band_of.high]}", "runs": "runs"}
    order, drawn = rows["label"].unique().tolist(), add_texts(drawn, list(names))
    colors, dashes, shapes = _looks_of(order, looks)
    color = _look_channel(alt.Color, order, colors)
    base = alt.Chart(drawn).encode(x=_epsilon_axis(rows), color=color, tooltip=tooltip(names))
    sides = make_y(f"{band_of.low} drawn"), f"{band_of.high} drawn"
    band = base.mark_area(opacity=0.18, aria=False).encode(y=sides[0], y2=sides[1])
    edges = [base.mark_line(strokeWidth=1, opacity=0.6, aria=False).encode(y=side) for side in (sides[0], make_y(sides[1]))]
    dash = _look_channel(alt.StrokeDash, order, dashes)
    line = base.mark_line(strokeWidth=2.2, aria=False).encode(y=make_y("mean drawn"), strokeDash=dash)
    picked = alt.selection_point(name=PICKED, fields=["label", "epsilon"], empty=True)
    marks = base.mark_point(filled=True, size=110, cursor="pointer").encode(
        y=make_y("mean drawn"),
        shape=_look_channel(alt.Shape, order, shapes),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.55)),
    )
    frontier_line = alt.Chart(drawn.loc[drawn.index.intersection(best.index)].sort_values("epsilon"))
    frontier_line = frontier_line.mark_line(strokeWidth=9, color=GREY, opacity=0.35, strokeCap="round", strokeJoin="round", aria=False)
    frontier_line = frontier_line.encode(x=_epsilon_axis(rows), y=make_y("mean drawn"))
    pairs = zip(best["label"], best["epsilon"], strict=True)
    on_frontier = ", ".join(f"{label} at {format_cell(epsilon)}" for label, epsilon in pairs) or "none"
    text = f"{what}: {describe_series(rows, 'label', 'epsilon', 'mean')}. On the frontier: {on_frontier}.{tiny_means_note(rows, scale)}"
    layers = [frontier_line, band, *edges, line, marks.add_params(picked)]
    if target is not None:
        text += f" Target {format_cell(target.error)}: {describe_values(target.reached, 'label', 'epsilon')}."
        layers += _target_layers(drawn, target, make_y, {"x": _epsilon_axis(rows), "color": color})
    return finish(alt.layer(*layers), f"Error against ε, {workload}", text, legend_height(order, height))


def ends_with_target(rows: pd.DataFrame, error: float, scale: Scale) -> tuple[float, float]:
    """Return the ends of the vertical axis of `error_by_epsilon` with a target at this error."""
    rows = rows.assign(target=error)
    return axis_ends(rows, _columns_drawn(rows), scale)


def _columns_drawn(rows: pd.DataFrame) -> list[str]:
    band = choose_band(rows)
    return ["mean", band.low, band.high, *(["target"] if "target" in rows else [])]


def _target_layers(drawn: pd.DataFrame, target: Target, make_y: Callable[[str], Any], channels: dict[str, Any]) -> list[alt.Chart]:
    """Draw the target as a line across the chart, and a mark where each configuration comes down to it."""
    at = drawn["target drawn"].iloc[0]
    rule = alt.Chart(pd.DataFrame({"target drawn": [at]})).mark_rule(strokeDash=[6, 4], strokeWidth=1.5, color=GREY, aria=False)
    reached = add_texts(target.reached.assign(**{"target drawn": at}), ["label", "epsilon"])
    marks = alt.Chart(reached).mark_point(shape="diamond", size=130, strokeWidth=2.5, fill="white", aria=False)
    names = {"label": "configuration", "epsilon": "ε of the target"}
    y = make_y("target drawn")
    return [rule.encode(y=y), marks.encode(y=y, tooltip=tooltip(names), **channels)]


def parts_by_label(rows: pd.DataFrame, epsilon: float, unit: str, workload: str, *, looks: Looks | None = None) -> alt.LayerChart:
    """Draw the parts of the error of each configuration: noise, and uniformity (points) or suppression (trips).

    Args:
        rows: from `summary`, for one workload, one epsilon and the metrics that are parts.
        epsilon: the epsilon of the rows.
        unit: what is counted, in the plural.
        workload: the workload, for the title.
        looks: the look of each configuration, whose parts differ in how faint they are; None for a colour per part.
    """
    what, names = f"mean size ({unit})", {"label": "configuration", "figure": "part"}
    names |= {"mean": what, "low": "95 % from", "high": "95 % to", "runs": "runs"}
    band, parts, order = choose_band(rows), rows["figure"].unique().tolist(), rows["label"].unique().tolist()
    offset = alt.YOffset(field="figure", type="ordinal", sort=parts)
    base = alt.Chart(add_texts(rows, list(names))).encode(y=_label_axis(order), yOffset=offset, tooltip=tooltip(names))
    bars = base.mark_bar(cornerRadiusEnd=2).encode(x=_length_axis("mean", what), **_part_channels(parts, order, looks))
    spread = base.mark_rule(strokeWidth=1.5, color=GREY, aria=False).encode(x=_length_axis(band.low, what), x2=band.high)
    text = describe_series(rows, "figure", "label", "mean")
    height = FRAME + 20 + 2 * ROW * len(order)
    return finish(alt.layer(bars, spread), f"Parts of the error at {_epsilon_text(epsilon)}, {workload}", f"{what}: {text}.", height)


def seconds_by_label(rows: pd.DataFrame, epsilon: float, *, looks: Looks | None = None) -> alt.LayerChart:
    """Draw the time of one release for each configuration; the evaluation is not included.

    Args:
        rows: from `summary`, for the metric seconds, one workload and one epsilon.
        epsilon: of the rows.
        looks: the look of each configuration; None for one colour.
    """
    what, order, band = "seconds per release, on this computer while the study ran", rows["label"].unique().tolist(), choose_band(rows)
    names = {"label": "configuration", "mean": "mean (s)"}
    names |= {side: f"{_SIDES[side]} (s)" for side in (band.low, band.high)} | {"runs": "runs"}
    base = alt.Chart(add_texts(rows, list(names))).encode(y=_label_axis(order), tooltip=tooltip(names))
    bars = base.mark_bar(cornerRadiusEnd=2).encode(x=_length_axis("mean", what), color=_bar_color(order, looks))
    spread = base.mark_rule(strokeWidth=1.5, color=GREY, aria=False).encode(x=_length_axis(band.low, what), x2=band.high)
    text = f"Seconds: {describe_values(rows, 'label', 'mean')}."
    return finish(alt.layer(bars, spread), f"Time of a release at {_epsilon_text(epsilon)}", text, FRAME + 10 + ROW * len(order))


def _epsilon_text(epsilon: float) -> str:
    return format_budget_symbols({"epsilon": epsilon})


def _epsilon_axis(rows: pd.DataFrame) -> Any:
    values = sorted(rows["epsilon"].unique().tolist())
    ends = [values[0], values[-1]] if len(values) > 1 else [values[0] / 2, values[0] * 2]
    scale = alt.Scale(type="log", domain=ends, nice=False, padding=18)
    shown = values if len(values) <= _MOST_TICKS else values[:: len(values) // _MOST_TICKS + 1]
    axis = alt.Axis(values=shown, format=FORMAT, labelOverlap="greedy")
    return alt.X(field="epsilon", type="quantitative", title="privacy budget ε", scale=scale, axis=axis)


def _label_axis(order: list[str]) -> Any:
    return alt.Y(field="label", type="ordinal", sort=order, title=None, axis=alt.Axis(labelLimit=320))


def _length_axis(field: str, what: str) -> Any:
    return alt.X(field=field, type="quantitative", title=what, axis=AXIS, scale=alt.Scale(domainMin=0))


def _looks_of(order: list[str], looks: Looks | None) -> tuple[list[str], list[Any], list[str]]:
    """Return colours, dashes and marks of series; without `looks` they repeat where there are more series than looks."""
    if looks is not None:
        return [looks[name].color for name in order], [list(looks[name].dash) for name in order], [looks[name].mark for name in order]
    colors, dashes, shapes = ([kind[index % len(kind)] for index in range(len(order))] for kind in (MORE_COLORS, MORE_DASHES, MARKS))
    return colors, dashes, shapes  # type: ignore[return-value]


def _look_channel(channel: Any, order: list[str], looks: list[Any]) -> Any:
    """Make a channel that distinguishes configurations."""
    encoding = category_channel(channel, "label", order, looks)
    encoding["legend"]["symbolStrokeWidth"] = 1
    return encoding


def _part_channels(parts: list[str], order: list[str], looks: Looks | None) -> dict[str, Any]:
    """Make the channels that distinguish the parts of an error."""
    if looks is None:
        scale = alt.Scale(domain=parts, range=list(MORE_COLORS[:2]))
        return {"color": alt.Color(field="figure", type="nominal", scale=scale, legend=legend("square"))}
    scale = alt.Scale(domain=parts, range=list(_PART_OPACITIES[: len(parts)]))
    squares = legend("square")
    squares["symbolOpacity"], squares["symbolFillColor"] = alt.Undefined, GREY
    return {"color": _bar_color(order, looks), "opacity": alt.Opacity(field="figure", type="nominal", scale=scale, legend=squares)}


def _bar_color(order: list[str], looks: Looks | None) -> Any:
    """Make the colour of a configuration's bar, without a legend, since each bar is named beside it."""
    if looks is None:
        return alt.value(ACCENT)
    scale = alt.Scale(domain=order, range=[looks[name].color for name in order])
    return alt.Color(field="label", type="nominal", scale=scale, legend=None)
