"""Lesson: the same walk of one person, with the record or the person as protected unit, and an attacker who looks for the home."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.evaluation.attacks.fixes import group_bound, guess_homes, play_homes
from dpviz.evaluation.attacks.game import Success, guess_bound
from dpviz.lessons.charts import GREEN, RED, Look, curve_chart, horizontal_line, vertical_line
from dpviz.lessons.lesson import EPSILONS, Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.real_map import INK, Area, real_map
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.identity import Identity
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.samples.points import daily_routes, sample_xy
from dpviz.space.domain import Domain

ORDER, FIXES = 7, 50_000
RECORD_GAMES, PERSON_GAMES = 100, 400
DOMAIN = Domain(bounds=(-118.45, 33.80, -118.05, 34.13), crs="EPSG:4326", order=ORDER)
MOST = (1, 10, 100)
MOVES = tuple((across, up) for up in (24, -16) for across in (-48, -27, -6, 15))
"""By how many cells east and north the whole trace is moved for each of the possible homes."""
_AREA = Area(bounds=DOMAIN.bounds)
_STEPS = EPSILONS[::2]
_KEY, _SEED = b"record or person", 1
_RECORD, _PERSON, _ALLOWED = "unit: one position", "unit: the person", "most that ε allows for a person"


@dataclass(frozen=True, kw_only=True)
class RecordOrPerson(Lesson):
    """Maps of both releases with the attacker's guess, and how often the guess is right."""

    key: ClassVar[str] = "record_or_person"
    title: ClassVar[str] = "A record or a person?"
    text: ClassVar[str] = (
        "ε protects a unit, and somebody chose which: one position of a telephone, or everything that one person's telephone sends. Here"
        " the same 50,000 made-up positions of one person are released among 107,931 residents with both units, and an attacker who knows"
        " everybody else looks for the person's home."
    )
    task: ClassVar[str] = (
        "make ε as small as it gets: does the person with 50,000 protected records get any safer, and from which ε on is the protected"
        " person in danger?"
    )
    question: ClassVar[str] = (
        "A release protects every single position with ε = 1. One telephone has sent 50,000 of them. The attacker knows that its owner"
        " lives at one of eight addresses. How often does the attacker name the right one?"
    )
    choices: ClassVar[tuple[str, ...]] = ("1 time in 8, as by chance", "34 times in 100, which is what ε = 1 allows", "always")
    right: ClassVar[int] = 2
    answer: ClassVar[str] = (
        "At any ε of this dial: together, 50,000 records of one person are protected by 50,000 · ε, which allows 100 %, and the"
        " person's ways lie open on the map. With the person as unit and 10 positions that count, the attacker is right in 17 % of the"
        " games, within the 34 % that ε = 1 allows. It turns at a large ε: at ε = 5 the attacker finds the protected person, too, in 54 %."
    )
    in_class: ClassVar[str] = (
        "The wrong belief is that ε = 1 says how private a release is; it says so of a release *and a unit*. Read out what the guarantee"
        " for records promises here: it hides whether the telephone sent its 17,342nd position. Let them look for a sentence in a privacy"
        " notice that names the unit. Then let them pay the price: with the person as unit, the noise of every count is as large as all"
        " that counts of a person, so raise the number of positions and look at the right map."
    )

    most: int = setting(
        10, "Positions of a person that count", choices=MOST, help="With the person as unit: m of them, and noise of scale m/ε."
    )
    home: int = setting(3, "Where the person lives", low=1, high=len(MOVES), help="One of eight addresses; the whole trace moves with it.")
    epsilon: float = epsilon_setting()
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        record, person = (success(most, self.epsilon) for most in (None, self.most))
        low, high = person.interval()
        allowed = guess_bound(len(MOVES), self.epsilon)
        maps = (
            _map(self, None, f"Each position protected, ε = {self.epsilon:g}"),
            _map(self, self.most, f"The person protected, ε = {self.epsilon:g}"),
        )
        return LessonFigure(
            rows=(maps, (_success_chart(self),)),
            asked=((_address_map(),),),
            slide=(maps,),
            figures=(
                Figure("Found, unit: position", f"{100 * record.rate:.0f} %", f"The attacker won {record.wins} of {record.games} games."),
                Figure(
                    "Found, unit: person",
                    f"{100 * person.rate:.0f} %",
                    f"{person.wins} of {person.games} games; 95 % interval {100 * low:.0f} to {100 * high:.0f} %. Chance: 12.5 %.",
                ),
                Figure("Allowed for a person", f"{100 * allowed:.0f} %", "The most that ε allows, whatever the attacker knows."),
                Figure(
                    "Allowed for 50,000 positions",
                    f"{100 * group_bound(len(MOVES), self.epsilon, FIXES):.0f} %",
                    f"A group of k records is protected by k ε = {FIXES * self.epsilon:,.0f}: not at all.",
                ),
            ),
            note="Squares: the largest counts once everybody else is taken away, at most as many as the person has visited. Ring: the home;"
            " small square: the place of work; cross: the attacker's guess, the most likely of the eight addresses. Below: bars are 95 %"
            " limits from 400 games, which cross the line where the success comes near it; the success itself never does, as is proved."
            " Everything about the person is invented.",
        )


