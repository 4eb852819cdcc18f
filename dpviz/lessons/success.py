"""How often an attacker wins: the game on noisy counts, and the chart that compares two successes with what ε allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Integers
from dpviz.evaluation.attacks.game import Success, count_wins, membership_bound, membership_log_odds
from dpviz.lessons.charts import RED
from dpviz.lessons.lesson import Figure
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.view.charts import FORMAT, GREY, finish
from dpviz.view.colors import ACCENT

SEEDS = 100
"""Seeds over which a lesson plays a game."""
RUNS = 400
"""Private releases per seed: many, since the success on them can be near its bound."""


@dataclass(frozen=True, kw_only=True)
class Game:
    """How often an attacker won on two publications of the same data.

    Attributes:
        title: what the attacker has to find, as a question.
        contrast: the name of what is published today, and the success on it.
        private: the name of the private release, and the success on it.
        blind: the probability to win by guessing blindly.
        bound: the most that the guarantee of the private release allows.
        epsilon: the guarantee, as a text.
    """

    title: str = "Is this person counted, yes or no?"
    contrast: tuple[str, Success]
    private: tuple[str, Success]
    blind: float = 0.5
    bound: float
    epsilon: str


def success_chart(game: Game, height: int = 350) -> alt.LayerChart:
    """Draw both successes with their 95 % intervals, a line at the bound, and one at blind guessing."""
    rows = []
    for (name, found), y in ((game.contrast, 3.0), (game.private, 1.0)):
        low, high = (100 * end for end in found.interval())
        rows.append({"name": name, "rate": 100 * found.rate, "low": low, "high": high, "y": y, "text": describe_success(found)})
    table = pd.DataFrame(rows).assign(start=100 * (game.bound if game.bound < 0.3 else game.blind))
    rate, start = _percent_axis("rate", game), _percent_axis("start", game)
    layers = [
        _line(rate, game.blind, "blind guess" if game.bound > 0.3 else "", GREY, [2, 3], 4.45),
        _line(rate, game.bound, f"most that {game.epsilon} allows", RED, [6, 3], 0.25),
    ]
    for shape, color, row in (("square", RED, table[:1]), ("circle", ACCENT, table[1:])):
        base = alt.Chart(row).encode(y=_height())
        whisker = base.mark_rule(strokeWidth=5, opacity=0.55, color=color, aria=False)
        layers.append(whisker.encode(x=_percent_axis("low", game), x2=alt.X2(field="high")))
        layers.append(base.mark_point(shape=shape, size=130, filled=True, opacity=1, color=color).encode(x=rate))
        layers += [_text(base, start, color, field, dy) for field, dy in (("name", -32), ("text", -15))]
    description = " ".join(f"{row['name']}: {row['text']}." for row in rows)
    summary = f"{description} Bound: {100 * game.bound:.3g} %. Blind guess: {100 * game.blind:.3g} %."
    return finish(alt.layer(*layers), game.title, summary, height)


def compare_tables(name: str, contrast: str, played: tuple[Success, Success], epsilon: float) -> tuple[Game, tuple[Figure, Figure]]:
    """Return the game on the tables that are published today against private tables, and the figures of how often each is won.

    Args:
        name: what is done to today's tables, for the label of their figure.
        contrast: the same, for the chart.
        played: the success on today's tables, and that on private ones.
        epsilon: of all private tables together.
    """
    (today, private), bound = played, membership_bound(epsilon)
    guarantee = f"ε = {epsilon:g}"
    game = Game(contrast=(contrast, today), private=(f"private tables, {guarantee}", private), bound=bound, epsilon=guarantee)
    help_private = f"The same people, {RUNS} releases of each town. At most {100 * bound:.3g} % by ε."
    return game, (
        Figure(f"Games won: {name}", describe_success(today), f"Over {SEEDS} made-up towns, a person in each."),
        Figure("Games won: private", describe_success(private), help_private),
    )


def play_noisy(others: Integers, epsilon: float, seed: int) -> Success:
    """Play the game of a person who is in or out by a coin on noisy counts; the attacker knows everybody else, and makes the best test.

    A person changes one count of each table by one, and the other counts have noise of their own, which says nothing of this person. So
    only the counts that the person can be in are released.

    Args:
        others: (games, t) the true counts without the person, one of each of t tables.
        epsilon: of all tables together; each spends an equal part.
        seed: of the coins and the noise.
    """
    each = round(epsilon / others.shape[1], 9)
    truth = np.random.default_rng(seed).integers(0, 2, len(others)).astype(np.bool_)
    noisy = discrete_laplace((others + truth[:, None]).ravel(), PureBudget(each), Entropy.seeded(seed)).reshape(others.shape)
    return count_wins(membership_log_odds(noisy, others, [each] * others.shape[1]) >= 0, truth)


def describe_success(found: Success) -> str:
    """Write a success in percent with its interval.

    >>> describe_success(Success(wins=97, games=100))
    '97 % (91.5 to 99.4)'
    """
    low, high = found.interval()
    return f"{_percent(found.rate)} % ({_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")


def _percent_axis(field: str, game: Game) -> alt.X:
    scale = alt.Scale(domain=[0 if game.blind < 0.4 else 48, 102], nice=False)
    title = "games won (%), with the 95 % interval"
    return alt.X(field=field, type="quantitative", title=title, scale=scale, axis=alt.Axis(format=FORMAT, tickCount=6))


def _height() -> alt.Y:
    return alt.Y(field="y", type="quantitative", axis=None, scale=alt.Scale(domain=[0, 4.6]))


def _line(x: alt.X, share: float, name: str, color: str, dash: Sequence[int], y: float) -> Any:
    base = alt.Chart(pd.DataFrame({"rate": [100 * share], "y": [y], "name": [name]})).encode(x=x)
    rule = base.mark_rule(color=color, strokeDash=list(dash), strokeWidth=2, aria=False)
    left = share > 0.72
    text = base.mark_text(color=color, align="right" if left else "left", dx=-6 if left else 6, fontSize=11, aria=False)
    return rule + text.encode(y=_height(), text=alt.Text(field="name", type="nominal"))


def _text(base: Any, x: alt.X, color: str, field: str, dy: int) -> Any:
    text = base.mark_text(
        align="left", dx=8, dy=dy, color=color, fontSize=12, fontWeight="bold" if field == "text" else "normal", aria=False
    )
    return text.encode(x=x, text=alt.Text(field=field, type="nominal"))
