"""The figures of the HTF paper as charts: error by height, by budget, by size of queries, and of all methods on all data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dpviz.amounts import format_budget_symbols
from dpviz.errors import InputError
from dpviz.view.charts import FORMAT, FRAME, MARKS, ROW, add_texts, category_channel, describe_series, finish, prepare_log_axis, tooltip
from dpviz.view.looks import MORE_COLORS, MORE_DASHES, Look
from dpviz.view.study_charts import lines_with_spread

if TYPE_CHECKING:
    import pandas as pd

MEASURES = {
    "mre": "mean relative error, smoothing 20 (%)",
    "n3": "mean relative error, smoothing N/1000 (%)",
    "mae": "mean absolute error (records)",
}

_PLACES = {"HTF (ours)": 0, "HTF (5e-4)": 1, "HTF (1e-3)": 2, "Quadtree (geo)": 3, "Quadtree (uniform)": 4}
_PLACES |= {"KdTree (geo)": 5, "KdTree (uniform)": 6, "UG": 4, "AG": 5, "Singular": 6, "Uniform": 7, "Privelet": 8}
_LOOKS = {name: Look(color=MORE_COLORS[at], dash=tuple(MORE_DASHES[at]), mark=MARKS[at % len(MARKS)]) for name, at in _PLACES.items()}
"""A method looks the same in all figures."""


def figure_3(table: pd.DataFrame, epsilon: float, queries: str = "random", measure: str = "mre", *, height: int = 340) -> alt.LayerChart:
    """Draw the error of HTF and of kd-trees by height; large marks are runs in which HTF chose the height itself.

    Args:
        table: of `dpviz.papers.htf.figure_3`. CURATOR ONLY: errors are measured against the truth.
        epsilon: a budget of the table.
        queries: a workload of the table.
        measure: a column, one of `MEASURES`.
        height: of the whole chart, in pixels.
    """
    return _by_height(table, (epsilon, queries, measure), "HTF and kd-trees", height)


def figure_4(table: pd.DataFrame, stop: int, queries: str = "random", measure: str = "mre", *, height: int = 340) -> alt.LayerChart:
    """Draw the error of HTF with one stop count, and of grids, by budget.

    Args:
        table: of `dpviz.papers.htf.figure_4`. CURATOR ONLY.
        stop: a stop count of the table; methods without one are always shown.
        queries: a workload of the table.
        measure: a column, one of `MEASURES`.
        height: of the whole chart, in pixels.
    """
    rows = _with_stop(table[table["queries"] == queries], stop)
    names = _names(measure) | {"epsilon": "privacy budget ε"}
    title = f"HTF and grids by budget, stop count {stop}, {_query_words(queries)}"
    columns = ("epsilon", "method", measure, f"{measure}_spread")
    return lines_with_spread(rows.drop(columns="stop"), columns, names, title, height, looks=_LOOKS)


def figure_5(table: pd.DataFrame, epsilon: float, queries: str = "random", measure: str = "mre", *, height: int = 340) -> alt.LayerChart:
    """Draw the error of HTF and of quadtrees by height, as `figure_3` does; one level of a quadtree counts as two binary levels."""
    return _by_height(table, (epsilon, queries, measure), "HTF and quadtrees", height)


def figure_6(table: pd.DataFrame, panel: str = "", measure: str = "mre") -> alt.LayerChart:
    """Draw the error of all methods: a row per method, a mark per data set.

    Args:
        table: of `dpviz.papers.htf.figure_6`. CURATOR ONLY.
        panel: with which the names of the sets begin that are drawn, such as "σ = 20"; "" for all sets.
        measure: a column, one of `MEASURES`.

    Raises:
        InputError: the table has no such sets.
    """
    shown = table[table["data"].str.partition(",")[0].eq(panel)] if panel else table
    if not len(shown):
        raise InputError(f"The table has no such data; it has {', '.join(table['data'].unique())}.")
    drawn, ticks = prepare_log_axis(shown, [measure])
    names, order = _names(measure) | {"data": "data"}, shown["data"].unique().tolist()
    scale = alt.Scale(type="log", domainMin=ticks[0], nice=False)
    axis = alt.Axis(format=FORMAT, values=ticks)
    marks = (
        alt.Chart(add_texts(drawn, list(names)))
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X(field=f"{measure} drawn", type="quantitative", title=MEASURES[measure], scale=scale, axis=axis),
            y=alt.Y(field="method", type="ordinal", sort=None, title=None, axis=alt.Axis(labelLimit=220, grid=True)),
            color=category_channel(alt.Color, "data", order, MORE_COLORS),
            shape=category_channel(alt.Shape, "data", order, MARKS),
            tooltip=tooltip(names),
        )
    )
    title = f"All methods, {panel or 'all data'}, {_epsilon_text(shown['epsilon'].iloc[0])}"
    text = f"{MEASURES[measure]} by method. {describe_series(shown, 'method', 'data', measure)}."
    return finish(alt.layer(marks), title, text, FRAME + 50 + ROW * shown["method"].nunique())


def by_query_size(
    table: pd.DataFrame, epsilon: float, *, tree_height: int | None = None, stop: int | None = None, measure: str = "mre", height: int = 340
) -> alt.LayerChart:
    """Draw the error by the size of square queries, in percent of the domain's area: what panels d to f of Figures 3 to 5 compare.

    Args:
        table: of `figure_3`, `figure_4` or `figure_5` of `dpviz.papers.htf`. CURATOR ONLY.
        epsilon: a budget of the table.
        tree_height: a height of the table of Figure 3 or 5, in binary levels.
        stop: a stop count of the table of Figure 4.
        measure: a column, one of `MEASURES`.
        height: of the whole chart, in pixels.

    Raises:
        InputError: the table has no such rows.
    """
    rows = table[(table["epsilon"] == epsilon) & table["queries"].str.endswith("%")]
    if tree_height is not None:
        rows = rows[rows["height"].eq(tree_height) & ~rows["estimated"]].drop(columns="height")
    if stop is not None:
        rows = _with_stop(rows, stop).drop(columns="stop")
    if not len(rows):
        raise InputError("The table has no squares at this budget and height or stop count.")
    rows = rows.assign(share=rows["queries"].str.removesuffix(" %").astype(int))
    which = "" if tree_height is None else f", height {tree_height}"
    which += "" if stop is None else f", stop count {stop}"
    names = _names(measure) | {"share": "squares (% of the area)"}
    columns = ("share", "method", measure, f"{measure}_spread")
    return lines_with_spread(rows, columns, names, f"Error by size of queries, {_epsilon_text(epsilon)}{which}", height, looks=_LOOKS)


def _by_height(table: pd.DataFrame, panel: tuple[float, str, str], methods: str, height: int) -> alt.LayerChart:
    epsilon, queries, measure = panel
    rows = table[(table["epsilon"] == epsilon) & (table["queries"] == queries)]
    names = _names(measure) | {"height": "height in binary levels (large marks: found by HTF)"}
    title = f"{methods} by height, {_epsilon_text(epsilon)}, {_query_words(queries)}"
    columns, chosen = ("height", "method", measure, f"{measure}_spread"), rows["estimated"]
    return lines_with_spread(rows[~chosen], columns, names, title, height, extra=rows[chosen], looks=_LOOKS)


def _with_stop(rows: pd.DataFrame, stop: int) -> pd.DataFrame:
    """Select the rows of one stop count, and those of methods that have none."""
    return rows[rows["stop"].isna() | rows["stop"].eq(stop).fillna(value=False)]


def _names(measure: str) -> dict[str, str]:
    """Label the columns in tooltips, the drawn measure first."""
    others = {column: name for column, name in MEASURES.items() if column != measure}
    return {"method": "method", measure: MEASURES[measure], f"{measure}_spread": "spread over runs", **others}


def _query_words(queries: str) -> str:
    words = {"random": "queries of random shape and size", "mixed": "mixed queries"}
    return words.get(queries, f"squares of {queries} of the area")


def _epsilon_text(epsilon: float) -> str:
    return format_budget_symbols({"epsilon": epsilon})
