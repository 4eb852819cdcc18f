"""Charts of the tables of `dpviz.papers.inftda`, one function per figure: means, with bars from the least to the largest run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from dpviz.errors import InputError
from dpviz.view.charts import add_texts, category_channel, describe_series, finish, log_y, percent_y, prepare_log_axis, tooltip
from dpviz.view.looks import MORE_COLORS, MORE_DASHES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

MEASURES = {
    "max_error": "maximum absolute error (trips)",
    "false_discovery": "false discovery rate (%)",
    "seconds": "running time (s)",
}

_TITLES = {"max_error": "Largest error by level", "false_discovery": "False positives by level", "seconds": "Run time by budget"}
_AXES = {"stage": "level of pairs (0: all trips)", "epsilon": "privacy budget ε"}
_LOOKS = ("InfTDA", "SH", "TDA-l2", "TDA-linf", "VanillaGauss")  # in the order of the colours and dashes
_ZERO = ", 0 at the lower end"


def figure_3(table: pd.DataFrame, epsilon: float = 1.0, measure: str = "max_error", *, height: int = 300) -> alt.LayerChart:
    """Draw one of the three panels: the largest error or the false discovery rate by stage, or the run time by budget.

    Args:
        table: of `dpviz.papers.inftda.figure_3`. CURATOR ONLY: errors are measured against the truth.
        epsilon: a budget of the table; run times are drawn for all budgets.
        measure: one of `MEASURES`.
        height: of the whole chart, in pixels.

    Raises:
        InputError: the table has no such rows.
    """
    return _panel(table, table, measure, epsilon, height)


def figure_4(table: pd.DataFrame, data: str, epsilon: float = 1.0, *, height: int = 300) -> alt.LayerChart:
    """Draw the largest error by stage, a line per method.

    Args:
        table: of `dpviz.papers.inftda.figure_4` or `measure_sets`. CURATOR ONLY.
        data: a set of the table.
        epsilon: a budget of the table.
        height: of the whole chart, in pixels.

    Raises:
        InputError: the table has no such rows.
    """
    return _panel(table, table[table["data"] == data], "max_error", epsilon, height)


def figure_5(table: pd.DataFrame, data: str, epsilon: float = 1.0, *, height: int = 300) -> alt.LayerChart:
    """Draw the false discovery rate by stage, a line per method; arguments and errors as of `figure_4`. CURATOR ONLY."""
    return _panel(table, table[table["data"] == data], "false_discovery", epsilon, height)


def figure_6(table: pd.DataFrame, data: str, *, height: int = 300) -> alt.LayerChart:
    """Draw the run time by budget, a line per method; arguments and errors as of `figure_4`."""
    return _panel(table, table[table["data"] == data], "seconds", None, height)


def _panel(table: pd.DataFrame, part: pd.DataFrame, measure: str, epsilon: float | None, height: int) -> alt.LayerChart:
    """Draw the rows of one measure; a method looks the same in all panels of `table`, and those that refuse the data are named."""
    rows = part[part["measure"] == measure]
    if measure != "seconds":
        rows = rows[rows["epsilon"] == epsilon].astype({"stage": int})
    if not len(rows):
        raise InputError(f"The table has no rows of this measure, set and budget; the measures are {', '.join(MEASURES)}.")
    missing = [name for name in table["method"].unique() if name not in set(rows["method"])]
    title = _TITLES[measure]
    title += f", {str(rows['data'].iloc[0]).replace('_', ' ')}" if "data" in rows else ""
    title += "" if measure == "seconds" else f", ε = {epsilon:g}"
    title += f", without {', '.join(missing)}" if missing else ""
    lines = _lines(rows, measure, list(dict.fromkeys([*_LOOKS, *table["method"]])))
    x_column = _x_column(measure)
    text = f"Mean {MEASURES[measure]} by {_AXES[x_column]}. {describe_series(rows, 'method', x_column, 'mean')}."
    return finish(alt.layer(*lines), title, text, height)


def _lines(rows: pd.DataFrame, measure: str, names: Sequence[str]) -> list[Any]:
    """Draw a line per method through the means, and bars from the minimum to the maximum over the runs."""
    x_column, values = _x_column(measure), ["minimum", "mean", "maximum"]
    drawn, ticks = prepare_log_axis(rows, values)
    labels = {"method": "method", x_column: _AXES[x_column], "mean": f"{MEASURES[measure]}, mean", "minimum": "least", "maximum": "largest"}
    labels |= {"between": "between"} if x_column == "stage" else {}
    present = rows["method"].unique().tolist()
    colors, dashes = ([looks[names.index(name) % len(looks)] for name in present] for looks in (MORE_COLORS, MORE_DASHES))
    x = alt.X(field=x_column, type="ordinal", title=_AXES[x_column], axis=alt.Axis(labelAngle=0))
    color = category_channel(alt.Color, "method", present, colors)
    base = alt.Chart(add_texts(drawn, list(labels))).encode(x=x, color=color, tooltip=tooltip(labels))
    low, middle, high = values if measure == "false_discovery" else [f"{name} drawn" for name in values]
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6, aria=False).encode(y=_y(rows, measure, ticks, low), y2=high)
    line = base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2.5, opacity=0.9)
    dash = category_channel(alt.StrokeDash, "method", present, dashes)
    return [bars, line.encode(y=_y(rows, measure, ticks, middle), strokeDash=dash)]


def _x_column(measure: str) -> str:
    return "epsilon" if measure == "seconds" else "stage"


def _y(rows: pd.DataFrame, measure: str, ticks: list[float], field: str) -> Any:
    """Make the y axis: percent from 0 to 100, everything else logarithmic."""
    title = MEASURES[measure]
    if measure == "false_discovery":
        return percent_y(title, field)
    return log_y(title + (_ZERO if (rows["minimum"] == 0).any() else ""), ticks, field)
