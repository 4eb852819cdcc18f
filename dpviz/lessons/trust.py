"""Lesson: the same people counted by an office that is trusted, and from places that every telephone blurred by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import join_blocks
from dpviz.lessons.charts import GREEN, Look, curve_chart, join_series
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import Cells
from dpviz.lessons.real_map import LOS_ANGELES, real_cell_map
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.path_tree import PathTree
from dpviz.mechanisms.points.planar_laplace import PlanarLaplace
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_point_sample
from dpviz.view.charts import GREY
from dpviz.view.colors import ACCENT

FACTOR = 4
"""Two places within the radius are told apart by a factor of at most this."""
FINEST, DISTRICT, SHOWN = 8, 4, 6  # zoom levels: the finest of the curves, that of the figures, that of the maps
OFFICE, BLURRED, NOBODY = "a trusted office", "blurred places", "the same ε without trust"
RADII = {"100 m": 100.0, "200 m": 200.0, "500 m": 500.0, "1 km": 1000.0, "2 km": 2000.0, "5 km": 5000.0}
PEOPLE = {"2,000": 2_000, "20,000": 20_000, "200,000": 200_000}


@dataclass(frozen=True, kw_only=True)
class Trust(Lesson):
    """Errors by zoom level with a trusted office, with places blurred one by one, and with the same epsilon without trust."""

    key: ClassVar[str] = "trust"
    title: ClassVar[str] = "Who do you have to trust?"
    text: ClassVar[str] = (
        "A trusted office knows every place and adds noise once (the central model); without trust every telephone adds noise to its own"
        " answer (the local model). Blurred places (planar Laplace) lie between: two places within a radius are told apart by a factor"
        f" of at most {FACTOR}, a promise that fades with distance and is no ε of the counts."
    )
    task: ClassVar[str] = (
        "change the radius: at which one are the districts as good as those of the office, and would you send your own place blurred so"
        " little?"
    )
    question: ClassVar[str] = (
        "An office that knows where 200,000 people live publishes counts of districts, 4.4 km wide, with ε = 0.5. Now nobody trusts it:"
        " every telephone reports its own district, with noise of the same ε = 0.5. How much larger is the error of a district?"
    )
    choices: ClassVar[tuple[str, ...]] = ("not at all: the same ε", "about ten times", "more than fifty times")
    right: ClassVar[int] = 2
    answer: ClassVar[str] = (
        "The office is off by ± 15.8 people, answers without trust by ± 1,770: 200,000 noises add up. Blurred places are off by ± 76.2, but"
        " promise less: across the city, hardly anything. It turns with few people: at 2,000 a district has only 8, blurred places are off"
        " by ± 2.65 and the office by ± 4.1."
    )
    in_class: ClassVar[str] = (
        "Ask who knows where each student's telephone is now. The wrong belief is that ε says it all: the same number costs 112 times the"
        " error if nobody is trusted. Let them turn the radius to 5 km and look at the coast: the blur moves people into the sea. Then ask"
        " what 100 blurred places a day promise to one person: they add up."
    )

    radius: str = setting("1 km", "Radius of the blur", choices=tuple(RADII), help=f"Places this far apart differ by a factor of {FACTOR}.")
    epsilon: float = epsilon_setting(0.5, "Of the office's counts, and of each answer without trust.")
    people: str = setting("200,000", "People", choices=tuple(PEOPLE), help="Made-up residents of the square around Los Angeles.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        number = PEOPLE[self.people]
        counts = {OFFICE: office_counts(number, self.epsilon, self.draw), BLURRED: blurred_counts(number, RADII[self.radius], self.draw)}
        errors = {name: errors_by_zoom(grid, true_counts(number)) for name, grid in counts.items()}
        errors[NOBODY] = np.full(FINEST, error_without_trust(number, self.epsilon))
        truth = _map(true_counts(number), number, "Where people live")
        maps = (
            _map(counts[OFFICE], number, f"A trusted office, ε = {self.epsilon:g}"),
            _map(counts[BLURRED], number, f"Places blurred over {self.radius}"),
        )
        rows = maps, (_error_chart(errors, number),)
        average = Figure("People in a district", f"{number / 4**DISTRICT:,.0f}", f"On average, in the {4**DISTRICT} squares of 4.4 km.")
        values = {name: f"± {format_decimal(error[DISTRICT - 1], 3)}" for name, error in errors.items()}
        figures = (average, *(Figure(name.capitalize(), value, "Typical error of a district.") for name, value in values.items()))
        return LessonFigure(rows=rows, asked=((truth,),), figures=figures, note=_NOTE, source=_SOURCE)


_NOTE = (
    "Maps: squares of 1.1 km; what is below 0 is not drawn. Curves: one run; above 100 % nothing is left to see. The line without trust is"
    " theory (optimized unary encoding, all of ε on one level). Its ε is for changing an answer, that of the office for adding or removing"
    " a person; for changing one, the office's error would be up to twice as large."
)
_SOURCE = (
    "Andres et al., Geo-indistinguishability, CCS 2013; Wang, Blocki, Li, Jha, Locally differentially private protocols for frequency"
    " estimation, USENIX Security 2017 (optimized unary encoding)."
)


@lru_cache(maxsize=3)
def residents(number: int) -> PointCounts:
    """Return the made-up residents."""
    return load_point_sample("la_residents", size=number)


@lru_cache(maxsize=3)
def true_counts(number: int) -> Integers:
    """Return (2**FINEST, 2**FINEST) true counts of the finest squares, [row, column]."""
    return residents(number).blocks(FINEST)


@lru_cache(maxsize=8)
def office_counts(number: int, epsilon: float, draw: int) -> Floats:
    """Return (2**FINEST, 2**FINEST) counts of the finest squares by the path-budget tree."""
    return PathTree().release(residents(number), PureBudget(epsilon), Entropy.seeded(draw)).blocks(FINEST)


@lru_cache(maxsize=8)
def blurred_counts(number: int, radius: float, draw: int) -> Floats:
    """Return (2**FINEST, 2**FINEST) counts of the finest squares from blurred places; the radius is in metres."""
    mechanism = PlanarLaplace(radius=radius, level=math.log(FACTOR), side=1 << FINEST)
    return mechanism.release(residents(number), PureBudget(1), Entropy.seeded(draw)).blocks(FINEST)


def errors_by_zoom(released: Floats, truth: Integers) -> Floats:
    """Compute the (FINEST,) root mean square errors of the squares of zoom levels 1 to FINEST, in people."""
    error, found = released - truth, []
    for _ in range(FINEST):
        found.append(math.sqrt((error**2).mean()))
        error = join_blocks(error)
    return np.array(found[::-1])


def error_without_trust(number: int, epsilon: float) -> float:
    """Compute the typical error of the count of a square if each of `number` people answers with epsilon-differential privacy.

    That is the standard deviation of optimized unary encoding for a square that few of the people are in: sqrt(n) 2 e^(epsilon / 2) /
    (e^epsilon - 1), whatever the number of squares.

    Source:
        Wang, Blocki, Li, Jha, USENIX Security 2017, Section 4.

    >>> round(error_without_trust(10_000, 1.0), 1)
    191.9
    """
    return math.sqrt(number) * 2 * math.exp(epsilon / 2) / math.expm1(epsilon)


def _error_chart(errors: dict[str, Floats], number: int) -> object:
    zooms = np.arange(1, FINEST + 1)
    curves = {name: 100 * error / (number / 4.0**zooms) for name, error in errors.items()}
    look = Look(
        "Error by zoom level",
        "zoom level: squares of 35 km (1), 4.4 km (4), 1.1 km (6), 270 m (8)",
        "typical error (% of an average square)",
        order=(OFFICE, BLURRED, NOBODY),
        colors=(ACCENT, GREEN, GREY),
        log_y=True,
    )
    return curve_chart(join_series(zooms, curves), look)


def _map(counts: Floats | Integers, number: int, title: str) -> object:
    side, step = 1 << SHOWN, 1 << (FINEST - SHOWN)
    shown = np.asarray(counts, np.float64).reshape(side, step, side, step).sum(axis=(1, 3))
    row, column = np.nonzero(shown >= 0.5)
    domain = residents(number).domain
    unit = domain.side >> SHOWN
    boxes = domain.coordinates(np.stack([column, row, column + 1, row + 1], axis=1) * unit)
    table = LOS_ANGELES.edges(boxes).assign(value=shown[row, column].round(1))
    top = float(np.quantile(true_counts(number).reshape(side, step, side, step).sum(axis=(1, 3)), 0.99))
    description = f"{len(table):,} of {side**2:,} squares have people, at most {shown.max():,.0f}."
    cells = Cells(table=table, title=title, value="people in a square", low=0.0, high=max(top, 1.0), description=description)
    return real_cell_map(LOS_ANGELES, cells)
