"""Lines over the stages of a tree of pairs, in their order, told apart by colour and by dashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from dpviz.view.chart_parts import (
    FORMAT,
    POINT,
    distinct,
    legend,
    log_y,
    on_log_axis,
    tooltip,
    with_texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Styles = dict[str, tuple[str, list[int]]]


def long(table: pd.DataFrame, lines: Mapping[str, Any]) -> pd.DataFrame:
    """One row per stage and line, with series and value; values that are not known are left out.

    Args:
        table: columns stage and between.
        lines: (T + 1,) values by name.
    """
    base = table[["stage"]].assign(between=distinct(table["between"].tolist()))
    return pd.concat([base.assign(series=name, value=values) for name, values in lines.items()], ignore_index=True).dropna(subset="value")


def by_stage(table: pd.DataFrame, names: Mapping[str, str]) -> Any:
    """A chart over the stages of `table`, column between, with the columns of `names` in its tooltip."""
    order = table.sort_values("stage", kind="stable")["between"].unique().tolist()
    axis = alt.Axis(labelAngle=-35, labelLimit=150, labelOverlap=False)
    x = alt.X(field="between", type="ordinal", sort=order, title=None, axis=axis)
    return alt.Chart(with_texts(table, list(names))).encode(x=x, tooltip=tooltip(dict(names)))


def log_lines(rows: pd.DataFrame, title: str, styles: Styles) -> Any:
    """Lines on a logarithmic axis, on whose lower end zeros lie.

    Args:
        rows: from `long`.
        title: of the axis, with the unit.
        styles: colour and dashes by series.
    """
    drawn, ticks = on_log_axis(rows, ["value"])
    return _lines(drawn, title, styles, log_y(title, ticks, "value drawn"))


def percent_lines(rows: pd.DataFrame, styles: Styles) -> Any:
    """Lines of percentages, from 0 on."""
    title = "share (%)"
    axis = alt.Axis(format=FORMAT, tickCount=5)
    y = alt.Y(field="value", type="quantitative", title=title, scale=alt.Scale(domainMin=0, domainMax=100), axis=axis)
    return _lines(rows, title, styles, y)


def _lines(rows: pd.DataFrame, title: str, styles: Styles, y: Any) -> Any:
    names, colors, dashes = list(styles), [color for color, _ in styles.values()], [dash for _, dash in styles.values()]
    line = by_stage(rows, {"series": "line", "between": "between", "value": title}).mark_line(point=POINT, strokeWidth=2.5, opacity=0.9)
    color = alt.Color(field="series", type="nominal", scale=alt.Scale(domain=names, range=colors), legend=legend())
    dash = alt.StrokeDash(field="series", type="nominal", scale=alt.Scale(domain=names, range=dashes), legend=legend())
    return line.encode(y=y, color=color, strokeDash=dash)
