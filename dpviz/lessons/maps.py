"""Maps of the Learn page as plain charts: filled cells, outlines of partitions, and marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from dpviz.view.charts import FORMAT, GREY, add_texts, finish, tooltip

FILL = "#2b8fb3"
_MARK = "#d55e00"
_FAINTEST = 0.04


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The filled cells of a map, and the scale of their colour.

    Attributes:
        table: columns x, y, x2, y2 (edges) and value.
        value: title of the value, with its unit.
        low: the value drawn faintest; the scale is logarithmic if it is above 0, else that of square roots.
        high: the value drawn strongest.
        description: alternative text.
        height: height of the whole chart, in pixels.
    """

    table: pd.DataFrame
    title: str
    value: str
    low: float
    high: float
    description: str
    height: int = 380


def cell_map(
    cells: Cells, *, marks: pd.DataFrame | None = None, outlines: pd.DataFrame | None = None, frames: pd.DataFrame | None = None
) -> alt.LayerChart:
    """Draw cells that are the stronger in colour the larger their value is, with outlines of partitions and marks.

    Args:
        cells: the filled cells.
        marks: columns x, y, what (a name) and shape (a Vega symbol or "dot" for small grey dots).
        outlines: columns x, y, x2, y2 of partitions.
        frames: columns x, y, x2, y2 of areas whose outlines stand out.
    """
    layers = [fill_cells(cells, _edges())]
    for boxes, color, width in ((outlines, GREY, 0.8), (frames, _MARK, 2.2)):
        if boxes is not None:
            layers.append(alt.Chart(boxes).mark_rect(filled=False, stroke=color, strokeWidth=width, aria=False).encode(**_edges()))
    if marks is not None:
        layers += mark_layers(marks, {key: channel for key, channel in _edges().items() if key in ("x", "y")})
    return finish(alt.layer(*layers), cells.title, cells.description, cells.height)


def fill_cells(cells: Cells, edges: dict[str, Any]) -> Any:
    """Return the layer of filled cells.

    Args:
        cells: the cells; title, description and height are those of the whole map.
        edges: channels of the cells' edges.
    """
    names = {"value": cells.value}
    scale = alt.Scale(
        type="log" if cells.low > 0 else "sqrt", domain=[cells.low, cells.high], range=[_FAINTEST, 1.0], clamp=True, nice=False
    )
    legend = alt.Legend(title=cells.value, orient="bottom", format=FORMAT, symbolType="square", symbolFillColor=FILL, symbolStrokeWidth=0)
    fill = alt.Chart(add_texts(cells.table, list(names))).mark_rect(color=FILL, strokeWidth=0)
    return fill.encode(**edges, opacity=alt.Opacity(field="value", type="quantitative", scale=scale, legend=legend), tooltip=tooltip(names))


def _edges() -> dict[str, Any]:
    """Return channels of the edges of cells, without axes: a map of a made-up town needs none."""
    return {
        "x": alt.X(field="x", type="quantitative", axis=None, scale=alt.Scale(nice=False, zero=False)),
        "x2": alt.X2(field="x2"),
        "y": alt.Y(field="y", type="quantitative", axis=None, scale=alt.Scale(nice=False, zero=False)),
        "y2": alt.Y2(field="y2"),
    }


def mark_layers(marks: pd.DataFrame, position: dict[str, Any]) -> list[Any]:
    """Return layers of small dots, and of named marks that stand out: `marks` as of `cell_map`, at channels x and y."""
    tooltip_of_mark = [alt.Tooltip(field="what", type="nominal", title="mark")]
    small, large = marks[marks["shape"] == "dot"], marks[marks["shape"] != "dot"]
    layers = []
    if len(small):
        layers.append(alt.Chart(small).mark_point(size=9, filled=True, color=GREY, opacity=0.9).encode(**position, tooltip=tooltip_of_mark))
    for shape, rows in large.groupby("shape", sort=False):
        mark = alt.Chart(rows).mark_point(shape=str(shape), size=260, filled=False, stroke=_MARK, strokeWidth=2.5, opacity=1)
        layers.append(mark.encode(**position, tooltip=tooltip_of_mark))
    return layers
