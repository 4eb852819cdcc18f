"""Charts of the tables of `dpviz.papers.e2epriv`, one function per figure."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from dpviz.amounts import format_percent
from dpviz.view.charts import CAPTION, add_texts, describe_values, finish, log_y, prepare_log_axis, tooltip
from dpviz.view.colors import ACCENT
from dpviz.view.study_charts import lines_with_spread

NOT_PRIVATE = {"Leaky": "Leaky (NOT PRIVATE)", "BestNonPriv": "BestNonPriv (NOT PRIVATE)"}

_ERROR = "median relative error (%)"
_NAMES = {"method": "method", "error": _ERROR, "spread": "spread over runs (%)"}
_SIZE = {"size": "side of the queries (% of the domain's)"}
_RULE = "#e69f00"


def figure_5(table: pd.DataFrame, *, height: int = 280) -> alt.LayerChart:
    """Draw the error of uniform grids by size, with a mark at the size nearest to the result of the uniform grid's rule (UG).

    Args:
        table: of `dpviz.papers.e2epriv.figure_5`. CURATOR ONLY: errors are measured against the truth.
        height: of the whole chart, in pixels.
    """
    spread = table["spread"].fillna(0.0)
    rows = table.assign(low=np.maximum(table["error"] - spread, table["error"] / 10), high=table["error"] + spread)
    drawn, ticks = prepare_log_axis(rows, ["error", "low", "high"])
    names = {"side": "cells per side of the grid", "error": _ERROR, "spread": _NAMES["spread"]}
    drawn = add_texts(drawn, list(names))
    x = alt.X(field="side", type="ordinal", title=names["side"], axis=alt.Axis(labelAngle=0))
    base = alt.Chart(drawn).encode(x=x, y=log_y(_ERROR, ticks, "error drawn"), tooltip=tooltip(names))
    spreads = base.mark_rule(color=ACCENT, opacity=0.6, aria=False).encode(y=log_y(_ERROR, ticks, "low drawn"), y2="high drawn")
    line = base.mark_line(color=ACCENT, strokeWidth=2.5, point=alt.OverlayMarkDef(size=55, filled=True, color=ACCENT))
    rule = base.transform_filter("datum.heuristic")
    mark = rule.mark_point(color=_RULE, filled=True, shape="diamond", size=170)
    text = rule.mark_text(dy=-14, text="UG's rule", color=CAPTION)
    summary = f"{_ERROR} by cells per side: {describe_values(table, 'side', 'error')}."
    summary += f" UG's rule comes nearest to {describe_values(table[table['heuristic']], 'side', 'error')}."
    return finish(alt.layer(spreads, line, mark, text), "Uniform grids by their size", summary, height)


def figure_10(table: pd.DataFrame, data: str = "", *, height: int = 300) -> alt.LayerChart:
    """Draw accuracy by the size of queries, a line per method; Leaky and BestNonPriv are NOT PRIVATE.

    Args:
        table: of `dpviz.papers.e2epriv.figure_10`. CURATOR ONLY.
        data: name of the data, for the title.
        height: of the whole chart, in pixels.
    """
    title = f"Tuned grids by size of queries{f', {data}' if data else ''}"
    return lines_with_spread(_in_percent(table), ("size", "method", "error", "spread"), _NAMES | _SIZE, title, height)


def figure_11a(table: pd.DataFrame, *, height: int = 300) -> alt.LayerChart:
    """Draw accuracy by budget, a line per method; Leaky and BestNonPriv are NOT PRIVATE.

    Args:
        table: of `dpviz.papers.e2epriv.figure_11a`. CURATOR ONLY.
        height: of the whole chart, in pixels.
    """
    names = _NAMES | {"epsilon": "privacy budget ε"}
    return lines_with_spread(_in_percent(table), ("epsilon", "method", "error", "spread"), names, "Tuned grids by budget", height)


def figure_11b(table: pd.DataFrame, method: str = "E2EPriv", *, height: int = 300) -> alt.LayerChart:
    """Draw accuracy by the size of queries, a line per share of the budget spent on tuning.

    Args:
        table: of `dpviz.papers.e2epriv.figure_11b`. CURATOR ONLY.
        method: a method of the table.
        height: of the whole chart, in pixels.
    """
    rows = _in_percent(table[table["method"] == method])
    rows = rows.assign(share=[f"{format_percent(share)} for tuning" for share in rows["share"]])
    names = {"share": "budget", **_NAMES, **_SIZE}
    return lines_with_spread(rows, ("size", "share", "error", "spread"), names, f"{method} by its budget for tuning", height)


def figure_11c(table: pd.DataFrame, *, height: int = 300) -> alt.LayerChart:
    """Draw the sensitivity of the tuning error against the sanity bound, with one line per method of bounding the sensitivity.

    Args:
        table: of `dpviz.papers.e2epriv.figure_11c`.
        height: of the whole chart, in pixels.
    """
    bound = [f"{bound}, {side} × {side}" if side else bound for bound, side in zip(table["bound"], table["side"], strict=True)]
    rows = table.assign(bound=bound, spread=np.nan)
    names = {"bound": "bound", "sanity": "sanity bound δ (share of the records)", "rho": "ρ (records)", "sensitivity": "sensitivity"}
    return lines_with_spread(rows, ("sanity", "bound", "sensitivity", "spread"), names, "Sensitivity of the tuning error", height)


def _in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Convert sizes to percent, and label the methods that are NOT PRIVATE."""
    rows = table.assign(method=table["method"].replace(NOT_PRIVATE))
    return rows.assign(size=100 * rows["size"])
