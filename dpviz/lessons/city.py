"""The made-up residents of Los Angeles that several lessons release, and the squares of a zoom level on the real map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.lessons.charts import style_channel
from dpviz.lessons.real_map import LOS_ANGELES
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.samples.points import load_point_sample

DEEPEST = 8
FINEST_SHOWN = 6
"""The finest zoom level whose squares are drawn: 4,096 of them."""


@lru_cache(maxsize=1)
def residents() -> PointCounts:
    """Return the 200,000 made-up residents."""
    return load_point_sample("la_residents")


@lru_cache(maxsize=DEEPEST + 1)
def true_squares(zoom: int) -> Integers:
    """Return (2**zoom, 2**zoom) residents of the squares of a zoom level, southern row first."""
    return residents().blocks(zoom)


@lru_cache(maxsize=16)
def city_release(epsilon: float, draw: int) -> PointRelease:
    """Release the residents once, as a quadtree of `DEEPEST` levels with a geometric split and least squares."""
    return Quadtree(height=DEEPEST).release(residents(), PureBudget(epsilon), Entropy.seeded(draw))


@lru_cache(maxsize=16)
def typical_noise(epsilon: float) -> tuple[float, ...]:
    """Return the standard deviation of the noise of a square at each zoom level, in people; it is the same for every seed."""
    release = city_release(epsilon, 1)
    return tuple(float(np.sqrt((release.node_stddev[release.tree.at_depth(zoom)] ** 2).mean())) for zoom in range(DEEPEST + 1))


def side_km(zoom: int) -> float:
    """Return the side of a square in kilometres.

    >>> [round(side_km(zoom), 1) for zoom in (1, 3, 6)]
    [35.0, 8.7, 1.1]
    """
    return LOS_ANGELES.size[0] / (1 << zoom)


def merge_runs(kind: NDArray[np.integer], alone: NDArray[np.bool_] | None = None) -> pd.DataFrame:
    """List the squares of a grid, with neighbours of the same kind in a row merged, so that a chart has few rectangles.

    Args:
        kind: (rows, columns) a number per square; below 0 for squares that are left out.
        alone: (rows, columns) squares that stay by themselves; None for none.

    Returns:
        Columns row, column (of the first square), wide (in squares) and kind.

    >>> merge_runs(np.array([[0, 0, 1], [-1, 1, 1]])).values.tolist()
    [[0, 0, 2, 0], [0, 2, 1, 1], [1, 1, 2, 1]]
    """
    begins = np.ones(kind.shape, np.bool_)
    begins[:, 1:] = kind[:, 1:] != kind[:, :-1]
    if alone is not None:
        begins |= alone
        begins[:, 1:] |= alone[:, :-1]
    row, column = np.nonzero(begins)
    wide = np.diff(np.append(row * kind.shape[1] + column, kind.size))
    rows = pd.DataFrame({"row": row, "column": column, "wide": wide, "kind": kind[row, column]})
    return rows[rows["kind"] >= 0].reset_index(drop=True)


def square_layer(rows: pd.DataFrame, zoom: int, looks: tuple[Sequence[str], Sequence[str]], tooltips: Sequence[Any]) -> Any:
    """Draw squares of a zoom level in the colour of their kind.

    Args:
        rows: of `merge_runs`, with the columns what (the name of the kind), strength (opacity; squares of opacity 1 are drawn first) and
            those of the tooltips.
        zoom: zoom level.
        looks: names of the kinds, and a colour for each.
        tooltips: Altair tooltips.
    """
    (width, height), side = LOS_ANGELES.size, 1 << zoom
    pixel = f"(2 * {LOS_ANGELES.reaches()[0]} / {LOS_ANGELES.pixels()[0]})"
    overlap = f"(datum.strength < 1 ? 0 : {pixel})"  # hides the seams between squares that are not translucent
    base = alt.Chart(rows.sort_values("strength", ascending=False, kind="stable")).transform_calculate(
        x=f"{width / side} * datum.column - {width / 2}",
        x2=f"{width / side} * (datum.column + datum.wide) - {width / 2} + {overlap}",
        y=f"{height / side} * datum.row - {height / 2}",
        y2=f"{height / side} * (datum.row + 1) - {height / 2} + {overlap}",
    )
    return base.mark_rect(strokeWidth=0).encode(
        **LOS_ANGELES.channels(edges=True),
        color=style_channel(alt.Color, "what", looks[0], looks[1], "square"),
        opacity=alt.Opacity(field="strength", type="quantitative", scale=None, legend=None),
        tooltip=list(tooltips),
    )
