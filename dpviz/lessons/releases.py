"""Lesson: one person's home and work in many releases; the guarantee of all releases together, and an attacker's beliefs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpviz.arrays import Floats
from dpviz.evaluation.attacks.game import membership_log_odds
from dpviz.lessons.charts import Look, curve_chart, join_series, vertical_line
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import Cells, cell_map
from dpviz.mechanisms.base import setting
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace

SIDE, MOST_DAYS, TABLES = 8, 100, 2
DELTA = 1e-6
HOME, WORK = (2, 5), (6, 1)
BASIC, ZCDP = "sum of ε", "zCDP, read as (ε, δ)"
_SEED = 17
EACH, TOGETHER = "for every table", "for all together"


@dataclass(frozen=True, kw_only=True)
class Releases(Lesson):
    """An attacker's beliefs after some days, and the total epsilon of all releases."""

    key: ClassVar[str] = "releases"
    title: ClassVar[str] = "Many releases"
    text: ClassVar[str] = (
        "An ε is the promise of one release: a person who is in two tables a day spends 2 ε a day, the sum grows, and fresh noise every"
        " day averages out. One budget shared by all tables keeps the promise, with more noise in each; zCDP is another way to add up,"
        " which gives a smaller total for many releases at the price of a small probability δ that it does not hold."
    )
    task: ClassVar[str] = "find the day from which home and work are no secret any more; then let ε be for all tables together."
    question: ClassVar[str] = (
        "Every day a town publishes two noisy tables, people at night and people at noon, each with fresh noise and ε = 0.5. Somebody"
        " knows where all others are. What does that attacker know of one person's home and work after 100 days?"
    )
    choices: ClassVar[tuple[str, ...]] = ("both, nearly for sure", "a hint: each one chance in three", "as little as after one day")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "In this run the attacker is at least 95 % sure of both cells from day 66 on: noise that is fresh every day averages out, and 200"
        " tables of ε = 0.5 promise no more than ε = 100 together. After the first month both are still open. It turns if one ε is shared"
        " by all tables: then the attacker learns hardly anything, at the price of far more noise in each table."
    )
    in_class: ClassVar[str] = (
        "Ask who would publish a table a day under the same ε, and for how long. The wrong belief is that each release is as safe as"
        " the first. Drag the days from 1 to 100 and watch the two maps darken at the ring; then switch to one ε for all tables. What to"
        " remember: a budget belongs to a person, not to a table."
    )

    days: int = setting(30, "Days of releases", low=1, high=MOST_DAYS, help="Two tables a day: people at night, people at noon.")
    epsilon: float = epsilon_setting(0.5, "Of every table, or of all tables together.")
    budget: str = setting(EACH, "ε is", choices=(EACH, TOGETHER), help="Spent anew on every table, or shared between all of them.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        epsilon = self.epsilon if self.budget == EACH else self.epsilon / (TABLES * MOST_DAYS)
        result = attack(round(epsilon, 9), self.draw)
        home, work = result.after(self.days)
        basic, converted = composed_at(epsilon, self.days)
        first_sure_day = result.first_sure()
        look = Look("What is promised, after so many days", "days", "ε of all releases together", order=(BASIC, ZCDP), height=330)
        totals = composed_epsilons(round(epsilon, 9))
        after = f"after {self.days} day{'s' * (self.days != 1)}"
        maps = _map(result.home[self.days], HOME, f"Home: belief {after}"), _map(result.work[self.days], WORK, f"Work: belief {after}")
        return LessonFigure(
            asked=(maps,),
            rows=(maps, (_beliefs(result, self.days), curve_chart(totals, look, under=(_day_line(self.days),)))),
            figures=(
                Figure(
                    "Belief: home, work", f"{100 * home:.3g} %, {100 * work:.3g} %", "In the true cells, after these days; 1.6 % blind."
                ),
                Figure(
                    "Sure of both from day",
                    "–" if first_sure_day is None else f"{first_sure_day}",
                    f"At least 95 %, to the end of {MOST_DAYS} days.",
                ),
                Figure("Sum of ε", f"{basic:.3g}", f"{TABLES} tables a day."),
                Figure("zCDP", f"{converted:.3g}", f"The ρ of all tables added up, read as (ε, δ = {DELTA:g})."),
            ),
            note="Ring: the truth. The attacker knows how many others are in each cell, which stays the same; each table has fresh noise."
            " The smaller of the two totals holds: for few releases that is the sum.",
        )


def _day_line(days: int) -> object:
    return vertical_line(days, f"day {days}", left=2 * days > MOST_DAYS)


def _map(belief: NDArray[np.float64], cell: tuple[int, int], title: str) -> object:
    row, column = (part.ravel() for part in np.indices((SIDE, SIDE)))
    cells = pd.DataFrame({"x": column, "y": row, "x2": column + 1, "y2": row + 1, "value": np.maximum(100 * belief.ravel(), 1e-4)})
    marks = pd.DataFrame({"x": [cell[0] + 0.5], "y": [cell[1] + 0.5], "what": ["the truth"], "shape": ["circle"]})
    description = f"The true cell is believed with {100 * belief[cell[1], cell[0]]:.3g} %, the likeliest with {100 * belief.max():.3g} %."
    shown = Cells(table=cells, title=title, value="belief (%)", low=0.1, high=100.0, description=description, height=330)
    return cell_map(shown, marks=marks)


def _beliefs(result: Attack, days: int) -> object:
    look = Look("Belief in the truth, day by day", "days", "belief (%)", order=("home", "work"), top=100, height=330)
    beliefs = {"home": 100 * result.home[:, HOME[1], HOME[0]], "work": 100 * result.work[:, WORK[1], WORK[0]]}
    return curve_chart(join_series(np.arange(MOST_DAYS + 1), beliefs), look, under=(_day_line(days),))


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """The beliefs, after each day, of an attacker who knows everybody else.

    Attributes:
        home: (days + 1, SIDE, SIDE) probabilities of the home's cell [row, column], the prior first.
        work: (days + 1, SIDE, SIDE) probabilities of the cell of the place of work.
    """

    home: Floats
    work: Floats

    def after(self, days: int) -> tuple[float, float]:
        """Return the belief in the true home, and in the true place of work, after some days."""
        return float(self.home[days][HOME[1], HOME[0]]), float(self.work[days][WORK[1], WORK[0]])

    def first_sure(self, belief: float = 0.95) -> int | None:
        """Return the first day from which home and work are both believed with at least `belief` to the end; None if there is none."""
        both = np.minimum(self.home[:, HOME[1], HOME[0]], self.work[:, WORK[1], WORK[0]])
        unsure = np.flatnonzero(both < belief)
        last = int(unsure[-1]) + 1 if unsure.size else 0
        return last if last < len(both) else None


@lru_cache(maxsize=16)
def attack(epsilon: float, draw: int) -> Attack:
    """Release a table of the nights and one of the noons on each of `MOST_DAYS` days, and compute the attacker's beliefs.

    Each table has fresh noise. The other people stay where they are, and the attacker knows their cells. Beforehand, every cell is equally
    likely.

    Args:
        epsilon: epsilon of each table.
        draw: seed of the noise.
    """
    nights, noons = Entropy.seeded(draw).spawn(2)
    return Attack(home=_update_beliefs(HOME, epsilon, nights, _SEED), work=_update_beliefs(WORK, epsilon, noons, _SEED + 1))


def _update_beliefs(cell: tuple[int, int], epsilon: float, entropy: Entropy, seed: int) -> Floats:
    others = np.random.default_rng(seed).poisson(30, SIDE * SIDE).astype(np.int64)
    true = others.copy()
    true[cell[1] * SIDE + cell[0]] += 1
    budget = PureBudget(epsilon)
    seen = discrete_laplace(np.tile(true, MOST_DAYS), budget, entropy).reshape(MOST_DAYS, -1)
    odds = membership_log_odds(seen[..., None], others[:, None], [epsilon])
    evidence = np.vstack([np.zeros(SIDE * SIDE), odds.cumsum(axis=0)])
    return np.asarray(np.exp(evidence - logsumexp(evidence, axis=1, keepdims=True))).reshape(-1, SIDE, SIDE)


@lru_cache(maxsize=32)
def composed_epsilons(epsilon: float) -> pd.DataFrame:
    """Return the epsilon of all releases together after each number of days: columns x (days), y (epsilon) and series: `BASIC` or `ZCDP`.

    Source:
        Basic composition adds up epsilons. An epsilon-DP release is (epsilon**2 / 2)-zCDP, rhos add up (Bun, Steinke, TCC 2016,
        Proposition 1.4 and Lemma 1.7), and the sum is read as (epsilon, `DELTA`) by Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    days = np.unique(np.round(np.geomspace(1, MOST_DAYS, 12)).astype(int))
    basic, converted = zip(*(composed_at(epsilon, int(number)) for number in days), strict=True)
    return join_series(days, {BASIC: basic, ZCDP: converted})


def composed_at(epsilon: float, days: int) -> tuple[float, float]:
    """Return the two epsilons of `composed_epsilons`, `BASIC` and `ZCDP`, for one number of days."""
    rho = PureBudget(epsilon).to_zcdp().rho * TABLES * days
    return TABLES * epsilon * days, float(ZcdpBudget(rho).to_approx(DELTA).epsilon)
