"""Charts of accuracy and of the budget, drawn with Altair; backgrounds and fonts are left to the page's theme."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.view.chart_parts import (
    AXIS,
    FORMAT,
    FRAME,
    GREY,
    POINT,
    ROW,
    finish,
    hex_of,
    legend,
    log_y,
    on_log_axis,
    signed,
    told_by,
    tooltip,
    with_texts,
)
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE

if TYPE_CHECKING:
    from dpviz.privacy.receipt import Receipt

_DEEPEST_BAND = 10.0

_MEASURED, _NOISE = "measured", "noise alone (95 % band)"
_ZOOM = "zoom level z: the domain in 4^z equal blocks"


def accuracy_by_zoom(by_zoom: pd.DataFrame, unit: str, *, height: int = 260) -> alt.LayerChart:
    """The measured error of blocks at each zoom, over the band that the noise alone explains.

    Args:
        by_zoom: `Evaluation.by_zoom`. CURATOR ONLY: the error is measured against the truth.
        unit: what is counted, in the plural.
        height: of the whole chart, in pixels.
    """
    floor = np.maximum(by_zoom["low"], by_zoom["expected"] / _DEEPEST_BAND)
    table, ticks = on_log_axis(by_zoom.assign(floor=floor), ["rmse", "expected", "floor", "high"])
    names = {"zoom": "zoom", "blocks": "blocks", "rmse": f"measured ({unit})", "expected": f"noise alone ({unit})"}
    names |= {"low": "95 % from", "high": "95 % to", "mae": f"mean error ({unit})"}
    base = _base(table, names)
    y = partial(log_y, f"rmse of a block ({unit})", ticks)
    band = _series(base.mark_area(opacity=0.3, aria=False), _NOISE).encode(y=y("floor drawn"), y2="high drawn")
    expected = _series(base.mark_line(strokeDash=[4, 3], strokeWidth=1.5, aria=False), _NOISE).encode(y=y("expected drawn"))
    measured = _series(base.mark_line(strokeWidth=2.5, point=POINT), _MEASURED).encode(y=y("rmse drawn"))
    told = f"Typical error per zoom level: {told_by(by_zoom, 'zoom', 'rmse')} {unit}; "
    told += f"expected from the noise alone: {told_by(by_zoom, 'zoom', 'expected')}."
    return finish(alt.layer(band, expected, measured), "Accuracy by zoom level", told, height)


def expected_by_zoom(table: pd.DataFrame, unit: str, *, height: int = 260) -> alt.LayerChart:
    """The error that the noise alone gives blocks at each zoom: what can be told without the truth.

    Args:
        table: columns zoom and expected (`expected_error`).
        unit: what one record is.
        height: of the whole chart, in pixels.
    """
    rows, ticks = on_log_axis(table.assign(blocks=4 ** table["zoom"].to_numpy(np.int64)), ["expected"])
    base = _base(rows, {"zoom": "zoom", "blocks": "blocks", "expected": f"expected error ({unit})"})
    y = log_y(f"expected rmse of a block ({unit})", ticks, "expected drawn")
    line = base.mark_line(color=ACCENT, strokeWidth=2.5, point=alt.OverlayMarkDef(size=55, filled=True, color=ACCENT)).encode(y=y)
    told = f"Error expected from the noise alone per zoom level: {told_by(table, 'zoom', 'expected')} {unit}."
    return finish(alt.layer(line), "Expected accuracy by zoom level", told, height)


def false_positives_by_zoom(by_zoom: pd.DataFrame, unit: str, *, height: int = 260) -> alt.LayerChart:
    """Empty blocks that were released as if there were records, and occupied ones released as empty.

    Args:
        by_zoom: `Evaluation.by_zoom`. CURATOR ONLY.
        unit: what one record is.
        height: of the whole chart, in pixels.
    """
    kinds = {"false positives": ("false_positives", FALSE_POSITIVE), "false negatives": ("false_negatives", FALSE_NEGATIVE)}
    parts = [by_zoom.assign(kind=kind, share=100 * by_zoom[column] / by_zoom["blocks"]) for kind, (column, _) in kinds.items()]
    names = {"kind": "line", "zoom": "zoom", "blocks": "blocks", "empty": "empty blocks", "false_positives": "false positives"}
    names |= {
        "false_positive_records": f"{unit} released on empty blocks",
        "false_negatives": "false negatives",
        "share": "share of blocks (%)",
    }
    colors = alt.Scale(domain=list(kinds), range=[hex_of(color) for _, color in kinds.values()])
    line = _base(pd.concat(parts, ignore_index=True), names).mark_line(point=POINT, strokeWidth=2.5, opacity=0.9)
    line = line.encode(
        y=alt.Y(
            field="share", type="quantitative", title="share of all blocks (%)", scale=alt.Scale(domainMin=0), axis=alt.Axis(format=FORMAT)
        ),
        color=alt.Color(field="kind", type="nominal", scale=colors, legend=legend()),
        strokeDash=alt.StrokeDash(
            field="kind", type="nominal", scale=alt.Scale(domain=list(kinds), range=[[1, 0], [6, 3]]), legend=legend()
        ),
    )
    told = f"Empty blocks released as occupied per zoom level: {told_by(by_zoom, 'zoom', 'false_positives')}; "
    told += f"occupied blocks released as empty: {told_by(by_zoom, 'zoom', 'false_negatives')}."
    return finish(alt.layer(line), "False positives and negatives by zoom level", told, height)


def error_by_size(table: pd.DataFrame, unit: str, *, height: int = 260) -> alt.LayerChart:
    """Mean error of partitions in groups of their true count.

    Args:
        table: what `dpviz.evaluation.metrics.error_by_size` gives. CURATOR ONLY.
        unit: what one record is.
        height: of the whole chart, in pixels.
    """
    sizes = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in table[["low", "high"]].astype(int).itertuples(index=False)]
    texts = ["" if np.isnan(value) else f"{value:,.3g} % of the count" for value in table["relative"]]
    rows = table.assign(size=sizes, label=texts)
    names = {"size": f"true count ({unit})", "partitions": "partitions", "mae": f"mean error ({unit})", "bias": f"bias ({unit})"}
    base = alt.Chart(with_texts(rows, [*names, "relative", "label"])).encode(
        tooltip=tooltip(names | {"relative": "mean error (% of the count)"})
    )
    base = base.encode(
        x=alt.X(field="size", type="ordinal", sort=None, title=f"true count of the partition ({unit})", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(field="mae", type="quantitative", title=f"mean absolute error ({unit})", axis=AXIS),
    )
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2)
    labels = base.mark_text(dy=-7, color=GREY).encode(text=alt.Text(field="label", type="nominal"))
    return finish(
        alt.layer(bars, labels), "Error by true size", f"Mean error by true count: {told_by(rows, 'size', 'mae')} {unit}.", height
    )


def receipt_by_level(receipt: Receipt) -> alt.LayerChart:
    """What each zoom level was given: what went into finding the structure, and what into counts.

    What is spent on paths that end early, in place of later steps, has bars of its own and is not added to the others.

    Args:
        receipt: of the release; at least one step.
    """
    rows = _spendings(receipt)
    kinds = {"structure": GREY, "counts": ACCENT, "early leaves": "#9cc8d6"}
    shown = [kind for kind in kinds if kind in set(rows["kind"])]
    names = {"step": "step", "kind": "for", "epsilon": "ε", "exact": "ε exactly", "share": "share of the budget (%)", "noise": "noise"}
    color = alt.Scale(domain=shown, range=[kinds[kind] for kind in shown])
    bars = alt.Chart(with_texts(rows, list(names))).mark_bar(cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X(field="epsilon", type="quantitative", title="privacy budget ε", axis=AXIS),
        y=alt.Y(field="place", type="ordinal", sort=list(dict.fromkeys(rows["place"])), title=None, axis=alt.Axis(labelLimit=220)),
        color=alt.Color(field="kind", type="nominal", scale=color, legend=legend("square") if len(shown) > 1 else None),
        order=alt.Order(field="order", type="quantitative"),
        tooltip=tooltip(names),
    )
    added, early = (told_by(part, "step", "epsilon") for part in (rows[~rows["instead"]], rows[rows["instead"]]))
    told = f"Privacy budget: {added}; {float(receipt.used):.6g} of {float(receipt.available):.6g} in all."
    told += f" On paths that end early, in place of later steps and not added up: {early}." if early else ""
    title = "Where the privacy budget went" if receipt.private else "NOT PRIVATE: budget of the noise"
    return finish(alt.layer(bars), title, told, FRAME + ROW * rows["place"].nunique())


def _spendings(receipt: Receipt) -> pd.DataFrame:
    """One row per purpose and zoom level, with the sum of its steps; those on paths that end early come last."""
    steps = [(step.instead, -1 if step.level is None else step.level, step.purpose, step.noise, step.amount) for step in receipt.steps]
    table = pd.DataFrame(steps, columns=["instead", "zoom", "purpose", "noise", "amount"])
    by_level = table.groupby(["instead", "zoom", "purpose"], as_index=False)
    rows = by_level.agg(noise=("noise", "first"), amount=("amount", "sum"), steps=("amount", "size"))
    counts = rows["purpose"].str.startswith("counts")
    at = "zoom " + rows["zoom"].astype(str)
    title = rows["purpose"].where(rows["zoom"] < 0, rows["purpose"] + ", " + at)
    return rows.assign(
        place=rows["purpose"].where(rows["zoom"] < 0, at.where(~rows["instead"], "early leaves, " + at)),
        kind=np.select([~counts, rows["instead"]], ["structure", "early leaves"], "counts"),
        order=counts.astype(int),
        step=title.where(rows["steps"] == 1, title + " (" + rows["steps"].astype(str) + " steps)"),
        epsilon=rows["amount"].astype(float),
        exact=rows["amount"].astype(str),
        share=100 * rows["amount"].astype(float) / float(receipt.available),
    ).drop(columns="amount")


def parts_of_error(noise: float, uniformity: float, unit: str) -> alt.LayerChart:
    """The error of one range query in two parts: the noise, and the assumption that partitions are evenly filled.

    Args:
        noise: released answer minus what the true counts of the partitions would have answered.
        uniformity: that answer minus the true one.
        unit: what one record is.
    """
    values = {"noise": noise, "uniformity": uniformity, "total": noise + uniformity}
    rows = pd.DataFrame(
        {"part": list(values), "label": [f"{part} {signed(value)}" for part, value in values.items()], "error": values.values()}
    )
    bars = alt.Chart(with_texts(rows, ["part", "error"])).mark_bar(cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X(field="error", type="quantitative", title=f"released minus true ({unit})", axis=AXIS),
        y=alt.Y(field="label", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
        color=alt.Color(field="part", type="nominal", scale=alt.Scale(domain=list(values), range=[ACCENT, "#5aa9c4", GREY]), legend=None),
        tooltip=tooltip({"part": "part", "error": f"error ({unit})"}),
    )
    zero = alt.Chart(pd.DataFrame({"error": [0.0]})).mark_rule(color=GREY).encode(x=alt.X(field="error", type="quantitative"))
    told = f"Error of the answer: noise {signed(noise)}, uniformity {signed(uniformity)}, together {signed(noise + uniformity)} {unit}."
    return finish(alt.layer(bars, zero), "Parts of the error", told, FRAME + ROW * len(rows))


def _base(table: pd.DataFrame, names: dict[str, str]) -> Any:
    present = {column: name for column, name in names.items() if column in table}
    x = alt.X(field="zoom", type="ordinal", title=_ZOOM, axis=alt.Axis(labelAngle=0))
    return alt.Chart(with_texts(table, list(present))).encode(x=x, tooltip=tooltip(present))


def _series(chart: Any, name: str) -> Any:
    """The chart as one entry of the legend that the layers of accuracy share."""
    scale = alt.Scale(domain=[_MEASURED, _NOISE], range=[ACCENT, GREY])
    color = alt.Color(field="series", type="nominal", scale=scale, legend=legend())
    return chart.transform_calculate(series=f"'{name}'").encode(color=color)


__all__ = ["accuracy_by_zoom", "error_by_size", "expected_by_zoom", "false_positives_by_zoom", "parts_of_error", "receipt_by_level"]
