"""Maps, matrices and tables of the Learn page as plain charts: cells with outlines, one split, a family of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from dpviz.amounts import format_count
from dpviz.lessons.charts import AMBER, GREEN, apart, band, level
from dpviz.view.charts import AXIS, FORMAT, GREY, finish, hex_of, legend, readable, told_by, tooltip, with_texts
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE

if TYPE_CHECKING:
    from dpviz.evaluation.split_objective import ObjectiveCurve

FILL = "#2b8fb3"
RIGHT, FALSE_P, FALSE_N = "right", "false positive", "false negative"
_MARK = "#d55e00"
_FAINTEST = 0.04
_BAND = alt.Scale(type="band", padding=0)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """What is filled in a map.

    Attributes:
        table: columns x, y, x2, y2 (edges) and value.
        title: of the map.
        value: title of the value with its unit.
        low: the value drawn faintest; on a logarithmic scale if it is above 0.
        high: the value drawn strongest.
        told: alternative text.
        height: of the whole chart, in pixels.
    """

    table: pd.DataFrame
    title: str
    value: str
    low: float
    high: float
    told: str
    height: int = 380


def cell_map(
    cells: Cells, *, marks: pd.DataFrame | None = None, outlines: pd.DataFrame | None = None, strong: bool = False
) -> alt.LayerChart:
    """Cells whose strength of colour is their value, with outlines of partitions and marked places.

    Args:
        cells: what is filled.
        marks: columns x, y, what (a name) and shape (a Vega symbol or "dot" for small grey dots).
        outlines: columns x, y, x2, y2 of partitions.
        strong: draw the outlines so that they stand out.
    """
    names = {"value": cells.value}
    logarithmic = cells.low > 0
    scale = alt.Scale(type="log" if logarithmic else "sqrt", domain=[cells.low, cells.high], range=[_FAINTEST, 1.0], clamp=True, nice=False)
    shown = alt.Legend(title=cells.value, orient="bottom", format=FORMAT, symbolType="square", symbolFillColor=FILL, symbolStrokeWidth=0)
    fill = alt.Chart(with_texts(cells.table, list(names))).mark_rect(color=FILL, strokeWidth=0)
    fill = fill.encode(
        **_edges(), opacity=alt.Opacity(field="value", type="quantitative", scale=scale, legend=shown), tooltip=tooltip(names)
    )
    layers = [fill]
    if outlines is not None:
        frame = alt.Chart(outlines).mark_rect(
            filled=False, stroke=_MARK if strong else GREY, strokeWidth=2.2 if strong else 0.8, aria=False
        )
        layers.append(frame.encode(**_edges()))
    if marks is not None:
        layers += _marks(marks)
    return finish(alt.layer(*layers), cells.title, cells.told, cells.height)


def _edges() -> dict[str, Any]:
    """Places without axes: a map of a made-up town needs none."""
    return {
        "x": alt.X(field="x", type="quantitative", axis=None, scale=alt.Scale(nice=False, zero=False)),
        "x2": alt.X2(field="x2"),
        "y": alt.Y(field="y", type="quantitative", axis=None, scale=alt.Scale(nice=False, zero=False)),
        "y2": alt.Y2(field="y2"),
    }


def _marks(marks: pd.DataFrame) -> list[Any]:
    """Small dots, and named marks that stand out."""
    place = {key: channel for key, channel in _edges().items() if key in ("x", "y")}
    named = [alt.Tooltip(field="what", type="nominal", title="mark")]
    small, large = marks[marks["shape"] == "dot"], marks[marks["shape"] != "dot"]
    layers = []
    if len(small):
        layers.append(alt.Chart(small).mark_point(size=9, filled=True, color=GREY, opacity=0.9).encode(**place, tooltip=named))
    for shape, rows in large.groupby("shape", sort=False):
        mark = alt.Chart(rows).mark_point(shape=str(shape), size=260, filled=False, stroke=_MARK, strokeWidth=2.5, opacity=1)
        layers.append(mark.encode(**place, tooltip=named))
    return layers


def pair_matrix(table: pd.DataFrame, title: str, told: str, *, height: int = 430) -> alt.LayerChart:
    """Released trips of every pair, with the wrong ones about presence in colours and shapes of their own.

    Args:
        table: origin, destination, true, released, kind.
        title: of the chart.
        told: alternative text.
        height: of the whole chart, in pixels.
    """
    names = {"origin": "from", "destination": "to", "released": "released", "true": "true", "kind": "presence"}
    looks: dict[str, Any] = {"labelOverlap": False, "labelFontSize": 9, "grid": False, "domain": False, "ticks": False}
    x = alt.X(field="destination", type="ordinal", sort=None, title="to", scale=_BAND, axis=alt.Axis(labelAngle=-60, **looks))
    y = alt.Y(field="origin", type="ordinal", sort=None, title="from", scale=_BAND, axis=alt.Axis(**looks))
    base = alt.Chart(with_texts(table, list(names))).encode(x=x, y=y, tooltip=tooltip(names))
    scale = alt.Scale(type="sqrt", domain=[0, max(float(table["released"].max()), 1.0)], range=[0.05, 1.0])
    cells = base.mark_rect(color=FILL, stroke=GREY, strokeWidth=0.3).encode(
        opacity=alt.Opacity(field="released", type="quantitative", scale=scale, legend=None)
    )
    kinds = {FALSE_P: (hex_of(FALSE_POSITIVE), "cross"), FALSE_N: (hex_of(FALSE_NEGATIVE), "circle")}
    wrong = base.transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=list(kinds))).mark_point(filled=True, size=70, opacity=1)
    shown = legend("circle")
    wrong = wrong.encode(
        color=alt.Color(
            field="kind", type="nominal", scale=alt.Scale(domain=list(kinds), range=[c for c, _ in kinds.values()]), legend=shown
        ),
        shape=alt.Shape(
            field="kind", type="nominal", scale=alt.Scale(domain=list(kinds), range=[s for _, s in kinds.values()]), legend=shown
        ),
    )
    return finish(alt.layer(cells, wrong), title, told, height)


TRIED, BEST = "tried line", "best of all"


def split_curve(curve: ObjectiveCurve, where: str, *, height: int = 380) -> alt.LayerChart:
    """How unevenly both parts are filled, by where the line is; the band is one standard deviation of the choice's noise.

    Args:
        curve: of a made-up town.
        where: title of the axis along.
        height: of the whole chart, in pixels.
    """
    names = {"kind": "mark", "x": where, "y": "unevenness (people)"}
    rows = pd.DataFrame({"x": curve.lines, "y": curve.objective, "kind": "any line"})
    rows = rows.assign(low=rows["y"] - curve.choice_noise, high=rows["y"] + curve.choice_noise)
    marked = pd.DataFrame({"x": [*curve.tried, curve.best], "y": [*curve.tried_objective, curve.least]})
    marked["kind"] = [TRIED] * len(curve.tried) + [BEST]
    x = alt.X(field="x", type="quantitative", title=where, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6))
    y = alt.Y(field="y", type="quantitative", title=names["y"], scale=alt.Scale(zero=False), axis=alt.Axis(format=FORMAT, tickCount=5))
    line = alt.Chart(with_texts(rows, list(names))).mark_line(color=ACCENT, strokeWidth=2.5).encode(x=x, y=y, tooltip=tooltip(names))
    marks = alt.Chart(with_texts(marked, list(names))).mark_point(filled=True, size=110, opacity=1)
    marks = marks.encode(x=x, y=y, tooltip=tooltip(names), **_kinds())
    told = f"Unevenness without a split: {readable(curve.unsplit)}. At the lines that are tried: {told_by(marked[:-1], 'x', 'y')}."
    told += f" Best of all: {readable(curve.best)}, with {readable(curve.least)}. Noise: {readable(curve.choice_noise)} up and down."
    whole = level(curve.unsplit, "without a split")
    return finish(alt.layer(band(rows), whole, line, marks), "How uneven are both parts?", told, height)


def _kinds() -> dict[str, Any]:
    kinds = (TRIED, BEST)
    return {
        "color": apart(alt.Color, "kind", kinds, (AMBER, GREEN), "circle"),
        "shape": apart(alt.Shape, "kind", kinds, ("triangle-up", "cross"), "circle"),
    }


def chosen(table: pd.DataFrame, where: str, *, height: int = 220) -> alt.LayerChart:
    """How often each line was chosen.

    Args:
        table: place, times (percent).
        where: title of the axis.
        height: of the whole chart, in pixels.
    """
    names = {"place": where, "times": "chosen (%)"}
    rows = table.assign(place=table["place"].astype(int).astype(str))
    base = alt.Chart(with_texts(rows, list(names))).encode(
        x=alt.X(field="place", type="ordinal", sort=None, title=where, axis=alt.Axis(labelAngle=0)),
        y=alt.Y(field="times", type="quantitative", title="chosen (%)", scale=alt.Scale(domain=[0, 110]), axis=AXIS),
        tooltip=tooltip(names),
    )
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2, size=26)
    texts = base.mark_text(color=GREY, dy=-8, aria=False).encode(text=alt.Text(field="times shown", type="nominal"))
    return finish(alt.layer(bars, texts), "Where private choices fall", f"Chosen (%): {told_by(rows, 'place', 'times')}.", height)


PLAIN, SUM = "count", "sum"
FILLS = {PLAIN: "#d9e2e6", FALSE_P: "#f0a468", FALSE_N: "#7fb6e6"}
_INK = "#14191c"


def family_table(table: pd.DataFrame, order: Sequence[str], title: str, *, height: int = 250) -> alt.LayerChart:
    """A row per version and a column per child, with a sum; what is wrong about presence has a colour of its own and bold print.

    Args:
        table: child, series, count.
        order: of the versions; the first is the truth, the second is not judged.
        title: of the chart.
        height: of the whole chart, in pixels.
    """
    rows = judged(table, order)
    names = {"child": "child", "series": "version", "count": "trips", "kind": "presence"}
    columns = list(dict.fromkeys(rows["child"]))
    base = alt.Chart(with_texts(rows, list(names))).encode(
        x=alt.X(field="child", type="ordinal", sort=columns, title="child of one parent", axis=alt.Axis(labelAngle=0, orient="bottom")),
        y=alt.Y(field="series", type="ordinal", sort=list(order), title=None, axis=alt.Axis(labelLimit=140)),
        tooltip=tooltip(names),
    )
    fill = apart(alt.Color, "kind", list(FILLS), list(FILLS.values()), "square")
    fill["legend"]["values"] = [FALSE_P, FALSE_N]
    boxes = base.mark_rect(stroke=_INK, strokeWidth=0.4).encode(color=fill)
    texts = base.mark_text(color=_INK, fontSize=12, aria=False).encode(text=alt.Text(field="label", type="nominal"))
    texts = alt.layer(
        texts.transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=[PLAIN])),
        texts.mark_text(color=_INK, fontSize=13, fontWeight="bold", aria=False).transform_filter(
            alt.FieldOneOfPredicate(field="kind", oneOf=[FALSE_P, FALSE_N])
        ),
    )
    told = "; ".join(f"{name}: {told_by(part, 'child', 'count')}" for name, part in rows.groupby("series", sort=False))
    return finish(alt.layer(boxes, texts), title, told, height)


def judged(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """The table with a sum per version, and what is wrong about presence in those that were made to add up.

    Args:
        table: child, series, count.
        order: the truth, the noisy numbers, and the others.
    """
    table = table.reset_index(drop=True)
    sums = table.groupby("series", sort=False, as_index=False)["count"].sum().assign(child=SUM)
    truth = table[table["series"] == order[0]].set_index("child")["count"]
    known = table["child"].map(truth)
    wrong = table["series"].isin(list(order)[2:])
    kind = pd.Series(PLAIN, index=table.index)
    kind = kind.mask(wrong & (known == 0) & (table["count"] > 0), FALSE_P).mask(wrong & (known > 0) & (table["count"] == 0), FALSE_N)
    rows: pd.DataFrame = pd.concat([table.assign(kind=kind, child=table["child"].astype(str)), sums.assign(kind=PLAIN)], ignore_index=True)
    return rows.assign(label=[format_count(count) for count in rows["count"]])
