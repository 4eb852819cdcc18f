"""Figures 2 to 7 of the paper on private spatial decompositions, with their claims; `psd` measures them, and `psd_charts` draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from dpviz.papers import psd
from dpviz.papers.claims import Claim, ratios
from dpviz.papers.figures import MEDIUM, PAPER, SMALL, Figure, OneSeed, Paper, Size, average
from dpviz.samples.points import PAPER_SIZE

_SHAPED = {"epsilon": "ε = {:g}", "shape": "queries of {}"}
_CROSSINGS = (
    "The paper's road crossings of Washington and New Mexico are replaced by made-up ones in the same area, along roads and in towns."
    " Each seed draws new queries and new noise; the crossings stay the same."
)
_PAPER_RUN = "The paper's number of crossings, 1.63 million, its heights and its 600 queries per shape."


def _with_shape(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the shape of the queries as a text."""
    return rows.assign(shape=[f"{width:g} × {height:g}" for width, height in zip(rows["width"], rows["height"], strict=True)])


def _error_ratios(rows: pd.DataFrame, method: str, others: Sequence[str], **wanted: Any) -> dict[str, float]:
    """Divide a method's errors by those of others, for each epsilon and shape; of the rows with the wanted values alone."""
    for column, values in wanted.items():
        rows = rows[rows[column].isin(values)]
    return ratios(_with_shape(rows), method, others, by=_SHAPED, value="error")


def _charts(name: str, column: str | Sequence[str], value: str = "error") -> Callable[[pd.DataFrame], list[Any]]:
    """Return a function that draws a chart of `psd_charts` for each value that a column has, from averages over the seeds."""

    def draw(table: pd.DataFrame) -> list[Any]:
        from dpviz.papers import psd_charts  # noqa: PLC0415  (Altair is an extra)

        rows = average(table, value)
        panels = rows[column].drop_duplicates() if isinstance(column, str) else rows[list(column)].drop_duplicates().itertuples(index=False)
        return [getattr(psd_charts, name)(rows, panel if isinstance(column, str) else tuple(panel)) for panel in panels]

    return draw


def _prepare_2() -> OneSeed:
    return lambda _: psd.figure_2()


def _draw_2(table: pd.DataFrame) -> list[Any]:
    from dpviz.papers import psd_charts  # noqa: PLC0415

    return [psd_charts.figure_2(table)]


_FIGURE_2 = Figure(
    key="2",
    title="Worst-case error of a range query, uniform and geometric budget",
    differs="Nothing: both curves are the paper's formulas, for a query that touches as many nodes as it can.",
    sizes={SMALL: Size(about="The paper's heights, 5 to 10.", seeds=1, seconds=0.1)},
    prepare=_prepare_2,
    draw=_draw_2,
    exact=True,
    claims=(
        Claim(
            text="A geometric split of the budget has a smaller worst-case error than a uniform split, at every height.",
            cases=lambda rows: ratios(rows, "geometric", ["uniform"], by={"height": "height {}"}, value="error", series="split"),
            reading="the bound on the variance with a geometric split is {value} times that with {case}",
        ),
    ),
)


def _prepare_queries(measure: Callable[..., pd.DataFrame], size: int, **settings: Any) -> OneSeed:
    points = psd.paper_points(size)
    return lambda seed: measure(points, repeats=1, seed=seed, **settings)


_FIGURE_3 = Figure(
    key="3",
    title="Accuracy of quadtrees with a geometric budget and least squares",
    differs=_CROSSINGS,
    sizes={
        SMALL: Size(
            about="100,000 crossings, height 8 in place of 10, and 200 queries per shape.",
            settings={"size": 100_000, "height": 8, "epsilons": (0.1, 1.0), "queries": 200},
        ),
        MEDIUM: Size(about="300,000 crossings, the paper's height 10, 600 queries.", settings={"size": 300_000}, seeds=5),
        PAPER: Size(about=_PAPER_RUN, settings={"size": PAPER_SIZE}, seeds=10),
    },
    prepare=partial(_prepare_queries, psd.figure_3),
    draw=_charts("figure_3", "epsilon"),
    claims=(
        Claim(
            text="A geometric budget and least squares each make a quadtree more accurate than the baseline.",
            cases=lambda rows: {
                f"{method}, {case.removeprefix('quad-baseline, ')}": ratio
                for method in ("quad-geo", "quad-post")
                for case, ratio in _error_ratios(rows, method, ["quad-baseline"]).items()
            },
            reading="the error is {value} times the baseline's for {case}",
        ),
        Claim(
            text="Both together (quad-opt) are more accurate than either alone.",
            cases=lambda rows: _error_ratios(rows, "quad-opt", ["quad-geo", "quad-post"]),
            reading="quad-opt's error is {value} times that of {case}",
        ),
        Claim(
            text="Together they reduce the error by up to an order of magnitude.",
            cases=lambda rows: _error_ratios(rows, "quad-baseline", ["quad-opt"]),
            reading="the baseline's error is {value} times that of {case}",
            below=False,
            line=10.0,
            every=False,
        ),
    ),
)

PSD = Paper(
    key="psd",
    title="Differentially private spatial decompositions",
    source="Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012",
    figures={figure.key: figure for figure in (_FIGURE_2, _FIGURE_3)},
)
