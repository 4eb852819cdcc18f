"""Lesson: flat noise adds up in sums over many cells; the noise of a tree hardly does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from dpviz.lessons.charts import Look, band, curve_chart, vertical_line
from dpviz.lessons.errors import (
    ALIGNED,
    ANYWHERE,
    FLAT,
    PLACEMENTS,
    TREE,
    flat_and_tree,
    join_errors,
    measured_errors,
    running_errors,
    stated_errors,
)
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.mechanisms.base import setting

SIDES = {"16 × 16": 4, "32 × 32": 5, "64 × 64": 6, "256 × 256": 8}


@dataclass(frozen=True, kw_only=True)
class Sums(Lesson):
    """The error of a growing sum, and errors by size of the square."""

    key: ClassVar[str] = "sums"
    title: ClassVar[str] = "Flat noise or a tree"
    text: ClassVar[str] = (
        "If every cell gets its own noise of standard deviation σ, the sum over n cells is typically off by √n · σ: what is little for a"
        " cell adds up over large areas. A tree spends part of the same ε on counts of large areas, so single cells get noisier, and the"
        " error of sums grows far more slowly with their size."
    )
    task: ClassVar[str] = (
        "press *Run again* a few times and watch where the walk of flat noise ends; then ask for squares that are nodes of the tree: from"
        " which size does the tree win now?"
    )
    question: ClassVar[str] = (
        "A town of 65,536 small squares (cells) is released twice with the same ε: once with noise on every cell, and once as a tree,"
        " which also counts quarters, sixteenths and so on, and so has less of ε for each. Which of the two has the smaller error?"
    )
    choices: ClassVar[tuple[str, ...]] = (
        "the tree, for areas of every size",
        "flat noise for small areas, the tree for large ones",
        "flat noise, for areas of every size",
    )
    right: ClassVar[int] = 1
    answer: ClassVar[str] = (
        "One cell is off by about ± 2.8 people under flat noise and by ± 10.8 in the tree; the whole town by ± 717 and by ± 59. For"
        " squares anywhere the tree wins from 4,096 cells on. It turns earlier for squares that the tree itself counts (its nodes): there"
        " it wins from 64 cells on."
    )
    in_class: ClassVar[str] = (
        "Take a vote before the figure moves, and ask the two sides for their reason: both are right, at one end each. The wrong belief"
        " is that the cleverer method must be better everywhere. Let them press *Run again*: the end of the walk of flat noise jumps by"
        " hundreds of people, that of the tree hardly moves. Then ask which questions a bus company has, and which a pizza shop has."
    )

    epsilon: float = epsilon_setting(0.5)
    town: str = setting("256 × 256", "Cells", choices=tuple(SIDES), help="How finely the town is cut; the tree goes down to single cells.")
    squares: str = setting(ANYWHERE, "Squares", choices=PLACEMENTS, help="Anywhere in the town, or blocks that the tree itself counts.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        order = SIDES[self.town]
        releases = flat_and_tree(order, self.epsilon, self.draw)
        errors = running_errors(releases, order, self.epsilon)
        theory = {name: stated_errors(release, order, self.squares) for name, release in releases.items()}
        measured = {name: measured_errors([release], order, self.squares) for name, release in releases.items()}
        walk = _sum_chart(errors)
        placement = "placed anywhere" if self.squares != ALIGNED else "that are nodes of the tree"
        return LessonFigure(
            rows=((walk, _size_chart(theory, measured)),),
            asked=((walk,),),
            figures=_figures(theory),
            note=f"Lines: typical error (root mean square) by theory for squares {placement}. Dots: this run. Left: the grey band holds 95"
            " % of the sums of flat noise. The tree is a quadtree with a geometric split and least squares.",
        )


def _sum_chart(errors: pd.DataFrame) -> object:
    look = Look(
        "Error of a growing sum",
        "cells added up, along a walk through the town",
        "error of the sum (people)",
        order=(FLAT, TREE),
        description="The grey band holds 95 % of the sums of flat noise.",
    )
    rows = errors.rename(columns={"cells": "x", "error": "y"})
    return curve_chart(rows, look, under=(band(rows[rows["series"] == FLAT]),))


def _size_chart(theory: dict[str, pd.DataFrame], measured: dict[str, pd.DataFrame]) -> object:
    look = Look(
        "Error by size of the square",
        "cells in the square",
        "typical error (people)",
        order=(FLAT, TREE),
        log_x=True,
        log_y=True,
        description="Lines are theory, dots this run.",
    )
    flat_wins, tree_wins = split_sizes(theory)
    under: tuple[Any, ...] = ()
    if flat_wins and tree_wins:
        middle = math.sqrt(flat_wins[-1] * tree_wins[0])
        under = vertical_line(middle, "← flat wins", left=True), vertical_line(middle, "tree wins →")
    return curve_chart(join_errors(theory), look, dots=join_errors(measured), under=under)


def split_sizes(theory: dict[str, pd.DataFrame]) -> tuple[list[int], list[int]]:
    """Return the sizes, in cells, of the squares on which flat noise has the smaller typical error, and of those on which the tree has."""
    flat, tree = theory[FLAT].set_index("cells")["error"], theory[TREE].set_index("cells")["error"]
    return [cells for cells in flat.index if flat[cells] <= tree[cells]], [cells for cells in flat.index if flat[cells] > tree[cells]]


def _figures(theory: dict[str, pd.DataFrame]) -> tuple[Figure, ...]:
    flat, tree = theory[FLAT].set_index("cells")["error"], theory[TREE].set_index("cells")["error"]
    tree_wins = split_sizes(theory)[1]
    first = f"{tree_wins[0]:,} cells" if tree_wins else "nowhere"
    return (
        Figure("One cell: flat, tree", f"± {flat.iloc[0]:.3g}, ± {tree.iloc[0]:.3g}", "Typical error by theory, in people."),
        Figure("Whole town: flat, tree", f"± {flat.iloc[-1]:.3g}, ± {tree.iloc[-1]:.3g}", "The same for all cells."),
        Figure("The tree wins from", first, "The smallest of these squares on which the tree's typical error is less."),
    )