@lru_cache(maxsize=1)
def others() -> tuple[Floats, Floats]:
    """Return longitude and latitude of the made-up residents in the area, one record each; the attacker knows them."""
    x, y = sample_xy("la_residents")
    west, south, east, north = DOMAIN.bounds
    inside = (west <= x) & (x < east) & (south <= y) & (y < north)
    return x[inside], y[inside]


@lru_cache(maxsize=len(MOVES))
def fixes(home: int) -> tuple[Floats, Floats]:
    """Return longitude and latitude of the person's positions, moved to an address (0 to 7)."""
    x, y = daily_routes(FIXES)
    west, south, east, north = DOMAIN.bounds
    across, up = MOVES[home]
    return x + across * (east - west) / DOMAIN.side, y + up * (north - south) / DOMAIN.side


@lru_cache(maxsize=8)
def count_fixes(home: int, most: int | None, *, crowd: bool) -> PointCounts:
    """Count the person's positions, alone or in the crowd of the others.

    Args:
        home: the address, 0 to 7.
        most: m, the fixes of a person that count; None where the unit is a record, and all count.
        crowd: count the others, too.
    """
    x, y = fixes(home)
    person = np.zeros(len(x), np.int64)
    if crowd:
        x, y = (np.concatenate(pair) for pair in zip(others(), (x, y), strict=True))
        person = np.concatenate([np.arange(1, len(x) - len(person) + 1), person])
    bound: dict[str, Any] = {} if most is None else {"person": person, "contributions": most, "key": _KEY}
    return PointCounts.from_xy(x, y, domain=DOMAIN, **bound)


@lru_cache(maxsize=len(MOST) + 1)
def traces(most: int | None) -> Integers:
    """Return (8, cells) fixes of the person that count in each cell, for each address."""
    return np.stack([count_fixes(home, most, crowd=False).blocks(ORDER).ravel() for home in range(len(MOVES))])


@lru_cache(maxsize=1)
def known_counts() -> Integers:
    """Return (cells,) counts of the others."""
    return PointCounts.from_xy(*others(), domain=DOMAIN).blocks(ORDER).ravel()


@lru_cache(maxsize=8)
def release(home: int, most: int | None, epsilon: float, draw: int) -> PointRelease:
    """Release the person in the crowd, as counts of all cells with noise."""
    return Identity(order=ORDER).release(count_fixes(home, most, crowd=True), PureBudget(epsilon), Entropy.seeded(draw))


def left_over(home: int, most: int | None, epsilon: float, draw: int) -> Floats:
    """Return (cells,) the released counts without the others, as the attacker computes them."""
    return np.asarray(release(home, most, epsilon, draw).blocks(ORDER).ravel() - known_counts(), np.float64)


def guess(lesson: RecordOrPerson, most: int | None) -> int:
    """Return the address (0 to 7) that the attacker names after this run."""
    noisy = left_over(lesson.home - 1, most, lesson.epsilon, lesson.draw)[None]
    return int(guess_homes(noisy, np.zeros(noisy.shape[1], np.int64), traces(most), lesson.epsilon / (most or 1))[0])


@lru_cache(maxsize=128)
def success(most: int | None, epsilon: float) -> Success:
    """Return how often the attacker names the right address over seeded games."""
    games = RECORD_GAMES if most is None else PERSON_GAMES
    return play_homes(traces(most), epsilon, most or 1, games, Entropy.seeded(_SEED))


def addresses(rank: int = 1) -> tuple[Floats, Floats]:
    """Return (8,) kilometres east and (8,) north of the middle: the home at each address, or with rank 2 the place of work."""
    row, column = np.divmod(np.argsort(-traces(None), axis=1, kind="stable")[:, rank - 1], DOMAIN.side)
    west, south, east, north = DOMAIN.bounds
    return _AREA.to_km(west + (column + 0.5) * (east - west) / DOMAIN.side, south + (row + 0.5) * (north - south) / DOMAIN.side)


def _address_layers() -> list[Any]:
    """Return layers of the addresses and their numbers."""
    x, y = addresses()
    rows = pd.DataFrame({"x": x, "y": y, "what": [f"{number}" for number in range(1, len(x) + 1)]})
    base = alt.Chart(rows).encode(**_AREA.channels())
    text = base.mark_text(dx=18, fontSize=13, fontWeight="bold", color=alt.ExprRef(INK), aria=False)
    mark = base.mark_point(shape="diamond", size=60, filled=True, color=GREEN, opacity=1, aria=False)
    return [mark, text.encode(text=alt.Text(field="what", type="nominal"))]


@lru_cache(maxsize=1)
def _address_map() -> alt.LayerChart:
    """Draw the eight addresses alone."""
    return real_map(_AREA, _address_layers(), "Eight possible homes", "Eight addresses in Los Angeles.", names=3)


