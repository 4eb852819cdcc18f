"""Altair charts of accuracy and of the budget, the parts that all charts share, and charts as image files."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.amounts import format_decimal
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE
from dpviz.view.escape import line

if TYPE_CHECKING:
    from dpviz.privacy.receipt import Receipt

__all__ = ["accuracy_by_zoom", "error_by_size", "expected_by_zoom", "false_positives_by_zoom", "parts_of_error", "receipt_by_level"]

GREY, LIGHTER = "#8a8f94", "#5aa9c4"
HEIGHT = 260  # pixels: of a chart with a curve
ROW, FRAME = 22, 100  # pixels: the height of a row with a bar, and the height of title, axis and legend together
FORMAT = ",.6~r"
AXIS = alt.Axis(format=FORMAT, tickCount=5)
_LEGEND_ENTRY, _LETTER, _SYMBOL = 155, 6, 45  # approximate pixels: the narrowest entry, a letter, symbol and padding
LEAST_SHARE = 1e-6  # on a log axis, values below this share of the largest one are drawn at the lower end
POINT = alt.OverlayMarkDef(size=55, filled=True)
# Looks of the first, second, ... series of a chart: a colour, and a dash or mark for those who cannot tell the colours apart.
COLORS = (ACCENT, "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8800ff", "#994433")
DASHES = ([1, 0], [7, 3], [2, 2], [7, 2, 2, 2], [12, 3], [4, 4], [1, 3], [9, 2, 1, 2])
MARKS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")


def finish(chart: Any, title: str, summary: str, height: int) -> alt.LayerChart:
    """Give a chart its title, alternative text and size.

    Args:
        chart: an Altair chart or layer.
        title: above the chart.
        summary: a description of the chart's content, for the alternative text.
        height: of the whole chart with title, legend and axes, in pixels; its width is that of its container.
    """
    finished: alt.LayerChart = chart.properties(
        title=alt.Title(line(title), offset=6),
        description=line(f"{title}. {summary}"),
        height=height,
        width="container",
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        padding={"left": 5, "top": 5, "right": 16, "bottom": 5},
    )
    return finished


def legend(symbol: str = "stroke") -> alt.Legend:
    """Make a legend above the chart; its symbols are lines ("stroke") or squares ("square")."""
    return alt.Legend(
        title=None, orient="top", offset=4, padding=0, symbolType=symbol, symbolOpacity=1, symbolStrokeWidth=3 if symbol == "stroke" else 0
    )


def category_channel(channel: Any, field: str, order: Sequence[str], looks: Sequence[Any]) -> Any:
    """Make an encoding channel that shows a category by colour, shape or dashes, with a legend.

    Args:
        channel: such as `alt.Color`.
        field: the column of categories.
        order: the categories.
        looks: a colour, shape or dash pattern for each.
    """
    legend_above, entry = legend(), entry_width(order)
    legend_above["columns"] = alt.ExprRef(f"clamp(floor(width / {entry}), 1, {4 if len(order) <= 4 else 3})")
    legend_above["labelLimit"] = alt.ExprRef(f"max(width - {_SYMBOL}, {_LEGEND_ENTRY})")
    return channel(field=field, type="nominal", scale=alt.Scale(domain=list(order), range=list(looks[: len(order)])), legend=legend_above)


def color_and_dash(field: str, order: Sequence[str], colors: Sequence[str]) -> dict[str, Any]:
    """Make the channels by which lines differ in colour and in dashes; arguments as of `category_channel`."""
    return {
        "color": category_channel(alt.Color, field, order, colors),
        "strokeDash": category_channel(alt.StrokeDash, field, order, DASHES),
    }


def entry_width(names: Sequence[str]) -> int:
    """Approximate width of the longest name in a legend, in pixels."""
    return max(_LEGEND_ENTRY, _SYMBOL + _LETTER * max(map(len, names), default=0))


def prepare_log_axis(table: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, list[float]]:
    """Prepare columns for a logarithmic axis.

    Args:
        table: a table that has the columns.
        columns: names of the columns that share the axis.

    Returns:
        The table with a column "<name> drawn" for each, in which zeros and values below `LEAST_SHARE` of the largest are raised to the
        lower end of the axis; and the ticks of the axis.
    """
    values = table[list(columns)].to_numpy(np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    ends = (max(positive.min(), positive.max() * LEAST_SHARE), positive.max()) if positive.size else (0.1, 1.0)
    ticks = choose_log_ticks(*ends)
    return table.assign(**{f"{column} drawn": np.maximum(table[column], ticks[0]) for column in columns}), ticks


def choose_log_ticks(least: float, most: float) -> list[float]:
    """Choose ticks for numbers above 0: powers of ten, with 2 and 5 times these between few of them."""
    low, high = (math.floor(math.log10(end)) for end in (least, most))
    steps = (1, 2, 5) if high - low < 2 else (1,)
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]


def log_y(title: str, ticks: list[float], field: str) -> Any:
    """Make a logarithmic y axis; `ticks` and the column `field` come from `prepare_log_axis`.

    Args:
        title: of the axis, with the unit.
        ticks: from `prepare_log_axis`.
        field: a column "<name> drawn" from `prepare_log_axis`.
    """
    axis = alt.Axis(format=FORMAT, values=ticks)
    return alt.Y(field=field, type="quantitative", title=title, scale=alt.Scale(type="log", domainMin=ticks[0], nice=False), axis=axis)


def percent_y(title: str, field: str) -> Any:
    """Make a y axis of percentages from 0 to 100."""
    scale = alt.Scale(domainMin=0, domainMax=100)
    return alt.Y(field=field, type="quantitative", title=title, scale=scale, axis=alt.Axis(format=FORMAT, tickCount=5))


def add_texts(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Add a column "<name> shown" with readable texts for each column, for tooltips."""
    return table.assign(**{f"{column} shown": table[column].map(format_cell) for column in columns})


