"""Charts of released trips: accuracy and budget stage by stage, the totals of a region, and a matrix of pairs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.release.trip_release import TripRelease
from dpviz.view.charts import (
    AXIS,
    CAPTION,
    COLORS,
    DASHES,
    FORMAT,
    FRAME,
    GREY,
    LIGHTER,
    POINT,
    ROW,
    add_texts,
    describe_values,
    finish,
    format_cell,
    legend,
    log_y,
    number_repeated,
    percent_y,
    prepare_log_axis,
    to_hex,
    tooltip,
)
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from dpviz.privacy.receipt import Receipt

Styles = dict[str, tuple[str, list[int]]]
"""A colour and a dash pattern for each series of a chart, by its name."""
BOUND = "bound, 95 %"
LARGEST_MATRIX = 40  # regions on each side
MATRIX_CAPTION = (
    "Hollow cells are not told apart from 0: their 95 % intervals, which hold for all pairs at once, reach it. Magenta ones are below zero,"
    " by noise."
)
METRICS = {
    "max_error": "largest error",
    "mean_error": "mean error",
    "mean_error_present": "mean error of present pairs",
    "false_discovery": "false discovery rate",
    "false_negative": "false negative rate",
    "released_pairs": "released pairs",
}
_PERCENT = ("false_discovery", "false_negative")
_AMBER = "#e69f00"
_HEIGHT, _CELL = 300, 13  # pixels: heights of a chart with curves, and of a cell of the matrix
_CELL_COLORS = ["rgba(23,126,163,0.07)", "rgba(23,126,163,1)"]
_BELOW_ZERO = (200, 0, 180)


def to_long_form(table: pd.DataFrame, lines: Mapping[str, Any]) -> pd.DataFrame:
    """Rearrange the lines of a chart to long form: one row per stage and line, with columns series and value.

    Args:
        table: columns stage and between, one row per stage.
        lines: (T + 1,) values of each line by its name; rows with NaN are left out.
    """
    base = table[["stage"]].assign(between=number_repeated(table["between"].tolist()))
    return pd.concat([base.assign(series=name, value=values) for name, values in lines.items()], ignore_index=True).dropna(subset="value")


def make_stage_chart(table: pd.DataFrame, names: Mapping[str, str]) -> Any:
    """Make a chart with the stages of `table` along the x axis; `names` maps the columns of its tooltip to their labels."""
    order = table.sort_values("stage", kind="stable")["between"].unique().tolist()
    axis = alt.Axis(labelAngle=-35, labelLimit=150, labelOverlap=False)
    x = alt.X(field="between", type="ordinal", sort=order, title=None, axis=axis)
    return alt.Chart(add_texts(table, list(names))).encode(x=x, tooltip=tooltip(dict(names)))


def draw_log_lines(rows: pd.DataFrame, title: str, styles: Styles) -> Any:
    """Draw lines on a logarithmic axis; zeros are drawn at its lower end.

    Args:
        rows: from `to_long_form`.
        title: of the axis, with the unit.
        styles: colour and dash pattern of each series.
    """
    drawn, ticks = prepare_log_axis(rows, ["value"])
    return _draw_lines(drawn, title, styles, log_y(title, ticks, "value drawn"))


def draw_percent_lines(rows: pd.DataFrame, styles: Styles) -> Any:
    """Draw lines of percentages on an axis from 0 to 100."""
    title = "share (%)"
    return _draw_lines(rows, title, styles, percent_y(title, "value"))


def _draw_lines(rows: pd.DataFrame, title: str, styles: Styles, y: Any) -> Any:
    """Draw one line per series with a given y axis."""
    names, colors, dashes = list(styles), [color for color, _ in styles.values()], [dash for _, dash in styles.values()]
    chart = make_stage_chart(rows, {"series": "line", "between": "between", "value": title})
    line = chart.mark_line(point=POINT, strokeWidth=2.5, opacity=0.9)
    color = alt.Color(field="series", type="nominal", scale=alt.Scale(domain=names, range=colors), legend=legend())
    dash = alt.StrokeDash(field="series", type="nominal", scale=alt.Scale(domain=names, range=dashes), legend=legend())
    return line.encode(y=y, color=color, strokeDash=dash)


def errors_by_stage(table: pd.DataFrame, bounds: ArrayLike, unit: str) -> alt.LayerChart:
    """Draw the largest and the mean error of the pairs of each stage, with the bound that holds with probability 95 %.

    Args:
        table: `TripEvaluation.by_stage`. CURATOR ONLY: errors are measured against the truth.
        bounds: (T + 1,) from `error_bounds`, in trips; NaN where none is known.
        unit: what is counted, in the plural, for example "commuters".
    """
    lines = {BOUND: np.asarray(bounds, np.float64), "largest error": table["max_error"], "mean error": table["mean_error"]}
    rows = to_long_form(table, lines)
    styles: Styles = {BOUND: (GREY, [4, 3])} if (rows["series"] == BOUND).any() else {}
    styles |= {"largest error": (ACCENT, [1, 0]), "mean error": (LIGHTER, [8, 3])}
    text = f"Largest error per level: {describe_values(table, 'between', 'max_error')} {unit}; "
    text += f"mean error: {describe_values(table, 'between', 'mean_error')}"
    text += f"; bound: {describe_values(rows[rows['series'] == BOUND], 'between', 'value')}." if BOUND in styles else "."
    return finish(alt.layer(draw_log_lines(rows, f"error of a pair ({unit})", styles)), "Errors by level", text, _HEIGHT)


def rates_by_stage(table: pd.DataFrame) -> alt.LayerChart:
    """Draw the false discovery rate (percent of released pairs without true trips) and the false negative rate, by stage.

    Args:
        table: `TripEvaluation.by_stage`. CURATOR ONLY.
    """
    rows = to_long_form(table, {METRICS[metric]: table[metric] for metric in _PERCENT})
    styles = {METRICS[_PERCENT[0]]: (to_hex(FALSE_POSITIVE), [1, 0]), METRICS[_PERCENT[1]]: (to_hex(FALSE_NEGATIVE), [6, 3])}
    text = f"False discovery rate per level: {describe_values(table, 'between', 'false_discovery')} %; "
    text += f"false negative rate: {describe_values(table, 'between', 'false_negative')} %."
    return finish(alt.layer(draw_percent_lines(rows, styles)), "False pairs by level", text, _HEIGHT)


def pairs_by_stage(table: pd.DataFrame) -> alt.LayerChart:
    """Draw the numbers of all pairs, of pairs with true trips and of released pairs, by stage.

    Args:
        table: `TripEvaluation.by_stage`. CURATOR ONLY.
    """
    columns = {"all": "pairs", "released": "released_pairs", "true": "true_pairs"}
    rows = to_long_form(table, {name: table[column] for name, column in columns.items()})
    styles = {"all": (GREY, [4, 3]), "released": (ACCENT, [1, 0]), "true": (_AMBER, [8, 3])}
    text = "; ".join(f"{name} pairs per level: {describe_values(table, 'between', column)}" for name, column in columns.items()) + "."
    return finish(alt.layer(draw_log_lines(rows, "pairs", styles)), "Pairs by level", text, _HEIGHT)


def expected_by_stage(release: TripRelease, unit: str = "trips") -> alt.LayerChart:
    """Draw the noise on a pair and the number of measurements, by stage; no true counts are needed.

    Args:
        release: public.
        unit: what is counted, in the plural.
    """
    stages = [stage for stage in range(release.tree.height + 1) if len(release.stages[stage].count)]
    table = pd.DataFrame({"between": number_repeated([release.tree.title(stage) for stage in stages])})
    table["spread"] = [float(np.median(release.stage_stddev(stage))) for stage in stages]
    table["measured"] = [release.stages[stage].measured if np.isfinite(release.stages[stage].variance) else 0 for stage in stages]
    table = table[np.isfinite(table["spread"])]
    numbers = [f"{measured:,} measured" if measured else "sums of finer pairs" for measured in table["measured"]]
    pairs = zip(table["spread"], numbers, strict=True)
    table["label"] = ["exact" if spread == 0 else f"± {format_cell(spread)}, {number}" for spread, number in pairs]
    names = {"between": "between", "spread": f"standard deviation ({unit})", "measured": "numbers measured"}
    right = 1.8 * table["spread"].max() if table["spread"].any() else 1.0
    title, scale = f"standard deviation of the noise on a pair ({unit})", alt.Scale(domainMin=0, domainMax=right, nice=False)
    x = alt.X(field="spread", type="quantitative", title=title, axis=AXIS, scale=scale)
    y = alt.Y(field="between", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    base = alt.Chart(add_texts(table, list(names))).encode(x=x, y=y, tooltip=tooltip(names))
    labels = base.mark_text(dx=6, align="left", color=CAPTION).encode(text=alt.Text(field="label", type="nominal"))
    text = f"Standard deviation of the noise per level: {describe_values(table, 'between', 'spread')} {unit}; "
    text += f"numbers measured: {describe_values(table, 'between', 'measured')}."
    bars = base.mark_bar(color=ACCENT, cornerRadiusEnd=2)
    return finish(alt.layer(bars, labels), "Expected noise by level", text, FRAME + ROW * len(table))


def compare_stages(tables: Mapping[str, pd.DataFrame], metric: str, unit: str = "trips") -> alt.LayerChart:
    """Draw one metric by stage for several mechanisms, a line for each.

    Args:
        tables: `TripEvaluation.by_stage` of up to four releases by their titles. CURATOR ONLY.
        metric: a column, one of `METRICS`.
        unit: what is counted, in the plural.
    """
    names = [" or ".join(dict.fromkeys(several)) for several in zip(*(table["between"] for table in tables.values()), strict=True)]
    parts = [table.assign(series=title, value=table[metric], between=number_repeated(names)) for title, table in tables.items()]
    rows = pd.concat(parts, ignore_index=True)
    styles = dict(zip(tables, zip(COLORS, DASHES, strict=True), strict=False))
    measure = "%" if metric in _PERCENT else "pairs" if metric == "released_pairs" else unit
    chart = draw_percent_lines(rows, styles) if metric in _PERCENT else draw_log_lines(rows, f"{METRICS[metric]} ({measure})", styles)
    text = "; ".join(f"{title}: {describe_values(table, 'between', metric)}" for title, table in tables.items())
    return finish(alt.layer(chart), f"{METRICS[metric].capitalize()} by level", f"In {measure}. {text}.", _HEIGHT)


def lists_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Draw the recall of lists of pairs by their false discovery rate: a line per mechanism, a mark per setting.

    Args:
        table: from `dpviz.evaluation.pair_lists.compare_lists`. CURATOR ONLY.
    """
    methods = list(dict.fromkeys(table["method"]))
    names = {"method": "mechanism", "setting": "setting", "false_discovery": "false pairs (%)", "recall": "true pairs listed (%)"}
    names |= {"listed": "pairs listed", "max_error": "largest error"}
    x = alt.X(field="false_discovery", type="quantitative", title="listed pairs without true trips (%)", axis=AXIS)
    y = alt.Y(field="recall", type="quantitative", title="pairs with true trips that are listed (%)", axis=AXIS)
    color = alt.Color(field="method", type="nominal", scale=alt.Scale(domain=methods, range=list(COLORS[: len(methods)])), legend=legend())
    base = alt.Chart(add_texts(table, list(names))).encode(x=x, y=y, color=color, tooltip=tooltip(names))
    lines = base.mark_line(strokeWidth=2, opacity=0.6).encode(order=alt.Order(field="false_discovery", type="quantitative"))
    marks = base.mark_point(size=60, filled=True, opacity=1)
    parts = [f"{row.method}, {row.setting}: {format_cell(row.recall)} of {format_cell(row.false_discovery)}" for row in table.itertuples()]
    text = f"Percent of true pairs that are listed, and percent of listed pairs that are false. {'; '.join(parts)}."
    return finish(alt.layer(lines, marks), "Lists of pairs: true pairs found against false pairs listed", text, 320)