def _map(lesson: RecordOrPerson, most: int | None, title: str) -> alt.LayerChart:
    """Draw what one release leaves of the person: the largest counts without the others, the home and the guess."""
    excess = left_over(lesson.home - 1, most, lesson.epsilon, lesson.draw)
    visited = int((traces(None)[lesson.home - 1] > 0).sum())
    largest = np.argsort(-excess, kind="stable")[: min(visited, int((excess > 0).sum()))]
    named = guess(lesson, most)
    layers = [_square_layer(largest, excess[largest]), *_address_layers(), *_mark_layers(lesson.home - 1, named)]
    outcome = "which is right" if named == lesson.home - 1 else "which is wrong"
    unit = "record" if most is None else "person"
    text = f"With the {unit} as unit the attacker names address {named + 1}, {outcome}: the person lives at address {lesson.home}."
    return real_map(_AREA, layers, title, text, names=3)


def _square_layer(cells: Integers, excess: Floats) -> Any:
    """Return the layer of cells, the strongest first, with the records that are left in each."""
    row, column = np.divmod(cells, DOMAIN.side)
    boxes = DOMAIN.coordinates(np.stack([column, row, column + 1, row + 1], axis=1))
    rows = _AREA.edges(boxes).assign(left=np.round(excess), strength=np.linspace(1.0, 0.5, len(cells)).round(2))
    tooltips = [alt.Tooltip(field="left", type="quantitative", title="records without the others", format=",")]
    mark = alt.Chart(rows).mark_rect(color=RED, strokeWidth=0)
    opacity = alt.Opacity(field="strength", type="quantitative", scale=None, legend=None)
    return mark.encode(**_AREA.channels(edges=True), opacity=opacity, tooltip=tooltips)


def _mark_layers(home: int, named: int) -> list[Any]:
    """Return a ring around the home, a square around the place of work and a cross at the guess, with their names."""
    (x, y), (work_x, work_y), ink = addresses(), addresses(2), alt.ExprRef(INK)
    rows = pd.DataFrame({"x": [x[home], work_x[home], x[named]], "y": [y[home], work_y[home], y[named]], "what": ["home", "work", "guess"]})
    if home == named:
        rows["what"] = ["home = guess", "work", ""]
    ring, square, cross = (alt.Chart(rows[part : part + 1]).encode(**_AREA.channels()) for part in range(3))
    bold: dict[str, Any] = {"fontSize": 12, "fontWeight": "bold", "color": ink, "aria": False}
    text = alt.Text(field="what", type="nominal")
    return [
        ring.mark_point(shape="circle", size=420, filled=False, color=ink, strokeWidth=2.5, opacity=1, aria=False),
        square.mark_point(shape="square", size=180, filled=False, color=ink, strokeWidth=2, opacity=1, aria=False),
        cross.mark_point(shape="cross", size=160, angle=45, filled=True, color=ink, opacity=1, aria=False),
        *(mark.mark_text(dy=dy, **bold).encode(text=text) for mark, dy in ((ring, -19), (square, 18), (cross, -19))),
    ]


def success_by_epsilon(most: int) -> pd.DataFrame:
    """Return by epsilon how often the attacker wins: columns x (epsilon), y, low, high (percent, with 95 % limits) and series."""
    rows = []
    for name, unit in ((_RECORD, None), (_PERSON, most)):
        for epsilon in _STEPS:
            won = success(unit, epsilon)
            rows.append((epsilon, 100 * won.rate, *(100 * end for end in won.interval()), name))
    return pd.DataFrame(rows, columns=["x", "y", "low", "high", "series"])


def _success_chart(lesson: RecordOrPerson) -> alt.LayerChart:
    measured = success_by_epsilon(lesson.most)
    bound = pd.DataFrame({"x": EPSILONS, "y": [100 * guess_bound(len(MOVES), epsilon) for epsilon in EPSILONS], "series": _ALLOWED})
    look = Look(
        "How often the home is found",
        "privacy budget ε",
        "games won (%)",
        order=(_RECORD, _PERSON, _ALLOWED),
        colors=(RED, GREEN, "#8a8f94"),
        log_x=True,
        top=100,
        height=350,
        description="Dots are measured, bars their 95 % limits.",
    )
    bars = alt.Chart(measured).mark_rule(strokeWidth=5, opacity=0.3, color=GREEN, aria=False)
    limits = bars.encode(
        x=alt.X(field="x", type="quantitative"), y=alt.Y(field="low", type="quantitative"), y2=alt.Y2(field="high")
    ).transform_filter(alt.datum.series == _PERSON)
    under = (limits, horizontal_line(100 / len(MOVES), "chance"), vertical_line(lesson.epsilon, "on the maps"))
    return curve_chart(pd.concat([measured[["x", "y", "series"]], bound]), look, dots=measured[["x", "y", "series"]], under=under)
