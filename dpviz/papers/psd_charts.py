"""The figures of the paper on private spatial decompositions as charts, one function per figure; `psd` computes their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.view.charts import (
    AXIS,
    CAPTION,
    COLORS,
    DASHES,
    FORMAT,
    FRAME,
    MARKS,
    POINT,
    ROW,
    add_texts,
    category_channel,
    describe_series,
    describe_values,
    finish,
    log_y,
    prepare_log_axis,
    tooltip,
)
from dpviz.view.colors import ACCENT

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIANS = {"error": "rank error (% of n/2)", "seconds": "time per level (s)"}
MATCHING = {"reduction": "pairs that need not be compared (%)", "recall": "matches that are found (%)"}

Columns = tuple[str, str, str]  # of the x axis, of the series, of the values

_ERROR = "median relative error (%)"


def figure_2(table: pd.DataFrame, *, height: int = 280) -> alt.LayerChart:
    """Draw the worst-case error of range queries by the height of the quadtree, with a line per split of the budget.

    Args:
        table: of `dpviz.papers.psd.figure_2`.
        height: of the whole chart, in pixels.
    """
    names = {"split": "budget", "height": "height of the quadtree", "error": "bound on the variance (16/ε²)"}
    return _lines(table, ("height", "split", "error"), names, "Worst-case error by height", height)


def figure_3(table: pd.DataFrame, epsilon: float, *, height: int = 280) -> alt.LayerChart:
    """Draw accuracy of quadtrees by the shape of the queries, with and without a geometric budget and least squares.

    Args:
        table: of `dpviz.papers.psd.figure_3`. CURATOR ONLY: errors are measured against the truth.
        epsilon: a budget of the table.
        height: of the whole chart, in pixels.
    """
    return _by_shape(table, epsilon, "Quadtrees", height)


def figure_4(table: pd.DataFrame, measure: str = "error", *, height: int = 280) -> alt.LayerChart:
    """Draw the rank error of private medians, or their run time, by depth.

    Args:
        table: of `dpviz.papers.psd.figure_4`. CURATOR ONLY.
        measure: a column, one of `MEDIANS`.
        height: of the whole chart, in pixels.
    """
    names = {"method": "medians", "depth": "depth", "records": "records per node", **MEDIANS, "spread": "spread over runs (%)"}
    title = "Quality of private medians by depth, each level at the same ε" if measure == "error" else "Time of private medians by depth"
    return _lines(table, ("depth", "method", measure), names, title, height)


def figure_5(table: pd.DataFrame, epsilon: float, *, height: int = 340) -> alt.LayerChart:
    """Draw accuracy of kd-trees by the shape of the queries, at one epsilon; kd-true and kd-pure are NOT PRIVATE.

    Args:
        table: of `dpviz.papers.psd.figure_5`. CURATOR ONLY.
        epsilon: a budget of the table.
        height: of the whole chart, in pixels.
    """
    labels = {"kd-true": "kd-true (NOT PRIVATE)", "kd-pure": "kd-pure (NOT PRIVATE)"}
    return _by_shape(table.assign(method=table["method"].replace(labels)), epsilon, "kd-trees", height)


def figure_6(table: pd.DataFrame, shape: tuple[float, float], *, height: int = 280) -> alt.LayerChart:
    """Draw accuracy of the families of decompositions by their height, for queries of one shape.

    Args:
        table: of `dpviz.papers.psd.figure_6`. CURATOR ONLY.
        shape: width and height of queries in the table.
        height: of the whole chart, in pixels.
    """
    rows = table[(table["width"] == shape[0]) & (table["height"] == shape[1])]
    names = {"method": "decomposition", "steps": "height of the tree", "error": _ERROR, "spread": "spread over runs (%)"}
    title = f"Decompositions by height, queries of {shape[0]:g} × {shape[1]:g} degrees"
    return _lines(rows, ("steps", "method", "error"), names, title, height)


def figure_7a(table: pd.DataFrame) -> alt.LayerChart:
    """Draw the time to build each decomposition.

    Args:
        table: of `dpviz.papers.psd.figure_7a`.
    """
    times = zip(table["seconds"], table["lexsorts"], strict=True)
    rows = table.assign(label=[f"{seconds:.2g} s, {sorts:.2g} sorts" for seconds, sorts in times])
    names = {"method": "method", "seconds": "time to build (s)", "lexsorts": "time to build (in sorts of the same points)"}
    scale = alt.Scale(domainMin=0, domainMax=1.5 * float(rows["seconds"].max()), nice=False)
    x = alt.X(field="seconds", type="quantitative", title=names["seconds"], axis=AXIS, scale=scale)
    y = alt.Y(field="method", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    base = alt.Chart(add_texts(rows, list(names))).encode(x=x, y=y, tooltip=tooltip(names))
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2)
    labels = base.mark_text(dx=6, align="left", color=CAPTION).encode(text=alt.Text(field="label", type="nominal"))
    seconds, sorts = (describe_values(table, "method", column) for column in ("seconds", "lexsorts"))
    summary = f"Seconds: {seconds}; sorts of the same points: {sorts}."
    return finish(alt.layer(bars, labels), "Time to build a decomposition", summary, FRAME + ROW * len(rows))


def figure_7b(table: pd.DataFrame, steps: int, measure: str = "reduction", *, height: int = 280) -> alt.LayerChart:
    """Draw the work that blocking saves in record matching, or the matches that it keeps, by the budget.

    Args:
        table: of `dpviz.papers.psd.figure_7b`. CURATOR ONLY.
        steps: a height of the trees in the table.
        measure: a column, one of `MATCHING`.
        height: of the whole chart, in pixels.
    """
    rows = table[table["height"] == steps]
    rows = rows.assign(**{column: 100 * rows[column] for column in ("reduction", "spread", "padded", "recall")})
    names = {"method": "decomposition", "epsilon": "privacy budget ε", **MATCHING}
    names["padded"] = "comparisons saved if dummy records fill leaves (%)"
    names["spread"] = "spread of the comparisons saved, over runs (%)"
    axis = alt.Axis(format=FORMAT, tickCount=5)
    y = alt.Y(field=measure, type="quantitative", title=MATCHING[measure], scale=alt.Scale(zero=False), axis=axis)
    lines = _line_marks(rows, ("epsilon", "method", measure), names).encode(y=y)
    title = f"Trees of height {steps}: {'work saved' if measure == 'reduction' else 'matches found'}"
    return finish(alt.layer(lines), title, _describe_lines(rows, ("epsilon", "method", measure), names), height)


SEEN = {
    "sees_sizes": "sees true sizes",
    "sees_padded": "sees sizes with dummy records",
    "sees_released": "sees the release alone",
    "bound": "most that ε allows",
}
"""What an attacker sees, by the columns of `dpviz.papers.psd.matching_attack`."""


def matching_attack(table: pd.DataFrame, method: str, *, height: int = 280) -> alt.LayerChart:
    """Draw how often an attacker guesses right whether a person is in the file, by the budget, with the most that epsilon allows.

    Args:
        table: of `dpviz.papers.psd.matching_attack`. CURATOR ONLY.
        method: a decomposition of the table.
        height: of the whole chart, in pixels.
    """
    rows = table[table["method"] == method].melt("epsilon", list(SEEN), "seen", "guesses")
    rows = rows.assign(seen=rows["seen"].map(SEEN), guesses=100 * rows["guesses"])
    names = {"seen": "the attacker", "epsilon": "privacy budget ε", "guesses": "right guesses, of 100 (50 is chance)"}
    axis = alt.Axis(format=FORMAT, tickCount=5)
    y = alt.Y(field="guesses", type="quantitative", title=names["guesses"], scale=alt.Scale(domainMin=50, domainMax=100), axis=axis)
    columns = ("epsilon", "seen", "guesses")
    title = f"Is this person in the file? An attacker's guesses, {method}"
    return finish(alt.layer(_line_marks(rows, columns, names).encode(y=y)), title, _describe_lines(rows, columns, names), height)


def _by_shape(table: pd.DataFrame, epsilon: float, methods: str, height: int) -> alt.LayerChart:
    """Draw a mark with its spread per method and shape of queries, on a logarithmic axis; marks of one shape are side by side."""
    rows = table[table["epsilon"] == epsilon]
    shapes = [f"{query_width:g} × {query_height:g}" for query_width, query_height in zip(rows["width"], rows["height"], strict=True)]
    spread = rows["spread"].fillna(0.0)
    rows = rows.assign(shape=shapes, low=np.maximum(rows["error"] - spread, rows["error"] / 10), high=rows["error"] + spread)
    drawn, ticks = prepare_log_axis(rows, ["error", "low", "high"])
    names = {"method": "method", "shape": "queries (degrees wide × high)", "error": _ERROR, "spread": "spread over runs (%)"}
    order = rows["method"].unique().tolist()
    base = alt.Chart(add_texts(drawn, list(names))).encode(
        x=alt.X(field="shape", type="ordinal", sort=None, title=names["shape"], axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset(field="method", type="nominal", sort=order),
        color=category_channel(alt.Color, "method", order, COLORS),
        tooltip=tooltip(names),
    )
    spreads = base.mark_rule(strokeWidth=2, aria=False).encode(y=log_y(_ERROR, ticks, "low drawn"), y2="high drawn")
    shape = category_channel(alt.Shape, "method", order, MARKS)
    points = base.mark_point(filled=True, size=70).encode(y=log_y(_ERROR, ticks, "error drawn"), shape=shape)
    title = f"{methods} by shape of queries, ε = {epsilon:g}"
    return finish(alt.layer(spreads, points), title, _describe_lines(rows, ("shape", "method", "error"), names), height)


def _lines(table: pd.DataFrame, columns: Columns, names: Mapping[str, str], title: str, height: int) -> alt.LayerChart:
    """Draw a line per series on a logarithmic axis."""
    drawn, ticks = prepare_log_axis(table, [columns[2]])
    lines = _line_marks(drawn, columns, names).encode(y=log_y(names[columns[2]], ticks, f"{columns[2]} drawn"))
    return finish(alt.layer(lines), title, _describe_lines(table, columns, names), height)


def _line_marks(table: pd.DataFrame, columns: Columns, names: Mapping[str, str]) -> Any:
    """Draw lines over the first of the columns; the second column decides their colours and dashes."""
    x_column, series, _ = columns
    order = table[series].unique().tolist()
    return (
        alt.Chart(add_texts(table, list(names)))
        .mark_line(point=POINT, strokeWidth=2.5, opacity=0.9)
        .encode(
            x=alt.X(field=x_column, type="ordinal", title=names[x_column], axis=alt.Axis(labelAngle=0)),
            color=category_channel(alt.Color, series, order, COLORS),
            strokeDash=category_channel(alt.StrokeDash, series, order, DASHES),
            tooltip=tooltip(dict(names)),
        )
    )


def _describe_lines(table: pd.DataFrame, columns: Columns, names: Mapping[str, str]) -> str:
    """Write the values of every line as a text."""
    x_column, series, measure = columns
    return f"{names[measure]} by {names[x_column]}. {describe_series(table, series, x_column, measure)}."