def tooltip(names: dict[str, str]) -> list[alt.Tooltip]:
    """Make a tooltip of the columns that `add_texts` added; `names` maps columns to their labels."""
    return [alt.Tooltip(field=f"{column} shown", type="nominal", title=name) for column, name in names.items()]


def format_cell(value: object) -> str:
    """Write a cell of a table as text: numbers with four digits, texts as one clean line."""
    if isinstance(value, str):
        return line(value)
    return format_decimal(float(value))  # type: ignore[arg-type]


def write_signed(value: float) -> str:
    """Write a number as text, with its sign."""
    return f"{'−' if value < 0 else '+'}{format_cell(abs(value))}"


def describe_values(table: pd.DataFrame, where: str, what: str) -> str:
    """Write two columns of a table as a text for screen readers: "where: what, where: what".

    Args:
        table: a table that has both columns.
        where: column that identifies the rows.
        what: column of values.
    """
    pairs = zip(table[where], table[what], strict=True)
    return ", ".join(f"{format_cell(row)}: {format_cell(value)}" for row, value in pairs)


def describe_series(table: pd.DataFrame, series: str, where: str, what: str) -> str:
    """Write a table as a text for screen readers: for each value of the column `series`, as `describe_values`."""
    return "; ".join(f"{name}: {describe_values(rows, where, what)}" for name, rows in table.groupby(series, sort=False))


def number_repeated(names: Sequence[str]) -> list[str]:
    """Clean names and number repeated ones, since bars of equal names would cover each other."""
    names = [line(name) for name in names]
    return [name if name not in names[:index] else f"{name} ({names[:index].count(name) + 1})" for index, name in enumerate(names)]


def to_hex(color: tuple[int, int, int]) -> str:
    """Write red, green and blue, 0 to 255, as a CSS colour such as "#0b6e8f"."""
    return "#{:02x}{:02x}{:02x}".format(*color)


WIDTH, SCALE = 760, 2
STAMP = "dpviz, Learn: made-up data and seeded noise. A simulation, not a release."
_LETTERS_PER_LINE, _LETTERS_IN_TITLE = 110, 80
FONT = "Arial, sans-serif"
_CHANNELS = ("color", "shape", "strokeDash", "size", "opacity", "xOffset")
INDEPENDENT: Any = dict.fromkeys(_CHANNELS, "independent")
"""Scales that charts in one picture do not share."""


@dataclass(frozen=True)
class Theme:
    """Colours of a picture: its background, its texts, its grid lines and its captions."""

    background: str
    text: str
    grid: str
    caption: str


