"""Lesson: an attacker knows everybody but one person, and sees only where a kd-tree was split; exact splits reveal that person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpviz.arrays import Floats, Integers
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import Cells, cell_map
from dpviz.lessons.town import TWO_CROWDS, count_residents, town_cells
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.references import ExactKdtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exact_medians
from dpviz.privacy.node_values import NodeValues
from dpviz.release.point_release import PointRelease
from dpviz.space.tree import Tree

ORDER, PEOPLE = 6, 40
SIDE = 1 << ORDER
_HALF = 0.5
_KNOWN_PEOPLE = {1: (0, 0), 2: (0, 1), 3: (8, 30), 4: (22, 34)}


@dataclass(frozen=True, kw_only=True)
class Leak(Lesson):
    """An attacker's belief after seeing the lines of an exact tree, and of a private one."""

    key: ClassVar[str] = "leak"
    title: ClassVar[str] = "Lines at medians"
    text: ClassVar[str] = (
        "Splits at exact medians are exact facts about the data: an attacker who knows everybody but one tries that person in every cell"
        " and keeps the cells that give the published lines, often a single one. One person changes the probability of each private split"
        " by a bounded factor only, so every cell stays possible, and the same attack learns little."
    )
    task: ClassVar[str] = (
        "attack several people; then set ε to 5 and see that even a generous budget does not bring the exact tree's leak back."
    )
    question: ClassVar[str] = (
        "A map shows only lines: where 40 people were divided into halves at their median, and the halves again, four times each way."
        " No count and no dot is published. Somebody knows where 39 of them live (dots). What do the lines tell about person 5 (ring)?"
    )
    choices: ClassVar[tuple[str, ...]] = ("nothing: lines are no data", "the very cell, one of 4,096", "the rough neighbourhood")
    right: ClassVar[int] = 1
    answer: ClassVar[str] = (
        "Of 4,096 cells only 1 gives just these lines, and the same attack finds the cell of 22 of the 40 people. Medians chosen with"
        " noise of ε = 1 leave the belief in the true cell at 0.023 %, where a blind guess has 0.024 %. It turns with the height: with"
        " two steps instead of four the lines give nobody's cell away."
    )
    in_class: ClassVar[str] = (
        "Hide the right map and ask what is secret about a line. The wrong belief is that only counts and names are data; whatever is"
        " computed from people is. Let them attack person after person, and then lower the height of the trees. Even ε = 5 does not"
        " bring the leak of the exact tree back."
    )

    person: int = setting(5, "Attacked person", low=1, high=PEOPLE, help="The attacker knows where all the others live.")
    epsilon: float = epsilon_setting(1.0, "What all splits of the private tree spend together.")
    height: int = setting(4, "Height of the trees", low=1, high=4, help="Each step halves every part twice.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        person = self.person - 1
        exact, private = exact_release(self.height), private_release(self.height, self.epsilon, self.draw)
        exact_belief, private_belief = attack(exact, person, None), attack(private, person, self.epsilon)
        maps = (
            _map(exact_belief, exact, person, "Exact medians (NOT PRIVATE)"),
            _map(private_belief, private, person, f"Private medians, ε = {self.epsilon:g}"),
        )
        exact_result, private_result = summarize_attack(exact_belief, person), summarize_attack(private_belief, person)
        one_cell, few = known_people(self.height)
        lines = _map(np.full_like(exact_belief, SIDE**-2), exact, person, "Lines at exact medians")
        return LessonFigure(
            asked=((lines,),),
            rows=(maps,),
            figures=(
                Figure("Cells left: exact", f"{exact_result['possible']:,.0f} of {SIDE**2:,}", "That fit the published lines."),
                Figure("True cell: exact", f"{100 * exact_result['true']:.3g} %", "What the attacker believes; a blind guess is 0.024 %."),
                Figure("True cell: private", f"{100 * private_result['true']:.3g} %", "The same after the private lines."),
                Figure("Given away: exact", f"{one_cell} of {PEOPLE}", f"People pinned down to one cell; {few} to at most four."),
            ),
            note="Ring: where the person lives. Dots: everybody else, known to the attacker. Only the published lines are used, no count."
            " Under"
            f" the private tree no cell can become more than $e^{{2ε}}$ = {math.exp(2 * self.epsilon):.3g} times as likely against another:"
            " moving is leaving and coming.",
        )


def _map(belief: NDArray[np.float64], release: PointRelease, person: int, title: str) -> object:
    row, column = np.nonzero(100 * belief > 0)
    cells = pd.DataFrame({"x": column, "y": row, "x2": column + 1, "y2": row + 1, "value": 100 * belief[row, column]})
    columns, rows = people()
    marks = pd.DataFrame({"x": columns + 0.5, "y": rows + 0.5, "what": "known person", "shape": "dot"})
    marks.loc[person, ["what", "shape"]] = "the attacked person", "circle"
    boxes = pd.DataFrame(release.tree.rectangles(release.tree.leaves), columns=["x", "y", "x2", "y2"])
    description = f"{len(cells):,} cells are possible; the true one is believed with {100 * belief[rows[person], columns[person]]:.3g} %."
    shown = Cells(table=cells, title=title, value="belief (%)", low=0.01, high=100.0, description=description)
    return cell_map(shown, marks=marks, outlines=boxes)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One published line: the node `rectangle` was halved at `line`, between columns if `across`, else between rows."""

    rectangle: tuple[int, int, int, int]
    across: bool
    line: int
    level: int


@lru_cache(maxsize=1)
def people() -> tuple[Integers, Integers]:
    """Return (PEOPLE,) columns and (PEOPLE,) rows of the town's residents."""
    return town_cells(ORDER, PEOPLE, TWO_CROWDS)


@lru_cache(maxsize=8)
def exact_release(height: int) -> PointRelease:
    """Release the tree at exact medians; its counts are not used. NOT PRIVATE."""
    return ExactKdtree(height=height).release(count_residents(*people(), ORDER), PureBudget(1), Entropy.seeded(0))


def private_release(height: int, epsilon: float, draw: int) -> PointRelease:
    """Release the private tree whose splits spend `epsilon`. Its counts, which are not used, spend as much again."""
    mechanism = Kdtree(height=height, median_share=_HALF)
    return mechanism.release(count_residents(*people(), ORDER), PureBudget(2 * epsilon), Entropy.seeded(draw))


def published_cuts(tree: Tree) -> Iterator[Cut]:
    """Yield the lines of a tree of fan-out 4, whose nodes are halved twice. Nodes with fewer parts are left out."""
    for node in np.flatnonzero(tree.children == 4):
        rectangle = tuple(tree.rectangles(np.array([node]))[0].tolist())
        first = int(tree.first_child[node])
        parts = [tuple(part) for part in tree.rectangles(np.arange(first, first + 4)).tolist()]
        halves, level = [_bounding_rectangle(parts[:2]), _bounding_rectangle(parts[2:])], 2 * int(tree.depth[node])
        yield _cut(rectangle, halves, level)
        yield from (_cut(half, parts[2 * index : 2 * index + 2], level + 1) for index, half in enumerate(halves))


def _bounding_rectangle(parts: list[tuple[int, ...]]) -> tuple[int, int, int, int]:
    (west, south, _, _), (_, _, east, north) = parts
    return west, south, east, north


def _cut(rectangle: tuple[int, ...], halves: Sequence[tuple[int, ...]], level: int) -> Cut:
    west, south, east, north = rectangle
    across = halves[0][2] < east
    return Cut(rectangle=(west, south, east, north), across=across, line=halves[0][2 if across else 3], level=level)


def attack(release: PointRelease, person: int, epsilon: float | None) -> Floats:
    """Compute the attacker's belief in each cell as the cell of one person.

    Beforehand, every cell is as likely as any other. For each cell that the person may be in, the attacker knows the probability of each
    published line; the belief in a cell is proportional to the product over all lines. Only the lines are used.

    Args:
        release: release of all people; only its tree is used.
        person: index of the person whom the attacker does not know; all others are known.
        epsilon: epsilon of all splits together; None for exact medians.

    Returns:
        (SIDE, SIDE) probabilities [row, column] that add up to 1.
    """
    column, row = (np.delete(before, person) for before in people())
    log = np.zeros((SIDE, SIDE))
    rate = None if epsilon is None else epsilon / (2 * release.height)
    for cut in published_cuts(release.tree):
        inside, outside = line_probabilities(cut, column, row, rate)
        west, south, east, north = cut.rectangle
        before = log[south:north, west:east].copy()
        log += outside
        log[south:north, west:east] = before + (inside[None, :] if cut.across else inside[:, None])
    return np.asarray(np.exp(log - logsumexp(log)))


def line_probabilities(cut: Cut, column: Integers, row: Integers, rate: float | None) -> tuple[Floats, float]:
    """Return log-probabilities of a published line: (w,) for the person in each column (or row) of the node, and one for outside it.

    Args:
        cut: the line and its node.
        column: (n,) columns of the known people.
        row: (n,) rows of the known people.
        rate: epsilon of this level of splits; None for exact medians.
    """
    west, south, east, north = cut.rectangle
    in_node = (west <= column) & (column < east) & (south <= row) & (row < north)
    low, high = (west, east) if cut.across else (south, north)
    known = np.bincount((column if cut.across else row)[in_node] - low, minlength=high - low)
    counts = np.vstack([known + np.eye(high - low, dtype=np.int64), known])
    if rate is None:
        node, position = np.nonzero(counts)
        start, width = np.append(0, np.cumsum((counts > 0).sum(axis=1))), np.full(len(counts), high - low)
        values = NodeValues(value=position, count=counts[node, position], start=start, low=0 * width, high=width)
        value = np.where(exact_medians(values) == cut.line - low, 0.0, -np.inf)
    else:
        below = counts.cumsum(axis=1)[:, :-1]
        weight = -rate * np.abs(below - counts.sum(axis=1, keepdims=True) / 2)
        value = weight[:, cut.line - low - 1] - logsumexp(weight, axis=1)
    return value[:-1], float(value[-1])


def summarize_attack(belief: Floats, person: int) -> dict[str, float]:
    """Return the number of cells still possible, the belief in the true cell, the largest belief, and whether the true cell has it."""
    column, row = people()
    true, largest = float(belief[row[person], column[person]]), float(belief.max())
    return {"possible": float((belief > 0).sum()), "true": true, "largest": largest, "found": float(true == largest)}


def known_people(height: int) -> tuple[int, int]:
    """Return how many people the exact tree reveals down to one cell, and down to at most four. A test checks the stored numbers."""
    return _KNOWN_PEOPLE[height]
