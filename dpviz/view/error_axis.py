"""The vertical axis of an error: logarithmic, of percentages from 0 to 100, or of counts that may be 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.view.charts import FORMAT, choose_log_ticks, log_y, percent_y, prepare_log_axis

Scale = Literal["log", "percent", "count"]
LOG: Scale = "log"
PERCENT: Scale = "percent"
COUNT: Scale = "count"
_SMALLEST = 1e-12


def error_axis(rows: pd.DataFrame, columns: Sequence[str], title: str, scale: Scale = LOG) -> tuple[pd.DataFrame, Callable[[str], Any]]:
    """Prepare columns for the axis that they share.

    Args:
        rows: a table that has the columns.
        columns: names of the columns.
        title: of the axis, with the unit.
        scale: LOG, on which zeros are raised to the lower end; PERCENT, from 0 to 100; or COUNT, logarithmic above 1, with a place for 0.

    Returns:
        The table with a column "<name> drawn" for each, in which no value lies outside the axis; and a function that makes the y axis
        of such a column.
    """
    low, high = axis_ends(rows, columns, scale)
    if scale == LOG:
        drawn, ticks = prepare_log_axis(rows, columns)
        return drawn, partial(log_y, title, ticks)
    drawn = rows.assign(**{f"{column} drawn": rows[column].clip(0.0, high if scale == PERCENT else None) for column in columns})
    if scale == PERCENT:
        return drawn, partial(percent_y, title)
    ticks = [*([0.0] if low < 1 else []), *choose_log_ticks(max(low, 1.0), high)]
    return drawn, partial(_count_y, title, ticks, high)


def axis_ends(rows: pd.DataFrame, columns: Sequence[str], scale: Scale) -> tuple[float, float]:
    """Return the lower and the upper end of the axis of some columns; arguments as of `error_axis`."""
    if scale == PERCENT:
        return 0.0, 100.0
    if scale == LOG:
        drawn, ticks = prepare_log_axis(rows, columns)
        return ticks[0], float(np.nanmax(drawn[[f"{column} drawn" for column in columns]].to_numpy(np.float64)))
    values = rows[list(columns)].clip(lower=0.0).to_numpy(np.float64)
    finite = values[np.isfinite(values)]
    least, most = (float(finite.min()), max(float(finite.max()), 1.0)) if finite.size else (0.0, 1.0)
    return (0.0 if least < 1 else choose_log_ticks(least, most)[0]), most


def axis_heights(values: Any, scale: Scale) -> Floats:
    """Return where values lie on the axis, up to its unit and its beginning; on a logarithmic axis zeros lie very low."""
    heights: Floats = np.asarray(values, np.float64)
    if scale == LOG:
        heights = np.log(np.maximum(heights, _SMALLEST))
    return np.log1p(heights) if scale == COUNT else heights


def _count_y(title: str, ticks: list[float], most: float, field: str) -> Any:
    """Make a y axis of counts: nearly linear from 0 to 1, logarithmic above."""
    axis = alt.Axis(format=FORMAT, values=ticks, labelOverlap="greedy")
    scale = alt.Scale(type="symlog", constant=1, domain=[ticks[0], most], nice=False)
    return alt.Y(field=field, type="quantitative", title=title, scale=scale, axis=axis)