LIGHT, DARK = Theme("#ffffff", "#1d282e", "#dde3e6", "#55626a"), Theme("#101518", "#e4e9eb", "#3d484e", "#a3afb6")
LIGHT_PAGE = "luminance(background || '#ffffff') > 0.4"
"""Vega expression of whether the page is light."""
CAPTION = alt.ExprRef(f"{LIGHT_PAGE} ? '{LIGHT.caption}' : '{DARK.caption}'")
"""Colour of texts in charts, which are read on light and dark pages."""


def stack(charts: Sequence[Any]) -> alt.VConcatChart:
    """Put charts one above the other, each with scales and legends of its own.

    Args:
        charts: as made by `dpviz.view.charts.finish`.
    """
    parts = [copy_part(chart).properties(width=WIDTH) for chart in charts]
    stacked: alt.VConcatChart = alt.vconcat(*parts).resolve_scale(**INDEPENDENT)
    return stacked


def picture(charts: Sequence[Any], title: str, settings: str, kind: str, *, dark: bool = False, stamp: str = STAMP) -> bytes:
    """Render charts one above the other as an image file, with a title, the settings and a stamp that says it is a simulation.

    Args:
        charts: as made by `dpviz.view.charts.finish`.
        title: of the picture.
        settings: a text that describes the settings, of one line or more.
        kind: "svg" or "png".
        dark: light lines and texts on a dark background.
        stamp: says under the settings what the picture is not.

    Returns:
        The content of the file.
    """
    lines = [part for text in (*settings.splitlines(), stamp) for part in wrap(text, _LETTERS_PER_LINE)]
    heading = alt.Title(wrap(title, _LETTERS_IN_TITLE), subtitle=lines, fontSize=16, anchor="start", offset=14, subtitlePadding=6)
    heading.subtitleColor = (DARK if dark else LIGHT).caption
    chart = stack(charts).properties(title=heading, padding=16)
    return render(set_theme(chart, dark=dark), kind, scale=SCALE)


def set_theme(chart: Any, *, dark: bool, text_size: int = 11) -> Any:
    """Give a chart that is to become a file its font, and the colours of a light or a dark page."""
    theme = DARK if dark else LIGHT
    chart = chart.properties(background=theme.background).configure(font=FONT)
    chart = chart.configure_title(color=theme.text).configure_legend(labelColor=theme.text, titleColor=theme.text)
    colors = {"labelColor": theme.text, "titleColor": theme.text}
    colors |= {"gridColor": theme.grid, "domainColor": theme.grid, "tickColor": theme.grid}
    return chart.configure_axis(labelFontSize=text_size, titleFontSize=text_size, **colors).configure_view(stroke=theme.grid)


def render(chart: Any, kind: str, *, scale: float = 1) -> bytes:
    """Return a chart as the content of a file.

    Args:
        chart: an Altair chart with a size.
        kind: "svg" or "png".
        scale: pixels of a PNG per pixel of the chart.
    """
    if kind == "svg":
        svg = io.StringIO()
        chart.save(svg, format="svg")
        return svg.getvalue().encode()
    png = io.BytesIO()
    chart.save(png, format="png", scale_factor=scale)
    return png.getvalue()


def copy_part(chart: Any) -> Any:
    """Copy a chart as a part of a larger one, without the properties that only a top-level chart may have."""
    part = chart.copy(deep=True)
    for name in ("autosize", "padding", "background", "config"):
        setattr(part, name, alt.Undefined)
    if part.title is not alt.Undefined:
        part.title.anchor = "start"
    return part


_DEEPEST_BAND = 10.0  # the band is drawn down to the expected error divided by this

_MEASURED, _NOISE = "measured", "noise alone (95 % band)"
_ZOOM = "zoom level: each cuts the squares of the one before into four"


