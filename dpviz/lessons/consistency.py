"""Lesson: least squares on a tree small enough to see every number, a street of eight areas halved three times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.lessons.charts import Look, step_chart
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.mechanisms.base import setting
from dpviz.privacy.allocation import level_weights
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace, laplace_variance
from dpviz.space.grids import tree_of
from dpviz.space.tree import Tree
from dpviz.view.charts import GREY, add_texts, finish, tooltip

STREET = (31, 12, 4, 0, 22, 47, 9, 3)
HEIGHT = 3
LEVELS = ("street", "halves", "quarters", "areas")
BEFORE, ADDED, AFTER = "as measured", "areas added up", "after least squares"
REPEATS = 200
_SIDE = 8
LARGEST_GAP = 1e-6
_FITS, _OFF, _INK = "#d6e6ec", "#f7d3b5", "#1d282e"


@dataclass(frozen=True, kw_only=True)
class Consistency(Lesson):
    """A street's counts before and after least squares, and the errors of both by level."""

    key: ClassVar[str] = "consistency"
    title: ClassVar[str] = "Counts that agree"
    text: ClassVar[str] = (
        "A whole and its parts are measured with separate noise and so contradict each other; weighted least squares finds the counts that"
        " agree and are nearest to all measurements, the precise ones weighing more. It uses released numbers only and so costs no"
        " privacy, and it makes every level more accurate."
    )
    task: ClassVar[str] = (
        "press *Run again*, add up the eight areas of the left street, and find a measurement that was far off: what pulled it back?"
    )
    question: ClassVar[str] = (
        "A street was counted as a whole, in halves, in quarters and as eight areas, each count with noise of the same size. Now you"
        " need the number of people in the whole street. Which is usually nearest to the truth?"
    )
    choices: ClassVar[tuple[str, ...]] = ("the street's own count", "all fifteen counts, weighed together", "the eight areas added up")
    right: ClassVar[int] = 1
    answer: ClassVar[str] = (
        "The street's own count is off by about ± 11.3 people, the eight areas added up by ± 32, and least squares over all fifteen"
        " counts by ± 8.26. It looks at released numbers only, so that it costs no privacy at all. It holds for every ε and for both"
        " splits, and even a single area gains, from ± 11.3 to ± 8.83."
    )
    in_class: ClassVar[str] = (
        "Let them add up the eight areas of the left street and compare with its total: the numbers contradict each other, and that is"
        " information. Two wrong beliefs are to be expected: that noise cannot be lowered without the data, and that adding up small"
        " counts is harmless. Ask what happens to the 32 with 80 areas. The law behind it: what is computed from a private release is as"
        " private as the release."
    )

    epsilon: float = epsilon_setting(0.5)
    split: str = setting("uniform", "Budget over levels", choices=("uniform", "geometric"), help="How ε is shared between the four levels.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        table = street_counts(self.split, self.epsilon, self.draw)
        theory, measured = errors_by_level(self.split, self.epsilon, self.draw)
        names = {"level": "x", "error": "y"}
        look = Look(
            "Error by level",
            "level",
            "typical error (people)",
            order=(BEFORE, ADDED, AFTER),
            height=260,
            description=f"Lines are theory, rings {REPEATS} runs.",
        )
        streets = tuple(street_chart(table[table["series"] == name], LEVELS, name.capitalize()) for name in (BEFORE, AFTER))
        own, added, after = street_errors(theory)
        return LessonFigure(
            asked=(streets[:1],),
            rows=(streets, (step_chart(theory.rename(columns=names), look, dots=measured.rename(columns=names)),)),
            figures=(
                Figure(
                    "Contradictions, of 7",
                    f"{_count_contradictions(table, BEFORE)} → {_count_contradictions(table, AFTER)}",
                    "Parts whose count is not the sum of their own two parts': before, and after least squares.",
                ),
                Figure("Street: own count", f"± {own:.3g}", "Typical error of its own measurement, in people."),
                Figure("Areas added up", f"± {added:.3g}", "The same for the sum of the eight measured areas."),
                Figure("Least squares", f"± {after:.3g}", "The same for all fifteen counts together, by theory."),
            ),
            note=f"In truth {table['true'].iloc[0]:,.0f} people live in the street. Orange: a count that its own parts contradict; in"
            " small print what they add up to. A street of eight areas is halved three times and counted on every level. Lines: theory."
            f" Rings: {REPEATS} seeded runs. No other unbiased linear combination of the same measurements has a smaller variance, for any"
            " count or sum.",
        )


def street_errors(theory: pd.DataFrame) -> tuple[float, float, float]:
    """Return the typical error of the whole street: as measured, as the sum of the measured areas, and after least squares."""
    street = theory[theory["level"] == LEVELS[0]].set_index("series")["error"]
    return float(street[BEFORE]), float(street[ADDED]), float(street[AFTER])


def _count_contradictions(table: pd.DataFrame, name: str) -> int:
    """Count the parts whose count differs from the sum of their own parts."""
    return int((table.loc[table["series"] == name, "gap"].abs() > LARGEST_GAP).sum())


def street_chart(table: pd.DataFrame, levels: Sequence[str], title: str) -> alt.LayerChart:
    """Draw the nested parts of a street, one row per level, with their counts and the sums of their own parts' counts.

    Args:
        table: columns level, west, east, count, gap, true.
        levels: names of the levels, from the whole to the smallest parts.
        title: title of the chart.
    """
    rows = _with_positions(table, levels)
    names = {"level": "level", "count": "count", "true": "true", "gap": "own count minus the sum of its parts"}
    base = alt.Chart(add_texts(rows, list(names))).encode(tooltip=tooltip(names))
    up = alt.Scale(domain=[0, len(levels)], reverse=True, nice=False)
    boxes = base.mark_rect(stroke=GREY, strokeWidth=1, cornerRadius=2).encode(
        x=alt.X(field="west", type="quantitative", axis=None, scale=alt.Scale(nice=False)),
        x2=alt.X2(field="east"),
        y=alt.Y(field="y", type="quantitative", axis=None, scale=up),
        y2=alt.Y2(field="y2"),
        color=alt.Color(field="off", type="nominal", scale=alt.Scale(domain=[False, True], range=[_FITS, _OFF]), legend=None),
    )
    middle = alt.X(field="middle", type="quantitative")
    texts = [
        base.mark_text(fontSize=size, fontWeight=700 if size > 12 else 400, color=_INK, aria=False).encode(
            x=middle, y=alt.Y(field=f"{text} y", type="quantitative", scale=up), text=alt.Text(field=text, type="nominal")
        )
        for text, size in (("label", 13), ("parts", 10))
    ]
    description = "; ".join(f"{level}: {', '.join(rows.loc[rows['level'] == level, 'label'])}" for level in levels)
    summary = f"{description}. {int(rows['off'].sum())} counts differ from the sum of their parts."
    return finish(alt.layer(boxes, *texts), title, summary, 260)


def _with_positions(table: pd.DataFrame, levels: Sequence[str]) -> pd.DataFrame:
    """Return the parts with the positions and texts of their boxes."""
    rows = table.assign(label=[_format_count(count) for count in table["count"]], off=table["gap"].abs() > LARGEST_GAP)
    inner = rows["level"] != levels[-1]
    rows["parts"] = [
        f"parts {_format_count(total)}" if has_parts else "" for total, has_parts in zip(rows["count"] - rows["gap"], inner, strict=True)
    ]
    rows["y"] = [levels.index(level) for level in rows["level"]]
    rows = rows.assign(y2=rows["y"] + 0.92, middle=(rows["west"] + rows["east"]) / 2)
    return rows.assign(**{"label y": rows["y"] + 0.36, "parts y": rows["y"] + 0.72})


def _format_count(count: float) -> str:
    """Round a count, and write it with a minus sign (U+2212) instead of a hyphen.

    >>> _format_count(-3.4), _format_count(1200.0), _format_count(-0.2)
    ('−3', '1,200', '0')
    """
    return f"{round(count):,}".replace("-", "−")


@lru_cache(maxsize=1)
def street_tree() -> Tree:
    """Return the tree of the street's halves of halves, on a lattice as wide as the street is long."""
    levels = []
    for depth in range(HEIGHT + 1):
        edge = np.linspace(0, _SIDE, 2**depth + 1).astype(np.int64)
        zero = np.zeros(2**depth, np.int64)
        levels.append(np.stack([edge[:-1], zero, edge[1:], zero + _SIDE], axis=1))
    fans = [np.full(2**depth, 2 if depth < HEIGHT else 0, np.int64) for depth in range(HEIGHT + 1)]
    return tree_of(levels, fans)


def true_counts() -> NDArray[np.int64]:
    """Return (15,) numbers of people in every part, the street first."""
    areas = np.zeros(len(street_tree()), np.int64)
    areas[-len(STREET) :] = STREET
    return np.asarray(street_tree().sum_up(areas), np.int64)


def measure_street(split: str, epsilon: float, entropy: Entropy) -> tuple[Floats, Floats]:
    """Return (15,) noisy counts, each level measured with its share of epsilon, and (15,) their variances."""
    tree, true = street_tree(), true_counts()
    noisy, variance = np.empty(len(tree)), np.empty(len(tree))
    for depth, share in enumerate(PureBudget(epsilon).split(level_weights(split, HEIGHT, fan_out=2))):
        here = tree.at_depth(depth)
        noisy[here] = discrete_laplace(true[here], PureBudget(share), entropy)
        variance[here] = laplace_variance(1 / share)
    return noisy, variance


def street_counts(split: str, epsilon: float, draw: int) -> pd.DataFrame:
    """Return every part of the street before and after least squares.

    Returns:
        Columns level, west, east, series (`BEFORE` or `AFTER`), count, true, and gap: the part's count minus the sum of the counts of its
        two parts (0 for areas).
    """
    tree = street_tree()
    noisy, variance = measure_street(split, epsilon, Entropy.seeded(draw))
    after, _ = least_squares(tree, noisy, variance)
    shared = {"level": np.array(LEVELS)[tree.depth], "west": tree.west, "east": tree.east, "true": true_counts()}
    tables = [
        pd.DataFrame({**shared, "series": name, "count": count, "gap": gaps(tree, count)})
        for name, count in ((BEFORE, noisy), (AFTER, after))
    ]
    return pd.concat(tables, ignore_index=True)


def gaps(tree: Tree, count: Floats) -> Floats:
    """Return (n,) counts of nodes minus the sums of their children's counts; 0 for leaves."""
    gap = np.zeros(len(tree))
    for depth in range(tree.height):
        gap[tree.at_depth(depth)] = count[tree.at_depth(depth)] - tree.sum_children(depth, count[tree.at_depth(depth + 1)])
    return gap


def add_areas(tree: Tree, values: Floats) -> Floats:
    """Return (n,) values of nodes put together from their leaves' values alone."""
    return np.asarray(tree.sum_up(np.where(tree.children == 0, values, 0.0)))


def errors_by_level(split: str, epsilon: float, draw: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the typical error of a part by level, in theory and over `REPEATS` runs: two tables with columns level, series, error."""
    tree, true = street_tree(), true_counts()
    runs = [measure_street(split, epsilon, stream) for stream in Entropy.seeded(draw).spawn(REPEATS)]
    variance = runs[0][1]
    _, spread = least_squares(tree, *runs[0])
    theory = {BEFORE: variance, ADDED: add_areas(tree, variance), AFTER: spread.variances(tree)}
    squared = {
        BEFORE: np.mean([(noisy - true) ** 2 for noisy, _ in runs], axis=0),
        ADDED: np.mean([(add_areas(tree, noisy) - true) ** 2 for noisy, _ in runs], axis=0),
        AFTER: np.mean([(least_squares(tree, *run)[0] - true) ** 2 for run in runs], axis=0),
    }
    return _by_level(tree, theory), _by_level(tree, squared)


def _by_level(tree: Tree, squared: dict[str, Floats]) -> pd.DataFrame:
    cases = product(squared.items(), enumerate(LEVELS))
    rows = [(level, name, math.sqrt(values[tree.at_depth(depth)].mean())) for (name, values), (depth, level) in cases]
    return pd.DataFrame(rows, columns=["level", "series", "error"])
