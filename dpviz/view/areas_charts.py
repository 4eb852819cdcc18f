"""Charts of released counts of regions: errors, false positives and narrow intervals by level, and the regions with the largest errors."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers, Texts
from dpviz.view.charts import (
    AXIS,
    FRAME,
    HEIGHT,
    LIGHTER,
    POINT,
    ROW,
    add_texts,
    color_and_dash,
    describe_values,
    finish,
    log_y,
    number_repeated,
    percent_y,
    prepare_log_axis,
    to_hex,
    tooltip,
)
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE

_MEASURED, _EXPECTED = "measured", "expected from noise"


def errors_by_level(table: pd.DataFrame) -> alt.LayerChart:
    """Draw the error of a region of each level in percent of the average count, measured and as expected from the noise alone.

    Args:
        table: `AreaEvaluation.by_level`, with a column `mean`: records in an average region. CURATOR ONLY.
    """
    factor = 100 / table["mean"].where(table["mean"] > 0)
    columns = {_MEASURED: "rmse", _EXPECTED: "expected"}
    parts = [_name_levels(table).assign(line=name, value=table[column] * factor) for name, column in columns.items()]
    rows = pd.concat(parts, ignore_index=True)
    drawn, ticks = prepare_log_axis(rows, ["value"])
    names = {"line": "error", "name": "level", "regions": "regions", "value": "error (%)"}
    base = _chart_levels(drawn, names).mark_line(point=POINT, strokeWidth=2.5)
    y = log_y("error of a region (%)", ticks, "value drawn")
    curves = base.encode(y=y, **color_and_dash("line", [_MEASURED, _EXPECTED], [ACCENT, LIGHTER]))
    text = f"Error per level, measured: {describe_values(rows[rows['line'] == _MEASURED], 'name', 'value')} %; "
    text += f"expected: {describe_values(rows[rows['line'] == _EXPECTED], 'name', 'value')} %."
    return finish(alt.layer(curves), "Error by level", text, HEIGHT)


def shares_by_level(table: pd.DataFrame) -> alt.LayerChart:
    """Draw by level which share of the empty regions is released as occupied, of the others as empty, and of all has a narrow interval.

    A level without empty regions has no point of false positives.

    Args:
        table: `AreaEvaluation.by_level`. CURATOR ONLY.
    """
    occupied = table["regions"] - table["empty"]
    kinds = {
        "false positives, of empty regions": 100 * table["false_positives"] / table["empty"].where(table["empty"] > 0),
        "missed, of occupied regions": 100 * table["false_negatives"] / occupied.where(occupied > 0),
        "interval narrower than half the count": table["narrow"],
    }
    rows = pd.concat([_name_levels(table).assign(line=name, value=values) for name, values in kinds.items()], ignore_index=True)
    rows = rows.dropna(subset="value")
    looks = [to_hex(FALSE_POSITIVE), to_hex(FALSE_NEGATIVE), "#009e73"]
    names = {"line": "share", "name": "level", "regions": "regions", "empty": "empty regions", "value": "share (%)"}
    curves = _chart_levels(rows, names).mark_line(point=POINT, strokeWidth=2.5, opacity=0.9)
    curves = curves.encode(y=percent_y("share (%)", "value"), **color_and_dash("line", list(kinds), looks))
    text = "; ".join(f"{name}: {describe_values(part, 'name', 'value')} %" for name, part in rows.groupby("line", sort=False)) + "."
    return finish(alt.layer(curves), "Empty, missed and well-known regions by level", text, HEIGHT)


def list_worst(ids: Texts, names: Texts, numbers: Mapping[str, Floats | Integers], most: int) -> pd.DataFrame:
    """List the regions with the largest errors, for `worst_regions`. CURATOR ONLY.

    Args:
        ids: (n,) of the regions.
        names: (n,) of the regions.
        numbers: (n,) each: true, released, low and high.
        most: how many regions are listed.
    """
    table = pd.DataFrame({"region": ids, "name": names, **numbers})
    table["error"] = table["released"] - table["true"]
    order = np.argsort(-table["error"].abs().fillna(0).to_numpy(), kind="stable")[:most]
    return table.iloc[order].reset_index(drop=True)


def worst_regions(table: pd.DataFrame, unit: str) -> alt.LayerChart:
    """Draw true and released counts of regions with their intervals, one row per region.

    Args:
        table: columns name, true, released, low and high, the largest error first. CURATOR ONLY.
        unit: what is counted, in the plural.
    """
    rows = add_texts(table.assign(region=number_repeated(table["name"].tolist())), ["region", "true", "released", "low", "high", "error"])
    names = {"region": "region", "released": "released", "low": "95 % from", "high": "95 % to", "true": "true", "error": "error"}
    y = alt.Y(field="region", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    base = alt.Chart(rows).encode(y=y, tooltip=tooltip(names))
    ends = base.mark_rule(strokeWidth=3, opacity=0.45, color=ACCENT).encode(x=_count_axis("low", unit), x2="high")
    released = base.mark_point(size=70, filled=True, color=ACCENT).encode(x=_count_axis("released", unit))
    true = base.mark_tick(thickness=3, size=16, color="#d55e00").encode(x=_count_axis("true", unit))
    text = f"Error of the regions with the largest errors: {describe_values(rows, 'region', 'error')} {unit}."
    return finish(alt.layer(ends, released, true), "Largest errors: released (dot, 95 %) and true (orange)", text, FRAME + ROW * len(rows))


def _name_levels(table: pd.DataFrame) -> pd.DataFrame:
    return table[["level", "regions", "empty"]].assign(name=number_repeated(table["name"].tolist()))


def _chart_levels(rows: pd.DataFrame, names: dict[str, str]) -> alt.Chart:
    order = rows.sort_values("level", kind="stable")["name"].unique().tolist()
    x = alt.X(field="name", type="ordinal", sort=order, title=None, axis=alt.Axis(labelAngle=0, labelLimit=150, labelOverlap=False))
    return alt.Chart(add_texts(rows, list(names))).encode(x=x, tooltip=tooltip(names))


def _count_axis(field: str, unit: str) -> alt.X:
    return alt.X(field=field, type="quantitative", title=unit, axis=AXIS)
