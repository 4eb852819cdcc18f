"""Stop: what is not protected: many releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.lessons.charts import Look, curves, upright
from dpviz.lessons.maps import Cells, cell_map
from dpviz.lessons.releases import BASIC, DELTA, HOME, MOST_DAYS, SIDE, TABLES, WORK, ZCDP, attack, composed, composed_at
from dpviz.mechanisms.base import setting

EACH, TOGETHER = "for every table", "for all together"


@dataclass(frozen=True, kw_only=True)
class Releases(Knobs):
    """Settings of the stop."""

    days: int = setting(30, "Days of releases", low=1, high=MOST_DAYS, help="Two tables a day: people at night, people at noon.")
    epsilon: float = epsilon_setting(0.5, "Of every table, or of all tables together.")
    budget: str = setting(EACH, "ε is", choices=(EACH, TOGETHER), help="Spent anew on every table, or shared between all of them.")
    draw: int = draw_setting()


def show(knobs: Releases) -> Shown:
    """What was found after some days, and what all releases together allow."""
    epsilon = knobs.epsilon if knobs.budget == EACH else knobs.epsilon / (TABLES * MOST_DAYS)
    found = attack(round(epsilon, 9), knobs.draw)
    home, work = found.after(knobs.days)
    basic, converted = composed_at(epsilon, knobs.days)
    sure = found.first_sure()
    look = Look(
        title="What is promised, after so many days",
        x="days",
        y="ε of all releases together",
        order=(BASIC, ZCDP),
        height=330,
    )
    totals = composed(round(epsilon, 9)).rename(columns={"days": "x", "epsilon": "y"})
    return Shown(
        rows=(
            (_map(found.home[knobs.days], HOME, "Where is home?"), _map(found.work[knobs.days], WORK, "Where is work?")),
            (_beliefs(found.home, found.work, knobs.days), curves(totals, look, under=(_day(knobs.days),))),
        ),
        figures=(
            Figure(
                label="Belief: home, work",
                value=f"{100 * home:.3g} %, {100 * work:.3g} %",
                help="In the true cells, after these days; 1.6 % blind.",
            ),
            Figure(
                label="Sure of both from day",
                value="–" if sure is None else f"{sure}",
                help=f"At least 95 %, to the end of {MOST_DAYS} days.",
            ),
            Figure(label="Sum of ε", value=f"{basic:.3g}", help=f"{TABLES} tables a day."),
            Figure(label="zCDP", value=f"{converted:.3g}", help=f"The ρ of all tables added up, read as (ε, δ = {DELTA:g})."),
        ),
        note="Ring: the truth. The attacker knows how many others are in each cell, which stays the same; each table has fresh noise."
        " The smaller of the two totals holds: for few releases that is the sum.",
    )


def _day(days: int) -> object:
    return upright(days, f"day {days}", left=2 * days > MOST_DAYS)


def _map(belief: NDArray[np.float64], place: tuple[int, int], title: str) -> object:
    row, column = (part.ravel() for part in np.indices((SIDE, SIDE)))
    cells = pd.DataFrame({"x": column, "y": row, "x2": column + 1, "y2": row + 1, "value": np.maximum(100 * belief.ravel(), 1e-4)})
    marks = pd.DataFrame({"x": [place[0] + 0.5], "y": [place[1] + 0.5], "what": ["the truth"], "shape": ["circle"]})
    told = f"The true cell is believed with {100 * belief[place[1], place[0]]:.3g} %, the likeliest with {100 * belief.max():.3g} %."
    return cell_map(Cells(table=cells, title=title, value="belief (%)", low=0.1, high=100.0, told=told, height=330), marks=marks)


def _beliefs(home: NDArray[np.float64], work: NDArray[np.float64], days: int) -> object:
    look = Look(title="Belief in the truth, day by day", x="days", y="belief (%)", order=("home", "work"), top=100, height=330)
    parts = [
        pd.DataFrame({"x": np.arange(len(belief)), "y": 100 * belief[:, place[1], place[0]], "series": name})
        for name, belief, place in (("home", home, HOME), ("work", work, WORK))
    ]
    return curves(pd.concat(parts, ignore_index=True), look, under=(_day(days),))


RELEASES = Stop(
    key="releases",
    title="What is not protected: many releases",
    says="An ε is the promise of one release: for a person whose home and work stand in two tables on each of d days the promises add up to"
    " 2 d ε, and fresh noise every day averages out. One budget shared by all tables keeps the promise, with more noise in each; zCDP adds"
    " up ρ = ε²/2 instead and gives a smaller total for many releases, at the price of a δ.",
    task="find the day from which home and work are no secret any more; then let ε be for all tables together.",
    knobs=Releases,
    show=show,
)