def accuracy_by_zoom(by_zoom: pd.DataFrame, unit: str, *, total: float | None = None) -> alt.LayerChart:
    """Draw the measured error of squares at each zoom level, with the 95 % band that is expected from the noise alone.

    Args:
        by_zoom: `Evaluation.by_zoom`. CURATOR ONLY: the error is measured against the truth. Without a stated noise, as of contrasts, there
            is no band.
        unit: what is counted, in the plural.
        total: count of the whole domain: errors are then in percent of an average square; None for errors in `unit`. A square four times
            smaller has a smaller error in `unit`, but mostly a larger one in percent.
    """
    by_zoom, unit = _in_percent(by_zoom, ["rmse", "mae", "expected", "low", "high"], unit, total)
    summary = f"Typical error per zoom level: {describe_values(by_zoom, 'zoom', 'rmse')} {unit}"
    names = {"zoom": "zoom", "blocks": "squares", "rmse": f"measured ({unit})", "mae": f"mean error ({unit})"}
    title = _axis_title("typical error", unit)
    if by_zoom["expected"].isna().all():
        return finish(_one_curve(by_zoom, names, "rmse", title), "Accuracy by zoom level", f"{summary}.", HEIGHT)
    floor = np.maximum(by_zoom["low"], by_zoom["expected"] / _DEEPEST_BAND)
    table, ticks = prepare_log_axis(by_zoom.assign(floor=floor), ["rmse", "expected", "floor", "high"])
    names |= {"expected": f"noise alone ({unit})", "low": "95 % from", "high": "95 % to"}
    base, data = _base_chart(table, names)
    y = partial(log_y, title, ticks)
    band = _colour_series(base.mark_area(opacity=0.3, aria=False), _NOISE).encode(y=y("floor drawn"), y2="high drawn")
    expected = _colour_series(base.mark_line(strokeDash=[4, 3], strokeWidth=1.5, aria=False), _NOISE).encode(y=y("expected drawn"))
    measured = _colour_series(base.mark_line(strokeWidth=2.5, point=POINT), _MEASURED).encode(y=y("rmse drawn"))
    summary += f"; expected from the noise alone: {describe_values(by_zoom, 'zoom', 'expected')}."
    return finish(alt.layer(band, expected, measured, data=data), "Accuracy by zoom level", summary, HEIGHT)


def expected_by_zoom(table: pd.DataFrame, unit: str, *, total: float | None = None) -> alt.LayerChart:
    """Draw the error of squares at each zoom level that is expected from the noise; it needs no true counts.

    Args:
        table: columns zoom and expected (`expected_error`).
        unit: what is counted, in the plural.
        total: as of `accuracy_by_zoom`.
    """
    table, unit = _in_percent(table.assign(blocks=4 ** table["zoom"].to_numpy(np.int64)), ["expected"], unit, total)
    names = {"zoom": "zoom", "blocks": "squares", "expected": f"expected error ({unit})"}
    curve = _one_curve(table, names, "expected", _axis_title("expected error", unit))
    summary = f"Error expected from the noise alone per zoom level: {describe_values(table, 'zoom', 'expected')} {unit}."
    return finish(curve, "Expected accuracy by zoom level", summary, HEIGHT)


def _one_curve(table: pd.DataFrame, names: dict[str, str], column: str, title: str) -> Any:
    """Draw one column by zoom level on a logarithmic axis; `names` are the columns of the tooltip, `title` is that of the axis."""
    rows, ticks = prepare_log_axis(table[list(names)], [column])
    base, data = _base_chart(rows, names)
    curve = base.mark_line(color=ACCENT, strokeWidth=2.5, point=alt.OverlayMarkDef(size=55, filled=True, color=ACCENT))
    return alt.layer(curve.encode(y=log_y(title, ticks, f"{column} drawn")), data=data)


def _axis_title(what: str, unit: str) -> str:
    """Return the title of an axis of errors, which has room for few words."""
    return f"{what} of a square ({'%' if unit.startswith('%') else unit})"


def _in_percent(table: pd.DataFrame, columns: list[str], unit: str, total: float | None) -> tuple[pd.DataFrame, str]:
    """Return a table with errors in percent of the average square of their zoom level, and their unit; as they are without a total."""
    if total is None or total <= 0:
        return table, unit
    factor = 100 * table["blocks"] / total
    return table.assign(**{column: table[column] * factor for column in columns}), f"% of average {unit}"