def receipt_by_stage(receipt: Receipt) -> alt.LayerChart:
    """Draw the share of the budget that each step of a receipt took."""
    table = pd.DataFrame(
        {
            "step": number_repeated([step.purpose for step in receipt.steps]),
            "share": [float(100 * step.amount / receipt.available) for step in receipt.steps],
            "amount": [float(step.amount) for step in receipt.steps],
            "exact": [str(step.amount) for step in receipt.steps],
            "noise": [step.noise for step in receipt.steps],
            "scale": [float(step.scale) for step in receipt.steps],
        }
    )
    names = {"step": "step", "share": "share of the budget (%)", "amount": receipt.currency, "exact": f"{receipt.currency} exactly"}
    bars = alt.Chart(add_texts(table, [*names, "noise", "scale"])).mark_bar(color=ACCENT, cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X(field="share", type="quantitative", title=f"share of the privacy budget {receipt.currency} (%)", axis=AXIS),
        y=alt.Y(field="step", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=tooltip(names | {"noise": "noise", "scale": "its parameter"}),
    )
    text = f"Share of the privacy budget per step, in percent: {describe_values(table, 'step', 'share')}."
    return finish(alt.layer(bars), "Where the privacy budget went", text, FRAME + ROW * len(table))


def totals_bars(table: pd.DataFrame, unit: str) -> alt.LayerChart:
    """Draw the trips out of, into and within one region, with their intervals.

    Args:
        table: one row each, with columns trips (the label), released, low and high; and true, CURATOR ONLY.
        unit: what is counted, in the plural.
    """
    names = {"trips": "trips", "released": f"released ({unit})", "low": "95 % from", "high": "95 % to"}
    names |= {"true": f"true ({unit})"} if "true" in table else {}
    y = alt.Y(field="trips", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    base = alt.Chart(add_texts(table, list(names))).encode(y=y, tooltip=tooltip(names))
    marked = ", true ones in amber" if "true" in table else ""
    x = partial(alt.X, type="quantitative", title=f"{unit} (95 % intervals in grey{marked})", axis=AXIS)
    layers = [base.mark_bar(color=ACCENT, cornerRadiusEnd=2).encode(x=x(field="released"))]
    layers.append(base.mark_rule(color=GREY, strokeWidth=3).encode(x=x(field="low"), x2="high"))
    if "true" in table:
        layers.append(base.mark_tick(color=_AMBER, thickness=3, size=18).encode(x=x(field="true")))
    text = f"Released {unit}: {describe_values(table, 'trips', 'released')}."
    return finish(alt.layer(*layers), "Trips of the region", text, FRAME + 2 * ROW * len(table))


def matrix_chart(release: TripRelease, level: int, unit: str = "trips") -> alt.LayerChart:
    """Draw a matrix of the released trips between the 40 regions of a level that have the most trips.

    A pair is a filled cell if its interval, which holds for all pairs at once, is above 0; else a hollow one. Pairs below zero have a
    colour of their own.

    Args:
        release: public.
        level: 1 for the coarsest.
        unit: what is counted, in the plural.
    """
    tree = release.tree
    table, origins, destinations = _list_matrix_cells(release, level)
    names = {"origin": "from", "destination": "to", "count": f"released ({unit})"}
    names |= {"low": "all at once, 95 % from", "high": "all at once, 95 % to"}
    x, y = _make_matrix_axis("destination", "to", destinations), _make_matrix_axis("origin", "from", origins)
    scale = alt.Scale(type="sqrt", range=_CELL_COLORS, domainMin=0)
    legend = alt.Legend(title=unit, orient="top", gradientLength=160, format=FORMAT, tickCount=4)
    color = alt.Color(field="count", type="quantitative", scale=scale, legend=legend)
    hollow: dict[str, Any] = {"filled": False, "strokeWidth": 1.5}
    looks: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "certain": ({}, {"color": color}),
        "could be 0": (hollow, {"color": color}),
        "below zero": (hollow | {"stroke": to_hex(_BELOW_ZERO)}, {}),
    }
    layers = []
    for kind, (mark, colors) in looks.items():
        cells = table[table["kind"] == kind]
        if kind == "certain" or len(cells):
            chart = alt.Chart(add_texts(cells, list(names))).mark_rect(**mark)
            layers.append(chart.encode(x=x, y=y, tooltip=tooltip(names), **colors))
    most, numbers = table.nlargest(1, "count"), table["kind"].value_counts()
    text = f"{len(origins)} by {len(destinations)} regions with the most {unit}; {len(table):,} of their pairs were released"
    text += "".join(f", {numbers[kind]:,} {kind}" for kind in ("could be 0", "below zero") if kind in numbers) + ". The largest: "
    text += f"{' to '.join(most.iloc[0][['origin', 'destination']])}, {format_cell(most.iloc[0]['count'])}." if len(most) else "none."
    return finish(alt.layer(*layers), f"From {tree.title(2 * level)}", text, FRAME + 80 + _CELL * max(len(origins), 4))


def _list_matrix_cells(release: TripRelease, level: int) -> tuple[pd.DataFrame, dict[int, str], dict[int, str]]:
    """List the released pairs of the largest regions.

    Returns:
        DataFrame with origin, destination (names), count, low, high (of the interval for all pairs at once) and kind ("certain",
        "could be 0" or "below zero"); and the names of these origins and of these destinations by their indices.
    """
    counts, tree = release.stages[2 * level], release.tree
    if tree.origins == tree.destinations:
        both = np.append(counts.origin, counts.destination)
        rows = columns = _choose_largest(both, np.append(counts.count, counts.count), tree.origins.size(level))
    else:
        rows = _choose_largest(counts.origin, counts.count, tree.origins.size(level))
        columns = _choose_largest(counts.destination, counts.count, tree.destinations.size(level))
    kept = (counts.count != 0) & np.isin(counts.origin, rows) & np.isin(counts.destination, columns)
    low, high = (end[kept] for end in release.stage_interval(2 * level, joint=True))
    origins, destinations = _name_regions(tree.origins.names_of(level), rows), _name_regions(tree.destinations.names_of(level), columns)
    table = pd.DataFrame({"origin": [origins[index] for index in counts.origin[kept].tolist()]})
    table["destination"] = [destinations[index] for index in counts.destination[kept].tolist()]
    table["count"], table["low"], table["high"] = counts.count[kept], low, high
    table["kind"] = np.where(counts.count[kept] < 0, "below zero", np.where((low > 0) | np.isnan(low), "certain", "could be 0"))
    return table, origins, destinations


def _choose_largest(region: NDArray[np.int32], count: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Choose the 40 regions with the most released trips.

    Args:
        region: (k,) index of the region of each pair.
        count: (k,) trips of each pair.
        size: the number of regions.

    Returns:
        Their indices, ascending.
    """
    total = np.bincount(region, np.maximum(count, 0), size)
    return np.sort(np.argsort(-total, kind="stable")[:LARGEST_MATRIX])


def _name_regions(names: NDArray[np.object_], regions: NDArray[np.int64]) -> dict[int, str]:
    """Name regions by index; equal names are numbered."""
    return dict(zip(regions.tolist(), number_repeated([str(name) for name in names[regions]]), strict=True))


def _make_matrix_axis(field: str, title: str, names: Mapping[int, str]) -> Any:
    """Make the axis of the origins (y) or of the destinations (x), with the names of the regions in order."""
    across = field == "destination"
    axis = alt.Axis(labelLimit=120, labelFontSize=9, labelOverlap=False, ticks=False, labelAngle=-60 if across else 0)
    kind = alt.X if across else alt.Y
    scale = alt.Scale(domain=list(names.values()))
    return kind(field=field, type="nominal", title=title, sort=None, scale=scale, axis=axis)
