"""Lesson: releases repeated every day average out, rounded or noisy, unless a ledger adds them up and refuses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.evaluation.attacks.averaging import allowed_releases, rounding_log_odds
from dpviz.evaluation.attacks.game import Success, count_wins, membership_bound, membership_log_odds
from dpviz.lessons.charts import AMBER, GREEN, Look, curve_chart, join_series
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.success import SEEDS, Game, describe_success, success_chart
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.contrasts import RANDOM, round_counts
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.view.colors import ACCENT

MOST = 100
CAPS = (1.0, 2.0, 3.0, 5.0)
OTHERS = 12
"""People in the count beside the one whom the attacker looks for, on average."""
_RUNS = 40
ROUNDED, UNCAPPED, CAPPED = "rounded at random", "noise, no ledger", "noise, with a ledger"
_COLORS = (ACCENT, AMBER, GREEN)
_DAYS = np.arange(1, MOST + 1)


@dataclass(frozen=True, kw_only=True)
class Averaging(Lesson):
    """Repeated releases of one count: how often an attacker wins after each, rounded, noisy, and noisy with a ledger."""

    key: ClassVar[str] = "averaging"
    title: ClassVar[str] = "The same count, every day"
    text: ClassVar[str] = (
        "A count that is published again and again with fresh randomness, rounded up or down by a coin or with fresh noise, is known ever"
        " better, since its mean converges to the truth. Noise alone does not help, but a ledger does: it adds up ε over the releases,"
        " refuses what passes its cap, and so bounds what all of them say together."
    )
    task: ClassVar[str] = "go on for 30 and for 100 days, and find the largest cap that keeps an attacker below three games of four."
    question: ClassVar[str] = (
        "The same count is published every day with fresh Laplace noise, ε = 0.5 each day. After five days an attacker who looks for one"
        " person in it is right about 7 times of 10. Nobody adds up the ε in a ledger, and it goes on for 100 days: how often is the"
        " attacker right then?"
    )
    choices: ClassVar[tuple[str, ...]] = ("nearly always", "about 8 times of 10", "still 7 times of 10: the noise is fresh")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "In 99.4 % of the games: the noise averages out, and the releases have spent a sum of ε = 50. With a ledger capped at 2 only 4 are"
        " made, and it stays at 68 %, however many days go by."
    )
    in_class: ClassVar[str] = (
        "Ask first what the mean of many noisy numbers is; then nobody believes in noise alone any more. Expect the belief that the"
        " *method* is private, whatever is done with it: the promise is one of all releases together. Let them find the largest number of"
        " releases that keeps the attacker below 75 %. Rounding has a curve, too, but nothing that adds up: no office can say beforehand"
        " how many days are safe."
    )

    releases: int = setting(5, "Releases", low=1, high=MOST, help="One a day, of the same people, with fresh randomness.")
    epsilon: float = epsilon_setting(0.5, "Of each release.")
    cap: float = setting(2.0, "Cap of the ledger", choices=CAPS, help="The ledger refuses releases that would make the sum of ε larger.")
    base: int = setting(5, "Round to multiples of", choices=(3, 5), help="Up or down at random, right on average.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        played = {name: play(name, self.epsilon, self.base) for name in (ROUNDED, UNCAPPED)}
        allowed = min(allowed_releases(self.epsilon, self.cap), self.releases)
        today, noisy = (played[name][self.releases - 1] for name in (ROUNDED, UNCAPPED))
        private = played[UNCAPPED][allowed - 1] if allowed else Success(wins=SEEDS * _RUNS // 2, games=SEEDS * _RUNS)
        bound = membership_bound(allowed * self.epsilon)
        game = Game(
            contrast=(f"{_number(self.releases)}, rounded (NOT PRIVATE)", today),
            private=(f"{_number(allowed)}, then the ledger refuses" if allowed < self.releases else _number(allowed), private),
            bound=bound,
            epsilon=f"a sum of ε = {allowed * self.epsilon:g}",
        )
        means = _means(self)
        return LessonFigure(
            asked=((means,),),
            rows=((means, success_chart(game)), (_curves(self, played), _sums(self))),
            figures=(
                Figure("Rounded", describe_success(today), f"Games won after {self.releases} releases, with 95 % interval."),
                Figure("Noise, no ledger", describe_success(noisy), "Games won on the same number of noisy releases."),
                Figure("With the ledger", describe_success(private), f"Allowed: {100 * bound:.3g} % at most."),
                Figure("Releases allowed", f"{allowed}", f"The sum of ε stays within {self.cap:g}."),
            ),
            note="The game: a person is in the count or not, by a coin; the attacker knows the others, and weighs all releases in the best"
            f" way, in {SEEDS * _RUNS:,} made-up counts. The bound is that of the *sum* of ε, which every noisy release makes larger; a"
            " single release attains it.",
        )


def _number(releases: int) -> str:
    return f"{releases} release{'s' * (releases != 1)}"


def release_rounded(count: Integers, base: int, releases: int, entropy: Entropy) -> Integers:
    """Round (n,) counts at random again and again: (n, releases)."""
    return round_counts(np.repeat(count, releases), base, RANDOM, entropy).reshape(-1, releases)


def release_noisy(count: Integers, epsilon: float, releases: int, entropy: Entropy) -> Integers:
    """Release (n,) counts with fresh discrete Laplace noise again and again: (n, releases)."""
    return discrete_laplace(np.repeat(count, releases), PureBudget(epsilon), entropy).reshape(-1, releases)


@lru_cache(maxsize=64)
def play(method: str, epsilon: float, base: int, releases: int = MOST, runs: int = _RUNS) -> tuple[Success, ...]:
    """Play the game with one method in `SEEDS` times `runs` made-up counts; return the success after each number of releases."""
    rng, games = np.random.default_rng((11, 1)), SEEDS * runs
    others, truth = rng.poisson(OTHERS, games).astype(np.int64), rng.integers(0, 2, games).astype(np.bool_)
    if method == ROUNDED:
        odds = rounding_log_odds(release_rounded(others + truth, base, releases, Entropy.seeded(12)), others, base)
    else:
        noisy = release_noisy(others + truth, epsilon, releases, Entropy.seeded(13))
        odds = np.cumsum(membership_log_odds(noisy[..., None], others[:, None, None], [epsilon]), axis=1)
    return tuple(count_wins(said, truth) for said in (odds >= 0).T)


def _means(lesson: Averaging) -> object:
    """Draw the mean of the first releases of one count, in one run."""
    count, streams = np.array([OTHERS + 1]), Entropy.seeded(lesson.draw).spawn(2)
    rounded = release_rounded(count, lesson.base, MOST, streams[0])[0]
    noisy = release_noisy(count, lesson.epsilon, MOST, streams[1])[0]
    means = {"truth": np.full(MOST, OTHERS + 1.0), ROUNDED: np.cumsum(rounded) / _DAYS, UNCAPPED: np.cumsum(noisy) / _DAYS}
    look = Look("The mean of all releases so far", "releases", "people", order=tuple(means), colors=_COLORS)
    return curve_chart(_so_far(lesson, means), look)


def _curves(lesson: Averaging, played: dict[str, tuple[Success, ...]]) -> object:
    """Draw the games won after each number of releases, for the three methods."""
    rates = {name: np.array([100 * found.rate for found in success]) for name, success in played.items()}
    allowed = allowed_releases(lesson.epsilon, lesson.cap)
    rates[CAPPED] = rates[UNCAPPED][np.minimum(_DAYS, allowed) - 1] if allowed else np.full(MOST, 50.0)
    look = Look("Games won after so many releases", "releases", "games won (%)", order=(ROUNDED, UNCAPPED, CAPPED), colors=_COLORS, top=100)
    return curve_chart(_so_far(lesson, rates), look)


def _so_far(lesson: Averaging, curves: dict[str, Floats]) -> pd.DataFrame:
    """Return the beginnings of curves, up to the number of releases."""
    return join_series(_DAYS[: lesson.releases], {name: values[: lesson.releases] for name, values in curves.items()})


def _sums(lesson: Averaging) -> object:
    """Draw the most that the sum of epsilon allows after each number of releases, with and without a ledger."""
    numbers = {UNCAPPED: _DAYS, CAPPED: np.minimum(_DAYS, allowed_releases(lesson.epsilon, lesson.cap))}
    bounds = {name: [100 * membership_bound(number * lesson.epsilon) for number in each] for name, each in numbers.items()}
    look = Look("What the sum of ε allows", "releases", "games won, at most (%)", order=tuple(bounds), colors=(AMBER, GREEN), top=100)
    return curve_chart(join_series(_DAYS, bounds), look)