def false_positives_by_zoom(by_zoom: pd.DataFrame, unit: str) -> alt.LayerChart:
    """Draw by zoom level which share of the empty squares is released as occupied, and which of the occupied ones as empty.

    A level without empty squares has no point of false positives.

    Args:
        by_zoom: `Evaluation.by_zoom`. CURATOR ONLY.
        unit: what is counted, in the plural.
    """
    bases = by_zoom.assign(occupied=by_zoom["blocks"] - by_zoom["empty"])
    kinds = {
        "false positives, of empty squares": ("false_positives", "empty", FALSE_POSITIVE),
        "false negatives, of occupied squares": ("false_negatives", "occupied", FALSE_NEGATIVE),
    }
    parts = []
    for kind, (column, base, _) in kinds.items():
        some = bases[bases[base] > 0]
        parts.append(some.assign(kind=kind, share=100 * some[column] / some[base]))
    names = {"kind": "line", "share": "share (%)", "zoom": "zoom", "empty": "empty squares", "false_positives": "false positives"}
    names["false_positive_records"] = f"{unit} released on empty squares"
    names |= {"occupied": "occupied squares", "false_negatives": "false negatives"}
    colors = [to_hex(color) for *_, color in kinds.values()]
    base, data = _base_chart(pd.concat(parts, ignore_index=True), names)
    y = alt.Y(field="share", type="quantitative", title="share (%)", scale=alt.Scale(domainMin=0), axis=alt.Axis(format=FORMAT))
    curves = base.mark_line(point=POINT, strokeWidth=2.5, opacity=0.9).encode(y=y, **color_and_dash("kind", list(kinds), colors))
    positives, negatives = (describe_values(part, "zoom", "share") for part in parts)
    summary = f"Percent of the empty squares that are released as occupied, per zoom level: {positives or 'no square is empty'}; "
    summary += f"percent of the occupied squares that are released as empty: {negatives or 'no square is occupied'}."
    return finish(alt.layer(curves, data=data), "False positives and negatives by zoom level", summary, HEIGHT)


def error_by_size(table: pd.DataFrame, unit: str) -> alt.LayerChart:
    """Draw the mean error of partitions, grouped by true count.

    Args:
        table: from `dpviz.evaluation.metrics.error_by_size`. CURATOR ONLY.
        unit: what is counted, in the plural.
    """
    sizes = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in table[["low", "high"]].astype(int).itertuples(index=False)]
    texts = ["" if np.isnan(value) else f"{format_decimal(value, 3)} % of the count" for value in table["relative"]]
    rows = table.assign(size=sizes, label=texts)
    names = {"size": f"true count ({unit})", "partitions": "partitions", "mae": f"mean error ({unit})", "bias": f"bias ({unit})"}
    base = alt.Chart(add_texts(rows, [*names, "relative", "label"])).encode(
        tooltip=tooltip(names | {"relative": "mean error (% of the count)"}),
        x=alt.X(field="size", type="ordinal", sort=None, title=f"true count of the partition ({unit})", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(field="mae", type="quantitative", title=f"mean absolute error ({unit})", axis=AXIS),
    )
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2)
    labels = base.mark_text(dy=-7, color=CAPTION).encode(text=alt.Text(field="label", type="nominal"))
    summary = f"Mean error by true count: {describe_values(rows, 'size', 'mae')} {unit}."
    return finish(alt.layer(bars, labels), "Error by true size", summary, HEIGHT)


def receipt_by_level(receipt: Receipt) -> alt.LayerChart:
    """Draw the budget spent per zoom level: on the structure (the choice of partitions) and on counts.

    A leaf above the finest level takes one step instead of all later ones. Such steps have bars of their own, which are not added to
    the others.

    Args:
        receipt: of the release; at least one step.
    """
    rows = _spending_rows(receipt)
    kinds = {"structure": GREY, "counts": ACCENT, "early leaves": "#9cc8d6"}
    kinds_present = [kind for kind in kinds if kind in set(rows["kind"])]
    names = {"step": "step", "kind": "for", "amount": receipt.currency, "exact": f"{receipt.currency} exactly"}
    names |= {"share": "share of the budget (%)", "noise": "noise"}
    color = alt.Scale(domain=kinds_present, range=[kinds[kind] for kind in kinds_present])
    bars = alt.Chart(add_texts(rows, list(names))).mark_bar(cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X(field="amount", type="quantitative", title=f"privacy budget {receipt.currency}", axis=AXIS),
        y=alt.Y(field="bar", type="ordinal", sort=list(dict.fromkeys(rows["bar"])), title=None, axis=alt.Axis(labelLimit=220)),
        color=alt.Color(field="kind", type="nominal", scale=color, legend=legend("square") if len(kinds_present) > 1 else None),
        order=alt.Order(field="order", type="quantitative"),
        tooltip=tooltip(names),
    )
    added, early = (describe_values(part, "step", "amount") for part in (rows[~rows["replaces_later"]], rows[rows["replaces_later"]]))
    summary = f"Privacy budget: {added}; {format_decimal(receipt.used, 6)} of {format_decimal(receipt.available, 6)} in all."
    summary += f" Not added up, since leaves above the finest level take these instead of later steps: {early}." if early else ""
    title = "Where the privacy budget went" if receipt.private else "NOT PRIVATE: budget of the noise"
    return finish(alt.layer(bars), title, summary, FRAME + ROW * rows["bar"].nunique())


