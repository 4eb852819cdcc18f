"""A made-up town in blocks, tables of its people by several geographies, and maps of counts, for the lessons on attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.evaluation.attacks.differencing import count_by
from dpviz.lessons.charts import style_channel
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.view.charts import add_texts, finish, tooltip

SIDE = 6
BLOCKS = SIDE * SIDE
ROW, COLUMN = np.divmod(np.arange(BLOCKS), SIDE)
SHOWN, HIDDEN, FOUND = "published", "hidden", "found"
NOISY = "with noise"
FILLS = {SHOWN: "#d9e2e6", HIDDEN: "#7fb6e6", FOUND: "#f0a468"}
_INK = "#14191c"
_MEAN, _SHAPE = 16.0, 1.5


@lru_cache(maxsize=256)
def block_counts(seed: int) -> Integers:
    """Return (BLOCKS,) made-up people in each block, row by row from the south; about one block in six has fewer than 5."""
    rng = np.random.default_rng((3, seed))
    return rng.poisson(_MEAN * rng.gamma(_SHAPE, 1 / _SHAPE, BLOCKS)).astype(np.int64)


@lru_cache(maxsize=1)
def geographies() -> Mapping[str, Integers]:
    """Return the tables of the town by name: each a partition of the blocks, in the order in which lessons publish them."""
    half_row, half_column = ROW // 2, COLUMN // 2
    next_row, next_column = (ROW + 1) // 2, (COLUMN + 1) // 2
    labels = {
        "blocks": np.arange(BLOCKS),
        "districts": ROW,
        "school areas": COLUMN,
        "squares": half_row * SIDE + half_column,
        "squares, one row on": next_row * SIDE + half_column,
        "squares, one column on": half_row * SIDE + next_column,
        "squares, one of each on": next_row * SIDE + next_column,
        "pairs in a row": ROW * SIDE + half_column,
        "pairs in a row, one on": ROW * SIDE + next_column,
        "pairs in a column": half_row * SIDE + COLUMN,
        "pairs in a column, one on": next_row * SIDE + COLUMN,
        "diagonals": ROW + COLUMN,
        "other diagonals": ROW - COLUMN + SIDE,
        "two districts": half_row,
        "two school areas": half_column,
        "the town": 0 * ROW,
    }
    return {name: np.unique(label, return_inverse=True)[1] for name, label in labels.items()}


def chosen_tables(number: int) -> list[Integers]:
    """Return the first tables of the town, as `geographies` lists them."""
    return list(geographies().values())[:number]


def release_tables(counts: Integers, tables: Sequence[Integers], epsilon: float, entropy: Entropy) -> list[Integers]:
    """Release tables of (BLOCKS,) counts with discrete Laplace noise; a person is once in each, so each spends its part of epsilon."""
    budget = PureBudget(round(epsilon / len(tables), 9))
    return [discrete_laplace(count_by(table, counts), budget, entropy) for table in tables]


def count_map(
    blocks: Mapping[str, Any], fills: Mapping[str, str], title: str, description: str, *, totals: Sequence[Floats] = ()
) -> alt.LayerChart:
    """Draw the counts of the blocks as a map of numbers, with the totals of districts at the right and of school areas below.

    Args:
        blocks: columns `text` (BLOCKS,) and `kind` (BLOCKS,), one of `fills`.
        fills: colours by kind; texts are dark. The first two are of shown and of hidden totals.
        title: of the map.
        description: alternative text.
        totals: (SIDE,) totals of districts, from the south, and (SIDE,) of school areas, if they are published; NaN hides one.
    """
    table = pd.DataFrame({"x": COLUMN.astype(float), "y": ROW + 1.3, "text": list(blocks["text"]), "kind": list(blocks["kind"])})
    table["what"] = [f"block {row + 1}.{column + 1}" for row, column in zip(ROW, COLUMN, strict=True)]
    kinds = list(fills)
    sums = [_totals(total, noun, kinds) for total, noun in zip(totals, ("district", "school area"), strict=False)]
    table = pd.concat([table, *sums], ignore_index=True)
    table = table.assign(x2=table["x"] + 0.94, y2=table["y"] + 0.94, middle=table["x"] + 0.47, height=table["y"] + 0.47)
    names = {"what": "area", "text": "people", "kind": "count"}
    fill = style_channel(alt.Color, "kind", kinds, list(fills.values()), "square")
    fill["legend"]["values"] = [kind for kind in kinds if kind in set(table["kind"])]
    base = alt.Chart(add_texts(table, list(names)))
    place: dict[str, Any] = {"type": "quantitative", "axis": None, "scale": alt.Scale(nice=False, zero=False)}
    edges = {"x": alt.X(field="x", **place), "y": alt.Y(field="y", **place)}
    rects = base.mark_rect(strokeWidth=0).encode(**edges, x2=alt.X2(field="x2"), y2=alt.Y2(field="y2"), color=fill, tooltip=tooltip(names))
    texts = base.mark_text(color=_INK, fontSize=13, fontWeight="bold", aria=False).encode(
        x=alt.X(field="middle", type="quantitative"),
        y=alt.Y(field="height", type="quantitative"),
        text=alt.Text(field="text", type="nominal"),
    )
    return finish(alt.layer(rects, texts), title, description, 350)


def _totals(totals: Floats, noun: str, kinds: list[str]) -> pd.DataFrame:
    """Return the cells of totals, beside the rows for districts and below the columns for school areas."""
    step, beside = np.arange(SIDE, dtype=float), noun == "district"
    shown = pd.DataFrame({"x": SIDE + 0.3 if beside else step, "y": step + 1.3 if beside else 0.0})
    shown["what"] = [f"total of {noun} {number + 1}" for number in range(SIDE)]
    return shown.assign(text=[write_count(total) for total in totals], kind=[kinds[int(np.isnan(total))] for total in totals])


def write_count(count: float) -> str:
    """Write a count as it stands in a table; a question mark if it is hidden.

    >>> write_count(-3.0), write_count(-1e-12), write_count(np.nan)
    ('−3', '0', '?')
    """
    return "?" if np.isnan(count) else f"{round(count)}".replace("-", "−")
