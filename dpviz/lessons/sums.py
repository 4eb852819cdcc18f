"""Lesson: flat noise adds up in sums over many cells; the noise of a tree hardly does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from dpviz.lessons.charts import Look, band, curve_chart
from dpviz.lessons.errors import (
    ALIGNED,
    ANYWHERE,
    FLAT,
    PLACEMENTS,
    TREE,
    flat_and_tree,
    measured_errors,
    running_errors,
    stated_errors,
)
from dpviz.lessons.lesson import Figure, Lesson, Shown, draw_setting, epsilon_setting
from dpviz.mechanisms.base import setting

SIDES = {"16 × 16": 4, "32 × 32": 5, "64 × 64": 6}


@dataclass(frozen=True, kw_only=True)
class Sums(Lesson):
    """The error of a growing sum, and errors by size of the square."""

    key: ClassVar[str] = "sums"
    title: ClassVar[str] = "Flat noise against trees"
    text: ClassVar[str] = (
        "If every cell gets its own noise of standard deviation σ, the sum over n cells is typically off by √n · σ: what is little for a"
        " cell adds up over large areas. A tree spends part of the same ε on counts of large areas, so single cells get noisier, and the"
        " error of sums grows far more slowly with their size."
    )
    task: ClassVar[str] = (
        "press *Run again* a few times and watch where the walk of flat noise ends; then ask for squares that are nodes of the tree."
    )

    epsilon: float = epsilon_setting(0.5)
    town: str = setting("64 × 64", "Cells", choices=tuple(SIDES), help="How finely the town is cut; the tree goes down to single cells.")
    squares: str = setting(ANYWHERE, "Squares", choices=PLACEMENTS, help="Anywhere in the town, or blocks that the tree itself counts.")
    draw: int = draw_setting()

    def show(self) -> Shown:
        """Compute the figures for these settings."""
        order = SIDES[self.town]
        releases = flat_and_tree(order, self.epsilon, self.draw)
        errors = running_errors(releases, order, self.epsilon)
        theory = {name: stated_errors(release, order, self.squares) for name, release in releases.items()}
        measured = {name: measured_errors([release], order, self.squares) for name, release in releases.items()}
        return Shown(rows=((_sum_chart(errors), _size_chart(theory, measured)),), figures=_figures(theory), note=_note(self))


def _sum_chart(errors: pd.DataFrame) -> object:
    look = Look(
        title="Error of a growing sum",
        x="cells added up, along a walk through the town",
        y="error of the sum (people)",
        order=(FLAT, TREE),
        description="The grey band holds 95 % of the sums of flat noise.",
    )
    rows = errors.rename(columns={"cells": "x", "error": "y"})
    return curve_chart(rows, look, under=(band(rows[rows["series"] == FLAT]),))


def _size_chart(theory: dict[str, pd.DataFrame], measured: dict[str, pd.DataFrame]) -> object:
    look = Look(
        title="Error by size of the square",
        x="cells in the square",
        y="typical error (people)",
        order=(FLAT, TREE),
        log_x=True,
        log_y=True,
        description="Lines are theory, dots this run.",
    )
    return curve_chart(_join_series(theory), look, dots=_join_series(measured))


def _join_series(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    parts = [table.rename(columns={"cells": "x", "error": "y"}).assign(series=name) for name, table in tables.items()]
    return pd.concat(parts, ignore_index=True)


def _figures(theory: dict[str, pd.DataFrame]) -> tuple[Figure, ...]:
    flat, tree = theory[FLAT].set_index("cells")["error"], theory[TREE].set_index("cells")["error"]
    worse = [cells for cells in flat.index if flat[cells] > tree[cells]]
    first = f"{worse[0]:,} cells" if worse else "nowhere"
    return (
        Figure(
            label="One cell: flat, tree", value=f"± {flat.iloc[0]:.3g}, ± {tree.iloc[0]:.3g}", help="Typical error by theory, in people."
        ),
        Figure(label="Whole town: flat, tree", value=f"± {flat.iloc[-1]:.3g}, ± {tree.iloc[-1]:.3g}", help="The same for all cells."),
        Figure(label="The tree wins from", value=first, help="The smallest of these squares on which the tree's typical error is less."),
    )


def _note(lesson: Sums) -> str:
    placement = "placed anywhere" if lesson.squares != ALIGNED else "that are nodes of the tree"
    return (
        f"Lines: typical error (root mean square) by theory for squares {placement}. Dots: this run. Left: the grey band holds 95 % of the"
        " sums of flat noise. The tree is a quadtree with a geometric split and least squares."
    )