def _spending_rows(receipt: Receipt) -> pd.DataFrame:
    """Make a table with a row per purpose and zoom level, with the sum of its steps; steps of early leaves come last."""
    steps = [
        (step.replaces_later, -1 if step.level is None else step.level, step.purpose, step.noise, step.amount) for step in receipt.steps
    ]
    table = pd.DataFrame(steps, columns=["replaces_later", "zoom", "purpose", "noise", "amount"])
    by_level = table.groupby(["replaces_later", "zoom", "purpose"], as_index=False)
    rows = by_level.agg(noise=("noise", "first"), amount=("amount", "sum"), steps=("amount", "size"))
    is_count = rows["purpose"].str.startswith("counts")
    zoom_name = "zoom " + rows["zoom"].astype(str)
    title = rows["purpose"].where(rows["zoom"] < 0, rows["purpose"] + ", " + zoom_name)
    return rows.assign(
        bar=rows["purpose"].where(rows["zoom"] < 0, zoom_name.where(~rows["replaces_later"], "early leaves, " + zoom_name)),
        kind=np.select([~is_count, rows["replaces_later"]], ["structure", "early leaves"], "counts"),
        order=is_count.astype(int),
        step=title.where(rows["steps"] == 1, title + " (" + rows["steps"].astype(str) + " steps)"),
        amount=rows["amount"].astype(float),
        exact=rows["amount"].astype(str),
        share=100 * rows["amount"].astype(float) / float(receipt.available),
    )


def parts_of_error(noise: float, uniformity: float, unit: str) -> alt.LayerChart:
    """Draw the two parts of the error of one range query: noise, and the assumption that records are uniform inside partitions.

    Args:
        noise: released answer minus the answer from the true counts of the partitions.
        uniformity: the answer from the true counts of the partitions minus the true answer.
        unit: what is counted, in the plural.
    """
    values = {"noise": noise, "uniformity": uniformity, "total": noise + uniformity}
    texts = [f"{part} {write_signed(value)}" for part, value in values.items()]
    rows = pd.DataFrame({"part": list(values), "label": texts, "error": values.values()})
    bars = alt.Chart(add_texts(rows, ["part", "error"])).mark_bar(cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X(field="error", type="quantitative", title=f"released minus true ({unit})", axis=AXIS),
        y=alt.Y(field="label", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
        color=alt.Color(field="part", type="nominal", scale=alt.Scale(domain=list(values), range=[ACCENT, LIGHTER, GREY]), legend=None),
        tooltip=tooltip({"part": "part", "error": f"error ({unit})"}),
    )
    zero = alt.Chart(pd.DataFrame({"error": [0.0]})).mark_rule(color=GREY).encode(x=alt.X(field="error", type="quantitative"))
    return finish(alt.layer(bars, zero), "Parts of the error", f"Error of the answer: {', '.join(texts)} {unit}.", FRAME + ROW * len(rows))


def _base_chart(table: pd.DataFrame, names: dict[str, str]) -> tuple[Any, pd.DataFrame]:
    """Return a chart by zoom level without data, and the data of the layers that are made of it: Altair copies data that layers hold."""
    present = {column: name for column, name in names.items() if column in table}
    x = alt.X(field="zoom", type="ordinal", title=_ZOOM, axis=alt.Axis(labelAngle=0))
    return alt.Chart().encode(x=x, tooltip=tooltip(present)), add_texts(table, list(present))


def _colour_series(chart: Any, name: str) -> Any:
    """Colour a layer as one entry of the legend that all layers of the chart share."""
    scale = alt.Scale(domain=[_MEASURED, _NOISE], range=[ACCENT, GREY])
    color = alt.Color(field="series", type="nominal", scale=scale, legend=legend())
    return chart.transform_calculate(series=f"'{name}'").encode(color=color)
